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


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The module of the shared helpers, with an empty folder of committed results."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    found = import_module("measure")
    (tmp_path / "results").mkdir()
    monkeypatch.setattr(found, "RESULTS", tmp_path / "results")
    return found


def test_results_of_other_sets_are_kept_and_only_committed_readings_are_logged(measure, tmp_path):
    readings = measure.RESULTS / "test-readings.jsonl"
    mine = tmp_path / "mine.json"
    measure.write_sets("paper", "test", {"a": {"paper": 1, "default": 2}, "b": {"paper": 3}}, mine)
    measure.write_sets("paper", "test", {"a": {"paper": 4}}, mine)
    assert json.loads(mine.read_text())["sets"] == {"a": {"paper": 4, "default": 2}, "b": {"paper": 3}}
    assert not readings.exists()
    measure.write_sets("paper", "validation", {"a": {"paper": 5}}, mine)  # another split is not mixed in
    assert json.loads(mine.read_text())["sets"] == {"a": {"paper": 5}}
    measure.write_sets("paper", "test", {"a": {"paper": 6}}, measure.RESULTS / "paper-test.json")
    assert json.loads(readings.read_text())["results"] == {"a": {"paper": 6}}


ARGUMENTS = {
    "paper": ("--test", "--seeds", "2"),
    "joint": ("--test", "--set", "n_epochs=1"),
    "missing": ("--test", "--shares", "0.8", "--variants", "paper-full,paper-visible", "--seeds", "1"),
    "peers": ("--test", "--only", "ours"),
    "scaling": ("--rows", "1e3,2e3"),
    "memory": ("--shapes", "wide"),
    "texts": ("--long", "0.1"),
    "splits": ("bibtex",),
    "startup": ("--repeats", "1"),
    "freeze": ("record", "--seeds", "0"),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_only_full_runs_replace_the_committed_results(name, measure, monkeypatch, tmp_path, capsys):
    """With other options, a script says before its work that it writes nothing; --output is then the way."""
    (tmp_path / "data" / "bibtex").mkdir(parents=True)
    for split in ("train", "test"):
        (tmp_path / "data" / "bibtex" / f"{split}.txt").touch()
    monkeypatch.setenv("EXMLDS_DATA", str(tmp_path / "data"))
    script = import_module(name)
    is_told = []

    class Reached(Exception):
        """The script would now begin its work."""

    def destination(*given, **options):
        is_told.append(measure.destination(*given, **options))
        raise Reached

    if name == "freeze":
        assert run(script, monkeypatch, *ARGUMENTS[name]) == 2
        assert "name the file that it is added to with --output" in capsys.readouterr().err
        return
    monkeypatch.setattr(script, "destination", destination)
    for arguments in (ARGUMENTS[name], (*ARGUMENTS[name], "--output", str(tmp_path / "mine.json"))):
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments])
        with pytest.raises(Reached):
            script.main()
    assert is_told == [None, tmp_path / "mine.json"]
    assert "--output FILE writes them" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "arguments", "file"),
    [
        ("paper", ("--test",), "paper-test.json"),
        ("paper", ("--validation", "--family"), "family-validation.json"),
        ("missing", ("--test",), "missing-test.json"),
        ("peers", ("--test",), "peers.json"),
        ("texts", ("--long",), "texts-long.json"),
        ("scaling", (), "scaling.json"),
        ("splits", (), "splits.json"),
        ("startup", (), "startup.json"),
    ],
)
def test_full_runs_go_to_the_committed_results(name, arguments, file, measure, monkeypatch):
    script = import_module(name)
    found = []

    def destination(*given, **options):
        found.append(measure.destination(*given, **options))
        sys.exit()

    monkeypatch.setattr(script, "destination", destination)
    run(script, monkeypatch, *arguments)
    assert found == [measure.RESULTS / file]


def test_results_without_a_file_are_printed(measure, capsys):
    measure.write_sets("paper", "test", {"a": {"paper": 1}}, None)
    assert json.loads(capsys.readouterr().out)["sets"] == {"a": {"paper": 1}}
    assert list(measure.RESULTS.iterdir()) == []
