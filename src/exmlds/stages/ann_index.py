"""Approximate nearest neighbours by a graph of usearch: an extra, `pip install "exmlds[approximate]"`."""

from __future__ import annotations

import weakref
from importlib import import_module
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray

LINKS = 32  # of a row in the graph
BUILD_WIDTH = 200  # rows looked at when one is added
SEARCH_WIDTH = 200  # rows looked at in a search, at least
INSTALL = 'Approximate search needs usearch: pip install "exmlds[approximate]".'


class Graph(NamedTuple):
    """saved : (bytes,) uint8, the graph with its rows as usearch writes it."""

    saved: Array


def build(rows: Array, metric: str, storage: str) -> Graph:
    """A graph of rows, of length 1 where the metric is "cosine"; in float16 unless `storage` is "float32".

    On one thread, so that the same rows give the same graph.
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
    """(q, k) int64 ids, −1 pads, and (q, k) float32 distances: 1 − ⟨q, x⟩ or ‖q − x‖²."""
    opened = _opened(graph.saved)
    opened.expansion_search = max(SEARCH_WIDTH, k)
    found = opened.search(Q, k, threads=threads)
    ids = np.full((len(Q), k), -1, np.int64)
    distances = np.full((len(Q), k), np.inf, np.float32)
    keys, far = (np.asarray(a).reshape(len(Q), -1) for a in (found.keys, found.distances))
    counts = np.asarray(found.counts) if len(Q) > 1 else np.array([keys.shape[1]])
    real = np.arange(keys.shape[1]) < counts[:, None]
    ids[:, : keys.shape[1]] = np.where(real, keys.astype(np.int64), -1)
    distances[:, : keys.shape[1]] = np.where(real, far, np.inf)
    return ids, distances


def require() -> Any:
    """The module usearch.index, or an error that says how to install it."""
    try:
        return import_module("usearch.index")
    except ImportError:
        raise ModuleNotFoundError(INSTALL) from None


_graphs: dict[int, Any] = {}  # opened, by the id of their bytes
_lock = Lock()


def _opened(saved: Array) -> Any:
    """The graph is opened where its bytes lie, once, and let go when they are."""
    with _lock:
        if id(saved) not in _graphs:
            _graphs[id(saved)] = require().Index.restore(saved, view=True)
            weakref.finalize(saved, _graphs.pop, id(saved), None)
        return _graphs[id(saved)]
