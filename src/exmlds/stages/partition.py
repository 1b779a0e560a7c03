"""Partition the training rows into parts of bounded size, and route new rows to their nearest parts.

`fit` groups rows with similar features by spherical k-means; `gate` groups rows with similar labels, as far
as a linear classifier on the features can predict the part; `gate_by_labels` keeps the rows of a label
together, and takes the best of several starts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix, eye_array, issparse

from ..kernels import DEFAULT, Engine
from ..runtime.parallel import blocks
from ..validation.arrays import unit_rows

Array = np.ndarray

SAMPLE = 20_000  # most rows that the centres are fitted on
SCORED = 16_384  # rows in a block that is scored or trained on
SORTED = 1_024  # rows whose scores are compared at a time
N_STARTS = 4  # of `gate_by_labels`
LABEL_GATE_L1 = 3.0  # with less, the gate is much surer of the rows that it was trained on than of new ones


class Router(NamedTuple):
    """Routes a row to the part with the largest inner product.

    centers : (p, d) float32, centres or gate weights
    """

    centers: Array

    def assign(self, X: Any, m: int) -> Array:
        """(n, m) int64, the m nearest parts of each row, nearest first."""
        if len(self.centers) == 1:
            return np.zeros((X.shape[0], 1), np.int64)
        scores = np.asarray(X @ self.centers.T)  # (n, p)
        return np.argsort(-scores, axis=1, kind="stable")[:, :m]


def fit(
    X: Any, n_parts: int, cap: int, rng: Generator, *, n_iterations: int = 10
) -> tuple[Router, list[Array]]:
    """Partition by spherical k-means; return the router and the ascending row ids of each part.

    X : (n, d) csr or dense
    cap : most rows of a part; rows beyond it go to their next nearest part with room
    """
    n = X.shape[0]
    if n_parts == 1:
        return Router(np.zeros((1, 0), np.float32)), [np.arange(n)]
    sample = X[np.sort(rng.choice(n, SAMPLE, replace=False))] if n > SAMPLE else X
    centers = _dense(sample[rng.choice(sample.shape[0], n_parts, replace=False)])
    centers = _unit(centers)
    for _ in range(n_iterations):
        part = np.argmax(np.asarray(sample @ centers.T), axis=1)
        for p in range(n_parts):
            members = np.flatnonzero(part == p)
            # An empty part restarts from a random row.
            members = members if members.size else rng.choice(sample.shape[0], 1)
            centers[p] = np.asarray(sample[members].sum(axis=0), np.float32).ravel()
        centers = _unit(centers)
    return Router(centers), _members(_assign_with_cap(_scores(X, centers), _room(n, n_parts, cap)), n_parts)


def gate(
    X: Any,
    neighbors: Array | LabelMeans,
    n_parts: int,
    cap: int,
    rng: Generator,
    *,
    rate: float = 1.0,
    l1: float = 0.3,
    n_rounds: int = 8,
    engine: Engine = DEFAULT,
) -> tuple[Router, list[Array]]:
    """AnnexML's learnt gate: rows with similar labels share a part, and new rows are routed to it.

    The gate starts from spherical k-means. In each round every row is assigned to the part with the largest
    summed score of the row and its label neighbours, and a multinomial logistic regression is trained to
    predict these parts.

    X : (n, d) csr or dense; rows are scaled to unit length
    neighbors : (n, k) int64, the nearest rows of each row by labels, −1 pads; or the means of labels, which
        take the place of the sums
    cap : as in `fit`
    rate, l1 : learning rate and L1 penalty of FTRL-proximal (`ftrl_rows`); l1 makes the gate sparse
    """
    n, d = X.shape
    if n_parts == 1:
        return fit(X, n_parts, cap, rng)
    X = unit_rows(csr_matrix(X, dtype=np.float32))
    pairs = neighbors if isinstance(neighbors, LabelMeans) else _pairs(neighbors)
    room = _room(n, n_parts, cap)
    # The cap in training is halfway between even parts and the final cap, so that few rows overflow.
    training_room = (room + _room(n, n_parts, 0)) // 2
    router, _ = fit(X, n_parts, cap, rng)
    weights, gradients, squares = (np.zeros((d, n_parts), np.float32) for _ in range(3))
    for _ in range(n_rounds):
        scores = _scores(X, router.centers)
        # Without centring, large parts attract ever more rows: 2 of 8 were almost empty on Delicious.
        scores -= scores.mean(axis=0)
        part = _assign_with_cap(pairs @ scores, training_room)
        order = rng.permutation(n)
        for start in range(0, n, SCORED):
            batch = (X.indptr, X.indices, X.data, order[start : start + SCORED])
            engine.ftrl_rows(*batch, part, np.float32(rate), np.float32(l1), weights, gradients, squares)
        router = Router(np.ascontiguousarray(weights.T))
    return router, _members(_assign_with_cap(_scores(X, router.centers), room), n_parts)


class LabelMeans(NamedTuple):
    """An (n, n) operator: the mean over the labels of a row of the mean over the rows of a label.

    Labels of one row are left out. A row that has no others keeps its own value.

    of_labels : (L′, n) csr float32, the means over the rows of labels
    of_rows : (n, L′) csr float32, the means over the labels of rows
    own : (n, 1) float32, 1 where a row keeps its own value, else 0
    """

    of_labels: csr_matrix
    of_rows: csr_matrix
    own: Array

    @classmethod
    def of(cls, Y: csr_matrix) -> LabelMeans:
        """Y : (n, L) csr of ones"""
        shared = _shared_labels(Y)
        by_label, n_labels = csr_matrix(shared.T), np.diff(shared.indptr)
        own = (n_labels == 0).astype(np.float32)[:, None]
        return cls(_divided(by_label, np.diff(by_label.indptr)), _divided(shared, n_labels), own)

    def __matmul__(self, scores: Array) -> Array:
        return np.asarray(self.of_rows @ (self.of_labels @ scores) + self.own * scores)


def gate_by_labels(
    X: Any, Y: csr_matrix, n_parts: int, cap: int, rng: Generator, *, n_starts: int = N_STARTS
) -> Router:
    """The gate that has most of a label's rows in one part, of several that start from different k-means.

    X, Y : (n, d) csr or dense, and (n, L) csr of ones;  cap : as in `fit`
    """
    means, shared = LabelMeans.of(Y), _shared_labels(Y)
    routers = (gate(X, means, n_parts, cap, own, l1=LABEL_GATE_L1)[0] for own in rng.spawn(n_starts))
    return max(routers, key=lambda router: _concentration(shared, shares(router, X)))


def _divided(matrix: csr_matrix, divisors: Array) -> csr_matrix:
    """Each row divided by a number."""
    data = matrix.data / np.repeat(divisors, np.diff(matrix.indptr)).astype(np.float32)
    return csr_matrix((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _shared_labels(Y: csr_matrix) -> csr_matrix:
    """(n, L′) csr float32, the labels that several rows have."""
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    return csr_matrix(Y[:, counts > 1], dtype=np.float32)


def _concentration(Y: csr_matrix, parts: Array) -> float:
    """The logarithm of the share of a label that is in a part, on average over the rows of labels.

    Y : (n, L) csr;  parts : (n, p) shares of the parts
    """
    mass = np.maximum(Y.T @ parts, np.finfo(np.float32).tiny)  # (L, p)
    of_label = mass.sum(axis=1, keepdims=True)
    return float((mass * np.log(mass / of_label)).sum(dtype=np.float64) / max(Y.nnz, 1))


def _room(n: int, n_parts: int, cap: int) -> int:
    """The cap, or the size of even parts where the cap is too small for all rows."""
    return max(cap, -(-n // n_parts))


def _scores(X: Any, centers: Array) -> Array:
    """(n, p) float32, inner products of rows and centres."""
    scores = np.empty((X.shape[0], len(centers)), np.float32)
    columns = np.ascontiguousarray(centers.T)  # which each product would do again
    for rows in blocks(len(scores), SCORED):
        scores[rows] = X[rows] @ columns
    return scores


def _assign_with_cap(scores: Array, cap: int) -> Array:
    """(n,) int64, the best part with room for each row; of equally good ones the first.

    The rows with the largest gap between their best and second-best score choose first. There may be
    thousands of parts, so the scores (n, p) are copied for some rows at a time; they are overwritten.
    """
    n, n_parts = scores.shape
    part, gap = np.empty(n, np.int64), np.empty(n, np.float32)
    for rows in blocks(n, SORTED):
        part[rows] = scores[rows].argmax(axis=1)
        second, best = np.partition(scores[rows], n_parts - 2, axis=1)[:, -2:].T
        gap[rows] = best - second
    room = np.full(n_parts, cap)
    waiting = np.argsort(-gap, kind="stable")
    for choice in range(n_parts):
        preferred = part[waiting] if choice == 0 else _best_parts(scores, waiting)
        rejected = []
        for p in range(n_parts):
            applicants = waiting[preferred == p]
            part[applicants[: room[p]]] = p
            rejected.append(applicants[room[p] :])
            scores[rejected[-1], p] = -np.inf
            room[p] -= min(room[p], len(applicants))
        waiting = np.concatenate(rejected)
        if not waiting.size:
            break
    return part


def _best_parts(scores: Array, rows: Array) -> Array:
    """(m,) int64, the part with the largest score of some rows; of equally good ones the first."""
    return np.concatenate([scores[rows[block]].argmax(axis=1) for block in blocks(len(rows), SORTED)])


def _members(part: Array, n_parts: int) -> list[Array]:
    return [np.flatnonzero(part == p) for p in range(n_parts)]


def _pairs(neighbors: Array) -> csr_matrix:
    """(n, n) csr float32, N + Nᵀ + I of the neighbour graph N."""
    n = len(neighbors)
    present = neighbors >= 0
    indptr = np.concatenate(([0], np.cumsum(present.sum(axis=1))))
    indices = neighbors[present]
    graph = csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape=(n, n))
    return csr_matrix(graph + graph.T + eye_array(n, dtype=np.float32, format="csr"))


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if issparse(X) else X, np.float32).copy()


def _unit(centers: Array) -> Array:
    norms = np.linalg.norm(centers, axis=1, keepdims=True)
    return centers / np.where(norms > 0, norms, 1)


def shares(router: Router, X: Any) -> Array:
    """(n, p) float32, the share of each part by a softmax of the scores: for a gate, its probability."""
    scores = _scores(X, router.centers)
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores


def overlap_margin(parts: Array, overlap: float) -> float:
    """The margin of `memberships` by which this share of some rows belongs to a second part.

    parts : (n, p) shares of the parts
    """
    if parts.shape[1] < 2 or not len(parts) or not overlap:
        return -1.0
    second, best = np.partition(parts, parts.shape[1] - 2, axis=1)[:, -2:].T
    return float(np.quantile(best - second, overlap))


def memberships(parts: Array, margin: float) -> Array:
    """(n, p) bool, the parts that rows belong to: the likeliest, and the next where it is nearly as likely.

    parts : (n, p) shares of the parts;  margin : the largest difference of the two shares
    """
    order = np.argsort(-parts, axis=1, kind="stable")[:, :2]
    belongs = np.zeros(parts.shape, bool)
    np.put_along_axis(belongs, order[:, :1], True, axis=1)
    if order.shape[1] > 1:
        best, second = np.take_along_axis(parts, order, axis=1).T
        rows = np.flatnonzero(best - second <= margin)
        belongs[rows, order[rows, 1]] = True
    return belongs
