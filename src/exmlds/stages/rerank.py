"""A linear classifier for each label, to put the labels of short lists in a better order.

A label's examples are the rows that have it and the rows whose short list held it by mistake, so that
neither all pairs of rows and labels are looked at, nor is a dense (L, d) matrix ever made.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from .. import kernels
from ..runtime.parallel import blocks, map_blocks

Array = np.ndarray

LEAST_WEIGHT = 1e-6  # of a row: 1 over a smaller one might be no number
LABELS = 64  # trained at a time by a thread
LOSSES = ("squared_hinge", "logistic")


class Classifiers(NamedTuple):
    """w and b of each label; the weights feature by feature, of which a row has few, in steps of a scale.

    starts : (d + 1,) int64 of each feature's weights;  labels : (m,) uint16 or uint32, whose they are
    values : (m,) int8, times scale[label]
    full : (h, L) int8, the weights of features that many labels have;  places : (d,) int32 in it, or −1
    scale, bias : (L,) float32
    """

    starts: Array
    labels: Array
    values: Array
    dense: Array
    dense_slot: Array
    scale: Array
    bias: Array

    def weights(self, label: int) -> Array:
        """(d,) float64 w of a label."""
        w, is_full, own = (
            np.zeros(len(self.dense_slot)),
            self.dense_slot >= 0,
            np.flatnonzero(self.labels == label),
        )
        w[is_full] = self.dense[self.dense_slot[is_full], label]
        w[np.searchsorted(self.starts, own, side="right") - 1] = self.values[own]
        return w * self.scale[label]


class Examples(NamedTuple):
    """Those of label l are starts[l] to starts[l + 1].

    rows : int64;  signs : float32, 1 where the row has the label, −1 where its short list alone did
    """

    starts: Array
    rows: Array
    signs: Array


def examples(Y: csr_matrix, shortlist: Array) -> Examples:
    """The rows that have a label, and those whose short list, (n, k) ids with −1 pads, holds it."""
    n, n_labels = Y.shape
    listed = shortlist >= 0
    indptr = np.concatenate(([0], np.cumsum(listed.sum(axis=1))))
    held = csr_matrix((np.ones(indptr[-1], np.int8), shortlist[listed], indptr), shape=(n, n_labels))
    true = csr_matrix((np.full(Y.nnz, 2, np.int8), Y.indices, Y.indptr), shape=Y.shape)
    both = (held + true).tocsc()
    signs = np.where(both.data >= 2, np.float32(1), np.float32(-1))
    return Examples(both.indptr.astype(np.int64), both.indices.astype(np.int64), signs)


def fit(
    X: csr_matrix,
    given: Examples,
    *,
    loss: str = "squared_hinge",
    cost: float = 1.0,
    row_weights: Array | None = None,
    keep_from: float = 0.0,
    start: Array | None = None,
    n_epochs: int = 10,
    tolerance: float = 0.1,
    n_jobs: int | None = None,
) -> tuple[Classifiers, Array]:
    """Learn from X, (n, d) csr float32; returns with the classifiers each example's pull, its α.

    cost : of an example that is on the wrong side, against ‖w‖² / 2
    row_weights : (n,) what the cost of a row is multiplied by
    keep_from : weights below this share of a label's largest are left out
    start : the pulls to go on from, of `carry_alphas`
    """
    n_labels, d = len(given.starts) - 1, X.shape[1]
    costs = np.full(len(given.rows), cost, np.float32)
    if row_weights is not None:
        costs *= np.maximum(row_weights.astype(np.float32), LEAST_WEIGHT)[given.rows]
    squares = np.asarray(X.multiply(X).sum(axis=1), np.float32).ravel()
    sizes = np.concatenate(([0], np.cumsum(np.diff(X.indptr)[given.rows])))[given.starts]
    most = np.minimum(np.diff(sizes), d)  # weights of a label
    alphas = np.zeros(len(given.rows), np.float32) if start is None else start.copy()
    columns = X.indices.astype(np.uint32)  # numba takes signed ones for possible counts from the end

    def learn(labels: slice) -> tuple[Array, Array, Array, Array, Array]:
        room = int(most[labels].sum())
        w, bias = np.zeros(d, np.float32), np.zeros(labels.stop - labels.start, np.float32)
        starts, features = np.zeros(len(bias) + 1, np.int64), np.empty(room, np.int32)
        values = np.empty(room, np.float32)
        kernels.train_labels(
            X.indptr,
            columns,
            X.data,
            squares,
            given.starts,
            given.rows,
            given.signs,
            costs,
            labels.start,
            labels.stop,
            loss == "logistic",
            n_epochs,
            np.float32(tolerance),
            np.float32(keep_from),
            alphas,
            w,
            starts,
            features,
            values,
            bias,
        )
        return _packed(starts, features[: starts[-1]], values[: starts[-1]], bias)

    done = list(
        map_blocks(learn, blocks(n_labels, LABELS), n_jobs=n_jobs, stage="re-ranking", total=n_labels)
    )
    counts, features, values, scale, bias = (np.concatenate(parts) for parts in zip(*done))
    starts = np.concatenate(([0], np.cumsum(counts)))
    by_label = csr_matrix((values, features, starts), shape=(n_labels, d))
    return Classifiers(*_by_feature(by_label), scale, bias), alphas


def carry_alphas(known: Examples, alphas: Array, rows: Array, given: Examples) -> Array:
    """The pulls of examples that were learnt from before, 0 for the others.

    known, pulls : those examples, of some of the rows, and how they ended;  rows : ascending, what its rows
        are called in `given`
    """
    n = int(max(rows.max(initial=0), given.rows.max(initial=0))) + 1

    def keys(some: Examples, numbers: Array) -> Array:  # ascending, as rows are within a label
        return np.repeat(np.arange(len(some.starts) - 1), np.diff(some.starts)) * n + numbers

    before, now = keys(known, rows[known.rows]), keys(given, given.rows)
    dense_slot = np.searchsorted(before, now)
    dense_slot[dense_slot == len(before)] = 0
    same = np.zeros(len(now), bool) if not len(before) else before[dense_slot] == now
    found = np.zeros(len(now), np.float32)
    found[same] = alphas[dense_slot[same]]
    return found


def _packed(
    starts: Array, features: Array, values: Array, bias: Array
) -> tuple[Array, Array, Array, Array, Array]:
    """Each label's weights as whole numbers up to 127 times a scale."""
    counts = np.diff(starts)
    label = np.repeat(np.arange(len(counts)), counts)
    scale = np.zeros(len(counts), np.float32)
    np.maximum.at(scale, label, np.abs(values) / 127)
    return counts, features, np.rint(values / scale[label]).astype(np.int8), scale, bias


