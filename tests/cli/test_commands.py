"""The command line as a user types it."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix, save_npz

import exmlds
from exmlds import metrics
from exmlds.data import Dataset, make_library, read_predictions, read_xc, write_npz, write_xc
from exmlds.selection import hide_labels
from exmlds.validation.mapped import is_mapped

Run = Callable[..., Any]


def test_train_predict_evaluate(run: Run, files: Path, tmp_path: Path) -> None:
    method = ("--method", "feature-neighbors")
    trained = run("train", files / "train.txt", "-o", tmp_path / "m", "--seed", 0, *method)
    assert trained.code == 0, trained.err
    assert "feature-neighbors on 450 rows × 371 features × 37 labels" in trained.out
    assert trained.err == ""
    assert run("predict", tmp_path / "m", files / "test.txt.gz", "-k", 3, "-o", tmp_path / "p.txt").out == ""
    ids, _ = read_predictions(tmp_path / "p.txt")
    assert ids.shape == (150, 3)
    expected = exmlds.load(files / "model").predict_topk(read_xc(files / "test.txt.gz").X, 3)[0]
    np.testing.assert_array_equal(ids, expected)
    by_model = run("evaluate", tmp_path / "m", files / "test.txt.gz", "-k", 1, 3, "--json")
    by_file = run(
        "evaluate", "--predictions", tmp_path / "p.txt", files / "test.txt.gz", "-k", 1, 3, "--json",
        "--train", files / "train.txt",
    )  # fmt: skip
    found = json.loads(by_model.out)
    assert 0 < found.pop("at_threshold")["F1"] <= 1
    assert found.pop("propensities_from") == "the training labels of the model"
    expected_of_file = json.loads(by_file.out)
    assert expected_of_file.pop("propensities_from") == "the labels of train.txt"
    assert found == expected_of_file
    assert json.loads(by_model.out)["P@1"] > 0.8
    assert {"PSP@1", "nDCG@3", "by_frequency"} <= set(json.loads(by_model.out))


def test_evaluate_prints_tables(run: Run, files: Path) -> None:
    done = run("evaluate", files / "model", files / "test.txt.gz", "--intervals")
    assert done.code == 0, done.err
    assert "PSnDCG" in done.out
    assert "150 rows, 37 labels" in done.out
    assert "Head to tail, at 5" in done.out
    assert "–" in done.out
    bare = run("evaluate", "--predictions", files / "test.txt.gz", files / "test.txt.gz")
    assert bare.code == 2


def test_predict_streams_to_stdout(run: Run, files: Path) -> None:
    plain = run("predict", files / "model", files / "test.txt.gz", "-k", 2)
    assert len(plain.out.splitlines()) == 150
    label, _, score = plain.out.split()[0].partition(":")
    assert 0 <= int(label) < 37
    assert 0 < float(score) <= 1
    as_json = run("predict", files / "model", files / "test.txt.gz", "-k", 2, "--json")
    first = json.loads(as_json.out.splitlines()[0])
    assert first["id"] == "1"
    assert len(first["labels"]) == len(first["scores"]) == 2
    assert first["labels"][0] in make_library(1).label_names  # type: ignore[operator]


def test_predict_with_lists(run: Run, files: Path, tmp_path: Path) -> None:
    (tmp_path / "few.txt").write_text("cooking\nbaking\n")
    done = run("predict", files / "model", files / "test.txt.gz", "--allow", tmp_path / "few.txt", "--json")
    labels = {label for line in done.out.splitlines() for label in json.loads(line)["labels"]}
    assert labels == {"cooking", "baking"}
    done = run("predict", files / "model", files / "test.txt.gz", "--deny", tmp_path / "few.txt", "--json")
    labels = {label for line in done.out.splitlines() for label in json.loads(line)["labels"]}
    assert len(labels) > 20
    assert not labels & {"cooking", "baking"}
    (tmp_path / "few.txt").write_text("cookery\n")
    done = run("predict", files / "model", files / "test.txt.gz", "--allow", tmp_path / "few.txt")
    assert (done.code, done.err) == (2, "exmlds: Label 'cookery' is not known to this model.\n")


def test_predict_from_features_alone_and_without_a_header(run: Run, files: Path, tmp_path: Path) -> None:
    test = read_xc(files / "test.txt.gz")
    expected = run("predict", files / "model", files / "test.txt.gz").out
    x_path, y_path = write_npz(tmp_path / "X.tst.npz", test)
    y_path.unlink()
    assert run("predict", files / "model", x_path).out == expected
    bare = tmp_path / "bare.txt"
    with gzip.open(files / "test.txt.gz") as file:
        bare.write_bytes(file.read().partition(b"\n")[2])
    assert run("predict", files / "model", bare).out == expected
    assert json.loads(run("evaluate", files / "model", bare, "--json").out)["rows"] == 150


def test_evaluate_with_a_label_filter(run: Run, files: Path, tmp_path: Path) -> None:
    test = read_xc(files / "test.txt.gz")
    best = exmlds.load(files / "model").predict_topk(test.X, 1)[0][:, 0]
    (tmp_path / "filter.txt").write_text("".join(f"{row} {label}\n" for row, label in enumerate(best)))
    args = (files / "test.txt.gz", "--filter", tmp_path / "filter.txt", "--json")
    plain = json.loads(run("evaluate", files / "model", files / "test.txt.gz", "--json").out)
    filtered = json.loads(run("evaluate", files / "model", *args).out)
    assert filtered["P@1"] < plain["P@1"] - 0.3
    assert filtered["at_threshold"]["recall"] < plain["at_threshold"]["recall"] - 0.1
    run("predict", files / "model", files / "test.txt.gz", "-k", 20, "-o", tmp_path / "p.txt")
    from_file = json.loads(run("evaluate", "--predictions", tmp_path / "p.txt", *args).out)
    assert from_file["P@5"] == filtered["P@5"]


def test_compare(run: Run, files: Path, tmp_path: Path) -> None:
    run("predict", files / "frequent", files / "test.txt.gz", "-o", tmp_path / "p.txt")
    done = run("compare", files / "model", tmp_path / "p.txt", files / "test.txt.gz", "--json")
    rows = {row["name"]: row for row in json.loads(done.out)}
    assert rows["P@1"]["low"] > 0.3
    assert rows["P@1"]["p_value"] == 2 / 2001
    table = run("compare", files / "model", files / "frequent", files / "test.txt.gz", "-k", 1).out
    assert "difference" in table
    assert "nDCG@1" in table
    assert "150 rows, 2,000 bootstrap resamples" in table


def test_compare_by_propensity_scored_precision(run: Run, files: Path, tmp_path: Path) -> None:
    test, train = read_xc(files / "test.txt.gz"), read_xc(files / "train.txt")
    models = [files / "model", files / "frequent"]
    for path in models:
        run("predict", path, files / "test.txt.gz", "-o", tmp_path / f"{path.name}.txt")
    predictions = [tmp_path / f"{path.name}.txt" for path in models]

    def compared(*rankers: Path, options: tuple[object, ...] = ()) -> dict[str, Any]:
        done = run("compare", *rankers, files / "test.txt.gz", "-k", "1", "5", "--json", *options)
        return {row["name"]: row for row in json.loads(done.out)}

    weights = metrics.inverse_propensity(train.Y)
    expected = metrics.compare(
        test.Y,
        *(exmlds.load(path).predict_topk(test.X, 5) for path in models),
        ["PSP@1", "PSP@5"],
        inverse_propensity=weights,
        n_resamples=2000,
    )
    by_train = compared(*predictions, options=("--train", files / "train.txt"))
    for row in expected:
        assert by_train[row.name] == row._asdict()
        assert compared(*models)[row.name] == row._asdict()  # models have the counts of their labels
    other = compared(*models, options=("--propensity", "0.5,0.4"))
    assert other["PSP@5"]["first"] != by_train["PSP@5"]["first"]
    assert "PSP@1" not in compared(*predictions)
    assert "--train FILE" in run("compare", *predictions, files / "test.txt.gz").out


def test_the_source_of_propensities_is_stated(run: Run, files: Path, tmp_path: Path) -> None:
    train = read_xc(files / "train.txt")
    visible = hide_labels(train.Y, 0.5, random_state=0)
    exmlds.MostFrequent().fit(train.X, visible).save(tmp_path / "hidden")
    test, by_file = files / "test.txt.gz", ("--train", files / "train.txt")
    stated = "Propensities of PSP and PSnDCG from the"
    assert f"{stated} training labels of the model\n" in run("evaluate", tmp_path / "hidden", test).out
    assert f"{stated} labels of train.txt\n" in run("evaluate", tmp_path / "hidden", test, *by_file).out
    done = run("compare", files / "model", tmp_path / "hidden", test)
    assert "so that PSP depends on their order; --train FILE names" in done.err
    assert "propensities of PSP from the training labels of the first model\n" in done.out
    done = run("compare", files / "model", tmp_path / "hidden", test, *by_file)
    assert (done.err, "propensities of PSP from the labels of train.txt\n" in done.out) == ("", True)
    assert run("compare", files / "model", files / "frequent", test).err == ""


def test_inspect_shows_what_the_fit_has_chosen(run: Run, library: Dataset, tmp_path: Path) -> None:
    model = exmlds.ExMLDS1(n_components=5, random_state=0).fit(library.X[:200], library.Y[:200])
    model.save(tmp_path / "model")
    chosen = {
        "chosen features": model.features_,
        "chosen l2": model.l2_,
        "chosen temperature": model.temperature_,
    }
    facts = json.loads(run("inspect", tmp_path / "model", "--json").out)
    assert {name: value for name, value in facts.items() if name.startswith("chosen")} == chosen
    shown = run("inspect", tmp_path / "model").out
    assert all(re.search(f"{name} +{value}", shown) for name, value in chosen.items())


def test_inspect(run: Run, files: Path, tmp_path: Path) -> None:
    shown = run("inspect", files / "model").out
    assert "feature-neighbors" in shown
    assert "all match" in shown
    facts = json.loads(run("inspect", files / "model", "--json").out)
    assert (facts["labels"], facts["training rows"], facts["parameters"]["n_neighbors"]) == (37, 450, 20)
    import shutil

    shutil.copytree(files / "model", tmp_path / "m")
    arrays = next((tmp_path / "m").glob("*.bin"))
    arrays.write_bytes(arrays.read_bytes()[:-1] + b"\x7f")
    damaged = run("inspect", tmp_path / "m")
    assert damaged.code == 2
    assert f"{arrays.name} is damaged" in "".join(damaged.err.split("\n"))


def test_info_and_defaults(run: Run, files: Path, tmp_path: Path) -> None:
    shown = run("info").out
    assert f"{exmlds.__version__}" in shown
    assert "eurlex-4k" in shown
    assert "most-frequent" in json.loads(run("info", "--json").out)["methods"]
    config = tmp_path / "run.toml"
    config.write_text(run("info", "feature-neighbors").out.replace("n_neighbors = 20", "n_neighbors = 3"))
    args = ("train", files / "train.txt", "-o", tmp_path / "m", "--config", config)
    assert run(*args).code == 0
    assert exmlds.load(tmp_path / "m").get_params()["n_neighbors"] == 3
    assert run(*args, "--set", "n_neighbors=4", "--set", "metric=euclidean", "--set", "n_jobs=none").code == 0
    model = exmlds.load(tmp_path / "m")
    assert (model.get_params()["n_neighbors"], model.get_params()["metric"]) == (4, "euclidean")
    assert json.loads(run("info", "MostFrequent", "--json").out)["max_labels"] == 100


@pytest.mark.parametrize("name", ["ExMLDS1", "ExMLDS2", "ExMLDS3", "ExMLDS4"])
def test_the_settings_of_the_paper(run: Run, files: Path, tmp_path: Path, name: str) -> None:
    method, paper = f"{name.lower()}.paper", getattr(exmlds, name).paper
    assert method in run("info").out
    config = tmp_path / "paper.toml"
    config.write_text(run("info", method).out)
    small = {"n_components": 5, "n_learners": 1, "random_state": 0}
    if name in ("ExMLDS2", "ExMLDS4"):
        small |= {"n_epochs": 2}
    options = [part for key, value in small.items() for part in ("--set", f"{key}={value}")]
    for source in (("--method", method), ("--config", config)):
        done = run("train", files / "train.txt", "-o", tmp_path / "m", *source, *options)
        assert done.code == 0, done.err
        found = exmlds.load(tmp_path / "m").get_params()
        expected = paper(**small).get_params()
        assert {key: tuple(v) if isinstance(v, list) else v for key, v in found.items()} == expected


def test_tune_starts_from_the_settings_of_the_paper(run: Run, files: Path, tmp_path: Path) -> None:
    fixed = [
        part for name in ("n_components", "n_neighbors", "n_learners") for part in ("--set", f"{name}=2")
    ]
    out = tmp_path / "tuned.toml"
    done = run(
        *("tune", files / "train.txt", "-o", out, "--method", "exmlds1.paper", "--time-budget", "1", *fixed)
    )
    assert done.code == 0, done.err
    assert 'vote = "uniform"' in out.read_text()


def test_convert(run: Run, files: Path, tmp_path: Path, library: Dataset) -> None:
    done = run("convert", files / "train.txt", tmp_path / "X.trn.npz", "--json")
    assert json.loads(done.out)["rows"] == 450
    assert run("convert", tmp_path / "Y.trn.npz", tmp_path / "back.txt.gz").code == 0
    before, after = read_xc(files / "train.txt"), read_xc(tmp_path / "back.txt.gz")
    assert (before.X != after.X).nnz == 0
    assert (before.Y != after.Y).nnz == 0


def test_registered_names(run: Run, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXMLDS_DATA", str(files.parent))
    done = run("train", files.name, "-o", tmp_path / "m", "--method", "most-frequent", "--json")
    assert json.loads(done.out)["rows"] == 450
    assert json.loads(run("evaluate", tmp_path / "m", files.name, "--json").out)["rows"] == 150


def test_demo(run: Run) -> None:
    shown = run("demo", "--rows", 300).out
    assert "ExMLDS predicts" in shown
    as_json = json.loads(run("demo", "--rows", 300, "--json").out)
    assert as_json["test"] == 60
    assert as_json["results"][-1]["P@1"] > as_json["results"][0]["P@1"]
    assert "✓" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "nothing.txt", "-o", "m"], "nothing.txt: there is no such file"),
        (["train", "nothing", "-o", "m"], "nothing is neither a file, a folder nor a data set"),
        (["train", "{files}", "-o", "m"], "is a folder; name a file in it"),
        (["train", "{files}/train.txt", "-o", "{files}/train.txt"], "is a file; a model is a folder"),
        (
            ["train", "{files}/train.txt", "-o", "m", "--method", "best"],
            "There is no method 'best'; the methods are",
        ),
        (
            ["train", "{files}/train.txt", "-o", "m", "--set", "k=3"],
            "has no parameter 'k'; its parameters are",
        ),
        (["train", "{files}/train.txt", "-o", "m", "--set", "n_neighbors"], "--set takes key=value"),
        (
            ["train", "{files}/train.txt", "-o", "m", "--set", "shortlist=0"],
            "must be 'auto' or a whole number",
        ),
        (
            ["train", "{files}/no-such-file.txt", "-o", "m", "--set", "threshold=50"],  # checked first
            "or a number from 0 to 1, as scores are, such as 0.5 for 50%. Got 50 instead.",
        ),
        (
            ["train", "{files}/train.txt", "-o", "m", "--seed", "0", "--set", "random_state=5"],
            "--seed and --set random_state set the same parameter",
        ),
        (
            ["train", "{files}/train.txt", "-o", "m", "--complete-labels", "1", "--set", "complete_labels=0"],
            "--complete-labels and --set complete_labels set the same parameter",
        ),
        (
            ["tune", "{files}/train.txt", "-o", "t.toml", "--set", "random_state=5"],
            "--seed sets random_state",
        ),
        (["train", "{files}/train.txt", "-o", "m", "--config", "no.toml"], "no.toml: cannot be read"),
        (["predict", "nothing", "{files}/test.txt.gz"], "nothing: there is no such model"),
        (["predict", "{files}", "{files}/test.txt.gz"], "is not a model"),
        (
            ["predict", "{files}/model", "{files}/label_names.txt"],
            "label_names.txt holds texts",
        ),
        (["evaluate", "{files}/model"], "Name the data to evaluate on"),
        (
            ["evaluate", "{files}/model", "{files}/test.txt.gz", "-k", "0"],
            "-k must be integers from 1 to 1,000",
        ),
        (
            ["evaluate", "{files}/model", "{files}/test.txt.gz", "-k", "99999999999"],
            "-k must be integers from",
        ),
        (["evaluate", "{files}/model", "{files}/test.txt.gz", "--propensity", "1"], "--propensity takes A,B"),
        (["evaluate", "m", "d", "--predictions", "p"], "Name a model or --predictions, not both"),
        (["inspect", "{files}"], "is not a model"),
        (["info", "best"], "There is no method 'best'"),
        (["convert", "{files}/train.txt", "no/such/folder/x.txt"], "cannot be written"),
        (["convert", "{files}/train.txt", "x.txt", "--split", "dev"], "--split must be train or test"),
    ],
)
def test_a_users_error_is_one_line_and_code_2(
    run: Run, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*(argument.format(files=files) for argument in arguments))
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1
    assert done.err.startswith("exmlds: ")
    assert done.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "modle", "test.txt.gz"], "modle: there is no such model. Did you mean model?"),
        (["labels", "modle"], "modle: there is no such model. Did you mean model?"),
        (["predict", "test.txt", "test.txt.gz"], "test.txt: there is no such model."),
        (["evaluate", "modle", "test.txt.gz"], "no such model or file of predictions. Did you mean model?"),
        (["compare", "model", "frequnt", "test.txt.gz"], "of predictions. Did you mean frequent?"),
        (["predict", "model", "tset.txt.gz"], "there is no such file. Did you mean test.txt.gz?"),
        (["evaluate", "model", "./tset.txt.gz"], "there is no such file. Did you mean test.txt.gz?"),
        (["train", "trian.txt", "-o", "m"], "there is no such file. Did you mean train.txt?"),
        (["train", "boks", "-o", "m"], "data sets here: books. Did you mean books?"),
        (["train", "label-names", "-o", "m"], "data sets here: books. Did you mean label_names.txt?"),
    ],
    ids=" ".join,
)
def test_a_mistyped_path_gets_a_suggestion(
    run: Run,
    files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(files)
    monkeypatch.setenv("EXMLDS_DATA", str(tmp_path))
    (tmp_path / "books").mkdir()
    for name in ("train.txt.gz", "test.txt.gz"):
        (tmp_path / "books" / name).touch()
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith(f"{message}\n")


@pytest.mark.parametrize(
    ("arguments", "usage"),
    [
        (["predict", "test.txt.gz", "model"], "predict MODEL DATA"),
        (["evaluate", "test.txt.gz", "model"], "evaluate MODEL DATA"),
        (["explain", "test.txt.gz", "model"], "explain MODEL DATA"),
        (["report", "test.txt.gz", "model", "-o", "r.html"], "report MODEL DATA -o FILE"),
        (["compare", "test.txt.gz", "frequent", "model"], "compare FIRST SECOND DATA"),
    ],
    ids=lambda argument: argument[0],
)
def test_swapped_arguments_are_named(
    run: Run, files: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], usage: str
) -> None:
    monkeypatch.chdir(files)
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"exmlds: The arguments are swapped: model is a model. Write `exmlds {usage}`.\n"
    done = run("labels", "test.txt.gz")
    assert done.err == "exmlds: test.txt.gz is not a model: it is not a folder.\n"


def test_config_files_are_checked(run: Run, files: Path, tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    for text, message in (
        ("method = ", "is not a TOML file"),
        ("methods = 'x'", "unknown entry 'methods'"),
        ("method = 3", "`method` must be a name"),
        ("parameters = 3", "[parameters] a table"),
    ):
        config.write_text(text)
        done = run("train", files / "train.txt", "-o", tmp_path / "m", "--config", config)
        assert (done.code, message in done.err) == (2, True)


def test_log_messages_are_shown_on_request(run: Run, files: Path, tmp_path: Path) -> None:
    arguments = ("evaluate", files / "model", files / "test.txt.gz")
    quiet, shown = run(*arguments), run("--log-level", "INFO", *arguments)
    assert (quiet.err, shown.out) == ("", quiet.out)
    line = rf"[0-9-]+ [0-9:,]+ INFO read {re.escape(str(arguments[2]))}: 150 rows in [0-9.]+ s\n"
    assert re.search(line, shown.err)
    assert "INFO read" not in run("--log-level", "warning", *arguments).err
    done = run("--log-level", "loud", *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err == "exmlds: --log-level must be debug, info, warning or error. Got 'loud' instead.\n"
    pair = write_npz(tmp_path / "X.tst.npz", read_xc(arguments[2]))
    shown = run(
        "--log-level", "debug", "predict", files / "model", pair[0], "-o", tmp_path / "p.jsonl", "--json"
    )
    assert f"INFO read {pair[0]}: 150 rows in" in shown.err
    shown = run("--log-level", "info", "evaluate", "--predictions", tmp_path / "p.jsonl", arguments[2])
    assert f"INFO read {tmp_path / 'p.jsonl'}: 150 rows in" in shown.err


def test_usage_errors_have_code_2(run: Run) -> None:
    assert run("train").code == 2
    assert run("predict", "--nonsense").code == 2
    assert run("nonsense").code == 2
    assert run("--log-level", "info").code == 2


def test_warnings_are_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "odd.txt").write_text("2 2 2\n1,0 1:1 0:1\n0 0:1\n")
    done = run("train", tmp_path / "odd.txt", "-o", tmp_path / "m")
    assert done.code == 0
    assert done.err.startswith("exmlds: warning: ")
    assert done.err.endswith("odd.txt: unsorted ids were sorted.\n")
    assert done.err.count("\n") == 1


def test_internal_errors_are_reported_as_such(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("of course")

    monkeypatch.setattr("exmlds.data.make_library", broken)
    done = run("demo")
    assert done.code == 1
    assert "internal error: RuntimeError: of course" in done.err
    assert "Traceback" not in done.err
    monkeypatch.setenv("EXMLDS_DEBUG", "1")
    with pytest.raises(RuntimeError, match="of course"):
        run("demo")


def test_evaluating_on_other_data_is_refused(run: Run, files: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("1 9 5\n0 1:1\n")
    for command in (("evaluate", files / "model"), ("compare", files / "model", files / "frequent")):
        done = run(*command, other)
        assert (done.code, "declares 9 features, but 371 are expected" in done.err) == (2, True)
    run("predict", files / "model", files / "test.txt.gz", "-o", tmp_path / "p.txt")
    done = run("evaluate", "--predictions", tmp_path / "p.txt", files / "test.txt.gz", "--train", other)
    assert (done.code, done.err.endswith("declares 5 labels, but 37 are expected.\n")) == (2, True)
    other.write_text("1 371 38\n0 1:1\n")
    hint = "37 are expected. If a training file without a header gave that number, by its largest label, add"
    assert hint in run("evaluate", files / "model", other).err
    write_xc(tmp_path / "same.txt", read_xc(files / "test.txt.gz"))
    (tmp_path / "label_names.txt").write_text("\n".join(f"other {i}" for i in range(37)))
    done = run("evaluate", files / "model", tmp_path / "same.txt")
    assert (done.code, "differ from those that the model was trained with" in done.err) == (2, True)


def test_k_beyond_the_predictions_is_a_warning(run: Run, files: Path, tmp_path: Path) -> None:
    run("predict", files / "model", files / "test.txt.gz", "-k", 3, "-o", tmp_path / "p.txt")
    done = run("evaluate", "--predictions", tmp_path / "p.txt", files / "test.txt.gz", "-k", 5)
    assert "No row has more than 3 predictions" in done.err
    assert "need the training labels" in done.out
    done = run("compare", files / "model", tmp_path / "p.txt", files / "test.txt.gz", "-k", 5)
    assert "No row of the second predictions has more than 3 predictions" in done.err


def test_options_count(run: Run, files: Path, tmp_path: Path) -> None:
    def psp(*options: object) -> float:
        return json.loads(run("evaluate", files / "model", files / "test.txt.gz", "--json", *options).out)[
            "PSP@1"
        ]

    assert psp() != psp("--propensity", "0.9,1.5")
    run("train", files / "train.txt", "-o", tmp_path / "m", "--seed", 7, "--method", "feature-neighbors")
    assert exmlds.load(tmp_path / "m").random_state == 7
    (tmp_path / "one.txt").write_text("1 1:2\n2 2:3\n")
    assert run("convert", tmp_path / "one.txt", tmp_path / "zero.txt", "--one-based").code == 0
    np.testing.assert_array_equal(read_xc(tmp_path / "zero.txt").X.toarray(), [[2, 0], [0, 3]])
    (tmp_path / "features.txt").write_text("2 3\n0:1\n2:1\n")
    (tmp_path / "truth.txt").write_text("2 2\n0:1\n1:1\n")
    args = (
        "train",
        tmp_path / "features.txt",
        "--labels",
        tmp_path / "truth.txt",
        "-o",
        tmp_path / "m2",
        "--json",
    )
    assert json.loads(run(*args).out)["labels"] == 2


def test_paths_may_hold_brackets(run: Run, files: Path, tmp_path: Path) -> None:
    run("predict", files / "frequent", files / "test.txt.gz", "-o", tmp_path / "a[/x].txt".replace("/", ""))
    done = run("compare", files / "model", tmp_path / "a[x].txt", files / "test.txt.gz")
    assert "a[x].txt" in done.out


def test_the_output_is_checked_before_the_work(run: Run, files: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis").write_text("precious")
    done = run("train", tmp_path / "no-such-file.txt", "-o", tmp_path)
    assert "holds something else than a model" in done.err


def test_what_predict_writes_can_be_evaluated(run: Run, files: Path, tmp_path: Path) -> None:
    results = []
    for name in ("p.txt", "p.jsonl", "p.csv", "p.tsv.gz"):
        run("predict", files / "model", files / "test.txt.gz", "-o", tmp_path / name)
        done = run("evaluate", "--predictions", tmp_path / name, files / "test.txt.gz", "--json")
        results.append(json.loads(done.out)["P@5"])
    assert len(set(results)) == 1 < 5 * results[0]


def test_a_wrong_number_of_predicted_rows(run: Run, files: Path, tmp_path: Path) -> None:
    hint = "; an empty last row needs a space on its line"
    for n, ending in ((149, hint), (148, "")):
        (tmp_path / "p.txt").write_text("0:1\n" * n)
        done = run("evaluate", "--predictions", tmp_path / "p.txt", files / "test.txt.gz")
        assert done.err.endswith(f"p.txt has {n} rows, but the data has 150{ending}.\n")


def test_output_never_destroys(run: Run, files: Path, tmp_path: Path) -> None:
    copy = tmp_path / "data.txt"
    copy.write_bytes((files / "train.txt").read_bytes())
    for command in (("predict", files / "model", copy, "-o", copy), ("convert", copy, copy)):
        done = run(*command)
        assert (done.code, "is being read" in done.err) == (2, True)
    assert copy.read_bytes() == (files / "train.txt").read_bytes()
    done = run("predict", files / "model", copy, "-o", files / "model" / "p.txt")
    assert (done.code, "is a model folder" in done.err) == (2, True)
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    link.symlink_to(real)
    assert run("predict", files / "model", copy, "-o", link).code == 0
    assert link.is_symlink()
    assert len(real.read_text().splitlines()) == 450


@pytest.mark.skipif(os.name != "posix", reason="makes a named pipe")
def test_output_may_be_a_pipe(run: Run, files: Path, tmp_path: Path) -> None:
    import threading

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    assert run("predict", files / "model", files / "test.txt.gz", "-o", pipe).code == 0
    reader.join(30)
    assert len(read[0].splitlines()) == 150
    assert pipe.is_fifo()


def test_data_may_come_by_a_pipe(files: Path) -> None:
    command = [sys.executable, "-m", "exmlds", "predict", str(files / "model"), "-"]
    done = subprocess.run(
        command, input=(files / "test.txt.gz").read_bytes(), capture_output=True, check=True
    )
    assert len(done.stdout.splitlines()) == 150


def test_mapped_files_give_the_same_model(run: Run, files: Path, tmp_path: Path) -> None:
    """`train`, `evaluate` and `predict` take what `convert --mapped` wrote in place of text."""
    printed = []
    for name, short in (("train.txt", "trn"), ("test.txt.gz", "tst")):
        text, target = files / name, tmp_path / f"X.{short}.npz"
        done = run("convert", text, target, "--mapped")
        assert done.code == 0, done.err
        assert is_mapped(read_xc(target).X.data)
        assert read_xc(target).label_names == read_xc(text).label_names
    for train, test in (
        (files / "train.txt", files / "test.txt.gz"),
        (tmp_path / "X.trn.npz", tmp_path / "Y.tst.npz"),
    ):
        model = tmp_path / "model"
        done = run("train", train, "-o", model, "--effort", "fast", "--seed", "0")
        assert done.code == 0, done.err
        evaluated = run("evaluate", model, test, "--json")
        predicted = run("predict", model, str(test).replace("Y.", "X."), "-k", "3")
        printed.append((json.loads(evaluated.out), predicted.out))
    assert printed[0] == printed[1]
    done = run("convert", files / "train.txt", tmp_path / "a.txt", "--mapped")
    assert (done.code, "--mapped writes .npz files; name X.name.npz as the target" in done.err) == (2, True)


def test_names_go_along_when_converting(run: Run, files: Path, tmp_path: Path) -> None:
    run("convert", files / "train.txt", tmp_path / "X.trn.npz")
    assert read_xc(tmp_path / "X.trn.npz").label_names == read_xc(files / "train.txt").label_names
    done = run("convert", files / "train.txt", tmp_path / "x.txt", "--split", "test")
    assert (done.code, "--split applies to data sets given by name" in done.err) == (2, True)


def exmlds_process(*arguments: object, **options: object) -> subprocess.Popen[str]:
    if os.name == "posix":  # a shell's background job ignores Ctrl-C, and so would its children
        options["preexec_fn"] = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen(
        [sys.executable, "-m", "exmlds", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,  # type: ignore[call-overload]
    )


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_leaves_nothing_half_written(files: Path, tmp_path: Path) -> None:
    # The same rows many times make a file that takes long.
    big = tmp_path / "big.txt"
    rows = (files / "train.txt").read_bytes().partition(b"\n")[2]
    big.write_bytes(rows * 1_000)
    out = tmp_path / "out"
    out.mkdir()
    process = exmlds_process("predict", files / "model", big, "-o", out / "p.txt")
    deadline = time.monotonic() + 60
    while not list(out.iterdir()) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    assert [path.suffix for path in out.iterdir()] == [".partial"]
    while process.poll() is None:  # Python drops an interrupt inside a callback, so it is sent again
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=2)
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "Traceback" not in err
    assert list(out.iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_keeps_the_checkpoint_and_the_same_command_resumes(
    run: Run, files: Path, tmp_path: Path
) -> None:
    kept, options = tmp_path / "kept", ["--seed", "0", "--method", "exmlds4"]
    for setting in ("n_epochs=60", "features=l2", "temperature=0.1", "threshold=0.1", "n_components=8"):
        options += ["--set", setting]
    command = ("train", files / "train.txt", *options)
    process = exmlds_process(*command, "-o", tmp_path / "model", "--checkpoint", kept)
    deadline = time.monotonic() + 120
    while not list(kept.glob("map-*/manifest.json")) and time.monotonic() < deadline:
        time.sleep(0.01)
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
    assert process.returncode != 0
    assert "Traceback" not in process.communicate()[1]
    assert not (tmp_path / "model").exists()
    assert list(kept.glob("map-*/manifest.json"))
    assert run(*command, "-o", tmp_path / "model", "--checkpoint", kept).code == 0
    assert not kept.exists()
    assert run(*command, "-o", tmp_path / "whole").code == 0
    X = read_xc(files / "test.txt.gz").X
    one, other = (exmlds.load(tmp_path / name).predict_topk(X) for name in ("model", "whole"))
    np.testing.assert_array_equal(one[1], other[1])
    for output in (kept, kept / "model"):
        done = run(*command, "-o", output, "--checkpoint", kept)
        assert (done.code, "must be separate folders" in done.err) == (2, True)
    done = run("train", files / "train.txt", "-o", tmp_path / "no", "--checkpoint", kept)
    assert (done.code, "takes no --checkpoint; exmlds4 does" in done.err) == (2, True)


@pytest.mark.slow
def test_a_closed_pipe_is_no_error(files: Path, tmp_path: Path) -> None:
    big = tmp_path / "big.txt"
    big.write_bytes((files / "train.txt").read_bytes().partition(b"\n")[2] * 50)
    process = exmlds_process("predict", files / "model", big)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    process.wait()
    assert err == ""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_predict_streams_a_file_larger_than_its_memory(files: Path, tmp_path: Path) -> None:
    """The peak does not grow with the file."""
    peaks = []
    rows = (files / "train.txt").read_bytes().partition(b"\n")[2]
    code = (
        "import re, sys\n"
        "from exmlds.cli import main\n"
        "sys.argv = ['exmlds', *sys.argv[1:]]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"
    )
    for times in (100, 2000):
        big = tmp_path / "big.txt"
        big.write_bytes(rows * times)
        command = [sys.executable, "-c", code, "predict", files / "frequent", big, "-k", "1"]
        command += ["-o", tmp_path / "p.txt"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout) * 1024)
    grown = len(rows) * 1900
    assert grown > 50_000_000
    assert peaks[1] - peaks[0] < grown / 3, "the whole file is in memory"


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_progress_on_a_terminal_and_quiet_in_a_pipe(files: Path, tmp_path: Path) -> None:
    import pty

    big = tmp_path / "big.txt"
    rows = (files / "train.txt").read_bytes().partition(b"\n")[2]
    big.write_bytes(b"9000 371 37\n" + rows * 20)
    piped = exmlds_process("predict", files / "model", big, "-o", tmp_path / "p.txt")
    assert piped.communicate()[1] == ""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "exmlds", "predict", files / "model", big, "-o", tmp_path / "p.txt"],
        stderr=terminal,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    )
    os.close(terminal)
    shown = b""
    while True:
        try:
            piece = os.read(controller, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(controller)
    assert process.wait() == 0
    assert b"predicting" in shown
    assert b"/9,000 rows" in shown
    assert b"rows" in shown


def test_labels_and_their_cooccurrences(run: Run, files: Path, tmp_path: Path) -> None:
    names = (files / "label_names.txt").read_text(encoding="utf-8").split("\n")
    np.save(tmp_path / "c.npy", np.eye(len(names)) + 0.1)
    options = ("--method", "exmlds3", "--set", "n_components=10", "--set", "features=l2", "--seed", "0")
    side = ("--label-cooccurrence", tmp_path / "c.npy", "--complete-labels", "0.5")
    done = run("train", files / "train.txt", "-o", tmp_path / "joint", *options, *side)
    assert (done.code, done.err) == (0, "")
    model = exmlds.load(tmp_path / "joint")
    assert isinstance(model, exmlds.ExMLDS3)
    assert model.complete_labels_ == 0.5
    shown = run("labels", tmp_path / "joint", "--similar", "baking", "-n", "3", "--json")
    found = [(entry["label"], entry["cosine"]) for entry in json.loads(shown.out)]
    assert found == [
        (name, pytest.approx(cosine, abs=1e-5)) for name, cosine in model.similar_labels("baking", 3)
    ]
    assert found[0][0] in run("labels", tmp_path / "joint", "--similar", "baking").out
    frequent = json.loads(run("labels", files / "model", "-n", "2", "--json").out)
    assert frequent[0]["rows"] >= frequent[1]["rows"] > 0
    for arguments, message in (
        (("labels", tmp_path / "joint", "--similar", "nothing"), "has no label 'nothing'"),
        (("labels", files / "model", "--similar", "baking"), "has no label embeddings"),
        (
            (
                "train",
                files / "train.txt",
                "-o",
                tmp_path / "no",
                "--method",
                "exmlds1",
                "--label-cooccurrence",
                tmp_path / "c.npy",
            ),
            "exmlds1 takes no --label-cooccurrence; exmlds and exmlds3 do",
        ),
        (
            (
                "train",
                files / "train.txt",
                "-o",
                tmp_path / "no",
                *options,
                "--label-cooccurrence",
                "gone.npz",
            ),
            "gone.npz",
        ),
        (
            ("train", files / "train.txt", "-o", tmp_path / "no", *options, "--complete-labels", "2"),
            "'complete_labels' parameter",
        ),
    ):
        done = run(*arguments)
        assert done.code == 2
        assert message in done.err
        assert done.err.count("\n") == 1
    assert not (tmp_path / "no").exists()


def test_train_takes_the_observed_cells(run: Run, files: Path, tmp_path: Path) -> None:
    train = read_xc(files / "train.txt")
    n, n_labels = train.Y.shape
    all_cells = np.arange(n)[:, None] < n // 2  # of the first half of the rows
    observed = csr_matrix((train.Y.toarray() > 0) | all_cells, dtype=np.float32)
    save_npz(tmp_path / "observed.npz", observed)
    rows = (" ".join(f"{label}:1" for label in row.indices) for row in observed)
    (tmp_path / "observed.txt").write_text("\n".join([f"{n} {n_labels}", *rows, ""]))
    (tmp_path / "bare.txt").write_text((tmp_path / "observed.txt").read_text().split("\n", 1)[1])
    settings = {"n_components": 10, "features": "l2", "temperature": 0.1, "l2": 1.0, "complete_labels": 0.5}
    options = [option for name, value in settings.items() for option in ("--set", f"{name}={value}")]
    command = ("train", files / "train.txt", "--method", "exmlds3", *options, "--seed", "0")
    model = exmlds.ExMLDS3(**settings, random_state=0)
    expected = model.fit(train.X, train.Y, observed=observed).predict_topk(train.X[:20], 5)
    without = model.fit(train.X, train.Y).predict_topk(train.X[:20], 5)
    assert not np.array_equal(expected[1], without[1])
    for name in ("observed.npz", "observed.txt", "bare.txt"):
        done = run(*command, "-o", tmp_path / "model", "--observed", tmp_path / name)
        assert (done.code, done.err) == (0, "")
        found = exmlds.load(tmp_path / "model").predict_topk(train.X[:20], 5)
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-5)


def test_a_wrong_matrix_of_observed_cells_is_refused(run: Run, files: Path, tmp_path: Path) -> None:
    save_npz(tmp_path / "few.npz", csr_matrix((449, 37)))
    save_npz(tmp_path / "narrow.npz", csr_matrix((450, 3)))
    save_npz(tmp_path / "counts.npz", csr_matrix(np.full((450, 37), 2.0)))
    (tmp_path / "narrow.txt").write_text("2 3\n0:1\n2:1\n")
    (tmp_path / "texts.jsonl").write_text('{"text": "a", "labels": ["b"]}\n')
    of_labels = "must be of the shape of the label matrix, 450 rows and 37 labels. Got"
    for name, options, message in (
        ("few.npz", (), f"few.npz {of_labels} 449 rows and 37 labels instead."),
        ("narrow.npz", (), f"narrow.npz {of_labels} 450 rows and 3 labels instead."),
        ("narrow.txt", (), "narrow.txt:1: the header declares 3 labels, but 37 are expected."),
        ("counts.npz", (), "observed must be a matrix of the shape of Y that holds 0 and 1 only."),
        ("fwe.npz", (), "fwe.npz: there is no such file. Did you mean"),
        ("few.npz", ("--method", "exmlds1"), "exmlds1 takes no --observed; exmlds and exmlds3 do."),
    ):
        arguments = ("-o", tmp_path / "m", "--observed", tmp_path / name, *options)
        done = run("train", files / "train.txt", *arguments)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert message in done.err
    done = run("train", tmp_path / "texts.jsonl", "-o", tmp_path / "m", "--observed", tmp_path / "few.npz")
    assert (done.code, "holds texts; --observed is for numbers" in done.err) == (2, True)
    assert not (tmp_path / "m").exists()


def test_tune_writes_a_config_that_train_takes(run: Run, files: Path, tmp_path: Path) -> None:
    config = tmp_path / "tuned.toml"
    options = ("--method", "feature-neighbors", "--time-budget", "60", "--set", "metric=cosine")
    done = run("tune", files / "train.txt", "-o", config, *options, "--json")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert found["trials"][0]["parameters"] == {}
    assert len(found["trials"]) > 3
    assert found["best"]["value"] == max(trial["value"] for trial in found["trials"])
    assert not any("metric" in trial["parameters"] for trial in found["trials"])
    trained = run("train", files / "train.txt", "-o", tmp_path / "m", "--config", config)
    assert trained.code == 0
    kept = exmlds.load(tmp_path / "m").get_params()
    assert {name: kept[name] for name in found["best"]["parameters"]} == found["best"]["parameters"]
    assert "starting values" in run("tune", files / "train.txt", "-o", config, *options).out
    done = run("tune", files / "train.txt", "-o", config, "--method", "most-frequent")
    assert (done.code, "has no parameter left to tune" in done.err) == (2, True)


def test_tune_says_what_its_budget_allows(
    run: Run, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, search = tmp_path / "tuned.toml", exmlds.selection.tune
    ticks = itertools.count(0, 10)  # each look at the clock is 10 s later, so a setting takes 10 s
    monkeypatch.setattr(exmlds.selection, "tune", partial(search, clock=lambda: float(next(ticks))))
    command = ("tune", files / "train.txt", "-o", config, "--method", "feature-neighbors")
    one = run(*command, "--time-budget", 10)
    assert "1 setting was tried in 10.0 s, so there is nothing to compare it with" in one.out
    assert "best" not in one.out
    settings = re.search(r"A round has (\d+) settings: allow about --time-budget (\d+)\.", one.out)
    assert settings is not None
    assert int(settings[2]) == 10 * int(settings[1])
    assert one.err == (
        f"One setting takes about 10.0 s; 10 s allow about 1 of the {settings[1]} settings of a round.\n"
    )
    more = run(*command, "--time-budget", 60)
    assert re.search(r"The best of [2-9] settings in|None of the [1-9] other settings is better", more.out)


def test_tune_writes_its_file_last(
    run: Run, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, search = tmp_path / "tuned.toml", exmlds.selection.tune
    config.write_text("before")

    def breaks(*arguments: Any, **options: Any) -> Iterator[Any]:
        yield next(search(*arguments, **options))
        assert config.read_text() == "before"
        raise RuntimeError("stopped")

    monkeypatch.setattr(exmlds.selection, "tune", breaks)
    assert run("tune", files / "train.txt", "-o", config, "--method", "feature-neighbors").code == 1
    assert config.read_text() == "before"
    assert list(tmp_path.iterdir()) == [config]


@pytest.mark.parametrize(
    "command",
    [
        ["train", "no-data.txt", "-o"],
        ["train", "no-data.txt", "-o", "m", "--method", "exmlds4", "--checkpoint"],
        ["tune", "no-data.txt", "-o"],
        ["convert", "no-data.txt"],
        ["report", "{files}/model", "no-data.txt", "-o"],
        ["demo", "-o"],
    ],
    ids=lambda command: f"{command[0]}{command[-1]}",
)
def test_an_unwritable_output_is_found_before_the_work(
    run: Run, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    command = [argument.format(files=files) for argument in command]
    makes_folders = command[-1] == "--checkpoint" or command[0] in ("train", "demo")
    outputs = ["file/output"] if makes_folders else ["file/output", "gone/output", str(files)]
    if Path("/proc/self").exists():  # a file system that allows nothing, even to root
        outputs.append("/proc/output")
    for output in outputs:
        done = run(*command, output)
        assert done.code == 2, done.out
        assert f"{output}: cannot be written" in done.err or f"{output} is a folder; name a file" in done.err
        assert list(tmp_path.iterdir()) == [tmp_path / "file"]


@pytest.mark.parametrize(
    "options",
    [
        *(["tune", "d", "-o", "t", "--time-budget", value] for value in ("nan", "inf", "-5", "0", "soon")),
        *(
            ["evaluate", "m", "d", "--propensity", value]
            for value in ("nan,1", "inf,1", "0,1", "1,-2", "1,nan")
        ),
        *(["train", "d", "-o", "m", "--seed", value] for value in ("-1", "nan")),
    ],
    ids=lambda options: "".join(options[-2:]),
)
def test_numbers_are_checked(run: Run, options: list[str]) -> None:
    done = run(*options)
    assert (done.code, done.out) == (2, "")
    assert options[-2] in done.err.splitlines()[-1]


def test_train_sums_up(run: Run, files: Path, tmp_path: Path) -> None:
    model = tmp_path / "a model"
    done = run("train", files / "train.txt", "-o", model, "--seed", 0, "--set", "time_budget=1")
    assert done.code == 0, done.err
    summary, following = done.out.splitlines()
    assert re.fullmatch(
        r"exmlds on 450 rows × 371 features × 37 labels: read in [\d.]+ s, fitted in [\d.]+ s; "
        r"P@1 [\d.]+% on held-out rows",
        summary,
    )
    written, following = following.split(". Next: ")
    assert re.fullmatch(rf"Wrote {re.escape(str(model))}, [\d.]+ \wB", written)
    assert following == f"exmlds predict '{model}' NEW_FILE, or exmlds evaluate '{model}' TEST_FILE"
    as_json = run("train", files / "train.txt", "-o", model, "--method", "most-frequent", "--json")
    assert 0 < json.loads(as_json.out)["held_out"]["P@1"] < 1


def test_convert_overwrites_no_input(files: Path, run: Run, tmp_path: Path) -> None:
    assert run("convert", files / "train.txt", tmp_path / "X.a.npz").code == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for target in ("Y.a.npz", "a.npz"):
        done = run("convert", tmp_path / "X.a.npz", tmp_path / target)
        assert (done.code, "is being read; write to another file" in done.err) == (2, True)
    done = run("convert", tmp_path / "X.a.npz", tmp_path / "Y.a.npz", "--labels", tmp_path / "Y.a.npz")
    assert (done.code, {path.name: path.read_bytes() for path in tmp_path.iterdir()}) == (2, before)
