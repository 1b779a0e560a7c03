"""Blending votes and margins into probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from exmlds.stages import blend


def lists(rng: np.random.Generator, n: int = 400, k: int = 10) -> tuple[np.ndarray, ...]:
    votes = -np.sort(-rng.random((n, k), dtype=np.float32), axis=1)
    margins = rng.normal(size=(n, k)).astype(np.float32)
    counts = rng.integers(1, 500, (n, k))
    return votes, margins, counts


def test_evidence_by_hand() -> None:
    votes = np.array([[0.5, 0.0]], np.float32)
    margins = np.array([[-9.0, 2.0]], np.float32)
    known = blend.evidence(votes, margins, np.array([[1, 0]]))
    assert known.shape == (1, 2, 12)
    v, z = np.log(0.5), -blend.MARGIN
    expected = [v, 0.5, z, np.tanh(z), 0, v * z, 0, 0, z * z, v * v, 0, z - 2]
    np.testing.assert_allclose(known[0, 0], expected, rtol=1e-6)
    v, z = np.log(blend.FEWEST_VOTES), 2
    expected = [v, 0, z, np.tanh(z), 0, v * z, 0, 0, z * z, v * v, np.log(2), 0]
    np.testing.assert_allclose(known[0, 1], expected, rtol=1e-6)


def test_sums_are_those_of_the_regression_and_probabilities_are_level(rng: np.random.Generator) -> None:
    votes, margins, counts = lists(rng)
    known = blend.evidence(votes, margins, counts).reshape(-1, 12)
    truth = 1 / (1 + np.exp(-(2 * margins + np.log(votes + 1e-3)).ravel()))
    hits = rng.random(len(truth)) < truth
    found = blend.fit(known, hits)
    sums, probabilities = blend.apply(found, known)
    scaled = (known - known.mean(axis=0)) / known.std(axis=0)
    weights = np.tile(1 / np.arange(1, 11), 400)
    weights *= len(weights) / weights.sum()
    theirs = LogisticRegression(max_iter=1_000).fit(scaled, hits, sample_weight=weights)
    theirs = theirs.decision_function(scaled)
    np.testing.assert_allclose(sums, theirs, atol=0.1, rtol=0.05)
    assert np.corrcoef(probabilities, truth)[0, 1] > 0.97
    order = np.argsort(sums)
    assert (np.diff(probabilities[order]) >= 0).all()
    for part in np.array_split(order, 10):  # of those with probability p a share p is right
        assert abs(probabilities[part].mean() - hits[part].mean()) < 0.03


def test_weights_count(rng: np.random.Generator) -> None:
    known = blend.evidence(*lists(rng)).reshape(-1, 12)
    hits = np.arange(len(known)) % 2 == 0
    first, second = (blend.fit(known, hits, np.where(hits, weight, 1.0)) for weight in (1.0, 9.0))
    assert blend.apply(second, known)[0].mean() > blend.apply(first, known)[0].mean() + 1


@pytest.mark.parametrize("value", [True, False])
def test_nothing_to_tell_apart_leaves_the_order_of_votes(value: bool, rng: np.random.Generator) -> None:
    votes, margins, counts = lists(rng, 5, 4)
    known = blend.evidence(votes, margins, counts)
    found = blend.fit(known.reshape(-1, 12), np.full(20, value))
    sums, probabilities = blend.apply(found, known)
    assert (np.diff(sums, axis=1) <= 0).all()
    assert ((probabilities > 0) & (probabilities <= 1)).all()
    assert (probabilities > 0.5).all() == value
