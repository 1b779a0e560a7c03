"""Who is asked about a row by `ExMLDS`: neighbours, who propose labels, and classifiers, who order them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.base import clone

from ..base import BLOCK, XMCEstimator
from ..models.exmlds4 import ExMLDS4
from ..models.exmlds4 import MapWarmStart as MapWarmStart
from ..runtime import parallel
from ..runtime.memory import DataSize
from ..stages import features, label_lift, rerank, stacking, top_rerank
from ..validation.arrays import Matrix
from ..validation.observed import contains, informative_rows, known_cells
from ..voting.base import NeighborVoting

Array = np.ndarray

MOST_PAIRS = 1_000_000  # of rows and labels that classifiers learn from where all labels are listed, beside
FEWEST_LISTED = 20  # the true ones; but so many of a row
MAX_LIFT_LABELS = 2_000  # labels, at most, whose pairs are counted; not where cells are unknown
SECOND_TOP_K = 300  # labels that the second names, at most; others have no vote of it
STACKER_PAIRS = 200_000  # pairs that the blend is fitted on, at most
N_PASSES, N_MORE_PASSES = 10, 5  # over the examples of a label: at first, and where a lesson goes on
MORE_EPOCHS = 2  # of joint learning, where a lesson goes on
TIE_STEP = np.float32(
    2**-22
)  # share of itself that a score loses from place to place: two steps of a float32
PRUNE_BELOW = 0.03  # of a label's largest weight: without those below nothing was lost


class TrainingSet(NamedTuple):
    """Rows that teach, their labels, what `fit` takes beside them; share : of all rows, that they are."""

    X: Matrix
    Y: csr_matrix
    side: Mapping[str, Any]
    share: float = 1.0

    @property
    def weights(self) -> Array | None:
        """(n,) how much each row counts, where they do not all count the same."""
        return self.side["sample_weight"]

    @property
    def observed(self) -> csr_matrix | None:
        """(n, L) the cells of Y that are known, where not all are."""
        return self.side["observed"]

    def counts(self) -> Array:
        """(L,) float32 rows of each label: about, where they are a share of all rows, those of all."""
        return (np.bincount(self.Y.indices, minlength=self.Y.shape[1]) / self.share).astype(np.float32)

    def rows(self, method: type[XMCEstimator], rows: Array) -> TrainingSet:
        return TrainingSet(self.X[rows], self.Y[rows], method.side_rows(self.side, rows))


class Config(NamedTuple):
    """What is to be fitted.

    voting : the method that makes short lists, with its settings;  shortlist : labels on a list
    second : another one, whose votes for the labels on the lists count too, or None
    features, loss, cost : of the classifiers; the loss "none" is without them
    """

    voting: NeighborVoting
    second: NeighborVoting | None
    shortlist: int
    features: str
    loss: str
    cost: float


class ShortlistScores(NamedTuple):
    """What is said of the labels on short lists, (b, k) each.

    ids : −1 pads;  votes : shares;  margins : of the classifiers;  counts : rows of the labels that taught
    seconds : shares of the second's votes;  company : what other labels on the list say
    """

    ids: Array
    votes: Array
    margins: Array
    counts: Array
    seconds: Array | None
    label_lift: Array | None

    def evidence(self) -> Array:
        """(b, k, f) for the blend."""
        return stacking.build_evidence(*self[1:])

    def kinds(self) -> list[tuple[str, ...]]:
        """(f,) what each piece of evidence is about."""
        return stacking.evidence_names(self.seconds is not None, self.label_lift is not None)

    def cut(self, rows: slice, columns: slice) -> ShortlistScores:
        return ShortlistScores._make(None if told is None else told[rows, columns] for told in self)


class RerankingPipeline(NamedTuple):
    """voting, second : fitted;  shortlist : labels of a row that all are asked about
    counts : (L,) rows of each label that taught;  lifts : (L, L) of `label_lift`, where labels are few
    """

    voting: NeighborVoting
    second: NeighborVoting | None
    shortlist: int
    counts: Array
    feature_map: features.Features | None
    classifiers: rerank.Classifiers | None
    lifts: Array | None

    def opinions(self, X: Matrix, k: int = 0) -> ShortlistScores:
        """Of the labels on short lists, and of those after them up to the k-th; these have no margin."""
        n_labels = len(self.voting.classes_)
        ids, votes = self.voting._candidates(X, min(max(k, self.shortlist), n_labels))
        if self.shortlist >= n_labels:
            ids, votes = pad_with_all_labels(ids, votes, n_labels)
        counts = self.counts[np.maximum(ids, 0)]
        seconds = None if self.second is None else _shares(self.second, X, ids)
        if self.classifiers is None or self.feature_map is None:
            return ShortlistScores(ids, votes, np.zeros(ids.shape, np.float32), counts, seconds, None)
        margins = np.full(ids.shape, -np.inf, np.float32)
        listed = ids[:, : self.shortlist]
        margins[:, : self.shortlist] = rerank.score(
            self.classifiers, transform_sparse(self.feature_map, X), listed
        )
        if self.lifts is None:
            return ShortlistScores(ids, votes, margins, counts, seconds, None)
        beside = np.zeros(ids.shape, np.float32)
        beside[:, : self.shortlist] = label_lift.apply(self.lifts, listed, margins[:, : self.shortlist])
        return ShortlistScores(ids, votes, margins, counts, seconds, beside)

    def score_in_blocks(self, X: Matrix) -> ShortlistScores:
        told = parallel.map_blocks(
            lambda block: self.opinions(X[block]),
            parallel.blocks(X.shape[0], BLOCK),
            n_jobs=self.voting.n_jobs,
            stage="held-out rows",
            total=X.shape[0],
        )
        return concatenate(list(told))


def concatenate(said: Sequence[ShortlistScores]) -> ShortlistScores:
    """What is said of several blocks of rows as one."""
    return ShortlistScores._make(None if told[0] is None else np.concatenate(told) for told in zip(*said))


class WarmStart:
    """Where a lesson ended, so that one with more rows goes on from there.

    map : of joint learning;  examples : of the classifiers, with their pulls
    rows : (n,) ascending, what the rows of the lesson are called in the next one
    """

    def __init__(self, rows: Array) -> None:
        self.rows, self.map = rows, MapWarmStart()
        self.examples: tuple[rerank.Examples, Array] | None = None


def fit_pipeline(
    plan: Config, lesson: TrainingSet, rng: np.random.Generator, course: WarmStart | None = None
) -> RerankingPipeline:
    """Fit what proposes labels, then the classifiers on what it proposes."""
    propose_rng, order_rng, second_rng = rng.spawn(3)
    voting = fit_shortlister(plan.voting, lesson, propose_rng, course)
    second = None if plan.second is None else fit_shortlister(plan.second, lesson, second_rng, course)
    return order(plan, voting, second, lesson, order_rng, course=course)


def fit_shortlister(
    voting: NeighborVoting, lesson: TrainingSet, rng: np.random.Generator, course: WarmStart | None = None
) -> NeighborVoting:
    """The method fitted to the lesson."""
    theirs = {name: value for name, value in lesson.side.items() if name in voting._side}
    fitted = clone(voting).set_params(random_state=int(rng.integers(2**31)))
    if course is not None and isinstance(fitted, ExMLDS4) and _is_one_map(fitted, lesson):
        fitted._course = course.map
        if course.map.state is not None:
            fitted.n_epochs = course.map.state.epoch + MORE_EPOCHS
    fitted._map_storage = "float16"  # where training rows lie is read for each row asked about, V is not
    fitted.fit(lesson.X, lesson.Y, **theirs)
    fitted.__dict__.pop("_course", None)
    fitted.voter_weights_ = lesson.weights
    return fitted


def _is_one_map(voting: ExMLDS4, lesson: TrainingSet) -> bool:
    return voting.n_learners == 1 and voting._n_parts(DataSize.of(lesson.X, lesson.Y)) == 1


def order(
    plan: Config,
    voting: NeighborVoting,
    second: NeighborVoting | None,
    lesson: TrainingSet,
    rng: np.random.Generator,
    listed: Array | None = None,
    course: WarmStart | None = None,
) -> RerankingPipeline:
    """Add classifiers to fitted methods; listed : (n, k) the short lists of the first, where known."""
    if plan.loss == "none":
        return RerankingPipeline(voting, second, plan.shortlist, lesson.counts(), None, None, None)
    listed = shortlists_leave_one_out(voting, lesson.X, plan.shortlist) if listed is None else listed
    if lesson.observed is not None:  # what is not known is no mistake
        known = contains(lesson.observed, listed) | ~informative_rows(lesson.observed)[:, None]
        listed = np.where(known, listed, -1)
    feature_map = features.fit(plan.features, lesson.X, rng)
    examples, start, n_epochs = rerank.examples(lesson.Y, listed), None, N_PASSES
    if course is not None and course.examples is not None:
        start, n_epochs = rerank.carry_alphas(*course.examples, course.rows, examples), N_MORE_PASSES
    classifiers, alphas = rerank.fit(
        transform_sparse(feature_map, lesson.X),
        examples,
        loss=plan.loss,
        cost=plan.cost,
        row_weights=lesson.weights,
        keep_from=PRUNE_BELOW,
        start=start,
        n_epochs=n_epochs,
        n_jobs=voting.n_jobs,
    )
    if course is not None:
        course.examples = examples, alphas
    is_paired = lesson.Y.shape[1] <= MAX_LIFT_LABELS and lesson.observed is None
    lifts = label_lift.fit(lesson.Y) if is_paired else None
    return RerankingPipeline(voting, second, plan.shortlist, lesson.counts(), feature_map, classifiers, lifts)


def shortlists_leave_one_out(voting: NeighborVoting, X: Matrix, k: int) -> Array:
    """(n, k) the short lists of training rows, without their own votes."""
    n, own = X.shape[0], np.arange(X.shape[0])
    ids, votes = voting._in_blocks(
        lambda block: voting._shortlist(X[block], k, own[block]), n, k, "short lists"
    )
    if k < len(voting.classes_):
        return ids
    return pad_with_all_labels(ids, votes, k)[0][:, : max(MOST_PAIRS // n, FEWEST_LISTED)]


def weigh(said: ShortlistScores, held: TrainingSet) -> stacking.Stacker:
    """The blend fitted on what is said of held-out rows."""
    return stacking.fit(_pairs(said, held, STACKER_PAIRS // said.ids.shape[1] + 1))


def add_label_bias(mix: stacking.Stacker, said: ShortlistScores, held: TrainingSet) -> stacking.Stacker:
    """The blend with what each label has of its own, by what is said of held-out rows."""
    return stacking.fit_label_bias(mix, _pairs(said, held, len(said.ids)), held.Y.shape[1])


def add_top_reranker(mix: stacking.Stacker, said: ShortlistScores, held: TrainingSet) -> stacking.Stacker:
    """The blend with who takes the first places of a row, by what is said of held-out rows."""
    known, sums, _ = _blended(mix, said)
    is_known = known_cells(held.observed, said.ids)
    sums, hits = np.where(is_known, sums, -np.inf), contains(held.Y, said.ids) & is_known
    rows, best = np.arange(len(sums))[:, None], _best(sums, top_rerank.TOPK_CANDIDATES)
    weights = top_rerank.fit(known[rows, best], sums[rows, best], hits[rows, best], held.weights)
    return mix._replace(top_weights=weights)


def _pairs(said: ShortlistScores, held: TrainingSet, n: int) -> stacking.HeldOutPairs:
    """Of the first n rows: their labels on the lists, as far as it is known whether they are true."""
    said, Y, ids = said.cut(slice(n), slice(None)), held.Y[:n], said.ids[:n]
    known = known_cells(None if held.observed is None else held.observed[:n], ids)
    weights = None if held.weights is None else np.broadcast_to(held.weights[:n, None], ids.shape)[known]
    return stacking.HeldOutPairs(said.evidence()[known], ids[known], contains(Y, ids)[known], weights)


def ranked(
    mix: stacking.Stacker, said: ShortlistScores, k: int, gains: Array | None = None
) -> tuple[Array, Array]:
    """The k best of short lists by the blend, with probabilities, times `gains` of labels if given.

    A label that moves up takes the probability of its new place, and those that it passes the next ones.
    """
    known, sums, scores = _blended(mix, said)
    if gains is not None:
        scores = scores * gains[np.maximum(said.ids, 0)]
        sums = np.where(said.ids >= 0, scores, -np.inf)
    rows, best = np.arange(len(sums))[:, None], _best(sums, max(k, top_rerank.TOPK_CANDIDATES))
    scores = scores[rows, best]
    if mix.top_weights is not None:
        first = best[:, : top_rerank.TOPK_CANDIDATES]
        seats = top_rerank.order(mix.top_weights, known[rows, first], sums[rows, first])
        best = np.concatenate([first[rows, seats], best[:, top_rerank.TOPK_CANDIDATES :]], axis=1)
    ids = said.ids[rows, best]
    return ids[:, :k], np.where(ids >= 0, break_ties(scores), 0)[:, :k]


def break_ties(scores: Array, first: int = 0) -> Array:
    """Scores (n, k) that do not rise, with equals told apart in their last digits: sorting keeps their order.

    first : the place of the first column
    """
    return scores * (1 - TIE_STEP * np.arange(first, first + scores.shape[1], dtype=np.float32))


def _blended(mix: stacking.Stacker, said: ShortlistScores) -> tuple[Array, Array, Array]:
    """The evidence, the sums and the probabilities of short lists; the sums of pads are −inf."""
    known = said.evidence()
    sums, scores = stacking.apply(mix, known, np.maximum(said.ids, 0))
    return known, np.where(said.ids >= 0, sums, -np.inf), scores


def _best(scores: Array, k: int) -> Array:
    """(n, k) columns of the largest scores, equals as they come."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


def pad_with_all_labels(ids: Array, votes: Array, n_labels: int) -> tuple[Array, Array]:
    """Lists of all labels, those without a vote after the others."""
    shares = np.zeros((len(ids), n_labels), np.float32)
    rows, columns = np.nonzero(ids >= 0)
    shares[rows, ids[rows, columns]] = votes[rows, columns]
    best = np.argsort(-shares, axis=1, kind="stable")
    return best, np.take_along_axis(shares, best, axis=1)


def _shares(voting: NeighborVoting, X: Matrix, ids: Array) -> Array:
    """(b, k) the shares of the votes that these labels, −1 pads, get from a method."""
    n_labels = len(voting.classes_)
    found, votes = voting._candidates(X, min(SECOND_TOP_K, n_labels))
    shares = np.zeros((len(ids), n_labels + 1), np.float32)
    np.put_along_axis(shares, np.where(found >= 0, found, n_labels), votes, axis=1)
    shares[:, n_labels] = 0  # of the pads
    return np.take_along_axis(shares, np.where(ids >= 0, ids, n_labels), axis=1)


def transform_sparse(feature_map: features.Features, X: Matrix) -> csr_matrix:
    A = features.apply(feature_map, X)
    return A if issparse(A) else csr_matrix(A)
