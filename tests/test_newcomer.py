"""What somebody who has a file and no more needs: the first screen of README, on a file of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from exmlds import TextClassifier, load
from exmlds.data import Dataset

ROOT = Path(__file__).parent.parent
README, HOME = ROOT / "README.md", ROOT / "docs" / "index.md"
QUESTION = "How long must a dough rest?"
ANSWERS = {"baking", "cooking"}  # subjects of the library that have to do with dough


def shown(language: str, page: Path = README) -> str:
    """The first block of a language on a page."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.S | re.M)[0]


@pytest.fixture(scope="module")
def folder(library: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the user works, with a file of 400 texts and the model that the first command trains on it."""
    folder = tmp_path_factory.mktemp("newcomer")
    words, names = library.feature_names or [], library.label_names or []
    (folder / "examples").mkdir()
    with (folder / "examples" / "tickets.jsonl").open("w", encoding="utf-8") as file:
        for x, y in zip(library.X, library.Y):
            document = {
                "text": " ".join(words[j] for j in x.indices),
                "labels": [names[j] for j in y.indices],
            }
            file.write(json.dumps(document) + "\n")
    train, predict = shown("bash").splitlines()
    assert "400 texts" in run(["bash", "-c", train], folder)
    asked = re.sub(r'--text ".*?"', f'--text "{QUESTION}"', predict)
    best, probability, *others = run(["bash", "-c", asked], folder).split("\t")
    assert best in ANSWERS
    assert 0 < float(probability) <= 1
    assert len(others) == 4
    return folder


def run(command: list[str], folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONWARNINGS": "error"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_from_a_file_to_a_suggestion_and_its_explanation(folder: Path) -> None:
    snippet = shown("python")
    assert len(snippet.splitlines()) < 12
    asked = re.sub(r"^texts = \[.*?\]$", f"texts = [{QUESTION!r}] * 2", snippet, flags=re.S | re.M)
    suggested, _, explanation = run([sys.executable, "-c", asked], folder).split("\n", 2)
    best = load(folder / "model").predict_labels([QUESTION], k=1)[0][0]
    assert best in ANSWERS
    assert suggested.startswith(f"[('{best}', ")
    assert explanation.startswith(f"{best}: score")
    assert re.search(r"\bdough \+\d", explanation)


def test_the_model_of_the_command_line_is_one_of_python(folder: Path) -> None:
    assert isinstance(load(folder / "model"), TextClassifier)


@pytest.mark.parametrize("language", ["sh", "bash", "python", "text"])
def test_the_docs_begin_as_the_readme_does(language: str) -> None:
    assert shown(language, HOME) == shown(language)
