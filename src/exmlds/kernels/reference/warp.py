"""The WARP loss by stochastic gradient descent, row by row."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def warp_rows(
    indptr: Array,
    features: Array,
    values: Array,
    label_indptr: Array,
    labels: Array,
    rows: Array,
    first_rate: float,
    last_rate: float,
    max_norm: float,
    harmonic: Array,
    state: Array,
    V: Array,
    H: Array,
) -> None:
    """Descend Σ over the labels l of a row of w(rank of l) (1 − ⟨z, h_l⟩ + ⟨z, h_m⟩)₊ with z = x V, in place.

    For each label l, labels m are drawn uniformly, L − 1 times at most, until one is found that the row lacks
    and that has ⟨z, h_m⟩ > ⟨z, h_l⟩ − 1. With t draws the rank of l is about ⌊(L − 1) / t⌋. The labels of a
    row are visited one after the other with the same z, and V takes one step for all of them. Rows of V and H
    that a step has made longer than `max_norm` are scaled to that length.

    indptr, features, values : (n, d) X as csr float32;  label_indptr, labels : (n, L) Y as csr
    rows : (m,) int64, the rows in the order in which they are visited
    first_rate, last_rate : the learning rate changes linearly from one to the other over these rows
    harmonic : (L,) float32, w: the sum of 1/i up to each rank
    state : (1,) uint64, of the random generator
    V : (d, r) float32;  H : (L, r) float32
    """
    n_labels = len(H)
    rates = first_rate + (last_rate - first_rate) * np.arange(len(rows)) / max(len(rows), 1)
    for row, rate in zip(rows, rates):
        own = labels[label_indptr[row] : label_indptr[row + 1]]
        stored = slice(indptr[row], indptr[row + 1])
        z = values[stored] @ V[features[stored]]
        change, n_steps = np.zeros_like(z), 0
        for label in own:
            for n_draws in range(1, n_labels):
                number = (int(state[0]) * 6364136223846793005 + 1442695040888963407) % 2**64
                state[0] = number
                other = (number >> 33) * n_labels >> 31
                if other not in own and z @ H[other] > z @ H[label] - 1:
                    step = np.float32(rate) * harmonic[(n_labels - 1) // n_draws]
                    change, n_steps = change + step * (H[label] - H[other]), n_steps + 1
                    H[label] = _bounded(H[label] + step * z, max_norm)
                    H[other] = _bounded(H[other] - step * z, max_norm)
                    break
        for feature, value in zip(features[stored], values[stored]) if n_steps else ():
            V[feature] = _bounded(V[feature] + value * change, max_norm)


def _bounded(vector: Array, max_norm: float) -> Array:
    length = np.linalg.norm(vector)
    return vector * np.float32(max_norm / length) if length > max_norm else vector
