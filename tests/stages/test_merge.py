"""Merging what parts predict, by hand."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from exmlds.stages import merge, partition, stacking
from exmlds.stages.partition import Router
from exmlds.stages.stacking import HeldOutPairs


def test_the_mean_by_shares_by_hand() -> None:
    ids = np.array([[[3, 1], [1, -1]], [[0, -1], [2, 0]]])
    scores = np.array([[[0.8, 0.5], [0.9, 0]], [[0.5, 0], [0.5, 0.5]]], np.float32)
    weights = np.array([[0.5, 0.5], [0.75, 0.25]], np.float32)[:, :, None]
    merged = merge.mix(ids, scores, np.broadcast_to(weights, ids.shape))
    assert merged.ids[:, :2].tolist() == [[1, 3], [0, 2]]
    np.testing.assert_allclose(merged.scores[:, :2], [[0.7, 0.4], [0.5, 0.125]])
    assert (merged.ids[:, 2:] == -1).all()


def test_the_weights_of_parts_by_hand() -> None:
    counts = csr_matrix(np.array([[8, 0, 5], [2, 4, 0], [9, 9, 9]], np.float32))
    ids, totals = np.array([[[0, 2], [1, -1]]]), np.array([10, 4, 5])
    found = merge.label_weights(ids, np.array([[0, 1]]), np.array([[0.75, 0.25]]), counts, totals)
    first, second = 0.75**0.7, 0.25**0.7
    np.testing.assert_allclose(found[0, 0, 0], 1.2 * first / (1.2 * first + 0.6 * second), rtol=1e-6)
    np.testing.assert_allclose(found[0, 0, 1], 1.4 * first / (1.4 * first + 0.4 * second), rtol=1e-6)
    np.testing.assert_allclose(found[0, 1, 0], 1.4 * second / (0.4 * first + 1.4 * second), rtol=1e-6)
    alone = merge.label_weights(ids[:, :1], np.array([[0]]), np.array([[1.0]]), counts, totals)
    np.testing.assert_allclose(alone, 1, rtol=1e-6)


def test_calibration_keeps_the_order_and_gives_shares_of_hits() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random((20_000, 1)).astype(np.float32)
    merged = merge.Merged(np.zeros((20_000, 1), np.int64), scores)
    hits = rng.random(20_000) < scores[:, 0] / 2  # each part claims twice as much as is true
    evidence = merge.evidence(merged)
    pairs = HeldOutPairs(evidence[:, 0], merged.ids[:, 0], hits)
    stacker = stacking.calibrate_alone(pairs)
    stacking.check(stacker, merge.N_EVIDENCE, 1)
    found = stacking.probabilities(stacker, stacking.logits(stacker, evidence, merged.ids))
    assert np.abs(found - scores / 2).mean() < 0.02
    order = np.argsort(scores[:, 0])
    assert (np.diff(found[order, 0]) >= 0).all()


def test_without_hits_probabilities_stay() -> None:
    merged = merge.Merged(np.zeros((2, 1), np.int64), np.array([[0.25], [0.5]], np.float32))
    evidence = merge.evidence(merged)
    stacker = stacking.calibrate_alone(HeldOutPairs(evidence[:, 0], merged.ids[:, 0], np.zeros(2, bool)))
    found = stacking.probabilities(stacker, stacking.logits(stacker, evidence, merged.ids))
    np.testing.assert_allclose(found, merged.scores, atol=1e-3)


def test_rows_near_the_border_belong_to_two_parts() -> None:
    router = Router(np.array([[1, 0], [0, 1], [-1, -1]], np.float32))
    X = np.array([[4, 0], [1, 0.9], [0, 4], [0.9, 1]], np.float32)
    shares = partition.shares(router, X)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-6)
    margin = partition.overlap_margin(shares, 0.5)
    belongs = partition.memberships(shares, margin)
    assert belongs.tolist() == [[1, 0, 0], [1, 1, 0], [0, 1, 0], [1, 1, 0]]
    alone = partition.memberships(shares, partition.overlap_margin(shares, 0.0))
    assert alone.sum(axis=1).tolist() == [1, 1, 1, 1]
