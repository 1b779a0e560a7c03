"""A voting method makes short lists of labels, and linear classifiers score the labels on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix, issparse, vstack
from sklearn.base import clone

from ..base import BLOCK
from ..runtime import parallel
from ..runtime.progress import phase
from ..selection import TrainingSet
from ..stages import features, label_lift, name_match, rerank, stacking
from ..validation.arrays import Matrix
from ..validation.observed import contains, informative_rows
from ..voting.base import NeighborVoting
from ..voting.votes import SearchResult

Array = np.ndarray
Result = TypeVar("Result")

MAX_PAIRS = 1_000_000  # negative pairs that classifiers learn from where all labels are on the short list,
MIN_LISTED = 20  # but at least so many of a row
LIST_BLOCK = 1_024  # training rows that are searched for at a time
MAX_LIFT_LABELS = 2_000  # labels up to which all pairs of labels are counted
SECOND_TOP_K = 300  # labels that the second shortlister ranks; others have no vote of it
FULL_REFIT_SHARE = 0.04  # of new rows, from which on a refit takes all its passes; with fewer, fewer suffice
PRUNE_BELOW = 0.03  # share of a label's largest weight; without smaller weights nothing was lost
PRUNE_CENTROIDS_BELOW = 0.1  # the same; centroids have many small weights, which slow predictions down


class Config(NamedTuple):
    """What is to be fitted.

    shortlister : the voting method that makes short lists, unfitted;  shortlist : labels on a list
    second : another one, whose votes for the labels on the lists are evidence too, or None
    features, loss, cost : of the classifiers; the loss "none" leaves them out
    n_passes : over the examples of a label, at first and after a warm start
    has_centroids : whether the similarity to the centroids of labels is evidence too
    """

    shortlister: NeighborVoting
    second: NeighborVoting | None
    shortlist: int
    features: str
    loss: str
    cost: float
    n_passes: tuple[int, int]
    has_centroids: bool


class ShortlistScores(NamedTuple):
    """The evidence on the labels of short lists, (b, k) each.

    ids : labels, −1 pads;  votes : shares of the votes;  margins : of the classifiers
    counts : training rows of the labels;  second_votes : shares of the second shortlister's votes, or None
    cooccurrence : lift by the other labels on the list, or None
    similarities : to the centroids of the labels, or None
    matches : scores of the labels' names in the texts, 0 without one, or None;  match_lifts : how much more
        often such matches of the labels were right than their scores say, or None
    """

    ids: Array
    votes: Array
    margins: Array
    counts: Array
    second_votes: Array | None
    cooccurrence: Array | None = None
    similarities: Array | None = None
    matches: Array | None = None
    match_lifts: Array | None = None

    def evidence(self, columns: Array | None = None) -> Array:
        """(b, k, f) the features of the stacker, or (b, m, f) of the labels in these columns, (b, m)."""
        return stacking.build_evidence(*self[1:], columns=columns)

    def logits(self, stacker: stacking.Stacker, engine: Any) -> Array:
        """(b, k) the logits of the labels; those of pads are −inf."""
        found = stacking.logits_of_lists(stacker, *self, engine=engine)
        return np.where(self.ids >= 0, found, -np.inf)

    def evidence_names(self) -> list[tuple[str, ...]]:
        """(f,) the kinds of evidence that each feature of the stacker is made of."""
        return stacking.evidence_names(
            self.second_votes is not None,
            self.cooccurrence is not None,
            self.similarities is not None,
            self.matches is not None,
        )

    def slice(self, rows: slice, columns: slice) -> ShortlistScores:
        return ShortlistScores._make(None if part is None else part[rows, columns] for part in self)


def concatenate(blocks: Sequence[ShortlistScores]) -> ShortlistScores:
    """The scores of several blocks of rows as one."""
    return ShortlistScores._make(
        None if parts[0] is None else np.concatenate(parts) for parts in zip(*blocks)
    )


class TrainedExamples(NamedTuple):
    """Examples that classifiers were trained on, and (m,) float32 their dual variables."""

    examples: rerank.Examples
    alphas: Array


class EvidenceLimits(NamedTuple):
    """The range of the evidence that a stacker was fitted on, beyond which it would extrapolate.

    A label that comes later may have fewer rows than any label had then, and its centroid is nearer to them.

    least_count : training rows of a label, at least;  largest_similarity : to a centroid
    """

    least_count: float
    largest_similarity: float

    @classmethod
    def of(cls, scores: ShortlistScores) -> EvidenceLimits:
        """The limits of the scores of held-out rows."""
        is_label, largest = scores.ids >= 0, np.inf
        if scores.similarities is not None:
            largest = float(scores.similarities.max(where=is_label, initial=-np.inf))
        return cls(float(scores.counts.min(where=is_label, initial=np.inf)), largest)


class RerankingPipeline(NamedTuple):
    """A fitted shortlister and classifiers.

    shortlister, second : fitted;  shortlist : labels of a row that are re-ranked
    counts : (L,) training rows of each label;  lifts : (L, L) of `label_lift`, where labels are few
    match_lifts : (L,) of `name_match`, where names of labels are matched
    centroids : of the labels, or None
    limits : of the evidence that the stacker has seen, in a model that grows, or None
    """

    shortlister: NeighborVoting
    second: NeighborVoting | None
    shortlist: int
    counts: Array
    feature_map: features.Features | None
    classifiers: rerank.Classifiers | None
    lifts: Array | None
    match_lifts: Array | None = None
    centroids: rerank.Classifiers | None = None
    limits: EvidenceLimits | None = None

    @property
    def n_listed(self) -> int:
        """The labels of a row that are re-ranked: those with the most votes, and others whose names match."""
        n_matched = 0 if self.match_lifts is None else name_match.MOST_LISTED
        return min(self.shortlist, self.shortlister.n_labels_) + n_matched

    def score(
        self,
        X: Matrix,
        k: int = 0,
        found: list[SearchResult] | None = None,
        matches: csr_matrix | None = None,
    ) -> ShortlistScores:
        """Score the labels on the short lists of a block of rows, and those after them up to the k-th.

        Labels after the short list have no margin.

        found : what the shortlister found, where it is known
        matches : (b, L) the scores of labels whose names stand in the texts
        """
        return self.add_margins(self.shortlists(X, k, found, matches), X)

    def shortlists(
        self,
        X: Matrix,
        k: int = 0,
        found: list[SearchResult] | None = None,
        matches: csr_matrix | None = None,
    ) -> ShortlistScores:
        """The short lists of a block of rows, with votes, but without the margins of classifiers."""
        n_labels = self.shortlister.n_labels_
        found = self.shortlister.search_neighbors(X) if found is None else found
        ids, votes = self.shortlister.rank(found, min(max(k, self.shortlist), n_labels))
        if self.shortlist >= n_labels:
            ids, votes = pad_with_all_labels(ids, votes, n_labels)
        match_scores = match_lifts = None
        if self.match_lifts is not None:
            matches = csr_matrix((len(ids), n_labels), dtype=np.float32) if matches is None else matches
            ids, votes = name_match.join_short_lists(ids, votes, matches, self.shortlist)
            match_scores = name_match.scores_of(matches, ids)
            match_lifts = np.where(match_scores > 0, self.match_lifts[np.maximum(ids, 0)], 0)
        counts = self.counts[np.maximum(ids, 0)]
        if self.limits is not None:
            counts = np.maximum(counts, self.limits.least_count)
        second_votes = None if self.second is None else _vote_shares(self.second, X, ids)
        margins = np.zeros(ids.shape, np.float32)
        return ShortlistScores(
            ids, votes, margins, counts, second_votes, matches=match_scores, match_lifts=match_lifts
        )

    def add_margins(self, scores: ShortlistScores, X: Matrix) -> ShortlistScores:
        """Score the labels on the short lists of a block of rows by their classifiers, if there are any."""
        if self.classifiers is None or self.feature_map is None:
            return scores
        n_listed, A = self.n_listed, transform_sparse(self.feature_map, X)
        listed = scores.ids[:, :n_listed]
        votes = scores.votes[:, :n_listed]

        def margins_of(linear: rerank.Classifiers, otherwise: Array) -> Array:
            """Labels that came after the fit, which votes alone are known of, have another value."""
            is_trained = listed < len(linear.bias)
            is_later = not is_trained.all()
            given = np.where(is_trained, listed, -1) if is_later else listed
            found = rerank.score(linear, A, given, engine=self.shortlister.engine)
            found = np.where(is_trained, found, otherwise) if is_later else found
            if n_listed == scores.ids.shape[1]:
                return found
            margins = np.full(scores.ids.shape, -np.inf, np.float32)
            margins[:, :n_listed] = found
            return margins

        margins = margins_of(self.classifiers, 2 * votes - 1)
        if self.centroids is not None:
            similarities = margins_of(self.centroids, votes)
            if self.limits is not None:
                similarities = np.minimum(similarities, self.limits.largest_similarity)
            scores = scores._replace(similarities=similarities)
        if self.lifts is None:
            return scores._replace(margins=margins)
        cooccurrence = np.zeros(scores.ids.shape, np.float32)
        cooccurrence[:, :n_listed] = label_lift.apply(self.lifts, listed, margins[:, :n_listed])
        return scores._replace(margins=margins, cooccurrence=cooccurrence)

    def score_in_blocks(self, rows: TrainingSet, listed: ShortlistScores | None = None) -> ShortlistScores:
        """Score the labels on the short lists of many rows, block by block on several threads.

        listed : their short lists, where these are known
        """
        X, matches = rows.X, rows.name_matches

        def score(block: slice) -> ShortlistScores:
            if listed is None:
                return self.score(X[block], matches=None if matches is None else matches[block])
            return self.add_margins(listed.slice(block, slice(None)), X[block])

        blocks = parallel.map_blocks(
            score,
            parallel.fine_blocks(X.shape[0], BLOCK, self.shortlister.engine.block_rows),
            n_jobs=self.shortlister.n_jobs,
            stage="held-out rows",
            total=X.shape[0],
        )
        return concatenate(list(blocks))


class FittedPipeline(NamedTuple):
    """A pipeline, and what its classifiers were trained on, or None."""

    pipeline: RerankingPipeline
    trained: TrainedExamples | None


def fit_pipeline(config: Config, rows: TrainingSet, rng: Generator) -> FittedPipeline:
    """Fit the shortlisters, then the classifiers on their short lists."""
    first_rng, rerank_rng, second_rng = rng.spawn(3)
    shortlister = fit_shortlister(config.shortlister, rows, first_rng)
    second = None if config.second is None else fit_shortlister(config.second, rows, second_rng)
    return fit_reranker(config, shortlister, second, rows, rerank_rng)


def refit_pipeline(config: Config, last: FittedPipeline, rows: TrainingSet, rng: Generator) -> FittedPipeline:
    """Fit on more rows, the first of which are those that the last pipeline was fitted on, in their order."""
    first_rng, rerank_rng, second_rng = rng.spawn(3)
    (shortlister, second, *_), trained = last
    n_before, engine = shortlister.labels_.shape[0], shortlister.engine
    del last  # What is not used any more is deleted here and below, since all of it is large.
    shortlister = _refit_shortlister(config.shortlister, shortlister, rows, first_rng)
    if config.second is not None and second is not None:
        second = _refit_shortlister(config.second, second, rows, second_rng)
    if trained is None:
        return FittedPipeline(without_classifiers(config, shortlister, second, rows), None)
    with phase("examples of the new rows", rows.n - n_before):
        if rows.observed is None:
            new = rows.subset(np.arange(n_before, rows.n))
            examples = examples_of_new_rows(shortlister, new, n_before, config.shortlist)
        else:
            examples = training_examples(shortlister, rows, config.shortlist)
        examples, start = rerank.extend_examples(*trained, examples, n_jobs=shortlister.n_jobs, engine=engine)
    del trained
    share = (rows.n - n_before) / rows.n
    n_passes = ceil(config.n_passes[1] * min(share / FULL_REFIT_SHARE, 1))
    return _fit_classifiers(config, shortlister, second, rows, rerank_rng, examples, start, n_passes)


def fit_shortlister(method: NeighborVoting, rows: TrainingSet, rng: Generator) -> NeighborVoting:
    """The method fitted to the rows."""
    fitted = clone(method).set_params(random_state=int(rng.integers(2**31))).with_engine(method.engine)
    with phase(f"short-listing by {type(method).__name__}", rows.n):
        # V can be float16; the stored row embeddings are read at every query, so they stay float32.
        fitted.fit_as_shortlister(rows, map_storage="float16")
    return fitted


def _refit_shortlister(
    method: NeighborVoting, fitted: NeighborVoting, rows: TrainingSet, rng: Generator
) -> NeighborVoting:
    """A method that was fitted to the first of the rows, with all of them.

    A map that is trained by epochs is kept, and embeds the other rows: training it on so few gained nothing.
    """
    if not fitted.has_random_start:
        return fit_shortlister(method, rows, rng)
    return fitted.with_rows(rows.subset(np.arange(fitted.labels_.shape[0], rows.n)))


def fit_reranker(
    config: Config,
    shortlister: NeighborVoting,
    second: NeighborVoting | None,
    rows: TrainingSet,
    rng: Generator,
    *,
    examples: rerank.Examples | None = None,
) -> FittedPipeline:
    """Add classifiers to fitted shortlisters.

    examples : what the classifiers are trained on, where it is known
    """
    if config.loss == "none":
        return FittedPipeline(without_classifiers(config, shortlister, second, rows), None)
    if examples is None:
        examples = training_examples(shortlister, rows, config.shortlist)
    return _fit_classifiers(
        config, shortlister, second, rows, rng, examples, start=None, n_passes=config.n_passes[0]
    )


def without_classifiers(
    config: Config, shortlister: NeighborVoting, second: NeighborVoting | None, rows: TrainingSet
) -> RerankingPipeline:
    return RerankingPipeline(
        shortlister,
        second,
        config.shortlist,
        rows.label_counts(),
        feature_map=None,
        classifiers=None,
        lifts=None,
        match_lifts=_match_lifts(rows),
    )


def _match_lifts(rows: TrainingSet) -> Array | None:
    return None if rows.name_matches is None else name_match.label_lifts(rows.name_matches, rows.Y)


def training_examples(shortlister: NeighborVoting, rows: TrainingSet, k: int) -> rerank.Examples:
    """The examples of all labels, by the short lists of the training rows."""
    with phase("short lists of the training rows", rows.n):
        listed = shortlists_leave_one_out(shortlister, rows.X, k)
    if rows.observed is not None:  # an unknown cell is not a negative example
        known = contains(rows.observed, listed) | ~informative_rows(rows.observed)[:, None]
        listed = np.where(known, listed, -1)
    matches = None if rows.name_matches is None else name_match.best_of_rows(rows.name_matches)
    return rerank.examples(rows.Y, listed, matches, n_jobs=shortlister.n_jobs, engine=shortlister.engine)


def _fit_classifiers(
    config: Config,
    shortlister: NeighborVoting,
    second: NeighborVoting | None,
    rows: TrainingSet,
    rng: Generator,
    examples: rerank.Examples,
    start: Array | None,
    n_passes: int,
) -> FittedPipeline:
    """Train classifiers on their examples; start : (m,) the α that they start from, which are overwritten."""
    feature_map = features.fit(config.features, rows.X, rng)
    A = transform_sparse(feature_map, rows.X)
    with phase("classifiers", rows.n):
        classifiers, alphas = rerank.fit(
            A,
            examples,
            loss=config.loss,
            cost=config.cost,
            row_weights=rows.row_weights,
            keep_from=PRUNE_BELOW,
            start=start,
            n_epochs=n_passes,
            n_jobs=shortlister.n_jobs,
            engine=shortlister.engine,
        )
    centroids = None
    if config.has_centroids:
        centroids = rerank.fit_centroids(
            A,
            rows.Y,
            row_weights=rows.row_weights,
            keep_from=PRUNE_CENTROIDS_BELOW,
            n_jobs=shortlister.n_jobs,
            engine=shortlister.engine,
        )
    counts_pairs = rows.Y.shape[1] <= MAX_LIFT_LABELS and rows.observed is None
    lifts = label_lift.fit(rows.Y) if counts_pairs else None
    pipeline = RerankingPipeline(
        shortlister,
        second,
        config.shortlist,
        rows.label_counts(),
        feature_map,
        classifiers,
        lifts,
        _match_lifts(rows),
        centroids,
    )
    return FittedPipeline(pipeline, TrainedExamples(examples, alphas))


def shortlists_leave_one_out(shortlister: NeighborVoting, X: Matrix, k: int) -> Array:
    """(n, k) int32, the short lists of training rows, each without its own vote."""
    order, search = shortlister.visiting_order(X.shape[0]), shortlister.leave_one_out(X)
    listed = np.empty((len(order), _list_length(shortlister, len(order), k)), np.int32)

    def write(block: slice) -> None:
        listed[order[block]] = _short_lists(shortlister, search(order[block]), k, len(order))

    for _ in _in_blocks(shortlister, write, len(order)):
        pass
    return listed


def examples_of_new_rows(
    shortlister: NeighborVoting, rows: TrainingSet, n_before: int, k: int
) -> rerank.Examples:
    """The examples that rows add to those of an earlier fit without them.

    Earlier rows are not searched for again. Instead, a new row votes for its labels on those of them that are
    nearest to it: otherwise, labels that only new rows have would have hardly any negative examples.

    shortlister : with all rows;  n_before : number of the earlier rows, which are the first
    """
    n, search = n_before + rows.n, shortlister.leave_one_out(rows.X, n_before)

    def find(block: slice) -> tuple[Array, Array]:
        found = search(np.arange(n_before + block.start, n_before + block.stop))
        near = np.concatenate([one.neighbors for one in found], axis=1)
        return _short_lists(shortlister, found, k, n), near

    listed, near = map(np.concatenate, zip(*_in_blocks(shortlister, find, rows.n)))
    is_near = (near >= 0) & (near < n_before)
    voters = _pairs(near[is_near], np.nonzero(is_near)[0], (n_before, rows.n))
    is_listed = listed >= 0
    lists = _pairs(np.nonzero(is_listed)[0], listed[is_listed], rows.Y.shape)
    if rows.name_matches is not None:
        lists = lists + name_match.best_of_rows(rows.name_matches)
    # The labels of new rows are positive examples of these alone.
    none = csr_matrix((n_before, rows.Y.shape[1]), dtype=np.float32)
    return rerank.examples(
        vstack([none, rows.Y], format="csr"),
        np.empty((n, 0), np.int32),
        vstack([voters @ rows.Y, lists], format="csr"),
        n_jobs=shortlister.n_jobs,
        engine=shortlister.engine,
    )


def _pairs(rows: Array, columns: Array, shape: tuple[int, int]) -> csr_matrix:
    return csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape)


def _list_length(shortlister: NeighborVoting, n: int, k: int) -> int:
    """The labels on a list that classifiers learn from; fewer where it holds all labels."""
    return k if k < shortlister.n_labels_ else min(k, max(MAX_PAIRS // n, MIN_LISTED))


def _short_lists(shortlister: NeighborVoting, found: list[SearchResult], k: int, n: int) -> Array:
    """(b, k) the short lists of some of the n training rows, by their neighbours."""
    ids, votes = shortlister.rank(found, k)
    if k >= shortlister.n_labels_:
        ids, _ = pad_with_all_labels(ids, votes, k)
    return ids[:, : _list_length(shortlister, n, k)]


def _in_blocks(shortlister: NeighborVoting, work: Callable[[slice], Result], n: int) -> Iterator[Result]:
    blocks = parallel.fine_blocks(n, LIST_BLOCK, shortlister.engine.block_rows)
    return parallel.map_blocks(work, blocks, n_jobs=shortlister.n_jobs, stage="short lists", total=n)


def pad_with_all_labels(ids: Array, votes: Array, n_labels: int) -> tuple[Array, Array]:
    """Lists of all labels, those without a vote after the others."""
    shares = np.zeros((len(ids), n_labels), np.float32)
    rows, columns = np.nonzero(ids >= 0)
    shares[rows, ids[rows, columns]] = votes[rows, columns]
    best = np.argsort(-shares, axis=1, kind="stable")
    return best, np.take_along_axis(shares, best, axis=1)


def _vote_shares(method: NeighborVoting, X: Matrix, ids: Array) -> Array:
    """(b, k) the shares of a method's votes that these labels, −1 pads, get."""
    n_labels = method.n_labels_
    found, votes = method.rank(method.search_neighbors(X), min(SECOND_TOP_K, n_labels))
    shares = np.zeros((len(ids), n_labels + 1), np.float32)
    np.put_along_axis(shares, np.where(found >= 0, found, n_labels), votes, axis=1)
    shares[:, n_labels] = 0  # the column of the pads
    return np.take_along_axis(shares, np.where(ids >= 0, ids, n_labels), axis=1)


def transform_sparse(feature_map: features.Features, X: Matrix) -> csr_matrix:
    """Transformed features as csr."""
    A = features.apply(feature_map, X)
    return A if issparse(A) else csr_matrix(A)
