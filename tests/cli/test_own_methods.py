"""A user's own method: twenty lines on `XMCEstimator`, then everything that the package's methods have."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import exmlds
from exmlds import DataError, ModelError
from exmlds.cli.settings import find_method
from exmlds.data import Dataset, write_xc

Run = Callable[..., Any]

SOURCE = '''
import numpy as np
from exmlds import XMCEstimator

class NearestMean(XMCEstimator):
    """The labels whose mean training row is most similar to a row."""

    def __init__(self, *, power=1.0, threshold="auto", max_labels=100, max_memory=None, n_jobs=None,
                 random_state=None, verbose=0):
        self.power, self.threshold, self.max_labels = power, threshold, max_labels
        self.max_memory, self.n_jobs = max_memory, n_jobs
        self.random_state, self.verbose = random_state, verbose

    def _fit(self, X, Y, rng, **side):
        means = np.asarray(Y.T @ X.todense())
        self.means_ = means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)

    def _candidates(self, X, k):
        scores = np.clip(X @ self.means_.T / 100, 1e-6, 1) ** self.power
        ids = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return ids, np.take_along_axis(scores, ids, axis=1).astype(np.float32)
'''


OWN = "my_methods:NearestMean"


@pytest.fixture
def folder(tmp_path: Path, library: Dataset, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my_methods.py").write_text(SOURCE)
    write_xc(tmp_path / "train.txt", library.rows(slice(0, 300)))
    write_xc(tmp_path / "test.txt", library.rows(slice(300, 400)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_methods", raising=False)
    return tmp_path


def test_the_command_line_takes_it(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("train", "train.txt", "-o", "model", "--method", OWN, "--set", "power=2.0").code == 0
    assert run("evaluate", "model", "test.txt", "--method", OWN, "--json").code == 0
    assert run("train", "train.txt", "-o", "frequent", "--method", "most-frequent").code == 0
    assert run("compare", "model", "frequent", "test.txt", "--method", OWN).code == 0
    (folder / "others.py").write_text(SOURCE.replace("NearestMean", "OtherMean"))
    assert run("train", "train.txt", "-o", "other", "--method", "others:OtherMean").code == 0
    monkeypatch.delitem(sys.modules, "others")
    both = ("--method", OWN, "--method", "others:OtherMean", "--json")
    done = run("compare", "model", "other", "test.txt", *both)
    assert (done.code, json.loads(done.out)[0]["name"]) == (0, "P@1"), done.err
    other = folder / "elsewhere"
    other.mkdir()
    command = [sys.executable, "-m", "exmlds", "evaluate", str(folder / "model"), str(folder / "test.txt")]
    done = subprocess.run(command, cwd=other, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"import my_methods first (--method {OWN} on the command line)" in done.stderr


@pytest.mark.parametrize(
    "wrong",
    ["my_methods:Nothing", "no_such_module:Any", "my_methods:np", ".relative:Any", "exmlds:XMCEstimator"],
)
def test_what_is_no_method_is_refused(folder: Path, wrong: str) -> None:
    with pytest.raises(DataError, match="can't be imported|not a concrete class"):
        find_method(wrong)


def test_an_entry_point_makes_it_a_method_by_name(folder: Path, run: Run) -> None:
    info = folder / "my_methods-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-methods\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[exmlds.methods]\nnearest-mean = {OWN}\nbroken = no_such:Any\n")
    done = run("train", "train.txt", "-o", "model", "--method", "nearest-mean")
    assert done.code == 0
    assert "The method 'broken' can't be loaded" in done.err
    code = "import exmlds, warnings; warnings.simplefilter('ignore')\n"
    code += "print(type(exmlds.load('model')).__name__)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert loaded.stdout == "NearestMean\n", loaded.stderr


def test_in_python(folder: Path, library: Dataset) -> None:
    from my_methods import NearestMean  # type: ignore[import-not-found]

    model = NearestMean(power=2.0).fit(library.X[:300], library.Y[:300])
    model.save(folder / "model")
    again = exmlds.load(folder / "model")
    np.testing.assert_array_equal(again.predict_topk(library.X)[1], model.predict_topk(library.X)[1])
    assert model.score(library.X[300:], library.Y[300:]) > 0.3
    assert model.estimate(100, 10, 5).memory > 0


class Constant(exmlds.XMCEstimator):
    """Gives every row all labels in the order of their columns."""

    def _fit(self, X: Any, Y: Any, rng: Any, **side: Any) -> None:
        self.W_, self.W2_ = np.eye(2), [1, 2]

    def _candidates(self, X: Any, k: int) -> Any:
        return np.tile(np.arange(k), (X.shape[0], 1)), np.full((X.shape[0], k), 0.5)


def test_capital_letters_in_names_of_learnt_attributes(tmp_path: Path, library: Dataset) -> None:
    Constant().fit(library.X, library.Y).save(tmp_path / "model")
    again = exmlds.load(tmp_path / "model")
    assert isinstance(again, Constant)
    np.testing.assert_array_equal(again.W_, np.eye(2))
    assert again.W2_ == [1, 2]


@pytest.mark.parametrize("name", ["prior", "_prior", "_prior_", "scale"])
def test_what_fit_sets_and_save_would_drop_is_refused(name: str) -> None:
    class Dropping(Constant):
        scale = 1.0

        def _fit(self, X: Any, Y: Any, rng: Any, **side: Any) -> None:
            setattr(self, name, 0.25)

    rule = f"ends in an underscore and does not begin with one. Call it '{name.strip('_')}_'"
    with pytest.raises(ValueError, match=f"Dropping._fit sets '{name}', which would not be saved.* {rule}"):
        Dropping().fit(np.eye(3), np.eye(3, dtype=int))


def test_parameters_and_what_is_made_again_may_be_set_in_fit(tmp_path: Path) -> None:
    class Rebuilding(Constant):
        @cached_property
        def total(self) -> float:
            return float(self.W_.sum())

        def _fit(self, X: Any, Y: Any, rng: Any, **side: Any) -> None:
            super()._fit(X, Y, rng)
            self.max_labels, self._doubled = 2, 2 * self.total
            self._restore()

        def _restore(self) -> None:
            self._doubled = 2 * self.total

    Rebuilding().fit(np.eye(3), np.eye(3, dtype=int)).save(tmp_path / "model")
    again: Any = exmlds.load(tmp_path / "model")
    assert (again.max_labels, again._doubled) == (2, 4.0)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("model_", LogisticRegression(), "it is a LogisticRegression"),
        ("clf_", [LogisticRegression()], "it is a LogisticRegression"),
        ("counts_", {1: 2}, "it is a dict whose keys are not all strings"),
        ("days_", np.array(["2026-01-01"], "datetime64[D]"), "its dtype is datetime64"),
    ],
)
def test_what_cannot_be_saved_is_named(tmp_path: Path, name: str, value: Any, problem: str) -> None:
    class Odd(Constant):
        def _fit(self, X: Any, Y: Any, rng: Any, **side: Any) -> None:
            setattr(self, name, value)

    model = Odd().fit(np.eye(3), np.eye(3, dtype=int))
    with pytest.raises(ModelError, match=f"^{name}[.0]* cannot be saved: {problem}.* must be an estimator"):
        model.save(tmp_path / "model")


def test_an_init_may_leave_shared_parameters_out(folder: Path, run: Run) -> None:
    short = """    def __init__(self, *, power=1.0):
        self.power = power
