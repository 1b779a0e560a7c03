"""The contract of every estimator.

A method derives from `XMCEstimator`, implements `_fit` and `_candidates`, and inherits everything else: input
checks, named labels, top-k, thresholds, allow and deny lists, scores as csr, save and load.
"""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, wraps
from importlib import import_module
from importlib.metadata import entry_points
from inspect import getmembers, isfunction, signature
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, cast

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix, issparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from . import __version__, kernels, metrics, selection
from .display import Tables
from .errors import DataError, DataWarning, ModelError, did_you_mean
from .runtime import progress
from .runtime.memory import LEAST, DataSize, Estimate, side_bytes
from .runtime.parallel import fine_blocks, map_blocks, one_blas_thread
from .selection import HeldOutScores, HoldOut
from .storage import model_card, model_folder, records, tree
from .storage.files import PathLike
from .storage.inner import InnerModel
from .storage.journal import Contents, Journal, Position
from .storage.model_card import ModelFacts
from .topk import LabelFilter, Suggestion, Suggestions, check_candidates, padded, to_csr
from .validation import arrays, params, stored, targets
from .validation.arguments import explained
from .validation.arrays import Matrix, block_of
from .validation.columns import UsedColumns
from .validation.observed import known_cells

Array = np.ndarray

BLOCK = 256  # rows predicted at a time
MOST_COMPARED = 50_000  # labels that a mistyped one is compared with
_OF_FOLDER = ("_journal", "_position")  # attributes that belong to the folder that a model has open
_OF_OBJECT = (*_OF_FOLDER, "_lock", "_id_index")  # attributes that a copy does not have
METHODS = "exmlds.methods"  # the group of entry points that name a package's own estimators


Method = TypeVar("Method", bound=Callable[..., Any])


def one_at_a_time(method: Method) -> Method:
    """A method that changes or stores a model: calls of several threads wait for each other."""

    @wraps(method)
    def call(self: Any, *given: Any, **named: Any) -> Any:
        with self._own_lock():
            return method(self, *given, **named)

    return cast(Method, call)


class Fitted(NamedTuple):
    """A fitted estimator within another one, as it is stored: its class, its parameters, its state."""

    method: str
    parameters: dict[str, Any]
    state: dict[str, Any]


class ThresholdChoice(NamedTuple):
    """The threshold of a fit: as given, as chosen, and the metrics on held-out rows with it."""

    given: str | float
    threshold: float
    metrics: dict[str, float] | None

    def is_of(self, given: str | float) -> bool:
        """Whether a parameter asks for this threshold; "auto" is another name of "f1"."""
        return given == self.given or {given, self.given} == {"auto", "f1"}


