"""DXML (Zhang et al., 2018): a network maps rows to the mean embedding of their labels; neighbours vote."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix, issparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..base import XMCEstimator
from ..runtime.memory import LEAST, DataSize, Estimate
from ..selection import HeldOutScores, HoldOut
from ..stages import features, index, network, sgns, vote, walks
from ..validation import params, stored
from ..validation.arrays import Matrix, take_rows, unit_rows
from ..voting.settings_search import mean_precision

Array = np.ndarray

SMOOTHING = 0.75  # negatives are drawn by how often a label is visited, to this power, as in word2vec
EPOCHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # to choose among, at most
LEAST_STEPS = 15  # steps of the network that the smallest of them has, at least
PATIENCE = 2  # numbers of epochs without a gain after which no more are tried
TEMPERATURES = (0.05, 0.02, 0.1)  # to choose among
MIN_ROWS_TO_TUNE = 50  # rows below which nothing is chosen on held-out rows
RATE = 0.1  # first learning rate of the skip-grams


class _Rows(NamedTuple):
    """Transformed features, (n, d), labels, (n, L), and targets of the network, (n, r)."""

    A: Matrix
    labels: csr_matrix
    targets: Array

    def take(self, rows: Array) -> _Rows:
        return _Rows(*(take_rows(part, rows) for part in self))


class _Trial(NamedTuple):
    """The mean of P@1, P@3 and P@5 on held-out rows, the settings, and the scores."""

    quality: float
    n_epochs: int
    temperature: float
    scored: HeldOutScores | None


@dataclass(kw_only=True, eq=False, repr=False)
class DXML(ClassNamePrefixFeaturesOutMixin, TransformerMixin, XMCEstimator):
    """Embed labels by walks on their graph, map rows to the mean of their labels, let nearest rows vote.

    Labels that occur in a row together are linked. Skip-grams with negative sampling embed labels near each
    other that random walks on this graph visit within a few steps (DeepWalk). A network with one hidden layer
    learns to map the features of a row to the mean of the embeddings of its labels.

    Parameters
    ----------
    n_components : r, the dimension of the embeddings
    n_walks : walks from each label;  walk_length : labels of a walk
    window : labels are a context of each other within this many steps of a walk
    n_negative : negatives of each pair of labels
    n_hidden : units of the hidden layer
    loss : of the network: "squared", or "cosine", 1 − cos of output and target
    n_epochs : passes of the network over the rows; "auto" is the best number on held-out rows
    learning_rate : AdaGrad's, in units of the deviation of the first weights of a layer
    batch_size : rows in a step of the network
    dropout : share of the hidden units that are left out of a row in training
    features : feature transform, as in `RidgeRegression`; "auto" is "standardize" for dense rows and "l2" for
        sparse ones
    n_neighbors : number of training rows that vote
    metric : "cosine" or "euclidean"
    vote, temperature : as in `FeatureNeighbors`; "auto" is the best of 0.05, 0.02 and 0.1 on held-out rows

    The other parameters are those of every method, `XMCEstimator`.

    Examples
    --------
    >>> from exmlds import DXML
    >>> from exmlds.data import make_library
    >>> X, Y, names, _ = make_library(500, random_state=0)
    >>> model = DXML(n_components=30, random_state=0).fit(X, Y, label_names=names)
    >>> model.predict_labels(X[1:2], k=2)
    [['ancient greece', 'evolution']]
    """

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        **XMCEstimator._constraints,
        "n_components": params.whole(1),
        "n_walks": params.whole(1),
        "walk_length": params.whole(2),
        "window": params.whole(1),
        "n_negative": params.whole(1),
        "n_hidden": params.whole(1),
        "loss": params.one_of(*network.LOSSES),
        "n_epochs": params.either(params.one_of("auto"), params.whole(1)),
        "learning_rate": params.number(0, above=True),
        "batch_size": params.whole(1),
        "dropout": params.number(0, 0.99),
        "features": params.one_of("auto", *features.SCALINGS),
        "n_neighbors": params.NEIGHBORS,
        "metric": params.one_of("cosine", "euclidean"),
        "vote": params.one_of("similarity", "uniform"),
        "temperature": params.either(params.one_of("auto"), params.number(0, above=True)),
    }
    _space: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "n_hidden": (1024, 512, 2048),
        "n_components": (100, 200),
        "learning_rate": (0.03, 0.01, 0.1),
        "n_neighbors": (50, 20, 100),
    }
    _leaves_out_columns: ClassVar[bool] = True

    n_components: int = 100
    n_walks: int = 40
    walk_length: int = 40
    window: int = 2
    n_negative: int = 5
    n_hidden: int = 1024
    loss: str = "cosine"
    n_epochs: str | int = "auto"
    learning_rate: float = 0.03
    batch_size: int = 64
    dropout: float = 0.0
    features: str = "auto"
    n_neighbors: int = 50
    metric: str = "cosine"
    vote: str = "similarity"
    temperature: str | float = "auto"

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """DeepWalk's settings for the walks, 100 dimensions, and uniform votes; the network keeps its own."""
        walks_of_deepwalk = {"n_walks": 80, "walk_length": 40, "window": 10}
        settings = {"n_components": 100, **walks_of_deepwalk, "vote": "uniform", "temperature": 1.0}
        return cls(**{**settings, **changes})

    def _fit(self, X: Matrix, Y: csr_matrix, rng: Generator, **side: Any) -> HeldOutScores | None:
        features_rng, labels_rng, settings_rng, network_rng = rng.spawn(4)
        voters = np.flatnonzero(np.diff(Y.indptr))  # rows with a label
        X, labels = take_rows(X, voters), take_rows(Y, voters)
        self.feature_map_ = features.fit(self._kind_of_features(X), X, features_rng)
        targets = _mean_of_labels(labels, self._embed_labels(labels, labels_rng))
        rows = _Rows(features.apply(self.feature_map_, X), labels, targets)
        self.n_epochs_, self.temperature_, held_out = self._chosen_settings(rows, settings_rng)
        *_, trained = self._train_network(rows, [self.n_epochs_], network_rng)
        self.network_, self.labels_ = trained, labels
        self.index_ = self._indexed(trained, rows.A)
        return None if held_out is None else held_out._replace(rows=voters[held_out.rows])

    def _chosen_settings(self, rows: _Rows, rng: Generator) -> tuple[int, float, HeldOutScores | None]:
        """The epochs and the temperature, with the scores of the rows that were held out to choose them."""
        n = len(rows.targets)
        unit = math.ceil(LEAST_STEPS * self.batch_size / n)
        epochs = [unit * n for n in EPOCHS] if self.n_epochs == "auto" else [int(self.n_epochs)]
        temperatures = TEMPERATURES if self.temperature == "auto" else (float(self.temperature),)
        if n < MIN_ROWS_TO_TUNE or "auto" not in (self.n_epochs, self.temperature):
            return epochs[min(3, len(epochs) - 1)], temperatures[0], None
        split = HoldOut.random(n, rng)
        train, held = rows.take(split.train_rows), rows.take(split.held_rows)
        best, n_worse = _Trial(-1.0, 0, 0.0, None), 0
        for n_epochs, trained in zip(epochs, self._train_network(train, epochs, rng)):
            found = index.search(
                self._indexed(trained, train.A),
                network.embed(trained, held.A, n_jobs=self.n_jobs, engine=self.engine),
                self.n_neighbors,
                engine=self.engine,
            )
            trials = []
            for temperature in temperatures:
                k = min(self.max_labels, rows.labels.shape[1])
                ids, scores = self._counted(*found, temperature, train.labels, k)
                scored = HeldOutScores(split.held_rows, ids, scores)
                trials.append(_Trial(mean_precision(held.labels, ids), n_epochs, temperature, scored))
            one = max(trials, key=lambda trial: trial.quality)
            best, n_worse = (one, 0) if one.quality > best.quality else (best, n_worse + 1)
            if n_worse == PATIENCE:
                break
        return best[1:]

    def _train_network(self, rows: _Rows, stops: list[int], rng: Generator) -> Iterator[network.Network]:
        """The network after each of these numbers of epochs; it changes when the next one is asked for."""
        state = network.init(rows.A, self.n_hidden, self.n_components, rng)
        for stop in stops:
            while state.epoch < stop:
                state = network.epoch(
                    state,
                    rows.A,
                    rows.targets,
                    loss=self.loss,
                    learning_rate=self.learning_rate,
                    batch_size=self.batch_size,
                    dropout=self.dropout,
                    n_jobs=self.n_jobs,
                    engine=self.engine,
                )
            yield state.network

    def _indexed(self, trained: network.Network, A: Matrix) -> index.Index:
        return index.build(network.embed(trained, A, n_jobs=self.n_jobs, engine=self.engine), self.metric)

    def _kind_of_features(self, X: Matrix) -> str:
        if self.features != "auto":
            return self.features
        return "standardize" if features.are_dense(X) else "l2"

    def _embed_labels(self, Y: csr_matrix, rng: Generator) -> Array:
        """(L, r) float32 unit embeddings of labels; each pass of skip-grams has walks of its own."""
        walks_rng, vectors_rng = rng.spawn(2)
        graph = walks.label_graph(Y)
        n_labels = Y.shape[1]
        state = sgns.init(n_labels, self.n_components, n_epochs=self.n_walks, tied=False, rng=vectors_rng)
        while state.epoch < self.n_walks:
            near = walks.pairs(walks.walk(graph, self.walk_length, walks_rng), self.window)
            relation = sgns.relate_pairs(*near, n_labels, self.n_negative, power=SMOOTHING)
            state = sgns.epoch(state, [relation], RATE, engine=self.engine)
        # All vectors have a large part in common, which says nothing about a label.
        return unit_rows(state.vectors - state.vectors.mean(axis=0))

    def _check_learnt(self) -> None:
        super()._check_learnt()
        rank = network.check(self.network_, features.check(self.feature_map_, self._widths[0]))
        stored.require(issparse(self.labels_), "the labels that rows vote for are not sparse")
        stored.matrix(self.labels_, "the labels that rows vote for", None, self._widths[1])
        # Kernels take a label without votes for a new one, and negative votes could cancel others.
        stored.require(self.labels_.data.min(initial=0) >= 0, "the labels that rows vote for are negative")
        stored.whole(self.n_epochs_, "the number of epochs", 1)
        is_positive = stored.number(self.temperature_, "the temperature") > 0
        stored.require(is_positive, "the temperature is not above 0")
        index.check(self.index_, self.metric, self.labels_.shape[0], rank)

    def _estimate(self, data: DataSize) -> Estimate:
        weights = 4.0 * (data.d + self.n_components) * self.n_hidden
        embeddings = 4.0 * data.n * self.n_components
        edges = min(data.nnz_labels**2 / data.n, float(data.n_labels) ** 2)
        pairs = min(data.n_labels * self.walk_length * 2.0 * self.window, 1e12)
        labels = 16.0 * edges + 40.0 * pairs + 16.0 * data.n_labels * self.n_components
        rows = 4 * data.rows_bytes() + 5 * data.labels_bytes()
        memory = rows + max(labels, 2 * weights + 3 * embeddings) + embeddings
        return Estimate(memory + LEAST, weights + embeddings + data.labels_bytes())

    @property
    def _score_meaning(self) -> str:
        return "shares of votes"

    def _embedded(self, X: Matrix, n_jobs: int | None) -> Array:
        A = features.apply(self.feature_map_, X, engine=self.engine)
        return network.embed(self.network_, A, n_jobs=n_jobs, engine=self.engine)

    def _candidates(self, X: Matrix, k: int) -> tuple[Array, Array]:
        found = index.search(self.index_, self._embedded(X, 1), self.n_neighbors, engine=self.engine)
        return self._counted(*found, self.temperature_, self.labels_, k)

    def _counted(
        self, near: Array, similar: Array, temperature: float, labels: csr_matrix, k: int
    ) -> tuple[Array, Array]:
        if self.metric == "cosine":
            near = vote.drop_dissimilar(near, similar)
        weights = vote.weigh(near, similar, self.vote, temperature)
        return vote.top_labels(near, weights, labels, k, engine=self.engine)

    def transform(self, X: Any) -> Array:
        """(n, r) float32, the embeddings of rows."""
        check_is_fitted(self)
        return self._embedded(self._checked_rows(X, reset=False), self.n_jobs)

    @property
    def _n_features_out(self) -> int:
        return len(self.network_.output_bias)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        assert tags.transformer_tags is not None
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def _mean_of_labels(Y: csr_matrix, embeddings: Array) -> Array:
    """(n, r) float32, the mean of the embeddings of the labels of each row."""
    sizes = np.maximum(np.diff(Y.indptr), 1).astype(np.float32)
    return np.asarray(Y @ embeddings, np.float32) / sizes[:, None]
