"""Crafted models: a saved model with one change, and with checksums that are right again.

`craft` copies a model folder and changes one value of its manifest or one array, so that what refuses it is
not a checksum but a check of types, shapes and ranges. `flip` flips one bit and leaves the checksums wrong.
Both take all choices from a random generator, so that a seed names a case. `try_model` loads a folder and
uses what loads: it returns what happened, and raises whatever is neither a prediction nor a ModelError.
"""

from __future__ import annotations

import copy
import json
import shutil
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import exmlds
from exmlds.storage import array_file, model_folder

Array = np.ndarray

VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 7, 2**31, 2**63, -(2**63), 10**30, 0.5, -1.5, 1e308, float("nan")),
    *("", "x", "auto", "cosine", "filename", "../../etc/passwd", r"(a|a)*b", [], [0], [[]], {}, {"a": 1}),
    *({"$dict": {}}, {"$array": "x"}, {"$strings": {}}, {"$csr": {}, "shape": [1, 1]}),
    {"$record": "router/1", "fields": {"centers": None}},
]
NUMBERS = [0, 1, -1, 2, 255, 65_535, 2**31 - 1, -(2**31), 2**63 - 1, np.nan, np.inf, -np.inf, 1e-45, 1e300]
Keys = list[Any]


def flip(folder: Path, rng: np.random.Generator) -> str:
    """Flip one bit of one file of a model, manifest and arrays alike; returns which."""
    path = sorted(path for path in folder.iterdir() if path.name not in (".lock", "README.md"))[
        rng.integers(2)
    ]
    raw = bytearray(path.read_bytes())
    bit = int(rng.integers(8 * len(raw)))
    raw[bit // 8] ^= 1 << bit % 8
    path.write_bytes(raw)
    return f"bit {bit} of {path.name}"


def craft(source: Path, folder: Path, rng: np.random.Generator) -> str:
    """Copy a model to a folder with one change and right checksums; returns what was changed."""
    shutil.copytree(source, folder)
    manifest = json.loads((folder / model_folder.MANIFEST).read_bytes())
    del manifest["checksum"]
    path = folder / manifest["file"]["name"]
    content = np.fromfile(path, np.uint8)
    changes = [_change_array, _change_entry, _change_value, _change_value, _swap_parts]
    change = changes[rng.integers(len(changes))]
    words = change(manifest, content, rng)
    if isinstance(manifest.get("file"), dict):
        content.tofile(path)
        blocks = range(0, len(content), array_file.BLOCK)
        sums = [zlib.crc32(content[start : start + array_file.BLOCK]) for start in blocks]
        if "crc32" in manifest["file"] and "file" not in words:
            manifest["file"]["crc32"] = sums
    (folder / model_folder.MANIFEST).write_bytes(model_folder.with_checksum(manifest))
    return words


def _change_array(manifest: dict[str, Any], content: Array, rng: np.random.Generator) -> str:
    """Change numbers of one array."""
    names = [name for name, entry in manifest["arrays"].items() if entry["bytes"]]
    name = names[rng.integers(len(names))]
    entry = manifest["arrays"][name]
    array = content[entry["offset"] : entry["offset"] + entry["bytes"]].view(entry["dtype"])
    kind = rng.integers(5)
    if kind == 0:
        array[:] = array[::-1].copy()
        return f"{name} is reversed"
    if kind == 1:
        rng.shuffle(array)
        return f"{name} is shuffled"
    number = NUMBERS[rng.integers(len(NUMBERS))]
    with np.errstate(all="ignore"):
        value = (
            np.array([number]).astype(array.dtype) if rng.integers(4) else array[-1:] + array.dtype.type(1)
        )
    where: Any = slice(None) if kind == 2 else rng.integers(len(array), size=min(kind, 3))
    array[where] = value[0]
    return f"{name}[{where}] is {value[0]}"


def _change_entry(manifest: dict[str, Any], content: Array, rng: np.random.Generator) -> str:
    """Change what the manifest says of one array: its shape, dtype or order."""
    name = list(manifest["arrays"])[rng.integers(len(manifest["arrays"]))]
    entry = manifest["arrays"][name]
    kind, shape = rng.integers(5), entry["shape"]
    size = np.dtype(entry["dtype"]).itemsize
    if kind == 0:
        alike = [dtype for dtype in sorted(array_file.DTYPES) if np.dtype(dtype).itemsize == size]
        entry["dtype"] = alike[rng.integers(len(alike))]
    elif kind == 1:
        entry["shape"] = shape[::-1] if len(shape) > 1 else [*shape, 1]
    elif kind == 2:
        entry["order"] = "F"
    elif kind == 3 and shape and shape[0]:
        entry["shape"] = [int(rng.integers(shape[0])), *shape[1:]]
        entry["bytes"] = int(np.prod(entry["shape"])) * size
    else:
        others = list(manifest["arrays"].values())
        manifest["arrays"][name] = copy.deepcopy(others[rng.integers(len(others))])
    return f"the entry of {name} is {manifest['arrays'][name]}"


def _paths(tree: Any, path: Keys) -> list[Keys]:
    """Where all values of a JSON tree are."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [path, *(found for key, value in items for found in _paths(value, [*path, key]))]


def _at(tree: Any, path: Keys) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def _change_value(manifest: dict[str, Any], content: Array, rng: np.random.Generator) -> str:
    """Replace or remove one value of the manifest."""
    parts = ["state", "state", "parameters", "parameters", "file", "arrays", *manifest]
    part = parts[rng.integers(len(parts))]
    paths = _paths(manifest[part], [part])
    path = paths[rng.integers(len(paths))]
    parent = _at(manifest, path[:-1])
    if not rng.integers(4):
        del parent[path[-1]]
        return f"{path} is removed"
    parent[path[-1]] = VALUES[rng.integers(len(VALUES))]
    return f"{path} is {parent[path[-1]]!r}"


def _swap_parts(manifest: dict[str, Any], content: Array, rng: np.random.Generator) -> str:
    """Put a part of the state in the place of another one."""
    paths = [path for path in _paths(manifest["state"], ["state"]) if len(path) > 2]
    to, source = (paths[i] for i in rng.integers(len(paths), size=2))
    _at(manifest, to[:-1])[to[-1]] = copy.deepcopy(_at(manifest, source))
    return f"{to} is {source}"


def try_model(folder: Path, X: Any) -> str:
    """Load a model and predict and explain with it: "refused", or what was predicted."""
    try:
        model: Any = exmlds.load(folder)
    except exmlds.ModelError:
        return "refused"
    queries: Any = X
    if isinstance(model, exmlds.TextClassifier):
        queries = ["goals and bread", "the keeper of the flour", ""]
    ids, scores = model.predict_topk(queries, 3)
    model.predict_topk(queries[:1], 50)
    assert ids.max() < len(model.classes_)
    if not isinstance(model, (exmlds.MostFrequent, exmlds.FeatureNeighbors)):
        with suppress(NotImplementedError):
            model.explain(queries[:1])
    return f"predicted {scores.shape}"
