"""Merge what several parts of a partitioned model predict for a row.

Each part gives probabilities of labels. Their mean, weighed by the shares of the parts (`mix`), is the
probability of a label as far as a row belongs to one part. Where rows were held out, a stacker
(`stacking.py`) corrects it by further `evidence`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray

SMALLEST = 1e-6  # probabilities are clipped here before the logit
N_EVIDENCE = 11  # columns of the evidence; the last is the logarithm of the rank, as a stacker requires


class Merged(NamedTuple):
    """The labels that parts predict for rows, each label once, by the mean of its probabilities.

    ids : (n, m) int64, best first, −1 pads
    scores : (n, m) float32, the sum of share × probability over the parts
    largest : (n, m) float32, the largest probability;  share : (n, m) float32, of the parts that predict it
    """

    ids: Array
    scores: Array
    largest: Array
    share: Array


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
    is_label = is_first & (flat >= 0)

    def reduced(operation: np.ufunc, values: Array) -> Array:
        """One value for each label, where it is first."""
        found = np.zeros(flat.shape, np.float32)
        if len(starts):
            found.ravel()[starts] = operation.reduceat(values.ravel(), starts)
        return np.where(is_label, found, 0)

    sums, largest = reduced(np.add, given * weights), reduced(np.maximum, given)
    best = np.argsort(-np.where(is_label, sums, -1), axis=1, kind="stable")
    flat, sums, largest, share = (
        np.take_along_axis(values, best, axis=1)
        for values in (np.where(is_label, flat, -1), sums, largest, reduced(np.add, weights))
    )
    return Merged(flat, np.minimum(sums, 1), largest, share)


def evidence(merged: Merged, counts: Array, shares: Array) -> Array:
    """(n, m, 11) float32, what a stacker may learn from.

    counts : (L,) number of training rows of each label;  shares : (n, p) as `mix` takes them
    """
    ids, scores, largest, share = merged
    z = _logit(scores)
    c = np.log(np.maximum(counts[np.maximum(ids, 0)], 1)).astype(np.float32)
    certain = np.broadcast_to(shares.max(axis=1, keepdims=True), ids.shape)
    log_rank = np.broadcast_to(np.log1p(np.arange(ids.shape[1], dtype=np.float32)), ids.shape)
    columns = [
        z,
        scores,
        _logit(largest),
        largest,
        c,
        share,
        share * z,
        c * z,
        certain,
        certain * z,
        log_rank,
    ]
    return np.stack(columns, axis=-1).astype(np.float32, copy=False)


def _logit(probabilities: Array) -> Array:
    clipped = np.clip(probabilities, SMALLEST, 1 - SMALLEST)
    return np.log(clipped / (1 - clipped))
