"""Baselines that any method must beat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix, issparse, vstack

from ..base import XMCEstimator
from ..growing import GrowingEstimator, RowsChange, emptied, widened
from ..runtime import parallel
from ..runtime.memory import LEAST, DataSize, Estimate
from ..selection import MAX_HELD_OUT, HeldOutScores
from ..stages import index, vote
from ..validation import params, stored
from ..validation.arrays import Matrix

Array = np.ndarray


class MostFrequent(XMCEstimator):
    """Predict the most frequent labels for every row, scored by their share of the training rows.

    Examples
    --------
    >>> from exmlds import MostFrequent
    >>> model = MostFrequent().fit([[0.0], [1.0], [2.0]], [["a"], ["a", "b"], ["a"]])
    >>> model.predict_labels([[5.0]], k=1)
    [['a']]
    """

    _leaves_out_columns: ClassVar[bool] = True

    def _fit(self, X: Matrix, Y: csr_matrix, rng: Generator, **side: Any) -> None:
        self.ranking_ = np.argsort(-self.column_counts_, kind="stable")
        self.shares_ = (self.column_counts_[self.ranking_] / self.n_samples_fit_).astype(np.float32)

    def _check_learnt(self) -> None:
        super()._check_learnt()
        n_labels = self._widths[1]
        stored.ids(self.ranking_, "the ranking of labels", n_labels, n_labels)
        stored.array(self.shares_, "the shares of labels", "float32", n_labels)

    def _estimate(self, data: DataSize) -> Estimate:
        data_bytes = 2 * data.rows_bytes() + 4 * data.labels_bytes()
        return Estimate(data_bytes + 80 * data.n_labels + LEAST, 20 * data.n_labels)

    @property
    def _score_meaning(self) -> str:
        return "shares of the training rows"

    def _candidates(self, X: Matrix, k: int) -> tuple[Array, Array]:
        shape = (X.shape[0], k)
        return np.broadcast_to(self.ranking_[:k], shape), np.broadcast_to(self.shares_[:k], shape)


@dataclass(kw_only=True, eq=False, repr=False)
class FeatureNeighbors(GrowingEstimator):
    """Let the nearest training rows in feature space vote on the labels.

    Parameters
    ----------
    n_neighbors : number of training rows that vote
    metric : "cosine" or "euclidean"
    vote : "similarity" weighs a neighbour by exp((s − s₁) / temperature), s₁ the similarity of the nearest;
        "uniform" gives every neighbour one vote
    temperature : a smaller one gives the nearest neighbours more weight
    growable : keep the training rows with the model, so that it can grow
    device : as in `ExMLDS`

    The other parameters are those of every method, `XMCEstimator`.

    Rows without a label do not vote, nor, by cosine, rows that have no feature in common with the query.
    Where no row votes, the most frequent labels are predicted.

    Examples
    --------
    >>> from exmlds import FeatureNeighbors
    >>> from exmlds.data import make_library
    >>> X, Y, names, _ = make_library(500, random_state=0)
    >>> model = FeatureNeighbors().fit(X, Y, label_names=names)
    >>> model.predict_labels(X[2:3], k=2)
    [['geology', 'mountains']]
    """

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        **GrowingEstimator._constraints,
        "n_neighbors": params.NEIGHBORS,
        "metric": params.one_of("cosine", "euclidean"),
        "vote": params.one_of("similarity", "uniform"),
        "temperature": params.number(0, above=True),
        "device": params.DEVICE,
    }

    _space: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "n_neighbors": (20, 10, 50, 100),
        "temperature": (0.1, 0.05, 0.2),
        "metric": ("cosine", "euclidean"),
    }

    _leaves_out_columns: ClassVar[bool] = True
    _max_held_out = MAX_HELD_OUT  # rows that are left out one by one

    n_neighbors: int = 20
    metric: str = "cosine"
    vote: str = "similarity"
    temperature: float = 0.1
    device: str = "cpu"

    def _fit(self, X: Matrix, Y: csr_matrix, rng: Generator, **side: Any) -> None:
        self.voters_ = np.flatnonzero(np.diff(Y.indptr))  # rows with a label
        self.index_ = index.build(X[self.voters_], self.metric)
        self.labels_ = Y[self.voters_]
        self.kept_rows_ = X.copy() if self._keeps_rows else None

    def _apply_rows(self, change: RowsChange, n_labels: int) -> None:
        n, added = len(self._growth().ids), np.flatnonzero(np.diff(change.labels.indptr))
        removed = np.flatnonzero(np.isin(self.voters_, change.removed))
        self.index_ = index.exclude(self.index_, removed)
        labels = emptied(widened(self.labels_, n_labels), removed)
        if len(added):
            self.index_ = index.append(self.index_, change.X[added])
            labels = vstack([labels, change.labels[added]], format="csr")
        self.voters_, self.labels_ = np.concatenate([self.voters_, n + added]), labels

    def _drop_voters(self, is_removed: Array, number: Array) -> None:
        is_kept = ~is_removed[self.voters_]
        self.index_ = index.drop(self.index_, np.flatnonzero(~is_kept))
        self.voters_, self.labels_ = number[self.voters_[is_kept]], self.labels_[is_kept]

    def _has_long_tail(self, n_more: int) -> bool:
        return index.has_long_tail(self.index_, n_more)

    def _merge_segments(self) -> None:
        self.index_ = index.compact(self.index_, n_jobs=self.n_jobs)

    def _check_learnt(self) -> None:
        super()._check_learnt()
        n = len(stored.ids(self.voters_, "the rows that vote", None, self._n_stored))
        index.check(self.index_, self.metric, n, self._widths[0])
        stored.require(issparse(self.labels_), "the labels that rows vote for are not sparse")
        stored.matrix(self.labels_, "the labels that rows vote for", n, self._widths[1])

    def _estimate(self, data: DataSize) -> Estimate:
        rows, labels = data.rows_bytes(), data.labels_bytes()
        # The rows as given, those with a label, normalized and, if sparse, transposed.
        needed = 6 * rows + 5 * labels + 16 * data.d + 16 * data.n_labels * parallel.n_threads(self.n_jobs)
        return Estimate(needed + LEAST, rows + labels + 4 * data.d)

    @property
    def _score_meaning(self) -> str:
        return "shares of votes"

    def _candidates(self, X: Matrix, k: int) -> tuple[Array, Array]:
        neighbors, similarities = index.search(self.index_, X, self.n_neighbors, engine=self.engine)
        return self._counted(neighbors, similarities, k)

    def _counted(self, neighbors: Array, similarities: Array, k: int) -> tuple[Array, Array]:
        if self.metric == "cosine":
            neighbors = vote.drop_dissimilar(neighbors, similarities)
        weights = vote.weigh(neighbors, similarities, self.vote, self.temperature)
        return vote.top_labels(neighbors, weights, self.labels_, k, engine=self.engine)

    def _score_on_holdout(
        self, X: Matrix, Y: csr_matrix, k: int, rng: Generator, **side: Any
    ) -> HeldOutScores:
        """Leave-one-out: each row is left out of its own neighbours."""
        n_held = min(self._max_held_out, len(self.voters_))
        positions = np.sort(rng.choice(len(self.voters_), n_held, replace=False))
        rows = self.voters_[positions]

        def search(block: slice) -> tuple[Array, Array]:
            neighbors, similarities = index.search(
                self.index_, X[rows[block]], self.n_neighbors + 1, engine=self.engine
            )
            neighbors[neighbors == positions[block, None]] = -1
            return self._counted(neighbors, similarities, k)

        return HeldOutScores(rows, *self._in_blocks(search, n_held, k, "choosing the threshold"))
