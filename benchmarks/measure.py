"""Shared by all benchmarks: description of the machine, timing, peak memory, and the results folder."""

from __future__ import annotations

import argparse
import json
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, Any]:
    # Imported here because the environments of other systems have no exmlds.
    from exmlds.runtime.parallel import n_threads

    command = ["git", "-C", str(RESULTS.parent), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False)
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit.stdout.strip(),
        "cores": n_threads(None),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")},
    }


def seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def race(repeats: int, **works: Callable[[], Any]) -> dict[str, float]:
    """Median seconds of each function, timed in turns so that a slow moment affects all, after a warm-up."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(repeats + 1):
        for name, work in works.items():
            spent = seconds(work)
            if turn:
                taken[name].append(spent)
    return {name: median(times) for name, times in taken.items()}


def peak_bytes() -> int:
    """Peak resident memory of this process on Linux; the value of getrusage would start with the parent's."""
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024 if found else 0


def write_results(name: str, results: dict[str, Any]) -> None:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"machine": machine(), **results}, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {path}; `python benchmarks/tables.py` brings the README up to date")


def several(allowed: Collection[str]) -> Callable[[str], list[str]]:
    """An argparse type: names separated by commas, each of them allowed."""

    def parse(text: str) -> list[str]:
        names = text.split(",")
        unknown = [name for name in names if name not in allowed]
        if unknown:
            raise argparse.ArgumentTypeError(
                f"unknown {', '.join(map(repr, unknown))} (choose from {', '.join(allowed)})"
            )
        return names

    return parse


def output_file(text: str) -> Path:
    """An argparse type: a file in a folder that exists, found out before the long run."""
    path = Path(text)
    if path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is not a file in an existing folder")
    return path


def write_sets(benchmark: str, split: str, sets: dict[str, Any], output: Path | None) -> None:
    """Write what was measured on each set to `output`, or else to the committed results.

    The file keeps its other sets, and the other entries of each set. An evaluation on test rows is logged
    with the committed results only.
    """
    if not sets:
        sys.exit("No data set was found under EXMLDS_DATA, so nothing is written.")
    path = output or RESULTS / f"{benchmark}-{split}.json"
    before = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    kept = before["sets"] if before.get("split") == split else {}
    merged = {**kept, **{name: {**kept.get(name, {}), **entries} for name, entries in sets.items()}}
    if output is None and split == "test":
        with (RESULTS / "test-readings.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps({"machine": machine(), "benchmark": benchmark, "results": sets}) + "\n")
    text = json.dumps({"machine": machine(), "split": split, "sets": merged}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")
    print(f"wrote {path}")
