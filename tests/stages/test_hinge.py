"""Sparse classifiers of single labels: the optimum, and that it is found from few examples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, random_array

from exmlds.stages import hinge

Array = np.ndarray


def rows_and_labels(seed: int, n: int = 30, d: int = 12, n_labels: int = 4) -> tuple[csr_matrix, csr_matrix]:
    rng = np.random.default_rng(seed)
    X = random_array((n, d), density=0.3, random_state=rng, dtype=np.float32, format="csr")
    return csr_matrix(X), csr_matrix((rng.random((n, n_labels)) < 0.3).astype(np.float32))


def soft(values: Array, l1: float) -> Array:
    return np.asarray(np.sign(values) * np.maximum(np.abs(values) - l1, 0))


def solve_dual(A: Array, slack: float, most: float | None, l1: float) -> tuple[Array, float]:
    """The weights and the bias of a label, by a quasi-Newton method; A : (n, d + 1) rows times their sign."""

    def objective(alpha: Array) -> tuple[float, Array]:
        w = alpha @ A
        w[:-1] = soft(w[:-1], l1)
        return w @ w / 2 + slack * alpha @ alpha / 2 - alpha.sum(), A @ w + slack * alpha - 1

    limits = {"ftol": 1e-14, "gtol": 1e-9, "maxiter": 5_000, "maxfun": 50_000}
    found = minimize(
        objective, np.zeros(len(A)), jac=True, method="L-BFGS-B", bounds=[(0, most)] * len(A), options=limits
    )
    w = found.x @ A
    return soft(w[:-1], l1), w[-1]


@pytest.mark.parametrize("cost", [0.5, 2.0])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_solution_is_that_of_a_general_solver(loss: str, cost: float) -> None:
    X, Y = rows_and_labels(0)
    found = hinge.fit(X, Y, loss=loss, cost=cost, l1=0.1, n_epochs=5_000, tolerance=1e-4)
    slack, most = (0.0, cost) if loss == "hinge" else (0.5 / cost, None)
    for label in range(Y.shape[1]):
        signs = 2 * Y[:, [label]].toarray() - 1
        w, bias = solve_dual(signs * np.hstack([X.toarray(), np.ones((30, 1))]), slack, most, 0.1)
        np.testing.assert_allclose(found.W[:, [label]].toarray().ravel(), w, atol=2e-3)
        assert found.bias[label] == pytest.approx(bias, abs=2e-3)


def test_every_gradient_is_within_the_tolerance() -> None:
    """The squared hinge loss has one dual variable for each margin, which the primal solution gives."""
    X, Y = rows_and_labels(1, n=200, d=30, n_labels=3)
    cost, l1 = 1.0, 0.2
    W, bias = hinge.fit(X, Y, cost=cost, l1=l1, n_epochs=5_000, tolerance=1e-4)
    signs = 2 * Y.toarray() - 1
    alphas = 2 * cost * np.maximum(1 - signs * (X @ W.toarray() + bias), 0)
    np.testing.assert_allclose(soft(X.T @ (alphas * signs), l1), W.toarray(), atol=0.02)


def test_a_larger_l1_keeps_fewer_weights() -> None:
    X, Y = rows_and_labels(2, n=100, d=40)
    counts = [hinge.fit(X, Y, l1=l1).W.nnz for l1 in (0.0, 0.1, 0.5, 100.0)]
    assert counts[0] > counts[1] > counts[2] > counts[3] == 0


def test_labels_without_rows_and_rows_without_features() -> None:
    X = csr_matrix(np.array([[1, 0], [0, 0], [0, 1]], np.float32))
    Y = csr_matrix(np.array([[1, 0, 1], [0, 0, 1], [0, 0, 1]], np.float32))
    W, bias = hinge.fit(X, Y, l1=0.01, n_epochs=1_000, tolerance=1e-4)
    margins = X @ W.toarray() + bias
    assert (margins[:, 0] > 0).tolist() == [True, False, False]
    assert (margins[:, 1] < 0).all()
    assert (margins[:, 2] > 0).all()
