"""A model on disk: whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import exmlds
from exmlds import DataWarning, FeatureNeighbors, ModelError, MostFrequent, XMCEstimator, XMCPredictor
from exmlds.data import Dataset, make_library
from exmlds.stages.index import Index, Segment
from exmlds.storage import model_folder


@pytest.fixture
def saved(tmp_path: Path, library: Dataset) -> Path:
    path = tmp_path / "model"
    FeatureNeighbors(random_state=0).fit(library.X, library.Y, label_names=library.label_names).save(path)
    return path


def test_every_kind_of_state_comes_back(tmp_path: Path) -> None:
    names = np.empty(3, object)
    names[:] = ["ä", "", "long " * 50]
    state = {
        "plain": [None, True, 3, 0.5, "x", [1, 2], {"a": 1}],
        "empty": np.empty((0, 3), np.float32),
        "array": np.arange(6, dtype=np.int16).reshape(2, 3),
        "strings": names,
        "csr": csr_matrix(np.eye(3, dtype=np.float32)),
        "index": Index(
            [Segment(np.ones((2, 2), np.float32), np.zeros(2, np.float32))], "cosine", np.zeros(0)
        ),
        "number": np.float64(0.25),
    }
    model_folder.save(tmp_path / "m", {"class": "X"}, state)
    manifest, back = model_folder.load(tmp_path / "m")
    assert manifest["class"] == "X"
    assert back["plain"] == state["plain"]
    assert back["number"] == 0.25
    assert back["strings"].tolist() == names.tolist()
    assert (back["csr"] != state["csr"]).nnz == 0
    assert isinstance(back["index"], Index)
    assert isinstance(back["index"].segments[0], Segment)
    for name in ("empty", "array"):
        np.testing.assert_array_equal(back[name], state[name])
        assert back[name].dtype == state[name].dtype
    with pytest.raises(ModelError, match="state.bad cannot be saved: it is a set"):
        model_folder.save(tmp_path / "m", {}, {"bad": {1}})
    assert model_folder.load(tmp_path / "m")[0]["class"] == "X"


def test_no_pickle_anywhere(saved: Path) -> None:
    files = [path for path in saved.rglob("*") if path.is_file() and path.name != ".lock"]
    assert {path.suffix for path in files} == {".json", ".npy"}
    for path in saved.rglob("*.npy"):
        assert np.load(path, allow_pickle=False) is not None


def test_arrays_are_mapped_not_read(saved: Path) -> None:
    rows = exmlds.load(saved).index_.segments[0].rows  # type: ignore[attr-defined]
    base = rows.data
    while base.base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)


def test_saving_again_replaces_and_cleans_up(saved: Path, library: Dataset) -> None:
    MostFrequent().fit(library.X, library.Y).save(saved)
    assert isinstance(exmlds.load(saved), MostFrequent)
    assert len(list(saved.glob("g-*"))) == 1


def test_a_loaded_model_can_be_saved_over_itself(saved: Path, library: Dataset) -> None:
    model = exmlds.load(saved)
    expected = model.predict_topk(library.X)
    model.save(saved)
    np.testing.assert_array_equal(model.predict_topk(library.X)[0], expected[0])
    np.testing.assert_array_equal(exmlds.load(saved).predict_topk(library.X)[0], expected[0])


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)


def edited(**changes: Any) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        manifest = json.loads((folder / "manifest.json").read_text())
        (folder / "manifest.json").write_text(json.dumps({**manifest, **changes}))

    return edit


def biggest(folder: Path) -> Path:
    return max(folder.rglob("*.npy"), key=lambda path: path.stat().st_size)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda m: cut(biggest(m)), "wrong size"),
        (lambda m: biggest(m).unlink(), "files of it are missing"),
        (lambda m: shutil.rmtree(next(m.glob("g-*"))), "files of it are missing"),
        (lambda m: cut(m / "manifest.json"), "manifest.json cannot be read"),
        (lambda m: (m / "manifest.json").unlink(), "is not a model"),
        (lambda m: shutil.rmtree(m), "no such model"),
        (lambda m: (m / "manifest.json").write_text("[1]"), "not a model of exmlds"),
        (edited(package="other"), "not a model of exmlds"),
        (edited(format=99, version="9.0"), r"newer exmlds \(9.0, format 99.*Upgrade"),
        (edited(parameters={"n_neighbors": 3}), "does not match its checksum"),
    ],
)
def test_damaged_foreign_and_newer_models_are_refused(
    saved: Path, damage: Callable[[Path], None], message: str
) -> None:
    damage(saved)
    with pytest.raises(ModelError, match=message):
        exmlds.load(saved)


def test_verify_finds_a_flipped_bit(saved: Path) -> None:
    assert model_folder.verify(saved) == []
    values = next(saved.rglob("*.rows.data.npy"))
    flip(values)
    assert exmlds.load(saved) is not None  # sizes are right
    assert model_folder.verify(saved) == [f"{values.name} has changed"]
    values.unlink()
    assert "is missing" in model_folder.verify(saved)[0]


def test_wrong_indices_are_refused_before_they_crash(saved: Path) -> None:
    for path in saved.rglob("*.indices.npy"):
        flip(path)
        with pytest.raises(ModelError, match=f"{path.name} has changed"):
            exmlds.load(saved)
        flip(path)
    assert exmlds.load(saved) is not None


def test_an_interruption_after_the_commit_keeps_the_model(
    saved: Path, library: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.replace

    def interrupted(*paths: Path) -> None:
        real(*paths)
        raise KeyboardInterrupt

    model = MostFrequent().fit(library.X, library.Y)
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.save(saved)
    assert isinstance(exmlds.load(saved), MostFrequent)


def test_foreign_folders_are_left_alone(tmp_path: Path, library: Dataset) -> None:
    model = MostFrequent().fit(library.X, library.Y)
    for files in ({"manifest.json": '{"name": "my web app"}', "g-photos/x.jpg": ""}, {"g-drive/x": ""}):
        folder = tmp_path / str(len(files))
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        with pytest.raises(ModelError, match="holds something else"):
            model.save(folder)
        assert all((folder / name).read_text() == text for name, text in files.items())


def test_names_with_dots_and_slashes_do_not_mix(tmp_path: Path) -> None:
    state = {"a.b": np.zeros(2), "a": {"b": np.ones(2)}, "../c": np.full(2, 2)}
    model_folder.save(tmp_path / "m", {}, state)
    back = model_folder.load(tmp_path / "m")[1]
    assert (back["a.b"][0], back["a"]["b"][0], back["../c"][0]) == (0, 1, 2)


def test_only_model_folders_are_written_to(tmp_path: Path, library: Dataset) -> None:
    model = MostFrequent().fit(library.X, library.Y)
    (tmp_path / "file").write_text("precious")
    with pytest.raises(ModelError, match="is a file"):
        model.save(tmp_path / "file")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.txt").write_text("precious")
    with pytest.raises(ModelError, match="holds something else"):
        model.save(tmp_path / "folder")
    with pytest.raises(ModelError, match="cannot be written"):
        model.save(tmp_path / "file" / "model")
    (tmp_path / "empty").mkdir()
    model.save(tmp_path / "empty")
    assert isinstance(exmlds.load(tmp_path / "empty"), MostFrequent)


def test_a_failed_first_save_leaves_nothing(tmp_path: Path, library: Dataset) -> None:
    model = MostFrequent().fit(library.X, library.Y)
    model.broken_ = object()  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match="broken_ cannot be saved"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_generator_as_random_state_is_omitted_with_a_warning(tmp_path: Path, library: Dataset) -> None:
    model = MostFrequent(random_state=np.random.RandomState(0)).fit(library.X, library.Y)
    with pytest.warns(DataWarning, match="'random_state' parameter, a RandomState, is not saved"):
        model.save(tmp_path / "model")
    assert exmlds.load(tmp_path / "model").random_state is None


class Derived(MostFrequent):
    """A user's own method."""


