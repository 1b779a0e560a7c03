"""Models on disk: a folder of arrays and a JSON manifest, without pickle.

    MODEL/manifest.json     format, class, parameters, state; names and checksums of the files
    MODEL/g-1f0c…/*.npy     one immutable generation of arrays

Replacing the manifest is the commit: a save that is killed at any moment leaves the previous model, or none,
but never part of one. Arrays are memory-mapped by `load`.

The state is a tree of plain values, lists, dicts, arrays, csr matrices and records. A record is a NamedTuple
that is registered in `RECORDS` under a tag such as "stacker/1". The manifest holds the tag and the field
names of that table, never the name of a Python module, so that code can be renamed and old models still load.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, issparse

from ..errors import DataWarning, ModelError
from .files import PathLike

FORMAT = 2
MANIFEST = "manifest.json"
_GENERATION = re.compile(r"g-[0-9a-f]{12}")
_FOREIGN = re.compile(r"[/\\]|^\.*$")  # file names that point outside the generation

Array = np.ndarray


class Record(NamedTuple):
    """The class of a stored NamedTuple, and the names of its fields on disk, in the order of the class."""

    module: str
    name: str
    fields: tuple[str, ...]


def _record(module: str, name: str, fields: str) -> Record:
    return Record(f"exmlds.{module}", name, tuple(fields.split()))


# A changed layout gets a new tag with the next number; the old tag stays, so that old models still load.
RECORDS = {
    "estimator/1": _record("base", "Fitted", "method parameters state"),
    "classifiers/1": _record(
        "stages.rerank", "Classifiers", "starts labels values dense dense_slot scale bias"
    ),
    "feature-map/1": _record("stages.features", "Features", "kind center scale landmarks projection gamma"),
    "graph/1": _record("stages.ann_index", "Graph", "saved"),
    "held-out-scores/1": _record("selection", "HeldOutScores", "rows ids scores"),
    "index/1": _record("stages.index", "Index", "segments metric center"),
    "joint-state/1": _record("stages.joint", "JointState", "V squares seed epoch"),
    "label-scorer/1": _record("stages.vote", "LabelScorer", "embeddings gram"),
    "learner/1": _record("voting.votes", "Learner", "router parts"),
    "part/1": _record("voting.votes", "Part", "rows columns V index"),
    "quantized/1": _record("stages.quantize", "Packed", "values scale"),
    "router/1": _record("stages.partition", "Router", "centers"),
    "segment/1": _record("stages.index", "Segment", "rows bias"),
    "settings/1": _record("voting.votes", "Settings", "features path temperature embedding voting held_out"),
    "stacker/1": _record(
        "stages.stacking", "Stacker", "mean scale weights bias label_bias logits probabilities top_weights"
    ),
    "used-columns/1": _record("validation.columns", "UsedColumns", "features labels"),
}

# The names on disk of the learnt attributes of the package's estimators. An attribute that is renamed keeps
# its name on disk; the attributes of a user's own method keep their Python names.
ATTRIBUTES = {
    "classifiers_": "classifiers",
    "column_counts_": "label_counts",
    "columns_": "used_columns",
    "complete_labels_": "completion_strength",
    "cost_": "cost",
    "counts_": "label_counts_of_stacker",
    "feature_map_": "feature_map",
    "feature_names_": "feature_names",
    "feature_names_in_": "input_feature_names",
    "features_": "feature_transform",
    "gains_": "label_gains",
    "held_out_quality_": "held_out_quality",
    "index_": "index",
    "kept_rows_": "training_rows",
    "l2_": "l2",
    "labels_": "voting_labels",
    "learners_": "learners",
    "lifts_": "label_lifts",
    "model_": "model",
    "mu_": "mu",
    "n_epochs_": "n_epochs",
    "n_features_in_": "n_features",
    "n_labels_": "n_labels",
    "n_samples_fit_": "n_rows",
    "names_": "labels",
    "ranking_": "label_ranking",
    "rows_": "voting_rows",
    "scorer_": "label_scorer",
    "search_results_": "search_results",
    "second_shortlister_": "second_shortlister",
    "shares_": "label_shares",
    "shortlist_": "shortlist_length",
    "shortlist_recall_": "shortlist_recall",
    "shortlister_": "shortlister",
    "sparse_rows_": "sparse_rows",
    "stacker_": "stacker",
    "temperature_": "temperature",
    "texts_": "training_texts",
    "threshold_": "threshold",
    "vectorizer_": "vectorizer",
    "visible_share_": "visible_share",
    "voter_weights_": "voter_weights",
    "voters_": "voters",
}
_FROM_DISK = {stored: name for name, stored in ATTRIBUTES.items()}


def to_stored_names(learnt: dict[str, Any]) -> dict[str, Any]:
    """Learnt attributes under their names on disk."""
    return {ATTRIBUTES.get(name, name): value for name, value in learnt.items()}


def to_attributes(stored: dict[str, Any]) -> dict[str, Any]:
    """What a model folder holds, under the names of Python attributes."""
    return {_FROM_DISK.get(name, name): value for name, value in stored.items()}


def register(tag: str, kind: type[Any]) -> None:
    """Register a NamedTuple of another package, so that models can store it; its fields keep their names.

    Call it in the module that defines the class, so that it is registered before a model is loaded.
    """
    record = Record(kind.__module__, kind.__qualname__, tuple(getattr(kind, "_fields", ())))
    if not record.fields or RECORDS.get(tag, record) != record:
        raise ValueError(f"The tag {tag!r} is taken, or {kind.__qualname__} is not a NamedTuple.")
    RECORDS[tag] = record


def save(path: PathLike, description: dict[str, Any], state: dict[str, Any]) -> None:
    """Write a model folder, or atomically replace the model in it.

    description : plain values that describe the model; they are copied to the manifest
    state : a tree as described above
    """
    folder = Path(path)
    existed = folder.exists()
    check_target(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _sole_writer(folder):
            generation = folder / f"g-{uuid.uuid4().hex[:12]}"
            generation.mkdir()
            try:
                _commit(folder, generation, description, state)
            except BaseException:
                if not _is_committed(folder, generation):
                    shutil.rmtree(generation, ignore_errors=True)
                raise
            for old in folder.iterdir():
                if _GENERATION.fullmatch(old.name) and old != generation:
                    shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise ModelError(f"{folder}: cannot be written ({error.strerror or error}).") from error
    finally:
        if not existed and folder.is_dir() and not (folder / MANIFEST).exists():
            shutil.rmtree(folder, ignore_errors=True)


def check_target(path: PathLike) -> None:
    """Raise a ModelError if a model cannot be saved to this path; call it before a long fit."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise ModelError(f"{folder} is a file; a model is a folder. Choose another name.")
    if folder.exists() and any(folder.iterdir()) and not _is_ours(folder):
        raise ModelError(
            f"{folder} holds something else than a model; choose another name or an empty folder."
        )


