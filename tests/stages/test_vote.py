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


def test_no_neighbor_no_vote() -> None:
    neighbors = np.array([[-1, -1]])
    weights = vote.weigh(neighbors, np.full((1, 2), -np.inf, np.float32), "similarity", 0.1)
    assert vote.count(neighbors, weights, Y, 1)[0].tolist() == [[-1]]
