"""Reading JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from ...errors import DataError
from .documents import Document, ReadOptions, bare, lines_of
from .fields import document_of, without_surrogates

OBJECT = '{"text": …, "labels": […]}'
ROWS = 100  # rows read to find out which fields exist


def row_of(where: str, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        text = bare(line)
        column = f"{error.lineno}:{error.colno}" if "\n" in text else min(error.pos, len(text)) + 1
        raise DataError(
            f"{where}:{column}: not JSON ({error.msg}). Write one object per line, {OBJECT}."
        ) from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: cannot be read as JSON ({error}).") from None
    if not isinstance(row, dict):
        raise DataError(f"{where}: not a JSON object. Write one object per line, {OBJECT}.")
    return row


def json_document(where: str, line: str, row: dict[str, Any], options: ReadOptions) -> Document:
    document = document_of(row, options, where)
    return without_surrogates(document, options.decoder.errors) if "\\u" in line else document


def _rows(path: Path, options: ReadOptions) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for where, line in lines_of(path, options.decoder):
        if line and not line.isspace():
            yield where, line, row_of(where, line)


def json_names(path: Path, options: ReadOptions) -> tuple[str, str, list[str]]:
    """The position of the first row, and the fields of the first rows, because one row may lack some."""
    rows = list(islice(((where, list(row)) for where, _, row in _rows(path, options)), ROWS))
    if not rows:
        raise DataError(f"{path} holds no documents.")
    return rows[0][0], "field", list(dict.fromkeys(name for _, names in rows for name in names))


def read_jsonl(path: Path, options: ReadOptions) -> Iterator[Document]:
    for where, line, row in _rows(path, options):
        yield json_document(where, line, row, options)
