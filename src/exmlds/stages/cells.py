"""Rows grouped into cells, of which a search reads only those that are nearest to the query.

The cells are those of k-means. With about 4 √n cells and a fixed number of probes, the cost of a search among
n rows is proportional to √n.
"""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

import numpy as np

from ..kernels import DEFAULT, Engine
from ..runtime.parallel import fine_blocks, map_blocks
from ..validation import stored
from . import quantize

Array = np.ndarray

CELLS_PER_ROOT = 4  # cells for each √n
MARGIN = 0.35  # A search reads cells whose centres are less similar by up to this than the nearest one,
FEWEST_PROBES = 32  # but at least so many of them,
ROWS_OF_PROBES = 2  # at least those with so many times the rows that are asked for, on average,
MOST_ROWS = 16_000  # and at most those with so many rows, on average.
N_PROBES = 72  # cells that a search by Euclidean distances reads, for which no margin suits all data
SAMPLE = 16  # rows of each cell that k-means is fitted to
N_ITERATIONS = 3  # of k-means
LARGEST = 4  # times the mean number of rows, above which a cell is split
ROWS = 4_096  # rows that are assigned to cells at a time


class Cells(NamedTuple):
    """Rows in the order of their cells.

    centers : (c, r) float32
    starts : (c + 1,) int64, the rows of a cell are starts[cell] to starts[cell + 1]
    rows : (n, r) quantized
    numbers : (n,) int32, what the rows were called before they were sorted
    """

    centers: Array
    starts: Array
    rows: quantize.Packed
    numbers: Array


def build(X: Array, metric: str, storage: str, n_jobs: int | None) -> Cells:
    """Group the rows of X, (n, r) float32, into cells; for the metric "cosine" they must have unit length.

    K-means starts from rows at equal distances, and is fitted to more of them, so that nothing is random.
    """
    n_cells = max(1, min(round(CELLS_PER_ROOT * len(X) ** 0.5), len(X)))
    centers = _kmeans(X, n_cells, metric, n_jobs)
    cell = _assign(centers, X, metric, n_jobs)
    # A cell with very many rows would cost each query that probes it as much as many other cells.
    counts, most = np.bincount(cell, minlength=n_cells), LARGEST * len(X) / n_cells
    for large in np.flatnonzero(counts > most).tolist():
        rows = np.flatnonzero(cell == large)
        parts = _kmeans(X[rows], int(LARGEST * len(rows) / most), metric, n_jobs)
        cell[rows] = len(centers) + _assign(parts, X[rows], metric, n_jobs)
        centers = np.concatenate([centers, parts])
    # Cells without rows would be probed in vain: equal rows make equal centres.
    present, cell, counts = np.unique(cell, return_inverse=True, return_counts=True)
    order, starts = np.argsort(cell, kind="stable"), np.concatenate(([0], np.cumsum(counts)))
    return Cells(centers[present], starts, quantize.pack(X[order], storage), order.astype(np.int32))


def insert(
    cells: Cells, added: quantize.Packed, numbers: Array, metric: str, n_jobs: int | None
) -> tuple[Cells, Array]:
    """Put further rows, (m, r), into their nearest cells, whose centres stay as they are.

    numbers : (m,) what the rows are called

    Returns also (n + m,) where each row was before: its old position, or n and more for an added one.
    """
    cell = np.repeat(np.arange(len(cells.centers)), np.diff(cells.starts))
    cell = np.concatenate([cell, _assign(cells.centers, quantize.unpack(added), metric, n_jobs)])
    order, counts = np.argsort(cell, kind="stable"), np.bincount(cell, minlength=len(cells.centers))
    rows = quantize.concatenate([cells.rows, added])
    grown = Cells(
        cells.centers,
        np.concatenate(([0], np.cumsum(counts))),
        quantize.Packed(rows.values[order], rows.scale[order] if len(rows.scale) else rows.scale),
        np.concatenate([cells.numbers, numbers])[order].astype(np.int32),
    )
    return grown, order


def keep(cells: Cells, is_kept: Array) -> Cells:
    """The rows with these numbers, (n,) bool, which are counted anew; cells without rows are left out."""
    is_stored = is_kept[cells.numbers]
    ends = np.concatenate(([0], np.cumsum(is_stored)))[cells.starts]
    is_filled = np.diff(ends) > 0
    numbers = (np.cumsum(is_kept) - 1)[cells.numbers[is_stored]].astype(np.int32)
    starts = np.concatenate([ends[:-1][is_filled], ends[-1:]])
    return Cells(cells.centers[is_filled], starts, quantize.keep(cells.rows, is_stored), numbers)


def check(cells: Any, n: int, r: int) -> None:
    """Check the cells of n rows with r columns that come from a file."""
    stored.record(cells, "the cells of an index", Cells)
    n_cells = len(stored.array(cells.centers, "the centres of cells", "float32", None, r))
    stored.offsets(cells.starts, "the starts of cells", n_cells, n)
    quantize.check(cells.rows, "the rows of cells", n, r)
    numbers = stored.ids(cells.numbers, "the numbers of rows in cells", n, n, dtypes="int32")
    stored.require(len(np.unique(numbers)) == n, "two rows of an index have the same number")


