"""A model on disk: whole or not at all."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import exmlds
from exmlds import (
    DataError,
    DataWarning,
    FeatureNeighbors,
    ModelError,
    MostFrequent,
    XMCEstimator,
    XMCPredictor,
)
from exmlds.data import Dataset, make_library
from exmlds.errors import NoKnownWordWarning
from exmlds.stages import cells
from exmlds.stages.index import Index, Segment
from exmlds.stages.joint import JointState
from exmlds.storage import array_file, lock, model_folder, records
from exmlds.storage.checkpoint import Checkpoint
from exmlds.storage.files import replacing
from exmlds.voting.votes import Settings

ARCHIVE = Path(__file__).parent / "saved-0.1.0.zip"


def _sibling(name: str) -> Any:
    """A module beside this one, which the benchmarks use too."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


crafted = _sibling("crafted")


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
    with pytest.raises(ModelError, match="^bad cannot be saved: it is a set. What a fit learns must"):
        model_folder.save(tmp_path / "m", {}, {"bad": {1}})
    assert model_folder.load(tmp_path / "m")[0]["class"] == "X"


def test_a_model_is_a_manifest_and_one_file_of_arrays(saved: Path) -> None:
    names = sorted(path.name.partition("-")[0] for path in saved.iterdir())
    assert names == [".lock", "README.md", "arrays", "manifest.json"]


