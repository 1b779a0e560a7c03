"""Compare ours with omikuji, napkinXC, PECOS and scikit-learn's one-vs-rest, on every set under EXMLDS_DATA.

    EXMLDS_DATA=… python benchmarks/peers.py --validation     # a fifth of the training rows, to develop on
    EXMLDS_DATA=… python benchmarks/peers.py --test           # the test rows, to be read rarely
    EXMLDS_DATA=… python benchmarks/peers.py --test --only pecos,plt --sets bibtex --output mine.json

pip installs each system, at the version below, into its own environment under .peers/, and each fit runs in
its own process (`peer_fit.py`), with the same rows, the same number of threads and the documented settings.
This needs Linux on x86-64 and Python 3.11 or 3.12, for which all systems have wheels; libpecos has none above
3.12 (`--python` names another interpreter for the environments). The requirements of libpecos beyond numpy,
scipy and scikit-learn (torch, transformers, peft, …) are not installed, because XR-Linear imports none of
them.

Features: ours takes them as they are and chooses a scaling itself. For another system, the scaling is chosen
in the same way, by the best mean of P@1, P@3 and P@5 on a fifth of the training rows, with seed 0; ties go to
the first. The candidates are rows of length 1, which the systems document, √x, log(1 + x) or tf-idf before
that, the rows as stored, and standardized columns where rows are dense. The scaling of one-vs-rest, which
takes a quarter of an hour on the larger sets, is chosen with 4,000 training rows. tf-idf is a candidate where
the values are counts. Rows as stored are no candidate for omikuji and napkinXC, which normalize rows
themselves.

Seconds: `fit_seconds` excludes compilation, data conversion and the choice of the scaling (`choice_seconds`);
those of ours include its hyperparameter search. omikuji predicts row by row, because it has no batches in
Python. PECOS predicts a single row with one thread, as it documents. An ensemble of napkinXC reads its trees
from disk at each prediction, because version 0.7.2 crashes at the second prediction with
`ens_on_the_trot=False`.

Seeds: 0–4. omikuji has no seed and is run as often; one-vs-rest is deterministic and run once, except on
random splits, which differ by seed. `against` is the difference of ours and the other system with its 95%
interval, by a paired bootstrap over rows in which the hits of a row are summed over all seeds. It needs the
predictions, which .peers/ keeps. A system that cannot be installed or fails is listed in the results as
missing, with the reason.

The results of a run with the default options go to results/. Those of another run are printed, unless
--output FILE names a file, which keeps its other figures; it may be the one in results/.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from statistics import mean, pstdev
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, save_npz, vstack
from sklearn.feature_extraction.text import TfidfTransformer

from exmlds import metrics
from exmlds.data import Dataset, available, load, propensity_parameters, write_xc
from exmlds.runtime.parallel import n_threads
from exmlds.selection import random_split
from exmlds.stages import features
from measure import (
    destination,
    is_committed,
    log_reading,
    machine,
    parser_of,
    read_sets,
    several,
    write_results,
)
from paper import RANDOM_SPLITS, rows_for
from peer_fit import FITS, OURS

HOME = Path(__file__).parent.parent / ".peers"
LIMIT = 2 * 60 * 60  # seconds, for one process
PRECISIONS = ("P@1", "P@3", "P@5")
MEASURES = [f"{family}@{k}" for family in ("P", "nDCG", "PSP") for k in (1, 3, 5)]
AVERAGED = ("fit_seconds", "ms_per_row", "ms_one_row")
LARGEST = ("bytes_before_fit", "peak_bytes", "model_bytes")

Array = np.ndarray


class Package(NamedTuple):
    """The arguments of each call of pip, and properties of the package."""

    install: tuple[tuple[str, ...], ...]
    reads_text: bool = False
    scales_rows: bool = False  # normalizes rows itself
    repeats: bool = True  # runs with several seeds
    chosen_on: int | None = None  # maximum number of training rows for the choice of its scaling


PACKAGES = {
    "omikuji": Package((("omikuji==0.5.2", "numpy", "scipy"),), reads_text=True, scales_rows=True),
    "napkinxc": Package((("napkinxc==0.7.2",),), scales_rows=True),
    "libpecos": Package((("numpy<2", "scipy<1.14", "scikit-learn"), ("--no-deps", "libpecos==1.2.8"))),
    "scikit-learn": Package(((f"scikit-learn=={version('scikit-learn')}",),), repeats=False, chosen_on=4_000),
    "exmlds": Package(()),
}


class Failure(Exception):
    """A system cannot be installed or run; the message gives the reason and goes into the results."""


def interpreter(package: str, base: str) -> str:
    """The interpreter of the package's environment, which is created if it does not exist."""
    install = PACKAGES[package].install
    if not install:
        return sys.executable
    folder = HOME / "environments" / package
    python, made = folder / "bin" / "python", folder / "installed.json"
    wanted = json.dumps([base, install])
    if not made.is_file() or made.read_text(encoding="utf-8") != wanted:
        _run([base, "-m", "venv", "--clear", str(folder)])
        for arguments in install:
            _run([str(python), "-m", "pip", "install", "--quiet", *arguments])
        made.write_text(wanted, encoding="utf-8")
    return str(python)


