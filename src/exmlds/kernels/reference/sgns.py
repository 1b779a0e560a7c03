"""Skip-gram with negative sampling, pair by pair."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def sgns_pairs(
    rows: Array,
    columns: Array,
    weights: Array,
    negatives: Array,
    first_rate: float,
    last_rate: float,
    vectors: Array,
    contexts: Array,
    skip_self: bool,
) -> None:
    """Ascend log σ(⟨z_i, c_j⟩) + Σ over negatives j' of log σ(−⟨z_i, c_j'⟩) by SGD, pair by pair, in place.

    The inner products of a pair are those before its steps.

    rows, columns : (p,) int64, the pairs (i, j) in their order
    weights : (p,) float32, factor of the gradient of each pair
    negatives : (p, m) int64, the j' of each pair
    first_rate, last_rate : the learning rate changes linearly from one to the other over these pairs
    vectors, contexts : (n, r) float32, z and c; the same array where they are tied
    skip_self : whether negatives with j' = i are skipped
    """
    rates = first_rate + (last_rate - first_rate) * np.arange(len(rows)) / max(len(rows), 1)
    for i, j, weight, drawn, rate in zip(rows, columns, weights, negatives, rates):
        before = vectors[i].copy()
        change = np.zeros_like(before)
        targets = [j, *(other for other in drawn if not (skip_self and other == i))]
        errors = (np.arange(len(targets)) == 0) - 1 / (1 + np.exp(-(contexts[targets] @ before)))
        for target, error in zip(targets, errors):
            step = np.float32(rate * weight * error)
            change += step * contexts[target]
            contexts[target] += step * before
        vectors[i] += change
