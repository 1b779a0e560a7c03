"""Merge what several parts of a partitioned model predict for a row.

Each part gives probabilities of labels. Their mean, weighed by the shares of the parts (`mix`), is the
probability of a label as far as the parts are calibrated and a row belongs to one of them. Its logit is the
`evidence` that `stacking.calibrate_alone` calibrates on held-out rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray

SMALLEST = 1e-6  # probabilities are clipped here before the logit
N_EVIDENCE = 1  # columns of the evidence


class Merged(NamedTuple):
    """The labels that parts predict for rows, each label once, by the mean of its probabilities.

    ids : (n, m) int64, best first, −1 pads
    scores : (n, m) float32, the sum of share × probability over the parts
    """

    ids: Array
    scores: Array


def mix(ids: Array, scores: Array, shares: Array) -> Merged:
    """Merge predictions; of labels with equal sums, the smaller one is first.

    ids, scores : (n, p, k), the k labels that each of p parts predicts, −1 pads
    shares : (n, p), of the parts that a row asks; their sum is 1
    """
    n = len(ids)
    flat, weights = ids.reshape(n, -1), np.broadcast_to(shares[:, :, None], ids.shape).reshape(n, -1)
    order = np.argsort(flat, axis=1, kind="stable")
    flat = np.take_along_axis(flat, order, axis=1)
    weights = np.take_along_axis(weights, order, axis=1).astype(np.float32)
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
