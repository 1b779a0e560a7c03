"""Ranking metrics of extreme classification, computed exactly on sparse labels.

Every function takes the true labels and the predictions of any model:

    Y_true     (n, L) sparse or dense indicator, or a list or column of lists of label ids
    predicted  (n, k) integer ids, best first, −1 pads; or the pair that `predict_topk`
               returns; or an (n, L) sparse matrix of scores, absent = not predicted; or a
               list or column of lists of ids, best first

Most metrics are the ratio of two sums over rows (`Ranking.sums`), and the bootstrap resamples the terms of
these sums. Ties between scores go to the smaller label id.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.pipeline import Pipeline

from . import kernels
from .display import html_table
from .errors import DataError, DataWarning
from .validation.targets import indicator

Array = np.ndarray

FAMILIES = ("P", "R", "nDCG", "PSP", "PSnDCG", "macro-F1", "coverage")
OF_LABELS = ("macro-F1", "coverage")  # means over labels; the others are means over rows
NEED_PROPENSITY = ("PSP", "PSnDCG")
AT_THRESHOLD = ("precision", "recall", "F1")  # micro-averages of what `predict` returns; for scorers only
MOST_DRAWN = 5_000  # most units, rows or groups of rows, that the bootstrap resamples


def precision_at_k(Y_true: Any, predicted: Any, k: int = 5) -> float:
    """Share of the first k predictions that are true labels; rows without a true label count.

    >>> precision_at_k([[0, 2], [1]], [[2, 1], [0, 1]], k=2)
    0.5
    """
    return _ranked(Y_true, predicted, k).value(f"P@{k}")


def recall_at_k(Y_true: Any, predicted: Any, k: int = 5) -> float:
    """Mean over rows of the share of true labels among the first k predictions; 0 for rows without any."""
    return _ranked(Y_true, predicted, k).value(f"R@{k}")


def ndcg_at_k(Y_true: Any, predicted: Any, k: int = 5) -> float:
    """Discounted gain of the first k predictions over that of the ideal order, min(k, true labels) hits."""
    return _ranked(Y_true, predicted, k).value(f"nDCG@{k}")


def psp_at_k(Y_true: Any, predicted: Any, inverse_propensity: Array, k: int = 5) -> float:
    """Propensity-scored precision: the sum over all rows of hits / p_l, over the largest possible sum."""
    return _ranked(Y_true, predicted, k, inverse_propensity).value(f"PSP@{k}")


def psndcg_at_k(Y_true: Any, predicted: Any, inverse_propensity: Array, k: int = 5) -> float:
    """Propensity-scored nDCG: the discounted sum of hits / p_l over all rows, over the largest possible."""
    return _ranked(Y_true, predicted, k, inverse_propensity).value(f"PSnDCG@{k}")


def macro_f1_at_k(Y_true: Any, predicted: Any, k: int = 5) -> float:
    """Mean over all L labels of the F1 of the first k predictions; 0 for a label that never occurs.

    `report(…, label_counts=…)` leaves out the labels that neither training rows nor Y_true have.
    """
    return _ranked(Y_true, predicted, k).value(f"macro-F1@{k}")


def coverage_at_k(Y_true: Any, predicted: Any, k: int = 5) -> float:
    """Share of the labels of Y_true that are correctly predicted at least once among the first k."""
    return _ranked(Y_true, predicted, k).value(f"coverage@{k}")


def micro_averages(n_right: int, n_assigned: int, n_true: int) -> dict[str, float]:
    """Precision, recall and F1 over all rows together.

    >>> micro_averages(1, 2, 2)
    {'precision': 0.5, 'recall': 0.5, 'F1': 0.5}
    """
    return {
        "precision": n_right / max(n_assigned, 1),
        "recall": n_right / max(n_true, 1),
        "F1": 2 * n_right / max(n_assigned + n_true, 1),
    }


def at_threshold(predicted: csr_matrix, truth: csr_matrix) -> dict[str, float]:
    """Micro-averages of the labels that `predict` returns; truth may have more columns, of unseen labels."""
    n_right = predicted.multiply(truth[:, : predicted.shape[1]]).nnz
    return micro_averages(n_right, predicted.nnz, truth.nnz)


def on_held_out_rows(hits: Array, assigned: Array, n_true: int) -> dict[str, float]:
    """P@k of a ranking, and micro-averages of the labels that are assigned.

    hits, assigned : (n, m) bool, whether a ranked label is true, and whether it is assigned
    n_true : number of true labels
    """
    n, m = hits.shape
    precisions = {f"P@{k}": float(hits[:, :k].mean()) for k in (1, 3, 5) if k <= m}
    averages = micro_averages(int((hits & assigned).sum()), int(assigned.sum()), n_true)
    return {"rows": n, **precisions, **averages}


def inverse_propensity(Y_train: Any, A: float = 0.55, B: float = 1.5, *, n_rows: int | None = None) -> Array:
    """1/p_l = 1 + c (n_l + B)^−A with c = (ln N − 1)(B + 1)^A (Jain, Prabhu and Varma, 2016).

    Y_train : the training labels; or (L,) the counts of the labels, with N given by `n_rows`

    >>> inverse_propensity(np.array([0, 98]), A=1, B=2, n_rows=100).round(4)
    array([6.4078, 1.1082])
    """
    if not (0 <= A <= 10 and 0 <= B <= 1e6):
        raise DataError(f"A must be from 0 to 10 and B from 0 to 1,000,000. Got {A:g} and {B:g} instead.")
    if n_rows is None:
        Y_train = label_matrix(Y_train)
        n_rows, counts = Y_train.shape[0], np.bincount(Y_train.indices, minlength=Y_train.shape[1])
    else:
        counts = np.asarray(Y_train)
    counts = counts.astype(np.float64)
    c = max(np.log(n_rows) - 1, 0) * (B + 1) ** A  # with one or two rows, p would be above 1
    return 1 + c * (counts + B) ** -A


class Ranking:
    """Predictions compared with the true labels once; every metric is computed from the hits.

    Y : (n, L) csr of ones
    ids : (n, k) int64, −1 pads
    hits : (n, k) uint8, 1 where the prediction is true
    """

    def __init__(
        self,
        Y_true: Any,
        predicted: Any,
        k: int,
        inverse_propensity: Array | None = None,
        label_counts: Array | None = None,
    ) -> None:
        if k < 1:
            raise ValueError(f"k must be at least 1. Got {k} instead.")
        self.k = k
        self.ids = ranked_ids(predicted, k)
        self.Y = label_matrix(Y_true, n_labels=int(self.ids.max(initial=-1)) + 1)
        if len(self.ids) != self.Y.shape[0]:
            raise DataError(f"{len(self.ids)} rows are predicted, but {self.Y.shape[0]} have true labels.")
        repeated = kernels.DEFAULT.find_repeated(self.ids)
        if repeated >= 0:
            raise DataError(f"Row {repeated} predicts a label twice: {self.ids[repeated].tolist()}.")
        self.hits = np.empty(self.ids.shape, np.uint8)
        kernels.DEFAULT.mark_hits(self.Y.indptr, self.Y.indices, self.ids, self.hits)
        self.n_true = np.diff(self.Y.indptr)
        self.weights = None if inverse_propensity is None else self._fit_weights(inverse_propensity)
        self.n_training = None if label_counts is None else np.asarray(label_counts)

    def _fit_weights(self, weights: Array) -> Array:
        weights = np.asarray(weights, np.float64)
        if len(weights) < self.Y.shape[1]:
            raise DataError(f"There are {len(weights)} propensities, but {self.Y.shape[1]} labels.")
        wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 1)))
        if wrong.size:
            raise DataError(
                f"inverse_propensity must be 1/p, at least 1; did you pass p? Label {wrong[0]} has "
                f"{weights[wrong[0]]:g}."
            )
        return weights

    def value(self, name: str) -> float:
        """The value of a metric by its name, for example "nDCG@3"."""
        family, k = parse_name(name)
        if family in OF_LABELS:
            return self._of_labels(family, k)
        numerator, denominator = self.sums(name)
        return _share(numerator.sum(), denominator.sum())

    def sums(self, name: str) -> tuple[Array, Array]:
        """(n,) numerators and (n,) denominators; the metric is the ratio of their sums."""
        family, k = parse_name(name)
        if k > self.k:
            raise ValueError(
                f"{name} needs the first {k} predictions of each row; this ranking has {self.k}."
            )
        hits = self.hits[:, :k].astype(np.float64)
        ones = np.ones(len(hits))
        if family == "P":
            return hits.sum(1) / k, ones
        if family == "R":
            return hits.sum(1) / np.maximum(self.n_true, 1), ones
        discounts = 1 / np.log2(np.arange(2, k + 2))
        ideal = np.concatenate(([1.0], np.cumsum(discounts)))[np.minimum(self.n_true, k)]
        if family == "nDCG":
            return hits @ discounts / ideal, ones
        if family not in NEED_PROPENSITY:
            raise ValueError(f"{name!r} is not a mean over rows; those are {_names(rows_only=True)}.")
        if self.weights is None:
            raise DataError(f"{name} needs propensities: give the training labels or inverse_propensity.")
        gains = hits * self.weights[np.maximum(self.ids[:, :k], 0)]
        best = self._best_weights(k)
        if family == "PSP":
            return gains.sum(1) / k, best.sum(1) / k
        return gains @ discounts / ideal, best @ discounts / ideal

    def _best_weights(self, k: int) -> Array:
        """(n, k), the k largest 1/p of each row's true labels, padded with 0."""
        assert self.weights is not None
        best = np.zeros((len(self.hits), k))
        which = np.empty(best.shape, np.int64)
        kernels.DEFAULT.rank_rows(self.Y.indptr, self.Y.indices, self.weights[self.Y.indices], which, best)
        return best

    def label_counts(self, k: int) -> tuple[Array, Array, Array]:
        """(L,) counts of the rows that have a label, of those it is predicted for, and of both."""
        n_labels = self.Y.shape[1]
        ids, hits = self.ids[:, :k], self.hits[:, :k].astype(bool)
        return (
            np.bincount(self.Y.indices, minlength=n_labels),
            np.bincount(ids[ids >= 0], minlength=n_labels),
            np.bincount(ids[hits], minlength=n_labels),
        )

    def _of_labels(self, family: str, k: int) -> float:
        true, predicted, found = self.label_counts(k)
        if family == "coverage":
            return _share((found > 0).sum(), (true > 0).sum())
        f1 = 2 * found / np.maximum(true + predicted, 1)
        if self.n_training is not None:  # of a vocabulary, most labels may be nowhere
            n_training = np.pad(self.n_training, (0, max(len(true) - len(self.n_training), 0)))
            occurs = n_training > 0
            occurs[: len(true)] |= true > 0
            return _share(f1[occurs[: len(true)]].sum(), occurs.sum())
        return float(np.mean(f1)) if len(f1) else 0.0


