"""WSABIE (Weston, Bengio and Usunier, 2011): rows and labels in one space, learnt by the WARP loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix

from ..runtime.memory import LEAST, DataSize, Estimate
from ..stages import warp
from ..validation import params
from ..validation.arrays import Matrix, take_rows, used_columns
from .linear import EmbeddingScoring


@dataclass(kw_only=True, eq=False, repr=False)
class WSABIE(EmbeddingScoring):
    """Score labels by ⟨x V, h_l⟩ and train V and h_l to rank the labels of a row first, by the WARP loss.

    Parameters
    ----------
    n_components : r, the dimension of the space
    n_epochs : passes over the rows
    learning_rate : of the first step; it falls linearly to 0
    max_norm : C, the largest length of a row of V and of an h_l, which is the only regularization
    features : as in `RidgeRegression`

    The other parameters are those of every method, `XMCEstimator`. Training runs on one thread.

    Examples
    --------
    >>> from exmlds import WSABIE
    >>> from exmlds.data import make_library
    >>> X, Y, names, _ = make_library(500, random_state=0)
    >>> model = WSABIE(n_components=30, random_state=0).fit(X, Y, label_names=names)
    >>> model.predict_labels(X[:1], k=2)
    [['baking', 'war']]
    """

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        **EmbeddingScoring._constraints,
        "n_epochs": params.whole(1),
        "learning_rate": params.number(0, above=True),
        "max_norm": params.number(0, above=True),
    }
    _space: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "max_norm": (2.5, 2.0, 4.0),
        "n_epochs": (15, 8, 30),
        "learning_rate": (0.01, 0.005, 0.02),
        "n_components": (100, 50, 200),
        "features": ("l2", "log1p-l2"),
    }

    n_epochs: int = 15
    learning_rate: float = 0.01
    max_norm: float = 2.5

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The setting that its paper states, 100 dimensions; it chooses the others on validation rows."""
        return cls(**{"n_components": 100, "features": "l2", **changes})

    def _fit_linear(self, A: Matrix, Y: csr_matrix, rng: Generator, **side: Any) -> None:
        X = csr_matrix(A, dtype=np.float32)
        state = warp.init(
            X.shape[1], Y.shape[1], self.n_components, max_norm=self.max_norm, n_epochs=self.n_epochs, rng=rng
        )
        # What is drawn for a feature that no labelled row has would stay as it is, and be noise.
        is_used = np.zeros(X.shape[1], bool)
        is_used[used_columns(take_rows(X, np.flatnonzero(np.diff(Y.indptr))))] = True
        state.V[~is_used] = 0
        while state.epoch < self.n_epochs:
            state = warp.epoch(
                state, X, Y, learning_rate=self.learning_rate, max_norm=self.max_norm, engine=self.engine
            )
        self.map_, self.label_embeddings_ = state.V, state.H

    def _estimate(self, data: DataSize) -> Estimate:
        embeddings = 4.0 * (data.d + data.n_labels) * self.n_components
        rows = 4 * data.rows_bytes() + 16.0 * data.nnz + 4 * data.labels_bytes()
        return Estimate(rows + 2 * embeddings + 64.0 * data.n_labels + LEAST, embeddings)
