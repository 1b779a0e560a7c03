"""Splits, hidden labels, cross-fitting, choices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_matrix, csc_matrix, csr_array, csr_matrix

from exmlds import FeatureNeighbors, MostFrequent, metrics, selection
from exmlds.data import Dataset, make_xmc
from exmlds.selection import HoldOut


def test_random_split() -> None:
    train, held = selection.random_split(100, 0.3, random_state=0)
    assert (len(train), len(held)) == (70, 30)
    assert sorted([*train, *held]) == list(range(100))
    again = selection.random_split(100, 0.3, random_state=0)
    np.testing.assert_array_equal(held, again[1])
    assert len(selection.random_split(2, 0.01, random_state=0)[1]) == 1


@pytest.mark.parametrize(("n", "share"), [(10, 0.0), (10, 1.0), (1, 0.5)])
def test_impossible_splits_are_refused(n: int, share: float) -> None:
    with pytest.raises(ValueError, match=r"between 0 and 1|at least 2 rows"):
        selection.random_split(n, share)


def test_label_split_holds_out_every_label_in_its_share() -> None:
    Y = make_xmc(5_000, 50, 300, random_state=0).Y
    frequency = np.bincount(Y.indices, minlength=300)
    errors = []
    for split in (
        selection.label_split(Y, 0.2, random_state=1),
        selection.random_split(5_000, 0.2, random_state=1),
    ):
        train, held = split
        assert len(held) == 1_000
        assert sorted([*train, *held]) == list(range(5_000))
        in_held = np.bincount(Y[held].indices, minlength=300)
        common = frequency >= 5
        errors.append(np.abs(in_held / np.maximum(frequency, 1) - 0.2)[common].mean())
    assert errors[0] < errors[1] / 2
    train, _ = selection.label_split(Y, 0.2, random_state=1)
    kept = np.bincount(Y[train].indices, minlength=300)
    assert (kept[frequency > 1] > 0).all()


@pytest.mark.twins
def test_label_split_takes_any_sparse_matrix() -> None:
    Y = make_xmc(200, 20, 30, random_state=0).Y
    expected = selection.label_split(Y, 0.2, random_state=0)[1]
    for form in (csc_matrix(Y), csr_array(Y), coo_matrix(Y)):
        np.testing.assert_array_equal(selection.label_split(form, 0.2, random_state=0)[1], expected)


@pytest.mark.twins
def test_label_split_is_exact_in_number_when_labels_resist() -> None:
    for share in (0.1, 0.5, 0.9):
        Y = csr_matrix(np.repeat(np.eye(10), 3, axis=0))
        _, held = selection.label_split(Y, share, random_state=0)
        possible = min(round(30 * share), 20)  # each label keeps one of its three rows
        assert len(held) == possible


def test_hide_labels_is_the_fixed_recipe() -> None:
    Y = make_xmc(300, 20, 30, random_state=0).Y
    for fraction in (0.0, 0.2, 0.8, 1.0):
        hidden = selection.hide_labels(Y, fraction, random_state=3)
        keep = np.random.default_rng(3).random(Y.nnz) >= fraction
        rows = np.repeat(np.arange(300), np.diff(Y.indptr))
        expected = csr_matrix((np.ones(keep.sum()), (rows[keep], Y.indices[keep])), shape=Y.shape)
        assert (hidden != expected).nnz == 0
        assert hidden.nnz == keep.sum()
    with pytest.raises(ValueError, match="must be in"):
        selection.hide_labels(Y, 1.1)
    with pytest.raises(ValueError, match=r"must be an \(n, L\) matrix of labels. Got list instead"):
        selection.hide_labels([["a", "b"], ["c"]], 0.5)  # type: ignore[arg-type]


def test_hide_labels_does_not_touch_its_input() -> None:
    Y = make_xmc(50, 20, 30, random_state=0).Y
    before = Y.nnz
    selection.hide_labels(Y, 0.5, random_state=0)
    assert Y.nnz == before


def test_folds_hold_out_every_row_once() -> None:
    seen = np.zeros(11, int)
    for train, held in selection.folds(11, 3, random_state=0):
        assert not set(train) & set(held)
        assert len(train) + len(held) == 11
        seen[held] += 1
    assert (seen == 1).all()
    with pytest.raises(ValueError, match="from 2 to the 3 rows"):
        list(selection.folds(3, 4))


@pytest.mark.twins
def test_cross_predict_never_sees_the_row(library: Dataset) -> None:
    # With one neighbour, a model that has seen the row answers with the row's own labels.
    model = FeatureNeighbors(n_neighbors=1, threshold=0.5)
    seen = model.fit(library.X, library.Y).score(library.X, library.Y)
    ids, scores = selection.cross_predict(model, library.X, library.Y, 3, random_state=0)
    unseen = metrics.precision_at_k(library.Y, ids, 1)
    assert seen > 0.99
    assert 0.5 < unseen < 0.95
    assert scores.shape == (400, 3)


def test_choose_estimator_takes_the_better(library: Dataset) -> None:
    candidates = [MostFrequent(), FeatureNeighbors()]
    choice = selection.choose_estimator(candidates, library.X, library.Y, random_state=0)
    assert choice.best is candidates[1]
    assert choice.scores[1] > choice.scores[0]
    same = selection.choose_estimator([MostFrequent(), MostFrequent()], library.X, library.Y, random_state=0)
    assert same.position == 0
    worst = selection.choose_estimator(
        candidates, library.X, library.Y, scoring=lambda m, X, Y: -m.score(X, Y), random_state=0
    )
    assert worst.position == 0
    with pytest.raises(ValueError, match="no candidates"):
        selection.choose([], lambda x: 0.0)


def slow_threshold(hits: np.ndarray, scores: np.ndarray, n_true: int) -> float:
    best = 0.0
    for threshold in scores:
        predicted = scores >= threshold
        best = max(best, 2 * hits[predicted].sum() / (predicted.sum() + n_true))
    return best


def test_best_threshold_has_the_best_f1(rng: np.random.Generator) -> None:
    for _ in range(50):
        scores = rng.integers(1, 6, 12) / 5
        hits = rng.random(12) < scores
        threshold = selection.best_threshold(hits, scores, 10)
        predicted = scores >= threshold
        f1 = 2 * hits[predicted].sum() / (predicted.sum() + 10)
        assert f1 == pytest.approx(slow_threshold(hits, scores, 10))
    assert selection.best_threshold(np.zeros(3, bool), np.ones(3), 5) == 0.5


def test_threshold_for_a_precision() -> None:
    hits = np.array([True, True, False, True, False, False])
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.5])
    for precision, expected in ((1.0, 0.8), (0.75, 0.6), (0.7, 0.6), (0.5, 0.5), (0.1, 0.5)):
        assert selection.threshold_for_precision(hits, scores, precision) == expected
    assert selection.threshold_for_precision(~hits, scores, 0.9) > 0.9  # nothing is predicted
    assert selection.threshold_for_precision(hits[:0], scores[:0], 0.9) == 1.0


def test_tuning_finds_the_best_of_each_parameter_in_turn() -> None:
    def value_of(parameters: dict[str, int]) -> float:
        return -abs(parameters.get("a", 0) - 2) - abs(parameters.get("b", 0) - 3)

    space = {"a": (0, 1, 2, 3), "b": (1, 3)}
    trials = list(selection.tune(value_of, space, 100, clock=lambda: 0.0))
    assert max(trials, key=lambda trial: trial.value).parameters == {"a": 2, "b": 3}
    assert trials[0].parameters == {}
    seen = [tuple(sorted(trial.parameters.items())) for trial in trials]
    assert len(set(seen)) == len(seen)


def test_tuning_stops_before_the_time_is_over() -> None:
    ticks = iter(range(1_000))
    trials = list(selection.tune(lambda _: 0.0, {"a": range(50)}, 20, clock=lambda: float(next(ticks))))
    assert 3 < len(trials) < 15


def test_hold_outs_are_disjoint_and_in_no_order() -> None:
    folds = HoldOut.folds(20_000, np.random.default_rng(0))
    held = [fold.held_rows for fold in folds]
    assert sorted(np.concatenate(held)) != list(np.concatenate(held))
    assert len(set(np.concatenate(held))) == sum(map(len, held))
    assert np.mean(held[0][:500]) == pytest.approx(10_000, rel=0.1)  # the first of them are of all rows
    for fold in folds:
        assert sorted([*fold.train_rows, *fold.held_rows]) == list(range(20_000))
