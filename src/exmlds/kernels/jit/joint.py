"""AdaGrad steps of joint learning, feature by feature."""

import numpy as np

from .compiler import reordering_kernel


@reordering_kernel
def adagrad_features(indptr, rows, values, gradients, start, stop, rate, V, squares):
    """See the twin in reference/joint.py."""
    rank = V.shape[1]
    total = np.empty(rank, np.float32)
    for feature in range(start, stop):
        if indptr[feature] == indptr[feature + 1]:
            continue
        total[:] = 0
        for p in range(indptr[feature], indptr[feature + 1]):
            value = values[p]
            gradient = gradients[rows[p]]
            for c in range(rank):
                total[c] += value * gradient[c]
        v, s = V[feature], squares[feature]
        for c in range(rank):
            s[c] += total[c] * total[c]
            if s[c] > 0:
                v[c] -= rate * total[c] / np.sqrt(s[c])
