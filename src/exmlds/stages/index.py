"""Nearest-neighbour search over a list of segments: dense rows, rows in cells, or an inverted index.

The top-k lists of the segments are merged, so rows can be added as a new segment, and removed by a bias of
−inf, without rewriting the segments on disk.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix, hstack, issparse

from ..kernels import DEFAULT, Engine
from ..validation import stored
from ..validation.arrays import Matrix, row_norms, unit_rows
from . import cells, quantize

Array = np.ndarray
TAIL_SHARE, TAIL_ROWS = 0.02, 1_024  # of all rows, that are searched one by one before they are merged
DENSE_FROM = 0.2  # share of stored values above which a matrix product is faster than the inverted index


class Segment(NamedTuple):
    """Rows that were added in one call.

    rows : `quantize.Packed` (n, d) dense rows; or `cells.Cells` of them; or (d, n) csr, an inverted index of
        the rows of each feature
    bias : (n,) added to the inner product, in the order in which the rows are stored; −inf excludes a row
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
    else:
        stored.require(index.metric == "cosine" or len(index.center), "a dense index is not centred")
        if isinstance(segment.rows, cells.Cells):
            cells.check(segment.rows, n, d)
        else:
            quantize.check(segment.rows, "the rows of an index", n, d)
    return n


def build(
    X: Matrix, metric: str, storage: str = "float32", *, in_cells: bool = False, n_jobs: int | None = None
) -> Index:
    """Index the rows of X.

    X : (n, d) csr or dense
    storage : one of `quantize.STORAGES`, the dtype that dense rows are stored in
    in_cells : whether a search among dense rows reads the nearest cells only, instead of all rows
    """
    dense_distances = metric == "euclidean" and not _is_sparse(X)
    center = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel() if dense_distances else np.zeros(0)
    return extend(Index([], metric, center), X, storage, in_cells=in_cells, n_jobs=n_jobs)


def extend(
    index: Index, X: Matrix, storage: str = "float32", *, in_cells: bool = False, n_jobs: int | None = None
) -> Index:
    """Return the index with the rows of X appended; their ids follow the last one."""
    X = _prepare(index, X)
    if index.metric == "cosine":
        bias = np.zeros(X.shape[0], np.float32)
    else:
        bias = (-(row_norms(X) ** 2)).astype(X.dtype)  # −‖q − x‖² = 2⟨q, x⟩ − ‖x‖² − ‖q‖²
    if issparse(X):
        rows: Any = _transpose(X)
    elif in_cells:
        rows = cells.build(X, index.metric, storage, n_jobs)
        bias = bias[rows.numbers]
    else:
        rows = quantize.pack(X, storage)
    return index._replace(segments=[*index.segments, Segment(rows, bias)])


def append(index: Index, X: Matrix, storage: str = "float32") -> Index:
    """The index with further rows, in a second segment, which grows until `compact` merges both."""
    is_inverted = issparse(index.segments[0].rows)
    if is_inverted != issparse(X):
        X = csr_matrix(X) if is_inverted else X.toarray()
    first, *others = extend(index, X, storage).segments
    if not len(first.bias):
        return index._replace(segments=others)
    return index._replace(segments=[first, _join(others)])


def has_long_tail(index: Index, n_more: int) -> bool:
    """Whether the rows behind the first segment are many, with some more that are added."""
    sizes = [len(segment.bias) for segment in index.segments]
    return sum(sizes[1:]) + n_more > max(TAIL_ROWS, TAIL_SHARE * (sum(sizes) + n_more))


def exclude(index: Index, rows: Array) -> Index:
    """The index without these rows, by their ids: they keep their places, and no search finds them."""
    positions_of, segments, start = positions(index)[rows], [], 0
    for segment in index.segments:
        own = positions_of[(positions_of >= start) & (positions_of < start + len(segment.bias))] - start
        start += len(segment.bias)
        if len(own):
            bias = segment.bias.copy()
            bias[own] = -np.inf
            segment = segment._replace(bias=bias)
        segments.append(segment)
    return index._replace(segments=segments)


def drop(index: Index, rows: Array) -> Index:
    """The index without these rows; the ids of the others are counted anew, in their order."""
    n = sum(len(segment.bias) for segment in index.segments)
    is_kept = np.ones(n, bool)
    is_kept[rows] = False
    segments, start = [], 0
    for segment in index.segments:
        own = is_kept[start : start + len(segment.bias)]
        start += len(own)
        segments.append(_keep(segment, own))
    filled = [segment for segment in segments if len(segment.bias)]
    return index._replace(segments=filled or [_without_cells(segments[0])])


