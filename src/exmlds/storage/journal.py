"""The journal of a model that grows: the changes since its generation was written, one record each.

    MODEL/journal-1f0c….log      belongs to MODEL/arrays-1f0c….bin, and to no other generation

The file begins with a magic number, the version of the format and the generation. A record is a header and a
payload, the bytes of `tree.dumps`, compressed where that is clearly smaller. Its header has the sizes of the
payload, its CRC-32, and a CRC-32 of the header itself together with its offset and the generation, so that
bytes that only look like a record are not taken for one.

A record is written and synced before the call that made the change returns, and the next one is written after
that. A crash thus damages the last record at most, whose change was never acknowledged: readers leave such a
tail out, and a writer cuts it. A damaged record with others after it is an error.
"""

from __future__ import annotations

import os
import re
import struct
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ModelError
from . import tree
from .array_file import ADVICE, open_regular
from .files import sync, sync_folder
from .lock import WriterLock

FORMAT = 1
TEMPORARY = ".journal"
NAME = re.compile(r"journal-([0-9a-f]{12})\.log")

_MAGIC, _MARK = b"EXMLDS\x00J", b"\xe7rec"
_HEADER = struct.Struct("<8sI12sI")  # magic, format, generation, CRC-32 of these
_RECORD = struct.Struct(
    "<4sQQII"
)  # mark, bytes as stored, bytes as plain, CRC-32 of the payload and of these
_POSITION = struct.Struct("<Q")

_LARGEST_RATIO, _SMALL = 64, 1 << 25  # plain bytes by stored ones, of records with more plain bytes than that
_SAMPLE = 1 << 18  # bytes by which a large payload is tried
_READS, _PAUSE = 50, 0.02  # how often, and after how many seconds, a journal that is being written is read


class Position(NamedTuple):
    """Where the next record goes: end : the bytes before it, 0 where the generation has no journal yet."""

    generation: str
    end: int


class Contents(NamedTuple):
    """What a journal holds.

    payloads : of the whole records, and the number of plain bytes of each
    end : bytes of the header and the whole records;  n_torn : bytes after them
    """

    path: Path
    payloads: list[tuple[bytes, int]]
    end: int
    n_torn: int

    def changes(self) -> Iterator[Any]:
        """The changes in their order."""
        for number, (payload, n_plain) in enumerate(self.payloads, 1):
            with tree.explained(f"{self.path}, record {number:,},"):
                change = tree.loads(_unpacked(payload, n_plain))
                if not hasattr(change, "_fields"):
                    raise ValueError("it is not a change of a model")
            yield change


def path_of(folder: Path, generation: str) -> Path:
    return folder / f"journal-{generation}.log"


def generation_of(path: Path) -> str:
    """The generation whose journal has this path."""
    found = NAME.fullmatch(path.name)
    assert found is not None
    return found[1]


def read(folder: Path, generation: str) -> Contents:
    """The journal of a generation; where there is no file, it is empty.

    A record that is not whole may be one that a writer is just writing: it is read again until nothing has
    changed in between.
    """
    path, before = path_of(folder, generation), b""
    for _ in range(_READS):
        try:
            with open_regular(path) as file:
                raw = file.read()
        except FileNotFoundError:
            return Contents(path, [], 0, 0)
        except OSError as error:
            raise ModelError(f"{path}: cannot be read ({error.strerror}).") from None
        contents = _parse(path, raw, generation)
        if not contents.n_torn or raw == before:
            break
        before = raw
        time.sleep(_PAUSE)
    if contents.n_torn and _has_record_after(raw, contents.end + 1, generation):
        raise ModelError(
            f"{path} is damaged: record {len(contents.payloads) + 1:,} does not match its checksum, and "
            f"others follow it. {ADVICE}"
        )
    return contents


def _parse(path: Path, raw: bytes, generation: str) -> Contents:
    _check_header(path, raw, generation)
    end, payloads = _HEADER.size, []
    while header := _record_header(raw, end, generation):
        n_stored, n_plain, crc = header
        payload = raw[end + _RECORD.size : end + _RECORD.size + n_stored]
        if len(payload) != n_stored or zlib.crc32(payload) != crc:
            break
        payloads.append((payload, n_plain))
        end += _RECORD.size + n_stored
    return Contents(path, payloads, end, len(raw) - end)


def _check_header(path: Path, raw: bytes, generation: str) -> None:
    if len(raw) < _HEADER.size or not raw.startswith(_MAGIC):
        raise ModelError(f"{path} is damaged: it does not begin as a journal does. {ADVICE}")
    _, version, own, _ = _HEADER.unpack_from(raw)
    if raw[: _HEADER.size] != _header(own, version):
        raise ModelError(f"{path} is damaged: its header does not match its checksum. {ADVICE}")
    if version > FORMAT:
        raise ModelError(
            f"{path} was written by a newer exmlds (journal format {version}; this one reads up to "
            f"{FORMAT}). Upgrade exmlds."
        )
    if own != generation.encode():
        raise ModelError(f"{path} belongs to another generation of a model. {ADVICE}")


def _header(generation: bytes, version: int = FORMAT) -> bytes:
    crc = zlib.crc32(_HEADER.pack(_MAGIC, version, generation, 0))
    return _HEADER.pack(_MAGIC, version, generation, crc)