def test_derived_classes_come_back_as_themselves(tmp_path: Path, library: Dataset) -> None:
    Derived().fit(library.X, library.Y).save(tmp_path / "model")
    assert type(exmlds.load(tmp_path / "model")) is Derived


def test_unknown_classes_are_refused(saved: Path) -> None:
    _manifest, state = model_folder.load(saved)
    model_folder.save(saved, {"version": "1", "class": "Nonsense", "parameters": {}}, state)
    with pytest.raises(ModelError, match="is a Nonsense, which this version"):
        exmlds.load(saved)
    model_folder.save(saved, {"version": "1", "class": "MostFrequent", "parameters": {"odd": 1}}, state)
    with pytest.raises(ModelError, match="parameters that MostFrequent does not take"):
        exmlds.load(saved)


@pytest.mark.parametrize("tag", ["model_folder.save", "__main__.anything", "router/0", "router/1", None])
def test_a_manifest_names_registered_records_only(saved: Path, tag: Any) -> None:
    odd = {"$record": tag, "fields": {"path": "elsewhere"}}
    _change_manifest(saved, lambda manifest: manifest["state"]["$dict"].update(odd_=odd))
    with pytest.raises(ModelError, match="that this version of exmlds cannot read"):
        exmlds.load(saved)


def test_every_record_is_a_named_tuple_with_as_many_fields() -> None:
    for tag, record in model_folder.RECORDS.items():
        kind = getattr(import_module(record.module), record.name)
        assert len(kind._fields) == len(record.fields), tag


