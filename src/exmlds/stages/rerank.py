"""The re-ranker: a linear classifier for each label, applied to the labels on a row's short list.

The positives of a label are the rows that have it, and its negatives the rows whose short list holds it by
mistake. Training therefore never visits all pairs of rows and labels, and no dense (L, d) matrix is formed.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from ..kernels import DEFAULT, Engine
from ..runtime.parallel import blocks, map_blocks
from ..validation import mapped, stored
from ..validation.arrays import count_columns, row_norms

Array = np.ndarray

LEAST_WEIGHT = 1e-6  # least weight of a row: the kernel divides by its cost
TRAINING_BLOCKS = 256  # blocks of labels that are trained at the same time, at most
COLLECTING_BLOCKS = 16  # blocks of rows or labels whose examples are collected at the same time
SORTING_BLOCKS = 8  # blocks of labels whose rows are added up, or whose weights are sorted, at the same time
LOSSES = ("squared_hinge", "logistic")


class Classifiers(NamedTuple):
    """Weights w and bias b of each label, quantized to int8 and stored by feature.

    Scoring reads only the features of a row, so the weights of feature f are labels[starts[f]:starts[f + 1]]
    and the values beside them; features that many labels use are stored as rows of a dense matrix instead.

    starts : (d + 1,) int64
    labels : (m,) uint16 or uint32
    values : (m,) int8, to be multiplied by scale[label]
    dense : (h, L) int8, the weights of the dense features, to be multiplied by scale[label]
    dense_slot : (d,) int32, the row of each feature in `dense`, or −1
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
        """(d,) float64, w of a label."""
        w, is_dense = np.zeros(len(self.dense_slot)), self.dense_slot >= 0
        own = np.flatnonzero(self.labels == label)
        w[is_dense] = self.dense[self.dense_slot[is_dense], label]
        w[np.searchsorted(self.starts, own, side="right") - 1] = self.values[own]
        return w * self.scale[label]


def check(classifiers: Any, d: int, n_labels: int) -> None:
    """Check classifiers of d features and n_labels labels that come from a file."""
    stored.record(classifiers, "the classifiers", Classifiers)
    labels = stored.ids(classifiers.labels, "labels of classifiers", None, n_labels, dtypes="uint16 uint32")
    stored.offsets(classifiers.starts, "starts of classifiers", d, len(labels))
    stored.array(classifiers.values, "weights of classifiers", "int8", len(labels))
    n_dense = len(stored.array(classifiers.dense, "dense weights of classifiers", "int8", None, n_labels))
    stored.ids(classifiers.dense_slot, "dense features of classifiers", d, n_dense, low=-1)
    stored.array(classifiers.scale, "scales of classifiers", "float32", n_labels)
    stored.array(classifiers.bias, "biases of classifiers", "float32", n_labels)


def check_update(weights: Any, n_labels: int, classifiers: Classifiers) -> None:
    """Check the weights of some labels, of the features of classifiers, that come from a file."""
    stored.record(weights, "the trained classifiers", LabelWeights)
    d, m = len(classifiers.dense_slot), len(stored.array(weights.values, "trained weights", "int8", None))
    stored.offsets(weights.starts, "the starts of trained classifiers", n_labels, m)
    stored.ids(weights.features, "the features of trained classifiers", m, d, dtypes="int32")
    for values in (weights.scale, weights.bias):
        stored.array(values, "trained classifiers", "float32", n_labels)


class Examples(NamedTuple):
    """Training examples of all labels; those of label l are at starts[l] to starts[l + 1].

    starts : (L + 1,) int64
    rows : (m,) int32, ascending within a label
    signs : (m,) int8, 1 where the row has the label, −1 where only its short list does
    """

    starts: Array
    rows: Array
    signs: Array


