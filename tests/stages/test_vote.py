"""Label scores by votes and by label embeddings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from exmlds.stages import vote

Y = csr_matrix(np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1]]))


def unit(rows: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)


def algorithm_4(
    neighbors: np.ndarray, weights: np.ndarray, Y: np.ndarray, embeddings: list[np.ndarray], Z: np.ndarray
) -> np.ndarray:
    """(q, L) scores of all labels."""
    s1 = np.zeros((len(neighbors), Y.shape[1]))
    for i, (row, row_weights) in enumerate(zip(neighbors, weights)):
        for j, weight in zip(row, row_weights):
            if j >= 0:
                s1[i] += weight * Y[j]
    s2 = sum(unit(z.astype(np.float64) @ Z.T.astype(np.float64)) for z in embeddings)
    return (unit(s1) + unit(np.asarray(s2))) / 2


@pytest.mark.twins
def test_uniform_votes_are_equation_1() -> None:
    neighbors = np.array([[0, 1], [2, -1]])
    weights = vote.weigh(neighbors, np.array([[0.9, 0.1], [0.3, -np.inf]], np.float32), "uniform", 1.0)
    ids, shares = vote.top_labels(neighbors, weights, Y, 3)
    assert ids.tolist() == [[0, 1, -1], [2, -1, -1]]
    assert shares.tolist() == [[1, 0.5, 0], [1, 0, 0]]


@pytest.mark.twins
def test_similarity_weighs_by_closeness_to_the_nearest() -> None:
    neighbors = np.array([[0, 2, -1]])
    weights = vote.weigh(neighbors, np.array([[0.5, 0.4, -np.inf]], np.float32), "similarity", 0.1)
    np.testing.assert_allclose(weights, [[1, np.exp(-1), 0]], rtol=1e-5)
    _, shares = vote.top_labels(neighbors, weights, Y, 2)
    np.testing.assert_allclose(shares, [[1 / (1 + np.exp(-1)), np.exp(-1) / (1 + np.exp(-1))]], rtol=1e-5)


@pytest.mark.twins
def test_without_votes_the_label_frequencies_count() -> None:
    neighbors = np.array([[-1, -1]])
    weights = vote.weigh(neighbors, np.full((1, 2), -np.inf, np.float32), "similarity", 0.1)
    ids, shares = vote.top_labels(neighbors, weights, Y, 2)
    assert ids.tolist() == [[0, 1]]
    np.testing.assert_allclose(shares, [[2 / 3, 1 / 3]])


def test_a_tiny_temperature_leaves_the_nearest() -> None:
    weights = vote.weigh(np.array([[0, 1]]), np.array([[0.5, 0.4]], np.float32), "similarity", 1e-50)
    assert weights.tolist() == [[1, 0]]


def test_drop_dissimilar() -> None:
    kept = vote.drop_dissimilar(np.array([[3, 5, 7]]), np.array([[0.5, 0, -0.5]]))
    assert kept.tolist() == [[3, -1, -1]]


@pytest.mark.twins
@settings(max_examples=50)
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 20), st.integers(1, 12), st.integers(1, 3), st.integers(1, 6)
)
def test_votes_with_labels_are_algorithm_4(
    seed: int, n_labels: int, k: int, n_learners: int, block: int
) -> None:
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((8, n_labels)) < 0.4, rng.uniform(0.01, 1, (8, n_labels)), 0)
    values = values.astype(np.float32)
    neighbors, weights = rng.integers(-1, 8, (5, 4)), rng.random((5, 4)).astype(np.float32)
    embeddings = list(rng.normal(size=(n_learners, 5, 3)).astype(np.float32))
    Z = rng.normal(size=(n_labels, 3)).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vote, "LABELS", block)
        ids, scores = vote.top_labels_with_embeddings(
            neighbors, weights, csr_matrix(values), embeddings, vote.label_scorer(Z), k
        )
    expected = algorithm_4(neighbors, weights, values, embeddings, Z)
    products = [z.astype(np.float64) @ Z.T for z in embeddings]
    clear = np.linalg.norm(sum(map(unit, products)), axis=1) > 0.2  # embeddings that don't cancel each other
    for z, product in zip(embeddings, products):
        most = np.linalg.norm(z, axis=1) * np.linalg.norm(Z)
        clear &= np.linalg.norm(product, axis=1) > 0.1 * most
    clear &= (expected > 1e-3).any(axis=1)
    best = np.zeros((5, k))
    best[:, : min(k, n_labels)] = np.maximum(-np.sort(-expected, axis=1)[:, :k], 0)
    np.testing.assert_allclose(scores[clear], best[clear], atol=1e-4)
    assert ((ids >= 0) == (scores > 0))[clear].all()
    for row in np.flatnonzero(clear):
        found = ids[row][ids[row] >= 0]
        assert len(set(found)) == len(found)
        np.testing.assert_allclose(expected[row, found], scores[row, : len(found)], atol=1e-4)


@pytest.mark.twins
def test_votes_with_labels_by_hand() -> None:
    scorer = vote.label_scorer(np.array([[3, 0], [0, 4], [-3, 0]], np.float32))
    neighbors, weights = np.array([[0, 1]]), np.array([[1, 1]], np.float32)
    ids, scores = vote.top_labels_with_embeddings(
        neighbors, weights, Y, [np.array([[0, 5]], np.float32)], scorer, 3
    )
    assert ids.tolist() == [[1, 0, -1]]  # votes (2, 1, 0), label scores (0, 1, 0)
    np.testing.assert_allclose(scores, [[(1 / 5**0.5 + 1) / 2, 2 / 5**0.5 / 2, 0]], rtol=1e-5)


@pytest.mark.twins
def test_embeddings_count_equally_whatever_their_lengths() -> None:
    scorer = vote.label_scorer(np.eye(3, dtype=np.float32))
    embeddings = [np.array([[1e-3, 0, 0]], np.float32), np.array([[0, 1e3, 0]], np.float32)]
    ids, scores = vote.top_labels_with_embeddings(
        np.array([[-1]]), np.zeros((1, 1), np.float32), Y, embeddings, scorer, 3
    )
    assert ids.tolist() == [[0, 1, -1]]
    np.testing.assert_allclose(scores, [[0.5**0.5 / 2, 0.5**0.5 / 2, 0]], rtol=1e-5)


@pytest.mark.twins
def test_labels_that_score_nothing_are_no_candidates() -> None:
    scorer = vote.label_scorer(np.array([[1, 0], [0, 1], [-1, 0]], np.float32))
    here = [np.array([[1, 0], [-1, 0]], np.float32)]
    nobody = np.full((2, 1), -1), np.zeros((2, 1), np.float32)
    ids, scores = vote.top_labels_with_embeddings(*nobody, Y, here, scorer, 3)
    assert ids.tolist() == [[0, -1, -1], [2, -1, -1]]
    np.testing.assert_allclose(scores, [[0.5**0.5 / 2, 0, 0]] * 2, rtol=1e-5)


@pytest.mark.twins
def test_without_scores_the_label_frequencies_count() -> None:
    weighted = csr_matrix(np.array([[1, 0, 0.5], [0.2, 1, 0], [1, 0, 0]], np.float32))
    scorer = vote.label_scorer(np.eye(3, dtype=np.float32))
    neighbors, weights = np.array([[-1], [0]]), np.array([[0], [0]], np.float32)
    ids, scores = vote.top_labels_with_embeddings(
        neighbors, weights, weighted, [np.zeros((2, 3), np.float32)], scorer, 3
    )
    assert ids.tolist() == [[0, 1, 2]] * 2
    np.testing.assert_allclose(scores, [[2.2 / 3, 1 / 3, 0.5 / 3]] * 2, rtol=1e-5)
