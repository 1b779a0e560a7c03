"""The scripts of benchmarks/: their arguments, the files they write, and what they keep and compare."""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

from exmlds import FeatureNeighbors, Partitioned
from exmlds.data import make_library, make_xmc, read_texts, read_vocabulary, write_xc

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(params=["paper", "missing", "joint"])
def script(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module(request.param)


def run(script: ModuleType, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> object:
    """The exit status of the script."""
    monkeypatch.setattr(sys, "argv", [f"{script.__name__}.py", *arguments])
    with pytest.raises(SystemExit) as ended:
        script.main()
    return ended.value.code


@pytest.mark.parametrize("arguments", [("--sets", "bibtext"), ("--output", "no/such/folder.json")])
def test_typing_errors_are_usage_errors(script, arguments, monkeypatch, capsys):
    assert run(script, monkeypatch, "--validation", *arguments) == 2
    assert arguments[1] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("script", "arguments"),
    [("paper", ("--variants", "papr")), ("paper", ("--seeds", "0")), ("joint", ("--seeds", "0"))],
    indirect=["script"],
)
def test_unknown_variants_and_no_seeds_are_usage_errors(script, arguments, monkeypatch, capsys):
    assert run(script, monkeypatch, "--validation", *arguments) == 2
    assert arguments[1] in capsys.readouterr().err


def test_without_any_data_set_nothing_is_written(script, monkeypatch, tmp_path):
    monkeypatch.setenv("EXMLDS_DATA", str(tmp_path))
    output = tmp_path / "mine.json"
    assert "nothing is written" in str(run(script, monkeypatch, "--test", "--output", str(output)))
    assert not output.exists()


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The module of the shared helpers, with an empty folder of committed results."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    found = import_module("measure")
    (tmp_path / "results").mkdir()
    monkeypatch.setattr(found, "RESULTS", tmp_path / "results")
    return found


def test_results_of_other_sets_are_kept_and_only_committed_readings_are_logged(measure, tmp_path):
    readings = measure.RESULTS / "test-readings.jsonl"
    mine = tmp_path / "mine.json"
    measure.write_sets("paper", "test", {"a": {"paper": 1, "default": 2}, "b": {"paper": 3}}, mine)
    measure.write_sets("paper", "test", {"a": {"paper": 4}}, mine)
    assert json.loads(mine.read_text())["sets"] == {"a": {"paper": 4, "default": 2}, "b": {"paper": 3}}
    assert not readings.exists()
    measure.write_sets("paper", "validation", {"a": {"paper": 5}}, mine)  # another split is not mixed in
    assert json.loads(mine.read_text())["sets"] == {"a": {"paper": 5}}
    measure.write_sets("paper", "test", {"a": {"paper": 6}}, measure.RESULTS / "paper-test.json")
    assert json.loads(readings.read_text())["results"] == {"a": {"paper": 6}}


ARGUMENTS = {
    "paper": ("--test", "--seeds", "2"),
    "joint": ("--test", "--set", "n_epochs=1"),
    "missing": ("--test", "--shares", "0.8", "--variants", "paper-full,paper-visible", "--seeds", "1"),
    "peers": ("--test", "--only", "ours"),
    "annif": ("--test", "--only", "ours"),
    "scaling": ("--rows", "1e3,2e3"),
    "memory": ("--shapes", "wide"),
    "texts": ("--long", "0.1"),
    "splits": ("bibtex",),
    "startup": ("--repeats", "1"),
    "freeze": ("record", "--seeds", "0"),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_only_full_runs_replace_the_committed_results(name, measure, monkeypatch, tmp_path, capsys):
    """With other options, a script says before its work that it writes nothing; --output is then the way."""
    (tmp_path / "data" / "bibtex").mkdir(parents=True)
    for split in ("train", "test"):
        (tmp_path / "data" / "bibtex" / f"{split}.txt").touch()
    monkeypatch.setenv("EXMLDS_DATA", str(tmp_path / "data"))
    script = import_module(name)
    is_told = []

    class Reached(Exception):
        """The script would now begin its work."""

    def destination(*given, **options):
        is_told.append(measure.destination(*given, **options))
        raise Reached

    if name == "freeze":
        assert run(script, monkeypatch, *ARGUMENTS[name]) == 2
        assert "name the file that it is added to with --output" in capsys.readouterr().err
        return
    monkeypatch.setattr(script, "destination", destination)
    for arguments in (ARGUMENTS[name], (*ARGUMENTS[name], "--output", str(tmp_path / "mine.json"))):
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments])
        with pytest.raises(Reached):
            script.main()
    assert is_told == [None, tmp_path / "mine.json"]
    assert "--output FILE writes them" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "arguments", "file"),
    [
        ("paper", ("--test",), "paper-test.json"),
        ("paper", ("--validation", "--family"), "family-validation.json"),
        ("missing", ("--test",), "missing-test.json"),
        ("peers", ("--test",), "peers.json"),
        ("texts", ("--long",), "texts-long.json"),
        ("scaling", (), "scaling.json"),
        ("splits", (), "splits.json"),
        ("startup", (), "startup.json"),
    ],
)
def test_full_runs_go_to_the_committed_results(name, arguments, file, measure, monkeypatch, tmp_path):
    (tmp_path / "yso-finna-en").mkdir()  # without which a run of scaling.py is not full
    (tmp_path / "yso-finna-en" / "train.txt").touch()
    monkeypatch.setenv("EXMLDS_DATA", str(tmp_path))
    script = import_module(name)
    found = []

    def destination(*given, **options):
        found.append(measure.destination(*given, **options))
        sys.exit()

    monkeypatch.setattr(script, "destination", destination)
    run(script, monkeypatch, *arguments)
    assert found == [measure.RESULTS / file]


