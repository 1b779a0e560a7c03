"""Transforms of the features."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix, issparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.kernel_approximation import Nystroem
from sklearn.preprocessing import StandardScaler, normalize

from exmlds.stages import features


def transformed(kind: str, X: object, rng: np.random.Generator) -> object:
    return features.apply(features.fit(kind, X, rng), X)


def test_none_l2_root_and_log(rng: np.random.Generator) -> None:
    dense = (rng.random((20, 30)) * (rng.random((20, 30)) < 0.1)).astype(np.float32)
    scaled = {"l2": dense, "sqrt-l2": np.sqrt(dense), "log1p-l2": np.log1p(dense)}
    for X in (dense, csr_matrix(dense)):
        assert transformed("none", X, rng) is X
        for kind, expected in scaled.items():
            found = transformed(kind, X, rng)
            assert issparse(found) == issparse(X)
            found = found.toarray() if issparse(found) else found
            np.testing.assert_allclose(found, normalize(expected), atol=1e-6)


def test_idf_is_that_of_scikit_learn(rng: np.random.Generator) -> None:
    """On rows of 0 and 1, whose logarithm changes nothing but the length."""
    dense = (rng.random((40, 30)) < 0.1).astype(np.float32)
    expected = TfidfTransformer().fit_transform(csr_matrix(dense)).toarray()
    for X in (dense, csr_matrix(dense)):
        found = transformed("idf-l2", X, rng)
        np.testing.assert_allclose(found.toarray() if issparse(found) else found, expected, atol=1e-6)
    assert features.fits("idf-l2", csr_matrix(dense))
    assert not features.fits("idf-l2", csr_matrix(dense) * 0.5)
    assert not features.fits("idf-l2", np.ones((3, 4)))


@pytest.mark.parametrize("scale", [1e-23, 1e20])
def test_length_1_at_any_scale(scale: float, rng: np.random.Generator) -> None:
    dense = (rng.random((9, 5)) * scale).astype(np.float32)
    for X in (dense, csr_matrix(dense)):
        found = transformed("l2", X, rng)
        found = found.toarray() if issparse(found) else found
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)


def test_standardize_dense_and_sparse(rng: np.random.Generator) -> None:
    X = rng.normal(3, 2, (50, 4)).astype(np.float32)
    X[:, 3] = 7  # a constant says nothing
    expected = StandardScaler().fit_transform(X)
    expected[:, 3] = 0
    np.testing.assert_allclose(transformed("standardize", X, rng), expected, atol=1e-4)
    sparse = csr_matrix((rng.random((50, 40)) < 0.05).astype(np.float32))
    found = transformed("standardize", sparse, rng)
    assert issparse(found)
    assert found.nnz == sparse.nnz


def test_nystroem_is_the_kernel(rng: np.random.Generator) -> None:
    X = rng.normal(size=(60, 5)).astype(np.float32)
    fitted = features.fit("nystroem", X, rng)
    mapped = features.apply(fitted, X)
    standard = StandardScaler().fit_transform(X)
    kernel = Nystroem(gamma=fitted.gamma, n_components=60, random_state=0).fit_transform(standard)
    np.testing.assert_allclose(mapped @ mapped.T, kernel @ kernel.T, atol=1e-2)


def test_landmarks_may_repeat(rng: np.random.Generator) -> None:
    X = np.repeat(rng.normal(size=(20, 5)), 3, axis=0).astype(np.float32)
    mapped = transformed("nystroem", X, rng)
    np.testing.assert_allclose(np.square(mapped).sum(axis=1), 1, atol=1e-4)  # of a row, the kernel is 1


@pytest.mark.parametrize("rows", ["apart", "repeated", "differing by rounding errors"])
def test_the_projection_is_a_root_of_the_inverse(rows: str, rng: np.random.Generator) -> None:
    """P Pᵀ = (K + ε I)⁻¹; ε is small unless K has a negative eigenvalue and is no kernel."""
    X = rng.normal(size=(60, 5))
    if rows == "repeated":
        X = np.repeat(X[:20], 3, axis=0)
    elif rows != "apart":
        X = 1e-3 * X
        X[-1] = 1e3
    X = X.astype(np.float32)
    fitted = features.fit("nystroem", X, rng)
    K = features.apply(features.without_projection(fitted), X).astype(np.float64)
    P = fitted.projection.astype(np.float64)
    least, *_, most = np.linalg.eigvalsh(K)
    added = np.linalg.inv(P @ P.T) - K
    np.testing.assert_allclose(added, added[0, 0] * np.eye(60), atol=1e-4 if least < -1 else 1e-6)
    if rows in ("apart", "repeated"):
        assert 0 < added[0, 0] < 2e-6 * most
    else:
        assert least < -1
        assert -least < added[0, 0] < 60


def test_the_projection_folds_into_a_map(rng: np.random.Generator) -> None:
    X, V = rng.normal(size=(60, 5)).astype(np.float32), rng.normal(size=(60, 3)).astype(np.float32)
    fitted = features.fit("nystroem", X, rng)
    kernel = features.apply(features.without_projection(fitted), X)
    np.testing.assert_allclose(kernel.max(axis=1), 1, atol=1e-5)  # of each row with itself, a landmark
    np.testing.assert_allclose(
        kernel @ features.fold_projection(fitted, V), features.apply(fitted, X) @ V, rtol=1e-3, atol=1e-2
    )


def test_which_transforms_fit_the_data() -> None:
    dense, sparse = np.ones((3, 4)), csr_matrix(np.diag(np.arange(1.0, 31)))
    assert features.fits("nystroem", dense)
    assert not features.fits("nystroem", sparse)
    for kind in ("sqrt-l2", "log1p-l2"):
        assert features.fits(kind, sparse)
        assert not features.fits(kind, -sparse)
        assert not features.fits(kind, csr_matrix(np.eye(30))), "all rows would stay as they are"
    assert all(features.fits(kind, sparse) for kind in ("none", "l2", "standardize"))


@pytest.mark.parametrize("kind", features.KINDS)
def test_rows_of_zeros_stay_finite(kind: str, rng: np.random.Generator) -> None:
    X = np.vstack([np.zeros(6), rng.random((9, 6))]).astype(np.float32)
    assert np.isfinite(transformed(kind, X, rng)).all()
