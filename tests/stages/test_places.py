"""Who takes the first places of a row."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from exmlds.stages import places


def lists(rng: np.random.Generator, n: int = 300, k: int = 7) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows whose sums know nothing of the second piece of evidence, which has a scale of its own."""
    known = rng.normal(size=(n, k, 3)).astype(np.float32) * np.array([1, 20, 0], np.float32)
    sums = -np.sort(-known[..., 0].astype(np.float64), axis=1)
    hits = rng.random((n, k)) < 1 / (1 + np.exp(-sums - known[..., 1] / 20))
    sums[hits.sum(axis=1) == 1, k - 2 :] = -np.inf  # short lists
    return known, sums, hits & np.isfinite(sums)


def taken(weights: list[np.ndarray], known: np.ndarray, sums: np.ndarray) -> list[int]:
    """The plain twin of `order`, for one row."""
    left = list(range(len(sums)))
    seated = []
    for w in weights:
        scores = [sums[label] + known[label].astype(np.float64) @ w for label in left[: places.RIVALS]]
        seated.append(left.pop(int(np.argmax(scores))))
    return seated + left


def loss(w: np.ndarray, known: np.ndarray, sums: np.ndarray, hits: np.ndarray, counted: np.ndarray) -> float:
    """Row by row: −log of the share that hits have of all odds, and the ridge."""
    total = places.RIDGE / 2 * float(w @ w)
    for row in range(len(hits)):
        if 0 < hits[row].sum() < np.isfinite(sums[row]).sum():
            odds = np.exp(sums[row] + known[row] @ w)
            total -= counted[row] * np.log(odds[hits[row]].sum() / odds.sum())
    return total


@pytest.mark.parametrize("weighed", [False, True])
def test_weights_are_the_most_likely_ones_place_by_place(weighed: bool, rng: np.random.Generator) -> None:
    known, sums, hits = lists(rng)
    counted = rng.uniform(0.5, 3, len(hits)) if weighed else np.ones(len(hits))
    found = places.fit(known, sums, hits, counted if weighed else None)
    scale = known[:, :5].reshape(-1, 3).std(axis=0, dtype=np.float64)
    scale[2] = 1
    for place, weights in enumerate(found):
        orders = [taken(list(found[:place]), *row)[place : place + 5] for row in zip(known, sums)]
        theirs = [np.array([a[row] for a, row in zip(array, orders)]) for array in (known, sums, hits)]
        asked = (theirs[0] / scale, *theirs[1:], counted)
        best = minimize(loss, np.zeros(3), args=asked)
        np.testing.assert_allclose(weights * scale, best.x, atol=5e-3)
    assert found[0, 1] * 20 > 0.3
    assert not found[:, 2].any()


@pytest.mark.parametrize("k", [1, 3, 7, 12])
def test_order_is_that_of_its_twin(k: int, rng: np.random.Generator) -> None:
    known, sums, _ = lists(rng, 200, k)
    weights = rng.normal(size=(places.PLACES, 3)) * [1, 0.1, 1]
    found = places.order(weights, known, sums)
    np.testing.assert_array_equal(found, [taken(list(weights[:k]), *row) for row in zip(known, sums)])


def test_order_by_hand() -> None:
    sums = np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0], [3.0, 2.0, -np.inf]])
    known = np.zeros((3, 3, 1))
    known[0, 2], known[1, 1], known[2, 2] = 4, 0.5, 9
    weights = np.array([[1.0], [-9.0]])
    np.testing.assert_array_equal(places.order(weights[:1], known, sums), [[2, 0, 1], [0, 1, 2], [0, 1, 2]])
    np.testing.assert_array_equal(places.order(weights, known, sums), [[2, 0, 1], [0, 2, 1], [0, 1, 2]])


def test_more_rows_have_hits_in_front(rng: np.random.Generator) -> None:
    known, sums, hits = lists(rng, 2_000)
    weights = places.fit(known[:1_000], sums[:1_000], hits[:1_000])
    order = places.order(weights, known[1_000:], sums[1_000:])
    ordered = np.take_along_axis(hits[1_000:], order, axis=1)
    for k in (1, 3):
        assert ordered[:, :k].mean() > hits[1_000:, :k].mean() + 0.03
    np.testing.assert_array_equal(ordered.sum(axis=1), hits[1_000:].sum(axis=1))


@pytest.mark.parametrize("hit", [False, True])
def test_nothing_to_tell_apart(hit: bool) -> None:
    known, sums = np.ones((4, 5, 2), np.float32), np.zeros((4, 5))
    assert not places.fit(known, sums, np.full((4, 5), hit)).any()
    assert not places.fit(known[:0], sums[:0], np.zeros((0, 5), bool)).any()


def test_fewer_labels_than_places(rng: np.random.Generator) -> None:
    known, sums, hits = (a[:, :2] for a in lists(rng))
    weights = places.fit(known, sums, hits)
    assert weights[0].any()
    assert not weights[1:].any()
