"""Skip-gram with negative sampling, one pair after the other."""

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
    """Climb log σ(⟨z_i, c_j⟩) + Σ over negatives j' of log σ(−⟨z_i, c_j'⟩), pair by pair, in place.

    rows, columns, weights : (p,) int64, int64, float32: the pairs (i, j) in their order, and what each counts
    negatives : (p, m) int64, the j' of each pair
    first_rate, last_rate : the learning rate goes from one to the other over these pairs
    vectors, contexts : (n, r) float32, z and c; the same array where they are tied
    skip_self : leave out negatives with j' = i
    """
    rates = first_rate + (last_rate - first_rate) * np.arange(len(rows)) / max(len(rows), 1)
    for i, j, weight, drawn, rate in zip(rows, columns, weights, negatives, rates):
        before = vectors[i].copy()
        change = np.zeros_like(before)
        for target, wanted in [
            (j, 1.0),
            *((other, 0.0) for other in drawn if not (skip_self and other == i)),
        ]:
            context = contexts[target].copy()
            step = np.float32(rate * weight * (wanted - 1 / (1 + np.exp(-float(before @ context)))))
            change += step * context
            contexts[target] += step * before
        vectors[i] += change