def _ranked(
    Y_true: Any,
    predicted: Any,
    k: int,
    inverse_propensity: Array | None = None,
    which: str = "",
    label_counts: Array | None = None,
) -> Ranking:
    """The ranking that a public function was given, with a warning if all its rows have fewer than k labels.

    which : says in the warning which of two predictions is meant
    """
    ranking = Ranking(Y_true, predicted, k, inverse_propensity, label_counts)
    most = int(np.max((ranking.ids >= 0).sum(axis=1), initial=0))
    if most < min(k, ranking.Y.shape[1]):
        warnings.warn(
            f"No row{which} has more than {most} predictions; at {k}, the empty places count as wrong.",
            DataWarning,
            stacklevel=3,
        )
    return ranking


def label_matrix(Y: Any, n_labels: int = 0) -> csr_matrix:
    """The labels as csr of ones with sorted ids and at least `n_labels` columns."""
    Y = _as_list(Y)
    if issparse(Y):
        matrix = Y.tocsr()
        if not matrix.has_canonical_format or (matrix.data != 1).any():
            matrix = indicator(matrix)
    elif getattr(Y, "ndim", 0) == 2:
        matrix = indicator(Y)
    elif isinstance(Y, Sequence):
        if any(isinstance(label, str) for row in Y for label in row):
            raise DataError("Labels must be ids here, not names; `model.label_matrix(Y)` converts names.")
        counts = [len(set(row)) for row in Y]
        indices = np.array([label for row in Y for label in sorted(set(row))], np.int64)
        if (indices < 0).any():
            raise DataError("Label ids must not be negative.")
        width = max(n_labels, int(np.max(indices, initial=-1)) + 1)
        indptr = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
        matrix = csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape=(len(counts), width))
    else:
        raise DataError(f"Labels must be a 2-d matrix or a list of lists. Got {type(Y).__name__} instead.")
    if matrix.shape[1] < n_labels:
        raise DataError(f"Label {n_labels - 1} is predicted, but there are {matrix.shape[1]} labels.")
    return matrix


