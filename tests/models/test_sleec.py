"""SLEEC: similarities of near label sets, completed at low rank; and the settings of its authors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from exmlds import SLEEC, ExMLDS1, ExMLDS2, ExMLDS3, metrics
from exmlds.data import load as load_data
from exmlds.data import make_library, make_xmc
from exmlds.stages import sppmi
from exmlds.voting.paper_settings import RELEASED


def test_similarities_are_the_cosines_of_the_nearest_label_sets(rng: np.random.Generator) -> None:
    data = make_xmc(60, 20, 12, random_state=0)
    sets = sppmi.distinct(data.Y[np.flatnonzero(np.diff(data.Y.indptr))]).sets
    similar = SLEEC(n_neighbors_fit=4)._similarities(sets, rng).toarray()
    unit = sets.toarray() / np.linalg.norm(sets.toarray(), axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.testing.assert_allclose(similar, similar.T)
    stored = similar > 0
    np.testing.assert_allclose(similar[stored], cosines[stored], rtol=1e-5)
    assert stored.diagonal().all()
    others = cosines - 2 * np.eye(len(cosines))
    for row, found in enumerate(stored):
        nearest = np.sort(others[row])[::-1][:4]
        assert np.sort(others[row][found])[::-1][:4] == pytest.approx(nearest[nearest > 0], abs=1e-5)


def test_it_predicts() -> None:
    books = make_library(400, random_state=0)
    model = SLEEC(n_components=30, random_state=0).fit(books.X[:300], books.Y[:300])
    assert metrics.precision_at_k(books.Y[300:], model.predict_topk(books.X[300:], 1), 1) > 0.9
    few = SLEEC(n_components=30, n_iterations=1, random_state=0).fit(books.X[:300], books.Y[:300])
    assert not np.allclose(few.transform(books.X[300:]), model.transform(books.X[300:]))


@pytest.mark.parametrize("method", [SLEEC, ExMLDS1, ExMLDS2, ExMLDS3])
def test_released_settings_of_a_data_set(method: type) -> None:
    settings = method.paper("eurlex-4k", random_state=3).get_params()
    assert (settings["n_learners"], settings["n_parts"], settings["n_neighbors"]) == (5, 3, 8)
    assert (settings["n_components"], settings["l2"]) == ((300, 3.0) if method is ExMLDS3 else (100, 0.5))
    assert settings["vote"] == "uniform"
    assert settings["random_state"] == 3
    assert method.paper("mediamill").features == "none"
    assert method.paper().n_parts == "paper"
    assert set(RELEASED) >= {"bibtex", "delicious", "eurlex-4k", "mediamill"}
    with pytest.raises(ValueError, match="no settings for 'eurlex'. There are settings for bibtex, "):
        method.paper("eurlex")


@pytest.mark.data
@pytest.mark.slow
def test_bibtex(real_data: Path) -> None:
    train, test = load_data("bibtex")
    model = SLEEC.paper("bibtex", threshold=0.5, random_state=0).fit(train.X, train.Y)
    assert metrics.precision_at_k(test.Y, model.predict_topk(test.X, 5), 1) > 0.6
