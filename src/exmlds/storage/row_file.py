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
from typing import IO, Any

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
    with path.open("rb") as file:
        for start, n_bytes, checksum in _index(file, path).get(key, ()):
            file.seek(start)
            raw = file.read(n_bytes)
            if zlib.crc32(raw) != checksum:
                raise _damaged(path)
            yield tree.loads(raw)


def sizes(path: Path) -> dict[str, int]:
    """The bytes of the records of each key."""
    with path.open("rb") as file:
        return {key: sum(n_bytes for _, n_bytes, _ in records) for key, records in _index(file, path).items()}


def _index(file: IO[bytes], path: Path) -> dict[str, list[tuple[int, int, int]]]:
    """Where the records of each key begin, their bytes and their checksums."""
    try:
        file.seek(-_END.size, 2)
        size, magic = _END.unpack(file.read())
        file.seek(-_END.size - size, 2)
        index = json.loads(file.read(size)) if magic == _MAGIC else None
    except (OSError, ValueError):
        index = None
    if not isinstance(index, dict):
        raise _damaged(path)
    return index


def _damaged(path: Path) -> DataError:
    return DataError(f"{path} is damaged; remove it, and start the command again.")


def read_one(path: Path, key: str) -> Any:
    """The only record of a key."""
    (record,) = read(path, key)
    return record
