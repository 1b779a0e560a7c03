"""What `ExMLDS` is to fit: method, features, costs and length of lists, chosen on held-out rows."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..base import XMCEstimator
from ..models.exmlds3 import ExMLDS3
from ..models.exmlds4 import ExMLDS4
from ..runtime.memory import DataSize, Estimate
from ..stages import features
from ..validation.arrays import Matrix
from ..validation.observed import contains
from ..voting.base import NeighborVoting
from ..voting.settings_search import mean_precision
from . import pipeline
from .pipeline import Config, TrainingSet

Array = np.ndarray

COUNTS = ("l2", "log1p-l2", "idf-l2")  # features to choose among, where numbers are counts;
SPARSE, DENSE = ("l2", "sqrt-l2"), ("l2", "standardize")  # others, of sparse rows; and of dense ones
SEARCH_TRAIN_ROWS, SEARCH_HELD_ROWS = 2_100, 1_500  # rows that plans are taught by and compared on, at most
FEW_ROWS = 8_000  # so many that joint SPPMI may be better
FEW_LABELS = 128  # so many are all on the short list
TEMPERATURE_ROWS = 1_500  # held-out rows to choose a temperature on
N_NEIGHBORS = 100  # rows that vote: with fewer, many labels have no vote at all
SHORTLISTS = (120, 240)
COSTS = (1.0, 0.3)  # the second where it is no worse
TEMPERATURES = (0.05, 0.1, 0.03, 0.02)
EPOCHS, DENSE_EPOCHS = 3, 10  # of joint learning, of sparse rows and of dense ones
MIN_RECALL_GAIN = 0.01  # share of true labels that longer lists must hold more
PLANNING = 0.2  # share of a time budget
MIN_GAIN = 0.005  # gain on held-out rows for which learners are more, or costs higher


class TimeBudget:
    """The time that a fit may take, if any is said."""

    def __init__(self, budget: float | None) -> None:
        self.started, self.budget = time.perf_counter(), budget

    def spent(self) -> float:
        return time.perf_counter() - self.started

    def allows(self, seconds: float) -> bool:
        return self.budget is None or self.spent() + seconds < self.budget

    def allows_plan(self) -> bool:
        """Whether more may be tried before anything is fitted."""
        return self.budget is None or self.spent() < PLANNING * self.budget


class HoldOut(NamedTuple):
    """Rows that teach, and rows held out, on which plans are compared; taught : (n,) which teach, of all."""

    lesson: TrainingSet
    train_rows: Array
    held: TrainingSet

    @classmethod
    def of(cls, lesson: TrainingSet, held: Array, method: type[XMCEstimator]) -> HoldOut:
        n = lesson.X.shape[0]
        train_rows = np.setdiff1d(np.arange(n), held)
        teaches = lesson.rows(method, train_rows)._replace(share=len(train_rows) / n)
        return cls(teaches, train_rows, lesson.rows(method, held))


class Candidate(NamedTuple):
    """One that proposes labels; as it was fitted to a trial, and the quality of its votes there."""

    voting: NeighborVoting
    fitted: NeighborVoting
    quality: float


class ConfigSearch(NamedTuple):
    """The parameters of `ExMLDS` that a plan depends on."""

    candidates: str
    n_learners: str | int
    shortlist: str | int
    loss: str
    cost: str | float
    complete_labels: str | float
    max_memory: float | str | None
    n_jobs: int | None

    def plan(self, trial: HoldOut, n: int, rng: np.random.Generator, clock: TimeBudget) -> Config:
        """Choose on the held-out rows of a trial, as much as time allows; n : rows that there are in all."""
        first, second = self._chosen_methods(trial, n, rng, clock)
        if self.loss == "none":
            listed = self._lengths(trial.held.Y.shape[1])[0]
            return Config(first.voting, second, listed, "l2", self.loss, COSTS[0])
        return self._chosen_order(trial, first, rng, clock)._replace(second=second)

    def first_method(self, side: Mapping[str, Any]) -> str:
        """The method that is tried before others."""
        if self._tells_of_missing(side):
            if self.candidates == "joint":
                raise ValueError(
                    "candidates='joint' can't use label_cooccurrence, observed or complete_labels; "
                    "leave 'candidates' at 'auto'."
                )
            return "missing"
        return "sppmi" if self.candidates == "sppmi" else "joint"

    def _tells_of_missing(self, side: Mapping[str, Any]) -> bool:
        given = side["label_cooccurrence"] is not None or side["observed"] is not None
        return given or self.complete_labels not in ("auto", 0)

    def voting(self, name: str, kind: str, n_epochs: int = EPOCHS) -> NeighborVoting:
        """A method that proposes labels, on this kind of features."""
        shared: dict[str, Any] = {
            "features": kind,
            "n_neighbors": N_NEIGHBORS,
            "temperature": TEMPERATURES[0],
            "threshold": 0.0,
            "n_jobs": self.n_jobs,
            "max_memory": self.max_memory,
        }
        if name == "joint":
            n_learners = 1 if self.n_learners == "auto" else int(self.n_learners)
            # float16 would take most of the time of a row that is asked about alone.
            return ExMLDS4(n_epochs=n_epochs, n_learners=n_learners, storage="float32", **shared)
        if name == "missing":
            return ExMLDS3(complete_labels=self.complete_labels, **{**shared, "temperature": "auto"})
        return ExMLDS3(n_components=100, l2=1.0, mu=(1.0, 1.0, 10.0), complete_labels=0.0, **shared)

    def _chosen_methods(
        self, trial: HoldOut, n: int, rng: np.random.Generator, clock: TimeBudget
    ) -> tuple[Candidate, NeighborVoting | None]:
        """The best one by votes alone; and where rows are few, another, whose votes count too."""
        X, method = trial.lesson.X, self.first_method(trial.lesson.side)
        is_dense = features.fits("nystroem", X)
        if method == "joint":
            kinds = list(DENSE) if is_dense else [default_scaling(X)]
        else:
            kinds = ["nystroem"] if is_dense else candidate_scalings(X)
        n_epochs = DENSE_EPOCHS if is_dense else EPOCHS
        best = self._best_of(trial, [self.voting(method, kind, n_epochs) for kind in kinds], rng, clock)
        # Joint learning grows better with more rows than the plan is made on, and needs no other then.
        if method != "joint" or self.candidates == "joint" or n > FEW_ROWS or not clock.allows_plan():
            return best, None
        rival = self._best_of(trial, [self.voting("sppmi", "nystroem" if is_dense else "l2")], rng, clock)
        return (rival, best.voting) if rival.quality > best.quality else (best, rival.voting)

    def _best_of(
        self, trial: HoldOut, votings: list[NeighborVoting], rng: np.random.Generator, clock: TimeBudget
    ) -> Candidate:
        tried: list[Candidate] = []
        for voting in votings:
            if tried and not clock.allows_plan():
                break
            fitted = pipeline.fit_shortlister(voting, trial.lesson, copy.deepcopy(rng))
            tried.append(Candidate(voting, fitted, tune_temperature(fitted, trial)))
        return max(tried, key=lambda method: method.quality)

    def _chosen_order(
        self, trial: HoldOut, method: Candidate, rng: np.random.Generator, clock: TimeBudget
    ) -> Config:
        """Features first, then lower costs while they are no worse, then lists that miss few labels.

        The more rows there are, the lower the best cost is, and a trial has few.
        """
        lesson, lengths = trial.lesson, self._lengths(trial.held.Y.shape[1])
        listed = pipeline.shortlists_leave_one_out(method.fitted, lesson.X, lengths[0])

        @cache
        def told(plan: Config) -> float:
            members = pipeline.order(plan, method.fitted, None, lesson, copy.deepcopy(rng), listed)
            return stacked_quality(members.score_in_blocks(trial.held.X), trial.held)

        cost = COSTS[0] if self.cost == "auto" else float(self.cost)
        plan = Config(method.voting, None, lengths[0], "l2", self.loss, cost)
        best, *others = (plan._replace(features=kind) for kind in candidate_scalings(lesson.X))
        for other in others:
            if clock.allows_plan() and told(other) > told(best):
                best = other
        for cost in COSTS[1:] if self.cost == "auto" else ():
            lower = best._replace(cost=cost)
            if not clock.allows_plan() or told(lower) < told(best) - MIN_GAIN:
                break
            best = lower
        if len(lengths) == 1 or not clock.allows_plan():
            return best
        return best._replace(
            shortlist=shortest_sufficient(lengths, _recalls(method.fitted, trial, lengths[-1]))
        )

    def _lengths(self, n_labels: int) -> list[int]:
        """Of short lists, to choose among."""
        if self.shortlist != "auto":
            return [min(int(self.shortlist), n_labels)]
        return [n_labels] if n_labels <= FEW_LABELS else [min(k, n_labels) for k in SHORTLISTS]

    def estimate(self, data: DataSize) -> Estimate:
        """What the method that proposes labels takes, and the classifiers with their examples."""
        names = {"joint": ("joint",), "sppmi": ("sppmi",)}.get(self.candidates, ("joint", "sppmi"))
        kind = "nystroem" if data.nnz > features.FILLED * data.n * data.d else "l2"
        votings = [self.voting(name, kind if name == "sppmi" else "l2") for name in names]
        asked = votings if data.n <= FEW_ROWS else votings[:1]
        voting = Estimate(*map(sum, zip(*(voting.estimate(*data) for voting in asked))))
        if self.loss == "none":
            return voting
        listed = SHORTLISTS[-1] if self.shortlist == "auto" else int(self.shortlist)
        pairs = data.n * min(listed, data.n_labels) + data.nnz_labels
        weights = min(float(data.n_labels) * data.d, pairs * data.nnz / data.n) / 4
        paired = data.n_labels**2 if data.n_labels <= pipeline.MAX_LIFT_LABELS else 0
        return Estimate(
            voting.memory + 40.0 * pairs + 8.0 * weights + 16.0 * paired,
            voting.size + 5.0 * weights + 2.0 * paired,
        )


def candidate_scalings(X: Matrix) -> list[str]:
    """The kinds of features to choose among."""
    if features.fits("nystroem", X):
        return list(DENSE)
    kinds = COUNTS if features.are_counts(X) else SPARSE
    return [kind for kind in kinds if features.fits(kind, X)]


def default_scaling(X: Matrix) -> str:
    """The kind of features that sparse rows are mapped by: large numbers made smaller, if they differ."""
    kind = "log1p-l2" if features.are_counts(X) else "sqrt-l2"
    return kind if features.fits(kind, X) else "l2"


def tune_temperature(voting: NeighborVoting, trial: HoldOut) -> float:
    """Give a fitted method the temperature with the best votes on held-out rows; returns their quality.

    The best one depends on the number of rows.
    """
    chose_itself = voting.temperature == "auto"
    temperatures = (voting.temperature_,) if chose_itself else TEMPERATURES
    best = voting.ranked_at(trial.held.X[:TEMPERATURE_ROWS], temperatures, min(5, len(voting.classes_)))
    told = [mean_precision(trial.held.Y[:TEMPERATURE_ROWS], ids) for ids in best]
    voting.temperature_ = temperatures[int(np.argmax(told))]
    return max(told)


def stacked_quality(said: pipeline.ShortlistScores, held: TrainingSet) -> float:
    """The mean of P@1, P@3 and P@5 on held-out rows, by a blend fitted on them."""
    return mean_precision(held.Y, pipeline.ranked(pipeline.weigh(said, held), said, 5)[0])


def shortest_sufficient(lengths: list[int], recalls: Array) -> int:
    """The first length after which the next holds hardly more; recalls : (k,) of lists of each length."""
    for length, longer in pairwise(lengths):
        if recalls[longer - 1] < recalls[length - 1] + MIN_RECALL_GAIN:
            return length
    return lengths[-1]


def _recalls(voting: NeighborVoting, trial: HoldOut, k: int) -> Array:
    """(k,) share of the true labels of held-out rows that lists of each length hold by votes.

    Labels without a vote are not counted, where lists hold all: on Bibtex nothing was gained by them.
    """
    ids, _ = voting.predict_topk(trial.held.X, k)
    return np.cumsum(contains(trial.held.Y, ids).sum(axis=0)) / max(trial.held.Y.nnz, 1)
