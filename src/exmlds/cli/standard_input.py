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
    start = standard_input()
    return isinstance(start, BufferedReader) and start.peek(4).startswith((b"\x1f\x8b", b"PAR1"))


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
