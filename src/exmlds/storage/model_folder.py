"""Models on disk: a JSON manifest and one file of arrays, without pickle.

    MODEL/manifest.json          format, class, parameters, state; a table of the arrays; checksums
    MODEL/arrays-1f0c….bin       the arrays (`array_file.py`); never changed once it is written

Replacing the manifest is the commit: a save that is killed at any moment leaves the previous model, or none,
but never part of one. `load` reads the arrays into memory and compares every byte with its checksum.

The state is a tree of plain values, lists, dicts, arrays, csr matrices and records. A record is a NamedTuple
that is registered in `RECORDS` under a tag such as "stacker/1". The manifest holds the tag and the field
names of that table, never the name of a Python module, so that code can be renamed and old models still load.

A model folder may come from anywhere. What is read from it is checked in three steps, each of which ends in a
`ModelError`: the checksums and the structure of the state here (sparse matrices are whole, records are
complete); types, shapes and ranges of what was learnt in `_check_learnt` of the estimators.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
import uuid
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, issparse

from ..errors import DataWarning, ModelError
from .array_file import ADVICE, DTYPES, ArrayWriter, open_regular, read, view
from .files import PathLike, near_path, replacing
from .model_card import CARD

FORMAT = 3
MANIFEST = "manifest.json"
LOCK_SECONDS = 120.0  # that a save waits for another one to the same folder
_ARRAYS = re.compile(r"arrays-[0-9a-f]{12}\.bin")
_SUMMED = re.compile(rb'(.*),\n "checksum": "([0-9a-f]{8})"\n}\n', re.DOTALL)

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
    "cells/1": _record("stages.cells", "Cells", "centers starts rows numbers"),
    "classifiers/1": _record(
        "stages.rerank", "Classifiers", "starts labels values dense dense_slot scale bias"
    ),
    "feature-map/1": _record("stages.features", "Features", "kind center scale landmarks projection gamma"),
    "held-out-scores/1": _record("selection", "HeldOutScores", "rows ids scores"),
    "index/1": _record("stages.index", "Index", "segments metric center"),
    "joint-state/1": _record("stages.joint", "JointState", "V squares seed epoch"),
    "label-scorer/1": _record("stages.vote", "LabelScorer", "embeddings gram"),
    "learner/1": _record("voting.votes", "Learner", "router parts"),
    "name-index/1": _record(
        "models.name_matcher",
        "NameIndex",
        "languages is_loose stems stemmings trie label_starts labels kinds rarity weights bias",
    ),
    "name-trie/1": _record(
        "stages.name_match",
        "NameTrie",
        "first_nodes child_starts child_tokens child_nodes ends most_nested",
    ),
    "part/1": _record("voting.votes", "Part", "rows columns V index"),
    "quantized/1": _record("stages.quantize", "Packed", "values scale"),
    "router/1": _record("stages.partition", "Router", "centers"),
    "segment/1": _record("stages.index", "Segment", "rows bias"),
    "settings/1": _record("voting.votes", "Settings", "features path temperature embedding voting held_out"),
    "stacker/1": _record(
        "stages.stacking", "Stacker", "mean scale weights bias label_bias logits probabilities top_weights"
    ),
    "threshold-choice/1": _record("base", "ThresholdChoice", "given threshold metrics"),
    "untrained-labels/1": _record("reranking.untrained", "UntrainedLabels", "attributes scorer"),
    "untrained-scorer/1": _record("stages.name_match", "UntrainedScorer", "weights bias"),
    "used-columns/1": _record("validation.columns", "UsedColumns", "features labels"),
    "vocabulary/1": _record(
        "vocabulary",
        "VocabularyTables",
        "ids languages texts name_languages kinds starts broader related notations replaced_by",
    ),
}

# The names on disk of the learnt attributes of the package's estimators. An attribute that is renamed keeps
# its name on disk; the attributes of a user's own method keep their Python names.
ATTRIBUTES = {
    "analyzer_": "analyzer",
    "analyzer_results_": "analyzer_results",
    "centroids_": "centroids",
    "chosen_threshold_": "chosen_threshold",
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
    "field_weights_": "field_weights",
    "gains_": "label_gains",
    "held_out_metrics_": "held_out_metrics",
    "held_out_quality_": "held_out_quality",
    "ids_": "training_ids",
    "index_": "index",
    "kept_rows_": "training_rows",
    "l2_": "l2",
    "labels_": "voting_labels",
    "learners_": "learners",
    "lifts_": "label_lifts",
    "match_lifts_": "match_lifts",
    "max_words_": "max_words",
    "model_": "model",
    "mu_": "mu",
    "n_epochs_": "n_epochs",
    "n_features_in_": "n_features",
    "n_labels_": "n_labels",
    "n_samples_fit_": "n_rows",
    "name_index_": "name_index",
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
    "untrained_": "untrained_labels",
    "vectorizer_": "vectorizer",
    "visible_share_": "visible_share",
    "vocabulary_": "vocabulary",
    "voter_weights_": "voter_weights",
    "voters_": "voters",
}
_FROM_DISK = {stored: name for name, stored in ATTRIBUTES.items()}


def is_learnt(name: str) -> bool:
    """Whether an attribute of this name is learnt by a fit, so that it is saved.

    >>> [is_learnt(name) for name in ("means_", "W2_", "prior", "_cache_")]
    [True, True, False, False]
    """
    return name.isidentifier() and name.endswith("_") and not name.startswith("_")


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


def save(path: PathLike, description: dict[str, Any], state: dict[str, Any], card: str | None = None) -> None:
    """Write a model folder, or atomically replace the model in it.

    description : plain values that describe the model; they are copied to the manifest
    state : a tree as described above;  card : Markdown for people, which `load` does not read
    """
    folder = Path(path)
    existed = folder.exists()
    check_target(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _sole_writer(folder):
            arrays = folder / f"arrays-{uuid.uuid4().hex[:12]}.bin"
            try:
                _commit(folder, arrays, description, state)
            except BaseException:
                if not _is_committed(folder, arrays):
                    arrays.unlink(missing_ok=True)
                raise
            if card is not None:
                with replacing(folder / CARD) as file:
                    file.write(card.encode("utf-8", "replace"))
            for old in folder.iterdir():
                if _ARRAYS.fullmatch(old.name) and old != arrays:
                    with suppress(OSError):
                        old.unlink()
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


def is_model(path: Path) -> bool:
    return (path / MANIFEST).is_file()


def _is_ours(folder: Path) -> bool:
    names = {entry.name for entry in folder.iterdir()}
    if MANIFEST in names:
        try:
            manifest = json.loads(_manifest_bytes(folder))
        except (ValueError, OSError, RecursionError):
            return False
        return isinstance(manifest, dict) and manifest.get("package") == "exmlds"
    # A save that was killed before its commit leaves only arrays, the manifest to be and the lock.
    return all(name in (".lock", f".{MANIFEST}") or _ARRAYS.fullmatch(name) for name in names)


def _is_committed(folder: Path, arrays: Path) -> bool:
    try:
        return read_manifest(folder)["file"]["name"] == arrays.name
    except ModelError:
        return False


def _commit(folder: Path, arrays: Path, description: dict[str, Any], state: dict[str, Any]) -> None:
    with arrays.open("xb") as file:
        writer = ArrayWriter(file)
        encoded = _Encoder(writer).encode(state, "state")
        _sync(file)
    manifest = {
        "package": "exmlds",
        "format": FORMAT,
        **description,
        "file": {"name": arrays.name, "bytes": writer.size, "crc32": writer.sums},
        "arrays": writer.arrays,
        "state": encoded,
    }
    temporary = folder / f".{MANIFEST}"
    temporary.unlink(missing_ok=True)
    with temporary.open("xb") as file:
        file.write(with_checksum(manifest))
        _sync(file)
    os.replace(temporary, folder / MANIFEST)
    if os.name == "posix":
        with suppress(OSError):  # The model is committed; some file systems cannot sync a folder.
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _sync(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def with_checksum(manifest: dict[str, Any]) -> bytes:
    """The bytes of a manifest; the last entry is the CRC-32 of all bytes before it."""
    text = json.dumps(manifest, indent=1, ensure_ascii=False).removesuffix("\n}")
    summed = text.encode("utf-8", "surrogatepass")
    return summed + b',\n "checksum": "%08x"\n}\n' % zlib.crc32(summed)


def load(path: PathLike) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (manifest, state) of a model folder; every byte is compared with its checksum."""
    folder = Path(path)
    for _ in range(5):
        manifest = read_manifest(folder)
        file = manifest["file"]
        try:
            content = read(folder / file["name"], file["bytes"], file["crc32"])
        except FileNotFoundError:  # Another process replaced the model after the manifest was read.
            if read_manifest(folder)["file"]["name"] == file["name"]:
                raise ModelError(f"{folder} is damaged: {file['name']} is missing. {ADVICE}") from None
            continue
        with explained(folder):
            state = _Decoder(content, manifest["arrays"]).decode(manifest["state"])
            if not isinstance(state, dict):
                raise ValueError("the state is not a dict")
        return manifest, state
    raise ModelError(f"{folder} is being rewritten continually; try again.")


