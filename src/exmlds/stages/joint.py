"""Learn the map V end to end, so that rows with related labels are close: the paper's joint learning.

With z = x V and K_ij = cos(z_i, z_j) or ⟨z_i, z_j⟩, the loss of a row i and a row j of its context is

    sgns      −log σ(γ(K_ij − m)) − n₋ mean over j' of log σ(−γ(K_ij' − m))       (the paper's, m = 0)
    softmax   −log( exp γK_ij / Σ over j and j' of exp γK_ij' )                   (AnnexML's)

Training runs in mini-batches. Each row of a batch draws one positive j from its context, and the positives of
the other rows are its negatives j', except those that belong to its own context or have its labels; a
negative may count less the more labels it shares with the row. All rows of the batch are embedded once, the
gradients of the rows are summed feature by feature, and AdaGrad takes one step per batch rather than one per
pair.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, issparse

from ..kernels import DEFAULT, Engine
from ..runtime import progress
from ..runtime.parallel import Workers, blocks
from ..validation.arrays import count_columns

Array = np.ndarray

ROWS = 64  # rows in a block of the gradient


class JointState(NamedTuple):
    """State after an epoch; each epoch has a random generator of its own, seeded by (seed, epoch).

    V : (d, r) float32, the map
    squares : (d, r) float32, AdaGrad's sums of squared gradients
    """

    V: Array
    squares: Array
    seed: int
    epoch: int


class Loss(NamedTuple):
    """The loss to minimize.

    kind : "sgns" or "softmax"
    similarity : "cosine" or "inner"
    gamma, margin, n_negative : γ, m and n₋ of the formulas above; "softmax" uses γ alone
    """

    kind: str = "softmax"
    similarity: str = "cosine"
    gamma: float = 10.0
    margin: float = 0.0
    n_negative: float = 20.0


def init(d: int, rank: int, rng: np.random.Generator) -> JointState:
    """Draw V from a normal distribution, so that rows without common features start almost orthogonal."""
    V = rng.standard_normal((d, rank), dtype=np.float32) / np.float32(rank**0.5)
    return JointState(V, np.zeros((d, rank), np.float32), int(rng.integers(2**63)), 0)


def epoch(
    state: JointState,
    X: Any,
    neighbors: Array,
    group: Array,
    loss: Loss,
    *,
    learning_rate: float,
    batch_size: int,
    sets: csr_matrix | None = None,
    n_jobs: int | None = None,
    engine: Engine = DEFAULT,
) -> JointState:
    """Visit every row that has a context once, in a new random order; V changes in place.

    X : (n, d) csr or dense
    neighbors : (n, k) int64, the rows of each row's context, −1 pads at the end
    group : (n,) int64, equal for rows with equal labels
    sets : (g, L) csr, the labels of each group as unit rows, which weight negatives by 1 − cos(y_i, y_j);
        None weights all negatives by 1
    """
    rng = np.random.default_rng([state.seed, state.epoch])
    sizes = (neighbors >= 0).sum(axis=1)
    order = rng.permutation(np.flatnonzero(sizes))
    chain = _chain(neighbors)
    with progress.stage("joint learning", len(order)) as advance, Workers(n_jobs) as workers:
        batches = _Batches(X, state, learning_rate, workers, engine)
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            contexts = neighbors[rows, (rng.random(len(rows)) * sizes[rows]).astype(np.int64)]
            both = np.concatenate([rows, contexts])
            weights = negatives(rows, contexts, neighbors, group, sets, chain, engine=engine)
            Z = batches.embed(both)
            _, dZ = gradient(Z, weights, loss, workers, engine=engine)
            batches.step(both, dZ)
            advance(len(rows))
    return state._replace(epoch=state.epoch + 1)


class _Batches:
    """Embeds the rows of a batch and updates V; no sum depends on the number of threads."""

    def __init__(self, X: Any, state: JointState, rate: float, workers: Workers, engine: Engine) -> None:
        self.X, self.V, self.squares = X, state.V, state.squares
        self.rate, self.workers, self.engine = np.float32(rate), workers, engine
        if issparse(X):
            # Each thread updates a block of features; the blocks hold about the same number of values.
            X.sort_indices()
            self.arrays = (X.indptr, X.indices, X.data)
            counts, n = np.cumsum(count_columns(X)), workers.threads
            cuts = np.searchsorted(counts, np.arange(1, n) * (X.nnz / n)).tolist()
            edges = sorted({0, *cuts, X.shape[1]})
            self.features = [slice(*pair) for pair in pairwise(edges)]

    def embed(self, rows: Array) -> Array:
        """(b, r) float32, z = x V."""
        if not issparse(self.X):
            X = self.X[rows]
            return np.concatenate(self.workers.map(lambda block: X[block] @ self.V, blocks(len(X), ROWS)))
        Z = np.empty((len(rows), self.V.shape[1]), np.float32)
        self.workers.map(
            lambda own: self.engine.embed_rows(*self.arrays, rows[own], self.V, Z[own]),
            self.workers.shares(len(rows)),
        )
        return Z

    def step(self, rows: Array, dZ: Array) -> None:
        """Take one AdaGrad step."""
        if not issparse(self.X):
            _step_dense(self.V, self.squares, self.X[rows].T @ dZ, self.rate)
            return
        self.workers.map(
            lambda own: self.engine.adagrad_rows(
                *self.arrays, rows, dZ, own.start, own.stop, self.rate, self.V, self.squares
            ),
            self.features,
        )


def negatives(
    rows: Array,
    contexts: Array,
    neighbors: Array,
    group: Array,
    sets: csr_matrix | None = None,
    chain: Array | None = None,
    *,
    engine: Engine = DEFAULT,
) -> Array:
    """(b, b) float32, the weight of the j-th positive as a negative of the i-th row; the diagonal is 0.

    The weight is 0 where the j-th positive belongs to the context of the row, has its labels, or is the row.

    chain : work space of the kernel that is used again, or None
    """
    weights = np.empty((len(rows), len(rows)), np.float32)
    chain = _chain(neighbors) if chain is None else chain
    engine.negative_weights(rows, contexts, neighbors, group, chain, weights)
    if sets is not None:
        weights *= np.maximum(1 - (sets[group[rows]] @ sets[group[contexts]].T).toarray(), 0)
    return weights


def _chain(neighbors: Array) -> Array:
    return np.full((3, len(neighbors)), -1)


def gradient(
    Z: Array, weights: Array, loss: Loss, workers: Workers | None = None, *, engine: Engine = DEFAULT
) -> tuple[float, Array]:
    """Return the mean loss over the rows of a batch, and its gradient by Z, (2b, r).

    Z : (2b, r) embeddings of the rows, then of their positives
    weights : (b, b) of the negatives, 0 on the diagonal
    """
    b, U = len(weights), Z
    if loss.similarity == "cosine":
        lengths = np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), np.finfo(np.float32).tiny)
        U = Z / lengths
    dU = np.empty_like(U)
    by_contexts = np.empty((-(-b // ROWS), b, U.shape[1]), U.dtype)  # by each block of rows

    def share_gradient(own: slice) -> float:
        given = U, weights, U.dtype.type(loss.gamma), own.start, own.stop, ROWS
        return by_similarity(*given, dU[own], by_contexts[own.start // ROWS :])

    by_similarity = engine.softmax_gradient if loss.kind == "softmax" else partial(_sgns_gradient, loss)
    if workers is None:
        value = share_gradient(slice(0, b))
    else:
        value = sum(workers.map(share_gradient, workers.shares(b, ROWS)))
    np.sum(by_contexts, axis=0, out=dU[b:])
    if loss.similarity == "cosine":  # ∇_z cos(z, w) = (w/‖w‖ − cos(z, w) z/‖z‖) / ‖z‖
        dU -= np.einsum("ij,ij->i", dU, U)[:, None] * U
        dU /= lengths
    return float(value) / b, dU


def _sgns_gradient(
    loss: Loss,
    U: Array,
    weights: Array,
    gamma: float,
    start: int,
    stop: int,
    size: int,
    by_rows: Array,
    by_contexts: Array,
) -> float:
    """The loss "sgns" of some rows, and its gradient, as `softmax_gradient` of the kernels has it."""
    b, total = len(weights), 0.0
    for number, block in enumerate(blocks(stop - start, size)):
        rows = U[start:stop][block]
        own = np.arange(len(rows)), np.arange(block.start, block.stop) + start
        K, weight = rows @ U[b:].T, weights[own[1]]
        # The weights of a row's negatives sum to n₋, however many of them count.
        totals = weight.sum(axis=1, keepdims=True)
        weight = weight * np.divide(loss.n_negative, totals, out=np.zeros_like(totals), where=totals > 0)
        scores = gamma * (K - loss.margin)
        soft = np.logaddexp(0, scores)  # −log σ(−s)
        total += float(np.logaddexp(0, -scores[own]).sum() + (weight * soft).sum())
        sigmoid = np.exp(scores - soft)  # σ(s)
        dK = weight * sigmoid
        dK[own] = sigmoid[own] - 1
        dK = (gamma / b * dK).astype(U.dtype)
        by_rows[block], by_contexts[number] = dK @ U[b:], dK.T @ rows
    return total


def _step_dense(V: Array, squares: Array, gradient: Array, rate: np.float32) -> None:
    squares += gradient * gradient
    V -= rate * np.divide(gradient, np.sqrt(squares), out=np.zeros_like(gradient), where=squares > 0)