def _is_ours(folder: Path) -> bool:
    names = {entry.name for entry in folder.iterdir()}
    if MANIFEST in names:
        try:
            manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        except (ValueError, OSError):
            return False
        return isinstance(manifest, dict) and manifest.get("package") == "exmlds"
    # A save that was killed before its commit leaves only a generation and the lock.
    return all(name == ".lock" or _GENERATION.fullmatch(name) for name in names)


def _is_committed(folder: Path, generation: Path) -> bool:
    try:
        return read_manifest(folder)["generation"] == generation.name
    except ModelError:
        return False


def _commit(folder: Path, generation: Path, description: dict[str, Any], state: dict[str, Any]) -> None:
    writer = _Writer(generation)
    manifest = {
        "package": "exmlds",
        "format": FORMAT,
        **description,
        "generation": generation.name,
        "state": writer.encode(state, "state"),
        "files": writer.files,
    }
    _sync(generation)
    manifest["checksum"] = _checksum_of(manifest)
    temporary = generation / MANIFEST
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=1, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, folder / MANIFEST)
    with suppress(OSError):  # The model is committed; some file systems cannot sync a folder.
        _sync(folder)


def load(path: PathLike) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (manifest, state) of a model folder; file sizes are checked, and arrays are memory-mapped."""
    folder = Path(path)
    for _ in range(5):
        manifest = read_manifest(folder)
        try:
            return manifest, _Reader(folder, manifest).decode(manifest["state"])
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise ModelError(f"{folder} is damaged: its state can't be read ({error!r}).") from None
        except _Replaced:  # Another process replaced the model after the manifest was read.
            if read_manifest(folder)["generation"] == manifest["generation"]:
                raise ModelError(
                    f"{folder} is damaged: files of it are missing. Save the model again."
                ) from None
    raise ModelError(f"{folder} is being rewritten continually; try again.")


def verify(path: PathLike) -> list[str]:
    """Compare every file with its checksum; return the list of problems."""
    folder = Path(path)
    manifest = read_manifest(folder)
    wrong = []
    for name, expected in manifest["files"].items():
        file = folder / manifest["generation"] / name
        if not file.is_file():
            wrong.append(f"{name} is missing")
        elif _file_sum(file) != expected["sha256"]:
            wrong.append(f"{name} has changed")
    return wrong


def size(path: PathLike) -> int:
    """The bytes of all arrays of a model."""
    return sum(file["bytes"] for file in read_manifest(path)["files"].values())


def read_manifest(path: PathLike) -> dict[str, Any]:
    """The checked manifest of a model folder; a ModelError if this version cannot read the model."""
    folder = Path(path)
    if not folder.exists():
        raise ModelError(f"{folder}: there is no such model.")
    if not (folder / MANIFEST).is_file():
        raise ModelError(f"{folder} is not a model: it is not a folder with a {MANIFEST}.")
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise ModelError(f"{folder} is damaged: its {MANIFEST} cannot be read ({error}).") from None
    if not isinstance(manifest, dict) or manifest.get("package") != "exmlds":
        raise ModelError(f"{folder} is not a model of exmlds.")
    version = manifest.get("format")
    if version == 1:
        raise ModelError(f"{folder} was written by an unreleased version of exmlds. Fit the model again.")
    if isinstance(version, int) and version > FORMAT:
        raise ModelError(
            f"{folder} was written by a newer exmlds ({manifest.get('version')}, format {version}; this one "
            f"reads up to format {FORMAT}). Upgrade exmlds."
        )
    if manifest.pop("checksum", None) != _checksum_of(manifest):
        raise ModelError(f"{folder} is damaged: its {MANIFEST} does not match its checksum.")
    files, generation = manifest.get("files"), str(manifest.get("generation"))
    names = files if isinstance(files, dict) else ["/"]
    if not _GENERATION.fullmatch(generation) or any(_FOREIGN.search(name) for name in names):
        raise ModelError(f"{folder} is damaged: it names files outside of itself.")
    return manifest


class _Writer:
    def __init__(self, folder: Path) -> None:
        self.folder, self.files = folder, dict[str, dict[str, Any]]()

    def encode(self, value: Any, name: str) -> Any:
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray):
            return (
                {"$strings": self._strings(value, name)}
                if value.dtype == object
                else self._array(value, name)
            )
        if issparse(value):
            matrix = value.tocsr(copy=not value.has_canonical_format)
            matrix.sum_duplicates()
            parts = {part: self._array(getattr(matrix, part), f"{name}.{part}") for part in _CSR}
            return {"$csr": parts, "shape": list(matrix.shape)}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            tag, fields = _tag_of(type(value), name)
            return {
                "$record": tag,
                "fields": {key: self.encode(part, f"{name}.{key}") for key, part in zip(fields, value)},
            }
        if isinstance(value, (list, tuple)):
            return [self.encode(item, f"{name}.{i}") for i, item in enumerate(value)]
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {"$dict": {key: self.encode(item, f"{name}.{key}") for key, item in value.items()}}
        raise ModelError(f"{name} cannot be saved: it is a {type(value).__name__}.")

    def _array(self, array: Array, name: str) -> dict[str, Any]:
        file = re.sub(r"[^\w.-]", "_", f"{name}.npy")
        if file in self.files:  # Keys with dots can give the name of another path in the tree.
            file = f"{len(self.files)}-{file}"
        with (self.folder / file).open("wb") as handle:
            np.save(handle, array, allow_pickle=False)
            handle.flush()
            os.fsync(handle.fileno())
        path = self.folder / file
        self.files[file] = {"bytes": path.stat().st_size, "sha256": _file_sum(path)}
        return {"$array": file, "shape": list(array.shape), "dtype": array.dtype.str}

    def _strings(self, strings: Array, name: str) -> dict[str, Any]:
        if strings.ndim != 1 or not all(isinstance(string, str) for string in strings):
            raise ModelError(f"{name} cannot be saved: it holds objects other than strings.")
        encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
        ends = np.cumsum([len(string) for string in encoded], dtype=np.int64)
        text = np.frombuffer(b"".join(encoded), np.uint8)
        return {"text": self._array(text, f"{name}.text"), "ends": self._array(ends, f"{name}.ends")}


_CSR = ("data", "indices", "indptr")


class _Replaced(Exception):
    """A file of the generation is missing."""


class _Reader:
    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder = folder
        self.generation = folder / manifest["generation"]
        self.files = manifest["files"]

    def decode(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "$dict" in value:
            return {key: self.decode(item) for key, item in value["$dict"].items()}
        if "$array" in value:
            return self._array(value)
        if "$strings" in value:
            text = self._array(value["$strings"]["text"]).tobytes()
            ends = self._array(value["$strings"]["ends"]).tolist()
            strings = np.empty(len(ends), object)
            strings[:] = [
                text[start:end].decode("utf-8", "surrogatepass") for start, end in zip([0, *ends], ends)
            ]
            return strings
        if "$csr" in value:
            return self._csr({part: self._array(value["$csr"][part]) for part in _CSR}, tuple(value["shape"]))
        if "$record" in value:
            return self._record(value["$record"], value["fields"])
        raise ModelError(f"{self.folder} is damaged: its state has an unknown part {sorted(value)}.")

    def _array(self, entry: dict[str, Any]) -> Array:
        if entry.get("$array") not in self.files:
            raise ModelError(f"{self.folder} is damaged: it names an array that is not among its files.")
        path = self.generation / entry["$array"]
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            raise _Replaced from None
        if size != self.files[entry["$array"]]["bytes"]:
            raise ModelError(
                f"{self.folder} is damaged: {path.name} has the wrong size. Save the model again."
            )
        try:
            # Copy-on-write maps are writable, so numba compiles no second version for read-only arrays, and
            # the file never changes. NumPy cannot map an array without elements.
            array = np.asarray(np.load(path, mmap_mode="c" if 0 not in entry["shape"] else None))
        except FileNotFoundError:
            raise _Replaced from None
        except (ValueError, OSError) as error:
            raise ModelError(f"{self.folder} is damaged: {path.name} cannot be read ({error}).") from None
        # Integers may be indices, and a wrong index would crash a kernel, so their checksums are verified.
        if array.dtype.kind in "iu":
            try:
                checksum = _file_sum(path)
            except FileNotFoundError:
                raise _Replaced from None
            if checksum != self.files[entry["$array"]]["sha256"]:
                raise ModelError(f"{self.folder} is damaged: {path.name} has changed. Save the model again.")
        if list(array.shape) != entry["shape"] or array.dtype.str != entry["dtype"]:
            raise ModelError(f"{self.folder} is damaged: {path.name} is not the array that was saved.")
        return array

    def _csr(self, parts: dict[str, Array], shape: tuple[int, int]) -> csr_matrix:
        # The arrays are assigned, since the checks of the constructor would read every mapped page.
        matrix = csr_matrix(shape, dtype=parts["data"].dtype)
        matrix.data, matrix.indices, matrix.indptr = (parts[part] for part in _CSR)
        matrix.has_canonical_format = True
        return matrix

    def _record(self, tag: Any, fields: dict[str, Any]) -> Any:
        record = RECORDS.get(tag) if isinstance(tag, str) else None
        if record is None or not isinstance(fields, dict) or set(fields) != set(record.fields):
            raise ModelError(f"{self.folder} has a part {tag!r} that this version of exmlds cannot read.")
        kind = getattr(import_module(record.module), record.name)
        return kind(*(self.decode(fields[field]) for field in record.fields))


def _tag_of(kind: type[Any], name: str) -> tuple[str, tuple[str, ...]]:
    for tag, record in RECORDS.items():
        if (record.module, record.name) == (kind.__module__, kind.__qualname__):
            return tag, record.fields
    raise ModelError(
        f"{name} cannot be saved: {kind.__qualname__} has no tag. Give it one with `model_folder.register`."
    )


def plain_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters that JSON can hold; others, such as a random generator, are omitted with a warning."""
    plain = {}
    for name, value in parameters.items():
        if isinstance(value, np.generic):
            value = value.item()
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            warnings.warn(
                f"The {name!r} parameter, a {type(value).__name__}, is not saved with the model; "
                "the loaded model has its default instead.",
                DataWarning,
                stacklevel=3,
            )
            continue
        plain[name] = value
    return plain


def _checksum_of(manifest: dict[str, Any]) -> str:
    canonical = json.dumps(manifest, sort_keys=True, ensure_ascii=True).encode()
    return hashlib.sha256(canonical).hexdigest()


def _file_sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(folder: Path) -> None:
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _sole_writer(folder: Path) -> Iterator[None]:
    """Lock the folder against other processes that save to it; the lock ends with its process."""
    try:
        import fcntl
    except ImportError:  # The system has no such locks.
        yield
        return
    lock: Callable[..., Any] = fcntl.flock
    with (folder / ".lock").open("w") as handle:
        lock(handle, fcntl.LOCK_EX)
        yield
