"""Steps of joint learning on a batch of sparse rows."""

import numpy as np

from .compiler import kernel, reordering_kernel


@reordering_kernel
def embed_rows(indptr, features, values, rows, V, Z):
    """See the twin in reference/joint.py."""
    rank = V.shape[1]
    for i in range(len(rows)):
        z = Z[i]
        z[:] = 0
        for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
            v, value = V[features[p]], values[p]
            for c in range(rank):
                z[c] += value * v[c]


@kernel
def negative_weights(rows, contexts, neighbors, group, chain, weights):
    """See the twin in reference/joint.py."""
    b = len(rows)
    # Lists of the batch positions of each context row and of each group: first position, and the next ones.
    by_row, by_group, following = chain[0], chain[1], chain[2]
    same_group = np.empty(b, np.int64)
    for j in range(b - 1, -1, -1):
        row = contexts[j]
        following[j], by_row[row] = by_row[row], j
        same_group[j], by_group[group[row]] = by_group[group[row]], j
    for i in range(b):
        weights[i] = 1
        weights[i, i] = 0
        for own in range(-1, neighbors.shape[1]):
            row = rows[i] if own < 0 else neighbors[rows[i], own]
            if row >= 0:
                j = by_row[row]
                while j >= 0:
                    weights[i, j] = 0
                    j = following[j]
        j = by_group[group[rows[i]]]
        while j >= 0:
            weights[i, j] = 0
            j = same_group[j]
    for j in range(b):
        by_row[contexts[j]] = by_group[group[contexts[j]]] = following[j] = -1


@reordering_kernel
def adagrad_rows(indptr, features, values, rows, gradients, start, stop, rate, work, V, squares):
    """See the twin in reference/joint.py."""
    rank = V.shape[1]
    is_used, used, n_used = np.zeros(stop - start, np.bool_), np.empty(stop - start, np.int64), 0
    for i in range(len(rows)):
        gradient = gradients[i]
        # The features of a row ascend: find the first of this block.
        p, end = indptr[rows[i]], indptr[rows[i] + 1]
        high = end
        while p < high:
            middle = (p + high) // 2
            if features[middle] < start:
                p = middle + 1
            else:
                high = middle
        while p < end and features[p] < stop:
            feature, value = features[p], values[p]
            total = work[feature]
            if not is_used[feature - start]:
                is_used[feature - start] = True
                used[n_used] = feature
                n_used += 1
                for c in range(rank):
                    total[c] = value * gradient[c]
            else:
                for c in range(rank):
                    total[c] += value * gradient[c]
            p += 1
    for i in range(n_used):
        total, v, s = work[used[i]], V[used[i]], squares[used[i]]
        for c in range(rank):
            s[c] += total[c] * total[c]
            if s[c] > 0:
                v[c] -= rate * total[c] / np.sqrt(s[c])
