"""Model selection on held-out rows: splits, hidden labels, cross-fitting, candidates and thresholds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import clone

from . import kernels

Array = np.ndarray
Seed = int | None | np.random.Generator
Candidate = TypeVar("Candidate")


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
    kernels.split_by_labels(Y.indptr, Y.indices, order, frequency, n_held / n, held_out)
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
    """Hide a fraction of the labels at random: one uniform draw per entry, in csr order."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"The 'fraction' parameter must be in [0, 1]. Got {fraction} instead.")
    visible = csr_matrix(Y, copy=True)
    visible.sum_duplicates()
    visible.data[np.random.default_rng(random_state).random(visible.nnz) < fraction] = 0
    visible.eliminate_zeros()
    return visible


def cross_predict(
    estimator: Any,
    X: Any,
    Y: csr_matrix,
    k: int,
    *,
    n_folds: int = 5,
    random_state: Seed = None,
    **side: Any,
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
