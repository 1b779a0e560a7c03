"""Operations on matrices that are csr or dense: row norms, unit rows, blocks, replaced values."""

from __future__ import annotations

import copy
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_matrix, issparse

Array = np.ndarray
Matrix: TypeAlias = Any  # (n, d) csr or dense; the two have no common interface for a union type


def row_norms(X: Matrix) -> Array:
    """(n,) float64, Euclidean norms of the rows."""
    if not issparse(X):
        return np.sqrt(np.square(X, dtype=np.float64).sum(axis=1))
    squares = np.square(X.data, dtype=np.float64)
    if X.shape[0] == 1:  # Single queries are frequent, and bincount costs more.
        return np.sqrt(squares.sum(keepdims=True))
    of_row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return np.sqrt(np.bincount(of_row, squares, minlength=X.shape[0]))


def unit_rows(X: Matrix) -> Matrix:
    """(n, d) float32, the rows scaled to unit length; rows of zeros are kept."""
    lengths = row_norms(X)
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    if not issparse(X):
        return (X * scale[:, None]).astype(np.float32)
    of_values = scale if X.shape[0] == 1 else np.repeat(scale, np.diff(X.indptr))
    return with_values(X, (X.data * of_values).astype(np.float32))


def with_values(X: csr_matrix, values: Array) -> csr_matrix:
    """A matrix with the sparsity pattern of X, which is shared and not checked again, and other values."""
    other = copy.copy(X)
    other.data = values
    return other


def block_of(X: Matrix, block: slice) -> Matrix:
    """A block of rows; X itself, without a copy, where the block holds all rows."""
    return X if block.start == 0 and block.stop >= X.shape[0] else X[block]
