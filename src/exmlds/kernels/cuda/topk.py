"""Search on a graphics card: a coarse selection in half precision, and exact scores of what it found."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..jit.topk import rescore as rescore_on_cpu
from ..jit.topk import search_rows as search_rows_on_cpu
from ..jit.topk import sparse_topk as sparse_topk_on_cpu
from .device import THREADS, Device, current, power_of_two

Array = np.ndarray

SPARE = 28  # rows that the coarse pass selects beside the k that are asked for, at least
STEP = 4 * THREADS  # scores that a block looks at between two barriers, as in topk.cu
LAST_KEY = np.uint64(2**64 - 1)  # a key after all others
WORK_SHARE = 0.25  # of the free memory, for the scores of all rows that some queries have
SCORE_BYTES = 2**29  # of a block of coarse scores


def search_rows(
    Q: Array, rows: Array, scale: Array, bias: Array, is_euclidean: bool, positions: Array, scores: Array
) -> None:
    """See the twin in reference/topk.py. Very many neighbours are searched for on the CPU."""
    k = positions.shape[1]
    if not len(Q) or not len(rows) or not k:
        return
    if 8 * power_of_two(k + SPARE + STEP) + 4 * Q.shape[1] > current().most_shared:
        search_rows_on_cpu(Q, rows, scale, bias, is_euclidean, positions, scores)
        return
    with current().working() as device:
        found = _select(device, Q, rows, scale, bias, is_euclidean, min(k + SPARE, len(rows)))
        _rescore(device, Q, _exact(device, rows, scale), bias, is_euclidean, found, found, positions, scores)


def sparse_topk(
    q_indptr: Array,
    q_indices: Array,
    q_data: Array,
    p_indptr: Array,
    p_rows: Array,
    p_data: Array,
    bias: Array,
    offset: int,
    best_ids: Array,
    best_scores: Array,
) -> None:
    """See the twin in reference/topk.py. Numbers of 64 bits and very many neighbours are left to the CPU."""
    k = best_ids.shape[1]
    if p_data.dtype != np.float32 or 8 * power_of_two(k + STEP) > current().most_shared:
        sparse_topk_on_cpu(
            q_indptr, q_indices, q_data, p_indptr, p_rows, p_data, bias, offset, best_ids, best_scores
        )
        return
    n, n_rows = len(best_ids), len(bias)
    if not n or not n_rows:
        return
    with current().working() as device:
        queries = (
            device.copy(q_indptr, np.int64),
            device.copy(q_indices, np.uint32),
            device.copy(q_data, np.float32),
        )
        postings = (
            device.resident(p_indptr, np.int64),
            device.resident(p_rows, np.uint32),
            device.resident(p_data, np.float32),
        )
        fitting = int(device.free_bytes() * WORK_SHARE / (4 * n_rows))
        blocks, capacity = max(min(n, device.n_blocks, fitting), 1), np.int32(power_of_two(k + STEP))
        scores = device.xp.zeros((blocks, n_rows), np.float32)
        best = device.copy(_keys(best_ids, best_scores))
        sizes = np.int32(n_rows), np.int64(offset), np.int32(k), capacity
        own_bias = device.resident(bias, np.float32)
        device.launch(
            "topk",
            "search_postings",
            blocks,
            *queries,
            np.int32(n),
            *postings,
            own_bias,
            *sizes,
            scores,
            best,
            shared=8 * int(capacity),
        )
        found = device.to_host(best)
    present = found != LAST_KEY
    best_ids[...] = np.where(present, (found & np.uint64(2**32 - 1)).astype(np.int64), -1)
    best_scores[...] = np.where(present, _scores(found), -np.inf)


def _keys(ids: Array, scores: Array) -> Array:
    """Keys that sort by score, best first, and then by id, as in prelude.cuh."""
    bits = scores.view(np.uint32)
    ascending = np.where(bits >> 31, ~bits, bits | np.uint32(2**31))
    keys = (~ascending).astype(np.uint64) << np.uint64(32) | np.maximum(ids, 0).astype(np.uint64)
    return np.where(ids >= 0, keys, LAST_KEY)


def _scores(keys: Array) -> Array:
    ascending = ~(keys >> np.uint64(32)).astype(np.uint32)
    bits = np.where(ascending >> 31, ascending & np.uint32(2**31 - 1), ~ascending)
    return bits.astype(np.uint32).view(np.float32)


def rescore(
    Q: Array, rows: Array, bias: Array, is_euclidean: bool, positions: Array, ids: Array, scores: Array
) -> None:
    """See the twin in reference/topk.py."""
    if not positions.size:
        return
    if 8 * power_of_two(positions.shape[1]) + 4 * Q.shape[1] > current().most_shared:
        rescore_on_cpu(Q, rows, bias, is_euclidean, positions, ids, scores)
        return
    with current().working() as device:
        given = device.copy(positions, np.int64), device.copy(ids, np.int64)
        _rescore(device, Q, device.resident(rows, np.float32), bias, is_euclidean, *given, ids, scores)


def _exact(device: Device, rows: Array, scale: Array) -> Any:
    """The rows as float32, which stay on the card."""
    found = device.resident(rows, np.float32)
    return found * device.copy(scale)[:, None] if len(scale) else found


def _select(
    device: Device, Q: Array, rows: Array, scale: Array, bias: Array, is_euclidean: bool, k: int
) -> Any:
    """(q, k) int64, the positions of rows with the largest scores, −1 pads.

    Inner products of unit rows are accurate enough in half precision; squares of distances are not.
    """
    xp, own_bias = device.xp, device.resident(bias, np.float32)
    dtype: np.dtype[Any]
    if is_euclidean:
        dtype, kernel = np.dtype(np.float32), "select_from_floats"
        stored = _exact(device, rows, scale)
    else:
        dtype, kernel = np.dtype(np.float16), "select_from_halves"
        stored = device.resident(rows, np.float16)
        if len(scale):
            stored = (stored * device.copy(scale)[:, None]).astype(np.float16)
    queries = device.copy(2 * Q if is_euclidean else Q, dtype)
    best = xp.full((len(Q), k), LAST_KEY, np.uint64)
    size = max(SCORE_BYTES // (dtype.itemsize * len(Q)), STEP)
    capacity = power_of_two(k + STEP)
    for start in range(0, len(rows), size):
        block = stored[start : start + size]
        products = xp.ascontiguousarray(queries @ block.T)
        given = products, own_bias[start : start + size], np.int32(len(block)), np.int64(start)
        device.launch(
            "topk", kernel, len(Q), *given, np.int32(k), np.int32(capacity), best, shared=8 * capacity
        )
    found = device.empty(best.shape, np.int64)
    device.launch("topk", "positions_of_keys", device.n_blocks, best, np.int64(best.size), found)
    return found


def _rescore(
    device: Device,
    Q: Array,
    rows: Any,
    bias: Array,
    is_euclidean: bool,
    positions: Any,
    ids: Any,
    best_ids: Array,
    best_scores: Array,
) -> None:
    """Write the best of the rows at some positions, by their exact scores."""
    m, k = positions.shape[1], best_ids.shape[1]
    capacity, rank = power_of_two(m), Q.shape[1]
    out = device.copy(best_ids), device.copy(best_scores)
    given = device.copy(Q, np.float32), rows, device.resident(bias, np.float32), np.int32(rank)
    sizes = np.int32(m), np.int32(min(m, k)), np.int32(capacity)
    shared = 8 * capacity + 4 * rank
    device.launch(
        "topk",
        "rescore_rows",
        len(Q),
        *given,
        np.int32(is_euclidean),
        positions,
        ids,
        *sizes,
        np.int32(k),
        *out,
        shared=shared,
    )
    for array, found in zip((best_ids, best_scores), out):
        device.to_host(found, array)
