"""The search for the configuration of a re-ranking model: shortlister, features, cost and list length.

Everything is chosen on held-out rows of a sample of the training rows.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.random import Generator

from ..runtime import parallel
from ..runtime.logs import logger
from ..runtime.memory import DataSize, Estimate
from ..selection import MAX_HELD_OUT, HoldOut, TrainingSet
from ..stages import features
from ..validation.arrays import FILLED, Matrix
from ..validation.observed import contains
from ..voting.base import NeighborVoting
from ..voting.settings_search import mean_precision
from .effort import Effort
from .pipeline import (
    MAX_LIFT_LABELS,
    Config,
    fit_reranker,
    fit_shortlister,
    training_examples,
    without_classifiers,
)
from .stack import STACKER_PAIRS, stacked_quality

Array = np.ndarray
Prepared = TypeVar("Prepared")

# Feature scalings to choose among where values are counts, for other sparse rows, and for dense rows.
COUNTS, SPARSE, DENSE = ("l2", "log1p-l2", "idf-l2"), ("l2", "sqrt-l2"), ("l2", "standardize")
SEARCH_TRAIN_ROWS, SEARCH_HELD_ROWS = 2_100, 1_500  # rows of the search's sample, at most
FEW_LABELS = 128  # labels up to which all of them are on the short list
TEMPERATURE_ROWS = 1_500  # held-out rows that a temperature is chosen on
TEMPERATURES = (0.05, 0.1, 0.03, 0.02)
MIN_RECALL_GAIN = 0.01  # share of true labels that longer lists must hold more
SEARCH_SHARE = 0.2  # of a time budget
MIN_GAIN = 0.005  # on held-out rows, for which learners are added or costs are higher


class TimeBudget:
    """The seconds that a fit may take, if a budget was given."""

    def __init__(self, seconds: float | None) -> None:
        self.started, self.seconds = time.perf_counter(), seconds

    def spent(self) -> float:
        return time.perf_counter() - self.started

    def allows(self, seconds: float) -> bool:
        return self.seconds is None or self.spent() + seconds < self.seconds

    def allows_search(self) -> bool:
        """Whether more configurations may be tried."""
        return self.seconds is None or self.spent() < SEARCH_SHARE * self.seconds


class SearchTrial(NamedTuple):
    """What was tried, and the mean of P@1, P@3 and P@5 that it had on held-out rows."""

    step: str
    params: dict[str, Any]
    score: float
    seconds: float


class Candidate(NamedTuple):
    """A shortlister, unfitted and as fitted to the search's sample, and the quality of its votes there."""

    method: NeighborVoting
    fitted: NeighborVoting
    quality: float


