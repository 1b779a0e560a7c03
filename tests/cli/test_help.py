"""`--help` and what the shell completes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from exmlds import cli
from exmlds.cli.settings import methods

Run = Callable[..., Any]
COMMANDS: dict[str, Any] = dict(get_command(cli.app).commands)  # type: ignore[attr-defined]


def joined(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_is_whole_on_80_columns(run: Run, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    arguments = [name] if name else []
    shown = run(*arguments, "-h").out
    assert shown == run(*arguments, "--help").out
    assert max(map(len, shown.splitlines())) <= 80
    for command in [COMMANDS[name]] if name else COMMANDS.values():
        summary = joined(command.help.partition("\n\n")[0]).removesuffix(".")
        assert summary in joined(shown)
        for option in command.params if name else []:
            assert joined(option.help) in joined(shown), "a word is broken, or something is cut"
            if option.param_type_name == "option":
                metavar = re.escape(option.metavar) if option.metavar else r"<\w+( range)?>"
                value = "" if option.is_flag else f" {metavar}"
                assert re.search(rf"^  (-\w, )?{option.opts[-1]}{value}(  |$)", shown, re.M)


def test_options_are_grouped(run: Run) -> None:
    for name in COMMANDS:
        found = re.findall(r"^(\w+):$", run(name, "-h").out, re.M)
        assert found == [
            group
            for group in ("Arguments", "Data", "Model", "Output", "Advanced", "Options")
            if group in found
        ]
        assert {"Output", "Options"} <= set(found)
    data = run("train", "-h").out.split("\nData:\n")[1].split("\nModel:\n")[0]
    assert "--label-column" in data
    assert "--seed" not in data


def test_the_shell_completes_methods_data_sets_and_models(
    run: Run, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def completions(*words: str) -> list[str]:
        monkeypatch.setenv("_EXMLDS_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(["exmlds", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        return run().out.split()

    monkeypatch.chdir(files)
    monkeypatch.setenv("EXMLDS_DATA", str(files.parent))
    assert "train" in completions("tr")
    assert completions("train", "data", "--method", "") == sorted(methods())
    assert completions("info", "feat") == ["feature-neighbors"]
    assert completions("evaluate", "model", files.name) == [files.name]
    assert "test.txt.gz" in completions("train", "te")
    assert completions("inspect", "") == ["frequent", "model"]
    assert f"../{files.name}/" in completions("inspect", "../")
    assert completions("predict", "mod") == ["model"]
