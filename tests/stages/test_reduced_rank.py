"""Regression through a space of low rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from exmlds.stages import reduced_rank

pytestmark = pytest.mark.twins

L2 = 0.7


@pytest.fixture
def data(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = (rng.random((30, 12)) < 0.4).astype(np.float32) * rng.random((30, 12), dtype=np.float32)
    return X, (rng.random((30, 9)) < 0.3).astype(np.float32)


def gradients(
    X: np.ndarray, T: np.ndarray, found: Any, known: np.ndarray, scales: np.ndarray
) -> tuple[float, float]:
    """The lengths of the gradients of the objective for W and for H."""
    W, H = (factor.astype(np.float64) for factor in found)
    residual = known * (X @ W @ H.T - T)
    of_W = X.T @ residual @ H + L2 * W
    of_H = residual.T @ X @ W + L2 * scales[:, None] ** 2 * H
    return float(np.linalg.norm(of_W)), float(np.linalg.norm(of_H))


@pytest.mark.parametrize("is_tall", [True, False])
@pytest.mark.parametrize("most_exact", [100, 0])
@pytest.mark.parametrize("is_sparse", [True, False])
def test_the_objective_has_a_minimum_there(
    is_tall: bool,
    most_exact: int,
    is_sparse: bool,
    data: tuple[np.ndarray, np.ndarray],
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reduced_rank, "MOST_EXACT", most_exact)
    monkeypatch.setattr(reduced_rank, "TOLERANCE", 1e-5)
    X, T = data if is_tall else (data[0][:7], data[1][:7])
    form = csr_matrix if is_sparse else np.asarray
    found = reduced_rank.fit(form(X), form(T), 4, rng, l2=L2, n_iterations=300)
    assert max(gradients(X, T, found, np.ones(T.shape), np.ones(9))) < 5e-3


def test_penalties_of_labels_differ(data: tuple[np.ndarray, np.ndarray], rng: np.random.Generator) -> None:
    scales = rng.uniform(0.5, 3, 9).astype(np.float32)
    found = reduced_rank.fit(*data, 4, rng, l2=L2, scales=scales, n_iterations=300)
    assert max(gradients(*data, found, np.ones((30, 9)), scales)) < 5e-3


def test_cells_that_are_not_known_do_not_count(
    data: tuple[np.ndarray, np.ndarray], rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reduced_rank, "TOLERANCE", 1e-5)
    monkeypatch.setattr(reduced_rank, "ENTRIES", 20)
    X, T = data
    known = (rng.random(T.shape) < 0.6).astype(np.float32)
    found = reduced_rank.fit(
        csr_matrix(X), csr_matrix(T), 4, rng, l2=L2, known=csr_matrix(known), n_iterations=300
    )
    assert max(gradients(X, T, found, known, np.ones(9))) < 5e-3
    other = np.where(known, T, 1 - T)  # with other values there, the same is found
    again = reduced_rank.fit(csr_matrix(X), csr_matrix(other), 4, rng, l2=L2, known=csr_matrix(known))
    assert max(gradients(X, T, again, known, np.ones(9))) < 0.2


def test_gradients_solve_a_system(rng: np.random.Generator) -> None:
    A = rng.normal(size=(8, 8))
    A = A @ A.T + np.eye(8)
    B = rng.normal(size=(8, 3)).astype(np.float32)
    V = reduced_rank.conjugate_gradients(lambda V: A @ V, B, np.zeros_like(B), np.diag(A)[:, None])
    np.testing.assert_allclose(A @ V, B, atol=0.01)
