"""Linear classifiers on a graphics card: the descents of many labels at the same time, and margins."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..jit.rerank import score_labels as score_on_cpu
from .device import THREADS, WARP, Device, current, power_of_two

Array = np.ndarray

WORK_SHARE = 0.25  # of the free memory, for the weights that are trained at the same time
WORK_BYTES = 12  # for each feature of a label that is trained: its weight, and a place in a list of both
WEIGHT_BYTES = 5  # of a weight that is written


def train_labels(
    indptr: Array,
    features: Array,
    values: Array,
    squares: Array,
    starts: Array,
    rows: Array,
    signs: Array,
    costs: Array,
    first: int,
    last: int,
    is_logistic: bool,
    n_new_epochs: int,
    n_epochs: int,
    tolerance: float,
    keep_from: float,
    alphas: Array,
    w: Array,
    out_starts: Array,
    out_features: Array,
    out_values: Array,
    out_scale: Array,
    out_bias: Array,
) -> None:
    """See the twin in reference/rerank.py; the work array is not used."""
    if first >= last:
        return
    lengths = np.diff(indptr)
    with current().working() as device:
        X = (
            device.resident(indptr, np.int64),
            device.resident(features, np.uint32),
            device.resident(values, np.float32),
            device.resident(squares, np.float32),
        )
        own_costs = device.copy(costs, np.float32)
        settings = (
            np.int32(is_logistic),
            np.int32(n_new_epochs),
            np.int32(n_epochs),
            np.float32(tolerance),
            np.float32(keep_from),
        )
        warps = _Warps(device, len(w), last - first)
        room = max(int(device.free_bytes() * WORK_SHARE / WEIGHT_BYTES), len(w))
        n = 0
        for labels in _rounds(starts[first : last + 1], rows, lengths, len(w), room):
            begin, end = first + labels.start, first + labels.stop
            own = slice(int(starts[begin]), int(starts[end]))
            examples = (
                device.copy(starts[begin : end + 1] - starts[begin], np.int64),
                device.copy(rows[own], np.int32),
                device.copy(signs[own]),
                own_costs,
            )
            found = device.copy(alphas[own], np.float32)
            size = min(room, 1 + int(_most_weights(starts[begin : end + 1], rows, lengths, len(w)).sum()))
            weights, facts = warps.train((*X, *examples), np.int64(begin), settings, found, size)
            counts, *arranged = _arranged(device, weights)
            out_starts[labels.start + 1 : labels.stop + 1] = n + np.cumsum(counts)
            here = slice(n, n + int(counts.sum()))
            device.to_host(arranged[0], out_features[here])
            device.to_host(arranged[1], out_values[here])
            n = here.stop
            device.to_host(found, alphas[own])
            device.to_host(facts[0], out_scale[labels])
            device.to_host(facts[1], out_bias[labels])


def _most_weights(starts: Array, rows: Array, lengths: Array, d: int) -> Array:
    """(L,) the weights that each label can have: no more than its examples have values."""
    sizes = np.concatenate(([0], np.cumsum(lengths[rows[starts[0] : starts[-1]]], dtype=np.int64)))
    return np.minimum(np.diff(sizes[starts - starts[0]]), d)


def _rounds(starts: Array, rows: Array, lengths: Array, d: int, room: int) -> list[slice]:
    """Consecutive labels whose weights find room, whatever they will be."""
    ends, cuts = np.cumsum(_most_weights(starts, rows, lengths, d)), [0]
    while cuts[-1] < len(ends):
        before = ends[cuts[-1] - 1] if cuts[-1] else 0
        cuts.append(max(int(np.searchsorted(ends, before + room, side="right")), cuts[-1] + 1))
    return [slice(*pair) for pair in pairwise(cuts)]


class _Weights(NamedTuple):
    """Weights as the warps wrote them: where those of each label begin, and how many they are."""

    begins: Any
    counts: Any
    features: Any
    values: Any


class _Warps:
    """What the warps that train labels have: an array of weights each, and a list of those that are kept."""

    def __init__(self, device: Device, d: int, n_labels: int) -> None:
        fitting = int(device.free_bytes() * WORK_SHARE / (WORK_BYTES * d * (THREADS // WARP)))
        self.blocks = max(min(fitting, device.n_blocks, -(-n_labels // (THREADS // WARP))), 1)
        size = self.blocks * (THREADS // WARP) * d
        self.device, self.d = device, np.int64(d)
        self.arrays = (
            device.xp.zeros(size, np.float32),
            device.empty(size, np.uint32),
            device.empty(size, np.float32),
        )

    def train(
        self, given: tuple[Any, ...], first: np.int64, settings: tuple[Any, ...], alphas: Any, room: int
    ) -> tuple[_Weights, Any]:
        """Train the labels of some examples, whose weights fit into the room; also (2, L) scales and biases.

        given : the rows and the examples;  first : the number of the first label
        """
        xp, starts = self.device.xp, self.device.to_host(given[4])
        n_labels = len(starts) - 1
        todo = np.argsort(-np.diff(starts), kind="stable")  # large labels must not hold up the end
        places, facts = xp.zeros((2, n_labels), np.int64), xp.zeros((2, n_labels), np.float32)
        weights = _Weights(
            places[0], places[1], self.device.empty(room, np.uint32), self.device.empty(room, np.int8)
        )
        self.device.launch(
            "rerank",
            "train_labels",
            self.blocks,
            *given,
            self.device.copy(todo, np.int32),
            np.int32(n_labels),
            xp.zeros(1, np.int32),
            first,
            *settings,
            alphas,
            self.device.empty(len(alphas), np.uint32),
            self.d,
            *self.arrays,
            xp.zeros(1, np.uint64),
            *weights,
            *facts,
        )
        return weights, facts


def _arranged(device: Device, weights: _Weights) -> tuple[Array, Any, Any]:
    """The number of weights of each label, and the features and values in the order of the labels."""
    counts = device.to_host(weights.counts)
    starts = device.copy(np.concatenate(([0], np.cumsum(counts))))
    arranged = device.empty(int(counts.sum()), np.int32), device.empty(int(counts.sum()), np.int8)
    given = weights.begins, starts, np.int32(len(counts)), weights.features, weights.values
    device.launch("rerank", "arrange_weights", device.n_blocks, *given, *arranged)
    return counts, *arranged


def score_labels(
    indptr: Array,
    features: Array,
    values: Array,
    starts: Array,
    labels: Array,
    weights: Array,
    dense: Array,
    dense_slot: Array,
    scale: Array,
    bias: Array,
    totals: Array,
    ids: Array,
    out: Array,
) -> None:
    """See the twin in reference/rerank.py; the work array is not used."""
    if not ids.size:
        return
    n, k = ids.shape
    capacity = power_of_two(2 * k)
    shared = 8 * capacity + 4 * k * (1 + THREADS // WARP)
    if shared > current().most_shared:  # very long lists
        given = indptr, features, values, starts, labels, weights, dense, dense_slot, scale, bias
        score_on_cpu(*given, totals, ids, out)
        return
    with current().working() as device:
        rows = (
            device.copy(indptr, np.int64),
            device.copy(features, np.uint32),
            device.copy(values, np.float32),
        )
        classifiers = (
            device.resident(starts, np.int64),
            device.resident(labels, np.uint32),
            device.resident(weights, np.int8),
            device.resident(dense, np.int8),
            device.resident(dense_slot, np.int32),
            np.int64(len(bias)),
            device.resident(scale, np.float32),
            device.resident(bias, np.float32),
        )
        found = device.empty(ids.shape, np.float32)
        sizes = np.int32(k), np.int32(capacity)
        device.launch(
            "rerank",
            "score_labels",
            n,
            *rows,
            *classifiers,
            device.copy(ids, np.int64),
            *sizes,
            found,
            shared=shared,
        )
        device.to_host(found, out)
