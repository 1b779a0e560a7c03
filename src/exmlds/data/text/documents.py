"""A document, the plan of how to read it, and the lines of a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ...errors import Argument, DataError
from ...storage.files import reading

START = 1 << 16  # bytes that tell the format
FEW = 8  # lines that tell it where they are long
LONGEST = 1 << 24  # bytes of them
PARQUET = b"PAR1"
ZIP = b"PK\x03\x04"  # what an .npz file is
BOM = b"\xef\xbb\xbf"
OTHER_BOMS = (b"\xff\xfe", b"\xfe\xff")  # of UTF-16 and UTF-32

UNLABELLED = Argument("labelled", False)
URI = re.compile(r"<[^<>\s]+>|https?://\S+")


class Document(NamedTuple):
    """One text.

    text : as it stands in the file, "" where it is empty
    labels : each once, in the order of the file; [] where there are none
    where : the file and the line (of Parquet, the row), for messages
    """

    text: str
    labels: list[str]
    where: str


class ReadOptions(NamedTuple):
    """How to read: what was asked for, then what the file has told."""

    text: tuple[str, ...]  # fields or columns; () is to be guessed, or the format has none
    labels: str | None
    label_separator: str | None
    label_prefix: str
    labelled: bool
    errors: str
    delimiter: str = ""
    skip_blanks: bool = False  # after a delimiter


def start_of(path: Path) -> bytes:
    """How a file begins: whole lines, of which one may be longer than what is read of others."""
    with reading(path) as file:
        start = file.read(START)
        if not start.startswith((PARQUET, ZIP)):
            start += file.readline(LONGEST)
            while start.count(b"\n") < FEW and len(start) < LONGEST and (line := file.readline(LONGEST)):
                start += line
        return start.removeprefix(BOM)


def check_encoding(path: Path, start: bytes) -> None:
    if start.startswith(OTHER_BOMS):
        raise DataError(f"{path} is UTF-16 or UTF-32; save it as UTF-8.")
    if b"\0" in start and not start.startswith((PARQUET, ZIP)):
        raise DataError(f"{path} is not text: it holds NUL bytes. Is it the right file, and UTF-8?")


def lines_of(path: Path, errors: str) -> Iterator[tuple[str, str]]:
    """Where each line stands, and the line with its end."""
    with reading(path) as file:
        yield from numbered(file, str(path), errors)


def numbered(file: Iterable[bytes], name: str, errors: str) -> Iterator[tuple[str, str]]:
    for number, raw in enumerate(file, start=1):
        if number == 1:
            raw = raw.removeprefix(BOM)
        where = f"{name}:{number}"
        yield where, decoded(raw, errors, where)


def decoded(raw: bytes, errors: str, where: str) -> str:
    try:
        return raw.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise DataError(
            "{where}: not UTF-8 ({reason} at byte {byte}). "
            "Save the file as UTF-8, or pass {errors} to read � in its place.",
            where=where,
            reason=error.reason,
            byte=error.start + 1,
            errors=Argument("errors", "replace"),
        ) from None


def bare(line: str) -> str:
    return line[:-2] if line.endswith("\r\n") else line.removesuffix("\n")


def filled(path: Path, errors: str) -> Iterator[tuple[str, str]]:
    """Lines without their ends, blank ones left out."""
    for where, line in lines_of(path, errors):
        line = bare(line)
        if line:
            yield where, line


def unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([trimmed for name in names if (trimmed := name.strip())]))


def bare_uri(cell: str) -> str:
    return cell[1:-1] if cell.startswith("<") and cell.endswith(">") else cell


def count(cells: Sequence[str]) -> str:
    return f"{len(cells)} cell{'s' * (len(cells) != 1)}"
