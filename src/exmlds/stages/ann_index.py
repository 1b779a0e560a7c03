"""Approximate nearest neighbours with a usearch HNSW graph; an extra, `pip install "exmlds[approximate]"`."""

from __future__ import annotations

import weakref
from importlib import import_module
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

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
