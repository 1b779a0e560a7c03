"""Copies of saved models with random damage: bytes, files and values of the manifest.

A damaged model must be refused with a ModelError, or predict exactly what the undamaged one predicts. In some
cases the checksums are made right again, as an attacker would: such a model may be another one, with other
predictions, but it must not crash, hang or raise another error.
"""

from __future__ import annotations

import json
import resource
import shutil
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import exmlds
from exmlds.data import make_library
from exmlds.errors import DataWarning, ModelError
from exmlds.storage import array_file, model_folder
from fuzz_readers import WrongAnswer

LIMIT = 60.0
CRAFTED = 0.3  # the share of cases whose checksums are right
MEMORY = 1 << 33  # bytes of address space, so that a crafted size does not hurt the machine
SMALL: dict[str, Any] = {"n_components": 5, "features": "l2", "temperature": 0.1, "random_state": 0}
TEXTS = ["goals and a red card", "bread with seeds", "the keeper held the ball", "flour, yeast, salt"]
TEXT_LABELS = [["sport"], ["baking"], ["sport"], ["baking", "bread"]]
ODD: list[Any] = [
    *(None, True, -1, 0, 1, 2**31, 2**63, 10**30, 0.5, float("nan"), float("inf"), -1e300, "", "x", "\0"),
    *("../../x", "/dev/zero", "\ud800", "int64", "|O", [], {}, [0], [[]]),
    *({"$array": "x"}, {"$record": "part/1", "fields": {}}),
]


def prepare(folder: Path) -> None:
    """Save a small model of each kind."""
    books = make_library(80, random_state=0)
    methods: dict[str, Any] = {
        "joined": exmlds.ExMLDS(cost=1.0, shortlist=5, random_state=0),
        "parts": exmlds.ExMLDS1(**SMALL, l2=1.0, n_parts=2),
        "labels": exmlds.ExMLDS3(**SMALL, l2=1.0, mu=(1, 1, 10), complete_labels=0.5),
        "learned": exmlds.ExMLDS4(**SMALL, n_epochs=2, n_learners=2, storage="int8"),
        "neighbors": exmlds.FeatureNeighbors(),
        "frequent": exmlds.MostFrequent(),
    }
    for name, method in methods.items():
        method.fit(books.X[:60], books.Y[:60], label_names=books.label_names).save(folder / "models" / name)
    texts = exmlds.TextClassifier(model=exmlds.FeatureNeighbors(), keep_rows=True)
    texts.fit(TEXTS, TEXT_LABELS).save(folder / "models" / "texts")