class XMCPredictor(ClassifierMixin, BaseEstimator, ABC):
    """What a fitted model can do: top-k, names, thresholds, probabilities, explanations, save.

    Attributes
    ----------
    classes_ : (L,) labels, in the order of the columns of Y
    label_counts_ : (L,) training rows of each label
    n_samples_fit_ : number of training rows
    threshold_ : the score from which `predict` assigns a label
    held_out_metrics_ : P@1, P@3, P@5, and precision, recall and F1 at the threshold, on the "rows" that were
        held out to choose it; None where none were
    training_digest_ : of the files that `exmlds train` has read; None where the model was fitted in Python
    """

    n_samples_fit_: int
    threshold_: float
    held_out_metrics_: dict[str, float] | None = None
    chosen_threshold_: ThresholdChoice | None = None
    training_digest_: str | None = None
    n_features_in_: int
    n_labels_: int
    # Kept of the labels and rows: (L,) names, or None where the columns have none; the columns that a model
    # was fitted on, with their counts; and whether its rows are csr.
    names_: Array | None
    columns_: UsedColumns
    column_counts_: Array
    sparse_rows_: bool

    device = "cpu"  # of methods without this parameter
    _engine: kernels.Engine | None = None  # in place of that of the device
    _device = ""  # in place of that of an estimator within this one

    # Of a model that is open for writing: its journal, and where the next change goes.
    _journal: Journal | None = None
    _position: Position

    # Parameters of every method.
    threshold: str | float
    max_labels: int
    max_memory: float | str | None
    n_jobs: int | None
    random_state: Any
    verbose: int

    @property
    def engine(self) -> kernels.Engine:
        """What runs the operations of the stages."""
        if self._engine is not None:
            return self._engine
        return engine_of(self.device) if self._takes_device else kernels.DEFAULT

    @property
    def classes_(self) -> Array:
        return np.arange(self.n_labels_) if self.names_ is None else self.names_

    @property
    def label_counts_(self) -> Array:
        return self.columns_.spread(self.column_counts_, self.n_labels_)

    @abstractmethod
    def _candidates(self, X: Matrix, k: int) -> tuple[Array, Array]:
        """The k best labels of a block of rows: (b, k) int64 columns, best first, and (b, k) float32 scores.

        Scores are above 0 and at most 1; −1 pads where there are fewer. Called on several threads at once.
        """

    def predict_topk(self, X: Any, k: int = 5, *, allow: Any = None, deny: Any = None) -> tuple[Array, Array]:
        """The k best labels of each row.

        Parameters
        ----------
        allow, deny : labels to choose among and labels to leave out: a list of them, or an (n, L) sparse
            matrix with a list for each row

        Returns
        -------
        (n, k) int64 columns of `classes_`, best first, −1 where there are fewer; (n, k) float32 scores
        """
        check_is_fitted(self)
        params.check_count("k", k)
        return self._topk(*self._rows_with_side(X), k, allow, deny)

    def _rows_with_side(self, X: Any) -> tuple[Matrix, dict[str, Matrix]]:
        """The checked rows, and what a method takes beside them, with a line for each row."""
        return self._checked_rows(X, reset=False), {}

    def _topk(
        self, X: Matrix, side: Mapping[str, Matrix], k: int, allow: Any, deny: Any
    ) -> tuple[Array, Array]:
        label_filter = self._label_filter(allow, deny, X.shape[0])
        with progress.shown(self.verbose > 0):
            return self._in_blocks(
                lambda block: self._best(
                    block_of(X, block),
                    k,
                    label_filter,
                    block,
                    **{name: block_of(given, block) for name, given in side.items()},
                ),
                X.shape[0],
                k,
                "predicting",
            )

    @explained
    def predict_labels(
        self,
        X: Any,
        k: int | None = None,
        *,
        threshold: float | None = None,
        allow: Any = None,
        deny: Any = None,
    ) -> list[list[Any]]:
        """The labels of each row, best first: the k best, or those that reach the threshold, or both.

        Parameters
        ----------
        threshold : the score from which a label is assigned; None is `threshold_` where k is None too
        """
        ids, _, chosen = self._chosen(X, k, threshold, allow, deny)
        labels = ids if self.names_ is None else self.names_[np.maximum(ids, 0)]
        return [row[keep].tolist() for row, keep in zip(labels, chosen)]

    @explained
    def suggest(
        self,
        X: Any,
        k: int | None = 5,
        *,
        threshold: float | None = None,
        allow: Any = None,
        deny: Any = None,
    ) -> Suggestions:
        """The labels of each row with names and scores: those that `predict_labels` gives.

        Returns
        -------
        a list for each row of `Suggestion(label, name, score)`, best first; a notebook shows it as a table,
        and `to_pandas` and `to_polars` make data frames of it. The column of scores is called `probability`
        where they are calibrated, as those of `ExMLDS` are, and `score` otherwise
        """
        X, row_names = self._with_row_names(X)
        ids, scores, chosen = self._chosen(X, k, threshold, allow, deny)
        rows = (
            [self._suggestion(*found) for found in zip(columns[keep].tolist(), row[keep].tolist())]
            for columns, row, keep in zip(ids, scores, chosen)
        )
        score_name = "probability" if self._score_meaning == "probabilities" else "score"
        return Suggestions(rows, row_names, score_name)

    def _with_row_names(self, X: Any) -> tuple[Any, Sequence[Any] | None]:
        """The rows, and what a table of suggestions calls them: the index of a data frame, or None."""
        return X, X.index if hasattr(X, "iloc") else None

    def _chosen(
        self, X: Any, k: int | None, threshold: float | None, allow: Any, deny: Any
    ) -> tuple[Array, Array, Array]:
        """The ids and scores of the k best labels of each row, and which of them reach the threshold."""
        check_is_fitted(self)
        if k is None or threshold is not None:
            threshold = self._usable_threshold(threshold)
        k = self.max_labels if k is None else min(k, self.n_labels_)
        ids, scores = self.predict_topk(X, k, allow=allow, deny=deny)
        return ids, scores, ids >= 0 if threshold is None else (ids >= 0) & (scores >= threshold)

    @explained
    def predict(self, X: Any, *, threshold: float | None = None) -> csr_matrix:
        """(n, L) csr with a 1 for each label that reaches the threshold, or `threshold_`."""
        indicator = self.decision_function(X)
        indicator.data = (indicator.data >= self._usable_threshold(threshold)).astype(np.float32)
        indicator.eliminate_zeros()
        return indicator

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters; a fitted model takes another threshold at once.

        It is a number, or what the model was fitted with. Another rule, such as "precision=0.9", needs
        held-out rows, so it counts from the next fit on.
        """
        is_fitted = hasattr(self, "threshold_")
        if is_fitted:
            self._check_parameters(parameters)
        super().set_params(**parameters)
        if is_fitted and "threshold" in parameters:
            self._apply_threshold()
        return self

    def _apply_threshold(self) -> None:
        chosen, metrics_then = self.chosen_threshold_, self.held_out_metrics_
        if chosen is not None and chosen.is_of(self.threshold):
            _, self.threshold_, self.held_out_metrics_ = chosen
            return
        self.threshold_ = np.nan if isinstance(self.threshold, str) else float(self.threshold)
        if metrics_then is not None:  # precision, recall and F1 were those of the old threshold
            self.held_out_metrics_ = {
                name: value for name, value in metrics_then.items() if name == "rows" or "@" in name
            }

    def _usable_threshold(self, given: float | None = None) -> float:
        """The threshold of a call, or `threshold_`, as a number."""
        if given is None and not np.isnan(self.threshold_):
            return float(self.threshold_)
        rule = self.threshold if given is None else given
        if isinstance(rule, str) and XMCEstimator._constraints["threshold"].allows(rule):
            raise ValueError(
                f"The threshold {rule!r} is chosen on held-out rows: set_params(threshold={rule!r}) and "
                "fit the model again, or give a number, such as predict(X, threshold=0.5)."
            )
        params.check("predict", {"threshold": rule}, {"threshold": params.THRESHOLD})
        return float(rule)

    def decision_function(self, X: Any) -> csr_matrix:
        """(n, L) csr of the scores of the `max_labels` best labels; an absent label is no candidate."""
        check_is_fitted(self)
        ids, scores = self.predict_topk(X, min(self.max_labels, self.n_labels_))
        return to_csr(ids, scores, self.n_labels_)

    def predict_proba(self, X: Any) -> csr_matrix:
        """(n, L) csr of scores in (0, 1], those of `decision_function`.

        They rank labels and are calibrated probabilities only where a method says so, as `ExMLDS` does. Those
        of the other methods are shares of votes, or of the training rows.
        """
        return self._as_probabilities(self.decision_function(X))

    def _as_probabilities(self, scores: csr_matrix) -> csr_matrix:
        """What `predict_proba` makes of the scores of `decision_function`."""
        return scores

    @property
    def _score_meaning(self) -> str:
        """What the scores are; "probabilities" only where they are calibrated."""
        return "values between 0 and 1"

    def score(self, X: Any, y: Any, sample_weight: Array | None = None) -> float:
        """P@1: the share of rows whose best label is a true one."""
        targets.warn_of_order(X, y)
        truth = self.label_matrix(y, unknown="append")
        if not truth.shape[0]:
            raise ValueError("There is no row to score; give at least one.")
        hits, _ = metrics.Ranking(truth, self.predict_topk(X, 1), 1).sums("P@1")
        return float(np.average(hits, weights=sample_weight))

    def explain(self, X: Any, label: Any = None, n: int = 5, *, feature_names: Any = None) -> list[Any]:
        """Why the best label of each row, or a given label, has its score.

        Parameters
        ----------
        label : None, the best one of each row, or a label of `classes_`
        n : voters and features to show
        feature_names : (d,) names of the features

        Returns
        -------
        an `Explanation` a row: voters with their shares, terms of the classifier, prior; see its docstring
        """
        check_is_fitted(self)
        params.check_count("n", n)
        n_features = self.n_features_in_
        if feature_names is not None and np.shape(feature_names) != (n_features,):
            raise ValueError(f"X has {n_features} features, but feature_names is {np.shape(feature_names)}.")
        return Tables(self._explanations(X, label, n, feature_names))

    def _explanations(self, X: Any, label: Any, n: int, feature_names: Any) -> Iterator[Any]:
        X, side = self._rows_with_side(X)
        column = None if label is None else self._used_column(label)
        for row in range(X.shape[0]):
            own = {name: given[row : row + 1] for name, given in side.items()}
            yield self._explain_row(X[row : row + 1], column, n, feature_names, **own)

    def _explain_row(
        self, X: Matrix, label: int | None, n: int, feature_names: Any, kept_row: Any = None, **side: Any
    ) -> Any:
        """An `Explanation` of a label, a column of `classes_` or the best one, for the row X, (1, d).

        kept_row : a function that gives a training row, (1, d), where the model does not keep them itself
        """
        raise NotImplementedError(f"{type(self).__name__} does not explain its predictions.")

    def label_matrix(self, Y: Any, *, unknown: str = "drop") -> csr_matrix:
        """Y as csr in the columns of `classes_`, as wide as what `predict` returns.

        Parameters
        ----------
        unknown : what to do with labels that were not there at fit: "drop" leaves them out and warns;
            "append" gives them columns after the others, so that recall counts them
        """
        check_is_fitted(self)
        if unknown not in ("drop", "append"):
            raise ValueError(f"unknown must be 'drop' or 'append'. Got {unknown!r} instead.")
        Y, n_labels = targets.as_array(Y), self.n_labels_
        if targets.is_indicator(Y):
            matrix = targets.indicator(Y)
            if matrix.shape[1] != n_labels:
                raise ValueError(
                    f"Y has {matrix.shape[1]} columns, but {type(self).__name__} knows {n_labels} labels."
                )
            return matrix
        columns = self._columns()
        if isinstance(columns, range):
            columns = dict(zip(columns, columns))
        rows = targets.label_rows(Y)
        targets.refuse_indicator_rows(Y, rows)
        matrix = targets.from_rows(rows, columns)
        if unknown == "append":
            return matrix
        known = matrix[:, :n_labels]
        if left_out := matrix.nnz - known.nnz:
            warnings.warn(
                f"{left_out:,} of {matrix.nnz:,} labels in Y, {matrix.shape[1] - n_labels:,} different ones, "
                'are unknown to the model and left out; unknown="append" keeps them.',
                DataWarning,
                stacklevel=2,
            )
        return known

    def save(self, path: PathLike) -> None:
        """Write the model to a folder; a model that is there is replaced in one step.

        The folder of a model that is open for writing gets a new generation, which holds all changes.
        """
        self._save(path)

    @one_at_a_time
    def _save(self, path: PathLike, *, purge: bool = False) -> None:
        check_is_fitted(self)
        self._check_parameters()
        description = {
            "version": __version__,
            "class": class_reference(type(self)),
            "parameters": self.plain_parameters(),
        }
        self._usable_threshold()
        model_folder.save(
            path, description, self._state(), self.card(), writer=self._writer_of(path), purge=purge
        )

    def _writer_of(self, path: PathLike) -> Journal | None:
        """The open journal of the model, if it is that of this folder."""
        journal = self._journal
        is_own = journal is not None and journal.lock.is_held and journal.is_of(Path(path))
        return journal if is_own else None

    @one_at_a_time
    def compact(self, *, purge: bool = False) -> None:
        """Write a new generation of a model that is open for writing; its journal begins anew.

        Parameters
        ----------
        purge : whether removed rows leave the model and the folder altogether. Without it, they have no vote,
            but their numbers may stay. Copies elsewhere, such as backups, are not touched
        """
        if self._journal is None:
            raise ModelError(
                "The model is not open for writing: load it with exmlds.load(path, writable=True)."
            )
        self._journal.check_open()
        with self._all_or_nothing():
            self._compact(purge)
            self._save(self._journal.folder, purge=purge)

    def _free_space(self) -> None:
        """Leave nothing of removed rows, also on disk where the model is open for writing."""
        if self._journal is not None:
            self.compact(purge=True)
            return
        with self._all_or_nothing():
            self._compact(purge=True)

    def _compact(self, purge: bool) -> None:
        """Bring what was learnt into its shortest form; with purge, without anything of removed rows."""

    @one_at_a_time
    def close(self) -> None:
        """Let others write to the folder of a model that is open for writing; it cannot grow after that."""
        if self._journal is not None:
            self._journal.close()

    def _leave_folder(self) -> None:
        """Another fit has nothing to do with the folder that the model was loaded from."""
        if self._journal is not None and self._journal.lock.is_held:
            raise ValueError(
                "The model is open for writing, and a fit is not a change that its journal can hold: fit "
                "another one (sklearn.base.clone), close this one, and save the other to its folder."
            )
        self.__dict__.pop("_journal", None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> Any:
        """Copies, and models in other processes, do not write to the folder that this one has open.

        A copy that is made while another thread changes the model is the model before or after that.
        """
        with self._own_lock():
            state: Any = dict(super().__getstate__())  # at once: other threads may add attributes meanwhile
            return {name: value for name, value in state.items() if name not in _OF_OBJECT}

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self._own_lock()  # now: a lock that another thread adds would disturb who reads the attributes

    def _own_lock(self) -> Any:
        return self.__dict__.setdefault("_lock", RLock())

    def _replace_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Have these attributes and no others; the lock is there at any moment."""
        own = self.__dict__
        own.update(attributes)
        for name in own.keys() - attributes.keys() - {"_lock"}:
            del own[name]

    def _apply_change(self, change: Any) -> None:
        """Apply a change to the fitted model: attributes are replaced, arrays are never changed in place.

        change : a record that holds all results, also those of refits. It may come from a model folder of
            anyone: ids and shapes are checked first, and a ValueError says what is wrong
        """
        raise ValueError(f"{type(self).__name__} takes no change of the kind {type(change).__name__}")

    def _commit_change(self, change: Any) -> None:
        """Apply a change in memory and, where the model is open for writing, on disk; both or neither."""
        with self._all_or_nothing():
            if self._journal is not None:
                self._journal.check_open()
            self._apply_change(change)
            if self._journal is not None:
                self._position = self._journal.append(change, self._position)

    def _become(self, other: XMCPredictor) -> None:
        """Take over all attributes of another fitted model of this class.

        The folder of a model that is open for writing gets a new generation, because a fit is not a change.
        """
        with self._all_or_nothing():
            own = {name: value for name, value in vars(self).items() if name in _OF_OBJECT}
            self._replace_attributes(vars(other) | own)
            if self._journal is not None:
                self._journal.check_open()
                self._save(self._journal.folder)

    def _replay(self, journal: Contents) -> None:
        """Apply the changes of a journal."""
        with tree.explained(journal.path):
            for change in self._joined_changes(journal.changes()):
                self._apply_change(change)
        if journal.payloads:
            with tree.explained(journal.path):
                self._check_learnt()

    def _joined_changes(self, changes: Iterable[Any]) -> Iterator[Any]:
        """The same changes, some of them as one where that takes less time; the result is the same."""
        yield from changes

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """A fit or a change that fails, or is stopped, leaves the model as it was before."""
        before = [(each, dict(vars(each))) for each in self._with_inner()]
        try:
            yield
        except BaseException:
            for each, attributes in before:
                each._replace_attributes(attributes)
            raise

    def _with_inner(self) -> Iterator[XMCPredictor]:
        """The estimator and those that it has learnt, such as the shortlisters of `ExMLDS`."""
        yield self
        for value in list(vars(self).values()):
            if isinstance(value, XMCPredictor):
                yield from value._with_inner()

    def card(self) -> str:
        """The model card in Markdown, which `save` writes to README.md in the model folder."""
        check_is_fitted(self)
        counts, method = self.column_counts_, self._method
        chosen = method.chosen_threshold_
        defaults = {name: given.default for name, given in signature(type(method)).parameters.items()}
        frequent = np.argsort(-counts, kind="stable")[:10].tolist()
        n_untrained, growth = self._n_rankable - len(counts), getattr(self, "growth_", None)
        rows = {
            "training rows": self.n_samples_fit_,
            "features": self.n_features_in_,
            "labels": self.n_labels_,
        }
        changed = {
            name: value for name, value in method.plain_parameters().items() if value != defaults[name]
        }
        return model_card.render(
            ModelFacts(
                method=type(method).__name__,
                takes="rows of features" if method is self else "texts",
                sizes=rows,
                frequent=[
                    (self.label_name(self._used_label(column)), int(counts[column])) for column in frequent
                ],
                n_rare=self._n_rankable - n_untrained - int((counts >= model_card.FEW_ROWS).sum()),
                n_untrained=n_untrained,
                threshold=method.threshold_,
                is_set_by_hand=chosen is not None and method.threshold_ != chosen.threshold,
                quality=method.held_out_metrics_,
                parameters=changed,
                keeps_data=getattr(self, "texts_", None) is not None
                or getattr(self, "kept_rows_", None) is not None,
                n_added=0 if growth is None else growth.n_added,
                n_removed=0 if growth is None else growth.n_removed,
            )
        )

    @property
    def _method(self) -> XMCPredictor:
        """The method that ranks labels: the estimator itself, or the one that a `TextClassifier` wraps."""
        return self

    def with_engine(self, engine: kernels.Engine) -> Self:
        """The estimator with another engine; everything else is shared."""
        if engine is self.engine:
            return self
        other = copy.copy(self)
        other._engine = engine
        return other

    @property
    def _takes_device(self) -> bool:
        """Whether `device` is the parameter of this package; other classes may mean another thing."""
        return getattr(self, "_constraints", {}).get("device") is params.DEVICE

    def _use_device(self, device: str) -> None:
        """Run on another device from now on."""
        if not self._takes_device:
            raise ValueError(f"{type(self).__name__} has no parameter 'device': it runs on the CPU.")
        engine_of(device)  # complains where there is none
        self.device = device

    def _without_engine(self) -> Self:
        """The estimator with the engine of its device, as it is kept within another one."""
        if "_engine" not in vars(self):
            return self
        other = copy.copy(self)
        del other._engine
        return other

    def plain_parameters(self) -> dict[str, Any]:
        """The parameters as they stand in a manifest; the device is not one of the model."""
        given = self.get_params(deep=False)
        if self._takes_device:
            del given["device"]
        return model_folder.plain_parameters(given)

    @classmethod
    def from_plain(cls, parameters: Mapping[str, Any]) -> Self:
        """An estimator with the parameters of a manifest."""
        return cls(**parameters)

    def _check_parameters(self, parameters: Mapping[str, Any] | None = None) -> None:
        """Check some parameters, or all that the estimator has."""
        parameters = self.get_params(deep=False) if parameters is None else parameters
        params.check(type(self).__name__, parameters, getattr(self, "_constraints", {}))

    def _takers(self, argument: str) -> str:
        """The last sentence of a message on an unknown argument of a method: the methods that take it."""
        methods = imported_methods().values()
        fits = [f"{each.__name__}.fit" for each in methods if argument in getattr(each, "_side", {})]
        own = [
            f"{type(self).__name__}.{name}"
            for name, method in getmembers(type(self), isfunction)
            if not name.startswith(("_", "set_")) and argument in signature(method).parameters
        ]
        takers = [*fits, *own]
        if not takers:
            return ""
        return f" {' and '.join(takers)} take{'s' if len(takers) == 1 else ''} it."

    def _restore(self) -> None:
        """Rebuild unsaved attributes after load."""

    def _check_learnt(self) -> None:
        """Check types, shapes and ranges of what a model folder held; a ValueError says what is wrong.

        The folder may come from anywhere, and kernels do not check their indices.
        """
        stored.whole(self.n_labels_, "the number of labels", 1)
        stored.record(self.columns_, "the used columns", UsedColumns)
        for used, n in zip(self.columns_[:2], (self.n_features_in_, self.n_labels_)):
            if used is not None:
                stored.ascending(stored.ids(used, "the used columns", None, n), "the used columns")
        if self.columns_.added_labels is not None:
            stored.ids(self.columns_.added_labels, "the used columns", None, self.n_labels_)
            stored.require(self.columns_.labels is not None, "labels are added to all of them")
        if self.names_ is not None:
            stored.record(self.names_, "the labels", np.ndarray)
            stored.require(self.names_.shape == (self.n_labels_,), "there are too many or too few labels")
        stored.record(self.sparse_rows_, "whether rows are sparse", bool)
        used = self.columns_.all_labels
        n_used = self.n_labels_ if used is None else len(used)
        counts = stored.array(self.column_counts_, "counts of labels", stored.INTEGERS, n_used)
        stored.require(n_used, "there are no labels")
        is_repeated = used is not None and len(np.unique(used)) < n_used
        stored.require(not is_repeated, "a label is used twice")
        stored.require(counts.min() >= 0, "counts of labels are negative")
        stored.whole(self.n_samples_fit_, "the number of training rows", 1)
        stored.whole(self.n_features_in_, "the number of features", 1)
        stored.number(self.threshold_, "the threshold")
        if self.held_out_metrics_ is not None:
            stored.record(self.held_out_metrics_, "the metrics on held-out rows", dict)
            stored.require("rows" in self.held_out_metrics_, "held-out rows have no number")
            for name, value in self.held_out_metrics_.items():
                stored.number(value, f"the metric {name!r} of held-out rows")
        if self.chosen_threshold_ is not None:
            stored.record(self.chosen_threshold_, "the chosen threshold", ThresholdChoice)
            stored.number(self.chosen_threshold_.threshold, "the chosen threshold")
            stored.record(self.chosen_threshold_.metrics or {}, "the metrics of the chosen threshold", dict)
        if self.training_digest_ is not None:
            stored.record(self.training_digest_, "the digest of the training data", str)
        if hasattr(self, "feature_names_in_"):
            stored.strings(self.feature_names_in_, "the names of features", self.n_features_in_)

    def _state(self) -> dict[str, Any]:
        """What was learnt, under its names on disk; a method within this one becomes a `Fitted`."""
        learnt = {
            name: Fitted(class_reference(type(value)), value.plain_parameters(), value._state())
            if isinstance(value, XMCPredictor)
            else value
            for name, value in vars(self).items()
            if records.is_learnt(name)
        }
        return records.to_stored_names(learnt)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags

    def _checked_rows(self, X: Any, *, reset: bool) -> Matrix:
        if reset or not self._is_checked(X):
            self._refuse_texts(X)
            X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=[np.float32, np.float64])
            arrays.check_numbers(X, arrays.SMALLEST if reset else 0)
            X = X.astype(np.float32, copy=False)
        if reset:
            X = arrays.one_form(X)
            self.sparse_rows_ = issparse(X)
            return X
        return self.columns_.rows(arrays.one_form(X, self.sparse_rows_))

    def _refuse_texts(self, X: Any) -> None:
        first = next(iter(X), None) if isinstance(X, (list, tuple)) or getattr(X, "ndim", 0) == 1 else None
        if isinstance(first, str):
            raise ValueError(
                f"X holds texts, and {type(self).__name__} takes a matrix of features: use "
                f"TextClassifier({type(self).__name__}()), or vectorize the texts first."
            )

    def _is_checked(self, X: Any) -> bool:
        """Whether rows are as `validate_data` makes them, which takes long for one row."""
        is_alike = isinstance(X, csr_matrix) and X.dtype == np.float32 and X.shape[1] == self.n_features_in_
        if not is_alike or not X.shape[0]:
            return False
        return bool(X.data.max(initial=0) <= arrays.LARGEST and X.data.min(initial=0) >= -arrays.LARGEST)

    def _in_blocks(
        self, work: Callable[[slice], tuple[Array, Array]], n: int, k: int, stage: str
    ) -> tuple[Array, Array]:
        """(n, k) ids and scores, put together from what `work` gives for each block of rows."""
        ids, scores = np.empty((n, k), np.int64), np.empty((n, k), np.float32)
        rows = fine_blocks(n, BLOCK, self.engine.block_rows)
        for best, block in zip(map_blocks(work, rows, n_jobs=self.n_jobs, stage=stage, total=n), rows):
            ids[block], scores[block] = best
        return ids, scores

    def _best(
        self, X: Matrix, k: int, label_filter: LabelFilter | None, block: slice, **side: Any
    ) -> tuple[Array, Array]:
        n_labels = self._n_rankable
        if label_filter is None:
            return padded(*self._ranked(X, min(k, n_labels), **side), k)
        return label_filter.best(lambda m: self._ranked(X, m, **side), k, n_labels, block)

    @property
    def _n_rankable(self) -> int:
        """The number of labels that can be predicted."""
        return len(self.column_counts_)

    def _ranked(self, X: Matrix, k: int, **side: Any) -> tuple[Array, Array]:
        """The k best labels of a block of rows, as columns of `classes_`, and their scores."""
        ids, scores = self._checked_candidates(X, min(k, len(self.column_counts_)), **side)
        return self.columns_.given(ids), scores

    def _checked_candidates(self, X: Matrix, k: int, **side: Any) -> tuple[Array, Array]:
        """`_candidates`; what a class outside the package returns is checked."""
        found = self._candidates(X, k, **side)  # only a method that takes something is given it
        if not is_ours(type(self)._candidates):
            where = f"{type(self).__name__}._candidates"
            check_candidates(where, found, X.shape[0], k, len(self.column_counts_))
        return found

    def _label_filter(self, allow: Any, deny: Any, n: int) -> LabelFilter | None:
        rules = []
        for listed, is_allowed in ((allow, True), (deny, False)):
            if listed is None:
                continue
            if issparse(listed):
                if listed.shape != (n, self.n_labels_):
                    raise ValueError(
                        f"An allow or deny matrix must be of shape {(n, self.n_labels_)}. "
                        f"Got {listed.shape} instead."
                    )
                rules.append((metrics.label_matrix(listed), is_allowed))
            else:
                chosen = np.zeros(self.n_labels_, bool)
                chosen[self._known_columns(listed)] = True
                rules.append((chosen, is_allowed))
        return LabelFilter(rules) if rules else None

    def _known_columns(self, listed: Iterable[Any]) -> list[int]:
        if isinstance(listed, str):
            raise ValueError(f"Give a list of labels to allow or deny. Got the string {listed!r} instead.")
        columns = self._columns()
        listed = [targets.plain_name(label) if isinstance(label, str) else label for label in listed]
        for label in listed:
            if not isinstance(label, Hashable) or label not in columns:
                hint = did_you_mean(str(label), map(str, self.classes_[:MOST_COMPARED]))
                raise ValueError(f"Label {label!r} is not known to this model.{hint}")
        return [columns[label] for label in listed]

    def label_name(self, label: Any) -> str:
        """The name of a label: the label itself, unless the model has a vocabulary."""
        return str(label)

    def _suggestion(self, column: int, score: float) -> Suggestion:
        label = self._label(column)
        return Suggestion(label, self.label_name(label), score)

    def _used_column(self, label: Any) -> int:
        """The column of a label among those that the model was fitted on."""
        column = self.columns_.used(self._known_columns([label])[0])
        if column is None:
            raise ValueError(f"No training row has the label {label!r}.")
        return column

    @property
    def _widths(self) -> tuple[int, int]:
        """The numbers of features and labels that the model was fitted on."""
        features = self.columns_.features
        return self.n_features_in_ if features is None else len(features), len(self.column_counts_)

    def _used_label(self, column: int) -> Any:
        """The label of a column that the model was fitted on."""
        return self._label(int(self.columns_.given(np.array(column))))

    def _label(self, column: int) -> Any:
        label = column if self.names_ is None else self.names_[column]
        return label.item() if isinstance(label, np.generic) else label

    def _prior(self, column: int) -> float:
        """The share of training rows that have the label of a column that the model was fitted on."""
        return float(self.column_counts_[column] / self.n_samples_fit_)

    def _columns(self) -> dict[Any, int] | range:
        if self.names_ is None:
            return range(self.n_labels_)
        return {label: column for column, label in enumerate(self.names_.tolist())}


