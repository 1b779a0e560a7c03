"""Label completion and the visible share, from co-occurrences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from exmlds.data import make_xmc
from exmlds.selection import hide_labels
from exmlds.stages import complete

C = csr_matrix(np.array([[4.0, 2, 0], [2, 2, 1], [0, 1, 10]]))
P = np.array([[0, 0.5, 0], [1, 0, 0.5], [0, 0.1, 0]])


@pytest.fixture(scope="module")
def all_labels() -> csr_matrix:
    return make_xmc(3000, 20, 100, random_state=0).Y


@pytest.mark.parametrize("share", [0.8, 0.5, 0.25, 0.1])
def test_visible_share(share: float, all_labels: csr_matrix) -> None:
    shown = hide_labels(all_labels, 1 - share, random_state=1)
    counts = csr_matrix(all_labels.T @ all_labels)
    found = complete.visible_share(shown, counts)
    assert found == pytest.approx(share, rel=0.15)
    assert complete.visible_share(shown, counts * 7) == pytest.approx(found, rel=1e-5)


def test_visible_share_of_other_rows(all_labels: csr_matrix) -> None:
    shown = hide_labels(all_labels[:1500], 0.6, random_state=1)
    others = all_labels[1500:]
    assert complete.visible_share(shown, csr_matrix(others.T @ others)) == pytest.approx(0.4, rel=0.15)


def test_all_is_visible_where_nothing_is_hidden(all_labels: csr_matrix) -> None:
    counts = csr_matrix(all_labels.T @ all_labels)
    assert complete.visible_share(all_labels, counts) == pytest.approx(1)
    shown = hide_labels(all_labels, 0.5, random_state=1)
    assert complete.visible_share(all_labels, csr_matrix(shown.T @ shown)) == 1


def test_visible_share_that_cannot_be_estimated(all_labels: csr_matrix) -> None:
    assert complete.visible_share(all_labels, csr_matrix(np.eye(100))) == 1  # no label comes with another
    alone = csr_matrix(np.eye(3, dtype=np.float32))
    assert complete.visible_share(alone, C) == complete.LEAST_VISIBLE
    assert complete.visible_share(csr_matrix((5, 3), dtype=np.float32), C) == complete.LEAST_VISIBLE


def test_rescale_counts() -> None:
    Y = csr_matrix(np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1]], np.float32))
    scaled = complete.rescale_counts(Y, C, 0.5)
    np.testing.assert_allclose(scaled.toarray(), C.toarray() * 8 / 16)
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(
        complete.rescale_counts(Y, C * 1e6, 0.5).toarray(), scaled.toarray(), rtol=1e-6
    )


def test_rescale_counts_without_a_diagonal() -> None:
    Y = csr_matrix(np.array([[1, 1], [1, 0]], np.float32))
    scaled = complete.rescale_counts(Y, csr_matrix(np.array([[0, 5.0], [5, 0]])), 0.5)
    np.testing.assert_allclose(scaled.toarray(), [[0, 6], [6, 0]])


def test_conditional_share_by_hand() -> None:
    found = complete.conditional_share(C)
    np.testing.assert_allclose(found.toarray(), P, rtol=1e-6)
    assert found.nnz == 4
    assert found.dtype == np.float32
    np.testing.assert_allclose(complete.conditional_share(C * 1000).toarray(), P, rtol=1e-6)


def test_conditional_share_does_not_change_the_counts() -> None:
    before = C.toarray()
    complete.conditional_share(C)
    np.testing.assert_array_equal(C.toarray(), before)


def test_conditional_share_without_a_diagonal() -> None:
    bare = csr_matrix(np.array([[0, 4.0, 1, 0], [4, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]))
    expected = [[0, 1, 0.25, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    np.testing.assert_array_equal(complete.conditional_share(bare).toarray(), expected)


def test_conditional_share_drops_small_shares() -> None:
    rare = csr_matrix(np.array([[1000.0, 9, 11], [9, 1000, 0], [11, 0, 1000]]))
    expected = np.array([[0, 0, 0.011], [0, 0, 0], [0.011, 0, 0]])
    np.testing.assert_allclose(complete.conditional_share(rare).toarray(), expected, rtol=1e-6)


def test_conditional_share_keeps_the_largest_shares(rng: np.random.Generator) -> None:
    counts = np.triu(rng.uniform(1, 50, (80, 80)), 1)
    counts += counts.T + 100 * np.eye(80)
    found = complete.conditional_share(csr_matrix(counts)).toarray()
    np.fill_diagonal(counts, 0)
    for row, shares in zip(found, counts / 100):
        largest = np.sort(np.argsort(-shares)[: complete.KEPT])
        np.testing.assert_array_equal(np.flatnonzero(row), largest)
        np.testing.assert_allclose(row[largest], shares[largest], rtol=1e-6)


def test_conditional_share_keeps_no_more_where_shares_are_equal() -> None:
    found = complete.conditional_share(csr_matrix(np.ones((80, 80)) + np.eye(80)))
    assert np.diff(found.indptr).max() <= complete.KEPT


def test_own_shares_are_those_of_the_whole_product(
    all_labels: csr_matrix, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = complete.conditional_share(csr_matrix(all_labels.T @ all_labels))
    for pairs in (1 << 19, 150, 1):
        monkeypatch.setattr(complete, "PAIRS", pairs)
        found = complete.own_conditional_share(all_labels)
        assert found.dtype == np.float32
        for part in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))


def test_the_visible_share_is_that_of_the_whole_product(all_labels: csr_matrix) -> None:
    shown = hide_labels(all_labels, 0.4, random_state=1)
    ratios = []
    for counts in (csr_matrix(shown.T @ shown), csr_matrix(all_labels.T @ all_labels)):
        singles = counts.diagonal().sum()
        ratios.append(float((counts.sum() - singles) / singles))
    found = complete.visible_share(shown, csr_matrix(all_labels.T @ all_labels))
    assert found == ratios[0] / ratios[1]


def test_complete_by_hand() -> None:
    Y = csr_matrix(np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 0, 0]], np.float32))
    completed = complete.complete(Y, csr_matrix(P), 0.5)
    expected = np.array([[1, 0.25, 0], [0.5, 1, 0.25], [1, 0.3, 1], [0, 0, 0]])
    np.testing.assert_allclose(completed.toarray(), expected, rtol=1e-6)
    assert completed.dtype == np.float32


def test_the_sum_of_shares_is_at_most_1() -> None:
    Y = csr_matrix(np.array([[1, 0, 1]], np.float32))
    both = csr_matrix(np.array([[0, 0.8, 0], [0, 0, 0], [0, 0.7, 0]]))
    np.testing.assert_allclose(complete.complete(Y, both, 0.5).toarray(), [[1, 0.5, 1]])


def test_without_strength_nothing_is_added() -> None:
    Y = csr_matrix(np.array([[1, 0, 0]], np.float32))
    assert complete.complete(Y, csr_matrix(P), 0) is Y


def test_labels_observed_as_absent_stay_absent() -> None:
    Y = csr_matrix(np.array([[0, 1, 0], [0, 1, 0]], np.float32))
    observed = csr_matrix(np.array([[1, 1, 0], [0, 1, 0]], np.float32))
    completed = complete.complete(Y, csr_matrix(P), 1.0, observed)
    np.testing.assert_allclose(completed.toarray(), [[0, 1, 0.5], [1, 1, 0.5]])
    assert completed.nnz == 5


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.floats(0.01, 1), st.booleans())
def test_completed_labels(seed: int, strength: float, with_observed: bool) -> None:
    rng = np.random.default_rng(seed)
    Y = (rng.random((8, 6)) < 0.3).astype(np.float32)
    shares = rng.random((6, 6)).astype(np.float32) * (rng.random((6, 6)) < 0.5)
    observed = np.maximum(rng.random((8, 6)) < 0.3, Y) if with_observed else Y
    given_observed = csr_matrix(observed) if with_observed else None
    completed = complete.complete(csr_matrix(Y), csr_matrix(shares), strength, given_observed)
    expected = np.where(Y > 0, 1, np.where(observed > 0, 0, strength * np.minimum(Y @ shares, 1)))
    np.testing.assert_allclose(completed.toarray(), expected, rtol=1e-5)
    assert completed.has_sorted_indices
    assert (completed.data > 0).all()
    assert (completed.data <= 1).all()


def test_cosines_of_labels() -> None:
    expected = [[1, 2 / 8**0.5, 0], [2 / 8**0.5, 1, 1 / 20**0.5], [0, 1 / 20**0.5, 1]]
    np.testing.assert_allclose(complete.cosines(C).toarray(), expected, rtol=1e-6)
    without_diagonal = csr_matrix(np.array([[0.0, 2, 0], [2, 0, 8], [0, 8, 0]]))
    np.testing.assert_allclose(complete.cosines(without_diagonal).toarray()[1], [0.5, 0, 1])
    assert not complete.cosines(csr_matrix((3, 3))).nnz
