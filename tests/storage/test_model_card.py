"""README.md in a model folder: what the model is, how good it was on held-out rows, and what it is for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from exmlds import FeatureNeighbors, MostFrequent, TextClassifier, load, metrics
from exmlds.data import make_library

TEXTS = ["a goal", "the ball", "bread", "flour and yeast", "a red card", "the keeper"] * 4
LABELS = [["sport"], ["sport", "a|b\n"], ["baking"], ["baking"], ["sport"], ["sport"]] * 4


def test_every_save_writes_a_card(tmp_path: Path) -> None:
    model = TextClassifier(model=FeatureNeighbors(n_neighbors=4), keep_rows=True).fit(TEXTS, LABELS)
    model.save(tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert card.startswith("# A model of the method FeatureNeighbors\n")
    assert "| training rows | 24 |\n" in card
    assert "| sport | 16 |\n" in card
    assert "| a\\|b | 4 |\n" in card  # stripped, and harmless in a table
    assert "| n_neighbors | 4 |\n" in card
    assert "labels for texts" in card
    assert "the training data themselves" in card
    assert f"reaches {model.threshold_:.3f}" in card
    assert load(tmp_path / "model").card() == card
    MostFrequent(threshold=0.5).fit(np.eye(3), [["x"], ["y"], ["y"]]).save(tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "| y | 2 |\n" in card
    assert "No rows were held out" in card
    assert "sport" not in card


def test_metrics_on_held_out_rows_are_kept(tmp_path: Path) -> None:
    X, Y, names, _ = make_library(300, random_state=0)
    model = FeatureNeighbors(random_state=0).fit(X, Y, label_names=names)
    kept = model.held_out_metrics_
    assert kept is not None
    assert list(kept) == ["rows", "P@1", "P@3", "P@5", "precision", "recall", "F1"]
    assert 0.5 < kept["P@1"] <= 1.0
    assert kept["F1"] == pytest.approx(
        2 * kept["precision"] * kept["recall"] / (kept["precision"] + kept["recall"])
    )
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").held_out_metrics_ == kept
    assert f"| P@1 | {kept['P@1']:.3f} |" in model.card()


def test_held_out_metrics_are_those_of_the_metrics_module(rng: np.random.Generator) -> None:
    Y, scores = rng.random((40, 9)) < 0.3, rng.random((40, 9))
    ids = np.argsort(-scores, axis=1)
    hits, ranked = np.take_along_axis(Y, ids, 1), np.take_along_axis(scores, ids, 1)
    found = metrics.on_held_out_rows(hits, ranked >= 0.5, int(Y.sum()))
    measured = metrics.report(Y.astype(float), (ids, ranked), k=(1, 3, 5))
    assert [found[name] for name in ("P@1", "P@3", "P@5")] == pytest.approx(
        [measured[name] for name in ("P@1", "P@3", "P@5")]
    )
    assigned = scores >= 0.5
    assert found["precision"] == pytest.approx((Y & assigned).sum() / assigned.sum())
    assert found["recall"] == pytest.approx((Y & assigned).sum() / Y.sum())