def ranked_ids(predicted: Any, k: int) -> Array:
    """(n, k) int64 ids, best first, from any supported form of predictions."""
    if isinstance(predicted, tuple) and len(predicted) == 2:
        predicted = predicted[0]
    predicted = _as_list(predicted)
    if issparse(predicted):
        scores = predicted.tocsr()
        if np.isnan(scores.data).any():
            raise DataError("The predicted scores hold NaN.")
        if np.diff(scores.indptr).max(initial=0) > 1 and (scores.data == scores.data[0]).all():
            warnings.warn(
                "All predicted scores are equal, as in the 0/1 matrix that predict returns, so that the "
                "labels of a row are ranked by their ids. Pass predict_topk(X, k) or decision_function(X).",
                DataWarning,
                stacklevel=2,
            )
        ids = np.full((scores.shape[0], k), -1, np.int64)
        best = np.empty(ids.shape)
        kernels.DEFAULT.rank_rows(scores.indptr, scores.indices, scores.data.astype(np.float64), ids, best)
        return ids
    if isinstance(predicted, Sequence):
        ids = np.full((len(predicted), k), -1, np.int64)
        for row, labels in zip(ids, predicted):
            row[: len(labels[:k])] = labels[:k]
        return ids
    ids = np.asarray(predicted)
    if ids.ndim != 2 or not np.issubdtype(ids.dtype, np.integer):
        raise DataError(
            "Predictions must be an (n, k) array of whole numbers, a sparse matrix of scores or a list of "
            f"lists. Got {ids.dtype} of shape {ids.shape} instead."
        )
    padded = np.full((len(ids), k), -1, np.int64)
    padded[:, : ids.shape[1]] = ids[:, :k]
    return padded


