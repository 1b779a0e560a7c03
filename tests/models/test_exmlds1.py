"""ExMLDS1: Algorithms 1 and 2, and what our defaults add."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from exmlds import ExMLDS1, FeatureNeighbors, load, metrics
from exmlds.data import Dataset, make_xmc
from exmlds.data import load as load_data

FIXED: dict[str, Any] = {
    "features": "l2",
    "l2": 1.0,
    "temperature": 0.05,
    "threshold": 0.5,
    "n_components": 20,
}


Scores = Callable[..., np.ndarray]


@pytest.fixture
def scores(library: Dataset, fitted: Callable[..., Any]) -> Scores:
    """Of the last 100 rows by a model of the first 300 with these parameters changed."""

    def of(**changes: Any) -> np.ndarray:
        model = fitted(ExMLDS1(random_state=0, **{**FIXED, **changes}), library, slice(300))
        return model.decision_function(library.X[300:]).toarray()

    return of


def slow_algorithms(X: np.ndarray, Y: np.ndarray, Q: np.ndarray, r: int, l2: float, k: int) -> np.ndarray:
    """Algorithms 2 and 1 of the paper, line by line: one part, uniform votes, cosine."""
    M = Y @ Y.T
    sums = M.sum(axis=1)
    with np.errstate(divide="ignore"):
        S = np.maximum(np.where(M > 0, np.log(M * M.sum() / np.outer(sums, sums)), 0), 0)
    U, s, _ = np.linalg.svd(S)
    Z = U[:, :r] * np.sqrt(s[:r])
    X, Q = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (X, Q))
    V = np.linalg.solve(X.T @ X + l2 * np.eye(X.shape[1]), X.T @ Z)
    zx, zq = (A @ V / np.linalg.norm(A @ V, axis=1, keepdims=True) for A in (X, Q))
    similar = zq @ zx.T
    votes = np.zeros((len(Q), Y.shape[1]))
    for q, row in enumerate(similar):
        for i in np.argsort(-row, kind="stable")[:k]:
            votes[q] += Y[i] / k
    return votes


@pytest.mark.twins
def test_the_papers_algorithms() -> None:
    data = make_xmc(260, 40, 12, random_state=0)
    X, Y = data.X.toarray().astype(float), data.Y.toarray().astype(float)
    expected = slow_algorithms(X[:200], Y[:200], X[200:], r=10, l2=1.0, k=15)
    model = ExMLDS1.paper(n_components=10, n_neighbors=15, n_parts=1, threshold=0.5, max_labels=12)
    found = model.fit(data.X[:200], data.Y[:200]).decision_function(data.X[200:]).toarray()
    # Rows at the edge of the neighbourhood may differ by rounding.
    assert np.isclose(found, expected, atol=1e-5).mean() > 0.97
    assert np.abs(found - expected).max() < 0.2


def test_it_learns_more_than_the_features_say() -> None:
    data = make_xmc(3_000, 800, 40, feature_noise=0.6, random_state=0)
    train, test = data.rows(slice(0, 2_400)), data.rows(slice(2_400, None))
    ours, theirs = (
        model.fit(train.X, train.Y).score(test.X, test.Y)
        for model in (ExMLDS1(n_components=50, random_state=0), FeatureNeighbors(n_neighbors=50))
    )
    assert ours > theirs


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("n_components", 5),
        ("n_neighbors", 5),
        ("n_neighbors_fit", 3),
        ("n_parts", 3),
        ("n_learners", 2),
        ("shift", 3.0),
        ("smoothing", 0.5),
        ("features", "none"),
        ("l2", 30.0),
        ("l1", 0.5),
        ("metric", "euclidean"),
        ("search", "embedded"),
        ("vote", "uniform"),
        ("temperature", 1.0),
    ],
)
def test_every_modelling_parameter_changes_the_result(scores: Scores, parameter: str, value: Any) -> None:
    # Learners differ by their partition, so an ensemble needs more than one part.
    base: dict[str, Any] = {"n_parts": 3} if parameter == "n_learners" else {}
    assert not np.allclose(scores(**base), scores(**base, **{parameter: value}), atol=1e-4)


def test_more_parts_asked_change_the_result(scores: Scores) -> None:
    one, two = (scores(n_parts=3, n_parts_probed=m) for m in (1, 2))
    assert not np.allclose(one, two)


@pytest.mark.twins
def test_parts_and_learners_come_back_from_disk(library: Dataset, tmp_path: Path) -> None:
    model = ExMLDS1(random_state=0, n_parts=3, n_learners=2, n_parts_probed=2, **FIXED).fit(
        library.X, library.Y
    )
    model.save(tmp_path / "model")
    for found, expected in zip(
        load(tmp_path / "model").predict_topk(library.X), model.predict_topk(library.X)
    ):
        np.testing.assert_array_equal(found, expected)
    assert len(model.learners_) == 2
    assert sum(len(part.rows) for part in model.learners_[0].parts) == 400


@pytest.mark.twins
def test_settings_are_chosen_on_held_out_rows(library: Dataset, fitted: Callable[..., Any]) -> None:
    model = fitted(ExMLDS1(n_components=20, random_state=0), library)
    assert model.features_ in ("l2", "log1p-l2", "none", "standardize")
    assert model.l2_ in (0.1, 1.0, 10.0)
    assert 0.05 < model.threshold_ < 0.8
    again = ExMLDS1(n_components=20, random_state=0).fit(library.X, library.Y)
    np.testing.assert_array_equal(again.predict_topk(library.X)[1], model.predict_topk(library.X)[1])


def test_dense_features_take_the_kernel() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_500, 2)).astype(np.float32)
    ring = (np.linalg.norm(X, axis=1)[:, None] > np.array([0.5, 1.0, 1.5])).sum(axis=1)  # nothing linear
    Y = csr_matrix(np.eye(4)[ring])
    model = ExMLDS1(n_components=10, n_neighbors=20, random_state=0).fit(X[:1_200], Y[:1_200])
    assert model.features_ == "nystroem"
    assert model.score(X[1_200:], Y[1_200:]) > 0.85
    assert not model.feature_map_.projection.size, "the map contains it"


def test_a_fit_of_the_kernel_that_is_stopped_leaves_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_xmc(300, 40, 8, random_state=0)
    model = ExMLDS1(**{**FIXED, "features": "nystroem", "n_components": 5}, random_state=0)
    before = model.fit(data.X, data.Y).predict_topk(data.X, 3)[1]

    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("exmlds.stages.regress.path", stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(data.X, data.Y)
    np.testing.assert_array_equal(model.predict_topk(data.X, 3)[1], before)


def test_the_kernel_takes_sparse_rows_too() -> None:
    data = make_xmc(300, 40, 8, random_state=0)
    sparse, dense = (
        ExMLDS1(**{**FIXED, "features": "nystroem", "n_components": 5}, random_state=0).fit(X, data.Y)
        for X in (data.X, data.X.toarray())
    )
    np.testing.assert_allclose(sparse.predict_topk(data.X, 3)[1], dense.predict_topk(data.X, 3)[1], atol=1e-4)


def test_rows_without_label_or_feature() -> None:
    data = make_xmc(200, 30, 10, random_state=0)
    X, Y = data.X.toarray(), data.Y.toarray()
    X[:5], Y[5:10] = 0, 0
    model = ExMLDS1(**FIXED).fit(csr_matrix(X), csr_matrix(Y))
    ids, scores = model.predict_topk(csr_matrix((2, 30)), 3)
    frequency = Y.sum(axis=0)
    assert ids[0].tolist() == np.argsort(-frequency, kind="stable")[:3].tolist()
    assert np.isfinite(scores).all()


def test_paper_settings() -> None:
    settings = ExMLDS1.paper(random_state=3).get_params()
    assert settings["vote"] == "uniform"
    assert settings["n_parts"] == "paper"
    assert settings["n_parts_probed"] == 1
    assert settings["random_state"] == 3


@pytest.mark.data
@pytest.mark.slow
def test_bibtex(real_data: Path) -> None:
    train, test = load_data("bibtex")
    model = ExMLDS1(random_state=0).fit(train.X, train.Y)
    assert metrics.precision_at_k(test.Y, model.predict_topk(test.X, 5), 1) > 0.63


def test_less_memory_makes_more_parts() -> None:
    data = make_xmc(3_000, 500, 100, random_state=0)
    model = ExMLDS1(random_state=0, **{**FIXED, "n_components": 100})
    needed = model.estimate(3_000, 500, 100, data.X.nnz, data.Y.nnz)
    assert len(model.fit(data.X, data.Y).learners_[0].parts) == 1
    model.set_params(max_memory=0.8 * needed.memory).fit(data.X, data.Y)
    assert len(model.learners_[0].parts) > 1


MEASURED = """
import re, sys
from pathlib import Path
from exmlds import ExMLDS1
from exmlds.data import make_xmc

