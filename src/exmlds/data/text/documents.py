"""A document, the options for reading it, and the decoded lines of a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ...errors import Argument, DataError
from ...validation.targets import plain_name
from .decoding import BOM, UTF_8, Decoder

START = 1 << 16  # bytes read to detect the format
FEW = 8  # lines read to detect it if they are longer than that
LONGEST = 1 << 24  # limit in bytes on those lines
PARQUET = b"PAR1"
ZIP = b"PK\x03\x04"  # an .npz file is a zip archive
# The first bytes of documents that hold text, but are not plain text, and what to call them.
FORMATTED = {
    b"%PDF": "a PDF file",
    b"{\\rtf": "an RTF file",
    b"\xd0\xcf\x11\xe0": "a file of Word or Excel",
    ZIP: "a zip archive, as .docx, .odt, .xlsx and .epub files are",
}
FORMATTED_ENDINGS = (".pdf", ".rtf", ".doc", ".docx", ".odt", ".epub")
OTHER_BOMS = (b"\xff\xfe", b"\xfe\xff")  # byte order marks of UTF-16 and UTF-32

# Arguments that several messages tell the user to pass.
UNLABELLED = Argument("labelled", False)
ANY_FORMAT = Argument("format", "…")
LABELS_BY_NAME = Argument("labels", "label")
URI = re.compile(r"(<[^<>\s]+>[,;]?)+|https?://\S+")
_URI_START = re.compile(r"\s*<?[A-Za-z][A-Za-z0-9+.-]*:\S")
_URI_LIST = re.compile(r"\s*(<[A-Za-z][\w+.-]*:[^<>\s]+>[\s,;]*)+")


class Document(NamedTuple):
    """One text with its labels.

    text : the text as it is in the file; "" if it is empty
    labels : the distinct labels in the order of the file; [] if there are none
    where : the file and the line (for Parquet, the row), for messages
    id : the id in the file, or the file name in a folder of documents; None if there is none
    fields : the texts of several fields or columns, which `text` joins by newlines; () if there is one
    """

    text: str
    labels: list[str]
    where: str
    id: str | None = None
    fields: tuple[str, ...] = ()


class ReadOptions(NamedTuple):
    """The arguments of `open_texts`, completed by what was detected in the file."""

    text: tuple[str, ...]  # fields or columns; () until they are detected, or if the format has none
    labels: str | None
    label_separator: str | None
    label_prefix: str
    labelled: bool
    decoder: Decoder
    id: str | None = None  # the field or column of ids
    delimiter: str = ""
    skip_blanks: bool = False  # ignore spaces after a delimiter


def start_of(path: Path, decoder: Decoder = UTF_8) -> bytes:
    """The first lines of a file in UTF-8, complete even if one of them is very long."""
    with decoder.reading(path) as file:
        start = file.read(START)
        if not start.startswith((PARQUET, ZIP)):
            start += file.readline(LONGEST)
            while start.count(b"\n") < FEW and len(start) < LONGEST and (line := file.readline(LONGEST)):
                start += line
        return start.removeprefix(BOM)


def formatted_kind(path: Path, start: bytes) -> str | None:
    """What to call a file that begins with these bytes, if it is a PDF, of a word processor or the like."""
    name_of_first = start[30 : 30 + int.from_bytes(start[26:28], "little")]  # in a zip archive
    if start.startswith(ZIP) and (name_of_first.endswith(b".npy") or path.suffix.lower() == ".npz"):
        return None
    return next((kind for first, kind in FORMATTED.items() if start.startswith(first)), None)


def check_encoding(path: Path, start: bytes) -> None:
    if kind := formatted_kind(path, start):
        raise DataError(
            f"{path} is {kind}; save its text as plain text (.txt, UTF-8), or its table as CSV, first."
        )
    if start.startswith(OTHER_BOMS):
        message = "{path} is UTF-16 or UTF-32; save it as UTF-8, or pass {encoding}."
        raise DataError(message, path=path, encoding=Argument("encoding", "utf-16"))
    if b"\0" in start and not start.startswith((PARQUET, ZIP)):
        raise DataError(f"{path} is not text: it holds NUL bytes. Is it the right file, and UTF-8?")


def lines_of(path: Path, decoder: Decoder) -> Iterator[tuple[str, str]]:
    """Yield the position of each line, for messages, and the line with its newline."""
    with decoder.reading(path) as file:
        for number, raw in enumerate(file, start=1):
            where = f"{path}:{number}"
            yield where, decoder.decode(raw.removeprefix(BOM) if number == 1 else raw, where)


def whole_text(path: Path, decoder: Decoder) -> str:
    """The text of a file that is one document."""
    with decoder.reading(path) as file:
        raw = file.read().removeprefix(BOM)
    check_encoding(path, raw)
    return decoder.decode(raw, str(path))


def bare(line: str) -> str:
    return line[:-2] if line.endswith("\r\n") else line.removesuffix("\n")


def filled(path: Path, decoder: Decoder) -> Iterator[tuple[str, str]]:
    """Yield the lines that are not empty, without their newlines."""
    for where, line in lines_of(path, decoder):
        line = bare(line)
        if line:
            yield where, line


def unique(names: Iterable[str]) -> list[str]:
    """The distinct labels, stripped and in NFC; a list of URIs such as `<a:b>, <a:c>` is split."""
    trimmed = [trimmed for name in names if (trimmed := plain_name(name))]
    return list(dict.fromkeys([label for name in trimmed for label in _uris(name) or (name,)]))


def split_labels(cell: str, separator: str | None) -> list[str]:
    """The labels of a cell, which is one label if there is no separator. URIs may hold the separator."""
    return unique(cell.split(separator) if separator and not is_uri_list(cell) else [cell])


def is_uri_list(cell: str) -> bool:
    """Whether a cell consists of URIs in angle brackets."""
    return "<" in cell and _URI_LIST.fullmatch(cell) is not None


def _uris(cell: str) -> list[str]:
    return re.findall("<([^<>]+)>", cell) if is_uri_list(cell) else []


def begins_with_uri(line: str) -> bool:
    """
    >>> begins_with_uri("<urn:sea>\tsea"), begins_with_uri("sea: tides")
    (True, False)
    """
    return _URI_START.match(line) is not None


def bare_uri(cell: str) -> str:
    return cell[1:-1] if re.fullmatch("<[^<>]*>", cell) else cell


def count(cells: Sequence[str]) -> str:
    return f"{len(cells)} cell{'s' * (len(cells) != 1)}"
