"""Files of predictions: one row per line, as `label:score` pairs, best first; or JSON lines, or a table."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from codecs import BOM_UTF8
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..errors import DataError
from ..storage.files import PathLike, reading, replacing
from .read_log import log_reading
from .xc import read_matrix

Array = np.ndarray

TABLE_COLUMNS = ("id", "rank", "label", "score")
NAMED_COLUMNS = (*TABLE_COLUMNS, "name")  # of a model with a vocabulary
DELIMITERS = {  # by the header
    delimiter.join(columns): delimiter for delimiter in ",;\t" for columns in (TABLE_COLUMNS, NAMED_COLUMNS)
}


def read_predictions(
    path: PathLike,
    *,
    k: int | None = None,
    n_labels: int | None = None,
    label_names: Sequence[str] | None = None,
) -> tuple[Array, Array]:
    """Read the predictions of any system.

    The file holds rows of `label:score` or of labels alone, with or without a header `n L`; or a csr matrix
    in .npz; or the output of `exmlds predict`: JSON lines of {"id": …, "labels": […], "scores": […]}, or CSV
    or TSV with the columns id, rank, label and score, where the id is the number of the row, from 1. The rows
    of these are in any order; JSON lines whose ids are no row numbers keep the order of the file.

    Parameters
    ----------
    k : the number of labels to keep per row; by default, that of the longest row
    n_labels : the number of labels; a larger label id is an error
    label_names : the names by column, to look up those of JSON lines, CSV and TSV

    Returns (n, k) int64 ids, padded with −1, and (n, k) float32 scores. Labels are sorted by score; equal
    scores keep the order of the file.
    """
    path = Path(path)
    with reading(path) as file:
        first = file.readline(1 << 10).removeprefix(BOM_UTF8).rstrip()
    columns = {name: i for i, name in enumerate(label_names or [])}
    if first.startswith(b"{"):
        found = _read_json(path, columns, n_labels)
    elif delimiter := DELIMITERS.get(first.decode("utf-8", "replace")):
        found = _read_table(path, delimiter, columns, n_labels)
    else:
        found = _read_pairs(path, n_labels)
    ids, best = padded(*found, k)
    _refuse_repeated(path, ids)
    return ids, best


def _read_pairs(path: Path, n_labels: int | None) -> tuple[Array, Array, Array]:
    scores = read_matrix(path, n_columns=n_labels, ordered=False, noun="label")
    if n_labels is not None and scores.shape[1] > n_labels:
        raise DataError(f"{path} has {scores.shape[1]} labels, but {n_labels} are expected.")
    return scores.indices, scores.data, np.diff(scores.indptr)


def _refuse_repeated(path: Path, ids: Array) -> None:
    """Raise an error if a row of ids, (n, k), has a label twice."""
    ordered = np.sort(ids, axis=1)
    rows, places = np.nonzero((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0))
    if len(rows):
        row, label = int(rows[0]), int(ordered[rows[0], places[0]])
        raise DataError(f"{path}: row {row + 1}, counted from 1, predicts label {label} twice.")


def padded(labels: Array, scores: Array, counts: Array, k: int | None) -> tuple[Array, Array]:
    """(n, k) ids and scores, from those of all rows concatenated and the count of each row."""
    n = len(counts)
    k = max(1, int(counts.max(initial=0))) if k is None else k
    rows = np.repeat(np.arange(n), counts)
    order = np.lexsort((-scores, rows))  # stable: equal scores stay in the file's order
    ranks = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
    top = ranks < k
    ids, best = np.full((n, k), -1, np.int64), np.zeros((n, k), np.float32)
    ids[rows[top], ranks[top]] = labels[order][top]
    best[rows[top], ranks[top]] = scores[order][top]
    return ids, best


def _read_json(path: Path, columns: dict[str, int], n_labels: int | None) -> tuple[Array, Array, Array]:
    rows: list[tuple[list[int], list[float]]] = []
    own_ids: list[str] = []
    with reading(path) as file:
        for number, line in enumerate(log_reading(path, iter(file)), start=1):
            try:
                row = json.loads(line)
                labels = [_column(label, columns, n_labels) for label in row["labels"]]
                values = np.array(row["scores"], np.float32)
                if values.shape != (len(labels),) or not np.isfinite(values).all():
                    raise ValueError("labels and finite scores must be equally many")
            except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
                raise DataError(f'{path}:{number}: not {{"labels": […], "scores": […]}} ({error}).') from None
            rows.append((labels, values.tolist()))
            own_ids.append(str(row.get("id")))
    rows = [rows[i] for i in _order(path, own_ids)]
    ids, scores = ([each for row in rows for each in row[part]] for part in (0, 1))
    counts = np.array([len(labels) for labels, _ in rows], np.int64)
    return np.array(ids, np.int64), np.array(scores, np.float32), counts


def _order(path: Path, ids: list[str]) -> Iterable[int]:
    """The order of rows by their ids, if these are the row numbers, from 1; otherwise that of the file."""
    numbers = {str(number) for number in range(1, len(ids) + 1)}
    if not numbers.issuperset(ids):
        return range(len(ids))
    if len(set(ids)) < len(ids):
        raise DataError(f"{path}: several rows have the same id; the ids are the row numbers, from 1.")
    return np.argsort(np.array(ids, np.int64)).tolist()


def _read_table(
    path: Path, delimiter: str, columns: dict[str, int], n_labels: int | None
) -> tuple[Array, Array, Array]:
    """The labels and scores of all rows, and the count of each row, from lines in any order."""
    cells: list[tuple[int, int, int, float]] = []  # row, rank, label, score
    rows: set[int] = set()
    with reading(path) as file:
        table = csv.reader(io.TextIOWrapper(file, "utf-8-sig", newline=""), delimiter=delimiter)
        next(table)
        try:
            for id, rank, label, score, *_ in filter(None, table):
                rows.add(int(id) - 1)
                if not label:  # a row without predictions
                    continue
                is_number = label not in columns and label.isdecimal()
                column = _column(int(label) if is_number else label, columns, n_labels)
                if not math.isfinite(float(score)):
                    raise ValueError("the score is not finite")
                cells.append((int(id) - 1, int(rank), column, float(score)))
        except (ValueError, csv.Error) as error:
            problem = "not the number of a row, a rank, a label and a score"
            raise DataError(f"{path}:{table.line_num}: {problem} ({error}).") from None
    missing = min(set(range(len(rows))) - rows, default=None)
    if missing is not None:
        raise DataError(f"{path} has no line with the id {missing + 1}; the ids are the row numbers, from 1.")
    cells.sort()
    of_row, _, labels, scores = zip(*cells) if cells else ((), (), (), ())
    counts = np.bincount(np.array(of_row, np.int64), minlength=len(rows))
    return np.array(labels, np.int64), np.array(scores, np.float32), counts


def write_predictions(file: PathLike | IO[bytes], ids: Array, scores: Array) -> None:
    """Write one line of `label:score` pairs per row.

    Parameters
    ----------
    file : a path, or a file that is open for bytes. A path is written under a temporary name and then
        renamed, so that no half-written file stays behind; it is gzipped if it ends in .gz
    ids : (n, k) int64, label columns, best first; −1 pads
    scores : (n, k) float32
    """
    if isinstance(file, (str, os.PathLike)):
        with replacing(file) as opened:
            return write_predictions(opened, ids, scores)
    texts = scores.astype(np.float32).astype("U").tolist()
    for labels, values in zip(ids.tolist(), texts):
        line = " ".join(f"{label}:{value}" for label, value in zip(labels, values) if label >= 0)
        # A row without predictions is a space, because an empty line at the end of a file is not a row.
        file.write(f"{line or ' '}\n".encode())


def _column(label: Any, columns: dict[str, int], n_labels: int | None) -> int:
    found = columns.get(label) if isinstance(label, str) else label
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found < (n_labels or 2**31):
        raise ValueError(f"label {label!r} is not one of the data's labels")
    return found
