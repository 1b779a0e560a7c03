"""Truncated factorization against a dense SVD."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import aslinearoperator

from exmlds.stages import factorize


def symmetric(m: int, rng: np.random.Generator) -> np.ndarray:
    """Eigenvalues of both signs that fall by a power law."""
    Q, _ = np.linalg.qr(rng.normal(size=(m, m)))
    values = 100 / np.arange(1, m + 1) ** 1.5 * np.where(np.arange(m) % 3 == 1, -1, 1)
    return (Q * values) @ Q.T


@pytest.mark.parametrize("form", [np.asarray, csr_matrix, aslinearoperator])
@pytest.mark.parametrize("exact", [True, False])
def test_dense_svd(
    form: object, exact: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factorize, "EXACT", 1000 if exact else 0)
    A = symmetric(120, rng)
    left, singular, _ = np.linalg.svd(A)
    U, s = factorize.embed(form(A.astype(np.float32)), 8, rng)  # type: ignore[operator]
    np.testing.assert_allclose(s, singular[:8], rtol=1e-3)
    np.testing.assert_allclose(np.abs((U * left[:, :8]).sum(axis=0)), 1, atol=2e-2)  # but for the sign
    np.testing.assert_allclose(U.T @ U, np.eye(8), atol=1e-4)


def test_below_the_rank_the_rest_is_zero(rng: np.random.Generator) -> None:
    A = symmetric(5, rng)
    U, s = factorize.embed(A, 9, rng)
    assert U.shape == (5, 9)
    assert (s[5:] == 0).all()
    assert (U[:, 5:] == 0).all()
    np.testing.assert_allclose(s[:5], np.linalg.svd(A)[1], rtol=1e-4)
