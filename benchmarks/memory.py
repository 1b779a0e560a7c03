"""Compare the peak memory of fits with what `estimate` promises, for data of many shapes.

    python benchmarks/memory.py                          # about a quarter of an hour on 2 cores
    python benchmarks/memory.py --shapes wide --methods ExMLDS3   # only these; the results are printed

Each fit runs in its own process. Its peak is the largest resident memory during the fit, above that of the
process with all modules loaded and all kernels compiled, so that it includes X and Y, as the estimate does.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

import exmlds
from exmlds.data import make_library
from exmlds.runtime.memory import side_bytes
from measure import destination, parser_of, peak_bytes, write_results

METHODS = ("ExMLDS", "ExMLDS1", "ExMLDS2", "ExMLDS3", "ExMLDS4", "FeatureNeighbors", "MostFrequent")


class Shape(NamedTuple):
    """Rows, features and labels; stored values of a row of X and of Y; what else `fit` is given.

    has_common_label : every row has label 0, so that any two of them overlap
    """

    rows: int
    features: int
    labels: int
    values: int
    labels_of_row: int
    is_dense: bool = False
    side: str = ""
    has_common_label: bool = False


SHAPES = {
    "wide": Shape(1_500, 20_000, 500, 100, 5),
    "long rows": Shape(800, 10_000, 200, 1_000, 5),
    "dense": Shape(1_200, 300, 200, 300, 4, is_dense=True),
    "many labels": Shape(1_000, 2_000, 20_000, 50, 40),
    "labels that never occur": Shape(800, 1_000, 200_000, 50, 5),
    "dense labels": Shape(800, 1_000, 1_200, 50, 480),
    "a label on every row": Shape(7_000, 500, 4_000, 20, 3, has_common_label=True),
    "co-occurrences": Shape(800, 1_000, 2_000, 50, 5, side="label_cooccurrence"),
    "observed": Shape(800, 1_000, 1_000, 50, 10, side="observed"),
}


def random_rows(n: int, d: int, per_row: int, rng: np.random.Generator) -> csr_matrix:
    """(n, d) csr with `per_row` stored values a row; half of them are in columns near a row's own centre."""
    near = (np.arange(n) % 50 * (d // 50 or 1))[:, None] + rng.integers(
        0, max(d // 40, per_row), (n, per_row)
    )
    columns = np.where(rng.random((n, per_row)) < 0.5, near % d, rng.integers(0, d, (n, per_row)))
    if per_row > d // 4:  # many would be equal
        columns = np.argpartition(rng.random((n, d)), per_row - 1, axis=1)[:, :per_row]
    values = rng.random(columns.size, dtype=np.float32) + np.float32(0.1)
    matrix = csr_matrix((values, columns.ravel(), np.arange(0, columns.size + 1, per_row)), shape=(n, d))
    matrix.sum_duplicates()
    return matrix


def make(shape: Shape) -> tuple[Any, csr_matrix, dict[str, Any]]:
    rng = np.random.default_rng(0)
    X: Any = random_rows(shape.rows, shape.features, shape.values, rng)
    Y = random_rows(shape.rows, shape.labels, shape.labels_of_row, rng)
    if shape.has_common_label:
        first = np.arange(shape.rows + 1), np.zeros(shape.rows, np.int32)
        Y = csr_matrix(Y + csr_matrix((np.ones(shape.rows, np.float32), *first[::-1]), shape=Y.shape))
    Y.data[:] = 1
    side: dict[str, Any] = {}
    if shape.side == "label_cooccurrence":
        C = random_rows(shape.labels, shape.labels, 100, rng)
        side = {"label_cooccurrence": csr_matrix(C + C.T)}
    elif shape.side == "observed":
        side = {"observed": random_rows(shape.rows, shape.labels, shape.labels // 2, rng) > 0}
    return X.toarray() if shape.is_dense else X, Y, side


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4_096


def one(name: str, method: str) -> dict[str, Any]:
    """Fit once in this process; returns the estimate and the peak in bytes."""
    shape, kind = SHAPES[name], getattr(exmlds, method)
    books = make_library(120, random_state=0)
    for X in (books.X, books.X.toarray()):  # compile, and load what is loaded on demand
        kind(random_state=0).fit(X, books.Y)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    before = resident()
    X, Y, side = make(shape)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    model = kind(random_state=0)
    expected = model.estimate(*X.shape, Y.shape[1], X.size if shape.is_dense else X.nnz, Y.nnz).memory
    expected += sum(map(side_bytes, side.values()))
    model.fit(X, Y, **side)
    return {
        "shape": name,
        "method": method,
        "estimate": round(expected),
        "peak": peak_bytes() - before,
    }


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES)
    parser.add_argument("--methods", nargs="+", choices=METHODS)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(*options.one)))
        return
    path = destination(parser, options, "memory")
    runs = []
    for name in options.shapes or SHAPES:
        for method in options.methods or METHODS:
            if SHAPES[name].side and method not in ("ExMLDS", "ExMLDS3"):
                continue
            command = [sys.executable, __file__, "--one", name, method]
            found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
            run = json.loads(found)
            runs.append({**run, "ratio": round(run["estimate"] / run["peak"], 2)})
            print(runs[-1], flush=True)
    exceeded = [run for run in runs if run["peak"] > run["estimate"]]
    print(f"{len(exceeded)} of {len(runs)} fits took more than their estimate")
    shapes = {name: SHAPES[name]._asdict() for name in options.shapes or SHAPES}
    write_results(path, {"shapes": shapes, "runs": runs})


if __name__ == "__main__":
    main()
