"""Writing predictions as lines of text, JSON lines, CSV or TSV."""

from __future__ import annotations

import csv
import io
import json
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ..errors import DataError
from .output import escaped

if TYPE_CHECKING:
    import numpy as np

FORMATS = ("text", "jsonl", "csv", "tsv")
TABLES = ("csv", "tsv")
ENDINGS = {"": "text", ".txt": "text", ".jsonl": "jsonl", ".csv": "csv", ".tsv": "tsv"}
SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods")
BAD_NAMES = "backslashreplace"  # bytes of a file name that are not UTF-8 are written as escapes


def refuse_spreadsheet(output: Path | None, endings: str) -> None:
    """Raise an error if the file would be taken for a spreadsheet; it can have these endings."""
    if output is not None and output.suffix.lower() in SPREADSHEETS:
        raise DataError(
            f"{output}: spreadsheets are not written; end the name in {endings}. Excel opens .csv files, and "
            "with --bom it reads them as UTF-8."
        )


def choose_format(given: str | None, as_json: bool, output: Path | None) -> str:
    """The format that the options name, or that of the file's ending, or text."""
    refuse_spreadsheet(output, ".csv, .tsv, .jsonl or .txt")
    if given is not None and given not in FORMATS:
        raise DataError(f"--output-format must be one of {', '.join(FORMATS)}. Got {given!r} instead.")
    if as_json and given not in (None, "jsonl"):
        raise DataError(f"--json is --output-format jsonl; leave one of --json and {given} out.")
    if given or as_json:
        return given or "jsonl"
    name = Path("" if output is None else output.name.lower())
    ending = Path(name.stem).suffix if name.suffix == ".gz" else name.suffix
    if ending not in ENDINGS:
        advice = "end the name in .csv, .tsv, .jsonl (JSON lines) or .txt, or pass --output-format"
        raise DataError(f"{output}: the ending {ending} names no format of predictions; {advice}.")
    return ENDINGS[ending]


class PredictionWriter:
    """Writes blocks of predictions to a file that is open for bytes.

    classes : (L,) the labels by column
    name_of : gives the name of a label, which is written beside it; None writes labels alone
    of_texts : whether a line of text holds names and scores, and not the pairs `column:score` of XC files
    with_ids : whether a line of names begins with the id
    bom : whether csv and tsv begin with a byte order mark
    """

    def __init__(
        self,
        file: IO[bytes],
        format: str,
        classes: np.ndarray,
        *,
        of_texts: bool,
        with_ids: bool,
        name_of: Callable[[Any], str] | None = None,
        bom: bool = False,
    ) -> None:
        self.file, self.format, self.classes, self.name_of = file, format, classes, name_of
        self.of_texts, self.with_ids = of_texts, with_ids
        if bom:
            file.write(BOM_UTF8)
        if format in TABLES:
            from ..data.predictions import NAMED_COLUMNS, TABLE_COLUMNS

            self._write_cells([TABLE_COLUMNS if name_of is None else NAMED_COLUMNS])

    def write(self, ids: Sequence[str], columns: np.ndarray, scores: np.ndarray) -> None:
        """Write the rows of a block.

        ids : (n,) of the rows
        columns : (n, k) int64, labels, best first; −1 is none
        scores : (n, k) float32
        """
        if self.format == "text" and not self.of_texts:
            from ..data import write_predictions

            write_predictions(self.file, columns, scores)
            return
        rows = ((id, *self._ranked(own, values)) for id, own, values in zip(ids, columns, scores))
        if self.format == "text":
            lines = (
                _line([self._with_name(label) for label in labels], values, id if self.with_ids else None)
                for id, labels, values in rows
            )
            self.file.write("".join(lines).encode())
        elif self.format == "jsonl":
            for id, labels, values in rows:
                row = {"id": id, "labels": labels, "scores": [float(f"{v:.6g}") for v in values]}
                if self.name_of is not None:
                    row["names"] = [self.name_of(label) for label in labels]
                self.file.write(json.dumps(row, ensure_ascii=False).encode("utf-8", BAD_NAMES) + b"\n")
        else:
            self._write_cells(cells for row in rows for cells in self._ranks(*row))

    def _with_name(self, label: Any) -> str:
        """A label as a line of text has it: after its name, where it has another one."""
        name = str(label) if self.name_of is None else self.name_of(label)
        return name if name == str(label) else f"{name} <{label}>"

    def _ranks(self, id: str, labels: list[Any], scores: list[float]) -> Iterator[tuple[Any, ...]]:
        """The cells of each label of a row."""
        has_names = self.name_of is not None
        if not labels:
            yield id, "", "", "", *([""] if has_names else [])
        for rank, (label, score) in enumerate(zip(labels, scores), start=1):
            yield id, rank, label, f"{score:.6g}", *([] if self.name_of is None else [self.name_of(label)])

    def _ranked(self, columns: np.ndarray, scores: np.ndarray) -> tuple[list[Any], list[float]]:
        present = columns >= 0
        return self.classes[columns[present]].tolist(), scores[present].tolist()

    def _write_cells(self, rows: Any) -> None:
        cells = io.StringIO()  # the csv module writes strings
        delimiter, end = ("\t", "\n") if self.format == "tsv" else (",", "\r\n")
        csv.writer(cells, delimiter=delimiter, lineterminator=end).writerows(rows)
        self.file.write(cells.getvalue().encode("utf-8", BAD_NAMES))


def _line(labels: list[Any], scores: list[float], id: str | None) -> str:
    pairs = [f"{escaped(str(label))}\t{score:.4g}" for label, score in zip(labels, scores)]
    return "\t".join([*([] if id is None else [escaped(id)]), *pairs]) + "\n"
