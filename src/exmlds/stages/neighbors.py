"""The context graph: for each row the k rows with the most similar labels, N_k(y_i) of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix

from ..kernels import DEFAULT, Engine
from ..runtime.parallel import blocks, map_blocks

Array = np.ndarray

ROWS = 4_096  # label sets in a block of the search
BUDGET = 50_000  # most entries of the inverted index that are read for one label set


def nearest_sets(
    sets: csr_matrix,
    k: int,
    measure: str,
    rng: Generator,
    *,
    budget: int = BUDGET,
    n_jobs: int | None = None,
    engine: Engine = DEFAULT,
) -> Array:
    """(m, k) int64, for each label set the k most similar label sets including itself; −1 pads.

    sets : (m, L) csr of ones, distinct label sets
    measure : "cosine", |i ∩ j| / √(|i| |j|), or AnnexML's "overlap", |i ∩ j| / |j|
    budget : bounds the cost of each set. The posting lists of its rarest labels are read first; where a list
        is longer than the budget left, a random stretch of it is read, and the remaining labels are ignored
    """
    m, n_labels = sets.shape
    counts = np.bincount(sets.indices, minlength=n_labels)
    # Renumber labels by frequency, so that the sorted indices of a set start with its rarest label.
    rarity = np.empty(n_labels, np.int32)
    rarity[np.argsort(counts, kind="stable")] = np.arange(n_labels, dtype=np.int32)
    ranked = csr_matrix((sets.data, rarity[sets.indices], sets.indptr), shape=sets.shape)
    ranked.sort_indices()
    postings = ranked.tocsc()
    # The factor 1 / √|i| of the cosine is the same for all j, so it does not change the order.
    sizes = np.maximum(np.diff(ranked.indptr), 1)
    weights = (1 / (np.sqrt(sizes) if measure == "cosine" else sizes)).astype(np.float32)
    draws = rng.random(m)
    ids, scores = np.full((m, k), -1, np.int64), np.full((m, k), -np.inf, np.float32)

    def search(rows: slice) -> None:
        index = (ranked.indptr, ranked.indices, postings.indptr, postings.indices)
        engine.nearest_sets(*index, weights, draws, budget, rows.start, rows.stop, ids, scores)

    for _ in map_blocks(search, blocks(m, ROWS), n_jobs=n_jobs, stage="neighbours", total=m):
        pass
    return ids


def expand(nearest: Array, group: Array, k: int, rng: Generator, *, engine: Engine = DEFAULT) -> Array:
    """(n, k) int64, for each row its k nearest other rows, from the nearest groups of its group; −1 pads.

    nearest : (g, m) int64, the nearest groups of each group including itself, nearest first, −1 pads
    group : (n,) int64, the group of each row. The rows of a group have equal labels, so which of them are
        taken is random
    """
    members = np.argsort(group, kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(group, minlength=len(nearest)))))
    out = np.empty((len(group), k), np.int64)
    engine.expand_neighbors(nearest, group.astype(np.int64), starts, members, rng.random(len(group)), out)
    return out


def rows_of_labels(Y: csr_matrix, k: int, rng: Generator) -> Array:
    """(L, k) int64, random rows that have each label, at most k; −1 pads.

    Y : (n, L) csr of ones
    """
    by_label = Y.tocsc()
    labels = np.repeat(np.arange(Y.shape[1]), np.diff(by_label.indptr))
    order = np.lexsort((rng.random(len(labels)), labels))
    rank = np.arange(len(labels)) - by_label.indptr[labels]
    found = np.full((Y.shape[1], k), -1, np.int64)
    found[labels[rank < k], rank[rank < k]] = by_label.indices[order][rank < k]
    return found


def graph(nearest: Array, n_columns: int) -> csr_matrix:
    """(n, n_columns) csr of ones at the columns (n, k), −1 pads."""
    present = nearest >= 0
    indptr = np.concatenate(([0], np.cumsum(present.sum(axis=1))))
    indices: Any = nearest[present]
    matrix = csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape=(len(nearest), n_columns))
    matrix.sort_indices()
    return matrix
