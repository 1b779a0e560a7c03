"""Metrics against hand-computed cases, slow twins and napkinXC."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, csr_matrix, random_array
from sklearn.metrics import f1_score, precision_score, recall_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from exmlds import DataError, DataWarning, FeatureNeighbors, metrics
from exmlds.data import Dataset, load

TRUE = [[0, 2], [1], []]
SAID = [[2, 1, 0], [0, 1], [1]]


@pytest.mark.parametrize(("A", "B"), [(1e300, 1e300), (-1, 1.5), (0.55, np.nan), (np.inf, 1)])
def test_propensity_parameters_that_can_not_be(A: float, B: float) -> None:
    with pytest.raises(DataError, match="A must be from 0 to 10 and B from 0 to 1,000,000"):
        metrics.inverse_propensity(np.array([1, 2]), A, B, n_rows=9)


def test_by_hand() -> None:
    assert metrics.precision_at_k(TRUE, SAID, 1) == pytest.approx(1 / 3)
    assert metrics.precision_at_k(TRUE, SAID, 3) == pytest.approx((2 / 3 + 1 / 3) / 3)
    assert metrics.recall_at_k(TRUE, SAID, 2) == pytest.approx((1 / 2 + 1) / 3)
    first = (1 + 1 / math.log2(4)) / (1 + 1 / math.log2(3))
    assert metrics.ndcg_at_k(TRUE, SAID, 3) == pytest.approx((first + 1 / math.log2(3)) / 3)
    assert metrics.coverage_at_k(TRUE, SAID, 1) == pytest.approx(1 / 3)
    # at 1: label 2 has F1 1 (one row, found), 0 and 1 have 0
    assert metrics.macro_f1_at_k(TRUE, SAID, 1) == pytest.approx(1 / 3)
    weights = np.array([2.0, 3.0, 5.0])
    assert metrics.psp_at_k(TRUE, SAID, weights, 1) == pytest.approx(5 / (5 + 3))
    assert metrics.psp_at_k(TRUE, SAID, weights, 2) == pytest.approx((5 + 3) / (7 + 3))


def slow(family: str, Y: np.ndarray, predicted: list[list[int]], k: int, weights: np.ndarray) -> float:
    """Each metric by its definition, row by row."""
    n, n_labels = Y.shape
    true = [set(np.flatnonzero(row)) for row in Y]
    gain = [[(label in labels) for label in row[:k]] for labels, row in zip(true, predicted)]
    discount = [1 / math.log2(place + 2) for place in range(k)]
    if family == "P":
        return sum(sum(g) / k for g in gain) / n
    if family == "R":
        return sum(sum(g) / len(t) for g, t in zip(gain, true) if t) / n
    if family == "coverage":
        found = {label for row, labels in zip(predicted, true) for label in row[:k] if label in labels}
        return len(found) / max(len(set().union(*true)), 1)
    if family == "macro-F1":
        total = 0.0
        for label in range(n_labels):
            both = sum(label in row[:k] and label in labels for row, labels in zip(predicted, true))
            either = sum(label in row[:k] for row in predicted) + sum(label in labels for labels in true)
            total += 2 * both / either if either else 0
        return total / n_labels
    numerator = denominator = 0.0
    for row, labels, g in zip(predicted, true, gain):
        ideal = sum(discount[: min(k, len(labels))])
        best = sorted((weights[label] for label in labels), reverse=True)[:k]
        if family == "nDCG":
            denominator += 1
            numerator += sum(d for d, hit in zip(discount, g) if hit) / ideal if labels else 0
        elif family == "PSP":
            numerator += sum(weights[label] for label, hit in zip(row, g) if hit)
            denominator += sum(best)
        elif labels:
            numerator += sum(weights[label] * d for label, d, hit in zip(row, discount, g) if hit) / ideal
            denominator += sum(w * d for w, d in zip(best, discount)) / ideal
    return numerator / denominator if denominator else 0.0


@pytest.mark.twins
@settings(max_examples=150)
@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.integers(1, 8), st.integers(1, 6))
def test_slow_twins(seed: int, n: int, n_labels: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, n_labels)) < 0.3).astype(int)
    predicted = [rng.permutation(n_labels)[: rng.integers(n_labels + 1)].tolist() for _ in range(n)]
    weights = 1 + rng.random(n_labels)
    ranking = metrics.Ranking(Y, predicted, k, weights)
    for family in metrics.FAMILIES:
        assert ranking.value(f"{family}@{k}") == pytest.approx(
            slow(family, Y, predicted, k, weights), abs=1e-12
        )


@pytest.mark.twins
def test_every_form_of_predictions_is_the_same() -> None:
    Y = csr_matrix(np.array([[1, 0, 1, 0], [0, 1, 0, 0]]))
    ids = np.array([[2, 1], [3, -1]])
    scores = csr_matrix(np.array([[0, 0.5, 0.9, 0], [0, 0, 0, 0.1]]))
    expected = metrics.report(Y, ids, k=[1, 2])
    forms: list[Any] = [(ids, np.ones((2, 2))), scores, csr_array(scores), scores.tocsc(), [[2, 1], [3]]]
    for predicted in forms:
        assert metrics.report(Y, predicted, k=[1, 2]) == expected
    for truth in (Y.toarray(), csr_array(Y), Y.astype(int)):
        assert metrics.report(truth, ids, k=[1, 2]) == expected


@pytest.mark.twins
def test_ties_go_to_the_smaller_label() -> None:
    assert metrics.ranked_ids(csr_matrix(np.array([[0.5, 0.7, 0.5, 0.7]])), 3).tolist() == [[1, 3, 0]]


def test_stored_zeros_are_no_labels() -> None:
    Y = csr_matrix((np.array([1.0, 0.0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 2))
    assert metrics.recall_at_k(Y, [[0]], 1) == 1


@pytest.mark.twins
def test_propensities() -> None:
    # C = (ln 100 − 1) · 2.5^0.55; checked with a pocket calculator
    inverse = metrics.inverse_propensity(np.array([0, 10]), n_rows=100)
    C = (math.log(100) - 1) * 2.5**0.55
    np.testing.assert_allclose(inverse, [1 + C * 1.5**-0.55, 1 + C * 11.5**-0.55])
    Y = csr_matrix(np.eye(5)[:, :3])
    np.testing.assert_allclose(
        metrics.inverse_propensity(Y), metrics.inverse_propensity(np.ones(3), n_rows=5)
    )


@pytest.mark.parametrize(
    ("truth", "predicted", "message"),
    [
        ([[0]], [[0, 0]], "Row 0 predicts a label twice"),
        (np.eye(2), [[0]], "1 rows are predicted, but 2 have true labels"),
        (np.eye(2), np.array([[0], [5]]), "Label 5 is predicted, but there are 2 labels"),
        (np.eye(2), np.array([[0.5], [0.5]]), "must be an .n, k. array of whole numbers"),
        (np.eye(2), csr_matrix(np.array([[np.nan, 0], [0, 0]])), "hold NaN"),
        ("labels", [[0]], "must be ids here, not names"),
    ],
)
def test_bad_input_is_named(truth: Any, predicted: Any, message: str) -> None:
    with pytest.raises((DataError, ValueError), match=message):
        metrics.Ranking(truth, predicted, 2)


def test_unknown_metrics_are_named() -> None:
    with pytest.raises(ValueError, match="Unknown metric .f1.*; scorers also take precision, recall, F1"):
        metrics.scorer("f1")
    with pytest.raises(ValueError, match="Unknown metric .F@1.. The metrics are P@k"):
        metrics.Ranking([[0]], [[0]], 1).value("F@1")
    with pytest.raises(DataError, match="needs propensities"):
        metrics.Ranking([[0]], [[0]], 1).value("PSP@1")


def test_per_label() -> None:
    table = metrics.per_label(TRUE, SAID, 2)
    assert table.true.tolist() == [1, 1, 1]
    assert table.predicted.tolist() == [1, 3, 1]
    assert table.found.tolist() == [0, 1, 1]
    np.testing.assert_allclose(table.precision, [0, 1 / 3, 1])
    np.testing.assert_allclose(table.recall, [0, 1, 1])
    np.testing.assert_allclose(table.f1, [0, 1 / 2, 1])


def test_by_frequency_goes_from_head_to_tail() -> None:
    Y = np.array([[1, 1, 0, 1], [1, 0, 1, 0]])
    groups = metrics.by_frequency(Y, [[0, 1], [0, 3]], np.array([9, 4, 2, 0]), k=2, n_groups=3)
    assert [(g.name, g.most, g.least, g.true, g.found) for g in groups] == [
        ("1", 9, 9, 2, 2),
        ("2", 4, 4, 1, 1),
        ("3", 2, 2, 1, 0),
        ("unseen", 0, 0, 1, 0),
    ]
    assert (groups[0].precision, groups[0].coverage, groups[2].coverage) == (1, 1, 0)
    with pytest.raises(DataError, match="train_counts has 2 labels"):
        metrics.by_frequency(Y, [[0], [0]], np.ones(2))


def ranking_of(rng: np.random.Generator, n: int, accuracy: float) -> metrics.Ranking:
    truth = csr_matrix((np.ones(n), (np.arange(n), rng.integers(0, 5, n))), shape=(n, 5))
    right = rng.random(n) < accuracy
    predicted = np.where(right, truth.indices, (truth.indices + 1) % 5)[:, None]
    return metrics.Ranking(truth, predicted, 1, np.linspace(1, 2, 5))


def test_bootstrap_is_as_wide_as_the_theory(rng: np.random.Generator) -> None:
    ranking = ranking_of(rng, 1_000, 0.7)
    interval = metrics.bootstrap(ranking.sums("P@1"))
    p = interval.value
    expected = 2 * 1.96 * math.sqrt(p * (1 - p) / 1_000)
    assert interval.low < p < interval.high
    assert interval.high - interval.low == pytest.approx(expected, rel=0.15)


def test_bootstrap_of_many_kinds_of_rows(rng: np.random.Generator) -> None:
    terms = rng.random(30_000)
    interval = metrics.bootstrap((terms, np.ones_like(terms)))
    expected = 2 * 1.96 * terms.std() / math.sqrt(30_000)
    assert interval.high - interval.low == pytest.approx(expected, rel=0.15)


def test_compare_sees_a_difference_and_none(rng: np.random.Generator) -> None:
    truth = csr_matrix((np.ones(800), (np.arange(800), rng.integers(0, 5, 800))), shape=(800, 5))
    good = np.where(rng.random(800) < 0.8, truth.indices, (truth.indices + 1) % 5)[:, None]
    bad = np.where(rng.random(800) < 0.7, truth.indices, (truth.indices + 1) % 5)[:, None]
    first, second = metrics.Ranking(truth, good, 1), metrics.Ranking(truth, bad, 1)
    (row,) = metrics.compare_rankings(first, second, ["P@1"])
    assert row.low > 0
    assert row.p_value < 0.05
    assert row.difference == pytest.approx(first.value("P@1") - second.value("P@1"))
    assert metrics.compare(truth, good, bad, ["P@1"]) == [row]
    (never_worse,) = metrics.compare(truth, truth, bad, ["P@1"], n_resamples=500)
    assert never_worse.p_value == 2 / 501
    (same,) = metrics.compare_rankings(first, first, ["P@1"])
    assert (same.difference, same.p_value) == (0, 1)
    with pytest.raises(DataError, match="same rows"):
        metrics.compare_rankings(first, ranking_of(rng, 10, 0.5), ["P@1"])


@pytest.mark.parametrize("wrong", [0.5, 0.0, -2.0, math.nan, math.inf])
def test_propensities_must_be_inverse(wrong: float) -> None:
    with pytest.raises(DataError, match=r"1/p, at least 1; did you pass p\? Label 1 has"):
        metrics.report(TRUE, SAID, k=[1], inverse_propensity=np.array([2.0, wrong, 1.0]))


def test_propensities_of_a_few_rows_are_at_most_one() -> None:
    for n_rows in (1, 2):
        assert metrics.inverse_propensity(np.array([0, 1]), n_rows=n_rows).tolist() == [1, 1]


def test_report_prints_and_is_a_dict() -> None:
    weights = np.array([2.0, 3.0, 5.0])
    report = metrics.report(TRUE, SAID, k=[1, 3], inverse_propensity=weights, intervals=True)
    assert report["P@1"] == pytest.approx(1 / 3)
    assert "PSnDCG@3" in report
    assert report.intervals["P@1"].low <= report["P@1"]
    assert "33.33 (0.00–" in str(report)
    assert str(report).endswith("3 rows, 3 labels")


def test_scorers_work_in_a_grid_search(library: Dataset) -> None:
    for name in ("nDCG@5", "PSP@3"):
        scoring = pickle.loads(pickle.dumps(metrics.scorer(name)))
        grid = {"n_neighbors": [1, 20]}
        search = GridSearchCV(FeatureNeighbors(threshold=0.5), grid, scoring=scoring, cv=3)
        search.fit(library.X, library.Y)
        assert search.best_params_ == {"n_neighbors": 20}
        assert 0.5 < search.best_score_ < 1


def test_scorers_look_into_a_pipeline(library: Dataset) -> None:
    pipeline = make_pipeline(MaxAbsScaler(), FeatureNeighbors(threshold=0.5))
    for name in ("P@3", "PSP@3"):
        search = GridSearchCV(
            pipeline, {"featureneighbors__n_neighbors": [1, 20]}, scoring=metrics.scorer(name), cv=3
        )
        assert search.fit(library.X, library.Y).best_score_ > 0.3


@pytest.mark.parametrize(
    ("name", "score"), [("F1", f1_score), ("precision", precision_score), ("recall", recall_score)]
)
def test_scorers_at_the_threshold(name: str, score: Any, library: Dataset) -> None:
    X, Y = library.X[300:], library.Y[300:]
    model = FeatureNeighbors(threshold=0.3).fit(library.X[:300], library.Y[:300])
    expected = score(Y, model.predict(X), average="micro")
    assert 0.2 < expected < 1
    assert metrics.scorer(name)(model, X, Y) == pytest.approx(expected)
    pipeline = make_pipeline(MaxAbsScaler(), model).fit(library.X[:300], library.Y[:300])
    expected = score(Y, pipeline.predict(X), average="micro")
    assert metrics.scorer(name)(pipeline, X, Y) == pytest.approx(expected)
    model.set_params(threshold=float(np.nextafter(np.float32(1), np.inf)))  # nothing is predicted
    assert metrics.scorer(name)(model, X, Y) == 0


def test_a_threshold_is_searched_from_lists_of_labels(library: Dataset) -> None:
    """Labels that a fold lacks at fit count as missed."""
    lists = [[f"label {j}" for j in row.indices] for row in library.Y]
    search = GridSearchCV(
        FeatureNeighbors(), {"threshold": [0.01, 0.3, 0.99]}, scoring=metrics.scorer("F1"), cv=KFold(3)
    )
    assert search.fit(library.X, lists).best_params_ == {"threshold": 0.3}
    model = FeatureNeighbors(threshold=0.3).fit(library.X, lists)
    truth = [["new"], *lists[1:]]
    wide = model.label_matrix(truth, unknown="append")
    said = model.predict(library.X)
    said.resize(wide.shape)
    value = metrics.scorer("F1")(model, library.X, truth)
    assert value == pytest.approx(f1_score(wide, said, average="micro"))


def test_names_instead_of_ids_are_refused() -> None:
    with pytest.raises(DataError, match=r"model.label_matrix\(Y\)"):
        metrics.report([["a"]], [[0]])


def test_a_ranking_refuses_a_larger_k() -> None:
    with pytest.raises(ValueError, match="P@4 needs the first 4 predictions of each row; this ranking has 2"):
        metrics.Ranking([[0]], [[0]], 2).value("P@4")


def test_options_of_the_scorer_and_the_bootstrap_count(library: Dataset, rng: np.random.Generator) -> None:
    model = FeatureNeighbors(threshold=0.5, n_neighbors=3).fit(library.X[:300], library.Y[:300])
    scores = {
        metrics.scorer("PSP@5", A=A, B=1.5)(model, library.X[300:], library.Y[300:]) for A in (0.5, 0.9)
    }
    assert len(scores) == 2
    sums = ranking_of(rng, 500, 0.7).sums("P@1")
    narrow, wide = (metrics.bootstrap(sums, level=level) for level in (0.5, 0.95))
    assert narrow.high - narrow.low < 0.6 * (wide.high - wide.low)


def test_too_few_predictions_warn() -> None:
    with pytest.warns(DataWarning, match="No row has more than 1 predictions; at 3"):
        metrics.report(np.eye(4), np.arange(4)[:, None], k=[1, 3])
    for measure in (metrics.precision_at_k, metrics.recall_at_k, metrics.ndcg_at_k, metrics.coverage_at_k):
        with pytest.warns(DataWarning, match="No row has more than 1 predictions; at 3"):
            measure(np.eye(4), np.arange(4)[:, None], 3)
    wide = np.tile(np.arange(4), (4, 1))
    with pytest.warns(
        DataWarning, match="No row of the second predictions has more than 1 predictions; at 3"
    ):
        metrics.compare(np.eye(4), wide, wide[:, :1], ["P@3"])


def napkinxc_metrics() -> Any:
    return pytest.importorskip("napkinxc.metrics", reason="napkinXC is not installed (extra `bench`)")


def assert_as_napkinxc(Y: csr_matrix, ids: np.ndarray, weights: np.ndarray) -> None:
    theirs = napkinxc_metrics()
    ours = metrics.Ranking(Y, ids, 5, weights)
    predicted = [[int(label) for label in row if label >= 0] for row in ids]
    truth = [row.tolist() for row in np.split(Y.indices, Y.indptr[1:-1])]
    for family, value in {
        "P": theirs.precision_at_k(truth, predicted, 5),
        "R": theirs.recall_at_k(truth, predicted, 5),
        "nDCG": theirs.ndcg_at_k(truth, predicted, 5),
        "PSP": theirs.psprecision_at_k(truth, predicted, weights, 5),
        "PSnDCG": theirs.psndcg_at_k(truth, predicted, weights, 5),
        "coverage": theirs.coverage_at_k(truth, predicted, 5),
    }.items():
        for k in range(1, 6):
            assert ours.value(f"{family}@{k}") == pytest.approx(value[k - 1], abs=1e-9), family
    # Ours is the mean over all L labels, as scikit-learn's; theirs over those up to the largest id.
    for k in range(1, 6):
        last = max(int(Y.indices.max()), int(ids[:, :k].max()))
        expected = theirs.macro_f1_measure_at_k(truth, predicted, 5)[k - 1] * (last + 1) / Y.shape[1]
        assert ours.value(f"macro-F1@{k}") == pytest.approx(expected, abs=1e-9)


def test_napkinxc_on_random_predictions(rng: np.random.Generator) -> None:
    Y = csr_matrix(random_array((200, 30), density=0.1, random_state=rng) > 0)
    ids = np.argsort(rng.random((200, 30)), axis=1)[:, :5]
    ids[rng.random((200, 5)).cumsum(axis=1) > 2.5] = -1
    assert_as_napkinxc(Y, ids, metrics.inverse_propensity(Y))


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["bibtex", "eurlex-4k"])
def test_napkinxc_on_real_predictions(real_data: Path, name: str) -> None:
    napkinxc_metrics()
    train, test = load(name)
    ids, _ = FeatureNeighbors(threshold=0.5).fit(train.X, train.Y).predict_topk(test.X, 5)
    assert_as_napkinxc(test.Y, ids, metrics.inverse_propensity(train.Y))
    assert metrics.inverse_propensity(train.Y) == pytest.approx(
        napkinxc_metrics().Jain_et_al_inverse_propensity(train.Y.astype(np.float64)), abs=1e-9
    )


def test_calibration_of_true_probabilities(rng: np.random.Generator) -> None:
    sure = rng.random((4_000, 3)).astype(np.float32)
    truth = (rng.random((4_000, 3)) < sure).astype(np.float32)
    ids = np.argsort(-sure, axis=1)
    best = np.take_along_axis(sure, ids, axis=1)
    curve = metrics.calibration(truth, (ids, best), k=3)
    assert curve.error < 0.03
    assert len(curve.predicted) == len(curve.observed) == 15
    assert (np.diff(curve.predicted) > 0).all()
    assert metrics.calibration(truth, (ids, best / 2), k=3).error == pytest.approx(0.25, abs=0.03)


def test_calibration_ignores_pads() -> None:
    ids, sure = np.array([[0, -1]]), np.array([[1.0, 0.0]])
    assert metrics.calibration([[0]], (ids, sure), k=2).error == 0


def test_an_indicator_is_no_ranking() -> None:
    truth = csr_matrix([[1, 0, 1], [0, 1, 1]])
    with pytest.warns(DataWarning, match=r"scores are equal.*predict_topk\(X, k\) or decision_function\(X\)"):
        metrics.report(truth, truth.astype(np.float32), k=[1, 2])
    scores = csr_matrix([[0.5, 0, 0.4], [0, 0.5, 0.4]])
    assert metrics.report(truth, scores, k=[1, 2])["P@2"] == 1.0
    only_first = csr_matrix([[1.0, 0, 0], [0, 1.0, 0]])  # there is no order to lose
    assert metrics.report(truth, only_first, k=[1])["P@1"] == 1.0


def test_columns_of_lists_and_frames_of_0_and_1() -> None:
    pd = pytest.importorskip("pandas")
    expected = metrics.precision_at_k(TRUE, SAID, k=2)
    assert metrics.precision_at_k(pd.Series(TRUE), pd.Series(SAID), k=2) == expected
    truth = pd.DataFrame(metrics.label_matrix(TRUE).toarray().astype(int), columns=["a", "b", "c"])
    assert metrics.precision_at_k(truth, SAID, k=2) == expected
    with pytest.raises(DataError, match="Labels must be ids here, not names"):
        metrics.report(pd.Series([["a"], ["b"], []]), SAID)


def test_labels_that_occur_nowhere_do_not_lower_macro_f1() -> None:
    truth, ids = csr_matrix([[1, 0, 0, 0], [0, 1, 0, 0]]), np.array([[0], [3]])
    assert metrics.report(truth, ids, k=[1])["macro-F1@1"] == pytest.approx(1 / 4)
    counts = np.array([2, 0, 1, 0])  # label 1 is in test only, label 2 in training only, label 3 in neither
    assert metrics.report(truth, ids, k=[1], label_counts=counts)["macro-F1@1"] == pytest.approx(1 / 3)
    # Columns may be missing on either side.
    assert metrics.report(truth, ids, k=[1], label_counts=counts[:1])["macro-F1@1"] == pytest.approx(1 / 2)
    given = metrics.report(truth[:, :2], ids[:1].repeat(2, 0), k=[1], label_counts=counts)
    assert given["macro-F1@1"] == pytest.approx(2 / 3 / 3)