@dataclass(kw_only=True, eq=False, repr=False)
class XMCEstimator(XMCPredictor):
    """A scikit-learn classifier on sparse labels.

    Parameters
    ----------
    threshold : the score from which `predict` assigns a label: "auto", or "f1", maximizes micro-F1 on
        held-out rows; "precision=0.9" is the lowest threshold with that precision there; or a number from
        0 to 1
    max_labels : number of labels of a row that `decision_function` and `predict` consider
    max_memory : bytes, or a string such as "8 GB", that a fit may take by its `estimate`, and on a graphics
        card; None: no limit
    n_jobs : number of threads; None means all cores. The result does not depend on it
    random_state : seed; the same seed gives the same model
    verbose : 1, or True, shows progress on a terminal

    Attributes
    ----------
    classes_ : (L,) labels, in the order of the columns of Y
    label_counts_ : (L,) training rows of each label
    n_samples_fit_ : number of training rows
    threshold_ : the score from which `predict` assigns a label
    """

    # The constraints of the parameters of every method; a method adds its own.
    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        "threshold": params.either(params.one_of("auto", "f1"), params.PRECISION, params.THRESHOLD),
        "max_labels": params.whole(1),
        "max_memory": params.MEMORY,
        "n_jobs": params.N_JOBS,
        "random_state": params.SEED,
        "verbose": params.VERBOSE,
    }

    # Parameters are dataclass fields: `__init__` stores each under its name, as scikit-learn requires.
    threshold: str | float = "auto"
    max_labels: int = 100
    max_memory: float | str | None = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    # The search space of `exmlds tune`: parameters with values to try, in this order.
    _space: ClassVar[Mapping[str, tuple[Any, ...]]] = {}

    # The arguments of `fit` beside X and Y, and whether each has a line for every row.
    _side: ClassVar[Mapping[str, bool]] = {}

    # Whether `_fit` and `_candidates` may be given fewer columns of X and Y than `fit`: those that occur.
    _leaves_out_columns: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "fit" in vars(cls):
            cls.fit = explained(cls.fit)  # type: ignore[method-assign]

    @explained
    def fit(self, X: Any, y: Any, *, label_names: Sequence[str] | None = None) -> Self:
        """Fit the model to rows and their labels.

        Parameters
        ----------
        X : (n, d) sparse or dense, any numeric dtype
        y : (n, L) sparse or dense matrix of 0 and 1; or a list or set of labels for each row; or one label
            for each. Labels that are strings are stripped of surrounding whitespace
        label_names : L names of the columns of y; with lists of names, all names in the order of the
            columns, also those that no row has
        """
        return self._learn(X, y, label_names)

    @abstractmethod
    def _fit(self, X: Matrix, Y: csr_matrix, rng: Generator, **side: Any) -> HeldOutScores | None:
        """Fit to X, (n, d) csr or dense float32, and Y, (n, L) csr of ones, and what else `fit` takes.

        A method that scored held-out rows on the way returns their scores, and the threshold is chosen on
        them; None fits a clone on a part of the rows for that.
        """

    def _estimate(self, data: DataSize) -> Estimate:
        """What a fit on data of this size takes; the default counts the data alone."""
        return Estimate(2 * data.rows_bytes() + 4 * data.labels_bytes() + LEAST, 0.0)

    def _learn(self, X: Any, Y: Any, label_names: Sequence[str] | None, **side: Any) -> Self:
        with self._all_or_nothing():
            X, Y, rng, side = self._start(X, Y, label_names, **side)
            return self._train(X, Y, rng, side)

    def _start(
        self, X: Any, Y: Any, label_names: Sequence[str] | None, *, is_part: bool = False, **side: Any
    ) -> tuple[Matrix, csr_matrix, np.random.Generator, dict[str, Any]]:
        """Check parameters and input, and set what every method has; returns what `_fit` takes.

        is_part : whether the model is a part of another one, with the same columns
        """
        self._check_parameters()
        self._leave_folder()
        targets.warn_of_order(X, Y)
        self.training_digest_ = None
        X = self._checked_rows(X, reset=True)
        Y, self.names_ = self._checked_labels(X, Y, label_names)
        side = self._checked_side(Y, **side)
        if not is_part and side.get("sample_weight") is None:  # weights may divide a row among its labels
            targets.warn_of_repeated_rows(X, Y)
        self.n_samples_fit_, self.n_labels_ = Y.shape
        self.columns_ = UsedColumns(None, None)
        if self._leaves_out_columns and not is_part:
            has_names = side.get("name_matches") is not None
            self.columns_ = UsedColumns.of(X, Y, side.get("label_cooccurrence"), has_names=has_names)
            X, Y, side = self.columns_.rows(X), self.columns_.of_labels(Y), self.columns_.side(side)
        self.column_counts_ = np.bincount(Y.indices, minlength=Y.shape[1])
        self._check_memory(DataSize.of(X, Y), side)
        return X, Y, generator(self.random_state), side

    def _train(self, X: Matrix, Y: csr_matrix, rng: Generator, side: dict[str, Any], **run: Any) -> Self:
        """Fit, then choose the threshold; run : what `_fit` takes beside data, such as a checkpoint."""
        fit_rng, threshold_rng = rng.spawn(2)
        name, most = f"training {type(self).__name__}", self.max_memory
        card = self.engine.memory_limit(None if most is None else params.as_bytes(most))
        with progress.shown(self.verbose > 0), progress.phase(name, X.shape[0]), one_blas_thread(), card:
            before = dict(vars(self))
            held_out = self._fit(X, Y, fit_rng, **side, **run)
            self._check_names_of_learnt(before)
            with progress.phase("threshold", X.shape[0], until=1.0):
                self.threshold_, self.held_out_metrics_ = self._choose_threshold(
                    X, Y, held_out, threshold_rng, **side
                )
            self.chosen_threshold_ = ThresholdChoice(self.threshold, self.threshold_, self.held_out_metrics_)
        return self

    def _check_names_of_learnt(self, before: Mapping[str, Any]) -> None:
        """Raise an error if `_fit` has set an attribute that `save` would leave out.

        before : the attributes before `_fit`
        """
        unsaved = [
            name
            for name, value in vars(self).items()
            if not records.is_learnt(name)
            and (name not in before or before[name] is not value)
            and name not in self.get_params(deep=False)
            and not isinstance(getattr(type(self), name, None), cached_property)
            and not (name.startswith("_") and not is_ours(type(self)._restore))  # which rebuilds it
        ]
        if unsaved:
            public = f"{unsaved[0].strip('_')}_"
            raise ValueError(
                f"{type(self).__name__}._fit sets {unsaved[0]!r}, which would not be saved with the model: "
                "the name of an attribute that a fit learns ends in an underscore and does not begin with "
                f"one. Call it {public!r}."
            )

    def estimate(
        self, n: int, d: int, n_labels: int, nnz: int | None = None, nnz_labels: int | None = None
    ) -> Estimate:
        """Estimate the memory of a fit and the size of its model, in bytes, before fitting.

        Parameters
        ----------
        n, d, n_labels : numbers of rows, features and labels
        nnz : stored values of X; n × d if not given
        nnz_labels : stored values of Y; five for each row if not given
        """
        self._check_parameters()
        for name, value in {"n": n, "d": d, "n_labels": n_labels}.items():
            params.check_count(name, value)
        nnz, nnz_labels = n * d if nnz is None else nnz, 5 * n if nnz_labels is None else nnz_labels
        return self._estimate(DataSize(n, d, n_labels, nnz, nnz_labels).occurring())

    def _checked_labels(
        self, X: Matrix, Y: Any, label_names: Sequence[str] | None
    ) -> tuple[csr_matrix, Array | None]:
        if Y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        encoded, names = targets.encode(Y, label_names)
        if encoded.shape[0] != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, but Y has {encoded.shape[0]}.")
        if not encoded.nnz:
            raise ValueError("Y holds no label at all; there is nothing to learn.")
        return encoded, names

    def _checked_side(self, Y: csr_matrix, **side: Any) -> dict[str, Any]:
        """What `fit` takes beside X and Y, checked against the labels."""
        return side

    @classmethod
    def side_rows(cls, side: Mapping[str, Any], rows: Array) -> dict[str, Any]:
        """The part of it that belongs to these rows; what does not go by rows stays whole."""
        for name in side:
            if name not in cls._side:
                known = f"only {', '.join(cls._side)}" if cls._side else "nothing"
                raise ValueError(f"{cls.__name__} takes {known} beside X and Y. Got {name!r}.")
        return selection.rows_of_side(side, cls._side, rows)

    def _trainable_rows(self, Y: csr_matrix, **side: Any) -> Array:
        """The rows to learn from: those that have a label and a weight above 0."""
        has_label, weights = np.diff(Y.indptr) > 0, side.get("sample_weight")
        return np.flatnonzero(has_label if weights is None else has_label & (weights > 0))

    def _check_memory(self, data: DataSize, side: Mapping[str, Any]) -> None:
        if self.max_memory is None:
            return
        needed = self._estimate(data).memory + sum(map(side_bytes, side.values()))
        allowed = params.as_bytes(self.max_memory)
        if needed > allowed:
            raise ValueError(
                f"{type(self).__name__} needs about {needed / 1e9:.2g} GB for {data.n:,} rows, "
                f"{data.d:,} features and {data.n_labels:,} labels, but 'max_memory' allows "
                f"{allowed / 1e9:.2g} GB. Allow more, or use fewer rows or features, or a smaller model."
            )

    def _choose_threshold(
        self, X: Matrix, Y: csr_matrix, held_out: HeldOutScores | None, rng: Generator, **side: Any
    ) -> tuple[float, dict[str, float] | None]:
        """The threshold as given, or tuned on held-out rows where it is a string; and metrics on them."""
        is_rule = isinstance(self.threshold, str)
        if is_rule and len(self._trainable_rows(Y, **side)) < 5:  # too few to hold any out
            return 0.5 if self.threshold in ("auto", "f1") else 1.0, None
        if not is_rule and held_out is None:
            return float(self.threshold), None
        if held_out is None:
            held_out = self._score_on_holdout(X, Y, min(self.max_labels, Y.shape[1]), rng, **side)
        rows, ids, scores = held_out
        hits = metrics.Ranking(Y[rows], ids, ids.shape[1]).hits
        observed = side.get("observed")
        present = known_cells(None if observed is None else observed[rows], ids)
        precision = params.as_precision(self.threshold) if is_rule else 0.0
        if not is_rule:
            threshold = float(self.threshold)
        elif precision > 0:
            threshold = selection.threshold_for_precision(hits[present], scores[present], precision)
        else:
            threshold = selection.best_threshold(hits[present], scores[present], Y[rows].nnz)
        return threshold, metrics.on_held_out_rows(hits, present & (scores >= threshold), Y[rows].nnz)

    def _score_on_holdout(
        self, X: Matrix, Y: csr_matrix, k: int, rng: Generator, **side: Any
    ) -> HeldOutScores:
        """Fit a clone on a part of the rows and score the others. A method may know a cheaper way."""
        rows = self._trainable_rows(Y, **side)
        train, held = (rows[some] for some in HoldOut.random(len(rows), rng))
        probe, own_X, own_Y = self._probe(), arrays.take_rows(X, train), Y[train]
        probe._start_as(own_X, own_Y)
        probe._fit(own_X, own_Y, rng, **self.side_rows(side, train))
        return HeldOutScores(held, *probe.predict_topk(X[held], k))

    def _probe(self) -> Self:
        """An unfitted clone whose threshold needs no rows."""
        probe = clone(self).with_engine(self.engine)
        probe.threshold = 0.0  # not by `set_params`: the `__init__` of a user's class may not take it
        return probe

    def _start_as(self, X: Matrix, Y: csr_matrix) -> None:
        """Take over the columns of another estimator, to learn from some of its rows."""
        self.n_features_in_, self.sparse_rows_ = X.shape[1], issparse(X)
        self.names_, self.columns_ = None, UsedColumns(None, None)
        self.column_counts_ = np.bincount(Y.indices, minlength=Y.shape[1])
        self.n_samples_fit_, self.n_labels_ = Y.shape


