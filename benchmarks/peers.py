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

Systems: ours is `ExMLDS()`; "ours-fast" and "ours-best" have the other efforts. Ridge regression is the
closed form for all labels at once, with the best l2 of 0.1, 1 and 10. Where its dense matrices would take
more than 8 GB, it is listed as missing, as is one-vs-rest where it would take more than 45 minutes, and any
process that takes more than an hour or 20 GB.

Features: ours takes them as they are and chooses a scaling itself. For another system, the scaling is chosen
in the same way, by the best mean of P@1, P@3 and P@5 on a fifth of the training rows, with seed 0; ties go to
the first. The candidates are rows of length 1, which the systems document, √x, log(1 + x) or tf-idf before
that, the rows as stored, and standardized columns where rows are dense. At most 20,000 rows are held out for
this choice, and 50,000 others are fitted, 4,000 with one-vs-rest and 8,000 with ridge regression, whose l2
is chosen on the same rows after its scaling. tf-idf is a candidate where the values are counts. Rows as
stored are no candidate for omikuji and napkinXC, which normalize rows themselves.

Seconds: `fit_seconds` excludes compilation, data conversion and the choice of the scaling (`choice_seconds`);
those of ours include its hyperparameter search. omikuji predicts row by row, because it has no batches in
Python. PECOS predicts a single row with one thread, as it documents. An ensemble of napkinXC reads its trees
from disk at each prediction, because version 0.7.2 crashes at the second prediction with
`ens_on_the_trot=False`.

Runs: seeds 0–2. The systems take turns, seed by seed, and whenever one of ours is fitted, PECOS is fitted
beside it: `times_pecos` is the ratio of their seconds. A system whose first fit takes more than ten minutes
is fitted once. omikuji has no seed; one-vs-rest and ridge regression are deterministic, and only their times
vary. `against` is the difference of ours and the other system with its 95% interval, by a paired bootstrap
over rows in which the hits of a row are summed over all seeds. A system that cannot be installed or fails is
listed in the results as missing, with the reason.

.peers/ keeps the figures and the predictions of every fit. What was measured with the same code, settings,
versions and number of threads is not measured again, so that an interrupted run continues where it stopped;
--again discards it first.

The results of a run with the default options go to results/. Those of another run are printed, unless
--output FILE names a file, which keeps its other figures; it may be the one in results/.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from statistics import mean, pstdev
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, save_npz, vstack
from sklearn.feature_extraction.text import TfidfTransformer

import exmlds
from exmlds import metrics
from exmlds.data import Dataset, available, find, load, propensity_parameters, write_xc
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
from peer_fit import FITS, check_ridge

HOME = Path(__file__).parent.parent / ".peers"
LIMIT = 60 * 60  # seconds, for one process
ONCE_FROM = 10 * 60  # seconds of a fit, from which on it is not repeated with other seeds
PRECISIONS = ("P@1", "P@3", "P@5")
MEASURES = [f"{family}@{k}" for family in ("P", "nDCG", "PSP") for k in (1, 3, 5)]
TIMES = ("fit_seconds", "ms_per_row", "ms_one_row")
LARGEST = ("bytes_before_fit", "peak_bytes", "model_bytes")
CHOSEN_ON = {"one-vs-rest": 4_000, "ridge": 8_000}  # training rows at most for the choice of the scaling
CHOSEN_ON_MOST = 50_000  # of the other systems
CHOSEN_BY_MOST = 20_000  # held-out rows
SETTINGS: dict[str, tuple[dict[str, Any], ...]] = {  # to choose among; the scaling is chosen with the first
    "ridge": tuple({"l2": l2} for l2 in (1.0, 0.1, 10.0))
}

Array = np.ndarray


class Package(NamedTuple):
    """The arguments of each call of pip, and properties of the package."""

    install: tuple[tuple[str, ...], ...]
    reads_text: bool = False
    scales_rows: bool = False  # normalizes rows itself


