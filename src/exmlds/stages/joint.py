"""Learning the map V directly, so that rows with related labels lie close: the paper's joint learning.

For a row i and a row j of its context, z = x V and K_ij = cos(z_i, z_j) or ⟨z_i, z_j⟩, the loss is

    sgns      −log σ(γ(K_ij − m)) − n₋ mean over j' of log σ(−γ(K_ij' − m))       (the paper's, m = 0)
    softmax   −log( exp γK_ij / Σ over j and j' of exp γK_ij' )                   (AnnexML's)

In a batch each row has one row j of its context, drawn anew, and the contexts of the others are its j',
unless they belong to its own context or have its labels; they may count less the more labels they share with
it. All rows are embedded once, the gradients of the
rows are added up feature by feature, and AdaGrad takes one step a batch: V is not touched once a pair.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, issparse

from .. import kernels
from ..runtime import progress
from ..runtime.parallel import blocks, map_blocks

Array = np.ndarray

BLOCKS = 8  # of features, each owned by a thread at a time
ROWS = 128  # embedded at a time


class JointState(NamedTuple):
    """What there is after an epoch; each epoch draws from a generator of its own.

    V : (d, r) float32;  sums : (d, r) float32, of the squares of gradients
    """

    V: Array
    squares: Array
    seed: int
    epoch: int


class Loss(NamedTuple):
    """What is climbed down.

    kind : "sgns" or "softmax";  similarity : "cosine" or "inner"
    gamma, margin, n_negative : γ, m and n₋; the last two of "sgns" alone
    """

    kind: str = "softmax"
    similarity: str = "cosine"
    gamma: float = 10.0
    margin: float = 0.0
    n_negative: float = 20.0


def init(d: int, rank: int, rng: np.random.Generator) -> JointState:
    """Random directions, so that rows with nothing in common begin at right angles."""
    V = rng.standard_normal((d, rank), dtype=np.float32) / np.float32(rank**0.5)
    return JointState(V, np.zeros((d, rank), np.float32), int(rng.integers(2**63)), 0)


def epoch(
    state: JointState,
    X: Any,
    near: Array,
    group: Array,
    loss: Loss,
    *,
    learning_rate: float,
    batch_size: int,
    sets: csr_matrix | None = None,
    n_jobs: int | None = None,
) -> JointState:
    """Every row with a context once, in an order drawn anew; V changes in place.

    X : (n, d) csr or dense;  near : (n, k) the rows of each row's context, −1 pads, present ones first
    group : (n,) rows with the same labels have the same number
    sets : (g, L) csr, the labels of each group, of length 1: negatives count 1 − cos(y_i, y_j); None: all 1
    """
    rng = np.random.default_rng([state.seed, state.epoch])
    sizes = (near >= 0).sum(axis=1)
    order = rng.permutation(np.flatnonzero(sizes))
    with progress.stage("joint learning", len(order)) as advance:
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            contexts = near[rows, (rng.random(len(rows)) * sizes[rows]).astype(np.int64)]
            batch = X[np.concatenate([rows, contexts])]
            Z = _embedded(batch, state.V, n_jobs)
            weights = negatives(rows, contexts, near, group, sets)
            _, dZ = gradient(Z, weights, loss)
            _step(state, batch, dZ, learning_rate, n_jobs)
            advance(len(rows))
    return state._replace(epoch=state.epoch + 1)


def negatives(
    rows: Array, contexts: Array, near: Array, group: Array, sets: csr_matrix | None = None
) -> Array:
    """(b, b) float32, how much the j-th context counts as a negative of the i-th row; the diagonal is 0.

    Nothing counts that is of the row's context or has its labels.
    """
    known = (near[rows][:, :, None] == contexts).any(axis=1)
    known |= group[rows][:, None] == group[contexts]
    known |= rows[:, None] == contexts
    np.fill_diagonal(known, True)
    weights = np.where(known, np.float32(0), np.float32(1))
    if sets is not None:
        weights *= np.maximum(1 - (sets[group[rows]] @ sets[group[contexts]].T).toarray(), 0)
    return weights


def gradient(Z: Array, weights: Array, loss: Loss) -> tuple[float, Array]:
    """The loss of a batch, a mean over its rows, and its gradient by Z.

    Z : (2b, r) the rows, then their contexts;  weights : (b, b) of the negatives, 0 on the diagonal
    """
    b = len(weights)
    lengths = np.ones((2 * b, 1), Z.dtype)
    if loss.similarity == "cosine":
        lengths = np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    U = Z / lengths
    K = U[:b] @ U[b:].T
    value, dK = (_softmax if loss.kind == "softmax" else _sgns)(K, weights, loss)
    dU = np.concatenate([dK @ U[b:], dK.T @ U[:b]])
    if loss.similarity == "cosine":  # ∇cos(z, w) by z is (w/‖w‖ − cos z/‖z‖)/‖z‖
        dU = (dU - (dU * U).sum(axis=1, keepdims=True) * U) / lengths
    return value, dU


def _softmax(K: Array, weights: Array, loss: Loss) -> tuple[float, Array]:
    b = len(K)
    own = np.arange(b)
    counted = weights > 0
    counted[own, own] = True
    most = np.where(counted, K, -np.inf).max(axis=1, keepdims=True)
    shares = np.exp(np.minimum(loss.gamma * (K - most), 0))
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
    totals = weights.sum(axis=1, keepdims=True)
    weights = weights * np.divide(loss.n_negative, totals, out=np.zeros_like(totals), where=totals > 0)
    scores = loss.gamma * (K - loss.margin)
    soft = np.logaddexp(0, scores)  # −log σ(−s)
    value = float((np.logaddexp(0, -scores[own, own]) + (weights * soft).sum(axis=1)).mean())
    likely = np.exp(scores - soft)  # σ(s)
    dK = weights * likely
    dK[own, own] = likely[own, own] - 1
    return value, (dK * (loss.gamma / b)).astype(K.dtype)


def _embedded(X: Any, V: Array, n_jobs: int | None) -> Array:
    Z = np.empty((X.shape[0], V.shape[1]), np.float32)

    def fill(rows: slice) -> None:
        Z[rows] = X[rows] @ V

    for _ in map_blocks(fill, blocks(len(Z), ROWS), n_jobs=n_jobs, stage="joint learning", total=len(Z)):
        pass
    return Z


def _step(state: JointState, X: Any, dZ: Array, rate: float, n_jobs: int | None) -> None:
    """Each thread owns its features, so that the result does not depend on their number."""
    if not issparse(X):
        _step_dense(state, X.T @ dZ, rate)
        return
    Xt = X.T.tocsr()
    d = len(state.V)

    def work(features: slice) -> None:
        kernels.adagrad_features(
            Xt.indptr,
            Xt.indices,
            Xt.data,
            dZ,
            features.start,
            features.stop,
            np.float32(rate),
            state.V,
            state.squares,
        )

    todo = blocks(d, max(1, -(-d // BLOCKS)))
    for _ in map_blocks(work, todo, n_jobs=n_jobs, stage="joint learning", total=d):
        pass


def _step_dense(state: JointState, gradient: Array, rate: float) -> None:
    state.squares[:] += gradient * gradient
    moved = np.divide(gradient, np.sqrt(state.squares), out=np.zeros_like(gradient), where=state.squares > 0)
    state.V[:] -= np.float32(rate) * moved
