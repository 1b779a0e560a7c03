"""What the docs show runs."""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import exmlds

ROOT = Path(__file__).parent.parent
MODULES = [
    module.name
    for module in pkgutil.walk_packages(exmlds.__path__, "exmlds.")
    if not module.name.endswith("__main__") and ".kernels." not in module.name
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)


def test_python_in_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = blocks("python")
    assert shown
    names: dict[str, object] = {}
    for block in shown:
        exec(compile(block, "README.md", "exec"), names)


def test_commands_in_the_readme(tmp_path: Path) -> None:
    """Every `exmlds` line runs, in one folder, in their order."""
    commands = [line for block in blocks("bash") for line in block.splitlines() if line.startswith("exmlds ")]
    assert commands
    folder = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    for command in commands:
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"


def test_changelog_names_the_version() -> None:
    assert f"## {exmlds.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_citation_names_the_version() -> None:
    assert f"version: {exmlds.__version__}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_tables_in_the_readme_are_those_of_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    tables = importlib.import_module("tables")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert tables.fill(text) == text, "run: python benchmarks/tables.py"
    emptied = re.sub(r"(<!-- table: \w+ -->\n).*?(<!-- end -->)", r"\1\2", text, flags=re.S)
    assert emptied != text
    assert tables.fill(emptied) == text


def test_figures_are_those_of_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    figures = importlib.import_module("figures")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, draw in figures.FIGURES.items():
        assert draw() == figures.path(name).read_text(encoding="utf-8"), "run: python benchmarks/figures.py"
        assert f"docs/figures/{name}.svg" in readme
