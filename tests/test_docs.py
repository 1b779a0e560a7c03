"""What the docs show runs."""

from __future__ import annotations

import doctest
import importlib
import io
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

import exmlds
from exmlds import cli

ROOT = Path(__file__).parent.parent
README, HOME = ROOT / "README.md", ROOT / "docs" / "index.md"
PAGES = [
    page
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if re.search(r"^```(python|bash)$", page.read_text(encoding="utf-8"), re.M)
    and page.parent.name != "reference"  # which the docstrings make
]
MODULES = [
    module.name
    for module in pkgutil.walk_packages(exmlds.__path__, "exmlds.")
    if not module.name.endswith("__main__") and ".kernels." not in module.name
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


def blocks(page: Path, *languages: str) -> list[tuple[str, str, str]]:
    """The language, the code, and what is shown after it as its output, of every block on a page."""
    fence = rf"^```({'|'.join(languages)})\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?"
    return re.findall(fence, page.read_text(encoding="utf-8"), re.S | re.M)


def write_documents(folder: Path) -> None:
    """docs.jsonl, as the home page shows it."""
    ((_, documents, _),) = blocks(HOME, "json")
    (folder / "docs.jsonl").write_text(documents, encoding="utf-8")


def run(command: str, folder: Path) -> str:
    """What a command prints to stdout, in a shell that finds `exmlds`."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout


def alike(expected: str, shown: str) -> bool:
    """Whether they have the same words; numbers may differ by a tenth, percents by 15, seconds by any."""
    token = re.compile(r"(\d[\d,]*(?:\.\d+)?)( s\b|%)?|[^\s\d─]+")
    wanted, got = list(token.finditer(expected)), list(token.finditer(shown))
    if len(wanted) != len(got):
        return False
    for one, other in zip(wanted, got):
        if not (one[1] and other[1]):
            if one[0] != other[0]:
                return False
        elif one[2] != other[2]:
            return False
        elif one[2] != " s":
            first, second = (float(found[1].replace(",", "")) for found in (one, other))
            if abs(first - second) > (15 if one[2] else 0.1 + 0.1 * abs(first)):
                return False
    return True


def test_python_in_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_documents(tmp_path)
    shown = blocks(README, "python")
    assert shown
    names: dict[str, object] = {}
    for _, code, _ in shown:
        exec(compile(code, "README.md", "exec"), names)


def run_here(code: str, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """What `exmlds` commands print, run in this process, which is started once; None for other shell code."""
    lines = code.replace("\\\n", " ").splitlines()
    commands = [shlex.split(line, comments=True) for line in lines if line.strip()]
    if re.search(r"[|<>&;$]", code) or any(command[:1] != ["exmlds"] for command in commands):
        return None
    with redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")) as caught:
        for command in commands:
            monkeypatch.setattr(sys, "argv", command)
            try:
                cli.main()
            except SystemExit as stop:
                assert not stop.code, command
    caught.flush()
    return caught.buffer.getvalue().decode()  # type: ignore[attr-defined]


def test_commands_in_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every `exmlds` line runs, in one folder, in their order."""
    lines = [line for _, code, _ in blocks(README, "bash") for line in code.splitlines()]
    commands = [line for line in lines if line.startswith("exmlds ")]
    assert commands
    write_documents(tmp_path)
    monkeypatch.chdir(tmp_path)
    for command in commands:
        assert run_here(command, monkeypatch) is not None, command


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_in_the_docs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python and shell run, in one folder, in their order, and print what is shown."""
    monkeypatch.chdir(tmp_path)
    write_documents(tmp_path)
    names: dict[str, object] = {}
    for language, code, expected in blocks(page, "python", "bash"):
        if language == "bash":
            found = run_here(code, monkeypatch)
            shown = run(code, tmp_path) if found is None else found
        else:
            with redirect_stdout(io.StringIO()) as caught:
                exec(compile(code, page.name, "exec"), names)
            shown = caught.getvalue()
        assert not expected or alike(expected, shown), f"{code}\nprints\n{shown}"


def test_outputs_are_compared() -> None:
    assert alike("red 0.52, in 3.1 s", "red 0.55, in 9 s")
    assert not alike("red 0.52", "red 0.72")
    assert not alike("red 0.52", "blue 0.52")
    assert not alike("red", "red and blue")


def test_reference_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    assert importlib.import_module("generate").outdated() == [], "run: python docs/generate.py"


def test_docstrings_become_markdown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    made = importlib.import_module("generate").markdown(
        """One *sentence*.

        Parameters
        ----------
        a, b : of x_i;  c : `c_`
            and more

        Example
        -------
        >>> 1 < 2
        True
        """
    )
    assert made.split("\n\n") == [
        r"One \*sentence\*.",
        "**Parameters**",
        "- `a`, `b`: of x\\_i\n- `c`: `c_` and more",
        "**Example**",
        "```python\n>>> 1 < 2\nTrue\n```",
    ]


def test_changelog_names_the_version() -> None:
    assert f"## {exmlds.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_citation_names_the_version() -> None:
    assert f"version: {exmlds.__version__}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_tables_in_the_readme_and_docs_are_those_of_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    tables = importlib.import_module("tables")
    marked = set()
    for page in tables.PAGES:
        text = page.read_text(encoding="utf-8")
        assert tables.fill(text) == text, "run: python benchmarks/tables.py"
        emptied = re.sub(r"(<!-- table: \w+ -->\n).*?(<!-- end -->)", r"\1\2", text, flags=re.S)
        assert emptied != text
        assert tables.fill(emptied) == text
        marked |= set(re.findall(r"<!-- table: (\w+) -->", text))
    assert marked == set(tables.TABLES)


def test_figures_are_those_of_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    figures = importlib.import_module("figures")
    shown = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    for name, draw in figures.FIGURES.items():
        assert draw() == figures.path(name).read_text(encoding="utf-8"), "run: python benchmarks/figures.py"
        assert f"figures/{name}.svg" in shown