def _without_cells(segment: Segment) -> Segment:
    return segment if issparse(segment.rows) else segment._replace(rows=_packed(segment))


def _keep(segment: Segment, is_kept: Array) -> Segment:
    """The rows of a segment with these ids, which are counted anew."""
    if issparse(segment.rows):
        return Segment(csr_matrix(segment.rows[:, np.flatnonzero(is_kept)]), segment.bias[is_kept])
    if isinstance(segment.rows, cells.Cells):
        is_stored = is_kept[segment.rows.numbers]
        return Segment(cells.keep(segment.rows, is_kept), segment.bias[is_stored])
    return Segment(quantize.keep(segment.rows, is_kept), segment.bias[is_kept])


def _join(segments: list[Segment]) -> Segment:
    """Segments of rows one by one, or of inverted indices, as one."""
    if len(segments) == 1:
        return segments[0]
    bias = np.concatenate([segment.bias for segment in segments])
    if issparse(segments[0].rows):
        return Segment(csr_matrix(hstack([segment.rows for segment in segments])), bias)
    return Segment(quantize.concatenate([segment.rows for segment in segments]), bias)


def storage_order(index: Index) -> Array:
    """(n,) the rows in the order in which they are stored, where near rows follow each other in cells."""
    orders, offset = [], 0
    for segment in index.segments:
        is_sorted = isinstance(segment.rows, cells.Cells)
        orders.append(offset + (segment.rows.numbers if is_sorted else np.arange(len(segment.bias))))
        offset += len(segment.bias)
    return np.concatenate(orders)


def positions(index: Index) -> Array:
    """(n,) where each row is stored, the inverse of `storage_order`."""
    order = storage_order(index)
    found = np.empty_like(order)
    found[order] = np.arange(len(order))
    return found


def stored_rows(index: Index, positions: Array) -> Array:
    """(m, d) float32, the dense rows at these positions, as a query for them is given."""
    found, start = np.empty((len(positions), _width(index)), np.float32), 0
    for segment in index.segments:
        is_own = (positions >= start) & (positions < start + len(segment.bias))
        found[is_own] = quantize.unpack(_packed(segment), positions[is_own] - start)
        start += len(segment.bias)
    return (found + index.center).astype(np.float32) if len(index.center) else found


def compact(index: Index, *, n_jobs: int | None = None) -> Index:
    """The index with all segments merged into the first, and into its cells if it has some."""
    first, *others = index.segments
    if not others:
        return index
    if issparse(first.rows):
        return index._replace(segments=[_join([first, *others])])
    added = quantize.concatenate([_packed(segment) for segment in others])
    bias = np.concatenate([segment.bias for segment in others])
    if isinstance(first.rows, cells.Cells):
        order = storage_order(index)[len(first.bias) :]
        rows, old = cells.insert(first.rows, added, order, index.metric, n_jobs)
        merged = Segment(rows, np.concatenate([first.bias, bias])[old])
    else:
        merged = Segment(quantize.concatenate([first.rows, added]), np.concatenate([first.bias, bias]))
    return index._replace(segments=[merged])


def build_without(X: Array, is_excluded: Array, metric: str, storage: str = "float32", **how: Any) -> Index:
    """Index dense rows, (n, d), of which no search finds those that are excluded, (n,) bool.

    The cells are those of the other rows alone.

    how : as `build` takes it
    """
    order = np.argsort(is_excluded, kind="stable")
    n_kept = len(order) - int(is_excluded.sum())
    if n_kept in (0, len(order)):
        return exclude(build(X, metric, storage, **how), np.flatnonzero(is_excluded))
    index = append(build(X[order[:n_kept]], metric, storage, **how), X[order[n_kept:]], storage)
    (segment,) = compact(index, n_jobs=how.get("n_jobs")).segments
    if isinstance(segment.rows, cells.Cells):
        numbers = order[segment.rows.numbers].astype(np.int32)
        segment = segment._replace(rows=segment.rows._replace(numbers=numbers))
    else:
        back = np.argsort(order)
        segment = Segment(quantize.keep(segment.rows, back), segment.bias[back])
    return exclude(index._replace(segments=[segment]), np.flatnonzero(is_excluded))