def _as_list(rows: Any) -> Any:
    """A column of lists, such as a Pandas series, as a list; anything else as it is."""
    return list(rows) if getattr(rows, "ndim", 0) == 1 else rows


def _share(part: Any, whole: Any) -> float:
    """part / whole, or 0 where whole is 0."""
    return float(part) / float(whole) if whole else 0.0


def parse_name(name: str) -> tuple[str, int]:
    """Split the name of a metric into its family and k.

    >>> parse_name("nDCG@3")
    ('nDCG', 3)
    """
    match = re.fullmatch(r"(.+)@([1-9][0-9]*)", name)
    if match is None or match[1] not in FAMILIES:
        more = f"; scorers also take {', '.join(AT_THRESHOLD)}"
        raise ValueError(f"Unknown metric {name!r}. The metrics are {_names()}{more}.")
    return match[1], int(match[2])


def _names(rows_only: bool = False) -> str:
    return ", ".join(f"{family}@k" for family in FAMILIES if not rows_only or family not in OF_LABELS)


class LabelTable(NamedTuple):
    """(L,) arrays: the rows that have each label, those it is predicted for, both, and their ratios."""

    true: Array
    predicted: Array
    found: Array
    precision: Array
    recall: Array
    f1: Array


def per_label(Y_true: Any, predicted: Any, k: int = 5) -> LabelTable:
    """Precision, recall and F1 of every label for the first k predictions of each row."""
    true, n_predicted, found = Ranking(Y_true, predicted, k).label_counts(k)
    return LabelTable(
        true,
        n_predicted,
        found,
        found / np.maximum(n_predicted, 1),
        found / np.maximum(true, 1),
        2 * found / np.maximum(true + n_predicted, 1),
    )


