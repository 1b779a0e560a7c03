"""ExMLDS2: contexts by labels, skip-grams, then as ExMLDS1."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exmlds import ExMLDS2, MostFrequent, metrics
from exmlds.data import Dataset, make_xmc
from exmlds.data import load as load_data
from exmlds.models.exmlds2 import SMALL
from exmlds.stages import sgns

FIXED: dict[str, Any] = {
    "features": "l2",
    "l2": 1.0,
    "temperature": 0.05,
    "threshold": 0.5,
    "n_components": 10,
    "n_neighbors_fit": 10,
    "n_epochs": 5,
    "n_negative": 5,
}


Scores = Callable[..., np.ndarray]


@pytest.fixture
def scores(library: Dataset, fitted: Callable[..., Any]) -> Scores:
    """Of the last 100 rows by a model of the first 300 with these parameters changed."""

    def of(**changes: Any) -> np.ndarray:
        model = fitted(ExMLDS2(random_state=0, **{**FIXED, **changes}), library, slice(300))
        return model.decision_function(library.X[300:]).toarray()

    return of


@pytest.fixture
def skip_grams(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the stage was given in the last fit: `pairs`, (n, n), `n_negative` and `n_epochs`."""
    seen: dict[str, Any] = {}
    relate, init = sgns.relate, sgns.init

    def watched_relate(pairs: Any, n_negative: int, **options: Any) -> Any:
        seen.update(pairs=pairs, n_negative=n_negative)
        return relate(pairs, n_negative, **options)

    def watched_init(*sizes: int, n_epochs: int, **options: Any) -> Any:
        seen.update(n_epochs=n_epochs)
        return init(*sizes, n_epochs=n_epochs, **options)

    monkeypatch.setattr(sgns, "relate", watched_relate)
    monkeypatch.setattr(sgns, "init", watched_init)
    return seen


@pytest.mark.twins
def test_contexts_are_the_nearest_rows_by_labels(skip_grams: dict[str, Any]) -> None:
    data = make_xmc(80, 20, 10, random_state=0)
    Y = data.Y[np.diff(data.Y.indptr) > 0]
    ExMLDS2(**{**FIXED, "n_neighbors_fit": 6}, random_state=0).fit(data.X, data.Y)
    near = np.split(skip_grams["pairs"].indices, skip_grams["pairs"].indptr[1:-1])
    assert len(near) == Y.shape[0]
    dense = Y.toarray() / np.linalg.norm(Y.toarray(), axis=1, keepdims=True)
    cosines = dense @ dense.T
    np.fill_diagonal(cosines, -1)
    for row, found in enumerate(near):
        assert row not in found
        assert len(set(found)) == len(found) == min(6, (cosines[row] > 0).sum())
        np.testing.assert_allclose(
            np.sort(cosines[row][found])[::-1], np.sort(cosines[row])[::-1][: len(found)], atol=1e-6
        )


@pytest.mark.twins
def test_rows_that_share_no_label_have_no_pairs() -> None:
    model = ExMLDS2(smoothing=0.75, **{**FIXED, "n_components": 3}).fit(np.eye(30), np.eye(30))
    assert np.isfinite(model.predict_topk(np.eye(30), 2)[1]).all()


def test_it_learns() -> None:
    data = make_xmc(1_500, 400, 30, random_state=0)
    train, test = data.rows(slice(0, 1_200)), data.rows(slice(1_200, None))
    ours, theirs = (
        model.fit(train.X, train.Y).score(test.X, test.Y)
        for model in (
            ExMLDS2(**{**FIXED, "n_components": 30, "n_epochs": 20}, random_state=0),
            MostFrequent(),
        )
    )
    assert ours > theirs + 0.3


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("n_neighbors_fit", 3),
        ("context", "features"),
        ("context", "embedding"),
        ("tied", False),
        ("n_negative", 2),
        ("n_epochs", 2),
        ("smoothing", 0.75),
        ("learning_rate", 0.2),
    ],
)
def test_every_parameter_of_its_own_changes_the_result(scores: Scores, parameter: str, value: Any) -> None:
    assert not np.allclose(scores(), scores(**{parameter: value}), atol=1e-4)


@pytest.mark.parametrize(
    ("small", "given", "n_negative", "n_epochs"),
    [(100, "auto", 15, 35), (30, "auto", 8, 18), (1, "auto", 2, 5), (100, 3, 3, 3)],
)
def test_the_effort_falls_with_the_rows_as_in_the_paper(
    small: int,
    given: str | int,
    n_negative: int,
    n_epochs: int,
    skip_grams: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("exmlds.models.exmlds2.SMALL", small)  # here 60 rows may be many
    X, Y = np.eye(60), np.eye(3)[np.arange(60) % 3]
    ExMLDS2(**{**FIXED, "n_negative": given, "n_epochs": given}, random_state=0).fit(X, Y)
    assert (skip_grams["n_negative"], skip_grams["n_epochs"]) == (n_negative, n_epochs)


def test_data_are_small_up_to_20_000_rows() -> None:
    assert SMALL == 20_000


@pytest.mark.parametrize(
    ("data_set", "n_neighbors_fit", "n_negative", "n_epochs"),
    [
        ("bibtex", 250, 15, 35),
        ("mediamill", 300, 2, 5),
        ("delicious-200k", 50, 2, 5),
        (None, 20, "auto", "auto"),
    ],
)
def test_the_papers_effort_for_a_data_set(
    data_set: str | None, n_neighbors_fit: int, n_negative: int | str, n_epochs: int | str
) -> None:
    settings = ExMLDS2.paper(data_set).get_params()
    found = settings["n_neighbors_fit"], settings["n_negative"], settings["n_epochs"]
    assert found == (n_neighbors_fit, n_negative, n_epochs)
    assert ExMLDS2.paper(data_set, n_epochs=3, n_neighbors_fit=7).get_params() == {
        **settings,
        "n_epochs": 3,
        "n_neighbors_fit": 7,
    }


def test_learners_do_not_depend_on_threads(library: Dataset) -> None:
    found = [
        ExMLDS2(**FIXED, n_learners=3, n_parts=2, random_state=0, n_jobs=n_jobs)
        .fit(library.X, library.Y)
        .predict_topk(library.X)
        for n_jobs in (1, 2)
    ]
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-6)


@pytest.mark.data
@pytest.mark.slow
def test_bibtex(real_data: Path) -> None:
    train, test = load_data("bibtex")
    model = ExMLDS2(features="l2", l2=1.0, threshold=0.3, random_state=0).fit(train.X, train.Y)
    assert metrics.precision_at_k(test.Y, model.predict_topk(test.X, 5), 1) > 0.62
