"""A user's own method: twenty lines on `XMCEstimator`, then everything that the package's methods have."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import exmlds
from exmlds import DataError
from exmlds.cli.settings import find_method
from exmlds.data import Dataset, write_xc

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


@pytest.fixture
def folder(tmp_path: Path, library: Dataset) -> Path:
    (tmp_path / "my_methods.py").write_text(SOURCE)
    write_xc(tmp_path / "train.txt", library.rows(slice(0, 300)))
    write_xc(tmp_path / "test.txt", library.rows(slice(300, 400)))
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "exmlds", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_command_line_takes_it(folder: Path) -> None:
    own = "my_methods:NearestMean"
    done = run(folder, "train", "train.txt", "-o", "model", "--method", own, "--set", "power=2.0")
    assert done.returncode == 0, done.stderr
    done = run(folder, "evaluate", "model", "test.txt", "--method", own, "--json")
    assert done.returncode == 0, done.stderr
    done = run(folder, "train", "train.txt", "-o", "frequent", "--method", "most-frequent")
    assert done.returncode == 0, done.stderr
    done = run(folder, "compare", "model", "frequent", "test.txt", "--method", own)
    assert done.returncode == 0, done.stderr
    done = run(folder, "evaluate", "model", "test.txt")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "import my_methods first (--method my_methods:NearestMean on the command line)" in done.stderr


@pytest.mark.parametrize(
    "wrong",
    ["my_methods:Nothing", "no_such_module:Any", "my_methods:np", ".relative:Any", "exmlds:XMCEstimator"],
)
def test_what_is_no_method_is_refused(folder: Path, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    with pytest.raises(DataError, match="can't be imported|not a concrete class"):
        find_method(wrong)


def test_an_entry_point_makes_it_a_method_by_name(folder: Path) -> None:
    info = folder / "my_methods-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-methods\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[exmlds.methods]\nnearest-mean = my_methods:NearestMean\n")
    done = run(folder, "train", "train.txt", "-o", "model", "--method", "nearest-mean")
    assert done.returncode == 0, done.stderr
    code = "import exmlds; print(type(exmlds.load('model')).__name__)"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.stdout == "NearestMean\n", done.stderr


def test_in_python(folder: Path, library: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    from my_methods import NearestMean  # type: ignore[import-not-found]

    model = NearestMean(power=2.0).fit(library.X[:300], library.Y[:300])
    model.save(folder / "model")
    again = exmlds.load(folder / "model")
    np.testing.assert_array_equal(again.predict_topk(library.X)[1], model.predict_topk(library.X)[1])
    assert model.score(library.X[300:], library.Y[300:]) > 0.3
    assert model.estimate(100, 10, 5).memory > 0
