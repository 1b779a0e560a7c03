"""Estimators that grow: rows are added, removed and relabelled where a fit would start from nothing.

A call of `partial_fit`, `remove_rows` or `relabel` is computed first, as a `RowsChange` that holds all its
results, and then applied. What a model is after several calls depends on their order and its seed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from numbers import Integral
from types import MethodType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix, issparse, vstack
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .base import XMCEstimator, one_at_a_time
from .validation import params, stored, targets
from .validation.arguments import explained
from .validation.arrays import Matrix

Array = np.ndarray

MOST_JOINED = 1_000  # changes that are applied at once
JOINED = ("removed", "ids", "names", "used")


class GrowthState(NamedTuple):
    """What a growing model keeps of its rows, beside their features.

    labels : (n, L) csr of ones;  ids : (n,) object, strings that the rows are called by
    is_removed : (n,) bool, rows that are not used any more
    n_fitted : number of rows at the last fit;  n_removed : rows removed since then, also those that are gone
    n_pending : rows added or removed since a refit of its parts
    next_number : what the next row is called that is given no id
    """

    labels: csr_matrix
    ids: Array
    is_removed: Array
    n_fitted: int
    n_removed: int
    n_pending: int
    next_number: int

    @property
    def has_changed(self) -> bool:
        """Whether rows were added or removed since the last fit."""
        return bool(self.n_added or self.n_removed)

    @property
    def n_live(self) -> int:
        """The number of rows that are used."""
        return len(self.ids) - int(self.is_removed.sum())

    @property
    def n_added(self) -> int:
        """The number of rows added since the last fit, also those that were removed again."""
        return self.n_live + self.n_removed - self.n_fitted


class IdIndex:
    """Where the rows of a model are by their ids; made when it is first asked for, and then followed.

    A change that fails leaves it behind or ahead of the model: it knows the array of ids that it is of.
    """

    def __init__(self) -> None:
        self._ids: Array | None = None
        self._position: dict[str, int] = {}

    def of(self, growth: GrowthState) -> dict[str, int]:
        """The position of each row that is used."""
        if self._ids is not growth.ids:
            present = np.flatnonzero(~growth.is_removed)
            self._position = dict(zip(growth.ids[present].tolist(), present.tolist()))
            self._ids = growth.ids
        return self._position

    def follow(self, before: GrowthState, removed: Array, after: GrowthState) -> None:
        """Change from one state of growth to the next, if it is of the former."""
        if self._ids is before.ids:
            self._ids = None  # until it is whole again
            for name in before.ids[removed].tolist():
                del self._position[name]
            n = len(before.ids)
            self._position.update(zip(after.ids[n:].tolist(), range(n, len(after.ids))))
            self._ids = after.ids


class RowsChange(NamedTuple):
    """Rows that one call removes and adds, and what follows from it.

    removed : (p,) int64, rows that are removed
    X : (m, d) the features of the added rows, csr or dense;  labels : (m, L) csr of ones, of all used labels
    ids : (m,) object, what they are called
    names : (q,) the new labels, which are added to `classes_`;  used : (u,) int64, the columns of `classes_`
        that become labels of rows
    results : what a method has computed beside, or None
    merges : whether the rows that were added by now are merged with the others, which takes time for all
    """

    removed: Array
    X: Matrix
    labels: csr_matrix
    ids: Array
    names: Array
    used: Array
    results: Any = None
    merges: bool = False


class OfGrowing:
    """A method that only a model has that can grow, or will after a fit: scikit-learn looks for it."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.__func__, self.__doc__ = method, method.__doc__

    def __get__(self, model: GrowsLabels | None, owner: type[Any]) -> Callable[..., Any]:
        if model is None:
            return self.__func__
        if not model._can_grow:
            raise AttributeError(model._advice)
        return MethodType(self.__func__, model)


