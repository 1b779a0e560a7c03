"""Methods that embed rows by their labels, map features into that space, and let nearest rows vote."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix, issparse
from sklearn.base import clone

from ..base import BLOCK
from ..growing import GrowingEstimator
from ..runtime import parallel, progress
from ..runtime.logs import logger
from ..runtime.memory import DataSize, Estimate
from ..runtime.progress import phase
from ..selection import HeldOutScores, TrainingSet
from ..stages import factorize, features, index, neighbors, partition, quantize, regress, sppmi, vote
from ..stages.index import Index
from ..stages.vote import LabelScorer
from ..validation import params, stored
from ..validation.arrays import Matrix, mean_square, row_norms, take_rows, used_columns
from ..validation.columns import select
from . import explain
from .explain import ExplainOptions, Explanation, VoteBreakdown
from .growth import GrowingVoting
from .label_space import LabelSpaceMixin
from .memory import MemoryModel, part_rows
from .paper_settings import released
from .settings_search import Grid, choose
from .votes import (
    Embedding,
    FitContext,
    FitRun,
    LabelRows,
    Learner,
    MapData,
    Part,
    SearchResult,
    Settings,
    Votes,
    VotingModel,
    check_learner,
)

Array = np.ndarray

MIN_ROWS_TO_TUNE = 50  # rows below which settings are not chosen on held-out rows
KINDS = ("l2", "log1p-l2", "none", "standardize", "nystroem")  # of equals, the first is taken
FULL_BREADTH = 100  # neighbours, below which the search for those of training rows reads fewer cells
TINY = np.finfo(np.float32).tiny


@dataclass(kw_only=True, eq=False, repr=False)
class NeighborVoting(LabelSpaceMixin, GrowingVoting):
    """Features → parts → embed → map → index → vote; a method says how rows are embedded and mapped.

    A method implements `_embed`, `_paths` and `_fit_maps`; `RegressionVoting` has the last two. It may
    override `_grid`, `_searched_rows`, `_partition`, `_voting_labels`, `_rank`, `_vote_shares` and
    `_memory_model`.

    Attributes
    ----------
    features_, l2_, temperature_ : the settings chosen, or given
    labels_ : (n, L) csr, the labels that training rows vote for
    learners_ : the members of the ensemble
    rows_ : (n,) the numbers of the rows that vote;  kept_rows_ : the training rows, or None
    scorer_ : of label embeddings, where a method has them, or None
    voter_weights_ : (n,) of training rows, or None where they all count the same
    """

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        **GrowingEstimator._constraints,
        "n_components": params.whole(1),
        "n_neighbors": params.NEIGHBORS,
        "n_parts": params.either(params.one_of("auto", "paper"), params.whole(1)),
        "n_parts_probed": params.whole(1),
        "n_learners": params.whole(1),
        "features": params.one_of("auto", *features.KINDS),
        "metric": params.one_of("cosine", "euclidean"),
        "vote": params.one_of("similarity", "uniform"),
        "temperature": params.either(params.one_of("auto"), params.number(0, above=True)),
        "index": params.one_of("auto", "exact"),
        "keep_rows": params.one_of(False, True),
        "device": params.DEVICE,
    }

    n_components: int = 300
    n_neighbors: int = 50
    n_parts: str | int = "auto"
    n_parts_probed: int = 1
    n_learners: int = 1
    features: str = "auto"
    metric: str = "cosine"
    vote: str = "similarity"
    temperature: str | float = "auto"
    index: str = "auto"
    keep_rows: bool = False
    device: str = "cpu"
    storage = "float32"  # of V and of the row embeddings, where it is not a parameter

    _leaves_out_columns: ClassVar[bool] = True
    # What "auto" chooses among; of equals, the first is taken.
    _temperatures: ClassVar[tuple[float, ...]] = (0.05, 0.02, 0.1, 0.01)
    # Whether rows are embedded all together, or part by part.
    _embeds_whole: ClassVar[bool] = False
    # Whether maps start at random, so that an ensemble of them votes better than one.
    has_random_start: ClassVar[bool] = False

    # What a method implements or overrides.

    @abstractmethod
    def _embed(self, X: Matrix, Y: csr_matrix, rank: int, rng: Generator, **given: Any) -> Embedding:
        """Embed rows with these features, not transformed, and labels; of a part, or all.

        given : what `fit` takes beside them, and the chosen settings
        """

    def _grid(self, rows: TrainingSet) -> Grid:
        """The settings to choose among on held-out rows, the default of each first."""
        kinds = KINDS if self.features == "auto" else (self.features,)
        temperatures = self._temperatures if self.temperature == "auto" else (float(self.temperature),)
        return Grid(
            [kind for kind in kinds if self.features != "auto" or features.fits(kind, rows.X)],
            self._paths(),
            list(temperatures if self.vote == "similarity" else temperatures[:1]),
            [{}],
            [{}],
        )

    @abstractmethod
    def _paths(self) -> list[dict[str, Any]]:
        """Settings of `_fit_maps` to choose among, in the order in which it takes them."""

    @abstractmethod
    def _fit_maps(
        self, data: MapData, paths: list[dict[str, Any]], rng: Generator, context: FitContext | None = None
    ) -> Iterator[Array]:
        """A map from transformed features to embeddings, for each setting in turn.

        A map may be overwritten when the next one is asked for.
        """

    def _partition(
        self, X: Matrix, n_parts: int, cap: int, whole: Embedding | None, rng: Generator
    ) -> tuple[partition.Router, list[Array]]:
        """A router of new rows, and the training rows of each part, at most `cap`."""
        return partition.fit(X, n_parts, cap=cap, rng=rng)

    @property
    def _indexes_mapped_rows(self) -> bool:
        """Whether the index holds the rows as the map embeds them."""
        return True

    def _voting_labels(self, Y: csr_matrix, **given: Any) -> csr_matrix:
        """(n, L) the labels that training rows vote for."""
        return Y

    def _rank(
        self, votes: Votes, labels: csr_matrix, scorer: LabelScorer | None, k: int
    ) -> tuple[Array, Array]:
        """The k best labels by the votes of rows, and by label embeddings where a method has them."""
        return vote.top_labels(votes.neighbors, votes.weights, labels, k, engine=self.engine)

    def _vote_shares(self, votes: Votes, label: int) -> tuple[Array, float] | None:
        """(m,) what each neighbour adds to the score of a label of one row, and what label embeddings add.

        None where no label has a vote, so that the prior is predicted.
        """
        if not votes.weights.any():
            return None
        has_label = self.labels_[np.maximum(votes.neighbors[0], 0)][:, [label]].toarray().ravel() > 0
        weights = votes.weights[0] * (votes.neighbors[0] >= 0)
        return weights * has_label / weights.sum(), 0.0

    def _memory_model(self) -> MemoryModel:
        given = self.get_params(deep=False)
        tuned = (value for name, value in given.items() if name not in ("n_parts", "threshold", "index"))
        return MemoryModel(
            self.n_components,
            self.n_parts,
            self.n_learners,
            self.features,
            self.max_memory,
            self.n_jobs,
            self.keep_rows,
            self.storage,
            self.index,
            is_tuned=any(isinstance(value, str) and value == "auto" for value in tuned),
            has_threshold=isinstance(self.threshold, str),
        )

    # Fitting.

    def _fit(
        self, X: Matrix, Y: csr_matrix, rng: Generator, checkpoint: Any = None, **side: Any
    ) -> HeldOutScores | None:
        return self._fit_voting(X, Y, rng, FitRun(checkpoint), **side)

    def fit_as_shortlister(self, rows: TrainingSet, *, map_storage: str | None = None) -> None:
        """Fit within a re-ranking model, on rows that all have a label.

        map_storage : storage of V where it differs from that of the row embeddings
        """
        side = {name: value for name, value in rows.side.items() if name in self._side}
        X, Y, rng, side = self._start(rows.X, rows.Y, None, is_part=True, **side)
        fit_rng, _ = rng.spawn(2)
        self._fit_voting(X, Y, fit_rng, FitRun(None, rows.row_weights, map_storage, rows.label_rows), **side)
        self.threshold_ = 0.0

    def _fit_voting(
        self, X: Matrix, Y: csr_matrix, rng: Generator, run: FitRun, **side: Any
    ) -> HeldOutScores | None:
        settings_rng, features_rng, parts_rng, whole_rng = rng.spawn(4)
        labelled = self._trainable_rows(Y, **side)
        kept_rows = X.copy() if self._keeps_rows else None
        rows = TrainingSet(X, Y, side, self._side).subset(labelled)
        with phase("settings", rows.n, until=0.5):
            settings = self._choose_settings(rows, labelled, settings_rng, run.checkpoint)
        logger.debug("%s takes %s", type(self).__name__, settings._replace(held_out=None))
        feature_map = features.fit(settings.features, rows.X, features_rng)
        given = {**rows.side, **settings.chosen()}
        whole = None
        if self._embeds_whole:
            with phase("embedding", rows.n):
                whole = self._embed(rows.X, rows.Y, self.n_components, whole_rng, **given)
        with phase("maps and index", rows.n, until=1.0):
            context = FitContext(feature_map, settings, run)
            learners = self._fit_learners(rows, whole, context, parts_rng.spawn(self.n_learners))
        label_embeddings = None if whole is None else whole.labels
        self.scorer_ = None if label_embeddings is None else vote.label_scorer(label_embeddings)
        self.labels_ = self._voting_labels(rows.Y, **given)
        self.learners_ = learners
        self.feature_map_ = features.without_projection(feature_map)
        self.features_, self.temperature_ = settings.features, settings.temperature
        for name, value in settings.chosen().items():
            setattr(self, f"{name}_", [*value] if isinstance(value, tuple) else value)
        self.rows_, self.kept_rows_ = labelled.astype(np.int32), kept_rows
        self.voter_weights_ = None if run.row_weights is None else run.row_weights[labelled]
        return settings.held_out

    def _choose_settings(
        self, rows: TrainingSet, numbers: Array, rng: Generator, checkpoint: Any
    ) -> Settings:
        """Choose the settings that are "auto" on held-out rows, whose scores may serve the threshold too.

        numbers : (n,) what the rows are called among all
        """
        kept = checkpoint.get("settings", Settings) if checkpoint else None
        if kept is not None:
            return kept
        grid = self._grid(rows)
        if any(len(values) > 1 for values in grid) and rows.n >= MIN_ROWS_TO_TUNE:
            settings = choose(self, grid, rows, numbers, rng)
        else:
            settings = grid.only()
        if checkpoint:
            checkpoint.put("settings", settings)
        return settings

    def _fit_learners(
        self, rows: TrainingSet, whole: Embedding | None, context: FitContext, seeds: list[Generator]
    ) -> list[Learner]:
        """Fit the members of the ensemble, on threads of their own where they need little memory."""
        if not self._memory_model().learners_in_parallel or len(seeds) == 1:  # each shows its own stages
            return [self._fit_learner(rows, whole, context, seed) for seed in seeds]
        total = rows.n * len(seeds) * context.settings.path.get("n_epochs", 1)
        with progress.stage("learners", total) as advance:
            shared = context._replace(advance=advance)
            fitted = parallel.map_blocks(
                lambda which: self._fit_learner(rows, whole, shared, seeds[which.start]),
                parallel.blocks(len(seeds), 1),
                n_jobs=self.n_jobs,
                stage="learners",
                total=len(seeds),
            )
            return list(fitted)

    def _fit_learner(
        self, rows: TrainingSet, whole: Embedding | None, context: FitContext, rng: Generator
    ) -> Learner:
        """Partition the rows and fit a map in each part."""
        n_parts = self._memory_model().count_parts(DataSize.of(rows.X, rows.Y))
        routed = features.apply_for_routing(context.feature_map, rows.X) if n_parts > 1 else rows.X
        router, parts = self._partition(routed, n_parts, part_rows(rows.n, n_parts), whole, rng)
        del routed
        present = [part for part in parts if part.size]
        if len(present) < n_parts:
            router = partition.Router(router.centers[[part.size > 0 for part in parts]])
        given, fitted = {**rows.side, **context.settings.chosen()}, []
        for part, part_rng in zip(present, rng.spawn(len(present))):
            X, Y = take_rows(rows.X, part), take_rows(rows.Y, part)
            if whole is None:
                Z = self._embed(X, Y, self.n_components, part_rng, **given).rows
            else:
                Z = whole.part(part)
            fitted.append(self._fit_part(X, Y, Z, part, context, part_rng))
        return Learner(router, fitted)

    def _fit_part(
        self, X: Matrix, Y: csr_matrix, Z: Array, rows: Array, context: FitContext, rng: Generator
    ) -> Part:
        feature_map, settings, run = context[:3]
        X = features.apply(feature_map, X)
        # A part keeps the rows of V for the features that occur in it.
        columns = used_columns(X) if issparse(X) else np.arange(X.shape[1])
        X = select(X, columns) if len(columns) < X.shape[1] else X
        label_rows = _label_rows(run.label_rows, Y, feature_map, columns)
        data = MapData(X, Y, Z, self.n_components, label_rows)
        V = next(self._fit_maps(data, [settings.path], rng, context))
        in_cells = self._memory_model().has_cells(len(rows))
        searched = self._searched_rows(X, V, Z)
        built = index.build(searched, self.metric, self.storage, in_cells=in_cells, n_jobs=self.n_jobs)
        if feature_map.kind == "nystroem":
            # The entries of such a V cancel each other, so that fewer bits would lose too much.
            packed = quantize.pack(features.fold_projection(feature_map, V), "float32")
        else:
            packed = quantize.pack(V, (run.map_storage if issparse(X) else None) or self.storage)
        return Part(rows, columns, packed, built)

    def _searched_rows(self, X: Matrix, V: Array, Z: Array) -> Array:
        """(n, r) the embeddings of training rows that are searched among."""
        return quantize.embed(X, V, n_jobs=self.n_jobs, engine=self.engine)

    def _contexts(self, points: Matrix, group: Array, k: int, rng: Generator) -> Array:
        """(n, k) the other rows nearest to each by cosine, −1 pads; row i is at the point group[i].

        With label sets as points this is N_k(y_i) of the paper.
        """
        built = index.build(points, "cosine")

        def search(block: slice) -> tuple[Array, Array]:
            near, similar = index.search(built, points[block], k + 1, engine=self.engine)
            return vote.drop_dissimilar(near, similar), similar

        nearest = self._in_blocks(search, points.shape[0], k + 1, "neighbours")[0]
        return neighbors.expand(nearest, group, k, rng, engine=self.engine)

    def _tuned_params(self) -> dict[str, Any]:
        """The values that were chosen for parameters that are "auto"."""
        given = self.get_params(deep=False)
        tuned = [name for name, value in given.items() if isinstance(value, str) and value == "auto"]
        return {n: getattr(self, f"{n}_") for n in tuned if n != "threshold" and hasattr(self, f"{n}_")}

    def _probe(self) -> Self:
        return super()._probe().set_params(**self._tuned_params())

    def tuned_clone(self) -> Self:
        """An unfitted clone with the parameters that were chosen and as many learners."""
        settings = {"temperature": self.temperature_, "n_learners": len(self.learners_)}
        tuned = clone(self).set_params(**{**self._tuned_params(), **settings})
        return tuned.with_engine(self.engine)

    def with_temperature(self, temperature: float) -> Self:
        """The fitted model with another temperature; everything else is shared."""
        other = copy.copy(self)
        other.temperature_ = temperature
        return other

    def with_learners(self, learners: Sequence[Learner]) -> Self:
        """The fitted model with more learners; everything else is shared."""
        other = copy.copy(self)
        other.learners_ = [*self.learners_, *learners]
        return other

    # Loading.

    def _check_learnt(self) -> None:
        super()._check_learnt()
        (d, n_labels), labels = self._widths, self.labels_
        stored.require(issparse(labels), "the labels that rows vote for are not sparse")
        stored.matrix(labels, "the labels that rows vote for", None, n_labels)
        n = labels.shape[0]
        # Kernels take a label without votes for a new one, and negative votes could cancel others.
        stored.require(n and labels.data.min(initial=0) >= 0, "the labels that rows vote for are negative")
        stored.require(isinstance(self.learners_, list) and self.learners_, "there are no learners")
        width = features.check(self.feature_map_, d)
        ranks = {check_learner(learner, self.metric, n, d, width) for learner in self.learners_}
        has_parts = any(len(learner.parts) > 1 for learner in self.learners_)
        fits = len(ranks) == 1 and (not has_parts or ranks == {self.n_components})
        stored.require(fits, "learners have embeddings of different dimensions")
        if self.scorer_ is not None:
            vote.check(self.scorer_, n_labels, ranks.pop())
        stored.require(
            stored.number(self.temperature_, "the temperature") > 0, "the temperature is not above 0"
        )
        stored.require(self.features_ in features.KINDS, "the kind of features is not known")
        check_rows(self.rows_, n, self._n_stored, self.kept_rows_, d)
        if self.voter_weights_ is not None:
            stored.array(self.voter_weights_, "the weights of rows", stored.FLOATS, n)
        for name in ("l2_", "n_epochs_", "complete_labels_", "visible_share_"):
            stored.number(getattr(self, name, 0), name)

    # Predicting.

    @property
    def _score_meaning(self) -> str:
        return "shares of votes"

    def _candidates(self, X: Matrix, k: int) -> tuple[Array, Array]:
        return self.rank(self.search_neighbors(X), k)

    def rank(
        self, found: list[SearchResult], k: int, temperature: float | None = None
    ) -> tuple[Array, Array]:
        """The k best labels by what was found, at the model's temperature or another one."""
        return self._rank(self._weigh_votes(found, temperature), self.labels_, self.scorer_, k)

    def rank_at(self, X: Matrix, temperatures: Sequence[float], k: int) -> Array:
        """(t, n, k) the k best labels of each row at each of the temperatures, with one search."""

        def rank(block: slice) -> list[Array]:
            found = self.search_neighbors(X[block])
            return [self.rank(found, k, temperature)[0] for temperature in temperatures]

        n = X.shape[0]
        ranked = parallel.map_blocks(
            rank,
            parallel.fine_blocks(n, BLOCK, self.engine.block_rows),
            n_jobs=self.n_jobs,
            stage="choosing settings",
            total=n,
        )
        return np.concatenate([np.stack(ids) for ids in ranked], axis=1)

    def rank_in_blocks(
        self, rank: Callable[[slice], tuple[Array, Array]], n: int, k: int, stage: str
    ) -> tuple[Array, Array]:
        """(n, k) ids and scores from a function of blocks of rows, on the model's threads."""
        return self._in_blocks(rank, n, k, stage)

    def search_neighbors(self, X: Matrix) -> list[SearchResult]:
        """The neighbours of a block of rows, for each learner and each part that is probed."""
        return self._search_all(X, self.n_neighbors)

    def leave_one_out(self, X: Matrix, first: int = 0) -> Callable[[Array], list[SearchResult]]:
        """A function from numbers of training rows to their neighbours, each row without itself.

        X : (n − first, d) the training rows from this number on, which are those that are asked for
        """
        k = self.n_neighbors + 1
        if any(len(learner.parts) > 1 for learner in self.learners_) or not self._indexes_mapped_rows:
            return lambda rows: [_drop_self(rows, one) for one in self._search_all(X[rows - first], k)]
        # The index holds the embeddings of training rows: they need not be computed again.
        indexes = [learner.parts[0].row_index for learner in self.learners_]
        positions = [index.positions(built) for built in indexes]
        # Few neighbours are nearer, and fewer cells hold them.
        breadth = min(self.n_neighbors / FULL_BREADTH, 1)

        def search(rows: Array) -> list[SearchResult]:
            found = []
            for built, position in zip(indexes, positions):
                Z = index.stored_rows(built, position[rows])
                found.append(
                    _drop_self(rows, SearchResult(*self.search_index(built, Z, k, breadth=breadth), Z))
                )
            return found

        return search

    def _search_all(self, X: Matrix, k: int) -> list[SearchResult]:
        is_routed = any(len(learner.parts) > 1 for learner in self.learners_)
        routed = features.apply_for_routing(self.feature_map_, X) if is_routed else X
        X = features.apply(self.feature_map_, X, engine=self.engine)
        return [one for learner in self.learners_ for one in self._search_learner(learner, X, routed, k)]

    def visiting_order(self, n: int) -> Array:
        """(n,) training rows in an order in which near ones follow each other, so that they share cells."""
        parts = self.learners_[0].parts
        if len(parts) > 1:
            return np.arange(n)
        return parts[0].rows[index.storage_order(parts[0].row_index)]

    def _search_learner(self, learner: Learner, X: Matrix, routed: Matrix, k: int) -> Iterator[SearchResult]:
        """The k nearest rows in each part that rows are routed to."""
        if len(learner.parts) == 1:
            yield self._search_part(learner.parts[0], X, k)
            return
        for choice in learner.router.assign(routed, min(self.n_parts_probed, len(learner.parts))).T:
            found = SearchResult(
                np.full((X.shape[0], k), -1, np.int64),
                np.full((X.shape[0], k), -np.inf, np.float32),
                np.empty((X.shape[0], self.n_components), np.float32),
            )
            for p in np.unique(choice):
                own = np.flatnonzero(choice == p)
                for array, values in zip(found, self._search_part(learner.parts[p], X[own], k)):
                    array[own] = values
            yield found

    def _search_part(self, part: Part, X: Matrix, k: int) -> SearchResult:
        Z = quantize.times(X, part.V, part.columns, engine=self.engine)
        near, similar = self.search_index(part.row_index, Z, k)
        rows = part.rows if len(part.rows) else np.array([-1])  # a part may have lost all its rows
        return SearchResult(np.where(near >= 0, rows[np.maximum(near, 0)], -1), similar, Z)

    def search_index(self, built: Index, Z: Array, k: int, *, breadth: float = 1.0) -> tuple[Array, Array]:
        """(b, k) neighbours of embeddings, −1 pads, and similarities; breadth : as in `index.search`."""
        near, similar = index.search(built, Z, k, breadth=breadth, engine=self.engine)
        return self._drop_dissimilar(near, similar), similar

    def _drop_dissimilar(self, near: Array, similar: Array) -> Array:
        return vote.drop_dissimilar(near, similar) if self.metric == "cosine" else near

    def _weigh_votes(self, found: list[SearchResult], temperature: float | None = None) -> Votes:
        """Votes by similarity; every learner and every part that was probed has one vote in all."""
        temperature = self.temperature_ if temperature is None else temperature
        weights = []
        for near, similar, _ in found:
            weight = vote.weigh(near, similar, self.vote, temperature)
            if self.voter_weights_ is not None:
                weight *= self.voter_weights_[np.maximum(near, 0)]
            weights.append(weight / np.maximum(weight.sum(axis=1, keepdims=True), TINY))
        voters = np.concatenate([one.neighbors for one in found], axis=1)
        return Votes(voters, np.concatenate(weights, axis=1), [one.embeddings for one in found])

    # Explaining.

    def _explain_row(
        self, X: Matrix, label: int | None, n: int, feature_names: Any, kept_row: Any = None, **side: Any
    ) -> Explanation:
        found = self.search_neighbors(X)
        column = int(self.rank(found, 1)[0][0, 0]) if label is None else label
        names = self.columns_.feature_names(feature_names)
        options = ExplainOptions.of(n, names, kept_row, self.kept_rows_)
        breakdown, prior = self.vote_breakdown(found, column), self._prior(column)
        return explain.by_votes(self._voting_model(), breakdown, X, self._used_label(column), prior, options)

    def vote_breakdown(self, found: list[SearchResult], label: int) -> VoteBreakdown:
        """The neighbours of one row that voted for a label, as `_rank` counts."""
        votes = self._weigh_votes(found)
        n_probed = [min(self.n_parts_probed, len(learner.parts)) for learner in self.learners_]
        learner_of = [number for number, probed in enumerate(n_probed) for _ in range(probed)]
        learners = np.repeat(learner_of, votes.neighbors.shape[1] // len(found))
        similar = np.concatenate([one.similarities[0] for one in found])
        counted = self._vote_shares(votes, label)
        if counted is None:
            prior = self.labels_[:, [label]].sum() / max(self.labels_.shape[0], 1)
            counted = np.zeros(votes.neighbors.shape[1]), float(prior)
        return VoteBreakdown.of(votes.neighbors[0], similar, learners, *counted)

    def _voting_model(self) -> VotingModel:
        return VotingModel(
            self.learners_, self.feature_map_, self.metric, self.labels_, self.scorer_, self.rows_
        )

    def _estimate(self, data: DataSize) -> Estimate:
        return self._memory_model().estimate(data)


@dataclass(kw_only=True, eq=False, repr=False)
class RegressionVoting(NeighborVoting):
    """A voting method whose map is a regression of features on an embedding; it implements `_embed` alone."""

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        **NeighborVoting._constraints,
        "l2": params.either(params.one_of("auto"), params.number(0)),
        "l1": params.number(0),
        "search": params.one_of("mapped", "embedded"),
    }
    _l2s: ClassVar[tuple[float, ...]] = (1.0, 0.1, 10.0)

    l2: str | float = "auto"
    l1: float = 0.0
    search: str = "mapped"

    @classmethod
    def paper(cls, data_set: str | None = None, **changes: Any) -> Self:
        """The paper's settings as far as it states them; those that it takes from SLEEC are SLEEC's.

        Parameters
        ----------
        data_set : the name of a data set that SLEEC's authors released settings for, such as "eurlex-4k"; a
            general rule if not given
        """
        settings = {"n_components": 100, "n_neighbors": 20, "n_parts": "paper", "features": "l2", "l2": 1.0}
        if data_set is not None:
            settings |= released(data_set).parameters(cls().get_params(deep=False))
        return cls(**{**settings, "vote": "uniform", "temperature": 1.0, **changes})

    def _paths(self) -> list[dict[str, Any]]:
        return [{"l2": l2} for l2 in (self._l2s if self.l2 == "auto" else (float(self.l2),))]

    def _fit_maps(
        self, data: MapData, paths: list[dict[str, Any]], rng: Generator, context: FitContext | None = None
    ) -> Iterator[Array]:
        scaled = [path["l2"] * mean_square(data.X) for path in paths]
        found = regress.path(data.X, data.Z, scaled, l1=self.l1, n_jobs=self.n_jobs, engine=self.engine)
        for V in found:
            if context is not None:
                context.advance(len(data.Z))
            yield V

    def _factorize(self, overlaps: sppmi.Overlaps, rank: int, rng: Generator) -> Array:
        """(m, r) the embeddings of label sets, and of labels after them, by a factorization of the SPPMI."""
        S = sppmi.operator(
            overlaps,
            n_jobs=self.n_jobs,
            max_bytes=self._memory_model().max_overlaps,
            engine=self.engine,
        )
        U, s = factorize.embed(S, rank, rng, symmetric=not overlaps.conditional)
        # A row of U belongs to a label set and is W^½ times as long as the embedding of each of its rows.
        return U * np.sqrt(s) / overlaps.scale[:, None]

    def _searched_rows(self, X: Matrix, V: Array, Z: Array) -> Array:
        return super()._searched_rows(X, V, Z) if self._indexes_mapped_rows else Z

    @property
    def _indexes_mapped_rows(self) -> bool:
        return self.search == "mapped"


