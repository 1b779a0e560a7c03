"""Trees of plain values, lists, dicts, arrays, csr matrices and records, as JSON and one file of arrays.

A tree may also hold models that are folders within the model folder (`inner.py`): JSON has their numbers.

`encode` and `decode` leave the JSON and the arrays apart, as a model folder has them; `dumps` and `loads` put
both into one string of bytes, as a record of a journal has them. What is decoded may come from anywhere:
whatever is not as `encode` makes it raises an error that `explained` turns into a `ModelError`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy.sparse import csr_matrix, issparse

from ..errors import ModelError
from .array_file import DTYPES, ArrayWriter, view
from .files import PathLike
from .inner import InnerModel
from .records import FROM_DISK, RECORDS

Array = np.ndarray

_LENGTH = 8  # bytes that hold the length of the JSON


def encode(
    value: Any, name: str, file: IO[bytes], inner: list[InnerModel] | None = None
) -> tuple[Any, ArrayWriter]:
    """Append the arrays of a tree to a file; returns what JSON can hold of it, and what was written where.

    name : of the tree, in errors and in the names of the arrays
    inner : the inner models of the tree are appended to it; without it, the tree must have none
    """
    writer = ArrayWriter(file)
    return _Encoder(writer, inner).encode(value, name), writer


def decode(state: Any, content: Array, arrays: dict[str, Any], inner: Path | None = None) -> Any:
    """The tree that `encode` was given.

    content : (size,) uint8, its file;  arrays : `ArrayWriter.arrays`;  inner : the folder of inner models
    """
    return _Decoder(content, arrays, inner).decode(state)


def dumps(value: Any, name: str) -> bytes:
    """A tree as one string of bytes: the length of the JSON, the JSON, the arrays."""
    file = BytesIO()
    state, writer = encode(value, name, file)
    text = json.dumps({"state": state, "arrays": writer.arrays}, ensure_ascii=False, separators=(",", ":"))
    head = text.encode("utf-8", "surrogatepass")
    return len(head).to_bytes(_LENGTH, "little") + head + file.getvalue()


def loads(raw: bytes) -> Any:
    """The tree that `dumps` was given; it owns its memory."""
    start = _LENGTH + int.from_bytes(raw[:_LENGTH], "little")
    if start > len(raw):
        raise ValueError("it is longer than its record")
    head = json.loads(raw[_LENGTH:start].decode("utf-8", "surrogatepass"))
    return decode(head["state"], np.frombuffer(raw, np.uint8, offset=start).copy(), head["arrays"])


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


_CSR = ("data", "indices", "indptr")


class _Encoder:
    def __init__(self, writer: ArrayWriter, inner: list[InnerModel] | None) -> None:
        self.writer, self.inner = writer, inner

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
        if isinstance(value, InnerModel) and self.inner is not None:
            self.inner.append(value)
            return {"$model": len(self.inner) - 1}
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
    named = ".".join([FROM_DISK.get(attribute, attribute), *parts])
    return ModelError(
        f"{named} cannot be saved: {problem}. What a fit learns must be an estimator of exmlds, or consist "
        "of plain values, arrays of numbers or strings, csr matrices, lists, dicts with string keys and "
        "registered NamedTuples."
    )


class _Decoder:
    """Builds the state; whatever is not as `_Encoder` writes it raises an error that `explained` words."""

    def __init__(self, content: Array, arrays: dict[str, Any], inner: Path | None) -> None:
        self.content, self.arrays, self.inner = content, arrays, inner

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
        if "$model" in value and self.inner is not None:
            number = value["$model"]
            if type(number) is not int or number < 0:
                raise ValueError("its state names a model that is not within it")
            return InnerModel(self.inner / str(number))
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
        if len(parts["indptr"]) != n_rows + 1:  # which a crafted number of rows would make huge
            raise ValueError("a sparse matrix has another number of rows")
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
    raise _unsavable(
        name, f"{kind.__qualname__} has no tag; give it one with `exmlds.storage.records.register`"
    )
