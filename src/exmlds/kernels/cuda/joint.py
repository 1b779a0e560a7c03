"""Joint learning on a graphics card: all batches of a call, without the host in between."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..jit.joint import train_batches as train_on_cpu
from .device import Device, current

Array = np.ndarray

THREADS = 128  # in a block that works on the columns of an embedding
VALUES_AT_ONCE = 2**26  # values of rows that are sorted by feature at a time
ROWS = 4  # as in joint.cu


def train_batches(
    thread: int,
    edges: Array,
    barrier: Array,
    indptr: Array,
    features: Array,
    values: Array,
    rows: Array,
    contexts: Array,
    batch_size: int,
    neighbors: Array,
    group: Array,
    gamma: float,
    is_cosine: bool,
    rate: float,
    U: Array,
    dU: Array,
    lengths: Array,
    slopes: Array,
    chain: Array,
    V: Array,
    squares: Array,
) -> None:
    """See the twin in reference/joint.py. One thread of the host is enough; the work space is not used.

    Batches that do not fit into shared memory are trained on the CPU.
    """
    if thread or not len(rows):
        return
    if 4 * ROWS * (batch_size + V.shape[1]) > current().most_shared:
        given = indptr, features, values, rows, contexts, batch_size, neighbors, group
        work = U, dU, lengths, slopes, chain
        train_on_cpu(thread, edges, barrier, *given, gamma, is_cosine, rate, *work, V, squares)
        return
    with current().working() as device:
        X = (
            device.copy(indptr, np.int64),
            device.copy(features, np.uint32),
            device.copy(values, np.float32),
        )
        pairs = device.copy(rows, np.int64), device.copy(contexts, np.int64)
        near = device.copy(neighbors, np.int64), np.int32(neighbors.shape[1]), device.copy(group, np.int64)
        state = device.copy(V), device.copy(squares)
        per_batch = 2 * batch_size * len(values) / max(len(indptr) - 1, 1)
        size = batch_size * max(int(VALUES_AT_ONCE / max(per_batch, 1)), 1)
        for start in range(0, len(rows), size):
            own = tuple(part[start : start + size] for part in pairs)
            settings = np.float32(gamma), is_cosine, np.float32(rate)
            _train(device, X, own, batch_size, near, *settings, state)
        for array, found in zip((V, squares), state):
            device.to_host(found, array)


def multiply_packed(
    indptr: Array, features: Array, values: Array, columns: Array, packed: Array, scale: Array, Z: Array
) -> None:
    """See the twin in reference/joint.py."""
    if not Z.size:
        return
    with current().working() as device:
        own, V = device.resident(columns, np.int64), device.resident(packed, np.float32)
        if len(scale):
            V = V * device.resident(scale, np.float32)[:, None]
        d = 1 + max(int(features.max(initial=0)), int(columns[-1]) if len(columns) else 0)
        number = device.xp.full(d, -1, np.int32)
        number[own] = device.xp.arange(len(columns), dtype=np.int32)
        X = (
            device.copy(indptr, np.int64),
            device.copy(features, np.uint32),
            device.copy(values, np.float32),
        )
        found = device.empty(Z.shape, np.float32)
        rank = np.int32(Z.shape[1])
        device.launch("joint", "multiply_packed", len(Z), *X, number, V, rank, found, threads=THREADS)
        device.to_host(found, Z)


def _train(
    device: Device,
    X: tuple[Any, Any, Any],
    pairs: tuple[Any, ...],
    batch_size: int,
    near: tuple[Any, Any, Any],
    gamma: np.float32,
    is_cosine: bool,
    rate: np.float32,
    state: tuple[Any, Any],
) -> None:
    """Train on some batches, whose values are sorted by batch and feature first."""
    n, rank = len(pairs[0]), state[0].shape[1]
    slots = device.empty(2 * n, np.int64)
    for start in range(0, n, batch_size):
        b = min(batch_size, n - start)
        for i, part in enumerate(pairs):
            slots[2 * start + i * b : 2 * start + (i + 1) * b] = part[start : start + b]
    keys, places, values = _sorted_values(device, X, slots, batch_size)
    if not len(keys):
        return
    first = device.xp.flatnonzero(keys[1:] != keys[:-1]) + 1
    starts = device.xp.concatenate([device.xp.zeros(1, np.int64), first, device.xp.full(1, len(keys))])
    n_batches = -(-n // batch_size)
    of_batch = (keys[starts[:-1]] >> np.uint64(32)).astype(np.int64)
    edges = device.to_host(device.xp.searchsorted(of_batch, device.xp.arange(n_batches + 1))).tolist()
    b = min(batch_size, n)
    U, transposed, gradients = (device.empty((2 * b, rank), np.float32) for _ in range(3))
    lengths, slopes = device.empty(2 * b, np.float32), device.empty(b * b, np.float32)
    width, cosine = np.int32(rank), np.int32(is_cosine)
    for batch in range(n_batches):
        start = batch * batch_size
        b = min(batch_size, n - start)
        size, own = np.int32(b), slots[2 * start : 2 * (start + b)]
        embedded = U, transposed, lengths
        device.launch(
            "joint", "embed_batch", 2 * b, *X, own, state[0], width, cosine, *embedded, threads=THREADS
        )
        blocks, shared = -(-b // ROWS), 4 * ROWS * (rank + b)
        similar = U, transposed, own, own[b:], *near, size, width, gamma, slopes
        device.launch("joint", "softmax_slopes", blocks, *similar, shared=shared)
        sloped = U, lengths, slopes, size, width, cosine, gradients
        device.launch("joint", "batch_gradients", 2 * blocks, *sloped, threads=THREADS, shared=4 * ROWS * b)
        ends = starts[edges[batch] : edges[batch + 1] + 1]
        step = ends, keys, places, values, gradients, width, rate, *state
        device.launch("joint", "step_features", len(ends) - 1, *step, threads=THREADS)


def _sorted_values(
    device: Device, X: tuple[Any, Any, Any], slots: Any, batch_size: int
) -> tuple[Any, Any, Any]:
    """The values of batches by batch and feature: keys of both, places in the batch, and the values."""
    xp, (indptr, features, values) = device.xp, X
    number = xp.arange(len(slots))
    batches, places = number // (2 * batch_size), number % (2 * batch_size)
    ends = xp.concatenate([xp.zeros(1, np.int64), xp.cumsum(indptr[slots + 1] - indptr[slots])])
    total = int(ends[-1])
    keys, sources, own = (device.empty(total, dtype) for dtype in (np.uint64, np.int64, np.int32))
    given = indptr, features, slots, batches.astype(np.int32), places.astype(np.int32), ends
    device.launch("joint", "list_values", device.n_blocks, *given, np.int32(len(slots)), keys, sources, own)
    order = xp.argsort(keys, kind="stable")
    return keys[order], own[order], values[sources[order]]