"""
    start, end = SOURCE.index("    def __init__"), SOURCE.index("    def _fit")
    (folder / "my_methods.py").write_text(SOURCE[:start] + short + SOURCE[end:])
    assert run("train", "train.txt", "-o", "model", "--method", OWN).code == 0
    assert run("evaluate", "model", "test.txt", "--method", OWN).code == 0
    done = run("train", "train.txt", "-o", "model", "--method", OWN, "--seed", 1)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "has no parameter 'random_state'; its parameters are power" in done.err


IDS, SCORES = np.array([[2, 0, 1]]), np.array([[0.9, 0.5, 0.2]])


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (None, r"pair of \(1, m\) arrays, ids and scores. Got NoneType"),
        ((IDS, SCORES, SCORES), r"pair of \(1, m\) arrays"),
        ((IDS, SCORES[:, :2]), r"Got \(1, 3\) and \(1, 2\)"),
        ((IDS[0], SCORES[0]), r"Got \(3,\) and \(3,\)"),
        ((np.hstack([IDS, IDS]), np.hstack([SCORES, SCORES])), "at most 3 columns"),
        ((SCORES, SCORES), "ids that are integers"),
        ((IDS + 9, SCORES), "an id that is not in 0 … 2"),
        ((IDS, np.array([[0.9, np.nan, 0.2]])), "not finite, in row 0"),
        ((IDS, np.array([[np.inf, 0.5, 0.2]])), "not finite"),
        ((IDS, SCORES * 2), "not in 0 … 1"),
        ((IDS, -SCORES), "not in 0 … 1"),
        ((IDS, SCORES[:, ::-1]), r"not descending, .*scores \[0.2, 0.5, 0.9\]"),
        ((np.array([[-1, 0, 1]]), SCORES), "not descending"),
    ],
)
def test_what_it_ranks_is_checked(found: Any, problem: str) -> None:
    class Given(exmlds.XMCEstimator):
        threshold = 0.5

        def _fit(self, X: Any, Y: Any, rng: Any, **side: Any) -> None:
            self.answer_ = (np.array([[2, -1, -1]]), np.array([[0.9, np.nan, -np.inf]]))

        def _candidates(self, X: Any, k: int) -> Any:
            return self.answer_

    model = Given().fit(np.eye(3), np.eye(3, dtype=int))
    assert model.predict_topk(np.ones((1, 3)), 3)[0].tolist() == [[2, -1, -1]]
    model.answer_ = found
    for options in ({}, {"deny": [0]}):
        with pytest.raises(ValueError, match=f"Given._candidates .*{problem}"):
            model.predict_topk(np.ones((1, 3)), 3, **options)
