"""Texts on the command line: from a file to named, explained predictions."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import subprocess
import sys
import threading
from codecs import BOM_UTF8
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from exmlds import ExMLDS1, TextClassifier, load
from exmlds.cli.output import short
from exmlds.data import make_library, read_texts

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
    assert "exmlds on 300 texts (jsonl, text: text, labels: labels) × " in done.out
    assert "INFO read" in run("--log-level", "info", "predict", files / "model", files / "test.csv").err
    assert load(tmp_path / "model").classes_.tolist() == load(files / "model").classes_.tolist()


@pytest.mark.parametrize("option", [("--keep-rows",), ("--set", "keep_rows=true")], ids=" ".join)
def test_kept_rows_are_texts(option: tuple[str, ...], files: Path, run: Run, tmp_path: Path) -> None:
    settings = ("--method", "exmlds1", "--set", "temperature=0.05", "--set", "l2=1", "--set", "features=l2")
    assert run("train", files / "train.jsonl", "-o", tmp_path / "model", *settings, *option).code == 0
    model = load(tmp_path / "model")
    first = json.loads((files / "train.jsonl").read_text().splitlines()[0])["text"]
    assert (model.texts_[0], model.model_.kept_rows_) == (first, None)


@pytest.mark.parametrize("vectorizer", ["tfidf", "hashing"])
def test_tune_on_texts_writes_a_config_for_train(
    vectorizer: str, files: Path, run: Run, tmp_path: Path
) -> None:
    """The columns of test.csv are not detected by name, so that the options count."""
    config = tmp_path / "tuned.toml"
    columns = ("--text-column", "body", "--label-column", "subjects", "--label-separator", "|")
    texts = (files / "test.csv", *columns, "--format", "csv", "--encoding-errors", "replace")
    texts += ("--vectorizer", vectorizer)
    search = ("--method", "feature-neighbors", "--set", "metric=cosine", "--time-budget", "60")
    done = run("tune", *texts, "-o", config, *search, "--json")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert len(found["trials"]) > 3
    assert found["best"]["value"] > 0.2
    assert run("train", *texts, "-o", tmp_path / "model", "--config", config).code == 0
    model = load(tmp_path / "model")
    kept = model.model_.get_params()
    assert (type(model.model_).__name__, model.vectorizer) == ("FeatureNeighbors", vectorizer)
    assert kept["metric"] == "cosine"
    assert {name: kept[name] for name in found["best"]["parameters"]} == found["best"]["parameters"]


def test_the_analyzer_is_chosen_shown_and_settable(files: Path, run: Run, tmp_path: Path) -> None:
    train = ("train", files / "train.jsonl", "-o", tmp_path / "model", "--method", "feature-neighbors")
    chosen = json.loads(run(*train, "--json").out)["analyzer"]
    assert load(tmp_path / "model").analyzer_ == chosen
    shown = json.loads(run("inspect", tmp_path / "model", "--json").out)
    assert (shown["chosen analyzer"], shown["parameters"]["analyzer"]) == (chosen, "auto")
    said = run(*train, "--analyzer", "words+pairs", "--max-words", "7").out
    assert " terms (words+pairs) × " in said
    model = load(tmp_path / "model")
    assert (model.analyzer, model.max_words) == ("words+pairs", 7)
    assert max(len(row.indices) for row in model.vectorizer_.transform(model.feature_names_[:3])) <= 7
    wrong = run(*train, "--analyzer", "bert")
    assert wrong.code == 2
    assert "'words', 'words+ngrams'" in wrong.err
    hashed = run(*train, "--vectorizer", "hashing", "--max-words", "7")
    assert (hashed.code, "--max-words is for the vectorizer 'tfidf'" in hashed.err) == (2, True)


def test_options_for_terms_need_texts(files: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "numbers.txt").write_text("2 2 2\n0 0:1\n1 1:1\n")
    for option in (("--analyzer", "stems"), ("--max-words", "9"), ("--field-weight", "2")):
        for command in ("train", "tune"):
            done = run(command, tmp_path / "numbers.txt", "-o", tmp_path / "out", *option)
            assert (done.code, f"holds numbers; {option[0]} is for texts" in done.err) == (2, True)


def test_fields_are_weighted(files: Path, run: Run, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (files / "train.jsonl").read_text().splitlines()]
    path = tmp_path / "fields.jsonl"
    path.write_text("\n".join(json.dumps({**row, "title": row["labels"][0]}) for row in rows))
    columns = ("--text-column", "title", "--text-column", "text")
    train = ("train", path, "-o", tmp_path / "model", "--method", "feature-neighbors", *columns)
    assert run(*train).code == 0
    model = load(tmp_path / "model")
    assert len(model.field_weights_) == 2
    assert model.analyzer_results_["field_weights"][-1] != [1.0, 1.0]
    assert run(*train, "--field-weight", "3", "--field-weight", "1").code == 0
    assert load(tmp_path / "model").field_weights_ == [3.0, 1.0]
    done = run("predict", tmp_path / "model", path, *columns, "-k", "1")
    assert (done.code, len(done.out.splitlines())) == (0, len(rows))


def test_tune_detects_texts(files: Path, run: Run, tmp_path: Path) -> None:
    config = tmp_path / "tuned.toml"
    options = ("--method", "feature-neighbors", "--time-budget", "1")
    plain = run("tune", files / "train.jsonl", "-o", config, *options)
    assert (plain.code, config.exists()) == (0, True)
    assert plain.out.endswith(f"--config {config} --analyzer stems-stops\n")
    options = (*options, "--text-column", "text", "--analyzer", "words")
    named = run("tune", files / "train.jsonl", "-o", config, *options)
    assert named.out.endswith(f"--config {config} --analyzer words and the options for texts\n")


@pytest.mark.parametrize("name", ["test.jsonl.gz", "test.csv"])
def test_evaluate_shows_metrics_and_the_tail(files: Path, run: Run, name: str) -> None:
    shown = run("evaluate", files / "model", files / name)
    assert "micro-F1" in shown.out
    assert "Head to tail" in shown.out
    found = json.loads(run("evaluate", files / "model", files / name, "--json").out)
    assert found["rows"] == 100
    assert found["P@1"] > 0.5
    assert 0 < found["at_threshold"]["F1"] <= 1


def test_compare_models_of_texts_with_options(files: Path, run: Run, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text((files / "test.csv").read_text(encoding="utf-8").replace("body", "inhalt", 1), "utf-8")
    options = ("--text-column", "inhalt", "--label-column", "subjects", "--format", "csv")
    done = run("compare", files / "model", files / "model", other, *options, "--json")
    rows = {row["name"]: row for row in json.loads(done.out)}
    assert rows["P@1"]["first"] == rows["P@1"]["second"] > 0.5
    assert "Pass --text-column" in run("compare", files / "model", files / "model", other).err


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
    done = run("predict", files / "model", files / "test.csv", "-k", "1", "-o", tmp_path / "predicted.txt")
    assert done == (0, "", "")  # quiet where there is no terminal
    lines = (tmp_path / "predicted.txt").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[0] for line in lines] == [str(number) for number in range(1, 101)]


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_predict_says_what_it_wrote_on_a_terminal(files: Path, tmp_path: Path) -> None:
    import pty

    controller, terminal = pty.openpty()
    command = ["predict", files / "model", files / "test.csv", "-o", tmp_path / "p.csv"]
    with subprocess.Popen(
        [sys.executable, "-m", "exmlds", *map(str, command)],
        stderr=terminal,
        env={**os.environ, "TERM": "dumb", "COLUMNS": "300"},
    ) as process:
        assert process.wait() == 0
    os.close(terminal)
    shown = os.read(controller, 65536).decode()
    os.close(controller)
    assert re.search(r"Predicted 100 texts in \d+\.\d s; .*p\.csv, csv, row numbers as ids", shown)


NAMED = {  # two texts with ids in every format that has them
    "docs.csv": 'id,text\n"a,1","the moon and the stars"\nb 2,baking bread\n',
    "docs.jsonl": '{"id": "a,1", "text": "the moon and the stars"}\n{"id": "b 2", "text": "baking bread"}\n',
    "docs.tsv": "document_id\ttext\na,1\tthe moon and the stars\nb 2\tbaking bread\n",
}


@pytest.mark.parametrize("name", NAMED)
def test_predictions_have_the_ids_of_the_data(files: Path, run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(NAMED[name], encoding="utf-8")
    arguments = ("predict", files / "model", tmp_path / name, "-k", "2")
    lines = [line.split("\t") for line in run(*arguments).out.splitlines()]
    assert [line[0] for line in lines] == ["a,1", "b 2"]
    objects = [json.loads(line) for line in run(*arguments, "--output-format", "jsonl").out.splitlines()]
    assert [row["id"] for row in objects] == ["a,1", "b 2"]
    assert [row["labels"] for row in objects] == [line[1::2] for line in lines]
    for format, delimiter in (("csv", ","), ("tsv", "\t")):
        path = tmp_path / f"predicted.{format}.gz"
        assert run(*arguments, "-o", path).code == 0  # the ending names the format
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter=delimiter))
        assert [(row["id"], row["rank"]) for row in rows] == [
            (id, str(rank)) for id in ("a,1", "b 2") for rank in (1, 2)
        ]
        assert [row["label"] for row in rows] == [label for row in objects for label in row["labels"]]
        assert [float(row["score"]) for row in rows] == [score for row in objects for score in row["scores"]]
    assert run(*arguments, "--output-format", "csv").out.count("\r\n") == 5  # RFC 4180


def test_ids_are_file_names_and_chosen_columns(files: Path, run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name in ("first.txt", "second.txt"):
        (folder / name).write_text("the moon and the stars")
    found = run("predict", files / "model", folder, "--json").out.splitlines()
    assert [json.loads(row)["id"] for row in found] == ["first.txt", "second.txt"]
    (tmp_path / "keys.csv").write_text("key,text\nk1,baking bread\n")
    assert run("predict", files / "model", tmp_path / "keys.csv", "--id-column", "key").out.startswith("k1\t")
    assert run("predict", files / "model", tmp_path / "keys.csv").out.startswith("1\t")
    done = run("predict", files / "model", files / "one.txt", "--id-column", "key")
    assert (done.code, "is lines, which does not use --id-column" in done.err) == (2, True)


def test_a_label_with_commas_quotes_and_newlines_in_csv(run: Run, tmp_path: Path) -> None:
    label = 'one, "two"\nthree\tfour'
    (tmp_path / "train.jsonl").write_text(json.dumps({"text": "some words", "labels": [label]}) + "\n")
    assert run("train", tmp_path / "train.jsonl", "-o", tmp_path / "m", "--method", "most-frequent").code == 0
    for format, delimiter in (("csv", ","), ("tsv", "\t")):
        out = run("predict", tmp_path / "m", "--text", "words", "--output-format", format).out
        [row] = csv.DictReader(io.StringIO(out, newline=""), delimiter=delimiter)
        assert row["label"] == label


def test_rows_without_labels_stay_in_csv_and_tsv(files: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "docs.csv").write_text("id,text\na,baking bread\nb,\nc,the moon\n")
    for format, delimiter in (("csv", ","), ("tsv", "\t")):
        done = run("predict", files / "model", tmp_path / "docs.csv", "-k", 1, "--output-format", format)
        rows = list(csv.reader(io.StringIO(done.out, newline=""), delimiter=delimiter))
        assert [row[0] for row in rows] == ["id", "a", "b", "c"]
        assert rows[2] == ["b", "", "", ""]
        assert all(rows[1] + rows[3])


def test_the_threshold_of_the_model(files: Path, run: Run) -> None:
    done = run("predict", files / "model", files / "test.csv", "--threshold", "model", "--json")
    labels = [json.loads(line)["labels"] for line in done.out.splitlines()]
    model = load(files / "model")
    assert labels == model.predict_labels(read_texts(files / "test.csv")[0])
    assert len({len(row) for row in labels}) > 1


def test_a_threshold_limits_the_labels(files: Path, run: Run) -> None:
    text = (files / "one.txt").read_text(encoding="utf-8")
    predict = ("predict", files / "model", "--text", text, "--json")
    whole = json.loads(run(*predict, "-k", "1000000000").out)
    assert len(whole["labels"]) <= len(load(files / "model").classes_)
    middle = whole["scores"][len(whole["scores"]) // 2] + 1e-4
    found = json.loads(run(*predict, "--threshold", middle).out)
    assert found["scores"] == [score for score in whole["scores"] if score >= middle]
    assert len(json.loads(run(*predict, "--threshold", "0", "-k", "2").out)["labels"]) == 2
    for wrong in ("1.5", "-0.1", "nan", "high"):
        done = run(*predict, "--threshold", wrong)
        assert (done.code, "--threshold must be a number from 0 to 1, such as 0.5" in done.err) == (2, True)


def test_output_formats_are_checked(files: Path, run: Run) -> None:
    predict = ("predict", files / "model", "--text", "baking")
    assert "must be one of text, jsonl, csv, tsv. Got 'xml'" in run(*predict, "--output-format", "xml").err
    assert "--json is --output-format jsonl" in run(*predict, "--output-format", "csv", "--json").err


def test_spreadsheets_are_refused_before_any_work(files: Path, run: Run, tmp_path: Path) -> None:
    for name in ("p.xlsx", "p.XLS", "p.ods"):
        done = run("predict", "no-model", "no-data.csv", "-o", tmp_path / name, "--output-format", "csv")
        assert (done.code, done.out) == (2, "")
        endings = "end the name in .csv, .tsv, .jsonl or .txt. Excel opens .csv files"
        assert f"{name}: spreadsheets are not written; {endings}" in done.err
    table = ("--label-table", tmp_path / "l.xlsx")
    done = run("report", files / "model", "no-data.csv", "-o", tmp_path / "r.html", *table)
    assert (done.code, "spreadsheets are not written; end the name in .csv." in done.err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_csv_for_excel_begins_with_a_byte_order_mark(files: Path, run: Run, tmp_path: Path) -> None:
    for name in ("p.csv", "p.tsv"):
        plain, marked = tmp_path / name, tmp_path / f"excel-{name}"
        run("predict", files / "model", files / "test.csv", "-o", plain)
        assert run("predict", files / "model", files / "test.csv", "-o", marked, "--bom") == (0, "", "")
        assert marked.read_bytes() == BOM_UTF8 + plain.read_bytes()
    done = run("predict", files / "model", files / "test.csv", "--bom")
    assert done.err == "exmlds: --bom is for csv and tsv; the output format is text.\n"
    report = ("report", files / "model", files / "test.csv", "-o", tmp_path / "r.html", "--bom")
    assert "--bom is for the file of --label-table" in run(*report).err
    assert run(*report, "--label-table", tmp_path / "labels.csv").code == 0
    assert (tmp_path / "labels.csv").read_bytes().startswith(BOM_UTF8 + b"label,")


@pytest.mark.parametrize("packed", [False, True])
def test_every_input_may_begin_with_a_byte_order_mark(
    files: Path, numbers: Path, run: Run, tmp_path: Path, packed: bool
) -> None:
    def marked(path: Path) -> Path:
        content = BOM_UTF8 + path.read_bytes()
        copy = tmp_path / f"marked-{path.name}"
        copy.write_bytes(gzip.compress(content) if packed else content)
        return copy

    def answers(model: Path, source: object, options: tuple[str, ...], data: bytes = b"") -> list[list[str]]:
        done = run("predict", model, source, "-k", "2", "--json", *options, data=data)
        return [json.loads(row)["labels"] for row in done.out.splitlines()]

    (tmp_path / "t.tsv").write_text("body\tsubjects\nbread\tbaking\nthe moon\tsea\n")
    (tmp_path / "lines.txt").write_text("bread\nthe moon\n")
    for model, path, options in [
        (files / "model", files / "test.csv", ("--format", "csv")),
        (files / "model", tmp_path / "t.tsv", ("--format", "tsv")),
        (files / "model", files / "train.jsonl", ()),
        (files / "model", tmp_path / "lines.txt", ()),
        (numbers / "model", numbers / "train.txt", ()),
    ]:
        expected = answers(model, path, options)
        assert all(expected)
        assert answers(model, marked(path), options) == expected
        assert answers(model, "-", options, marked(path).read_bytes()) == expected
    one = tmp_path / "one.txt"
    one.write_text("baking\n")
    allowed = ("predict", files / "model", "--text", "bread", "--allow")
    assert run(*allowed, marked(one)).out == run(*allowed, one).out != ""
    run("predict", numbers / "model", numbers / "train.txt", "-o", tmp_path / "p.txt")
    evaluate = ("evaluate", numbers / "train.txt", "--json", "--predictions")
    assert run(*evaluate, marked(tmp_path / "p.txt")).out == run(*evaluate, tmp_path / "p.txt").out != ""
    if not packed:
        one.write_text('method = "most-frequent"\n')
        train = ("train", files / "train.jsonl", "-o", tmp_path / "m", "--config", marked(one), "--json")
        assert json.loads(run(*train).out)["method"] == "most-frequent"


def test_a_text_without_a_known_word_gets_no_labels(files: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "docs.csv").write_text("id,text\na,baking bread\nb,\nc,xyzzy qwrtz\nd,the moon\n")
    done = run("predict", files / "model", tmp_path / "docs.csv", "-k", "1", "--json")
    assert [len(json.loads(row)["labels"]) for row in done.out.splitlines()] == [1, 0, 0, 1]
    assert done.code == 0
    assert "warning: 2 of 4 texts hold no word that the model knows; " in done.err
    assert done.err.endswith("Their ids: b, c.\n")
    assert run("predict", files / "model", "-", data=b"\nbread\n").out.startswith("1\n2\t")


def test_a_pipe_is_answered_line_by_line(files: Path) -> None:
    """The second line is sent only after the first was answered."""
    command = [sys.executable, "-m", "exmlds", "predict", str(files / "model"), "-", "-k", "1"]
    text = (files / "one.txt").read_text(encoding="utf-8")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        stopper = threading.Timer(60, process.kill)  # in case it does not answer
        stopper.start()
        answers = []
        for line in (text, text):
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            answers.append(process.stdout.readline())
        process.stdin.close()
        assert process.wait() == 0
        stopper.cancel()
    assert [answer.split("\t")[0] for answer in answers] == ["1", "2"]
    assert answers[0].split("\t")[1:] == answers[1].split("\t")[1:]
    assert answers[0].split("\t")[1] in load(files / "model").classes_


@pytest.mark.parametrize("kind", ["texts", "numbers"])
def test_commands_take_standard_input(
    files: Path, numbers: Path, run: Run, tmp_path: Path, kind: str
) -> None:
    path = files / "train.jsonl" if kind == "texts" else numbers / "train.txt"
    data, model = path.read_bytes(), path.with_name("model")
    trained = run("train", "-", "-o", tmp_path / "m", "--method", "exmlds1", "--json", data=data)
    assert json.loads(trained.out)["rows"] == len(data.splitlines()) - (kind == "numbers")
    measured = run("evaluate", model, "-", "--json", data=data).out
    assert measured == run("evaluate", model, path, "--json").out
    assert json.loads(measured)["P@1"] > 0.5
    page = tmp_path / "page.html"
    assert run("report", model, "-", "-o", page, data=data).code == 0
    assert " on standard input</title>" in page.read_text(encoding="utf-8")
    why = run("explain", model, "-", "--row", "3", "--json", data=data).out
    assert why == run("explain", model, path, "--row", "3", "--json").out
    of_pipe = run("predict", model, "-", "--json", data=data).out
    of_file = run("predict", model, path, "--json").out
    assert [json.loads(row)["labels"] for row in of_pipe.splitlines()] == [
        json.loads(row)["labels"] for row in of_file.splitlines()
    ]


CLOSED = "Standard input is closed; name a file"


@pytest.mark.parametrize("command", ["train", "evaluate", "predict", "report"])
def test_a_closed_standard_input_is_reported(files: Path, run: Run, tmp_path: Path, command: str) -> None:
    given = ("-",) if command == "train" else (files / "model", "-")
    done = run(command, *given, *(() if command == "evaluate" else ("-o", tmp_path / "n")), data=None)
    assert (done.code, done.out) == (2, "")
    assert CLOSED in done.err
    assert not (tmp_path / "n").exists()


def test_a_shell_closes_standard_input(files: Path) -> None:
    command = f'exec "{sys.executable}" -m exmlds predict "{files / "model"}" - <&-'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert CLOSED in done.stderr


def test_a_gzipped_pipe_is_read_as_a_file(files: Path, run: Run) -> None:
    packed = (files / "test.jsonl.gz").read_bytes()
    piped = run("predict", files / "model", "-", "-k", "1", data=packed)
    assert piped == run("predict", files / "model", files / "test.jsonl.gz", "-k", "1")
    assert piped.code == 0
    assert len(piped.out.splitlines()) == 100
    assert run("train", "-", "-o", "m", data=b"").err == "exmlds: standard input is empty.\n"


def test_options_about_the_lines_of_a_pipe(files: Path, run: Run) -> None:
    def answer(data: str, *options: str) -> Any:
        return run("predict", files / "model", "-", "-k", "1", *options, data=data.encode())

    text = (files / "one.txt").read_text(encoding="utf-8")
    expected = answer(text).out
    row = json.dumps({"text": "other", "words": text, "tail": "baking bread"})
    assert answer(row, "--text-column", "words").out == expected
    assert answer(f'text,labels\n"{text}",a\n', "--format", "csv").out == expected
    braces = f"{{{text}}}"  # a text may begin with a brace
    assert answer(braces).out == answer(braces, "--format", "lines").out == expected
    assert answer(f'{text}\n{{"text": "a"}}\n').out.splitlines()[0] == expected.removesuffix("\n")


def test_a_file_of_several_lines_may_be_one_document(files: Path, run: Run, tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    words = (files / "one.txt").read_text(encoding="utf-8").split()
    letter.write_text("\n\n".join(words), encoding="utf-8")
    predict = ("predict", files / "model", "-k", "1")
    whole = run(*predict, "--text", " ".join(words)).out
    for source, id in ((letter, "letter.txt"), ("-", "standard-input")):
        done = run(*predict, source, "--format", "document", data=letter.read_bytes())
        assert done == (0, f"{id}\t{whole}", "")
    why = run("explain", files / "model", letter, "--format", "document", "--json")
    assert json.loads(why.out)["score"] == pytest.approx(float(whole.split("\t")[1]), rel=1e-3)
    done = run("evaluate", files / "model", letter, "--format", "document")
    assert done.err.endswith(
        "letter.txt: the format document has no labels; read it with `exmlds predict`.\n"
    )


def test_a_line_per_text_is_pointed_out_unless_the_format_is_given(
    files: Path, run: Run, tmp_path: Path
) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("bread\nthe moon\n", encoding="utf-8")
    hint = "is read as one text per line; pass --format document if it is one text, or --format lines if this"
    for command in ("predict", "explain"):
        done = run(command, files / "model", letter)
        assert (done.code, done.err) == (0, f"exmlds: {letter} {hint} is right.\n")
        piped = run(command, files / "model", "-", data=letter.read_bytes())
        assert (piped.out, piped.err) == (done.out, f"exmlds: standard input {hint} is right.\n")
        assert run(command, files / "model", letter, "--format", "lines") == (0, done.out, "")
    with subprocess.Popen(
        [sys.executable, "-m", "exmlds", "predict", str(files / "model"), "-", "-k", "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        lines = process.communicate(letter.read_bytes())[0].decode().splitlines()
    assert [line.startswith(f"exmlds: standard input {hint}") for line in lines] == [True, False, False]
    for data in (b"bread\n", b'{"text": "bread"}\n{"text": "the moon"}\n'):
        assert run("predict", files / "model", "-", data=data).err == ""
    assert run("predict", files / "model", files / "one.txt").err == ""


def test_a_bad_line_does_not_end_a_stream(files: Path, run: Run, tmp_path: Path) -> None:
    good = json.dumps({"id": "x", "text": (files / "one.txt").read_text(encoding="utf-8")})
    data = f'{good}\n{{"text": \n{good}\n{{"words": "a"}}\n\n{good}\n'.encode() + b"caf\xe9\n"
    output = tmp_path / "predicted.jsonl"
    done = run("predict", files / "model", "-", "-o", output, data=data)
    assert done.code == 1
    rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert [row["id"] for row in rows] == ["x", "2", "x", "4", "x", "7"]
    assert [len(row["labels"]) for row in rows] == [5, 0, 5, 0, 5, 0]
    first, second, third, last = done.err.splitlines()
    assert first.startswith("exmlds: standard input:2:10: not JSON")
    assert second.startswith("exmlds: standard input:4: no field has a standard name for texts")
    assert "Pass --text-column" in second
    assert third.startswith("exmlds: standard input:7: not UTF-8")
    assert last.startswith("exmlds: 3 of 6 lines could not be read and got no labels: 2, 4, 7.")
    many = run("predict", files / "model", "-", "--format", "jsonl", data=b"x\n" * 1000)
    assert many.err.count("\n") == 11
    assert "1,000 of 1,000 lines could not be read" in many.err


def test_explain_in_words_and_as_data(files: Path, run: Run) -> None:
    text = (files / "one.txt").read_text(encoding="utf-8")
    shown = run("explain", files / "model", "--text", text, "-n", "3").out
    best = load(files / "model").predict_labels([text], k=1)[0][0]
    assert shown.startswith(f"{best}: score")
    assert "share of the vote" in shown
    why = json.loads(run("explain", files / "model", "--text", text, "--json").out)
    assert why["label"] == best
    total = sum(v["share"] for v in why["voters"]) + why["other_voters"] + why["prior_or_label_score"]
    assert total == pytest.approx(why["score"], abs=1e-5)
    assert all(voter["text"] for voter in why["voters"])  # because of --keep-rows
    of_file = json.loads(run("explain", files / "model", files / "test.csv", "--json").out)
    assert of_file == {"row": 0} | why
    other = json.loads(run("explain", files / "model", "--text", text, "--label", "baking", "--json").out)
    assert other["label"] == "baking"


def test_explain_takes_the_id_of_a_document(files: Path, run: Run, tmp_path: Path) -> None:
    texts = [json.loads(line)["text"] for line in (files / "train.jsonl").read_text().splitlines()[:5]]
    ids = ("a/1", "0", None, "twice", "twice")
    data = tmp_path / "new.jsonl"
    data.write_text("\n".join(json.dumps({"id": id, "text": text}) for id, text in zip(ids, texts)))

    def explained(*options: str) -> str:
        return run("explain", files / "model", data, *options).out.partition("\n")[0]

    assert explained() == f"Row 0 (id a/1): {short(texts[0])}"
    assert explained("--row", "a/1") == explained()
    assert explained("--row", "0") == f"Row 1 (id 0): {short(texts[1])}"  # the id comes before the number
    assert explained("--row", "2") == f"Row 2: {short(texts[2])}"
    assert explained("--row", texts[3], "--id-column", "text") == f"Row 3 (id {texts[3]}): {short(texts[3])}"
    why = json.loads(run("explain", files / "model", data, "--row", "0", "--json").out)
    assert (why["row"], why["id"]) == (1, "0")
    for row, message in (
        ("twice", "2 documents have the id 'twice', in the rows 3, 4"),
        ("a/2", "has no document with the id 'a/2'"),
        ("9", "has no document with the id '9', and no row of that number"),
    ):
        done = run("explain", files / "model", data, "--row", row)
        assert done.code == 2
        assert message in done.err


def test_explain_takes_a_file_name(files: Path, run: Run, tmp_path: Path) -> None:
    for name, text in (("first.txt", "bread"), ("second.txt", "the war")):
        (tmp_path / name).write_text(text)
    shown = run("explain", files / "model", tmp_path, "--row", "second.txt").out
    assert shown.startswith("Row 1 (id second.txt): the war\n")


def test_labels_by_name_by_similarity_and_with_their_rows(files: Path, run: Run) -> None:
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


def test_names_with_tabs_and_line_ends(run: Run, tmp_path: Path) -> None:
    names = ["tab\there", "back\\slash", "line\nend\r", "\x1b[2Jcleared"]
    rows = [json.dumps({"text": f"word{i} and more", "labels": names[: i + 1]}) for i in range(4)]
    (tmp_path / "train.jsonl").write_text("\n".join(rows), encoding="utf-8")
    model = ("-o", tmp_path / "m", "--method", "most-frequent")
    assert run("train", tmp_path / "train.jsonl", *model).code == 0
    line = run("predict", tmp_path / "m", "--text", "word1", "-k", 4, "-o", "-").out
    assert not Path("-").exists()
    cells = line.removesuffix("\n").split("\t")
    found = [name.encode().decode("unicode_escape") for name in cells[::2]]
    assert found == [name.strip() for name in names]
    assert (line.count("\n"), len(cells)) == (1, 8)
    shown = run("labels", tmp_path / "m").out
    assert "\\x1b[2Jcleared" in shown
    assert "\x1b" not in shown
    wrong = run("labels", tmp_path / "m", "--search", "\x1b[2J!").err
    assert "\x1b" not in wrong


def test_labels_that_are_unknown_to_the_model(files: Path, run: Run, tmp_path: Path) -> None:
    text = (files / "one.txt").read_text(encoding="utf-8")
    rows = [
        {"text": text, "labels": ["music", "never trained", "nor this"]},
        {"text": text, "labels": ["music"]},
    ]
    test = tmp_path / "test.jsonl"
    test.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert "2 of the 3 labels of these rows were not in training; they occur 2 times" in (
        run("evaluate", files / "model", test).out
    )
    found = json.loads(run("evaluate", files / "model", test, "--json").out)
    assert found["unseen"] == {"labels": 2, "of": 3, "times": 2}
    classes = load(files / "model").classes_
    music, n_labels = classes.tolist().index("music"), len(classes)
    (tmp_path / "filter.txt").write_text(f"0 {music}\n1 {n_labels + 1}\n")
    arguments = (files / "model", test, "--filter", tmp_path / "filter.txt", "--json")
    filtered = json.loads(run("evaluate", *arguments).out)
    assert (found["P@1"], filtered["P@1"]) == (1, 0.5)


def test_messages_name_the_options_of_commands(files: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "cells.tsv").write_text("the cat sat\tanimals\nthe car ran\tvehicles\n")
    (tmp_path / "latin.csv").write_bytes(b"text,labels\ncaf\xe9 au lait,a\nthe,b\ntea,b\n")
    (tmp_path / "plain.txt").write_text("just a text\nand one more\n")
    (tmp_path / "other.csv").write_text("inhalt,labels\nAmeisen,a\n")
    for name, message in [
        (
            "cells.tsv",
            "pass --text-column … and --label-column …; if the lines are .* --format libmultilabel;",
        ),
        ("latin.csv", "pass --encoding-errors replace to read"),
        (
            "plain.txt",
            "if it is in one of them. Read plain text, one document per line, with `exmlds predict`.",
        ),
        ("other.csv", "Pass --text-column …, or --format … if this is not a header."),
    ]:
        done = run("train", tmp_path / name, "-o", tmp_path / "m")
        assert done.code == 2
        assert re.search(message, done.err), done.err
        assert '="' not in done.err
    done = run("train", tmp_path / "latin.csv", "-o", tmp_path / "m", "--encoding-errors", "ignore")
    assert "--encoding-errors must be 'strict' or 'replace'. Got 'ignore'" in done.err
    method = ("--method", "most-frequent", "--encoding-errors", "replace", "--format", "csv", "--json")
    done = run("train", tmp_path / "latin.csv", "-o", tmp_path / "m", *method)
    assert json.loads(done.out)["read_as"] == {"format": "csv", "text": ["text"], "labels": "labels"}
    from exmlds.data.text.formats import READERS

    assert ", ".join(READERS) in " ".join(run("train", "--help").out.split())


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from exmlds import ExMLDS1
    from exmlds.data import write_xc

    folder = tmp_path_factory.mktemp("numbers")
    books = make_library(100, random_state=0)
    write_xc(folder / "train.txt", books)
    ExMLDS1(n_components=10).fit(books.X, books.Y).save(folder / "model")
    return folder


def test_incompatible_arguments(files: Path, numbers: Path, run: Run) -> None:
    bare, predictions = files / "bare.jsonl", files / "predictions.txt"
    bare.write_text('{"text": "a", "labels": []}\n{"text": "b", "labels": []}\n')
    predictions.write_text("0:1\n" * 300)
    for arguments, message in [
        (("evaluate", files / "model", numbers / "train.txt"), "was trained on texts, but"),
        (("evaluate", numbers / "model", files / "test.csv"), "was trained on features, but"),
        (("predict", numbers / "model", "--text", "a"), "was trained on features, not on texts"),
        (
            ("predict", files / "model"),
            "Pass either a file, a folder, - for standard input (`… | exmlds predict MODEL -`), or --text",
        ),
        (("predict", files / "model", files / "test.csv", "--text", "a"), "Pass either a file"),
        (("predict", files / "model", files / "no.csv"), "there is no such file"),
        (
            ("evaluate", files / "model", files / "test.csv", "--labels", numbers / "train.txt"),
            "--labels is for numbers; ",
        ),
        (
            (
                "report",
                files / "model",
                files / "test.csv",
                "-o",
                files / "m",
                "--labels",
                files / "test.csv",
            ),
            "--labels is for numbers",
        ),
        (
            ("report", files / "model", files / "test.csv", "-o", "-"),
            "a report cannot be written to standard output",
        ),
        (("evaluate", files / "model", bare), "bare.jsonl: no row has a label, so there is nothing"),
        (
            ("evaluate", numbers / "model", numbers / "train.txt", "--train", files / "train.jsonl"),
            f"DATA holds numbers, but --train {files / 'train.jsonl'} holds texts.",
        ),
        (("convert", files / "train.jsonl", files / "m"), "holds texts, which this command does not accept"),
        (
            ("compare", predictions, predictions, files / "train.jsonl", "--labels", files / "train.jsonl"),
            "holds texts, which this command does not accept",
        ),
        (
            ("compare", predictions, predictions, files / "train.jsonl"),
            "predictions.txt holds numbers of labels, but",
        ),
        (("compare", numbers / "model", predictions, files / "train.jsonl"), "trained on features, but"),
        (("predict", files / "model", "--text", "a", "--format", "csv"), "--text is used as it is"),
        (("explain", files / "model", "--text", "a", "--text-column", "b"), "--text is used as it is"),
        (("explain", files / "model"), "Pass either a file, a folder, or --text"),
        (("explain", numbers / "model", "--text", "a"), "not on texts"),
        (("explain", files / "model", "--text", "a", "--label", "bakin"), "has no label 'bakin'"),
        (("explain", files / "model", files / "test.csv", "--row", "100"), "has no row 100"),
        (("explain", files / "model", files / "test.csv", "--row", "a"), "its documents have no ids"),
        (("explain", files / "model", "--text", "a", "--row", "1"), "--row names a row of a file"),
        (("explain", numbers / "model", numbers / "train.txt", "--row", "a"), "rows, counted from 0"),
        (("explain", numbers / "model", numbers / "train.txt", "--row", "-1"), "rows, counted from 0"),
        (("labels", files / "model", "--similar", "bakin"), "has no label 'bakin'; find labels with"),
        (("tune", numbers / "train.txt", "-o", numbers / "m", "--vectorizer", "tfidf"), "holds numbers"),
        (
            ("tune", files / "train.jsonl", "-o", files / "m", "--vectorizer", "bert"),
            "'vectorizer' parameter",
        ),
        (("labels", files / "model", "--search", "zzz"), "no label with 'zzz'"),
        (("labels", files / "model", "--search", "a", "--similar", "b"), "Pass only one of"),
        (("train", numbers / "train.txt", "-o", numbers / "m", "--vectorizer", "tfidf"), "holds numbers"),
        (("predict", numbers / "model", numbers / "train.txt", "--text-column", "a"), "do not apply"),
        (("evaluate", numbers / "model", numbers / "train.txt", "--label-column", "a"), "do not apply"),
        (("explain", numbers / "model", numbers / "train.txt", "--encoding-errors", "replace"), "not apply"),
        (
            ("train", files / "train.jsonl", "-o", files / "m", "--vectorizer", "bert"),
            "'vectorizer' parameter",
        ),
        (("train", files / "train.jsonl", "-o", files / "m", "--text-column", "words"), "words"),
    ]:
        done = run(*arguments)
        assert (done.code, done.out) == (2, ""), arguments
        assert message in done.err, arguments
        assert done.err.count("\n") == 1
    assert not (files / "m").exists()
    assert not (numbers / "m").exists()


def test_explain_a_row_of_numbers(numbers: Path, run: Run) -> None:
    done = run("explain", numbers / "model", numbers / "train.txt", "--row", "3", "--json")
    assert json.loads(done.out)["voters"]


@pytest.mark.data
@pytest.mark.slow
def test_reuters_from_its_texts(real_data: Path, run: Run, tmp_path: Path) -> None:
    """Two commands beat tf-idf with one linear SVM per label, which has 0.865 and 94.60."""
    folder = real_data / "reuters21578-90"
    assert run("train", folder / "train.jsonl.gz", "-o", tmp_path / "model", "--seed", 0).code == 0
    found = json.loads(run("evaluate", tmp_path / "model", folder / "test.jsonl.gz", "--json").out)
    assert found["at_threshold"]["F1"] >= 0.87
    assert found["P@1"] >= 0.946


@pytest.fixture(scope="module")
def strange(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with texts and labels that would control a terminal, and models that keep the texts or not."""
    folder = tmp_path_factory.mktemp("strange")
    texts = ["a red\x1b[2J rose", "a red tulip", "a blue\x07 car", "a blue van"]
    labels = [["flower\x1b[31m"], ["flower\x1b[31m"], ["vehicle"], ["vehicle"]]
    for name, keep_rows in (("kept", True), ("bare", False)):
        model = ExMLDS1(n_components=2, n_neighbors=2, temperature=0.1, threshold=0.1, random_state=0)
        TextClassifier(model=model, keep_rows=keep_rows).fit(texts, labels).save(folder / name)
    rows = [json.dumps({"text": t, "labels": y}) for t, y in zip(texts, labels)]
    (folder / "docs.jsonl").write_text("\n".join(rows))
    return folder