def search(
    cells: Cells,
    bias: Array,
    Q: Array,
    metric: str,
    k: int,
    *,
    breadth: float = 1.0,
    engine: Engine = DEFAULT,
) -> tuple[Array, Array]:
    """The k best rows of the nearest cells: (q, k) int64 positions, −1 pads, and (q, k) float32 scores.

    bias : (n,) in the order of the positions, added to ⟨q, x⟩ (cosine) or 2⟨q, x⟩ (euclidean)
    Q : (q, r) float32, of unit length for the metric "cosine"
    breadth : factor of the margin within which cells are read, and of their least number
    """
    probes = nearest_cells(cells, Q, metric, k, breadth=breadth, engine=engine)
    starts, rows = cells.starts, cells.rows
    positions, scores = np.full((len(Q), k), -1, np.int64), np.full((len(Q), k), -np.inf, np.float32)
    scaled = Q if metric == "cosine" else 2 * Q
    if rows.values.dtype == np.float32:
        engine.search_cells(scaled, probes, starts, rows.values, bias, positions, scores)
        return positions, scores
    # Quantized rows: unpack the cells that are probed.
    probed = np.unique(probes[probes >= 0])
    compact = np.where(probes >= 0, np.searchsorted(probed, probes), -1)
    read = np.concatenate([np.arange(starts[cell], starts[cell + 1]) for cell in probed])
    ends = np.concatenate(([0], np.cumsum(np.diff(starts)[probed])))
    engine.search_cells(scaled, compact, ends, quantize.unpack(rows, read), bias[read], positions, scores)
    return np.where(positions >= 0, read[np.maximum(positions, 0)] if len(read) else -1, -1), scores


def nearest_cells(
    cells: Cells, Q: Array, metric: str, k: int, *, breadth: float = 1.0, engine: Engine = DEFAULT
) -> Array:
    """(q, p) int64, the cells that are read for each query, −1 pads.

    A query that is close to a centre finds its nearest rows in few cells; those of a query between many
    centres are spread over many cells.
    """
    n_cells, is_cosine = len(cells.centers), metric == "cosine"
    cells_of_row = n_cells / len(cells.numbers)
    margin, most = (breadth * MARGIN, ceil(MOST_ROWS * cells_of_row)) if is_cosine else (np.inf, N_PROBES)
    fewest = min(max(round(breadth * FEWEST_PROBES), ceil(ROWS_OF_PROBES * k * cells_of_row)), n_cells)
    probes = np.full((len(Q), min(max(most, fewest), n_cells)), -1, np.int64)
    nearness = _nearness(cells.centers, Q, metric)
    return probes[:, : engine.choose_cells(nearness, np.float32(margin), fewest, probes)]


def _nearness(centers: Array, X: Array, metric: str) -> Array:
    """(n, c) the inner products, or ⟨x, c⟩ − ‖c‖² / 2, which is largest for the nearest centre."""
    products = X @ centers.T
    if metric == "euclidean":
        products -= np.square(centers).sum(axis=1) / 2
    return products


def _kmeans(X: Array, n_cells: int, metric: str, n_jobs: int | None) -> Array:
    """(n_cells, r) float32, the centres of a sample of the rows."""
    sample = X[np.linspace(0, len(X) - 1, min(len(X), SAMPLE * n_cells)).astype(np.int64)]
    centers = sample[np.linspace(0, len(sample) - 1, n_cells).astype(np.int64)]
    for _ in range(N_ITERATIONS):
        centers = _move(centers, sample, _assign(centers, sample, metric, n_jobs), metric)
    return centers


def _assign(centers: Array, X: Array, metric: str, n_jobs: int | None) -> Array:
    """(n,) the nearest cell of each row."""
    found = map_blocks(
        lambda block: _nearness(centers, X[block], metric).argmax(axis=1),
        fine_blocks(len(X), ROWS),
        n_jobs=n_jobs,
        stage="cells of the index",
        total=len(X),
    )
    return np.concatenate(list(found))


def _move(centers: Array, X: Array, cell: Array, metric: str) -> Array:
    """The mean of each cell, of unit length for the metric "cosine"; a cell without rows stays."""
    order, counts = np.argsort(cell, kind="stable"), np.bincount(cell, minlength=len(centers))
    present = np.flatnonzero(counts)
    sums = np.add.reduceat(X[order], (np.cumsum(counts) - counts)[present], axis=0, dtype=np.float64)
    moved = centers.copy()
    lengths = np.linalg.norm(sums, axis=1) if metric == "cosine" else counts[present]
    is_moved = lengths > 0
    moved[present[is_moved]] = sums[is_moved] / lengths[is_moved, None]
    return moved
