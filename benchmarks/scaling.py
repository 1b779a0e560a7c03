"""Measure how time and memory of a fit grow from ten thousand rows to a million, ours beside PECOS.

    EXMLDS_DATA=… python benchmarks/scaling.py
    EXMLDS_DATA=… python benchmarks/scaling.py --rows 1e4,1e5 --series abstracts --output mine.json
    EXMLDS_DATA=… python benchmarks/scaling.py --systems ours-best --output benchmarks/results/scaling.json

There are three series of rows:

- "titles": random training rows of yso-finna-en, of which 5,000 others are predicted; its test rows are not
  read. The largest size is all the other training rows.
- "synthetic-titles": rows of `make_xmc` with about 8 features, up to a million.
- "abstracts": rows of `make_xmc` with about 100 features, up to a million.

The words and labels of `make_xmc` follow a power law, as those of texts do, and words depend on labels. Each
fit runs in its own process, as in `peers.py`, with seed 0, and the systems take turns at each size. Ours
takes the rows as they are. PECOS, and any other system of `peers.py` that --systems names, gets rows of
length 1, of the tf-idf where values are counts. The exponent of a system is the slope of log seconds, or of
log bytes, over log rows.

The results of a run with the default options go to results/. Those of another run are printed, unless
--output FILE names a file, which keeps its figures of other series, sizes and systems.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from exmlds import metrics
from exmlds.data import Dataset, available, find, make_xmc, read_xc
from measure import destination, machine, parser_of, several, write_results
from peer_fit import FITS
from peers import HOME, PRECISIONS, Failure, fit, installed, is_ours, scaled

ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
SYSTEMS = ("ours-fast", "ours", "pecos")
N_TEST = 5_000
TITLES = "yso-finna-en"
FIGURES = ("fit_seconds", "ms_per_row", "peak_bytes", "model_bytes")
GROWING = ("fit_seconds", "peak_bytes")
MIN_SIZES = 3  # for an exponent


class Series(NamedTuple):
    """Rows of one kind: `make(n)` gives n rows, or all where there are fewer; `scaling` is for the peers."""

    make: Callable[[int], Dataset]
    scaling: str


def titles(n: int) -> Dataset:
    data = read_xc(find(TITLES, "train"))
    return data.rows(np.random.default_rng(0).permutation(data.X.shape[0])[:n])


def synthetic(**settings: Any) -> Series:
    return Series(partial(make_xmc, **settings, random_state=0), "tf-idf")


# The noise is such that the precision is like that of real titles and abstracts.
SERIES = {
    "titles": Series(titles, "l2"),
    "synthetic-titles": synthetic(
        n_features=60_000,
        n_labels=25_000,
        labels_per_row=3,
        features_per_row=9,
        exponent=0.5,
        label_noise=0.2,
        feature_noise=0.6,
    ),
    "abstracts": synthetic(
        n_features=100_000,
        n_labels=30_000,
        labels_per_row=5,
        features_per_row=120,
        label_noise=0.1,
        feature_noise=0.85,
    ),
}


def one(system: str, python: str, scaling: str, data: Dataset) -> dict[str, Any]:
    """Fit all rows but the first 5,000, which are predicted; a failure has its reason in place of figures."""
    n, here = data.X.shape[0], machine()
    test, train = data.rows(np.arange(N_TEST)), data.rows(np.arange(N_TEST, n))
    found: dict[str, Any] = {"system": system, "rows": n - N_TEST}
    found["measured"] = {key: here[key] for key in ("date", "commit", "cores")}
    A, B = scaled("none" if is_ours(system) else scaling, train.X, test.X)
    try:
        figures, ids = fit(system, python, train._replace(X=A), B, 0)
    except Failure as failure:
        return {**found, "missing": str(failure)}
    ranking = metrics.Ranking(test.Y, ids, 5)
    precisions = {name: ranking.value(name) for name in PRECISIONS}
    return {**found, **{key: figures[key] for key in FIGURES}, **precisions}


def merged(before: list[dict[str, Any]], run: dict[str, Any]) -> list[dict[str, Any]]:
    """The runs with one more, which replaces that of the same system and size; ordered by both."""
    runs = {(row["system"], row["rows"]): row for row in [*before, run]}
    return sorted(runs.values(), key=lambda row: ([*FITS].index(row["system"]), row["rows"]))


def exponents(runs: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """The exponents of each system that has been measured at enough sizes."""
    found: dict[str, dict[str, float]] = {}
    for system in FITS:
        own = [run for run in runs if run["system"] == system and "missing" not in run]
        if len(own) >= MIN_SIZES:
            sizes = np.log([run["rows"] for run in own])
            slopes = {key: np.polyfit(sizes, np.log([run[key] for run in own]), 1)[0] for key in GROWING}
            found[system] = {key: float(slope) for key, slope in slopes.items()}
    return found


def sizes(text: str) -> list[int]:
    """An argparse type: numbers of rows, separated by commas."""
    found = [int(float(size)) for size in text.split(",")]
    if min(found) < 1:
        raise argparse.ArgumentTypeError("a number of rows must be at least 1")
    return found


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=sizes, default=list(ROWS), help="sizes, separated by commas")
    parser.add_argument("--series", type=several(SERIES), default=[*SERIES], help=f"of {','.join(SERIES)}")
    parser.add_argument("--systems", type=several(FITS), default=[*SYSTEMS], help=f"of {','.join(FITS)}")
    options = parser.parse_args()
    missing = [TITLES] if "titles" in options.series and TITLES not in available() else []
    path = destination(parser, options, "scaling", missing=missing)
    series = read_series(path)
    HOME.mkdir(exist_ok=True)
    pythons, failures = installed(options.systems, sys.executable)
    for system, failure in failures.items():
        print(f"{system} is left out: {failure['missing']}", file=sys.stderr)
    for name in options.series:
        if name == "titles" and missing:
            print(f"titles are left out: {TITLES} is not under EXMLDS_DATA", file=sys.stderr)
            continue
        done = 0
        for n in sorted(options.rows):
            data = SERIES[name].make(N_TEST + n)
            size = data.X.shape[0] - N_TEST
            if size == done:  # there are no more rows
                break
            done = size
            for system in (system for system in FITS if system in pythons):
                run = one(system, pythons[system], SERIES[name].scaling, data)
                print(f"{name}, {json.dumps(run)}", flush=True)
                runs = merged(series.get(name, {}).get("runs", []), run)
                shape = {"features": data.X.shape[1], "labels": data.Y.shape[1]}
                shape["features_per_row"] = round(data.X.nnz / data.X.shape[0], 1)
                series[name] = {**shape, "runs": runs, "exponents": exponents(runs)}
                if path is not None:  # after each fit, because a run takes hours
                    write_results(path, {"series": series})
    if path is None:
        write_results(None, {"series": series})


def read_series(path: Path | None) -> dict[str, Any]:
    """The series in a file of results, or none; those that this script no longer has are left out."""
    found = json.loads(path.read_text(encoding="utf-8")) if path is not None and path.is_file() else {}
    return {name: found["series"][name] for name in SERIES if name in found.get("series", {})}


if __name__ == "__main__":
    main()
