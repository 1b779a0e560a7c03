"""Marking the predictions that are true labels."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def mark_hits(y_indptr: Array, y_indices: Array, ids: Array, hits: Array) -> None:
    """Write 1 where a predicted label is one of the row's true labels, else 0.

    y_indptr, y_indices : true labels as csr, sorted within a row
    ids : (n, k) int64, predicted labels, −1 pads
    hits : (n, k) uint8, written
    """
    for row, labels in enumerate(ids):
        hits[row] = np.isin(labels, y_indices[y_indptr[row] : y_indptr[row + 1]])


def find_repeated(ids: Array) -> int:
    """Return the first row of ids, (n, k) int64 with −1 pads, that holds a label twice, or −1."""
    for row, labels in enumerate(ids):
        named = labels[labels >= 0].tolist()
        if len(set(named)) < len(named):
            return row
    return -1
