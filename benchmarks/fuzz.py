"""Feed random input to the readers, the commands and the loader of models.

    python benchmarks/fuzz.py readers --count 20000 --add     # runs add up in results/fuzz.json
    python benchmarks/fuzz.py models --only 17                # one case, with its traceback

Every case is made from its seed alone. A failure is a traceback, a crash, a hang or a wrong answer; an error
of the package's own is none. A run goes on with the seeds after those in the results, unless --seed is given.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from measure import RESULTS, machine

KINDS = {"readers": "fuzz_readers", "commands": "fuzz_commands", "models": "fuzz_models"}
RESULTS_FILE = RESULTS / "fuzz.json"
START = 180.0  # seconds until a worker has imported everything and compiled the kernels for its first case
SAMPLED = 50  # cases between two looks at the memory
GROWTH = 100.0  # megabytes that a process may gain after its warm-up, for caches and fragmentation


class Outcome(NamedTuple):
    """What became of a case; a failure has a cause, and some tell the memory of their process in bytes."""

    seed: int
    what: str
    cause: str = ""
    memory: int = 0


class Run(NamedTuple):
    """The sums of a run, as they are committed."""

    seed: int
    cases: int
    outcomes: dict[str, int]
    failures: list[dict[str, Any]]
    memory_growth_mb: float
    seconds: float


def run(kind: str, seed: int, count: int) -> Run:
    """Run the cases of consecutive seeds in a process of their own, and a new one after a crash or a hang."""
    started = time.perf_counter()
    outcomes: Counter[str] = Counter()
    failures: list[dict[str, Any]] = []
    growth = 0.0
    folder = Path(tempfile.mkdtemp(prefix="exmlds-fuzz-", dir=_memory_folder()))
    try:
        importlib.import_module(KINDS[kind]).prepare(folder)
        following = seed
        while following < seed + count:
            samples = []
            for outcome in _outcomes(KINDS[kind], folder, range(following, seed + count)):
                following = outcome.seed + 1
                outcomes[outcome.what] += 1
                if outcome.memory:
                    samples.append(outcome.memory)
                if outcome.cause:
                    failures.append({"seed": outcome.seed, "cause": outcome.cause})
                    print(f"{kind} {outcome.seed}: {outcome.cause}", flush=True)
            growth = max(growth, _growth(samples))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    seconds = round(time.perf_counter() - started, 1)
    return Run(seed, count, dict(sorted(outcomes.items())), failures, round(growth / 1e6, 1), seconds)


def _memory_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _growth(samples: list[int]) -> float:
    """Bytes gained from the second fifth of a process's life to the last; the first is for warming up."""
    fifth = len(samples) // 5
    return median(samples[-fifth:]) - median(samples[fifth : 2 * fifth]) if fifth else 0.0


def _outcomes(module: str, folder: Path, seeds: range) -> Iterator[Outcome]:
    """The outcomes of a process until it ends; the last one may be the case that it did not survive."""
    limit: float = importlib.import_module(module).LIMIT
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    stacks = folder / "stacks"
    worker = context.Process(target=_work, args=(module, folder, seeds, theirs, stacks), daemon=True)
    worker.start()
    theirs.close()
    following = seeds.start
    try:
        while following < seeds.stop:
            if not ours.poll(START if following == seeds.start else limit):
                os.kill(worker.pid or 0, signal.SIGUSR1)  # it writes its stack
                time.sleep(0.5)
                yield Outcome(following, "failure", f"no answer in {limit:.0f} s: {_innermost(stacks)}")
                return
            try:
                outcome = ours.recv()
            except EOFError:
                worker.join()
                yield Outcome(
                    following, "failure", f"crash, exit code {worker.exitcode}: {_innermost(stacks)}"
                )
                return
            following = outcome.seed + 1
            yield outcome
    finally:
        worker.kill()
        worker.join()


def _innermost(stacks: Path) -> str:
    """The lines of the package in a stack that faulthandler wrote."""
    lines = stacks.read_text(encoding="utf-8", errors="replace").splitlines()
    ours = [line.strip() for line in lines if "/exmlds/" in line]
    return ours[0].rpartition("/exmlds/")[2] if ours else "outside of exmlds"