def opened(folder: Path) -> Callable[[int], str]:
    """A function that damages the model of a seed, loads it, and returns the outcome."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", DataWarning)
    rows = make_library(80, random_state=0).X[60:]
    models = sorted((folder / "models").iterdir())
    right = {model.name: answer(exmlds.load(model), model.name, rows) for model in models}
    copy = folder / "damaged"
    for model in models:  # the fuzzer must know the format, or it crafts nothing
        _copied(model, copy)
        if not reseal(copy) or answer(exmlds.load(copy), model.name, rows) != right[model.name]:
            raise WrongAnswer("a model with new checksums is not the same")

    def run(seed: int) -> str:
        rng = Random(f"models {seed}")
        model = rng.choice(models)
        _copied(model, copy)
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            rng.choice(DAMAGES)(rng, copy)
        crafted = rng.random() < CRAFTED and reseal(copy)
        try:
            found = answer(exmlds.load(copy), model.name, rows)
        except ModelError:
            return "refused"
        if found == right[model.name]:
            return "right"
        if crafted:
            return "another model"
        raise WrongAnswer(f"{model.name}: a damaged model loads and predicts something else")

    return run


def answer(model: Any, name: str, rows: Any) -> Any:
    """All that a model predicts, in a form that can be compared exactly."""
    queries = TEXTS if name == "texts" else rows
    ids, scores = model.predict_topk(queries, 5)
    if ids.min() < -1 or ids.max() >= len(model.classes_):
        raise WrongAnswer("a predicted label is out of range")
    labels = model.predict_labels(queries, k=3)
    predicted = np.asarray(model.predict(queries).todense())
    return ids.tobytes(), scores.tobytes(), labels, predicted.tobytes()


def _copied(model: Path, copy: Path) -> None:
    if copy.exists():
        shutil.rmtree(copy)
    shutil.copytree(model, copy)


def reseal(folder: Path) -> bool:
    """Make the checksums of a damaged model right; return whether its manifest could be read."""
    path = folder / model_folder.MANIFEST
    if not path.is_file():  # it may be a link to a device, which has no end
        return False
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        manifest.pop("checksum", None)
        file = folder / manifest["file"]["name"]
        if not file.is_file():  # a device has no end
            return False
        raw = file.read_bytes()
        starts = range(0, len(raw), array_file.BLOCK)
        sums = [zlib.crc32(raw[start : start + array_file.BLOCK]) for start in starts]
        manifest["file"].update(bytes=len(raw), crc32=sums)
        path.write_bytes(model_folder.with_checksum(manifest))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False
    return True


def _files(folder: Path) -> list[Path]:
    """Files that can be damaged; never what a link leads to."""
    found = (path for path in folder.rglob("*") if not path.is_symlink() and path.is_file())
    return sorted(path for path in found if path.stat().st_size)


def _bytes(rng: Random, folder: Path) -> None:
    """Change bytes of one file, each file as often as any other."""
    files = _files(folder)
    if not files:
        return
    path = rng.choice(files)
    raw = bytearray(path.read_bytes())
    # The header of an array and the ends of a file are hit more often than their share of the bytes.
    at = rng.choice((rng.randrange(len(raw)), rng.randrange(min(len(raw), 128)), len(raw) - 1))
    match rng.randrange(6):
        case 0 | 1:
            raw[at] ^= 1 << rng.randrange(8)
        case 2:
            raw[at : at + rng.randrange(1, 64)] = bytes([rng.choice((0, 255, 128))]) * rng.randrange(1, 64)
        case 3:
            del raw[at:]
        case 4:
            raw += bytes(rng.randrange(1, 64))
        case 5:
            raw[at : at + 8] = rng.randbytes(8)
    path.write_bytes(raw)


def _swap(rng: Random, folder: Path) -> None:
    """Delete, exchange, copy or replace whole files."""
    files = _files(folder)
    if len(files) < 2:
        return
    one, other = rng.sample(files, 2)
    match rng.randrange(6):
        case 0:
            one.unlink()
        case 1:
            raw = one.read_bytes()
            one.write_bytes(other.read_bytes())
            other.write_bytes(raw)
        case 2:
            one.write_bytes(other.read_bytes())
        case 3:
            shutil.copy(one, one.with_name(f"copy-{one.name}"))
        case 4:
            one.unlink()
            one.mkdir()
        case 5:
            one.unlink()
            one.symlink_to(rng.choice((other, Path("/dev/zero"), folder, one)))


def _edit(rng: Random, folder: Path) -> None:
    """Change a value of a JSON file."""
    for path in _files(folder):
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            continue
        nodes = _nodes(document)
        if nodes:
            _edit_node(rng, *rng.choice(nodes), nodes)
            path.write_text(json.dumps(document))


def _nodes(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a document, as the list or dict that holds it and the key."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    return [place for key in keys for place in ((value, key), *_nodes(value[key]))]


def _edit_node(rng: Random, holder: Any, key: Any, nodes: list[tuple[Any, Any]]) -> None:
    value = holder[key]
    match rng.randrange(6):
        case 0 | 1:
            holder[key] = rng.choice(ODD)
        case 2:
            del holder[key]
        case 3 if isinstance(holder, dict):
            holder[f"{key}x"] = holder.pop(key)
        case 4 if isinstance(value, (int, float)):
            holder[key] = rng.choice((value + 1, -value, value * 1000, str(value), [value]))
        case _:
            other, place = rng.choice(nodes)
            if json.dumps(other[place]) != json.dumps(holder):  # a document cannot hold itself
                holder[key] = json.loads(json.dumps(other[place]))


DAMAGES = (_bytes, _bytes, _swap, _edit, _edit)