class Own(NamedTuple):
    numbers: np.ndarray


def test_a_record_without_a_tag_is_refused_and_one_with_a_tag_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_folder, "RECORDS", dict(model_folder.RECORDS))
    monkeypatch.setitem(sys.modules, Own.__module__, sys.modules[__name__])
    with pytest.raises(ModelError, match="Own has no tag"):
        model_folder.save(tmp_path / "model", {}, {"own": Own(np.arange(3))})
    model_folder.register("own/1", Own)
    model_folder.save(tmp_path / "model", {}, {"own": Own(np.arange(3))})
    assert model_folder.load(tmp_path / "model")[1]["own"].numbers.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="is taken"):
        model_folder.register("router/1", Own)


@pytest.mark.parametrize(
    "changed",
    [
        {"generation": "../model/g-0123456789ab"},
        {"generation": ".."},
        {"generation": None},
        {"files": {"../manifest.json": {}}},
        {"files": {"..": {}}},
        {"files": []},
    ],
    ids=str,
)
def test_a_manifest_names_files_of_its_folder_only(saved: Path, changed: dict[str, Any]) -> None:
    _change_manifest(saved, lambda manifest: manifest.update(changed))
    for opening in (exmlds.load, model_folder.verify):
        with pytest.raises(ModelError, match="names files outside of itself"):
            opening(saved)


