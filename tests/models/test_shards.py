"""Fits to shards: out of core, on workers that are killed, and with drivers that are."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import exmlds
from exmlds import DataError, ExMLDS4, FeatureNeighbors, ModelError, Partitioned, TextClassifier
from exmlds.data import Dataset, find_shards, make_library, open_shards, write_npz, write_xc
from exmlds.data.shards import MatrixShard
from exmlds.models import partition_tasks
from exmlds.models.analyzers import TermVectorizer
from exmlds.models.partition_tasks import Plan
from exmlds.runtime import cluster
from exmlds.storage import files, row_file
from exmlds.storage.inner import InnerModel

N, N_SHARDS = 900, 3


@pytest.fixture(scope="module")
def books() -> Dataset:
    return make_library(N + 200, random_state=0)


@pytest.fixture(scope="module")
def folder(books: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same rows as numbers and as texts, in three files each."""
    path = tmp_path_factory.mktemp("shards")
    assert books.label_names is not None
    (path / "label_names.txt").write_text("\n".join(books.label_names) + "\n")
    for number in range(N_SHARDS):
        rows = books.rows(slice(number * N // N_SHARDS, (number + 1) * N // N_SHARDS))
        write_xc(path / f"train-{number}.txt.gz", Dataset(rows.X, rows.Y))
        write_npz(path / f"X.{number}.npz", Dataset(rows.X, rows.Y))
        with gzip.open(path / f"texts-{number}.jsonl.gz", "wt") as file:
            for text, labels in zip(texts_of(rows), labels_of(rows)):
                file.write(json.dumps({"text": text, "labels": labels}) + "\n")
    return path


def texts_of(rows: Dataset) -> list[str]:
    assert rows.feature_names is not None
    return [" ".join(rows.feature_names[j] for j in row.indices) for row in rows.X]


def labels_of(rows: Dataset) -> list[list[str]]:
    assert rows.label_names is not None
    return [[rows.label_names[j] for j in row.indices] for row in rows.Y]


def model(**parameters: Any) -> Partitioned:
    settings = {"estimator": FeatureNeighbors(), "n_parts": 2, "random_state": 0}
    return Partitioned(**{**settings, **parameters})


def fitted(folder: Path, path: Path, **parameters: Any) -> Any:
    shards, names = open_shards(find_shards(folder / "train-*.txt.gz"))
    return model(**parameters).fit_shards(shards, path, label_names=names)


@pytest.fixture(scope="module")
def expected(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("expected") / "model"
    fitted(folder, path)
    return path


def same_arrays(one: Path, other: Path) -> bool:
    def by_part(path: Path) -> dict[str, bytes]:
        (own,) = path.glob("arrays-*.bin")
        parts = {file.parent.name: file.read_bytes() for file in path.glob("parts-*/*/arrays-*.bin")}
        return {"whole": own.read_bytes(), **parts}

    return by_part(one) == by_part(other)


def test_a_fit_to_shards_is_a_model_as_any_other(expected: Path, books: Dataset) -> None:
    loaded = exmlds.load(expected)
    test = books.rows(slice(N, None))
    assert loaded.classes_.tolist() == books.label_names
    assert (loaded.n_samples_fit_, len(loaded.parts_)) == (N, 2)
    np.testing.assert_array_equal(loaded.label_counts_, books.Y[:N].sum(axis=0).A1)
    assert loaded.score(test.X, test.Y) > 0.9
    assert not expected.with_name("model.work").exists()


def test_rows_of_parts_are_those_of_the_shards_in_their_order(expected: Path, books: Dataset) -> None:
    loaded = exmlds.load(expected)
    for part, rows in zip(loaded.parts_, loaded.part_rows_):
        assert (np.diff(rows) > 0).all()
        counts = np.bincount(books.Y[rows].indices, minlength=len(books.label_names or ()))
        np.testing.assert_array_equal(part.label_counts_, counts[counts > 0])


def test_pairs_of_npz_are_shards_too(folder: Path, expected: Path, tmp_path: Path) -> None:
    paths = find_shards(folder / "*.npz")
    assert [path.name for path in paths] == [f"X.{number}.npz" for number in range(N_SHARDS)]
    shards, names = open_shards(paths)
    model().fit_shards(shards, tmp_path / "m", label_names=names)
    assert same_arrays(tmp_path / "m", expected)


def test_the_widths_of_pairs_are_read_without_their_values(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = find_shards(folder / "*.npz")
    (tmp_path / "X.0.npz").write_bytes(paths[0].read_bytes()[:500])
    (tmp_path / "Y.0.npz").write_bytes(b"")
    with pytest.raises(DataError, match=r"X.0.npz: cannot be read as a sparse matrix"):
        open_shards([tmp_path / "X.0.npz"])
    monkeypatch.delattr("exmlds.data.shards.read_npz")
    shards, _ = open_shards(paths)
    assert isinstance(shards[0], MatrixShard)
    assert (shards[0].n_features, shards[0].n_labels) == (371, 37)


def test_a_driver_leaves_the_parts_on_disk(
    folder: Path, expected: Path, tmp_path: Path, books: Dataset
) -> None:
    own = fitted(folder, tmp_path / "m")
    assert all(isinstance(part, InnerModel) for part in own.parts_)
    loaded = exmlds.load(expected)
    assert not any(isinstance(part, InnerModel) for part in loaded.parts_)
    for found, known in zip(own.predict_topk(books.X[N:]), loaded.predict_topk(books.X[N:])):
        np.testing.assert_array_equal(found, known)


def test_the_largest_part_is_fitted_first(tmp_path: Path) -> None:
    plan = Plan(tmp_path, 0, FeatureNeighbors(), None, 2, 0.75, n_parts=3)
    for number, sizes in enumerate([(5, 50, 10), (20, 0, 30)]):
        records = [(f"part-{part}", np.ones(1000 * size)) for part, size in enumerate(sizes) if size]
        row_file.write(plan.path("routed", number), records)
    assert partition_tasks._largest_first(plan, 2) == [1, 2, 0]


def test_one_part_of_shards_is_the_estimator(folder: Path, books: Dataset, tmp_path: Path) -> None:
    one = fitted(folder, tmp_path / "m", n_parts=1)
    alone = FeatureNeighbors(random_state=0).fit(books.X[:N], books.Y[:N])
    np.testing.assert_array_equal(one.predict_topk(books.X[N:])[0], alone.predict_topk(books.X[N:])[0])


def test_a_fit_that_was_stopped_goes_on(
    folder: Path, expected: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = partition_tasks.fit_estimator
    seen: list[int] = []

    def second_fails(plan: Any, X: Any, *others: Any) -> Any:
        seen.append(X.shape[0])
        if len(seen) == 2:
            raise KeyboardInterrupt
        return fit(plan, X, *others)

    monkeypatch.setattr(partition_tasks, "fit_estimator", second_fails)
    with pytest.raises(KeyboardInterrupt):
        fitted(folder, tmp_path / "m")
    assert not (tmp_path / "m").exists()
    with pytest.raises(ModelError, match="the checkpoint of another fit: its parameters differ"):
        fitted(folder, tmp_path / "m", n_parts=3)
    fitted(folder, tmp_path / "m")
    assert len(seen) == 3  # the first part is there
    assert same_arrays(tmp_path / "m", expected)


def test_a_poisoned_row_is_named(folder: Path, tmp_path: Path) -> None:
    for path in folder.glob("train-*.txt.gz"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    lines = gzip.decompress((tmp_path / "train-1.txt.gz").read_bytes()).splitlines()
    lines[16] += b" 9999:1"
    (tmp_path / "train-1.txt.gz").write_bytes(gzip.compress(b"\n".join(lines)))
    with pytest.raises(DataError, match=r"train-1.txt.gz:17: feature index 9999 is out of range"):
        fitted(tmp_path, tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_a_full_disk_leaves_no_half_of_a_file(
    folder: Path, expected: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = files.sync

    def full(file: Any) -> None:
        if "routed-1" in str(file.name) or (isinstance(file.name, int) and is_routing):
            raise OSError(28, "No space left on device")
        sync(file)

    is_routing = False
    route = partition_tasks.route_shard

    def routing(*given: Any) -> None:
        nonlocal is_routing
        is_routing = given[1] == 1
        route(*given)
        is_routing = False

    monkeypatch.setattr(partition_tasks, "route_shard", routing)
    monkeypatch.setattr(files, "sync", full)
    with pytest.raises(DataError, match=r"routed-1: cannot be written \(No space left on device\)"):
        fitted(folder, tmp_path / "m")
    monkeypatch.undo()
    names = {path.name for path in (tmp_path / "m.work").iterdir()}
    assert names == {"run", "counted-0", "counted-1", "counted-2", "router", "routed-0"}
    fitted(folder, tmp_path / "m")
    assert same_arrays(tmp_path / "m", expected)


def test_a_disk_that_is_full_at_a_part_leaves_the_others(folder: Path, tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    estimator = ExMLDS4(n_components=100, n_epochs=1, features="l2", temperature=0.1)
    shards, _ = open_shards(find_shards(folder / "train-*.txt.gz"))
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (130_000, usual[1]))
    try:
        with pytest.raises(ModelError, match=r"model: cannot be written \(File too large\)"):
            model(estimator=estimator).fit_shards(shards, tmp_path / "m")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert not (tmp_path / "m").exists()
    names = {path.name for path in (tmp_path / "m.work").iterdir()}
    assert {"routed-0", "routed-1", "routed-2"} <= names
    assert not [name for name in names if name.startswith(".")]
    model(estimator=estimator).fit_shards(shards, tmp_path / "m")
    assert (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["train-0.txt.gz", "texts-0.jsonl.gz"], "holds numbers, but .* holds texts; shards must be of one"),
        (["train-0.txt.gz", "other.txt"], "other.txt has 5 features and 2 labels, but .* has 371 and 37"),
        (["bare.txt"], "bare.txt has no header"),
        (["missing.txt"], "there is no such file"),
    ],
)
def test_shards_must_be_alike(folder: Path, names: list[str], said: str) -> None:
    (folder / "other.txt").write_text("1 5 2\n0 1:1\n")
    (folder / "bare.txt").write_text("0 1:1\n")
    with pytest.raises(DataError, match=said):
        open_shards([folder / name for name in names])


def test_no_file_matches(folder: Path) -> None:
    with pytest.raises(DataError, match=r"none-\*.txt: no file matches"):
        find_shards(folder / "none-*.txt")


@pytest.mark.parametrize("analyzer", ["words", "stems-stops"])
def test_terms_of_shards_are_those_of_all_texts(
    analyzer: str, folder: Path, books: Dataset, tmp_path: Path
) -> None:
    shards, _ = open_shards(find_shards(folder / "texts-*.jsonl.gz"))
    classifier = TextClassifier(model(), analyzer=analyzer, max_words=None, field_weights=())
    classifier.fit_shards(shards, tmp_path / "m")
    whole = TermVectorizer(analyzer)
    vectors = whole.fit_transform(texts_of(books.rows(slice(N))))
    loaded = exmlds.load(tmp_path / "m")
    assert loaded.feature_names_.tolist() == whole.terms_
    found = loaded.vectorizer_.transform(texts_of(books.rows(slice(N))))
    np.testing.assert_allclose(found.toarray(), vectors.toarray(), rtol=1e-6)
    test = books.rows(slice(N, None))
    assert loaded.score(texts_of(test), labels_of(test)) > 0.9
    assert not (tmp_path / "m.work").exists()


def test_an_analyzer_of_shards_is_chosen(folder: Path, tmp_path: Path) -> None:
    shards, _ = open_shards(find_shards(folder / "texts-*.jsonl.gz"))
    classifier = TextClassifier(model()).fit_shards(shards, tmp_path / "m")
    assert classifier.analyzer_ in ("words", "stems", "words-stops", "stems-stops")


@pytest.mark.parametrize(
    ("classifier", "said"),
    [
        (TextClassifier(), "Shards are fitted in parts"),
        (TextClassifier(Partitioned(), vectorizer="hashing"), 'vectorizer of shards is "tfidf"'),
        (TextClassifier(Partitioned(), keep_rows=True), "takes no vocabulary, and keeps no texts"),
    ],
)
def test_texts_that_shards_cannot_have(classifier: TextClassifier, said: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=said):
        classifier.fit_shards([], tmp_path / "m")


# On a cluster.

pytest_cluster = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50, memory_limit=0
        ) as local,
        distributed.Client(local) as client,
    ):
        yield client


@pytest_cluster
def test_any_number_of_workers_gives_the_same_arrays(
    client: Any, folder: Path, expected: Path, tmp_path: Path
) -> None:
    assert cluster.current_client() is client
    fitted(folder, tmp_path / "m", n_jobs=1)
    assert same_arrays(tmp_path / "m", expected)


@pytest_cluster
def test_an_error_of_a_worker_is_raised_here(client: Any, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "train-0.txt.gz").write_bytes(b"3 5 2\n0 1:1\n0 7:1\n")
    with pytest.raises(DataError, match=r"train-0.txt.gz:3: feature index 7 is out of range"):
        fitted(tmp_path, tmp_path / "m")


@pytest_cluster
def test_a_killed_worker_costs_its_task_only(
    client: Any, folder: Path, expected: Path, tmp_path: Path
) -> None:
    (victim, *_) = client.run(os.getpid).values()

    def kill() -> None:
        while not (tmp_path / "m.work" / "counted-0").exists():
            time.sleep(0.001)
        os.kill(victim, signal.SIGKILL)

    killer = Thread(target=kill)
    killer.start()
    fitted(folder, tmp_path / "m")
    killer.join()
    assert same_arrays(tmp_path / "m", expected)


def test_a_killed_driver_goes_on_where_it_was(folder: Path, expected: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "exmlds", "train", str(folder / "train-*.txt.gz"), "-o", "m"]
    words += ["--method", "feature-neighbors", "--parts", "2", "--seed", "0", "--set", "n_jobs=1"]
    driver = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL)
    while driver.poll() is None and not (tmp_path / "m.work" / "part-0").exists():
        time.sleep(0.001)
    driver.kill()
    driver.wait()
    subprocess.run(words, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    assert same_arrays(tmp_path / "m", expected)
    assert not (tmp_path / "m.work").exists()


def test_without_dask_the_message_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(DataError, match='A cluster needs Dask: pip install "exmlds'):
        cluster.connected(n_workers=1).__enter__()
    assert cluster.current_client() is None
