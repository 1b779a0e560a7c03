"""The context graph: for each row the k rows nearest to it, N_k(y_i) of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from .. import kernels
from ..runtime.parallel import blocks, map_blocks

Array = np.ndarray

ROWS = 4_096  # sets that a thread looks for neighbours of at a time
BUDGET = 50_000  # entries of the labels' lists that are read for a set


def nearest_sets(
    sets: csr_matrix,
    k: int,
    measure: str,
    rng: np.random.Generator,
    *,
    budget: int = BUDGET,
    n_jobs: int | None = None,
) -> Array:
    """(m, k) int64, for each label set i the k nearest j, itself among them; −1 pads.

    measure : "cosine", |i ∩ j| / √(|i| |j|), or "overlap", |i ∩ j| / |j|, AnnexML's
    budget : rare labels are asked first which sets have them; of a list that is longer than what is left of
        the budget a stretch is read, and labels after it do not count, so that the cost is never that of all
        pairs
    """
    m, n_labels = sets.shape
    counts = np.bincount(sets.indices, minlength=n_labels)
    rarity = np.empty(n_labels, np.int32)
    rarity[np.argsort(counts, kind="stable")] = np.arange(n_labels, dtype=np.int32)
    ranked = csr_matrix((sets.data, rarity[sets.indices], sets.indptr), shape=sets.shape)
    ranked.sort_indices()
    postings = ranked.tocsc()
    sizes = np.maximum(np.diff(ranked.indptr), 1)
    weights = (1 / (np.sqrt(sizes) if measure == "cosine" else sizes)).astype(np.float32)
    draws = rng.random(m)
    ids, scores = np.full((m, k), -1, np.int64), np.full((m, k), -np.inf, np.float32)

    def search(rows: slice) -> None:
        kernels.nearest_sets(
            ranked.indptr,
            ranked.indices,
            postings.indptr,
            postings.indices,
            weights,
            draws,
            budget,
            rows.start,
            rows.stop,
            ids,
            scores,
        )

    for _ in map_blocks(search, blocks(m, ROWS), n_jobs=n_jobs, stage="neighbours", total=m):
        pass
    return ids


def expand(near: Array, group: Array, k: int, rng: np.random.Generator) -> Array:
    """(n, k) int64, for each row the k nearest others, from the groups near to its group; −1 pads.

    near : (g, m) groups near to each group, nearest first, itself among them, −1 pads
    group : (n,) the group of each row; rows of a group are as near to each other as can be, so that which of
        them are taken is drawn
    """
    members = np.argsort(group, kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(group, minlength=len(near)))))
    out = np.empty((len(group), k), np.int64)
    kernels.expand_neighbors(near, group.astype(np.int64), starts, members, rng.random(len(group)), out)
    return out


def graph(near: Array, n_columns: int) -> csr_matrix:
    """(n, n_columns) csr of ones from (n, k) ids, −1 pads."""
    present = near >= 0
    indptr = np.concatenate(([0], np.cumsum(present.sum(axis=1))))
    indices: Any = near[present]
    found = csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape=(len(near), n_columns))
    found.sort_indices()
    return found
