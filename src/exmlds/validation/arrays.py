"""Operations on matrices that are csr or dense: one form for the same numbers, row norms, unit rows."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_matrix, issparse, vstack

from .. import kernels
from . import mapped

Array = np.ndarray
Matrix: TypeAlias = Any  # (n, d) csr or dense; the two have no common interface for a union type

FILLED = 0.2  # share of values other than 0 above which a matrix counts as dense
LARGEST = 1e15  # numbers beyond it have squares whose sums overflow float32
SMALLEST = 1e-15  # of the largest number of a matrix
ZERO = 1e-30  # numbers below it are zeros: their inverses would overflow
CELLS = 1 << 20  # numbers that are looked at at a time
ROWS = 4_096  # rows that are converted or scaled at a time


def check_range(
    values: Array, what: str, place: Callable[[int], str], advice: str, least: float = SMALLEST
) -> None:
    """Refuse finite numbers that are too large to compute with, and those that are all too small.

    place : gives the words for the position of a number among the values, flattened
    """
    largest = float(max(values.max(initial=0), -values.min(initial=0)))
    if least <= largest <= LARGEST or not 0 < largest < np.inf:
        return
    worst = int(np.argmax(values)) if values.max() == largest else int(np.argmin(values))
    number = values.flat[worst]
    if largest > LARGEST:
        wrong = f"must be at most {LARGEST:g} in size. Got {number:g} {place(worst)}"
    else:
        wrong = f"must not all be below {least:g} in size. The largest is {number:g}, {place(worst)}"
    raise ValueError(f"{what} {wrong}. {advice}")


def check_numbers(X: Matrix, least: float = SMALLEST) -> None:
    """Refuse a matrix X, csr or dense, with numbers that are too large, or all below `least`."""

    def place(position: int) -> str:
        if not issparse(X):
            row, column = divmod(position, X.shape[1])
        else:
            row = int(np.searchsorted(X.indptr, position, side="right")) - 1
            column = X.indices[position]
        return f"in row {row}, column {column}"

    advice = "Scale the features, for example by sklearn.preprocessing.MaxAbsScaler."
    check_range(X.data if issparse(X) else X, "The numbers in X", place, advice, least)


def one_form(X: Matrix, is_sparse: bool | None = None) -> Matrix:
    """X, float32, in a form that depends on its numbers alone: canonical csr without stored zeros, or dense.

    A dense matrix of which at most `FILLED` is not 0 becomes csr. A csr matrix stays one.

    is_sparse : the form of the rows that a model was fitted on, which its queries take; None decides
    """
    if not issparse(X):
        if is_sparse is None:
            is_sparse = np.count_nonzero(X) <= FILLED * X.size
        if not is_sparse:
            return without_tiny(X)
        X = vstack([csr_matrix(X[rows]) for rows in row_blocks(X)], format="csr")
    elif is_sparse is False:
        return without_tiny(X.toarray())
    X = csr_matrix(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    values = without_tiny(X.data)
    if not values.all():
        X = csr_matrix((values, X.indices, X.indptr), shape=X.shape, copy=True)
        X.eliminate_zeros()
    return X


def without_tiny(values: Array) -> Array:
    """The values with those below `ZERO` in size as zeros; the values themselves where there are none."""

    def is_tiny(part: Array) -> Array:
        return (part < ZERO) & (part > -ZERO) & (part != 0)

    if not any(is_tiny(values[block]).any() for block in value_blocks(values)):
        return values
    return np.where(is_tiny(values), values.dtype.type(0), values)


def row_norms(X: Matrix) -> Array:
    """(n,) float64, Euclidean norms of the rows."""
    if issparse(X) and X.shape[0] == 1:  # Single queries are frequent, and bincount costs more.
        return np.sqrt(np.square(X.data, dtype=np.float64).sum(keepdims=True))
    lengths = np.empty(X.shape[0])
    if issparse(X):
        kernels.DEFAULT.row_lengths(X.indptr, X.data, lengths)
        return lengths
    for rows in row_blocks(X):
        lengths[rows] = np.sqrt(np.square(X[rows], dtype=np.float64).sum(axis=1))
    return lengths


def unit_rows(X: Matrix, *, in_place: bool = False) -> Matrix:
    """(n, d) float32, the rows scaled to unit length; rows of zeros are kept.

    in_place : write to the values of X, float32 csr
    """
    lengths = row_norms(X)
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    if issparse(X) and X.shape[0] == 1:
        return with_values(X, (X.data * scale).astype(np.float32))
    if not issparse(X):
        scaled = np.empty(X.shape, np.float32)
        for rows in row_blocks(X):
            scaled[rows] = X[rows] * scale[rows, None]
        return scaled
    values = X.data if in_place else mapped.zeros(len(X.data), np.float32, X.data)
    kernels.DEFAULT.scale_rows(X.indptr, X.data, scale, values)
    return with_values(X, values)


def row_blocks(X: Matrix) -> Iterator[slice]:
    """Blocks of rows: what is computed in float64, or from memory-mapped rows, is computed for one at a time.

    Blocks have at most `ROWS` rows, and those of csr about `CELLS` values, or one row.
    """
    n, start = X.shape[0], 0
    while start < n:
        stop = min(start + ROWS, n)
        if issparse(X) and X.indptr[stop] - X.indptr[start] > CELLS:
            most = np.searchsorted(X.indptr[start : stop + 1], X.indptr[start] + CELLS, side="right")
            stop = start + max(int(most) - 1, 1)
        yield slice(start, stop)
        start = stop


def value_blocks(values: Array) -> Iterator[slice]:
    """Blocks of the stored values of csr, or of a dense matrix, of about `CELLS` numbers each."""
    step = max(1, CELLS // max(values[:1].size, 1))
    return (slice(i, min(i + step, len(values))) for i in range(0, len(values), step))


def _stored(X: csr_matrix, rows: slice) -> slice:
    """The stored values of a block of rows."""
    return slice(X.indptr[rows.start], X.indptr[rows.stop])


def with_values(X: csr_matrix, values: Array) -> csr_matrix:
    """A matrix with the sparsity pattern of X, which is shared and not checked again, and other values."""
    other = copy.copy(X)
    other.data = values
    return other


def map_values(X: csr_matrix, function: Callable[[Array, Array], Array]) -> csr_matrix:
    """A matrix with the sparsity pattern of X and float32 values, function(values, columns) of those of X.

    The function is called for blocks of values; the result is a scratch array where X is memory-mapped.
    """
    if X.shape[0] == 1:
        return with_values(X, function(X.data, X.indices))
    values = mapped.zeros(len(X.data), np.float32, X.data)
    for block in value_blocks(values):
        values[block] = function(X.data[block], X.indices[block])
    return with_values(X, values)


def squared(X: csr_matrix) -> csr_matrix:
    """The squares of the values of X: `X.multiply(X)` would take six times the memory for a while."""
    return map_values(X, lambda values, _: np.square(values))


def mean_square(X: Matrix) -> float:
    """The mean squared length of the rows: l2 is in units of it, so that it means the same for any scale."""
    squares = squared(X).sum() if issparse(X) else np.square(X, dtype=np.float64).sum()
    return max(float(squares) / X.shape[0], 1e-12)


def count_columns(X: csr_matrix) -> Array:
    """(d,) int64, the stored values of each column."""
    counts = np.zeros(X.shape[1], np.int64)
    for block in value_blocks(X.indices):
        counts += np.bincount(X.indices[block], minlength=len(counts))
    return counts


def used_columns(X: csr_matrix) -> Array:
    """The columns with stored values, ascending."""
    is_used = np.zeros(X.shape[1], bool)
    for block in value_blocks(X.indices):
        is_used[X.indices[block]] = True
    return np.flatnonzero(is_used).astype(X.indices.dtype)


def take_rows(X: Matrix, rows: Array) -> Matrix:
    """X[rows]; X itself, without a copy, where these are all rows; in scratch arrays where X is mapped."""
    n = X.shape[0]
    if len(rows) == n and np.array_equal(rows, np.arange(n)):
        return X
    if not issparse(X) or not mapped.is_mapped(X.data):
        return X[rows]
    lengths = np.diff(X.indptr)[rows]
    return build_csr(X, lengths, X.shape[1], lambda block: _arrays(X[rows[block]]))


def build_csr(
    X: csr_matrix, lengths: Array, n_columns: int, make: Callable[[slice], tuple[Array, Array]]
) -> csr_matrix:
    """A csr matrix that is made block by block, in scratch arrays where X, which it is made of, is mapped.

    lengths : (n,) the stored values of each row
    make : gives the values and the columns of a block of rows
    """
    ends = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    # scipy converts both to int64, in memory, where one of them is.
    dtype = np.int32 if ends[-1] <= np.iinfo(np.int32).max else np.int64
    values, columns = (mapped.zeros(int(ends[-1]), kind, X.data) for kind in (X.dtype, dtype))
    built = csr_matrix((values, columns, ends.astype(dtype)), shape=(len(lengths), n_columns))
    for block in row_blocks(built):
        built.data[_stored(built, block)], built.indices[_stored(built, block)] = make(block)
    return built


def _arrays(X: csr_matrix) -> tuple[Array, Array]:
    return X.data, X.indices


def block_of(X: Matrix, block: slice) -> Matrix:
    """A block of rows; X itself, without a copy, where the block holds all rows."""
    return X if block.start == 0 and block.stop >= X.shape[0] else X[block]
