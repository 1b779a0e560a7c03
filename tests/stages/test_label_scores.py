"""Scores of all labels by linear models."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

from exmlds.stages import label_scores

pytestmark = pytest.mark.twins


@pytest.mark.parametrize("is_sparse", [False, True])
def test_the_best_labels_are_those_of_all_margins(
    is_sparse: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_scores, "LABELS", 7)
    X = csr_matrix(random_array((9, 12), density=0.4, rng=rng, dtype=np.float32))
    W = random_array((20, 12), density=0.5, rng=rng, dtype=np.float32).toarray()
    bias = rng.normal(size=20).astype(np.float32)
    if is_sparse:
        ids, margins = label_scores.top_labels_sparse(X, csr_matrix(W.T), bias, 5)
    else:
        ids, margins = label_scores.top_labels(X.toarray(), W, bias, 5)
    all_margins = X.toarray() @ W.T + bias
    np.testing.assert_array_equal(ids, np.argsort(-all_margins, axis=1, kind="stable")[:, :5])
    np.testing.assert_allclose(margins, np.take_along_axis(all_margins, ids, axis=1), rtol=1e-5)


def test_of_equal_labels_the_first_is_taken_and_few_labels_are_padded() -> None:
    ids, margins = label_scores.top_labels(np.ones((1, 1), np.float32), np.ones((3, 1), np.float32), None, 5)
    assert ids.tolist() == [[0, 1, 2, -1, -1]]
    assert label_scores.squash(margins)[0, 2:].tolist() == [pytest.approx(1 / (1 + np.exp(-1))), 0, 0]


def test_scores_keep_the_order_of_margins_within_0_and_1() -> None:
    scores = label_scores.squash(np.array([1e9, 3, 0, -3, -1e9], np.float32))
    assert (np.diff(scores) <= 0).all()
    assert scores.min() > 0
    assert scores.max() <= 1
    assert scores[2] == 0.5
