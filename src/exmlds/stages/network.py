"""A network of two layers that maps features to targets: z = max(0, x A + a) B + b.

    squared   ½ ‖z − t‖²
    cosine    1 − cos(z, t)

Training runs in mini-batches with AdaGrad. Its steps are in units of the deviation that would give hidden
units a variance of 1, so that a learning rate means the same for features of any scale. A part of the hidden
units may be left out of each row in training (dropout). No sum depends on the number of threads.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from ..kernels import DEFAULT, Engine
from ..runtime import progress
from ..runtime.parallel import Workers, blocks
from ..validation import stored
from ..validation.arrays import Matrix, count_columns, mean_square

Array = np.ndarray

ROWS = 256  # dense rows in a block of a product
LOSSES = ("squared", "cosine")
# Deviation of the first weights over the one that keeps the variance: what rare features add is noise, which
# at 1 cost 4 points of P@1 on validation rows of Bibtex.
START = 0.01
LEAST_LENGTH = 1e-6  # of outputs and targets whose cosine is taken


class Network(NamedTuple):
    """A (d, h), a (h,), B (h, r) and b (r,), float32."""

    input_weights: Array
    input_bias: Array
    output_weights: Array
    output_bias: Array


class NetworkState(NamedTuple):
    """State after an epoch; each epoch has a random generator of its own, seeded by (seed, epoch).

    squares : AdaGrad's sums of squared gradients, for each weight
    units : what the steps of A, a, B and b are in units of
    """

    network: Network
    squares: Network
    units: tuple[float, float, float, float]
    seed: int
    epoch: int


class Gradient(NamedTuple):
    """Gradient of a mean loss: by the inputs of hidden units, (b, h), and by B and b.

    That by A is Xᵀ `hidden`, and that by a the sum of its rows.
    """

    hidden: Array
    output_weights: Array
    output_bias: Array


def init(X: Matrix, n_hidden: int, rank: int, rng: np.random.Generator) -> NetworkState:
    """Draw small weights for the first layer, and weights with outputs of a length of about 1 for the second.

    X : (n, d) rows like those to train on
    """
    # Rows as long as those of X and weights with these deviations give hidden units a variance of 1.
    units = mean_square(X) ** -0.5, 1.0, (2 / (n_hidden * rank)) ** 0.5, rank**-0.5
    A = rng.standard_normal((X.shape[1], n_hidden), dtype=np.float32) * np.float32(START * units[0])
    B = rng.standard_normal((n_hidden, rank), dtype=np.float32) * np.float32(units[2])
    network = Network(A, np.zeros(n_hidden, np.float32), B, np.zeros(rank, np.float32))
    squares = Network(*(np.zeros_like(weights) for weights in network))
    return NetworkState(network, squares, units, int(rng.integers(2**63)), 0)


def epoch(
    state: NetworkState,
    X: Matrix,
    T: Array,
    *,
    loss: str,
    learning_rate: float,
    batch_size: int,
    dropout: float = 0.0,
    n_jobs: int | None = None,
    engine: Engine = DEFAULT,
) -> NetworkState:
    """Visit every row once, in a new random order; the weights change in place.

    X : (n, d) csr or dense float32;  T : (n, r) float32, the targets
    dropout : share of the hidden units that are left out of a row
    """
    rng = np.random.default_rng([state.seed, state.epoch])
    order = rng.permutation(X.shape[0])
    network, squares = state.network, state.squares
    rates = [np.float32(learning_rate * unit) for unit in state.units]
    with Workers(n_jobs) as workers, progress.stage("network", len(order)) as advance:
        layer = _InputLayer(X, workers, engine)
        for batch in blocks(len(order), batch_size):
            rows = order[batch]
            inputs = layer.products(rows, network.input_weights) + network.input_bias
            kept = None
            if dropout:
                is_kept = rng.random(inputs.shape, dtype=np.float32) >= dropout
                kept = is_kept * np.float32(1 / (1 - dropout))
            _, by = gradient(network, inputs, T[rows], loss, kept)
            layer.step(rows, by.hidden, rates[0], network.input_weights, squares.input_weights)
            steps = by.hidden.sum(axis=0), by.output_weights, by.output_bias
            for weights, sums, step, rate in zip(network[1:], squares[1:], steps, rates[1:]):
                _step(weights, sums, step, rate)
            advance(len(rows))
    return state._replace(epoch=state.epoch + 1)


def gradient(
    network: Network, inputs: Array, T: Array, loss: str, kept: Array | None = None
) -> tuple[float, Gradient]:
    """The mean loss of a batch, and its gradient.

    inputs : (b, h) x A + a of its rows;  T : (b, r) targets
    kept : (b, h) factors of the hidden units, or None
    """
    hidden = np.maximum(inputs, 0)
    if kept is not None:
        hidden *= kept
    Z = hidden @ network.output_weights + network.output_bias
    value, dZ = _loss(Z, T, loss)
    by_hidden = dZ @ network.output_weights.T
    by_hidden *= inputs > 0
    if kept is not None:
        by_hidden *= kept
    return value, Gradient(by_hidden, hidden.T @ dZ, dZ.sum(axis=0))


def _loss(Z: Array, T: Array, kind: str) -> tuple[float, Array]:
    """The mean loss of a batch, and its gradient by Z, (b, r)."""
    b = len(Z)
    if kind == "squared":
        error = Z - T
        return float(np.square(error).sum()) / (2 * b), error / b
    lengths, goals = (
        np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), LEAST_LENGTH) for rows in (Z, T)
    )
    U, V = Z / lengths, T / goals
    cosines = np.einsum("ij,ij->i", U, V)[:, None]
    return float((1 - cosines).sum()) / b, (cosines * U - V) / (lengths * b)


def embed(network: Network, X: Matrix, *, n_jobs: int | None = None, engine: Engine = DEFAULT) -> Array:
    """(n, r) float32, z of each row of X, (n, d) csr or dense."""
    with Workers(n_jobs) as workers:
        layer = _InputLayer(X, workers, engine)
        products = [
            layer.products(np.arange(own.start, own.stop), network.input_weights)
            for own in blocks(X.shape[0], ROWS)
        ]
    parts = [
        engine.products(np.maximum(own + network.input_bias, 0), network.output_weights) + network.output_bias
        for own in products
    ]
    return np.concatenate([np.zeros((0, len(network.output_bias)), np.float32), *parts])


class _InputLayer:
    """Products of rows and the first weights, and steps of these weights."""

    def __init__(self, X: Any, workers: Workers, engine: Engine) -> None:
        self.X, self.workers, self.engine = X, workers, engine
        if issparse(X):
            X.sort_indices()
            self.arrays = (X.indptr, X.indices, X.data)
            values = np.cumsum(count_columns(X))
            shares = np.arange(1, workers.threads) * (values[-1] / workers.threads)
            edges = [0, *np.searchsorted(values, shares).tolist(), X.shape[1]]
            self.features = [slice(*pair) for pair in pairwise(edges)]

    def products(self, rows: Array, A: Array) -> Array:
        """(b, h) x A of some rows."""
        if not issparse(self.X):
            return self.engine.products(self.X[rows], A)
        found = np.empty((len(rows), A.shape[1]), np.float32)
        self.workers.map(
            lambda own: self.engine.embed_rows(*self.arrays, rows[own], A, found[own]),
            self.workers.shares(len(rows)),
        )
        return found

    def step(self, rows: Array, by_hidden: Array, rate: np.float32, A: Array, squares: Array) -> None:
        """Take an AdaGrad step on A."""
        if not issparse(self.X):
            _step(A, squares, self.X[rows].T @ by_hidden, rate)
            return
        self.workers.map(
            lambda own: self.engine.adagrad_rows(
                *self.arrays, rows, by_hidden, own.start, own.stop, rate, A, squares
            ),
            self.features,
        )


def _step(weights: Array, squares: Array, by: Array, rate: np.float32) -> None:
    squares += by * by
    weights -= rate * np.divide(by, np.sqrt(squares), out=np.zeros_like(by), where=squares > 0)


def check(network: Any, d: int) -> int:
    """Check a network for d features that comes from a file; returns r."""
    stored.record(network, "the network", Network)
    weights = stored.array(network.output_weights, "the weights of the network", "float32", None, None)
    n_hidden, rank = weights.shape
    stored.array(network.input_weights, "the weights of the network", "float32", d, n_hidden)
    stored.array(network.input_bias, "the biases of the network", "float32", n_hidden)
    stored.array(network.output_bias, "the biases of the network", "float32", rank)
    return int(rank)
