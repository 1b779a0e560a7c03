"""ExMLDS3: Algorithms 3 and 4, and labels that are not known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.model_selection import KFold, cross_val_score

from exmlds import ExMLDS3, LabelMatrix, MostFrequent, load, metrics, selection
from exmlds.data import Dataset, cooccurrence_from_taxonomy, make_xmc
from exmlds.data import load as load_data

FIXED: dict[str, Any] = {
    "features": "l2",
    "l2": 1.0,
    "temperature": 0.05,
    "threshold": 0.5,
    "n_components": 20,
    "mu": (1, 1, 10),
    "complete_labels": 0.0,
    "smoothing": 1.0,
    "n_epochs": 5,
}


def fit(data: Dataset, n: int = 300, side: dict[str, Any] | None = None, **changes: Any) -> ExMLDS3:
    return ExMLDS3(random_state=0, **{**FIXED, **changes}).fit(data.X[:n], data.Y[:n], **(side or {}))


@pytest.fixture
def model_with(library: Dataset, fitted: Callable[..., Any]) -> Callable[..., ExMLDS3]:
    """A model of the first 300 rows of the library with these parameters changed."""
    return lambda **changes: fitted(ExMLDS3(random_state=0, **{**FIXED, **changes}), library, slice(300))


def slow_algorithms(
    X: np.ndarray, Y: np.ndarray, C: np.ndarray, mu: tuple[float, float, float], Q: np.ndarray, r: int, k: int
) -> np.ndarray:
    """Algorithms 3 and 4 of the paper, line by line: one part, uniform votes, cosine."""
    n = len(Y)
    A = np.block([[mu[1] * Y @ Y.T, mu[2] * Y], [mu[2] * Y.T, mu[0] * C]])
    sums = A.sum(axis=1)
    with np.errstate(divide="ignore"):
        S = np.maximum(np.where(A > 0, np.log(A * A.sum() / np.outer(sums, sums)), 0), 0)
    U, s, _ = np.linalg.svd(S)
    Z = U[:, :r] * np.sqrt(s[:r])
    Z1, Z2 = Z[:n], Z[n:]
    X, Q = (B / np.linalg.norm(B, axis=1, keepdims=True) for B in (X, Q))
    V = np.linalg.solve(X.T @ X + 3 * np.eye(X.shape[1]), X.T @ Z1)
    zq = Q @ V
    similar = (zq / np.linalg.norm(zq, axis=1, keepdims=True)) @ (
        Z1 / np.linalg.norm(Z1, axis=1, keepdims=True)
    ).T
    s1 = np.array([Y[np.argsort(-row, kind="stable")[:k]].sum(axis=0) for row in similar])
    s2 = zq @ Z2.T
    return s1 / np.linalg.norm(s1, axis=1, keepdims=True) + s2 / np.linalg.norm(s2, axis=1, keepdims=True)


@pytest.mark.twins
def test_the_papers_algorithms() -> None:
    data = make_xmc(260, 40, 12, random_state=0)
    X, Y = data.X.toarray().astype(float), data.Y.toarray().astype(float)
    mu = (5.0, 1.0, 1.0)
    expected = slow_algorithms(X[:200], Y[:200], Y[:200].T @ Y[:200], mu, X[200:], r=10, k=15)
    model = ExMLDS3.paper(n_components=10, n_neighbors=15, n_parts=1, mu=mu, threshold=0.5, max_labels=12)
    found = model.fit(data.X[:200], data.Y[:200]).decision_function(data.X[200:]).toarray()
    # Half of the paper's score, above 0; rows at the edge of the neighbourhood may differ by rounding.
    assert np.isclose(found, np.maximum(expected / 2, 0), atol=1e-4).mean() > 0.97
    assert np.abs(found - np.maximum(expected / 2, 0)).max() < 0.2


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("mu", (5, 1, 10)),
        ("mu", (1, 0, 10)),
        ("mu", (1, 1, 1)),
        ("complete_labels", 1.0),
        ("solver", "sgns"),
        ("shift", 3.0),
        ("smoothing", 0.5),
        ("n_parts", 3),
        ("n_learners", 2),
        ("temperature", 1.0),
    ],
)
def test_every_parameter_changes_the_result(
    library: Dataset, model_with: Callable[..., ExMLDS3], parameter: str, value: Any
) -> None:
    base: dict[str, Any] = {"n_parts": 3} if parameter == "n_learners" else {}
    one, other = model_with(**base), model_with(**{**base, parameter: value})
    first, second = (model.decision_function(library.X[300:]).toarray() for model in (one, other))
    assert not np.allclose(first, second, atol=1e-4)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("n_negative", 3),
        ("n_negative", (15, 15, 3)),
        ("n_epochs", 3),
        ("learning_rate", 0.2),
        ("mu", (9, 1, 1)),
    ],
)
def test_every_parameter_of_the_skip_grams_changes_the_result(
    model_with: Callable[..., ExMLDS3], parameter: str, value: Any
) -> None:
    one, other = model_with(solver="sgns"), model_with(solver="sgns", **{parameter: value})
    assert not np.allclose(one.label_embeddings_, other.label_embeddings_, atol=1e-4)


def test_skip_grams_learn_the_same_space() -> None:
    data = make_xmc(1_500, 400, 30, random_state=0)
    test = data.rows(slice(1_200, None))
    by_factors, by_skip_grams = (
        fit(data, 1_200, solver=solver, n_components=30, n_epochs=15).score(test.X, test.Y)
        for solver in ("sppmi", "sgns")
    )
    assert by_skip_grams > by_factors - 0.1


@pytest.mark.twins
def test_what_is_given_of_the_labels_counts(library: Dataset) -> None:
    full = library.Y.T @ library.Y
    hidden = library._replace(Y=selection.hide_labels(library.Y, 0.7, random_state=0))
    with_it = fit(hidden, side={"label_cooccurrence": full})
    assert with_it.visible_share_ == pytest.approx(0.3, abs=0.1)
    without = fit(hidden)
    assert without.visible_share_ == 1
    assert not np.allclose(with_it.label_embeddings_, without.label_embeddings_)
    # The unit of C does not count.
    other_unit = fit(hidden, side={"label_cooccurrence": 7.0 * full})
    np.testing.assert_allclose(other_unit.label_embeddings_, with_it.label_embeddings_, atol=1e-3)


def test_a_known_no_is_never_completed(library: Dataset, model_with: Callable[..., ExMLDS3]) -> None:
    Y = library.Y[:300]
    free = model_with(complete_labels=1.0)
    added = csr_matrix(free.labels_ - Y[np.diff(Y.indptr) > 0])
    assert added.nnz > 100
    known = np.zeros(Y.shape, bool)
    known[:150] = True
    bound = fit(library, complete_labels=1.0, side={"observed": known})
    labelled = np.flatnonzero(np.diff(Y.indptr))
    is_known = labelled < 150
    np.testing.assert_array_equal(bound.labels_[is_known].toarray(), Y[labelled[is_known]].toarray())
    np.testing.assert_array_equal(bound.labels_[~is_known].toarray(), free.labels_[~is_known].toarray())


def test_settings_are_chosen(library: Dataset) -> None:
    model = ExMLDS3(n_components=20, random_state=0).fit(library.X, library.Y)
    assert model.mu_ in ([1.0, 1.0, 10.0], [1.0, 0.0, 1.0])
    assert model.complete_labels_ in (0.0, 0.3, 0.6, 1.0)
    assert model.label_embeddings_.shape == (len(model.classes_), 20)


def test_similar_labels(library: Dataset, fitted: Callable[..., Any], tmp_path: Path) -> None:
    model = fitted(ExMLDS3(random_state=0, **FIXED), library)
    near = model.similar_labels("baking", 4)
    cosines = [cosine for _, cosine in near]
    assert len(near) == 4
    assert "baking" not in [name for name, _ in near]
    assert cosines == sorted(cosines, reverse=True)
    Z = model.label_embeddings_
    column = library.label_names.index(near[0][0])
    own = library.label_names.index("baking")
    assert cosines[0] == pytest.approx(
        Z[column] @ Z[own] / np.linalg.norm(Z[column]) / np.linalg.norm(Z[own])
    )
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert isinstance(again, ExMLDS3)
    assert again.similar_labels("baking", 4) == near
    with pytest.raises(ValueError, match="'no such' is not known"):
        model.similar_labels("no such")


def test_cross_validation_never_cuts_the_cooccurrences() -> None:
    """Even where there are as many labels as rows."""
    data = make_xmc(60, 20, 60, random_state=0)
    C = data.Y.T @ data.Y
    model = ExMLDS3(random_state=0, **FIXED)
    Y = data.Y.toarray()
    values = cross_val_score(model, data.X, Y, cv=KFold(3), params={"label_cooccurrence": LabelMatrix(C)})
    assert np.isfinite(values).all()
    with pytest.raises(ValueError, match=r"pass exmlds\.LabelMatrix\(C\)"):
        cross_val_score(model, data.X, Y, cv=KFold(3), params={"label_cooccurrence": C}, error_score="raise")
    observed = np.ones(data.Y.shape, bool)
    ids, _ = selection.cross_predict(
        model, data.X, data.Y, 3, n_folds=3, random_state=0, label_cooccurrence=C, observed=observed
    )
    assert (ids[:, 0] >= 0).all()
    choice = selection.choose_estimator(
        [model, ExMLDS3(**{**FIXED, "l2": 10.0})], data.X, data.Y, random_state=0, label_cooccurrence=C
    )
    assert len(choice.scores) == 2


def test_what_is_not_known_to_fit_is_named() -> None:
    data = make_xmc(60, 20, 6, random_state=0)
    with pytest.raises(
        ValueError, match="MostFrequent takes nothing beside X and Y. Got 'label_cooccurrence'"
    ):
        selection.cross_predict(MostFrequent(), data.X, data.Y, 2, label_cooccurrence=np.eye(6))
    for mu in ((0, 0, 0), (1, 0, 0), np.ones(3)):
        with pytest.raises(ValueError, match="'mu' parameter of ExMLDS3 must be .* such as"):
            ExMLDS3(mu=mu).fit(data.X, data.Y)
    assert ExMLDS3(**{**FIXED, "n_negative": np.int64(3), "n_epochs": 2, "solver": "sgns"}).fit(
        data.X, data.Y
    )


def test_memory_counts_the_labels() -> None:
    model, n_values = ExMLDS3(n_components=100), 2 * 10**6
    few, many = (model.estimate(10_000, 1_000, n, 200_000, n_values) for n in (20_000, 10**6))
    assert many.memory > few.memory + 4 * 100 * 10**6
    assert many.size > few.size + 4 * 100 * 0.9 * 10**6


def test_a_cooccurrence_that_counts_no_rows_says_nothing_of_what_is_visible(library: Dataset) -> None:
    taxonomy = cooccurrence_from_taxonomy([None] + [0] * (library.Y.shape[1] - 1))
    assert fit(library, side={"label_cooccurrence": taxonomy}).visible_share_ == 1


@pytest.mark.twins
def test_rows_with_no_visible_label_and_labels_with_no_row() -> None:
    data = make_xmc(200, 30, 10, random_state=0)
    Y = data.Y.toarray()
    Y[:100], Y[:, 3] = 0, 0
    C = np.eye(10) + (np.abs(np.subtract.outer(np.arange(10), np.arange(10))) == 1)
    model = ExMLDS3(**FIXED, random_state=0).fit(data.X, Y, label_cooccurrence=C)
    assert np.isfinite(model.label_embeddings_).all()
    assert np.linalg.norm(model.label_embeddings_[3]) > 0
    assert np.isfinite(model.predict_topk(data.X, 10)[1]).all()


@pytest.mark.data
@pytest.mark.slow
def test_a_label_that_no_row_has_is_suggested(real_data: Path) -> None:
    """Wheat is a grain: Reuters without one row of wheat, but with the taxonomy."""
    train, test = load_data("reuters21578-90")
    names = train.label_names
    assert names is not None
    wheat, grain = names.index("wheat"), names.index("grain")
    grains = ("barley", "corn", "oat", "rice", "rye", "sorghum", "wheat")
    C = cooccurrence_from_taxonomy([grain if name in grains else None for name in names])
    Y = train.Y.tolil()
    Y[:, wheat] = 0
    model = ExMLDS3(
        features="l2",
        l2=1.0,
        threshold=0.3,
        mu=(1, 0, 1),
        complete_labels=1.0,
        n_components=100,
        random_state=0,
    ).fit(train.X, csr_matrix(Y), label_names=names, label_cooccurrence=C)
    assert model.label_counts_[wheat] == 0
    suggested = (model.predict_topk(test.X, 5)[0] == wheat).any(axis=1)
    about_wheat = test.Y[:, wheat].toarray().ravel() > 0
    assert suggested[about_wheat].mean() > 0.5
    assert suggested[~about_wheat].mean() < 0.05


@pytest.mark.data
@pytest.mark.slow
def test_cooccurrences_make_up_for_hidden_labels(real_data: Path) -> None:
    train, test = load_data("bibtex")
    hidden = selection.hide_labels(train.Y, 0.8, random_state=0)
    precision = []
    for C in (None, train.Y.T @ train.Y):
        model = ExMLDS3(random_state=0, features="l2", threshold=0.3).fit(
            train.X, hidden, label_cooccurrence=C
        )
        precision.append(metrics.precision_at_k(test.Y, model.predict_topk(test.X, 5), 3))
    assert precision[1] > precision[0] > 0.28
