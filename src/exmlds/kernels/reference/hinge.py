"""Linear classifiers with few weights, one per label, trained on few examples each."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

Array = np.ndarray

LEAST_ADDED = 16  # examples that are added to an active set at a time, at least


def train_hinge(
    indptr: Array,
    features: Array,
    values: Array,
    squares: Array,
    f_starts: Array,
    f_rows: Array,
    f_values: Array,
    y_starts: Array,
    y_rows: Array,
    first: int,
    last: int,
    slack: float,
    most: float,
    l1: float,
    n_passes: int,
    n_epochs: int,
    tolerance: float,
    out_starts: Array,
    out_features: Array,
    out_values: Array,
    out_bias: Array,
) -> None:
    """For each label, minimize l1 ‖w‖₁ + (‖w‖² + b²)/2 + Σ loss(sign (w x + b)) over all rows.

    The dual is the minimum of (‖w‖² + b²)/2 + Σ (slack α²/2 − α) over 0 ≤ α ≤ most, with w = Σ α sign x after
    each weight has moved by l1 towards 0, and b = Σ α sign. The loss of a margin m is C max(0, 1 − m) with a
    slack of 0 and most = C, and C max(0, 1 − m)² with slack = 1/(2C) and most = ∞.

    Dual coordinate descent goes over an active set: at first the rows of the label and as many other ones,
    drawn at random. After at most n_passes passes, other rows with α = 0 leave it, and those that violate the
    margin most enter it, at most as many as it has. Rows that share no feature with w are drawn at random.

    indptr, features, values : the rows x as csr float32;  squares : (n,) float32, ‖x‖²
    f_starts, f_rows, f_values : the same as csc
    y_starts, y_rows : the rows of each label
    first, last : the range of labels to train
    n_epochs : most passes over the active set of a label
    tolerance : training stops when no gradient of an example, active or not, is larger
    out_starts, out_features, out_values : the weights of each label, float32; out_starts[0] is 0
    out_bias : (last − first,) float32
    """
    n, d = len(indptr) - 1, len(f_starts) - 1
    X = csr_matrix((values, features, indptr), (n, d)).toarray().astype(float)
    n_out = 0
    for label in range(first, last):
        is_positive = np.zeros(n, bool)
        is_positive[y_rows[y_starts[label] : y_starts[label + 1]]] = True
        signed = np.where(is_positive, 1.0, -1.0)
        state = (label * 2654435761 + 12345) % 2**64
        active = y_rows[y_starts[label] : y_starts[label + 1]].tolist()
        state = _add_random(active, len(active), np.zeros(n), state)
        alpha, w, bias, epoch, violation = np.zeros(n), np.zeros(d), 0.0, 0, 0.0
        while epoch < n_epochs:
            for _ in range(min(n_passes, n_epochs - epoch)):
                violation, epoch = 0.0, epoch + 1
                for i in range(len(active) - 1, 0, -1):
                    state, j = _draw(state, i + 1)
                    active[i], active[j] = active[j], active[i]
                for i in active:
                    gradient = signed[i] * (X[i] @ w + bias) - 1 + alpha[i] * slack
                    new = min(max(alpha[i] - gradient / (squares[i] + 1 + slack), 0), most)
                    if new != alpha[i]:
                        violation = max(violation, abs(gradient))
                    alpha[i] = new
                    w, bias = _weights(X, alpha * signed, l1)
                if violation < tolerance:
                    break
            active = [i for i in active if is_positive[i] or alpha[i] > 0]
            n_before, shares = len(active), X @ w
            violating = np.flatnonzero((shares != 0) & (1 + bias + shares > tolerance)).tolist()
            outside = [i for i in violating if i not in active]
            limit = max(n_before, LEAST_ADDED)
            active += sorted(outside, key=lambda i: -shares[i])[:limit]
            if 1 + bias > tolerance:
                state = _add_random(active, limit - len(outside[:limit]), shares, state)
            if len(active) == n_before and violation < tolerance:
                break
        kept = np.flatnonzero(w)
        out_features[n_out : n_out + len(kept)] = kept
        out_values[n_out : n_out + len(kept)] = w[kept]
        n_out += len(kept)
        out_starts[label - first + 1], out_bias[label - first] = n_out, bias


def _weights(X: Array, signed_alpha: Array, l1: float) -> tuple[Array, float]:
    sums = signed_alpha @ X
    return np.sign(sums) * np.maximum(np.abs(sums) - l1, 0), float(signed_alpha.sum())


def _draw(state: int, n: int) -> tuple[int, int]:
    """The next state of a linear congruential generator, and a number below n."""
    state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
    return state, (state >> 33) * n >> 31


def _add_random(active: list[int], n_draws: int, shares: Array, state: int) -> int:
    """Draw rows, and add those to the active set that are not in it and share no feature with w."""
    for _ in range(n_draws):
        state, row = _draw(state, len(shares))
        if row not in active and shares[row] == 0:
            active.append(row)
    return state