def generator(random_state: Any) -> Generator:
    """A random generator by the parameter `random_state`."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31 - 1)
    return np.random.default_rng(random_state)


_TRUSTED: ContextVar[frozenset[str]] = ContextVar("trusted", default=frozenset())


def engine_of(device: str) -> kernels.Engine:
    """The engine of a device; a `DataError` says what it needs."""
    params.check("exmlds", {"device": device}, {"device": params.DEVICE})
    try:
        return kernels.engine_of(device)
    except (ImportError, RuntimeError) as error:  # a package, a driver or a card is missing
        raise DataError(str(error)) from None


def load(
    path: PathLike, *, trusted: Sequence[str] = (), writable: bool = False, device: str = "cpu"
) -> XMCPredictor:
    """Load a model that `save` wrote, as the class that it was, with all changes since then.

    Parameters
    ----------
    trusted : import names, such as "module:Class", of the encoders of a `TextClassifier` that may be imported
        and run; without them, `load` runs no code that a model folder names
    writable : whether changes of the model are written to the folder before the call that makes them returns.
        One process at a time may do so, until `close`, the end of a `with` block or of the process; another
        one waits for a limited time and gets a `ModelError`. Readers need not wait
    device : "cpu" or "cuda", where it predicts, whatever it was fitted on
    """
    if isinstance(trusted, str) or not all(isinstance(name, str) for name in trusted):
        raise ValueError(
            f'trusted must be a list of names, such as ["module:Class"]. Got {trusted!r} instead.'
        )
    engine_of(device)  # complains where there is none, before the folder is opened
    model = load_with_journal(path, trusted=trusted, writable=writable)[0]
    if device != "cpu":
        try:
            model._use_device(device)
        except BaseException:
            model.close()
            raise
    return model


def load_with_journal(
    path: PathLike, *, trusted: Sequence[str] = (), writable: bool = False
) -> tuple[XMCPredictor, Contents]:
    """The model of a folder with its changes, as `load` gives it, and the journal that these are from."""
    if not writable:
        return _read_model(path, trusted)
    journal = model_folder.open_for_writing(path)
    try:
        model, contents = _read_model(path, trusted)
        model._journal, model._position = journal, journal.start(contents)
        return model, contents
    except BaseException:
        journal.close()
        raise


def _read_model(path: PathLike, trusted: Sequence[str]) -> tuple[XMCPredictor, Contents]:
    for _ in range(model_folder.MOST_TRIES):
        found = model_folder.load_with_journal(path)
        try:
            return _restored_model(path, found, trusted)
        except ModelError:
            # Models within it are read after it: they are gone where another process has replaced it.
            if model_folder.generation_of(model_folder.read_manifest(path)) == model_folder.generation_of(
                found.manifest
            ):
                raise
    raise ModelError(f"{path} is being rewritten continually; try again.")


def _restored_model(
    path: PathLike, found: model_folder.Stored, trusted: Sequence[str]
) -> tuple[XMCPredictor, Contents]:
    manifest, state, journal = found
    if not state:
        raise ModelError(f"{path} is not a fitted model.")
    if journal.n_torn:
        warnings.warn(
            f"{journal.path}: the last {journal.n_torn:,} bytes are an incomplete change, and left out. A "
            "process that was stopped leaves one that was never acknowledged.",
            DataWarning,
            stacklevel=5,
        )
    token = _TRUSTED.set(frozenset(trusted))
    try:
        model = restored(manifest.get("class"), manifest.get("parameters"), state, path)
        model._replay(journal)
    finally:
        _TRUSTED.reset(token)
    return model, journal


def load_inner(inner: InnerModel) -> XMCPredictor:
    """Load a model that another one consists of."""
    assert inner.folder is not None
    inner.check()
    return _read_model(inner.folder, tuple(_TRUSTED.get()))[0]


def trusted_names() -> frozenset[str]:
    """The import names that the `load` under way may import."""
    return _TRUSTED.get()


def restored(name: Any, parameters: Any, state: Any, path: PathLike) -> XMCPredictor:
    """A method by its name, with parameters and what it learnt; path : named in errors."""
    if not isinstance(name, str) or not isinstance(parameters, dict) or not isinstance(state, dict):
        raise ModelError(f"{path} is damaged: its manifest does not describe an estimator.")
    learnt = records.to_attributes(state)
    strange = [attribute for attribute in learnt if not records.is_learnt(attribute)]
    if strange:
        raise ModelError(f"{path} is damaged: {strange[0]!r} is not what an estimator learns.")
    method = find_method(name)
    if method is None:
        module, _, own = name.partition(":")
        raise ModelError(
            f"{path} is a {own}, whose module is not imported: import {module} first (--method {name} on the "
            f"command line), or install it with an entry point in the group {METHODS!r}."
            if own
            else f"{path} is a {name}, which this version of exmlds does not have."
        )
    with tree.explained(path):
        try:
            model = method.from_plain(parameters)
        except (TypeError, KeyError) as error:
            raise ModelError(f"{path} has parameters that {name} does not take: {error}.") from None
        model._check_parameters()
        for attribute, value in learnt.items():
            if isinstance(getattr(method, attribute, None), property):
                continue  # folders of earlier versions hold what is derived now
            setattr(model, attribute, restored(*value, path) if isinstance(value, Fitted) else value)
        if learnt:
            model._restore()
            model._check_learnt()
        return model


def class_reference(method: type[XMCPredictor]) -> str:
    """What a manifest calls a class: its name, with its module where it is not of this package."""
    return method.__name__ if is_ours(method) else f"{method.__module__}:{method.__qualname__}"


def is_ours(definition: type[Any] | Callable[..., Any]) -> bool:
    """Whether a class or a function is defined in this package; code run by `exec` may have no module."""
    return (definition.__module__ or "").partition(".")[0] == __package__


def find_method(name: str) -> type[XMCPredictor] | None:
    """A concrete estimator by its reference; entry points are loaded where nothing else has that name."""
    found = imported_methods()
    if name not in found:
        own_methods()
        found = imported_methods()
    return found.get(name)


def imported_methods() -> dict[str, type[XMCPredictor]]:
    """Every concrete estimator by its reference: the package's, and those that are imported."""
    package = import_module(__package__)
    for name in package.__all__:
        getattr(package, name)
    found: dict[str, type[XMCPredictor]] = {}
    todo: list[Any] = [XMCPredictor]
    while todo:
        for method in todo.pop().__subclasses__():
            todo.append(method)
            if not getattr(method, "__abstractmethods__", None):
                found.setdefault(class_reference(method), method)
    return found


def own_methods() -> dict[str, type[XMCEstimator]]:
    """The estimators of entry points by their names; one that can't be loaded is left out with a warning."""
    found = {}
    for entry in entry_points(group=METHODS):
        try:
            method = entry.load()
        except Exception as error:
            warnings.warn(f"The method {entry.name!r} can't be loaded: {error!r}.", DataWarning, stacklevel=2)
            continue
        if isinstance(method, type) and issubclass(method, XMCEstimator):
            found[entry.name] = method
    return found