def _work(module: str, folder: Path, seeds: range, pipe: Connection, stacks: Path) -> None:
    with stacks.open("w") as file:
        faulthandler.enable(file)
        faulthandler.register(signal.SIGUSR1, file)
        temporary = folder / "temporary"
        temporary.mkdir(exist_ok=True)
        tempfile.tempdir = str(temporary)
        case = importlib.import_module(module).opened(folder)
        for seed in seeds:
            try:
                what, cause = case(seed), ""
            except BaseException as error:
                what, cause = "failure", cause_of(error)
            pipe.send(Outcome(seed, what, cause, 0 if seed % SAMPLED else _resident_bytes()))


def cause_of(error: BaseException) -> str:
    """The error and the innermost line of the package that it passed; equal causes are the same mistake."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/exmlds/" in frame.filename]
    where = (
        f" in {ours[-1].filename.rpartition('/exmlds/')[2]}:{ours[-1].lineno} {ours[-1].name}" if ours else ""
    )
    return f"{type(error).__name__}{where}: {' '.join(str(error).split())[:240]}"


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def only(kind: str, seed: int) -> None:
    """Run one case in this process, and let its error through."""
    folder = Path(tempfile.mkdtemp(prefix="exmlds-fuzz-", dir=_memory_folder()))
    module = importlib.import_module(KINDS[kind])
    try:
        if hasattr(module, "make"):
            print(module.make(seed), file=sys.stderr)
        module.prepare(folder)
        print(module.opened(folder)(seed))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def committed() -> dict[str, Any]:
    return json.loads(RESULTS_FILE.read_text(encoding="utf-8")) if RESULTS_FILE.exists() else {}


def next_seed(results: dict[str, Any], kind: str) -> int:
    return max((one["seed"] + one["cases"] for one in results.get(kind, {}).get("runs", [])), default=0)


def added(results: dict[str, Any], kind: str, new: Run) -> dict[str, Any]:
    """The results with one more run; seeds that were run before count once only, so they are refused."""
    runs = [*results.get(kind, {}).get("runs", [])]
    for old in runs:
        if old["seed"] < new.seed + new.cases and new.seed < old["seed"] + old["cases"]:
            raise SystemExit(f"The seeds from {old['seed']} on were run before; leave --seed out.")
    of = machine()
    runs.append({"date": of["date"], "commit": of["commit"], **new._asdict()})
    outcomes: Counter[str] = Counter()
    for one in runs:
        outcomes.update(one["outcomes"])
    sums = {
        "cases": sum(one["cases"] for one in runs),
        "outcomes": dict(sorted(outcomes.items())),
        "failures": sum(len(one["failures"]) for one in runs),
        "memory_growth_mb": max(one["memory_growth_mb"] for one in runs),
        "seconds": round(sum(one["seconds"] for one in runs), 1),
        "runs": runs,
    }
    return {**results, "machine": of, kind: sums}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--count", type=int, default=1000, help="the number of cases")
    parser.add_argument("--seed", type=int, help="the seed of the first case")
    parser.add_argument("--only", type=int, metavar="SEED", help="run this case only, and show its traceback")
    parser.add_argument("--add", action="store_true", help="add the run to the committed results")
    given = parser.parse_args()
    if given.only is not None:
        only(given.kind, given.only)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the files are removed
    results = committed()
    seed = next_seed(results, given.kind) if given.seed is None else given.seed
    done = run(given.kind, seed, given.count)
    if given.add:
        text = json.dumps(added(results, given.kind, done), indent=1, ensure_ascii=False)
        RESULTS_FILE.write_text(text + "\n", encoding="utf-8")
    shown = done._asdict() | {
        "failures": len(done.failures),
        "cases_per_second": round(done.cases / done.seconds),
    }
    print(json.dumps(shown))
    sys.exit(1 if done.failures or done.memory_growth_mb > GROWTH else 0)


if __name__ == "__main__":
    main()
