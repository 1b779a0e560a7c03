"""The linear gate of the router, trained row by row with FTRL-proximal."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def ftrl_rows(
    indptr: Array,
    features: Array,
    values: Array,
    order: Array,
    targets: Array,
    rate: float,
    l1: float,
    weights: Array,
    gradients: Array,
    squares: Array,
) -> None:
    """Take one FTRL-proximal step on the softmax loss of x W for each row x, in place.

        g = x (softmax(x W) − target),  z += g − W (√(n + g²) − √n) / rate,  n += g²,
        W = −sign(z) max(|z| − l1, 0) rate / (1 + √n)

    indptr, features, values : X as csr float32; the features of a row are distinct
    order : (m,) int64, the rows in the order of their steps
    targets : (n,) int64, the part of each row
    weights, gradients, squares : (d, p) float32, W, z and n
    """
    for row in order:
        stored = slice(indptr[row], indptr[row + 1])
        x, here = values[stored], features[stored]
        W, z, n = weights[here], gradients[here], squares[here]  # (m, p)
        scores = x @ W
        error = np.exp(scores - scores.max())
        error /= error.sum()
        error[targets[row]] -= 1
        g = np.outer(x, error)
        root = np.sqrt(n + g**2)
        z = z + g - W * (root - np.sqrt(n)) / rate
        squares[here] = n + g**2
        gradients[here] = z
        weights[here] = -np.sign(z) * np.maximum(np.abs(z) - l1, 0) * rate / (1 + root)
