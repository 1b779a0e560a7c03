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


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """A parser of arguments with --output, for `destination`."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--output",
        type=output_file,
        metavar="FILE",
        help="the file to write; without it, only a full run with default options is written, to results/",
    )
    return parser


def destination(
    parser: argparse.ArgumentParser,
    options: argparse.Namespace,
    name: str,
    *,
    free: Collection[str] = (),
    missing: Collection[str] = (),
) -> Path | None:
    """The file that --output names or, for a full run with the default options, the committed one, or None.

    free : options that choose among the committed files, or that do not change what is measured
    missing : parts of a full run that cannot be run here, and that the committed file would lose
    """
    if options.output is not None:
        return Path(options.output)
    reasons = changed_options(parser, options, free) + [f"{part} is missing" for part in missing]
    if reasons:
        why = ", ".join(reasons)
        print(
            f"This is not a full run with the default options ({why}), so the results will be printed and "
            "not written; --output FILE writes them.",
            file=sys.stderr,
        )
        return None
    return RESULTS / f"{name}.json"


def changed_options(
    parser: argparse.ArgumentParser, options: argparse.Namespace, free: Collection[str] = ()
) -> list[str]:
    """The options that have other values than their defaults, except --output and those that are free."""
    return [
        f"{option}={value}"
        for option, value in vars(options).items()
        if option not in ("output", *free) and value != parser.get_default(option)
    ]


def write_results(path: Path | None, results: dict[str, Any]) -> None:
    """Write the results to a file, or print them where there is none."""
    text = json.dumps({"machine": machine(), **results}, indent=1)
    if path is None:
        print(text)
        return
    path.parent.mkdir(exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")
    hint = "; `python benchmarks/tables.py` brings the README up to date" if is_committed(path) else ""
    print(f"wrote {path}{hint}")


def read_sets(path: Path | None, split: str) -> dict[str, Any]:
    """The sets in a file of results on the same split, or none."""
    before = json.loads(path.read_text(encoding="utf-8")) if path is not None and path.is_file() else {}
    return before["sets"] if before.get("split") == split else {}


def write_sets(benchmark: str, split: str, sets: dict[str, Any], path: Path | None) -> None:
    """Write what was measured on each set to a file, or print it where there is none.

    The file keeps its other sets, and the other entries of each set. An evaluation on test rows is logged
    with the committed results only.
    """
    if not sets:
        sys.exit("No data set was found under EXMLDS_DATA, so nothing is written.")
    kept = read_sets(path, split)
    merged = {**kept, **{name: {**kept.get(name, {}), **entries} for name, entries in sets.items()}}
    if split == "test" and is_committed(path):
        log_reading(benchmark, sets)
    write_results(path, {"split": split, "sets": merged})


def is_committed(path: Path | None) -> bool:
    return path is not None and path.suffix == ".json" and path.resolve().parent == RESULTS.resolve()


def log_reading(benchmark: str, results: dict[str, Any]) -> None:
    """Log an evaluation on test rows, so that it can be seen how often they were read."""
    with (RESULTS / "test-readings.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"machine": machine(), "benchmark": benchmark, "results": results}) + "\n")
