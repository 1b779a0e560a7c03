"""What a row's other labels say of a label: how much more often it comes with them than in general."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import expit

Array = np.ndarray

PRIOR_ROWS = 2.0  # rows of a label that are thought to be as all are
N_CONDITIONING = 10  # labels of a row, those with the largest margins
LOGIT_SLOPE = 3.0  # of the curve from a margin to how likely the label is


def fit(Y: csr_matrix) -> Array:
    """(L, L) float16 log of P(l | j) / P(l) for labels j, l of rows Y, (n, L) csr; 0 for a label itself."""
    together = (Y.T @ Y).toarray().astype(np.float32)
    counts = together.diagonal().copy()
    share = (counts + 0.5) / Y.shape[0]
    lifts = np.log((together + PRIOR_ROWS * share) / ((counts[:, None] + PRIOR_ROWS) * share))
    np.fill_diagonal(lifts, 0)
    return lifts.astype(np.float16)


def apply(lifts: Array, ids: Array, margins: Array) -> Array:
    """(n, k) float32 for labels on short lists, −1 pads: the lifts by those that are likely, together.

    margins : (n, k), −inf where the list is padded
    """
    first = np.argsort(-margins, axis=1, kind="stable")[:, :N_CONDITIONING]
    likely = expit(LOGIT_SLOPE * np.take_along_axis(margins, first, axis=1))
    by = np.take_along_axis(ids, first, axis=1)
    return np.einsum("na,nak->nk", likely, lifts[by[:, :, None], ids[:, None, :]].astype(np.float32))
