"""The re-ranker: a linear classifier for each label, applied to the labels on a row's short list.

The positives of a label are the rows that have it, and its negatives the rows whose short list holds it by
mistake. Training therefore never visits all pairs of rows and labels, and no dense (L, d) matrix is formed.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from ..kernels import DEFAULT, Engine
from ..runtime.parallel import blocks, map_blocks
from ..validation import mapped, stored
from ..validation.arrays import count_columns, row_blocks, row_norms

Array = np.ndarray

LEAST_WEIGHT = 1e-6  # least weight of a row: the kernel divides by its cost
TRAINING_BLOCKS = 256  # blocks of labels that are trained at the same time
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
    Y: csr_matrix, shortlist: Array, more: csr_matrix | None = None, *, engine: Engine = DEFAULT
) -> Examples:
    """Collect the examples of each label: the rows that have it, and the rows whose short list holds it.

    Y : (n, L) csr of ones
    shortlist : (n, k) integers, −1 pads
    more : (n, L) csr, its entries are further labels on short lists
    """
    nothing = np.zeros(Y.shape[0] + 1, np.int32), np.zeros(0, np.int32)
    extra = nothing if more is None else (more.indptr, more.indices)
    given = (Y.indptr, Y.indices, np.ascontiguousarray(shortlist, np.int32), *extra)
    ends = np.zeros(Y.shape[1], np.int64)
    engine.collect_examples(*given, ends, np.zeros(0, np.int32), np.zeros(0, np.int8))
    starts = np.concatenate(([0], np.cumsum(ends)))
    rows, signs = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.int8)
    engine.collect_examples(*given, starts[:-1].copy(), rows, signs)
    return Examples(starts, rows, signs)


def extend_examples(
    before: Examples, alphas: Array, added: Examples, *, engine: Engine = DEFAULT
) -> tuple[Examples, Array]:
    """The examples of an earlier fit with further ones, and (m,) float32, the α to start from.

    before, alphas : the examples of an earlier fit on some of the rows, and their α
    added : further ones; those that were there before are left out
    """
    given = (*before, alphas, *added)
    starts, none = np.zeros(len(before.starts), np.int64), np.zeros(0, np.float32)
    engine.merge_examples(*given, starts, none.astype(np.int32), none.astype(np.int8), none)
    m = int(starts[-1])
    merged, start = Examples(starts, np.empty(m, np.int32), np.empty(m, np.int8)), np.empty(m, np.float32)
    engine.merge_examples(*given, *merged, start)
    return merged, start


class ExamplePositions(NamedTuple):
    """Where the examples of some labels are; starts : (m + 1,) those of each;  positions : (p,) ascending."""

    starts: Array
    positions: Array

    def keep(self, is_kept: Array) -> ExamplePositions:
        """Some of them; is_kept : (p,) bool."""
        ends = np.concatenate(([0], np.cumsum(is_kept)))[self.starts]
        return ExamplePositions(ends, self.positions[is_kept])


def positions_of(examples: Examples, labels: Array) -> ExamplePositions:
    """The examples of some labels, (m,) ascending."""
    sizes = np.diff(examples.starts)[labels]
    starts = np.concatenate(([0], np.cumsum(sizes)))
    first = np.repeat(examples.starts[labels] - starts[:-1], sizes)
    return ExamplePositions(starts, first + np.arange(starts[-1]))


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
    trained, alphas = train(X, given, n_jobs=n_jobs, engine=engine, **settings)
    by_feature = _by_feature(*trained[:3], X.shape[1], n_jobs, engine)
    return Classifiers(*by_feature, trained.scale, trained.bias), alphas


def train(
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
    engine: Engine = DEFAULT,
) -> tuple[LabelWeights, Array]:
    """Train the classifiers by dual coordinate descent; return them with the dual variable α of each example.

    X : (n, d) csr float32
    given : the examples of each label
    cost : factor of the loss of an example, relative to ‖w‖² / 2
    row_weights : (n,) float, factors of the cost of each row
    keep_from : weights below this share of the label's largest weight are pruned
    start : (m,) float32, the α to start from (warm start, `extend_examples`), overwritten; None starts from 0
    tolerance : training of a label stops when no gradient (for "logistic": no step) is larger
    """
    n_labels, d = len(given.starts) - 1, X.shape[1]
    costs = np.full(X.shape[0], cost, np.float32)
    if row_weights is not None:
        costs *= np.maximum(row_weights.astype(np.float32), LEAST_WEIGHT)
    squares = (row_norms(X) ** 2).astype(np.float32)
    alphas = np.zeros(len(given.rows), np.float32) if start is None else start
    rows = (*pad_rows(X), squares)
    lengths = np.diff(rows[0])
    settings = (loss == "logistic", n_epochs, np.float32(tolerance), np.float32(keep_from))

    def train_block(labels: slice) -> tuple[Array, Array, Array, Array, Array]:
        # No label has more weights than its examples have values, which bounds the output of the kernel.
        starts = given.starts[labels.start : labels.stop + 1]
        sizes = np.concatenate(([0], np.cumsum(lengths[given.rows[starts[0] : starts[-1]]])))
        size = int(np.minimum(np.diff(sizes[starts - starts[0]]), d).sum())
        n = labels.stop - labels.start
        w, scale, bias = (np.zeros(length, np.float32) for length in (d, n, n))
        starts, features, values = (
            np.zeros(n + 1, np.int64),
            np.empty(size, np.int32),
            np.empty(size, np.int8),
        )
        trained = (alphas, w, starts, features, values, scale, bias)
        engine.train_labels(*rows, *given, costs, labels.start, labels.stop, *settings, *trained)
        return np.diff(starts), features[: starts[-1]].copy(), values[: starts[-1]].copy(), scale, bias

    # The blocks with most examples come first, so that none of them holds up the end.
    todo = label_blocks(given.starts, TRAINING_BLOCKS)
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
    trained = trained or [train_block(slice(0, 0))]
    counts, features, values, scale, bias = (np.concatenate(parts) for parts in zip(*trained))
    del trained  # as large as what was made of it
    return LabelWeights(np.concatenate(([0], np.cumsum(counts))), features, values, scale, bias), alphas


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
    of_labels = csr_matrix(Y.T, dtype=np.float32)  # (L, n)
    if row_weights is not None:
        of_labels.data *= row_weights.astype(np.float32)[of_labels.indices]
    # Features that few rows have tell more; the 1 keeps those that all rows have.
    idf = (1 + np.log((1 + X.shape[0]) / (1 + count_columns(X)))).astype(np.float32)

    def add_rows(labels: slice) -> tuple[Array, Array, Array, Array]:
        sums = of_labels[labels] @ X
        sums.data *= idf[sums.indices]
        lengths = np.maximum(row_norms(sums), LEAST_WEIGHT)
        sums.data *= idf[sums.indices]
        largest = abs(sums).max(axis=1).toarray().ravel()
        bounds = np.repeat(largest, np.diff(sums.indptr))
        is_kept = abs(sums.data) > keep_from * bounds
        values = np.rint(127 * sums.data[is_kept] / bounds[is_kept]).astype(np.int8)
        counts = np.diff(np.concatenate(([0], np.cumsum(is_kept)))[sums.indptr])
        scale = largest / (127 * lengths)
        return counts, sums.indices[is_kept].astype(np.int32), values, scale.astype(np.float32)

    todo = label_blocks(of_labels.indptr.astype(np.int64), SORTING_BLOCKS)
    done = map_blocks(
        add_rows, todo, n_jobs=n_jobs, stage="centroids", total=len(todo), unit="blocks of labels"
    )
    counts, features, values, scale = (np.concatenate(parts) for parts in zip(*done))
    starts = np.concatenate(([0], np.cumsum(counts)))
    by_feature = _by_feature(starts, features, values, X.shape[1], n_jobs, engine)
    return Classifiers(*by_feature, scale, np.zeros_like(scale))


def pad_rows(X: csr_matrix) -> tuple[Array, Array, Array]:
    """The rows as (indptr, features, values), each with zeros up to a multiple of 4 values.

    Features are unsigned, since numba adds a check for negative ones to signed indices.
    """
    lengths = np.diff(X.indptr).astype(np.int64)
    indptr = np.concatenate(([0], np.cumsum(-(-lengths // 4) * 4)))
    features = mapped.zeros(int(indptr[-1]), np.uint16 if X.shape[1] <= 2**16 else np.uint32, X.data)
    values = mapped.zeros(int(indptr[-1]), np.float32, X.data)
    for rows in row_blocks(X):
        own = slice(X.indptr[rows.start], X.indptr[rows.stop])
        place = np.arange(own.start, own.stop) + np.repeat((indptr[:-1] - X.indptr[:-1])[rows], lengths[rows])
        features[place], values[place] = X.indices[own], X.data[own]
    return indptr, features, values


def label_blocks(starts: Array, n: int) -> list[slice]:
    """At most n blocks of consecutive labels with about the same number of examples or weights.

    starts : (L + 1,) where those of each label start
    """
    edges = np.linspace(0, starts[-1], n + 1)[1:-1]
    cuts = np.searchsorted(starts, edges)
    return [slice(*pair) for pair in pairwise(sorted({0, *cuts.tolist(), len(starts) - 1}))]


def _by_feature(
    starts: Array, features: Array, values: Array, d: int, n_jobs: int | None, engine: Engine
) -> tuple[Array, Array, Array, Array, Array]:
    """Convert the weights of each label to the layout of `Classifiers`: a counting sort on several threads.

    starts, features, values : (L + 1,), (m,) and (m,), the weights of each label
    """
    n_labels = len(starts) - 1
    dtype = np.dtype(np.uint16 if n_labels <= 2**16 else np.uint32)
    todo = label_blocks(starts, SORTING_BLOCKS)
    positions = np.zeros((len(todo), d), np.int64)

    def group(dense_slot: Array, *out: Array) -> None:
        """Count or write the weights; each block of labels has its own positions for each feature."""
        for _ in map_blocks(
            lambda which: engine.group_by_feature(
                *(starts, features, values, todo[which.start].start, todo[which.start].stop),
                *(dense_slot, positions[which.start], *out),
            ),
            blocks(len(todo), 1),
            n_jobs=n_jobs,
            stage="weights by feature",
            total=len(todo),
            unit="blocks",
        ):
            pass

    group(np.empty(0, np.int32), np.empty(0, dtype), np.empty(0, np.int8), np.empty((0, 0), np.int8))
    counts = positions.sum(axis=0)
    is_dense = counts * (dtype.itemsize + 1) > n_labels  # where that is smaller
    dense_slot = np.where(is_dense, np.cumsum(is_dense) - 1, -1).astype(np.int32)
    ends = np.concatenate(([0], np.cumsum(np.where(is_dense, 0, counts))))
    positions[:] = ends[:-1] + np.cumsum(positions, axis=0) - positions
    labels, grouped = np.empty(ends[-1], dtype), np.empty(ends[-1], np.int8)
    dense = np.zeros((np.count_nonzero(is_dense), n_labels), np.int8)
    group(dense_slot, labels, grouped, dense)
    return ends, labels, grouped, dense, dense_slot


def replace(
    classifiers: Classifiers,
    labels: Array,
    trained: LabelWeights,
    n_labels: int,
    *,
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
    dense = np.zeros((len(classifiers.dense), n_labels), np.int8)
    dense[:, :n_before] = classifiers.dense
    dense[:, labels] = 0
    owner, slot = np.repeat(labels, np.diff(trained.starts)), classifiers.dense_slot[trained.features]
    is_dense = slot >= 0
    dense[slot[is_dense], owner[is_dense]] = trained.values[is_dense]
    order = np.flatnonzero(~is_dense)
    narrow = np.uint16 if d <= 2**16 else np.int32  # NumPy sorts 16 bits by counting
    order = order[np.argsort(trained.features[order].astype(narrow), kind="stable")]
    added = np.bincount(trained.features[order], minlength=d)
    is_replaced = np.zeros(n_labels, np.uint8)
    is_replaced[labels] = 1
    dtype = np.dtype(np.uint16 if n_labels <= 2**16 else np.uint32)
    m = len(classifiers.labels) + len(order)  # at most
    starts, merged, values = np.zeros(d + 1, np.int64), np.empty(m, dtype), np.empty(m, np.int8)
    engine.merge_weights(
        *(classifiers.starts, classifiers.labels, classifiers.values, is_replaced),
        *(np.concatenate(([0], np.cumsum(added))), owner[order].astype(dtype), trained.values[order]),
        *(starts, merged, values),
    )
    kept = slice(int(starts[-1]))
    return Classifiers(
        starts, merged[kept].copy(), values[kept].copy(), dense, classifiers.dense_slot, scale, bias
    )


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
