"""Measure how a fit of ExMLDS speeds up with the number of threads, and that it predicts the same.

    EXMLDS_DATA=… python benchmarks/cores.py                  # all cores of the machine, and halves of them
    EXMLDS_DATA=… python benchmarks/cores.py --sets eurlex-4k --efforts fast

Each fit runs in its own process, after a small one that compiles the kernels. A tenth of the training rows is
held out to measure the precision; their first labels must be the same for every number of threads.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import subprocess
import sys
from typing import Any

from exmlds import ExMLDS, metrics
from exmlds.data import load, make_library
from exmlds.reranking.effort import EFFORTS
from exmlds.runtime.parallel import n_threads
from exmlds.selection import random_split
from exmlds.voting import memory
from measure import destination, parser_of, seconds, several, write_results

SETS = ("eurlex-4k", "gutenberg-lcsh")


class Phases(logging.Handler):
    """Sums the seconds of each phase of a fit, from its log."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno == logging.INFO and isinstance(record.args, tuple) and len(record.args) == 3:
            name, _, spent = record.args
            self.seconds[str(name)] = round(self.seconds.get(str(name), 0.0) + float(str(spent)), 3)


def one(name: str, effort: str, n_jobs: int) -> dict[str, Any]:
    books, cells_from = make_library(400, random_state=0), memory.CELLS_FROM
    for memory.CELLS_FROM in (100, cells_from):  # compile first
        ExMLDS(effort=effort, random_state=0, n_jobs=n_jobs).fit(books.X, books.Y).predict_topk(books.X)
    data = load(name).train
    fit_rows, held_rows = random_split(data.X.shape[0], 0.1, random_state=0)
    train, held = data.rows(fit_rows), data.rows(held_rows)
    phases, logger = Phases(), logging.getLogger("exmlds")
    logger.addHandler(phases)
    logger.setLevel(logging.INFO)
    model = ExMLDS(effort=effort, random_state=0, n_jobs=n_jobs)
    fit_seconds = seconds(lambda: model.fit(train.X, train.Y))
    ids, _ = model.predict_topk(held.X, 5)
    ranking = metrics.Ranking(held.Y, ids, 5)
    return {
        "fit_seconds": fit_seconds,
        "predict_ms": 1000 * seconds(lambda: model.predict_topk(held.X, 5)) / held.X.shape[0],
        **{f"P@{k}": ranking.value(f"P@{k}") for k in (1, 3, 5)},
        "ids": hashlib.sha256(ids.tobytes()).hexdigest()[:16],
        "phases": phases.seconds,
    }


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--sets", type=several(SETS), default=SETS, help="names, separated by commas")
    parser.add_argument("--efforts", type=several(EFFORTS), default=("fast", "balanced"))
    parser.add_argument("--one", nargs=3, metavar=("SET", "EFFORT", "THREADS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(options.one[0], options.one[1], int(options.one[2]))))
        return
    path = destination(parser, options, "cores")
    threads = [1]
    while threads[-1] < n_threads(None):
        threads.append(min(2 * threads[-1], n_threads(None)))
    results: dict[str, Any] = {}
    for name in options.sets:
        for effort in options.efforts:
            runs = results.setdefault(name, {}).setdefault(effort, {})
            for n in threads:
                command = [sys.executable, __file__, "--one", name, effort, str(n)]
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                runs[str(n)] = run = json.loads(done.stdout)
                gain, same = runs["1"]["fit_seconds"] / run["fit_seconds"], run["ids"] == runs["1"]["ids"]
                shown = "/".join(f"{100 * run[f'P@{k}']:.2f}" for k in (1, 3, 5))
                print(
                    f"{name} {effort}, {n} threads: {run['fit_seconds']:.1f} s, {gain:.1f} times, {shown}, "
                    f"{'the same labels' if same else 'OTHER LABELS'}",
                    flush=True,
                )
    write_results(path, {"sets": results})


if __name__ == "__main__":
    main()
