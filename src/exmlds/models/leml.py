"""LEML and LEML-IMC: regression of all labels through a space of low rank (Yu et al., 2014)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix

from ..runtime.memory import LEAST, DataSize, Estimate
from ..stages import complete, factorize, reduced_rank
from ..validation import params, targets
from ..validation.arrays import Matrix, mean_square
from .linear import EmbeddingScoring

Array = np.ndarray


@dataclass(kw_only=True, eq=False, repr=False)
class LowRankScoring(EmbeddingScoring):
    """Score labels by X W Hᵀ; a method says how W and H are learnt."""

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        **EmbeddingScoring._constraints,
        "l2": params.number(0, above=True),
        "n_iterations": params.whole(1),
    }
    _space: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "n_components": (100, 50, 200),
        "l2": (1.0, 0.3, 3.0),
        "features": ("l2", "log1p-l2"),
    }

    l2: float = 1.0
    n_iterations: int = 10

    def _fit_linear(self, A: Matrix, Y: csr_matrix, rng: Generator, **side: Any) -> None:
        settings: dict[str, Any] = {
            "l2": self.l2,
            "mean_square": mean_square(A),
            "n_iterations": self.n_iterations,
            "n_jobs": self.n_jobs,
            "engine": self.engine,
        }
        factors = self._factors(A, Y, min(self.n_components, Y.shape[1]), rng, settings, **side)
        self.map_, self.label_embeddings_ = factors

    @abstractmethod
    def _factors(
        self, A: Matrix, Y: csr_matrix, rank: int, rng: Generator, settings: dict[str, Any], **side: Any
    ) -> reduced_rank.Factors:
        """W and H, for transformed features and labels; settings : of `reduced_rank.fit`."""

    def _estimate(self, data: DataSize) -> Estimate:
        smaller = min(data.n, data.d)
        gram = 16.0 * smaller**2 if smaller <= reduced_rank.MOST_EXACT else 0.0
        factors = 4.0 * (data.d + data.n_labels) * self.n_components
        working = 24.0 * (data.n + data.d + data.n_labels) * self.n_components
        rows = 4 * data.rows_bytes() + 6 * data.labels_bytes()
        return Estimate(rows + gram + factors + working + LEAST, factors)


@dataclass(kw_only=True, eq=False, repr=False)
class LEML(LowRankScoring):
    """Score labels by Y ≈ X W Hᵀ of low rank, with the squared loss, by alternating least squares.

    Parameters
    ----------
    n_components : r, the rank
    l2 : the penalty of W, in units of the mean squared length of the rows, and of H
    n_iterations : alternations between W and H
    features : as in `RidgeRegression`

    The other parameters are those of every method, `XMCEstimator`.

    Examples
    --------
    >>> from exmlds import LEML
    >>> from exmlds.data import make_library
    >>> X, Y, names, _ = make_library(500, random_state=0)
    >>> model = LEML(n_components=30, random_state=0).fit(X, Y, label_names=names)
    >>> model.predict_labels(X[:1], k=2)
    [['baking', 'war']]
    """

    _side: ClassVar[Mapping[str, bool]] = {"observed": True}

    def fit(self, X: Any, y: Any, *, label_names: Sequence[str] | None = None, observed: Any = None) -> Self:
        """Fit the model to rows and to those of their labels that are known.

        Parameters
        ----------
        X, y, label_names : as for every method
        observed : (n, L) 1 where a cell of y is known; the others are left out of the loss
        """
        return self._learn(X, y, label_names, observed=observed)

    def _checked_side(self, Y: csr_matrix, **side: Any) -> dict[str, Any]:
        return {"observed": targets.of_missing(Y, label_cooccurrence=None, **side)["observed"]}

    def _factors(
        self, A: Matrix, Y: csr_matrix, rank: int, rng: Generator, settings: dict[str, Any], **side: Any
    ) -> reduced_rank.Factors:
        return reduced_rank.fit(A, Y, rank, rng, known=side["observed"], **settings)


@dataclass(kw_only=True, eq=False, repr=False)
class LEMLIMC(LowRankScoring):
    """LEML with features of labels: Y ≈ X W Hᵀ Fᵀ, inductive matrix completion.

    The features F of labels are the eigenvectors of their co-occurrences C_ij / √(C_ii C_jj), times the
    square roots of the eigenvalues, so that directions in which labels co-occur often cost little.

    Parameters
    ----------
    n_label_features : number of columns of F, at most
    n_components, l2, n_iterations, features : as in `LEML`

    The other parameters are those of every method, `XMCEstimator`.

    Examples
    --------
    >>> from exmlds import LEMLIMC
    >>> from exmlds.data import make_library
    >>> X, Y, names, _ = make_library(500, random_state=0)
    >>> model = LEMLIMC(n_components=30, random_state=0).fit(X, Y, label_names=names)
    >>> model.predict_labels(X[:1], k=2)
    [['war', 'baking']]
    """

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        **LowRankScoring._constraints,
        "n_label_features": params.whole(1),
    }
    _side: ClassVar[Mapping[str, bool]] = {"label_cooccurrence": False}

    n_label_features: int = 500

    def fit(
        self, X: Any, y: Any, *, label_names: Sequence[str] | None = None, label_cooccurrence: Any = None
    ) -> Self:
        """Fit the model to rows, their labels, and what is known of labels.

        Parameters
        ----------
        X, y, label_names : as for every method
        label_cooccurrence : C, as in `ExMLDS3.fit`; YᵀY if not given
        """
        return self._learn(X, y, label_names, label_cooccurrence=label_cooccurrence)

    def _checked_side(self, Y: csr_matrix, **side: Any) -> dict[str, Any]:
        found = targets.of_missing(Y, observed=None, **side)
        return {"label_cooccurrence": found["label_cooccurrence"]}

    def _factors(
        self, A: Matrix, Y: csr_matrix, rank: int, rng: Generator, settings: dict[str, Any], **side: Any
    ) -> reduced_rank.Factors:
        features_rng, start_rng = rng.spawn(2)
        C = side["label_cooccurrence"]
        C = csr_matrix(Y.T @ Y, dtype=np.float32) if C is None else C
        similar = complete.cosines(C)  # so that a frequent label is not nearer to the others than a rare one
        U, values = factorize.embed(similar, min(self.n_label_features, C.shape[0]), features_rng)
        U, values = U[:, values > 0], values[values > 0]
        rank = min(rank, len(values))
        # With F = U √Λ, H stands for Λ^−½ H', of which the penalty is.
        scales = np.sqrt(values[0] / values)
        W, H = reduced_rank.fit(A, Y @ U, rank, start_rng, scales=scales, **settings)
        return reduced_rank.Factors(W, U @ H)