@contextmanager
def explained(path: PathLike) -> Iterator[None]:
    """Turn whatever a model of another layout raises into a ModelError that names the path."""
    try:
        yield
    except ModelError:
        raise
    except RecursionError:
        raise ModelError(f"{path} cannot be used: its parts are nested too deeply.") from None
    except (KeyError, TypeError, AttributeError, ValueError, IndexError, ArithmeticError) as error:
        reason = str(error) if type(error) is ValueError else repr(error)
        raise ModelError(
            f"{path} cannot be used: {reason}. It is not a model as `save` writes it."
        ) from error


def size(path: PathLike) -> int:
    """The bytes of all arrays of a model."""
    return read_manifest(path)["file"]["bytes"]


def read_manifest(path: PathLike) -> dict[str, Any]:
    """The checked manifest of a model folder; a ModelError if this version cannot read the model."""
    folder = Path(path)
    try:
        raw = _manifest_bytes(folder)
    except (FileNotFoundError, NotADirectoryError):
        if not os.path.lexists(folder):
            raise ModelError(f"{folder}: there is no such model.{near_path(folder, is_model)}") from None
        problem = f"a folder without a {MANIFEST}" if folder.is_dir() else "not a folder"
        raise ModelError(f"{folder} is not a model: it is {problem}.") from None
    summed = _SUMMED.fullmatch(raw)
    damaged = f"{folder / MANIFEST} is damaged: it does not match its checksum. {ADVICE}"
    if summed and b"%08x" % zlib.crc32(summed[1]) != summed[2]:
        raise ModelError(damaged)
    try:
        manifest = json.loads(raw.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{folder / MANIFEST} is damaged: it cannot be read ({error}). {ADVICE}") from None
    if not isinstance(manifest, dict) or manifest.get("package") != "exmlds":
        raise ModelError(f"{folder} is not a model of exmlds.")
    version = manifest.get("format")
    if version in (1, 2):
        raise ModelError(f"{folder} was written by an unreleased version of exmlds. Fit the model again.")
    if isinstance(version, int) and version > FORMAT:
        raise ModelError(
            f"{folder} was written by a newer exmlds ({manifest.get('version')}, format {version}; this one "
            f"reads up to format {FORMAT}). Upgrade exmlds."
        )
    if not summed:
        raise ModelError(damaged)
    with explained(folder):
        _check_manifest(manifest)
    return manifest


def _manifest_bytes(folder: Path) -> bytes:
    with open_regular(folder / MANIFEST) as file:
        return file.read()


def _check_manifest(manifest: dict[str, Any]) -> None:
    file, arrays = manifest["file"], manifest["arrays"]
    if manifest["format"] != FORMAT or not isinstance(manifest["state"], dict):
        raise ValueError("its manifest has no format or no state")
    if not isinstance(file["name"], str) or not _ARRAYS.fullmatch(file["name"]):
        raise ValueError("its manifest names a file outside of itself")
    if not isinstance(arrays, dict) or not all(isinstance(entry, dict) for entry in arrays.values()):
        raise ValueError("its manifest has no table of arrays")
    numbers = [file["bytes"], *file["crc32"], *(entry["bytes"] for entry in arrays.values())]
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError("its manifest has a size or a checksum that is not a whole number")


_CSR = ("data", "indices", "indptr")


class _Encoder:
    def __init__(self, writer: ArrayWriter) -> None:
        self.writer = writer

    def encode(self, value: Any, name: str) -> Any:
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray):
            return self._strings(value, name) if value.dtype.kind in "OU" else self._array(value, name)
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
        keys = " whose keys are not all strings" if isinstance(value, dict) else ""
        raise _unsavable(name, f"it is a {type(value).__name__}{keys}")

    def _array(self, array: Array, name: str) -> dict[str, Any]:
        if array.dtype.name not in DTYPES:
            raise _unsavable(name, f"its dtype is {array.dtype}")
        return {"$array": self.writer.add(array, name)}

    def _strings(self, strings: Array, name: str) -> dict[str, Any]:
        if strings.ndim != 1 or not all(isinstance(string, str) for string in strings):
            raise _unsavable(name, "it holds objects other than strings")
        encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
        ends = np.cumsum([len(string) for string in encoded], dtype=np.int64)
        text = np.frombuffer(b"".join(encoded), np.uint8)
        parts = {"text": self._array(text, f"{name}.text"), "ends": self._array(ends, f"{name}.ends")}
        return {"$strings": parts}


