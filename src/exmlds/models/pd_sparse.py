"""Linear models that are sparse in their weights and in their dual variables: PPD-Sparse and PD-Sparse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix

from ..runtime import progress
from ..runtime.memory import LEAST, DataSize, Estimate
from ..runtime.parallel import n_threads
from ..selection import random_split
from ..stages import hinge, label_scores, max_margin
from ..validation import params, stored
from ..validation.arrays import Matrix
from ..voting.settings_search import mean_precision
from .linear import SparseLinearScoring

Array = np.ndarray

L1S = (0.1, 0.01)  # to choose among
HELD = 0.1  # of the rows are held out
PATIENCE = 5  # passes without a better result after which no more follow
FEWEST_ROWS, FEW_EPOCHS = 50, 10  # rows from which on some are held out, and passes where none are


@dataclass(kw_only=True, eq=False, repr=False)
class PPDSparse(SparseLinearScoring):
    """Train a sparse linear classifier for each label on few examples: PPD-Sparse (Yen et al., 2017).

    The penalty of the weights has an l1 part. All rows without the label count as negatives, but training
    visits only those that violate the margin.

    Parameters
    ----------
    loss : "squared_hinge" or "hinge"
    cost : factor of the loss of an example, relative to ‖w‖² / 2
    l1 : factor of ‖w‖₁, relative to ‖w‖² / 2: the larger, the fewer weights there are
    n_epochs : passes of dual coordinate descent over the active examples of a label, at most
    features : as in `RidgeRegression`

    The other parameters are those of every method, `XMCEstimator`.

    Examples
    --------
    >>> from exmlds import PPDSparse
    >>> from exmlds.data import make_library
    >>> X, Y, names, _ = make_library(500, random_state=0)
    >>> model = PPDSparse(random_state=0).fit(X, Y, label_names=names)
    >>> model.predict_labels(X[:1], k=2)
    [['war', 'baking']]
    """

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        **SparseLinearScoring._constraints,
        "loss": params.one_of("squared_hinge", "hinge"),
        "cost": params.number(0, above=True),
        "l1": params.number(0),
        "n_epochs": params.whole(1),
    }
    _space: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "cost": (1.0, 0.3, 3.0),
        "l1": (0.1, 0.03, 0.3),
        "features": ("l2", "log1p-l2"),
    }

    loss: str = "squared_hinge"
    cost: float = 1.0
    l1: float = 0.1
    n_epochs: int = 100

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The settings of the authors' released code: l1 = 0.1 and a cost of 1, on rows of length 1."""
        return cls(**{"loss": "squared_hinge", "cost": 1.0, "l1": 0.1, "features": "l2", **changes})

    def _weights(self, A: Matrix, Y: csr_matrix, rng: Generator) -> tuple[csr_matrix, Array]:
        return hinge.fit(
            csr_matrix(A, dtype=np.float32),
            Y,
            loss=self.loss,
            cost=self.cost,
            l1=self.l1,
            n_epochs=self.n_epochs,
            n_jobs=self.n_jobs,
            engine=self.engine,
        )

    def _estimate(self, data: DataSize) -> Estimate:
        weights = 8.0 * data.n_labels * min(data.d, data.nnz)
        rows = 2 * data.rows_bytes() + 24.0 * data.nnz + 4 * data.labels_bytes()
        blocks = n_threads(self.n_jobs) * hinge.block_bytes(data.n, data.d, data.n_labels)
        return Estimate(rows + blocks + 3 * weights + LEAST, weights)


