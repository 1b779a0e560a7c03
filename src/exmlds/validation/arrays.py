"""Operations on matrices that are csr or dense: one form for the same numbers, row norms, unit rows."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_matrix, issparse, vstack

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
        X = vstack([csr_matrix(X[rows]) for rows in _row_blocks(X)], format="csr")
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

    step = max(1, CELLS // max(values[:1].size, 1))  # a memory map may be larger than memory
    if not any(is_tiny(values[i : i + step]).any() for i in range(0, len(values), step)):
        return values
    return np.where(is_tiny(values), values.dtype.type(0), values)


def row_norms(X: Matrix) -> Array:
    """(n,) float64, Euclidean norms of the rows."""
    if issparse(X) and X.shape[0] == 1:  # Single queries are frequent, and bincount costs more.
        return np.sqrt(np.square(X.data, dtype=np.float64).sum(keepdims=True))
    lengths = np.empty(X.shape[0])
    for rows in _row_blocks(X):
        if issparse(X):
            squares, of_row = np.square(X.data[_stored(X, rows)], dtype=np.float64), _row_of_value(X, rows)
            lengths[rows] = np.sqrt(np.bincount(of_row, squares, minlength=rows.stop - rows.start))
        else:
            lengths[rows] = np.sqrt(np.square(X[rows], dtype=np.float64).sum(axis=1))
    return lengths


def unit_rows(X: Matrix) -> Matrix:
    """(n, d) float32, the rows scaled to unit length; rows of zeros are kept."""
    lengths = row_norms(X)
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    if issparse(X) and X.shape[0] == 1:
        return with_values(X, (X.data * scale).astype(np.float32))
    scaled = np.empty(X.data.shape if issparse(X) else X.shape, np.float32)
    for rows in _row_blocks(X):
        if issparse(X):
            stored = _stored(X, rows)
            scaled[stored] = X.data[stored] * scale[rows][_row_of_value(X, rows)]
        else:
            scaled[rows] = X[rows] * scale[rows, None]
    return with_values(X, scaled) if issparse(X) else scaled


def _row_blocks(X: Matrix) -> Iterator[slice]:
    """Blocks of rows: what is computed in float64 is computed for one of them at a time."""
    return (slice(i, min(i + ROWS, X.shape[0])) for i in range(0, X.shape[0], ROWS))


def _stored(X: csr_matrix, rows: slice) -> slice:
    """The stored values of a block of rows."""
    return slice(X.indptr[rows.start], X.indptr[rows.stop])


def _row_of_value(X: csr_matrix, rows: slice) -> Array:
    """(m,) the row of each stored value of a block, counted from its start."""
    return np.repeat(np.arange(rows.stop - rows.start), np.diff(X.indptr[rows.start : rows.stop + 1]))


def with_values(X: csr_matrix, values: Array) -> csr_matrix:
    """A matrix with the sparsity pattern of X, which is shared and not checked again, and other values."""
    other = copy.copy(X)
    other.data = values
    return other


def block_of(X: Matrix, block: slice) -> Matrix:
    """A block of rows; X itself, without a copy, where the block holds all rows."""
    return X if block.start == 0 and block.stop >= X.shape[0] else X[block]