def _unsavable(name: str, problem: str) -> ModelError:
    """The error about a part of the state; name : its path, such as "state.means_"."""
    attribute, *parts = name.split(".")[1:]
    named = ".".join([_FROM_DISK.get(attribute, attribute), *parts])
    return ModelError(
        f"{named} cannot be saved: {problem}. What a fit learns must be an estimator of exmlds, or consist "
        "of plain values, arrays of numbers or strings, csr matrices, lists, dicts with string keys and "
        "registered NamedTuples."
    )


class _Decoder:
    """Builds the state; whatever is not as `_Encoder` writes it raises an error that `explained` words."""

    def __init__(self, content: Array, arrays: dict[str, Any]) -> None:
        self.content, self.arrays = content, arrays

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
            return self._strings(value["$strings"])
        if "$csr" in value:
            return self._csr({part: self._array(value["$csr"][part]) for part in _CSR}, *value["shape"])
        if "$record" in value:
            return self._record(value["$record"], value["fields"])
        raise ValueError(f"its state has an unknown part {sorted(value)}")

    def _array(self, entry: dict[str, Any]) -> Array:
        if entry["$array"] not in self.arrays:
            raise ValueError("its state names an array that is not in the file")
        return view(self.content, self.arrays[entry["$array"]])

    def _strings(self, parts: dict[str, Any]) -> Array:
        text, ends = self._array(parts["text"]).tobytes(), self._array(parts["ends"])
        starts = np.concatenate([[0], ends])
        if ends.dtype != np.int64 or starts[-1] != len(text) or (np.diff(starts) < 0).any():
            raise ValueError("its strings do not follow each other")
        limits = starts.tolist()
        strings = np.empty(len(ends), object)
        strings[:] = [text[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(limits)]
        return strings

    def _csr(self, parts: dict[str, Array], n_rows: int, n_columns: int) -> csr_matrix:
        matrix = csr_matrix((n_rows, n_columns), dtype=parts["data"].dtype)
        # The constructor would copy indices to another dtype, and kernels would be compiled for both.
        matrix.data, matrix.indices, matrix.indptr = (parts[part] for part in _CSR)
        indices, indptr = matrix.indices.dtype, matrix.indptr.dtype
        if indices != indptr or indices not in (np.int32, np.int64) or matrix.data.dtype.kind not in "biuf":
            raise ValueError("a sparse matrix has indices or values of a wrong dtype")
        matrix.check_format(full_check=True)
        if len(matrix.indices) != matrix.indptr[-1] or not matrix.has_canonical_format:
            raise ValueError("a sparse matrix has indices that do not ascend")
        return matrix

    def _record(self, tag: Any, fields: dict[str, Any]) -> Any:
        record = RECORDS.get(tag) if isinstance(tag, str) else None
        if record is None or not isinstance(fields, dict) or set(fields) != set(record.fields):
            raise ValueError(f"it has a part {tag!r} that this version of exmlds cannot read")
        kind = getattr(import_module(record.module), record.name)
        return kind(*(self.decode(fields[field]) for field in record.fields))


def _tag_of(kind: type[Any], name: str) -> tuple[str, tuple[str, ...]]:
    for tag, record in RECORDS.items():
        if (record.module, record.name) == (kind.__module__, kind.__qualname__):
            return tag, record.fields
    raise _unsavable(name, f"{kind.__qualname__} has no tag; give it one with `model_folder.register`")


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


@contextmanager
def _sole_writer(folder: Path) -> Iterator[None]:
    """Lock the folder against other processes that save to it; the lock ends with its process."""
    try:
        import fcntl
    except ImportError:  # The system has no such locks.
        yield
        return
    with open_regular(folder / ".lock", os.O_RDWR | os.O_CREAT, "r+b") as handle:
        deadline, is_waiting = time.monotonic() + LOCK_SECONDS, False
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # type: ignore[attr-defined, unused-ignore]
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ModelError(
                        f"{folder} has been locked by another process that saves to it for more than "
                        f"{LOCK_SECONDS:g} seconds. Wait for it or stop it, or choose another folder."
                    ) from None
            if not is_waiting:
                warnings.warn(
                    f"{folder} is locked by another process that saves to it; waiting at most "
                    f"{LOCK_SECONDS:g} seconds.",
                    DataWarning,
                    stacklevel=2,
                )
                is_waiting = True
            time.sleep(0.05)
        yield