def test_control_characters_are_shown_as_such(run: Run, strange: Path, tmp_path: Path) -> None:
    shown = [
        run("labels", strange / "kept"),
        run("explain", strange / "kept", strange / "docs.jsonl"),
        run("explain", strange / "kept", strange / "docs.jsonl", "--label", "no\x1b[5m"),
        run("train", strange / "docs.jsonl", "-o", tmp_path / "m\x1b[7m", "--method", "most-frequent"),
        run("report", strange / "kept", strange / "docs.jsonl", "-o", tmp_path / "r\x9b.html"),
        run("inspect", tmp_path / "no\x1b[7m"),
        run("inspect", strange / "kept", "--card"),
    ]
    for done in shown:
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.out + done.err)
    assert [done.code for done in shown] == [0, 0, 2, 0, 0, 2, 0]
    assert "flower\\x1b[31m" in shown[0].out
    assert "a red\\x1b[2J rose" in shown[1].out
    assert "m\\x1b[7m" in shown[3].out
    exact = json.loads(run("explain", strange / "kept", strange / "docs.jsonl", "--json").out)
    assert exact["label"] == "flower\x1b[31m"
    assert "a red\x1b[2J rose" in [voter["text"] for voter in exact["voters"]]


def test_explain_shows_the_texts_that_the_model_keeps(run: Run, strange: Path) -> None:
    command = (strange / "docs.jsonl", "--row", 3)
    kept, bare = (run("explain", strange / name, *command).out for name in ("kept", "bare"))
    assert kept.startswith("Row 3: a blue van\nvehicle: score")
    assert re.search(r"^a blue van  +\d", kept, re.M)
    assert "training text " in kept
    assert "--keep-rows" not in kept
    assert re.search(r"^3  +\d", bare, re.M)
    assert bare.rstrip().endswith("exmlds train --keep-rows")
    assert run("explain", strange / "kept", "--text", "a van").out.startswith("vehicle: score")