class GrowsLabels(XMCEstimator):
    """An estimator that new rows may bring new labels to."""

    @property
    def _can_grow(self) -> bool:
        """Whether the model can grow, or will after a fit."""
        raise NotImplementedError

    @property
    def _advice(self) -> str:
        """What to do about a model that cannot grow."""
        raise NotImplementedError

    def _grown_labels(self, y: Any, label_names: Sequence[str] | None) -> tuple[csr_matrix, list[Any]]:
        """(m, L′) csr in the columns of `classes_` and of new labels, and these."""
        Y, n = targets.as_array(y), self.n_labels_
        if targets.is_indicator(Y):
            matrix = targets.indicator(Y)
            n_new = matrix.shape[1] - n
            if n_new < 0:
                raise ValueError(f"Y has {matrix.shape[1]} columns, but the model has {n} labels.")
            if label_names is None and hasattr(Y, "columns"):
                label_names = list(map(str, Y.columns))
            return matrix, self._names_of_columns(label_names, n_new)
        rows = targets.label_rows(Y)
        targets.refuse_indicator_rows(Y, rows)
        if self.names_ is None:
            return _numbered(rows, n)
        columns = dict(self._columns())  # type: ignore[arg-type]
        matrix = targets.from_rows(rows, columns)
        new = list(columns)[n:]
        known = type(self.names_.tolist()[0])
        strange = next((label for label in new if not isinstance(label, known)), None)
        if strange is not None:
            raise ValueError(f"The labels of this model are of type {known.__name__}. Got {strange!r}.")
        return matrix, new

    def _names_of_columns(self, label_names: Sequence[str] | None, n_new: int) -> list[Any]:
        """The names of new columns; label_names : theirs, or those of all columns."""
        n = self.n_labels_
        if self.names_ is None:
            return list(range(n, n + n_new))
        names, known = list(map(targets.plain_name, label_names or [])), self.names_.tolist()
        if len(names) == n + n_new and list(map(str, known)) == names[:n]:
            names = names[n:]
        if len(names) != n_new and (n_new or names):
            raise ValueError(
                f"label_names must be the names of the {n_new} new columns, or of all columns, those of "
                "`classes_` first."
            )
        if len(set(names)) < n_new or set(names) & set(known):
            raise ValueError("The names of new columns must differ from each other and from all classes.")
        return names

    def _new_names(self, names: Sequence[Any]) -> Array:
        return np.array(names, np.int64) if self.names_ is None else _like(self.names_, names)


