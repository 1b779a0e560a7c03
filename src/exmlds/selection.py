"""Model selection on held-out rows: splits, hidden labels, cross-fitting, candidates and thresholds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix, issparse
from sklearn.base import clone

from . import kernels
from .validation.arrays import Matrix, take_rows

Array = np.ndarray
Seed = int | None | np.random.Generator
Candidate = TypeVar("Candidate")

MAX_HELD_OUT = 3_000  # rows of one hold-out
FEW_HELD_OUT = 2_000  # rows below which a hold-out is repeated on other folds


def random_split(n: int, share: float = 0.2, *, random_state: Seed = None) -> tuple[Array, Array]:
    """Ascending row ids to train on and to hold out; `share` of the n rows are held out.

    >>> train, held_out = random_split(10, 0.2, random_state=0)
    >>> len(train), len(held_out)
    (8, 2)
    """
    n_held = _n_held(n, share)
    held_out = np.zeros(n, bool)
    held_out[np.random.default_rng(random_state).permutation(n)[:n_held]] = True
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def label_split(Y: csr_matrix, share: float = 0.2, *, random_state: Seed = None) -> tuple[Array, Array]:
    """As `random_split`, but stratified: about the same share of the rows of every label is held out.

    A label with two rows or more keeps at least one to train on. The split is one pass over the rows; a
    million rows take about a second.
    """
    Y = csr_matrix(Y, copy=True)
    Y.sum_duplicates()
    Y.eliminate_zeros()
    n = Y.shape[0]
    n_held = _n_held(n, share)
    order = np.random.default_rng(random_state).permutation(n)
    frequency = np.bincount(Y.indices, minlength=Y.shape[1])
    held_out = np.zeros(n, np.uint8)
    kernels.DEFAULT.split_by_labels(Y.indptr, Y.indices, order, frequency, n_held / n, held_out)
    # The pass ends near n_held rows; rows are released or added in its order until the number is exact.
    for row in order[held_out[order] == 1][: max(0, int(held_out.sum()) - n_held)]:
        held_out[row] = 0
    missing = n_held - int(held_out.sum())
    if missing > 0:
        kept = frequency - np.bincount(Y[np.flatnonzero(held_out)].indices, minlength=Y.shape[1])
        for row in order[held_out[order] == 0]:
            labels = Y.indices[Y.indptr[row] : Y.indptr[row + 1]]
            if ((kept[labels] == 1) & (frequency[labels] > 1)).any():
                continue
            held_out[row] = 1
            kept[labels] -= 1
            missing -= 1
            if not missing:
                break
    return np.flatnonzero(held_out == 0), np.flatnonzero(held_out)


def _n_held(n: int, share: float) -> int:
    if not 0 < share < 1:
        raise ValueError(f"The 'share' parameter must be between 0 and 1. Got {share} instead.")
    if not isinstance(n, Integral):
        raise TypeError(f"Give the number of rows to split. Got {type(n).__name__} instead.")
    if n < 2:
        raise ValueError(f"A split needs at least 2 rows. Got {n} instead.")
    return min(max(round(n * share), 1), n - 1)


def folds(n: int, n_folds: int = 5, *, random_state: Seed = None) -> Iterator[tuple[Array, Array]]:
    """Yield (row ids to train on, row ids held out); every row is held out once."""
    if not 2 <= n_folds <= n:
        raise ValueError(f"The 'n_folds' parameter must be from 2 to the {n} rows. Got {n_folds} instead.")
    fold_of = np.random.default_rng(random_state).permutation(n) % n_folds
    for fold in range(n_folds):
        yield np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)


def hide_labels(Y: csr_matrix, fraction: float, *, random_state: Seed = None) -> csr_matrix:
    """Hide about this fraction of the labels: each is hidden with this probability, independently.

    Y : (n, L) sparse or dense matrix; there is one uniform draw per entry, in csr order
    """
    if not issparse(Y) and not (isinstance(Y, np.ndarray) and Y.ndim == 2):
        raise ValueError(
            f"Y must be an (n, L) matrix of labels. Got {type(Y).__name__} instead; MultiLabelBinarizer of "
            "scikit-learn turns lists of labels into one."
        )
    if not 0 <= fraction <= 1:
        raise ValueError(f"The 'fraction' parameter must be in [0, 1]. Got {fraction} instead.")
    visible = csr_matrix(Y, copy=True)
    visible.sum_duplicates()
    visible.data[np.random.default_rng(random_state).random(visible.nnz) < fraction] = 0
    visible.eliminate_zeros()
    return visible


def cross_predict(
    estimator: Any, X: Any, Y: csr_matrix, k: int, *, n_folds: int = 5, random_state: Seed = None, **side: Any
) -> tuple[Array, Array]:
    """Cross-fitting: (n, k) ids and scores of every row, predicted by a clone that was not trained on it.

    side : further arguments of `fit`; those with one entry per row are cut to the rows of each clone
    """
    ids, scores = np.full((X.shape[0], k), -1, np.int64), np.zeros((X.shape[0], k), np.float32)
    for train, held_out in folds(X.shape[0], n_folds, random_state=random_state):
        own = estimator.side_rows(side, train) if side else {}
        fitted = clone(estimator).fit(X[train], Y[train], **own)
        ids[held_out], scores[held_out] = fitted.predict_topk(X[held_out], k)
    return ids, scores


class Choice(NamedTuple):
    """The best candidate, its position in the list, and the held-out scores of all candidates."""

    best: Any
    position: int
    scores: list[float]


def choose(candidates: Sequence[Candidate], score: Callable[[Candidate], float]) -> Choice:
    """The candidate with the highest score; ties go to the first, so list the simplest first.

    >>> choose([1, 2, 3], lambda x: -abs(x - 2)).best
    2
    """
    if not candidates:
        raise ValueError("There are no candidates to choose among.")
    scores = [float(score(candidate)) for candidate in candidates]
    if np.isnan(scores).all():
        raise ValueError("No candidate could be scored: all scores are NaN.")
    position = int(np.nanargmax(scores))
    return Choice(candidates[position], position, scores)


def choose_estimator(
    candidates: Sequence[Any],
    X: Any,
    Y: csr_matrix,
    *,
    share: float = 0.2,
    scoring: Callable[[Any, Any, Any], float] | None = None,
    random_state: Seed = None,
    **side: Any,
) -> Choice:
    """Choose the estimator with the best score on held-out rows; it is returned unfitted.

    scoring : called with (fitted estimator, X, Y); P@1 by default
    side : further arguments of `fit`; those with one entry per row are cut to the training rows
    """
    train, held_out = random_split(X.shape[0], share, random_state=random_state)

    def held_out_score(candidate: Any) -> float:
        own = candidate.side_rows(side, train) if side else {}
        fitted = clone(candidate).fit(X[train], Y[train], **own)
        rest = X[held_out], Y[held_out]
        return scoring(fitted, *rest) if scoring else fitted.score(*rest)

    return choose(candidates, held_out_score)


def best_threshold(hits: Array, scores: Array, n_true: int) -> float:
    """The threshold with the best micro-F1, midway between the two adjacent scores.

    hits, scores : (m,) bool and float, whether each prediction is true, and its score
    n_true : number of true labels, predicted or not
    """
    if not len(scores) or not hits.any():
        return 0.5
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order].astype(np.float64)
    found = np.cumsum(hits[order].astype(np.float64))
    f1 = 2 * found / (np.arange(1, len(ranked) + 1) + n_true)
    last_of_equals = np.append(ranked[:-1] > ranked[1:], True)
    best = int(np.argmax(np.where(last_of_equals, f1, -1)))
    below = ranked[best + 1] if best + 1 < len(ranked) else 0.0
    return float((ranked[best] + below) / 2)


def threshold_for_precision(hits: Array, scores: Array, precision: float) -> float:
    """The lowest threshold with at least this precision; just above the largest score where there is none.

    hits, scores : (m,) bool and float, whether each prediction is true, and its score
    """
    if not len(scores):
        return 1.0
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order].astype(np.float64)
    shares = np.cumsum(hits[order], dtype=np.float64) / np.arange(1, len(ranked) + 1)
    last_of_equals = np.append(ranked[:-1] > ranked[1:], True)
    reached = np.flatnonzero(last_of_equals & (shares >= precision))
    return float(ranked[reached[-1]]) if reached.size else float(np.nextafter(np.float32(ranked[0]), np.inf))


class TuneTrial(NamedTuple):
    """One evaluated setting: the parameters that differ from the start, their value, and the time taken."""

    parameters: dict[str, Any]
    value: float
    seconds: float


def tune(
    value_of: Callable[[dict[str, Any]], float],
    space: Mapping[str, Sequence[Any]],
    seconds: float,
    *,
    start: Mapping[str, Any] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[TuneTrial]:
    """Coordinate search: vary one parameter at a time, keep what improves the value, and yield every trial.

    The search ends after a round without improvement, or when the next trial would likely exceed `seconds`.

    value_of : returns the value, higher is better, of the parameters that differ from `start`
    space : the values to try of each parameter
    start : the initial values of parameters, where they are known; they are not tried again
    """
    started = clock()
    tried: set[str] = set()
    best: dict[str, Any] = {}

    def key(parameters: dict[str, Any]) -> str:
        return repr(sorted({**(start or {}), **parameters}.items()))

    def trial(parameters: dict[str, Any]) -> TuneTrial:
        before = clock()
        value = value_of(parameters)
        tried.add(key(parameters))
        return TuneTrial(parameters, value, clock() - before)

    last = trial(best)
    highest, longest = last.value, last.seconds
    yield last
    improved = True
    while improved:
        improved = False
        for name, values in space.items():
            for value in values:
                parameters = {**best, name: value}
                if key(parameters) in tried:
                    continue
                if clock() - started + longest > seconds:
                    return
                last = trial(parameters)
                longest = max(longest, last.seconds)
                yield last
                if last.value > highest:
                    best, highest, improved = parameters, last.value, True


class TrainingSet(NamedTuple):
    """Rows to learn from, their labels, and what else `fit` was given.

    side : arguments of `fit` beside X and Y, by name
    by_row : which of them have a line for each row
    fraction : share of all training rows in this subset
    """

    X: Matrix
    Y: csr_matrix
    side: Mapping[str, Any]
    by_row: Mapping[str, bool]
    fraction: float = 1.0

    @property
    def n(self) -> int:
        return self.Y.shape[0]

    @property
    def row_weights(self) -> Array | None:
        """(n,) sample weights, or None where all rows count the same."""
        return self.side.get("sample_weight")

    @property
    def observed(self) -> csr_matrix | None:
        """(n, L) the cells of Y that are known, or None where all are."""
        return self.side.get("observed")

    @property
    def name_matches(self) -> csr_matrix | None:
        """(n, L) scores of labels whose names stand in the texts, or None where names are not used."""
        return self.side.get("name_matches")

    @property
    def label_rows(self) -> Matrix | None:
        """(L, d) features that describe each label, or None."""
        return self.side.get("label_rows")

    def label_counts(self) -> Array:
        """(L,) float32 rows of each label, scaled up to all training rows where this is a subset."""
        return (np.bincount(self.Y.indices, minlength=self.Y.shape[1]) / self.fraction).astype(np.float32)

    def subset(self, rows: Array) -> TrainingSet:
        """Some of the rows, with their part of what `fit` was given."""
        side = rows_of_side(self.side, self.by_row, rows)
        return TrainingSet(take_rows(self.X, rows), take_rows(self.Y, rows), side, self.by_row)


def rows_of_side(side: Mapping[str, Any], by_row: Mapping[str, bool], rows: Array) -> dict[str, Any]:
    """The arguments of `fit` for some of the rows; what has no line for each row stays whole."""
    return {
        name: _take_rows(value, rows) if by_row[name] and value is not None else value
        for name, value in side.items()
    }


def _take_rows(value: Any, rows: Array) -> Any:
    value = value if issparse(value) else np.asarray(value)
    return value[rows] if value.ndim == 1 else csr_matrix(value)[rows]


class HoldOut(NamedTuple):
    """A split of rows 0…n−1 on which thresholds, settings and stackers are chosen.

    train_rows, held_rows : numbers of the rows to train on and of those held out
    """

    train_rows: Array
    held_rows: Array

    @classmethod
    def random(cls, n: int, rng: Generator) -> HoldOut:
        """Hold out a random fifth of the rows, at most `MAX_HELD_OUT`."""
        return cls(*random_split(n, min(0.2, MAX_HELD_OUT / n), random_state=rng))

    @classmethod
    def of(cls, n: int, held_rows: Array) -> HoldOut:
        """Hold out these rows of n."""
        return cls(np.setdiff1d(np.arange(n), held_rows), held_rows)

    @classmethod
    def folds(cls, n: int, rng: Generator, least: int = 1, most: int = 5) -> list[HoldOut]:
        """Disjoint splits, each as large as `random`; several where one would hold out few rows."""
        size = max(1, min(n // 5, MAX_HELD_OUT))
        order = rng.permutation(n)
        n_folds = min(most, max(least, round(FEW_HELD_OUT / size)))
        return [cls.of(n, order[i * size : (i + 1) * size]) for i in range(n_folds)]

    def split(self, rows: TrainingSet) -> tuple[TrainingSet, TrainingSet]:
        """The training rows, which know what fraction of all they are, and the held-out rows."""
        train = rows.subset(self.train_rows)
        return train._replace(fraction=len(self.train_rows) / rows.n), rows.subset(self.held_rows)


class HeldOutScores(NamedTuple):
    """Predictions for held-out rows by a model that has not seen them.

    rows : (h,) their numbers among all rows;  ids, scores : (h, k) labels, best first, −1 pads, and scores
    """

    rows: Array
    ids: Array
    scores: Array
