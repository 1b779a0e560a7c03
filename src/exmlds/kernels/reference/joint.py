"""Steps of joint learning on a batch of sparse rows, and several threads that take them together."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def embed_rows(indptr: Array, features: Array, values: Array, rows: Array, V: Array, Z: Array) -> None:
    """Write the embeddings z = x V of some rows of X.

    indptr, features, values : X as csr float32
    rows : (b,) int64;  V : (d, r) float32;  Z : (b, r) float32
    """
    for i, row in enumerate(rows):
        stored = slice(indptr[row], indptr[row + 1])
        Z[i] = values[stored] @ V[features[stored]]


def multiply_packed(
    indptr: Array, features: Array, values: Array, columns: Array, packed: Array, scale: Array, Z: Array
) -> None:
    """Write the product of sparse rows and a quantized matrix, whose rows belong to some of the features.

    indptr, features, values : the rows as csr float32
    columns : (m,) int64 ascending, the features that the matrix has rows for; others count as zeros
    packed, scale : (m, r) float32, float16 or int8, and the factors of int8 rows, (m,), or (0,)
    Z : (n, r) float32
    """
    A = packed.astype(np.float32) * (scale[:, None] if len(scale) else np.float32(1))
    number = {column: i for i, column in enumerate(columns.tolist())}
    for row in range(len(Z)):
        Z[row] = 0
        for p in range(indptr[row], indptr[row + 1]):
            if int(features[p]) in number:
                Z[row] += values[p] * A[number[int(features[p])]]


def negative_weights(
    rows: Array, contexts: Array, neighbors: Array, group: Array, chain: Array, weights: Array
) -> None:
    """Write 1 where the j-th context is a negative of the i-th row, and 0 where it is not.

    It is none where i = j, and where it is of the context of the row, has its labels, or is the row itself.

    rows, contexts : (b,) int64;  neighbors : (n, k) int64, −1 pads
    group : (n,) int64, equal for equal labels
    chain : (4, n) int64 of −1, work space, which is reset
    weights : (b, b) float32
    """
    is_positive = (neighbors[rows][:, :, None] == contexts).any(axis=1)
    is_positive |= group[rows][:, None] == group[contexts]
    is_positive |= rows[:, None] == contexts
    np.fill_diagonal(is_positive, True)
    weights[:] = ~is_positive


def softmax_gradient(
    U: Array,
    weights: Array,
    gamma: float,
    start: int,
    stop: int,
    size: int,
    by_rows: Array,
    by_contexts: Array,
) -> float:
    """Write the gradient of the softmax loss of the rows from `start` to `stop`; return their summed loss.

    U : (2b, r), rows and then their positives; K_ij is the inner product of row i and the positive of row j
    weights : (b, b) of the negatives, 0 on the diagonal
    size : number of rows in a block
    by_rows : (stop − start, r), the gradient by these rows
    by_contexts : (m, b, r), the gradient by all positives, of each block of rows
        Both are of the sum over all rows, divided by b
    """
    b, rows = len(weights), np.arange(start, stop)
    K = gamma * (U[start:stop] @ U[b:].T)
    present = weights[start:stop] > 0
    present[rows - start, rows] = True
    K -= np.where(present, K, -np.inf).max(axis=1, keepdims=True)
    factors = weights[start:stop].copy()
    factors[rows - start, rows] = 1
    odds = np.where(present, np.exp(np.minimum(K, 0)), 0) * factors
    totals = odds.sum(axis=1, keepdims=True)
    dK = odds / totals
    dK[rows - start, rows] -= 1
    dK *= gamma / b
    by_rows[:] = dK @ U[b:]
    for number, first in enumerate(range(0, stop - start, size)):
        block = slice(first, first + size)
        by_contexts[number] = dK[block].T @ U[start:stop][block]
    return float(np.log(totals).sum() - K[rows - start, rows].sum())


def adagrad_rows(
    indptr: Array,
    features: Array,
    values: Array,
    rows: Array,
    gradients: Array,
    start: int,
    stop: int,
    rate: float,
    V: Array,
    squares: Array,
) -> None:
    """Take an AdaGrad step on the features from `start` to `stop`: g = Xᵀ dZ, G += g², V −= rate g / √G.

    indptr, features, values : X as csr float32, the features of a row ascending
    rows : (b,) int64, the rows of the batch;  gradients : (b, r) float32, dZ
    V, squares : (d, r) float32, the map and G, updated in place; features without a row are not changed
    """
    total, is_used = np.zeros((stop - start, V.shape[1]), np.float32), np.zeros(stop - start, bool)
    for i, row in enumerate(rows):
        for p in range(indptr[row], indptr[row + 1]):
            if start <= features[p] < stop:
                total[features[p] - start] += values[p] * gradients[i]
                is_used[features[p] - start] = True
    for feature in np.flatnonzero(is_used):
        g, square = total[feature], squares[start + feature]
        square += g**2
        V[start + feature] -= rate * np.divide(g, np.sqrt(square), out=np.zeros_like(g), where=square > 0)


def train_batches(
    thread: int,
    edges: Array,
    barrier: Array,
    indptr: Array,
    features: Array,
    values: Array,
    rows: Array,
    contexts: Array,
    batch_size: int,
    neighbors: Array,
    group: Array,
    gamma: float,
    is_cosine: bool,
    rate: float,
    U: Array,
    dU: Array,
    lengths: Array,
    slopes: Array,
    chain: Array,
    V: Array,
    squares: Array,
) -> None:
    """Train on batches of rows with one positive each by the softmax loss; all threads call this together.

    The compiled threads share the work of each batch and wait for each other at the barrier. Here the first
    one does it all.

    thread : the number of this thread;  edges : (t + 1,) int64, thread p updates features edges[p] to
        edges[p + 1]
    barrier : (24,) int64 of zeros; a value in position 16 makes waiting threads return
    indptr, features, values : X as csr float32, the features of a row ascending
    rows, contexts : (m,) int64, rows and the positive of each;  batch_size : rows in a batch
    neighbors, group : as in `negative_weights`, and chain too
    gamma, is_cosine : γ, and whether K is the cosine or the inner product of embeddings
    rate, V, squares : as in `adagrad_rows`
    U, dU, lengths, slopes : (2b, r), (2b, r), (2b,) and (b²,) float32, work space
    """
    if thread:
        return
    for start in range(0, len(rows), batch_size):
        batch = slice(start, start + batch_size)
        b, both = len(rows[batch]), np.concatenate([rows[batch], contexts[batch]])
        Z, weights = np.empty((2 * b, V.shape[1]), np.float32), np.empty((b, b), np.float32)
        embed_rows(indptr, features, values, both, V, Z)
        norms = (
            np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-37) if is_cosine else np.ones((2 * b, 1))
        )
        unit = (Z / norms).astype(np.float32)
        negative_weights(rows[batch], contexts[batch], neighbors, group, chain, weights)
        gradients, by_contexts = np.empty((2 * b, V.shape[1])), np.empty((1, b, V.shape[1]))
        softmax_gradient(unit, weights, gamma, 0, b, b, gradients[:b], by_contexts)
        gradients[b:] = by_contexts[0]
        if is_cosine:
            gradients -= (gradients * unit).sum(axis=1, keepdims=True) * unit
        dZ = (gradients / norms).astype(np.float32)
        adagrad_rows(indptr, features, values, both, dZ, 0, len(V), rate, V, squares)
