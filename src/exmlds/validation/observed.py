"""Observed cells of the label matrix: which predictions can be judged as a hit or a miss."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from .. import kernels

Array = np.ndarray

MIN_OBSERVED_SHARE = 0.25  # share of a row's cells that must be observed for the row to be informative
MIN_INFORMATIVE_ROWS = 50  # informative rows below which all cells count as observed


def informative_rows(observed: csr_matrix) -> Array:
    """(n,) bool, rows with at least MIN_OBSERVED_SHARE of their cells observed.

    In a row with few observed cells besides its labels, almost every observed prediction would be a hit.
    """
    return np.diff(observed.indptr) >= MIN_OBSERVED_SHARE * observed.shape[1]


def known_cells(observed: csr_matrix | None, ids: Array) -> Array:
    """(n, k) bool, the predictions that can be judged: observed cells of informative rows.

    Where `observed` is None, or has fewer than MIN_INFORMATIVE_ROWS informative rows, all predictions can.

    observed : (n, L) csr of ones, the observed cells
    ids : (n, k) int64 labels, −1 pads
    """
    if observed is None or np.count_nonzero(informative_rows(observed)) < MIN_INFORMATIVE_ROWS:
        return ids >= 0
    return contains(observed, ids) & informative_rows(observed)[:, None]


def contains(cells: csr_matrix, ids: Array) -> Array:
    """(n, k) bool, whether each label of ids, (n, k) with −1 pads, is stored in its row of cells, (n, L)."""
    found = np.empty(ids.shape, np.uint8)
    kernels.DEFAULT.mark_hits(cells.indptr, cells.indices, ids, found)
    return found.astype(bool)
