"""AnnexML: joint learning with its own settings."""

from __future__ import annotations

from exmlds import AnnexML, ExMLDS4, metrics
from exmlds.data import make_library
from exmlds.runtime.memory import DataSize


def test_an_epoch_takes_each_row_of_a_context() -> None:
    model = AnnexML(n_epochs=3, n_neighbors_fit=7)
    assert model._paths() == [{"n_epochs": 21}]
    assert model._paths()[0]["n_epochs"] == 7 * ExMLDS4(n_epochs=3)._paths()[0]["n_epochs"]


def test_its_settings_are_its_own() -> None:
    settings = AnnexML.paper(random_state=3).get_params()
    assert settings == AnnexML(random_state=3).get_params()
    assert (settings["loss"], settings["n_learners"], settings["n_parts"]) == ("softmax", 15, "paper")


def test_parts_are_one_for_every_full_6000_rows() -> None:
    model = AnnexML()._memory_model()
    sizes = [model.count_parts(DataSize(n, 5_000, 4_000, 200 * n, 5 * n)) for n in (500, 11_999, 15_539)]
    assert sizes == [1, 1, 2]


def test_it_predicts() -> None:
    books = make_library(300, random_state=0)
    model = AnnexML(n_learners=2, n_epochs=2, random_state=0).fit(books.X[:200], books.Y[:200])
    assert metrics.precision_at_k(books.Y[200:], model.predict_topk(books.X[200:], 1), 1) > 0.8