def test_results_without_a_file_are_printed(measure, capsys):
    measure.write_sets("paper", "test", {"a": {"paper": 1}}, None)
    assert json.loads(capsys.readouterr().out)["sets"] == {"a": {"paper": 1}}
    assert list(measure.RESULTS.iterdir()) == []


class Fits:
    """Takes the place of the fits of `peers.py`: predicts the most frequent labels, and counts the fits."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(("ours-fast", "ours", "ours-best"), 4.0)
        self.failing: dict[str, str] = {}
        self.interrupted_at: tuple[str, int] | None = None
        self.seen: list[tuple[str, int, int]] = []
        self.settings: list[dict[str, Any]] = []

    def __call__(self, peer, python, train, X, seed, settings=None):
        self.seen.append((peer, seed, train.X.shape[0]))
        self.settings.append(settings or {})
        if (peer, train.X.shape[0]) == self.interrupted_at:
            raise KeyboardInterrupt
        if peer in self.failing:
            raise import_module("peers").Failure(self.failing[peer])
        counts = np.asarray(train.Y.sum(axis=0)).ravel()
        # The penalty of 0.1 is the best one: with another, the best label comes last.
        best = np.argsort(-counts, kind="stable")[:5][:: -1 if (settings or {}).get("l2", 0.1) != 0.1 else 1]
        figures = {"version": "1", "fit_seconds": self.seconds.get(peer, 2.0), "ms_per_row": 0.1}
        sizes = {"ms_one_row": 1.0, "bytes_before_fit": 1, "peak_bytes": 10**9, "model_bytes": 10**6}
        return {**figures, **sizes}, np.tile(best, (X.shape[0], 1))

    def on_all_rows(self, n: int) -> list[tuple[str, int]]:
        return [(peer, seed) for peer, seed, rows in self.seen if rows == n]


@pytest.fixture
def fits(measure: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Fits:
    """Fits on a small library in place of those of the peers, which are not installed."""
    peers, fits = import_module("peers"), Fits()
    books = make_library(300, random_state=0)
    (tmp_path / "data" / "library").mkdir(parents=True)
    for name, rows in (("train", np.arange(200)), ("test", np.arange(200, 300))):
        write_xc(tmp_path / "data" / "library" / f"{name}.txt", books.rows(rows)._replace(label_names=None))
    monkeypatch.setenv("EXMLDS_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(peers, "HOME", tmp_path / "peers")
    monkeypatch.setattr(peers, "interpreter", lambda package, base: "python")
    monkeypatch.setattr(peers, "fit", fits)
    return fits


def run_peers(monkeypatch: pytest.MonkeyPatch, path: Path, *arguments: str) -> dict[str, Any]:
    """The entries of the library that a run of `peers.py` writes to the file."""
    peers = import_module("peers")
    peers._rows_for.cache_clear()
    monkeypatch.setattr(sys, "argv", ["peers.py", "--test", "--output", str(path), *arguments])
    peers.main()
    return json.loads(path.read_text())["sets"]["library"]["peers"]


def test_peers_are_fitted_in_turns_and_slow_ones_once(fits, monkeypatch, tmp_path):
    fits.seconds |= {"parabel": 601.0}
    fits.failing = {"plt": "needs a week"}
    entries = run_peers(monkeypatch, tmp_path / "mine.json")
    chosen = [peer for peer, _, rows in fits.seen if rows == 160]
    assert fits.seen[: len(chosen)] == [(peer, 0, 160) for peer in chosen]  # before the turns
    first = ["ours-fast", "ours", "pecos", "ours-best", "parabel", "bonsai", "plt-3", "one-vs-rest", "ridge"]
    again = [peer for peer in first if peer != "parabel"]
    assert fits.on_all_rows(200) == [(p, s) for s in range(3) for p in (again if s else first)]
    assert entries["plt"]["missing"] == "needs a week"
    assert [entries[peer]["seeds"] for peer in ("ours", "parabel", "ridge")] == [3, 1, 3]
    assert entries["ours"]["times_pecos"] == 2.0
    assert "against" in entries["pecos"]


def test_the_penalty_of_ridge_regression_is_chosen_with_its_scaling(fits, monkeypatch, tmp_path):
    entries = run_peers(monkeypatch, tmp_path / "mine.json", "--only", "ridge", "--seeds", "1")
    assert entries["ridge"]["settings"] == {"l2": 0.1}
    assert fits.settings[-1] == {"l2": 0.1}
    tried = entries["ridge"]["choice"]
    assert [row["l2"] for row in tried][-3:] == [1.0, 0.1, 10.0]
    assert len({row["scaling"] for row in tried}) == len(tried) - 2
    assert entries["ridge"]["scaling"] == tried[-1]["scaling"]


def test_ridge_regression_of_too_many_rows_is_refused_before_its_choice(fits, monkeypatch, tmp_path):
    monkeypatch.setattr(import_module("peer_fit"), "MOST_DENSE_BYTES", 4 * 200 * 200)
    entries = run_peers(monkeypatch, tmp_path / "mine.json", "--only", "ridge,bonsai", "--seeds", "1")
    assert "for dense matrices of 200 × 200 and 372 × 35;" in entries["ridge"]["missing"]
    assert {peer for peer, _, _ in fits.seen} == {"bonsai"}


def test_an_interrupted_comparison_continues_where_it_stopped(fits, monkeypatch, tmp_path):
    only = ("--only", "ours,pecos,bonsai", "--seeds", "2")
    fits.interrupted_at = "bonsai", 200
    with pytest.raises(KeyboardInterrupt):
        run_peers(monkeypatch, tmp_path / "mine.json", *only)
    assert fits.on_all_rows(200) == [("ours", 0), ("pecos", 0), ("bonsai", 0)]
    fits.seen.clear()
    fits.interrupted_at = None
    entries = run_peers(monkeypatch, tmp_path / "mine.json", *only)
    assert fits.on_all_rows(200) == [("bonsai", 0), ("ours", 1), ("pecos", 1), ("bonsai", 1)]
    fits.seen.clear()
    assert run_peers(monkeypatch, tmp_path / "mine.json", *only) == entries
    assert fits.seen == []
    run_peers(monkeypatch, tmp_path / "mine.json", *only, "--again")
    assert len(fits.on_all_rows(200)) == 6


def test_other_code_is_measured_again_with_pecos_beside_it(fits, monkeypatch, tmp_path):
    only = ("--only", "ours-fast,ours,pecos,bonsai", "--seeds", "1")
    run_peers(monkeypatch, tmp_path / "mine.json", *only)
    peers = import_module("peers")
    version_of = peers.version_of
    monkeypatch.setattr(
        peers, "version_of", lambda peer, rows: version_of(peer, rows) + ("new" if peer == "ours" else "")
    )
    fits.seen.clear()
    fits.seconds |= {"ours": 3.0, "pecos": 1.0}
    entries = run_peers(monkeypatch, tmp_path / "mine.json", *only)
    assert fits.seen == [("ours", 0, 200), ("pecos", 0, 200)]
    assert [entries[peer]["times_pecos"] for peer in ("ours-fast", "ours")] == [2.0, 3.0]


def test_the_version_changes_with_code_and_settings(fits, monkeypatch):
    peers = import_module("peers")
    rows = peers.Rows("library", validation=False)
    versions = [peers.version_of(peer, rows) for peer in peers.FITS]
    assert len(set(versions)) == len(versions)
    assert versions == [peers.version_of(peer, rows) for peer in peers.FITS]
    monkeypatch.setitem(peers.SETTINGS, "ridge", ({"l2": 1.0},))
    changed = [peers.version_of(peer, rows) for peer in peers.FITS]
    assert [a != b for a, b in zip(versions, changed)] == [peer == "ridge" for peer in peers.FITS]


@pytest.mark.parametrize(("n", "d"), [(60, 20), (20, 60)])
def test_ridge_regression_is_the_closed_form(n, d, monkeypatch, tmp_path, rng):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    peer_fit = import_module("peer_fit")
    monkeypatch.setattr(peer_fit, "BLOCK", 7)
    X = csr_matrix(random_array((n, d), density=0.4, rng=rng, dtype=np.float32))
    Y = csr_matrix((rng.random((n, 9)) < 0.3).astype(np.float32))
    fitted = peer_fit.ridge(peer_fit.Data(X, Y, tmp_path, 0, 1), l2=0.5)
    A = np.hstack([X.toarray(), np.ones((n, 1))])
    scores = A @ np.linalg.solve(A.T @ A + 0.5 * np.eye(d + 1), A.T @ Y.toarray())
    assert np.array_equal(fitted.predict(X), np.argsort(-scores, axis=1)[:, :5])
    monkeypatch.setattr(peer_fit, "MOST_DENSE_BYTES", 1_000)
    with pytest.raises(MemoryError, match=f"and {d + 1} × 9;"):
        peer_fit.ridge(peer_fit.Data(X, Y, tmp_path, 0, 1))


def run_scaling(monkeypatch: pytest.MonkeyPatch, path: Path, *arguments: str) -> dict[str, Any]:
    monkeypatch.setattr(sys, "argv", ["scaling.py", "--output", str(path), *arguments])
    import_module("scaling").main()
    return json.loads(path.read_text())["series"]


def test_scaling_merges_sizes_and_systems_into_a_file(fits, monkeypatch, tmp_path):
    scaling = import_module("scaling")
    monkeypatch.setattr(scaling, "HOME", tmp_path / "peers")
    monkeypatch.setattr(scaling, "N_TEST", 50)
    monkeypatch.setattr(scaling, "fit", fits)
    few = scaling.Series(lambda n: make_xmc(min(n, 450), 100, 20, random_state=0), "tf-idf")
    monkeypatch.setattr(scaling, "SERIES", {"few": few, "more": few})
    path = tmp_path / "mine.json"
    found = run_scaling(monkeypatch, path, "--rows", "100", "--series", "few")
    assert [run["system"] for run in found["few"]["runs"]] == ["ours-fast", "ours", "pecos"]
    assert found["few"]["exponents"] == {}
    fits.seconds |= {"pecos": 8.0}  # and 2 s at 100 rows
    found = run_scaling(monkeypatch, path, "--rows", "200,1e3,1e4", "--systems", "pecos")
    assert Counter(run["system"] for run in found["few"]["runs"]) == {"ours-fast": 1, "ours": 1, "pecos": 3}
    assert [run["rows"] for run in found["more"]["runs"]] == [200, 400]  # all that there are
    assert found["few"]["exponents"].keys() == {"pecos"}  # the only one with three sizes
    assert found["few"]["exponents"]["pecos"]["fit_seconds"] == pytest.approx(1)
    assert found["more"]["exponents"] == {}


def test_exponents_are_slopes_of_logarithms(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    runs = [
        {"system": "pecos", "rows": n, "fit_seconds": 3 * n**1.5, "peak_bytes": 7 * n}
        for n in (10, 100, 1000)
    ]
    runs.append({"system": "ours", "rows": 10, "missing": "no time"})
    found = import_module("scaling").exponents(runs)
    assert found == {"pecos": {"fit_seconds": pytest.approx(1.5), "peak_bytes": pytest.approx(1.0)}}


class Projects:
    """Takes the place of `annif_fit.py`: predicts the first subjects, and keeps the given files."""

    def __init__(self) -> None:
        self.failing: dict[str, str] = {}
        self.seen: list[tuple[str, str]] = []
        self.corpora: dict[str, list[str]] = {}

    def __call__(self, command, threads, limit):
        step, system, name, *_ = command[3:]
        assert command[1] == "-P"
        self.seen.append((step, system))
        if system in self.failing:
            raise import_module("peers").Failure(self.failing[system])
        folder = Path(name)
        files = [*folder.glob("*.tsv"), folder / "rows.txt"]
        self.corpora = {file.name: file.read_text().splitlines() for file in files}
        figures = {"seconds": 2.0, "version": "1"}
        (folder / f"{system}-{step}.json").write_text(json.dumps(figures))
        ids = np.tile(np.arange(10), (len(self.corpora["rows.txt"]), 1))
        np.save(folder / f"{system}.npy", ids if system == "ours" else ids + 1)


@pytest.fixture
def projects(measure: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Projects:
    """Two sets of small texts, one of them with a vocabulary, and processes that are not run."""
    annif, projects = import_module("annif"), Projects()
    (tmp_path / "vocabularies").mkdir()
    lines = [f"<http://example.org/{i}>\tname {i}\n" for i in range(12)]
    (tmp_path / "vocabularies" / "yso-en.tsv.gz").write_bytes(gzip.compress("".join(lines).encode()))
    for name, label in (("yso-finna-en", "http://example.org/{}"), ("gutenberg-lcsh", "name {}")):
        folder = tmp_path / "data" / name
        folder.mkdir(parents=True)
        (folder / "label_names.txt").write_text("".join(f"name {i}\n" for i in range(12)))
        for split, n in (("train", 50), ("test", 20)):
            (folder / f"{split}.txt").touch()
            rows = [{"text": f"{split}\t{i}", "labels": [label.format(i % 2)]} for i in range(n)]
            text = "\n".join(map(json.dumps, rows))
            (folder / f"{split}.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    monkeypatch.setenv("EXMLDS_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(annif, "HOME", tmp_path / "peers")
    monkeypatch.setattr(annif, "interpreter", lambda package, base: "python")
    monkeypatch.setattr(annif, "run_process", projects)
    return projects


def run_annif(monkeypatch: pytest.MonkeyPatch, path: Path, *arguments: str) -> dict[str, Any]:
    """The sets that a run of `annif.py` writes to the file."""
    monkeypatch.setattr(sys, "argv", ["annif.py", *arguments])
    import_module("annif").main()
    return json.loads(path.read_text())["sets"]


def test_annif_is_compared_on_the_test_rows_and_the_reading_is_logged(projects, measure, monkeypatch):
    sets = run_annif(monkeypatch, measure.RESULTS / "annif.json", "--test")
    assert list(sets) == ["gutenberg-lcsh", "yso-finna-en"]
    data = sets["yso-finna-en"]
    assert [data[key] for key in ("train", "test", "labels", "names")] == [50, 20, 2, 12]
    assert list(data["systems"]) == list(import_module("annif").SYSTEMS)
    ours, ensemble, neural = (data["systems"][key] for key in ("ours", "ensemble", "nn-ensemble"))
    assert [ours[f"P@{k}"] for k in (1, 3, 5)] == pytest.approx([0.5, 1 / 3, 0.2])
    assert [entry["fit_seconds"] for entry in (ours, ensemble, neural)] == [2, 4, 6]  # with their projects
    assert ours["ms_per_row"] == 100
    assert ensemble["against"]["P@3"][0] == pytest.approx(1 / 6)
    assert "against" not in ours
    trained = [system for step, system in projects.seen if step == "train"]
    assert trained == 2 * ["ours", "omikuji", "mllm", "omikuji-part", "nn-ensemble"]
    readings = (measure.RESULTS / "test-readings.jsonl").read_text().splitlines()
    assert [list(json.loads(line)["results"]) for line in readings] == [["gutenberg-lcsh"], ["yso-finna-en"]]
    # Ours alone, later: the others keep their figures, but the interval of a difference needs both rankings.
    path = measure.RESULTS / "annif.json"
    again = run_annif(monkeypatch, path, "--test", "--only", "ours", "--output", str(path))
    kept = again["yso-finna-en"]["systems"]["ensemble"]
    assert kept["P@3"] == ensemble["P@3"]
    assert kept["against"]["P@3"] == pytest.approx([1 / 6])
    assert import_module("tables")._difference(*kept["against"]["P@3"]) == "+16.67"


@pytest.mark.parametrize(
    ("name", "uri"), [("gutenberg-lcsh", "urn:lcsh:{}"), ("yso-finna-en", "http://example.org/{}")]
)
def test_annif_and_ours_read_the_same_files(name, uri, projects, monkeypatch, tmp_path):
    options = (
        "--rows",
        "40",
        "--test-rows",
        "10",
        "--mllm-rows",
        "12",
        "--output",
        str(tmp_path / "mine.json"),
    )
    sets = run_annif(monkeypatch, tmp_path / "mine.json", "--validation", "--sets", name, *options)
    files = projects.corpora
    for file, lines in files.items():
        (tmp_path / file).write_text("\n".join(lines))
    texts, labels = read_texts(tmp_path / "train.tsv", format="annif-tsv")
    assert all(text.startswith("train ") for text in (*texts, *files["rows.txt"]))
    assert labels == [[uri.format(int(text.split()[1]) % 2)] for text in texts]
    assert len(texts) == 40 == sets[name]["train"]
    assert len(files["rows.txt"]) == 10
    assert not set(files["rows.txt"]) & set(texts)
    held_out, part, lexical = (set(files[f"{key}.tsv"]) for key in ("held-out", "part", "lexical"))
    assert held_out | part == set(files["train.tsv"])
    assert not held_out & part
    assert lexical < part
    assert [len(held_out), len(lexical)] == [4, 12]
    words = read_vocabulary(tmp_path / "subjects-en.tsv")
    assert [(id, words.name(id)) for id in words] == [(uri.format(i), f"name {i}") for i in range(12)]


def test_annif_projects_that_fail_are_missing_with_the_ensembles_of_them(projects, monkeypatch, tmp_path):
    annif, path = import_module("annif"), tmp_path / "mine.json"
    arguments = ("--validation", "--sets", "gutenberg-lcsh", "--output", str(path))
    projects.failing = {"mllm": "no candidates"}
    found = run_annif(monkeypatch, path, *arguments)["gutenberg-lcsh"]["systems"]
    assert {key for key in found if found[key].get("missing") == "no candidates"} == {
        "mllm",
        "ensemble",
        "nn-ensemble",
    }
    projects.failing = {}

    def interpreter(package, base):
        if package == "annif":
            raise annif.Failure("no TensorFlow")
        return "python"

    monkeypatch.setattr(annif, "interpreter", interpreter)
    projects.seen.clear()
    found = run_annif(monkeypatch, path, *arguments, "--only", "mllm,nn-ensemble")["gutenberg-lcsh"][
        "systems"
    ]
    assert projects.seen == [("train", "mllm"), ("suggest", "mllm")]
    assert found["nn-ensemble"]["missing"] == "no TensorFlow"
    assert found["ensemble"]["missing"] == "no candidates"  # as it was in the file


def test_our_suggestions_are_positions_in_the_vocabulary(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    annif_fit, books = import_module("annif_fit"), make_library(200, random_state=0)
    assert books.label_names is not None
    assert books.feature_names is not None
    texts = [" ".join(books.feature_names[j] for j in books.X[i].indices) for i in range(200)]
    uris = [" ".join(f"<urn:{j}>" for j in books.Y[i].indices) for i in range(200)]
    (tmp_path / "train.tsv").write_text("".join(f"{text}\t{row}\n" for text, row in zip(texts, uris)))
    (tmp_path / "rows.txt").write_text("".join(f"{text}\n" for text in texts[:50]))
    order = np.random.default_rng(0).permutation(len(books.label_names))
    lines = [f"<urn:{j}>\t{books.label_names[j]}\n" for j in order]
    (tmp_path / "subjects-en.tsv").write_text("".join(lines))
    assert annif_fit.train_ours(tmp_path, 1) > 0
    seconds, ids = annif_fit.suggest_ours(tmp_path, 1)
    assert seconds > 0
    assert ids.shape == (50, 10)
    hits = [order[row[0]] in books.Y[i].indices for i, row in enumerate(ids)]
    assert np.mean(hits) > 0.8  # these are training texts


def test_the_table_of_annif_is_empty_before_its_results_are_there(projects, measure, monkeypatch):
    tables = import_module("tables")
    text = "<!-- table: annif -->\n<!-- end -->"
    monkeypatch.setattr(tables, "ROOT", measure.RESULTS)
    assert tables.fill(text) == text
    projects.failing = {"nn-ensemble": "no TensorFlow"}
    sets = run_annif(monkeypatch, measure.RESULTS / "annif.json", "--test")
    monkeypatch.setattr(tables, "results", lambda name: {"machine": {"cores": 2}, "sets": sets})
    assert tables.ANNIF.keys() == import_module("annif").SYSTEMS.keys()
    page = tables.fill(text)
    assert "### Annif on yso-finna-en: 50 titles × 2 labels, 12 names" in page
    rows = [line for line in page.splitlines() if line.startswith("| Annif, ensemble")]
    assert len(rows) == 2
    assert rows[0].startswith("| Annif, ensemble | 50.00/16.67/10.00 | ")
    assert "Missing: Annif, neural ensemble (no TensorFlow)." in page


@pytest.fixture
def results(fits: Fits, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """Results of a comparison with all efforts and a missing system; the tables and figures show them."""
    fits.failing = {"one-vs-rest": "needs a week"}
    run_peers(monkeypatch, tmp_path / "peers.json", "--seeds", "1")
    tables, figures = import_module("tables"), import_module("figures")
    found = {"peers": json.loads((tmp_path / "peers.json").read_text())}
    for module in (tables, figures):
        monkeypatch.setattr(module, "results", found.__getitem__)
    return found


def test_tables_and_figures_show_every_method_and_say_what_is_missing(results):
    tables, figures = import_module("tables"), import_module("figures")
    assert tables.PEERS.keys() == import_module("peers").FITS.keys() == figures.COLORS.keys()
    page = tables.peers()
    assert page.startswith("\n### library: 200 rows × 371 features × 37 labels\n\n| method |")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    assert {len(row) for row in rows} == {7}
    assert [row[0][2:] for row in rows[2:]] == [
        name for peer, name in tables.PEERS.items() if peer != "one-vs-rest"
    ]
    assert {row[0][2:]: row[3] for row in rows}["`ExMLDS()`"] == "2.0"
    assert "Runs: 1 of each method." in page
    assert "Missing: scikit-learn, one-vs-rest (needs a week)." in page
    assert tables.psp().count("(") >= 8 * 3
    drawn = figures.peers()
    assert all((color in drawn) == (peer != "one-vs-rest") for peer, color in figures.COLORS.items())
    # Only other systems are peers: the efforts of ours are neither the most accurate peer nor compared with.
    assert tables.ahead().splitlines()[-1].split(" | ")[4] == tables.PEERS["pecos"]
    assert "of 18 comparisons" in tables.differences()


def test_tables_leave_out_sets_and_methods_that_are_not_measured(results):
    tables, figures = import_module("tables"), import_module("figures")
    data = results["peers"]["sets"]["library"]
    results["peers"]["sets"]["other"] = {**data, "peers": {"bonsai": data["peers"]["bonsai"]}}
    data["peers"] = {peer: data["peers"][peer] for peer in ("ours", "bonsai")}
    assert len(tables.ahead().splitlines()) == 3
    assert " | – | " in tables.peers()  # without PECOS, there is no multiple of its time
    assert figures.peers().count("P@1</text>") == 2


def test_the_growth_is_shown_with_its_exponents(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    tables, figures, scaling = (import_module(name) for name in ("tables", "figures", "scaling"))
    sizes = {"ms_per_row": 0.1, "P@1": 0.5, "P@3": 0.4, "P@5": 0.3}
    runs: list[dict[str, Any]] = [
        {"system": system, "rows": n, "fit_seconds": n**power, "peak_bytes": 10**5 * n, **sizes}
        for system, power in (("ours", 1.25), ("pecos", 1.0))
        for n in (10_000, 100_000, 1_000_000)
    ]
    runs.append({"system": "ours-best", "rows": 100_000, "missing": "took more than 60 minutes"})
    shape = {"features": 60_000, "labels": 25_000, "features_per_row": 8.2}
    series = {name: {**shape, "runs": runs, "exponents": scaling.exponents(runs)} for name in scaling.SERIES}
    for module in (tables, figures):
        monkeypatch.setattr(module, "results", lambda name: {"series": series})
    page = tables.scaling()
    assert "### Titles of yso-finna-en: 60,000 features × 25,000 labels, 8 features per row" in page
    assert "| 10,000 | `ExMLDS()` | 100,000 s | 10 | 1.00 GB | 0.10 | 50.00/40.00/30.00 |" in page
    assert "| grows as | `ExMLDS()` | n^1.25 |  | n^1.00 |  |  |" in page
    assert "missing: took more than 60 minutes" in page
    assert figures.scaling().count(">1.25<") == len(scaling.SERIES)


def test_parts_are_measured_beside_the_whole(measure, monkeypatch, tmp_path):
    cluster = import_module("cluster")
    (tmp_path / "tiny").mkdir()
    write_xc(tmp_path / "tiny" / "train.txt", make_library(400, random_state=0))
    monkeypatch.setenv("EXMLDS_DATA", str(tmp_path))
    monkeypatch.setattr(cluster, "SETS", {"tiny": (2,)})
    monkeypatch.setattr(cluster, "N_VALIDATION", {"tiny": 100})
    monkeypatch.setattr(cluster, "ExMLDS", FeatureNeighbors)
    monkeypatch.setattr(cluster, "Partitioned", partial(Partitioned, estimator=FeatureNeighbors()))
    path = tmp_path / "mine.json"
    path.write_text('{"scheduler": {"seconds": 3}}')
    words = ["cluster.py", "--output", str(path), "quality", "--validation", "--set", "tiny"]
    monkeypatch.setattr(sys, "argv", words)
    cluster.main()
    found = json.loads(path.read_text())
    assert found["scheduler"] == {"seconds": 3}
    figures = found["quality, validation"]["tiny"]
    assert set(figures) == {"whole", "2 parts"}
    assert all(system["P@1"] > 80 for system in figures.values())


def test_what_more_workers_bring_is_bounded_by_the_router_and_the_largest_part(measure, monkeypatch):
    tables = import_module("tables")

    def stage(tasks, cpu):
        return {"tasks": tasks, "seconds": 1.5 * cpu, "cpu_seconds": cpu}

    stages = {"learning the router": stage(1, 10.0), "routing rows": stage(100, 50.0)}
    stages |= {"fitting parts": stage(16, 160.0), "driver": stage(1, 2.0)}
    run = {"rows": 10**6, "fit_seconds": 100.0, "seconds": 103.0, "largest_part": 2.0, "stages": stages}
    # A router of 10 s, 3 s of the driver, and 117 tasks of 5 ms are the same for all.
    least = 10 + 3 + 117 * 0.005
    assert tables.expected_seconds(run, 1, 5.0) == pytest.approx(least + 50 + 160)
    assert tables.expected_seconds(run, 2, 5.0) == pytest.approx(least + 25 + 80)
    assert tables.expected_seconds(run, 128, 5.0) == pytest.approx(least + 0.5 + 20)

    memory = dict.fromkeys(("driver_peak_bytes", "model_bytes", "disk_peak_bytes"), 10**9)
    memory |= {"worker_peak_bytes": [10**9, 2 * 10**9], "shards": 20, "parts": 16, "rows_per_second": 900}
    small = {**run, **memory, "rows": 10**5, "fit_seconds": 10.0}
    figures = {
        "scheduler": {"tasks": 10_000, "seconds": 50.0},
        "workers": {"tiny": {"rows": 10**6, "1": run, "2": {**run, "fit_seconds": 50.0}}},
        "memory": {"1e+06": {**run, **memory}, "1e+05": small},
    }
    monkeypatch.setattr(tables, "results", lambda name: figures)
    assert "| tiny | **all** |  | **100.0 s** | **50.0 s** | **2.00×** |" in tables.workers()
    assert "| made-up, 1,000,000 rows | 16 | 224 s | 5.8% | 119 s, 1.9× |" in tables.more_workers()
    lines = tables.in_little_memory().splitlines()
    assert lines[2].startswith("| 100,000 | 20 | 16 | 10 s | 222 s | 1.00 and 2.00 GB | 1.00 GB |")
    assert lines[-1].startswith("| grows as |  |  | n^1.00 | n^0.00 |")
    monkeypatch.setattr(tables, "results", lambda name: {})
    assert not tables.workers() + tables.more_workers() + tables.in_little_memory()


def test_each_seed_of_growth_has_a_validation_split_of_its_own(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    growth, books = import_module("growth"), make_library(100, random_state=0)
    (tmp_path / "library").mkdir()
    for name in ("train", "test"):
        write_xc(tmp_path / "library" / f"{name}.txt", books._replace(label_names=None))
    monkeypatch.setenv("EXMLDS_DATA", str(tmp_path))
    first, second, again = (growth.read("library", True, seed) for seed in (0, 1, 0))
    assert (first.queries != second.queries).nnz > 0
    assert (first.queries != again.queries).nnz == 0
    assert first.n_first == 64


def test_figures_of_several_validation_splits_have_standard_errors(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    tables = import_module("tables")
    full = dict.fromkeys(("P@1", "P@3", "P@5"), 50.0)
    runs = [{"full": full, "grown": {**full, "P@3": 50 - loss}} for loss in (0.1, 0.3)]
    hidden = {"full": 0.2, "grown": 0.18}
    data = {"runs": runs, "hidden": hidden, "batch": 0.04, "growing": 0.05, "one_row": 9.0, "slower": 1.1}
    monkeypatch.setattr(tables, "results", lambda name: {"sets": {"tiny": data}})
    row = "| tiny | 2 | +0.00 ± 0.00 | −0.20 ± 0.10 | +0.00 ± 0.00 | 0.90 | 4.0%, 5.0% | 9.00 | 1.10× |"
    assert tables.growth_validation().splitlines()[-1] == row
    splits = [
        {"pairs": 1_000, "named": 0.1, "named_in_ten": share, "wrong_first": 0.01} for share in (0.5, 0.6)
    ]
    monkeypatch.setattr(tables, "results", lambda name: {"sets": {"tiny": {"hidden_on_splits": splits}}})
    assert tables.hidden_labels().splitlines()[-1] == "| tiny | 2 | 200 | 55.0 ± 5.0% | 1.00% |"


def test_labels_are_hidden_on_several_splits_of_training_texts_only(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    assert run(import_module("names"), monkeypatch, "--test", "--hidden", "2") == 2
    assert "it needs --validation" in capsys.readouterr().err


def test_later_texts_of_reuters_are_predicted_from_earlier_ones(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    texts = import_module("texts")
    (tmp_path / "reuters21578-90").mkdir()
    rows = [{"text": f"{word} prices rise", "labels": [word]} for word in ("corn", "gold", "oil") * 20]
    with gzip.open(tmp_path / "reuters21578-90" / "train.jsonl.gz", "wt") as file:
        file.write("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "reuters21578-90" / "train.txt").touch()
    monkeypatch.setenv("EXMLDS_DATA", str(tmp_path))
    monkeypatch.setattr(texts, "CHRONOLOGICAL", (0.5, 0.8))
    found = texts.chronological()
    assert [split["test"] for split in found["splits"]] == [6, 6]
    assert all(split["P@1"] == split["F1"] == 1 for split in found["splits"])
    assert texts.f1_of(np.array([[1.0, 2.0, 1.0], [0.0, 0.0, 1.0]])) == 0.5
