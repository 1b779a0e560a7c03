"""SPPMI of distinct label sets against the paper's formula on all rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from exmlds.data import make_xmc
from exmlds.stages import factorize, sppmi


def by_the_formula(Y: np.ndarray, shift: float = 1.0, smoothing: float = 1.0) -> np.ndarray:
    """Equation (4) of the paper, entry by entry, over all rows."""
    M = Y @ Y.T
    n, total = len(M), M.sum()
    sums = M.sum(axis=1)
    share = sums**smoothing / (sums**smoothing).sum()
    S = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if M[i, j] > 0:
                S[i, j] = max(np.log(M[i, j] / total / (share[i] * share[j])) - np.log(shift), 0)
    return S


def made(Y: np.ndarray, **options: float) -> np.ndarray:
    """The matrix over all rows, from what the stage makes of the distinct sets."""
    sets = sppmi.distinct(csr_matrix(Y))
    overlaps = sppmi.prepare(sets, **options)  # type: ignore[arg-type]
    scaled = sppmi.rows_of(overlaps, slice(0, len(sets.counts))).toarray()
    S = scaled / np.outer(overlaps.scale, overlaps.scale)
    return S[np.ix_(sets.group, sets.group)]


def labels(seed: int, n: int, n_labels: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, n_labels)) < 0.3).astype(float)
    Y[np.arange(n), rng.integers(0, n_labels, n)] = 1  # every row has a label
    return Y


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.integers(1, 15), st.integers(1, 6))
def test_the_papers_formula(seed: int, n: int, n_labels: int) -> None:
    Y = labels(seed, n, n_labels)
    for shift, smoothing in ((1.0, 1.0), (2.0, 1.0), (1.0, 0.75)):
        expected = by_the_formula(Y, shift, smoothing)
        np.testing.assert_allclose(made(Y, shift=shift, smoothing=smoothing), expected, atol=1e-5)


def test_distinct_sets() -> None:
    Y = csr_matrix(np.array([[1, 0, 1], [0, 1, 0], [1, 0, 1], [0, 0, 0], [0, 1, 0], [0, 0, 0], [1, 1, 1]]))
    sets = sppmi.distinct(Y)
    assert sorted(sets.counts) == [1, 2, 2, 2]
    np.testing.assert_array_equal(sets.sets.toarray()[sets.group], Y.toarray())


def test_embedding_of_sets_is_that_of_all_rows() -> None:
    Y = labels(0, 40, 5)
    S = by_the_formula(Y)
    left, singular, _ = np.linalg.svd(S)
    expected = (left[:, :4] * singular[:4]) @ left[:, :4].T  # Z Zᵀ
    sets = sppmi.distinct(csr_matrix(Y))
    overlaps = sppmi.prepare(sets)
    U, s = factorize.embed(sppmi.operator(overlaps, n_jobs=1), 4, np.random.default_rng(0))
    Z = (U * np.sqrt(s) / overlaps.scale[:, None])[sets.group]
    np.testing.assert_allclose(s, singular[:4], rtol=1e-4)
    np.testing.assert_allclose(Z @ Z.T, expected, atol=1e-3)


def test_kept_or_made_anew_is_the_same() -> None:
    overlaps = sppmi.prepare(sppmi.distinct(make_xmc(1500, 20, 60, random_state=0).Y))
    Q = np.random.default_rng(0).normal(size=(overlaps.sets.shape[0], 3)).astype(np.float32)
    kept, anew = (sppmi.operator(overlaps, n_jobs=2, max_bytes=size) @ Q for size in (1e9, 0))
    np.testing.assert_allclose(kept, anew, rtol=1e-5)
    full = sppmi.rows_of(overlaps, slice(0, overlaps.sets.shape[0]))
    np.testing.assert_allclose(kept, full @ Q, rtol=1e-3, atol=1e-2)
    assert abs(full - full.T).max() < 1e-4


def test_only_the_nearest_sets_count() -> None:
    Y = labels(1, 30, 6)
    sets = sppmi.distinct(csr_matrix(Y))
    few = sppmi.prepare(sets, n_neighbors=2)
    assert few.pattern is not None
    pattern = few.pattern.toarray()
    np.testing.assert_array_equal(pattern, pattern.T)
    unit = sets.sets.toarray() / np.linalg.norm(sets.sets.toarray(), axis=1, keepdims=True)
    cosines = unit @ unit.T
    for i, row in enumerate(cosines):
        nearest = sorted(range(len(row)), key=lambda j: (-row[j], j))[:2]
        assert pattern[i, nearest].all()
    assert sppmi.rows_of(few, slice(0, len(pattern))).nnz <= pattern.sum()


@pytest.mark.parametrize("shift", [1.0, 5.0])
def test_a_shift_makes_it_sparser(shift: float) -> None:
    Y = labels(2, 30, 6)
    assert (made(Y, shift=shift) > 0).sum() <= (by_the_formula(Y) > 0).sum()
    assert (made(Y, shift=5.0) > 0).sum() < (made(Y, shift=1.0) > 0).sum()