class ConfigSearch(NamedTuple):
    """The parameters of `ExMLDS` that its configuration depends on.

    make_shortlister : gives an unfitted voting method by its name ("joint", "sppmi" or "missing"), its kind
        of features and its epochs
    first_method : the name of the shortlister that is tried first
    is_open : whether "sppmi" may be tried beside "joint"
    effort : what is chosen among
    """

    make_shortlister: Callable[[str, str, int], NeighborVoting]
    first_method: str
    is_open: bool
    shortlist: str | int
    loss: str
    cost: str | float
    effort: Effort

    def search(
        self,
        rows: TrainingSet,
        rng: Generator,
        budget: TimeBudget,
        prepare: Callable[[NeighborVoting], Prepared],
    ) -> tuple[Config, list[SearchTrial], Prepared]:
        """Choose on held-out rows of a sample, as much as time allows; returns also what was tried.

        prepare : is called with the chosen shortlister, beside what does not depend on it; its result is the
            last one returned
        """
        trials: list[SearchTrial] = []
        if not self.effort.is_searched:
            config = self._usual(rows)
            return config, trials, prepare(config.shortlister)
        train, held = _sample(rows, rng)
        first, second = self._choose_shortlisters(train, held, rows.n, rng, budget, trials)

        def choose_rest() -> Config:
            if self.loss == "none":
                return self._config(first.method, None, self._lengths(held.Y.shape[1])[0], "l2")
            return self._choose_reranker(train, held, first, rng, budget, trials)

        # Both need half of the cores, or less: the threads of joint learning wait for each other.
        config, prepared = parallel.beside(
            choose_rest,
            lambda: prepare(first.method),
            n_jobs=first.fitted.n_jobs if budget.seconds is None else 1,
            shares=(2, 2),
        )
        config = config._replace(second=second, has_centroids=self.effort.has_centroids)
        logger.debug("configuration: %s", config)
        return config, trials, prepared

    def _usual(self, rows: TrainingSet) -> Config:
        """The configuration that nothing was chosen for."""
        is_dense = features.fits("nystroem", rows.X)
        kind = DENSE[-1] if is_dense else default_scaling(rows.X)
        method = self.make_shortlister(self.first_method, kind, self._n_epochs(is_dense))
        return self._config(method, None, self._lengths(rows.Y.shape[1])[0], kind)

    def _config(
        self, method: NeighborVoting, second: NeighborVoting | None, length: int, kind: str
    ) -> Config:
        effort, cost = self.effort, self.effort.costs[0] if self.cost == "auto" else float(self.cost)
        passes = effort.n_passes, effort.n_more_passes
        return Config(method, second, length, kind, self.loss, cost, passes, effort.has_centroids)

    def _n_epochs(self, is_dense: bool) -> int:
        return self.effort.n_dense_epochs if is_dense else self.effort.n_epochs

    def _choose_shortlisters(
        self,
        train: TrainingSet,
        held: TrainingSet,
        n: int,
        rng: Generator,
        budget: TimeBudget,
        trials: list[SearchTrial],
    ) -> tuple[Candidate, NeighborVoting | None]:
        """The best shortlister by votes alone; and where rows are few, another one, whose votes are evidence.

        n : number of all training rows
        """
        is_dense, is_joint = features.fits("nystroem", train.X), self.first_method == "joint"
        if is_joint:
            kinds = list(DENSE) if is_dense else [default_scaling(train.X)]
        else:
            kinds = ["nystroem"] if is_dense else candidate_scalings(train.X)
        n_epochs = self._n_epochs(is_dense)

        def best_of(name: str, kinds: list[str]) -> Candidate:
            tried: list[Candidate] = []
            for kind in kinds:
                if tried and not budget.allows_search():
                    break
                started, method = budget.spent(), self.make_shortlister(name, kind, n_epochs)
                fitted = fit_shortlister(method, train, copy.deepcopy(rng))
                fitted, quality = tune_temperature(fitted, held)
                tried.append(Candidate(method, fitted, quality))
                chosen = {"candidates": name, "features": kind, "temperature": fitted.temperature_}
                trials.append(SearchTrial("shortlister", chosen, quality, budget.spent() - started))
            return max(tried, key=lambda candidate: candidate.quality)

        best = best_of(self.first_method, kinds)
        # Joint learning improves with more rows than the sample has, and needs no second shortlister then.
        if not is_joint or not self.is_open or n > self.effort.second_rows or not budget.allows_search():
            return best, None
        rival = best_of("sppmi", ["nystroem" if is_dense else "l2"])
        return (rival, best.method) if rival.quality > best.quality else (best, rival.method)

    def _choose_reranker(
        self,
        train: TrainingSet,
        held: TrainingSet,
        candidate: Candidate,
        rng: Generator,
        budget: TimeBudget,
        trials: list[SearchTrial],
    ) -> Config:
        """Features first, then lower costs while they are no worse, then lists that miss few labels.

        The more rows there are, the lower the best cost is, and the sample has few.
        """
        lengths = self._lengths(held.Y.shape[1])
        # Centroids are of use to all configurations alike, so the search leaves them out.
        config = self._config(candidate.method, None, lengths[0], "l2")._replace(has_centroids=False)
        # All configurations have the same short lists, of the training rows and of the others.
        examples = training_examples(candidate.fitted, train, lengths[0])
        listed = without_classifiers(config, candidate.fitted, None, train).score_in_blocks(held)

        def trial(config: Config) -> SearchTrial:
            started = budget.spent()
            pipeline, _ = fit_reranker(
                config, candidate.fitted, None, train, copy.deepcopy(rng), examples=examples
            )
            scores = pipeline.score_in_blocks(held, listed)
            score = stacked_quality(scores, held, candidate.fitted.n_jobs)
            chosen = {"features": config.features, "cost": config.cost, "shortlist": config.shortlist}
            return SearchTrial("re-ranker", chosen, score, budget.spent() - started)

        def qualities(configs: list[Config]) -> list[float]:
            """The quality of each, at the same time, or one after the other while a budget lasts."""
            found: list[SearchTrial] = []
            for one in parallel.map_blocks(
                lambda which: trial(configs[which.start]),
                parallel.blocks(len(configs), 1),
                n_jobs=candidate.fitted.n_jobs if budget.seconds is None else 1,
                stage="configurations",
                total=len(configs),
                unit="configurations",
            ):
                found.append(one)
                if not budget.allows_search():
                    break
            trials.extend(found)
            return [one.score for one in found]

        costs = self.effort.costs[1:] if self.cost == "auto" else ()
        configs = [config._replace(features=kind) for kind in candidate_scalings(train.X)]
        scores = qualities(configs) if len(configs) > 1 or costs else [0.0]
        score, best = max(scores), configs[int(np.argmax(scores))]
        for cost in costs:
            if not budget.allows_search():
                break
            lower = best._replace(cost=cost)
            lower_score = qualities([lower])[0]
            if lower_score < score - MIN_GAIN:
                break
            score, best = lower_score, lower
        if len(lengths) == 1 or not budget.allows_search():
            return best
        return best._replace(
            shortlist=shortest_sufficient(lengths, _recalls(candidate.fitted, held, lengths[-1]))
        )

    def _lengths(self, n_labels: int) -> list[int]:
        """Lengths of short lists to choose among."""
        if self.shortlist != "auto":
            return [min(int(self.shortlist), n_labels)]
        return [n_labels] if n_labels <= FEW_LABELS else [min(k, n_labels) for k in self.effort.shortlists]

    def estimate(self, data: DataSize) -> Estimate:
        """What the shortlisters take, and the classifiers with their examples."""
        names = ["joint", "sppmi"] if self.is_open else [self.first_method]
        kind = "nystroem" if data.nnz > FILLED * data.n * data.d else "l2"
        methods = [self.make_shortlister(name, kind if name == "sppmi" else "l2", 1) for name in names]
        fitted = methods if data.n <= self.effort.second_rows else methods[:1]
        parts = [method.estimate(*data) for method in fitted]
        size = sum(part.size for part in parts)
        # The pipeline of the last fold is there while the next one is fitted, one method after the other.
        fitting = max(part.memory for part in parts) + 2 * size
        if self.loss == "none":
            return Estimate(fitting, size)
        listed, pairs = self._n_listed(data), self.n_examples(data)
        weights = min(float(data.n_labels) * data.d, pairs * data.nnz / data.n) / 4
        lifts = data.n_labels**2 if data.n_labels <= MAX_LIFT_LABELS else 0
        values = min(float(data.n_labels) * data.d, data.nnz_labels * data.nnz / data.n)
        centroids = values if self.effort.has_centroids else 0.0
        # The evidence on a held-out pair has some twenty numbers; the stacker has them in double precision.
        held = min(data.n, MAX_HELD_OUT) * listed
        stacking = 320.0 * held + 320.0 * min(held, STACKER_PAIRS)
        # A pair is on a list (4 bytes), and an example of the last fold and of the refit (9 each).
        reranking = 40.0 * pairs + 15.0 * weights + 16.0 * lifts + 30.0 * centroids
        saved = size + 5.0 * (weights + centroids) + 2.0 * lifts
        return Estimate(fitting + max(stacking, reranking), saved)

    def n_examples(self, data: DataSize) -> float:
        """Examples of all classifiers, at most."""
        return data.n * self._n_listed(data) + data.nnz_labels

    def _n_listed(self, data: DataSize) -> int:
        longest = self.effort.shortlists[-1] if self.shortlist == "auto" else int(self.shortlist)
        return min(longest, data.n_labels)


