"""What the docs show runs."""

from __future__ import annotations

import doctest
import importlib
import io
import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

import exmlds
from exmlds import cli
from exmlds.data import DATASETS

ROOT = Path(__file__).parent.parent
README, HOME = ROOT / "README.md", ROOT / "docs" / "index.md"
HAND_WRITTEN = [page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "reference"]
GUIDES = [HOME, ROOT / "docs" / "tutorial.md", *sorted((ROOT / "docs" / "how-to").glob("*.md"))]
PAGES = [
    page
    for page in [README, *HAND_WRITTEN]
    if re.search(r"^```(python|bash)$", page.read_text(encoding="utf-8"), re.M)
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


class Block(NamedTuple):
    """Code on a page: its language, the file it belongs to, and what is shown after it as its output."""

    language: str
    file: str
    code: str
    output: str


def blocks(page: Path, *languages: str) -> list[Block]:
    fence = rf"^```({'|'.join(languages)})(?: title=\"(.+?)\")?\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?"
    return [Block(*found) for found in re.findall(fence, page.read_text(encoding="utf-8"), re.S | re.M)]


def copy_documents(folder: Path) -> None:
    """The files of texts that the pages use, where a checkout has them."""
    (folder / "examples").mkdir()
    for file in (ROOT / "examples").iterdir():
        if file.suffix in (".jsonl", ".txt"):
            shutil.copy(file, folder / "examples")


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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning:mlflow", "ignore::FutureWarning:mlflow")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_in_the_docs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python and shell run, in one folder, in their order, and print what is shown.

    Tables are those of a terminal of 80 columns. A block with a title is a file of that name.
    """
    for name, value in {"FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))  # as in a script or a notebook of that folder
    copy_documents(tmp_path)
    for package in re.findall(r"^import (mlflow|skops)", page.read_text(encoding="utf-8"), re.M):
        pytest.importorskip(package)
    names: dict[str, object] = {}
    for block in blocks(page, "python", "bash"):
        if block.file:
            Path(block.file).write_text(block.code, encoding="utf-8")
            continue
        if block.language == "bash":
            found = run_here(block.code, monkeypatch)
            shown = run(block.code, tmp_path) if found is None else found
        else:
            with redirect_stdout(io.StringIO()) as caught:
                exec(compile(block.code, page.name, "exec"), names)
            shown = caught.getvalue()
        assert not block.output or alike(block.output, shown), f"{block.code}\nprints\n{shown}"


def test_every_output_in_the_docs_is_compared() -> None:
    """A block of text follows the code that prints it."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        compared = sum(bool(block.output) for block in blocks(page, "python", "bash"))
        assert len(re.findall(r"^```text$", text, re.M)) == compared, page


def test_the_examples_are_those_of_the_tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks(ROOT / "docs" / "tutorial.md", "python")[0].code, "tutorial.md", "exec"), {})
    for name in ("tickets.jsonl", "later.jsonl", "topics-en.txt"):
        assert (tmp_path / name).read_bytes() == (ROOT / "examples" / name).read_bytes()


@pytest.mark.parametrize("page", [README, *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda page: page.stem)
def test_code_is_not_cut_at_1280_pixels(page: Path) -> None:
    for code in re.findall(r"^```.*?^```$|^    [^\n]*$", page.read_text(encoding="utf-8"), re.S | re.M):
        assert [line for line in code.splitlines() if len(line) > 88 + code.startswith(" ") * 4] == []


def figures_in_prose(text: str) -> list[str]:
    """Times, sizes, shares and scores that neither a table of results nor code on the page gives."""
    for generated in (r"<!-- table: .*?<!-- end -->", r"^```.*?^```$", r"`[^`]*`", r"\]\([^)]*\)"):
        text = re.sub(generated, "", text, flags=re.S | re.M)
    text = text.replace("95% interval", "").replace("95% confidence", "")
    units = r"%|percent|ms|s|seconds?|minutes?|hours?|[kMG]B|points?|times|×"
    return re.findall(
        rf"\d[\d.,/]*\s?(?:{units})(?!\w)|\b(?:P|R|nDCG|PSP|F1)@?\d? (?:of )?\d+(?:\.\d+)?", text
    )


@pytest.mark.parametrize("page", [README, *GUIDES], ids=lambda page: page.stem)
def test_no_figure_in_prose_can_become_stale(page: Path) -> None:
    assert figures_in_prose(page.read_text(encoding="utf-8")) == []


def test_figures_on_other_pages_are_said_to_be_a_record() -> None:
    """Those of the benchmarks come from the results, and those of the data sets from the registry."""
    others = (
        set(HAND_WRITTEN)
        - set(GUIDES)
        - {ROOT / "docs" / f"{n}.md" for n in ("benchmarks", "data-sets", "the-paper")}
    )
    for page in others:
        text = page.read_text(encoding="utf-8")
        assert not figures_in_prose(text) or "The figures on this page are a record" in text, page


def test_sizes_of_data_sets_are_those_of_the_registry() -> None:
    text = (ROOT / "docs" / "data-sets.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\w-]+)(?: \(.*?\))? " + r"\| ([\d,]+) " * 4, text, re.M)
    shown = {name: tuple(int(n.replace(",", "")) for n in sizes) for name, *sizes in rows}
    assert {name for name in shown if name in DATASETS} >= {"bibtex", "delicious", "eurlex-4k", "mediamill"}
    for name, sizes in shown.items():
        if name in DATASETS:
            assert sizes == DATASETS[name][:4], name


def test_figures_in_prose_are_found() -> None:
    assert figures_in_prose("It takes 3.5 s, 20% more than 400 MB/s and P@1 of 0.93.") == [
        "3.5 s",
        "20%",
        "400 MB",
        "P@1 of 0.93",
    ]
    assert figures_in_prose("Python 3.11 has 2 rows, `time_budget=60 s` and a 95% interval.") == []


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
    pages = ("benchmarks.md", "performance.md")
    shown = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in pages)
    for name, draw in figures.FIGURES.items():
        assert draw() == figures.path(name).read_text(encoding="utf-8"), "run: python benchmarks/figures.py"
        assert f"figures/{name}.svg" in shown
