"""Methods that embed rows by their labels, map features into that space, and let neighbours vote."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.base import clone

from .. import limits, metrics, selection
from ..contract import MOST_HELD_OUT, Matrix, XMCEstimator
from ..stages import features, index, partition, regress, vote

Array = np.ndarray

PART = 40_000  # rows of a part at most, where `n_parts` is "auto"
PAPER_PART = 6_000  # rows of a part, about, where it is "paper"
PROBED_KINDS = 12_000  # rows that the features are chosen on at most
PROBED = 40_000  # rows that l2 and temperature are chosen on: the best ones depend on the number of rows
FEWEST = 50  # rows below which there is nothing to choose on
KINDS = ("l2", "log1p-l2", "none", "standardize", "nystroem")  # of equals, the first is taken
L2 = (1.0, 0.1, 10.0)
TINY = np.finfo(np.float32).tiny
TEMPERATURES = (0.05, 0.02, 0.1, 0.01)


class Part(NamedTuple):
    """A map of its own for rows that are near each other."""

    rows: Array  # (n,) training rows of the part
    columns: Array  # (d',) features that occur in it
    V: Array  # (d', r)
    found: index.Index  # of their embeddings


class Learner(NamedTuple):
    """A member of the ensemble."""

    router: partition.Router
    parts: list[Part]


class Attempt(NamedTuple):
    """Settings tried on held-out rows, and what they gave."""

    score: float
    kind: str
    l2: float
    temperature: float
    rows: Array
    ids: Array
    scores: Array


class NeighborVoting(XMCEstimator):
    """Features → parts → embed → regress → index → vote; a method says how a part's rows are embedded.

    Attributes after fit
    --------------------
    features_, l2_, temperature_ : the settings chosen, or given
    """

    _limits: ClassVar[Mapping[str, limits.Limit]] = {
        **XMCEstimator._limits,
        "n_components": limits.whole(1),
        "n_neighbors": limits.whole(1),
        "n_parts": limits.either(limits.one_of("auto", "paper"), limits.whole(1)),
        "n_parts_asked": limits.whole(1),
        "n_learners": limits.whole(1),
        "features": limits.one_of("auto", *features.KINDS),
        "l2": limits.either(limits.one_of("auto"), limits.number(0)),
        "l1": limits.number(0),
        "metric": limits.one_of("cosine", "euclidean"),
        "search": limits.one_of("mapped", "embedded"),
        "vote": limits.one_of("similarity", "uniform"),
        "temperature": limits.either(limits.one_of("auto"), limits.number(0, above=True)),
    }

    n_components: int
    n_neighbors: int
    n_parts: str | int
    n_parts_asked: int
    n_learners: int
    features: str
    l2: str | float
    l1: float
    metric: str
    search: str
    vote: str
    temperature: str | float

    @abstractmethod
    def _embed(self, Y: csr_matrix, rank: int, rng: np.random.Generator) -> Array:
        """Z (n, rank), the embedding of the rows with these labels."""

    def _fit(self, X: Matrix, Y: csr_matrix, rng: np.random.Generator) -> None:
        settings_rng, features_rng, parts_rng = rng.spawn(3)
        labelled = np.flatnonzero(np.diff(Y.indptr))  # rows without a label neither teach nor vote
        X, Y = X[labelled], Y[labelled]
        self._held: tuple[Array, Array, Array] | None = None  # until the threshold is chosen
        self._choose_settings(X, Y, labelled, settings_rng)
        self.feature_map_ = features.fit(self.features_, X, features_rng)
        X = features.apply(self.feature_map_, X)
        self.labels_ = Y
        self.learners_ = [self._fit_learner(X, Y, mine) for mine in parts_rng.spawn(self.n_learners)]

    def _fit_learner(self, X: Matrix, Y: csr_matrix, rng: np.random.Generator) -> Learner:
        n = X.shape[0]
        by_size = {"auto": -(-n // PART), "paper": max(1, round(n / PAPER_PART))}
        n_parts = min(by_size.get(str(self.n_parts)) or int(self.n_parts), n)
        router, parts = partition.fit(X, n_parts, cap=2 * n // n_parts, rng=rng)
        kept = [rows for rows in parts if rows.size]
        if len(kept) < n_parts:
            router = partition.Router(router.centers[[rows.size > 0 for rows in parts]])
        fitted = [self._fit_part(X[rows], Y[rows], rows, r) for rows, r in zip(kept, rng.spawn(len(kept)))]
        return Learner(router, fitted)

    def _fit_part(self, X: Matrix, Y: csr_matrix, rows: Array, rng: np.random.Generator) -> Part:
        Z = self._embed(Y, self.n_components, rng)
        columns = np.unique(X.indices) if issparse(X) else np.arange(X.shape[1])
        X = X[:, columns] if len(columns) < X.shape[1] else X
        V = regress.fit(X, Z, l2=self.l2_ * _mean_square(X), l1=self.l1)
        found = X @ V if self.search == "mapped" else Z
        return Part(rows, columns, V, index.build(np.asarray(found), self.metric))

    def _choose_settings(self, X: Matrix, Y: csr_matrix, rows: Array, rng: np.random.Generator) -> None:
        """Settings that are "auto" are those with the best mean of P@1, P@3 and P@5 on held-out rows."""
        kinds = [self.features] if self.features != "auto" else [k for k in KINDS if features.fits(k, X)]
        l2s = list(L2) if self.l2 == "auto" else [float(self.l2)]
        temperatures = list(TEMPERATURES) if self.temperature == "auto" else [float(self.temperature)]
        temperatures = temperatures if self.vote == "similarity" else temperatures[:1]
        self.features_, self.l2_, self.temperature_ = kinds[0], l2s[0], temperatures[0]
        nothing_to_choose = max(len(kinds), len(l2s), len(temperatures)) == 1
        if nothing_to_choose or X.shape[0] < FEWEST:
            return
        first, second = rng.spawn(2)
        if len(kinds) > 1:
            probe = self._probe(X, Y, rows, temperatures, first, n_most=PROBED_KINDS, rank=100)
            self.features_ = max((probe(kind, l2s[0]) for kind in kinds), key=attrgetter("score")).kind
        probe = self._probe(X, Y, rows, temperatures, second, n_most=PROBED, rank=self.n_components)
        best = max((probe(self.features_, l2) for l2 in l2s), key=attrgetter("score"))
        self.l2_, self.temperature_ = best.l2, best.temperature
        if self.threshold == "auto":
            self._held = (best.rows, best.ids, best.scores)

    def _probe(
        self,
        X: Matrix,
        Y: csr_matrix,
        rows: Array,
        temperatures: list[float],
        rng: np.random.Generator,
        *,
        n_most: int,
        rank: int,
    ) -> Callable[[str, float], Attempt]:
        """A function that tries features and l2 on held-out rows, with the best of the temperatures."""
        embed_rng, features_rng, rows_rng = rng.spawn(3)
        probed = np.sort(rows_rng.permutation(X.shape[0])[:n_most])
        share = min(0.2, MOST_HELD_OUT / len(probed))
        sides = selection.random_split(len(probed), share, random_state=rows_rng)
        train, held = (probed[side] for side in sides)
        Z = self._embed(Y[train], min(rank, self.n_components), embed_rng)

        def attempt(kind: str, l2: float) -> Attempt:
            fitted = features.fit(kind, X[train], features_rng.spawn(1)[0])
            A, B = features.apply(fitted, X[train]), features.apply(fitted, X[held])
            V = regress.fit(A, Z, l2=l2 * _mean_square(A), l1=self.l1)
            found = index.build(np.asarray(A @ V) if self.search == "mapped" else Z, self.metric)
            near, similar = self._search_blocks(found, np.asarray(B @ V))
            best = None
            for temperature in temperatures:
                weights = vote.weigh(near, similar, self.vote, temperature)
                ids, scores = vote.count(near, weights, Y[train], max(5, self.max_labels))
                ranking = metrics.Ranking(Y[held], ids, 5)
                score = float(np.mean([ranking.value(f"P@{place}") for place in (1, 3, 5)]))
                if best is None or score > best.score:
                    best = Attempt(score, kind, l2, temperature, rows[held], ids, scores)
            assert best is not None
            return best

        return attempt

    def _search_blocks(self, found: index.Index, Q: Array) -> tuple[Array, Array]:
        return self._in_blocks(
            lambda block: index.search(found, Q[block], self.n_neighbors),
            len(Q),
            self.n_neighbors,
            "choosing settings",
        )

    def _held_out(
        self, X: Matrix, Y: csr_matrix, k: int, rng: np.random.Generator
    ) -> tuple[Array, Array, Array]:
        """The rows that the settings were chosen on, if any were."""
        if self._held is not None:
            held, self._held = self._held, None
            return held
        chosen = {"features": self.features_, "l2": self.l2_, "temperature": self.temperature_}
        return self._held_out_by(clone(self).set_params(**chosen), X, Y, k, rng)

    def _candidates(self, X: Matrix, k: int) -> tuple[Array, Array]:
        neighbors, weights = self._voters(features.apply(self.feature_map_, X))
        return vote.count(neighbors, weights, self.labels_, k)

    def _voters(self, X: Matrix) -> tuple[Array, Array]:
        """(b, m) training rows and their weights; every learner and every part asked has one vote in all."""
        neighbors, weights = [], []
        for learner in self.learners_:
            asked = learner.router.assign(X, min(self.n_parts_asked, len(learner.parts)))
            for choice in asked.T:
                near = np.full((X.shape[0], self.n_neighbors), -1, np.int64)
                similar = np.full(near.shape, -np.inf, np.float32)
                for p in np.unique(choice):
                    mine = np.flatnonzero(choice == p)
                    near[mine], similar[mine] = self._search(learner.parts[p], X[mine])
                weight = vote.weigh(near, similar, self.vote, self.temperature_)
                neighbors.append(near)
                weights.append(weight / np.maximum(weight.sum(axis=1, keepdims=True), TINY))
        return np.concatenate(neighbors, axis=1), np.concatenate(weights, axis=1)

    def _search(self, part: Part, X: Matrix) -> tuple[Array, Array]:
        X = X[:, part.columns] if len(part.columns) < X.shape[1] else X
        near, similar = index.search(part.found, np.asarray(X @ part.V), self.n_neighbors)
        if self.metric == "cosine":
            near = vote.only_similar(near, similar)
        return np.where(near >= 0, part.rows[np.maximum(near, 0)], -1), similar


def _mean_square(X: Matrix) -> float:
    """The mean squared length of the rows: l2 is in units of it, so that it means the same for any scale."""
    squares = X.multiply(X).sum() if issparse(X) else np.square(X, dtype=np.float64).sum()
    return max(float(squares) / X.shape[0], 1e-12)