PACKAGES = {
    "omikuji": Package((("omikuji==0.5.2", "numpy", "scipy"),), reads_text=True, scales_rows=True),
    "napkinxc": Package((("napkinxc==0.7.2",),), scales_rows=True),
    "libpecos": Package((("numpy<2", "scipy<1.14", "scikit-learn"), ("--no-deps", "libpecos==1.2.8"))),
    "scikit-learn": Package(((f"scikit-learn=={version('scikit-learn')}",),)),
    # Annif is compared in annif.py. llama-index-core has the data of NLTK's tokenizer in its wheel.
    "annif": Package((("annif[omikuji,nn]==1.4.0",), ("--no-deps", "llama-index-core==0.14.25"))),
    "annif-without-nn": Package((("annif[omikuji]==1.4.0",), ("--no-deps", "llama-index-core==0.14.25"))),
    "exmlds": Package(()),
}


class Failure(Exception):
    """A system cannot be installed or run; the message gives the reason and goes into the results."""


class TimeoutFailure(Failure):
    """A process took too long, as it would with another scaling too."""


class Rows(NamedTuple):
    """The rows of a benchmark: a data set, and whether held-out training rows take the place of test rows."""

    name: str
    validation: bool

    @property
    def split(self) -> str:
        return "validation" if self.validation else "test"

    def read(self, seed: int) -> tuple[Dataset, Dataset]:
        """The training rows and the rows to predict; only random splits differ by seed."""
        return _rows_for(self.name, seed if self.name in RANDOM_SPLITS else 0, self.validation)


@lru_cache(maxsize=1)  # the systems take turns on the same rows
def _rows_for(name: str, seed: int, validation: bool) -> tuple[Dataset, Dataset]:
    return rows_for(name, seed, validation)


def interpreter(package: str, base: str) -> str:
    """The interpreter of the package's environment, which is created if it does not exist."""
    install = PACKAGES[package].install
    if not install:
        return sys.executable
    folder = HOME / "environments" / package
    python, made = folder / "bin" / "python", folder / "installed.json"
    wanted = json.dumps([base, install])
    if not made.is_file() or made.read_text(encoding="utf-8") != wanted:
        run_process([base, "-m", "venv", "--clear", str(folder)])
        for arguments in install:
            run_process([str(python), "-m", "pip", "install", "--quiet", *arguments])
        made.write_text(wanted, encoding="utf-8")
    return str(python)


def installed(peers: Collection[str], base: str) -> tuple[dict[str, str], dict[str, Any]]:
    """The interpreter of each system, and the entries of systems that cannot be installed."""
    pythons: dict[str, str] = {}
    failures: dict[str, Any] = {}
    for peer in peers:
        try:
            pythons[peer] = interpreter(FITS[peer][0], base)
        except Failure as failure:
            failures[peer] = {"missing": str(failure)}
    return pythons, failures


def run_process(command: list[str], threads: int = 1, limit: int = LIMIT) -> None:
    """Run a command; raise `Failure` with the last line of its errors, or if it takes too many seconds."""
    environment = {
        key: value for key, value in os.environ.items() if key != "PYTHONPATH" or command[0] == sys.executable
    }
    environment |= {f"{library}_NUM_THREADS": str(threads) for library in ("OMP", "OPENBLAS", "MKL")}
    try:
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=limit)
    except subprocess.TimeoutExpired:
        raise TimeoutFailure(f"took more than {limit // 60} minutes") from None
    except subprocess.CalledProcessError as error:
        lines = [line for line in error.stderr.splitlines() if line.strip()]
        said = error.returncode > 0 and lines  # a killed process prints no reason
        reason = lines[-1].replace(str(HOME.parent), "…") if said else f"ended with {error.returncode}"
        raise Failure(re.sub("^(Memory|Timeout)Error: ", "", reason)) from None


def fit(
    peer: str, python: str, train: Dataset, X: csr_matrix, seed: int, settings: dict[str, Any] | None = None
) -> tuple[dict[str, Any], Array]:
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
        arguments = [peer, name, str(seed), str(threads), json.dumps(settings or {})]
        run_process([python, str(script), *arguments], threads)
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