@dataclass(kw_only=True, eq=False, repr=False)
class GrowingEstimator(GrowsLabels):
    """An estimator that keeps its training rows where `growable` is set, and can grow then.

    A method implements `_apply_rows`, and may compute results of a change in `_results_of`.
    """

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        **XMCEstimator._constraints,
        "growable": params.one_of(False, True),
    }

    growable: bool = False
    growth_ = None  # a `GrowthState`, where the model can grow
    kept_rows_ = None  # the training rows, where they are kept
    _id_index = None  # an `IdIndex`, once it was asked for

    @property
    def _can_grow(self) -> bool:
        return self.growth_ is not None if hasattr(self, "n_labels_") else self.growable

    @property
    def _keeps_rows(self) -> bool:
        return self.growable or bool(getattr(self, "keep_rows", False))

    @explained
    def fit(self, X: Any, y: Any, *, label_names: Sequence[str] | None = None, ids: Any = None) -> Self:
        """Fit the model to rows and their labels.

        Parameters
        ----------
        X, y, label_names : as for every method
        ids : n names of the rows, as in `partial_fit`
        """
        return self._learn(X, y, label_names, ids=ids)

    def _learn(self, X: Any, Y: Any, label_names: Sequence[str] | None, ids: Any = None, **side: Any) -> Self:
        with self._all_or_nothing():
            X, Y, rng, side = self._start(X, Y, label_names, **side)
            return self._train(X, Y, rng, side, ids)

    def _train(
        self, X: Matrix, Y: csr_matrix, rng: Generator, side: dict[str, Any], ids: Any = None, **run: Any
    ) -> Self:
        names = _row_names(ids, X.shape[0])
        super()._train(X, Y, rng, side, **run)
        self.growth_ = None
        if self.growable:
            n = Y.shape[0]
            self.growth_ = GrowthState(
                Y, names, np.zeros(n, bool), n, n_removed=0, n_pending=0, next_number=n
            )
        return self

    @OfGrowing
    @explained
    @one_at_a_time
    def partial_fit(
        self,
        X: Any,
        y: Any,
        *,
        ids: Any = None,
        replace: bool = False,
        label_names: Sequence[str] | None = None,
    ) -> Self:
        """Add rows to a fitted model, which predicts with them at once; an unfitted one is fitted to them.

        Parameters
        ----------
        X, y : as `fit` takes them. Labels that the model does not know become new classes: names in lists,
            or further columns of a matrix. Features are those of the fit
        ids : m names of the rows, strings or whole numbers, by which `remove_rows` and `relabel` find them;
            the numbers of the rows, counted from the first fit on, if not given
        replace : whether a row replaces one that has its id already, which is an error otherwise
        label_names : the names of further columns, where y is a matrix and classes have names
        """
        if not hasattr(self, "n_labels_"):
            return self.fit(X, y, label_names=label_names, ids=ids)
        return self._change_rows(self._rows_added(X, y, ids, replace, label_names))

    @one_at_a_time
    def remove_rows(self, ids: Iterable[Any]) -> Self:
        """Remove rows by their ids: they do not vote any more, and are not counted.

        What classifiers have learnt from them remains until these are refitted, at the latest by `refresh`.
        """
        return self._change_rows(self._rows_removed(ids))

    @one_at_a_time
    def relabel(self, ids: Iterable[Any], y: Any) -> Self:
        """Replace the labels of rows, by the ids of the rows; y as `partial_fit` takes it."""
        return self._change_rows(self._rows_relabelled(ids, y))

    @one_at_a_time
    def refresh(self, **side: Any) -> Self:
        """Fit the model again to all its rows, and replace it by the result."""
        growth, rows = self._growth(), self._live_rows()
        given, names = self._given_labels(rows)
        fresh = clone(self).with_engine(self.engine)
        fresh.fit(self._given_rows(rows), given, label_names=names, ids=growth.ids[rows], **side)
        fresh._go_on_from(self)
        self._become(fresh)
        return self

    def _go_on_from(self, before: GrowingEstimator) -> None:
        """Keep what a model had before a refresh, and a fit of its rows does not know."""
        self.growth_ = self._growth()._replace(next_number=before._growth().next_number)
        if before.names_ is not None and before.names_.dtype != object:  # a fit makes strings of them
            self.names_ = before.names_
        if (names := vars(before).get("feature_names_in_")) is not None:
            self.__dict__["feature_names_in_"] = names

    @property
    def row_ids_(self) -> list[str]:
        """The ids of all rows that the model uses."""
        return self._growth().ids[self._live_rows()].tolist()

    @one_at_a_time
    def drop_removed(self) -> Self:
        """Free the space of removed rows, and merge the rows that were added; predictions stay the same.

        A model that is open for writing does it by `compact`.
        """
        self._growth()
        self._free_space()
        return self

    def _compact(self, purge: bool) -> None:
        if self.growth_ is None:
            return
        growth = self._growth()
        if purge and growth.is_removed.any():
            rows = self._live_rows()
            self._drop_voters(growth.is_removed, np.cumsum(~growth.is_removed) - 1)
            self.kept_rows_ = self._kept(rows)
            self.growth_ = growth._replace(
                labels=growth.labels[rows], ids=growth.ids[rows], is_removed=np.zeros(len(rows), bool)
            )
        self._merge_segments()

    # What a method implements.

    def _apply_rows(self, change: RowsChange, n_labels: int) -> None:
        """Remove and add rows; n_labels : the number of labels of rows afterwards."""
        raise NotImplementedError

    def _results_of(self, change: RowsChange) -> Any:
        """What a method computes of a change before it is applied: a record, or None."""
        return None

    def _check_results(self, change: RowsChange) -> None:
        """Check what was computed of a change, which may come from a file."""
        stored.require(change.results is None, "the change has results that the method does not take")

    def _drop_voters(self, is_removed: Array, number: Array) -> None:
        """Free the space of removed rows, (n,) bool; number : (n,) the new numbers of the others."""
        raise NotImplementedError

    def _has_long_tail(self, n_more: int) -> bool:
        """Whether rows that were added, with some more, are to be merged with the others."""
        return False

    def _merge_segments(self) -> None:
        """Merge rows that were added with the others, where these are searched differently."""

    # Computing and applying a change.

    def _change_rows(self, change: RowsChange) -> Self:
        with self._all_or_nothing():  # Computing leaves something in the model, too.
            self._commit_change(self._with_results(change))
        return self

    def _rows_added(
        self, X: Any, y: Any, ids: Any, replace: bool, label_names: Sequence[str] | None
    ) -> RowsChange:
        """The change by which `partial_fit` adds rows."""
        growth = self._growth()
        X = self._checked_rows(X, reset=False)
        Y, names = self._grown_labels(y, label_names)
        if Y.shape[0] != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, but Y has {Y.shape[0]}.")
        position = self._positions_by_id()
        own = _row_names(ids, X.shape[0], growth.next_number, position)
        taken = [name for name in own.tolist() if name in position]
        if taken and not replace:
            raise ValueError(
                f"There is a row with the id {min(taken)!r} already; `relabel` changes its labels, and "
                "replace=True replaces it."
            )
        return self._rows_change(self._positions(sorted(taken)), X, Y, own, names)

    def _rows_removed(self, ids: Iterable[Any]) -> RowsChange:
        """The change by which `remove_rows` removes rows."""
        rows = self._positions(ids)
        none = csr_matrix((0, self.n_labels_), dtype=np.float32)
        return self._rows_change(rows, self._no_rows(), none, _objects([]))

    def _rows_relabelled(self, ids: Iterable[Any], y: Any) -> RowsChange:
        """The change by which `relabel` replaces rows, by rows with the same features."""
        names = _objects(row_ids(ids))
        rows = self._positions(names)
        Y, new = self._grown_labels(y, None)
        if Y.shape[0] != len(rows):
            raise ValueError(f"There are {len(rows)} ids, but Y has {Y.shape[0]} rows.")
        return self._rows_change(rows, self._kept(rows), Y, names, new)

    def _rows_change(
        self, removed: Array, X: Matrix, Y: csr_matrix, ids: Array, names: Sequence[Any] = ()
    ) -> RowsChange:
        """Y : (m, L) in the columns of `classes_` and of the new names"""
        used = np.zeros(0, np.int64)
        known = self.columns_.all_labels
        if known is not None:
            used = np.setdiff1d(Y.indices, known).astype(np.int64)
        labels = self.columns_.with_labels(used).of_labels(Y)
        merges = self._has_long_tail(len(ids))
        return RowsChange(removed, X, labels, ids, self._new_names(names), used, merges=merges)

    def _with_results(self, change: RowsChange) -> RowsChange:
        return change._replace(results=self._results_of(change))

    def _apply_change(self, change: RowsChange) -> None:
        growth = self._growth()
        self._check_change(change, growth)
        n_labels = change.labels.shape[1]
        self.columns_ = self.columns_.with_labels(change.used)
        if len(change.names):
            names = self.names_
            self.names_ = None if names is None else np.concatenate([names, change.names.astype(names.dtype)])
            self.n_labels_ += len(change.names)
        removed, added = (
            np.bincount(labels.indices, minlength=n_labels)
            for labels in (growth.labels[change.removed], change.labels)
        )
        counts = np.zeros(n_labels, self.column_counts_.dtype)
        counts[: len(self.column_counts_)] = self.column_counts_
        self.column_counts_ = counts - removed + added
        is_removed = np.concatenate([growth.is_removed, np.zeros(len(change.ids), bool)])
        is_removed[change.removed] = True
        n_changed = len(change.removed) + len(change.ids)
        self._apply_rows(change, n_labels)
        if change.merges:
            self._merge_segments()
        self.kept_rows_ = stacked(self.kept_rows_, change.X)
        self.growth_ = GrowthState(
            stacked(widened(growth.labels, n_labels), change.labels),
            np.concatenate([growth.ids, change.ids]),
            is_removed,
            growth.n_fitted,
            growth.n_removed + len(change.removed),
            growth.n_pending + n_changed if change.results is None else 0,
            growth.next_number
            + len(set(change.ids.tolist()).difference(growth.ids[change.removed].tolist())),
        )
        self.n_samples_fit_ = self.growth_.n_live
        if self._id_index is not None:
            self._id_index.follow(growth, change.removed, self.growth_)

    def _joined_changes(self, changes: Iterable[Any]) -> Iterator[Any]:
        return join_runs(changes, lambda change: change, self._can_join, joined_rows)

    def _can_join(self, change: RowsChange) -> bool:
        """Whether the result is the same if the rows of a change are added together with those of others."""
        return True

    def _check_change(self, change: RowsChange, growth: GrowthState) -> None:
        """Check a change, which may come from a file."""
        stored.record(change, "the change", RowsChange)
        n_before, m = len(growth.ids), len(stored.strings(change.ids, "the ids of rows", None))
        stored.ids(change.removed, "removed rows", None, n_before)
        stored.record(change.merges, "whether a change merges rows", bool)
        is_twice = len(np.unique(change.removed)) < len(change.removed)
        stored.require(not is_twice and not growth.is_removed[change.removed].any(), "a row is removed twice")
        ids, position = set(change.ids.tolist()), self._positions_by_id()
        gone = set(change.removed.tolist())
        is_free = len(ids) == m and all(position[name] in gone for name in ids if name in position)
        stored.require(is_free, "two rows have the same id")
        stored.matrix(change.X, "added rows", m, self._widths[0])
        is_alike = issparse(change.X) == issparse(self.kept_rows_)
        stored.require(is_alike, "added rows are sparse and the others are not, or the reverse")
        self._check_new_labels(change)
        n_left = int(self.column_counts_.sum()) - growth.labels[change.removed].nnz + change.labels.nnz
        stored.require(n_left, "No row with a label would be left, but a model needs one.")

    def _check_new_labels(self, change: RowsChange) -> None:
        n_given, known = self.n_labels_ + len(change.names), self.columns_.all_labels
        stored.ids(change.used, "the used labels of added rows", None, n_given)
        others: list[int] = [] if known is None else known.tolist()
        is_new = len(np.unique([*change.used, *others])) == len(change.used) + len(others)
        stored.require(is_new and (known is not None or not len(change.used)), "a label is used twice")
        if self.names_ is None:
            stored.ids(change.names, "the new labels", None, n_given, low=self.n_labels_)
        else:
            stored.record(change.names, "the new labels", np.ndarray)
            names = np.concatenate([self.names_, change.names]).tolist()
            is_alike = len(set(names)) == n_given and len(set(map(type, names))) == 1
            stored.require(is_alike, "the new labels are not further ones like the others")
        n_used = n_given if known is None else len(known) + len(change.used)
        stored.matrix(change.labels, "the labels of added rows", len(change.ids), n_used)
        stored.record(change.labels, "the labels of added rows", csr_matrix)
        stored.require((change.labels.data == 1).all(), "the labels of added rows are not ones")
        self._check_results(change)

    def _check_learnt(self) -> None:
        super()._check_learnt()
        if self.growth_ is None:
            return
        stored.record(self.growth_, "the state of growth", GrowthState)
        n, growth = self._n_stored, self.growth_
        stored.require(self.kept_rows_ is not None, "a growing model has no rows")
        stored.matrix(growth.labels, "the labels of rows", n, self._widths[1])
        stored.strings(growth.ids, "the ids of rows", n)
        stored.array(growth.is_removed, "which rows are removed", "bool", n)
        stored.require(growth.n_live == self.n_samples_fit_, "the number of training rows is another one")
        stored.whole(growth.n_fitted, "the number of rows at the last fit", 1)
        for number in (growth.n_removed, growth.n_pending, growth.next_number):
            stored.whole(number, "the number of changed rows", 0)

    def _growth(self) -> GrowthState:
        check_is_fitted(self)
        if self.growth_ is None:
            raise ValueError(self._advice)
        return self.growth_

    def _positions_by_id(self) -> dict[str, int]:
        """The position of each row that is used, by its id."""
        if self._id_index is None:
            self._id_index = IdIndex()
        return self._id_index.of(self._growth())

    def _positions(self, ids: Iterable[Any]) -> Array:
        """(m,) the rows with these ids; a ValueError names one that is not there."""
        names, position = row_ids(ids), self._positions_by_id()
        for name in names:
            if name not in position:
                raise ValueError(f"There is no row with the id {name!r}.")
        if len(set(names)) < len(names):
            raise ValueError("An id is given twice.")
        return np.array([position[name] for name in names], np.int64)

    @property
    def _advice(self) -> str:
        """What to do about a model that cannot grow."""
        return (
            "This model does not keep its training rows, which it needs to grow: fit it with "
            f"{type(self).__name__}(growable=True)."
        )

    @property
    def _n_stored(self) -> int:
        """The number of rows that the model has numbers for, those that are removed among them."""
        return self.n_samples_fit_ if self.growth_ is None else len(self.growth_.ids)

    def _live_rows(self) -> Array:
        return np.flatnonzero(~self._growth().is_removed)

    def _kept(self, rows: Array) -> Matrix:
        assert self.kept_rows_ is not None
        return self.kept_rows_[rows]

    def _given_rows(self, rows: Array) -> Matrix:
        """Kept rows with all features, as `fit` takes them."""
        X, features = self._kept(rows), self.columns_.features
        if features is None:
            return X
        return csr_matrix((X.data, features[X.indices], X.indptr), (len(rows), self.n_features_in_))

    def _given_labels(self, rows: Array) -> tuple[csr_matrix, list[Any] | None]:
        """The labels of rows in all columns of `classes_`, and the names of these, as `fit` takes them."""
        labels = self._growth().labels[rows]
        given = csr_matrix(
            (labels.data, self.columns_.given(labels.indices), labels.indptr), (len(rows), self.n_labels_)
        )
        return given, None if self.names_ is None else self.names_.tolist()

    def _no_rows(self) -> Matrix:
        return self._kept(np.zeros(0, np.int64))


