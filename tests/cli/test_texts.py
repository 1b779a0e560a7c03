"""Texts on the command line: from a file to named, explained predictions."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exmlds import load
from exmlds.data import make_library

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train.jsonl, test.csv and models."""
    folder = tmp_path_factory.mktemp("texts")
    books = make_library(400, random_state=0)
    words, names = books.feature_names or [], books.label_names or []
    texts = [" ".join(words[f] for f in books.X[i].indices) for i in range(400)]
    labels = [[names[j] for j in books.Y[i].indices] for i in range(400)]
    rows = [json.dumps({"text": t, "labels": y}) for t, y in zip(texts, labels)]
    (folder / "train.jsonl").write_text("\n".join(rows[:300]), encoding="utf-8")
    with gzip.open(folder / "test.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(rows[300:]))
    cells = [f'"{t}","{"|".join(y)}"' for t, y in zip(texts[300:], labels[300:])]
    (folder / "test.csv").write_text("\n".join(["body,subjects", *cells]), encoding="utf-8")
    arguments = [
        "train",
        folder / "train.jsonl",
        "-o",
        folder / "model",
        "--method",
        "exmlds1",
        "--seed",
        "0",
    ]
    subprocess.run([sys.executable, "-m", "exmlds", *map(str, arguments), "--keep-rows"], check=True)
    (folder / "one.txt").write_text(texts[300], encoding="utf-8")
    return folder


def test_train_needs_no_option(files: Path, run: Run, tmp_path: Path) -> None:
    done = run("train", files / "train.jsonl", "-o", tmp_path / "model")
    assert done.code == 0
    assert "exmlds on 300 texts" in done.out
    assert load(tmp_path / "model").classes_.tolist() == load(files / "model").classes_.tolist()


@pytest.mark.parametrize("name", ["test.jsonl.gz", "test.csv"])
def test_evaluate_shows_metrics_and_the_tail(files: Path, run: Run, name: str) -> None:
    shown = run("evaluate", files / "model", files / name)
    assert "micro-F1" in shown.out
    assert "Head to tail" in shown.out
    found = json.loads(run("evaluate", files / "model", files / name, "--json").out)
    assert found["rows"] == 100
    assert found["P@1"] > 0.5
    assert 0 < found["at_threshold"]["F1"] <= 1


def test_predict_a_text_names_its_labels(files: Path, run: Run) -> None:
    text = (files / "one.txt").read_text(encoding="utf-8")
    line = run("predict", files / "model", "--text", text, "-k", "2").out.rstrip("\n").split("\t")
    ids, scores = load(files / "model").predict_topk([text], 2)
    names = load(files / "model").classes_[ids[0]].tolist()
    assert line[::2] == names
    assert [float(score) for score in line[1::2]] == pytest.approx(scores[0], rel=1e-3)
    found = json.loads(run("predict", files / "model", "--text", text, "-k", "2", "--json").out)
    assert found["labels"] == names


def test_predict_a_file(files: Path, run: Run, tmp_path: Path) -> None:
    done = run("predict", files / "model", files / "test.csv", "-k", "1", "-o", tmp_path / "said.tsv")
    assert done.code == 0
    assert len((tmp_path / "said.tsv").read_text(encoding="utf-8").splitlines()) == 100


def test_a_pipe_is_answered_line_by_line(files: Path) -> None:
    """The second line is sent only after the first was answered."""
    command = [sys.executable, "-m", "exmlds", "predict", str(files / "model"), "-", "-k", "1"]
    text = (files / "one.txt").read_text(encoding="utf-8")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        stopper = threading.Timer(60, process.kill)  # should it not answer
        stopper.start()
        answers = []
        for line in (text, json.dumps({"text": text})):
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            answers.append(process.stdout.readline())
        process.stdin.close()
        assert process.wait() == 0
        stopper.cancel()
    assert answers[0] == answers[1]
    assert answers[0].split("\t")[0] in load(files / "model").classes_


def test_explain_in_words_and_as_data(files: Path, run: Run) -> None:
    text = (files / "one.txt").read_text(encoding="utf-8")
    shown = run("explain", files / "model", "--text", text, "-n", "3").out
    best = load(files / "model").predict_labels([text], k=1)[0][0]
    assert shown.startswith(f"{best}: score")
    assert "share of the vote" in shown
    why = json.loads(run("explain", files / "model", "--text", text, "--json").out)
    assert why["label"] == best
    total = sum(v["share"] for v in why["voters"]) + why["other_voters"] + why["beside"]
    assert total == pytest.approx(why["score"], abs=1e-5)
    assert all(voter["text"] for voter in why["voters"])  # they were kept
    of_file = json.loads(run("explain", files / "model", files / "test.csv", "--json").out)
    assert of_file == why
    other = json.loads(run("explain", files / "model", "--text", text, "--label", "baking", "--json").out)
    assert other["label"] == "baking"


def test_labels_by_name_by_nearness_and_with_their_rows(files: Path, run: Run) -> None:
    assert "baking" in run("labels", files / "model", "--search", "BAK").out
    similar = json.loads(run("labels", files / "model", "--similar", "baking", "-n", "3", "--json").out)
    assert len(similar) == 3
    assert similar[0]["cosine"] >= similar[1]["cosine"]
    typical = json.loads(run("labels", files / "model", "--typical", "baking", "-n", "2", "--json").out)
    documents = [
        json.loads(line) for line in (files / "train.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    for row in typical:
        assert "baking" in documents[row["row"]]["labels"]
        assert row["text"] == documents[row["row"]]["text"]


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from exmlds import ExMLDS1
    from exmlds.data import write_xc

    folder = tmp_path_factory.mktemp("numbers")
    books = make_library(100, random_state=0)
    write_xc(folder / "train.txt", books)
    ExMLDS1(n_components=10).fit(books.X, books.Y).save(folder / "model")
    return folder


def test_what_does_not_go_together(files: Path, numbers: Path, run: Run) -> None:
    for arguments, said in [
        (("evaluate", files / "model", numbers / "train.txt"), "was trained on texts, but"),
        (("evaluate", numbers / "model", files / "test.csv"), "was trained on features, but"),
        (("predict", numbers / "model", "--text", "a"), "was trained on features, not on texts"),
        (("predict", files / "model"), "Name a file, - for a pipe, or give a --text"),
        (("predict", files / "model", files / "test.csv", "--text", "a"), "one of them"),
        (("predict", files / "model", files / "no.csv"), "there is no such file"),
        (("explain", files / "model"), "Name a file or give a --text"),
        (("explain", numbers / "model", "--text", "a"), "not on texts"),
        (("explain", files / "model", "--text", "a", "--label", "bakin"), "has no label 'bakin'"),
        (("explain", files / "model", files / "test.csv", "--row", "100"), "has no row 100"),
        (("labels", files / "model", "--similar", "bakin"), "has no label 'bakin'; --search"),
        (("tune", files / "train.jsonl", "-o", files / "m"), "holds texts, which this command does not take"),
        (("labels", files / "model", "--search", "zzz"), "no label with 'zzz'"),
        (("labels", files / "model", "--search", "a", "--similar", "b"), "Give one of"),
        (("train", numbers / "train.txt", "-o", numbers / "m", "--vectorizer", "tfidf"), "holds numbers"),
        (
            ("train", files / "train.jsonl", "-o", files / "m", "--vectorizer", "bert"),
            "'vectorizer' parameter",
        ),
        (("train", files / "train.jsonl", "-o", files / "m", "--text-column", "words"), "words"),
    ]:
        done = run(*arguments)
        assert (done.code, done.out) == (2, ""), arguments
        assert said in done.err, arguments
        assert done.err.count("\n") == 1
    assert not (files / "m").exists()
    assert not (numbers / "m").exists()


def test_explain_a_row_of_numbers(numbers: Path, run: Run) -> None:
    done = run("explain", numbers / "model", numbers / "train.txt", "--row", "3", "--json")
    assert json.loads(done.out)["voters"]


@pytest.mark.data
@pytest.mark.slow
def test_reuters_from_its_texts(real_data: Path, run: Run, tmp_path: Path) -> None:
    """Two commands; ahead of tf-idf with a linear support vector machine a label, 0.865 and 94.60."""
    folder = real_data / "reuters21578-90"
    assert run("train", folder / "train.jsonl.gz", "-o", tmp_path / "model", "--seed", 0).code == 0
    found = json.loads(run("evaluate", tmp_path / "model", folder / "test.jsonl.gz", "--json").out)
    assert found["at_threshold"]["F1"] >= 0.87
    assert found["P@1"] >= 0.946