class FrequencyGroup(NamedTuple):
    """A group of labels of similar frequency in training."""

    name: str
    n_labels: int
    most: int  # training rows of its most frequent label
    least: int  # training rows of its rarest label
    true: int  # occurrences of its labels in the evaluated rows
    found: int  # those that are predicted
    recall: float
    precision: float
    coverage: float


def by_frequency(
    Y_true: Any, predicted: Any, train_counts: Array, k: int = 5, n_groups: int = 10
) -> list[FrequencyGroup]:
    """Recall, precision and coverage of groups of labels, from the most frequent in training to the rarest.

    train_counts : (L,) training rows of each label; labels without any form the last group, "unseen"
    """
    true, n_predicted, found = Ranking(Y_true, predicted, k).label_counts(k)
    train_counts = np.asarray(train_counts)
    if len(train_counts) != len(true):
        raise DataError(f"train_counts has {len(train_counts)} labels, Y_true has {len(true)}.")
    order = np.argsort(-train_counts, kind="stable")
    seen = order[: np.count_nonzero(train_counts)]
    groups = [(f"{i + 1}", labels) for i, labels in enumerate(np.array_split(seen, n_groups)) if labels.size]
    if len(seen) < len(order):
        groups.append(("unseen", order[len(seen) :]))
    return [
        FrequencyGroup(
            name,
            len(labels),
            int(train_counts[labels[0]]),
            int(train_counts[labels[-1]]),
            int(true[labels].sum()),
            int(found[labels].sum()),
            _share(found[labels].sum(), true[labels].sum()),
            _share(found[labels].sum(), n_predicted[labels].sum()),
            _share((found[labels] > 0).sum(), (true[labels] > 0).sum()),
        )
        for name, labels in groups
    ]


class Calibration(NamedTuple):
    """The reliability curve of predicted probabilities, in bins of ascending probability.

    error : the expected calibration error, the mean over predictions of |predicted − observed| of their bin
    predicted : (b,) float64, mean probability of each bin
    observed : (b,) float64, share of true labels of each bin
    """

    error: float
    predicted: Array
    observed: Array


def calibration(Y_true: Any, predicted: tuple[Array, Array], k: int = 5, n_bins: int = 15) -> Calibration:
    """Compare the probabilities of the first k labels of each row with the truth, in bins of equal size.

    predicted : (n, ≥ k) ids and probabilities, as `predict_topk` returns them

    >>> ids, sure = np.array([[0, 1], [1, 0]]), np.array([[1.0, 0.5], [0.5, 0.0]])
    >>> calibration([[0], [0, 1]], (ids, sure), k=2, n_bins=2).error
    0.25
    """
    ids, probabilities = (np.asarray(array)[:, :k] for array in predicted)
    listed = ids >= 0
    if not listed.any():
        raise DataError("There is no prediction to compare with the true labels.")
    hits = Ranking(Y_true, ids, ids.shape[1]).hits[listed].astype(np.float64)
    flat = probabilities[listed].astype(np.float64)
    bins = [part for part in np.array_split(np.argsort(flat, kind="stable"), n_bins) if part.size]
    mean, observed = (np.array([values[part].mean() for part in bins]) for values in (flat, hits))
    sizes = np.array([len(part) for part in bins])
    return Calibration(float(np.average(np.abs(mean - observed), weights=sizes)), mean, observed)


class Interval(NamedTuple):
    """A value with a bootstrap interval over rows."""

    value: float
    low: float
    high: float


def bootstrap(
    sums: tuple[Array, Array], *, level: float = 0.95, n_resamples: int = 1_000, random_state: int = 0
) -> Interval:
    """Bootstrap interval of a ratio of sums over rows: the rows are resampled with replacement."""
    numerator, denominator = sums
    replicas = _resampled(np.stack(sums), n_resamples, random_state)
    ratios = replicas[:, 0] / np.where(replicas[:, 1] == 0, 1, replicas[:, 1])
    low, high = np.quantile(ratios, [(1 - level) / 2, (1 + level) / 2])
    return Interval(_share(numerator.sum(), denominator.sum()), float(low), float(high))