def join_runs(
    changes: Iterable[Any],
    rows_of: Callable[[Any], Any],
    can_join: Callable[[RowsChange], bool],
    join: Callable[[Sequence[Any]], Any],
) -> Iterator[Any]:
    """The same changes, with runs that only add or only remove rows as one: each takes time for all rows.

    rows_of : gives the `RowsChange` of a change;  can_join : whether the rows that it adds may be joined; the
        model may lack other rows of the same run then;  join : makes one of several
    """
    run: list[Any] = []
    run_kind = None
    for change in changes:
        kind = _kind_of_change(rows_of(change), can_join)
        if run and (kind != run_kind or len(run) == MOST_JOINED):
            yield join(run)
            run, kind = [], _kind_of_change(rows_of(change), can_join)  # the model is another one now
        run_kind = kind
        if kind is None:
            yield change
        else:
            run.append(change)
    if run:
        yield join(run)


def _kind_of_change(change: Any, can_join: Callable[[RowsChange], bool]) -> str | None:
    """What changes that can be joined have in common, or None for others."""
    is_plain = isinstance(change, RowsChange) and change.results is None and not change.merges
    if not is_plain or (len(change.removed) and len(change.ids)):
        return None
    if len(change.removed):
        return "removed"
    return f"added {type(change.X).__name__}" if can_join(change) else None


