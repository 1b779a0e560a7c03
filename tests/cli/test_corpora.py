"""Folders of documents with subjects on the command line: what is written, warned of and refused."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
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
    assert "Their ids: sea1.txt." in done.err


def test_mostly_unknown_labels_are_reported(files: Path, run: Run, tmp_path: Path) -> None:
    shutil.copytree(files / "new", tmp_path / "new")
    for path in (tmp_path / "new").glob("s*.tsv"):
        path.write_text("<urn:other>\tother\n")
    done = run("evaluate", files / "model", tmp_path / "new", "-k", "1")
    assert done.code == 0
    assert "67% of the label occurrences in new are unknown to the model, such as 'urn:other'" in done.err
    assert "Are these the labels of the same vocabulary?" in done.err


def test_advice_on_names_and_uris(files: Path, run: Run, tmp_path: Path) -> None:
    """It depends on what the folder has: URIs and names, or names alone."""
    with_keys = write_corpus(tmp_path / "keys", "once more")
    for path in with_keys.glob("*.tsv"):
        path.with_suffix(".key").write_text(path.read_text().partition("\t")[2])
        path.unlink()
    assert (
        run("train", files / "corpus", "-o", tmp_path / "names", *FAST, "--label-column", "label").code == 0
    )
    as_names = ("--label-column", "label")
    for arguments, advice in (
        (
            (files / "model", with_keys),
            "Its .key files hold names, not URIs: write the subjects to .tsv files",
        ),
        (
            (files / "model", files / "new", *as_names),
            "Leave out --label-column label, so that URIs are read.",
        ),
        ((tmp_path / "names", files / "new"), "Pass --label-column label, which reads names."),
    ):
        done = run("evaluate", *arguments)
        assert (done.code, done.err.count("none of the 3 labels")) == (2, 1)
        assert advice in done.err
    assert run("evaluate", tmp_path / "names", with_keys, "-k", "1").err == ""
    done = run("train", with_keys, "-o", tmp_path / "m", "--label-column", "uri")
    assert done.err.endswith("in .key files, which hold names and no URIs. Leave out --label-column.\n")
    table = tmp_path / "t.csv"
    table.write_text("text,topic,labels\na ship,urn:sea,other\n")
    done = run("evaluate", files / "model", table)
    assert "Labels are read from 'labels'; --label-column names another field or column." in done.err
    run("predict", files / "model", files / "new", "-o", tmp_path / "s.csv")
    done = run("evaluate", "--predictions", tmp_path / "s.csv", files / "new", *as_names, "-k", "1")
    assert "No label in new is ever predicted: it has labels such as 'baking', and 'urn:" in done.err


def test_texts_without_a_known_word_are_named_once(files: Path, run: Run, tmp_path: Path) -> None:
    shutil.copytree(files / "new", tmp_path / "new")
    for name in ("sea1.txt", "sport0.txt"):
        (tmp_path / "new" / name).write_text("xyzzy")
    warning = (
        "exmlds: warning: 2 of 9 texts hold no word that the model knows; no labels are predicted for them. "
        "Their ids: sea1.txt, sport0.txt.\n"
    )
    for command, *others in (("evaluate", "-k", "1"), ("predict",), ("report", "-o", tmp_path / "r.html")):
        assert run(command, files / "model", tmp_path / "new", *others).err == warning
    rivals = (files / "model", files / "model")
    assert run("compare", *rivals, tmp_path / "new", "-k", "1").err == warning
    one = "exmlds: warning: The text holds no word that the model knows; no labels are predicted for it.\n"
    assert run("predict", files / "model", "--text", "xyzzy").err == one


def test_training_data_of_texts_gives_propensities(files: Path, run: Run, tmp_path: Path) -> None:
    """By the names of the labels, in any format, as the counts of the model itself do."""
    corpus = shutil.copytree(files / "corpus", tmp_path / "corpus")
    for name in ("sea0", "sea1"):  # so that labels differ in their counts
        (corpus / f"{name}.txt").unlink()
        (corpus / f"{name}.tsv").unlink()
    run("train", corpus, "-o", tmp_path / "model", *FAST)
    predictions, table = tmp_path / "s.csv", tmp_path / "train.csv"
    run("predict", tmp_path / "model", files / "new", "-k", "2", "-o", predictions)
    rows = [(text, f"urn:{topic}") for topic, texts in TOPICS.items() for text in texts if "sea" not in topic]
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([("text", "labels"), ("a tale", "urn:book"), ("waves", "urn:sea"), *rows])

    def measured(*arguments: object) -> Any:
        return json.loads(run("evaluate", *arguments, "-k", "1", "2", "--json").out)

    by_model = measured(tmp_path / "model", files / "new")
    by_predictions = ("--predictions", predictions, files / "new")
    by_folder = measured(*by_predictions, "--train", corpus)
    assert by_folder.pop("propensities_from") == "the labels of corpus"
    tenths, expected = by_folder.pop("by_frequency"), by_model["by_frequency"]
    assert [row["most"] for row in tenths] == [row["most"] for row in expected] == [3, 3, 1]
    assert by_folder["PSP@1"] < by_folder["P@1"] < 1
    assert by_folder.pop("unseen") == by_model["unseen"]
    assert by_folder == pytest.approx({name: by_model[name] for name in by_folder})
    by_table = measured(*by_predictions, "--train", table)
    assert by_table["PSP@1"] == pytest.approx(by_model["PSP@1"], rel=0.05)
    assert by_table["labels"] == 4  # a label that occurs in training only counts too
    compared = run("compare", predictions, files / "model", files / "new", "--train", files / "corpus")
    assert "propensities of PSP from the labels of corpus" in compared.out
    numbers = tmp_path / "numbers.txt"
    numbers.write_text("1 2 2\n0 0:1 1:1\n")
    done = run("evaluate", *by_predictions, "--train", numbers)
    assert f"DATA holds texts, but --train {numbers} holds numbers." in done.err
    table.write_text("text,labels\na ship,sea\n")
    done = run("evaluate", *by_predictions, "--train", table)
    assert (done.code, f"--train {table} has none of the labels of DATA" in done.err) == (2, True)


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


@pytest.mark.parametrize("name", ["s.csv", "s.jsonl", "s.txt"])
def test_predictions_are_matched_by_id(files: Path, run: Run, tmp_path: Path, name: str) -> None:
    predictions = tmp_path / name
    run("predict", files / "model", files / "new", "-o", predictions)
    head, lines = [], predictions.read_text().splitlines(keepends=True)
    if name == "s.csv":
        head, lines = lines[:1], lines[1:]
    last = [line for line in lines if "sport2.txt" in line]
    arguments = ("evaluate", "--predictions", predictions, files / "new", "-k", "1", "2", "--json")
    before = run(*arguments).out
    for changed, message in (
        (sorted(lines, key=lambda line: line[::-1]), ""),
        (lines[: -len(last)], "has no row for 1 of the 9 documents: sport2.txt. Predict"),
        (lines + last, "has 2 rows with the id 'sport2.txt'; keep one of them."),
        (
            [line.replace("sport2", "other") for line in lines],
            "documents: sport2.txt; it has rows for 1 ids that no document has: other.txt.",
        ),
        ([*lines, last[0].replace("sport2", "more")], "has rows for 1 ids that no document has: more.txt."),
    ):
        predictions.write_text("".join([*head, *changed]))
        done = run(*arguments)
        assert (done.code, message in done.err) == (2 if message else 0, True)
        assert done.out == ("" if message else before)


def test_predictions_with_semicolons(files: Path, run: Run, tmp_path: Path) -> None:
    """Excel writes them in countries that have a decimal comma."""
    predictions = tmp_path / "s.csv"
    run("predict", files / "model", files / "new", "-o", predictions)
    arguments = ("evaluate", "--predictions", predictions, files / "new", "-k", "1", "--json")
    before = run(*arguments)
    predictions.write_text(predictions.read_text().replace(",", ";"))
    assert run(*arguments) == before
    assert before.code == 0


def test_damaged_predictions_are_refused(files: Path, run: Run, tmp_path: Path) -> None:
    predictions = tmp_path / "s"
    for damaged, line in (
        ("{", 1),
        ('{"labels": ["a"], "scores": []}', 1),
        ("id,rank,label,score\na,1,b,0.5\n\na,2", 4),
        ("id,rank,label,score\na,first,b,0.5", 2),
        ("id,rank,label,score\na,1,b,nan", 2),
        ("a\tb\t0.5\n\na\tb\n", 3),
    ):
        predictions.write_text(damaged)
        done = run("evaluate", "--predictions", predictions, files / "new")
        assert done.code == 2
        assert f"{predictions}:{line}: not a row of predictions (" in done.err
    predictions.write_text("id,rank,label,score\n")
    assert (
        "has no row for 9 of the 9 documents"
        in run("evaluate", "--predictions", predictions, files / "new").err
    )


def test_ids_of_a_column_and_repeated_ids(files: Path, run: Run, tmp_path: Path) -> None:
    data, predictions = tmp_path / "new.csv", tmp_path / "s.csv"
    rows = [
        (f"{topic}-{i}", text, f"urn:{topic}")
        for topic, texts in TOPICS.items()
        for i, text in enumerate(texts)
    ]

    def evaluated(*options: object) -> Any:
        return run("evaluate", "--predictions", predictions, data, "-k", "1", *options)

    with data.open("w", newline="") as file:
        csv.writer(file).writerows([("shelf mark", "text", "labels"), *rows])
    run("predict", files / "model", data, "--id-column", "shelf mark", "-k", "1", "-o", predictions)
    assert "The documents are numbered from 1; if they have ids, pass --id-column …." in evaluated().err
    assert evaluated("--id-column", "shelf mark").code == 0
    with data.open("w", newline="") as file:
        csv.writer(file).writerows([("id", "text", "labels"), *(("same", *row[1:]) for row in rows)])
    run("predict", files / "model", data, "-o", predictions)
    assert evaluated().code == 0  # the order tells
    predictions.write_text("id,rank,label,score\nsame,1,urn:sea,0.5\n")
    message = f"9 documents have the id 'same', so that the rows of {predictions} must be in the order of"
    assert message in evaluated().err


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
        (
            ("predict", "model", "new/sea0.txt", "b.txt"),
            "unexpected arguments: b.txt; DATA is one file, or a folder",
        ),
        (("inspect", "model", "new"), "Got unexpected arguments: new."),
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


def test_training_documents_are_named_by_their_files(files: Path, run: Run, tmp_path: Path) -> None:
    train = ("train", files / "corpus", "-o", tmp_path / "m", "--method", "exmlds1", "--seed", "0")
    assert run(*train, "--set", "n_components=3", "--keep-rows").code == 0
    done = run("explain", tmp_path / "m", files / "new", "--row", "sea0.txt")
    assert re.search(r"^sea0.txt: tides and the moon +\d", done.out, re.M)
    found = json.loads(run("explain", tmp_path / "m", "--text", "a ship", "--json").out)
    names = sorted(path.name for path in (files / "corpus").glob("*.txt"))
    assert [voter["id"] for voter in found["voters"]] == [names[voter["row"]] for voter in found["voters"]]
    typical = ("labels", tmp_path / "m", "--typical", "urn:sea", "-n", "1")
    assert re.search(r"^sea\d.txt: ", run(*typical).out, re.M)
    assert "Did you mean 'urn:sea'?" in run("labels", tmp_path / "m", "--typical", "urn:see").err
    (row,) = json.loads(run(*typical, "--json").out)
    assert row["id"] == names[row["row"]]


@pytest.mark.parametrize("column", ["subject", "Subject"])
def test_a_column_of_one_subject(run: Run, tmp_path: Path, column: str) -> None:
    rows = [(text, topic) for topic, texts in TOPICS.items() for text in texts]
    with (tmp_path / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", column), *rows])
    done = run("train", tmp_path / "t.csv", "-o", tmp_path / "m", *FAST)
    assert f"labels: {column}" in done.out
