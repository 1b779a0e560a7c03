"""Exact nearest neighbours among the rows of a list of segments.

The results of the segments merge, so that rows can be added as a new segment and left out by a bitmap
without rewriting what is there.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix, issparse

from .. import kernels

Array = np.ndarray
Matrix: TypeAlias = Any  # (n, d) csr or dense; a union of the two has no common interface
DENSE_BLOCK = 8_192  # rows scored at a time against a block of queries
DENSE_FROM = 0.2  # share of filled cells from which a matrix product beats a walk over postings


class Segment(NamedTuple):
    """Rows that were added together.

    rows : (n, d) dense float32; or (d, n) csr, the transpose, that is, for each feature its rows
    bias : (n,) float32, added to the inner product; −inf leaves a row out
    """

    rows: Matrix
    bias: Array


class Index(NamedTuple):
    """Rows to be searched by `metric`, "cosine" or "euclidean"."""

    segments: list[Segment]
    metric: str


def build(X: Matrix, metric: str) -> Index:
    """Index the rows of X, (n, d)."""
    return extend(Index([], metric), X)


def extend(index: Index, X: Matrix) -> Index:
    """The index with more rows, numbered on from the last."""
    if index.metric == "cosine":
        X = unit_rows(X)
        bias = np.zeros(X.shape[0], np.float32)
    else:
        bias = -(row_norms(X) ** 2)  # −‖q − x‖² = 2⟨q, x⟩ − ‖x‖² − ‖q‖²
    if issparse(X) and X.nnz > DENSE_FROM * X.shape[0] * X.shape[1]:
        X = X.toarray()
    rows = _transposed(X) if issparse(X) else np.ascontiguousarray(X, np.float32)
    return index._replace(segments=[*index.segments, Segment(rows, bias.astype(np.float32))])


def search(index: Index, Q: Matrix, k: int) -> tuple[Array, Array]:
    """The k most similar rows of each query: (q, k) int64 ids, −1 pads, and (q, k) float32 similarities.

    The similarity is the cosine, or minus the Euclidean distance.
    """
    ids = np.full((Q.shape[0], k), -1, np.int64)
    scores = np.full((Q.shape[0], k), -np.inf, np.float32)
    scaled = unit_rows(Q) if index.metric == "cosine" else 2 * Q
    offset = 0
    for segment in index.segments:
        if issparse(segment.rows):
            _search_sparse(segment, csr_matrix(scaled, dtype=np.float32), offset, ids, scores)
        else:
            _search_dense(segment, scaled, offset, ids, scores)
        offset += len(segment.bias)
    if index.metric == "euclidean":
        squared = row_norms(Q)[:, None] ** 2 - scores
        scores = -np.sqrt(np.maximum(squared, 0, out=squared, where=ids >= 0))
    return ids, scores.astype(np.float32, copy=False)


def _search_sparse(segment: Segment, Q: csr_matrix, offset: int, ids: Array, scores: Array) -> None:
    postings = segment.rows
    kernels.sparse_topk(
        Q.indptr,
        Q.indices,
        Q.data,
        postings.indptr,
        postings.indices,
        postings.data,
        segment.bias,
        offset,
        ids,
        scores,
    )


def _search_dense(segment: Segment, Q: Matrix, offset: int, ids: Array, scores: Array) -> None:
    for start in range(0, len(segment.bias), DENSE_BLOCK):
        block = slice(start, start + DENSE_BLOCK)
        similar = np.asarray(Q @ segment.rows[block].T, np.float32) + segment.bias[block]  # (q, block)
        kernels.merge_topk(similar, offset + start, ids, scores)


def row_norms(X: Matrix) -> Array:
    """(n,) Euclidean lengths of the rows, float64."""
    squares = X.multiply(X) if issparse(X) else np.square(X, dtype=np.float64)
    return np.sqrt(np.asarray(squares.sum(axis=1, dtype=np.float64)).ravel())


def unit_rows(X: Matrix) -> Matrix:
    """The rows scaled to length 1; a row of zeros stays as it is."""
    norms = row_norms(X)
    scale = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0).astype(np.float32)
    if not issparse(X):
        return np.asarray(X, np.float32) * scale[:, None]
    scaled = X.data * np.repeat(scale, np.diff(X.indptr))
    return csr_matrix((scaled, X.indices, X.indptr), shape=X.shape)


def _transposed(X: csr_matrix) -> csr_matrix:
    columns = csc_matrix(X, dtype=np.float32)
    return csr_matrix((columns.data, columns.indices, columns.indptr), shape=X.shape[::-1])
