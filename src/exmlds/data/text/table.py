"""Reading CSV and TSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import Argument, DataError
from .documents import Document, ReadOptions, bare_uri, count, is_uri_list, lines_of, split_labels, unique
from .fields import id_of, joined, labels_of, shown, without_surrogates

LARGEST_CELL = 2**31 - 1  # the csv module keeps its limit in a C long, which has 32 bits on Windows


def _cell_labels(cell: str, separator: str | None, where: str) -> list[str]:
    if cell.startswith(" ") and cell.lstrip(" ").startswith('"'):
        raise DataError(f"{where}: a space comes before a quote; remove it, here and in other rows.")
    if separator is None:
        if cell.lstrip().startswith("["):
            return labels_of(_json_list(cell, where), None, where)
        separator = "|" if "|" in cell else ";"
    return split_labels(cell, separator)


def _json_list(cell: str, where: str) -> list[Any]:
    try:
        return json.loads(cell)
    except (ValueError, RecursionError) as error:
        message = '{where}: {cell} is not a JSON list ({error}). Write ["a", "b"], or pass {separator}.'
        separator = Argument("label_separator", "…")
        raise DataError(message, where=where, cell=shown(cell), error=error, separator=separator) from None


def allow_large_cells() -> None:
    """Raise the csv module's limit on the cell size. It is global, so it is never lowered."""
    if csv.field_size_limit() < LARGEST_CELL:
        csv.field_size_limit(LARGEST_CELL)


def _rows(path: Path, options: ReadOptions) -> Iterator[tuple[str, list[str]]]:
    """Yield the position of each row, for messages, and its cells."""
    allow_large_cells()
    lines = (line for _, line in lines_of(path, options.decoder))
    blanks = options.skip_blanks
    rows = csv.reader(lines, delimiter=options.delimiter, skipinitialspace=blanks, strict=True)
    begins = 1
    while True:
        where = f"{path}:{begins}"
        try:
            cells = next(rows, None)
        except csv.Error as error:
            raise DataError(
                f"{where}: not a row of cells ({error}). "
                "Quote a cell that holds quotes or newlines, and double each quote inside it."
            ) from None
        if cells is None:
            return
        over_lines = options.delimiter == "\t" and rows.line_num > begins
        if over_lines and any("\t" in cell and "\n" in cell for cell in cells):
            raise DataError(
                f"{where}: a quoted cell holds a tab and a newline; it may be two rows with a stray quote. "
                "Write such texts as csv or jsonl; quote a cell that begins with a quote, and double each "
                "quote inside it."
            )
        if cells:
            yield where, cells
        begins = rows.line_num + 1


def table_names(path: Path, options: ReadOptions) -> tuple[str, str, list[str]]:
    for where, cells in _rows(path, options):
        return where, "column", [cell.strip() for cell in cells]
    raise DataError(f"{path} holds no documents.")


def read_table(path: Path, options: ReadOptions) -> Iterator[Document]:
    rows = _rows(path, options)
    _, header = next(rows)
    names = [cell.strip() for cell in header]
    text = [names.index(name) for name in options.text]
    labels = None if options.labels is None else names.index(options.labels)
    id = None if options.id is None else names.index(options.id)
    # Annif's column subject_uris separates URIs by spaces.
    in_words = options.label_separator is None and (options.labels or "").casefold() == "subject_uris"
    for where, cells in rows:
        if len(cells) > len(names) and labels == len(names) - 1:
            uris = " ".join(cells[labels:])  # URIs may be separated by the delimiter of the table
            cells = [*cells[:labels], uris] if is_uri_list(uris) else cells
        if len(cells) != len(names):
            raise DataError(
                f"{where}: got {count(cells)}, but the header has {count(names)}. "
                f"Quote a cell that holds {options.delimiter!r}, quotes or newlines."
            )
        cell = "" if labels is None else cells[labels]
        words = map(bare_uri, cell.split())
        found = unique(words) if in_words else _cell_labels(cell, options.label_separator, where)
        own_id = None if id is None else id_of(cells[id])
        document = joined([cells[column] for column in text], found, where, own_id)
        yield without_surrogates(document, options.decoder.errors) if "\\u" in cell else document
