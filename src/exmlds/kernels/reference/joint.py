"""Steps of joint learning on a batch of sparse rows."""

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


def negative_weights(
    rows: Array, contexts: Array, neighbors: Array, group: Array, chain: Array, weights: Array
) -> None:
    """Write 1 where the j-th context is a negative of the i-th row, and 0 where it is not.

    It is none where i = j, and where it is of the context of the row, has its labels, or is the row itself.

    rows, contexts : (b,) int64;  neighbors : (n, k) int64, −1 pads
    group : (n,) int64, equal for equal labels
    chain : (3, n) int64 of −1, work space, which is reset
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
