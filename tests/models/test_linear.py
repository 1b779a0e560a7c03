"""Methods that score every label by a linear model: ridge regression, one-vs-all, LEML."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix, diags_array, hstack
from sklearn.linear_model import Ridge
from sklearn.svm import LinearSVC

from exmlds import LEML, LEMLIMC, DiSMEC, OneVsAll, RidgeRegression
from exmlds.data import Dataset, make_library, make_xmc
from exmlds.metrics import precision_at_k
from exmlds.models import ridge
from exmlds.selection import hide_labels


@pytest.fixture(scope="module")
def books() -> Dataset:
    return make_library(400, random_state=0)


def unit(X: csr_matrix) -> np.ndarray:
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return np.asarray((diags_array(1 / np.maximum(lengths, 1e-12)) @ X).toarray())


def test_ridge_regression_is_that_of_scikit_learn(books: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ridge, "BLOCK", 5)  # labels
    model = RidgeRegression(l2=0.5, threshold=0.5).fit(books.X, books.Y)
    peer = Ridge(alpha=0.5, fit_intercept=False).fit(unit(books.X), books.Y.toarray())
    np.testing.assert_allclose(model.weights_, peer.coef_.T, atol=2e-4)


def test_ridge_regression_chooses_its_penalty(books: Dataset) -> None:
    rng = np.random.default_rng(0)
    model = RidgeRegression(random_state=0, threshold=0.5).fit(books.X, books.Y)
    assert model.l2_ in ridge.L2S
    noise = rng.normal(size=(60, 200)).astype(np.float32)  # as many features as rows: only a penalty helps
    Y = (noise[:, :3] + 0.5 * rng.normal(size=(60, 3)) > 1).astype(int)
    chosen = RidgeRegression(random_state=0, threshold=0.5, features="none").fit(noise, Y)
    assert chosen.l2_ > 0.1


def test_one_vs_all_is_that_of_scikit_learn(books: Dataset) -> None:
    model = OneVsAll(cost=1.0, n_epochs=300, threshold=0.5).fit(books.X, books.Y)
    A = unit(books.X)
    for label in (0, 5):
        truth = books.Y[:, [label]].toarray().ravel()
        peer = LinearSVC(C=1.0, loss="squared_hinge", tol=1e-6, max_iter=10_000).fit(A, truth)
        own = A @ model.weights_[:, [label]].toarray().ravel() + model.bias_[label]
        np.testing.assert_allclose(own, peer.decision_function(A), atol=0.1)


def test_labels_in_blocks_are_trained_in_the_same_way(
    books: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = OneVsAll(threshold=0.5).fit(books.X, books.Y)
    monkeypatch.setattr("exmlds.models.one_vs_all.EXAMPLES", 3 * books.X.shape[0])
    parts = OneVsAll(threshold=0.5).fit(books.X, books.Y)
    assert whole.weights_.shape == parts.weights_.shape
    # The order in which examples are visited depends on the number of the label in its block.
    np.testing.assert_allclose(whole.weights_.toarray(), parts.weights_.toarray(), atol=0.1)


def test_dismec_drops_small_weights(books: Dataset) -> None:
    one_vs_all, dismec = (method(threshold=0.5).fit(books.X, books.Y) for method in (OneVsAll, DiSMEC))
    assert np.abs(dismec.weights_.data).min() >= 0.01 > np.abs(one_vs_all.weights_.data).min()
    assert dismec.weights_.nnz < one_vs_all.weights_.nnz
    assert DiSMEC.paper(cost=2.0).get_params()["cost"] == 2.0


def test_leml_of_full_rank_is_a_regression(books: Dataset) -> None:
    train, test = books.rows(np.arange(300)), books.rows(np.arange(300, 400))
    low, full, linear = (
        model.fit(train.X, train.Y)
        for model in (
            LEML(n_components=2, threshold=0.5, random_state=0),
            LEML(n_components=100, l2=0.1, threshold=0.5, random_state=0),
            RidgeRegression(threshold=0.5, random_state=0),
        )
    )
    quality = [precision_at_k(test.Y, model.predict_topk(test.X, 3), 3) for model in (low, full, linear)]
    assert quality[0] < quality[1] - 0.1
    assert abs(quality[1] - quality[2]) < 0.05


@pytest.mark.parametrize("method", [LEML, LEMLIMC])
def test_the_unit_of_features_does_not_matter(method: type[LEML] | type[LEMLIMC], books: Dataset) -> None:
    settings = {"n_components": 10, "n_iterations": 30, "features": "none", "threshold": 0.5}
    products = []
    for unit in (1, 100):
        model = method(**settings, random_state=0).fit(unit * books.X, books.Y)
        products.append(unit * model.map_ @ model.label_embeddings_.T)
    np.testing.assert_allclose(products[0], products[1], atol=1e-3)


def test_unknown_cells_are_no_negatives() -> None:
    data = make_xmc(600, 60, 20, random_state=0)
    train, test = data.rows(np.arange(400)), data.rows(np.arange(400, 600))
    visible = csr_matrix(hide_labels(train.Y, 0.7, random_state=0))
    hidden = train.Y - visible
    observed = csr_matrix(1 - hidden.toarray())  # all but the hidden ones
    plain, told = (
        LEML(n_components=20, threshold=0.5, random_state=0).fit(train.X, visible, **given)
        for given in ({}, {"observed": observed})
    )
    quality = [precision_at_k(test.Y, model.predict_topk(test.X, 3), 3) for model in (plain, told)]
    assert quality[1] > quality[0]


def test_features_of_labels_bring_what_is_known_of_similar_labels() -> None:
    """Each label has a copy that is hidden in nine rows of ten; co-occurrences tell that they go together."""
    data = make_xmc(900, 80, 20, random_state=1)
    Y = csr_matrix(hstack([data.Y, data.Y]))
    train, test = np.arange(600), np.arange(600, 900)
    copies = hide_labels(data.Y[train], 0.9, random_state=0)
    visible = csr_matrix(hstack([data.Y[train], copies]))
    C = csr_matrix(Y[train].T @ Y[train])
    settings = {"n_components": 20, "threshold": 0.5, "random_state": 0}
    models = (
        LEMLIMC(**settings).fit(data.X[train], visible, label_cooccurrence=C),
        LEML(**settings).fit(data.X[train], visible),
    )
    quality = [precision_at_k(Y[test], model.predict_topk(data.X[test], 5), 5) for model in models]
    assert quality[0] > quality[1] + 0.05


def test_without_knowledge_of_labels_both_are_the_same() -> None:
    data = make_xmc(200, 40, 12, random_state=0)
    settings = {"n_components": 12, "n_iterations": 100, "threshold": 0.5, "random_state": 0}
    plain = LEML(**settings).fit(data.X, data.Y)
    with_identity = LEMLIMC(**settings).fit(data.X, data.Y, label_cooccurrence=csr_matrix(np.eye(12)))
    products = [model.map_ @ model.label_embeddings_.T for model in (plain, with_identity)]
    np.testing.assert_allclose(products[0], products[1], atol=2e-3)
