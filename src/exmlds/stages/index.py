"""Nearest-neighbour search over a list of segments: dense rows, an inverted index, or an approximate graph.

The top-k lists of the segments are merged, so rows can be added as a new segment, and removed by a bias of
−inf, without rewriting the segments on disk.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix, issparse

from ..kernels import DEFAULT, Engine
from ..validation import stored
from ..validation.arrays import Matrix, row_norms, unit_rows
from . import ann_index, quantize

Array = np.ndarray
DENSE_BLOCK = 8_192  # rows that a block of queries is scored against at a time
DENSE_FROM = 0.2  # share of stored values above which a matrix product is faster than the inverted index


class Segment(NamedTuple):
    """Rows that were added in one call.

    rows : `quantize.Packed` (n, d) dense rows; or (d, n) csr, an inverted index of the rows of each feature;
        or a graph
    bias : (n,) added to the inner product; −inf excludes a row
    """

    rows: Matrix
    bias: Array


class Index(NamedTuple):
    """A searchable set of rows; the metric is "cosine" or "euclidean".

    center : (d,) float64, subtracted from dense rows, since float32 can't separate rows that are far from the
        origin; (0,) where it is not used
    """

    segments: list[Segment]
    metric: str
    center: Array


def check(index: Any, metric: str, n: int, d: int) -> None:
    """Check an index of n rows with d columns that comes from a file."""
    stored.record(index, "an index", Index)
    stored.require(index.metric == metric, f"an index has the metric {index.metric!r}, not {metric!r}")
    is_centered = metric == "euclidean" and np.size(index.center) > 0
    stored.array(index.center, "the centre of an index", "float64", d if is_centered else 0)
    stored.require(isinstance(index.segments, list) and index.segments, "an index has no segments")
    sizes = [_check_segment(segment, index, d) for segment in index.segments]
    stored.require(sum(sizes) == n, f"an index has {sum(sizes)} rows, not {n}")


def _check_segment(segment: Any, index: Index, d: int) -> int:
    stored.record(segment, "a segment of an index", Segment)
    n = len(stored.array(segment.bias, "the biases of an index", stored.FLOATS, None))
    if issparse(segment.rows):
        stored.matrix(segment.rows, "an inverted index", d, n)
        stored.require(not len(index.center), "an inverted index is centred")
    elif isinstance(segment.rows, ann_index.Graph):
        ann_index.check(segment.rows, index.metric, n, d)
    else:
        stored.require(index.metric == "cosine" or len(index.center), "a dense index is not centred")
        quantize.check(segment.rows, "the rows of an index", n, d)
    return n


def build(X: Matrix, metric: str, storage: str = "float32", *, is_exact: bool = True) -> Index:
    """Index the rows of X.

    X : (n, d) csr or dense
    storage : one of `quantize.STORAGES`, the dtype that dense rows are stored in
    is_exact : whether dense rows are searched exactly; otherwise they become a graph with approximate search
    """
    dense_distances = metric == "euclidean" and not _is_sparse(X)
    center = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel() if dense_distances else np.zeros(0)
    return extend(Index([], metric, center), X, storage, is_exact=is_exact)


def extend(index: Index, X: Matrix, storage: str = "float32", *, is_exact: bool = True) -> Index:
    """Return the index with the rows of X appended; their ids follow the last one."""
    X = _prepare(index, X)
    if index.metric == "cosine":
        bias = np.zeros(X.shape[0], np.float32)
    else:
        bias = (-(row_norms(X) ** 2)).astype(X.dtype)  # −‖q − x‖² = 2⟨q, x⟩ − ‖x‖² − ‖q‖²
    if issparse(X):
        rows: Any = _transpose(X)
    else:
        rows = quantize.pack(X, storage) if is_exact else ann_index.build(X, index.metric, storage)
    return index._replace(segments=[*index.segments, Segment(rows, bias)])


def search(
    index: Index, Q: Matrix, k: int, threads: int = 1, *, engine: Engine = DEFAULT
) -> tuple[Array, Array]:
    """The k most similar rows of each query: (q, k) int64 ids, −1 pads, and (q, k) float32 similarities.

    The similarity is the cosine, or the negative Euclidean distance. `threads` applies to graphs only, which
    do not allow concurrent searches; callers search the other segments in parallel blocks.
    """
    Q = _prepare(index, Q)
    scaled = Q if index.metric == "cosine" else 2 * Q  # With the bias: 2⟨q, x⟩ − ‖x‖².
    ids = np.full((Q.shape[0], k), -1, np.int64)
    scores = np.full((Q.shape[0], k), -np.inf, Q.dtype)
    offset = 0
    for segment in index.segments:
        if issparse(segment.rows):
            _search_sparse(segment, csr_matrix(scaled), offset, ids, scores, engine)
        elif isinstance(segment.rows, ann_index.Graph):
            _search_graph(segment.rows, Q, index.metric, offset, ids, scores, threads)
        else:
            _search_dense(segment, scaled, offset, ids, scores, engine)
        offset += len(segment.bias)
    if index.metric == "euclidean":  # Rounding can make a squared distance slightly negative.
        squared = row_norms(Q)[:, None] ** 2 - scores
        scores = -np.sqrt(np.maximum(squared, 0, out=squared, where=ids >= 0))
    return ids, scores.astype(np.float32, copy=False)


def _is_sparse(X: Matrix) -> bool:
    return issparse(X) and X.nnz <= DENSE_FROM * X.shape[0] * X.shape[1]


def _prepare(index: Index, X: Matrix) -> Matrix:
    """Normalize rows (cosine), or centre them, or convert them to float64 where centring would fill them."""
    if index.metric == "cosine":
        X = unit_rows(X)
        return X if _is_sparse(X) or not issparse(X) or index.segments else X.toarray()
    if len(index.center):
        return ((X.toarray() if issparse(X) else X) - index.center).astype(np.float32)
    return csr_matrix(X, dtype=np.float64)


def _search_sparse(
    segment: Segment, Q: csr_matrix, offset: int, ids: Array, scores: Array, engine: Engine
) -> None:
    queries, postings = ((A.indptr, A.indices, A.data) for A in (Q, segment.rows))
    engine.sparse_topk(*queries, *postings, segment.bias, offset, ids, scores)


def _search_dense(
    segment: Segment, Q: Matrix, offset: int, ids: Array, scores: Array, engine: Engine
) -> None:
    for start in range(0, len(segment.bias), DENSE_BLOCK):
        block = slice(start, start + DENSE_BLOCK)
        products = np.asarray(Q @ quantize.unpack(segment.rows, block).T)  # (q, block)
        engine.merge_topk(products + segment.bias[block], offset + start, ids, scores)


def _search_graph(
    graph: ann_index.Graph, Q: Array, metric: str, offset: int, ids: Array, scores: Array, threads: int
) -> None:
    k = ids.shape[1]
    found, distances = ann_index.search(graph, Q, k, threads)
    # On the scale of exact segments: ⟨q, x⟩, or 2⟨q, x⟩ − ‖x‖².
    similarities = 1 - distances if metric == "cosine" else row_norms(Q)[:, None] ** 2 - distances
    all_ids = np.concatenate([ids, np.where(found >= 0, found + offset, -1)], axis=1)
    all_scores = np.concatenate([scores, similarities.astype(scores.dtype)], axis=1)
    best = np.argsort(-all_scores, axis=1, kind="stable")[:, :k]
    ids[:], scores[:] = (np.take_along_axis(a, best, axis=1) for a in (all_ids, all_scores))


def _transpose(X: csr_matrix) -> csr_matrix:
    columns = csc_matrix(X)
    return csr_matrix((columns.data, columns.indices, columns.indptr), shape=X.shape[::-1])
