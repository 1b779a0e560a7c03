"""Standard input: its bytes, and a temporary copy for what needs a file."""

from __future__ import annotations

import sys
from functools import cache
from io import BufferedReader
from pathlib import Path
from typing import IO

from ..errors import DataError


def standard_input() -> IO[bytes]:
    """The bytes of standard input."""
    if sys.stdin is None:
        raise DataError("Standard input is closed; name a file, or pipe the data in.")
    return sys.stdin.buffer


def is_packed_input() -> bool:
    """Whether standard input is gzipped or Parquet, so that it cannot be answered line by line."""
    return _arrived().startswith((b"\x1f\x8b", b"PAR1"))


def has_several_lines() -> bool:
    """Whether more than one line of a pipe has arrived; a person types them one by one."""
    return not standard_input().isatty() and b"\n" in _arrived().strip()


def _arrived() -> bytes:
    """The first bytes of standard input, which stay there; waits for some, but not for more."""
    start = standard_input()
    return start.peek() if isinstance(start, BufferedReader) else b""


@cache
def copied_input() -> Path:
    """Copy standard input to a temporary file, once, because format detection needs to read it twice."""
    import atexit
    import shutil
    import tempfile

    pipe = standard_input()
    folder = Path(tempfile.mkdtemp(prefix="exmlds-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "standard-input"
    try:
        with path.open("wb") as file:
            shutil.copyfileobj(pipe, file)
    except OSError as error:
        problem = f"Standard input cannot be copied to {folder} ({error.strerror})"
        raise DataError(f"{problem}; set TMPDIR to a folder with more space.") from None
    return path


def with_display_name(message: str) -> str:
    """Replace the path of the temporary copy of standard input in a message."""
    copy = str(copied_input()) if copied_input.cache_info().currsize else ""
    return message.replace(copy, "standard input") if copy else message