def test_labels_of_python_and_of_the_command_line_agree(run: Run, tmp_path: Path) -> None:
    from exmlds import FeatureNeighbors, TextClassifier

    texts = ["red card", "late goal", "bread and salt", "flour and yeast"]
    labels = ["sport\t", "sport\t", "baking\t", "baking\t"]
    TextClassifier(model=FeatureNeighbors(n_neighbors=1)).fit(texts, labels).save(tmp_path / "m")
    rows = [f"{text}\t{label.strip()}\n" for text, label in zip(texts, labels)]
    (tmp_path / "test.tsv").write_text("text\tlabels\n" + "".join(rows))
    found = run("evaluate", tmp_path / "m", tmp_path / "test.tsv", "-k", "1", "--json")
    assert json.loads(found.out)["P@1"] == 1.0


def test_cells_that_look_like_lists_are_reported(run: Run, tmp_path: Path) -> None:
    cells = ["grain, rice", "grain, wheat", "rice, wheat", "corn", "rice"]
    (tmp_path / "t.csv").write_text("text,labels\n" + "".join(f'a word,"{cell}"\n' for cell in cells))
    train = ("train", tmp_path / "t.csv", "-o", tmp_path / "m", "--method", "most-frequent")
    done = run(*train)
    assert done.err.count("warning") == 1
    assert "such as 'grain, rice'" in done.err
    assert '--label-separator ","' in done.err
    assert run(*train, "--label-separator", ",").err == ""
    assert sorted(load(tmp_path / "m").classes_) == ["corn", "grain", "rice", "wheat"]


