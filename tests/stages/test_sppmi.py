"""SPPMI of distinct label sets against the paper's formula on all rows."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, vstack

from exmlds.data import make_xmc
from exmlds.stages import factorize, sppmi

Mu = tuple[float, float, float]


def by_the_formula(Y: np.ndarray, shift: float = 1.0, smoothing: float = 1.0) -> np.ndarray:
    """Equation (4) of the paper, entry by entry, over all rows."""
    return of_counts(Y @ Y.T, shift, smoothing)


def of_counts(M: np.ndarray, shift: float, smoothing: float = 1.0) -> np.ndarray:
    """Equation (4) of any counts."""
    n, total = len(M), M.sum()
    sums = M.sum(axis=1)
    share = sums**smoothing / (sums**smoothing).sum()
    S = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if M[i, j] > 0:
                S[i, j] = max(np.log(M[i, j] / total / (share[i] * share[j])) - np.log(shift), 0)
    return S


def conditional_of_counts(M: np.ndarray, shift: float) -> np.ndarray:
    """log P(i | j) − log k, at least 0, entry by entry."""
    S = np.zeros_like(M)
    for i in range(len(M)):
        for j in range(len(M)):
            if M[i, j] > 0:
                S[i, j] = max(np.log(M[i, j] / M[:, j].sum()) - np.log(shift), 0)
    return S


def made(Y: np.ndarray, **options: float) -> np.ndarray:
    """The matrix over all rows, from what the stage makes of the distinct sets."""
    sets = sppmi.distinct(csr_matrix(Y))
    overlaps = sppmi.prepare(sets, **options)  # type: ignore[arg-type]
    scaled = sppmi.rows_of(overlaps, slice(0, len(sets.counts))).toarray()
    S = scaled / np.outer(overlaps.scale, overlaps.scale)
    return S[np.ix_(sets.group, sets.group)]


def multiplied(Y: np.ndarray, **options: Any) -> np.ndarray:
    """The matrix over all rows, and labels if there are co-occurrences, from the operator."""
    sets = sppmi.distinct(csr_matrix(Y))
    overlaps = sppmi.prepare(sets, **options)
    size = len(overlaps.scale)
    scaled = sppmi.operator(overlaps, n_jobs=1) @ np.eye(size, dtype=np.float32)
    S = scaled / np.outer(overlaps.scale, overlaps.scale)
    all_of_them = np.concatenate([sets.group, np.arange(len(sets.counts), size)])
    return S[np.ix_(all_of_them, all_of_them)]


def cooccurrence(seed: int, n_labels: int) -> np.ndarray:
    """Symmetric, not whole numbers, with zeros on and off the diagonal."""
    rng = np.random.default_rng([seed, 1])
    C = rng.uniform(0, 5, (n_labels, n_labels)) * (rng.random((n_labels, n_labels)) < 0.6)
    return np.tril(C) + np.tril(C, -1).T


def joint(Y: np.ndarray, C: np.ndarray, mu: Mu) -> np.ndarray:
    """A of Algorithm 3, over all rows and labels."""
    return np.block([[mu[1] * Y @ Y.T, mu[2] * Y], [mu[2] * Y.T, mu[0] * C]])


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


@settings(max_examples=50)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 12),
    st.integers(1, 6),
    st.sampled_from([(1.0, 1.0, 1.0), (1.0, 1.0, 10.0), (2.5, 0.0, 1.0), (0.5, 3.0, 2.0)]),
)
def test_rows_and_labels_together(seed: int, n: int, n_labels: int, mu: Mu) -> None:
    Y, C = labels(seed, n, n_labels), cooccurrence(seed, n_labels)
    Y[seed % n] *= seed % 2  # a row without labels, in half of the cases
    if not joint(Y, C, mu).any():
        return
    for shift, smoothing in ((1.0, 1.0), (2.0, 1.0), (1.0, 0.75)):
        expected = of_counts(joint(Y, C, mu), shift, smoothing)
        options: dict[str, Any] = {"mu": mu, "shift": shift, "smoothing": smoothing}
        S = multiplied(Y, with_labels=True, cooccurrence=csr_matrix(C), **options)
        np.testing.assert_allclose(S, expected, atol=5e-5)


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 6))
def test_conditional(seed: int, n: int, n_labels: int) -> None:
    Y, C, mu = labels(seed, n, n_labels), cooccurrence(seed, n_labels), (1.0, 0.5, 2.0)
    for shift in (0.5, 0.01):
        S = multiplied(Y, conditional=True, shift=shift)
        np.testing.assert_allclose(S, conditional_of_counts(Y @ Y.T, shift), atol=5e-5)
        S = multiplied(Y, conditional=True, shift=shift, with_labels=True, cooccurrence=csr_matrix(C), mu=mu)
        np.testing.assert_allclose(S, conditional_of_counts(joint(Y, C, mu), shift), atol=5e-5)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("with_labels", [False, True])
def test_embedding_of_the_conditional_matrix(
    exact: bool, with_labels: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factorize, "EXACT", 1000 if exact else 0)
    Y, C, rank = labels(3, 60, 6), cooccurrence(3, 6), 3
    options: dict[str, Any] = {}
    if with_labels:
        options = {"with_labels": True, "cooccurrence": csr_matrix(C), "mu": (1.0, 0.5, 2.0)}
    M = joint(Y, C, (1.0, 0.5, 2.0)) if with_labels else Y @ Y.T
    expected, singular, _ = np.linalg.svd(conditional_of_counts(M, 0.01))
    assert singular[rank] < 0.95 * singular[rank - 1]  # there is one best subspace of this rank
    sets = sppmi.distinct(csr_matrix(Y))
    overlaps = sppmi.prepare(sets, conditional=True, shift=0.01, **options)
    S = sppmi.operator(overlaps, n_jobs=1)
    U, s = factorize.embed(S, rank, rng, symmetric=False, n_passes=12)
    np.testing.assert_allclose(s, singular[:rank], rtol=1e-3)
    n_sets = len(sets.counts)
    U = U / overlaps.scale[:, None]
    U = np.concatenate([U[:n_sets][sets.group], U[n_sets:]])
    np.testing.assert_allclose(U @ U.T, expected[:, :rank] @ expected[:, :rank].T, atol=5e-3)


@pytest.mark.parametrize("conditional", [False, True])
@pytest.mark.parametrize("with_labels", [False, True])
def test_cached_and_recomputed_products_are_equal(
    conditional: bool, with_labels: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sppmi, "BLOCK", 100)
    Y = make_xmc(1500, 20, 60, random_state=0).Y
    overlaps = sppmi.prepare(
        sppmi.distinct(Y),
        conditional=conditional,
        shift=0.01 if conditional else 1.0,
        with_labels=with_labels,
    )
    m, size = overlaps.sets.shape[0], len(overlaps.scale)
    blocks = [slice(0, m), slice(m, size)] if with_labels else [slice(0, m)]
    full = vstack([sppmi.rows_of(overlaps, block) for block in blocks]).tocsr()
    Q = np.random.default_rng(0).normal(size=(size, 3)).astype(np.float32)
    kept, anew = (sppmi.operator(overlaps, n_jobs=2, max_bytes=most) for most in (1e9, 0))
    for ours, theirs, dense in ((kept, anew, full), (kept.H, anew.H, full.T)):
        np.testing.assert_allclose(ours @ Q, theirs @ Q, rtol=1e-5, atol=1e-3)
        np.testing.assert_allclose(ours @ Q, dense @ Q, rtol=1e-3, atol=1e-2)
    assert (abs(full - full.T).max() > 0.1) if conditional else (abs(full - full.T).max() < 1e-4)


def test_only_the_nearest_sets_count() -> None:
    Y = labels(1, 30, 6)
    sets = sppmi.distinct(csr_matrix(Y))
    few = sppmi.prepare(sets, n_neighbors=2)
    pattern = few.M.left.toarray()
    np.testing.assert_array_equal(pattern, pattern.T)
    unit = sets.sets.toarray() / np.linalg.norm(sets.sets.toarray(), axis=1, keepdims=True)
    cosines = unit @ unit.T
    for i, row in enumerate(cosines):
        nearest = sorted(range(len(row)), key=lambda j: (-row[j], j))[:2]
        assert pattern[i, nearest].all()
    assert sppmi.rows_of(few, slice(0, len(pattern))).nnz <= pattern.sum()


def with_a_common_label(n: int, n_labels: int) -> csr_matrix:
    """Rows that all have label 0, and three of the others."""
    rng = np.random.default_rng(0)
    columns = np.hstack([np.zeros((n, 1), int), rng.integers(1, n_labels, (n, 3))])
    Y = csr_matrix((np.ones(4 * n, np.float32), columns.ravel(), np.arange(0, 4 * n + 1, 4)), (n, n_labels))
    Y.sum_duplicates()
    Y.data[:] = 1
    return Y


def slow_nearest(sets: csr_matrix, k: int) -> np.ndarray:
    """|i ∩ j| where j is one of the k nearest sets of i, ties by number, or the reverse; from all pairs."""
    lengths = np.sqrt(np.asarray(sets.sum(axis=1), np.float64))
    unit = csr_matrix(sets.multiply(1 / lengths))
    cosines, overlaps = (unit @ unit.T).toarray(), (sets @ sets.T).toarray()
    is_near = np.zeros(cosines.shape, bool)
    for i, row in enumerate(cosines):
        stored = np.flatnonzero(overlaps[i])
        is_near[i, stored[np.lexsort((stored, -row[stored]))[:k]]] = True
    return np.where(is_near | is_near.T, overlaps, 0)


@pytest.mark.twins
@pytest.mark.parametrize("k", [1, 7, 500])
def test_nearest_sets_are_those_of_all_pairs(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sppmi, "ENTRIES", 5_000)
    sets = sppmi.distinct(with_a_common_label(400, 30))
    found = sppmi.prepare(sets, n_neighbors=k)
    expected = slow_nearest(sets.sets, k)
    np.testing.assert_array_equal(found.M.left.toarray(), expected)
    block = sppmi.rows_of(found._replace(M=sppmi.Product(csr_matrix(expected))), slice(0, 50))
    np.testing.assert_array_equal(sppmi.rows_of(found, slice(0, 50)).toarray(), block.toarray())


@pytest.mark.parametrize("options", [{}, {"n_neighbors": 5}, {"with_labels": True, "mu": (0.5, 1.0, 10.0)}])
def test_pieces_change_nothing(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    sets = sppmi.distinct(with_a_common_label(700, 60))
    products = []
    for entries in (1 << 19, 3_000, 1):
        monkeypatch.setattr(sppmi, "ENTRIES", entries)
        overlaps = sppmi.prepare(sets, smoothing=0.75, **options)
        Q = np.random.default_rng(0).normal(size=(len(overlaps.scale), 3)).astype(np.float32)
        products += [sppmi.operator(overlaps, n_jobs=2, max_bytes=most) @ Q for most in (1e9, 0)]
    for other in products[2:]:
        np.testing.assert_array_equal(products[0], other)


def test_co_occurrences_are_those_of_the_rows() -> None:
    Y = csr_matrix(labels(5, 200, 9), dtype=np.float32)
    sets = sppmi.distinct(Y)
    given, own = (
        sppmi.prepare(sets, with_labels=True, cooccurrence=C, mu=(0.3, 1.0, 2.0))
        for C in (csr_matrix(Y.T @ Y), None)
    )
    for rows in (slice(0, len(sets.counts)), slice(len(sets.counts), len(sets.counts) + 9)):
        expected, found = sppmi.rows_of(given, rows), sppmi.rows_of(own, rows)
        np.testing.assert_array_equal(found.indices, expected.indices)
        np.testing.assert_array_equal(found.data, expected.data)
    np.testing.assert_array_equal(given.logs, own.logs)


def test_overlaps_of_all_pairs_are_never_in_memory_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All pairs of 4,000 sets would take 128 MB."""
    monkeypatch.setattr(sppmi, "BLOCK", 64)
    sets = sppmi.distinct(with_a_common_label(4_000, 2_000))
    Q = np.ones((len(sets.counts), 2), np.float32)
    sppmi.prepare(sppmi.distinct(with_a_common_label(20, 9)), n_neighbors=1)  # compile
    tracemalloc.start()
    try:
        for options in ({"n_neighbors": 5}, {}):
            sppmi.operator(sppmi.prepare(sets, n_jobs=1, **options), n_jobs=1, max_bytes=0) @ Q
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30e6


@pytest.mark.parametrize("shift", [1.0, 5.0])
def test_a_shift_makes_it_sparser(shift: float) -> None:
    Y = labels(2, 30, 6)
    assert (made(Y, shift=shift) > 0).sum() <= (by_the_formula(Y) > 0).sum()
    assert (made(Y, shift=5.0) > 0).sum() < (made(Y, shift=1.0) > 0).sum()
