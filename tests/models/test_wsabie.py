"""WSABIE: rows and labels in one space, ranked by the WARP loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import exmlds
from exmlds import WSABIE, ModelError
from exmlds.data import Dataset, make_library
from exmlds.metrics import precision_at_k


@pytest.fixture(scope="module")
def books() -> Dataset:
    return make_library(400, random_state=0)


def fitted(books: Dataset, **changes: Any) -> WSABIE:
    options: dict[str, Any] = {"n_components": 30, "threshold": 0.5, "random_state": 0, **changes}
    return WSABIE(**options).fit(books.X[:300], books.Y[:300])


def test_it_predicts(books: Dataset) -> None:
    model = fitted(books)
    assert precision_at_k(books.Y[300:], model.predict_topk(books.X[300:], 1), 1) > 0.9


def test_scores_are_inner_products_in_the_space(books: Dataset) -> None:
    model = fitted(books)
    rows = books.X[300:310].toarray()
    Z = rows / np.linalg.norm(rows, axis=1, keepdims=True) @ model.map_
    margins = np.sort(Z @ model.label_embeddings_.T, axis=1)[:, ::-1]
    _, scores = model.predict_topk(books.X[300:310], 3)
    np.testing.assert_allclose(scores, 1 / (1 + np.exp(-margins[:, :3])), rtol=1e-4)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("n_components", 10),
        ("n_epochs", 3),
        ("learning_rate", 0.05),
        ("max_norm", 1.0),
        ("features", "log1p-l2"),
    ],
)
def test_every_parameter_changes_the_result(books: Dataset, parameter: str, value: Any) -> None:
    one, other = (fitted(books, **changes) for changes in ({}, {parameter: value}))
    scores = [model.decision_function(books.X[300:]).toarray() for model in (one, other)]
    assert not np.allclose(*scores, atol=1e-4)


def test_lengths_are_bounded(books: Dataset) -> None:
    model = fitted(books, max_norm=0.8)
    for rows in (model.map_, model.label_embeddings_):
        assert np.linalg.norm(rows, axis=1).max() <= 0.8 + 1e-5


def test_a_damaged_model_is_refused(books: Dataset, tmp_path: Path) -> None:
    model = fitted(books)
    model.label_embeddings_ = model.label_embeddings_[:-1]
    model.save(tmp_path / "model")
    with pytest.raises(ModelError, match="the embeddings of labels has the wrong shape"):
        exmlds.load(tmp_path / "model")


def test_the_settings_of_the_paper() -> None:
    assert WSABIE.paper(random_state=3).get_params()["n_components"] == 100
    assert WSABIE.paper(n_epochs=7).n_epochs == 7
