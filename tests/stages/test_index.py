"""Exact neighbours, whatever the rows are stored as."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, random_array
from sklearn.neighbors import NearestNeighbors

from exmlds.stages import index


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("density", [0.05, 0.9], ids=["sparse", "dense enough"])
@pytest.mark.parametrize("as_dense", [False, True])
def test_same_as_scikit_learn(metric: str, density: float, as_dense: bool, rng: np.random.Generator) -> None:
    X = csr_matrix(random_array((300, 40), density=density, rng=rng, dtype=np.float32))
    Q = csr_matrix(random_array((20, 40), density=density, rng=rng, dtype=np.float32))
    theirs = NearestNeighbors(n_neighbors=7, metric=metric, algorithm="brute").fit(X.toarray().astype(float))
    distances, _ = theirs.kneighbors(Q.toarray().astype(float))
    if as_dense:
        X, Q = X.toarray(), Q.toarray()
    ids, similarities = index.search(index.build(X, metric), Q, 7)
    expected = 1 - distances if metric == "cosine" else -distances
    np.testing.assert_allclose(similarities, expected, atol=2e-3 if metric == "euclidean" else 1e-5)
    assert (ids >= 0).all()


@settings(max_examples=50)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 12),
    st.integers(1, 12),
    st.sampled_from(["cosine", "euclidean"]),
)
def test_segments_merge(seed: int, n_first: int, n_second: int, metric: str) -> None:
    rng = np.random.default_rng(seed)
    X = csr_matrix(rng.integers(0, 3, (n_first + n_second, 4)).astype(np.float32))
    Q = csr_matrix(rng.integers(0, 3, (5, 4)).astype(np.float32))
    whole = index.build(X, metric)
    parts = index.extend(index.build(X[:n_first], metric), X[n_first:])
    assert len(parts.segments) == 2
    np.testing.assert_allclose(index.search(whole, Q, 6)[1], index.search(parts, Q, 6)[1], atol=1e-6)


def test_rows_are_left_out_by_their_bias() -> None:
    built = index.build(np.eye(3, dtype=np.float32), "cosine")
    built.segments[0].bias[0] = -np.inf
    ids, _ = index.search(built, np.array([[1, 0.5, 0]], np.float32), 3)
    assert ids.tolist() == [[1, 2, -1]]


def test_fewer_rows_than_neighbors_are_padded() -> None:
    ids, similarities = index.search(index.build(csr_matrix(np.eye(2)), "cosine"), csr_matrix([[1.0, 0]]), 4)
    assert ids.tolist() == [[0, 1, -1, -1]]
    assert similarities[0, :2].tolist() == [1, 0]


def test_rows_of_zeros_stay_zero() -> None:
    for X in (np.zeros((1, 3), np.float32), csr_matrix((1, 3), dtype=np.float32)):
        assert np.isfinite(index.search(index.build(X, "cosine"), X, 1)[1]).all()
