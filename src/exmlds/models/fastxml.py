"""Ensembles of trees over the rows: FastXML (Prabhu and Varma, 2014) and PfastreXML (Jain et al., 2016)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix

from .. import metrics
from ..base import XMCEstimator
from ..runtime import parallel
from ..runtime.memory import LEAST, DataSize, Estimate
from ..stages import features, rerank, trees
from ..validation import params
from ..validation.arrays import Matrix, row_norms, take_rows

Array = np.ndarray

LEAST_SCORE = 1e-30  # where two rows are so far apart that their nearness is 0 in float32


@dataclass(kw_only=True, eq=False, repr=False)
class FastXML(XMCEstimator):
    """Grow trees whose nodes divide rows so that both sides rank their labels well, and average their leaves.

    Parameters
    ----------
    n_trees : number of trees
    cost : factor of the loss of an example of a separator, relative to ‖w‖₁
    max_leaf : a node with more rows is divided
    n_leaf_labels : labels that a leaf keeps, those with the largest shares of its rows
    features : as in `RidgeRegression`

    The other parameters are those of every method, `XMCEstimator`.

    Examples
    --------
    >>> from exmlds import FastXML
    >>> from exmlds.data import make_library
    >>> X, Y, names, _ = make_library(500, random_state=0)
    >>> model = FastXML(random_state=0).fit(X, Y, label_names=names)
    >>> model.predict_labels(X[:1], k=2)
    [['war', 'baking']]
    """

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        **XMCEstimator._constraints,
        "n_trees": params.whole(1, 2**16),
        "cost": params.number(0, above=True),
        "max_leaf": params.whole(1),
        "n_leaf_labels": params.whole(1),
        "features": params.one_of(*features.SCALINGS),
    }
    _space: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "cost": (2.0, 1.0, 4.0),
        "features": ("l2", "log1p-l2"),
        "max_leaf": (10, 30),
    }
    _leaves_out_columns: ClassVar[bool] = True

    n_trees: int = 50
    cost: float = 2.0
    max_leaf: int = 10
    n_leaf_labels: int = 100
    features: str = "l2"

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The settings of its paper; the default cost differs, on rows of length 1 its own divides less."""
        settings = {"n_trees": 50, "cost": 1.0, "max_leaf": 10, "n_leaf_labels": 100, "features": "l2"}
        return cls(**{**settings, **changes})

    def _fit(self, X: Matrix, Y: csr_matrix, rng: Generator, **side: Any) -> None:
        features_rng, trees_rng = rng.spawn(2)
        self.feature_map_ = features.fit(self.features, X, features_rng)
        rows = self._trainable_rows(Y)
        self._fit_rows(self._sparse_rows(take_rows(X, rows)), take_rows(Y, rows), trees_rng)

    def _sparse_rows(self, X: Matrix) -> csr_matrix:
        """(n, d) csr float32, transformed features."""
        return csr_matrix(features.apply(self.feature_map_, X), dtype=np.float32)

    def _fit_rows(self, A: csr_matrix, Y: csr_matrix, rng: Generator) -> None:
        """Learn from transformed features and from labels, of rows that have at least one."""
        self.forest_ = trees.fit(
            A,
            Y,
            self.n_trees,
            rng,
            gains=self._gains(),
            cost=self.cost,
            max_leaf=self.max_leaf,
            n_leaf_labels=self.n_leaf_labels,
            n_jobs=self.n_jobs,
            engine=self.engine,
        )

    def _gains(self) -> Array | None:
        """(L,) the gain of each label in the nDCG that the trees maximize; None is 1 for all."""
        return None

    def _candidates(self, X: Matrix, k: int) -> tuple[Array, Array]:
        return trees.rank(self._scores(self._sparse_rows(X)), k, engine=self.engine)

    def _scores(self, A: csr_matrix) -> csr_matrix:
        """(b, L) csr float32, the scores of the labels in the leaves that rows reach."""
        return trees.score(self.forest_, A, engine=self.engine)

    def _check_learnt(self) -> None:
        super()._check_learnt()
        d, n_labels = self._widths
        features.check(self.feature_map_, d)
        trees.check(self.forest_, d, n_labels)

    def _estimate(self, data: DataSize) -> Estimate:
        # Measured: 1.2 to 1.7 rows / max_leaf nodes, and 6 to 20 weights in each with a cost of 1.
        n_nodes = 2.0 * data.n / self.max_leaf + 1
        weights = min(20 * max(self.cost, 1) ** 0.5 * n_nodes, float(data.nnz))
        model = self.n_trees * (28 * n_nodes + 8 * weights + 8 * data.nnz_labels)
        growing = 20.0 * data.nnz + 60.0 * data.n + 24.0 * data.nnz_labels + 24.0 * (data.d + data.n_labels)
        growing *= min(parallel.n_threads(self.n_jobs), self.n_trees)
        rows = 3 * data.rows_bytes() + 16.0 * data.nnz + 4 * data.labels_bytes()
        return Estimate(rows + growing + 2 * model + LEAST, model)

    @property
    def _score_meaning(self) -> str:
        return "shares of the rows in leaves"


