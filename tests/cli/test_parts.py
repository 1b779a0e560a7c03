"""Training and predicting in parts, on the command line."""

from __future__ import annotations

import gzip
import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import load_npz, save_npz

import exmlds
from exmlds.data import Dataset, make_library, read_xc, write_npz, write_xc
from exmlds.storage import row_file


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


# Faults, with real files.


@pytest.fixture(scope="module")
def pairs(shards: Path) -> Path:
    """The same rows as pairs of .npz files, beside the others."""
    for number in range(2):
        data = read_xc(shards / f"numbers-{number}.txt")
        write_npz(shards / f"X.{number}.npz", Dataset(data.X, data.Y))
    return shards


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50, memory_limit=0
        ) as local,
        distributed.Client(local, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(params=["here", "on workers"])
def workers(request: pytest.FixtureRequest) -> Any:
    """The client of the workers that run the tasks of a command, or None: it runs them itself."""
    return None if request.param == "here" else request.getfixturevalue("client")


def train(run: Run, pattern: Path, workers: Any) -> Any:
    where = () if workers is None else ("--cluster", workers.scheduler.address)
    done = run("train", str(pattern), "-o", str(pattern.parent / "m"), "--parts", "2", *QUICK, *where)
    while workers is not None and any(workers.run(has_running_tasks).values()):
        time.sleep(0.01)  # tasks that had begun when another failed go on to their end
    return done


def has_running_tasks(dask_worker: Any) -> bool:
    return bool(dask_worker.state.all_running_tasks)


def check_nothing_is_half(folder: Path) -> None:
    """There is no model, and what the tasks have left for the next start is whole."""
    assert not (folder / "m").exists()
    left = [path for path in (folder / "m.work").rglob("*") if path.is_file()]
    assert not [path for path in left if path.name.startswith(".") and path.name != ".lock"]
    for path in left:
        if path.name.startswith(("counted", "terms", "routed", "scored", "columns")):
            assert row_file.sizes(path)


def break_line(path: Path, broken: bytes) -> None:
    """Put another line in place of the 17th."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as file:
        lines = file.read().split(b"\n")
    lines[16] = broken
    with opened(path, "wb") as file:
        file.write(b"\n".join(lines))


def break_value(path: Path) -> None:
    """Put a value that is not finite into the row 16, counted from 0."""
    X = load_npz(path).tocsr()
    X.data[X.indptr[16]] = np.nan
    save_npz(path, X)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("pattern", "spoil", "said"),
    [
        (
            "numbers-*.txt",
            lambda folder: break_line(folder / "numbers-1.txt", b"0 370:nan"),
            "numbers-1.txt:17: '370:nan' is not a finite float32",
        ),
        (
            "texts-*.jsonl.gz",
            lambda folder: break_line(folder / "texts-1.jsonl.gz", b'{"text": "an", "labels": 5'),
            "texts-1.jsonl.gz:17:27: not JSON",
        ),
        (
            "X.*.npz",
            lambda folder: break_value(folder / "X.1.npz"),
            "X.1.npz: row 16, counted from 0, holds nan, which is not finite",
        ),
    ],
    ids=["numbers", "texts", "pairs"],
)
def test_a_poisoned_row_is_named_by_file_and_line(
    run: Run,
    pairs: Path,
    tmp_path: Path,
    workers: Any,
    pattern: str,
    spoil: Callable[[Path], None],
    said: str,
) -> None:
    shutil.copytree(pairs, tmp_path, dirs_exist_ok=True)
    spoil(tmp_path)
    done = train(run, tmp_path / pattern, workers)
    assert done.code == 2
    (message,) = [line for line in done.err.splitlines() if "dashboard" not in line]
    assert said in message
    check_nothing_is_half(tmp_path)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("pattern", "name", "said"),
    [
        ("texts-*.jsonl.gz", "texts-1.jsonl.gz", "damaged or truncated gzip file"),
        ("numbers-*.txt.gz", "numbers-1.txt.gz", "damaged or truncated gzip file"),
        ("X.*.npz", "Y.1.npz", "cannot be read as a sparse matrix"),
    ],
)
def test_an_unreadable_shard_is_named(
    run: Run, pairs: Path, tmp_path: Path, workers: Any, pattern: str, name: str, said: str
) -> None:
    shutil.copytree(pairs, tmp_path, dirs_exist_ok=True)
    for path in tmp_path.glob("numbers-*.txt"):
        path.with_suffix(".txt.gz").write_bytes(gzip.compress(path.read_bytes()))
    raw = bytearray((tmp_path / name).read_bytes())
    raw[len(raw) // 2 : len(raw) // 2 + 40] = bytes(40)
    (tmp_path / name).write_bytes(raw)
    done = train(run, tmp_path / pattern, workers)
    assert done.code == 2
    (message,) = [line for line in done.err.splitlines() if "dashboard" not in line]
    assert f"{name}: {said}" in message
    check_nothing_is_half(tmp_path)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("pattern", ["numbers-*.txt", "texts-*.jsonl.gz", "X.*.npz"])
@pytest.mark.parametrize("size", [500, 6_000, 14_000, 30_000])
def test_a_full_disk_is_named_and_the_next_start_goes_on(
    run: Run, pairs: Path, tmp_path: Path, workers: Any, pattern: str, size: int
) -> None:
    """Files may have so many bytes at most: the first that grows longer fails as on a full disk."""
    resource = pytest.importorskip("resource")
    shutil.copytree(pairs, tmp_path, dirs_exist_ok=True)
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    call = workers.run if workers is not None else lambda work, *given: work(*given)
    call(resource.setrlimit, resource.RLIMIT_FSIZE, (size, usual[1]))
    try:
        done = train(run, tmp_path / pattern, workers)
    finally:
        call(resource.setrlimit, resource.RLIMIT_FSIZE, usual)
    assert done.code == 2
    (message,) = [line for line in done.err.splitlines() if "dashboard" not in line]
    assert "cannot be written (File too large)" in message
    check_nothing_is_half(tmp_path)
    assert train(run, tmp_path / pattern, workers).code == 0
    assert len(exmlds.load(tmp_path / "m")._method.parts_) == 2
    assert not (tmp_path / "m.work").exists()
