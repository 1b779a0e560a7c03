"""ExMLDS, the recommended method: neighbours propose labels, classifiers order them, a blend weighs both."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.base import clone

from .. import labels, limits, metrics, parallel, selection
from ..contract import BLOCK, MOST_HELD_OUT, DataSize, Estimate, Matrix, XMCEstimator
from ..stages import blend, features, rerank
from .exmlds3 import ExMLDS3
from .exmlds4 import ExMLDS4
from .neighbors import FEWEST, NeighborVoting, mean_precision

Array = np.ndarray

SPARSE, DENSE = ("l2", "log1p-l2", "idf-l2"), ("l2", "standardize")  # features to choose among
PLANNED_ON = 3_000  # rows that the plan is made on, at most
FEW_ROWS = 8_000  # so many that joint SPPMI may be better
FEW_LABELS = 128  # so many are all on the short list
MOST_PAIRS = 1_000_000  # of rows and labels that classifiers then learn from, beside the true ones,
FEWEST_LISTED = 20  # but so many of a row
ENOUGH = 1_500  # held-out rows to choose a temperature on
FEW_HELD_OUT = 2_000  # below which rows are held out several times
BLENDED = 200_000  # pairs that the blend is fitted on, at most
SHORTLISTS = (60, 120, 240)
COSTS = (1.0, 0.3)  # the second where it is better
TEMPERATURES = (0.05, 0.1, 0.03, 0.02)
EPOCHS = 6  # of joint learning; more did not help after re-ranking
MORE_FOUND = 0.05  # share of true labels that longer lists must hold more
WORTH = 0.005  # gain on held-out rows for which lists are made longer, or learners more
KEEP_FROM = 0.03  # of a label's largest weight: without those below nothing was lost


class Plan(NamedTuple):
    """What is to be fitted: chosen on held-out rows of a few thousand.

    voting : the method that makes short lists, with its settings
    features : of the classifiers;  cost : of their mistakes;  shortlist : labels on a list
    """

    voting: NeighborVoting
    features: str
    cost: float
    shortlist: int


class Trial(NamedTuple):
    """Rows that teach, and rows held out, on which plans are compared."""

    X: Matrix
    Y: csr_matrix
    side: dict[str, Any]
    asked: Matrix
    truth: csr_matrix


class Clock:
    """The time that a fit may take, if any is said."""

    def __init__(self, budget: float | None) -> None:
        self.started, self.budget = time.perf_counter(), budget

    def spent(self) -> float:
        return time.perf_counter() - self.started

    def allows(self, seconds: float) -> bool:
        return self.budget is None or self.spent() + seconds < self.budget


class Opinions(NamedTuple):
    """What is said of the labels on short lists: (b, k) ids, −1 pads; shares of votes; margins."""

    ids: Array
    votes: Array
    margins: Array


class ExMLDS(XMCEstimator):
    """The method to take without reading further: neighbours propose labels, classifiers put them in order.

    Parameters
    ----------
    candidates : what proposes labels: "joint" learning (`ExMLDS4`), joint "sppmi" (`ExMLDS3`), or "auto", the
        better one on held-out rows
    n_learners : embeddings from different starts that vote together, of joint learning; "auto" is one, and
        with a `time_budget` as many as it allows and held-out rows reward
    shortlist : labels of a row that are looked at closely; "auto" is chosen on held-out rows
    loss : of the classifiers, "squared_hinge" or "logistic"; "none": votes alone
    cost : of their mistakes, against large weights; "auto" is chosen on held-out rows
    objective : "precision", or "psp", propensity-scored precision, which favours rare labels: scores are then
        probabilities over propensities, and a `threshold` is about these
    complete_labels : as in `ExMLDS3`, which then proposes labels; "auto" where co-occurrences are given
    time_budget : seconds that a fit should take, about: within it learners are added, and rows held out once
        more, while that pays; beyond it the last fit, on all rows, is left out

    The others are those of every method, `XMCEstimator`.

    Attributes after fit
    --------------------
    voting_ : the fitted method that proposes labels
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

    _limits: ClassVar[Mapping[str, limits.Limit]] = {
        **XMCEstimator._limits,
        "candidates": limits.one_of("auto", "joint", "sppmi"),
        "n_learners": limits.either(limits.one_of("auto"), limits.whole(1)),
        "shortlist": limits.either(limits.one_of("auto"), limits.whole(1)),
        "loss": limits.one_of(*rerank.LOSSES, "none"),
        "cost": limits.either(limits.one_of("auto"), limits.number(0, above=True)),
        "objective": limits.one_of("precision", "psp"),
        "complete_labels": limits.either(limits.one_of("auto"), limits.number(0, 1)),
        "time_budget": limits.either(limits.one_of(None), limits.number(0, above=True)),
    }
    voting_: NeighborVoting
    classifiers_: rerank.Classifiers | None
    blend_: blend.Blend | None
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
            weights = labels.row_weights(weights, Y.shape[0])
        return {"sample_weight": weights, **ExMLDS3._checked_side(self, Y, **side)}

    def _learn(self, X: Any, Y: Any, label_names: Sequence[str] | None, **side: Any) -> Self:
        try:
            return super()._learn(X, Y, label_names, **side)
        finally:
            self.__dict__.pop("_held", None)

    def _fit(self, X: Matrix, Y: csr_matrix, rng: np.random.Generator, **side: Any) -> None:
        clock = Clock(self.time_budget)
        plan_rng, held_rng, first_rng, more_rng, again_rng = rng.spawn(5)
        labelled = self._teachers(Y, side["sample_weight"])
        X, Y, side = X[labelled], Y[labelled], self.side_rows(side, labelled)
        if side["sample_weight"] is not None:
            side["sample_weight"] = side["sample_weight"] / side["sample_weight"].mean()
        self._held: tuple[Array, Array, Array] | None = None  # until the threshold is chosen
        self.gains_ = _gains(Y) if self.objective == "psp" else None
        self.held_out_quality_ = self.shortlist_recall_ = np.nan
        if X.shape[0] < FEWEST:  # nothing to choose on: votes alone
            self._propose(X, Y, self._voting(self._first_method(side), "l2"), first_rng, side)
            self.shortlist_, self.cost_, self.classifiers_, self.blend_ = Y.shape[1], np.nan, None, None
            return
        plan = self._planned(X, Y, side, plan_rng)
        spent = clock.spent()
        said: list[Opinions] = []
        asked: list[Array] = []
        for held in _folds(X.shape[0], held_rng):
            if said and not clock.allows(2.5 * (clock.spent() - spent) / len(said)):
                break
            trial = self._trial(X, Y, side, held)
            plan = self._teach(trial.X, trial.Y, plan, first_rng, trial.side, None if said else trial)
            if not said:
                plan = self._grown(trial, plan, more_rng, clock)
            said.append(self._opinions_in_blocks(trial.asked))
            asked.append(held)
        rows = np.concatenate(asked)
        told = Opinions._make(np.concatenate(parts) for parts in zip(*said))
        weights = None if side["sample_weight"] is None else side["sample_weight"][rows]
        self.held_out_quality_ = self._weigh(told, Y[rows], self.label_counts_, weights)
        self._held = (labelled[rows], *self._ranked(told, self.label_counts_, self.max_labels))
        if clock.allows(1.25 * (clock.spent() - spent) / len(asked)):
            self._teach(X, Y, plan, again_rng, side)  # once more, on all rows

    def _teachers(self, Y: csr_matrix, weights: Array | None) -> Array:
        """Rows without a label, or without weight, neither teach nor vote."""
        counts = np.diff(Y.indptr) > 0
        rows = np.flatnonzero(counts if weights is None else counts & (weights > 0))
        if not rows.size:
            raise ValueError("No row with a label has a sample_weight above 0.")
        return rows

    def _first_method(self, side: Mapping[str, Any]) -> str:
        if self._tells_of_missing(side):
            if self.candidates == "joint":
                raise ValueError(
                    "candidates='joint' can't use label_cooccurrence, observed or complete_labels; "
                    "leave 'candidates' at 'auto'."
                )
            return "missing"
        return "sppmi" if self.candidates == "sppmi" else "joint"

    def _trial(self, X: Matrix, Y: csr_matrix, side: Mapping[str, Any], held: Array) -> Trial:
        taught = np.setdiff1d(np.arange(X.shape[0]), held)
        return Trial(X[taught], Y[taught], self.side_rows(side, taught), X[held], Y[held])

    def _teach(
        self,
        X: Matrix,
        Y: csr_matrix,
        plan: Plan,
        rng: np.random.Generator,
        side: Mapping[str, Any],
        trial: Trial | None = None,
    ) -> Plan:
        """Fit what proposes labels, then the classifiers on what it proposes.

        trial : whose held-out rows tell the temperature; returns the plan with it
        """
        propose_rng, order_rng = rng.spawn(2)
        self.shortlist_, self.cost_ = plan.shortlist, plan.cost
        self._propose(X, Y, plan.voting, propose_rng, side)
        if trial is not None:
            self._tempered(trial)
            voting = clone(plan.voting).set_params(temperature=self.voting_.temperature_)
            plan = plan._replace(voting=voting)
        self.classifiers_ = None
        if self.loss != "none":
            self._order(X, Y, self._lists(X, plan.shortlist), plan, order_rng, side)
        return plan

    def _grown(self, trial: Trial, plan: Plan, rng: np.random.Generator, clock: Clock) -> Plan:
        """Add learners while there is time, and the blend is better for them on held-out rows."""

        def told() -> float:
            said = self._opinions_in_blocks(trial.asked)
            return self._weigh(said, trial.truth, self.label_counts_, None)

        if self.n_learners != "auto" or clock.budget is None or not isinstance(plan.voting, ExMLDS4):
            return plan
        ours, took, best = self.voting_, 0.0, told()
        while clock.allows(4 * took):
            before, learners = clock.spent(), ours.learners_
            self._propose(trial.X, trial.Y, plan.voting, rng, trial.side)
            ours.learners_ = [*learners, *self.voting_.learners_]
            self.voting_ = ours
            gained = told() - best
            took = clock.spent() - before
            if gained < WORTH:
                ours.learners_ = learners
                break
            best += gained
        return plan._replace(voting=clone(plan.voting).set_params(n_learners=len(ours.learners_)))

    def _propose(
        self,
        X: Matrix,
        Y: csr_matrix,
        voting: NeighborVoting,
        rng: np.random.Generator,
        side: Mapping[str, Any],
    ) -> None:
        seed = int(rng.integers(2**31))
        theirs = {name: value for name, value in side.items() if name in voting._side}
        self.voting_ = clone(voting).set_params(random_state=seed).fit(X, Y, **theirs)
        self.voting_.voter_weights_ = side["sample_weight"]

    def _lists(self, X: Matrix, k: int) -> Array:
        """(n, k) the short lists of training rows, without their own votes."""
        n = X.shape[0]
        own = np.arange(n)
        ids, votes = self._in_blocks(
            lambda block: self.voting_._shortlist(X[block], k, own[block]), n, k, "short lists"
        )
        if k < len(self.classes_):
            return ids
        return _with_all(ids, votes, k)[0][:, : max(MOST_PAIRS // n, FEWEST_LISTED)]

    def _order(
        self,
        X: Matrix,
        Y: csr_matrix,
        lists: Array,
        plan: Plan,
        rng: np.random.Generator,
        side: Mapping[str, Any],
    ) -> None:
        self.feature_map_ = features.fit(plan.features, X, rng)
        self.classifiers_ = rerank.fit(
            _sparse(features.apply(self.feature_map_, X)),
            rerank.examples(Y, lists),
            loss=self.loss,
            cost=plan.cost,
            row_weights=side["sample_weight"],
            keep_from=KEEP_FROM,
            n_jobs=self.n_jobs,
        )

    def _opinions(self, X: Matrix, k: int = 0) -> Opinions:
        """Of the labels on short lists, and of those after them up to the k-th; these have no margin."""
        ids, votes = self.voting_._candidates(X, min(max(k, self.shortlist_), len(self.classes_)))
        if self.shortlist_ >= len(self.classes_):
            ids, votes = _with_all(ids, votes, len(self.classes_))
        if self.classifiers_ is None:
            return Opinions(ids, votes, np.zeros(ids.shape, np.float32))
        A = _sparse(features.apply(self.feature_map_, X))
        margins = np.full(ids.shape, -np.inf, np.float32)
        margins[:, : self.shortlist_] = rerank.score(self.classifiers_, A, ids[:, : self.shortlist_])
        return Opinions(ids, votes, margins)

    def _weigh(self, said: Opinions, Y: csr_matrix, counts: Array, weights: Array | None) -> float:
        """Fit the blend on what is said of held-out rows; returns its quality on them."""
        ids, votes, margins = said
        hits = metrics.Ranking(Y, ids, ids.shape[1]).hits.astype(bool)
        known = blend.evidence(votes, margins, counts[np.maximum(ids, 0)])
        listed = ids >= 0
        listed[BLENDED // ids.shape[1] + 1 :] = False  # enough to learn a dozen weights from
        pairs = None if weights is None else np.broadcast_to(weights[:, None], ids.shape)[listed]
        self.blend_ = blend.fit(known[listed], hits[listed], pairs)
        self.shortlist_recall_ = float(hits.sum() / max(Y.nnz, 1))
        return mean_precision(Y, self._ranked(said, counts, 5)[0])

    def _ranked(self, said: Opinions, counts: Array, k: int) -> tuple[Array, Array]:
        """The k best of short lists by the blend, with probabilities, or what `objective` makes of them."""
        assert self.blend_ is not None
        ids, votes, margins = said
        sums, scores = blend.apply(self.blend_, blend.evidence(votes, margins, counts[np.maximum(ids, 0)]))
        if self.gains_ is not None:
            sums = scores = scores * self.gains_[np.maximum(ids, 0)]
        order = np.argsort(-np.where(ids >= 0, sums, -np.inf), axis=1, kind="stable")[:, :k]
        ids, scores = (np.take_along_axis(a, order, axis=1) for a in (ids, scores))
        return ids, np.where(ids >= 0, scores, 0)

    def _candidates(self, X: Matrix, k: int) -> tuple[Array, Array]:
        if self.blend_ is None:
            return self.voting_._candidates(X, k)
        said = self._opinions(X, k)
        listed = min(self.shortlist_, said.ids.shape[1])
        best, scores = self._ranked(Opinions._make(a[:, :listed] for a in said), self.label_counts_, k)
        return (best, scores) if k <= listed else _lengthened(best, scores, said, k)

    def _opinions_in_blocks(self, X: Matrix) -> Opinions:
        rows = parallel.blocks(X.shape[0], BLOCK)
        told = parallel.map_blocks(
            lambda block: self._opinions(X[block]),
            rows,
            n_jobs=self.n_jobs,
            stage="held-out rows",
            total=X.shape[0],
        )
        return Opinions._make(np.concatenate(parts) for parts in zip(*told))

    def _held_out(
        self, X: Matrix, Y: csr_matrix, k: int, rng: np.random.Generator, **side: Any
    ) -> tuple[Array, Array, Array]:
        if self._held is not None:
            return self._held
        return super()._held_out(X, Y, k, rng, **side)

    def predict_proba(self, X: Any) -> csr_matrix:
        """(n, L) csr of calibrated probabilities of the labels on short lists, at most `max_labels` a row."""
        scores = self.decision_function(X)
        if self.gains_ is not None and self.blend_ is not None:
            scores.data = np.minimum(scores.data / self.gains_[scores.indices], 1)
        return scores

    def _planned(self, X: Matrix, Y: csr_matrix, side: Mapping[str, Any], rng: np.random.Generator) -> Plan:
        """Choose on held-out rows of a few thousand: method, features, temperature, cost, length of lists."""
        n = X.shape[0]
        rows = np.sort(rng.permutation(n)[:PLANNED_ON])
        _, held = selection.random_split(len(rows), 0.3, random_state=rng)
        trial = self._trial(X[rows], Y[rows], self.side_rows(side, rows), held)
        voting = self._chosen_voting(trial, n, rng)
        if self.loss == "none":
            listed = SHORTLISTS[0] if self.shortlist == "auto" else int(self.shortlist)
            return Plan(voting, "l2", COSTS[0], min(listed, Y.shape[1]))
        return self._chosen_order(trial, voting, rng)

    def _chosen_voting(self, trial: Trial, n: int, rng: np.random.Generator) -> NeighborVoting:
        """The best by votes alone; it stays fitted as `voting_`."""
        scaled = _scalings(trial.X)
        mapped = ["nystroem"] if features.fits("nystroem", trial.X) else scaled
        method = self._first_method(trial.side)
        kinds = scaled if method == "joint" else mapped
        best, told = self._best_voting(trial, [self._voting(method, kind) for kind in kinds], rng)
        # Joint learning grows better with more rows than the plan is made on.
        if method != "joint" or self.candidates == "joint" or n > FEW_ROWS:
            return best
        ours, kind = self.voting_, best.features if best.features in mapped else mapped[0]
        rival, theirs = self._best_voting(trial, [self._voting("sppmi", kind)], rng)
        if theirs > told:
            return rival
        self.voting_ = ours
        return best

    def _best_voting(
        self, trial: Trial, votings: list[NeighborVoting], rng: np.random.Generator
    ) -> tuple[NeighborVoting, float]:
        fitted, told = [], []
        for voting in votings:
            self._propose(trial.X, trial.Y, voting, copy.deepcopy(rng), trial.side)
            told.append(self._tempered(trial))
            fitted.append(self.voting_)
        best = int(np.argmax(told))
        self.voting_ = fitted[best]
        return votings[best], told[best]

    def _tempered(self, trial: Trial) -> float:
        """Take the temperature with the best votes on held-out rows, which depends on the number of rows."""
        chose_itself = self.voting_.temperature == "auto"
        temperatures = (self.voting_.temperature_,) if chose_itself else TEMPERATURES
        told, asked, truth = [], trial.asked[:ENOUGH], trial.truth[:ENOUGH]
        for self.voting_.temperature_ in temperatures:
            told.append(mean_precision(truth, self.voting_.predict_topk(asked, 5)[0]))
        self.voting_.temperature_ = temperatures[int(np.argmax(told))]
        return max(told)

    def _chosen_order(self, trial: Trial, voting: NeighborVoting, rng: np.random.Generator) -> Plan:
        """Features first, then lower costs while they are better, then longer lists while they pay."""
        n_labels = trial.Y.shape[1]
        lengths = [n_labels] if n_labels <= FEW_LABELS else [min(k, n_labels) for k in SHORTLISTS]
        if self.shortlist != "auto":
            lengths = [min(int(self.shortlist), n_labels)]
        counts = np.bincount(trial.Y.indices, minlength=n_labels)
        lists = self._lists(trial.X, max(lengths))

        @cache
        def told(plan: Plan) -> float:
            self.shortlist_ = plan.shortlist
            cut = lists[:, : plan.shortlist]
            self._order(trial.X, trial.Y, cut, plan, copy.deepcopy(rng), trial.side)
            return self._weigh(self._opinions_in_blocks(trial.asked), trial.truth, counts, None)

        first = COSTS[0] if self.cost == "auto" else float(self.cost)
        best = max((Plan(voting, kind, first, lengths[0]) for kind in _scalings(trial.X)), key=told)
        for cost in COSTS[1:] if self.cost == "auto" else ():
            lower = best._replace(cost=cost)
            if told(lower) <= told(best):
                break
            best = lower
        found = self._recalls(trial, max(lengths))
        for shorter, length in pairwise(lengths):
            longer = best._replace(shortlist=length)
            if found[length - 1] < found[shorter - 1] + MORE_FOUND or told(longer) < told(best) + WORTH:
                break
            best = longer
        return best

    def _recalls(self, trial: Trial, k: int) -> Array:
        """(k,) share of the true labels of held-out rows that lists of each length hold."""
        ids, _ = self.voting_.predict_topk(trial.asked, k)
        hits = metrics.Ranking(trial.truth, ids, k).hits
        return np.cumsum(hits.sum(axis=0)) / max(trial.truth.nnz, 1)

    def _voting(self, name: str, kind: str) -> NeighborVoting:
        shared: dict[str, Any] = {
            "features": kind,
            "temperature": TEMPERATURES[0],
            "threshold": 0.0,
            "n_jobs": self.n_jobs,
            "max_memory": self.max_memory,
        }
        if name == "joint":
            n_learners = 1 if self.n_learners == "auto" else int(self.n_learners)
            # float16 would take most of the time of a row that is asked about alone.
            return ExMLDS4(n_epochs=EPOCHS, n_learners=n_learners, storage="float32", **shared)
        if name == "missing":
            return ExMLDS3(complete_labels=self.complete_labels, **{**shared, "temperature": "auto"})
        return ExMLDS3(n_components=200, l2=1.0, mu=(1.0, 1.0, 10.0), complete_labels=0.0, **shared)

    def _tells_of_missing(self, side: Mapping[str, Any]) -> bool:
        given = side["label_cooccurrence"] is not None or side["observed"] is not None
        return given or self.complete_labels not in ("auto", 0)

    def _estimate(self, data: DataSize) -> Estimate:
        """That of joint learning, and the classifiers with their examples."""
        names = {"joint": ("joint",), "sppmi": ("sppmi",)}.get(self.candidates, ("joint", "sppmi"))
        kind = "nystroem" if data.nnz > features.FILLED * data.n * data.d else "l2"
        votings = [self._voting(name, kind if name == "sppmi" else "l2") for name in names]
        asked = [voting for voting in votings if data.n <= FEW_ROWS or len(votings) == 1] or votings[:1]
        voting = Estimate(*map(max, zip(*(voting.estimate(*data) for voting in asked))))
        listed = SHORTLISTS[-1] if self.shortlist == "auto" else int(self.shortlist)
        pairs = data.n * min(listed, data.n_labels) + data.nnz_labels
        weights = min(float(data.n_labels) * data.d, pairs * data.nnz / data.n) / 4
        return Estimate(voting.memory + 40.0 * pairs + 8.0 * weights, voting.size + 5.0 * weights)


def _scalings(X: Matrix) -> list[str]:
    """The kinds of features to choose among."""
    is_dense = features.fits("nystroem", X)
    return [kind for kind in (DENSE if is_dense else SPARSE) if features.fits(kind, X)]


def _folds(n: int, rng: np.random.Generator) -> list[Array]:
    """Rows to hold out in turn: a fifth, or MOST_HELD_OUT; several times where that is few."""
    size = max(1, min(n // 5, MOST_HELD_OUT))
    order = rng.permutation(n)
    n_folds = min(5, max(1, round(FEW_HELD_OUT / size)))
    return [np.sort(order[i * size : (i + 1) * size]) for i in range(n_folds)]


def _sparse(X: Matrix) -> csr_matrix:
    return X if issparse(X) else csr_matrix(X)


def _gains(Y: csr_matrix) -> Array:
    """(L,) float32 the inverse propensities of labels, over the largest of those that occur."""
    inverse = metrics.inverse_propensity(Y)
    occurs = np.bincount(Y.indices, minlength=Y.shape[1]) > 0
    return np.minimum(inverse / inverse[occurs].max(), 1).astype(np.float32)


def _lengthened(best: Array, scores: Array, said: Opinions, k: int) -> tuple[Array, Array]:
    """The list with labels after it, by votes; they are less sure than the last of the list."""
    ids, votes = said.ids[:, best.shape[1] : k], said.votes[:, best.shape[1] : k]
    last = np.min(scores, axis=1, keepdims=True, where=best >= 0, initial=1)
    first = np.maximum(votes.max(axis=1, keepdims=True, initial=0), np.finfo(np.float32).tiny)
    return np.hstack([best, ids]), np.hstack([scores, last * np.minimum(votes / first, 1)])


def _with_all(ids: Array, votes: Array, n_labels: int) -> tuple[Array, Array]:
    """Lists of all labels, those without a vote after the others."""
    shares = np.zeros((len(ids), n_labels), np.float32)
    rows, places = np.nonzero(ids >= 0)
    shares[rows, ids[rows, places]] = votes[rows, places]
    order = np.argsort(-shares, axis=1, kind="stable")
    return order, np.take_along_axis(shares, order, axis=1)
