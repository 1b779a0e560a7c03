"""What methods share that score every label by a linear model of the features."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix, issparse

from ..base import XMCEstimator
from ..stages import features, label_scores
from ..validation import params, stored
from ..validation.arrays import Matrix
from ..validation.columns import UsedColumns

Array = np.ndarray


@dataclass(kw_only=True, eq=False, repr=False)
class LinearScoring(XMCEstimator):
    """Features → linear models → the labels with the largest margins; a method says how they are learnt.

    A method implements `_fit_linear`, `_margins` and `_estimate`, for the labels that occur.

    Attributes
    ----------
    scored_labels_ : (m,) the columns of the labels that occur, ascending; no other label is predicted
    """

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        **XMCEstimator._constraints,
        "features": params.one_of(*features.SCALINGS),
    }
    _leaves_out_columns: ClassVar[bool] = True

    features: str = "l2"

    def _fit(self, X: Matrix, Y: csr_matrix, rng: Generator, **side: Any) -> None:
        features_rng, own_rng = rng.spawn(2)
        self.feature_map_ = features.fit(self.features, X, features_rng)
        C = side.get("label_cooccurrence")
        known = Y.indices if C is None else np.concatenate([Y.indices, C.indices])
        self.scored_labels_ = np.unique(known).astype(np.int64)
        columns = UsedColumns(None, self.scored_labels_)
        A = features.apply(self.feature_map_, X)
        self._fit_linear(A, columns.of_labels(Y), own_rng, **columns.side(side))

    @abstractmethod
    def _fit_linear(self, A: Matrix, Y: csr_matrix, rng: Generator, **side: Any) -> None:
        """Learn from transformed features, (n, d), and the labels that occur, (n, m)."""

    @abstractmethod
    def _margins(self, A: Matrix, k: int) -> tuple[Array, Array]:
        """(b, k) the labels with the largest margins, for rows of transformed features, and the margins."""

    def _candidates(self, X: Matrix, k: int) -> tuple[Array, Array]:
        ids, margins = self._margins(features.apply(self.feature_map_, X, engine=self.engine), k)
        return np.where(ids >= 0, self.scored_labels_[ids], -1), label_scores.squash(margins)

    @property
    def _shape(self) -> tuple[int, int]:
        """The numbers of features and of the labels that occur."""
        return self._widths[0], len(self.scored_labels_)

    def _check_learnt(self) -> None:
        super()._check_learnt()
        d, n_labels = self._widths
        features.check(self.feature_map_, d)
        labels = stored.ids(self.scored_labels_, "the labels that are scored", None, n_labels)
        stored.ascending(labels, "the labels that are scored")
        stored.require(len(labels), "no label is scored")

    @property
    def _score_meaning(self) -> str:
        return "margins m as 1 / (1 + exp(−m))"


@dataclass(kw_only=True, eq=False, repr=False)
class EmbeddingScoring(LinearScoring):
    """Score labels by ⟨x V, h_l⟩; a method learns the map V, `map_`, and the h_l, `label_embeddings_`."""

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        **LinearScoring._constraints,
        "n_components": params.whole(1),
    }

    n_components: int = 100

    def _margins(self, A: Matrix, k: int) -> tuple[Array, Array]:
        sparse = issparse(A)
        Z = np.asarray(A @ self.map_, np.float32) if sparse else self.engine.products(A, self.map_)
        return label_scores.top_labels(Z, self.label_embeddings_, None, k, engine=self.engine)

    def _check_learnt(self) -> None:
        super()._check_learnt()
        d, n_labels = self._shape
        rank = stored.array(self.map_, "the map", "float32", d, None).shape[1]
        stored.array(self.label_embeddings_, "the embeddings of labels", "float32", n_labels, rank)


@dataclass(kw_only=True, eq=False, repr=False)
class SparseLinearScoring(LinearScoring):
    """Margins x W + b with sparse weights W; a method implements `_weights` and `_estimate`."""

    def _fit_linear(self, A: Matrix, Y: csr_matrix, rng: Generator, **side: Any) -> None:
        self.weights_, self.bias_ = self._weights(A, Y, rng)

    @abstractmethod
    def _weights(self, A: Matrix, Y: csr_matrix, rng: Generator) -> tuple[csr_matrix, Array]:
        """(d, L) csr float32 W and (L,) float32 b, learnt from transformed features, (n, d), and labels."""

    def _margins(self, A: Matrix, k: int) -> tuple[Array, Array]:
        return label_scores.top_labels_sparse(A, self.weights_, self.bias_, k, engine=self.engine)

    def _check_learnt(self) -> None:
        super()._check_learnt()
        d, n_labels = self._shape
        stored.require(issparse(self.weights_), "the weights are not sparse")
        stored.matrix(self.weights_, "the weights", d, n_labels)
        stored.array(self.bias_, "the biases", "float32", n_labels)
