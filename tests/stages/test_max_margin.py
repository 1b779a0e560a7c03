"""The max-margin loss: the optimum, its bounds, and its sparsity."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, random_array

from exmlds.stages import max_margin

Array = np.ndarray


def rows_and_labels(seed: int, n: int, d: int, n_labels: int) -> tuple[csr_matrix, csr_matrix]:
    rng = np.random.default_rng(seed)
    X = random_array((n, d), density=0.4, random_state=rng, dtype=np.float32, format="csr")
    return csr_matrix(X), csr_matrix((rng.random((n, n_labels)) < 0.4).astype(np.float32))


def trained(
    X: csr_matrix, Y: csr_matrix, n_epochs: int, cost: float = 1.0, l1: float = 0.1
) -> tuple[Array, max_margin.ActiveSets]:
    rng = np.random.default_rng(0)
    order = np.concatenate([rng.permutation(X.shape[0]) for _ in range(n_epochs)]).astype(np.int32)
    sets = max_margin.train(X, max_margin.start(Y), order, Y.shape[1], 1, cost=cost, l1=l1)
    return max_margin.weights(X, sets, Y.shape[1], l1=l1).toarray(), sets


def soft(values: Array, l1: float) -> Array:
    return np.asarray(np.sign(values) * np.maximum(np.abs(values) - l1, 0))


def primal(X: csr_matrix, Y: csr_matrix, W: Array, cost: float, l1: float) -> float:
    loss = 0.0
    for z, is_true in zip(X @ W, Y.toarray() > 0):
        if is_true.any() and not is_true.all():
            loss += max(0, 1 + z[~is_true].max() - z[is_true].min())
    return float(l1 * np.abs(W).sum() + np.square(W).sum() / 2 + cost * loss)


def solve_dual(X: csr_matrix, Y: csr_matrix, cost: float, l1: float) -> Array:
    """W by sequential quadratic programming over all dual variables."""
    (n, n_labels), dense, signs = Y.shape, X.toarray().astype(float), 2 * Y.toarray() - 1

    def objective(flat: Array) -> tuple[float, Array]:
        A = flat.reshape(n, n_labels)
        W = soft(dense.T @ (A * signs), l1)
        return np.square(W).sum() / 2 - A[signs < 0].sum(), ((dense @ W) * signs - (signs < 0)).ravel()

    def sums(flat: Array, sign: int) -> Array:
        return np.asarray((flat.reshape(n, n_labels) * (signs == sign)).sum(axis=1))

    found = minimize(
        objective,
        np.zeros(n * n_labels),
        jac=True,
        method="SLSQP",
        bounds=[(0, cost)] * (n * n_labels),
        constraints=[
            {"type": "eq", "fun": lambda flat: sums(flat, 1) - sums(flat, -1)},
            {"type": "ineq", "fun": lambda flat: cost - sums(flat, 1)},
        ],
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert found.success
    return soft(dense.T @ (found.x.reshape(n, n_labels) * signs), l1)


@pytest.mark.parametrize("cost", [0.3, 1.0])
def test_the_solution_is_that_of_a_general_solver(cost: float) -> None:
    X, Y = rows_and_labels(0, n=8, d=6, n_labels=4)
    W, _ = trained(X, Y, 3_000, cost=cost, l1=0.05)
    np.testing.assert_allclose(W, solve_dual(X, Y, cost, 0.05), atol=5e-3)


def test_the_dual_bounds_the_primal_and_comes_near_it() -> None:
    X, Y = rows_and_labels(1, n=40, d=15, n_labels=8)
    gaps = []
    for n_epochs in (1, 10, 300):
        W, sets = trained(X, Y, n_epochs)
        ends = sets.starts[:-1] + sets.counts
        alphas = np.concatenate([sets.alphas[slice(*own)] for own in zip(sets.starts, ends)])
        bound = -np.square(W).sum() / 2 - alphas[alphas < 0].sum()
        gaps.append(primal(X, Y, W, 1.0, 0.1) - bound)
    assert gaps[0] > gaps[1] > gaps[2] >= 0
    assert gaps[2] < 0.05 * primal(X, Y, W, 1.0, 0.1)


def test_dual_variables_keep_their_constraints() -> None:
    X, Y = rows_and_labels(2, n=40, d=15, n_labels=8)
    _, sets = trained(X, Y, 5, cost=0.7)
    for row, (begin, n_positive, count) in enumerate(zip(sets.starts, sets.n_positive, sets.counts)):
        labels, alphas = (part[begin : begin + count] for part in (sets.labels, sets.alphas))
        assert labels[:n_positive].tolist() == Y[row].indices.tolist()
        assert len(set(labels.tolist())) == count <= 8
        assert (alphas[:n_positive] >= 0).all()
        assert (alphas[n_positive:] < 0).all()
        assert alphas.sum() == pytest.approx(0, abs=1e-5)
        assert alphas[:n_positive].sum() <= 0.7 + 1e-5


def test_a_larger_l1_keeps_fewer_weights() -> None:
    X, Y = rows_and_labels(3, n=60, d=20, n_labels=10)
    counts = [np.count_nonzero(trained(X, Y, 20, l1=l1)[0]) for l1 in (0.0, 0.1, 0.5, 100.0)]
    assert counts[0] > counts[1] > counts[2] > counts[3] == 0


def test_rows_with_no_label_or_all_labels_or_no_feature_change_nothing() -> None:
    X = csr_matrix(np.array([[1, 0], [0, 1], [1, 1], [0, 0], [1, 0]], np.float32))
    Y = csr_matrix(np.array([[1, 0], [0, 1], [0, 0], [1, 0], [1, 1]], np.float32))
    W, sets = trained(X, Y, 50, l1=0.01)
    assert not sets.alphas[sets.starts[2] :].any()
    assert sets.counts.tolist()[2:] == [0, 1, 2]
    assert W[0, 0] > W[0, 1]
    assert W[1, 1] > W[1, 0]


def test_tables_give_what_the_dense_matrix_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = rows_and_labels(4, n=60, d=20, n_labels=50)
    dense, _ = trained(X, Y, 10)
    monkeypatch.setattr(max_margin, "MOST_DENSE", 0)
    tables, _ = trained(X, Y, 10)
    np.testing.assert_array_equal(dense, tables)