def check_rows(rows: Any, n: int, n_all: int, kept_rows: Any, d: int) -> None:
    """Check the numbers of the n rows that vote among all n_all rows, and these rows, if they are kept."""
    stored.ids(rows, "the numbers of training rows", n, n_all)
    if kept_rows is not None:
        stored.matrix(kept_rows, "the training rows", n_all, d)


def _label_rows(
    given: Matrix | None, Y: csr_matrix, feature_map: features.Features, columns: Array
) -> LabelRows | None:
    """The transformed rows, (L, d) as given, of the labels that occur, with these columns."""
    if given is None:
        return None
    labels = np.unique(Y.indices)
    rows = features.apply(feature_map, take_rows(given, labels))
    rows = select(rows, columns) if issparse(rows) else rows
    described = np.flatnonzero(row_norms(rows))
    return LabelRows(labels[described], rows[described])


def _drop_self(own: Array, found: SearchResult) -> SearchResult:
    """Neighbours (b, k + 1) without the row itself, or without the last where it is not among them."""
    near, similar, Z = found
    is_own = near == own[:, None]
    drop = np.where(is_own.any(axis=1), is_own.argmax(axis=1), near.shape[1] - 1)
    keep = np.arange(near.shape[1]) != drop[:, None]
    return SearchResult(near[keep].reshape(len(near), -1), similar[keep].reshape(len(near), -1), Z)