class Difference(NamedTuple):
    """The difference first − second with its bootstrap interval.

    The p-value is 2 (b + 1) / (B + 1), at most 1, where b of the B resamples are on the rarer side of 0. It
    is never 0, since the observed rows count as one more resample.
    """

    name: str
    first: float
    second: float
    difference: float
    low: float
    high: float
    p_value: float


def compare(
    Y_true: Any,
    first: Any,
    second: Any,
    names: Sequence[str] = ("P@1", "P@3", "P@5"),
    *,
    inverse_propensity: Array | None = None,
    level: float = 0.95,
    n_resamples: int = 1_000,
    random_state: int = 0,
) -> list[Difference]:
    """Compare two predictions for the same rows by a paired bootstrap over rows.

    Y_true, first, second : true labels and two predictions, in any form that `report` takes
    names : of metrics that are means over rows

    >>> (row,) = compare([[0, 2], [1]], [[2, 1], [0, 1]], [[2, 1], [1, 0]], ["P@1"])
    >>> row.first, row.second
    (0.5, 1.0)
    """
    names = list(names)
    k = max((parse_name(name)[1] for name in names), default=1)
    a = _ranked(Y_true, first, k, inverse_propensity, " of the first predictions")
    b = _ranked(Y_true, second, k, inverse_propensity, " of the second predictions")
    return compare_rankings(a, b, names, level=level, n_resamples=n_resamples, random_state=random_state)


def compare_rankings(
    first: Ranking,
    second: Ranking,
    names: Sequence[str],
    *,
    level: float = 0.95,
    n_resamples: int = 1_000,
    random_state: int = 0,
) -> list[Difference]:
    """Paired bootstrap: both rankings are evaluated on the same resampled rows."""
    if first.Y.shape != second.Y.shape or (first.Y != second.Y).nnz:
        raise DataError("The two rankings must have the same rows with the same true labels.")
    rows = []
    for name in names:
        sums = np.stack([*first.sums(name), *second.sums(name)])
        replicas = _resampled(sums, n_resamples, random_state)
        replicas[replicas == 0] = np.finfo(float).tiny
        differences = replicas[:, 0] / replicas[:, 1] - replicas[:, 2] / replicas[:, 3]
        low, high = np.quantile(differences, [(1 - level) / 2, (1 + level) / 2])
        a, b = first.value(name), second.value(name)
        n_rarer = min(np.count_nonzero(differences <= 0), np.count_nonzero(differences >= 0))
        p_value = min(1.0, 2 * (n_rarer + 1) / (n_resamples + 1))
        rows.append(Difference(name, a, b, a - b, float(low), float(high), p_value))
    return rows


