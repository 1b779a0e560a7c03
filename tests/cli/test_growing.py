"""`exmlds update` and `exmlds remove`: a model folder that grows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import exmlds
from exmlds import FeatureNeighbors, TextClassifier
from exmlds.data import read_xc, write_xc

Run = Callable[..., Any]
TEXTS = ["goals and a red card", "bread with seeds", "the keeper held the ball", "flour, yeast, salt"] * 3


def write(path: Path, *rows: tuple[str, str, str]) -> Path:
    lines = [json.dumps({"id": id, "text": text, "labels": [label]}) for id, text, label in rows]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder of a text model that can grow."""
    labels = [["sport"], ["baking"]] * 6
    method = TextClassifier(FeatureNeighbors(), growable=True, analyzer="words")
    method.fit(TEXTS, labels, ids=[f"d{i}" for i in range(12)]).save(tmp_path / "model")
    return tmp_path / "model"


def test_train_update_remove(run: Run, tmp_path: Path) -> None:
    rows = [(f"d{i}", text, "sport" if i % 2 else "baking") for i, text in enumerate(TEXTS)]
    train = write(tmp_path / "train.jsonl", *rows)
    model = tmp_path / "model"
    options = ("--method", "feature-neighbors", "--growable", "--id-column", "id")
    assert run("train", train, "-o", model, *options).code == 0
    assert exmlds.load(model).row_ids_[0] == "d0"
    more = write(tmp_path / "more.jsonl", ("d1", "red seeds", "odd"), ("e1", "red seeds", "odd"))
    done = run("update", model, more, "--json")
    assert done.code == 0
    assert "Added 1 row, replaced 1; new labels: 1." in done.err
    summary = json.loads(done.out)
    assert {name: summary[name] for name in ("added", "replaced", "new_labels", "rows", "labels")} == {
        "added": 1,
        "replaced": 1,
        "new_labels": 1,
        "rows": 13,
        "labels": 3,
    }
    assert run("predict", model, "--text", "red seeds", "-k", "1").out.startswith("odd")
    (tmp_path / "ids.txt").write_text("e1\n\n d3 \n", encoding="utf-8")
    done = run("remove", model, "d1", "--file", tmp_path / "ids.txt", "--json")
    assert "Removed 3 rows." in done.err
    summary = json.loads(done.out)
    assert (summary["removed"], summary["rows"]) == (3, 10)
    assert (summary["added_since_fit"], summary["removed_since_fit"]) == (2, 4)
    shown = json.loads(run("inspect", model, "--json").out)
    assert (shown["rows added since the fit"], shown["rows removed since the fit"]) == (2, 4)
    assert shown["training rows"] == 10
    assert "train the model again" in done.err


def test_removed_texts_leave_the_folder(run: Run, model: Path, tmp_path: Path) -> None:
    run("update", model, write(tmp_path / "more.jsonl", ("e1", "the ball of Quillfeather", "sport")))
    assert run("compact", model).code == 0
    assert any(b"Quillfeather" in path.read_bytes() for path in model.iterdir())
    assert run("remove", model, "--file", "-", data=b"e1\n").code == 0
    assert run("compact", model, "--purge").code == 0
    assert not any(b"uillfeather" in path.read_bytes() for path in model.iterdir())


def test_models_of_numbers(run: Run, files: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    options = ("--method", "feature-neighbors", "--growable")
    assert run("train", files / "train.txt", "-o", model, *options).code == 0
    test = read_xc(files / "test.txt.gz")
    write_xc(tmp_path / "more.txt", test.rows(slice(0, 20)))
    assert "Added 20 rows, replaced 0" in run("update", model, tmp_path / "more.txt").err
    assert exmlds.load(model).row_ids_[-1] == "469"
    assert "Removed 1 row." in run("remove", model, "469").err
    assert exmlds.load(model).n_samples_fit_ == 469


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("remove", "MODEL"), "Pass the ids"),
        (("remove", "MODEL", "nope"), "no row with the id 'nope'"),
        (("remove", "MODEL", "d1", "d1"), "given twice"),
        (("remove", "MODEL", "--file", "nope"), "nope: cannot be read (No such file or directory)"),
        (("remove", "MODEL", "--file", "empty.txt"), "empty.txt holds no ids"),
        (("update", "MODEL", "nope.jsonl"), "no such file"),
        (("update", "MODEL", "numbers.txt"), "holds numbers"),
        (("update", "more.jsonl", "MODEL"), "swapped"),
        (("update", "MODEL", "more.jsonl", "--label-column", "nope"), "nope"),
        (("update", "plain", "more.jsonl"), "train it with --growable"),
        (("remove", "plain", "1"), "train it with --growable"),
        (("train", "more.jsonl", "-o", "new", "--growable", "--method", "most-frequent"), "no --growable"),
        (("train", "twice.jsonl", "-o", "new", "--growable"), "'e1' is given twice"),
    ],
)
def test_errors_are_one_line_and_the_model_stays(
    run: Run,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(model, "before")
    write(Path("more.jsonl"), ("e1", "red seeds", "odd"))
    write(Path("twice.jsonl"), ("e1", "red seeds", "odd"), ("e1", "a ball", "odd"))
    Path("empty.txt").write_text("\n")
    Path("numbers.txt").write_text("1 4 3\n0,2 1:0.5 3:2\n")
    TextClassifier(FeatureNeighbors(), analyzer="words").fit(TEXTS, ["sport", "baking"] * 6).save("plain")
    done = run(*("model" if word == "MODEL" else word for word in command))
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1
    for path in Path("before").iterdir():
        assert (model / path.name).read_bytes() == path.read_bytes()
