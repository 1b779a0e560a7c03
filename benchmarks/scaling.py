"""Measure how time and memory of a default fit grow from ten thousand rows to a million.

    python benchmarks/scaling.py                    # about a quarter of an hour on 2 cores
    python benchmarks/scaling.py --rows 1e4,1e5     # only these sizes; the results are printed

The rows come from `make_xmc` with 100,000 features and 100,000 labels. Each size runs in its own process, and
quality is measured on 5,000 further rows. The exponent is the slope of log seconds over log rows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

import numpy as np

from exmlds import ExMLDS1, metrics
from exmlds.data import make_library, make_xmc
from measure import destination, parser_of, peak_bytes, seconds, write_results

ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
N_TEST = 5_000
FEATURES = LABELS = 100_000


def one(n: int) -> dict[str, Any]:
    books = make_library(200)
    ExMLDS1(n_components=5).fit(books.X, books.Y).predict_topk(books.X)  # compile first
    data = make_xmc(n + N_TEST, FEATURES, LABELS, random_state=0)
    train, test = data.rows(np.arange(n)), data.rows(np.arange(n, n + N_TEST))
    model = ExMLDS1(random_state=0)
    estimate = model.estimate(n, FEATURES, LABELS, train.X.nnz, train.Y.nnz)
    chosen = seconds(lambda: model.fit(train.X, train.Y))
    settings: dict[str, Any] = {
        name: getattr(model, f"{name}_") for name in ("features", "l2", "temperature")
    }
    model = ExMLDS1(**settings, threshold=model.threshold_, random_state=0)
    fixed = seconds(lambda: model.fit(train.X, train.Y))
    peak = peak_bytes()
    ranking = metrics.Ranking(test.Y, model.predict_topk(test.X, 5), 5)
    return {
        "rows": n,
        "parts": len(model.learners_[0].parts),
        "fit_seconds": fixed,
        "with_choices_seconds": chosen,
        "peak_bytes": peak,
        "estimated_bytes": estimate.memory,
        "ms_per_row": 1000 * seconds(lambda: model.predict_topk(test.X, 5)) / N_TEST,
        **{f"P@{k}": ranking.value(f"P@{k}") for k in (1, 3, 5)},
    }


def exponent(runs: list[dict[str, Any]], key: str) -> float:
    slope, _ = np.polyfit(np.log([run["rows"] for run in runs]), np.log([run[key] for run in runs]), 1)
    return float(slope)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", help="sizes, separated by commas")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(options.one)))
        return
    path = destination(parser, options, "scaling")
    sizes = [int(float(size)) for size in options.rows.split(",")] if options.rows else ROWS
    runs = []
    for n in sizes:
        command = [sys.executable, __file__, "--one", str(n)]
        runs.append(json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout))
        print(runs[-1], flush=True)
    results = {"features": FEATURES, "labels": LABELS, "runs": runs}
    if len(runs) > 1:
        measures = ("fit_seconds", "with_choices_seconds", "peak_bytes")
        results["exponents"] = {key: exponent(runs, key) for key in measures}
        print("exponents:", results["exponents"])
    write_results(path, results)


if __name__ == "__main__":
    main()
