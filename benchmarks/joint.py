"""The paper's joint-learning table: ExMLDS4 on its six sets where they are available, and on others instead.

    EXMLDS_DATA=… python benchmarks/joint.py --validation    # a fifth of the training rows, to develop on
    EXMLDS_DATA=… python benchmarks/joint.py --test          # the test rows, to be read rarely

The script reports P@1…5 and nDCG@1…5 with default settings, as means over seeds, and the times of a fit with
fixed settings and of a fit with its hyperparameter search. The results of a run with the default options go
to results/, where sets that are not available keep their figures, and each evaluation on test rows is logged
in results/test-readings.jsonl. Those of another run are printed, unless --output FILE names a file, which
keeps its other figures.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from exmlds import ExMLDS4, metrics
from exmlds.data import available, load, make_library
from exmlds.selection import random_split
from measure import destination, parser_of, peak_bytes, seconds, several, write_sets

# The paper's joint-learning table: P@1…5, then nDCG@1…5.
SETS = {
    "amazoncat-13k": (93.05, 86.56, 79.18, 72.06, 64.54, 93.05, 89.60, 87.72, 86.35, 85.92),
    "wiki10-31k": (86.82, 80.44, 74.30, 68.61, 63.68, 86.82, 81.89, 77.22, 72.92, 69.13),
    "delicious-200k": (47.70, 43.67, 41.22, 39.37, 37.98, 47.70, 44.63, 42.75, 41.34, 40.27),
    "wikilshtc-325k": (62.15, 48.37, 39.58, 33.52, 29.10, 62.15, 57.00, 55.20, 54.77, 54.84),
    "wikipedia-500k": (62.27, 49.60, 41.43, 35.68, 31.42, 62.27, 55.23, 52.11, 50.59, 49.88),
    "amazon-670k": (41.47, 38.58, 36.35, 34.20, 32.43, 41.47, 39.73, 38.41, 37.31, 36.46),
}
STAND_INS = ("eurlex-4k", "delicious", "citeulike-t")
NAMES = [f"{family}@{k}" for family in ("P", "nDCG") for k in range(1, 6)]


def one(name: str, seed: int, validation: bool, settings: dict[str, Any]) -> dict[str, Any]:
    books = make_library(200)
    ExMLDS4(n_components=5, n_epochs=1).fit(books.X, books.Y).predict_topk(books.X)  # compile first
    train, test = load(name)
    if validation:
        fit_rows, held_rows = random_split(train.X.shape[0], 0.2, random_state=1)
        train, test = train.rows(fit_rows), train.rows(held_rows)
    model = ExMLDS4(random_state=seed, **settings)
    with_choices = seconds(lambda: model.fit(train.X, train.Y))
    chosen = {key: getattr(model, f"{key}_") for key in ("features", "n_epochs", "temperature", "threshold")}
    model = ExMLDS4(random_state=seed, **{**settings, **chosen})
    fixed = seconds(lambda: model.fit(train.X, train.Y))
    peak = peak_bytes()
    ids, _ = model.predict_topk(test.X, 5)
    ranking = metrics.Ranking(test.Y, ids, 5)
    first = {f"P@{k}": ranking.sums(f"P@{k}")[0] for k in (1, 3, 5)}
    return {
        **{measure: ranking.value(measure) for measure in NAMES},
        "standard_error": {key: float(v.std() / np.sqrt(len(v))) for key, v in first.items()},
        "fit_seconds": fixed,
        "with_choices_seconds": with_choices,
        "ms_per_row": 1000 * seconds(lambda: model.predict_topk(test.X, 5)) / test.X.shape[0],
        "model_bytes": _saved_bytes(model),
        "peak_bytes": peak,
        "chosen": chosen,
    }


def _saved_bytes(model: ExMLDS4) -> int:
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def main() -> None:
    parser = parser_of(__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--validation", action="store_true")
    which.add_argument("--test", action="store_true")
    usual = (*SETS, *STAND_INS)
    known_sets = dict.fromkeys((*usual, *available()))
    parser.add_argument("--sets", type=several(known_sets), default=usual, help="names, separated by commas")
    parser.add_argument("--seeds", type=int, default=5, choices=range(1, 101), metavar="N")
    parser.add_argument("--set", action="append", default=[], help="a parameter, key=JSON")
    parser.add_argument("--one", nargs=2, metavar=("SET", "SEED"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    settings = {key: json.loads(value) for key, _, value in (text.partition("=") for text in options.set)}
    if options.one:
        print(json.dumps(one(options.one[0], int(options.one[1]), options.validation, settings)))
        return
    split = "validation" if options.validation else "test"
    path = destination(parser, options, f"joint-{split}", free=("validation", "test"))
    results: dict[str, Any] = {}
    for name in options.sets:
        if name not in available():
            print(f"{name}: not under EXMLDS_DATA, left out")
            continue
        runs = []
        for seed in range(options.seeds):
            command = [sys.executable, __file__, "--one", name, str(seed)]
            command += ["--validation" if options.validation else "--test"]
            command += [part for text in options.set for part in ("--set", text)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            runs.append(json.loads(done.stdout))
        numbers = [key for key, value in runs[0].items() if isinstance(value, float | int)]
        row = results[name] = {
            **{key: mean(run[key] for run in runs) for key in numbers},
            "standard_error": {
                key: mean(run["standard_error"][key] for run in runs) for key in ("P@1", "P@3", "P@5")
            },
            "chosen": [run["chosen"] for run in runs],
            "seeds": len(runs),
        }
        shown = "/".join(f"{100 * row[f'P@{k}']:.2f}" for k in (1, 3, 5))
        error = "/".join(f"{100 * e:.2f}" for e in row["standard_error"].values())
        times = f"{row['fit_seconds']:.1f} s, with choices {row['with_choices_seconds']:.1f} s"
        print(f"{name}: {shown} ± {error}, {times}, {row['model_bytes'] / 1e6:.1f} MB", flush=True)
        if name in SETS:
            row["paper"] = {measure: figure / 100 for measure, figure in zip(NAMES, SETS[name])}
            for measure in NAMES:
                print(f"  {measure}: {100 * row[measure]:.2f}, the paper's {100 * row['paper'][measure]:.2f}")
    write_sets("joint", split, results, path)


if __name__ == "__main__":
    main()
