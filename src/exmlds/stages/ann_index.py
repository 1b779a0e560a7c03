"""Approximate nearest neighbours with a usearch HNSW graph; an extra, `pip install "exmlds[approximate]"`."""

from __future__ import annotations

import weakref
from importlib import import_module
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from ..validation import stored

Array = np.ndarray

LINKS = 32  # edges of each row in the graph (HNSW's M)
BUILD_WIDTH = 200  # rows visited when a row is added (ef_construction)
SEARCH_WIDTH = 200  # least rows visited in a search (ef)
INSTALL = 'Approximate search needs usearch: pip install "exmlds[approximate]".'


class Graph(NamedTuple):
    """A built graph.

    saved : (bytes,) uint8, the graph with its rows in usearch's own file format
    """

    saved: Array


def build(rows: Array, metric: str, storage: str) -> Graph:
    """Build the graph of (n, r) rows; for the metric "cosine" they must have unit length.

    Rows are stored as float16 unless `storage` is "float32". The build runs on one thread, so that the same
    rows give the same graph.
    """
    graph = require().Index(
        ndim=rows.shape[1],
        metric="ip" if metric == "cosine" else "l2sq",
        dtype="f32" if storage == "float32" else "f16",
        connectivity=LINKS,
        expansion_add=BUILD_WIDTH,
    )
    graph.add(np.arange(len(rows)), rows, threads=1)
    return Graph(np.frombuffer(graph.save(), np.uint8))


# What follows the rows in a saved graph: magic, version of usearch, kinds of metric, numbers, keys and slots,
# counts of rows and of removed rows, dimension, whether keys repeat; then the head of the graph itself.
_HEAD = np.dtype(
    [
        *(("magic", "S7"), ("version", "<u2", 3), ("metric", "u1"), ("numbers", "u1"), ("keys", "u1")),
        *(("slots", "u1"), ("n", "<u8"), ("removed", "<u8"), ("d", "<u8"), ("repeats", "u1")),
        *(("unused", "u1", 22), ("size", "<u8"), ("links", "<u8"), ("base_links", "<u8")),
        *(("top_level", "<u8"), ("entry", "<u8")),
    ]
)
_METRICS = {"cosine": ord("i"), "euclidean": ord("e")}
_NUMBERS: dict[int, np.dtype[Any]] = {11: np.dtype("<f4"), 12: np.dtype("<f2")}
_KEYS, _SLOTS = 14, 15  # keys are uint64 and slots uint32
CHECKED = 4_096  # nodes that are checked at a time


def check(graph: Graph, metric: str, n: int, d: int) -> None:
    """Check a graph of n rows with d columns that comes from a file: usearch follows its links unchecked."""
    problem = "a search graph is not as it was built"
    saved = stored.array(graph.saved, "a graph", "uint8", None)
    stored.require(len(saved) >= 8, problem)
    rows = 8 + n * int(saved[4:8].view("<u4")[0])
    stored.require(int(saved[:4].view("<u4")[0]) == n and len(saved) >= rows + _HEAD.itemsize, problem)
    (head,) = saved[rows : rows + _HEAD.itemsize].view(_HEAD)
    dtype = _NUMBERS[int(head["numbers"])]
    stored.require(rows == 8 + n * d * dtype.itemsize, problem)
    stored.require(np.isfinite(saved[8:rows].view(dtype)).all(), problem)
    fixed = {"metric": _METRICS[metric], "keys": _KEYS, "slots": _SLOTS, "n": n, "size": n, "d": d}
    fixed |= {"removed": 0, "repeats": 0}
    stored.require(all(head[name] == value for name, value in fixed.items()), problem)
    links, base_links = int(head["links"]), int(head["base_links"])
    stored.require(head["magic"] == b"usearch" and not head["unused"].any(), problem)
    stored.require(0 < links <= 1_024 and base_links == 2 * links, problem)
    _check_nodes(
        saved[rows + _HEAD.itemsize :], n, links, int(head["top_level"]), int(head["entry"]), problem
    )


def _check_nodes(tape: Array, n: int, links: int, top_level: int, entry: int, problem: str) -> None:
    """Check the levels of nodes, (n,) int16, and the nodes: key, level, and at each level count and slots."""
    stored.require(n and len(tape) >= 2 * n, problem)
    levels, tape = tape[: 2 * n].view("<i2").astype(np.int64), tape[2 * n :]
    stored.require(levels.min() >= 0 and levels.max() == top_level, problem)
    stored.require(entry < n and levels[entry] == top_level, problem)
    widths = (4 + 8 * links, 4 + 4 * links)  # bytes of the lowest level, and of each level above it
    sizes = 10 + widths[0] + widths[1] * levels
    stored.require(sizes.sum() == len(tape), problem)
    starts = np.cumsum(sizes) - sizes
    for level in range(top_level + 1):
        present = np.flatnonzero(levels >= level)
        before = 10 + (level > 0) * widths[0] + max(level - 1, 0) * widths[1]
        for block in range(0, len(present), CHECKED):
            nodes = present[block : block + CHECKED]
            if level == 0:
                names = tape[starts[nodes, None] + np.arange(10)]
                is_own = names[:, :8].copy().view("<u8")[:, 0] == nodes
                stored.require(
                    (is_own & (names[:, 8:].copy().view("<i2")[:, 0] == levels[nodes])).all(), problem
                )
            numbers = tape[starts[nodes, None] + np.arange(before, before + widths[level > 0])].view("<u4")
            counts, slots = numbers[:, 0], numbers[:, 1:]
            stored.require(counts.max() <= slots.shape[1], problem)
            linked = slots[np.arange(slots.shape[1]) < counts[:, None]]
            stored.require(linked.max(initial=0) < n and (levels[linked] >= level).all(), problem)


def search(graph: Graph, Q: Array, k: int, threads: int) -> tuple[Array, Array]:
    """(q, k) int64 ids, −1 pads, and (q, k) float32 distances: 1 − ⟨q, x⟩ (cosine) or ‖q − x‖²."""
    graph_index = _open(graph.saved)
    graph_index.expansion_search = max(SEARCH_WIDTH, k)
    found = graph_index.search(Q, k, threads=threads)
    ids = np.full((len(Q), k), -1, np.int64)
    distances = np.full((len(Q), k), np.inf, np.float32)
    keys, found_distances = (np.asarray(a).reshape(len(Q), -1) for a in (found.keys, found.distances))
    # For a single query usearch returns an unpadded result without counts.
    counts = np.asarray(found.counts) if len(Q) > 1 else np.array([keys.shape[1]])
    is_found = np.arange(keys.shape[1]) < counts[:, None]
    ids[:, : keys.shape[1]] = np.where(is_found, keys.astype(np.int64), -1)
    distances[:, : keys.shape[1]] = np.where(is_found, found_distances, np.inf)
    return ids, distances


def require() -> Any:
    """Import usearch.index; the error names the command that installs it."""
    try:
        return import_module("usearch.index")
    except ImportError:
        raise ModuleNotFoundError(INSTALL) from None


_graphs: dict[int, Any] = {}  # open graphs by the id of their bytes
_lock = Lock()


def _open(saved: Array) -> Any:
    """Open the graph once, as a view of its bytes; it is closed when the bytes are garbage-collected."""
    with _lock:
        if id(saved) not in _graphs:
            _graphs[id(saved)] = require().Index.restore(saved, view=True)
            weakref.finalize(saved, _graphs.pop, id(saved), None)
        return _graphs[id(saved)]
