"""Models on disk: a JSON manifest, one file of arrays and a journal of changes, without pickle.

    MODEL/manifest.json          format, class, parameters, state; a table of the arrays; checksums
    MODEL/arrays-1f0c….bin       the arrays (`array_file.py`); never changed once it is written
    MODEL/journal-1f0c….log      the changes since then (`journal.py`); only where there are any
    MODEL/parts-1f0c…/           model folders within it (`inner.py`); only where there are any
    MODEL/README.md              the model card, for people (`model_card.py`)
    MODEL/.lock                  held while a process writes (`lock.py`)

Replacing the manifest is the commit: a save that is killed at any moment leaves the previous model, or none,
but never part of one. The digits in the names are the generation. `load` reads the arrays into memory and
compares every byte with its checksum.

A model folder may come from anywhere. What is read from it is checked in three steps, each of which ends in a
`ModelError`: the checksums here; the structure of the state in `tree.py` (sparse matrices are whole, records
are complete); types, shapes and ranges of what was learnt in `_check_learnt` of the estimators.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
import warnings
import zlib
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import DataWarning, ModelError
from . import inner, journal, tree
from .array_file import ADVICE, open_regular, read
from .files import PathLike, near_path, replacing, sync, sync_folder
from .journal import Contents, Journal
from .lock import WriterLock
from .model_card import CARD

FORMAT = 3
MANIFEST = "manifest.json"
MOST_TRIES = 50  # to read a model that others replace meanwhile
_ARRAYS = re.compile(r"arrays-([0-9a-f]{12})\.bin")
_SUMMED = re.compile(rb'(.*),\n "checksum": "([0-9a-f]{8})"\n}\n', re.DOTALL)


class Stored(NamedTuple):
    """What a model folder holds: the manifest, the state of its generation, and the changes since then."""

    manifest: dict[str, Any]
    state: dict[str, Any]
    journal: Contents


def save(
    path: PathLike,
    description: dict[str, Any],
    state: dict[str, Any],
    card: str | None = None,
    *,
    writer: Journal | None = None,
    purge: bool = False,
) -> None:
    """Write a model folder, or atomically replace the model in it; its old generations are removed.

    description : plain values that describe the model; they are copied to the manifest
    state : a tree (`tree.py`);  card : Markdown for people, which `load` does not read
    writer : the journal of a model that has this folder open; it continues with the new generation
    purge : whether it is an error where a file of an old generation cannot be removed
    """
    folder = Path(path)
    existed = folder.exists()
    check_target(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = WriterLock(folder) if writer is None else writer.lock
        try:
            _replace(folder, description, state, card, writer, purge)
        finally:
            if writer is None:
                lock.release()
        if not existed:
            sync_folder(folder.absolute().parent)
    except OSError as error:
        raise ModelError(f"{folder}: cannot be written ({error.strerror or error}).") from error
    finally:
        if not existed and folder.is_dir() and not (folder / MANIFEST).exists():
            shutil.rmtree(folder, ignore_errors=True)


def _replace(
    folder: Path,
    description: dict[str, Any],
    state: dict[str, Any],
    card: str | None,
    writer: Journal | None,
    purge: bool,
) -> None:
    generation = uuid.uuid4().hex[:12]
    arrays = folder / f"arrays-{generation}.bin"
    try:
        _commit(folder, arrays, description, state)
        if writer is not None:
            writer.generation = generation
        if card is not None:
            with replacing(folder / CARD) as file:
                file.write(card.encode("utf-8", "replace"))
        _remove_others(folder, generation, purge)
    except BaseException:
        if not _is_committed(folder, arrays):
            arrays.unlink(missing_ok=True)
            shutil.rmtree(inner.folder_of(folder, generation), ignore_errors=True)
        elif writer is not None:  # It may differ from the model in memory, to which the caller returns.
            writer.close()
        raise


def _remove_others(folder: Path, generation: str, purge: bool) -> None:
    """Remove what other generations, and writers that were killed, have left."""
    for old in folder.iterdir():
        found = (
            _ARRAYS.fullmatch(old.name) or journal.NAME.fullmatch(old.name) or inner.NAME.fullmatch(old.name)
        )
        if found[1] != generation if found else _is_temporary(old.name):
            with nullcontext() if purge else suppress(OSError):  # Another process may have it open.
                shutil.rmtree(old) if inner.NAME.fullmatch(old.name) else old.unlink()
    sync_folder(folder)


def _is_temporary(name: str) -> bool:
    is_card = name.startswith(f".{CARD}.") and name.endswith(".partial")
    return name in (f".{MANIFEST}", journal.TEMPORARY) or is_card


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
    return all(
        name in (".lock", f".{MANIFEST}") or _ARRAYS.fullmatch(name) or inner.NAME.fullmatch(name)
        for name in names
    )


def _is_committed(folder: Path, arrays: Path) -> bool:
    """Whether the manifest names these arrays; a manifest that cannot be read now may do so."""
    if not os.path.lexists(folder / MANIFEST):
        return False
    try:
        return read_manifest(folder)["file"]["name"] == arrays.name
    except ModelError:
        return True


def _commit(folder: Path, arrays: Path, description: dict[str, Any], state: dict[str, Any]) -> None:
    models: list[inner.InnerModel] = []
    with arrays.open("xb") as file:
        encoded, written = tree.encode(state, "state", file, models)
        sync(file)
    inner.write(inner.folder_of(folder, _generation_in(arrays.name)), models)
    manifest = {
        "package": "exmlds",
        "format": FORMAT,
        **description,
        "file": {"name": arrays.name, "bytes": written.size, "crc32": written.sums},
        "arrays": written.arrays,
        "state": encoded,
    }
    temporary = folder / f".{MANIFEST}"
    temporary.unlink(missing_ok=True)
    with temporary.open("xb") as file:
        file.write(with_checksum(manifest))
        sync(file)
    sync_folder(folder)  # The arrays have their name before the manifest names them.
    os.replace(temporary, folder / MANIFEST)
    sync_folder(folder)


def with_checksum(manifest: dict[str, Any]) -> bytes:
    """The bytes of a manifest; the last entry is the CRC-32 of all bytes before it."""
    text = json.dumps(manifest, indent=1, ensure_ascii=False).removesuffix("\n}")
    summed = text.encode("utf-8", "surrogatepass")
    return summed + b',\n "checksum": "%08x"\n}\n' % zlib.crc32(summed)


def load(path: PathLike) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (manifest, state) of a model folder that has no journal, such as a checkpoint."""
    stored = load_with_journal(path)
    return stored.manifest, stored.state


