"""The context graph: nearest rows from nearest groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from exmlds.stages import neighbors


@pytest.mark.twins
@settings(max_examples=100)
@given(st.integers(0, 2**32 - 1), st.integers(1, 20), st.integers(1, 6), st.integers(1, 8))
def test_nearest_groups_come_first_and_never_a_row_itself(seed: int, n: int, n_groups: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    group = rng.integers(0, n_groups, n)
    nearest = np.array([rng.permutation(n_groups) for _ in range(n_groups)])
    nearest[np.arange(n_groups) >= rng.integers(1, n_groups + 1, (n_groups, 1))] = -1
    found = neighbors.expand(nearest, group, k, rng)
    assert found.shape == (n, k)
    assert found.dtype == np.int64
    for row, ids in enumerate(found):
        groups = [g for g in nearest[group[row]] if g >= 0]
        others = [groups.index(group[i]) for i in range(n) if i != row and group[i] in groups]
        rows = ids[ids >= 0]
        assert row not in rows
        assert len(set(rows)) == len(rows)
        assert [groups.index(group[i]) for i in rows] == sorted(others)[:k]
        assert (ids[len(rows) :] == -1).all()


def test_by_hand(rng: np.random.Generator) -> None:
    nearest = np.array([[0, 1], [1, -1], [2, 0]])
    found = neighbors.expand(nearest, np.array([0, 1, 0, 2]), 3, rng)
    assert found[0].tolist() == [2, 1, -1]
    assert found[1].tolist() == [-1, -1, -1]
    assert found[2].tolist() == [0, 1, -1]
    assert sorted(found[3].tolist()) == [-1, 0, 2]
    assert found[3, 2] == -1


@pytest.mark.twins
def test_rows_of_a_group_are_drawn_at_random() -> None:
    nearest, group = np.zeros((1, 1), np.int64), np.zeros(200, np.int64)
    first, again, other = (
        neighbors.expand(nearest, group, 5, np.random.default_rng(seed)) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    taken = np.bincount(first.ravel(), minlength=200)
    assert taken.max() < 20
    assert (taken > 0).mean() > 0.9


@pytest.mark.twins
@pytest.mark.parametrize("measure", ["cosine", "overlap"])
def test_the_nearest_sets_are_those_of_all_pairs(measure: str, rng: np.random.Generator) -> None:
    dense = (rng.random((60, 15)) < 0.2).astype(np.float64)
    sizes = np.maximum(dense.sum(axis=1), 1)
    common = dense @ dense.T
    expected = common / (np.sqrt(np.outer(sizes, sizes)) if measure == "cosine" else sizes)
    found = neighbors.nearest_sets(csr_matrix(dense, dtype=np.float32), 5, measure, rng)
    for i, ids in enumerate(found):
        present = ids[ids >= 0]
        assert len(present) == min(5, np.count_nonzero(expected[i]))
        np.testing.assert_allclose(expected[i, present], -np.sort(-expected[i])[: len(present)])


@pytest.mark.twins
def test_a_budget_leaves_out_the_common_labels(rng: np.random.Generator) -> None:
    """All sets have label 0; pairs of sets share two of the others."""
    dense = np.zeros((100, 101), np.float32)
    dense[:, 0] = 1
    for i in range(100):
        dense[i, [1 + i // 2, 51 + i // 2]] = 1
    found = neighbors.nearest_sets(csr_matrix(dense), 6, "cosine", rng, budget=10)
    assert all({2 * (i // 2), 2 * (i // 2) + 1} == set(ids[:2]) for i, ids in enumerate(found))
    assert (found[:, 2:] >= 0).all()
    assert len(np.unique(found[:, 2:])) > 20  # of the long list, each set reads another stretch


def test_rows_of_labels_are_drawn_at_random(rng: np.random.Generator) -> None:
    Y = csr_matrix([[1, 0, 1, 0], [1, 0, 0, 0], [1, 0, 1, 0]])
    drawn = [neighbors.rows_of_labels(Y, 2, rng) for _ in range(50)]
    assert {tuple(sorted(found[0].tolist())) for found in drawn} == {(0, 1), (0, 2), (1, 2)}
    for found in drawn:
        assert found[[1, 3]].tolist() == [[-1, -1], [-1, -1]]
        assert sorted(found[2].tolist()) == [0, 2]
    assert neighbors.rows_of_labels(Y, 4, rng)[2, 2:].tolist() == [-1, -1]


def test_graph() -> None:
    nearest = np.array([[3, 0, 2], [-1, -1, -1], [1, -1, -1], [4, 2, -1]])
    found = neighbors.graph(nearest, 5)
    assert found.format == "csr"
    assert found.shape == (4, 5)
    assert found.has_sorted_indices
    assert found.indptr.tolist() == [0, 3, 3, 4, 6]
    assert found.indices.tolist() == [0, 2, 3, 1, 2, 4]
    assert found.data.tolist() == [1] * 6
    assert found.dtype == np.float32


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 2)])
def test_graph_of_nothing(shape: tuple[int, int]) -> None:
    found = neighbors.graph(np.full(shape, -1), 4)
    assert found.shape == (shape[0], 4)
    assert found.nnz == 0


@pytest.mark.twins
def test_graph_of_expanded_neighbors_has_no_loops(rng: np.random.Generator) -> None:
    nearest, group = np.array([[0, 1], [1, 0]]), rng.integers(0, 2, 40)
    found = neighbors.graph(neighbors.expand(nearest, group, 6, rng), 40)
    assert (np.diff(found.indptr) == 6).all()
    assert not found.diagonal().any()
    assert (found.data == 1).all()
