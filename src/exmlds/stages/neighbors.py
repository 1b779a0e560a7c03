"""The context graph: for each row the k rows nearest to it, N_k(y_i) of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from .. import kernels

Array = np.ndarray


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
