"""Fits on memory-mapped rows: the same models as in memory, within a hard limit of memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone

from exmlds import ExMLDS, ExMLDS1, ExMLDS2, ExMLDS3, ExMLDS4, FeatureNeighbors, MostFrequent
from exmlds.data import Dataset, make_xmc, read_xc, write_npz
from exmlds.validation import arrays, mapped

PLAIN: dict[str, Any] = {"features": "l2", "temperature": 0.05, "n_components": 5, "random_state": 0}


@pytest.mark.parametrize(
    "method",
    [
        ExMLDS(effort="fast", random_state=0),
        ExMLDS(random_state=0, keep_rows=True, objective="psp"),
        ExMLDS1(**{**PLAIN, "features": "auto"}),
        ExMLDS2(**PLAIN, n_epochs=2),
        ExMLDS3(**PLAIN),
        ExMLDS4(**{**PLAIN, "features": "idf-l2"}, n_epochs=2, n_parts=2),
        FeatureNeighbors(random_state=0),
        MostFrequent(random_state=0),
    ],
    ids=lambda method: type(method).__name__,
)
def test_the_model_of_mapped_rows_is_that_of_rows_in_memory(
    method: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = make_xmc(150, 60, 12, random_state=0)
    data = Dataset(
        data.X, csr_matrix(data.Y.multiply(np.arange(150)[:, None] % 11 > 0))
    )  # some have no label
    expected = clone(method).fit(data.X, data.Y)
    monkeypatch.setattr(mapped, "SCRATCH_FROM", 0)
    monkeypatch.setattr(arrays, "CELLS", 200)
    there = read_xc(write_npz(tmp_path / "X.a.npz", data, mapped=True)[0])
    model = clone(method).fit(there.X, there.Y)
    for found, before in zip(model.predict_topk(there.X, 5), expected.predict_topk(data.X, 5)):
        np.testing.assert_array_equal(found, before)
    assert model.threshold_ == expected.threshold_
    # What the model holds does not depend on the files.
    for path in tmp_path.glob("*.npz"):
        path.unlink()
    model.save(tmp_path / "model")


LIMITED = """
import json, resource, sys
from exmlds import ExMLDS, metrics
from exmlds.data import read_xc
from exmlds.validation import mapped

path, way, megabytes = sys.argv[1], sys.argv[2], int(sys.argv[3])
method = ExMLDS(effort="fast", n_jobs=2, random_state=0)
least, mapped.SCRATCH_FROM = mapped.SCRATCH_FROM, 0
few = read_xc(path.replace("X.all", "X.few"))
for X in (few.X, few.X.copy()):  # compile for both, and load what is loaded on demand
    method.fit(X, few.Y).predict_topk(X, 3)
mapped.SCRATCH_FROM = least
if megabytes:
    with open("/proc/self/status") as status:
        used = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmData"))
    resource.setrlimit(resource.RLIMIT_DATA, (used + megabytes * 10**6,) * 2)
X, Y, *_ = read_xc(path)
X = X.copy() if way == "memory" else X
model = method.fit(X, Y)
ids, scores = model.predict_topk(X[:500], 3)
print(json.dumps([ids.tolist(), scores.tolist(), metrics.precision_at_k(Y[:500], ids, 1)]))
"""
ROWS, FEATURES, VALUES = 7_000, 6_000, 1_000
LIMIT = 200  # MB above what the process holds before it opens the data


def long_rows() -> Iterator[Dataset]:
    """Rows of 56 MB in all; features whose number is that of a label, modulo 20, are larger."""
    rng, size = np.random.default_rng(0), 200
    for _ in range(0, ROWS, size):
        labels = rng.integers(0, 20, (size, 2))
        columns = np.argpartition(rng.random((size, FEATURES), np.float32), VALUES)[:, :VALUES]
        columns = np.sort(columns, axis=1).astype(np.int32)
        values = rng.random(columns.shape, np.float32) + 1
        values += 3 * (columns[:, :, None] % 20 == labels[:, None]).any(axis=2)
        ends = np.arange(0, columns.size + 1, VALUES)
        X = csr_matrix((values.ravel(), columns.ravel(), ends), shape=(size, FEATURES))
        Y = np.zeros((size, 20), np.float32)
        np.put_along_axis(Y, labels, 1, axis=1)
        yield Dataset(X, csr_matrix(Y))


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit of memory is that of Linux")
def test_a_fit_on_mapped_rows_keeps_within_a_limit_that_rows_in_memory_exceed(tmp_path: Path) -> None:
    path, _ = write_npz(tmp_path / "X.all.npz", long_rows(), mapped=True)
    write_npz(tmp_path / "X.few.npz", make_xmc(120, 200, 20, random_state=0), mapped=True)

    def run(way: str, megabytes: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", LIMITED, str(path), way, str(megabytes)]
        environment = {**os.environ, "MALLOC_ARENA_MAX": "1"}  # each arena would count before it is used
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    exceeded = run("memory", LIMIT)
    assert exceeded.returncode != 0
    assert re.search("MemoryError|Memory allocation", exceeded.stderr)  # NumPy's, or that of its BLAS
    limited, free = run("mapped", LIMIT), run("memory", 0)
    assert limited.returncode == 0, limited.stderr
    assert json.loads(limited.stdout) == json.loads(free.stdout)
    assert json.loads(free.stdout)[2] > 0.9
