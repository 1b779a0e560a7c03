"""Files of records that other tasks read: rows on their way to parts, and what tasks have counted.

A file holds trees (`tree.py`) under keys, several of them under a key if they were written at several times,
and ends with an index, so that one key is read without the others. It is written under a temporary name and
renamed, so a file with its name is whole.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..errors import DataError
from . import tree
from .files import replacing

_END = struct.Struct("<Q8s")  # bytes of the index, magic
_MAGIC = b"EXMLDS\x00R"


def write(path: Path, records: Iterable[tuple[str, Any]]) -> None:
    """Write records, pairs of a key and a tree, as they come."""
    index: dict[str, list[tuple[int, int, int]]] = {}
    position = 0
    with replacing(path) as file:
        for key, value in records:
            raw = tree.dumps(value, key)
            file.write(raw)
            index.setdefault(key, []).append((position, len(raw), zlib.crc32(raw)))
            position += len(raw)
        end = json.dumps(index).encode()
        file.write(end + _END.pack(len(end), _MAGIC))


def read(path: Path, key: str) -> Iterator[Any]:
    """Yield the records of a key in the order in which they were written."""
    damaged = f"{path} is damaged; remove it, and start the command again."
    with path.open("rb") as file:
        try:
            file.seek(-_END.size, 2)
            size, magic = _END.unpack(file.read())
            file.seek(-_END.size - size, 2)
            index = json.loads(file.read(size)) if magic == _MAGIC else None
        except (OSError, ValueError):
            index = None
        if not isinstance(index, dict):
            raise DataError(damaged)
        for start, n_bytes, checksum in index.get(key, ()):
            file.seek(start)
            raw = file.read(n_bytes)
            if zlib.crc32(raw) != checksum:
                raise DataError(damaged)
            yield tree.loads(raw)


def read_one(path: Path, key: str) -> Any:
    """The only record of a key."""
    (record,) = read(path, key)
    return record
