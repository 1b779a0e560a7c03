"""Settings of a voting method, chosen by the mean of P@1, P@3 and P@5 on held-out rows."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix, issparse

from .. import metrics
from ..runtime.logs import logger
from ..runtime.memory import DataSize
from ..selection import HeldOutScores, HoldOut, TrainingSet
from ..stages import features, index, vote
from ..stages.vote import LabelScorer
from ..validation.arrays import Matrix, used_columns
from ..validation.columns import select
from .memory import MemoryModel
from .votes import Embedding, MapData, Settings, Votes

Array = np.ndarray

KIND_ROWS = 12_000  # rows that the feature transform is chosen on, at most
KIND_RANK = 100  # dimensions that it is chosen with, at most


class Tunable(Protocol):
    """What the search needs of a voting method; `NeighborVoting` says what each of these does."""

    n_components: int
    n_neighbors: int
    max_labels: int
    metric: str
    vote: str

    def _memory_model(self) -> MemoryModel: ...
    def _embed(self, X: Matrix, Y: csr_matrix, rank: int, rng: Generator, **given: Any) -> Embedding: ...
    def _fit_maps(self, data: MapData, paths: list[dict[str, Any]], rng: Generator) -> Iterator[Array]: ...
    def _voting_labels(self, Y: csr_matrix, **given: Any) -> csr_matrix: ...
    def _searched_rows(self, X: Matrix, V: Array, Z: Array) -> Array: ...
    def _rank(
        self, votes: Votes, labels: csr_matrix, scorer: LabelScorer | None, k: int
    ) -> tuple[Array, Array]: ...
    def search_index(self, built: index.Index, Z: Array, k: int) -> tuple[Array, Array]: ...
    def rank_in_blocks(
        self, rank: Callable[[slice], tuple[Array, Array]], n: int, k: int, stage: str
    ) -> tuple[Array, Array]: ...


class Grid(NamedTuple):
    """Settings to try, in all combinations; the fields are those of `Settings`."""

    features: list[str]
    paths: list[dict[str, Any]]
    temperatures: list[float]
    embeddings: list[dict[str, Any]]
    votings: list[dict[str, Any]]

    def first(self) -> Grid:
        return Grid._make(values[:1] for values in self)

    def only(self, held_out: HeldOutScores | None = None) -> Settings:
        """The first of each setting."""
        kinds, paths, temperatures, embeddings, votings = self
        return Settings(kinds[0], paths[0], temperatures[0], embeddings[0], votings[0], held_out)


class TrialResult(NamedTuple):
    """One of each setting, and what they gave on held-out rows."""

    grid: Grid
    quality: float
    held_out: HeldOutScores


def choose(method: Tunable, grid: Grid, rows: TrainingSet, numbers: Array, rng: Generator) -> Settings:
    """The best settings of a grid: features first, on fewer rows and dimensions; what rows vote for last.

    numbers : (n,) what the rows are called among all
    """
    kinds_rng, others_rng = rng.spawn(2)
    chosen, size, memory = grid.first(), DataSize.of(rows.X, rows.Y), method._memory_model()
    max_rows, rank = memory.n_probed(size, memory.count_parts(size)), method.n_components
    probe = _probe(method, rows, numbers, others_rng, max_rows=max_rows, rank=rank)
    if len(grid.features) > 1:
        kinds = chosen._replace(features=grid.features, temperatures=grid.temperatures)
        is_small = rows.n <= KIND_ROWS and rank <= KIND_RANK
        cheaper = _probe(method, rows, numbers, kinds_rng, max_rows=KIND_ROWS, rank=min(rank, KIND_RANK))
        chosen = chosen._replace(features=(probe if is_small else cheaper)(kinds).grid.features)
    best = probe(grid._replace(features=chosen.features, votings=chosen.votings))
    if len(grid.votings) > 1:
        best = probe(best.grid._replace(votings=grid.votings))
    return best.grid.only(best.held_out)


def _probe(
    method: Tunable, rows: TrainingSet, numbers: Array, rng: Generator, *, max_rows: int, rank: int
) -> Callable[[Grid], TrialResult]:
    """A function that gives the best trial of a grid on held-out rows of at most `max_rows` rows."""
    embed_rng, features_rng, rows_rng, maps_rng = rng.spawn(4)
    probed = np.sort(rows_rng.permutation(rows.n)[:max_rows])
    splits = [
        HoldOut.random(len(probed), rows_rng) for _ in range(method._memory_model().n_splits(len(probed)))
    ]
    n_labels = rows.Y.shape[1]
    n_best, n_kept = min(max(5, method.max_labels), n_labels), min(method.max_labels, n_labels)

    @cache
    def embedded(split: int, settings: tuple[tuple[str, Any], ...]) -> Embedding:
        train = rows.subset(probed[splits[split].train_rows])
        return method._embed(train.X, train.Y, rank, copy.deepcopy(embed_rng), **train.side, **dict(settings))

    def trials(split: int, grid: Grid) -> Iterator[TrialResult]:
        held_rows = probed[splits[split].held_rows]
        train, held = rows.subset(probed[splits[split].train_rows]), rows.subset(held_rows)
        voting_labels = [method._voting_labels(train.Y, **train.side, **voting) for voting in grid.votings]
        for kind in grid.features:
            feature_map = features.fit(kind, train.X, copy.deepcopy(features_rng))
            A, B = _used_columns(features.apply(feature_map, train.X), features.apply(feature_map, held.X))
            # All embeddings in one system of equations.
            embeddings = [embedded(split, tuple(settings.items())) for settings in grid.embeddings]
            Zs = np.hstack([Z for Z, _ in embeddings])
            data = MapData(A, train.Y, Zs, rank)
            maps = method._fit_maps(data, grid.paths, copy.deepcopy(maps_rng))
            for path, Vs in zip(grid.paths, maps):
                for number, (settings, (Z, labels)) in enumerate(zip(grid.embeddings, embeddings)):
                    V = Vs[:, number * rank : (number + 1) * rank]
                    scorer = None if labels is None else vote.label_scorer(labels)
                    built = index.build(method._searched_rows(A, V, Z), method.metric)
                    Q = np.asarray(B @ V)
                    neighbors, similarities = _search(method, built, Q)
                    for temperature in grid.temperatures:
                        weights = vote.weigh(neighbors, similarities, method.vote, temperature)
                        votes = Votes(neighbors, weights, [Q])
                        for voting, votable in zip(grid.votings, voting_labels):
                            one = Grid([kind], [path], [temperature], [settings], [voting])
                            ids, scores = _rank(method, votes, votable, scorer, n_best)
                            held_out = HeldOutScores(numbers[held_rows], ids[:, :n_kept], scores[:, :n_kept])
                            yield TrialResult(one, mean_precision(held.Y, ids), held_out)

    def probe(grid: Grid) -> TrialResult:
        best = None
        for same in zip(*(trials(split, grid) for split in range(len(splits)))):
            quality = float(np.mean([trial.quality for trial in same]))
            logger.debug("settings %s: %.4f on held-out rows", [*map(list, same[0].grid)], quality)
            if best is None or quality > best.quality:
                held_out = HeldOutScores._make(map(np.concatenate, zip(*(one.held_out for one in same))))
                best = TrialResult(same[0].grid, quality, held_out)
        assert best is not None
        return best

    return probe


def _used_columns(A: Matrix, B: Matrix) -> tuple[Matrix, Matrix]:
    """Both without the columns that A does not use: hashed texts have a million."""
    if not issparse(A):
        return A, B
    columns = used_columns(A)
    return (A, B) if len(columns) == A.shape[1] else (select(A, columns), select(B, columns))


def _search(method: Tunable, built: index.Index, Q: Array) -> tuple[Array, Array]:
    k = method.n_neighbors
    return method.rank_in_blocks(
        lambda block: method.search_index(built, Q[block], k), len(Q), k, "choosing settings"
    )


def _rank(
    method: Tunable, votes: Votes, labels: csr_matrix, scorer: LabelScorer | None, k: int
) -> tuple[Array, Array]:
    n = len(votes.neighbors)
    return method.rank_in_blocks(
        lambda block: method._rank(votes.rows(block), labels, scorer, k), n, k, "choosing settings"
    )


def mean_precision(Y: csr_matrix, ids: Array) -> float:
    """The mean of P@1, P@3 and P@5."""
    ranking = metrics.Ranking(Y, ids, 5)
    return float(np.mean([ranking.value(f"P@{k}") for k in (1, 3, 5)]))