def _record_header(raw: bytes, offset: int, generation: str) -> tuple[int, int, int] | None:
    """(bytes as stored, plain bytes, CRC-32) of the record at an offset, or None where there is none."""
    if not raw.startswith(_MARK, offset) or offset + _RECORD.size > len(raw):
        return None
    _, n_stored, n_plain, crc, own = _RECORD.unpack_from(raw, offset)
    return (
        (n_stored, n_plain, crc) if own == _header_crc(n_stored, n_plain, crc, offset, generation) else None
    )


def _header_crc(n_stored: int, n_plain: int, crc: int, offset: int, generation: str) -> int:
    where = generation.encode() + _POSITION.pack(offset)
    return zlib.crc32(_RECORD.pack(_MARK, n_stored, n_plain, crc, 0), zlib.crc32(where))


def _has_record_after(raw: bytes, offset: int, generation: str) -> bool:
    while (offset := raw.find(_MARK, offset)) >= 0:
        if _record_header(raw, offset, generation):
            return True
        offset += 1
    return False


def _packed(plain: bytes) -> bytes:
    """The payload as it is stored: compressed where that is clearly smaller."""
    sample = plain[:_SAMPLE]
    if len(zlib.compress(sample, 1)) > 0.9 * len(sample):
        return plain
    packed = zlib.compress(plain, 1)
    return packed if len(packed) < len(plain) <= _most_plain(len(packed)) else plain


def _most_plain(n_stored: int) -> int:
    """The most bytes that a compressed record may have, so that a crafted one does not exhaust the memory."""
    return max(_SMALL, _LARGEST_RATIO * n_stored)


def _unpacked(payload: bytes, n_plain: int) -> bytes:
    if n_plain == len(payload):
        return payload
    if n_plain > _most_plain(len(payload)):
        raise ValueError("it is compressed too much")
    unpacker = zlib.decompressobj()
    try:
        plain = unpacker.decompress(payload, n_plain + 1)
    except zlib.error:
        raise ValueError("it cannot be decompressed") from None
    if len(plain) != n_plain or not unpacker.eof:
        raise ValueError("it has another size than its header says")
    return plain


class Journal:
    """A model folder that is open for writing, with its lock.

    generation : of the model in the folder, whose journal is appended to; a save by the same writer
        replaces it
    """

    def __init__(self, folder: Path, generation: str, lock: WriterLock) -> None:
        self.folder, self.generation, self.lock = folder, generation, lock

    def close(self) -> None:
        """Let others write; nothing can be appended any more."""
        self.lock.release()

    def check_open(self) -> None:
        if not self.lock.is_held:
            raise ModelError(
                f"{self.folder} is no longer open for writing; load it again with writable=True. The model "
                "is unchanged."
            )
        if not self.lock.is_of(self.folder):
            raise ModelError(
                f"{self.folder} was replaced by another folder since it was opened; load it again. The model "
                "is unchanged."
            )

    def is_of(self, folder: Path) -> bool:
        """Whether this is the folder that is open, by whatever path."""
        return self.lock.is_of(folder)

    def start(self, contents: Contents) -> Position:
        """The position after all whole records; what is after them is cut off."""
        self.check_open()
        if contents.n_torn:
            with _explained(contents.path), open_regular(contents.path, os.O_RDWR, "r+b") as file:
                os.ftruncate(file.fileno(), contents.end)
                os.fsync(file.fileno())
        return Position(self.generation, contents.end)

    def append(self, change: Any, position: Position) -> Position:
        """Write a change, a record, and return the position after it; once this returns, it is on the disk.

        What a call that failed has left after the position is overwritten. Where this call fails, it is cut
        off again.
        """
        self.check_open()
        plain = tree.dumps(change, "change")
        # A save has replaced the generation since: it holds all changes before this one.
        end = position.end if position.generation == self.generation else 0
        path = path_of(self.folder, self.generation)
        with _explained(path):
            if not end:
                end = self._create(path)
            return Position(self.generation, self._write(path, plain, end))

    def _create(self, path: Path) -> int:
        temporary = self.folder / TEMPORARY
        temporary.unlink(missing_ok=True)
        with temporary.open("xb") as file:
            file.write(_header(self.generation.encode()))
            sync(file)
        os.replace(temporary, path)
        sync_folder(self.folder)
        return _HEADER.size

    def _write(self, path: Path, plain: bytes, end: int) -> int:
        payload = _packed(plain)
        sizes = (len(payload), len(plain), zlib.crc32(payload))
        header = _RECORD.pack(_MARK, *sizes, _header_crc(*sizes, end, self.generation))
        with open_regular(path, os.O_RDWR, "r+b") as file:
            handle = file.fileno()
            if os.fstat(handle).st_size < end:
                raise ModelError(f"{path} has become shorter since it was opened. {ADVICE}")
            try:
                os.ftruncate(handle, end)
                os.lseek(handle, end, os.SEEK_SET)
                _write_all(handle, header + payload)
                os.fsync(handle)
            except BaseException:
                with suppress(OSError):
                    os.ftruncate(handle, end)
                    os.fsync(handle)
                raise
        return end + len(header) + len(payload)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ModelError(
            f"{path}: cannot be written ({error.strerror or error}). The model is unchanged."
        ) from error


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]
