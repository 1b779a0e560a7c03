"""Merging what parts predict, by hand."""

from __future__ import annotations

import numpy as np

from exmlds.stages import merge, partition, stacking
from exmlds.stages.partition import Router


def test_the_mean_by_shares_by_hand() -> None:
    ids = np.array([[[3, 1], [1, -1]], [[0, -1], [2, 0]]])
    scores = np.array([[[0.8, 0.5], [0.9, 0]], [[0.5, 0], [0.5, 0.5]]], np.float32)
    merged = merge.mix(ids, scores, np.array([[0.5, 0.5], [0.75, 0.25]]))
    assert merged.ids[:, :2].tolist() == [[1, 3], [0, 2]]
    np.testing.assert_allclose(merged.scores[:, :2], [[0.7, 0.4], [0.5, 0.125]])
    np.testing.assert_allclose(merged.largest[:, :2], [[0.9, 0.8], [0.5, 0.5]])
    np.testing.assert_allclose(merged.share[:, :2], [[1, 0.5], [1, 0.25]])
    assert (merged.ids[:, 2:] == -1).all()


def test_evidence_has_what_a_stacker_requires() -> None:
    merged = merge.mix(np.array([[[3, 1]]]), np.array([[[0.8, 0.5]]], np.float32), np.ones((1, 1)))
    evidence = merge.evidence(merged, np.arange(4), np.ones((1, 1)))
    assert evidence.shape == (1, 2, merge.N_EVIDENCE)
    np.testing.assert_allclose(evidence[0, :, stacking.LOG_RANK], np.log([1, 2]), rtol=1e-6)
    np.testing.assert_allclose(evidence[0, :, 0], [np.log(4), 0], atol=1e-6)


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
