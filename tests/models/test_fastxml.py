"""FastXML and PfastreXML: quality on small data, what their parameters do, save and load."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import exmlds
from exmlds import FastXML, MostFrequent, PfastreXML, metrics
from exmlds.data import Dataset, make_library
from exmlds.kernels import Engine
from exmlds.stages import rerank
from exmlds.validation.arrays import unit_rows


@pytest.fixture(scope="module")
def books() -> Dataset:
    return make_library(900, random_state=0)


@pytest.fixture(scope="module")
def parts(books: Dataset) -> tuple[Dataset, Dataset]:
    return books.rows(np.arange(600)), books.rows(np.arange(600, 900))


@pytest.mark.parametrize("method", [FastXML, PfastreXML])
def test_trees_learn(method: type[FastXML], parts: tuple[Dataset, Dataset]) -> None:
    train, test = parts
    quality = [
        metrics.precision_at_k(test.Y, model.fit(train.X, train.Y).predict_topk(test.X, 3), 3)
        for model in (
            MostFrequent(),
            method(n_trees=1, threshold=0.5, random_state=0),
            method(n_trees=20, threshold=0.5, random_state=0),
        )
    ]
    assert quality[0] + 0.1 < quality[1] < quality[2] - 0.02


def test_the_result_does_not_depend_on_threads(parts: tuple[Dataset, Dataset], tmp_path: Path) -> None:
    train, test = parts
    models = [
        PfastreXML(n_trees=5, threshold=0.5, random_state=3, n_jobs=n_jobs).fit(train.X, train.Y)
        for n_jobs in (1, 3)
    ]
    for one, other in zip(models[0].forest_[:-1], models[1].forest_[:-1]):
        np.testing.assert_array_equal(one, other)
    models[1].save(tmp_path / "model")
    loaded = exmlds.load(tmp_path / "model")
    for one, other in zip(models[0].predict_topk(test.X), loaded.predict_topk(test.X)):
        np.testing.assert_array_equal(one, other)


def test_engines_grow_the_same_trees(parts: tuple[Dataset, Dataset]) -> None:
    train = parts[0].rows(np.arange(120))
    # The gains are different numbers, so that no two labels are at the same place of a ranking by chance.
    models = [
        PfastreXML(n_trees=2, threshold=0.5, random_state=0).with_engine(Engine(name)).fit(train.X, train.Y)
        for name in ("jit", "reference")
    ]
    ids = [model.predict_topk(train.X, 3)[0] for model in models]
    assert np.mean(ids[0] == ids[1]) > 0.9


def test_rare_labels_gain(parts: tuple[Dataset, Dataset]) -> None:
    train, test = parts
    weights = metrics.inverse_propensity(train.Y)
    frequent, rare = (
        metrics.psp_at_k(
            test.Y,
            method(random_state=0, threshold=0.5).fit(train.X, train.Y).predict_topk(test.X, 5),
            weights,
        )
        for method in (FastXML, PfastreXML)
    )
    assert rare > frequent


def test_scores_are_those_of_the_formula(books: Dataset) -> None:
    trees_alone, both = (
        PfastreXML(n_trees=3, alpha=alpha, gamma=5.0, threshold=0.5, random_state=0).fit(books.X, books.Y)
        for alpha in (1.0, 0.6)
    )
    P = trees_alone.decision_function(books.X[:20])
    found = both.decision_function(books.X[:20])
    A = unit_rows(books.X).toarray()
    means = np.stack([A[books.Y[:, [label]].toarray().ravel() == 1].mean(axis=0) for label in range(37)])
    row, label = P.nonzero()
    squares = np.square(A[row] - means[label]).sum(axis=1)
    expected = np.asarray(P[row, label]).ravel() ** 0.6 * np.exp(-5 / 2 * squares) ** 0.4
    np.testing.assert_allclose(np.asarray(found[row, label]).ravel(), expected, rtol=0.02)


def test_means_are_classifiers_of_distances() -> None:
    rng = np.random.default_rng(0)
    X = csr_matrix(rng.random((12, 5)).astype(np.float32))
    Y = csr_matrix(np.eye(3, 4, dtype=np.float32)[np.arange(12) % 3])  # the last label has no row
    margins = rerank.score(rerank.fit_means(X, Y), X, np.tile(np.arange(4), (12, 1)))
    dense = X.toarray()
    means = np.stack([dense[np.arange(12) % 3 == label].mean(axis=0) for label in range(3)] + [np.zeros(5)])
    squares = np.square(dense[:, None] - means).sum(axis=2)
    np.testing.assert_allclose(np.square(dense).sum(axis=1)[:, None] - 2 * margins, squares, atol=0.02)


def test_published_settings() -> None:
    published = PfastreXML.paper(n_trees=5, gamma=10.0).get_params()
    assert (published["n_trees"], published["gamma"], published["alpha"]) == (5, 10.0, 0.8)
    assert FastXML.paper(cost=2.0).get_params() == FastXML().get_params()


def test_every_parameter_counts(books: Dataset) -> None:
    train = books.rows(np.arange(300))
    settings = {"n_trees": 2, "threshold": 0.5, "random_state": 0}
    plain = PfastreXML(**settings).fit(train.X, train.Y).predict_topk(train.X)[1]
    for name, value in {
        "n_trees": 3,
        "cost": 0.3,
        "max_leaf": 40,
        "n_leaf_labels": 2,
        "features": "standardize",
        "propensity_a": 0.1,
        "propensity_b": 9.0,
        "alpha": 0.5,
        "gamma": 3.0,
    }.items():
        other = PfastreXML(**{**settings, name: value}).fit(train.X, train.Y).predict_topk(train.X)[1]
        assert not np.array_equal(plain, other), name