@dataclass(kw_only=True, eq=False, repr=False)
class PfastreXML(FastXML):
    """Grow the trees of `FastXML` with larger gains for rare labels, and weigh nearness to the labels' rows.

    The gain of a label in the nDCG is its inverse propensity. With P the mean of the shares in leaves and μ
    the mean of the label's training rows, the score is P^alpha · exp(−gamma ‖x − μ‖² / 2)^(1 − alpha).

    Parameters
    ----------
    propensity_a, propensity_b : A and B of `metrics.inverse_propensity`; the paper has values of its own for
        data such as Wikipedia's, (0.5, 0.4), and Amazon's, (0.6, 2.6)
    alpha : weight of the trees, from 0 to 1
    gamma : how fast a score decreases with the distance of the row to the label's mean
    n_trees, cost, max_leaf, n_leaf_labels, features : as in `FastXML`

    The other parameters are those of every method, `XMCEstimator`.

    Examples
    --------
    >>> from exmlds import PfastreXML
    >>> from exmlds.data import make_library
    >>> X, Y, names, _ = make_library(500, random_state=0)
    >>> model = PfastreXML(random_state=0).fit(X, Y, label_names=names)
    >>> model.predict_labels(X[:1], k=2)
    [['baking', 'war']]
    """

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        **FastXML._constraints,
        "propensity_a": params.number(0, 10),
        "propensity_b": params.number(0, 1e6),
        "alpha": params.number(0, 1),
        "gamma": params.number(0),
    }
    _space: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        **FastXML._space,
        "alpha": (0.8, 0.9, 0.6),
        "gamma": (30.0, 10.0),
    }

    propensity_a: float = 0.55
    propensity_b: float = 1.5
    alpha: float = 0.8
    gamma: float = 30.0

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The settings of its paper, with the propensities of most of its data sets."""
        own = {"propensity_a": 0.55, "propensity_b": 1.5, "alpha": 0.8, "gamma": 30.0}
        return super().paper(**{**own, **changes})

    def _fit_rows(self, A: csr_matrix, Y: csr_matrix, rng: Generator) -> None:
        super()._fit_rows(A, Y, rng)
        self.centroids_ = rerank.fit_means(A, Y, n_jobs=self.n_jobs, engine=self.engine)

    def _gains(self) -> Array:
        propensities = self.propensity_a, self.propensity_b
        return metrics.inverse_propensity(self.column_counts_, *propensities, n_rows=self.n_samples_fit_)

    def _scores(self, A: csr_matrix) -> csr_matrix:
        scores = super()._scores(A)
        lengths = np.diff(scores.indptr)
        ids = np.full((A.shape[0], int(lengths.max(initial=0))), -1, np.int64)
        is_listed = np.arange(ids.shape[1]) < lengths[:, None]
        ids[is_listed] = scores.indices
        margins = rerank.score(self.centroids_, A, ids, engine=self.engine)[is_listed]
        squares = np.repeat(row_norms(A) ** 2, lengths)
        distances = np.maximum(squares - 2 * margins, 0)  # squared
        logs = self.alpha * np.log(scores.data) - (1 - self.alpha) * self.gamma / 2 * distances
        scores.data = np.maximum(np.exp(logs), LEAST_SCORE).astype(np.float32)
        return scores

    def _check_learnt(self) -> None:
        super()._check_learnt()
        rerank.check(self.centroids_, *self._widths)

    def _estimate(self, data: DataSize) -> Estimate:
        of_trees = super()._estimate(data)
        # A mean has no more features than the rows of its label have values.
        values = min(data.nnz * data.nnz_labels / data.n, float(data.d) * data.n_labels)
        return Estimate(of_trees.memory + 40 * values, of_trees.size + 5 * values)

    @property
    def _score_meaning(self) -> str:
        return "shares of the rows in leaves, times the nearness of the label's rows"
