"""Synthetic data has the documented properties."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from exmlds.data import make_library, make_xmc
from exmlds.data.synthetic import BLOCK


def same(A: csr_matrix, B: csr_matrix) -> bool:
    return A.shape == B.shape and (A != B).nnz == 0


def test_seeds_decide() -> None:
    one, again, other = (make_xmc(200, 50, 20, random_state=seed) for seed in (1, 1, 2))
    assert same(one.X, again.X)
    assert same(one.Y, again.Y)
    assert not same(one.X, other.X)


def test_frequencies_follow_the_power_law() -> None:
    Y = make_xmc(30_000, 500, 1_000, exponent=1.0, random_state=0).Y
    frequency = np.sort(np.asarray(Y.sum(axis=0)).ravel())[::-1]
    ranks = np.arange(1, 301)
    slope = np.polyfit(np.log(ranks), np.log(frequency[:300]), 1)[0]
    assert -1.2 < slope < -0.8


def test_labels_come_in_topics() -> None:
    Y = make_xmc(20_000, 500, 100, n_topics=10, label_noise=0, random_state=0).Y
    together = (Y.T @ Y).toarray()
    frequency = together.diagonal()
    expected = np.outer(frequency, frequency) / Y.shape[0]
    lift = together / np.maximum(expected, 1)
    np.fill_diagonal(lift, 0)
    common = np.argsort(-frequency)[:20]
    assert (lift[np.ix_(common, common)].max(axis=1) > 1.5).mean() > 0.8


def test_features_explain_the_labels_and_noise_does_not() -> None:
    from exmlds import FeatureNeighbors

    scores = []
    for noise in (0.0, 0.5):
        data = make_xmc(3_000, 500, 50, label_noise=noise, random_state=0)
        train, test = data.rows(slice(0, 2_500)), data.rows(slice(2_500, None))
        scores.append(FeatureNeighbors(threshold=0.5).fit(train.X, train.Y).score(test.X, test.Y))
    assert scores[0] > 0.85
    assert scores[1] < scores[0] - 0.1


def test_rows_of_all_blocks_are_there() -> None:
    data = make_xmc(BLOCK + 10, 30, 10, features_per_row=5, random_state=0)
    assert data.X.shape == (BLOCK + 10, 30)
    assert (np.diff(data.Y.indptr) >= 1).all()
    assert (np.diff(data.X.indptr) >= 1).all()
    assert data.X.data.min() > 0
    assert set(data.Y.data) == {1.0}


def test_library_speaks_plainly() -> None:
    books = make_library(50, random_state=3)
    assert books.label_names is not None
    assert books.feature_names is not None
    assert books.Y.shape == (50, len(books.label_names))
    assert books.X.shape == (50, len(books.feature_names))
    assert {"cooking", "astronomy"} < set(books.label_names)
    cooking = np.asarray(books.Y[:, books.label_names.index("cooking")].todense()).ravel() > 0
    recipe = np.asarray(make_library(2_000).X[:, books.feature_names.index("recipe")].todense()).ravel()
    filed = np.asarray(make_library(2_000).Y[:, books.label_names.index("cooking")].todense()).ravel() > 0
    assert recipe[filed].mean() > 20 * recipe[~filed].mean()
    assert cooking.dtype == bool


@pytest.mark.parametrize(
    "wrong", [{"n_labels": 0}, {"label_noise": 1.5}, {"labels_per_row": 0.5}, {"n_topics": -1}]
)
def test_wrong_parameters_are_named(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter of make_xmc must be"):
        make_xmc(**{"n_samples": 10, **wrong})  # type: ignore[arg-type]
