"""Ridge, its dual, conjugate gradients and ADMM against dense solutions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, random_array

from exmlds.stages import regress


def problem(n: int, d: int, rng: np.random.Generator) -> tuple[csr_matrix, np.ndarray]:
    X = csr_matrix(random_array((n, d), density=0.2, random_state=rng, dtype=np.float32))
    return X, rng.normal(size=(n, 3)).astype(np.float32)


@pytest.mark.parametrize(("n", "d"), [(80, 30), (30, 80), (40, 40)], ids=["primal", "dual", "square"])
@pytest.mark.parametrize("way", ["exact", "gradients"])
@pytest.mark.parametrize("dense", [False, True])
def test_ridge(
    n: int, d: int, way: str, dense: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regress, "is_exact", lambda *_: way == "exact")
    monkeypatch.setattr(regress, "TOLERANCE", 1e-4)
    X, Z = problem(n, d, rng)
    full = X.toarray().astype(float)
    for l2 in (0.1, 10.0):
        expected = np.linalg.solve(full.T @ full + l2 * np.eye(d), full.T @ Z)
        V = regress.fit(X.toarray() if dense else X, Z, l2=l2)
        np.testing.assert_allclose(V, expected, atol=2e-3)


@pytest.mark.twins
def test_without_l2_repeated_features_do_no_harm(rng: np.random.Generator) -> None:
    X, Z = problem(50, 5, rng)
    twice = csr_matrix(np.hstack([X.toarray(), X.toarray()]))
    V = regress.fit(twice, Z, l2=0)
    assert np.isfinite(V).all()
    np.testing.assert_allclose(twice @ V, X @ np.linalg.lstsq(X.toarray(), Z)[0], atol=1e-2)


@pytest.mark.twins
def test_admm_minimizes_the_objective(rng: np.random.Generator) -> None:
    X, Z = problem(25, 6, rng)
    full, Z = X.toarray().astype(float), Z[:, :2]
    l1, l2 = 0.5, 0.3

    def objective(flat: np.ndarray) -> float:
        V = flat.reshape(6, 2)
        return float(((Z - full @ V) ** 2).sum() + l2 * (V**2).sum() + l1 * np.abs(full @ V).sum())

    V = regress.fit(X, Z, l2=l2, l1=l1)
    options = {"xtol": 1e-8, "ftol": 1e-12, "maxiter": 20_000}
    starts = (V.ravel(), np.zeros(12))
    best = min(minimize(objective, start, method="Powell", options=options).fun for start in starts)
    assert objective(V.ravel()) <= best * 1.002


@pytest.mark.twins
def test_l1_shrinks_the_embedding_and_none_is_ridge(rng: np.random.Generator) -> None:
    X, Z = problem(60, 20, rng)
    sizes = [np.abs(X @ regress.fit(X, Z, l2=1.0, l1=l1)).sum() for l1 in (0.0, 0.5, 2.0)]
    assert sizes[0] > sizes[1] > sizes[2]
    np.testing.assert_allclose(
        regress.admm(regress.prepare(X, 3), Z, l2=1.0, l1=0.0, tolerance=1e-6),
        regress.fit(X, Z, l2=1.0),
        atol=2e-3,
    )


def test_admm_stops_at_the_same_accuracy_whatever_the_unit_of_the_embedding(rng: np.random.Generator) -> None:
    X, Z = problem(60, 20, rng)
    exact, small = (regress.fit(X, unit * Z, l2=1.0, l1=unit * 0.5) / unit for unit in (1.0, 1e-4))
    np.testing.assert_allclose(small, exact, atol=1e-3 * np.abs(exact).max())


@pytest.mark.twins
def test_a_path_is_its_fits(rng: np.random.Generator) -> None:
    X, Z = problem(60, 20, rng)
    for l2, V in zip((0.1, 1.0), regress.path(X, Z, (0.1, 1.0))):
        np.testing.assert_array_equal(V, regress.fit(X, Z, l2=l2))


def test_factorizing_is_for_small_systems() -> None:
    assert regress.is_exact(15_539, 5_000, 3_700_000, 300)  # EURLex-4K
    assert not regress.is_exact(10_000, 50_000, 240_000, 300)  # very sparse: conjugate gradients are cheap
    assert not regress.is_exact(10**6, 10**5, 10**9, 300)
