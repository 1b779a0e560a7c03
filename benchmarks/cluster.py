"""Measure partitioned models: their quality, one worker against two, faults, and fits larger than memory.

    EXMLDS_DATA=… python benchmarks/cluster.py quality --validation      # or --test
    EXMLDS_DATA=… python benchmarks/cluster.py workers
    EXMLDS_DATA=… python benchmarks/cluster.py scheduler
    EXMLDS_DATA=… python benchmarks/cluster.py kills --runs 20 --drivers 5
    EXMLDS_DATA=… python benchmarks/cluster.py memory --rows 1e5,5e5,1e6,5e6

- quality: `ExMLDS` on all training rows, and `Partitioned` with its default settings; both with seed 0. With
  --validation, a part of the training rows is predicted, and the test rows are not read.
- workers: the same fit to shards on 1 and on 2 worker processes of one thread each, with the seconds of each
  kind of task and the CPU seconds of the workers. What is not parallel bounds the speed-up on more workers.
- scheduler: 10,000 empty tasks.
- kills: EURLex-4K, with a random worker, or the driver, ended by `kill -9` at a random moment; a driver is
  started again. All runs must end in the same arrays.
- memory: rows of `make_xmc`, 10⁵ features and 10⁶ labels, written shard by shard and fitted by 2 workers,
  each of which may have 3 GB (RLIMIT_DATA), to parts of `ExMLDS(effort="fast")`. Each number of rows is added
  to the figures by itself, so that they can be run one by one; `--folder` is where the files lie meanwhile.

The figures of each part are added to results/cluster.json where --output names this file.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from scipy.sparse import load_npz

from exmlds import ExMLDS, FeatureNeighbors, Partitioned, load, metrics
from exmlds.data import Dataset, find, find_shards, open_shards, read_xc, synthetic, write_npz
from exmlds.runtime import cluster
from exmlds.storage import model_folder
from measure import is_committed, log_reading, machine, output_file, peak_bytes, seconds

SETS = {"eurlex-4k": (4,), "citeulike-t": (4,), "yso-finna-en": (8, 4, 16)}
N_VALIDATION = {"yso-finna-en": 5_000}
SHARDS = 8
PRECISIONS = ("P@1", "P@3", "P@5")
WORKER_BYTES = 3_000_000_000
MADE_UP = {"n_features": 100_000, "n_labels": 1_000_000}
SHARD_ROWS = 50_000
PREDICTED = 16_384  # rows whose predictions are timed


def split(name: str, is_test: bool, seed: int) -> tuple[Dataset, Dataset]:
    """Rows to train on and to predict; seed : of a validation split."""
    train = read_xc(find(name, "train"))
    if is_test:
        return train, read_xc(find(name, "test"))
    order = np.random.default_rng(seed).permutation(train.X.shape[0])
    n = N_VALIDATION.get(name, 3_000)
    return train.rows(np.sort(order[n:])), train.rows(np.sort(order[:n]))


def quality(options: argparse.Namespace) -> dict[str, Any]:
    train, test = split(options.set, options.test, options.split)
    found = {}
    systems: dict[str, Any] = {"whole": ExMLDS(random_state=0)}
    for n_parts in options.parts or SETS[options.set]:
        systems[f"{n_parts} parts"] = Partitioned(n_parts=n_parts, random_state=0, overlap=options.overlap)
    for name, model in systems.items():
        if options.systems and name not in options.systems.split(","):
            continue
        fit_seconds = seconds(lambda model=model: model.fit(train.X, train.Y))  # type: ignore[misc]
        started = time.perf_counter()
        ids, _ = model.predict_topk(test.X, 5)
        ms = 1000 * (time.perf_counter() - started) / len(ids)
        ranking = metrics.Ranking(test.Y, ids, 5)
        precisions = {name: round(100 * ranking.value(name), 2) for name in PRECISIONS}
        found[name] = {**precisions, "fit_seconds": round(fit_seconds, 1), "ms_per_row": round(ms, 3)}
        print(options.set, name, json.dumps(found[name]), flush=True)
    rows = "test" if options.test else "validation" + (f" {options.split}" if options.split else "")
    return {f"quality, {rows}": {options.set: found}}


def write_set(name: str, folder: Path, n_rows: int | None = None) -> list[Any]:
    """The training rows of a data set in shards."""
    data = read_xc(find(name, "train"))
    rows = np.random.default_rng(0).permutation(data.X.shape[0])[:n_rows]
    for number, own in enumerate(np.array_split(rows, SHARDS)):
        part = data.rows(own)
        write_npz(folder / f"X.{number}.npz", Dataset(part.X, part.Y))
    return open_shards(find_shards(folder / "X.*.npz"))[0]


def cpu_of_workers() -> float:
    """The CPU seconds that the workers of the current client have used."""
    return float(sum(cluster.current_client().run(time.process_time).values()))  # type: ignore[union-attr]


@contextmanager
def timed_tasks(
    stages: dict[str, dict[str, float]], after: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Add up the tasks of each kind, their seconds and the workers' CPU seconds; call `after` each kind."""
    run = cluster.run

    def timed(work: Any, tasks: Any, stage: str, until: float | None = None) -> None:
        before = cpu_of_workers()
        spent = seconds(lambda: run(work, tasks, stage, until))
        figures = {"tasks": len(tasks), "seconds": spent, "cpu_seconds": cpu_of_workers() - before}
        known = stages.setdefault(stage, dict.fromkeys(figures, 0))
        known.update({name: round(known[name] + value, 2) for name, value in figures.items()})
        after()

    cluster.run = timed
    try:
        yield
    finally:
        cluster.run = run


