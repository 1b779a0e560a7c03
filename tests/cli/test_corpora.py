"""Folders of documents with subjects on the command line: what is written, warned of and refused."""

from __future__ import annotations

import csv
import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exmlds import load

Run = Callable[..., Any]

TOPICS = {
    "baking": ("flour yeast and salt", "bread in the oven", "a dough of rye"),
    "sport": ("the keeper held the ball", "a goal and a red card", "the team won the match"),
    "sea": ("tides and the moon", "waves on the shore", "a ship in the harbour"),
}
FAST = ("--method", "feature-neighbors", "--seed", "0")


def write_corpus(folder: Path, words: str = "") -> Path:
    folder.mkdir(parents=True)
    for topic, texts in TOPICS.items():
        for number, text in enumerate(texts):
            (folder / f"{topic}{number}.txt").write_text(f"{text} {words}")
            (folder / f"{topic}{number}.tsv").write_text(f"<urn:{topic}>\t{topic}\n")
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus to train on, another one, and a model."""
    folder = tmp_path_factory.mktemp("corpora")
    write_corpus(folder / "corpus")
    write_corpus(folder / "new", "again")
    arguments = ["train", folder / "corpus", "-o", folder / "model", *FAST, "--keep-rows"]
    subprocess.run([sys.executable, "-m", "exmlds", *map(str, arguments)], check=True)
    return folder


@pytest.mark.parametrize("name", ["sea0.txt", "SEA9.TXT", "sea0.tsv", "sea0.key.gz"])
def test_an_output_among_the_documents_is_refused(files: Path, run: Run, name: str) -> None:
    before = {path.name: path.read_bytes() for path in (files / "new").iterdir()}
    for output in (files / "new" / name, files / "new" / ".." / "new" / name):
        done = run("predict", files / "model", files / "new", "-o", output, "--output-format", "text")
        assert done.code == 2
        assert f"{output} would be one of the documents of" in done.err
    outputs = ("-o", files / "r.html", "--label-table", files / "new" / name)
    assert "would be one of the documents of" in run("report", files / "model", files / "new", *outputs).err
    assert {path.name: path.read_bytes() for path in (files / "new").iterdir()} == before


def test_other_files_may_be_written_beside_the_documents(files: Path, run: Run, tmp_path: Path) -> None:
    shutil.copytree(files / "new", tmp_path / "new")
    for _ in range(2):
        assert run("predict", files / "model", tmp_path / "new", "-o", tmp_path / "new" / "s.csv").code == 0


def test_lists_of_labels_are_not_overwritten(files: Path, run: Run, tmp_path: Path) -> None:
    allowed = tmp_path / "allowed.txt"
    allowed.write_text("urn:sea\n")
    done = run("predict", files / "model", files / "new", "--allow", allowed, "-o", allowed)
    assert (done.code, allowed.read_text()) == (2, "urn:sea\n")
    assert "is being read" in done.err


@pytest.mark.parametrize(("name", "start"), [("s.CSV", "id,rank"), ("s.Jsonl.GZ", '{"id"'), ("s", "baking0")])
def test_the_ending_names_the_format_in_any_case(
    files: Path, run: Run, tmp_path: Path, name: str, start: str
) -> None:
    assert run("predict", files / "model", files / "new", "-o", tmp_path / name).code == 0
    raw = (tmp_path / name).read_bytes()
    text = gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw
    assert text.decode().startswith(start)


@pytest.mark.parametrize("name", ["s.json", "out.docx", "s.html.gz"])
def test_unknown_endings_are_refused(files: Path, run: Run, tmp_path: Path, name: str) -> None:
    done = run("predict", files / "model", files / "new", "-o", tmp_path / name)
    assert (done.code, list(tmp_path.iterdir())) == (2, [])
    assert "end the name in .csv, .tsv, .jsonl (JSON lines) or .txt, or pass --output-format" in done.err
    assert run("predict", files / "model", files / "new", "-o", tmp_path / name, "--json").code == 0


def test_a_report_is_html(files: Path, run: Run, tmp_path: Path) -> None:
    done = run("report", files / "model", files / "new", "-o", tmp_path / "r.pdf")
    assert (done.code, list(tmp_path.iterdir())) == (2, [])
    assert "r.pdf: a report is one HTML file; end the name in .html" in done.err


def test_a_path_given_as_a_text_is_reported(files: Path, run: Run) -> None:
    done = run("predict", files / "model", "--text", files / "new" / "sea0.txt")
    assert done.code == 0
    assert "sea0.txt is a file, but --text takes the words of a text; leave out --text" in done.err
    assert "is a file" not in run("predict", files / "model", "--text", "waves\0" + "and tides " * 1_000).err


def test_few_rows_are_not_calibrated(files: Path, run: Run, tmp_path: Path) -> None:
    done = run("train", files / "corpus", "-o", tmp_path / "m", "--seed", "0")
    assert "they are shares of votes, not probabilities" in done.out
    assert "Train on 50 labelled rows or more." in done.out
    done = run("train", files / "corpus", "-o", tmp_path / "m", *FAST, "--json")
    assert json.loads(done.out)["scores"] == load(tmp_path / "m")._score_meaning


def test_evaluation_on_training_data_is_reported(files: Path, run: Run, tmp_path: Path) -> None:
    for source in (files / "corpus", shutil.copytree(files / "corpus", tmp_path / "copy")):
        done = run("evaluate", files / "model", source, "-k", "1")
        assert f"{source.name} is the data that the model was trained on" in done.err
    assert run("evaluate", files / "model", files / "new", "-k", "1").err == ""
    (tmp_path / "copy" / "sea0.txt").write_text("another text")
    done = run("report", files / "model", tmp_path / "copy", "-k", "1", "-o", tmp_path / "r.html")
    assert "copy has 8 texts, of 9, that the model was trained on" in done.err


def test_training_on_an_empty_document_is_reported(files: Path, run: Run, tmp_path: Path) -> None:
    shutil.copytree(files / "corpus", tmp_path / "corpus")
    (tmp_path / "corpus" / "sea1.txt").write_text("")
    done = run("train", tmp_path / "corpus", "-o", tmp_path / "m", *FAST)
    assert done.code == 0
    assert "1 of 9 texts hold no word that the vectorizer takes" in done.err
    assert "counted from 0: sea1.txt." in done.err


def test_mostly_unknown_labels_are_reported(files: Path, run: Run, tmp_path: Path) -> None:
    shutil.copytree(files / "new", tmp_path / "new")
    for path in (tmp_path / "new").glob("s*.tsv"):
        path.write_text("<urn:other>\tother\n")
    done = run("evaluate", files / "model", tmp_path / "new", "-k", "1")
    assert done.code == 0
    assert "67% of the label occurrences in new are unknown to the model, such as 'urn:other'" in done.err
    assert "Are these names and URIs (--label-column label|uri)?" in done.err


def test_another_encoding(files: Path, run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "latin"
    folder.mkdir()
    (folder / "a.txt").write_bytes("a ship in the harbour of Malmö".encode("latin-1"))
    done = run("predict", files / "model", folder)
    assert done.code == 2
    assert "a.txt: not UTF-8" in done.err
    assert "name its encoding with --encoding latin-1, or pass --encoding-errors replace" in done.err
    assert run("predict", files / "model", folder, "--encoding", "latin-1", "-k", "1").out.startswith(
        "a.txt\t"
    )
    piped = run(
        "predict", files / "model", "-", "--encoding", "utf-16", data="ship\nbread\n".encode("utf-16")
    )
    assert [line.split("\t")[1] for line in piped.out.splitlines()] == ["urn:sea", "urn:baking"]
    done = run("predict", files / "model", folder, "--encoding-errors", "replace")
    assert "bytes that are not UTF-8 were read as �. Damaged (1): " in done.err
    assert (
        "--encoding must be an encoding that Python knows"
        in run("predict", files / "model", folder, "--encoding", "latin-11").err
    )


@pytest.mark.skipif(sys.platform != "linux", reason="needs file names that are any bytes")
@pytest.mark.parametrize("format", ["text", "csv", "jsonl"])
def test_names_that_are_not_utf8(files: Path, run: Run, tmp_path: Path, format: str) -> None:
    folder = tmp_path / "names"
    folder.mkdir()
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.txt")).write_text("tides")
    done = run("predict", files / "model", folder, "--output-format", format)
    assert done.code == 0
    assert r"caf\udce9.txt" in done.out


@pytest.mark.parametrize("name", ["s.csv", "s.tsv", "s.jsonl", "s.txt.gz"])
@pytest.mark.parametrize("is_folder", [True, False])
def test_predictions_for_texts_are_evaluated(
    files: Path, run: Run, tmp_path: Path, name: str, is_folder: bool
) -> None:
    data, predictions = files / "new", tmp_path / name
    if not is_folder:
        data = tmp_path / "new.csv"
        rows = [(text, f"urn:{topic}") for topic, texts in TOPICS.items() for text in (*texts, "nothing")]
        with data.open("w", newline="") as file:
            csv.writer(file).writerows([("text", "labels"), *rows])
    assert run("predict", files / "model", data, "-k", "2", "-o", predictions).code == 0
    evaluated = run("evaluate", "--predictions", predictions, data, "-k", "1", "2", "--json")
    found = json.loads(evaluated.out)
    expected = json.loads(run("evaluate", files / "model", data, "-k", "1", "2", "--json").out)
    for metric in ("P@1", "R@2", "nDCG@2"):
        assert found[metric] == pytest.approx(expected[metric])
    compared = run("compare", files / "model", predictions, data, "-k", "1", "--json")
    assert json.loads(compared.out)[0]["difference"] == 0


def test_predictions_are_matched_by_id(files: Path, run: Run, tmp_path: Path) -> None:
    predictions = tmp_path / "s.jsonl"
    run("predict", files / "model", files / "new", "-o", predictions)
    lines = predictions.read_text().splitlines(keepends=True)
    arguments = ("evaluate", "--predictions", predictions, files / "new", "-k", "1", "--json")
    before = run(*arguments).out
    predictions.write_text("".join(reversed(lines)))
    assert run(*arguments).out == before
    predictions.write_text("".join(lines[1:]))
    done = run(*arguments)
    assert done.code == 2
    assert (
        "no predictions for 1 of the 9 documents, such as 'baking0.txt'; its first id is 'baking1.txt'"
        in done.err
    )
    for damaged in (
        "{",
        '{"labels": ["a"], "scores": []}',
        "id,rank,label,score\na,2",
        "a\tb\n",
        "id,rank,label,score\n",
    ):
        predictions.write_text(damaged)
        done = run(*arguments)
        assert (done.code, "not a row of predictions" in done.err or "it has no rows" in done.err) == (
            2,
            True,
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("suggest", "model", "new"), "Annif's suggest is `exmlds predict`"),
        (("index", "model", "new"), "Annif's index is `exmlds predict`"),
        (("eval", "model", "new"), "Annif's eval is `exmlds evaluate`"),
        (("predict", "model", "new", "--limit", "3"), "Annif's --limit is -k here"),
        (("explain", "model", "new", "--row", "sea00.txt"), "Did you mean 'sea0.txt'?"),
        (("explain", "model", "new", "--label", "urn:see"), "Did you mean 'urn:sea'?"),
        (("predict", "model"), "`… | exmlds predict MODEL -`"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_hints(
    files: Path, run: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(files)
    done = run(*arguments)
    assert done.code == 2
    assert message in done.err


@pytest.mark.parametrize("column", ["subject", "Subject"])
def test_a_column_of_one_subject(run: Run, tmp_path: Path, column: str) -> None:
    rows = [(text, topic) for topic, texts in TOPICS.items() for text in texts]
    with (tmp_path / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", column), *rows])
    done = run("train", tmp_path / "t.csv", "-o", tmp_path / "m", *FAST)
    assert f"labels: {column}" in done.out
