"""Linear classifiers with sparse weights, one per label, which learn from few rows each.

    min over w, b of  l1 ‖w‖₁ + (‖w‖² + b²)/2 + cost Σᵢ loss(sᵢ (⟨w, xᵢ⟩ + b)),   sᵢ = ±1

All rows count, but dual coordinate descent visits only those with α > 0 and those that violate the margin,
which it finds through the features that w uses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, vstack

from ..kernels import DEFAULT, Engine
from ..runtime.parallel import blocks, map_blocks
from ..validation.arrays import row_norms

Array = np.ndarray

N_PASSES = 10  # over an active set before others join it
N_BLOCKS = 64  # blocks of labels, at least
MOST_WEIGHTS = 4_000_000  # in a block of labels


class LinearWeights(NamedTuple):
    """Margins of rows are x W + b: W (d, L) csr float32, b (L,) float32."""

    W: csr_matrix
    bias: Array


def fit(
    X: csr_matrix,
    Y: csr_matrix,
    *,
    loss: str = "squared_hinge",
    cost: float = 1.0,
    l1: float = 0.1,
    n_epochs: int = 100,
    tolerance: float = 0.1,
    n_jobs: int | None = None,
    engine: Engine = DEFAULT,
) -> LinearWeights:
    """Train the classifiers of all labels.

    X : (n, d) csr float32;  Y : (n, L) csr of ones
    loss : "hinge" or "squared_hinge"
    cost : factor of the loss of a row
    l1 : factor of ‖w‖₁; the bias has no part in it
    n_epochs : passes over the active set of a label, at most
    tolerance : a label is finished when no gradient is larger
    """
    d, n_labels = X.shape[1], Y.shape[1]
    squares = (row_norms(X) ** 2).astype(np.float32)
    by_feature, by_label = X.tocsc(), Y.tocsc()
    given = (X.indptr, X.indices, X.data, squares, by_feature.indptr, by_feature.indices, by_feature.data)
    slack, most = (0.0, cost) if loss == "hinge" else (0.5 / cost, np.inf)
    settings = (*map(np.float32, (slack, most, l1)), N_PASSES, n_epochs, np.float32(tolerance))

    def train_block(labels: slice) -> LinearWeights:
        n = labels.stop - labels.start
        starts, bias = np.zeros(n + 1, np.int64), np.zeros(n, np.float32)
        features, values = np.empty(n * d, np.int32), np.empty(n * d, np.float32)
        which = by_label.indptr, by_label.indices, labels.start, labels.stop
        engine.train_hinge(*given, *which, *settings, starts, features, values, bias)
        kept = slice(0, int(starts[-1]))
        return LinearWeights(csr_matrix((values[kept].copy(), features[kept].copy(), starts), (n, d)), bias)

    todo = blocks(n_labels, _block_size(d, n_labels))
    done = list(
        map_blocks(train_block, todo, n_jobs=n_jobs, stage="classifiers", total=n_labels, unit="labels")
    )
    W = csr_matrix(vstack([part.W for part in done], format="csr").T)
    return LinearWeights(W, np.concatenate([part.bias for part in done]))


def _block_size(d: int, n_labels: int) -> int:
    """Labels in a block."""
    return max(1, min(MOST_WEIGHTS // max(d, 1), -(-n_labels // N_BLOCKS)))


def block_bytes(n: int, d: int, n_labels: int) -> float:
    """Bytes that the training of a block of labels takes, beside the rows."""
    return 21.0 * n + 13.0 * d + 16.0 * d * _block_size(d, n_labels)
