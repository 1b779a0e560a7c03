"""Kill processes that change a model on disk, at random moments, and look at what they leave.

    python benchmarks/crash.py                       # 2,020 kills, about 20 minutes
    python benchmarks/crash.py --methods ExMLDS      # 340 of them; the results of other methods are kept
    python benchmarks/crash.py --kills 50 --seed 1   # so many of each method; the results are printed
    python benchmarks/crash.py --kills 50 --seed 1 --add --output FILE   # or added to those in the file

A process opens the model folder for writing and makes changes, compactions and saves in a random order, and
reports each change once it has returned. It is ended by SIGKILL. Whatever the moment, the folder must load,
and hold all changes that were reported, and at most the one after them, exactly as a process that was never
killed has them. `SUBJECTS` has the methods: how to fit a small model, how to make the change of a number,
and what to compare. `NoteCounter`, of the tests, makes a change in less than a millisecond.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

import exmlds
from exmlds.base import imported_methods
from exmlds.data import make_library
from exmlds.errors import DataWarning
from exmlds.models import exmlds4
from measure import destination, parser_of, write_results

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "storage"))
note_counter: Any = import_module("note_counter")

FORK = multiprocessing.get_context("fork")  # A forked process need not import anything.
CHANGES = 400  # after which a new model is begun


class Subject(NamedTuple):
    """A method that grows.

    fitted : makes a small model;  change : makes the change of a number;  facts : what is compared, as JSON
    kind : what the change of a number does
    kills : of a full run;  longest : seconds after the model was opened, at most, before a kill
    """

    fitted: Callable[[], Any]
    change: Callable[[Any, int], None]
    facts: Callable[[Any], Any]
    kind: Callable[[int], str] = lambda _: "change"
    kills: int = 1000
    longest: float = 0.05


def _growing(method: Any) -> Subject:
    """A method with `partial_fit`: two rows are added, relabelled or removed at a time."""
    books = make_library(600, random_state=0)

    def fitted() -> Any:
        return clone(method).fit(books.X[:60], books.Y[:60])

    def change(model: Any, number: int) -> None:
        rows = [60 + number % 500, 60 + (number + 250) % 500]
        ids = [f"{number}-a", f"{number}-b"]
        if number % 4 == 2:
            model.relabel([f"{number - 2}-a"], books.Y[rows[:1]])
        elif number % 4 == 3:
            model.remove_rows([f"{number - 2}-a", f"{number - 3}-b"])
        else:
            model.partial_fit(books.X[rows], books.Y[rows], ids=ids)

    def facts(model: Any) -> Any:
        ids, scores = model.predict_topk(books.X[560:], 5)
        return [model.row_ids_, model.label_counts_.tolist(), ids.tolist(), scores.tolist()]

    kinds = ("update", "update", "relabel", "remove")
    return Subject(fitted, change, facts, lambda number: kinds[number % 4], kills=340, longest=0.15)


SMALL: dict[str, Any] = {
    "features": "l2",
    "temperature": 0.1,
    "random_state": 0,
    "n_jobs": 1,
    "threshold": 0.5,
}
SUBJECTS = {
    "NoteCounter": Subject(note_counter.fitted, note_counter.change, note_counter.facts),
    "FeatureNeighbors": _growing(exmlds.FeatureNeighbors(growable=True, n_jobs=1, threshold=0.5)),
    "ExMLDS4": _growing(exmlds.ExMLDS4(n_components=5, n_epochs=2, growable=True, **SMALL)),
    "ExMLDS": _growing(
        exmlds.ExMLDS(
            candidates="joint",
            shortlist=8,
            cost=1.0,
            threshold=0.5,
            growable=True,
            random_state=0,
            n_jobs=1,
        )
    ),
}


class WrongModelError(Exception):
    """A folder that does not hold what was acknowledged."""


class Oracle:
    """A process that makes the same changes in memory, and tells what a model is after n of them."""

    def __init__(self, subject: Subject, path: Path) -> None:
        self.pipe, other = FORK.Pipe()
        self.process = FORK.Process(target=self._answer, args=(subject, path, other), daemon=True)
        self.process.start()
        self.known = [self.pipe.recv()]

    @staticmethod
    def _answer(subject: Subject, path: Path, pipe: Any) -> None:
        model, number = exmlds.load(path), 0
        while True:
            pipe.send(json.dumps(subject.facts(model)))
            pipe.recv()
            subject.change(model, number)
            number += 1

    def facts(self, n: int) -> str:
        while len(self.known) <= n:
            self.pipe.send(None)
            self.known.append(self.pipe.recv())
        return self.known[n]

    def close(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _work(subject: Subject, path: Path, seed: int, number: int, report: int) -> None:
    """Change the model until the process is killed; report is the descriptor for what is acknowledged."""
    rng = np.random.default_rng(seed)
    warnings.simplefilter("ignore", DataWarning)  # of a tail that is cut
    with exmlds.load(path, writable=True) as model:
        os.write(report, b"open\n")
        while True:
            action = rng.random()
            if action < 0.15:
                os.write(report, b"compact\n")
                model.compact(purge=bool(rng.integers(2)))
            elif action < 0.3:
                os.write(report, b"save\n")
                model.save(path)
            else:
                os.write(report, b"%s\n" % subject.kind(number).encode())
                subject.change(model, number)
                number += 1
                os.write(report, b"%d\n" % number)


def _killed(subject: Subject, path: Path, seed: int, number: int, wait: float) -> tuple[int, str]:
    """Kill a worker some seconds after it has opened the model; the acknowledged changes, and the moment."""
    reading, writing = os.pipe()
    worker = FORK.Process(target=_work, args=(subject, path, seed, number, writing))
    worker.start()
    os.close(writing)
    with os.fdopen(reading) as reports:
        first = reports.readline()
        if first != "open\n":
            raise WrongModelError(f"the worker could not open the model: seed {seed}")
        time.sleep(wait)
        worker.kill()
        worker.join()
        lines = reports.read().split()
    if worker.exitcode != -signal.SIGKILL:
        raise WrongModelError(f"the worker failed by itself: seed {seed}")
    numbers = [int(line) for line in lines if line.isdigit()]
    during = lines[-1] if lines and not lines[-1].isdigit() else "between"
    return max(numbers, default=number), during


def _found(subject: Subject, path: Path) -> tuple[str, bool]:
    """What a folder holds, and whether a torn tail was reported; by a process of its own."""
    pipe, other = FORK.Pipe(duplex=False)
    process = FORK.Process(target=_look, args=(subject, path, other))
    process.start()
    other.close()
    try:
        return pipe.recv()
    except EOFError:
        raise WrongModelError(f"{path} does not load") from None
    finally:
        process.join()


def _look(subject: Subject, path: Path, pipe: Any) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        found = json.dumps(subject.facts(exmlds.load(path)))
    pipe.send((found, any("incomplete change" in str(each.message) for each in caught)))


def crash(subject: Subject, folder: Path, kills: int, seed: int) -> dict[str, int]:
    """Kill workers one after another; a WrongModelError where an acknowledged change is lost."""
    # Modules and kernels are loaded once, rather than in each forked process.
    imported_methods()
    first = subject.fitted()
    for number in range(4):
        subject.change(first, number)
    subject.facts(first)
    rng = np.random.default_rng(seed)
    counts: Counter[str] = Counter()
    path, number, oracle = folder / "none", 0, None
    for kill in range(kills):
        if oracle is None or number > CHANGES:
            if oracle is not None:
                oracle.close()
            path, number = folder / f"model-{kill}", 0
            subject.fitted().save(path)
            oracle = Oracle(subject, path)
        acknowledged, during = _killed(
            subject, path, int(rng.integers(2**31)), number, float(rng.uniform(0, subject.longest))
        )
        found, is_torn = _found(subject, path)
        after = [n for n in (acknowledged, acknowledged + 1) if found == oracle.facts(n)]
        if not after:
            raise WrongModelError(f"{path} is neither after {acknowledged:,} changes nor after one more")
        counts["kills"] += 1
        counts["acknowledged changes"] += acknowledged - number
        counts["torn tails"] += is_torn
        counts["changes on disk that were not acknowledged yet"] += after[0] - acknowledged
        counts[f"kills during {during}" if during != "between" else "kills between calls"] += 1
        number = after[0]
    if oracle is not None:
        oracle.close()
    return dict(counts)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--methods", nargs="+", choices=SUBJECTS, default=list(SUBJECTS))
    parser.add_argument("--kills", type=int, help="of each method")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--add", action="store_true", help="add the counts to those of earlier runs")
    options = parser.parse_args()
    path = destination(parser, options, "crash", free=("methods",))
    results: dict[str, Any] = {}
    if path is not None and path.is_file():
        results = json.loads(path.read_text(encoding="utf-8"))["methods"]
    exmlds4.FEWEST_FURTHER = 5  # so that small models train their maps further, as larger ones do
    for name in options.methods:
        with tempfile.TemporaryDirectory() as folder:
            kills = SUBJECTS[name].kills if options.kills is None else options.kills
            before = Counter(results.get(name, {}) if options.add else {})
            before.update(crash(SUBJECTS[name], Path(folder), kills, options.seed))
            results[name] = dict(before)
        print(name, results[name], flush=True)
    write_results(path, {"methods": results})


if __name__ == "__main__":
    main()
