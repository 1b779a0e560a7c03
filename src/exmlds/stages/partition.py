"""Rows into parts, none larger than a cap; new rows to the parts nearest to them.

Parts are of similar features, by k-means, or of similar labels as far as features tell, by a learnt gate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, eye_array, issparse

from .. import kernels
from ..validation.arrays import unit_rows

Array = np.ndarray

SAMPLE = 20_000  # rows that the centres are found on
SCORED = 16_384  # rows scored, or taught from, at a time


class Router(NamedTuple):
    """Parts by their centres, (p, d) float32; a row goes where the inner product is largest."""

    centers: Array

    def assign(self, X: Any, m: int) -> Array:
        """(n, m) the parts nearest to each row, nearest first."""
        if len(self.centers) == 1:
            return np.zeros((X.shape[0], 1), np.int64)
        scores = np.asarray(X @ self.centers.T)  # (n, p)
        return np.argsort(-scores, axis=1, kind="stable")[:, :m]


def fit(
    X: Any, n_parts: int, cap: int, rng: np.random.Generator, *, n_iterations: int = 10
) -> tuple[Router, list[Array]]:
    """Spherical k-means; returns the router and the rows of each part, ascending.

    cap : the most rows of a part; rows that find theirs full go to the next nearest that is not
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
            mine = np.flatnonzero(part == p)
            # An empty part starts again from any row.
            mine = mine if mine.size else rng.choice(sample.shape[0], 1)
            centers[p] = np.asarray(sample[mine].sum(axis=0), np.float32).ravel()
        centers = _unit(centers)
    return Router(centers), _members(_capped(_scores(X, centers), _room(n, n_parts, cap)), n_parts)


def gate(
    X: Any,
    near: Array,
    n_parts: int,
    cap: int,
    rng: np.random.Generator,
    *,
    rate: float = 1.0,
    l1: float = 0.3,
    n_rounds: int = 8,
) -> tuple[Router, list[Array]]:
    """AnnexML's learnt gate: rows with similar labels fall together, and new rows where such rows are.

    It begins with spherical k-means. In each round every row asks for the part that the gate gives most to it
    and to the rows near to it, and the gate, a logistic regression, is taught the parts that they got.

    X : (n, d) csr or dense; of its rows the directions count, as for the router
    near : (n, k) int64, the rows nearest to each row by labels, −1 pads
    cap : as of `fit`
    rate, l1 : of FTRL-proximal, `kernels.ftrl_rows`; l1 keeps features that tell little out of the gate
    """
    n, d = X.shape
    if n_parts == 1:
        return fit(X, n_parts, cap, rng)
    X = unit_rows(csr_matrix(X, dtype=np.float32))
    pairs = _pairs(near)
    room = _room(n, n_parts, cap)
    # Taught parts are halfway between even ones and full ones: few rows find theirs full in the end.
    taught_room = (room + _room(n, n_parts, 0)) // 2
    router, _ = fit(X, n_parts, cap, rng)
    weights, gradients, squares = (np.zeros((d, n_parts), np.float32) for _ in range(3))
    for _ in range(n_rounds):
        scores = _scores(X, router.centers)
        # Less their means: else large parts draw ever more rows; two of Delicious' 8 were all but empty.
        part = _capped(pairs @ (scores - scores.mean(axis=0)), taught_room)
        order = rng.permutation(n)
        for start in range(0, n, SCORED):
            kernels.ftrl_rows(
                X.indptr,
                X.indices,
                X.data,
                order[start : start + SCORED],
                part,
                np.float32(rate),
                np.float32(l1),
                weights,
                gradients,
                squares,
            )
        router = Router(np.ascontiguousarray(weights.T))
    return router, _members(_capped(_scores(X, router.centers), room), n_parts)


def _room(n: int, n_parts: int, cap: int) -> int:
    """The cap, or as much as it takes to place all rows."""
    return max(cap, -(-n // n_parts))


def _scores(X: Any, centers: Array) -> Array:
    """(n, p) float32, the inner products of rows and centres."""
    return np.concatenate(
        [np.asarray(X[i : i + SCORED] @ centers.T, np.float32) for i in range(0, X.shape[0], SCORED)]
    )


def _capped(scores: Array, cap: int) -> Array:
    """(n,) each row's part, the best with room; the rows with most to lose choose first."""
    n_parts = scores.shape[1]
    wishes = np.argsort(-scores, axis=1, kind="stable")
    ranked = np.take_along_axis(scores, wishes, 1)
    part = wishes[:, 0].copy()
    room = np.full(n_parts, cap)
    waiting = np.argsort(-(ranked[:, 0] - ranked[:, 1]), kind="stable")
    for wish in range(n_parts):
        late = []
        for p in range(n_parts):
            mine = waiting[wishes[waiting, wish] == p]
            part[mine[: room[p]]] = p
            late.append(mine[room[p] :])
            room[p] -= min(room[p], len(mine))
        waiting = np.concatenate(late)
        if not waiting.size:
            break
    return part


def _members(part: Array, n_parts: int) -> list[Array]:
    return [np.flatnonzero(part == p) for p in range(n_parts)]


def _pairs(near: Array) -> csr_matrix:
    """(n, n) how often two rows are near each other, 0 to 2, and 1 for a row and itself."""
    n = len(near)
    present = near >= 0
    indptr = np.concatenate(([0], np.cumsum(present.sum(axis=1))))
    indices = near[present]
    graph = csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape=(n, n))
    return csr_matrix(graph + graph.T + eye_array(n, dtype=np.float32, format="csr"))


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if issparse(X) else X, np.float32).copy()


def _unit(centers: Array) -> Array:
    norms = np.linalg.norm(centers, axis=1, keepdims=True)
    return centers / np.where(norms > 0, norms, 1)