@dataclass(kw_only=True, eq=False, repr=False)
class PDSparse(SparseLinearScoring):
    """Train sparse weights of all labels together with the max-margin loss: PD-Sparse (Yen et al., 2016).

    The loss of a row is that of its highest negative and its lowest positive label. Few labels of a row
    have dual variables, so that training does not visit the others.

    A tenth of the rows is held out. The model is that of the pass after which the precision on them, the mean
    of P@1 to P@5, was highest.

    Parameters
    ----------
    cost : factor of the loss of a row, relative to ‖W‖² / 2
    l1 : factor of ‖W‖₁, relative to ‖W‖² / 2: the larger, the fewer weights there are; "auto" is the better
        of 0.1 and 0.01 on the held-out rows
    n_epochs : passes over the rows, at most; training ends when 5 of them have brought no better precision
    features : as in `RidgeRegression`

    The other parameters are those of every method, `XMCEstimator`.

    Attributes
    ----------
    l1_, n_epochs_ : the factor, and the number of passes, of the model

    Examples
    --------
    >>> from exmlds import PDSparse
    >>> from exmlds.data import make_library
    >>> X, Y, names, _ = make_library(500, random_state=0)
    >>> model = PDSparse(random_state=0).fit(X, Y, label_names=names)
    >>> model.predict_labels(X[:1], k=2)
    [['baking', 'war']]
    """

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        **SparseLinearScoring._constraints,
        "cost": params.number(0, above=True),
        "l1": params.either(params.one_of("auto"), params.number(0)),
        "n_epochs": params.whole(1),
    }
    _space: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "cost": (1.0, 0.3, 3.0),
        "features": ("l2", "log1p-l2"),
    }

    cost: float = 1.0
    l1: str | float = "auto"
    n_epochs: int = 50

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The settings of the authors' released code: l1 = 0.1 and a cost of 1, on rows of length 1."""
        return cls(**{"cost": 1.0, "l1": 0.1, "features": "l2", **changes})

    def _weights(self, A: Matrix, Y: csr_matrix, rng: Generator) -> tuple[csr_matrix, Array]:
        X, l1s = csr_matrix(A, dtype=np.float32), L1S if self.l1 == "auto" else (float(self.l1),)
        best, chosen = -1.0, csr_matrix((X.shape[1], Y.shape[1]), dtype=np.float32)
        has_held = X.shape[0] >= FEWEST_ROWS
        train, held = random_split(X.shape[0], HELD, random_state=rng) if has_held else (slice(None), None)
        rows, labels, n_failed = X[train], Y[train], 0
        for l1 in l1s if has_held else l1s[:1]:
            for epoch, W in enumerate(self._passes(rows, labels, l1, rng), 1):
                quality = 0.0 if held is None else self._quality(W, X[held], Y[held])
                n_failed = 0 if epoch == 1 else n_failed + 1
                if quality > best or held is None:
                    best, chosen, n_failed = quality, W, 0
                    self.l1_, self.n_epochs_ = l1, epoch
                if n_failed == PATIENCE or (held is None and epoch == FEW_EPOCHS):
                    break
        return chosen, np.zeros(Y.shape[1], np.float32)

    def _passes(self, X: csr_matrix, Y: csr_matrix, l1: float, rng: Generator) -> Iterator[csr_matrix]:
        """W after each pass over the rows."""
        sets, n_labels = max_margin.start(Y), Y.shape[1]
        with progress.stage(f"max margin, l1 = {l1:g}", self.n_epochs, "epochs") as advance:
            for _ in range(self.n_epochs):
                order, seed = rng.permutation(X.shape[0]).astype(np.int32), int(rng.integers(2**63))
                sets = max_margin.train(
                    X, sets, order, n_labels, seed, cost=self.cost, l1=l1, engine=self.engine
                )
                yield max_margin.weights(X, sets, n_labels, l1=l1)
                advance(1)

    def _quality(self, W: csr_matrix, X: csr_matrix, truth: csr_matrix) -> float:
        bias, k = np.zeros(W.shape[1], np.float32), min(5, W.shape[1])
        ids, _ = self._in_blocks(
            lambda block: label_scores.top_labels_sparse(X[block], W, bias, k, engine=self.engine),
            *(X.shape[0], k, "choosing n_epochs"),
        )
        return mean_precision(truth, ids)

    def _check_learnt(self) -> None:
        super()._check_learnt()
        stored.number(self.l1_, "l1")
        stored.whole(self.n_epochs_, "the number of epochs", 1)

    def _estimate(self, data: DataSize) -> Estimate:
        weights = 8.0 * data.n_labels * min(data.d, data.nnz)
        rows = 5 * data.rows_bytes() + 4 * data.labels_bytes()
        sets = 3 * max_margin.sets_bytes(data.n, data.n_labels, data.nnz_labels)
        sums = max_margin.sums_bytes(*data)
        return Estimate(rows + sets + sums + 2 * weights + LEAST, weights)
