"""Decoding of files: their encoding, and what becomes of bytes that are not in it."""

from __future__ import annotations

import codecs
import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ...errors import Argument, DataError, DataWarning, some
from ...storage.files import reading

BOM = codecs.BOM_UTF8
CHUNK = 1 << 16  # bytes that are converted to UTF-8 at a time
SHOWN = 5  # names of documents or files in a warning
REPLACE = Argument("errors", "replace")


class Decoder:
    """The encoding of files, UTF-8 by default.

    errors : "strict" raises an error for bytes that are not in the encoding; "replace" reads � instead
    damaged : the files, or the lines of files, in which bytes were replaced
    """

    def __init__(self, encoding: str = "utf-8", errors: str = "strict") -> None:
        if errors not in ("strict", "replace"):
            message = "{errors} must be 'strict' or 'replace'. Got {got!r} instead."
            raise DataError(message, errors=Argument("errors"), got=errors)
        try:
            io.TextIOWrapper(io.BytesIO(), encoding=encoding)  # refuses codecs that do not make text of bytes
            self.encoding = codecs.lookup(encoding).name
        except (LookupError, ValueError):
            message = (
                "{encoding} must be an encoding that Python knows, such as latin-1. Got {got!r} instead."
            )
            raise DataError(message, encoding=Argument("encoding"), got=encoding) from None
        self.errors = errors
        self.damaged: list[str] = []

    @property
    def is_utf8(self) -> bool:
        return self.encoding == "utf-8"

    @property
    def display_name(self) -> str:
        return "UTF-8" if self.is_utf8 else self.encoding

    @contextmanager
    def reading(self, path: Path) -> Iterator[IO[bytes]]:
        """Open a file; its bytes are converted to UTF-8, unless it begins with a byte order mark of UTF-8."""
        with reading(path) as file:
            is_utf8 = self.is_utf8 or file.peek(len(BOM)).startswith(BOM)  # type: ignore[attr-defined]
            yield file if is_utf8 else io.BufferedReader(_Converted(file, self, path), CHUNK)

    def decode(self, raw: bytes, where: str) -> str:
        """The text of bytes of a file of `reading`."""
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            self.report(error, where)
            return raw.decode("utf-8", "replace")

    def report(self, error: UnicodeDecodeError, where: str) -> None:
        """Raise an error for bytes that are not in the encoding, or note where they are replaced."""
        if self.errors == "replace":
            self.damaged.append(where)
            return
        other = Argument("encoding", "latin-1" if self.is_utf8 else "…")
        message = (
            "{where}: not {name} ({reason} at byte {byte}). Save the file as UTF-8, name its encoding with "
            "{encoding}, or pass {errors} to read � instead."
        )
        values = {"where": where, "name": self.display_name, "reason": error.reason, "byte": error.start + 1}
        raise DataError(message, **values, encoding=other, errors=REPLACE) from None

    def warn_of_damage(self, path: Path | str) -> None:
        """Name the files or lines in which bytes were replaced since the last warning."""
        if self.damaged:
            damaged = list(dict.fromkeys(self.damaged))
            self.damaged.clear()
            warnings.warn(
                f"{path}: bytes that are not {self.display_name} were read as �. Damaged "
                f"({len(damaged):,}): {some(damaged, SHOWN)}.",
                DataWarning,
                stacklevel=3,
            )


UTF_8 = Decoder()


class _Converted(io.RawIOBase):
    """The bytes of a file in UTF-8, converted as they are read."""

    def __init__(self, file: IO[bytes], decoder: Decoder, path: Path) -> None:
        self._file, self._decoder, self._path = file, decoder, path
        self._strict = codecs.getincrementaldecoder(decoder.encoding)("strict")
        self._converted = b""
        self._is_at_end = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._converted and not self._is_at_end:
            chunk = self._file.read(CHUNK)
            self._is_at_end = not chunk
            self._converted = self._decode(chunk).encode("utf-8", "replace")
        n = min(len(buffer), len(self._converted))
        buffer[:n], self._converted = self._converted[:n], self._converted[n:]
        return n

    def _decode(self, chunk: bytes) -> str:
        state = self._strict.getstate()
        try:
            return self._strict.decode(chunk, self._is_at_end)
        except UnicodeDecodeError as error:
            self._decoder.report(error, str(self._path))
            self._strict.setstate(state)
            self._strict.errors = "replace"
            text = self._strict.decode(chunk, self._is_at_end)
            self._strict.errors = "strict"
            return text