def test_a_loaded_model_needs_its_files_no_longer(saved: Path, library: Dataset) -> None:
    model = exmlds.load(saved)
    expected = model.predict_topk(library.X)
    arrays_of(saved).write_bytes(bytes(arrays_of(saved).stat().st_size))
    np.testing.assert_array_equal(model.predict_topk(library.X)[0], expected[0])
    arrays_of(saved).write_bytes(b"")
    np.testing.assert_array_equal(model.predict_topk(library.X)[1], expected[1])


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors in /proc")
def test_a_loaded_model_has_no_open_files(saved: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    models = [exmlds.load(saved) for _ in range(20)]
    assert (len(models), len(os.listdir("/proc/self/fd"))) == (20, before)


@pytest.mark.skipif(os.name != "posix", reason="limits descriptors")
def test_too_many_open_files_and_permissions_are_not_called_damage(saved: Path) -> None:
    import resource

    held, limits = [], resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
    try:
        with suppress(OSError):
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        with pytest.raises(ModelError, match=r"manifest.json: cannot be opened \(Too many open files"):
            model_folder.load(saved)
    finally:
        for handle in held:
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    if os.geteuid() != 0:
        arrays_of(saved).chmod(0)
        with pytest.raises(ModelError, match=r"cannot be opened \(Permission denied"):
            model_folder.load(saved)


@pytest.mark.skipif(os.name != "posix", reason="limits the size of files")
def test_a_full_disk_is_said_with_the_name(tmp_path: Path, saved: Path) -> None:
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(ModelError, match=f"{saved.name}: cannot be written"):
            model_folder.save(saved, {}, {"a": np.zeros(100_000)})
        for name in ("out.txt", "out.gz"):
            with (
                pytest.raises(DataError, match=f"{name}: cannot be written"),
                replacing(tmp_path / name) as out,
            ):
                out.write(os.urandom(200_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert exmlds.load(saved) is not None
    assert sorted(path.name for path in tmp_path.iterdir()) == [saved.name]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_device_is_named() -> None:
    with pytest.raises(DataError, match="/dev/full: cannot be written"), replacing("/dev/full") as out:
        out.write(b"x")


def test_orders_of_arrays_come_back(tmp_path: Path) -> None:
    A = np.arange(6.0).reshape(2, 3)
    model_folder.save(
        tmp_path / "m", {}, {"F": np.asfortranarray(A), "C": A, "strided": A[:, ::2], "0": A[0, 0]}
    )
    back = model_folder.load(tmp_path / "m")[1]
    assert back["F"].flags.f_contiguous
    assert back["C"].flags.c_contiguous
    np.testing.assert_array_equal(back["F"], A)
    np.testing.assert_array_equal(back["strided"], A[:, ::2])


def test_arrays_beyond_one_block_come_back(tmp_path: Path) -> None:
    state = {"a": np.arange(3), "b": np.arange(array_file.BLOCK // 3), "c": np.arange(5)}
    model_folder.save(tmp_path / "m", {}, state)
    manifest, back = model_folder.load(tmp_path / "m")
    assert len(manifest["file"]["crc32"]) == 3
    for name, array in state.items():
        np.testing.assert_array_equal(back[name], array)


def test_saving_again_replaces_and_cleans_up(saved: Path, library: Dataset) -> None:
    MostFrequent().fit(library.X, library.Y).save(saved)
    assert isinstance(exmlds.load(saved), MostFrequent)
    assert len(list(saved.glob("arrays-*"))) == 1


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


def arrays_of(folder: Path) -> Path:
    (path,) = folder.glob("arrays-*.bin")
    return path


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda m: cut(arrays_of(m)),
            r"arrays-\w+.bin is damaged: it has the wrong size. Copy the model again",
        ),
        (lambda m: arrays_of(m).unlink(), "bin is missing. Copy the model again"),
        (lambda m: flip(arrays_of(m)), r"arrays-\w+.bin is damaged: it does not match its checksums. Copy"),
        (
            lambda m: cut(m / "manifest.json"),
            "manifest.json is damaged: it cannot be read.*Copy the model again",
        ),
        (lambda m: (m / "manifest.json").unlink(), "is not a model"),
        (lambda m: shutil.rmtree(m), "no such model"),
        (lambda m: (m / "manifest.json").write_text("[1]"), "not a model of exmlds"),
        (edited(package="other"), "not a model of exmlds"),
        (edited(format=99, version="9.0"), r"newer exmlds \(9.0, format 99.*Upgrade"),
        (
            edited(parameters={"n_neighbors": 3}),
            "manifest.json is damaged: it does not match its checksum. Copy",
        ),
    ],
)
def test_damaged_foreign_and_newer_models_are_refused(
    saved: Path, damage: Callable[[Path], None], message: str
) -> None:
    damage(saved)
    with pytest.raises(ModelError, match=message):
        exmlds.load(saved)


@pytest.mark.parametrize("name", ["MostFrequent", "ExMLDS4"])
def test_any_flipped_bit_is_found(tmp_path: Path, name: str) -> None:
    shutil.unpack_archive(ARCHIVE, tmp_path)
    rng = np.random.default_rng(0)
    for case in range(200):
        shutil.copytree(tmp_path / name, tmp_path / str(case))
        flipped = crafted.flip(tmp_path / str(case), rng)
        with pytest.raises(ModelError) as raised:
            model_folder.load(tmp_path / str(case))
        assert flipped.split()[-1] in str(raised.value) or "model of exmlds" in str(raised.value), flipped
        shutil.rmtree(tmp_path / str(case))


def test_any_flipped_bit_of_a_checkpoint_is_found(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "kept", {"data": "x"}, np.random.default_rng(0))
    checkpoint.put("map", JointState(np.ones((3, 2), np.float32), np.ones((3, 2), np.float32), 1, 2))
    assert checkpoint.get("map", JointState).epoch == 2
    with pytest.raises(ModelError, match="does not hold a Settings"):
        checkpoint.get("map", Settings)
    for name, use in (("map", lambda: checkpoint.get("map", JointState)), ("run", checkpoint.rng)):
        flip(arrays_of(tmp_path / "kept" / name) if name == "map" else tmp_path / "kept/run/manifest.json")
        with pytest.raises(ModelError, match="is damaged"):
            use()


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
    change_manifest(saved, lambda manifest: manifest["state"]["$dict"].update(odd_=odd))
    with pytest.raises(ModelError, match="that this version of exmlds cannot read"):
        exmlds.load(saved)


def test_every_record_is_a_named_tuple_with_as_many_fields() -> None:
    for tag, record in records.RECORDS.items():
        kind = getattr(import_module(record.module), record.name)
        n_needed = len(kind._fields) - len(kind._field_defaults)  # an older layout may lack others
        assert n_needed <= len(record.fields) <= len(kind._fields), tag


class Own(NamedTuple):
    numbers: np.ndarray


def test_a_record_without_a_tag_is_refused_and_one_with_a_tag_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(records.RECORDS, "own/1", records.RECORDS["router/1"])
    del records.RECORDS["own/1"]  # and again after the test
    monkeypatch.setitem(sys.modules, Own.__module__, sys.modules[__name__])
    with pytest.raises(ModelError, match="Own has no tag"):
        model_folder.save(tmp_path / "model", {}, {"own": Own(np.arange(3))})
    records.register("own/1", Own)
    model_folder.save(tmp_path / "model", {}, {"own": Own(np.arange(3))})
    assert model_folder.load(tmp_path / "model")[1]["own"].numbers.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="is taken"):
        records.register("router/1", Own)


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "../model/arrays-0123456789ab.bin"},
        {"name": ".."},
        {"name": None},
        {"name": ["arrays-0123456789ab.bin"]},
    ],
    ids=str,
)
def test_a_manifest_names_a_file_of_its_folder_only(saved: Path, changed: dict[str, Any]) -> None:
    change_manifest(saved, lambda manifest: manifest["file"].update(changed))
    with pytest.raises(ModelError, match="names a file outside of itself"):
        exmlds.load(saved)


