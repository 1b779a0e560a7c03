"""The paper's tables: every system in them that the package has, with the paper's settings.

    EXMLDS_DATA=… python benchmarks/tables_of_the_paper.py --table 3 --validation    # to develop on
    EXMLDS_DATA=… python benchmarks/tables_of_the_paper.py --table 3 --test          # to be read rarely

Table 2 has training seconds, Table 3 precision at 1, 3 and 5, Table 4 the same with 80% of the training
labels hidden, and Table 5 joint learning, on sets that are here, since those of the paper are not. Published
figures of Bibtex, Delicious and Mediamill are means over random splits, so these sets are measured on random
splits of the union of train and test too ("random"), beside their fixed splits ("fixed").

Each fit runs in its own process, with kernels compiled before it is timed, and with a fixed threshold, so
that no second fit chooses one. In Table 4 the systems that take label co-occurrences are given YᵀY of all
training labels, as in the paper. The results of a run with the default options go to results/, where other
tables and systems keep their figures, and each evaluation on test rows is logged in
results/test-readings.jsonl. Those of another run are printed, unless --output FILE names a file, which keeps
its other figures.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import vstack

from exmlds import (
    DXML,
    LEML,
    LEMLIMC,
    SLEEC,
    WSABIE,
    AnnexML,
    DiSMEC,
    ExMLDS1,
    ExMLDS2,
    ExMLDS3,
    ExMLDS4,
    FastXML,
    OneVsAll,
    PDSparse,
    PfastreXML,
    PPDSparse,
    RidgeRegression,
    metrics,
)
from exmlds.data import DATASETS, Dataset, available, load, make_library
from exmlds.selection import hide_labels, random_split
from exmlds.voting.paper_settings import RELEASED
from measure import destination, machine, parser_of, read_sets, seconds, several, write_sets

PLACES = (1, 3, 5)
HIDDEN = 0.8  # of the labels, in Table 4
SPLITS = {"bibtex": ("fixed", "random"), "delicious": ("fixed", "random"), "mediamill": ("fixed", "random")}

System = Callable[..., Any]


def of_data_set(method: Any) -> System:
    """A method with the paper's settings for a data set, where there are some, and for any other one."""
    return lambda name, **given: method.paper(name if name in RELEASED else None, **given)


def fixed(method: Any, **settings: Any) -> System:
    """A method with the same settings for all data sets."""
    return lambda _, **given: method(**settings, **given)


SYSTEMS: dict[str, System] = {
    "ExMLDS1": of_data_set(ExMLDS1),
    "ExMLDS2": of_data_set(ExMLDS2),
    "ExMLDS3": of_data_set(ExMLDS3),
    "ExMLDS4": fixed(ExMLDS4.paper),
    "SLEEC": of_data_set(SLEEC),
    "AnnexML": fixed(AnnexML),
    "LEML": fixed(LEML),
    "LEML-IMC": fixed(LEMLIMC),
    "One-vs-All": fixed(OneVsAll),
    "DiSMEC": fixed(DiSMEC.paper),
    "WSABIE": fixed(WSABIE),
    "DXML": fixed(DXML),
    "PPD-Sparse": fixed(PPDSparse.paper),
    "PD-Sparse": fixed(PDSparse),
    "FastXML": fixed(FastXML),
    "PfastreXML": fixed(PfastreXML),
    "Ridge": fixed(RidgeRegression),
}
TAKES_COOCCURRENCE = ("ExMLDS3", "LEML-IMC")


class Table(NamedTuple):
    """The systems and the data sets of a table."""

    systems: tuple[str, ...]
    sets: tuple[str, ...]


LARGE = ("bibtex", "delicious", "eurlex-4k", "mediamill", "delicious-200k")
TABLES = {
    2: Table(("ExMLDS1", "ExMLDS2", "SLEEC"), LARGE),
    3: Table(
        (
            "ExMLDS1",
            "DXML",
            "SLEEC",
            "LEML",
            "PD-Sparse",
            "PPD-Sparse",
            "PfastreXML",
            "FastXML",
            "One-vs-All",
            "DiSMEC",
            "WSABIE",
            "Ridge",
        ),
        LARGE,
    ),
    4: Table(("ExMLDS3", "SLEEC", "LEML", "LEML-IMC"), ("bibtex", "eurlex-4k", "rcv1")),
    5: Table(("ExMLDS4", "AnnexML"), ("bibtex", "delicious", "eurlex-4k")),
}


def rows_of(name: str, split: str, seed: int, validation: bool) -> tuple[Dataset, Dataset]:
    """Training rows, and those to predict: of the fixed split, or of a random one of all rows."""
    train, test = load(name)
    if split == "random":
        both = Dataset(vstack([train.X, test.X]).tocsr(), vstack([train.Y, test.Y]).tocsr())
        order, n_train = np.random.default_rng(seed).permutation(both.X.shape[0]), train.X.shape[0]
        train, test = both.rows(order[:n_train]), both.rows(order[n_train:])
    if validation:
        fit_rows, held_rows = random_split(train.X.shape[0], 0.2, random_state=seed)
        return train.rows(fit_rows), train.rows(held_rows)
    return train, test


