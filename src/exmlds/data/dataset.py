"""The data set that every reader returns."""

from __future__ import annotations

from typing import NamedTuple

from scipy.sparse import csr_matrix


class Dataset(NamedTuple):
    """Features and labels of the same rows.

    X : (n, d) csr float32, features
    Y : (n, L) csr float32, 1 where the row has the label
    label_names, feature_names : L and d strings, or None

    It unpacks: `X, Y, *_ = read_xc("train.txt")`.
    """

    X: csr_matrix
    Y: csr_matrix
    label_names: list[str] | None = None
    feature_names: list[str] | None = None

    def rows(self, rows: object) -> Dataset:
        """The same data set with these rows only; any index of a csr matrix is accepted."""
        return self._replace(X=self.X[rows], Y=self.Y[rows])

    def __repr__(self) -> str:
        (n, d), n_labels = self.X.shape, self.Y.shape[1]
        return (
            f"Dataset({n:,} rows, {d:,} features ({self.X.nnz / max(n, 1):.1f} per row), "
            f"{n_labels:,} labels ({self.Y.nnz / max(n, 1):.2f} per row))"
        )
