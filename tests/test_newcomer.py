"""What somebody who has a file and no more needs: seven lines of Python, or two commands."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from exmlds import TextClassifier, load
from exmlds.data import Dataset

ROOT = Path(__file__).parent.parent
HOME = ROOT / "docs" / "index.md"
QUESTION = "How long must a dough rest?"
ANSWERS = {"baking", "cooking"}  # subjects of the library that have to do with dough


def shown(language: str, page: Path = HOME) -> str:
    """The first block of a language on a page."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.S | re.M)[0]


@pytest.fixture(scope="module")
def folder(library: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the user works, with a file of 400 texts."""
    folder = tmp_path_factory.mktemp("newcomer")
    words, names = library.feature_names or [], library.label_names or []
    with (folder / "docs.jsonl").open("w", encoding="utf-8") as file:
        for x, y in zip(library.X, library.Y):
            document = {
                "text": " ".join(words[j] for j in x.indices),
                "labels": [names[j] for j in y.indices],
            }
            file.write(json.dumps(document) + "\n")
    return folder


def run(command: list[str], folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONWARNINGS": "error"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_from_a_file_to_an_explained_prediction_in_python(folder: Path) -> None:
    snippet = shown("python")
    assert len(snippet.splitlines()) < 10
    assert QUESTION in snippet
    labels, explanation = run([sys.executable, "-c", snippet], folder).split("\n", 1)
    ((best, *others),) = ast.literal_eval(labels)
    assert best in ANSWERS
    assert len(others) == 2
    assert "dough" in explanation
    assert best in explanation
    model = load(folder / "model")
    assert isinstance(model, TextClassifier)
    assert model.predict_labels([QUESTION], k=1) == [[best]]


def test_from_a_file_to_an_explained_prediction_in_two_commands(folder: Path) -> None:
    train, explain = shown("bash").splitlines()
    assert train == "exmlds train docs.jsonl -o model"
    shutil.rmtree(folder / "model", ignore_errors=True)
    assert "400 texts" in run(["bash", "-c", train], folder)
    assert QUESTION in explain
    said = run(["bash", "-c", explain], folder)
    assert said.split(":")[0] in ANSWERS
    assert re.search(r"\bdough \+\d", said)


@pytest.mark.parametrize("language", ["python", "bash"])
def test_the_readme_begins_with_the_same(language: str) -> None:
    assert shown(language, ROOT / "README.md") == shown(language)
