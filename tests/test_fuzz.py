"""The fuzzer of benchmarks/: it notices every kind of failure, its runs add up, and a few cases pass."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
BROKEN = """
import faulthandler, time

LIMIT = 1.0

def prepare(folder):
    pass

def opened(folder):
    def run(seed):
        if seed == 1:
            raise KeyError("a traceback")
        if seed == 2:
            faulthandler._sigsegv()
        if seed == 4:
            time.sleep(60)
        return "right"
    return run
"""


@pytest.fixture
def fuzz(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("fuzz")


def test_tracebacks_crashes_and_hangs_are_found(
    fuzz: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken_cases.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(fuzz.KINDS, "broken", "broken_cases")
    done = fuzz.run("broken", 0, 6)
    assert done.outcomes == {"failure": 3, "right": 3}
    found = {failure["seed"]: failure["cause"] for failure in done.failures}
    assert found[1] == "KeyError: 'a traceback'"
    assert found[2].startswith("crash, exit code -11")
    assert found[4].startswith("no answer in 1 s")
    assert "broken 1: KeyError" in capsys.readouterr().out


@pytest.mark.parametrize(("kind", "cases"), [("readers", 300), ("commands", 20), ("models", 60)])
def test_a_few_cases_of_each_kind(fuzz: Any, kind: str, cases: int) -> None:
    done = fuzz.run(kind, 0, cases)
    assert done.failures == []
    assert sum(done.outcomes.values()) == cases
    assert len(done.outcomes) > 1


def test_runs_add_up_and_no_seed_counts_twice(fuzz: Any) -> None:
    results: dict[str, Any] = {}
    for seed in (0, 10):
        assert fuzz.next_seed(results, "readers") == seed
        one = fuzz.Run(
            seed, 10, {"right": 9, "failure": 1}, [{"seed": seed + 3, "cause": "x"}], seed / 10, 2.0
        )
        results = fuzz.added(results, "readers", one)
    sums = results["readers"]
    assert (sums["cases"], sums["failures"], sums["seconds"], sums["memory_growth_mb"]) == (20, 2, 4.0, 1.0)
    assert sums["outcomes"] == {"failure": 2, "right": 18}
    assert [one["seed"] for one in sums["runs"]] == [0, 10]
    with pytest.raises(SystemExit, match="The seeds from 10 on were run before"):
        fuzz.added(results, "readers", fuzz.Run(19, 5, {}, [], 0.0, 1.0))


def test_a_wrong_answer_of_a_reader_is_found(fuzz: Any, tmp_path: Path) -> None:
    readers = importlib.import_module("fuzz_readers")
    assert readers.xc_meaning(b"2 9 9\n1,0 3:2 2:1\n 4\n", True) == [
        ([0, 1], [2, 3], [1.0, 2.0]),
        ([], [4], [1.0]),
    ]
    for malformed in (b"1 9 9\r0 1:1\r", b"1 9 9\n0 1:\n", b"1 9 9 9\n0 1:1\n", b"1 9 9\n0 1:0x1\n"):
        assert readers.xc_meaning(malformed, False) is None
    (tmp_path / "f.txt").write_bytes(b"a\n")
    case = readers.Case({"f.txt": b"a\n"}, lambda folder: (folder / "f.txt").read_text(), "b\n")
    with pytest.raises(readers.WrongAnswer, match="got a"):
        readers.outcome(case, False, tmp_path)
    refused = readers.Case({"f.txt": b"a\n"}, lambda folder: readers.data.read_xc(folder / "f.txt"), None)
    assert readers.outcome(refused, True, tmp_path) == "refused"
    with pytest.raises(readers.WrongAnswer, match="a valid file is refused"):
        readers.outcome(refused, False, tmp_path)
