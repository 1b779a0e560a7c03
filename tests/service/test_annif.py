"""Annif itself uses a served model, by its backend `http`, from an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Library, Running

PROJECTS = """\
[served]
name=A served model
language=en
backend=http
endpoint={address}v1/projects/library/suggest
vocab=library
limit=5
"""


@pytest.fixture
def annif(request: pytest.FixtureRequest) -> Path:
    """The program `annif`: the one that EXMLDS_ANNIF names, or one that pytest's cache keeps between runs."""
    if given := os.environ.get("EXMLDS_ANNIF"):
        return Path(given)
    folder = request.config.cache.mkdir("annif")
    program = folder / "bin" / "annif"  # pip writes it last, after all that it needs
    install = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-compile", "annif>=1,<2"]
    for command in () if program.exists() else ([sys.executable, "-m", "venv", folder], install):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip("Annif cannot be installed here")
    return program


@pytest.mark.slow
def test_annif_suggests_by_a_served_model(
    annif: Path, service: Running, books: Library, tmp_path: Path
) -> None:
    (tmp_path / "projects.cfg").write_text(PROJECTS.format(address=service.address))
    lines = [f"<{id}>\t{books.vocabulary.name(id)}\n" for id in books.vocabulary]
    (tmp_path / "subjects.tsv").write_text("".join(lines))

    def run(*arguments: str, text: str = "") -> list[str]:
        done = subprocess.run(
            [annif, *arguments], input=text, capture_output=True, text=True, cwd=tmp_path, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout.splitlines()

    run("load-vocab", "--language", "en", "library", "subjects.tsv")
    assert any(line.split() == ["Trained:", "True"] for line in run("show-project", "served"))
    text = "bread and flour in the oven"
    found = [line.split("\t") for line in run("suggest", "--limit", "3", "served", text=text)]
    wanted = service.post("/v1/suggest", {"text": text, "limit": 3})["results"][0]["suggestions"]
    assert [(cells[0], cells[1]) for cells in found] == [(f"<{one['id']}>", one["label"]) for one in wanted]
    assert [float(cells[-1]) for cells in found] == pytest.approx([one["score"] for one in wanted], abs=1e-3)