def _run(command: list[str], threads: int = 1) -> None:
    kept = {
        key: value for key, value in os.environ.items() if key != "PYTHONPATH" or command[0] == sys.executable
    }
    limits = {f"{library}_NUM_THREADS": str(threads) for library in ("OMP", "OPENBLAS", "MKL")}
    try:
        subprocess.run(
            command, env={**kept, **limits}, capture_output=True, text=True, check=True, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        raise Failure(f"took more than {LIMIT // 60} minutes") from None
    except subprocess.CalledProcessError as error:
        lines = [line for line in error.stderr.splitlines() if line.strip()]
        said = error.returncode > 0 and lines  # a killed process prints no reason
        reason = lines[-1].replace(str(HOME.parent), "…") if said else f"ended with {error.returncode}"
        raise Failure(reason) from None


def fit(peer: str, python: str, train: Dataset, X: csr_matrix, seed: int) -> tuple[dict[str, Any], Array]:
    """Run one fit in its own process; return its figures and its predictions for the rows X, (n, 5) ids."""
    threads = n_threads(None)
    # Labels without a training row are omitted: one-vs-rest, for example, ranks them before unlikely labels.
    seen = np.unique(train.Y.indices)
    train = train._replace(Y=train.Y[:, seen])
    with tempfile.TemporaryDirectory(dir=HOME) as name:
        folder = Path(name)
        for file, matrix in (("X", train.X), ("Y", train.Y), ("rows", X)):
            save_npz(folder / f"{file}.npz", csr_matrix(matrix, dtype=np.float32), compressed=False)
        if PACKAGES[FITS[peer][0]].reads_text:
            text = folder / "train.txt"
            write_xc(text, train)
            # A row without features ends in a space, which omikuji would parse as a feature.
            text.write_bytes(text.read_bytes().replace(b" \n", b"\n"))
        script = Path(__file__).with_name("peer_fit.py")
        _run([python, str(script), peer, name, str(seed), str(threads)], threads)
        figures = json.loads((folder / "figures.json").read_text(encoding="utf-8"))
        ids = np.load(folder / "ids.npy")
        return figures, np.where(ids < 0, -1, seen[ids])


def scaled(kind: str, train: csr_matrix, X: csr_matrix) -> tuple[csr_matrix, csr_matrix]:
    if kind == "tf-idf":
        weights = TfidfTransformer(sublinear_tf=True).fit(train)
        return weights.transform(train), weights.transform(X)
    fitted = features.fit(kind, train, np.random.default_rng(0))
    both = features.apply(fitted, train), features.apply(fitted, X)
    return csr_matrix(both[0], dtype=np.float32), csr_matrix(both[1], dtype=np.float32)


def scalings_for(package: Package, X: csr_matrix) -> Iterator[str]:
    """Yield the candidate scalings whose rows differ from those of earlier candidates."""
    kinds = ["l2", "sqrt-l2", "log1p-l2", "tf-idf", "none", "standardize"]
    if package.scales_rows:
        kinds.remove("none")
    if not features.fits("nystroem", X):  # sparse rows
        kinds.remove("standardize")
    if not features.fits("log1p-l2", X):
        kinds = [kind for kind in kinds if kind not in ("sqrt-l2", "log1p-l2")]
    if (X.data % 1).any():
        kinds.remove("tf-idf")
    seen: list[Array] = []
    for kind in kinds:
        values = scaled(kind, X, X[:1])[0].data
        if not any(len(values) == len(other) and np.allclose(values, other, atol=1e-6) for other in seen):
            seen.append(values)
            yield kind


def choose(peer: str, python: str, train: Dataset) -> tuple[str, dict[str, Any]]:
    """Choose the best scaling on held-out rows; also return the score and the seconds of each."""
    package = PACKAGES[FITS[peer][0]]
    fit_rows, held_rows = random_split(train.X.shape[0], 0.2, random_state=1)
    fit_rows = np.sort(np.random.default_rng(1).permutation(fit_rows)[: package.chosen_on])
    kept, held = train.rows(fit_rows), train.rows(held_rows)
    tried: dict[str, Any] = {}
    for kind in scalings_for(package, train.X):
        A, B = scaled(kind, kept.X, held.X)
        try:
            figures, ids = fit(peer, python, kept._replace(X=A), B, 0)
        except Failure as failure:
            tried[kind] = {"missing": str(failure)}
            continue
        ranking = metrics.Ranking(held.Y, ids, 5)
        score = mean(ranking.value(name) for name in PRECISIONS)
        tried[kind] = {"score": score, "fit_seconds": figures["fit_seconds"]}
    scores = {kind: row["score"] for kind, row in tried.items() if "score" in row}
    if not scores:
        raise Failure(next(iter(tried.values()))["missing"])
    return max(scores, key=lambda kind: scores[kind]), tried


def measure(peer: str, name: str, n_seeds: int, validation: bool, base: str) -> dict[str, Any]:
    """Run all seeds of a system on a set; the predictions go to the cache."""
    package = PACKAGES[FITS[peer][0]]
    shutil.rmtree(cache(peer, name, validation), ignore_errors=True)
    python = interpreter(FITS[peer][0], base)
    kind, tried = ("none", {}) if peer == "ours" else choose(peer, python, rows_for(name, 0, validation)[0])
    runs = []
    for seed in range(n_seeds if package.repeats or name in RANDOM_SPLITS else 1):
        train, test = rows_for(name, seed, validation)
        A, B = scaled(kind, train.X, test.X)
        figures, ids = fit(peer, python, train._replace(X=A), B, seed)
        weights = metrics.inverse_propensity(train.Y, *propensity_parameters(name))
        ranking = metrics.Ranking(test.Y, ids, 5, weights)
        runs.append({**figures, **{measure: ranking.value(measure) for measure in MEASURES}})
        cache(peer, name, validation).mkdir(parents=True, exist_ok=True)
        np.save(cache(peer, name, validation) / f"{seed}.npy", ids)
    entry = {
        "version": runs[0]["version"],
        **{key: mean(run[key] for run in runs) for key in MEASURES},
        "spread": {key: pstdev(run[key] for run in runs) for key in PRECISIONS},
        **{key: mean(run[key] for run in runs if key in run) for key in AVERAGED if key in runs[0]},
        **{key: max(run[key] for run in runs) for key in LARGEST},
        "seeds": len(runs),
    }
    if peer == "ours":
        return {"name": OURS, **entry}
    seconds = sum(row.get("fit_seconds", 0) for row in tried.values())
    return {**entry, "scaling": kind, "choice": tried, "choice_seconds": seconds}


def cache(peer: str, name: str, validation: bool) -> Path:
    return HOME / "predictions" / ("validation" if validation else "test") / name / peer


class Pooled(metrics.Ranking):
    """Merge the runs of several seeds into one ranking: a row's terms are summed over the runs that test it.

    The bootstrap then resamples rows, and does not count the seeds of a row as independent rows.
    """

    def __init__(self, Y: csr_matrix, runs: list[tuple[Array, Array]]) -> None:
        self.Y = Y
        self.runs = [(rows, metrics.Ranking(Y[rows], ids, 5)) for rows, ids in runs]

    def sums(self, name: str) -> tuple[Array, Array]:
        totals = np.zeros((2, self.Y.shape[0]))
        for rows, ranking in self.runs:
            totals[:, rows] += ranking.sums(name)
        return totals[0], totals[1]


def tested_rows(name: str, seed: int, validation: bool, n_train: int, n: int) -> Array:
    """The test rows of `rows_for`, as indices into the union of train and test."""
    order = np.random.default_rng(seed).permutation(n) if name in RANDOM_SPLITS else np.arange(n)
    if validation:
        return order[:n_train][random_split(n_train, 0.2, random_state=1)[1]]
    return order[n_train:]


def compare(name: str, entries: dict[str, Any], validation: bool) -> None:
    """Add the difference of ours and each system to its entry, where the cache has both predictions."""
    train, test = load(name)
    Y = vstack([train.Y, test.Y]).tocsr()
    runs: dict[str, list[tuple[Array, Array]]] = {}
    for peer in entries:
        for file in cache(peer, name, validation).glob("*.npy"):
            rows = tested_rows(name, int(file.stem), validation, train.Y.shape[0], Y.shape[0])
            runs.setdefault(peer, []).append((rows, np.load(file)))
    for peer in runs.keys() - {"ours"}:
        if "ours" in runs:
            tested = np.unique(np.concatenate([rows for rows, _ in runs["ours"] + runs[peer]]))
            ours, its = (
                Pooled(Y[tested], [(np.searchsorted(tested, rows), ids) for rows, ids in runs[key]])
                for key in ("ours", peer)
            )
            found = metrics.compare_rankings(ours, its, PRECISIONS)
            entries[peer]["against"] = {row.name: [row.difference, row.low, row.high] for row in found}


def main() -> None:
    parser = parser_of(__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--validation", action="store_true")
    which.add_argument("--test", action="store_true")
    known_sets = available()
    parser.add_argument("--only", type=several(FITS), default=[*FITS], help=f"of {','.join(FITS)}")
    parser.add_argument("--sets", type=several(known_sets), default=known_sets, help="separated by commas")
    parser.add_argument("--seeds", type=int, default=5, choices=range(1, 101), metavar="N")
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the peers' environments")
    options = parser.parse_args()
    split = "validation" if options.validation else "test"
    file = "peers-validation" if options.validation else "peers"
    path = destination(parser, options, file, free=("validation", "test", "python"))
    sets = read_sets(path, split)
    HOME.mkdir(exist_ok=True)
    for name in options.sets:
        train, test = rows_for(name, 0, options.validation)
        sizes = {"train": train.X.shape[0], "test": test.X.shape[0]}
        sizes |= {"features": train.X.shape[1], "labels": train.Y.shape[1]}
        entries = sets.get(name, {}).get("peers", {})
        for peer in options.only:
            try:
                entries[peer] = measure(peer, name, options.seeds, options.validation, options.python)
            except Failure as failure:
                entries[peer] = {"missing": str(failure)}
            if peer == "ours":  # earlier comparisons are out of date
                for entry in entries.values():
                    entry.pop("against", None)
            here = machine()
            entries[peer] |= {"measured": {key: here[key] for key in ("date", "commit", "cores")}}
            print(f"{name} {peer}: {shown(entries[peer])}", flush=True)
            if peer == "ours" and options.test and is_committed(path):
                log_reading("peers", {name: entries[peer]})
            compare(name, entries, options.validation)
            entries = {key: entries[key] for key in FITS if key in entries}
            sets[name] = {**sizes, "peers": entries}
            if path is not None:  # after each fit, because a run takes hours
                write_results(path, {"split": split, "sets": dict(sorted(sets.items()))})
    if path is None:
        write_results(None, {"split": split, "sets": dict(sorted(sets.items()))})


def shown(entry: dict[str, Any]) -> str:
    if "missing" in entry:
        return f"missing, {entry['missing']}"
    figures = "/".join(f"{100 * entry[name]:.2f}" for name in PRECISIONS)
    return f"{figures}, {entry['fit_seconds']:.1f} s, {entry['ms_per_row']:.2f}/{entry['ms_one_row']:.2f} ms"


if __name__ == "__main__":
    main()