def _change_manifest(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Rewrite the manifest with a valid checksum."""
    path = folder / model_folder.MANIFEST
    manifest = json.loads(path.read_text())
    manifest.pop("checksum")
    change(manifest)
    checksum = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps({**manifest, "checksum": checksum}))


def test_a_loaded_model_pickles(saved: Path, library: Dataset) -> None:
    model = exmlds.load(saved)
    again: XMCEstimator = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_topk(library.X)[0], model.predict_topk(library.X)[0])


SAVER = """
import sys
import numpy as np
from exmlds.storage import model_folder
n = 0
while True:
    n += 1
    arrays = {f"a{i}": np.full(200_000, n) for i in range(8)}
    model_folder.save(sys.argv[1], {"class": "X", "n": n}, arrays)
    print(n, flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills with SIGKILL")
def test_kill_during_save_never_leaves_half_a_model(tmp_path: Path) -> None:
    path = tmp_path / "model"
    rng = np.random.default_rng(0)
    interrupted = 0
    for _ in range(12):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVER, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()  # the first save is done; the next ones are under way
        time.sleep(float(rng.uniform(0, 0.08)))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        process.stderr.close()
        manifest, state = model_folder.load(path)
        assert model_folder.verify(path) == []
        assert all((array == manifest["n"]).all() for array in state.values())
        interrupted += len(list(path.glob("g-*"))) > 1
    assert interrupted > 0, "no kill fell into a save"
    model_folder.save(path, {"class": "X", "n": 0}, {})
    assert len(list(path.glob("g-*"))) == 1


READER = """
import sys
from exmlds.storage import model_folder
for _ in range(150):
    manifest, state = model_folder.load(sys.argv[1])
    assert all((array == manifest["n"]).all() for array in state.values())
print("fine")
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="an open file cannot be replaced elsewhere")
def test_a_reader_never_sees_half_a_model(tmp_path: Path) -> None:
    path = tmp_path / "model"
    writer = subprocess.Popen([sys.executable, "-c", SAVER, str(path)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    try:
        writer.stdout.readline()
        reader = subprocess.run([sys.executable, "-c", READER, str(path)], capture_output=True, text=True)
    finally:
        writer.kill()
        writer.wait()
        writer.stdout.close()
    assert reader.stdout == "fine\n", reader.stderr


@pytest.mark.parametrize("archive", sorted(Path(__file__).parent.glob("saved-*.zip")), ids=lambda p: p.stem)
def test_models_of_older_versions_still_load(archive: Path, tmp_path: Path) -> None:
    """A small model of each class, written by `make_saved.py` when that version was made."""
    shutil.unpack_archive(archive, tmp_path)
    expected = json.loads((tmp_path / "expected.json").read_text())
    rows = make_library(80, random_state=0).X[60:]
    public = (getattr(exmlds, name) for name in exmlds.__all__)
    concrete = {kind.__name__ for kind in public if isinstance(kind, type) and issubclass(kind, XMCPredictor)}
    assert set(expected) == concrete - {"XMCEstimator", "XMCPredictor"}
    for name, labels in expected.items():
        model = exmlds.load(tmp_path / name)
        assert type(model).__name__ == name
        queries = list(model.texts_) if name == "TextClassifier" else rows
        assert model.predict_labels(queries, k=1) == labels, name


def test_manifests_name_neither_modules_nor_attributes(tmp_path: Path) -> None:
    (archive,) = Path(__file__).parent.glob("saved-0.1.0.zip")
    shutil.unpack_archive(archive, tmp_path)
    for path in tmp_path.glob("*/manifest.json"):
        manifest = json.loads(path.read_text())
        assert set(manifest["state"]["$dict"]) <= set(model_folder.ATTRIBUTES.values()), path
        assert "exmlds." not in json.dumps(manifest["state"])


@pytest.mark.parametrize(
    "changed",
    [
        {"class": 5},
        {"class": ["MostFrequent"]},
        {"class": None},
        {"parameters": []},
        {"state": {"$dict": {"predict_topk": 5}}},
        {"state": {"$dict": {"engine": 5}}},
        {"state": 5},
        {"state": {"$array": "../../manifest.json", "shape": [1], "dtype": "<i8"}},
        {"state": {"$dict": {"labels": {"$array": ["a"], "shape": [1], "dtype": "<i8"}}}},
        {"state": {"$dict": {"labels": {"$csr": 5, "shape": [1, 1]}}}},
        {"state": {"$dict": {"labels": {"$record": "router/1"}}}},
        {"format": 1},
    ],
    ids=str,
)
def test_a_crafted_manifest_is_refused(saved: Path, changed: dict[str, Any]) -> None:
    _change_manifest(saved, lambda manifest: manifest.update(changed))
    with pytest.raises(ModelError):
        exmlds.load(saved)
