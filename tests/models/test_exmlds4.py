"""ExMLDS4: the map learnt end to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from exmlds import AnnexML, ExMLDS4, FeatureNeighbors, load, metrics
from exmlds.data import Dataset, make_xmc
from exmlds.data import load as load_data
from exmlds.errors import ModelError
from exmlds.models.exmlds4 import Contexts, _contexts_of_epoch
from exmlds.stages import cells, joint

FIXED: dict[str, Any] = {
    "features": "l2",
    "temperature": 0.05,
    "threshold": 0.5,
    "n_components": 10,
    "n_epochs": 3,
    "n_learners": 1,
    "batch_size": 64,
}


Scores = Callable[..., np.ndarray]


@pytest.fixture
def scores(library: Dataset, fitted: Callable[..., Any]) -> Scores:
    """Of the last 100 rows by a model of the first 300 with these parameters changed."""

    def of(**changes: Any) -> np.ndarray:
        model = fitted(ExMLDS4(random_state=0, **{**FIXED, **changes}), library, slice(300))
        return model.decision_function(library.X[300:]).toarray()

    return of


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
        ("positives", "overlap"),
        ("negatives", "dissimilar"),
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
def test_every_parameter_changes_the_result(scores: Scores, parameter: str, value: Any) -> None:
    assert not np.allclose(scores(), scores(**{parameter: value}), atol=1e-4)


@pytest.mark.twins
@pytest.mark.parametrize(("parameter", "value"), [("partition", "kmeans"), ("n_rounds", 1)])
def test_the_parameters_of_parts_change_the_result(scores: Scores, parameter: str, value: Any) -> None:
    one, other = scores(n_parts=3), scores(n_parts=3, **{parameter: value})
    assert not np.allclose(one, other, atol=1e-4)


@pytest.mark.twins
@pytest.mark.parametrize(("parameter", "value"), [("margin", 0.0), ("n_negative", 2.0)])
def test_the_parameters_of_sgns_change_the_result(scores: Scores, parameter: str, value: Any) -> None:
    one, other = scores(loss="sgns"), scores(loss="sgns", **{parameter: value})
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
    published = AnnexML.paper().get_params()
    for name in ("n_parts", "n_neighbors", "n_neighbors_fit", "positives", "partition", "vote", "features"):
        assert settings[name] == published[name]


@pytest.mark.data
@pytest.mark.slow
def test_delicious(real_data: Path) -> None:
    train, test = load_data("delicious")
    model = ExMLDS4(features="l2", temperature=0.1, n_epochs=8, threshold=0.3, random_state=0)
    ids = model.fit(train.X, train.Y).predict_topk(test.X, 5)
    assert metrics.precision_at_k(test.Y, ids, 1) > 0.65


def killed_after(folder: Path, n: int, data: Dataset) -> None:
    """A real process that fits with a checkpoint and is killed while it keeps something for the n-th time."""
    np.savez(folder / "data.npz", X=data.X.toarray(), Y=data.Y.toarray())
    program = f"""
import os, signal, sys
import numpy as np
from exmlds import ExMLDS4
real, count = os.replace, 0
def replace(*given):
    global count
    count += 1
    if count == {n}:
        os.kill(os.getpid(), signal.SIGKILL)
    real(*given)
os.replace = replace
data = np.load({str(folder / "data.npz")!r})
ExMLDS4(**{KILLED!r}).fit(data["X"], data["Y"], checkpoint={str(folder / "kept")!r})
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


KILLED: dict[str, Any] = {**FIXED, "n_learners": 2, "random_state": 3, "n_parts": 2}


@pytest.fixture(scope="module")
def whole(library: Dataset) -> ExMLDS4:
    data = library.rows(slice(0, 200))
    return ExMLDS4(**KILLED).fit(data.X.toarray(), data.Y.toarray())


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends SIGKILL")
@pytest.mark.parametrize("moment", [1, 2, 4, 7])
def test_a_killed_fit_goes_on_to_the_same_model(
    library: Dataset, whole: ExMLDS4, tmp_path: Path, moment: int
) -> None:
    data = library.rows(slice(0, 200))
    X, Y = data.X.toarray(), data.Y.toarray()
    killed_after(tmp_path, moment, data)
    model = ExMLDS4(**KILLED).fit(X, Y, checkpoint=tmp_path / "kept")
    for one, other in zip(whole.predict_topk(X, 5), model.predict_topk(X, 5)):
        np.testing.assert_array_equal(one, other)