def _sample(rows: TrainingSet, rng: Generator) -> tuple[TrainingSet, TrainingSet]:
    """Rows to train configurations on, and rows to compare them on."""
    n_held = min(SEARCH_HELD_ROWS, max(round(0.3 * rows.n), 1))
    sample = rng.permutation(rows.n)[: n_held + SEARCH_TRAIN_ROWS]
    return HoldOut.of(len(sample), np.arange(n_held)).split(rows.subset(sample))


def candidate_scalings(X: Matrix) -> list[str]:
    """The kinds of features to choose among."""
    if features.fits("nystroem", X):
        return list(DENSE)
    kinds = COUNTS if features.are_counts(X) else SPARSE
    return [kind for kind in kinds if features.fits(kind, X)]


def default_scaling(X: Matrix) -> str:
    """The kind of features for joint learning on sparse rows: logarithms or roots where values differ."""
    kind = "log1p-l2" if features.are_counts(X) else "sqrt-l2"
    return kind if features.fits(kind, X) else "l2"


def tune_temperature(fitted: NeighborVoting, held: TrainingSet) -> tuple[NeighborVoting, float]:
    """The fitted method with the temperature that is best on held-out rows, and the quality of its votes.

    The best temperature depends on the number of rows, so it is chosen again when there are more.
    """
    is_tuned = fitted.temperature == "auto"
    temperatures = (fitted.temperature_,) if is_tuned else TEMPERATURES
    ranked = fitted.rank_at(held.X[:TEMPERATURE_ROWS], temperatures, min(5, fitted.n_labels_))
    qualities = [mean_precision(held.Y[:TEMPERATURE_ROWS], ids) for ids in ranked]
    return fitted.with_temperature(temperatures[int(np.argmax(qualities))]), max(qualities)


def shortest_sufficient(lengths: list[int], recalls: Array) -> int:
    """The first length after which the next one gains little recall; recalls : (k,) of each length."""
    for length, longer in pairwise(lengths):
        if recalls[longer - 1] < recalls[length - 1] + MIN_RECALL_GAIN:
            return length
    return lengths[-1]


def _recalls(fitted: NeighborVoting, held: TrainingSet, k: int) -> Array:
    """(k,) share of the true labels of held-out rows that short lists of each length hold.

    Labels without a vote are not counted, even where lists hold all labels: on Bibtex they gained nothing.
    """
    ids, _ = fitted.predict_topk(held.X, k)
    return np.cumsum(contains(held.Y, ids).sum(axis=0)) / max(held.Y.nnz, 1)
