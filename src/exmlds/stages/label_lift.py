"""Label lift: how much more often a label occurs together with the other labels of a row than in general."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import expit

from ..runtime.parallel import blocks

Array = np.ndarray

BLOCK = 128  # labels whose co-occurrences are counted at a time
PRIOR_ROWS = 2.0  # pseudo-rows that each label adds with the overall label frequencies
N_CONDITIONING = 10  # labels of a row, those with the largest margins, that lift the others
LOGIT_SLOPE = 3.0  # slope of the logistic function from a margin to a probability


def fit(Y: csr_matrix) -> Array:
    """(L, L) float16, log P(l | j) / P(l) for labels j (rows) and l (columns); the diagonal is 0.

    Y : (n, L) csr of ones
    """
    n, n_labels = Y.shape
    Yt = Y.T.tocsr()
    counts = np.bincount(Y.indices, minlength=n_labels).astype(np.float32)
    share = (counts + 0.5) / n
    lifts = np.empty((n_labels, n_labels), np.float16)
    for rows in blocks(n_labels, BLOCK):
        together = (Yt[rows] @ Y).toarray()
        # The prior shrinks the lifts of rare labels towards 0.
        lifts[rows] = np.log((together + PRIOR_ROWS * share) / ((counts[rows, None] + PRIOR_ROWS) * share))
    np.fill_diagonal(lifts, 0)
    return lifts


def with_labels(lifts: Array, n_labels: int) -> Array:
    """(n_labels, n_labels) the lifts, with none for labels that came later."""
    grown = np.zeros((n_labels, n_labels), lifts.dtype)
    grown[: len(lifts), : len(lifts)] = lifts
    return grown


def apply(lifts: Array, ids: Array, margins: Array) -> Array:
    """(n, k) float32, for each label on a short list the lifts by the likely labels, weighted by probability.

    ids : (n, k) int64, short lists, −1 pads
    margins : (n, k) classifier margins, −inf where the list is padded
    """
    first = np.argsort(-margins, axis=1, kind="stable")[:, :N_CONDITIONING]
    # A pad has the margin −inf, hence the probability 0, and lifts nothing.
    probabilities = expit(LOGIT_SLOPE * np.take_along_axis(margins, first, axis=1))
    given = np.take_along_axis(ids, first, axis=1)
    pairs = lifts[given[:, :, None], ids[:, None, :]].astype(np.float32)  # (n, N_CONDITIONING, k)
    return np.einsum("na,nak->nk", probabilities, pairs)
