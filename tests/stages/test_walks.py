"""Walks on the graph of labels that co-occur, and the pairs of labels that are near in them."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from exmlds.stages import walks


def chain(n: int) -> csr_matrix:
    """Each label is linked with the next one."""
    links = np.eye(n, k=1) + np.eye(n, k=-1)
    return csr_matrix(links, dtype=np.float32)


def test_labels_of_a_row_are_linked() -> None:
    Y = csr_matrix(np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 1]], np.float32))
    expected = [[0, 2, 1, 0], [2, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0]]
    np.testing.assert_array_equal(walks.label_graph(Y).toarray(), expected)


def test_walks_follow_edges(rng: np.random.Generator) -> None:
    found = walks.walk(chain(6), 30, rng)
    assert found.shape == (6, 30)
    np.testing.assert_array_equal(found[:, 0], np.arange(6))
    np.testing.assert_array_equal(np.abs(np.diff(found, axis=1)), 1)


def test_edges_are_drawn_in_proportion_to_their_values(rng: np.random.Generator) -> None:
    star = csr_matrix(np.array([[0, 1, 3, 0], [1, 0, 0, 0], [3, 0, 0, 0], [0, 0, 0, 0]], np.float32))
    found = walks.walk(star, 4_001, rng)
    assert abs((found[0, 1::2] == 2).mean() - 0.75) < 0.03
    assert (found[0, ::2] == 0).all()
    assert found[3].tolist() == [3] + [-1] * 4_000  # a label without neighbours


def test_pairs_by_hand() -> None:
    found = walks.pairs(np.array([[0, 1, 0, 2], [3, -1, -1, -1]]), 2)
    pairs = sorted(zip(*(part.tolist() for part in found)))
    # One step apart: 0–1, 1–0 and 0–2; two steps apart: 1–2, and 0–0, which is no pair.
    assert pairs == sorted([(0, 1), (1, 0)] * 2 + [(0, 2), (2, 0), (1, 2), (2, 1)])
    assert [len(part) for part in walks.pairs(np.array([[0], [1]]), 2)] == [0, 0]
