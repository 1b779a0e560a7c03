"""The network of two layers: its gradient, its steps, and what it learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from exmlds.stages import network
from exmlds.stages.network import Network, NetworkState

OPTIONS: dict[str, Any] = {"loss": "squared", "learning_rate": 0.1, "batch_size": 16}


def drawn(rng: np.random.Generator, d: int = 5, h: int = 7, r: int = 3) -> Network:
    return Network(*(rng.normal(size=shape) for shape in ((d, h), h, (h, r), r)))


@pytest.mark.parametrize("loss", network.LOSSES)
@pytest.mark.parametrize("has_dropout", [False, True])
def test_the_gradient_is_that_of_finite_differences(
    loss: str, has_dropout: bool, rng: np.random.Generator
) -> None:
    net, X, T = drawn(rng), rng.normal(size=(4, 5)), rng.normal(size=(4, 3))
    kept = 2.0 * (rng.random((4, 7)) < 0.5) if has_dropout else None

    def value(weights: Network) -> float:
        return network.gradient(weights, X @ weights.input_weights + weights.input_bias, T, loss, kept)[0]

    _, by = network.gradient(net, X @ net.input_weights + net.input_bias, T, loss, kept)
    found = Network(X.T @ by.hidden, by.hidden.sum(axis=0), by.output_weights, by.output_bias)
    for part, expected in zip(net, found):
        slopes = np.empty_like(part)
        for cell in np.ndindex(part.shape):
            before, values = part[cell], []
            for step in (1e-6, -1e-6):
                part[cell] = before + step
                values.append(value(net))
            part[cell] = before
            slopes[cell] = (values[0] - values[1]) / 2e-6
        np.testing.assert_allclose(expected, slopes, atol=1e-7)


def test_losses_by_hand() -> None:
    net = Network(np.eye(2), np.zeros(2), np.eye(2), np.zeros(2))
    rows, targets = np.array([[3.0, 4.0], [-1.0, 0.0]]), np.array([[3.0, 0.0], [0.0, 2.0]])
    assert network.gradient(net, rows, targets, "squared")[0] == (16 / 2 + 4 / 2) / 2
    assert network.gradient(net, rows, targets, "cosine")[0] == pytest.approx((1 - 3 / 5 + 1) / 2)


@pytest.mark.twins
def test_a_step_by_hand() -> None:
    """AdaGrad's first step has the length of the rate for every weight whose gradient is not 0."""
    A, B = np.array([[1.0, -1], [0, 0]], np.float32), np.array([[1.0], [1.0]], np.float32)
    start = Network(A, np.zeros(2, np.float32), B, np.zeros(1, np.float32))
    for X in (np.array([[2.0, 0]], np.float32), csr_matrix(np.array([[2.0, 0]], np.float32))):
        net = Network(*(part.copy() for part in start))
        squares = Network(*(np.zeros_like(part) for part in start))
        state = NetworkState(net, squares, (1.0, 0.5, 1.0, 1.0), 0, 0)
        # The second hidden unit is −2, so it is off. The output is 2 and the target 1: all gradients are
        # positive.
        state = network.epoch(state, X, np.ones((1, 1), np.float32), **OPTIONS)
        np.testing.assert_allclose(state.network.input_weights, [[0.9, -1], [0, 0]], rtol=1e-6)
        np.testing.assert_allclose(state.network.input_bias, [-0.05, 0], rtol=1e-6)
        np.testing.assert_allclose(state.network.output_weights, [[0.9], [1]], rtol=1e-6)
        np.testing.assert_allclose(state.network.output_bias, [-0.1], rtol=1e-6)
        assert squares.input_weights[0, 0] == 4
        assert state.epoch == 1


def trained(X: Any, T: np.ndarray, n_epochs: int = 30, seed: int = 0, **options: Any) -> NetworkState:
    state = network.init(X, 64, T.shape[1], np.random.default_rng(seed))
    for _ in range(n_epochs):
        state = network.epoch(state, X, T, **{**OPTIONS, **options})
    return state


@pytest.fixture
def rows(rng: np.random.Generator) -> np.ndarray:
    return (rng.random((200, 12)) < 0.3).astype(np.float32)


@pytest.mark.parametrize("loss", network.LOSSES)
def test_it_learns_what_is_not_linear(loss: str, rows: np.ndarray) -> None:
    odd = rows[:, 0] != rows[:, 1]  # exclusive or
    T = np.stack([odd, ~odd], axis=1).astype(np.float32)
    Z = network.embed(trained(rows, T, 60, loss=loss).network, rows)
    assert ((Z[:, 0] > Z[:, 1]) == odd).mean() > 0.95


@pytest.mark.twins
def test_sparse_and_dense_rows_and_threads_give_the_same(rows: np.ndarray) -> None:
    T, sparse = rows[:, :3] * 2 - 1, csr_matrix(rows)
    dense = trained(rows, T, 3)
    for X, n_jobs in ((sparse, 1), (sparse, 3), (rows, 3)):
        found = trained(X, T, 3, n_jobs=n_jobs)
        for one, other in zip(found.network, dense.network):
            np.testing.assert_allclose(one, other, atol=1e-4)
        Z = network.embed(found.network, X, n_jobs=n_jobs)
        np.testing.assert_allclose(Z, network.embed(dense.network, rows), atol=1e-4)
    one, other = (trained(sparse, T, 3, n_jobs=n_jobs).network for n_jobs in (1, 3))
    np.testing.assert_array_equal(one.input_weights, other.input_weights)


def test_the_scale_of_features_does_not_matter(rows: np.ndarray) -> None:
    one, scaled = (trained(scale * rows, rows[:, :3], 3) for scale in (np.float32(1), np.float32(1 / 64)))
    np.testing.assert_allclose(scaled.network.input_weights, 64 * one.network.input_weights, rtol=1e-3)


def test_training_resumes_where_it_was_left(rows: np.ndarray) -> None:
    T, options = rows[:, :3], {**OPTIONS, "dropout": 0.5}
    state = trained(rows, T, 2, dropout=0.5)
    copied = state._replace(
        network=Network(*(part.copy() for part in state.network)),
        squares=Network(*(part.copy() for part in state.squares)),
    )
    ends = [network.epoch(part, rows, T, **options) for part in (state, copied)]
    np.testing.assert_array_equal(ends[0].network.input_weights, ends[1].network.input_weights)
    other = trained(rows, T, 2, seed=1, dropout=0.5)
    assert not np.allclose(other.network.input_weights, state.network.input_weights)


def test_rows_without_features_and_no_rows() -> None:
    X, T = np.zeros((4, 3), np.float32), np.ones((4, 2), np.float32)
    state = trained(X, T, 2, loss="cosine")
    assert np.isfinite(network.embed(state.network, csr_matrix((2, 3), dtype=np.float32))).all()
    assert network.embed(state.network, X[:0]).shape == (0, 2)
