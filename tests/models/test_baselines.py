"""What any method must beat."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from exmlds import FeatureNeighbors, MostFrequent, metrics
from exmlds.data import Dataset, load, make_xmc


def test_most_frequent_says_the_same_to_all() -> None:
    model = MostFrequent().fit(np.ones((4, 1)), [["b"], ["a", "b"], ["b", "c"], ["a"]])
    ids, scores = model.predict_topk(np.zeros((2, 1)), 2)
    assert model.classes_[ids].tolist() == [["b", "a"], ["b", "a"]]
    assert scores.tolist() == [[0.75, 0.5]] * 2


def test_neighbors_on_a_checkerboard() -> None:
    """Even rows have feature 0 and label 0, odd rows feature 1 and label 1."""
    X = np.tile(np.eye(2), (10, 1))
    model = FeatureNeighbors(n_neighbors=5).fit(X, X.astype(int))
    np.testing.assert_array_equal(model.predict(X).toarray(), X)
    assert model.score(X, X) == 1


@pytest.mark.twins
def test_uniform_votes_by_hand() -> None:
    X, Y = np.array([[0.0], [1.0], [3.0], [10.0]]), [["a"], ["a", "b"], ["b"], ["c"]]
    model = FeatureNeighbors(n_neighbors=3, metric="euclidean", vote="uniform").fit(X, Y)
    ids, scores = model.predict_topk([[0.4]], 5)
    assert model.classes_[ids[0, :2]].tolist() == ["a", "b"]
    np.testing.assert_allclose(scores, [[2 / 3, 2 / 3, 0, 0, 0]])
    assert ids[0].tolist()[2:] == [-1, -1, -1]


def test_rows_without_label_do_not_vote() -> None:
    X, Y = np.array([[1.0, 0], [1, 0], [0, 1]]), csr_matrix(np.array([[0, 0], [0, 0], [0, 1]]))
    model = FeatureNeighbors(n_neighbors=1).fit(X, Y)
    assert model.predict_topk([[1.0, 0]], 1)[0].tolist() == [[1]]


@pytest.mark.twins
def test_rows_without_feature_get_the_most_frequent() -> None:
    X, Y = np.array([[1.0, 0], [1, 0], [0, 1]]), [["a"], ["a"], ["b"]]
    for form in (X, csr_matrix(X)):
        model = FeatureNeighbors(n_neighbors=1).fit(form, Y)
        ids, scores = model.predict_topk(csr_matrix((1, 2)), 2)
        assert model.classes_[ids[0]].tolist() == ["a", "b"]
        np.testing.assert_allclose(scores, [[2 / 3, 1 / 3]])


@pytest.mark.twins
def test_the_threshold_leaves_the_row_itself_out() -> None:
    # All rows are alike and have a label of their own: asked of the others, none can be right.
    model = FeatureNeighbors(n_neighbors=1).fit(np.ones((20, 1)), np.eye(20))
    assert model.threshold_ == 0.5  # no held-out hit to choose by
    data = make_xmc(500, 100, 10, random_state=0)
    chosen = FeatureNeighbors(random_state=0).fit(data.X, data.Y).threshold_
    assert 0.05 < chosen < 0.8


@pytest.mark.twins
def test_rows_with_nothing_in_common_do_not_vote() -> None:
    X = np.zeros((100, 101))
    X[np.arange(100), np.arange(100)] = 1
    Y = [["rare"]] * 20 + [["common"]] * 80
    stranger = np.zeros((1, 101))
    stranger[0, 100] = 1  # a feature of no training row
    for form in (X, csr_matrix(X)):
        for vote in ("similarity", "uniform"):
            model = FeatureNeighbors(vote=vote).fit(form, Y)
            assert model.predict_labels(stranger, k=1) == [["common"]]
            assert model.predict_topk(csr_matrix(X[:1]), 2)[0].tolist() == [[1, -1]]  # its one match alone


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("n_neighbors", 3), ("metric", "euclidean"), ("vote", "uniform"), ("temperature", 1.0)],
)
def test_every_modelling_parameter_changes_the_result(
    library: Dataset, fitted: Callable[..., Any], parameter: str, value: object
) -> None:
    def scores(**parameters: Any) -> np.ndarray:
        model = fitted(FeatureNeighbors(threshold=0.5, **parameters), library, slice(300))
        return model.decision_function(library.X[300:]).toarray()

    assert not np.allclose(scores(), scores(**{parameter: value}))


@pytest.mark.data
@pytest.mark.slow
def test_neighbors_on_real_data_beat_the_most_frequent(real_data: Path) -> None:
    train, test = load("bibtex")
    best = {}
    for method in (MostFrequent, FeatureNeighbors):
        model = method(random_state=0).fit(train.X, train.Y)
        best[method] = metrics.precision_at_k(test.Y, model.predict_topk(test.X, 5), 1)
    assert best[FeatureNeighbors] > 0.55 > 0.2 > best[MostFrequent]