def fit_timed(
    model: Partitioned, shards: list[Any], path: Path, after: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Fit a model on the workers of the current client; returns the seconds of all, and of each kind of task.

    The driver's own work, between the tasks, is the stage "driver". The largest part is in units of the mean.
    """
    stages: dict[str, dict[str, float]] = {}
    cpu = time.process_time()
    with timed_tasks(stages, after):
        fit = seconds(lambda: model.fit_shards(shards, path))
    own = {"tasks": 1, "seconds": round(fit - sum(stage["seconds"] for stage in stages.values()), 2)}
    stages["driver"] = {**own, "cpu_seconds": round(time.process_time() - cpu, 2)}
    sizes = [len(rows) for rows in model.part_rows_]
    largest = round(max(sizes) / float(np.mean(sizes)), 2)
    return {"fit_seconds": round(fit, 1), "largest_part": largest, "stages": stages}


def workers(options: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shards = write_set(options.set, folder, options.sample)
        for n_workers in options.workers:
            model = Partitioned(n_parts=options.n_parts, random_state=0)
            started = time.perf_counter()
            with cluster.connected(n_workers=n_workers):
                start = time.perf_counter() - started
                fit = fit_timed(model, shards, folder / f"model-{n_workers}")
            end_to_end = time.perf_counter() - started
            found[str(n_workers)] = {"seconds": round(end_to_end, 1), "start": round(start, 1), **fit}
            print(n_workers, json.dumps(found[str(n_workers)]), flush=True)
        first, *others = [folder / f"model-{n_workers}" for n_workers in options.workers]
        found["same_arrays"] = all(arrays_of(first) == arrays_of(other) for other in others)
    return {"workers": {options.set: {"rows": options.sample, "parts": options.n_parts, **found}}}


def nothing(number: int) -> None:
    """An empty task."""


def scheduler(options: argparse.Namespace) -> dict[str, Any]:
    with cluster.connected(n_workers=2):
        cluster.run(nothing, [(number,) for number in range(10)], "warming up")
        spent = seconds(lambda: cluster.run(nothing, [(number,) for number in range(10_000)], "nothing"))
    return {"scheduler": {"tasks": 10_000, "workers": 2, "seconds": round(spent, 2)}}


def arrays_of(path: Path) -> dict[str, bytes]:
    """The arrays of a model and of its parts."""
    (own,) = path.glob("arrays-*.bin")
    return {
        "whole": own.read_bytes(),
        **{file.parent.name: file.read_bytes() for file in path.glob("parts-*/*/arrays-*.bin")},
    }


def kills(options: argparse.Namespace) -> dict[str, Any]:
    """Runs with killed workers, and with killed drivers."""
    rng, outcomes = np.random.default_rng(options.seed), {"workers": [0, 0], "drivers": [0, 0]}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shards = write_set("eurlex-4k", folder)
        model = Partitioned(estimator=FeatureNeighbors(), n_parts=4, random_state=0, n_jobs=1)
        with cluster.connected(n_workers=2):
            from distributed import default_client

            longest = seconds(lambda: model.fit_shards(shards, folder / "expected"))
            expected = arrays_of(folder / "expected")
            for run in range(options.runs):
                moment = float(rng.random() * longest)

                def kill(moment: float = moment) -> None:
                    time.sleep(moment)
                    pids = list(default_client().run(os.getpid).values())
                    os.kill(pids[int(rng.integers(len(pids)))], signal.SIGKILL)

                killer = Thread(target=kill)
                killer.start()
                model.fit_shards(shards, folder / f"worker-{run}")
                killer.join()
                outcomes["workers"][0] += 1
                outcomes["workers"][1] += arrays_of(folder / f"worker-{run}") == expected
                shutil.rmtree(folder / f"worker-{run}")
                print("worker killed", run, f"{moment:.1f} s", outcomes["workers"], flush=True)
        words = [sys.executable, "-m", "exmlds", "train", str(folder / "X.*.npz"), "--parts", "4"]
        words += ["--method", "feature-neighbors", "--set", "n_jobs=1", "--seed", "0"]
        for run in range(options.drivers):
            path = folder / f"driver-{run}"
            own = [*words, "--workers", "2", "-o", str(path)]
            moment = float(2 + rng.random() * longest)
            driver = subprocess.Popen(own, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                driver.wait(moment)
            except subprocess.TimeoutExpired:
                driver.kill()
                driver.wait()
            if not path.exists():
                subprocess.run(own, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            outcomes["drivers"][0] += 1
            outcomes["drivers"][1] += arrays_of(path) == expected
            print("driver killed", run, f"{moment:.1f} s", outcomes["drivers"], flush=True)
    return {"kills": {kind: {"runs": runs, "same_arrays": same} for kind, (runs, same) in outcomes.items()}}


def write_made_up(folder: Path, n: int) -> None:
    """Rows of one generator, shard by shard."""
    rng = np.random.default_rng(0)
    world = synthetic._random_world(MADE_UP["n_features"], MADE_UP["n_labels"], 1_000, 1.0, rng)
    for number, start in enumerate(range(0, n, SHARD_ROWS)):
        rows = synthetic._rows(world, min(SHARD_ROWS, n - start), 3.0, 30.0, 0.05, 0.3, rng)
        write_npz(folder / f"X.{number:04}.npz", Dataset(*rows))


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (WORKER_BYTES, WORKER_BYTES))


def memory(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Each size in a process of its own, so that the driver's peak is that of one fit."""
    spawn = get_context("spawn")
    for n in options.rows:
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            with ProcessPoolExecutor(1, spawn) as writer:
                writing = seconds(writer.submit(write_made_up, Path(name), n).result)
            with ProcessPoolExecutor(1, spawn) as driver:
                found = driver.submit(fit_made_up, Path(name)).result()
        found = {"rows": n, "write_seconds": round(writing, 1), **found}
        print(json.dumps(found), flush=True)
        yield {"memory": {f"{n:.0e}": found}}


def fit_made_up(folder: Path) -> dict[str, Any]:
    """Fit made-up rows on workers with limited memory."""
    most = disk_usage(folder)
    model = Partitioned(estimator=ExMLDS(effort="fast"), random_state=0)

    def look() -> None:
        nonlocal most
        most = max(most, disk_usage(folder))

    opening = time.perf_counter()
    shards: list[Any] = open_shards(find_shards(folder / "X.*.npz"))[0]
    opening = time.perf_counter() - opening
    with cluster.connected(n_workers=2):
        client: Any = cluster.current_client()
        client.run(limit)
        fit = fit_timed(model, shards, folder / "m", look)
        peaks = [*client.run(peak_bytes).values()]
    driver_peak = peak_bytes()
    fitted: Any = load(folder / "m")
    X = load_npz(folder / "X.0000.npz")[:PREDICTED]
    predicting = seconds(lambda: fitted.predict_topk(X, 5))
    return {
        "shards": len(shards),
        "parts": len(fitted.parts_),
        "open_seconds": round(opening, 2),
        **fit,
        "worker_peak_bytes": peaks,
        "driver_peak_bytes": driver_peak,
        "model_bytes": model_folder.size(folder / "m"),
        "disk_peak_bytes": most,
        "predict_rows": X.shape[0],
        "rows_per_second": round(X.shape[0] / predicting),
        "predicting_peak_bytes": peak_bytes(),
    }


def disk_usage(folder: Path) -> int:
    """The bytes of all files in a folder, each file once whatever the number of its names."""
    files = {}
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            about = path.lstat()
            files[about.st_ino] = 512 * about.st_blocks
    return sum(files.values())


def merged(before: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The figures with those of a run, which replace figures of the same name."""
    found = dict(before)
    for name, value in new.items():
        both = isinstance(value, dict) and isinstance(found.get(name), dict)
        found[name] = merged(found[name], value) if both else value
    return found


def numbers(text: str) -> list[int]:
    """An argparse type: whole numbers, separated by commas."""
    return [int(float(number)) for number in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=output_file, metavar="FILE", help="figures are added to this file")
    commands = parser.add_subparsers(required=True)
    for work in (quality, workers, scheduler, kills, memory):
        own = commands.add_parser(work.__name__)
        own.set_defaults(work=work)
        if work in (quality, workers):
            own.add_argument("--set", choices=SETS, default="eurlex-4k")
        if work is quality:
            which = own.add_mutually_exclusive_group(required=True)
            which.add_argument("--validation", action="store_true")
            which.add_argument("--test", action="store_true")
            own.add_argument("--split", type=int, default=0, help="seed of the validation split")
            own.add_argument("--parts", type=numbers)
            own.add_argument("--overlap", type=float, default=Partitioned().overlap)
            own.add_argument("--systems", help="such as 'whole,8 parts'; by default all")
        elif work is workers:
            own.add_argument("--workers", type=numbers, default=[1, 2])
            own.add_argument("--n-parts", type=int, default=8)
            own.add_argument("--sample", type=int, help="rows, of all")
        elif work is kills:
            own.add_argument("--runs", type=int, default=20)
            own.add_argument("--drivers", type=int, default=5)
            own.add_argument("--seed", type=int, default=0, help="of the moments")
        elif work is memory:
            own.add_argument("--rows", type=numbers, default=[100_000, 500_000, 1_000_000, 5_000_000])
            own.add_argument("--folder", type=Path, help="of the shards and the model; by default, TMPDIR")
    options = parser.parse_args()
    found = options.work(options)
    for figures in found if isinstance(found, Iterator) else [found]:
        add(figures, options)


def add(found: dict[str, Any], options: argparse.Namespace) -> None:
    """Add figures to the file, or print them where there is none."""
    if options.output is None:
        print(json.dumps(found, indent=1))
        return
    if getattr(options, "test", False) and is_committed(options.output):
        log_reading("cluster", found)
    before = json.loads(options.output.read_text()) if options.output.is_file() else {}
    results = merged(before, {"machine": machine(), **found})
    options.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