def joined_rows(changes: Sequence[RowsChange]) -> RowsChange:
    """Changes of one kind as one."""
    last = changes[-1]
    if len(changes) == 1:
        return last
    X: Any = [change.X for change in changes]
    labels = [widened(change.labels, last.labels.shape[1]) for change in changes]
    parts: dict[str, Any] = {
        name: np.concatenate([getattr(change, name) for change in changes]) for name in JOINED
    }
    return last._replace(
        X=vstack(X, format="csr") if issparse(last.X) else np.vstack(X),
        labels=vstack(labels, format="csr"),
        **parts,
    )


def row_ids(ids: Iterable[Any]) -> list[str]:
    """Ids as strings, as models keep them."""
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise ValueError(f"Give a list of ids. Got {ids!r} instead.")
    return list(map(_row_id, ids))


def _row_id(given: Any) -> str:
    given = given.item() if isinstance(given, np.generic) else given
    if isinstance(given, bool) or not isinstance(given, (str, Integral)):
        raise ValueError(f"Ids are strings or whole numbers. Got {given!r} instead.")
    return str(given)


def widened(labels: csr_matrix, n_labels: int) -> csr_matrix:
    """The matrix with more columns, which are empty."""
    if labels.shape[1] == n_labels:
        return labels
    return csr_matrix((labels.data, labels.indices, labels.indptr), (labels.shape[0], n_labels))


