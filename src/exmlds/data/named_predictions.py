"""Files of predictions with names, as `exmlds predict` writes them for texts."""

from __future__ import annotations

import codecs
import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import DataError
from ..storage.files import reading
from .predictions import TABLE_COLUMNS

_ESCAPE = re.compile(r"\\(\\|[tnr]|x[0-9a-f]{2}|u[0-9a-f]{4})")


class NamedRow(NamedTuple):
    """The predictions for one text: its id, or its number counted from 1; labels, best first; scores."""

    id: str
    labels: list[str]
    scores: list[float]


def read_named_predictions(path: Path) -> list[NamedRow]:
    """Read predictions for texts: JSON lines, CSV or TSV, or tab-separated id, name, score, name, score, …"""
    with reading(path) as file:
        text = file.read().decode("utf-8-sig", "surrogateescape")
    rows: list[NamedRow] = []
    try:
        for row in _rows(text):
            if len(row.labels) != len(row.scores) or not all(map(math.isfinite, row.scores)):
                raise ValueError("labels and finite scores must be equally many")
            rows.append(row)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, csv.Error) as error:
        problem = f"{path}: row {len(rows) + 1}, counted from 1, is not a row of predictions ({error})"
        wanted = "`exmlds predict` writes jsonl, csv, tsv, or id<TAB>name<TAB>score<TAB>…"
        raise DataError(f"{problem}; {wanted}.") from None
    return rows


def _rows(text: str) -> Iterator[NamedRow]:
    lines = [line for line in text.split("\n") if line]
    for delimiter in (",", "\t"):
        if lines and lines[0].rstrip("\r").split(delimiter) == [*TABLE_COLUMNS]:
            yield from _rows_of_table(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
            return
    for number, line in enumerate(lines, start=1):
        if text.startswith("{"):
            yield _row_of_json(json.loads(line), number)
        else:
            id, *cells = map(_unescaped, line.split("\t"))
            yield NamedRow(id, cells[::2], list(map(float, cells[1::2])))


def _row_of_json(row: Any, number: int) -> NamedRow:
    scores = list(map(float, row["scores"]))
    return NamedRow(str(row.get("id", number)), list(map(str, row["labels"])), scores)


def _rows_of_table(table: Iterable[list[str]]) -> Iterator[NamedRow]:
    """The lines of a row are neighbours, from rank 1 on; a row without labels is one line without rank."""
    row: NamedRow | None = None
    for id, rank, label, score in islice(table, 1, None):
        if row is not None and rank in ("", "1"):
            yield row
            row = None
        row = row or NamedRow(id, [], [])
        if row.id != id:
            raise ValueError(f"the labels of {id!r} do not begin with rank 1")
        if rank:
            row.labels.append(label)
            row.scores.append(float(score))
    if row is not None:
        yield row


def _unescaped(cell: str) -> str:
    return _ESCAPE.sub(lambda found: codecs.decode(found.group(), "unicode_escape"), cell)


def aligned(rows: Sequence[NamedRow], ids: Sequence[str | None], path: Path) -> list[NamedRow]:
    """The predictions for documents with these ids; one without an id has its number, counted from 1."""
    wanted = [_as_written(id or str(number)) for number, id in enumerate(ids, start=1)]
    if [_as_written(row.id) for row in rows] == wanted:
        return list(rows)
    by_id = {_as_written(row.id): row for row in rows}
    if missing := [id for id in wanted if id not in by_id]:
        problem = f"{path} has no predictions for {len(missing):,} of the {len(wanted):,} documents"
        found = f"its first id is {rows[0].id!r}" if rows else "it has no rows"
        raise DataError(f"{problem}, such as {missing[0]!r}; {found}.")
    if len(by_id) < len(rows) or len(set(wanted)) < len(wanted):
        raise DataError(f"{path}: several rows have the same id, and their order is not that of the data.")
    return [by_id[id] for id in wanted]


def _as_written(id: str) -> str:
    """The id of a file whose name is not UTF-8 is written with escapes."""
    return id.encode("utf-8", "backslashreplace").decode()
