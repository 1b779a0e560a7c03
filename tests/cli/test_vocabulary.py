"""Names of labels on the command line."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

TEXTS = ["goals and a red card", "bread with seeds", "the keeper held the ball", "flour, yeast, salt"] * 3
ENGLISH = "<http://a.org/1>\tsport\n<http://a.org/2>\tbaking\n<http://a.org/3>\tfish\n"
GERMAN = "<http://a.org/1>\tSport\n<http://a.org/2>\tBacken\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts whose labels are URIs, and their names."""
    folder = tmp_path_factory.mktemp("vocabulary")
    rows = [
        {"text": text, "labels": [f"http://a.org/{1 + position % 2}"]} for position, text in enumerate(TEXTS)
    ]
    (folder / "train.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (folder / "words-en.tsv").write_text(ENGLISH, encoding="utf-8")
    (folder / "words-de.tsv").write_text(GERMAN, encoding="utf-8")
    return folder


@pytest.fixture
def model(folder: Path, run: Run) -> Path:
    path = folder / "model"
    if not path.exists():
        names = "--vocabulary", folder / "words-en.tsv", "--vocabulary", folder / "words-de.tsv"
        done = run("train", folder / "train.jsonl", "-o", path, *names, "--seed", 0)
        assert done.code == 0, done.err
    return path


def test_predictions_have_names_and_ids(model: Path, run: Run) -> None:
    done = run("predict", model, "--text", "salt in the bread", "-k", 1)
    assert done.out.startswith("baking <http://a.org/2>\t")
    done = run("predict", model, "--text", "salt in the bread", "-k", 1, "--language", "de", "--json")
    row = json.loads(done.out)
    assert (row["labels"], row["names"]) == (["http://a.org/2"], ["Backen"])


@pytest.mark.parametrize("ending", ["txt", "csv", "tsv", "jsonl"])
def test_predictions_with_names_are_read_back(
    model: Path, folder: Path, run: Run, tmp_path: Path, ending: str
) -> None:
    output = tmp_path / f"found.{ending}"
    assert run("predict", model, folder / "train.jsonl", "-k", 1, "-o", output).code == 0
    if ending == "csv":
        first = list(csv.DictReader(output.read_text(encoding="utf-8").splitlines()))[1]
        assert (first["label"], first["name"]) == ("http://a.org/2", "baking")
    done = run("evaluate", "--predictions", output, folder / "train.jsonl", "-k", 1, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["P@1"] > 0.9


def test_labels_are_found_by_any_name(model: Path, run: Run) -> None:
    done = run("labels", model, "--search", "backen", "--json")
    assert json.loads(done.out) == [{"label": "http://a.org/2", "rows": 6, "name": "baking"}]
    assert "Sport" in run("labels", model, "--language", "de").out


def test_explanations_name_the_label(model: Path, run: Run) -> None:
    assert "baking (http://a.org/2): score" in run("explain", model, "--text", "salt in the bread").out
    done = run("explain", model, "--text", "salt in the bread", "--language", "de", "--json")
    assert json.loads(done.out)["name"] == "Backen"


def test_labels_are_given_by_their_names_too(model: Path, run: Run) -> None:
    done = run("explain", model, "--text", "salt in the bread", "--label", "Sport", "--json")
    assert json.loads(done.out)["label"] == "http://a.org/1"
    assert run("labels", model, "--similar", "sport").code == 0
    done = run("explain", model, "--text", "salt", "--label", "sports")
    assert (done.code, "has no label 'sports'; find labels with" in done.err) == (2, True)


def test_errors(model: Path, folder: Path, run: Run, tmp_path: Path) -> None:
    done = run("predict", model, "--text", "salt", "--language", "fr")
    assert done.code == 2
    assert "no names in language 'fr'. It has: de, en." in done.err
    (tmp_path / "twice.tsv").write_text("<u:1>\ta\n<u:1>\tb\n", encoding="utf-8")
    given = "train", folder / "train.jsonl", "-o", tmp_path / "model"
    done = run(*given, "--vocabulary", tmp_path / "twice.tsv")
    assert done.code == 2
    assert "twice.tsv:2: the concept u:1 is here again" in done.err
    done = run(*given, "--language", "en")
    assert done.code == 2
    assert "--vocabulary" in done.err
    assert not (tmp_path / "model").exists()


def test_a_model_without_a_vocabulary_takes_no_language(folder: Path, run: Run, tmp_path: Path) -> None:
    run("train", folder / "train.jsonl", "-o", tmp_path / "model", "--seed", 0)
    done = run("predict", tmp_path / "model", "--text", "salt", "--language", "de")
    assert done.code == 2
    assert "has no vocabulary that --language could use; train it with --vocabulary" in done.err


def test_numbers_take_no_vocabulary(folder: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_text("2 3 2\n0 0:1\n1 1:1\n", encoding="utf-8")
    given = "--vocabulary", folder / "words-en.tsv"
    done = run("train", tmp_path / "rows.txt", "-o", tmp_path / "model", *given)
    assert done.code == 2
    assert "holds numbers; --vocabulary is for texts" in done.err


def test_a_label_that_no_text_has_is_explained_by_its_name(folder: Path, run: Run, tmp_path: Path) -> None:
    rows = [
        {"text": f"{'goal' if n % 2 else 'salt'} {n % 7}", "labels": [f"http://a.org/{1 + n % 2}"]}
        for n in range(80)
    ]
    data, path = tmp_path / "many.jsonl", tmp_path / "model"
    data.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    names = "--vocabulary", folder / "words-en.tsv"
    assert run("train", data, "-o", path, *names, "--seed", 0).code == 0
    text = "--text", "a fish at the goal"
    assert "http://a.org/3" in json.loads(run("predict", path, *text, "-k", 3, "--json").out)["labels"]
    done = run("explain", path, *text, "--label", "http://a.org/3")
    assert "fish (http://a.org/3): score" in done.out
    assert "Its name stands in the text: fish" in done.out
    assert json.loads(run("explain", path, *text, "--label", "http://a.org/3", "--json").out)["matched"] == [
        "fish"
    ]
    assert run("report", path, data, "-o", tmp_path / "report.html").code == 0
    assert run("train", data, "-o", path, *names, "--seed", 0, "--trained-only").code == 0
    assert "http://a.org/3" not in run("predict", path, *text, "-k", 3).out
    done = run("train", data, "-o", path, "--trained-only")
    assert done.code != 0
    assert "pass --vocabulary" in done.err
