"""Exact neighbours, whatever the rows are stored as."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, random_array
from sklearn.neighbors import NearestNeighbors

from exmlds.stages import index


@pytest.mark.twins
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("density", [0.05, 0.9], ids=["sparse", "dense enough"])
@pytest.mark.parametrize("as_dense", [False, True])
def test_same_as_scikit_learn(metric: str, density: float, as_dense: bool, rng: np.random.Generator) -> None:
    X = csr_matrix(random_array((300, 40), density=density, random_state=rng, dtype=np.float32))
    Q = csr_matrix(random_array((20, 40), density=density, random_state=rng, dtype=np.float32))
    theirs = NearestNeighbors(n_neighbors=7, metric=metric, algorithm="brute").fit(X.toarray().astype(float))
    distances, _ = theirs.kneighbors(Q.toarray().astype(float))
    if as_dense:
        X, Q = X.toarray(), Q.toarray()
    ids, similarities = index.search(index.build(X, metric), Q, 7)
    expected = 1 - distances if metric == "cosine" else -distances
    np.testing.assert_allclose(similarities, expected, atol=2e-3 if metric == "euclidean" else 1e-5)
    assert (ids >= 0).all()


@pytest.mark.twins
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
    found, expected = index.search(parts, Q, 6), index.search(whole, Q, 6)
    np.testing.assert_allclose(found[1], expected[1], atol=2e-3)
    for q, (ids, similar) in enumerate(zip(*found)):  # and they are the rows that are so similar
        for row, similarity in zip(ids[ids >= 0], similar):
            x, y = X[[row]].toarray().ravel(), Q[[q]].toarray().ravel()
            norms = np.linalg.norm(x) * np.linalg.norm(y)
            cosine = x @ y / norms if norms else 0
            assert similarity == pytest.approx(
                cosine if metric == "cosine" else -np.linalg.norm(x - y), abs=2e-3
            )


@pytest.mark.parametrize("offset", [0, 100, 10_000])
@pytest.mark.parametrize("as_dense", [True, False])
def test_distances_far_from_zero(offset: float, as_dense: bool, rng: np.random.Generator) -> None:
    X = rng.normal(size=(200, 5)) + offset
    rows = X.astype(np.float32)
    # Sparse: the same values among many zeros.
    wide = rows if as_dense else csr_matrix(np.hstack([rows, np.zeros((200, 95), np.float32)]))
    ids, _ = index.search(index.build(wide, "euclidean"), wide, 2)
    assert ids[:, 0].tolist() == list(range(200))
    theirs = NearestNeighbors(n_neighbors=2, algorithm="brute").fit(rows.astype(float))
    expected = theirs.kneighbors(rows.astype(float))[1][:, 1]
    assert (ids[:, 1] == expected).mean() > 0.97


@pytest.mark.parametrize("scale", [1e-42, 1e-23, 1.0, 1e20])
def test_cosines_of_any_scale(scale: float, rng: np.random.Generator) -> None:
    X = (rng.random((30, 40)) * (rng.random((30, 40)) < 0.1) + np.eye(30, 40)).astype(np.float32)
    expected = index.search(index.build(X, "cosine"), X, 3)[1]
    X = (X.astype(np.float64) * scale).astype(np.float32)
    for form in (X, csr_matrix(X)):
        found = index.search(index.build(form, "cosine"), form, 3)[1]
        np.testing.assert_allclose(found, expected, atol=1e-5 if scale > 1e-40 else 0.1)


def test_rows_are_left_out_by_their_bias() -> None:
    built = index.build(np.eye(3, dtype=np.float32), "cosine")
    built.segments[0].bias[0] = -np.inf
    ids, _ = index.search(built, np.array([[1, 0.5, 0]], np.float32), 3)
    assert ids.tolist() == [[1, 2, -1]]


@pytest.mark.twins
def test_fewer_rows_than_neighbors_are_padded() -> None:
    ids, similarities = index.search(index.build(csr_matrix(np.eye(2)), "cosine"), csr_matrix([[1.0, 0]]), 4)
    assert ids.tolist() == [[0, 1, -1, -1]]
    assert similarities[0, :2].tolist() == [1, 0]


@pytest.mark.twins
def test_rows_of_zeros_stay_zero() -> None:
    for X in (np.zeros((1, 3), np.float32), csr_matrix((1, 3), dtype=np.float32)):
        assert np.isfinite(index.search(index.build(X, "cosine"), X, 1)[1]).all()


def built(kind: str, X: csr_matrix, metric: str) -> index.Index:
    """An index of each kind: rows one by one, in cells, or inverted."""
    if kind == "inverted":
        return index.build(X, metric)
    return index.build(X.toarray(), metric, in_cells=kind == "cells")


def all_found(found: index.Index, Q: csr_matrix, k: int) -> tuple[list[set[int]], np.ndarray]:
    ids, similarities = index.search(found, Q, k)
    return [set(row[row >= 0].tolist()) for row in ids], np.where(ids >= 0, similarities, 0)


@pytest.mark.twins
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("kind", ["rows", "cells", "inverted"])
def test_rows_are_appended_excluded_and_dropped(kind: str, metric: str, rng: np.random.Generator) -> None:
    """A search finds what it finds in an index that was built of the rows that are left."""
    X = csr_matrix(random_array((90, 30), density=0.15, random_state=rng, dtype=np.float32))
    Q = csr_matrix(random_array((10, 30), density=0.15, random_state=rng, dtype=np.float32))
    for is_merged in (False, True):
        grown = built(kind, X[:40], metric)
        for start in range(40, 90, 10):
            grown = index.append(grown, X[start : start + 10])
        assert not index.has_long_tail(grown, index.TAIL_ROWS - 50)
        assert index.has_long_tail(grown, index.TAIL_ROWS - 49)
        grown = index.compact(grown) if is_merged else grown
        assert len(grown.segments) == (1 if is_merged else 2)
        whole = built(kind, X, metric)
        own, expected = all_found(grown, Q, 90), all_found(whole, Q, 90)
        assert own[0] == expected[0]
        np.testing.assert_allclose(own[1], expected[1], atol=1e-3)
        gone = rng.choice(90, 50, replace=False)
        excluded = index.exclude(index.exclude(grown, gone[:25]), gone[25:])
        left = np.setdiff1d(np.arange(90), gone)
        ids, similarities = all_found(excluded, Q, 90)
        assert all(row <= set(left.tolist()) for row in ids)
        dropped = index.drop(excluded, gone)
        again, expected = all_found(dropped, Q, 90)
        assert [{int(left[i]) for i in row} for row in again] == ids
        np.testing.assert_allclose(similarities, expected, atol=1e-3)
        assert sum(len(segment.bias) for segment in dropped.segments) == 40


@pytest.mark.parametrize("kind", ["rows", "cells", "inverted"])
def test_an_index_may_lose_all_rows_and_gain_others(kind: str, rng: np.random.Generator) -> None:
    X = csr_matrix(random_array((40, 30), density=0.15, random_state=rng, dtype=np.float32))
    empty = index.drop(index.append(built(kind, X[:30], "cosine"), X[30:]), np.arange(40))
    ids, _ = index.search(empty, X[:3], 5)
    assert (ids == -1).all()
    ids, _ = index.search(index.append(empty, X[:10]), X[:3], 1)
    assert ids[:, 0].tolist() == [0, 1, 2]


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("in_cells", [False, True])
def test_excluded_rows_keep_their_ids_and_change_nothing(
    metric: str, in_cells: bool, rng: np.random.Generator
) -> None:
    X, Q = rng.normal(size=(200, 5)).astype(np.float32), rng.normal(size=(9, 5)).astype(np.float32)
    for is_excluded in (rng.random(200) < 0.3, np.zeros(200, bool)):
        kept = np.flatnonzero(~is_excluded)
        alone = index.build(X[kept], metric, in_cells=in_cells, n_jobs=1)
        built = index.build_without(X, is_excluded, metric, in_cells=in_cells, n_jobs=1)
        ids, similarities = index.search(built, Q, 7)
        expected, theirs = index.search(alone, Q, 7)
        np.testing.assert_array_equal(ids, kept[expected])
        np.testing.assert_allclose(similarities, theirs, atol=1e-6)
        np.testing.assert_allclose(
            index.stored_rows(built, index.positions(built)),
            index.stored_rows(index.build(X, metric, n_jobs=1), np.arange(200)),
            atol=1e-5,
        )
        dropped = index.drop(built, np.flatnonzero(is_excluded))
        np.testing.assert_array_equal(index.search(dropped, Q, 7)[0], expected)
    none_left = index.build_without(X, np.ones(200, bool), metric, in_cells=in_cells, n_jobs=1)
    assert (index.search(none_left, Q, 3)[0] == -1).all()