def _resampled(sums: Array, n_resamples: int, random_state: int) -> Array:
    """(n_resamples, m) sums of the (m, n) terms over rows drawn with replacement.

    More than MOST_DRAWN rows are first summed in random groups; resampling groups has the same variance.
    """
    if not sums.shape[1]:
        raise DataError("There are no rows to resample.")
    rng = np.random.default_rng(random_state)
    if sums.shape[1] > MOST_DRAWN:
        group = rng.permutation(sums.shape[1]) % MOST_DRAWN
        sums = np.stack([np.bincount(group, weights=terms) for terms in sums])
    n = sums.shape[1]
    replicas = np.empty((n_resamples, len(sums)))
    step = max(1, 2_000_000 // n)
    for start in range(0, n_resamples, step):
        drawn = rng.multinomial(n, np.full(n, 1 / n), size=min(step, n_resamples - start))  # (step, n)
        replicas[start : start + step] = drawn @ sums.T
    return replicas


class MetricReport(dict[str, float]):
    """Metrics by name, {"P@1": 0.81, …}; printed as a table in percent."""

    intervals: dict[str, Interval]

    def __init__(self, values: dict[str, float], n_rows: int, n_labels: int) -> None:
        super().__init__(values)
        self.n_rows, self.n_labels, self.intervals = n_rows, n_labels, {}

    def __str__(self) -> str:
        width = 20 if self.intervals else 8
        lines = [
            f"{head:<10}" + "".join(f"{cell:>{width}}" for cell in cells) for head, *cells in self._table()
        ]
        return "\n".join([*lines, self._sizes()])

    def _repr_html_(self) -> str:
        columns, *rows = self._table()
        return html_table("", columns, rows, self._sizes())

    def _table(self) -> list[list[str]]:
        """The column heads, then a row for each family of metrics."""
        families = list(dict.fromkeys(parse_name(name)[0] for name in self))
        ks = sorted({parse_name(name)[1] for name in self})
        rows = [[family, *(self._cell(f"{family}@{k}") for k in ks)] for family in families]
        return [["%", *(f"@{k}" for k in ks)], *rows]

    def _sizes(self) -> str:
        return f"{self.n_rows:,} rows, {self.n_labels:,} labels"

    def _cell(self, name: str) -> str:
        if name not in self:
            return ""
        text = f"{100 * self[name]:.2f}"
        if name in self.intervals:
            text += f" ({100 * self.intervals[name].low:.2f}–{100 * self.intervals[name].high:.2f})"
        return text


def report(
    Y_true: Any,
    predicted: Any,
    *,
    k: Sequence[int] = (1, 3, 5),
    inverse_propensity: Array | None = None,
    label_counts: Array | None = None,
    intervals: bool = False,
    random_state: int = 0,
) -> MetricReport:
    """All metrics at each k; PSP and PSnDCG only where propensities are given.

    label_counts : (L,) training rows of each label: macro-F1 is the mean over labels that these rows or
        Y_true have. Without them it is the mean over all L labels

    >>> print(report([[0, 2], [1]], [[2, 1], [0, 1]], k=[1, 2]))
    %               @1      @2
    P            50.00   50.00
    R            25.00   75.00
    nDCG         50.00   62.20
    macro-F1     33.33   55.56
    coverage     33.33   66.67
    2 rows, 3 labels
    """
    ranking = _ranked(Y_true, predicted, max(k), inverse_propensity, label_counts=label_counts)
    families = [f for f in FAMILIES if f not in NEED_PROPENSITY or inverse_propensity is not None]
    names = [f"{family}@{each}" for family in families for each in k]
    result = MetricReport({name: ranking.value(name) for name in names}, *ranking.Y.shape)
    if intervals:
        result.intervals = {
            name: bootstrap(ranking.sums(name), random_state=random_state)
            for name in names
            if parse_name(name)[0] not in OF_LABELS
        }
    return result


def scorer(name: str, *, A: float = 0.55, B: float = 1.5) -> Callable[[Any, Any, Any], float]:
    """A scikit-learn scorer: `GridSearchCV(model, grid, scoring=scorer("nDCG@5"))`.

    "precision", "recall" and "F1" are micro-averages of the labels that reach the estimator's threshold.
    PSP and PSnDCG use the label counts of the estimator's training rows, and macro-F1 is the mean over the
    labels that these rows or the true labels have.
    """
    return _Scorer(name, A, B)


class _Scorer:
    def __init__(self, name: str, A: float, B: float) -> None:
        self.family, self.k = (name, 0) if name in AT_THRESHOLD else parse_name(name)
        self.name, self.A, self.B = name, A, B

    def __call__(self, estimator: Any, X: Any, Y: Any) -> float:
        if isinstance(estimator, Pipeline):
            estimator, X = estimator[-1], estimator[:-1].transform(X)
        if self.family in AT_THRESHOLD:
            truth = estimator.label_matrix(Y, unknown="append")
            return at_threshold(estimator.predict(X), truth)[self.name]
        weights = None
        if self.family in NEED_PROPENSITY:
            weights = inverse_propensity(
                estimator.label_counts_, self.A, self.B, n_rows=estimator.n_samples_fit_
            )
        truth = estimator.label_matrix(Y, unknown="append")
        if weights is not None:  # Labels that the estimator has not seen have the propensity of count 0.
            unseen = inverse_propensity(np.zeros(1), self.A, self.B, n_rows=estimator.n_samples_fit_)
            weights = np.concatenate((weights, np.repeat(unseen, truth.shape[1] - len(weights))))
        ranked = estimator.predict_topk(X, self.k)
        return Ranking(truth, ranked, self.k, weights, estimator.label_counts_).value(self.name)

    def __repr__(self) -> str:
        return f"scorer({self.name!r})"