def load_with_journal(path: PathLike) -> Stored:
    """Read a model folder; every byte is compared with its checksum."""
    folder = Path(path)
    for _ in range(MOST_TRIES):
        manifest = read_manifest(folder)
        file = manifest["file"]
        try:
            content = read(folder / file["name"], file["bytes"], file["crc32"])
        except FileNotFoundError:
            if generation_of(read_manifest(folder)) == generation_of(manifest):
                raise ModelError(f"{folder} is damaged: {file['name']} is missing. {ADVICE}") from None
            continue  # Another process replaced the model after the manifest was read.
        changes = journal.read(folder, generation_of(manifest))
        if not changes.end and generation_of(read_manifest(folder)) != generation_of(manifest):
            continue  # It was replaced, and its journal removed, after the arrays were read.
        with tree.explained(folder):
            parts = inner.folder_of(folder, generation_of(manifest))
            state = tree.decode(manifest["state"], content, manifest["arrays"], parts)
            if not isinstance(state, dict):
                raise ValueError("the state is not a dict")
        return Stored(manifest, state, changes)
    raise ModelError(f"{folder} is being rewritten continually; try again.")


def open_for_writing(path: PathLike) -> Journal:
    """Lock a model folder against other writers; `Journal.close` releases it."""
    folder = Path(path)
    read_manifest(folder)  # raises an error where there is no model, before a lock file is made
    lock = WriterLock(folder, is_kept=True)
    try:
        return Journal(folder.absolute(), generation_of(read_manifest(folder)), lock)
    except BaseException:
        lock.release()
        raise


def generation_of(manifest: dict[str, Any]) -> str:
    """The 12 hexadecimal digits that the names of the arrays and of the journal share."""
    return _generation_in(manifest["file"]["name"])


def _generation_in(name: str) -> str:
    found = _ARRAYS.fullmatch(name)
    assert found is not None
    return found[1]


def journal_of(path: PathLike) -> Contents:
    """The changes since the generation of a model folder was written."""
    return journal.read(Path(path), generation_of(read_manifest(path)))


def size(path: PathLike) -> int:
    """The bytes of all arrays of a model, and of the models that it consists of."""
    manifest = read_manifest(path)
    parts = inner.folder_of(Path(path), generation_of(manifest))
    return manifest["file"]["bytes"] + sum(map(size, parts.iterdir() if parts.is_dir() else ()))


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
    with tree.explained(folder):
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
