"""Merging what parts predict, by hand."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

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


def test_shares_of_parts_are_a_softmax() -> None:
    router = Router(np.array([[1, 0], [0, 1], [-1, -1]], np.float32))
    shares = partition.shares(router, np.array([[4, 0], [0.5, 0.5]], np.float32))
    odds = np.exp([[4, 0, -4], [0.5, 0.5, -1]])
    np.testing.assert_allclose(shares, odds / odds.sum(axis=1, keepdims=True), rtol=1e-5)


def test_rows_belong_to_the_parts_where_most_rows_of_their_labels_are() -> None:
    # Label 0 is mostly in part 0, label 1 in part 1; label 2, with one row, in part 2.
    Y = csr_matrix(np.array([[1, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [1, 1, 1], [0, 0, 0]], np.float32))
    top = np.array([0, 0, 1, 1, 2, 2])
    homes = partition.find_homes(top, Y, 3, overlap=9)
    assert homes.parts.tolist() == [0, 1, 2]
    everywhere = partition.memberships(top, Y, homes, 3)
    assert everywhere.tolist() == [[1, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [1, 1, 1], [0, 0, 1]]
    # A row is worth more to label 1, with three rows, than to label 0, with four.
    one = partition.memberships(top, Y, partition.find_homes(top, Y, 3, overlap=1 / 6), 3)
    assert one.tolist() == [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1]]
    alone = partition.memberships(top, Y, partition.find_homes(top, Y, 3, overlap=0), 3)
    assert alone.sum(axis=1).tolist() == [1] * 6