def emptied(labels: csr_matrix, rows: Array) -> csr_matrix:
    """The matrix without the labels of these rows, which stay in their places."""
    counts = np.diff(labels.indptr)
    is_kept = np.ones(len(counts), bool)
    is_kept[rows] = False
    is_stored = np.repeat(is_kept, counts)
    starts = np.concatenate(([0], np.cumsum(np.where(is_kept, counts, 0))))
    return csr_matrix((labels.data[is_stored], labels.indices[is_stored], starts), labels.shape)


def _row_names(ids: Any, n: int, first: int = 0, taken: Container[str] = ()) -> Array:
    """(n,) object, the ids as given, or the numbers of the rows that are not taken."""
    if ids is None:
        numbers = (name for name in map(str, count(first)) if name not in taken)
        return _objects(list(islice(numbers, n)))
    names = row_ids(ids)
    if len(names) != n:
        raise ValueError(f"There are {n} rows, but {len(names)} ids.")
    if len(set(names)) < n:
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"The id {twice!r} is given twice.")
    return _objects(names)


def _numbered(rows: list[list[Any]], n: int) -> tuple[csr_matrix, list[int]]:
    """The labels of a model without names, which are the numbers of its columns."""
    for number, row in enumerate(rows):
        for label in row:
            if not isinstance(label, int) or label < 0:
                raise ValueError(
                    f"The labels of this model are whole numbers from 0. Got {label!r} in row {number}."
                )
    n_all = max(n, 1 + max((label for row in rows for label in row), default=0))
    matrix = targets.from_rows(rows, {label: label for label in range(n_all)})
    return matrix, list(range(n, n_all))


def stacked(before: Any, added: Any) -> Any:
    """Rows on top of each other, csr or dense."""
    if not added.shape[0]:
        return before
    return vstack([before, added], format="csr") if issparse(before) else np.vstack([before, added])


def _objects(values: Sequence[Any]) -> Array:
    found = np.empty(len(values), object)
    found[:] = values
    return found


def _like(names: Array, values: Sequence[Any]) -> Array:
    return _objects(values) if names.dtype == object else np.array(values, names.dtype)
