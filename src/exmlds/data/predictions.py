"""Predictions in files: one row a line, `label:score` best first."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import numpy as np

from ..errors import DataError
from ..files import PathLike
from .npz import is_npz, read_npz
from .xc import read_sparse

Array = np.ndarray


def read_predictions(
    path: PathLike, *, k: int | None = None, n_labels: int | None = None
) -> tuple[Array, Array]:
    """Read anybody's predictions: `label:score` or bare labels, a header `n L` or none, or a csr in .npz.

    Labels with scores are ordered by them, equal scores as they stand in the file.

    Returns (n, k) int64 ids, −1 where a row has fewer, and (n, k) float32 scores.
    """
    path = Path(path)
    scores = read_npz(path) if is_npz(path) else read_sparse(path, n_columns=n_labels, ordered=False)
    if n_labels is not None and scores.shape[1] > n_labels:
        raise DataError(f"{path} has {scores.shape[1]} labels, but {n_labels} are expected.")
    n, counts = scores.shape[0], np.diff(scores.indptr)
    k = max(1, int(counts.max(initial=0))) if k is None else k
    rows = np.repeat(np.arange(n), counts)
    order = np.lexsort((-scores.data, rows))  # stable: equal scores stay in the file's order
    ranks = np.arange(scores.nnz) - np.repeat(scores.indptr[:-1], counts)
    top = ranks < k
    ids, best = np.full((n, k), -1, np.int64), np.zeros((n, k), np.float32)
    ids[rows[top], ranks[top]] = scores.indices[order][top]
    best[rows[top], ranks[top]] = scores.data[order][top]
    return ids, best


def write_predictions(file: IO[bytes], ids: Array, scores: Array) -> None:
    """Write rows of `label:score` to an open file."""
    texts = scores.astype(np.float32).astype("U").tolist()
    for labels, values in zip(ids.tolist(), texts):
        line = " ".join(f"{label}:{value}" for label, value in zip(labels, values) if label >= 0)
        # A blank for a row without predictions: a line without any character at the end would be no row.
        file.write(f"{line or ' '}\n".encode())
