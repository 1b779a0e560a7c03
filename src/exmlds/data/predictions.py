"""Files of predictions: one row per line, as `label:score` pairs, best first."""

from __future__ import annotations

import json
import os
from codecs import BOM_UTF8
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..errors import DataError
from ..storage.files import PathLike, reading, replacing
from .read_log import log_reading
from .xc import read_matrix

Array = np.ndarray


def read_predictions(
    path: PathLike,
    *,
    k: int | None = None,
    n_labels: int | None = None,
    label_names: Sequence[str] | None = None,
) -> tuple[Array, Array]:
    """Read the predictions of any system.

    The file holds rows of `label:score` or of labels alone, with or without a header `n L`; or a csr matrix
    in .npz; or the output of `exmlds predict --json`, one {"labels": […], "scores": […]} per line.

    Parameters
    ----------
    k : the number of labels to keep per row; by default, that of the longest row
    n_labels : the number of labels; a larger label id is an error
    label_names : the names by column, to look up those of a JSON file

    Returns (n, k) int64 ids, padded with −1, and (n, k) float32 scores. Labels are sorted by score; equal
    scores keep the order of the file.
    """
    path = Path(path)
    with reading(path) as file:
        is_json = file.read(4).removeprefix(BOM_UTF8).startswith(b"{")
    if is_json:
        return padded(*_read_json(path, label_names, n_labels), k)
    scores = read_matrix(path, n_columns=n_labels, ordered=False, noun="label")
    if n_labels is not None and scores.shape[1] > n_labels:
        raise DataError(f"{path} has {scores.shape[1]} labels, but {n_labels} are expected.")
    return padded(scores.indices, scores.data, np.diff(scores.indptr), k)


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


def _read_json(
    path: Path, label_names: Sequence[str] | None, n_labels: int | None
) -> tuple[Array, Array, Array]:
    column = {name: i for i, name in enumerate(label_names or [])}
    ids: list[int] = []
    scores: list[float] = []
    counts: list[int] = []
    with reading(path) as file:
        for number, line in enumerate(log_reading(path, iter(file)), start=1):
            try:
                row = json.loads(line)
                labels = [_column(label, column, n_labels) for label in row["labels"]]
                values = np.array(row["scores"], np.float32)
                if values.shape != (len(labels),) or not np.isfinite(values).all():
                    raise ValueError("labels and finite scores must be equally many")
            except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
                raise DataError(f'{path}:{number}: not {{"labels": […], "scores": […]}} ({error}).') from None
            ids.extend(labels)
            scores.extend(values.tolist())
            counts.append(len(labels))
    return np.array(ids, np.int64), np.array(scores, np.float32), np.array(counts, np.int64)


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


def _column(label: Any, column: dict[str, int], n_labels: int | None) -> int:
    found = column.get(label) if isinstance(label, str) else label
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found < (n_labels or 2**31):
        raise ValueError(f"label {label!r} is not one of the data's labels")
    return found
