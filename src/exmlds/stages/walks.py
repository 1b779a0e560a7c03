"""Random walks on the graph of labels that co-occur, as in DeepWalk, and the pairs of labels near in them."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

Array = np.ndarray


def label_graph(Y: csr_matrix) -> csr_matrix:
    """(L, L) csr float32, the number of rows that have both labels; 0 on the diagonal.

    Y : (n, L) csr of ones
    """
    graph = csr_matrix(Y.T @ Y, dtype=np.float32)
    graph.setdiag(0)
    graph.eliminate_zeros()
    graph.sort_indices()
    return graph


def walk(graph: csr_matrix, length: int, rng: np.random.Generator) -> Array:
    """(L, length) int64, a walk from each label; −1 from where on there is no neighbour.

    Each step goes to a neighbour drawn in proportion to the value of its edge.
    """
    ends = np.concatenate([[0.0], np.cumsum(graph.data, dtype=np.float64)])
    walks = np.full((graph.shape[0], length), -1, np.int64)
    walks[:, 0] = here = np.arange(graph.shape[0])
    alive = np.flatnonzero(np.diff(graph.indptr))
    for step in range(1, length):
        first, stop = graph.indptr[here[alive]], graph.indptr[here[alive] + 1]
        drawn = ends[first] + rng.random(len(alive)) * (ends[stop] - ends[first])
        # Rounding must not lead out of the edges of a label.
        edge = np.clip(np.searchsorted(ends, drawn, side="right") - 1, first, stop - 1)
        here[alive] = walks[alive, step] = graph.indices[edge]
    return walks


def pairs(walks: Array, window: int) -> tuple[Array, Array]:
    """(p,) int64 twice, all ordered pairs of different labels at most `window` steps apart in a walk."""
    firsts, seconds = [], []
    for distance in range(1, min(window, walks.shape[1] - 1) + 1):
        first, second = walks[:, :-distance].ravel(), walks[:, distance:].ravel()
        is_pair = (second >= 0) & (first != second)
        firsts += [first[is_pair], second[is_pair]]
        seconds += [second[is_pair], first[is_pair]]
    none = np.zeros(0, np.int64)
    return np.concatenate([none, *firsts]), np.concatenate([none, *seconds])
