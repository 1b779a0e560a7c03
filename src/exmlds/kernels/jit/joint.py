"""Steps of joint learning on a batch of sparse rows, and several threads that take them together."""

import sys

import numpy as np
from numba import types
from numba.extending import intrinsic

from .compiler import kernel, reordering_kernel

TINY = np.float32(1e-37)  # in place of a zero, which has no inverse
ROWS = 32  # rows in a block of similarities
ARRIVED, ROUND, CANCELLED = 0, 8, 16  # positions in a barrier, each in a cache line of its own
SPINS = 5_000  # look-ups at a barrier before a thread offers its core to others

_yield_core = types.ExternalFunction(
    "SwitchToThread" if sys.platform == "win32" else "sched_yield", types.int32()
)


def _pointer(context, builder, signature, arguments):
    """The address of an item of the array that is the first argument; the second is its position."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [arguments[1]])


@intrinsic
def _atomic_add(typing_context, array, position, value):
    """Add to an item of an int64 array, and return what it was before, in one step for all threads."""

    def generate(context, builder, signature, arguments):
        return builder.atomic_rmw(
            "add", _pointer(context, builder, signature, arguments), arguments[2], "seq_cst"
        )

    return types.int64(array, types.int64, types.int64), generate


@intrinsic
def _atomic_load(typing_context, array, position):
    """An item of an int64 array as other threads left it, with all that they wrote before."""

    def generate(context, builder, signature, arguments):
        return builder.load_atomic(_pointer(context, builder, signature, arguments), "seq_cst", 8)

    return types.int64(array, types.int64), generate


@kernel
def _wait(barrier, n_threads):
    """Wait until all threads are here; returns whether they were cancelled."""
    if n_threads == 1:
        return False
    round_before = _atomic_load(barrier, ROUND)
    if _atomic_add(barrier, ARRIVED, 1) == n_threads - 1:
        _atomic_add(barrier, ARRIVED, -n_threads)
        _atomic_add(barrier, ROUND, 1)
    spins = 0
    while _atomic_load(barrier, ROUND) == round_before:
        spins += 1
        if spins > SPINS:
            if _atomic_load(barrier, CANCELLED):
                return True
            _yield_core()
    return False


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


def multiply_packed(indptr, features, values, columns, packed, scale, Z):
    """See the twin in reference/joint.py. The rows of the matrix that are needed are unpacked first."""
    rows, number = _needed_rows(features, columns, is_few=len(Z) == 1)
    A = np.zeros((len(rows) + 1, packed.shape[1]), np.float32)
    A[:-1] = packed[rows]
    if len(scale):
        A[:-1] *= scale[rows][:, None]
    embed_rows(indptr, number, values, np.arange(len(Z)), A, Z)


def _needed_rows(features, columns, is_few):
    """Which rows of a matrix, those of `columns`, some features need, and the position of each among them.

    The position of a feature that is not a column is after the last. Few features are looked up, many marked.
    """
    if is_few:
        rows = np.searchsorted(columns, features)
        is_listed = rows < len(columns)
        is_listed[is_listed] = columns[rows[is_listed]] == features[is_listed]
        return rows[is_listed], np.where(is_listed, np.cumsum(is_listed) - 1, is_listed.sum())
    d = 1 + max(features.max(initial=0), columns.max(initial=0))
    is_present = np.zeros(d, bool)
    is_present[features] = True
    rows = np.flatnonzero(is_present[columns])
    position = np.full(d, len(rows))
    position[columns[rows]] = np.arange(len(rows))
    return rows, position[features]


@kernel
def _link(contexts, group, chain):
    """List the batch positions of each context row and of each group: the first one, and those after it."""
    for j in range(len(contexts) - 1, -1, -1):
        row, own = contexts[j], group[contexts[j]]
        chain[2, j], chain[0, row] = chain[0, row], j
        chain[3, j], chain[1, own] = chain[1, own], j


@kernel
def _unlink(contexts, group, chain):
    for j in range(len(contexts)):
        chain[0, contexts[j]] = chain[1, group[contexts[j]]] = chain[2, j] = chain[3, j] = -1


@kernel
def _weigh_negatives(i, row, neighbors, group, chain, weights):
    """The weights (b,) of all contexts of the batch as negatives of its i-th row."""
    weights[:] = 1
    weights[i] = 0
    for own in range(-1, neighbors.shape[1]):
        other = row if own < 0 else neighbors[row, own]
        if other >= 0:
            j = chain[0, other]
            while j >= 0:
                weights[j] = 0
                j = chain[2, j]
    j = chain[1, group[row]]
    while j >= 0:
        weights[j] = 0
        j = chain[3, j]


@kernel
def negative_weights(rows, contexts, neighbors, group, chain, weights):
    """See the twin in reference/joint.py."""
    _link(contexts, group, chain)
    for i in range(len(rows)):
        _weigh_negatives(i, rows[i], neighbors, group, chain, weights[i])
    _unlink(contexts, group, chain)


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
def _softmax_slopes(k, weights, own, gamma):
    """Replace the similarities (b,) of a row and all contexts by the slopes of its loss, which is returned.

    own : the position of its positive
    """
    b, positive = len(k), k[own]
    largest = positive
    for j in range(b):
        if weights[j] > 0 and k[j] > largest:
            largest = k[j]
    odds = _exp(gamma * (positive - largest))
    total = odds
    for j in range(b):
        # The exponent of a pair that does not count may be positive.
        k[j] = weights[j] * _exp(min(gamma * (k[j] - largest), np.float32(0)))
        total += k[j]
    for j in range(b):
        k[j] *= gamma / (np.float32(b) * total)
    k[own] = (odds / total - 1) * gamma / np.float32(b)
    return np.log(total) - gamma * (positive - largest)


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
            loss += _softmax_slopes(K[i], weights[first + i], first + i, gamma)
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


@reordering_kernel
def _normalize(z):
    """Scale an embedding to length 1, and return its length."""
    square = np.float32(0)
    for c in range(len(z)):
        square += z[c] * z[c]
    length = max(np.sqrt(square), TINY)
    for c in range(len(z)):
        z[c] /= length
    return length


@reordering_kernel
def _through_length(U, lengths, dU):
    """Turn gradients by rows of length 1 into those by rows of any length: (g − ⟨g, u⟩ u) / ‖z‖."""
    for i in range(len(U)):
        u, g = U[i], dU[i]
        inner = np.float32(0)
        for c in range(len(u)):
            inner += u[c] * g[c]
        for c in range(len(u)):
            g[c] = (g[c] - inner * u[c]) / lengths[i]


@reordering_kernel
def train_batches(
    thread,
    edges,
    barrier,
    indptr,
    features,
    values,
    rows,
    contexts,
    batch_size,
    neighbors,
    group,
    gamma,
    is_cosine,
    rate,
    U,
    dU,
    lengths,
    slopes,
    chain,
    V,
    squares,
):
    """See the twin in reference/joint.py."""
    n_threads = len(edges) - 1
    for start in range(0, len(rows), batch_size):
        b = min(batch_size, len(rows) - start)
        both = np.concatenate((rows[start : start + b], contexts[start : start + b]))
        # Each thread embeds some rows.
        first, last = 2 * b * thread // n_threads, 2 * b * (thread + 1) // n_threads
        embed_rows(indptr, features, values, both[first:last], V, U[first:last])
        if is_cosine:
            for i in range(first, last):
                lengths[i] = _normalize(U[i])
        if thread == 0:
            _link(both[b:], group, chain)
        if _wait(barrier, n_threads):
            return
        # Similarities of blocks of rows and all contexts, their slopes, and the gradients by the rows.
        by_context = slopes[: b * b].reshape(b, b)
        weights = np.empty(b, np.float32)
        for first in range(thread * ROWS, b, n_threads * ROWS):
            last = min(first + ROWS, b)
            K = np.dot(U[first:last], U[b : 2 * b].T)
            for i in range(first, last):
                _weigh_negatives(i, both[i], neighbors, group, chain, weights)
                _softmax_slopes(K[i - first], weights, i, gamma)
            dU[first:last] = np.dot(K, U[b : 2 * b])
            for j in range(b):
                for i in range(first, last):
                    by_context[j, i] = K[i - first, j]
            if is_cosine:
                _through_length(U[first:last], lengths[first:last], dU[first:last])
        if _wait(barrier, n_threads):
            return
        # Gradients by blocks of contexts.
        if thread == 0:
            _unlink(both[b:], group, chain)
        for first in range(thread * ROWS, b, n_threads * ROWS):
            last, own = min(first + ROWS, b), slice(b + first, b + min(first + ROWS, b))
            dU[own] = np.dot(by_context[first:last], U[:b])
            if is_cosine:
                _through_length(U[own], lengths[own], dU[own])
        if _wait(barrier, n_threads):
            return
        # Each thread updates some features.
        adagrad_rows(indptr, features, values, both, dU, edges[thread], edges[thread + 1], rate, V, squares)
        if _wait(barrier, n_threads):
            return
