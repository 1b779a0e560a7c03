"""ExMLDS4: the map learnt end to end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exmlds import ExMLDS4, FeatureNeighbors, metrics
from exmlds.data import Dataset, make_xmc
from exmlds.data import load as load_data

FIXED: dict[str, Any] = {
    "features": "l2",
    "temperature": 0.05,
    "threshold": 0.5,
    "n_components": 10,
    "n_epochs": 3,
    "n_learners": 1,
    "batch_size": 64,
}


def scores(data: Dataset, **changes: Any) -> np.ndarray:
    model = ExMLDS4(random_state=0, **{**FIXED, **changes}).fit(data.X[:300], data.Y[:300])
    return model.decision_function(data.X[300:]).toarray()


def test_it_learns_more_than_the_features_say() -> None:
    data = make_xmc(3_000, 800, 40, feature_noise=0.6, random_state=0)
    train, test = data.rows(slice(0, 2_400)), data.rows(slice(2_400, None))
    ours, theirs = (
        model.fit(train.X, train.Y).score(test.X, test.Y)
        for model in (ExMLDS4(n_components=50, random_state=0), FeatureNeighbors(n_neighbors=50))
    )
    assert ours > theirs


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("n_neighbors_fit", 2),
        ("loss", "sgns"),
        ("similarity", "inner"),
        ("gamma", 2.0),
        ("learning_rate", 0.02),
        ("batch_size", 200),
        ("n_epochs", 1),
        ("n_learners", 2),
        ("n_parts", 3),
        ("storage", "int8"),
    ],
)
def test_every_parameter_changes_the_result(library: Dataset, parameter: str, value: Any) -> None:
    assert not np.allclose(scores(library), scores(library, **{parameter: value}), atol=1e-4)


@pytest.mark.parametrize(("parameter", "value"), [("margin", 0.0), ("n_negative", 2.0)])
def test_the_parameters_of_sgns_change_the_result(library: Dataset, parameter: str, value: Any) -> None:
    one, other = scores(library, loss="sgns"), scores(library, loss="sgns", **{parameter: value})
    assert not np.allclose(one, other, atol=1e-4)


def test_epochs_are_chosen_on_held_out_rows(library: Dataset) -> None:
    model = ExMLDS4(n_components=10, random_state=0).fit(library.X, library.Y)
    assert model.n_epochs_ in (4, 8, 12)
    fixed = {"features": model.features_, "temperature": model.temperature_, "n_epochs": model.n_epochs_}
    again = ExMLDS4(n_components=10, random_state=0, threshold=model.threshold_, **fixed)
    again.fit(library.X, library.Y)
    np.testing.assert_array_equal(again.predict_topk(library.X)[0], model.predict_topk(library.X)[0])


def test_paper_settings() -> None:
    settings = ExMLDS4.paper().get_params()
    assert (settings["n_components"], settings["n_learners"], settings["loss"]) == (50, 15, "sgns")


@pytest.mark.data
@pytest.mark.slow
def test_delicious(real_data: Path) -> None:
    train, test = load_data("delicious")
    model = ExMLDS4(features="l2", temperature=0.1, n_epochs=8, threshold=0.3, random_state=0)
    ids = model.fit(train.X, train.Y).predict_topk(test.X, 5)
    assert metrics.precision_at_k(test.Y, ids, 1) > 0.65