def _by_feature(weights: csr_matrix) -> tuple[Array, Array, Array, Array, Array]:
    """Weights (L, d) as `Classifiers` has them: a feature is full where that takes fewer bytes."""
    n_labels, weights = weights.shape[0], weights.tocsc()
    labels = weights.indices.astype(np.uint16 if n_labels <= 2**16 else np.uint32)
    counts = np.diff(weights.indptr)
    is_full = counts * (labels.itemsize + 1) > n_labels
    in_few = np.repeat(~is_full, counts)
    starts = np.concatenate(([0], np.cumsum(np.where(is_full, 0, counts))))
    dense_slot = np.where(is_full, np.cumsum(is_full) - 1, -1).astype(np.int32)
    return starts, labels[in_few], weights.data[in_few], weights[:, is_full].T.toarray(), dense_slot


def score(classifiers: Classifiers, X: csr_matrix, ids: Array) -> Array:
    """(n, k) float32 margins of the labels on short lists, (n, k) with −1 pads; those give −inf."""
    out = np.empty(ids.shape, np.float32)
    totals = np.zeros(len(classifiers.bias), np.float32)
    kernels.score_labels(X.indptr, X.indices, X.data, *classifiers, totals, _as_int64(ids), out)
    return out


def _as_int64(ids: Array) -> Any:
    return np.ascontiguousarray(ids, np.int64)
