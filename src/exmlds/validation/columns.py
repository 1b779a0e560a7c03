"""Columns that occur: where most labels or features never do, a model is fitted on the others alone."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, issparse

from . import mapped
from .arrays import Matrix, build_csr, row_blocks, value_blocks

Array = np.ndarray

MANY_LABELS = 10_000  # label columns above which those that never occur may be left out,
MANY_FEATURES = 1 << 20  # and feature columns: as many as hashed texts have
FEW_IDS = 1 << 24  # ids up to which those that occur are found by sorting
FEW_VALUES = 100_000  # of a matrix, up to which its columns are selected in one step
SHARE = 0.5  # of the columns that occur, below which the others are left out


class UsedColumns(NamedTuple):
    """The columns of X and Y that a model was fitted on, ascending; None where it is all of them.

    added_labels : columns of Y that rows got after the fit, behind the others, in this order; or None
    """

    features: Array | None
    labels: Array | None
    added_labels: Array | None = None

    @classmethod
    def of(
        cls, X: Matrix, Y: csr_matrix, cooccurrence: csr_matrix | None = None, *, has_names: bool = False
    ) -> UsedColumns:
        """Find the columns that occur; a label with co-occurrences counts too, since it can be completed.

        has_names : whether labels are found by their names, also those that no row has, without a model
        """
        features = _occurring(X.indices, X.shape[1], MANY_FEATURES) if issparse(X) else None
        named = Y.indices
        if cooccurrence is not None:
            named = np.concatenate([named, cooccurrence.indices])  # it is symmetric
        if has_names:
            used = occurring(named, Y.shape[1])
            return cls(features, used if len(used) < Y.shape[1] else None)
        return cls(features, _occurring(named, Y.shape[1], MANY_LABELS))

    def rows(self, X: Matrix) -> Matrix:
        """X without the features that are left out."""
        return X if self.features is None else select(csr_matrix(X), self.features)

    @property
    def all_labels(self) -> Array | None:
        """(L′,) the columns of Y that are used, in the order of the model; None where it is all of them."""
        if self.labels is None or self.added_labels is None:
            return self.labels
        return np.concatenate([self.labels, self.added_labels])

    def of_labels(self, Y: csr_matrix) -> csr_matrix:
        """A matrix with a column for each label, without those that are left out."""
        labels = self.all_labels
        if labels is None:
            return Y
        if self.added_labels is None:
            return select(Y, labels)
        order = np.argsort(labels, kind="stable")
        found = select(Y, labels[order])
        found.indices = order[found.indices].astype(found.indices.dtype)
        found.has_sorted_indices = False
        found.sort_indices()
        return found

    def with_labels(self, columns: Array) -> UsedColumns:
        """With further columns of Y behind those that are used."""
        if self.labels is None or not len(columns):
            return self
        before = columns[:0] if self.added_labels is None else self.added_labels
        return self._replace(added_labels=np.concatenate([before, columns]).astype(self.labels.dtype))

    def side(self, side: dict[str, Any]) -> dict[str, Any]:
        """What `fit` takes beside X and Y, without the labels and features that are left out."""
        own = dict(side)
        if own.get("label_rows") is not None:
            rows = own["label_rows"]
            own["label_rows"] = self.rows(rows if self.labels is None else rows[self.labels])
        if self.labels is None:
            return own
        if own.get("label_cooccurrence") is not None:
            own["label_cooccurrence"] = self.of_labels(own["label_cooccurrence"][self.all_labels])
        if own.get("observed") is not None:
            own["observed"] = self.of_labels(own["observed"])
        return own

    def given(self, ids: Array) -> Array:
        """The columns of Y as it was given, of columns that are used; −1 stays."""
        labels = self.all_labels
        return ids if labels is None else np.where(ids >= 0, labels[np.maximum(ids, 0)], -1)

    def used(self, label: int) -> int | None:
        """The position of a label among those that are used; None where it is left out."""
        if self.labels is None:
            return label
        position = int(np.searchsorted(self.labels, label))
        if position < len(self.labels) and self.labels[position] == label:
            return position
        if self.added_labels is None:
            return None
        added = np.flatnonzero(self.added_labels == label)
        return len(self.labels) + int(added[0]) if len(added) else None

    def were_fitted(self, labels: Array) -> Array:
        """(m,) bool, whether labels had rows at the fit."""
        if self.labels is None:
            return np.ones(len(labels), bool)
        return self.labels[np.minimum(np.searchsorted(self.labels, labels), len(self.labels) - 1)] == labels

    def spread(self, values: Array, n_labels: int) -> Array:
        """(n_labels, …) the values of used labels, (L', …), with zeros for the labels that are left out."""
        labels = self.all_labels
        if labels is None:
            return values
        spread = np.zeros((n_labels, *values.shape[1:]), values.dtype)
        spread[labels] = values
        return spread

    def feature_names(self, names: Any) -> Any:
        """The names of used features, or their numbers where the others are left out; else None."""
        if self.features is None:
            return names
        return self.features if names is None else np.asarray(names, object)[self.features]


def select(X: csr_matrix, columns: Array) -> csr_matrix:
    """The columns, ascending, of X; scipy's own selection takes memory for each column of X, however many."""
    if not len(columns):
        return csr_matrix((X.shape[0], 0), dtype=X.dtype)
    if X.nnz <= FEW_VALUES and not mapped.is_mapped(X.data):
        position = np.minimum(np.searchsorted(columns, X.indices), len(columns) - 1)
        is_kept = columns[position] == X.indices
        starts = np.concatenate(([0], np.cumsum(is_kept)))[X.indptr]
        return csr_matrix((X.data[is_kept], position[is_kept], starts), (X.shape[0], len(columns)))
    places = None
    if X.shape[1] <= X.nnz:
        places = np.zeros(X.shape[1], X.indices.dtype)
        places[columns] = np.arange(len(columns))

    def kept(rows: slice) -> tuple[Array, Array, Array]:
        """The values of a block of rows, the position of each among the columns, and which are kept."""
        stored = slice(X.indptr[rows.start], X.indptr[rows.stop])
        named = X.indices[stored]
        if places is None:
            position = np.minimum(np.searchsorted(columns, named), len(columns) - 1)
        else:
            position = places[named]
        return X.data[stored], position, columns[position] == named

    def make(rows: slice) -> tuple[Array, Array]:
        values, position, is_kept = kept(rows)
        return values[is_kept], position[is_kept]

    lengths = np.zeros(X.shape[0], np.int64)
    for rows in row_blocks(X):
        starts = X.indptr[rows.start : rows.stop + 1] - X.indptr[rows.start]
        lengths[rows] = np.diff(np.concatenate(([0], np.cumsum(kept(rows)[2])))[starts])
    return build_csr(X, lengths, len(columns), make)


def occurring(ids: Array, n: int) -> Array:
    """The ids that occur, ascending, of 0…n−1."""
    if len(ids) <= FEW_IDS:
        return np.unique(ids)
    is_used = np.zeros(n, bool)  # pages without a used id take no memory
    for block in value_blocks(ids):
        is_used[ids[block]] = True
    return np.flatnonzero(is_used).astype(ids.dtype)


def _occurring(ids: Array, n: int, many: int) -> Array | None:
    """The columns that occur, ascending; None where there are few columns, or most of them occur."""
    if n <= many:
        return None
    found = occurring(ids, n)
    return found if 0 < len(found) < SHARE * n else None
