"""Shared by all benchmarks: description of the machine, timing, peak memory, and the results folder."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, Any]:
    # Imported here because the environments of other systems have no exmlds.
    from exmlds.runtime.parallel import n_threads

    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
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
