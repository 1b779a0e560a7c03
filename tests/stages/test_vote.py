"""Votes are shares."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from exmlds.stages import vote

Y = csr_matrix(np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1]]))


def test_uniform_votes_are_equation_1() -> None:
    neighbors = np.array([[0, 1], [2, -1]])
    weights = vote.weigh(neighbors, np.array([[0.9, 0.1], [0.3, -np.inf]], np.float32), "uniform", 1.0)
    ids, shares = vote.count(neighbors, weights, Y, 3)
    assert ids.tolist() == [[0, 1, -1], [2, -1, -1]]
    assert shares.tolist() == [[1, 0.5, 0], [1, 0, 0]]


def test_similarity_weighs_by_closeness_to_the_nearest() -> None:
    neighbors = np.array([[0, 2, -1]])
    weights = vote.weigh(neighbors, np.array([[0.5, 0.4, -np.inf]], np.float32), "similarity", 0.1)
    np.testing.assert_allclose(weights, [[1, np.exp(-1), 0]], rtol=1e-5)
    _, shares = vote.count(neighbors, weights, Y, 2)
    np.testing.assert_allclose(shares, [[1 / (1 + np.exp(-1)), np.exp(-1) / (1 + np.exp(-1))]], rtol=1e-5)


def test_where_nobody_votes_the_shares_of_all_rows_count() -> None:
    neighbors = np.array([[-1, -1]])
    weights = vote.weigh(neighbors, np.full((1, 2), -np.inf, np.float32), "similarity", 0.1)
    ids, shares = vote.count(neighbors, weights, Y, 2)
    assert ids.tolist() == [[0, 1]]
    np.testing.assert_allclose(shares, [[2 / 3, 1 / 3]])


def test_a_tiny_temperature_leaves_the_nearest() -> None:
    weights = vote.weigh(np.array([[0, 1]]), np.array([[0.5, 0.4]], np.float32), "similarity", 1e-50)
    assert weights.tolist() == [[1, 0]]


def test_only_similar() -> None:
    near = vote.only_similar(np.array([[3, 5, 7]]), np.array([[0.5, 0, -0.5]]))
    assert near.tolist() == [[3, -1, -1]]
