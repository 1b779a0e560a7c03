"""Re-ranking of the first rank and of the ranks behind it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from exmlds.stages import top_rerank


def lists(rng: np.random.Generator, n: int = 300, k: int = 7) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows whose logits ignore the second column of the evidence, which has another scale."""
    evidence = rng.normal(size=(n, k, 3)).astype(np.float32) * np.array([1, 20, 0], np.float32)
    logits = -np.sort(-evidence[..., 0].astype(np.float64), axis=1)
    hits = rng.random((n, k)) < 1 / (1 + np.exp(-logits - evidence[..., 1] / 20))
    logits[hits.sum(axis=1) == 1, k - 2 :] = -np.inf  # short lists
    return evidence, logits, hits & np.isfinite(logits)


def ordered(weights: np.ndarray, evidence: np.ndarray, logits: np.ndarray) -> list[int]:
    """The plain twin of `order`, for one row."""
    for_first, behind = (logits + evidence.astype(np.float64) @ w for w in weights)
    first = int(np.argmax(for_first[: top_rerank.TOP1_CANDIDATES]))
    others = [label for label in range(len(logits)) if label != first]
    return [first, *sorted(others, key=lambda label: -behind[label])]


def first_is_a_hit(scores: np.ndarray, hits: np.ndarray) -> float:
    return np.exp(scores)[hits].sum() / np.exp(scores).sum()


def hits_are_first(scores: np.ndarray, hits: np.ndarray) -> float:
    """The share of the hit set among all sets of its size."""
    sets = [np.exp(scores[list(some)].sum()) for some in combinations(range(len(scores)), hits.sum())]
    return np.exp(scores[hits].sum()) / sum(sets)


def loss(w, likelihood, evidence, logits, hits, sample_weight) -> float:  # type: ignore[no-untyped-def]
    """Row by row, without pads: the negative log-likelihood and the ridge penalty."""
    total = top_rerank.RIDGE / 2 * float(w @ w)
    for row, present in enumerate(np.isfinite(logits)):
        if 0 < hits[row].sum() < present.sum():
            scores = logits[row, present] + evidence[row, present] @ w
            total -= sample_weight[row] * np.log(likelihood(scores, hits[row, present]))
    return total


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_maximize_both_penalized_likelihoods(weighted: bool, rng: np.random.Generator) -> None:
    evidence, logits, hits = lists(rng, 200)
    sample_weight = rng.uniform(0.5, 3, len(hits)) if weighted else np.ones(len(hits))
    found = top_rerank.fit(evidence, logits, hits, sample_weight if weighted else None)
    candidates = evidence[:, :5][np.isfinite(logits[:, :5])]
    scale = candidates.std(axis=0, dtype=np.float64)
    scale[2] = 1
    others = [ordered(found * [[1], [0]], *row)[1:] for row in zip(evidence, logits)]
    models = {
        first_is_a_hit: (evidence[:, :5], logits[:, :5], hits[:, :5]),
        hits_are_first: tuple(
            np.array([a[row] for a, row in zip(array, others)]) for array in (evidence, logits, hits)
        ),
    }
    for weights, (likelihood, theirs) in zip(found, models.items()):
        best = minimize(loss, np.zeros(3), args=(likelihood, theirs[0] / scale, *theirs[1:], sample_weight))
        np.testing.assert_allclose(weights * scale, best.x, atol=5e-3)
    assert (found[:, 1] * 20 > 0.3).all()
    assert not found[:, 2].any()


@pytest.mark.parametrize("k", [1, 3, 9])
def test_order_is_that_of_its_twin(k: int, rng: np.random.Generator) -> None:
    evidence, logits, _ = lists(rng, 200, k)
    weights = rng.normal(size=(2, 3)) * [1, 0.1, 1]
    found = top_rerank.order(weights, evidence, logits)
    np.testing.assert_array_equal(found, [ordered(weights, *row) for row in zip(evidence, logits)])


def test_order_by_hand() -> None:
    logits = np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0], [3.0, 2.0, -np.inf]])
    evidence = np.zeros((3, 3, 1))
    evidence[0, 2], evidence[1, 1], evidence[2, 2] = 4, 0.5, 9
    by_first, by_both = np.array([[1.0], [0.0]]), np.array([[1.0], [-9.0]])
    np.testing.assert_array_equal(
        top_rerank.order(by_first, evidence, logits), [[2, 0, 1], [0, 1, 2], [0, 1, 2]]
    )
    np.testing.assert_array_equal(
        top_rerank.order(by_both, evidence, logits), [[2, 0, 1], [0, 2, 1], [0, 1, 2]]
    )


def test_more_hits_come_first(rng: np.random.Generator) -> None:
    evidence, logits, hits = lists(rng, 2_000)
    weights = top_rerank.fit(evidence[:1_000], logits[:1_000], hits[:1_000])
    order = top_rerank.order(weights, evidence[1_000:], logits[1_000:])
    found = np.take_along_axis(hits[1_000:], order, axis=1)
    for k in (1, 3):
        assert found[:, :k].mean() > hits[1_000:, :k].mean() + 0.03
    np.testing.assert_array_equal(found.sum(axis=1), hits[1_000:].sum(axis=1))


@pytest.mark.parametrize("hit", [False, True])
def test_uninformative_rows_give_zero_weights(hit: bool) -> None:
    evidence, logits = np.ones((4, 5, 2), np.float32), np.zeros((4, 5))
    assert not top_rerank.fit(evidence, logits, np.full((4, 5), hit)).any()
    assert not top_rerank.fit(evidence[:0], logits[:0], np.zeros((0, 5), bool)).any()


def test_two_labels_fit_the_first_rank_only(rng: np.random.Generator) -> None:
    evidence, logits, hits = (a[:, :2] for a in lists(rng))
    weights = top_rerank.fit(evidence, logits, hits)
    assert weights[0].any()
    assert not weights[1].any()
