"""Scores of all labels by linear models, block by block, and the k best labels of each row.

No matrix of rows × labels is formed beyond a block of labels.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix, issparse

from ..kernels import DEFAULT, Engine
from ..validation.arrays import Matrix

Array = np.ndarray

LABELS = 8_192  # labels in a block of the scores
STEEPEST = 30.0  # margins beyond it have the score of this one, which is above 0 in float32


def top_labels(
    Z: Matrix, weights: Array, bias: Array | None, k: int, *, engine: Engine = DEFAULT
) -> tuple[Array, Array]:
    """The k labels with the largest margins ⟨z, w_l⟩ + b_l: (n, k) int64 ids, and (n, k) float32 margins.

    Of equal labels the first is taken; −1 pads where there are fewer than k labels.

    Z : (n, r) float32, rows or embeddings of rows
    weights : (L, r) float32
    bias : (L,) float32, or None
    """
    ids, margins = _none(Z.shape[0], k)
    for start in range(0, len(weights), LABELS):
        block = slice(start, start + LABELS)
        scores = engine.similarities(Z, weights[block])  # (n, block)
        engine.merge_topk(scores if bias is None else scores + bias[block], start, ids, margins)
    return ids, margins


def top_labels_dense(X: Matrix, weights: Array, k: int, *, engine: Engine = DEFAULT) -> tuple[Array, Array]:
    """As `top_labels`, with the weights of features, (d, L) float32, for thousands of labels."""
    ids, margins = _none(X.shape[0], k)
    scores = X @ weights if issparse(X) else engine.products(X, weights)  # (n, L)
    engine.merge_topk(np.ascontiguousarray(scores, np.float32), 0, ids, margins)
    return ids, margins


def top_labels_sparse(
    X: Matrix, weights: csr_matrix, bias: Array, k: int, *, engine: Engine = DEFAULT
) -> tuple[Array, Array]:
    """As `top_labels`, with sparse weights.

    weights : (d, L) csr float32, the weights of each feature
    """
    rows = csr_matrix(X, dtype=np.float32)
    ids, margins = _none(rows.shape[0], k)
    queries, postings = ((A.indptr, A.indices, A.data) for A in (rows, weights))
    engine.sparse_topk(*queries, *postings, bias, 0, ids, margins)
    return ids, margins


def squash(margins: Array) -> Array:
    """Margins as scores between 0 and 1, in the same order: 1 / (1 + exp(−m)); those of pads are 0."""
    within = np.clip(margins, -STEEPEST, STEEPEST)
    return np.where(np.isneginf(margins), 0, 1 / (1 + np.exp(-within))).astype(np.float32)


def _none(n: int, k: int) -> tuple[Array, Array]:
    return np.full((n, k), -1, np.int64), np.full((n, k), -np.inf, np.float32)
