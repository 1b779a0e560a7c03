"""ExMLDS, the recommended method: neighbours propose labels, classifiers order them, a blend weighs both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import clone

from .. import metrics
from ..base import MAX_HELD_OUT, XMCEstimator
from ..reranking import pipeline
from ..reranking.pipeline import Config, RerankingPipeline, ShortlistScores, TrainingSet, WarmStart
from ..reranking.search import (
    MIN_GAIN,
    SEARCH_HELD_ROWS,
    SEARCH_TRAIN_ROWS,
    ConfigSearch,
    HoldOut,
    TimeBudget,
    stacked_quality,
    tune_temperature,
)
from ..runtime.memory import DataSize, Estimate
from ..stages import features, rerank, stacking
from ..validation import params, targets
from ..validation.arrays import Matrix
from ..validation.observed import contains
from ..voting import explain
from ..voting.base import MIN_ROWS_TO_TUNE, NeighborVoting
from ..voting.explain import ExplainOptions, Explanation
from ..voting.label_space import LabelSpaceMixin
from ..voting.settings_search import mean_precision
from .exmlds4 import ExMLDS4

Array = np.ndarray

FEW_HELD_OUT = 2_000  # below which rows are held out several times


class ExMLDS(LabelSpaceMixin):
    """The method to take without reading further: neighbours propose labels, classifiers put them in order.

    Parameters
    ----------
    candidates : what proposes labels: "joint" learning (`ExMLDS4`), joint "sppmi" (`ExMLDS3`), or "auto", the
        better one on held-out rows; where rows are few, the votes of the other then count too
    n_learners : embeddings from different starts that vote together, of joint learning; "auto" is one, and
        with a `time_budget` as many as it allows and held-out rows reward
    shortlist : labels of a row that are looked at closely; "auto" is chosen on held-out rows
    loss : of the classifiers, "squared_hinge" or "logistic"; "none": votes alone
    cost : of their mistakes, against large weights; "auto" is chosen on held-out rows
    objective : "precision", or "psp", propensity-scored precision, which favours rare labels: scores are then
        probabilities over propensities, and a `threshold` is about these; not with fewer than 50 rows
    complete_labels : as in `ExMLDS3`, which then proposes labels; "auto" where co-occurrences are given
    time_budget : seconds that a fit should take, about: within it learners are added, and rows held out once
        more, while that pays; beyond it the last fit, on all rows, is left out
    keep_rows : keep the training rows with the model, so that `explain` can tell which features rows share

    The others are those of every method, `XMCEstimator`.

    Attributes after fit
    --------------------
    voting_ : the fitted method that proposes labels;  second_ : another one, whose votes count too, or None
    shortlist_, cost_ : as chosen;  shortlist_recall_ : share of true labels on the lists of held-out rows
    held_out_quality_ : the mean of P@1, P@3 and P@5 on held-out rows

    Example
    -------
    >>> from exmlds import ExMLDS
    >>> from exmlds.data import make_library
    >>> X, Y, names, _ = make_library(500, random_state=0)
    >>> model = ExMLDS(random_state=0).fit(X, Y, label_names=names)
    >>> model.predict_labels(X[2:3], k=2)
    [['geology', 'mountains']]
    """

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        **XMCEstimator._constraints,
        "candidates": params.one_of("auto", "joint", "sppmi"),
        "n_learners": params.either(params.one_of("auto"), params.whole(1)),
        "shortlist": params.either(params.one_of("auto"), params.whole(1)),
        "loss": params.one_of(*rerank.LOSSES, "none"),
        "cost": params.either(params.one_of("auto"), params.number(0, above=True)),
        "objective": params.one_of("precision", "psp"),
        "complete_labels": params.either(params.one_of("auto"), params.number(0, 1)),
        "time_budget": params.either(params.one_of(None), params.number(0, above=True)),
        "keep_rows": params.one_of(False, True),
    }
    voting_: NeighborVoting
    second_: NeighborVoting | None
    shortlist_: int
    feature_map_: features.Features | None
    lifts_: Array | None = None
    classifiers_: rerank.Classifiers | None
    counts_: Array
    blend_: stacking.Stacker | None
    shortlist_recall_: float

    _space: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "candidates": ("joint", "sppmi"),
        "n_learners": (1, 2, 3),
        "shortlist": (60, 120, 240),
        "cost": (0.1, 0.3, 1.0, 3.0),
        "loss": ("squared_hinge", "logistic", "none"),
    }
    _side: ClassVar[Mapping[str, bool]] = {
        "label_cooccurrence": False,
        "observed": True,
        "sample_weight": True,
    }

    def __init__(
        self,
        *,
        candidates: str = "auto",
        n_learners: str | int = "auto",
        shortlist: str | int = "auto",
        loss: str = "squared_hinge",
        cost: str | float = "auto",
        objective: str = "precision",
        complete_labels: str | float = "auto",
        time_budget: float | None = None,
        keep_rows: bool = False,
        threshold: str | float = "auto",
        max_labels: int = 100,
        max_memory: float | str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.candidates = candidates
        self.n_learners = n_learners
        self.shortlist = shortlist
        self.loss = loss
        self.cost = cost
        self.objective = objective
        self.complete_labels = complete_labels
        self.time_budget = time_budget
        self.keep_rows = keep_rows
        self.threshold = threshold
        self.max_labels = max_labels
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        Y: Any,
        *,
        label_names: Sequence[str] | None = None,
        sample_weight: Any = None,
        label_cooccurrence: Any = None,
        observed: Any = None,
    ) -> Self:
        """Learn from rows and their labels.

        Parameters
        ----------
        X, Y, label_names : as for every method
        sample_weight : (n,) how much each row counts
        label_cooccurrence, observed : what is known of missing labels; `ExMLDS3` then proposes labels
        """
        return self._learn(
            X,
            Y,
            label_names,
            sample_weight=sample_weight,
            label_cooccurrence=label_cooccurrence,
            observed=observed,
        )

    def _checked_side(self, Y: csr_matrix, **side: Any) -> dict[str, Any]:
        weights = side.pop("sample_weight")
        if weights is not None:
            weights = targets.row_weights(weights, Y.shape[0])
        return {"sample_weight": weights, **targets.of_missing(Y, **side)}

    def _learn(self, X: Any, Y: Any, label_names: Sequence[str] | None, **side: Any) -> Self:
        try:
            return super()._learn(X, Y, label_names, **side)
        finally:
            self.__dict__.pop("_held", None)

    def _fit(self, X: Matrix, Y: csr_matrix, rng: np.random.Generator, **side: Any) -> None:
        clock = TimeBudget(self.time_budget)
        plan_rng, held_rng, first_rng, more_rng, again_rng = rng.spawn(5)
        labelled = self._trainable_rows(Y, **side)
        if not labelled.size:
            raise ValueError("No row with a label has a sample_weight above 0.")
        lesson = _normalize_weights(TrainingSet(X, Y, side).rows(type(self), labelled))
        self.kept_rows_ = X.copy() if self.keep_rows else None
        self._held: tuple[Array, Array, Array] | None = None  # until the threshold is chosen
        by_gain = self.objective == "psp" and len(labelled) >= MIN_ROWS_TO_TUNE
        self.gains_ = _inverse_propensity_gains(lesson.Y) if by_gain else None
        if len(labelled) < MIN_ROWS_TO_TUNE:
            self._take_votes_alone(lesson, first_rng, labelled)
            return
        plan = self._planner().plan(self._small_trial(lesson, plan_rng), len(labelled), plan_rng, clock)
        planned = clock.spent()
        said: list[ShortlistScores] = []
        asked: list[Array] = []
        for held in _folds(len(labelled), held_rng):
            if said and not clock.allows(2.5 * (clock.spent() - planned) / len(said)):
                break
            trial = HoldOut.of(lesson, held, type(self))
            course = WarmStart(trial.train_rows)
            if not said:
                plan, members = self._fit_first_fold(plan, trial, course, first_rng, more_rng, clock)
            else:
                members = pipeline.fit_pipeline(plan, trial.lesson, first_rng, course)
            said.append(members.score_in_blocks(trial.held.X))
            asked.append(held)
        self._weigh(pipeline.concatenate(said), lesson, np.concatenate(asked), labelled)
        taught = labelled[trial.train_rows]
        if clock.allows(1.25 * (clock.spent() - planned) / len(asked)):
            members, taught = (
                pipeline.fit_pipeline(plan, lesson, again_rng, course),
                labelled,
            )  # goes on, on all rows
        self._take(members, plan.cost, taught)

    def _planner(self) -> ConfigSearch:
        return ConfigSearch(*(getattr(self, name) for name in ConfigSearch._fields))

    def _small_trial(self, lesson: TrainingSet, rng: np.random.Generator) -> HoldOut:
        n = lesson.X.shape[0]
        held = min(SEARCH_HELD_ROWS, max(round(0.3 * n), 1))
        rows = rng.permutation(n)[: held + SEARCH_TRAIN_ROWS]
        return HoldOut.of(lesson.rows(type(self), rows), np.arange(held), type(self))

    def _fit_first_fold(
        self,
        plan: Config,
        trial: HoldOut,
        course: WarmStart,
        rng: np.random.Generator,
        more_rng: np.random.Generator,
        clock: TimeBudget,
    ) -> tuple[Config, RerankingPipeline]:
        """The plan with the temperature, and as many learners, as held-out rows reward; and what it gives."""
        propose_rng, order_rng, second_rng = rng.spawn(3)
        voting = pipeline.fit_shortlister(plan.voting, trial.lesson, propose_rng, course)
        second = (
            None
            if plan.second is None
            else pipeline.fit_shortlister(plan.second, trial.lesson, second_rng, course)
        )
        for fitted in (voting, second):
            if fitted is not None:
                tune_temperature(fitted, trial)
        members = pipeline.order(plan, voting, second, trial.lesson, order_rng, course=course)
        if self.n_learners == "auto" and clock.budget is not None and isinstance(voting, ExMLDS4):
            self._grow_ensemble(plan, members, trial, more_rng, clock)
        return plan._replace(
            voting=_with_tuned_params(voting), second=second and _with_tuned_params(second)
        ), members

    def _grow_ensemble(
        self,
        plan: Config,
        members: RerankingPipeline,
        trial: HoldOut,
        rng: np.random.Generator,
        clock: TimeBudget,
    ) -> None:
        """While there is time, and the blend is better for them on held-out rows."""

        def quality() -> float:
            return stacked_quality(members.score_in_blocks(trial.held.X), trial.held)

        voting, took, best = members.voting, 0.0, quality()
        while clock.allows(4 * took):
            before, learners = clock.spent(), voting.learners_
            voting.learners_ = [
                *learners,
                *pipeline.fit_shortlister(plan.voting, trial.lesson, rng).learners_,
            ]
            gained = quality() - best
            took = clock.spent() - before
            if gained < MIN_GAIN:
                voting.learners_ = learners
                break
            best += gained

    def _weigh(self, said: ShortlistScores, lesson: TrainingSet, rows: Array, labelled: Array) -> None:
        """Fit the blend on what is said of held-out rows of a lesson, and keep what it makes of them."""
        held = lesson.rows(type(self), rows)
        self.blend_ = pipeline.add_label_bias(pipeline.weigh(said, held), said, held)
        if self.gains_ is None:
            self.blend_ = pipeline.add_top_reranker(self.blend_, said, held)
        self.shortlist_recall_ = float(contains(held.Y, said.ids).sum() / max(held.Y.nnz, 1))
        ids, scores = pipeline.ranked(self.blend_, said, max(5, self.max_labels), self.gains_)
        self.held_out_quality_ = mean_precision(held.Y, ids[:, :5])
        self._held = (labelled[rows], ids[:, : self.max_labels], scores[:, : self.max_labels])

    def _take(self, members: RerankingPipeline, cost: float, rows: Array) -> None:
        self.voting_, self.second_, self.shortlist_, self.counts_ = members[:4]
        self.feature_map_, self.classifiers_, self.lifts_ = members[4:]
        self.cost_, self.rows_ = cost, rows.astype(np.int32)

    def _take_votes_alone(self, lesson: TrainingSet, rng: np.random.Generator, rows: Array) -> None:
        """Of too few rows to choose on."""
        planner = self._planner()
        voting = pipeline.fit_shortlister(
            planner.voting(planner.first_method(lesson.side), "l2"), lesson, rng
        )
        self._take(
            RerankingPipeline(voting, None, lesson.Y.shape[1], lesson.counts(), None, None, None),
            np.nan,
            rows,
        )
        self.blend_, self.held_out_quality_, self.shortlist_recall_ = None, np.nan, np.nan

    def _candidates(self, X: Matrix, k: int) -> tuple[Array, Array]:
        if self.blend_ is None:
            return self.voting_._candidates(X, k)
        return self._rerank(self._jury().opinions(X, k), k)

    def _rerank(self, said: ShortlistScores, k: int) -> tuple[Array, Array]:
        """The k best labels of what is said, with their scores."""
        assert self.blend_ is not None
        listed = min(self.shortlist_, said.ids.shape[1])
        first = said.cut(slice(None), slice(listed))
        best, scores = pipeline.ranked(self.blend_, first, k, self.gains_)
        return (best, scores) if k <= listed else _extend_by_votes(best, scores, said, k, self.gains_)

    def _jury(self) -> RerankingPipeline:
        asked = self.voting_, self.second_, self.shortlist_
        return RerankingPipeline(*asked, self.counts_, self.feature_map_, self.classifiers_, self.lifts_)

    def _explained(self, X: Matrix, label: int, n: int, feature_names: Any, kept: Any = None) -> Explanation:
        asked = ExplainOptions.of(n, feature_names, kept, self.kept_rows_)
        why = explain.by_votes(self, X, label, asked)
        if self.blend_ is None:
            return why
        said = self._jury().opinions(X, self.shortlist_)
        column = np.flatnonzero(said.ids[0, : self.shortlist_] == label)
        if not len(column):
            ids, scores = self._candidates(X, len(self.classes_))
            return why._replace(score=float(scores[0][ids[0] == label].sum()))
        listed = said.cut(slice(None), slice(self.shortlist_))
        ids, scores = self._rerank(listed, self.shortlist_)
        score = float(scores[0][ids[0] == label].sum())
        beside = "place it takes" if self.gains_ is None else "gain of the label"
        odds = explain.log_odds(self.blend_, listed, int(column[0]), score, beside)
        why = why._replace(score=score, log_odds=odds)
        if self.classifiers_ is None or self.feature_map_ is None:
            return why
        A = pipeline.transform_sparse(self.feature_map_, X)
        return why._replace(margin=explain.margin(self.classifiers_, A, label, asked))

    def _voting_model(self) -> tuple[NeighborVoting, Array]:
        return self.voting_, self.rows_

    def _held_out(
        self, X: Matrix, Y: csr_matrix, k: int, rng: np.random.Generator, **side: Any
    ) -> tuple[Array, Array, Array]:
        if self._held is not None:
            return self._held
        return super()._held_out(X, Y, k, rng, **side)

    def predict_proba(self, X: Any) -> csr_matrix:
        """(n, L) csr of calibrated probabilities of the labels on short lists, at most `max_labels` a row.

        Labels that take the first places have the probabilities of these. Where `max_labels` is more than a
        short list holds, those after it have less than its last, by votes.
        """
        scores = self.decision_function(X)
        if self.gains_ is not None:
            scores.data = np.minimum(scores.data / self.gains_[scores.indices], 1)
        return scores

    def _estimate(self, data: DataSize) -> Estimate:
        estimate = self._planner().estimate(data)
        return estimate.with_rows(data) if self.keep_rows else estimate


def _with_tuned_params(voting: NeighborVoting) -> NeighborVoting:
    """The method, to be fitted anew with what was chosen on held-out rows."""
    settings: dict[str, Any] = {"temperature": voting.temperature_}
    for name, value in voting.get_params(deep=False).items():
        if isinstance(value, str) and value == "auto" and hasattr(voting, f"{name}_"):
            settings[name] = getattr(voting, f"{name}_")
    if isinstance(voting, ExMLDS4):
        settings |= {"n_learners": len(voting.learners_)}
    return clone(voting).set_params(**settings)


def _normalize_weights(lesson: TrainingSet) -> TrainingSet:
    """The mean weight of a row is 1."""
    if lesson.weights is None:
        return lesson
    return lesson._replace(side={**lesson.side, "sample_weight": lesson.weights / lesson.weights.mean()})


def _folds(n: int, rng: np.random.Generator) -> list[Array]:
    """Rows to hold out in turn: a fifth, or MOST_HELD_OUT; several times where that is few."""
    size = max(1, min(n // 5, MAX_HELD_OUT))
    order = rng.permutation(n)
    n_folds = min(5, max(1, round(FEW_HELD_OUT / size)))
    return [order[i * size : (i + 1) * size] for i in range(n_folds)]


def _inverse_propensity_gains(Y: csr_matrix) -> Array:
    """(L,) float32 the inverse propensities of labels, over the largest of those that occur."""
    inverse = metrics.inverse_propensity(Y)
    occurs = np.bincount(Y.indices, minlength=Y.shape[1]) > 0
    return np.minimum(inverse / inverse[occurs].max(), 1).astype(np.float32)


def _extend_by_votes(
    best: Array, scores: Array, said: ShortlistScores, k: int, gains: Array | None
) -> tuple[Array, Array]:
    """The list with labels after it, by votes; they are less sure than any of the list."""
    ids, votes = said.ids[:, best.shape[1] : k], said.votes[:, best.shape[1] : k]
    first = np.maximum(votes.max(axis=1, keepdims=True, initial=0), np.finfo(np.float32).tiny)
    sure, there = scores if gains is None else scores / gains[best], best >= 0
    after = np.min(sure, axis=1, keepdims=True, where=there, initial=1) * np.minimum(votes / first, 1)
    if gains is not None:
        last = np.min(scores, axis=1, keepdims=True, where=there, initial=1)
        after = np.minimum.accumulate(np.minimum(after * gains[ids], last), axis=1)
    return np.hstack([best, ids]), np.hstack([scores, pipeline.break_ties(after, 1)])
