"""What the stages of a voting method pass on: embeddings, search results, votes and settings."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from ..runtime import progress
from ..runtime.parallel import blocks
from ..selection import HeldOutScores
from ..stages import features, index, partition, quantize
from ..stages.index import Index
from ..stages.vote import LabelScorer
from ..validation import stored
from ..validation.arrays import Matrix
from ..validation.columns import select

Array = np.ndarray

EMBED_BLOCK = 4_096  # rows that are embedded at a time


def ignore(rows: int) -> None:
    """Nobody wants to know how far a fit is."""


class Embedding(NamedTuple):
    """Embeddings of training rows, and of labels where a method embeds them.

    rows : (n, r) float32;  labels : (L, r) float32, or None
    """

    rows: Array
    labels: Array | None = None

    def part(self, rows: Array) -> Array:
        """The embeddings of some rows."""
        return self.rows[rows]


class LabelRows(NamedTuple):
    """Rows of features that describe labels, such as their names.

    labels : (m,) columns of Y;  rows : (m, d) transformed features
    """

    labels: Array
    rows: Matrix


class MapData(NamedTuple):
    """What a map is fitted to.

    X, Y : (n, d) transformed features and (n, L) labels;  Z : what `_embed` gives of the rows
    rank : r, the dimension of the embeddings
    label_rows : of the labels that rows have, or None
    """

    X: Matrix
    Y: csr_matrix
    Z: Array
    rank: int
    label_rows: LabelRows | None = None


class Settings(NamedTuple):
    """The settings of a fit, as given or as chosen on held-out rows.

    features : kind of feature transform;  temperature : of the votes
    path, embedding, voting : settings of `_fit_maps`, of `_embed` and of `_voting_labels`
    held_out : the scores of the rows that the settings were chosen on, or None
    """

    features: str
    path: dict[str, Any]
    temperature: float
    embedding: dict[str, Any]
    voting: dict[str, Any]
    held_out: HeldOutScores | None = None

    def chosen(self) -> dict[str, Any]:
        return {**self.path, **self.embedding, **self.voting}


class FitRun(NamedTuple):
    """What a fit of a voting method takes beside data, all optional.

    checkpoint : keeps the fit on disk, so that it can be resumed
    row_weights : (n,) weights of the training rows when they vote
    map_storage : storage of V where it differs from that of the row embeddings
    label_rows : (L, d) features that describe each label, which train the map of a method that takes them
    """

    checkpoint: Any = None
    row_weights: Array | None = None
    map_storage: str | None = None
    label_rows: Matrix | None = None


class FitContext(NamedTuple):
    """What a fit passes on to its learners, their parts and their maps.

    feature_map : the fitted feature transform;  settings : as given or chosen;  run : as above
    advance : is called with the number of rows that were just learnt from
    """

    feature_map: features.Features
    settings: Settings
    run: FitRun
    advance: progress.Advance = ignore


class Part(NamedTuple):
    """Rows that are near each other in feature space, with a map of their own.

    rows : (n,) training rows of the part;  columns : (d',) features that occur in it
    V : (d', r) quantized;  row_index : of the rows' embeddings
    """

    rows: Array
    columns: Array
    V: quantize.Packed
    row_index: Index

    def own_features(self, X: Matrix) -> Matrix:
        """X with the features that the map has."""
        return select(X, self.columns) if len(self.columns) < X.shape[1] else X


class Learner(NamedTuple):
    """A member of the ensemble."""

    router: partition.Router
    parts: list[Part]


def check_learner(learner: Any, metric: str, n: int, d: int, n_transformed: int) -> int:
    """Check a learner that comes from a file; returns the dimension of its embeddings.

    n, d : number of rows that vote and of features;  n_transformed : number of transformed features
    """
    stored.record(learner, "a learner", Learner)
    stored.record(learner.router, "a router", partition.Router)
    stored.require(isinstance(learner.parts, list) and learner.parts, "a learner has no parts")
    n_parts = len(learner.parts)
    if n_parts > 1:
        stored.array(learner.router.centers, "the centres of parts", stored.FLOATS, n_parts, d)
    ranks = set()
    for part in learner.parts:
        stored.record(part, "a part", Part)
        rows = stored.ids(part.rows, "the rows of a part", None, n)
        columns = stored.ids(part.columns, "the features of a part", None, n_transformed)
        V = quantize.check(part.V, "the map of a part", len(stored.ascending(columns, "features")), None)
        ranks.add(V.values.shape[1])
        index.check(part.row_index, metric, len(rows), V.values.shape[1])
    stored.require(len(ranks) == 1, "the parts of a learner have embeddings of different dimensions")
    return ranks.pop()


class SearchResult(NamedTuple):
    """What a block of rows found in the part that each was routed to.

    neighbors, similarities : (b, k) training rows, nearest first, −1 pads, and their similarities
    embeddings : (b, r) of the rows themselves
    """

    neighbors: Array
    similarities: Array
    embeddings: Array


class Votes(NamedTuple):
    """The votes on a block of rows.

    neighbors, weights : (b, m) training rows, −1 pads, and the weights of their votes
    embeddings : (b, r) of the rows, for each learner and each part that was probed
    """

    neighbors: Array
    weights: Array
    embeddings: list[Array]

    def rows(self, block: slice) -> Votes:
        return Votes(self.neighbors[block], self.weights[block], [Z[block] for Z in self.embeddings])


class VotingModel(NamedTuple):
    """A fitted voting method, as label spaces and explanations read it.

    learners : the members of the ensemble;  feature_map : the feature transform;  metric : of the search
    labels : (n, L) csr, the labels that training rows vote for;  scorer : of label embeddings, or None
    row_numbers : (n,) what the rows that vote are called among all training rows
    """

    learners: list[Learner]
    feature_map: features.Features
    metric: str
    labels: csr_matrix
    scorer: LabelScorer | None
    row_numbers: Array

    def embed(self, X: Matrix) -> Array:
        """(n, learners × r) float32 the embeddings of rows, by each learner in the part of each row."""
        return np.vstack([self._embed(X[block]) for block in blocks(X.shape[0], EMBED_BLOCK)])

    def _embed(self, X: Matrix) -> Array:
        A, found = features.apply(self.feature_map, X), []
        for learner in self.learners:
            choice = np.zeros(X.shape[0], int)
            if len(learner.parts) > 1:
                choice = learner.router.assign(features.apply_for_routing(self.feature_map, X), 1)[:, 0]
            Z = np.empty((X.shape[0], learner.parts[0].V.values.shape[1]), np.float32)
            for p in np.unique(choice):
                part, rows = learner.parts[p], np.flatnonzero(choice == p)
                Z[rows] = quantize.times(A[rows], part.V, part.columns)
            found.append(Z)
        return np.hstack(found)