def change_manifest(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Rewrite the manifest with a valid checksum."""
    path = folder / model_folder.MANIFEST
    manifest = json.loads(path.read_text())
    manifest.pop("checksum")
    change(manifest)
    path.write_bytes(model_folder.with_checksum(manifest))


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
        assert all((array == manifest["n"]).all() for array in state.values())
        interrupted += len(list(path.glob("arrays-*"))) > 1
    assert interrupted > 0, "no kill fell into a save"
    model_folder.save(path, {"class": "X", "n": 0}, {})
    assert len(list(path.glob("arrays-*"))) == 1


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
        assert getattr(model, "ids_", None) is None
        assert model.predict_labels(queries, k=1) == labels, name


def test_manifests_name_neither_modules_nor_attributes(tmp_path: Path) -> None:
    (archive,) = Path(__file__).parent.glob("saved-0.1.0.zip")
    shutil.unpack_archive(archive, tmp_path)
    for path in tmp_path.glob("*/manifest.json"):
        manifest = json.loads(path.read_text())
        assert set(manifest["state"]["$dict"]) <= set(records.ATTRIBUTES.values()), path
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
    change_manifest(saved, lambda manifest: manifest.update(changed))
    with pytest.raises(ModelError):
        exmlds.load(saved)


CASES, PER_TEST = 400, 50


@pytest.mark.parametrize("first", range(0, CASES, PER_TEST))
def test_crafted_models_are_refused_or_harmless(first: int, tmp_path: Path) -> None:
    """One change each with right checksums; without the checks at load, some of them end the process."""
    shutil.unpack_archive(ARCHIVE, tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir() if path.is_dir())
    X, outcomes = make_library(80, random_state=0).X[60:70], []
    for seed in range(first, first + PER_TEST):
        rng = np.random.default_rng(seed)
        words = crafted.craft(tmp_path / names[seed % len(names)], tmp_path / "crafted", rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of NaN and infinity
            warnings.simplefilter("ignore", NoKnownWordWarning)  # of vocabularies that were changed
            try:
                outcomes.append(crafted.try_model(tmp_path / "crafted", X))
            except Exception as error:
                raise AssertionError(f"seed {seed}, {names[seed % len(names)]}: {words}") from error
        shutil.rmtree(tmp_path / "crafted")
    assert outcomes.count("refused") > PER_TEST // 3


def test_crafted_cells_are_refused(rng: np.random.Generator) -> None:
    built = cells.build(rng.normal(size=(200, 4)).astype(np.float32), "euclidean", "float32", 1)
    cells.check(built, 200, 4)
    for changed in (
        {"starts": built.starts + 1},
        {"starts": built.starts[::-1]},
        {"starts": built.starts[:-1]},
        {"numbers": built.numbers + 1},
        {"numbers": np.zeros_like(built.numbers)},
        {"numbers": built.numbers.astype(np.float32)},
        {"centers": built.centers[:, :3]},
        {"rows": built.rows._replace(values=built.rows.values[:-1])},
    ):
        with pytest.raises(ValueError, match=r"cells|numbers|rows"):
            cells.check(built._replace(**changed), 200, 4)


@pytest.mark.parametrize(
    "changed",
    [
        {"input": "filename"},
        {"token_pattern": "(a|a)*b"},
        {"token_pattern": r"\w+\w+\w+x"},
        {"ngram_range": [1, 1000]},
        {"tokenizer": "split"},
        {"dtype": "object"},
        {"odd": 1},
    ],
    ids=str,
)
def test_a_vectorizer_beyond_its_limits_is_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    shutil.unpack_archive(ARCHIVE, tmp_path)
    path = tmp_path / "TextClassifier"
    assert isinstance(exmlds.load(path), exmlds.TextClassifier)
    place = "vectorizer"

    def change(manifest: dict[str, Any]) -> None:
        manifest["state"]["$dict"][place]["$dict"]["parameters"]["$dict"].update(changed)

    change_manifest(path, change)
    with pytest.raises(ModelError, match=next(iter(changed))):
        exmlds.load(path)


@pytest.mark.parametrize("ids", [["a"], ["a", "b", "c", "d", "e"], 7])
def test_ids_that_do_not_fit_the_training_texts_are_refused(tmp_path: Path, ids: Any) -> None:
    shutil.unpack_archive(ARCHIVE, tmp_path)
    model = exmlds.load(tmp_path / "TextClassifier")
    model.ids_ = np.array(list("abcd"), object)
    model.save(tmp_path / "right")
    assert exmlds.load(tmp_path / "right").ids_.tolist() == list("abcd")
    model.ids_ = np.array(ids, object) if isinstance(ids, list) else ids
    model.save(tmp_path / "wrong")
    with pytest.raises(ModelError, match="the ids of the training texts"):
        exmlds.load(tmp_path / "wrong")


@pytest.mark.skipif(os.name != "posix", reason="links and pipes")
@pytest.mark.parametrize("name", ["manifest.json", "arrays", ".lock"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_links_and_pipes_are_refused(saved: Path, tmp_path: Path, name: str, kind: str) -> None:
    path = arrays_of(saved) if name == "arrays" else saved / name
    other = tmp_path / "precious"
    shutil.copy(path, other) if name != ".lock" else other.write_text("precious")
    before = other.read_bytes()
    path.unlink()
    if kind == "link":
        path.symlink_to(other)
    else:
        os.mkfifo(path)
    message = "is a link" if kind == "link" else "is not a regular file"
    with pytest.raises(ModelError, match=message):
        model_folder.save(saved, {}, {}) if name == ".lock" else model_folder.load(saved)
    assert other.read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
def test_a_lock_that_is_held_is_waited_for_and_then_refused(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    monkeypatch.setattr(lock, "LOCK_SECONDS", 0.2)
    with (saved / ".lock").open("r+b") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with (
            pytest.warns(DataWarning, match="waiting at most 0.2 seconds"),
            pytest.raises(ModelError, match="locked by another process.*choose another folder"),
        ):
            model_folder.save(saved, {}, {})
    assert isinstance(exmlds.load(saved), FeatureNeighbors)
