"""DXML: embeddings of labels by walks, a network to their mean, and votes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix, issparse

import exmlds
from exmlds import DXML, ModelError
from exmlds.data import Dataset, make_library
from exmlds.metrics import precision_at_k
from exmlds.models import dxml
from exmlds.validation.arrays import unit_rows

SMALL: dict[str, Any] = {"n_components": 20, "n_hidden": 64, "n_walks": 4, "random_state": 0}
FIXED: dict[str, Any] = {**SMALL, "n_epochs": 15, "temperature": 0.05, "threshold": 0.5}


@pytest.fixture(scope="module")
def books() -> Dataset:
    return make_library(400, random_state=0)


def fitted(books: Dataset, **changes: Any) -> DXML:
    return DXML(**{**FIXED, **changes}).fit(books.X[:300], books.Y[:300])


def test_it_predicts(books: Dataset) -> None:
    model = fitted(books)
    assert precision_at_k(books.Y[300:], model.predict_topk(books.X[300:], 1), 1) > 0.85


def test_labels_that_occur_together_are_near(rng: np.random.Generator) -> None:
    """Labels 0 to 4 occur together, and so do labels 5 to 9."""
    rows = (rng.random((300, 5)) < 0.5).astype(np.float32)
    Y = np.zeros((300, 10), np.float32)
    Y[:150, :5], Y[150:, 5:] = rows[:150], rows[150:]
    E = DXML(n_components=8, n_walks=20)._embed_labels(csr_matrix(Y), rng)
    np.testing.assert_allclose(np.linalg.norm(E, axis=1), 1, rtol=1e-5)
    cosines = E @ E.T
    assert cosines[:5, :5].min() > cosines[:5, 5:].max()


def test_targets_are_means_of_label_embeddings() -> None:
    E = np.array([[1.0, 0], [0, 1], [0, -1]], np.float32)
    Y = csr_matrix(np.array([[1, 1, 0], [0, 0, 1]], np.float32))
    np.testing.assert_allclose(dxml._mean_of_labels(Y, E), [[0.5, 0.5], [0, -1]])


def test_embeddings_of_rows_are_near_their_targets(books: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[np.ndarray] = []
    embed = DXML._embed_labels

    def keep(self: DXML, *given: Any) -> np.ndarray:
        kept.append(embed(self, *given))
        return kept[0]

    monkeypatch.setattr(DXML, "_embed_labels", keep)
    model = fitted(books, n_epochs=60)
    targets = unit_rows(dxml._mean_of_labels(books.Y[:300], kept[0]))
    Z = unit_rows(model.transform(books.X[:300]))
    assert np.einsum("ij,ij->i", Z, targets).mean() > 0.9
    assert model.get_feature_names_out()[:2].tolist() == ["dxml0", "dxml1"]


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("n_components", 10),
        ("n_walks", 1),
        ("walk_length", 10),
        ("window", 5),
        ("n_negative", 2),
        ("n_hidden", 32),
        ("loss", "squared"),
        ("n_epochs", 5),
        ("learning_rate", 0.1),
        ("batch_size", 16),
        ("dropout", 0.3),
        ("features", "standardize"),
        ("n_neighbors", 5),
        ("metric", "euclidean"),
        ("vote", "uniform"),
        ("temperature", 0.5),
    ],
)
def test_every_parameter_changes_the_result(books: Dataset, parameter: str, value: Any) -> None:
    one, other = (fitted(books, **changes) for changes in ({}, {parameter: value}))
    scores = [model.decision_function(books.X[300:]).toarray() for model in (one, other)]
    assert not np.allclose(*scores, atol=1e-4)


def test_settings_are_chosen_on_held_out_rows(books: Dataset) -> None:
    model = DXML(**SMALL).fit(books.X, books.Y)
    assert model.temperature_ in dxml.TEMPERATURES
    assert model.n_epochs_ > 1
    assert model.held_out_metrics_ is not None
    assert model.held_out_metrics_["P@1"] > 0.8
    chosen = {"n_epochs": model.n_epochs_, "temperature": model.temperature_, "threshold": model.threshold_}
    again = DXML(**{**SMALL, **chosen}).fit(books.X, books.Y)
    np.testing.assert_array_equal(again.predict_topk(books.X)[0], model.predict_topk(books.X)[0])


def test_the_settings_of_the_paper() -> None:
    assert DXML.paper(random_state=3).get_params()["vote"] == "uniform"
    assert (DXML.paper(window=3).n_walks, DXML.paper(window=3).window) == (80, 3)


def test_rows_without_label_do_not_vote(books: Dataset) -> None:
    Y = books.Y[:300].toarray()
    Y[::3] = 0
    model = DXML(**FIXED).fit(books.X[:300], Y)
    assert model.labels_.shape[0] == 200
    assert issparse(model.labels_)


def test_dense_rows_are_standardized(books: Dataset, rng: np.random.Generator) -> None:
    dense = rng.normal(size=(300, 8)) + 100
    assert DXML(**FIXED).fit(dense, books.Y[:300]).feature_map_.kind == "standardize"
    assert fitted(books).feature_map_.kind == "l2"
    assert fitted(books, features="none").feature_map_.kind == "none"


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda n: n._replace(input_weights=n.input_weights[1:]), "the weights of the network has the wrong"),
        (lambda n: n._replace(output_bias=n.output_bias[1:]), "the biases of the network has the wrong"),
        (lambda n: n._replace(input_bias=n.input_bias.astype(np.float64)), "wrong dtype"),
        (lambda n: n.input_bias, "is not a Network"),
    ],
)
def test_a_damaged_model_is_refused(books: Dataset, tmp_path: Path, damage: Any, said: str) -> None:
    model = fitted(books)
    model.network_ = damage(model.network_)
    model.save(tmp_path / "model")
    with pytest.raises(ModelError, match=said):
        exmlds.load(tmp_path / "model")
