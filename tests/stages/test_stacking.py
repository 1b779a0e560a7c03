"""Stacking: calibrated probabilities from votes, margins and other evidence."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.linear_model import LogisticRegression

from exmlds.stages import stacking


def lists(rng: np.random.Generator, n: int = 400, k: int = 10) -> tuple[np.ndarray, ...]:
    votes = -np.sort(-rng.random((n, k), dtype=np.float32), axis=1)
    margins = rng.normal(size=(n, k)).astype(np.float32)
    counts = rng.integers(1, 500, (n, k))
    return votes, margins, counts


def applied(stacker: stacking.Stacker, evidence: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, ...]:
    logits = stacking.logits(stacker, evidence, labels)
    return logits, stacking.probabilities(stacker, logits)


def test_evidence_by_hand() -> None:
    votes = np.array([[0.5, 0.0]], np.float32)
    margins = np.array([[-9.0, 2.0]], np.float32)
    evidence = stacking.build_evidence(votes, margins, np.array([[1, 0]]))
    assert evidence.shape == (1, 2, 12)
    v, z = np.log(0.5), -stacking.MAX_MARGIN
    expected = [v, 0.5, z, np.tanh(z), 0, v * z, 0, 0, z * z, v * v, 0, z - 2]
    np.testing.assert_allclose(evidence[0, 0], expected, rtol=1e-6)
    v, z = np.log(stacking.MIN_SHARE), 2
    expected = [v, 0, z, np.tanh(z), 0, v * z, 0, 0, z * z, v * v, np.log(2), 0]
    np.testing.assert_allclose(evidence[0, 1], expected, rtol=1e-6)


def test_logits_are_those_of_the_regression_and_probabilities_are_calibrated(
    rng: np.random.Generator,
) -> None:
    votes, margins, counts = lists(rng)
    evidence = stacking.build_evidence(votes, margins, counts).reshape(-1, 12)
    truth = 1 / (1 + np.exp(-(2 * margins + np.log(votes + 1e-3)).ravel()))
    hits = rng.random(len(truth)) < truth
    labels = np.zeros(len(hits), int)
    found = stacking.fit(stacking.HeldOutPairs(evidence, labels, hits))
    logits, probabilities = applied(found, evidence, labels)
    scaled = (evidence - evidence.mean(axis=0)) / evidence.std(axis=0)
    weights = np.tile(1 / np.arange(1, 11), 400)
    weights *= len(weights) / weights.sum()
    theirs = LogisticRegression(max_iter=1_000).fit(scaled, hits, sample_weight=weights)
    theirs = theirs.decision_function(scaled)
    np.testing.assert_allclose(logits, theirs, atol=0.1, rtol=0.05)
    assert np.corrcoef(probabilities, truth)[0, 1] > 0.97
    order = np.argsort(logits)
    assert (np.diff(probabilities[order]) >= 0).all()
    for part in np.array_split(order, 10):  # a share p of the pairs with probability p is true
        assert abs(probabilities[part].mean() - hits[part].mean()) < 0.03


def test_weights_count(rng: np.random.Generator) -> None:
    evidence = stacking.build_evidence(*lists(rng)).reshape(-1, 12)
    hits, labels = np.arange(len(evidence)) % 2 == 0, np.zeros(len(evidence), int)
    pairs = [
        stacking.HeldOutPairs(evidence, labels, hits, np.where(hits, weight, 1.0)) for weight in (1.0, 9.0)
    ]
    first, second = (applied(stacking.fit(theirs), evidence, labels)[0] for theirs in pairs)
    assert second.mean() > first.mean() + 1


def biased_pairs(rng: np.random.Generator, label_bias: np.ndarray, n: int = 800) -> stacking.HeldOutPairs:
    """Pairs whose labels are true more or less often than the evidence predicts."""
    votes, margins, counts = lists(rng, n)
    evidence = stacking.build_evidence(votes, margins, counts).reshape(-1, 12)
    labels = rng.integers(0, len(label_bias), len(evidence))
    odds = 1.5 * margins.ravel() - 1 + label_bias[labels]
    return stacking.HeldOutPairs(evidence, labels, rng.random(len(evidence)) < 1 / (1 + np.exp(-odds)))


@pytest.mark.parametrize("weighted", [False, True])
def test_label_biases_are_ridge_estimates(weighted: bool, rng: np.random.Generator) -> None:
    true = rng.normal(0, 1, 12)
    pairs = biased_pairs(rng, true)
    if weighted:
        pairs = pairs._replace(weights=rng.uniform(0.5, 2, len(pairs.hits)))
    stacker = stacking.fit(pairs)
    found = stacking.fit_label_bias(stacker, pairs, 14)
    logits, _ = applied(stacker, pairs.evidence, pairs.labels)
    weights = np.ones(len(logits)) if pairs.weights is None else pairs.weights
    p = 1 / (1 + np.exp(-logits))
    residual, curvature, noise = np.zeros(14), np.zeros(14), np.zeros(14)
    for i, label in enumerate(pairs.labels):
        residual[label] += weights[i] * (pairs.hits[i] - p[i])
        curvature[label] += weights[i] * p[i] * (1 - p[i])
        noise[label] += weights[i] ** 2 * p[i] * (1 - p[i])
    ridge = stacking.RIDGE_FACTOR * (curvature**2).sum() / (residual**2 - noise).sum()
    for label in range(12):
        own = pairs.labels == label
        signs = np.where(pairs.hits[own], 1, -1)

        def loss(x: float) -> float:
            return weights[own] @ np.logaddexp(0, -signs * (logits[own] + x)) + ridge * x * x / 2  # noqa: B023

        np.testing.assert_allclose(found.label_bias[label], minimize_scalar(loss).x, atol=1e-4)
    assert not found.label_bias[12:].any()  # labels without a pair
    assert np.corrcoef(found.label_bias[:12], true)[0, 1] > 0.9
    theirs, probabilities = applied(found, pairs.evidence, pairs.labels)
    np.testing.assert_allclose(theirs - logits, found.label_bias[pairs.labels], atol=1e-5)
    order = np.argsort(theirs)
    assert (np.diff(probabilities[order]) >= 0).all()


@pytest.mark.parametrize("uneven", [0.0, 1.0])
def test_unbiased_labels_get_almost_no_bias(uneven: float, rng: np.random.Generator) -> None:
    pairs = biased_pairs(rng, np.zeros(500))
    pairs = pairs._replace(weights=np.exp(uneven * rng.normal(size=len(pairs.hits))))
    found = stacking.fit_label_bias(stacking.fit(pairs), pairs, 500)
    assert np.abs(found.label_bias).max() < 0.3


def test_calibration_of_few_pairs_is_not_certain(rng: np.random.Generator) -> None:
    """Where the evidence separates hits from misses, each step is shrunk by one extra pair."""
    votes, margins, counts = lists(rng, 30, 4)
    margins = np.where(np.arange(120).reshape(30, 4) % 3 == 0, 2, -2).astype(np.float32)
    pairs = stacking.HeldOutPairs(
        stacking.build_evidence(votes, margins, counts).reshape(-1, 12),
        np.zeros(120, int),
        margins.ravel() > 0,
    )
    _, probabilities = applied(stacking.fit(pairs), pairs.evidence, pairs.labels)
    hit, other = (40 + 1 / 3) / 41, (1 / 3) / 81
    np.testing.assert_allclose(probabilities, np.where(pairs.hits, hit, other), rtol=1e-5)


@pytest.mark.parametrize("value", [True, False])
def test_uninformative_pairs_keep_the_order_of_votes(value: bool, rng: np.random.Generator) -> None:
    votes, margins, counts = lists(rng, 5, 4)
    evidence = stacking.build_evidence(votes, margins, counts)
    labels = np.tile(np.arange(4), (5, 1))
    pairs = stacking.HeldOutPairs(evidence.reshape(-1, 12), labels.ravel(), np.full(20, value))
    found = stacking.fit_label_bias(stacking.fit(pairs), pairs, 4)
    logits, probabilities = applied(found, evidence, labels)
    assert (np.diff(logits, axis=1) <= 0).all()
    assert ((probabilities > 0) & (probabilities <= 1)).all()
    assert (probabilities > 0.5).all() == value


@pytest.mark.parametrize("has_second", [False, True])
@pytest.mark.parametrize("has_lifts", [False, True])
@pytest.mark.parametrize("has_centroids", [False, True])
def test_every_column_of_the_evidence_has_a_name(
    has_second: bool, has_lifts: bool, has_centroids: bool
) -> None:
    votes, margins, counts = lists(np.random.default_rng(0))
    evidence = stacking.build_evidence(
        votes,
        margins,
        counts,
        votes if has_second else None,
        margins if has_lifts else None,
        margins if has_centroids else None,
    )
    assert evidence.shape[-1] == len(stacking.evidence_names(has_second, has_lifts, has_centroids))


def test_evidence_of_label_lift_by_hand() -> None:
    votes, margins, counts = np.array([[0.5]]), np.array([[2.0]]), np.array([[np.e]])
    evidence = stacking.build_evidence(votes, margins, counts, None, np.array([[0.7]]))
    np.testing.assert_allclose(evidence[0, 0, -3:], [0.7, 1.4, 0.7], rtol=1e-6)


def test_evidence_of_centroids_by_hand() -> None:
    votes, margins = np.array([[0.5, 0.2, 0.0]]), np.array([[2.0, 1.0, -np.inf]])
    similar = np.array([[0.4, 0.6, -np.inf]])
    evidence = stacking.build_evidence(votes, margins, np.full((1, 3), np.e), similarities=similar)
    np.testing.assert_allclose(evidence[0, 0, -5:], [0.4, 0.16, 0.8, 0.4, -0.2], rtol=1e-6)
    assert np.isfinite(evidence).all()
