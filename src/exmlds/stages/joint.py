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

from collections.abc import Callable
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
ROWS_OF_THREAD = 32  # rows of a batch that a thread takes at least
EDGE_ROWS = 1_000  # rows that features are counted in, about, to share them out
UPDATE_COST = 4.0  # time of a feature's AdaGrad step over that of one value of the gradient
SAMPLE_ROWS = 1_000  # rows that AdaGrad's sums are estimated from, at least
EARLY_GRADIENTS = 4.0  # mean squares of the gradients that trained a map over those at its end, about


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


def warm_start(
    V: Array,
    X: Any,
    neighbors: Array,
    group: Array,
    loss: Loss,
    n_epochs: int,
    n_sample: int,
    seed: int,
    **how: Any,
) -> JointState:
    """The state of a map that is trained further, of which V alone was kept.

    AdaGrad's sums are estimated from the gradients of a sample of rows.

    X : (n, d) about as many rows as the map was trained on;  n_epochs : passes over them that trained it
    neighbors : (n, k) the contexts of rows of which some are drawn; others have none
    n_sample : rows of the sample, if these are more than SAMPLE_ROWS;  how : as `epoch` takes it
    """
    rng = np.random.default_rng(seed)
    rows = np.flatnonzero((neighbors >= 0).any(axis=1))
    sample = rng.permutation(rows)[: max(n_sample, SAMPLE_ROWS)]
    sampled = np.full_like(neighbors, -1)
    sampled[sample] = neighbors[sample]
    state = JointState(V, np.zeros_like(V), int(rng.integers(2**63)), 0)
    state = epoch(state, X, sampled, group, loss, learning_rate=0.0, **how)
    factor = EARLY_GRADIENTS * n_epochs * X.shape[0] / max(len(sample), 1)
    return state._replace(squares=state.squares * np.float32(factor))


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
    rows = rng.permutation(np.flatnonzero(sizes))
    contexts = neighbors[rows, (rng.random(len(rows)) * sizes[rows]).astype(np.int64)]
    pairs = Pairs(rows, contexts, neighbors, group, sets)
    settings = state, X, pairs, loss, np.float32(learning_rate), batch_size, n_jobs, engine
    is_compiled = issparse(X) and loss.kind == "softmax" and sets is None
    with progress.stage("joint learning", len(rows)) as advance:
        (_train_together if is_compiled else _train_in_steps)(*settings, advance)
    return state._replace(epoch=state.epoch + 1)


class Pairs(NamedTuple):
    """Rows in the order of an epoch, the positive of each, (m,) int64, and what negatives depend on."""

    rows: Array
    contexts: Array
    neighbors: Array
    group: Array
    sets: csr_matrix | None


def _train_together(
    state: JointState,
    X: csr_matrix,
    pairs: Pairs,
    loss: Loss,
    rate: np.float32,
    batch_size: int,
    n_jobs: int | None,
    engine: Engine,
    advance: Callable[[int], None],
) -> None:
    """Train by a kernel whose threads wait for each other, without Python between the steps of a batch."""
    X.sort_indices()
    b, rank = min(batch_size, len(pairs.rows)), state.V.shape[1]
    work = [np.empty(shape, np.float32) for shape in ((2 * b, rank), (2 * b, rank), 2 * b, b * b)]
    chain, is_cosine = _chain(pairs.neighbors), loss.similarity == "cosine"
    most = min(max(b // ROWS_OF_THREAD, 1), engine.training_threads)
    with Workers(n_jobs, most) as workers:
        edges = _feature_edges(X, workers.threads, 2 * b)
        for block in blocks(len(pairs.rows), engine.batches * batch_size):
            barrier = np.zeros(24, np.int64)

            def train(thread: int, block: slice = block, barrier: Array = barrier) -> None:
                engine.train_batches(
                    thread,
                    edges,
                    barrier,
                    X.indptr,
                    X.indices,
                    X.data,
                    pairs.rows[block],
                    pairs.contexts[block],
                    batch_size,
                    pairs.neighbors,
                    pairs.group,
                    np.float32(loss.gamma),
                    is_cosine,
                    rate,
                    *work,
                    chain,
                    state.V,
                    state.squares,
                )

            workers.together(train, cancel=partial(barrier.fill, 1))
            advance(block.stop - block.start)


def _feature_edges(X: csr_matrix, n: int, batch_rows: int) -> Array:
    """(n + 1,) int64, the ends of blocks of features that take about the same time to update."""
    if n == 1:
        return np.array([0, X.shape[1]], np.int64)
    sample = X[:: max(1, X.shape[0] // EDGE_ROWS)]
    values = count_columns(sample) * (batch_rows / sample.shape[0])  # in a batch, on average
    work = np.cumsum(values + UPDATE_COST * -np.expm1(-values))
    cuts = np.searchsorted(work, np.arange(1, n) * (work.max(initial=0) / n))
    return np.concatenate([[0], cuts, [X.shape[1]]]).astype(np.int64)


def _train_in_steps(
    state: JointState,
    X: Any,
    pairs: Pairs,
    loss: Loss,
    rate: np.float32,
    batch_size: int,
    n_jobs: int | None,
    engine: Engine,
    advance: Callable[[int], None],
) -> None:
    """Train batch by batch, each in three steps: embed, compute the gradient, update V."""
    chain = _chain(pairs.neighbors)
    with Workers(n_jobs) as workers:
        batches = _Batches(X, state, rate, workers, engine)
        for batch in blocks(len(pairs.rows), batch_size):
            rows, contexts = pairs.rows[batch], pairs.contexts[batch]
            both = np.concatenate([rows, contexts])
            weights = negatives(
                rows, contexts, pairs.neighbors, pairs.group, pairs.sets, chain, engine=engine
            )
            Z = batches.embed(both)
            _, dZ = gradient(Z, weights, loss, workers, engine=engine)
            batches.step(both, dZ)
            advance(len(rows))


class _Batches:
    """Embeds the rows of a batch and updates V; no sum depends on the number of threads."""

    def __init__(self, X: Any, state: JointState, rate: np.float32, workers: Workers, engine: Engine) -> None:
        self.X, self.V, self.squares = X, state.V, state.squares
        self.rate, self.workers, self.engine = rate, workers, engine
        if issparse(X):
            X.sort_indices()
            self.arrays = (X.indptr, X.indices, X.data)
            edges = _feature_edges(X, workers.threads, X.shape[0])
            self.features = [slice(*pair) for pair in pairwise(edges.tolist())]

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
    return np.full((4, len(neighbors)), -1)


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
