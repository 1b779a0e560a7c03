"""Sparse weights of all labels with the max-margin loss, by steps on the dual variables of one row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_matrix

Array = np.ndarray

LEAST_VIOLATION = 1e-3  # of the margin by a label that joins an active set
LEAST_ALPHA = 1e-7  # smaller dual variables are 0


def train_max_margin(
    indptr: Array,
    features: Array,
    values: Array,
    squares: Array,
    order: Array,
    n_features: int,
    n_select: int,
    cost: float,
    l1: float,
    most_dense: int,
    seed: int,
    starts: Array,
    n_positive: Array,
    counts: Array,
    labels: Array,
    alphas: Array,
    scores: Array,
) -> None:
    """Minimize l1 ‖W‖₁ + ‖W‖²/2 + cost Σ max(0, 1 + z_n − z_p), z = Wᵀx, over negative n and positive p.

    The loss of a row is that of its highest negative and its lowest positive label. The dual is the minimum
    of ‖W‖²/2 + Σ α_n over α_p ≥ 0, α_n ≤ 0 with Σ α_p = −Σ α_n ≤ cost for each row, where W is Xᵀα after each
    entry has moved by l1 towards 0. For each row in the given order, the negative labels with the highest
    scores that violate the margin join its active set, and a proximal step with the bound ‖x‖² of the second
    derivative changes the α of the set; those that are 0 leave it. Labels that share no feature with the row
    have a score of 0 and are drawn at random.

    indptr, features, values : the rows x as csr float32;  squares : (n,) float32, ‖x‖²
    order : (m,) the rows to visit
    n_features : d
    n_select : labels that join the set at a time, at most
    most_dense : entries of Xᵀα up to which the compiled kernel keeps it as a dense matrix
    seed : of the random labels
    starts : (n + 1,) int64, where the active set of each row begins, with room for what may join it
    n_positive : (n,) int32, labels of each row, which are the first of its set and never leave it
    counts : (n,) int32, the size of each set, overwritten
    labels, alphas : int32 and float32, the sets, overwritten
    scores : (L,) float32 zeros, a work array that is zero again at the end
    """
    n, n_labels = len(indptr) - 1, len(scores)
    X = csr_matrix((values, features, indptr), (n, n_features)).toarray().astype(float)
    A, state = np.zeros((n, n_labels)), seed
    for row in range(n):
        own = slice(starts[row], starts[row] + counts[row])
        A[row, labels[own]] = alphas[own]
    for row in order:
        if not n_positive[row] or not squares[row]:
            continue
        V = X.T @ A
        z = X[row] @ (np.sign(V) * np.maximum(np.abs(V) - l1, 0))
        begin, room = starts[row], starts[row + 1] - starts[row]
        active = labels[begin : begin + counts[row]].tolist()
        positive = active[: n_positive[row]]
        joining, state = _violating(z, active, positive, min(n_select, room - len(active)), state)
        negative = active[len(positive) :] + joining
        b, c = _project(
            -A[row, negative] + (1 + z[negative]) / squares[row],
            A[row, positive] - z[positive] / squares[row],
            cost,
        )
        A[row, negative], A[row, positive] = -b * (b >= LEAST_ALPHA), c * (c >= LEAST_ALPHA)
        active = positive + [label for label in negative if A[row, label] != 0]
        counts[row] = len(active)
        labels[begin : begin + len(active)], alphas[begin : begin + len(active)] = active, A[row, active]


def _violating(
    z: Array, active: list[int], positive: list[int], limit: int, state: int
) -> tuple[list[int], int]:
    """The labels that join an active set, and the next state of the random generator."""
    lowest = min(z[positive])
    joining = [k for k in range(len(z)) if z[k] and k not in active and 1 + z[k] - lowest > LEAST_VIOLATION]
    joining = sorted(joining, key=lambda k: (-z[k], k))[:limit]
    if 1 - lowest > LEAST_VIOLATION:
        for _ in range(limit - sum(z[joining] > 0)):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            label = (state >> 33) * len(z) >> 31
            if z[label] == 0 and label not in active + joining:
                joining.append(label)
    return sorted(joining, key=lambda k: (-z[k], k))[:limit], state


def _project(b: Array, c: Array, total: float) -> tuple[Array, Array]:
    """The nearest b ≥ 0 and c ≥ 0 with Σb = Σc ≤ total, by bisection for the shifts of both."""

    def excess(shift: float) -> float:
        return float(np.maximum(b - shift, 0).sum() - np.maximum(c + shift, 0).sum())

    if not len(b) or max(b) + max(c) <= 0:
        return 0 * b, 0 * c
    shift = _root(excess, -max(c) - 1, max(b) + 1)
    if np.maximum(b - shift, 0).sum() <= total:
        return np.maximum(b - shift, 0), np.maximum(c + shift, 0)
    return _on_simplex(b, total), _on_simplex(c, total)


def _on_simplex(v: Array, total: float) -> Array:
    """The nearest values of at least 0 with this sum."""
    shift = _root(lambda shift: float(np.maximum(v - shift, 0).sum()) - total, max(v) - total, max(v))
    return np.maximum(v - shift, 0)


def _root(descending: Callable[[float], float], low: float, high: float) -> float:
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if descending(middle) > 0 else (low, middle)
    return (low + high) / 2