def examples(
    Y: csr_matrix,
    shortlist: Array,
    more: csr_matrix | None = None,
    *,
    n_jobs: int | None = 1,
    engine: Engine = DEFAULT,
) -> Examples:
    """Collect the examples of each label: the rows that have it, and the rows whose short list holds it.

    Y : (n, L) csr of ones
    shortlist : (n, k) integers, −1 pads
    more : (n, L) csr, its entries are further labels on short lists
    """
    n, n_labels = Y.shape
    starts, listed = np.zeros(n_labels + 1, np.int64), np.ascontiguousarray(shortlist, np.int32)
    further = csr_matrix((n, 0)) if more is None else more
    # Each block of rows has its own positions for each label, which are as many as its pairs at most.
    n_pairs = Y.nnz + listed.size + further.nnz
    todo = blocks(n, max(1, -(-n // max(1, min(COLLECTING_BLOCKS, n_pairs // n_labels)))))
    positions = np.zeros((len(todo), n_labels), np.int64)

    def collect(*out: Array) -> None:
        def add(which: slice) -> None:
            rows = todo[which.start]
            ends = slice(rows.start, rows.stop + 1)
            true, others = ((A.indptr[ends], A.indices) for A in (Y, further))
            engine.collect_examples(rows.start, *true, listed[rows], *others, positions[which.start], *out)

        _at_once(add, len(todo), n_jobs, "collecting examples")

    collect(np.zeros(0, np.int32), np.zeros(0, np.int8))
    np.cumsum(positions.sum(axis=0), out=starts[1:])
    positions[:] = starts[:-1] + np.cumsum(positions, axis=0) - positions
    rows, signs = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.int8)
    collect(rows, signs)
    return Examples(starts, rows, signs)


def _at_once(work: Callable[[slice], None], n: int, n_jobs: int | None, stage: str) -> None:
    """Run work(slice(i, i + 1)) for i = 0…n−1 on several threads."""
    for _ in map_blocks(work, blocks(n, 1), n_jobs=n_jobs, stage=stage, total=n, unit="blocks"):
        pass


def extend_examples(
    before: Examples, alphas: Array, added: Examples, *, n_jobs: int | None = 1, engine: Engine = DEFAULT
) -> tuple[Examples, Array]:
    """The examples of an earlier fit with further ones, and (m,) float32, the α to start from.

    before, alphas : the examples of an earlier fit on some of the rows, and their α
    added : further ones; those that were there before are left out
    """
    n_labels, none = len(before.starts) - 1, np.zeros(0, np.float32)
    todo, counts = label_blocks(before.starts + added.starts, COLLECTING_BLOCKS), np.zeros(n_labels, np.int64)

    def merge(labels: slice, starts: Array, *out: Array) -> None:
        own = slice(labels.start, labels.stop + 1)
        given = before.starts[own], *before[1:], alphas, added.starts[own], *added[1:]
        engine.merge_examples(*given, starts, *out)

    def count(which: slice) -> None:
        labels = todo[which.start]
        starts = np.zeros(labels.stop - labels.start + 1, np.int64)
        merge(labels, starts, none.astype(np.int32), none.astype(np.int8), none)
        counts[labels] = np.diff(starts)

    def fill(which: slice) -> None:
        labels = todo[which.start]
        merge(labels, merged.starts[labels.start : labels.stop + 1], merged.rows, merged.signs, start)

    _at_once(count, len(todo), n_jobs, "counting examples")
    starts = np.concatenate(([0], np.cumsum(counts)))
    m = int(starts[-1])
    merged, start = Examples(starts, np.empty(m, np.int32), np.empty(m, np.int8)), np.empty(m, np.float32)
    _at_once(fill, len(todo), n_jobs, "merging examples")
    return merged, start


class SelectedExamples(NamedTuple):
    """The examples with which some labels are trained again.

    positions : (p,) int64, where they are among the examples of all labels
    examples : of these labels;  alphas : (p,) float32, the α to start from
    """

    positions: Array
    examples: Examples
    alphas: Array


def count_trainable(
    given: Examples,
    alphas: Array,
    labels: Array,
    is_live: Array,
    *,
    n_jobs: int | None = 1,
    engine: Engine = DEFAULT,
) -> Array:
    """(m,) int64, with how many examples `select_examples` has each of these labels trained again."""
    counts, none = np.zeros(len(labels), np.int64), np.zeros(0, np.float32)
    out = none.astype(np.int64), none.astype(np.int32), none.astype(np.int8), none
    todo = blocks(len(labels), max(1, -(-len(labels) // COLLECTING_BLOCKS)))

    def count(which: slice) -> None:
        own = todo[which.start]
        starts = np.zeros(own.stop - own.start + 1, np.int64)
        engine.select_examples(*given, alphas, labels[own], is_live, starts, *out)
        counts[own] = np.diff(starts)

    _at_once(count, len(todo), n_jobs, "counting examples")
    return counts


def select_examples(
    given: Examples,
    alphas: Array,
    labels: Array,
    is_live: Array,
    counts: Array,
    *,
    n_jobs: int | None = 1,
    engine: Engine = DEFAULT,
) -> SelectedExamples:
    """The examples with which labels are trained again; negative ones with an α below 0 are left out.

    given, alphas : the examples of all labels, and their α
    labels : (m,) ascending;  is_live : (n,) bool, rows that still are examples
    counts : (m,) how many examples these labels have, by `count_trainable`
    """
    starts = np.concatenate(([0], np.cumsum(counts)))
    positions, rows, signs, own_alphas = (
        np.empty(starts[-1], dtype) for dtype in (np.int64, np.int32, np.int8, np.float32)
    )
    todo = label_blocks(starts, COLLECTING_BLOCKS)

    def select(which: slice) -> None:
        own = todo[which.start]
        ends = starts[own.start : own.stop + 1].copy()
        out = ends, positions, rows, signs, own_alphas
        engine.select_examples(*given, alphas, labels[own], is_live, *out)

    _at_once(select, len(todo), n_jobs, "examples of changed labels")
    return SelectedExamples(positions, Examples(starts, rows, signs), own_alphas)


def keep_rows(given: Examples, alphas: Array, is_kept: Array) -> tuple[Examples, Array]:
    """The examples of some rows, which are counted anew, and their α; is_kept : (n,) bool."""
    own = is_kept[given.rows]
    starts = np.concatenate(([0], np.cumsum(own)))[given.starts]
    rows = (np.cumsum(is_kept) - 1)[given.rows[own]].astype(np.int32)
    return Examples(starts, rows, given.signs[own]), alphas[own]


def check_examples(examples: Any, n: int, n_labels: int) -> None:
    """Check examples of n rows and n_labels labels that come from a file."""
    stored.record(examples, "the examples", Examples)
    m = len(stored.ids(examples.rows, "the rows of examples", None, n, dtypes="int32"))
    stored.array(examples.signs, "the signs of examples", "int8", m)
    stored.offsets(examples.starts, "the examples of labels", n_labels, m)


class LabelWeights(NamedTuple):
    """Classifiers label by label, as they are trained.

    starts : (L + 1,) int64, the weights of label l are at starts[l] to starts[l + 1]
    features, values : (m,) int32 and int8;  scale, bias : (L,) float32
    """

    starts: Array
    features: Array
    values: Array
    scale: Array
    bias: Array


def fit(
    X: csr_matrix, given: Examples, *, n_jobs: int | None = None, engine: Engine = DEFAULT, **settings: Any
) -> tuple[Classifiers, Array]:
    """Train the classifiers as `train` does; return them with the dual variable α of each example."""
    rows = pad_rows(X, engine=engine)
    parts, alphas = _train_parts(rows, given, n_jobs=n_jobs, engine=engine, **settings)
    if len(parts) < SORTING_BLOCKS:  # each of them is sorted by one thread
        n_each = -(-SORTING_BLOCKS // len(parts))
        parts = [piece for part in parts for piece in _split(part, n_each)]
    return _by_feature(parts, X.shape[1], n_jobs, engine), alphas


def train(X: PaddedRows, given: Examples, **settings: Any) -> tuple[LabelWeights, Array]:
    """Train the classifiers by dual coordinate descent; return them with the dual variable α of each example.

    settings : as `_train_parts` takes them
    """
    parts, alphas = _train_parts(X, given, **settings)
    return _joined(parts), alphas


def _joined(parts: list[LabelWeights]) -> LabelWeights:
    """The weights of consecutive blocks of labels as one."""
    starts, *others = zip(*parts)
    counts = np.concatenate([np.diff(part) for part in starts])
    return LabelWeights(np.concatenate(([0], np.cumsum(counts))), *map(np.concatenate, others))


def _train_parts(
    X: PaddedRows,
    given: Examples,
    *,
    loss: str = "squared_hinge",
    cost: float = 1.0,
    row_weights: Array | None = None,
    keep_from: float = 0.0,
    start: Array | None = None,
    n_new_epochs: int = 0,
    n_epochs: int = 10,
    tolerance: float = 0.1,
    n_jobs: int | None = None,
    engine: Engine = DEFAULT,
) -> tuple[list[LabelWeights], Array]:
    """Train the classifiers; return those of consecutive blocks of labels, and α.

    given : the examples of each label
    cost : factor of the loss of an example, relative to ‖w‖² / 2
    row_weights : (n,) float, factors of the cost of each row
    keep_from : weights below this share of the label's largest weight are pruned
    start : (m,) float32, the α to start from (warm start, `extend_examples`), overwritten; None starts from 0
    n_new_epochs : passes over the examples with an α of 0 alone, at most, before n_epochs over all of them
    tolerance : training of a label stops when no gradient (for "logistic": no step) is larger
    """
    n_labels, d = len(given.starts) - 1, X.n_features
    costs = np.full(len(X.squares), cost, np.float32)
    if row_weights is not None:
        costs *= np.maximum(row_weights.astype(np.float32), LEAST_WEIGHT)
    alphas = np.zeros(len(given.rows), np.float32) if start is None else start
    rows, lengths = X[:4], np.diff(X.starts)
    settings = (loss == "logistic", n_new_epochs, n_epochs, np.float32(tolerance), np.float32(keep_from))

    def train_block(labels: slice) -> LabelWeights:
        w, out = np.zeros(d, np.float32), _room_for(labels, given.starts, given.rows, lengths, d)
        engine.train_labels(*rows, *given, costs, labels.start, labels.stop, *settings, alphas, w, *out)
        return _filled(out)

    # The blocks with most examples come first, so that none of them holds up the end.
    n_blocks = max(min(len(given.rows) // engine.block_examples, TRAINING_BLOCKS), 1)
    todo = label_blocks(given.starts, n_blocks)
    sizes = [int(given.starts[labels.stop] - given.starts[labels.start]) for labels in todo]
    order = np.argsort(sizes, kind="stable")[::-1].tolist()
    done = map_blocks(
        train_block,
        [todo[i] for i in order],
        n_jobs=n_jobs,
        stage="re-ranking",
        total=n_labels,
        unit="labels",
    )
    trained = [part for _, part in sorted(zip(order, done), key=lambda pair: pair[0])]
    return trained or [train_block(slice(0, 0))], alphas


def fit_centroids(
    X: csr_matrix,
    Y: csr_matrix,
    *,
    row_weights: Array | None = None,
    keep_from: float = 0.0,
    n_jobs: int | None = None,
    engine: Engine = DEFAULT,
) -> Classifiers:
    """The centroid of each label, in the form of classifiers without bias.

    With D the diagonal matrix of inverse document frequencies, the centroid is the mean of D x over the rows
    of the label, scaled to unit length. A margin is the product of D x with it, so that D is folded in twice.

    X : (n, d) csr float32;  Y : (n, L) csr of ones
    row_weights : (n,) float, factors of the rows
    keep_from : weights below this share of the label's largest weight are pruned
    """
    of_labels = csr_matrix(Y.T)  # (L, n)
    given = of_labels.indptr.astype(np.int64), of_labels.indices
    factors = np.ones(X.shape[0]) if row_weights is None else row_weights
    rows = X.indptr, X.indices, X.data
    parts = _centroids_of(rows, *given, factors, inverse_frequencies(X), keep_from, n_jobs, engine)
    return _by_feature(parts, X.shape[1], n_jobs, engine)


def inverse_frequencies(X: csr_matrix) -> Array:
    """(d,) float32, the diagonal of D: features that few rows have tell more; the 1 keeps all others."""
    return (1 + np.log((1 + X.shape[0]) / (1 + count_columns(X)))).astype(np.float32)


def replace_centroids(
    centroids: Classifiers,
    labels: Array,
    X: PaddedRows,
    starts: Array,
    rows: Array,
    idf: Array,
    n_labels: int,
    *,
    keep_from: float = 0.0,
    n_jobs: int | None = None,
    engine: Engine = DEFAULT,
) -> Classifiers:
    """The centroids with those of some labels, (m,) ascending, replaced by those of other rows.

    starts, rows : (m + 1,) int64 and (p,), the rows of X that each of these labels has
    idf : (d,) as `inverse_frequencies` gives it;  n_labels : number of labels afterwards
    """
    factors = np.ones(len(X.squares))
    parts = _centroids_of(X[:3], starts, rows, factors, idf, keep_from, n_jobs, engine)
    return replace(centroids, labels, _joined(parts), n_labels, n_jobs=n_jobs, engine=engine)


def fit_means(
    X: csr_matrix, Y: csr_matrix, *, n_jobs: int | None = None, engine: Engine = DEFAULT
) -> Classifiers:
    """The mean μ of the rows of each label as a classifier, whose margin is (‖x‖² − ‖x − μ‖²) / 2.

    X : (n, d) csr float32;  Y : (n, L) csr of ones
    """
    of_labels = csr_matrix(Y.T, dtype=np.float32)  # (L, n)
    counts = np.maximum(np.diff(of_labels.indptr), 1).astype(np.float32)
    of_labels.data /= np.repeat(counts, np.diff(of_labels.indptr))

    def means_of(labels: slice) -> LabelWeights:
        means = of_labels[labels] @ X
        largest = _largest_of_rows(means)
        bias = (-(row_norms(means) ** 2) / 2).astype(np.float32)
        return _quantized(means, largest, 0.0)._replace(scale=(largest / 127).astype(np.float32), bias=bias)

    todo = label_blocks(of_labels.indptr.astype(np.int64), SORTING_BLOCKS)
    unit = "blocks of labels"
    done = map_blocks(means_of, todo, n_jobs=n_jobs, stage="centroids", total=len(todo), unit=unit)
    return _by_feature(list(done), X.shape[1], n_jobs, engine)


def _centroids_of(
    X: tuple[Array, Array, Array],
    starts: Array,
    rows: Array,
    factors: Array,
    idf: Array,
    keep_from: float,
    n_jobs: int | None,
    engine: Engine,
) -> list[LabelWeights]:
    """The centroids of blocks of consecutive labels, as the kernel `average_rows` takes them."""
    lengths, factors = np.diff(X[0]), factors.astype(np.float32)

    def average(labels: slice) -> LabelWeights:
        w, out = np.zeros(len(idf), np.float32), _room_for(labels, starts, rows, lengths, len(idf))
        given = starts, rows, factors, idf, labels.start, labels.stop, np.float32(keep_from)
        engine.average_rows(*X, *given, w, *out[:4])
        return _filled(out)

    todo = label_blocks(starts, SORTING_BLOCKS)
    unit = "blocks of labels"
    return list(map_blocks(average, todo, n_jobs=n_jobs, stage="centroids", total=len(todo), unit=unit))


def _room_for(labels: slice, starts: Array, rows: Array, lengths: Array, d: int) -> LabelWeights:
    """Empty weights of some labels, with as much room as a kernel may need.

    starts, rows : of the examples of all labels;  lengths : (n,) values of each row

    No label has more weights than its examples have values, and the kernel writes one more.
    """
    own = starts[labels.start : labels.stop + 1]
    sizes = np.concatenate(([0], np.cumsum(lengths[rows[own[0] : own[-1]]])))
    size = 1 + int(np.minimum(np.diff(sizes[own - own[0]]), d).sum())
    n = labels.stop - labels.start
    scale, bias = (np.zeros(n, np.float32) for _ in range(2))
    return LabelWeights(
        np.zeros(n + 1, np.int64), np.empty(size, np.int32), np.empty(size, np.int8), scale, bias
    )


def _filled(weights: LabelWeights) -> LabelWeights:
    """Weights without the room that a kernel left."""
    n = weights.starts[-1]
    return weights._replace(features=weights.features[:n].copy(), values=weights.values[:n].copy())


def _largest_of_rows(A: csr_matrix) -> Array:
    """(m,) the size of the largest value of each row of a csr matrix; 0 where there is none."""
    largest, filled = np.zeros(A.shape[0], A.dtype), np.flatnonzero(np.diff(A.indptr))
    if len(filled):
        largest[filled] = np.maximum.reduceat(np.abs(A.data), A.indptr[filled])
    return largest


def _quantized(weights: csr_matrix, largest: Array, keep_from: float) -> LabelWeights:
    """Weights as int8, from −127 to 127, in units of the largest of each label; scale and bias are zeros.

    weights : (m, d) csr;  largest : (m,) the size of the largest weight of each label
    """
    bounds = np.repeat(largest, np.diff(weights.indptr))
    is_kept = abs(weights.data) > keep_from * bounds
    values = np.rint(127 * weights.data[is_kept] / bounds[is_kept]).astype(np.int8)
    starts = np.concatenate(([0], np.cumsum(is_kept)))[weights.indptr].astype(np.int64)
    none = np.zeros(len(largest), np.float32)
    return LabelWeights(starts, weights.indices[is_kept].astype(np.int32), values, none, none)


class PaddedRows(NamedTuple):
    """Rows as the kernel reads them, each with zeros up to a multiple of 4 values.

    Features are unsigned, since numba adds a check for negative ones to signed indices.

    starts : (n + 1,) int64;  features : (m,) uint16 or uint32;  values : (m,) float32
    squares : (n,) float32, ‖x‖²;  n_features : d
    """

    starts: Array
    features: Array
    values: Array
    squares: Array
    n_features: int

    def with_rows(self, added: PaddedRows) -> PaddedRows:
        """These rows and further ones with the same features."""
        starts = np.concatenate([self.starts, self.starts[-1] + added.starts[1:]])
        features, values, squares = (np.concatenate(pair) for pair in zip(self[1:4], added[1:4]))
        return PaddedRows(starts, features, values, squares, self.n_features)


def pad_rows(X: csr_matrix, *, engine: Engine = DEFAULT) -> PaddedRows:
    """The rows of X, (n, d) csr float32, in the form in which classifiers are trained."""
    lengths = np.diff(X.indptr).astype(np.int64)
    starts = np.concatenate(([0], np.cumsum(-(-lengths // 4) * 4)))
    features = mapped.zeros(int(starts[-1]), np.uint16 if X.shape[1] <= 2**16 else np.uint32, X.data)
    values = mapped.zeros(int(starts[-1]), np.float32, X.data)
    engine.pad_rows(X.indptr, X.indices, X.data, starts, features, values)
    return PaddedRows(starts, features, values, (row_norms(X) ** 2).astype(np.float32), X.shape[1])


def label_blocks(starts: Array, n: int) -> list[slice]:
    """At most n blocks of consecutive labels with about the same number of examples or weights.

    starts : (L + 1,) where those of each label start
    """
    edges = np.linspace(0, starts[-1], n + 1)[1:-1]
    cuts = np.searchsorted(starts, edges)
    return [slice(*pair) for pair in pairwise(sorted({0, *cuts.tolist(), len(starts) - 1}))]


def _by_feature(
    parts: list[LabelWeights],
    d: int,
    n_jobs: int | None,
    engine: Engine,
    into: tuple[Array, Array] | None = None,
) -> Classifiers:
    """Convert weights to the layout of `Classifiers`: a counting sort on several threads.

    parts : the weights of consecutive blocks of labels
    into : `dense` and `dense_slot` where they are given; the former is written
    """
    firsts = np.concatenate(([0], np.cumsum([len(part.scale) for part in parts]))).tolist()
    n_labels = firsts[-1]
    dtype = _label_dtype(n_labels)
    todo = label_blocks(
        np.concatenate(([0], np.cumsum([len(part.values) for part in parts]))), SORTING_BLOCKS
    )
    positions = np.zeros((len(todo), d), np.int64)

    def group(dense_slot: Array, *out: Array) -> None:
        """Count or write the weights; each block of parts has its own positions for each feature."""

        def add(which: slice) -> None:
            for i in range(len(parts))[todo[which.start]]:
                weights = parts[i].starts, parts[i].features, parts[i].values
                engine.group_by_feature(firsts[i], *weights, dense_slot, positions[which.start], *out)

        _at_once(add, len(todo), n_jobs, "weights by feature")

    group(np.empty(0, np.int32), np.empty(0, dtype), np.empty(0, np.int8), np.empty((0, 0), np.int8))
    counts = positions.sum(axis=0)
    if into is None:
        is_dense = counts * (dtype.itemsize + 1) > n_labels  # where that is smaller
        dense_slot = np.where(is_dense, np.cumsum(is_dense) - 1, -1).astype(np.int32)
        dense = np.zeros((np.count_nonzero(is_dense), n_labels), np.int8)
    else:
        dense, dense_slot = into
    ends = np.concatenate(([0], np.cumsum(np.where(dense_slot < 0, counts, 0))))
    positions[:] = ends[:-1] + np.cumsum(positions, axis=0) - positions
    labels, grouped = np.empty(ends[-1], dtype), np.empty(ends[-1], np.int8)
    group(dense_slot, labels, grouped, dense)
    scale, bias = (np.concatenate([getattr(part, name) for part in parts]) for name in ("scale", "bias"))
    return Classifiers(ends, labels, grouped, dense, dense_slot, scale, bias)


def _label_dtype(n_labels: int) -> np.dtype[Any]:
    return np.dtype(np.uint16 if n_labels <= 2**16 else np.uint32)


def _split(weights: LabelWeights, n: int) -> list[LabelWeights]:
    """The weights of at most n blocks of consecutive labels."""
    parts = []
    for labels in label_blocks(weights.starts, n):
        starts = weights.starts[labels.start : labels.stop + 1]
        own = slice(int(starts[0]), int(starts[-1]))
        others = weights.features[own], weights.values[own], weights.scale[labels], weights.bias[labels]
        parts.append(LabelWeights(starts - starts[0], *others))
    return parts


def replace(
    classifiers: Classifiers,
    labels: Array,
    trained: LabelWeights,
    n_labels: int,
    *,
    n_jobs: int | None = None,
    engine: Engine = DEFAULT,
) -> Classifiers:
    """The classifiers with those of some labels, (m,) ascending, replaced by others.

    n_labels : number of labels afterwards; new ones follow the others, and have no weights unless given
    """
    d, n_before = len(classifiers.dense_slot), len(classifiers.bias)
    scale, bias = (np.zeros(n_labels, np.float32) for _ in range(2))
    for values, before, new in (
        (scale, classifiers.scale, trained.scale),
        (bias, classifiers.bias, trained.bias),
    ):
        values[:n_before], values[labels] = before, new
    dense = np.empty((len(classifiers.dense), n_labels), np.int8)
    dense[:, :n_before], dense[:, n_before:] = classifiers.dense, 0
    dense[:, labels] = 0
    counts = np.zeros(n_labels, np.int64)
    counts[labels] = np.diff(trained.starts)
    own_starts, into = np.concatenate(([0], np.cumsum(counts))), (dense, classifiers.dense_slot)
    parts = _split(trained._replace(starts=own_starts, scale=scale, bias=bias), SORTING_BLOCKS)
    added = _by_feature(parts, d, n_jobs, engine, into)
    is_replaced = np.zeros(n_labels, np.uint8)
    is_replaced[labels] = 1

    given = classifiers.starts + added.starts
    todo, counts = label_blocks(given, SORTING_BLOCKS), np.zeros(d, np.int64)

    def merge(features: slice, ends: Array, *out: Array) -> Array:
        own = slice(features.start, features.stop + 1)
        before, others = (part.starts[own] for part in (classifiers, added))
        engine.merge_weights(before, *classifiers[1:3], is_replaced, others, *added[1:3], ends, *out)
        return np.diff(ends)

    def count(which: slice) -> None:
        features = todo[which.start]
        ends = np.zeros(features.stop - features.start + 1, np.int64)
        counts[features] = merge(features, ends, grouped[:0], values[:0])

    def fill(which: slice) -> None:
        features = todo[which.start]
        merge(features, starts[features.start : features.stop + 1].copy(), grouped, values)

    grouped, values = np.empty(0, _label_dtype(n_labels)), np.empty(0, np.int8)
    _at_once(count, len(todo), n_jobs, "weights by feature")
    starts = np.concatenate(([0], np.cumsum(counts)))
    grouped, values = (np.empty(starts[-1], empty.dtype) for empty in (grouped, values))
    _at_once(fill, len(todo), n_jobs, "weights by feature")
    return added._replace(starts=starts, labels=grouped, values=values)


def without(classifiers: Classifiers, labels: Array) -> Classifiers:
    """The classifiers, in which some labels have the margin −1 for every row."""
    scale, bias = classifiers.scale.copy(), classifiers.bias.copy()
    known = labels[labels < len(bias)]
    scale[known], bias[known] = 0, -1
    return classifiers._replace(scale=scale, bias=bias)


def score(classifiers: Classifiers, X: csr_matrix, ids: Array, *, engine: Engine = DEFAULT) -> Array:
    """(n, k) float32, margins w x + b of the labels on short lists; −inf for pads.

    X : (n, d) csr float32
    ids : (n, k) int64, short lists, −1 pads
    """
    out = np.empty(ids.shape, np.float32)
    totals = np.zeros(len(classifiers.bias), np.float32)
    engine.score_labels(X.indptr, X.indices, X.data, *classifiers, totals, _as_int64(ids), out)
    return out


def _as_int64(ids: Array) -> Any:
    return np.ascontiguousarray(ids, np.int64)
