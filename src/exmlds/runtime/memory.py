"""How large data are, and what a fit on them takes."""

from __future__ import annotations

from typing import NamedTuple, Self

from scipy.sparse import csr_matrix, issparse

from ..validation.arrays import Matrix


class DataSize(NamedTuple):
    """What the cost of a fit depends on: rows, features, labels, and the stored values of X and of Y."""

    n: int
    d: int
    n_labels: int
    nnz: int
    nnz_labels: int

    @classmethod
    def of(cls, X: Matrix, Y: csr_matrix) -> Self:
        n, d = X.shape
        return cls(n, d, Y.shape[1], X.nnz if issparse(X) else X.size, Y.nnz)

    def rows_bytes(self) -> float:
        """Of X as float32, sparse where that is smaller."""
        return min(4.0 * self.n * self.d, 8.0 * self.nnz + 4.0 * self.n)

    def labels_bytes(self) -> float:
        """Of Y."""
        return 8.0 * self.nnz_labels + 4.0 * self.n


class Estimate(NamedTuple):
    """Bytes.

    memory : that a fit takes at its peak, with its rows and labels, without the interpreter's own
    size : of the model on disk
    """

    memory: float
    size: float

    def with_rows(self, data: DataSize) -> Estimate:
        """Where the model keeps the training rows."""
        return Estimate(self.memory + data.rows_bytes(), self.size + data.rows_bytes())
