"""Vocabularies as tables: TSV and CSV as Annif has them, and lists of names."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

from ...errors import DataError
from ...runtime import progress
from ...storage.files import reading
from ...validation.targets import plain_name
from ...vocabulary import VocabularyBuilder

LABEL_COLUMN = re.compile(r"label(?:_([A-Za-z-]+))?$")


def read_tsv(path: Path, builder: VocabularyBuilder, language: str) -> None:
    """Read lines of an id, in angle brackets or bare, a name, and perhaps a notation."""
    own: dict[int, str] = {}
    for number, line in _lines(path):
        cells = [plain_name(cell) for cell in line.split("\t")]
        where = f"{path}:{number}"
        if len(cells) < 2:
            raise DataError(f"{where}: a line must hold an id, a tab and a name. Got {line[:80]!r} instead.")
        id = _bare(cells[0], where)
        if not cells[1]:
            raise DataError(f"{where}: the concept {id} has an empty name.")
        concept = builder.concept(id)
        if own.setdefault(concept, cells[1]) != cells[1]:
            raise DataError(
                f"{where}: the concept {id} is here again, with another name: {own[concept]!r} and "
                f"{cells[1]!r}. Give each concept one line, or write other names as SKOS."
            )
        builder.add_name(concept, cells[1], language)
        if len(cells) > 2 and cells[2]:
            builder.notations[id] = cells[2]


def is_csv_header(line: str) -> bool:
    cells = [cell.strip().lower() for cell in line.split(",")]
    return "uri" in cells and any(LABEL_COLUMN.match(cell) for cell in cells)


def read_csv(path: Path, builder: VocabularyBuilder, language: str) -> None:
    """Read a table with the columns uri, label or label_en and others, and perhaps notation."""
    lines = (line for _, line in _lines(path, keep_blank=True))
    rows = csv.reader((f"{line}\n" for line in lines), strict=True)
    header: list[str] = []
    labels: dict[int, str] = {}
    seen: dict[str, str] = {}
    while True:
        where = f"{path}:{rows.line_num + 1}"
        try:
            cells = next(rows, None)
        except csv.Error as error:
            raise DataError(f"{where}: not a row of cells ({error}); quote cells that hold quotes.") from None
        if cells is None:
            return
        cells = [plain_name(cell) for cell in cells]
        if not any(cells):
            continue
        if not header:
            header = [cell.lower() for cell in cells]
            found = ((column, LABEL_COLUMN.match(cell)) for column, cell in enumerate(header))
            labels = {column: match[1] or language for column, match in found if match}
            if "uri" not in header or not labels:
                raise DataError(
                    f"{where}: the header must name the columns uri and label_en (or another language). "
                    f"Got {', '.join(cells)} instead."
                )
            continue
        if len(cells) != len(header):
            raise DataError(f"{where}: {len(cells)} cells, but the header has {len(header)} columns.")
        id = _bare(cells[header.index("uri")], where)
        if id in seen:
            raise DataError(f"{where}: the concept {id} is here again; it is first in {seen[id]}.")
        seen[id] = where
        concept = builder.concept(id)
        for column, code in labels.items():
            if cells[column]:
                builder.add_name(concept, cells[column], code)
        if "notation" in header and cells[header.index("notation")]:
            builder.notations[id] = cells[header.index("notation")]


def read_list(path: Path, builder: VocabularyBuilder, language: str) -> None:
    """Read one name per line, which is the id too."""
    for _, line in _lines(path):
        name = plain_name(line)
        if name not in builder.positions:
            builder.add_name(builder.concept(name), name, language)


def _bare(cell: str, where: str) -> str:
    """An id without angle brackets."""
    id = cell[1:-1] if cell.startswith("<") and cell.endswith(">") else cell
    if not id:
        raise DataError(f"{where}: a concept has no id.")
    return id


def _lines(path: Path, keep_blank: bool = False) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers, from 1; blank ones only where they are kept."""
    with reading(path) as file, progress.stage("reading the vocabulary", None, "lines") as advance:
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="\n")
        number = 0
        try:
            for number, line in enumerate(text, 1):
                advance(1)
                if keep_blank or line.strip():
                    yield number, line.rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise DataError(f"{path}:{number + 1}: not UTF-8 ({error.reason}); save it as UTF-8.") from None
        finally:
            text.detach()
