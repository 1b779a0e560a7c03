"""Merge what several parts of a partitioned model predict for a row.

Each part gives probabilities of labels. Their weighted mean (`mix`) is the probability of a label as far as
the parts are calibrated and a row belongs to one of them. A part has the more weight, the likelier it has the
row, and the more of the label's training rows it has: that a part gives a label no probability says little
where it has seen few of its rows (`label_weights`). The logit of the mean is the `evidence` that
`stacking.calibrate_alone` calibrates on held-out rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

Array = np.ndarray

SMALLEST = 1e-6  # probabilities are clipped here before the logit
N_EVIDENCE = 1  # columns of the evidence
SHARE_POWER = (
    0.7  # of the router's shares in the weights: the router is too sure of rows that it has not seen
)
FRACTION_PRIOR = 0.4  # added to the fraction of a label's rows that a part has


class Merged(NamedTuple):
    """The labels that parts predict for rows, each label once, by the mean of its probabilities.

    ids : (n, m) int64, best first, −1 pads
    scores : (n, m) float32, the sum of weight × probability over the parts
    """

    ids: Array
    scores: Array


def label_weights(ids: Array, asked: Array, shares: Array, counts: csr_matrix, totals: Array) -> Array:
    """(n, p, k) float32, the weights of predictions; for each label, those of all p parts sum to 1.

    The weight of a part is share^0.7 × (0.4 + its fraction of the label's rows), divided by the sum over p.

    ids : (n, p, k), the k labels that each of p parts predicts, −1 pads
    asked, shares : (n, p), the parts that a row asks, and their shares
    counts : (parts, L) csr with sorted columns, the rows of each label in each part;  totals : (L,) in all
    """
    labels, scale = np.maximum(ids, 0), shares.astype(np.float32) ** SHARE_POWER
    inverse = (1 / np.maximum(totals, 1)).astype(np.float32)
    own, total = np.empty(ids.shape, np.float32), np.zeros(ids.shape, np.float32)
    for number in range(asked.shape[1]):
        parts = np.broadcast_to(asked[:, number, None, None], ids.shape)
        n_rows = np.asarray(counts[parts.ravel(), labels.ravel()]).reshape(ids.shape)
        weights = scale[:, number, None, None] * (FRACTION_PRIOR + n_rows * inverse[labels])
        own[:, number] = weights[:, number]
        total += weights
    return own / np.maximum(total, np.finfo(np.float32).tiny)


def mix(ids: Array, scores: Array, weights: Array) -> Merged:
    """Merge predictions; of labels with equal sums, the smaller one is first.

    ids, scores, weights : (n, p, k), the k labels that each of p parts predicts, −1 pads
    """
    n = len(ids)
    flat = ids.reshape(n, -1)
    order = np.argsort(flat, axis=1, kind="stable")
    flat = np.take_along_axis(flat, order, axis=1)
    weights = np.take_along_axis(weights.reshape(n, -1), order, axis=1)
    given = np.take_along_axis(scores.reshape(n, -1), order, axis=1)
    is_first = np.ones(flat.shape, bool)
    is_first[:, 1:] = flat[:, 1:] != flat[:, :-1]
    starts = np.flatnonzero(is_first.ravel())
    sums = np.zeros(flat.shape, np.float32)
    if len(starts):
        sums.ravel()[starts] = np.add.reduceat((given * weights).ravel(), starts)
    is_label = is_first & (flat >= 0)
    best = np.argsort(-np.where(is_label, sums, -1), axis=1, kind="stable")
    ids, sums = (
        np.take_along_axis(np.where(is_label, values, pad), best, axis=1)
        for values, pad in ((flat, -1), (sums, 0))
    )
    return Merged(ids, np.minimum(sums, 1).astype(np.float32, copy=False))


def evidence(merged: Merged) -> Array:
    """(n, m, 1) float32, the logits of the means."""
    clipped = np.clip(merged.scores, SMALLEST, 1 - SMALLEST)
    return np.log(clipped / (1 - clipped))[..., None]
