"""Thresholds that can be changed at any time, suggestions with names, labels as a matrix."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import classification_report, f1_score

from exmlds import DataWarning, ExMLDS, ExMLDS1, FeatureNeighbors, MostFrequent, TextClassifier, load, report
from exmlds.data import Dataset

TEXTS = ["goals and a red card", "the keeper held the ball", "bread with seeds", "flour, yeast and salt"] * 3
LABELS = [["sport"], ["sport", "ball"], ["baking"], ["baking"]] * 3
UNREACHED = float(np.nextafter(np.float32(1), np.inf))  # the threshold of a rule that no score satisfies


@pytest.fixture(scope="module")
def fixed() -> TextClassifier:
    return TextClassifier(model=FeatureNeighbors(n_neighbors=4, threshold=0.5)).fit(TEXTS, y=LABELS)


@pytest.fixture
def model(fixed: TextClassifier) -> TextClassifier:
    return copy.deepcopy(fixed)


def test_a_threshold_can_be_given_with_a_call(model: TextClassifier) -> None:
    scores = model.decision_function(TEXTS)
    for threshold in (0.0, 0.3, 0.9):
        expected = (scores.toarray() >= threshold) & (scores.toarray() > 0)
        np.testing.assert_array_equal(model.predict(TEXTS, threshold=threshold).toarray(), expected)
        named = model.predict_labels(TEXTS, threshold=threshold)
        assert [len(row) for row in named] == expected.sum(axis=1).tolist()
        suggested = model.suggest(TEXTS, k=None, threshold=threshold)
        assert [[found.label for found in row] for row in suggested] == named
    assert model.threshold_ == 0.5


def test_labels_of_a_filter_are_stripped_as_in_fit(model: TextClassifier) -> None:
    assert model.predict_labels(["bread"], k=1, allow=[" baking\t"]) == [["baking"]]


def test_k_and_a_threshold_together(model: TextClassifier) -> None:
    assert model.predict_labels(["red card"], k=1, threshold=0.0) == [["sport"]]
    assert model.predict_labels(["the ball"], k=10**9, threshold=UNREACHED) == [[]]


def test_a_number_set_after_the_fit_counts_at_once(model: TextClassifier) -> None:
    for threshold in (0.0, 0.9):
        model.set_params(model__threshold=threshold)
        assert model.threshold_ == threshold
        assert (model.predict(TEXTS) != model.predict(TEXTS, threshold=threshold)).nnz == 0
        inner = model.model_
        assert (inner.predict(model.vectorizer_.transform(TEXTS)) != model.predict(TEXTS)).nnz == 0


def test_a_rule_set_after_the_fit_needs_another_fit(model: TextClassifier) -> None:
    model.set_params(model__threshold="precision=0.9")
    with pytest.raises(ValueError, match="fit the model again, or give a number"):
        model.predict(TEXTS)
    assert model.predict(TEXTS, threshold=0.5).nnz
    assert model.fit(TEXTS, LABELS).predict(TEXTS).nnz


@pytest.mark.parametrize("threshold", [-0.1, 1.01, 50, np.inf, np.nan, "0.5", True])
def test_a_threshold_that_is_none(model: TextClassifier, threshold: Any) -> None:
    for method in (model.predict, model.predict_labels, model.suggest):
        with pytest.raises(
            ValueError, match="'threshold' parameter of predict must be a number from 0 to 1, .*Got"
        ):
            method(TEXTS, threshold=threshold)


def test_a_chosen_threshold_may_be_given_again() -> None:
    """A precision that no score reaches gives a threshold just above the largest score, which may be 1."""
    X = [[1.0, 0.0], [0.0, 1.0]] * 20
    model = FeatureNeighbors(n_neighbors=1, threshold="precision=1", random_state=0)
    model.fit(X, [[0], [1]] * 19 + [[1], [0]])
    assert model.predict(X, threshold=model.threshold_).nnz == model.predict(X).nnz
    assert model.set_params(threshold=UNREACHED).predict(X).nnz == 0


def test_suggestions_have_names_and_scores(model: TextClassifier) -> None:
    ids, scores = model.predict_topk(TEXTS[:2], 2)
    suggested = model.suggest(TEXTS[:2], k=2)
    assert suggested == [
        [
            (model.classes_[column], str(model.classes_[column]), score)
            for column, score in zip(*row)
            if column >= 0
        ]
        for row in zip(ids.tolist(), scores.tolist())
    ]


@pytest.mark.parametrize(
    ("method", "name"),
    [
        (ExMLDS(random_state=0), "probability"),
        (ExMLDS(objective="psp", random_state=0), "score"),  # probabilities over propensities
        (ExMLDS1(n_components=16, random_state=0), "score"),
        (FeatureNeighbors(), "score"),
        (MostFrequent(), "score"),
    ],
    ids=["exmlds", "psp", "exmlds1", "feature-neighbors", "most-frequent"],
)
def test_only_calibrated_scores_are_called_probabilities(
    fitted: Any, library: Dataset, method: Any, name: str
) -> None:
    suggested = fitted(method, library).suggest(library.X[:2], k=1)
    assert suggested.to_pandas().columns.tolist() == ["row", "position", "rank", "label", "name", name]
    assert suggested.to_polars().columns[-1] == name
    assert f'<th scope="col">label ({name})</th>' in suggested._repr_html_()
    assert suggested[0][0].score == suggested.to_pandas()[name][0]


def test_suggestions_as_data_frames(model: TextClassifier) -> None:
    texts = pd.Series(TEXTS[:2], index=["first", "second"])
    suggested = model.suggest(texts, k=1)
    frame = suggested.to_pandas()
    assert frame.columns.tolist() == ["row", "position", "rank", "label", "name", "score"]
    assert frame["row"].tolist() == ["first", "second"]
    assert frame["position"].tolist() == [0, 1]
    assert frame["label"].tolist() == [row[0] for row in model.predict_labels(texts, k=1)]
    assert suggested.to_polars().to_dicts() == frame.to_dict("records")
    assert model.suggest(texts, threshold=UNREACHED).to_pandas().columns.tolist() == frame.columns.tolist()


def test_a_notebook_shows_suggestions_as_a_table() -> None:
    model = FeatureNeighbors(threshold=0.5).fit(np.eye(3), [["<b>\a"], ["<b>\a"], ["b"]])
    shown = model.suggest(np.eye(3)[:1])._repr_html_()
    assert "&lt;b&gt;\\x07 (1.00)" in shown
    assert "<b>" not in shown
    many = model.suggest(np.tile(np.eye(3), (10, 1)))._repr_html_()
    assert "20 of 30 rows" in many


@pytest.mark.parametrize("frame", [pd.Series, pd.DataFrame, pl.Series, pl.DataFrame])
def test_texts_as_a_series_or_a_frame_of_one_column(model: TextClassifier, frame: Any) -> None:
    texts = frame(TEXTS) if frame in (pd.Series, pl.Series) else frame({"text": TEXTS})
    assert model.suggest(texts) == model.suggest(TEXTS)


def test_a_label_matrix_is_as_wide_as_a_prediction(model: TextClassifier) -> None:
    later = [["sport", "cricket"], ["baking", "cricket"], ["chess"]]
    with pytest.warns(DataWarning, match=r"3 of 5 labels in Y, 2 different ones, are unknown to the model"):
        truth = model.label_matrix(later)
    predicted = model.predict(TEXTS[:3])
    assert truth.shape == predicted.shape
    assert f1_score(truth, predicted, average="micro") > 0
    assert "baking" in classification_report(truth, predicted, target_names=model.classes_, zero_division=0)
    assert model.label_matrix(later, unknown="append").shape == (3, len(model.classes_) + 2)
    with pytest.raises(ValueError, match="unknown must be 'drop' or 'append'"):
        model.label_matrix(later, unknown="keep")


def test_metrics_of_another_threshold_are_forgotten() -> None:
    model = FeatureNeighbors(random_state=0).fit(np.eye(8)[[0, 1] * 20], [["a"], ["b"]] * 20)
    assert model.held_out_metrics_ is not None
    assert "F1" in model.held_out_metrics_
    model.set_params(threshold=0.99)
    assert set(model.held_out_metrics_) == {"rows", "P@1"}
    assert "F1" not in model.card()


def test_parameters_of_predictions_reach_a_fitted_classifier_of_texts(model: TextClassifier) -> None:
    assert model.decision_function(TEXTS).nnz > len(TEXTS)
    model.set_params(max_labels=1)
    assert model.decision_function(TEXTS).nnz == model.predict_proba(TEXTS).nnz == len(TEXTS)


def test_a_threshold_set_on_the_fitted_model_counts(model: TextClassifier) -> None:
    model.model_.set_params(threshold=0.99)
    assert model.threshold_ == model.threshold == 0.99
    assert (model.predict(TEXTS) != model.predict(TEXTS, threshold=0.99)).nnz == 0
    card = model.card()
    assert "reaches 0.990. This threshold was set by hand" in card
    assert "| threshold | 0.99 |" in card


def test_a_threshold_set_on_the_unfitted_model_is_not_shown_as_in_force(model: TextClassifier) -> None:
    model = TextClassifier(model=FeatureNeighbors(n_neighbors=4, threshold=0.5)).fit(TEXTS, LABELS)
    model.model.set_params(threshold=0.99)
    assert model.threshold_ == model.threshold == 0.5
    assert "reaches 0.500." in model.card()
    assert "0.99" not in model.card()


def test_the_rule_of_the_fit_can_be_set_again(tmp_path: Path) -> None:
    texts, labels = TEXTS * 3, LABELS * 3
    model = TextClassifier(model=FeatureNeighbors(n_neighbors=4, random_state=0)).fit(texts, labels)
    chosen, metrics_then = model.threshold_, model.held_out_metrics_
    assert metrics_then is not None
    model.set_params(threshold=0.123)
    model.save(tmp_path / "model")
    for changed in (model, load(tmp_path / "model")):
        assert changed.threshold_ == 0.123
        for rule in ("auto", "f1"):
            changed.set_params(threshold=0.2).set_params(threshold=rule)
            assert changed.threshold_ == chosen
            assert changed.held_out_metrics_ == metrics_then
            assert "set by hand" not in changed.card()


@pytest.mark.parametrize("threshold", [-1, 1.5, None, "nonsense", "0.5", np.nan])
def test_a_fitted_model_refuses_a_wrong_threshold_at_once(model: TextClassifier, threshold: Any) -> None:
    for changed in (model, model.model_):
        with pytest.raises(ValueError, match="'threshold' parameter of FeatureNeighbors must be 'auto' or"):
            changed.set_params(threshold=threshold)
        assert (changed.threshold, changed.threshold_) == (0.5, 0.5)


def test_a_rule_that_waits_for_a_fit_is_shown_nowhere_as_a_number(model: TextClassifier) -> None:
    model.set_params(threshold="precision=0.9")
    assert "nan" not in model.card()
    assert "The threshold is chosen at the next fit" in model.card()
    with pytest.raises(ValueError, match=r"set_params\(threshold='precision=0.9'\) and fit the model again"):
        report.make(model, TEXTS, LABELS)


def test_a_rule_in_a_call_needs_a_fit(model: TextClassifier) -> None:
    for call in (model.predict, model.predict_labels, model.suggest):
        with pytest.raises(ValueError, match="'precision=0.9' is chosen on held-out rows: .* fit the model"):
            call(TEXTS, threshold="precision=0.9")


def test_the_keyword_of_the_threshold_is_named(model: TextClassifier) -> None:
    said = r"TextClassifier.predict takes X by position; name what follows, .* predict\(X, threshold=0.4\)"
    with pytest.raises(TypeError, match=said):
        model.predict(TEXTS, 0.4)  # type: ignore[misc]
    with pytest.raises(TypeError, match=r"takes no argument 'treshold'\. Did you mean 'threshold'\?"):
        model.predict(TEXTS, treshold=0.4)  # type: ignore[call-arg]


def test_labels_that_look_like_lists_are_warned_of_in_every_use(model: TextClassifier) -> None:
    joined = ["sport, ball", "ball, sport", "baking, ball", "ball, baking"] * 3
    for use in (
        lambda: model.score(TEXTS, joined),
        lambda: model.label_matrix(joined, unknown="append"),
        lambda: report.make(model, TEXTS, joined, k=[1]),
        lambda: model.fit(TEXTS, joined),
    ):
        with pytest.warns(DataWarning, match="labels look like lists of labels, such as"):
            use()


def test_a_table_with_a_line_for_each_label_is_warned_of() -> None:
    table = pd.DataFrame({"text": TEXTS[:4], "labels": [["a", "b"], ["b", "c"], ["a", "c"], ["c"]]})
    long = table.explode("labels")
    with pytest.warns(DataWarning, match="3 texts, or rows of X, occur several times with different labels"):
        TextClassifier(model=FeatureNeighbors()).fit(long["text"], long["labels"])
    grouped = long.groupby("text", sort=False)["labels"].agg(list).reset_index()
    assert grouped["labels"].tolist() == table["labels"].tolist()
    TextClassifier(model=FeatureNeighbors()).fit(grouped["text"], grouped["labels"])


def test_indices_in_another_order_are_warned_of(model: TextClassifier) -> None:
    texts, labels = pd.Series(TEXTS), pd.Series(LABELS)[::-1]
    for use in (model.fit, model.score):
        with pytest.warns(DataWarning, match="same index in another order"):
            use(texts, labels)
    with pytest.warns(DataWarning, match="same index in another order"):
        FeatureNeighbors().fit(pd.DataFrame(np.eye(12)), labels)


def test_a_matrix_in_nested_lists_is_not_scored_as_labels(model: TextClassifier) -> None:
    truth = model.label_matrix(LABELS).toarray().astype(int)
    assert model.score(TEXTS, truth) == 1.0
    for rows in (truth.tolist(), pd.Series(list(truth))):
        with pytest.raises(ValueError, match="ambiguous: lists of 0 and 1"):
            model.score(TEXTS, rows)


def test_mistakes_of_the_first_hour_are_named(model: TextClassifier) -> None:
    with pytest.raises(ValueError, match=r"lists that were written as strings, such as \"\['sport'\]\""):
        model.fit(TEXTS, [str(labels) for labels in LABELS])
    with pytest.raises(ValueError, match=r"X holds texts.*TextClassifier\(FeatureNeighbors\(\)\)"):
        FeatureNeighbors().fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match="Row 1 has no label but nan: leave it out"):
        model.fit(TEXTS[:2], ["sport", np.nan])
    with pytest.raises(ValueError, match="is not a text but .* Are X and y swapped"):
        model.fit(LABELS, TEXTS)
    with pytest.raises(ValueError, match="There is no text; give at least one"):
        model.fit([], [])
    with pytest.raises(ValueError, match="Did you mean 'sport'"):
        model.predict_labels(TEXTS, allow=["sports"])
