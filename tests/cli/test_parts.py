"""Training and predicting in parts, on the command line."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import exmlds
from exmlds.data import Dataset, make_library, write_xc


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    books = make_library(240, random_state=0)
    assert books.label_names is not None
    assert books.feature_names is not None
    folder = tmp_path_factory.mktemp("shards")
    (folder / "label_names.txt").write_text("\n".join(books.label_names) + "\n")
    for number in range(2):
        rows = books.rows(slice(number * 120, (number + 1) * 120))
        write_xc(folder / f"numbers-{number}.txt", Dataset(rows.X, rows.Y))
        with gzip.open(folder / f"texts-{number}.jsonl.gz", "wt") as file:
            for x, y in zip(rows.X, rows.Y):
                words = [books.feature_names[j] for j in x.indices]
                labels = [books.label_names[j] for j in y.indices]
                file.write(json.dumps({"text": " ".join(words), "labels": labels}) + "\n")
    return folder


Run = Callable[..., Any]
QUICK = ("--method", "feature-neighbors", "--seed", "0")


def test_a_pattern_of_texts_is_trained_on_and_predicted(run: Run, shards: Path, tmp_path: Path) -> None:
    told = run("train", str(shards / "texts-*.jsonl.gz"), "-o", str(tmp_path / "m"), "--parts", "2", *QUICK)
    assert "feature-neighbors in 2 parts on 240 rows" in told.out
    model: Any = exmlds.load(tmp_path / "m")
    assert len(model.model_.parts_) == 2
    run("predict", str(tmp_path / "m"), str(shards / "texts-*.jsonl.gz"), "-o", str(tmp_path / "p"), "--json")
    assert {path.name for path in (tmp_path / "p").iterdir()} == {"texts-0.jsonl", "texts-1.jsonl"}
    first = json.loads((tmp_path / "p" / "texts-1.jsonl").read_text().splitlines()[0])
    with gzip.open(shards / "texts-1.jsonl.gz", "rt") as file:
        text = json.loads(next(file))["text"]
    assert [first["labels"]] == model.predict_labels([text], k=5)


def test_a_file_of_numbers_is_trained_on_in_parts(run: Run, shards: Path, tmp_path: Path) -> None:
    path = str(tmp_path / "m")
    told = run("train", str(shards / "numbers-0.txt"), "-o", path, "--parts", "2", "--json", *QUICK)
    summary = json.loads(told.out)
    assert (summary["rows"], summary["parts"], summary["shards"]) == (120, 2, 1)
    model = exmlds.load(path)
    assert model.classes_.tolist() == (shards / "label_names.txt").read_text().split("\n")[:-1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("train", "none-*.txt", "-o", "m"), "none-*.txt: no file matches"),
        (("train", "numbers-*.txt", "-o", "m", "--keep-rows"), "--keep-rows is not for training in parts"),
        (("train", "numbers-*.txt", "-o", "m", "--analyzer", "words"), "--analyzer is for texts"),
        (("train", "numbers-*.txt", "-o", "m", "--id-column", "x"), "the options for texts do not apply"),
        (
            ("train", "numbers-0.txt", "-o", "m", "--workers", "1", "--cluster", "tcp://a:1"),
            "leave one of them out",
        ),
        (("predict", "m", "numbers-*.txt"), "are predicted into a folder: name one by --output"),
    ],
)
def test_wrong_use_is_named(
    run: Run, shards: Path, words: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shards)
    done = run(*words)
    assert done.code == 2
    assert said in done.err
    assert not (shards / "m").exists()
