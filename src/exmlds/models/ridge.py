"""Ridge regression of all labels on the features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix

from ..runtime.memory import LEAST, DataSize, Estimate
from ..runtime.parallel import blocks, map_blocks
from ..selection import HoldOut, choose
from ..stages import label_scores, regress
from ..validation import params, stored
from ..validation.arrays import Matrix, mean_square, take_rows
from ..voting.settings_search import mean_precision
from .linear import LinearScoring

Array = np.ndarray

L2S = (1.0, 0.1, 10.0)  # to choose among
CHOSEN_ON = 5_000  # rows that l2 is chosen on, at most
MIN_ROWS_TO_TUNE = 50  # rows below which it is not chosen
BLOCK = 512  # labels that are solved for at a time


@dataclass(kw_only=True, eq=False, repr=False)
class RidgeRegression(LinearScoring):
    """Regress the label matrix on the features with a quadratic penalty: W = (XᵀX + l2 I)⁻¹ XᵀY.

    The model is a dense matrix of features × labels, for thousands of each at most.

    Parameters
    ----------
    features : feature transform: "l2", "none", "sqrt-l2", "log1p-l2", "idf-l2" or "standardize"
    l2 : the penalty, in units of the mean squared length of the rows; "auto" is the best of 1, 0.1 and 10 on
        held-out rows

    The other parameters are those of every method, `XMCEstimator`.

    Examples
    --------
    >>> from exmlds import RidgeRegression
    >>> from exmlds.data import make_library
    >>> X, Y, names, _ = make_library(500, random_state=0)
    >>> model = RidgeRegression(random_state=0).fit(X, Y, label_names=names)
    >>> model.predict_labels(X[:1], k=2)
    [['baking', 'war']]
    """

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        **LinearScoring._constraints,
        "l2": params.either(params.one_of("auto"), params.number(0)),
    }
    _space: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "l2": (1.0, 0.1, 10.0),
        "features": ("l2", "log1p-l2"),
    }

    l2: str | float = "auto"

    def _fit_linear(self, A: Matrix, Y: csr_matrix, rng: Generator, **side: Any) -> None:
        self.l2_ = self._chosen_l2(A, Y, rng) if self.l2 == "auto" else float(self.l2)
        self.weights_ = next(self._solutions(A, Y, [self.l2_]))

    def _solutions(self, A: Matrix, Y: csr_matrix, l2s: list[float]) -> Iterator[Array]:
        """(d, L) float32 the weights for each l2; the Gram matrix is computed once."""
        system, by_label = regress.prepare(A, Y.shape[1], self.n_jobs, engine=self.engine), Y.tocsc()
        for l2 in l2s:
            solve = regress.solver(system, l2 * mean_square(A), self.n_jobs)
            W = np.empty((A.shape[1], Y.shape[1]), np.float32)
            todo = blocks(Y.shape[1], BLOCK)
            solved = map_blocks(
                lambda labels: solve(by_label[:, labels].toarray()),  # noqa: B023 (used before the next l2)
                todo,
                n_jobs=self.n_jobs,
                stage="regression",
                total=Y.shape[1],
                unit="labels",
            )
            for labels, weights in zip(todo, solved):
                W[:, labels] = weights
            yield W

    def _chosen_l2(self, A: Matrix, Y: csr_matrix, rng: Generator) -> float:
        rows = np.sort(rng.permutation(A.shape[0])[:CHOSEN_ON])
        if len(rows) < MIN_ROWS_TO_TUNE:
            return L2S[0]
        split = HoldOut.random(len(rows), rng)
        train, held = rows[split.train_rows], rows[split.held_rows]
        solutions = self._solutions(take_rows(A, train), take_rows(Y, train), list(L2S))
        rows_held, truth = take_rows(A, held), take_rows(Y, held)
        quality = dict(zip(L2S, (self._quality(W, rows_held, truth) for W in solutions)))
        return choose(L2S, quality.__getitem__).best

    def _quality(self, W: Array, A: Matrix, truth: csr_matrix) -> float:
        k = min(5, W.shape[1])
        ids, _ = self._in_blocks(
            lambda block: label_scores.top_labels_dense(A[block], W, k, engine=self.engine),
            *(A.shape[0], k, "choosing l2"),
        )
        return mean_precision(truth, ids)

    def _margins(self, A: Matrix, k: int) -> tuple[Array, Array]:
        return label_scores.top_labels_dense(A, self.weights_, k, engine=self.engine)

    def _check_learnt(self) -> None:
        super()._check_learnt()
        stored.array(self.weights_, "the weights", "float32", *self._shape)
        stored.number(self.l2_, "l2")

    def _estimate(self, data: DataSize) -> Estimate:
        weights, smaller = 4.0 * data.d * data.n_labels, float(min(data.n, data.d))
        is_exact = regress.is_exact(data.n, data.d, data.nnz, data.n_labels)
        solving = 12.0 * smaller**2 if is_exact else 24.0 * data.d * min(BLOCK, data.n_labels)
        solving += 4.0 * (2 * data.n + 3 * data.d) * min(BLOCK, data.n_labels)
        n_copies = 2 if self.l2 == "auto" else 1
        rows = 5 * data.rows_bytes() + 4 * data.labels_bytes()
        return Estimate(rows + n_copies * weights + n_copies * solving + LEAST, weights)
