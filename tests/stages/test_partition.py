"""Partitions by k-means and by the learnt gate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from exmlds.data import make_library
from exmlds.stages import partition


def blobs(rng: np.random.Generator, sizes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    truth = np.repeat(np.arange(len(sizes)), sizes)
    X = 3 * np.eye(len(sizes), 6)[truth] + 0.1 * rng.random((len(truth), 6))
    return X.astype(np.float32), truth


def test_similar_rows_fall_together(rng: np.random.Generator) -> None:
    X, truth = blobs(rng, (30, 20, 25))
    for form in (X, csr_matrix(X)):
        best = 0.0
        for seed in range(5):  # k-means may start badly
            router, parts = partition.fit(form, 3, 60, np.random.default_rng(seed))
            assert sorted(np.concatenate(parts)) == list(range(75))
            pure = sum(np.bincount(truth[rows]).max() for rows in parts if rows.size) / 75
            best = max(best, pure)
            assigned = router.assign(form, 3)
            assert sorted(assigned[0]) == [0, 1, 2]
            home = np.empty(75, int)
            for p, rows in enumerate(parts):
                home[rows] = p
            assert (assigned[:, 0] == home).mean() > 0.99
        assert best == 1


def test_no_part_is_above_the_cap(rng: np.random.Generator) -> None:
    X, _ = blobs(rng, (90, 5, 5))
    _, parts = partition.fit(X, 3, 40, rng)
    assert max(map(len, parts)) <= 40
    assert sorted(np.concatenate(parts)) == list(range(100))


def slow_assignment(scores: np.ndarray, cap: int) -> list[int]:
    """Rows in the order of their gaps go to their best part; those rejected try the next one, and so on."""
    ranked = np.argsort(-scores, axis=1, kind="stable")
    best, second = np.take_along_axis(scores, ranked[:, :2], axis=1).T
    waiting, homes, room = list(np.argsort(second - best, kind="stable")), {}, [cap] * scores.shape[1]
    for choice in range(scores.shape[1]):
        rejected = []
        for part in range(scores.shape[1]):
            for row in (row for row in waiting if ranked[row, choice] == part):
                if room[part]:
                    homes[row] = part
                    room[part] -= 1
                else:
                    rejected.append(row)
        waiting = rejected
    return [homes[row] for row in range(len(scores))]


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(2, 7), st.integers(0, 5))
def test_assignment_is_that_of_a_slow_one(seed: int, n: int, n_parts: int, spare: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 5, (n, n_parts)).astype(np.float32)  # many ties
    cap = -(-n // n_parts) + spare
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition, "SORTED", 7)
        assert partition._assign_with_cap(scores.copy(), cap).tolist() == slow_assignment(scores, cap)


def test_one_part_needs_no_centres(rng: np.random.Generator) -> None:
    router, parts = partition.fit(csr_matrix(np.eye(4)), 1, 9, rng)
    assert parts[0].tolist() == [0, 1, 2, 3]
    assert router.assign(csr_matrix(np.eye(4)), 3).tolist() == [[0]] * 4


def two_views(rng: np.random.Generator, n: int = 240) -> tuple[csr_matrix, np.ndarray, np.ndarray]:
    """Rows with a large feature unrelated to their labels and a small one that predicts them; neighbours."""
    loud, truth = rng.integers(0, 3, n), rng.permutation(np.arange(n) % 3)
    X = np.hstack([2 * np.eye(3)[loud], np.eye(3)[truth], 0.3 * rng.random((n, 4))])
    X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
    neighbors = np.array([rng.choice(np.flatnonzero(truth == own), 5) for own in truth])
    return csr_matrix(X), neighbors, truth


def homes(parts: list[np.ndarray]) -> np.ndarray:
    home = np.full(sum(map(len, parts)), -1)
    for p, rows in enumerate(parts):
        home[rows] = p
    assert (home >= 0).all()  # every row once
    return home


@pytest.mark.twins
def test_a_gate_keeps_neighbours_together(rng: np.random.Generator) -> None:
    X, neighbors, truth = two_views(rng)
    new, _, new_truth = two_views(rng)
    together = {"k-means": [], "gate": []}
    for seed in range(3):
        found = {
            "k-means": partition.fit(X, 3, 160, np.random.default_rng(seed)),
            "gate": partition.gate(X, neighbors, 3, 160, np.random.default_rng(seed)),
        }
        for way, (router, parts) in found.items():
            home = homes(parts)
            together[way].append((home[neighbors] == home[:, None]).mean())
            # New rows go where rows of their kind are.
            majority = np.array([np.bincount(truth[rows], minlength=3).argmax() for rows in parts])
            right = (majority[router.assign(new, 1)[:, 0]] == new_truth).mean()
            assert way == "k-means" or right > 0.99
        assert (found["gate"][0].assign(X, 1)[:, 0] == home).all()
    assert max(together["k-means"]) < 0.6
    assert min(together["gate"]) > 0.99


@pytest.mark.twins
def test_no_part_of_a_gate_is_above_the_cap(rng: np.random.Generator) -> None:
    X, truth = blobs(rng, (90, 5, 5))
    neighbors = np.array([rng.choice(np.flatnonzero(truth == own), 4) for own in truth])
    for cap in (40, 3):  # three parts of 3 could not hold the rows: as much as it takes
        _, parts = partition.gate(X, neighbors, 3, cap, rng)
        homes(parts)
        assert max(map(len, parts)) <= max(cap, 34)


@pytest.mark.twins
def test_no_part_of_a_gate_becomes_empty(rng: np.random.Generator) -> None:
    kind = rng.choice(5, 400, p=[0.5, 0.2, 0.15, 0.1, 0.05])
    X = np.hstack([np.eye(5)[kind] + rng.random((400, 5)) / 2, rng.random((400, 8))])
    neighbors = rng.integers(
        0, 400, (400, 5)
    )  # random neighbours, which one part for all rows would fit best
    _, parts = partition.gate(X, neighbors, 4, 400, rng)
    assert min(map(len, parts)) >= 20


def test_a_gate_is_the_same_from_the_same_seed(rng: np.random.Generator) -> None:
    X, neighbors, _ = two_views(rng)
    first, again, dense, longer = (
        partition.gate(form, neighbors, 3, 100, np.random.default_rng(5))
        for form in (X, X, X.toarray(), 4 * X)
    )
    for other in (again, dense, longer):  # nor do the form and the length of rows matter
        np.testing.assert_array_equal(first[0].centers, other[0].centers)
        np.testing.assert_array_equal(homes(first[1]), homes(other[1]))
    assert (first[0].centers.shape, first[0].centers.dtype) == ((3, 10), np.float32)


def test_a_gate_of_one_part_needs_no_centres(rng: np.random.Generator) -> None:
    X, neighbors, _ = two_views(rng)
    router, parts = partition.gate(X, neighbors, 1, 9, rng)
    assert parts[0].tolist() == list(range(240))
    assert router.assign(X, 3).tolist() == [[0]] * 240


def test_a_gate_takes_rows_without_neighbours_and_without_features(rng: np.random.Generator) -> None:
    X, neighbors, _ = two_views(rng)
    neighbors[::2] = -1  # as of rows whose labels no other has
    neighbors[1::2, 3:] = -1
    X = X.tolil()
    X[7] = 0
    router, parts = partition.gate(csr_matrix(X), neighbors, 3, 160, rng)
    homes(parts)
    assert np.isfinite(router.centers).all()
    _, alone = partition.gate(csr_matrix(X), np.full((240, 5), -1), 3, 160, rng)
    homes(alone)
    _, none = partition.gate(csr_matrix(X), np.empty((240, 0), np.int64), 3, 160, rng)
    homes(none)


def test_neighbourhood_counts_in_both_directions() -> None:
    """Reversed edges give the same gate, and an edge in both directions counts as two in one."""
    X, neighbors, _ = two_views(np.random.default_rng(0))
    reversed_ = [np.repeat(np.arange(240), 5)[neighbors.ravel() == row] for row in range(240)]
    backwards = np.full((240, max(map(len, reversed_))), -1)
    for row, own in enumerate(reversed_):
        backwards[row, : len(own)] = own

    def centers(neighbors: np.ndarray) -> np.ndarray:
        return partition.gate(X, neighbors, 3, 160, np.random.default_rng(0))[0].centers

    once = centers(neighbors)
    np.testing.assert_array_equal(centers(backwards), once)
    twice, both_ways = centers(np.hstack([neighbors, neighbors])), centers(np.hstack([neighbors, backwards]))
    np.testing.assert_array_equal(twice, both_ways)
    assert not np.array_equal(twice, once)  # a row counts once for itself
    assert not np.array_equal(centers(np.full((240, 1), -1)), once)


def test_means_of_labels_by_hand() -> None:
    Y = csr_matrix(np.array([[1, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 0]], np.float32))
    scores = np.array([[4, 0], [2, 8], [0, 2], [1, 5]], np.float32)
    first, second = np.array([3, 4]), np.array([2, 1])  # means of two labels; the third one has one row
    expected = [(first + second) / 2, first, second, scores[3]]
    np.testing.assert_allclose(partition.LabelMeans.of(Y) @ scores, expected)


def test_a_gate_by_labels_keeps_the_rows_of_a_label_together(rng: np.random.Generator) -> None:
    X, _, truth = two_views(rng)
    Y = csr_matrix(np.hstack([np.eye(3)[truth], np.eye(240)]).astype(np.float32))  # and a label for each row
    for seed in range(3):
        router = partition.gate_by_labels(X, Y, 3, 160, np.random.default_rng(seed))
        own = router.assign(X, 1)[:, 0]
        assert min(np.bincount(own[truth == label]).max() for label in range(3)) == 80


def test_more_starts_concentrate_labels_better() -> None:
    data = make_library(800, random_state=0)

    def concentration(n_starts: int) -> float:
        rng = np.random.default_rng(0)
        router = partition.gate_by_labels(data.X, data.Y, 5, 208, rng, n_starts=n_starts)
        shares, found = partition.shares(router, data.X), []
        for label in np.flatnonzero(np.bincount(data.Y.indices) > 1):
            rows = data.Y[:, [label]].nonzero()[0]
            mass = shares[rows].sum(axis=0, dtype=np.float64)
            found.append((mass * np.log(mass / mass.sum())).sum())
        return float(np.sum(found))

    few = [concentration(n_starts) for n_starts in (1, 2, 6)]
    assert few[0] <= few[1] <= few[2]
    assert few[0] < few[2]


@pytest.mark.twins
def test_l1_keeps_features_out_of_a_gate(rng: np.random.Generator) -> None:
    X, neighbors, _ = two_views(rng)
    used = [
        np.count_nonzero(partition.gate(X, neighbors, 3, 160, np.random.default_rng(0), l1=l1)[0].centers)
        for l1 in (0.0, 3.0, 1e6)
    ]
    assert used[0] == 30 > used[1] > used[2] == 0
