"""Which format a file has, told by how it begins."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ...errors import DataError
from .documents import BOM, PARQUET, START, URI, ZIP, Plan
from .fields import LABEL_NAMES, TEXT_NAMES, guess
from .formats import DELIMITERS, READERS
from .table import allow_large_cells

SEEN = 64  # words of a line that tell whether it is numbers
_NUMBERS = re.compile(rb"-?[0-9,]+(:\S*)?")
_PAIR = re.compile(rb"[0-9]+:\S*")
_JSON = re.compile(rb"\s*(\{|\[\s*\{)")


def told(path: Path, start: bytes, plan: Plan) -> str:
    """The format: what can be nothing else first, plain lines last."""
    if start.startswith(PARQUET):
        return "parquet"
    if _JSON.match(start):
        return "jsonl"
    if is_numeric(start):
        raise DataError(f'{path} holds numbers, not texts. Read it with read_xc, or say format="…".')
    lines = sample(start)
    if not lines:
        raise DataError(f"{path} holds no documents.")
    table = _named_table(lines, plan)
    if table:
        return table
    if any(line.startswith(plan.label_prefix) for line in lines):
        return "fasttext"
    if plan.text or plan.labels:  # no other format has fields
        return max(DELIMITERS, key=lambda kind: max(len(_header(lines, d)) for d in DELIMITERS[kind]))
    table = _partly_named_table(lines)
    if table:
        return table
    if _have_uris(lines):
        return "annif-tsv"
    if _in_two_or_three(lines, plan.labelled):
        return "libmultilabel"
    table = _other_table(lines)
    if table:
        return table
    if plan.labelled:
        known = ", ".join(READERS)
        raise DataError(
            f'{path} is none of the formats that are read: {known}. Say format="…" if it is one of them, '
            "or labelled=False if it is plain text, a document a line."
        )
    return "lines"


def sample(start: bytes) -> list[str]:
    """The lines that are not empty, without the last one where it is cut off."""
    lines = start.decode("utf-8", "replace").split("\n")
    if len(start) >= START - len(BOM) and len(lines) > 1:
        lines.pop()
    return [line.removesuffix("\r") for line in lines if line not in ("", "\r")]


def is_numeric(start: bytes) -> bool:
    """Whether the first row is numbers and most rows hold some: a file of numbers with a fault is no text."""
    if start.startswith(ZIP):
        return True
    rows = [line.partition(b"#")[0].split(None, SEEN)[:SEEN] for line in start.split(b"\n")]
    rows = [row for row in rows if row]
    if not rows or not all(map(_NUMBERS.fullmatch, rows[0])):
        return False
    some = [all(map(_NUMBERS.fullmatch, row)) or any(map(_PAIR.fullmatch, row)) for row in rows]
    return 2 * sum(some) > len(rows)


def _have_uris(lines: list[str]) -> bool:
    """Whether most of what stands behind a tab is URIs."""
    behind = [words for line in lines if (words := line.partition("\t")[2].split())]
    return bool(behind) and 2 * sum(all(map(URI.fullmatch, words)) for words in behind) > len(behind)


def _in_two_or_three(lines: list[str], labelled: bool) -> bool:
    """Whether lines have the tabs of LibMultiLabel: most, or all where it may be plain text."""
    tabs = lines[0].count("\t")
    alike = sum(line.count("\t") == tabs for line in lines)
    return tabs in (1, 2) and (2 * alike >= len(lines) if labelled else alike == len(lines))


def _header(lines: Iterable[str], delimiter: str) -> list[str]:
    return next(_cells(lines, delimiter), [])


def _cells(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    allow_large_cells()
    try:
        yield from csv.reader(lines, delimiter=delimiter)
    except csv.Error:
        return


def _named_table(lines: list[str], plan: Plan) -> str | None:
    """A table whose header has the columns that are wanted."""
    for kind, delimiters in DELIMITERS.items():
        if any(_has_columns(_header(lines, delimiter), plan) for delimiter in delimiters):
            return kind
    return None


def _has_columns(header: list[str], plan: Plan) -> bool:
    names = [cell.strip() for cell in header]
    if not plan.labelled and names != header:
        return False  # prose has a blank after a comma
    text = set(plan.text) <= set(names) if plan.text else guess(names, TEXT_NAMES)
    labels = not plan.labelled or (plan.labels in names if plan.labels else guess(names, LABEL_NAMES))
    return bool(text and labels)


def _partly_named_table(lines: list[str]) -> str | None:
    """A table with words for a header, one of them usual; it could be taken for a line of LibMultiLabel."""
    for kind, delimiters in DELIMITERS.items():
        for delimiter in delimiters:
            header = _header(lines, delimiter)
            words = len(header) > 1 and all(len(cell.split()) == 1 for cell in header)
            if words and guess(header, TEXT_NAMES + LABEL_NAMES):
                return kind
    return None


def _other_table(lines: list[str]) -> str | None:
    """A table by its looks: a row of names, and as many cells in most rows."""
    for kind, delimiters in DELIMITERS.items():
        for delimiter in delimiters:
            header, *rows = list(_cells(lines, delimiter)) or [[]]
            names = len(header) > 1 and len(set(header)) == len(header)
            names = names and all(cell and cell == cell.strip() and len(cell) <= 60 for cell in header)
            if names and rows and 2 * sum(len(row) == len(header) for row in rows) >= len(rows):
                return kind
    return None


def delimiter_of(lines: list[str], among: str, plan: Plan) -> str:
    return max(among, key=lambda d: (_has_columns(_header(lines, d), plan), len(_header(lines, d))))