def choose(peer: str, python: str, train: Dataset) -> dict[str, Any]:
    """Choose the scaling and the settings on held-out rows; also return the score and the seconds of each."""
    if peer == "ridge":  # which could fit the rows of the choice, but not all
        try:
            check_ridge(train.X.shape[0], train.X.shape[1] + 1, len(np.unique(train.Y.indices)))
        except MemoryError as error:
            raise Failure(str(error)) from None
    fit_rows, held_rows = random_split(train.X.shape[0], 0.2, random_state=1)
    rng = np.random.default_rng(1)
    fit_rows = rng.permutation(fit_rows)[: CHOSEN_ON.get(peer, CHOSEN_ON_MOST)]
    kept, held = train.rows(np.sort(fit_rows)), train.rows(rng.permutation(held_rows)[:CHOSEN_BY_MOST])
    tried: list[dict[str, Any]] = []

    def attempt(kind: str, settings: dict[str, Any]) -> None:
        A, B = scaled(kind, kept.X, held.X)
        try:
            figures, ids = fit(peer, python, kept._replace(X=A), B, 0, settings)
        except TimeoutFailure:
            raise
        except Failure as failure:
            tried.append({"scaling": kind, **settings, "missing": str(failure)})
            return
        ranking = metrics.Ranking(held.Y, ids, 5)
        score = mean(ranking.value(name) for name in PRECISIONS)
        tried.append({"scaling": kind, **settings, "score": score, "fit_seconds": figures["fit_seconds"]})

    def best() -> dict[str, Any]:
        scored = [row for row in tried if "score" in row]
        if not scored:
            raise Failure(tried[0]["missing"])
        return max(scored, key=lambda row: row["score"])

    first, *others = SETTINGS.get(peer, ({},))
    for kind in scalings_for(PACKAGES[FITS[peer][0]], train.X):
        attempt(kind, first)
    kind = best()["scaling"]
    for settings in others:
        attempt(kind, settings)
    return {
        "scaling": kind,
        "settings": {key: best()[key] for key in first},
        "choice": tried,
        "choice_seconds": sum(row.get("fit_seconds", 0) for row in tried),
    }


def is_ours(peer: str) -> bool:
    return FITS[peer][0] == "exmlds"