def test_documents_without_subjects_are_reported(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number in range(8):
        (folder / f"doc{number}.txt").write_text("bread and salt")
    (folder / "doc0.tsv").write_text("<http://ex.org/baking>\tbaking\n")
    (folder / "doc1.tsv").write_text("\n")
    expected = "7 of 8 documents have no subjects: doc1.txt, doc2.txt, doc3.txt, doc4.txt, doc5.txt, …"
    trained = run("train", folder, "-o", tmp_path / "m", "--method", "most-frequent")
    evaluated = run("evaluate", tmp_path / "m", folder, "-k", "1", "--json")
    for done, n_warnings in ((trained, 1), (evaluated, 2)):
        assert (done.code, done.err.count("warning")) == (0, n_warnings), done.err
        assert expected in done.err
    assert "metrics at k count 0 for them" in evaluated.err
    assert json.loads(evaluated.out)["P@1"] == 1 / 8


def test_labels_that_the_model_does_not_know_at_all(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a.txt").write_text("bread and salt")
    (folder / "a.tsv").write_text("<http://ex.org/1>\tbaking\n<http://ex.org/2>\tfood\n")
    assert run("train", folder, "-o", tmp_path / "m", "--method", "most-frequent").code == 0
    options = (tmp_path / "m", folder, "--label-column", "label")
    for command in (("evaluate", *options), ("report", *options, "-o", tmp_path / "r.html")):
        done = run(*command)
        assert (done.code, done.out) == (2, "")
        assert "none of the 2 labels in corpus is known to the model, such as 'baking'; the" in done.err
        assert "knows 'http://ex.org/1'. Leave out --label-column label, so that URIs are read." in done.err
    assert not (tmp_path / "r.html").exists()
    assert run("evaluate", *options[:2]).code == 0


def test_folders_without_documents(files: Path, run: Run, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    (empty / "inner").mkdir(parents=True)
    train = ("train", empty, "-o", tmp_path / "m")
    model = files / "model"
    for command in (
        train,
        (*train, "--label-column", "uri"),
        ("predict", model, empty),
        ("evaluate", model, empty),
    ):
        done = run(*command)
        assert (done.code, done.out) == (2, "")
        assert "empty holds no documents (.txt files)" in done.err


def test_models_with_encoders_are_loaded_on_trust(
    files: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lengths_of_texts.py").write_text(
        "class Lengths:\n    def encode(self, texts):\n        return [[len(text), 1] for text in texts]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, ""])
    lengths = import_module("lengths_of_texts").Lengths()
    texts, labels = read_texts(files / "train.jsonl")
    TextClassifier(ExMLDS1(random_state=0), vectorizer=["tfidf", lengths]).fit(texts, labels).save("own")
    test, trusted = str(files / "test.jsonl.gz"), ("--trusted", "lengths_of_texts:Lengths")
    assert "--trusted lengths_of_texts:Lengths to a command" in run("inspect", "own").err
    for arguments in (
        ("inspect", "own"),
        ("labels", "own"),
        ("predict", "own", "--text", "bread"),
        ("explain", "own", "--text", "bread"),
        ("evaluate", "own", test),
        ("compare", "own", "own", test),
        ("report", "own", test, "-o", "report.html"),
    ):
        assert run(*arguments, *trusted).code == 0