def resident(key):
    return 1024 * int(re.search(key + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

n, d, n_labels, dense = map(int, sys.argv[1:])
ExMLDS1(n_components=2).fit(*make_xmc(60, 20, 5)[:2])
before = resident("VmRSS")
X, Y = make_xmc(n, d, n_labels, random_state=0)[:2]
X = X.toarray() if dense else X
model = ExMLDS1(random_state=0, features="nystroem" if dense else "auto")
nnz = n * d if dense else X.nnz
estimate = model.estimate(n, d, n_labels, nnz, Y.nnz)
model.fit(X, Y)
model.save("model")
size = sum(path.stat().st_size for path in Path("model").rglob("*") if path.is_file())
print(estimate.memory / (resident("VmHWM") - before), estimate.size / size)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak from /proc")
@pytest.mark.parametrize("shape", [(8_000, 20_000, 2_000, 0), (3_000, 100, 50, 1)], ids=["sparse", "dense"])
def test_the_estimate_is_near_what_is_measured(shape: tuple[int, ...], tmp_path: Path) -> None:
    command = [sys.executable, "-c", MEASURED, *map(str, shape)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    memory, size = map(float, done.stdout.split())
    # Any two label sets may overlap, and few do here; and the peak is smaller where threads do not overlap.
    assert 1 < memory < 10
    assert 0.7 < size < 2
