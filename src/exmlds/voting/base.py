"""Methods that embed rows by their labels, map features into that space, and let neighbours vote."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.base import clone

from ..base import BLOCK, XMCEstimator
from ..runtime import parallel, progress
from ..runtime.memory import DataSize
from ..stages import features, index, neighbors, partition, quantize, regress, vote
from ..stages.index import Index
from ..stages.vote import LabelScorer
from ..validation import params
from ..validation.arrays import Matrix
from . import explain
from .explain import ExplainOptions, Explanation, VoteBreakdown
from .label_space import LabelSpaceMixin
from .memory import MemoryBound
from .settings_search import Grid, LabelledRows, choose
from .votes import Embedding, Votes

Array = np.ndarray

MIN_ROWS_TO_TUNE = 50  # rows below which there is nothing to choose on
KINDS = ("l2", "log1p-l2", "none", "standardize", "nystroem")  # of equals, the first is taken
TINY = np.finfo(np.float32).tiny

# Parameters of the methods that regress features on an embedding.
REGRESSION: Mapping[str, params.Constraint] = {
    "l2": params.either(params.one_of("auto"), params.number(0)),
    "l1": params.number(0),
    "search": params.one_of("mapped", "embedded"),
}


class Part(NamedTuple):
    """A map of its own for rows that are near each other."""

    rows: Array  # (n,) training rows of the part
    columns: Array  # (d',) features that occur in it
    V: quantize.Packed  # (d', r)
    found: Index  # of their embeddings


class Learner(NamedTuple):
    """A member of the ensemble."""

    router: partition.Router
    parts: list[Part]


class NeighborVoting(MemoryBound, LabelSpaceMixin):
    """Features → parts → embed → regress → index → vote; a method says how a part's rows are embedded.

    Attributes after fit
    --------------------
    features_, l2_, temperature_ : the settings chosen, or given
    labels_ : (n, L) csr, the labels that training rows vote for
    learners_ : the members of the ensemble
    rows_ : (n,) the numbers of the rows that vote;  kept_rows_ : the training rows, or None
    """

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        **XMCEstimator._constraints,
        "n_components": params.whole(1),
        "n_neighbors": params.whole(1),
        "n_parts": params.either(params.one_of("auto", "paper"), params.whole(1)),
        "n_parts_probed": params.whole(1),
        "n_learners": params.whole(1),
        "features": params.one_of("auto", *features.KINDS),
        "metric": params.one_of("cosine", "euclidean"),
        "vote": params.one_of("similarity", "uniform"),
        "temperature": params.either(params.one_of("auto"), params.number(0, above=True)),
        "keep_rows": params.one_of(False, True),
    }

    n_neighbors: int
    n_parts_probed: int
    l2: str | float
    l1: float
    metric: str
    search: str
    vote: str
    temperature: str | float
    keep_rows: bool

    # What "auto" chooses among; of equals, the first is taken.
    _l2s: ClassVar[tuple[float, ...]] = (1.0, 0.1, 10.0)
    _temperatures: ClassVar[tuple[float, ...]] = (0.05, 0.02, 0.1, 0.01)
    # Whether rows are embedded all together, or part by part.
    _embeds_whole: ClassVar[bool] = False
    _advance: progress.Advance = staticmethod(lambda rows: None)  # called with rows that were learnt from

    # A method may make parameters of these.
    _map_storage: str | None = None  # of the V of sparse rows, where it is another
    scorer_: LabelScorer | None = None  # of methods that embed labels
    voter_weights_: Array | None = None  # (n,) of training rows, where they do not all count the same

    @abstractmethod
    def _embed(
        self, X: Matrix, Y: csr_matrix, rank: int, rng: np.random.Generator, **given: Any
    ) -> Embedding:
        """Embed rows with these features, not transformed, and labels; of a part, or all.

        given : what `fit` takes beside them, and the settings of `_embedding_settings`
        """

    def _embedding_settings(self, Y: csr_matrix, **side: Any) -> list[dict[str, Any]]:
        """Settings of `_embed` to choose among on held-out rows, the default first."""
        return [{}]

    def _voting_settings(self) -> list[dict[str, Any]]:
        """Settings of `_voting_labels` to choose among on held-out rows, the default first."""
        return [{}]

    def _voting_labels(self, Y: csr_matrix, **given: Any) -> csr_matrix:
        """(n, L) the labels that training rows vote for."""
        return Y

    def _rank(
        self, votes: Votes, labels: csr_matrix, scorer: LabelScorer | None, k: int
    ) -> tuple[Array, Array]:
        """The k best labels by the votes of rows, and of labels where they are embedded."""
        return vote.top_labels(votes.neighbors, votes.weights, labels, k)

    def _learn(self, X: Any, Y: Any, label_names: Sequence[str] | None, **side: Any) -> Self:
        try:
            return super()._learn(X, Y, label_names, **side)
        finally:
            # Of a fit, until the threshold is chosen.
            for name in ("_held", "_chosen", "_advance", "_projected"):
                self.__dict__.pop(name, None)

    def _fit(self, X: Matrix, Y: csr_matrix, rng: np.random.Generator, **side: Any) -> None:
        settings_rng, features_rng, parts_rng, whole_rng = rng.spawn(4)
        labelled = self._trainable_rows(Y, **side)
        self.kept_rows_ = X.copy() if self.keep_rows else None
        self.rows_ = labelled.astype(np.int32)
        X, Y, side = X[labelled], Y[labelled], self.side_rows(side, labelled)
        self._held: tuple[Array, Array, Array] | None = None  # until the threshold is chosen
        self._choose_settings(X, Y, labelled, settings_rng, side)
        self._projected = features.fit(self.features_, X, features_rng)
        chosen = {**side, **self._chosen}
        whole = self._embed(X, Y, self.n_components, whole_rng, **chosen) if self._embeds_whole else None
        labels = whole.labels if whole is not None else None
        self.scorer_ = None if labels is None else vote.label_scorer(labels)
        self.labels_ = self._voting_labels(Y, **chosen)
        seeds = parts_rng.spawn(self.n_learners)
        if self._learners_at_once and self.n_learners > 1:
            with progress.stage("learners", self._rows_learnt(X.shape[0])) as self._advance:
                fitted = parallel.map_blocks(
                    lambda which: self._fit_learner(X, Y, whole, seeds[which.start], chosen),
                    parallel.blocks(self.n_learners, 1),
                    n_jobs=self.n_jobs,
                    stage="learners",
                    total=self.n_learners,
                )
                learners = list(fitted)
        else:  # each shows its own stages
            learners = [self._fit_learner(X, Y, whole, mine, chosen) for mine in seeds]
        self.learners_, self.feature_map_ = learners, features.without_projection(self._projected)

    def _rows_learnt(self, n: int) -> int:
        """How many rows all learners learn from, one after another."""
        return n * self.n_learners

    def _fit_learner(
        self,
        X: Matrix,
        Y: csr_matrix,
        whole: Embedding | None,
        rng: np.random.Generator,
        given: Mapping[str, Any],
    ) -> Learner:
        n_parts = self._n_parts(DataSize.of(X, Y))
        routed = features.apply_for_routing(self._projected, X) if n_parts > 1 else X
        router, parts = self._partition(routed, n_parts, self._part_rows(X.shape[0], n_parts), whole, rng)
        del routed
        kept = [rows for rows in parts if rows.size]
        if len(kept) < n_parts:
            router = partition.Router(router.centers[[rows.size > 0 for rows in parts]])
        fitted = []
        for rows, mine in zip(kept, rng.spawn(len(kept))):
            if whole is None:
                Z = self._embed(X[rows], Y[rows], self.n_components, mine, **given).rows
            else:
                Z = whole.part(rows)
            fitted.append(self._fit_part(X[rows], Y[rows], Z, rows, mine))
        return Learner(router, fitted)

    def _partition(
        self, X: Matrix, n_parts: int, cap: int, whole: Embedding | None, rng: np.random.Generator
    ) -> tuple[partition.Router, list[Array]]:
        """A router of new rows, and the training rows of each part, at most `cap`."""
        return partition.fit(X, n_parts, cap=cap, rng=rng)

    def _fit_part(self, X: Matrix, Y: csr_matrix, Z: Array, rows: Array, rng: np.random.Generator) -> Part:
        X = features.apply(self._projected, X)
        columns = np.unique(X.indices) if issparse(X) else np.arange(X.shape[1])
        X = X[:, columns] if len(columns) < X.shape[1] else X
        path = {name: self._chosen[name] for name in self._path_settings()[0]}
        V = self._map(X, Y, Z, columns, path, rng)
        is_exact = self._is_searched_exactly(len(rows))
        found = index.build(self._searched(X, V, Z), self.metric, self.storage, is_exact=is_exact)
        return Part(rows, columns, self._packed(V, issparse(X)), found)

    def _packed(self, V: Array, is_sparse: bool) -> quantize.Packed:
        """As a part keeps it; a map of the kernel as it is, since its numbers cancel each other."""
        if self._projected.kind == "nystroem":
            return quantize.pack(features.fold_projection(self._projected, V), "float32")
        return quantize.pack(V, (self._map_storage if is_sparse else None) or self.storage)

    def _map(
        self,
        X: Matrix,
        Y: csr_matrix,
        Z: Array,
        columns: Array,
        path: dict[str, Any],
        rng: np.random.Generator,
    ) -> Array:
        """V (d, r) of a part; columns : (d,) which features these are of all."""
        return next(self._maps(X, Y, Z, [path], self.n_components, rng))

    def _path_settings(self) -> list[dict[str, Any]]:
        """Settings of `_maps` to choose among on held-out rows, in the order that it takes them."""
        return [{"l2": l2} for l2 in (self._l2s if self.l2 == "auto" else (float(self.l2),))]

    def _maps(
        self,
        X: Matrix,
        Y: csr_matrix,
        Z: Array,
        paths: list[dict[str, Any]],
        rank: int,
        rng: np.random.Generator,
    ) -> Iterator[Array]:
        """V (d, r), from transformed features to embeddings, for each setting in turn."""
        scaled = [path["l2"] * _mean_square(X) for path in paths]
        return regress.path(X, Z, scaled, l1=self.l1, n_jobs=self.n_jobs)

    def _searched(self, X: Matrix, V: Array, Z: Array) -> Array:
        """(n, r) where the training rows lie that are searched among."""
        return np.asarray(X @ V) if self.search == "mapped" else Z

    def _choose_settings(
        self, X: Matrix, Y: csr_matrix, rows: Array, rng: np.random.Generator, side: Mapping[str, Any]
    ) -> None:
        """Settings that are "auto" are chosen on held-out rows, which may then tell the threshold too."""
        grid = Grid(
            [self.features] if self.features != "auto" else [k for k in KINDS if features.fits(k, X)],
            self._path_settings(),
            list(self._temperatures) if self.temperature == "auto" else [float(self.temperature)],
            self._embedding_settings(Y, **side),
            self._voting_settings(),
        )
        if self.vote != "similarity":
            grid = grid._replace(temperatures=grid.temperatures[:1])
        chosen = grid.first()
        if any(len(values) > 1 for values in grid) and X.shape[0] >= MIN_ROWS_TO_TUNE:
            best = choose(self, grid, LabelledRows(X, Y, rows, side), rng)
            chosen = best.grid
            if isinstance(self.threshold, str):
                self._held = (best.rows, best.ids, best.scores)
        (self.features_,), (path,), (self.temperature_,), (embedding,), (voting,) = chosen
        self._chosen = {**path, **embedding, **voting}
        for name, value in path.items():
            setattr(self, f"{name}_", value)

    def _contexts(self, places: Matrix, group: Array, k: int, rng: np.random.Generator) -> Array:
        """(n, k) the other rows nearest to each by cosine, −1 pads; `group` says at which place a row lies.

        With label sets as places it is N_k(y_i) of the paper.
        """
        return neighbors.expand(self._nearest(places, k + 1), group, k, rng)

    def _nearest(self, places: Matrix, k: int) -> Array:
        """(m, k) for each place the k nearest by cosine, itself among them, −1 where nothing is in common."""
        found = index.build(places, "cosine")

        def search(block: slice) -> tuple[Array, Array]:
            near, similar = index.search(found, places[block], k)
            return vote.drop_dissimilar(near, similar), similar

        return self._in_blocks(search, places.shape[0], k, "neighbours")[0]

    def _held_out(
        self, X: Matrix, Y: csr_matrix, k: int, rng: np.random.Generator, **side: Any
    ) -> tuple[Array, Array, Array]:
        """The rows that the settings were chosen on, if any were."""
        if self._held is not None:
            held, self._held = self._held, None
            return held
        chosen = {"features": self.features_, "temperature": self.temperature_, **self._chosen}
        return self._score_on_holdout(clone(self).set_params(**chosen), X, Y, k, rng, **side)

    def _candidates(self, X: Matrix, k: int) -> tuple[Array, Array]:
        return self._rank(self._votes(X), self.labels_, self.scorer_, k)

    def _shortlist(self, X: Matrix, k: int, own: Array) -> tuple[Array, Array]:
        """The k best labels of training rows `own`, as if these did not vote."""
        return self._rank(self._votes(X, own), self.labels_, self.scorer_, k)

    def _votes(self, X: Matrix, own: Array | None = None) -> Votes:
        """Every learner and every part asked has one vote in all.

        own : (b,) the training rows that X are, each of which is left out of its own neighbours
        """
        return self._weigh_votes(self._search_all(X, own), self.temperature_)

    def _voting_model(self) -> tuple[NeighborVoting, Array]:
        return self, self.rows_

    def _explained(self, X: Matrix, label: int, n: int, feature_names: Any, kept: Any = None) -> Explanation:
        return explain.by_votes(self, X, label, ExplainOptions.of(n, feature_names, kept, self.kept_rows_))

    def ballot(self, X: Matrix, label: int) -> VoteBreakdown:
        """Who voted for a label of the row X, (1, d), as `_rank` counts."""
        found = self._search_all(X)
        votes = self._weigh_votes(found, self.temperature_)
        near, weights = votes.neighbors[0], votes.weights[0] * (votes.neighbors[0] >= 0)
        learners = np.repeat(self._learner_of(), len(near) // len(found))
        similar = np.concatenate([similar[0] for _, similar, _ in found])
        if self._has_no_votes(votes):
            prior = self.labels_[:, [label]].sum() / max(self.labels_.shape[0], 1)
            return VoteBreakdown.of(near, similar, learners, np.zeros(len(near)), float(prior))
        has = self.labels_[np.maximum(near, 0)][:, [label]].toarray().ravel()
        return VoteBreakdown.of(near, similar, learners, *self._shares(votes, weights, has, label))

    def _has_no_votes(self, votes: Votes) -> bool:
        """Whether one row's votes name no label."""
        return not votes.weights.any()

    def _learner_of(self) -> list[int]:
        """The learner of each entry of `_search_all`."""
        n_asked = [min(self.n_parts_probed, len(learner.parts)) for learner in self.learners_]
        return [number for number, asked in enumerate(n_asked) for _ in range(asked)]

    def _shares(self, votes: Votes, weights: Array, has: Array, label: int) -> tuple[Array, float]:
        """(m,) what each voter adds to the label's score, and what is beside them."""
        return weights * (has > 0) / weights.sum(), 0.0

    def _search_all(self, X: Matrix, own: Array | None = None) -> list[tuple[Array, Array, Array]]:
        """The neighbours with their similarities, and where the rows lie, for each learner and part asked."""
        n_asked = self.n_neighbors if own is None else self.n_neighbors + 1
        is_routed = any(len(learner.parts) > 1 for learner in self.learners_)
        routed = features.apply_for_routing(self.feature_map_, X) if is_routed else X
        X = features.apply(self.feature_map_, X)
        found = (
            asked for learner in self.learners_ for asked in self._search_learner(learner, X, routed, n_asked)
        )
        if own is None:
            return list(found)
        return [(*_drop_self(own, near, similar), Z) for near, similar, Z in found]

    def _weigh_votes(self, found: list[tuple[Array, Array, Array]], temperature: float) -> Votes:
        weights = []
        for near, similar, _ in found:
            weight = vote.weigh(near, similar, self.vote, temperature)
            if self.voter_weights_ is not None:
                weight *= self.voter_weights_[np.maximum(near, 0)]
            weights.append(weight / np.maximum(weight.sum(axis=1, keepdims=True), TINY))
        voters, where = [near for near, _, _ in found], [Z for _, _, Z in found]
        return Votes(np.concatenate(voters, axis=1), np.concatenate(weights, axis=1), where)

    def ranked_at(self, X: Matrix, temperatures: Sequence[float], k: int) -> Array:
        """(t, n, k) the k best labels of each row at each of the temperatures; the search is made once."""

        def rank(block: slice) -> list[Array]:
            found = self._search_all(X[block])
            return [
                self._rank(self._weigh_votes(found, temperature), self.labels_, self.scorer_, k)[0]
                for temperature in temperatures
            ]

        n = X.shape[0]
        rows = parallel.blocks(n, BLOCK)
        told = parallel.map_blocks(rank, rows, n_jobs=self.n_jobs, stage="choosing settings", total=n)
        return np.concatenate([np.stack(ids) for ids in told], axis=1)

    def _search_learner(
        self, learner: Learner, X: Matrix, routed: Matrix, k: int
    ) -> Iterator[tuple[Array, Array, Array]]:
        """In each part that rows are sent to, the k nearest with their similarities, and where rows lie."""
        if len(learner.parts) == 1:
            yield self._search_part(learner.parts[0], X, k)
            return
        for choice in learner.router.assign(routed, min(self.n_parts_probed, len(learner.parts))).T:
            near = np.full((X.shape[0], k), -1, np.int64)
            similar = np.full(near.shape, -np.inf, np.float32)
            Z = np.empty((X.shape[0], self.n_components), np.float32)
            for p in np.unique(choice):
                mine = np.flatnonzero(choice == p)
                near[mine], similar[mine], Z[mine] = self._search_part(learner.parts[p], X[mine], k)
            yield near, similar, Z

    def _search_part(self, part: Part, X: Matrix, k: int) -> tuple[Array, Array, Array]:
        Z = quantize.times(X, part.V, part.columns)
        places, similar = self._search(part.found, Z, k)
        return np.where(places >= 0, part.rows[np.maximum(places, 0)], -1), similar, Z

    def _search(self, found: Index, Z: Array, k: int) -> tuple[Array, Array]:
        near, similar = index.search(found, Z, k, parallel.n_threads(self.n_jobs))
        return (vote.drop_dissimilar(near, similar) if self.metric == "cosine" else near), similar


def _drop_self(own: Array, near: Array, similar: Array) -> tuple[Array, Array]:
    """Neighbours (b, k + 1) without the row itself, or without the last where it is not among them."""
    is_own = near == own[:, None]
    place = np.where(is_own.any(axis=1), is_own.argmax(axis=1), near.shape[1] - 1)
    kept = np.arange(near.shape[1]) != place[:, None]
    return near[kept].reshape(len(near), -1), similar[kept].reshape(len(near), -1)


def _mean_square(X: Matrix) -> float:
    """The mean squared length of the rows: l2 is in units of it, so that it means the same for any scale."""
    squares = X.multiply(X).sum() if issparse(X) else np.square(X, dtype=np.float64).sum()
    return max(float(squares) / X.shape[0], 1e-12)
