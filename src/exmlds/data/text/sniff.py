"""Format detection from the first lines of a file."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ...errors import Argument, DataError
from .documents import ANY_FORMAT, PARQUET, UNLABELLED, URI, ZIP, ReadOptions, count
from .fields import LABEL_NAMES, TEXT_NAMES, guess
from .formats import DELIMITERS, READERS
from .table import allow_large_cells

SEEN = 64  # words of a line that are checked for numbers
_NUMBERS = re.compile(rb"-?[0-9,]+(:\S*)?")
_PAIR = re.compile(rb"[0-9]+:\S*")
_JSON = re.compile(rb"\s*(\{|\[\s*\{)")


def sniff_format(path: Path, start: bytes, options: ReadOptions) -> str:
    """Detect the format: the unmistakable ones first, plain lines last."""
    if start.startswith(PARQUET):
        return "parquet"
    if _JSON.match(start):
        return "jsonl"
    if is_numeric(start):
        message = "{path} holds numbers, not texts. Read it with read_xc, or pass {format}."
        raise DataError(message, path=path, format=ANY_FORMAT)
    lines = first_lines(start)
    if not any(line.strip() for line in lines):
        raise DataError(f"{path} holds no documents.")
    if table := _table(lambda delimiter: _has_columns(lines, delimiter, options)):
        return table
    label = re.compile(rf"(?<![^ \t]){re.escape(options.label_prefix)}")
    if any(map(label.search, lines)):
        return "fasttext"
    if options.text or options.labels:  # of the remaining formats, only tables have fields
        return max(DELIMITERS, key=lambda kind: max(len(_header(lines, d)) for d in DELIMITERS[kind]))
    if table := _table(lambda delimiter: _is_partly_named(lines, delimiter, options.labelled)):
        return table
    if _have_uris(lines):
        return "annif-tsv"
    if _is_libmultilabel(path, lines, options):
        return "libmultilabel"
    if table := _table(lambda delimiter: _is_other_table(lines, delimiter, options.labelled)):
        return table
    if options.labelled:
        message = (
            "{path} is in none of the supported formats: {formats}. Pass {format} if it is in one of them. "
            "Read plain text, one document per line, with {unlabelled}."
        )
        formats = ", ".join(READERS)
        raise DataError(message, path=path, formats=formats, format=ANY_FORMAT, unlabelled=UNLABELLED)
    return "lines"


def first_lines(start: bytes) -> list[str]:
    """The lines of the start of a file that are not empty."""
    lines = start.decode("utf-8", "replace").split("\n")
    return [line.removesuffix("\r") for line in lines if line not in ("", "\r")]


def is_numeric(start: bytes) -> bool:
    """Whether the first row is numbers and most rows hold some, so that one bad row does not make it text."""
    if start.startswith(ZIP):
        return True
    rows = [line.partition(b"#")[0].split(None, SEEN)[:SEEN] for line in start.split(b"\n")]
    rows = [row for row in rows if row]
    if not rows or not all(map(_NUMBERS.fullmatch, rows[0])):
        return False
    some = [all(map(_NUMBERS.fullmatch, row)) or any(map(_PAIR.fullmatch, row)) for row in rows]
    return 2 * sum(some) > len(rows)


def _have_uris(lines: list[str]) -> bool:
    """Whether the cells after the first tab are mostly URIs."""
    return _mostly_uris(line.partition("\t")[2] for line in lines)


def _mostly_uris(cells: Iterable[str]) -> bool:
    filled = [words for cell in cells if (words := cell.split())]
    return bool(filled) and 2 * sum(all(map(URI.fullmatch, words)) for words in filled) > len(filled)


def _is_libmultilabel(path: Path, lines: list[str], options: ReadOptions) -> bool:
    """Whether most lines (all lines, if they may be plain text) have its cells; ambiguity is an error."""
    tabs = lines[0].count("\t")
    rows = [line.split("\t") for line in lines if line.count("\t") == tabs]
    enough = 2 * len(rows) >= len(lines) if options.labelled else len(rows) == len(lines)
    if tabs not in (1, 2) or not enough:
        return False
    clear = _labels_before_texts(rows, options.label_separator)
    this, lines_format = (Argument("format", name) for name in ("libmultilabel", "lines"))
    if clear and tabs == 1 and not options.labelled:
        message = (
            "{path}: every line holds one tab. Pass {libmultilabel} if the labels are before it, "
            "or {lines} if the whole line is the text."
        )
        raise DataError(message, path=path, libmultilabel=this, lines=lines_format)
    if options.labelled and not clear:
        line = "id<TAB>label label<TAB>text" if tabs == 2 else "label label<TAB>text"
        fields = {"text": Argument("text", "…"), "labels": Argument("labels", "…")}
        message = (
            f"{{path}}:1: got {count(rows[0])} per line, and it is not clear which one holds the text. "
            f"If this is a header, pass {{text}} and {{labels}}; if the lines are `{line}`, pass "
            "{libmultilabel}; otherwise add a header with the names text and labels."
        )
        raise DataError(message, path=path, libmultilabel=this, **fields)
    return clear


def _labels_before_texts(rows: list[list[str]], separator: str | None) -> bool:
    """Whether the last cells are clearly the texts: they have twice as many words and no header.

    If a separator is given, it must be more frequent in the label cells than in the texts. A cell before the
    labels must be an id: a single word that differs from row to row.
    """
    ids, labels, texts = [row[:-2] for row in rows], [row[-2] for row in rows], [row[-1] for row in rows]
    id_cells = [cell for row in ids for cell in row]
    if len(set(id_cells)) < len(id_cells) or any(len(cell.split()) != 1 for cell in id_cells):
        return False
    lengths = [len(text.split()) for text in texts]
    header = {len(cell.split()) for cell in rows[0]} == {1} and len(rows) > 2 and min(lengths[1:]) > 1
    if header or _mostly_uris(texts):
        return False
    if separator is not None:
        return sum(cell.count(separator) for cell in labels) > sum(text.count(separator) for text in texts)
    return sum(lengths) >= 2 * max(1, sum(len(cell.split()) for cell in labels))


def _header(lines: Iterable[str], delimiter: str) -> list[str]:
    cells = next(_cells(lines, delimiter, _blanks_follow(lines, delimiter)), [])
    return [cell.strip() for cell in cells]


def _blanks_follow(lines: Iterable[str], delimiter: str) -> bool:
    """Whether a space follows each delimiter of the header, as in prose and in some tables."""
    header = next(_cells(lines, delimiter), [])
    return len(header) > 1 and all(cell.startswith(" ") for cell in header[1:])


def _cells(lines: Iterable[str], delimiter: str, skip_blanks: bool = False) -> Iterator[list[str]]:
    allow_large_cells()
    try:
        yield from csv.reader(lines, delimiter=delimiter, skipinitialspace=skip_blanks)
    except csv.Error:
        return


def _table(is_table: Callable[[str], bool]) -> str | None:
    """The first format of tables with a delimiter that passes the test."""
    return next((kind for kind, delimiters in DELIMITERS.items() if any(map(is_table, delimiters))), None)


def _has_columns(lines: list[str], delimiter: str, options: ReadOptions) -> bool:
    """Whether the header has the text and label columns.

    Plain text may begin with one of the standard names and has spaces after its commas; it is not a table,
    because its first line would be lost as a header.
    """
    names = _header(lines, delimiter)
    text = set(options.text) <= set(names) if options.text else guess(names, TEXT_NAMES)
    labels = options.labels in names if options.labels else guess(names, LABEL_NAMES)
    may_be_prose = not options.text and (len(names) == 1 or _blanks_follow(lines, delimiter))
    return bool(text and (labels or not (options.labelled or may_be_prose)))


def _is_partly_named(lines: list[str], delimiter: str, labelled: bool) -> bool:
    """Whether the header is single words, one of them a standard name.

    It is tested before LibMultiLabel, which could take the header for a document.
    """
    header = _header(lines, delimiter)
    words = len(header) > 1 and all(len(cell.split()) == 1 for cell in header)
    words = words and (labelled or not _blanks_follow(lines, delimiter))
    return words and guess(header, TEXT_NAMES + LABEL_NAMES) is not None


def _is_other_table(lines: list[str], delimiter: str, labelled: bool) -> bool:
    """Whether the header is distinct short names, and most rows have as many cells.

    Plain text may hold tabs too, so without labels the names between tabs must be single words.
    """
    header, *rows = list(_cells(lines, delimiter)) or [[]]
    names = len(header) > 1 and len(set(header)) == len(header)
    names = names and all(cell and cell == cell.strip() and len(cell) <= 60 for cell in header)
    if delimiter == "\t" and not labelled:
        names = names and all(len(cell.split()) == 1 for cell in header)
    return names and bool(rows) and 2 * sum(len(row) == len(header) for row in rows) >= len(rows)


def with_delimiter(options: ReadOptions, lines: list[str], among: str) -> ReadOptions:
    best = max(among, key=lambda d: (_has_columns(lines, d, options), len(_header(lines, d))))
    return options._replace(delimiter=best, skip_blanks=_blanks_follow(lines, best))
