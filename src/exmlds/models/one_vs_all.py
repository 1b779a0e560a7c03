"""One linear classifier for each label, with all other rows as negatives: One-vs-All and DiSMEC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix, vstack

from ..runtime.memory import LEAST, DataSize, Estimate
from ..stages import rerank
from ..validation import params
from ..validation.arrays import Matrix
from .linear import SparseLinearScoring

Array = np.ndarray

EXAMPLES = 8_000_000  # pairs of a row and a label that are trained on at a time


@dataclass(kw_only=True, eq=False, repr=False)
class OneVsAll(SparseLinearScoring):
    """Train a linear classifier for each label, whose negatives are all rows without it.

    Parameters
    ----------
    loss : "squared_hinge" or "logistic"
    cost : factor of the loss of an example, relative to ‖w‖² / 2
    n_epochs : passes of dual coordinate descent over the examples of a label, at most
    prune_below : weights that are nearer to 0 are dropped
    features : as in `RidgeRegression`

    The other parameters are those of every method, `XMCEstimator`. Weights are rounded to 8 bits, with one
    scale for each label.

    Examples
    --------
    >>> from exmlds import OneVsAll
    >>> from exmlds.data import make_library
    >>> X, Y, names, _ = make_library(500, random_state=0)
    >>> model = OneVsAll(random_state=0).fit(X, Y, label_names=names)
    >>> model.predict_labels(X[:1], k=2)
    [['war', 'baking']]
    """

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        **SparseLinearScoring._constraints,
        "loss": params.one_of("squared_hinge", "logistic"),
        "cost": params.number(0, above=True),
        "n_epochs": params.whole(1),
        "prune_below": params.number(0),
    }
    _space: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "cost": (1.0, 0.3, 3.0),
        "features": ("l2", "log1p-l2"),
    }

    loss: str = "squared_hinge"
    cost: float = 1.0
    n_epochs: int = 20
    prune_below: float = 0.0

    def _weights(self, A: Matrix, Y: csr_matrix, rng: Generator) -> tuple[csr_matrix, Array]:
        rows, by_label = rerank.pad_rows(csr_matrix(A), engine=self.engine), Y.tocsc()
        n, n_labels = Y.shape
        step = max(1, EXAMPLES // n)
        parts, biases = [], []
        for start in range(0, n_labels, step):
            own = by_label[:, start : start + step]
            weights, _ = rerank.train(
                rows,
                _with_all_negatives(own),
                loss=self.loss,
                cost=self.cost,
                n_epochs=self.n_epochs,
                n_jobs=self.n_jobs,
                engine=self.engine,
            )
            parts.append(self._pruned(weights, A.shape[1]))
            biases.append(weights.bias)
        return csr_matrix(vstack(parts, format="csr").T), np.concatenate(biases)

    def _pruned(self, weights: rerank.LabelWeights, d: int) -> csr_matrix:
        """(m, d) csr float32 the weights of m labels, without those near 0."""
        values = weights.values * np.repeat(weights.scale, np.diff(weights.starts))
        pruned = csr_matrix((values, weights.features, weights.starts), (len(weights.scale), d))
        pruned.data[np.abs(values) < self.prune_below] = 0
        pruned.eliminate_zeros()
        return pruned

    def _estimate(self, data: DataSize) -> Estimate:
        step = min(max(1, EXAMPLES // data.n), data.n_labels)
        weights = 8.0 * data.n_labels * min(data.d, data.nnz)
        examples = 9.0 * step * data.n + 16.0 * step * data.d
        rows = 5 * data.rows_bytes() + 4 * data.labels_bytes() + 16.0 * data.nnz
        return Estimate(rows + examples + 3 * weights + LEAST, weights)


@dataclass(kw_only=True, eq=False, repr=False)
class DiSMEC(OneVsAll):
    """One-vs-All with the squared hinge loss, without weights under 0.01 (Babbar and Schölkopf, 2017).

    The published system distributes blocks of labels over machines; here they are trained one after the
    other, on all cores.

    Parameters
    ----------
    loss, cost, n_epochs, prune_below, features : as in `OneVsAll`

    The other parameters are those of every method, `XMCEstimator`.

    Examples
    --------
    >>> from exmlds import DiSMEC
    >>> from exmlds.data import make_library
    >>> X, Y, names, _ = make_library(500, random_state=0)
    >>> model = DiSMEC(random_state=0).fit(X, Y, label_names=names)
    >>> model.predict_labels(X[:1], k=2)
    [['war', 'baking']]
    """

    prune_below: float = 0.01

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The settings of its paper: a cost of 1 and weights from 0.01 on, on rows of length 1."""
        return cls(**{"loss": "squared_hinge", "cost": 1.0, "prune_below": 0.01, "features": "l2", **changes})


def _with_all_negatives(by_label: Any) -> rerank.Examples:
    """All rows as examples of each label; by_label : (n, m) csc, the rows that have each label."""
    n, m = by_label.shape
    signs = np.full((m, n), -1, np.int8)
    signs[np.repeat(np.arange(m), np.diff(by_label.indptr)), by_label.indices] = 1
    starts = np.arange(m + 1, dtype=np.int64) * n
    return rerank.Examples(starts, np.tile(np.arange(n, dtype=np.int32), m), signs.ravel())
