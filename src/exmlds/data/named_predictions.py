"""Files of predictions with names, as `exmlds predict` writes them for texts."""

from __future__ import annotations

import codecs
import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import Argument, DataError, some
from ..storage.files import reading
from .predictions import DELIMITERS

_ESCAPE = re.compile(r"\\(\\|[tnr]|x[0-9a-f]{2}|u[0-9a-f]{4})")

_NAMED = re.compile(r" <([^<>]+)>$")  # the label after its name, where a model has a vocabulary


class NamedRow(NamedTuple):
    """The predictions for one text: its id, or its number counted from 1; labels, best first; scores."""

    id: str
    labels: list[str]
    scores: list[float]


def read_named_predictions(path: Path) -> list[NamedRow]:
    """Read predictions for texts: JSON lines, CSV or TSV, or tab-separated id, name, score, name, score, …"""
    with reading(path) as file:
        text = file.read().decode("utf-8-sig", "surrogateescape")
    if delimiter := DELIMITERS.get(text.partition("\n")[0].rstrip("\r")):
        return _rows_of_table(path, csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    read_line = _row_of_json if text.startswith("{") else _row_of_cells
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line]
    rows = []
    for row, (number, line) in enumerate(lines, start=1):
        with _explained(f"{path}:{number}"):
            rows.append(read_line(line, row))
    return rows


@contextmanager
def _explained(where: str) -> Iterator[None]:
    """Turn what malformed rows raise into an error that says where they are."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, csv.Error) as error:
        problem = f"{where}: not a row of predictions ({error})"
        wanted = "`exmlds predict` writes jsonl, csv, tsv, or id<TAB>name<TAB>score<TAB>…"
        raise DataError(f"{problem}; {wanted}.") from None


def _row_of_json(line: str, number: int) -> NamedRow:
    row = json.loads(line)
    labels, scores = list(map(str, row["labels"])), list(map(_finite, row["scores"]))
    if len(labels) != len(scores):
        raise ValueError("labels and scores must be equally many")
    return NamedRow(str(row.get("id", number)), labels, scores)


def _row_of_cells(line: str, _: int) -> NamedRow:
    id, *cells = map(_unescaped, line.split("\t"))
    if len(cells) % 2:
        raise ValueError("labels and scores must be equally many")
    labels = [found[1] if (found := _NAMED.search(cell)) else cell for cell in cells[::2]]
    return NamedRow(id, labels, list(map(_finite, cells[1::2])))


def _rows_of_table(path: Path, table: Any) -> list[NamedRow]:
    """The rows of a `csv.reader` by their first lines; the lines of a row are in any order, with ranks.

    A rank that the row of an id has already begins another row of that id, as does a line without a rank.
    """
    rows: list[tuple[str, dict[int, tuple[str, float]]]] = []
    by_id: dict[str, dict[int, tuple[str, float]]] = {}
    next(table)  # the header
    while True:
        with _explained(f"{path}:{table.line_num + 1}"):
            cells = next(table, None)
            if cells is None:
                break
            if not cells:
                continue
            id, rank, label, score, *_ = cells  # and a name
            if not rank or not by_id.get(id) or int(rank) in by_id[id]:
                by_id[id] = {}
                rows.append((id, by_id[id]))
            if rank:
                by_id[id][int(rank)] = label, _finite(score)
    named = []
    for id, by_rank in rows:
        best_first = [by_rank[rank] for rank in sorted(by_rank)]
        named.append(NamedRow(id, [label for label, _ in best_first], [score for _, score in best_first]))
    return named


def _finite(score: Any) -> float:
    if not math.isfinite(float(score)):
        raise ValueError("the score is not finite")
    return float(score)


def _unescaped(cell: str) -> str:
    return _ESCAPE.sub(lambda found: codecs.decode(found.group(), "unicode_escape"), cell)


def aligned(rows: Sequence[NamedRow], ids: Sequence[str | None], path: Path) -> list[NamedRow]:
    """The predictions for documents with these ids; one without an id has its number, counted from 1."""
    wanted = [_as_written(id or str(number)) for number, id in enumerate(ids, start=1)]
    found = [_as_written(row.id) for row in rows]
    if found == wanted:
        return list(rows)
    if repeated := _repeated(found):
        raise DataError(f"{path} has {repeated[1]:,} rows with the id {repeated[0]!r}; keep one of them.")
    if repeated := _repeated(wanted):
        problem = f"{repeated[1]:,} documents have the id {repeated[0]!r}"
        raise DataError(f"{problem}, so that the rows of {path} must be in the order of the data.")
    by_id = dict(zip(found, rows))
    missing, others = [id for id in wanted if id not in by_id], sorted(by_id.keys() - set(wanted))
    problems = []
    if missing:
        problems.append(f"no row for {len(missing):,} of the {len(wanted):,} documents: {some(missing, 3)}")
    if others:
        problems.append(f"rows for {len(others):,} ids that no document has: {some(others, 3)}")
    if problems:
        advice = "Predict the labels of these very documents."
        if not any(ids):
            advice = "The documents are numbered from 1; if they have ids, pass {id}."
        message = f"{{path}} has {{problems}}. {advice}"
        raise DataError(message, path=path, problems="; it has ".join(problems), id=Argument("id", "…"))
    return [by_id[id] for id in wanted]


def _repeated(ids: list[str]) -> tuple[str, int] | None:
    """The most frequent id and its number, if any occurs more than once."""
    ((id, n),) = Counter(ids).most_common(1) or [("", 0)]
    return (id, n) if n > 1 else None


def _as_written(id: str) -> str:
    """The id of a file whose name is not UTF-8 is written with escapes."""
    return id.encode("utf-8", "backslashreplace").decode()
