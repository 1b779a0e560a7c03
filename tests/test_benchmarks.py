"""The scripts of benchmarks/ that reproduce the paper's tables: their arguments and the files they write."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(params=["paper", "missing", "joint"])
def script(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module(request.param)


def run(script: ModuleType, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> object:
    """The exit status of the script."""
    monkeypatch.setattr(sys, "argv", [f"{script.__name__}.py", *arguments])
    with pytest.raises(SystemExit) as ended:
        script.main()
    return ended.value.code


@pytest.mark.parametrize("arguments", [("--sets", "bibtext"), ("--output", "no/such/folder.json")])
def test_typing_errors_are_usage_errors(script, arguments, monkeypatch, capsys):
    assert run(script, monkeypatch, "--validation", *arguments) == 2
    assert arguments[1] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("script", "arguments"),
    [("paper", ("--variants", "papr")), ("paper", ("--seeds", "0")), ("joint", ("--seeds", "0"))],
    indirect=["script"],
)
def test_unknown_variants_and_no_seeds_are_usage_errors(script, arguments, monkeypatch, capsys):
    assert run(script, monkeypatch, "--validation", *arguments) == 2
    assert arguments[1] in capsys.readouterr().err


def test_without_any_data_set_nothing_is_written(script, monkeypatch, tmp_path):
    monkeypatch.setenv("EXMLDS_DATA", str(tmp_path))
    output = tmp_path / "mine.json"
    assert "nothing is written" in str(run(script, monkeypatch, "--test", "--output", str(output)))
    assert not output.exists()


def test_results_of_other_sets_are_kept_and_only_committed_readings_are_logged(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    measure = import_module("measure")
    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    readings = tmp_path / "test-readings.jsonl"
    mine = tmp_path / "mine.json"
    measure.write_sets("paper", "test", {"a": {"paper": 1, "default": 2}, "b": {"paper": 3}}, mine)
    measure.write_sets("paper", "test", {"a": {"paper": 4}}, mine)
    assert json.loads(mine.read_text())["sets"] == {"a": {"paper": 4, "default": 2}, "b": {"paper": 3}}
    assert not readings.exists()
    measure.write_sets("paper", "validation", {"a": {"paper": 5}}, mine)  # another split is not mixed in
    assert json.loads(mine.read_text())["sets"] == {"a": {"paper": 5}}
    measure.write_sets("paper", "test", {"a": {"paper": 6}}, None)
    assert json.loads(readings.read_text())["results"] == {"a": {"paper": 6}}
    assert (tmp_path / "paper-test.json").is_file()