def one(number: int, name: str, split: str, system: str, seed: int, validation: bool) -> dict[str, Any]:
    """What one fit gives."""
    books, make = make_library(200), SYSTEMS[system]
    for X in (books.X, books.X.toarray()):  # compile first
        make("", threshold=0.5, **small(system)).fit(X, books.Y).predict_topk(X)
    train, test = rows_of(name, split, seed, validation)
    Y, side = train.Y, {}
    if number == 4:
        Y = hide_labels(train.Y, HIDDEN, random_state=seed)
        if system in TAKES_COOCCURRENCE:
            side["label_cooccurrence"] = train.Y.T @ train.Y
    model = make(name, threshold=0.5, random_state=seed)
    fit_seconds = seconds(lambda: model.fit(train.X, Y, **side))
    ranking = metrics.Ranking(test.Y, model.predict_topk(test.X, 5), 5)
    per_row = {f"P@{k}": ranking.sums(f"P@{k}")[0] for k in PLACES}
    return {
        **{key: float(values.mean()) for key, values in per_row.items()},
        "standard_error": {key: float(v.std() / np.sqrt(len(v))) for key, v in per_row.items()},
        "fit_seconds": fit_seconds,
        "train": train.X.shape[0],
        "features": train.X.shape[1],
        "labels": train.Y.shape[1],
    }


def small(system: str) -> dict[str, Any]:
    """Settings with which a model takes a moment."""
    if system in ("One-vs-All", "DiSMEC", "PPD-Sparse", "PD-Sparse", "Ridge"):
        return {}
    if system in ("FastXML", "PfastreXML"):
        return {"n_trees": 1}
    one_learner = system in ("LEML", "LEML-IMC", "WSABIE", "DXML")
    return {"n_components": 5} if one_learner else {"n_components": 5, "n_learners": 1}


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The means of several seeds, with the larger error of the mean: by the rows, or by the seeds."""
    means = {key: mean(run[key] for run in runs) for key in ("P@1", "P@3", "P@5", "fit_seconds")}
    errors = {}
    for key in ("P@1", "P@3", "P@5"):
        between = np.std([run[key] for run in runs], ddof=1) / np.sqrt(len(runs)) if len(runs) > 1 else 0.0
        errors[key] = float(max(between, mean(run["standard_error"][key] for run in runs)))
    return {
        **{key: runs[0][key] for key in ("train", "features", "labels")},
        **means,
        "standard_error": errors,
        "seeds": len(runs),
        "measured": {key: machine()[key] for key in ("date", "commit", "cores")},
    }


def _folder(name: str) -> str:
    """The folder of a data set under EXMLDS_DATA."""
    return (DATASETS[name].folder if name in DATASETS else None) or name


def main() -> None:
    parser = parser_of(__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--validation", action="store_true")
    which.add_argument("--test", action="store_true")
    parser.add_argument("--table", type=int, choices=TABLES, required=True)
    parser.add_argument("--sets", type=several({*DATASETS, *available()}), help="names, separated by commas")
    parser.add_argument("--splits", type=several(("fixed", "random")), default=["fixed", "random"])
    parser.add_argument("--systems", type=several(SYSTEMS), help=",".join(SYSTEMS))
    parser.add_argument("--seeds", type=int, default=3, choices=range(1, 101), metavar="N")
    parser.add_argument("--one", nargs=4, metavar=("SET", "SPLIT", "SYSTEM", "SEED"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, split, system, seed = options.one
        print(json.dumps(one(options.table, name, split, system, int(seed), options.validation)))
        return
    rows = "validation" if options.validation else "test"
    free = ("validation", "test", "table", "systems", "sets")
    path = destination(parser, options, f"tables-of-the-paper-{rows}", free=free)
    table = TABLES[options.table]
    before = read_sets(path, rows)
    wanted = options.sets or table.sets
    present = [name for name in wanted if _folder(name) in available()]
    for name in wanted:
        if name not in present:
            print(f"{name}: not under EXMLDS_DATA, left out")
    if not present:
        sys.exit("No data set was found under EXMLDS_DATA, so nothing is written.")
    for name in present:
        own: dict[str, Any] = {}  # the file keeps the other tables of the set
        for split in (split for split in SPLITS.get(name, ("fixed",)) if split in options.splits):
            if options.table != 3 and split == "random":
                continue
            key = f"table {options.table}, {split}"
            own[key] = dict(before.get(name, {}).get(key, {}))
            for system in options.systems or table.systems:
                runs = []
                for seed in range(options.seeds):
                    command = [sys.executable, __file__, "--table", str(options.table)]
                    command += ["--validation" if options.validation else "--test"]
                    command += ["--one", name, split, system, str(seed)]
                    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                    runs.append(json.loads(done.stdout))
                row = own[key][system] = summary(runs)
                shown = "/".join(f"{100 * row[f'P@{k}']:.2f}" for k in PLACES)
                error = "/".join(f"{100 * e:.2f}" for e in row["standard_error"].values())
                print(f"{name} {split} {system}: {shown} ± {error}, {row['fit_seconds']:.1f} s", flush=True)
        write_sets("tables-of-the-paper", rows, {name: own}, path)  # an interrupted run keeps what is done


if __name__ == "__main__":
    main()
