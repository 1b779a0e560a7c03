"""Sizes of data sets, and memory estimates of a fit."""

from __future__ import annotations

import os
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_matrix, issparse

from ..validation.arrays import Matrix
from ..validation.columns import MANY_FEATURES, MANY_LABELS

LEAST = 16e6  # bytes that any fit may take: results of blocks, small arrays, what the allocator keeps


class DataSize(NamedTuple):
    """The size of a data set: rows, features, labels, and stored values of X and Y."""

    n: int
    d: int
    n_labels: int
    nnz: int
    nnz_labels: int

    @classmethod
    def of(cls, X: Matrix, Y: csr_matrix) -> Self:
        """Measure X, (n, d), and Y, (n, L)."""
        n, d = X.shape
        return cls(n, d, Y.shape[1], X.nnz if issparse(X) else X.size, Y.nnz)

    def rows_bytes(self) -> float:
        """Bytes of X as float32, sparse or dense, whichever is smaller."""
        return min(4.0 * self.n * self.d, 8.0 * self.nnz + 4.0 * self.n)

    def labels_bytes(self) -> float:
        """Bytes of Y as csr."""
        return 8.0 * self.nnz_labels + 4.0 * self.n

    def occurring(self) -> Self:
        """The size without columns that can't occur: there is at most one for each stored value."""
        d, n_labels = self.d, self.n_labels
        return self._replace(
            d=min(d, max(self.nnz, 1)) if d > MANY_FEATURES else d,
            n_labels=min(n_labels, max(self.nnz_labels, 1)) if n_labels > MANY_LABELS else n_labels,
        )


class Estimate(NamedTuple):
    """Estimated cost of a fit, in bytes.

    memory : peak memory of the fit, including X and Y, without the interpreter itself
    size : size of the model on disk
    """

    memory: float
    size: float

    def with_rows(self, data: DataSize) -> Estimate:
        """Add the training rows, for a model that stores them."""
        return Estimate(self.memory + data.rows_bytes(), self.size + data.rows_bytes())


def physical_bytes() -> float:
    """The memory of this machine; unlimited where the system does not say."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return float("inf")


def side_bytes(value: Any) -> float:
    """Bytes of an argument of `fit` beside X and Y, with the copies of it that a fit makes."""
    if isinstance(value, list):
        return sum(map(side_bytes, value))
    if issparse(value):
        return 8 * 12.0 * value.nnz
    return 4.0 * value.nbytes if isinstance(value, np.ndarray) else 0.0
