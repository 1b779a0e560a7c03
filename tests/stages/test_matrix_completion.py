"""Completion of similarities at low rank."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from exmlds.stages import matrix_completion

pytestmark = pytest.mark.twins


def symmetric_pattern(m: int, density: float, rng: np.random.Generator) -> np.ndarray:
    pattern = rng.random((m, m)) < density
    return pattern | pattern.T | np.eye(m, dtype=bool)


def slow_projection(G: np.ndarray, known: np.ndarray, rank: int, n_iterations: int) -> np.ndarray:
    """Singular value projection with dense matrices and a full eigendecomposition."""
    M = np.zeros_like(G)
    for _ in range(n_iterations):
        values, vectors = np.linalg.eigh(M + known * (G - M))
        values[:-rank] = 0
        M = vectors * np.maximum(values, 0) @ vectors.T
    return M


def test_a_matrix_of_low_rank_is_found_again(rng: np.random.Generator) -> None:
    A = rng.normal(size=(40, 3)).astype(np.float32)
    Z = matrix_completion.embed(csr_matrix(A @ A.T), 3, rng)
    np.testing.assert_allclose(Z @ Z.T, A @ A.T, atol=1e-3)


def test_the_steps_are_those_of_singular_value_projection(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix_completion, "ENTRIES", 50)
    monkeypatch.setattr(matrix_completion, "FIRST_PASSES", 60)  # so that the subspaces are exact
    A = rng.normal(size=(30, 30))
    G, known = A @ A.T, symmetric_pattern(30, 0.3, rng)
    similar = csr_matrix(np.where(known, G, 0).astype(np.float32))
    first = matrix_completion.embed(similar, 4, rng, n_iterations=1)
    np.testing.assert_allclose(first @ first.T, slow_projection(G, known, 4, 1), atol=0.02)
    # With warm starts the subspace of a step is not exact, but they lead to the same error.
    found = matrix_completion.embed(similar, 4, rng, n_iterations=300, tolerance=0)
    slow = slow_projection(G, known, 4, 300)
    errors = [np.linalg.norm(known * (G - M)) for M in (found @ found.T, slow)]
    assert errors[0] == pytest.approx(errors[1], rel=0.02)


def test_the_error_falls(rng: np.random.Generator) -> None:
    A = rng.normal(size=(50, 8))
    G, known = A @ A.T, symmetric_pattern(50, 0.2, rng)
    similar = csr_matrix(np.where(known, G, 0).astype(np.float32))
    errors = []
    for n_iterations in (1, 5, 25):
        Z = matrix_completion.embed(similar, 8, np.random.default_rng(0), n_iterations=n_iterations)
        errors.append(np.linalg.norm(known * (G - Z @ Z.T)))
    assert errors[0] > errors[1] > errors[2]


def test_fewer_rows_than_dimensions(rng: np.random.Generator) -> None:
    Z = matrix_completion.embed(csr_matrix(np.eye(2, dtype=np.float32)), 5, rng)
    assert Z.shape == (2, 5)
    np.testing.assert_allclose(Z @ Z.T, np.eye(2), atol=1e-5)