def test_a_checkpoint_keeps_the_seed_and_the_settings(library: Dataset, tmp_path: Path) -> None:
    def fitted() -> ExMLDS4:
        model = ExMLDS4(n_components=8, n_learners=1, n_epochs=2)  # its random_state is None
        return model.fit(library.X[:200], library.Y[:200], checkpoint=tmp_path / "kept")

    one, again = fitted(), fitted()
    assert one.threshold_ == again.threshold_
    np.testing.assert_array_equal(one.predict_topk(library.X)[1], again.predict_topk(library.X)[1])


def test_a_checkpoint_of_another_fit_is_refused(library: Dataset, tmp_path: Path) -> None:
    X, Y, kept = library.X[:100], library.Y[:100], tmp_path / "kept"
    ExMLDS4(**FIXED, random_state=0).fit(X, Y, checkpoint=kept)
    with pytest.raises(ModelError, match="of another fit: its parameters differ. Choose another folder"):
        ExMLDS4(**FIXED, random_state=1).fit(X, Y, checkpoint=kept)
    with pytest.raises(ModelError, match="its data differ"):
        ExMLDS4(**FIXED, random_state=0).fit(X[:90], Y[:90], checkpoint=kept)
    (tmp_path / "letter.txt").write_text("dear friend")
    with pytest.raises(ModelError, match="not empty and not a checkpoint"):
        ExMLDS4(**FIXED, random_state=0).fit(X, Y, checkpoint=tmp_path)
    assert (tmp_path / "letter.txt").read_text() == "dear friend"


def test_contexts_within_a_part() -> None:
    near = np.array([[1, 3, 2], [0, 4, -1], [4, 3, 0], [2, 1, -1], [-1, -1, -1]])
    found = Contexts(near).part(np.array([0, 2, 3]))
    np.testing.assert_array_equal(found, [[2, 1, -1], [2, 0, -1], [1, -1, -1]])


def test_cells_are_saved_with_the_model(
    library: Dataset, fitted: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = fitted(ExMLDS4(random_state=0, **FIXED, index="exact"), library, slice(300))
    monkeypatch.setattr("exmlds.voting.memory.CELLS_FROM", 100)
    other = ExMLDS4(random_state=0, **FIXED).fit(library.X[:300], library.Y[:300])
    assert isinstance(other.learners_[0].parts[0].row_index.segments[0].rows, cells.Cells)
    exact, near = (model.predict_topk(library.X[300:], 3)[0] for model in (one, other))
    assert np.mean(exact == near) > 0.95
    other.save(tmp_path / "model")
    monkeypatch.setattr(cells, "build", None)  # they are not built again
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_topk(library.X[300:], 3)[0], near)


def test_small_parts_are_searched_exactly(scores: Scores) -> None:
    np.testing.assert_array_equal(scores(), scores(index="exact"))


def test_maps_of_the_kernel_are_not_rounded() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4)).astype(np.float32)
    Y = csr_matrix(np.column_stack([X > 0, X[:, :1] * X[:, 1:2] > 0]).astype(np.float32))
    given = {**FIXED, "features": "nystroem", "random_state": 0}
    exact, packed = (
        ExMLDS4(storage=storage, **given).fit(X[:500], Y[:500]) for storage in ("float32", "int8")
    )
    np.testing.assert_array_equal(exact.learners_[0].parts[0].V.values, packed.learners_[0].parts[0].V.values)
    assert packed.score(X[500:], Y[500:]) > 0.9


def test_other_rows_of_labels_are_visited_in_each_epoch() -> None:
    contexts, state = np.arange(60).reshape(30, 2), joint.init(3, 2, np.random.default_rng(0))
    visited = set()
    for epoch in range(60):
        kept = _contexts_of_epoch(contexts, 10, state._replace(epoch=epoch))
        np.testing.assert_array_equal(kept[:10], contexts[:10])
        own = np.flatnonzero(kept[:, 0] >= 0)
        np.testing.assert_array_equal(kept[own], contexts[own])
        assert len(own) == 13  # a quarter as many as rows, rounded up
        visited.update(own.tolist())
    assert visited == set(range(30))
    np.testing.assert_array_equal(_contexts_of_epoch(contexts[:13], 10, state), contexts[:13])