def version_of(peer: str, rows: Rows) -> str:
    """A hash of what the figures of a system depend on: its code and settings, versions, threads and data."""
    package, function = FITS[peer]
    code = getattr(function, "func", function)
    here: list[Any] = [n_threads(None), platform.python_version()]
    if is_ours(peer):
        here += [version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")]
    sizes = [find(rows.name, part).stat().st_size for part in ("train", "test")]
    settings = [getattr(function, "keywords", {}), SETTINGS.get(peer), CHOSEN_ON.get(peer)]
    parts = [PACKAGES[package], inspect.getsource(code), settings, here, sizes]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
    if is_ours(peer):
        for file in sorted(Path(exmlds.__file__).parent.rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def folder_of(peer: str, rows: Rows) -> Path:
    """The folder that keeps the choice of a system, and the figures and predictions of each seed."""
    return HOME / "runs" / rows.split / rows.name / peer


def stored(peer: str, rows: Rows, part: str | int) -> dict[str, Any] | None:
    """What was measured before with the same version: "choice", or the figures of a seed."""
    path = folder_of(peer, rows) / f"{part}.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found if found.get("made_with") == version_of(peer, rows) else None


def store(peer: str, rows: Rows, part: str | int, found: dict[str, Any]) -> dict[str, Any]:
    found = {**found, "made_with": version_of(peer, rows)}
    folder_of(peer, rows).mkdir(parents=True, exist_ok=True)
    (folder_of(peer, rows) / f"{part}.json").write_text(json.dumps(found), encoding="utf-8")
    return found


def choice_of(peer: str, rows: Rows, python: str) -> dict[str, Any]:
    """The stored scaling and settings of a system, or the reason of a failure; chosen if not stored yet."""
    if is_ours(peer):
        return {"scaling": "none", "settings": {}}
    found = stored(peer, rows, "choice")
    if found is None:
        try:
            found = choose(peer, python, rows.read(0)[0])
        except Failure as failure:
            found = {"missing": str(failure)}
        store(peer, rows, "choice", found)
    return found


def measure(peer: str, rows: Rows, seed: int, python: str) -> dict[str, Any]:
    """Fit a system once, after the choice of its scaling; keep the figures, or the reason of a failure."""
    here = machine()
    found: dict[str, Any] = {"measured": {key: here[key] for key in ("date", "commit", "cores")}}
    choice = choice_of(peer, rows, python)
    if "missing" in choice:
        return store(peer, rows, seed, {**found, "missing": choice["missing"]})
    train, test = rows.read(seed)
    A, B = scaled(choice["scaling"], train.X, test.X)
    try:
        figures, ids = fit(peer, python, train._replace(X=A), B, seed, choice["settings"])
    except Failure as failure:
        return store(peer, rows, seed, {**found, "missing": str(failure)})
    weights = metrics.inverse_propensity(train.Y, *propensity_parameters(rows.name))
    ranking = metrics.Ranking(test.Y, ids, 5, weights)
    found |= {**figures, **{measure: ranking.value(measure) for measure in MEASURES}}
    folder_of(peer, rows).mkdir(parents=True, exist_ok=True)
    np.save(folder_of(peer, rows) / f"{seed}.npy", ids)
    return store(peer, rows, seed, found)


def turn(peers: Collection[str], rows: Rows, seed: int) -> list[str]:
    """The systems to fit with a seed, in order: those without figures, and PECOS beside any of ours."""
    due = {
        peer
        for peer in peers
        if stored(peer, rows, seed) is None and not (seed and is_once(stored(peer, rows, 0)))
    }
    if "pecos" in peers and any(map(is_ours, due)) and not (seed and is_once(stored("pecos", rows, 0))):
        due.add("pecos")
    return [peer for peer in FITS if peer in due]


def is_once(first: dict[str, Any] | None) -> bool:
    """Tell from the figures of seed 0 whether a system is fitted with no other seed."""
    return first is not None and ("missing" in first or first["fit_seconds"] > ONCE_FROM)


def store_times_of_pecos(rows: Rows, seed: int, turn_seconds: dict[str, float]) -> None:
    """Add the seconds of PECOS to the figures of ours that were measured in the same turn."""
    for peer in filter(is_ours, turn_seconds):
        found = stored(peer, rows, seed)
        if found is not None and "pecos" in turn_seconds:
            store(peer, rows, seed, {**found, "pecos_seconds": turn_seconds["pecos"]})


def entry_of(peer: str, rows: Rows, n_seeds: int) -> dict[str, Any] | None:
    """The means and the largest sizes over the seeds, or the reason why there are none."""
    found = {seed: stored(peer, rows, seed) for seed in range(n_seeds)}
    runs = {seed: run for seed, run in found.items() if run and "missing" not in run}
    if not runs:
        return next(
            ({key: run[key] for key in ("missing", "measured")} for run in found.values() if run), None
        )
    last = max(runs)
    entry = {
        "version": runs[last]["version"],
        **{key: mean(run[key] for run in runs.values()) for key in MEASURES},
        "spread": {key: pstdev(run[key] for run in runs.values()) for key in PRECISIONS},
        **{key: mean(run[key] for run in runs.values()) for key in TIMES},
        **{key: max(run[key] for run in runs.values()) for key in LARGEST},
        "seeds": len(runs),
        "measured": runs[last]["measured"],
    }
    ratios = [run["fit_seconds"] / run["pecos_seconds"] for run in runs.values() if "pecos_seconds" in run]
    if ratios:
        entry["times_pecos"] = mean(ratios)
    choice = stored(peer, rows, "choice") or {}
    return {**entry, **{key: choice[key] for key in choice if key != "made_with"}}


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


def tested_rows(rows: Rows, seed: int, n_train: int, n: int) -> Array:
    """The rows to predict of `Rows.read`, as indices into the union of train and test."""
    order = np.random.default_rng(seed).permutation(n) if rows.name in RANDOM_SPLITS else np.arange(n)
    if rows.validation:
        return order[:n_train][random_split(n_train, 0.2, random_state=1)[1]]
    return order[n_train:]


def compare(rows: Rows, entries: dict[str, Any], n_seeds: int) -> None:
    """Add the difference of ours and each system to its entry, where the predictions of both are kept."""
    train, test = load(rows.name)
    Y = vstack([train.Y, test.Y]).tocsr()
    runs: dict[str, list[tuple[Array, Array]]] = {}
    for peer in entries:
        for seed in range(n_seeds):
            file = folder_of(peer, rows) / f"{seed}.npy"
            if "P@1" in (stored(peer, rows, seed) or {}) and file.is_file():
                tested = tested_rows(rows, seed, train.Y.shape[0], Y.shape[0])
                runs.setdefault(peer, []).append((tested, np.load(file)))
    for peer in runs.keys() - {"ours"}:
        if "ours" in runs:
            tested = np.unique(np.concatenate([indices for indices, _ in runs["ours"] + runs[peer]]))
            ours, its = (
                Pooled(Y[tested], [(np.searchsorted(tested, indices), ids) for indices, ids in runs[key]])
                for key in ("ours", peer)
            )
            found = metrics.compare_rankings(ours, its, PRECISIONS)
            entries[peer]["against"] = {row.name: [row.difference, row.low, row.high] for row in found}


def run_set(
    rows: Rows, pythons: dict[str, str], n_seeds: int, entries: dict[str, Any]
) -> tuple[dict[str, Any], set[str]]:
    """Fit the systems in turns on one set; returns the entries, those of other systems as given, and the
    systems that were fitted."""
    for peer in turn(pythons, rows, 0):
        choice_of(peer, rows, pythons[peer])  # now, so that the fits of a turn follow each other
    fitted = set()
    for seed in range(n_seeds):
        turn_seconds: dict[str, float] = {}
        for peer in turn(pythons, rows, seed):
            found = measure(peer, rows, seed, pythons[peer])
            fitted.add(peer)
            turn_seconds |= {peer: found["fit_seconds"]} if "fit_seconds" in found else {}
            print(f"{rows.name} {peer}, seed {seed}: {shown(found)}", flush=True)
        store_times_of_pecos(rows, seed, turn_seconds)
    if "ours" in fitted:  # earlier comparisons are out of date
        for entry in entries.values():
            entry.pop("against", None)
    measured = {peer: entry_of(peer, rows, n_seeds) for peer in pythons}
    entries = {**entries, **{peer: entry for peer, entry in measured.items() if entry}}
    compare(rows, entries, n_seeds)
    return {peer: entries[peer] for peer in FITS if peer in entries}, fitted


def main() -> None:
    parser = parser_of(__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--validation", action="store_true")
    which.add_argument("--test", action="store_true")
    known_sets = available()
    parser.add_argument("--only", type=several(FITS), default=[*FITS], help=f"of {','.join(FITS)}")
    parser.add_argument("--sets", type=several(known_sets), default=known_sets, help="separated by commas")
    parser.add_argument("--seeds", type=int, default=3, choices=range(1, 101), metavar="N")
    parser.add_argument("--again", action="store_true", help="measure again what .peers/ keeps")
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the peers' environments")
    options = parser.parse_args()
    split = "validation" if options.validation else "test"
    file = "peers-validation" if options.validation else "peers"
    path = destination(parser, options, file, free=("validation", "test", "python", "again"))
    sets = read_sets(path, split)
    HOME.mkdir(exist_ok=True)
    pythons, failures = installed(options.only, options.python)
    for name in options.sets:
        rows = Rows(name, options.validation)
        if options.again:
            for peer in pythons:
                shutil.rmtree(folder_of(peer, rows), ignore_errors=True)
        entries = {**sets.get(name, {}).get("peers", {}), **failures}
        entries, fitted = run_set(rows, pythons, options.seeds, entries)
        ours = {peer: entries[peer] for peer in entries if peer in fitted and is_ours(peer)}
        if ours and options.test and is_committed(path):
            log_reading("peers", {name: ours})
        train, test = rows.read(0)
        sizes = {"train": train.X.shape[0], "test": test.X.shape[0]}
        sizes |= {"features": train.X.shape[1], "labels": train.Y.shape[1]}
        sets[name] = {**sizes, "peers": entries}
        if path is not None:  # after each set, because a run takes hours
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
