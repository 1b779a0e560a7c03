"""Rows into parts of similar features, none larger than a cap; new rows to the parts nearest to them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

Array = np.ndarray

SAMPLE = 20_000  # rows that the centres are found on
SCORED = 16_384  # rows scored at a time


class Router(NamedTuple):
    """Parts by their centres, (p, d) float32 of length 1; a row goes where the inner product is largest."""

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
    return Router(centers), _capped(X, centers, max(cap, -(-n // n_parts)))


def _capped(X: Any, centers: Array, cap: int) -> list[Array]:
    """Each row to the nearest part with room; the rows with most to lose choose first."""
    scores = np.concatenate(
        [np.asarray(X[i : i + SCORED] @ centers.T, np.float32) for i in range(0, X.shape[0], SCORED)]
    )
    wishes = np.argsort(-scores, axis=1, kind="stable")
    ranked = np.take_along_axis(scores, wishes, 1)
    part = wishes[:, 0].copy()
    room = np.full(len(centers), cap)
    waiting = np.argsort(-(ranked[:, 0] - ranked[:, 1]), kind="stable")
    for wish in range(len(centers)):
        late = []
        for p in range(len(centers)):
            mine = waiting[wishes[waiting, wish] == p]
            part[mine[: room[p]]] = p
            late.append(mine[room[p] :])
            room[p] -= min(room[p], len(mine))
        waiting = np.concatenate(late)
        if not waiting.size:
            break
    return [np.flatnonzero(part == p) for p in range(len(centers))]


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if issparse(X) else X, np.float32).copy()


def _unit(centers: Array) -> Array:
    norms = np.linalg.norm(centers, axis=1, keepdims=True)
    return centers / np.where(norms > 0, norms, 1)
