"""Settings of a method whose neighbours vote, chosen by the mean of P@1, P@3 and P@5 on held-out rows."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, issparse

from .. import metrics, selection
from ..base import MAX_HELD_OUT
from ..runtime.memory import DataSize
from ..stages import features, index, vote
from ..validation.arrays import Matrix
from .votes import Embedding, Votes

if TYPE_CHECKING:
    from .base import NeighborVoting

Array = np.ndarray

PROBED_KINDS = 12_000  # rows that the features are chosen on at most
KINDS_RANK = 100  # dimensions that the features are chosen with at most


class LabelledRows(NamedTuple):
    """Rows with their labels, their numbers among all rows, and what `fit` takes beside them."""

    X: Matrix
    Y: csr_matrix
    numbers: Array
    side: Mapping[str, Any]


class Grid(NamedTuple):
    """Settings to try, in all combinations."""

    features: list[str]
    paths: list[dict[str, Any]]
    temperatures: list[float]
    embeddings: list[dict[str, Any]]
    votings: list[dict[str, Any]]

    def first(self) -> Grid:
        return Grid._make(values[:1] for values in self)


class TrialResult(NamedTuple):
    """One of each setting, and what they gave on held-out rows."""

    grid: Grid
    quality: float
    rows: Array
    ids: Array
    scores: Array


def choose(method: NeighborVoting, grid: Grid, given: LabelledRows, rng: np.random.Generator) -> TrialResult:
    """The best of a grid: features first, on fewer rows and dimensions; what rows vote for comes last."""
    kinds_rng, others_rng = rng.spawn(2)
    chosen, n = grid.first(), given.X.shape[0]
    size = DataSize.of(given.X, given.Y)
    most, rank = method._n_probed(size, method._n_parts(size)), method.n_components
    probe = _probe(method, given, others_rng, n_most=most, rank=rank)
    if len(grid.features) > 1:
        kinds = chosen._replace(features=grid.features, temperatures=grid.temperatures)
        is_small = n <= PROBED_KINDS and rank <= KINDS_RANK
        cheaper = _probe(method, given, kinds_rng, n_most=PROBED_KINDS, rank=min(rank, KINDS_RANK))
        chosen = chosen._replace(features=(probe if is_small else cheaper)(kinds).grid.features)
    best = probe(grid._replace(features=chosen.features, votings=chosen.votings))
    return probe(best.grid._replace(votings=grid.votings)) if len(grid.votings) > 1 else best


def _probe(
    method: NeighborVoting, given: LabelledRows, rng: np.random.Generator, *, n_most: int, rank: int
) -> Callable[[Grid], TrialResult]:
    """A function that gives the best attempt of a grid on held-out rows of at most `n_most` rows."""
    X, Y, numbers, side = given
    embed_rng, features_rng, rows_rng, maps_rng = rng.spawn(4)
    probed = np.sort(rows_rng.permutation(X.shape[0])[:n_most])
    share = min(0.2, MAX_HELD_OUT / len(probed))
    splits = [
        selection.random_split(len(probed), share, random_state=rows_rng)
        for _ in range(method._n_splits(len(probed)))
    ]
    n_best = min(max(5, method.max_labels), Y.shape[1])
    n_kept = min(method.max_labels, Y.shape[1])

    @cache
    def embedded(split: int, settings: tuple[tuple[str, Any], ...]) -> Embedding:
        train = probed[splits[split][0]]
        mine = method.side_rows(side, train)
        return method._embed(X[train], Y[train], rank, copy.deepcopy(embed_rng), **mine, **dict(settings))

    def attempts(split: int, grid: Grid) -> Iterator[TrialResult]:
        train, held = (probed[places] for places in splits[split])
        mine = method.side_rows(side, train)
        voters = [method._voting_labels(Y[train], **mine, **voting) for voting in grid.votings]
        for kind in grid.features:
            fitted = features.fit(kind, X[train], copy.deepcopy(features_rng))
            A, B = _used(features.apply(fitted, X[train]), features.apply(fitted, X[held]))
            # All embeddings in one system of equations.
            places = [embedded(split, tuple(embedding.items())) for embedding in grid.embeddings]
            Zs = np.hstack([Z for Z, _ in places])
            maps = method._maps(A, Y[train], Zs, grid.paths, rank, copy.deepcopy(maps_rng))
            for path, Vs in zip(grid.paths, maps):
                for number, (embedding, (Z, labels)) in enumerate(zip(grid.embeddings, places)):
                    V = Vs[:, number * rank : (number + 1) * rank]
                    scorer = None if labels is None else vote.label_scorer(labels)
                    found = index.build(method._searched(A, V, Z), method.metric)
                    Q = np.asarray(B @ V)
                    near, similar = _search(method, found, Q)
                    for temperature in grid.temperatures:
                        votes = Votes(near, vote.weigh(near, similar, method.vote, temperature), [Q])
                        for voting, theirs in zip(grid.votings, voters):
                            one = Grid([kind], [path], [temperature], [embedding], [voting])
                            ids, scores = _rank(method, votes, theirs, scorer, n_best)
                            quality = mean_precision(Y[held], ids)
                            yield TrialResult(
                                one, quality, numbers[held], ids[:, :n_kept], scores[:, :n_kept]
                            )

    def probe(grid: Grid) -> TrialResult:
        best = None
        for same in zip(*(attempts(split, grid) for split in range(len(splits)))):
            quality = float(np.mean([attempt.quality for attempt in same]))
            if best is None or quality > best.quality:
                parts = ([getattr(one, name) for one in same] for name in ("rows", "ids", "scores"))
                best = TrialResult(same[0].grid, quality, *map(np.concatenate, parts))
        assert best is not None
        return best

    return probe


def _used(A: Matrix, B: Matrix) -> tuple[Matrix, Matrix]:
    """Both without the columns that A does not use: hashed texts have a million."""
    if not issparse(A):
        return A, B
    columns = np.unique(A.indices)
    return (A, B) if len(columns) == A.shape[1] else (A[:, columns], B[:, columns])


def _search(method: NeighborVoting, found: index.Index, Q: Array) -> tuple[Array, Array]:
    k = method.n_neighbors
    return method._in_blocks(lambda block: method._search(found, Q[block], k), len(Q), k, "choosing settings")


def _rank(
    method: NeighborVoting, votes: Votes, labels: csr_matrix, scorer: vote.LabelScorer | None, k: int
) -> tuple[Array, Array]:
    n = len(votes.neighbors)
    return method._in_blocks(
        lambda block: method._rank(votes.rows(block), labels, scorer, k), n, k, "choosing settings"
    )


def mean_precision(Y: csr_matrix, ids: Array) -> float:
    """The mean of P@1, P@3 and P@5."""
    ranking = metrics.Ranking(Y, ids, 5)
    return float(np.mean([ranking.value(f"P@{place}") for place in (1, 3, 5)]))