def _packed(segment: Segment) -> quantize.Packed:
    """The dense rows of a segment in the order in which they are stored."""
    return segment.rows.rows if isinstance(segment.rows, cells.Cells) else segment.rows


def _width(index: Index) -> int:
    return int(_packed(index.segments[0]).values.shape[1])


def search(
    index: Index, Q: Matrix, k: int, *, breadth: float = 1.0, engine: Engine = DEFAULT
) -> tuple[Array, Array]:
    """The k most similar rows of each query: (q, k) int64 ids, −1 pads, and (q, k) float32 similarities.

    The similarity is the cosine, or the negative Euclidean distance.

    breadth : where rows are in cells, how many of these are read, as in `cells.search`
    """
    Q, offset, found = _prepare(index, Q), 0, []
    for segment in index.segments:
        if not len(segment.bias):  # all rows were dropped
            ids, scores = (
                np.full((Q.shape[0], k), -1, np.int64),
                np.full((Q.shape[0], k), -np.inf, np.float32),
            )
        elif issparse(segment.rows):
            ids, scores = _search_sparse(segment, Q, index.metric, k, engine)
        else:
            ids, scores = _search_dense(segment, Q, index.metric, k, breadth, engine)
        found.append((np.where(ids >= 0, ids + offset, -1) if offset else ids, scores))
        offset += len(segment.bias)
    ids, scores = found[0] if len(found) == 1 else _merge(found, k)
    if index.metric == "euclidean":  # they are −‖q − x‖²
        scores = -np.sqrt(-scores)
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


def _scaled(Q: Matrix, metric: str) -> Matrix:
    """Queries whose inner products with rows, with the bias, rank these: 2⟨q, x⟩ − ‖x‖² for distances."""
    return Q if metric == "cosine" else 2 * Q


def _search_sparse(segment: Segment, Q: Matrix, metric: str, k: int, engine: Engine) -> tuple[Array, Array]:
    scaled = csr_matrix(_scaled(Q, metric))
    ids, scores = np.full((Q.shape[0], k), -1, np.int64), np.full((Q.shape[0], k), -np.inf, Q.dtype)
    queries, postings = ((A.indptr, A.indices, A.data) for A in (scaled, segment.rows))
    engine.sparse_topk(*queries, *postings, segment.bias, 0, ids, scores)
    if metric == "euclidean":  # Rounding can make a squared distance slightly negative.
        scores = np.minimum(scores - row_norms(Q)[:, None] ** 2, 0)
    return ids, scores


def _search_dense(
    segment: Segment, Q: Matrix, metric: str, k: int, breadth: float, engine: Engine
) -> tuple[Array, Array]:
    Q = np.ascontiguousarray(Q.toarray() if issparse(Q) else Q, np.float32)
    rows, is_euclidean = _packed(segment), metric == "euclidean"
    in_cells = isinstance(segment.rows, cells.Cells)
    if in_cells and engine.searches_cells:
        positions, scores = cells.search(
            segment.rows, segment.bias, Q, metric, k, breadth=breadth, engine=engine
        )
    else:
        positions, scores = np.full((len(Q), k), -1, np.int64), np.full((len(Q), k), -np.inf, np.float32)
        engine.search_rows(Q, *rows, segment.bias, is_euclidean, positions, scores)
    ids = positions.copy()
    if in_cells:
        ids = np.where(positions >= 0, segment.rows.numbers[positions].astype(np.int64), -1)
    if rows.values.dtype == np.float32:
        engine.rescore(Q, rows.values, segment.bias, is_euclidean, positions, ids, scores)
    else:  # unpack what was found alone
        found, position = np.unique(np.maximum(positions, 0), return_inverse=True)
        position = np.where(positions >= 0, position.reshape(positions.shape), -1)
        values, bias = quantize.unpack(rows, found), segment.bias[found]
        engine.rescore(Q, values, bias, is_euclidean, position, ids, scores)
    return ids, scores


def _merge(found: list[tuple[Array, Array]], k: int) -> tuple[Array, Array]:
    """The k best of the lists of several segments; of equal ones, those of the first segment."""
    ids, scores = (np.concatenate(parts, axis=1) for parts in zip(*found))
    best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(ids, best, axis=1), np.take_along_axis(scores, best, axis=1)


def _transpose(X: csr_matrix) -> csr_matrix:
    columns = csc_matrix(X)
    return csr_matrix((columns.data, columns.indices, columns.indptr), shape=X.shape[::-1])
