"""Sparse weights of all labels with the max-margin loss, by fully corrective block-coordinate Frank–Wolfe.

    min over W of  l1 ‖W‖₁ + ‖W‖²/2 + cost Σᵢ max over n ∉ Yᵢ, p ∈ Yᵢ of (1 + ⟨wₙ, xᵢ⟩ − ⟨wₚ, xᵢ⟩)₊

The dual variables of a row are few: those of its labels, and of the negative labels that have violated the
margin. W = soft(Xᵀα, l1) is sparse too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, vstack

from ..kernels import DEFAULT, Engine
from ..runtime.parallel import blocks
from ..validation.arrays import row_norms

Array = np.ndarray

MOST_NEGATIVE = 50  # negative labels in the active set of a row, at most
MOST_DENSE = 2**27  # entries of Xᵀα that are kept as a dense matrix: 512 MB
CELLS = 16_000_000  # of Xᵀα that are computed at a time


class ActiveSets(NamedTuple):
    """Labels of each row with their dual variables, those that the row has first.

    starts : (n + 1,) int64, where the set of each row begins, with room for further labels
    n_positive, counts : (n,) int32, labels of the row, and size of the set
    labels, alphas : (m,) int32 and float32
    """

    starts: Array
    n_positive: Array
    counts: Array
    labels: Array
    alphas: Array


def start(Y: csr_matrix) -> ActiveSets:
    """The labels of each row, with α = 0; Y : (n, L) csr of ones."""
    n_positive = np.diff(Y.indptr).astype(np.int64)
    room = n_positive + np.minimum(Y.shape[1] - n_positive, MOST_NEGATIVE)
    starts = np.concatenate(([0], np.cumsum(room)))
    labels, alphas = np.zeros(starts[-1], np.int32), np.zeros(starts[-1], np.float32)
    within = np.arange(Y.nnz) - np.repeat(Y.indptr[:-1], n_positive)
    labels[np.repeat(starts[:-1], n_positive) + within] = Y.indices
    counts = n_positive.astype(np.int32)
    return ActiveSets(starts, counts, counts.copy(), labels, alphas)


def train(
    X: csr_matrix,
    sets: ActiveSets,
    order: Array,
    n_labels: int,
    seed: int,
    *,
    cost: float = 1.0,
    l1: float = 0.1,
    engine: Engine = DEFAULT,
) -> ActiveSets:
    """The active sets after a visit of each row in the given order.

    X : (n, d) csr float32;  order : (m,) int32 rows
    seed : below 2⁶³, of the labels that are drawn at random
    """
    squares = (row_norms(X) ** 2).astype(np.float32)
    after = sets._replace(**{name: getattr(sets, name).copy() for name in ("counts", "labels", "alphas")})
    n_select = max(1, round(float(sets.n_positive.mean())))
    engine.train_max_margin(
        *(X.indptr, X.indices, X.data, squares, order, X.shape[1], n_select),
        *(float(cost), np.float32(l1), MOST_DENSE, seed, *after, np.zeros(n_labels, np.float32)),
    )
    return after


def weights(X: csr_matrix, sets: ActiveSets, n_labels: int, *, l1: float) -> csr_matrix:
    """(d, L) csr float32, W = soft(Xᵀα, l1)."""
    A = _as_matrix(sets, n_labels)
    by_feature, parts = csr_matrix(X.T), []
    for features in blocks(X.shape[1], max(1, CELLS // n_labels)):
        part = csr_matrix(by_feature[features] @ A, dtype=np.float32)
        part.data = np.sign(part.data) * np.maximum(np.abs(part.data) - np.float32(l1), 0)
        part.eliminate_zeros()
        parts.append(part)
    return csr_matrix(vstack(parts, format="csr"))


def _as_matrix(sets: ActiveSets, n_labels: int) -> csr_matrix:
    """(n, L) csr, the dual variables that are not 0."""
    rows = np.repeat(np.arange(len(sets.counts)), sets.counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(sets.counts) - sets.counts, sets.counts)
    at = sets.starts[rows] + within
    matrix = csr_matrix((sets.alphas[at], (rows, sets.labels[at])), (len(sets.counts), n_labels))
    matrix.eliminate_zeros()
    return matrix


def sets_bytes(n: int, n_labels: int, nnz_labels: int) -> float:
    """Bytes of the active sets of n rows."""
    return 8.0 * (nnz_labels + n * min(n_labels, MOST_NEGATIVE)) + 16.0 * n


def sums_bytes(n: int, d: int, n_labels: int, nnz: int, nnz_labels: int) -> float:
    """Bytes of Xᵀα while it is trained, at most: a dense matrix, or tables that are a quarter full."""
    cells = float(d) * n_labels
    if cells <= MOST_DENSE:
        return 4 * cells
    return 48 * min(cells, nnz * (nnz_labels / max(n, 1) + MOST_NEGATIVE))
