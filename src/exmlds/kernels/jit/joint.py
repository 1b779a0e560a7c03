"""Steps of joint learning on a batch of sparse rows."""

import numpy as np

from .compiler import kernel, reordering_kernel

TINY = np.float32(1e-37)  # in place of a zero, which has no inverse


@reordering_kernel
def _add_rows(matrix, numbers, factors, begin, end, total):
    """Add factors[p] times matrix[numbers[p]] to the total, for p from begin to end."""
    p = begin
    # Four rows at a time: the total is read and written once for all of them.
    while p + 4 <= end:
        a, b, c, d = factors[p], factors[p + 1], factors[p + 2], factors[p + 3]
        first, second = matrix[numbers[p]], matrix[numbers[p + 1]]
        third, fourth = matrix[numbers[p + 2]], matrix[numbers[p + 3]]
        for i in range(len(total)):
            total[i] += a * first[i] + b * second[i] + c * third[i] + d * fourth[i]
        p += 4
    while p < end:
        factor, row = factors[p], matrix[numbers[p]]
        for i in range(len(total)):
            total[i] += factor * row[i]
        p += 1


@reordering_kernel
def embed_rows(indptr, features, values, rows, V, Z):
    """See the twin in reference/joint.py."""
    for i in range(len(rows)):
        Z[i] = 0
        _add_rows(V, features, values, indptr[rows[i]], indptr[rows[i] + 1], Z[i])


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
def _exp(x):
    """exp(x) for x ≤ 0, as the 64th power of a polynomial, which is compiled to vector instructions.

    The relative error is below 1e-5 down to −8, and the absolute error is below 1e-8 everywhere.
    """
    y = max(x, np.float32(-64)) * np.float32(1 / 64)
    p = 1 + y * (1 + y * (np.float32(1 / 2) + y * (np.float32(1 / 6) + y * np.float32(1 / 24))))
    for _ in range(6):
        p *= p
    return p


@reordering_kernel
def softmax_gradient(U, weights, gamma, start, stop, size, by_rows, by_contexts):
    """See the twin in reference/joint.py."""
    b, loss = len(weights), np.float32(0)
    contexts = U[b:]
    for number, first in enumerate(range(start, stop, size)):
        last = min(first + size, stop)
        rows = U[first:last]
        K = np.dot(rows, contexts.T)
        for i in range(last - first):
            own, k, positive = weights[first + i], K[i], K[i, first + i]
            largest = positive
            for j in range(b):
                if own[j] > 0 and k[j] > largest:
                    largest = k[j]
            odds = _exp(gamma * (positive - largest))
            total = odds
            for j in range(b):
                # The exponent of a pair that does not count may be positive.
                k[j] = own[j] * _exp(min(gamma * (k[j] - largest), np.float32(0)))
                total += k[j]
            for j in range(b):
                k[j] *= gamma / (np.float32(b) * total)
            k[first + i] = (odds / total - 1) * gamma / np.float32(b)
            loss += np.log(total) - gamma * (positive - largest)
        by_rows[first - start : last - start] = np.dot(K, contexts)
        by_contexts[number] = np.dot(K.T, rows)
    return loss


@reordering_kernel
def adagrad_rows(indptr, features, values, rows, gradients, start, stop, rate, V, squares):
    """See the twin in reference/joint.py."""
    # Sort the values of the batch by feature, so that the gradient of each is summed at once.
    first, ends = np.empty(len(rows), np.int64), np.zeros(stop - start + 1, np.int64)
    for i in range(len(rows)):
        # The features of a row ascend: find the first of this block.
        p, end = indptr[rows[i]], indptr[rows[i] + 1]
        high = end
        while p < high:
            middle = (p + high) // 2
            if features[middle] < start:
                p = middle + 1
            else:
                high = middle
        first[i] = p
        while p < end and features[p] < stop:
            ends[features[p] - start + 1] += 1
            p += 1
    for feature in range(stop - start):
        ends[feature + 1] += ends[feature]
    position, row_of, value_of = (
        ends[:-1].copy(),
        np.empty(ends[-1], np.int64),
        np.empty(ends[-1], np.float32),
    )
    for i in range(len(rows)):
        p, end = first[i], indptr[rows[i] + 1]
        while p < end and features[p] < stop:
            at = position[features[p] - start]
            row_of[at], value_of[at] = i, values[p]
            position[features[p] - start] += 1
            p += 1
    total = np.empty(V.shape[1], np.float32)
    for feature in range(stop - start):
        if ends[feature] == ends[feature + 1]:
            continue
        total[:] = 0
        _add_rows(gradients, row_of, value_of, ends[feature], ends[feature + 1], total)
        v, s = V[start + feature], squares[start + feature]
        for c in range(len(total)):
            s[c] += total[c] * total[c]
            v[c] -= rate * total[c] / np.sqrt(max(s[c], TINY))
