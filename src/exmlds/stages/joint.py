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

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, issparse

from ..kernels import DEFAULT, Engine
from ..runtime import progress
from ..runtime.parallel import blocks, map_blocks

Array = np.ndarray

BLOCKS = 8  # blocks of features; each is updated by one thread
ROWS = 128  # rows in a block of the embedding


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
    with progress.stage("joint learning", len(order)) as advance:
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            contexts = neighbors[rows, (rng.random(len(rows)) * sizes[rows]).astype(np.int64)]
            batch = X[np.concatenate([rows, contexts])]
            Z = _embed(batch, state.V, n_jobs)
            weights = negatives(rows, contexts, neighbors, group, sets)
            _, dZ = gradient(Z, weights, loss)
            _step(state, batch, dZ, learning_rate, n_jobs, engine)
            advance(len(rows))
    return state._replace(epoch=state.epoch + 1)


def negatives(
    rows: Array, contexts: Array, neighbors: Array, group: Array, sets: csr_matrix | None = None
) -> Array:
    """(b, b) float32, the weight of the j-th positive as a negative of the i-th row; the diagonal is 0.

    The weight is 0 where the j-th positive belongs to the context of the row, has its labels, or is the row.
    """
    is_positive = (neighbors[rows][:, :, None] == contexts).any(axis=1)
    is_positive |= group[rows][:, None] == group[contexts]
    is_positive |= rows[:, None] == contexts
    np.fill_diagonal(is_positive, True)
    weights = np.where(is_positive, np.float32(0), np.float32(1))
    if sets is not None:
        weights *= np.maximum(1 - (sets[group[rows]] @ sets[group[contexts]].T).toarray(), 0)
    return weights


def gradient(Z: Array, weights: Array, loss: Loss) -> tuple[float, Array]:
    """Return the mean loss over the rows of a batch, and its gradient by Z, (2b, r).

    Z : (2b, r) embeddings of the rows, then of their positives
    weights : (b, b) of the negatives, 0 on the diagonal
    """
    b = len(weights)
    lengths = np.ones((2 * b, 1), Z.dtype)
    if loss.similarity == "cosine":
        lengths = np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    U = Z / lengths
    K = U[:b] @ U[b:].T
    value, dK = (_softmax if loss.kind == "softmax" else _sgns)(K, weights, loss)
    dU = np.concatenate([dK @ U[b:], dK.T @ U[:b]])
    if loss.similarity == "cosine":  # ∇_z cos(z, w) = (w/‖w‖ − cos(z, w) z/‖z‖) / ‖z‖
        dU = (dU - (dU * U).sum(axis=1, keepdims=True) * U) / lengths
    return value, dU


def _softmax(K: Array, weights: Array, loss: Loss) -> tuple[float, Array]:
    b = len(K)
    own = np.arange(b)
    is_counted = weights > 0
    is_counted[own, own] = True
    largest = np.where(is_counted, K, -np.inf).max(axis=1, keepdims=True)
    # The largest exponent is 0; ignored pairs could exceed it, so they are clipped before their weight of 0.
    shares = np.exp(np.minimum(loss.gamma * (K - largest), 0))
    positive = shares[own, own]
    shares *= weights
    shares[own, own] = positive
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), np.finfo(K.dtype).tiny)
    value = -float(np.log(np.maximum(shares[own, own], np.finfo(K.dtype).tiny)).mean())
    shares[own, own] -= 1
    return value, shares * np.asarray(loss.gamma / b, K.dtype)


def _sgns(K: Array, weights: Array, loss: Loss) -> tuple[float, Array]:
    b = len(K)
    own = np.arange(b)
    # The weights of a row's negatives sum to n₋, however many of them count.
    totals = weights.sum(axis=1, keepdims=True)
    weights = weights * np.divide(loss.n_negative, totals, out=np.zeros_like(totals), where=totals > 0)
    scores = loss.gamma * (K - loss.margin)
    soft = np.logaddexp(0, scores)  # −log σ(−s)
    value = float((np.logaddexp(0, -scores[own, own]) + (weights * soft).sum(axis=1)).mean())
    sigmoid = np.exp(scores - soft)  # σ(s)
    dK = weights * sigmoid
    dK[own, own] = sigmoid[own, own] - 1
    return value, (dK * (loss.gamma / b)).astype(K.dtype)


def _embed(X: Any, V: Array, n_jobs: int | None) -> Array:
    Z = np.empty((X.shape[0], V.shape[1]), np.float32)

    def fill(rows: slice) -> None:
        Z[rows] = X[rows] @ V

    for _ in map_blocks(fill, blocks(len(Z), ROWS), n_jobs=n_jobs, stage="joint learning", total=len(Z)):
        pass
    return Z


def _step(state: JointState, X: Any, dZ: Array, rate: float, n_jobs: int | None, engine: Engine) -> None:
    """Take one AdaGrad step; one thread owns each block of features, so n_jobs does not change the sums."""
    if not issparse(X):
        _step_dense(state, X.T @ dZ, rate)
        return
    Xt, d = X.T.tocsr(), len(state.V)
    arrays = (Xt.indptr, Xt.indices, Xt.data, dZ)

    def work(features: slice) -> None:
        start, stop = features.start, features.stop
        engine.adagrad_features(*arrays, start, stop, np.float32(rate), state.V, state.squares)

    todo = blocks(d, max(1, -(-d // BLOCKS)))
    for _ in map_blocks(work, todo, n_jobs=n_jobs, stage="joint learning", total=d, unit="features"):
        pass


def _step_dense(state: JointState, gradient: Array, rate: float) -> None:
    state.squares[:] += gradient * gradient
    step = np.divide(gradient, np.sqrt(state.squares), out=np.zeros_like(gradient), where=state.squares > 0)
    state.V[:] -= np.float32(rate) * step
