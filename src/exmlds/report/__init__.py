"""The evaluation report of a model on test rows: measured here, rendered as HTML by `page`.

    test = read_xc("test.txt")
    make(model, test.X, test.Y).save("report.html")

An `EvaluationReport` holds only plain values: numbers, strings, lists and named tuples.
A notebook shows it as a table.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from datetime import date as calendar_date
from io import TextIOWrapper
from typing import IO, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, issparse

from .. import __version__, metrics
from ..base import XMCEstimator
from ..display import html_table
from ..errors import DataError
from ..storage.files import PathLike, replacing
from . import mistakes, projection
from .thresholds import OverThreshold, over_threshold

Array = np.ndarray

LISTED = 15  # labels in the list of the best and in that of the worst
CONFUSED = 20  # listed pairs of confused labels
EXAMPLES = 12  # example mistakes, unless another number is given
DRAWN = 2_000  # labels on the map; t-SNE of as many takes about 6 s on one core
NAME_LENGTH = 120  # longer label names and parameter values are truncated
UNSEEN = "(a label without a training row)"
CSV_COLUMNS = ("label", "training_rows", "test_rows", "assigned", "found", "precision", "recall", "f1")


class Setting(NamedTuple):
    """A parameter as it was given, and the value that was chosen for "auto", or "" if there is none."""

    name: str
    value: str
    chosen: str


class Data(NamedTuple):
    """Sizes. `unseen_labels` labels of the test rows have no training row; they occur `unseen` times."""

    rows: int
    labels_a_row: float
    rows_without_label: int
    labels_in_test: int
    unseen_labels: int
    unseen: int
    training_rows: int
    training_labels_a_row: float
    labels: int
    features: int


class Measure(NamedTuple):
    """A value and its 95% bootstrap interval over rows; averages over labels have no interval."""

    value: float
    low: float | None
    high: float | None


class AtThreshold(NamedTuple):
    """Measures of the labels that `predict` returns at the threshold."""

    threshold: float
    labels_a_row: float
    precision: Measure
    recall: Measure
    f1: Measure


class Curve(NamedTuple):
    """The calibration curve of the top k labels: predicted probabilities and observed frequencies, by bin."""

    k: int
    error: float
    predicted: list[float]
    observed: list[float]


class Answered(NamedTuple):
    """Rows whose top label scores at least `bar`: their share of all rows, and that label's precision."""

    bar: float
    coverage: float
    precision: float


class LabelLine(NamedTuple):
    """The measures of a label at the threshold; precision is None if it is never predicted."""

    label: str
    f1: float
    precision: float | None
    recall: float
    test: int
    training: int


class LabelLists(NamedTuple):
    """The best and the worst of the `n` labels that occur in at least `least` test rows."""

    least: int
    n: int
    best: list[LabelLine]
    worst: list[LabelLine]


class LabelCounts(NamedTuple):
    """All labels that have a training or a test row, those with the most test rows first, as columns.

    training, test : rows that have the label
    assigned, found : test rows that get the label at the threshold, and those of them that have it
    """

    names: list[str]
    training: list[int]
    test: list[int]
    assigned: list[int]
    found: list[int]

    def first(self, n: int) -> LabelCounts:
        return LabelCounts(
            self.names[:n], self.training[:n], self.test[:n], self.assigned[:n], self.found[:n]
        )

    def rows(self) -> Iterator[tuple[str, int, int, int, int, float | None, float | None, float | None]]:
        """The columns row by row, then precision, recall and F1; None where there is nothing to divide by."""
        for name, training, test, assigned, found in zip(*self):
            precision = found / assigned if assigned else None
            recall = found / test if test else None
            f1 = 2 * found / (assigned + test) if test else None
            yield name, training, test, assigned, found, precision, recall, f1

    def write_csv(self, file: IO[bytes]) -> None:
        """Write all rows with a header as UTF-8."""
        text = TextIOWrapper(file, "utf-8", "backslashreplace", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(CSV_COLUMNS)
        writer.writerows(self.rows())
        text.detach()  # the caller closes the file


class Pair(NamedTuple):
    """In `rows` rows, `predicted` ranked first and was wrong, and `missed` was true but not predicted."""

    predicted: str
    missed: str
    rows: int
    share: float  # the share of the test rows with the missed label


class Confusion(NamedTuple):
    """The most frequent of `n` confused pairs, and the number of rows whose top label is wrong."""

    wrong_rows: int
    n: int
    pairs: list[Pair]


class LabelMap(NamedTuple):
    """The most frequent of the `n` labels with a training row, in order of frequency.

    x, y : positions in [0, 1]
    f1 : F1 at the threshold, None if no test row has the label
    """

    n: int
    names: list[str]
    x: list[float]
    y: list[float]
    training: list[int]
    test: list[int]
    f1: list[float | None]


class EvaluationReport(NamedTuple):
    """The content of the page. A part that does not exist for the model is None.

    unit : what a row is, "text" or "row"
    first_label : the share of the rows whose top label is true
    measures : the metrics by name, {"P@1": …}
    groups : recall and precision by label frequency, the most frequent labels first
    scores : what the scores are, such as "probabilities"
    """

    title: str
    date: str
    version: str
    method: str
    settings: list[Setting]
    data: Data
    unit: str
    first_label: Measure
    ks: list[int]
    measures: dict[str, Measure]
    at_threshold: AtThreshold
    over_threshold: OverThreshold
    examples: list[mistakes.Mistake]
    groups: list[metrics.FrequencyGroup]
    scores: str
    calibration: Curve | None
    answered: list[Answered]
    labels: LabelLists
    label_counts: LabelCounts
    confused: Confusion
    label_map: LabelMap | None

    def save(self, path: PathLike) -> None:
        """Write the page to a file."""
        from .page import rendered

        with replacing(path) as file:
            file.write(rendered(self))

    def _repr_html_(self) -> str:
        """The measures as a table for a notebook."""
        chosen = self.at_threshold
        at = f"at the threshold of {chosen.threshold:.3g}"
        listed = {
            **self.measures,
            f"micro-precision {at}": chosen.precision,
            f"micro-recall {at}": chosen.recall,
            f"micro-F1 {at}": chosen.f1,
        }
        rows = [
            (
                name,
                f"{100 * value:.2f}",
                "" if low is None or high is None else f"{100 * low:.2f}–{100 * high:.2f}",
            )
            for name, (value, low, high) in listed.items()
        ]
        sizes = f"{self.data.rows:,} test rows, {self.data.labels:,} labels"
        return html_table(self.title, ("measure", "%", "95% interval"), rows, sizes)


def make(
    model: XMCEstimator,
    X: Any,
    Y: Any,
    *,
    k: Sequence[int] = (1, 3, 5),
    propensity: tuple[float, float] = (0.55, 1.5),
    title: str | None = None,
    date: str | None = None,
    n_examples: int = EXAMPLES,
) -> EvaluationReport:
    """Evaluate a model on test rows.

    Parameters
    ----------
    X : the test rows, in any form that `predict` takes; the page shows the ids of documents and the index
        of data frames
    Y : their true labels: a csr matrix whose first columns are `classes_`, or any form that `fit` takes
    k : the values of k for metrics at k
    propensity : A and B of the propensity model, for PSP and PSnDCG
    title, date : the title and date of the page; by default, the name of the method, and today
    n_examples : the number of example mistakes; the page shows their texts

    Examples
    --------
    >>> from exmlds import MostFrequent
    >>> model = MostFrequent().fit([[0.0], [1.0], [2.0]], [["a"], ["a", "b"], ["a"]])
    >>> make(model, [[3.0], [4.0]], [["a"], ["b"]], k=[1]).measures["P@1"].value
    0.5
    """
    method: Any = model._method
    if isinstance(X, Iterator):  # its texts are read twice
        X = list(X)
    truth = metrics.label_matrix(Y) if issparse(Y) else model.label_matrix(Y, unknown="append")
    if not truth.nnz:
        raise DataError("No test row has a true label, so there is nothing to evaluate against.")
    n_classes, most = len(model.classes_), max(k)
    considered = min(model.max_labels, n_classes)
    ids, scores = model.predict_topk(X, max(most, considered))
    first = metrics.Ranking(truth, ids[:, :most], most)
    # Labels that are not in training have no training row.
    counts = np.pad(model.label_counts_, (0, truth.shape[1] - n_classes))
    weights = metrics.inverse_propensity(counts, *propensity, n_rows=model.n_samples_fit_)
    threshold = model._usable_threshold()
    predicted = _Predicted(truth, ids[:, :considered], scores[:, :considered] >= threshold)
    names = _Names(model)
    right, any_label = first.hits[:, 0] > 0, ids[:, 0] >= 0
    documents = mistakes.documents_of(model, X)
    probabilities = _probabilities(method, ids[:, :most], scores[:, :most])
    return EvaluationReport(
        title=title or type(method).__name__,
        date=date or calendar_date.today().isoformat(),
        version=__version__,
        method=type(method).__name__,
        settings=_settings(model),
        data=_data(model, truth, counts),
        unit="row" if documents is None else "text",
        first_label=Measure(*metrics.bootstrap((right.astype(np.float64), np.ones(len(right))))),
        ks=sorted(k),
        measures=_measures(
            metrics.report(
                truth, first.ids, k=k, inverse_propensity=weights, label_counts=counts, intervals=True
            )
        ),
        at_threshold=predicted.measures(threshold),
        over_threshold=_over_threshold(truth, ids[:, :considered], scores[:, :considered], threshold),
        examples=mistakes.examples(
            mistakes.most_confident(scores[:, 0], ids[:, 0], any_label & ~right, n_examples),
            ids[:, :considered],
            scores[:, :considered],
            truth,
            threshold=threshold,
            name_of=names.__getitem__,
            documents=documents,
            index=X.index if hasattr(X, "iloc") else None,
        ),
        groups=metrics.by_frequency(truth, first.ids, counts, most),
        scores=method._score_meaning,
        calibration=None if probabilities is None else _curve(truth, first.ids, probabilities),
        answered=_answered(scores[:, 0], right, any_label),
        labels=_label_lists(predicted, counts, names),
        label_counts=_label_counts(predicted, counts, names),
        confused=_confusion(predicted, first, names),
        label_map=_label_map(method, predicted, counts, names),
    )


class _Names:
    """Label names by column, truncated to a length that fits the page; columns without a name are unseen."""

    def __init__(self, model: Any) -> None:
        self.classes, self.name_of = model.classes_, model.label_name

    def __getitem__(self, column: int) -> str:
        return short(self.name_of(self.classes[column])) if column < len(self) else UNSEEN

    def __len__(self) -> int:
        return len(self.classes)

    def with_label(self, column: int) -> str:
        """The name and the label, such as a URI, where they differ."""
        label = str(self.classes[column])
        name = self.name_of(self.classes[column])
        return label if name == label else f"{name} ({label})"


class _Predicted:
    """The labels that reach the threshold, compared with the true ones.

    labels : (n, L) csr of ones
    true, predicted, found : (L,) int64, the number of rows in which a label is true, predicted, or both
    f1 : (L,) float64
    """

    def __init__(self, truth: csr_matrix, ids: Array, reached: Array) -> None:
        reached = reached & (ids >= 0)
        ends = np.cumsum(reached.sum(axis=1))
        indices = ids[reached]
        ones = np.ones(len(indices), np.float32)
        self.labels = csr_matrix((ones, indices, np.concatenate(([0], ends))), shape=truth.shape)
        self.labels.sort_indices()
        self.truth, self.hits = truth, csr_matrix(truth.multiply(self.labels))
        self.true, self.predicted, self.found = (
            np.bincount(matrix.indices, minlength=truth.shape[1])
            for matrix in (truth, self.labels, self.hits)
        )
        self.f1 = 2 * self.found / np.maximum(self.true + self.predicted, 1)

    def measures(self, threshold: float) -> AtThreshold:
        hits, predicted, true = (
            np.diff(matrix.indptr).astype(np.float64) for matrix in (self.hits, self.labels, self.truth)
        )
        sums = {"precision": (hits, predicted), "recall": (hits, true), "f1": (2 * hits, predicted + true)}
        found = {name: Measure(*metrics.bootstrap(parts)) for name, parts in sums.items()}
        return AtThreshold(threshold, float(predicted.mean()), **found)

    def line(self, label: int, training: int, name: str) -> LabelLine:
        true, predicted, found = (int(a[label]) for a in (self.true, self.predicted, self.found))
        precision = found / predicted if predicted else None
        return LabelLine(name, float(self.f1[label]), precision, found / true, true, training)


def _measures(report: metrics.MetricReport) -> dict[str, Measure]:
    return {
        name: Measure(*report.intervals[name]) if name in report.intervals else Measure(value, None, None)
        for name, value in report.items()
    }


def _data(model: XMCEstimator, truth: csr_matrix, counts: Array) -> Data:
    true = np.bincount(truth.indices, minlength=truth.shape[1])
    unseen = (true > 0) & (counts == 0)
    return Data(
        rows=truth.shape[0],
        labels_a_row=truth.nnz / truth.shape[0],
        rows_without_label=int((np.diff(truth.indptr) == 0).sum()),
        labels_in_test=int((true > 0).sum()),
        unseen_labels=int(unseen.sum()),
        unseen=int(true[unseen].sum()),
        training_rows=int(model.n_samples_fit_),
        training_labels_a_row=float(counts.sum() / model.n_samples_fit_),
        labels=len(model.classes_),
        features=int(model.n_features_in_),
    )


def _settings(model: Any) -> list[Setting]:
    """The parameters by their scikit-learn names; those of a TextClassifier's model begin with `model__`."""
    own = [
        Setting(name, short(_shown(value)), _chosen(model, name, value))
        for name, value in model.get_params(deep=False).items()
        if name != "model"
    ]
    if model._method is model:
        return own
    return own + [setting._replace(name=f"model__{setting.name}") for setting in _settings(model._method)]


def _chosen(model: Any, name: str, given: Any) -> str:
    """The fitted value of a parameter, if it is plain and differs from the given one."""
    chosen = getattr(model, f"{name}_", None)
    if isinstance(chosen, np.generic):
        chosen = chosen.item()
    if not isinstance(chosen, (str, int, float)) or chosen == given:
        return ""
    return short(_shown(chosen))


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def short(text: str) -> str:
    """Truncate a name to a length that fits the page."""
    return text if len(text) <= NAME_LENGTH else f"{text[: NAME_LENGTH - 1]}…"


def _probabilities(method: Any, ids: Array, scores: Array) -> Array | None:
    """The probabilities if the scores are, or if they can be derived from them."""
    if method._score_meaning == "probabilities":
        return scores
    if method._score_meaning == "probabilities over propensities":
        gains = method._label_gains()
        return np.minimum(scores / np.where(ids >= 0, gains[np.maximum(ids, 0)], 1), 1)
    return None


def _curve(truth: csr_matrix, ids: Array, probabilities: Array) -> Curve | None:
    if not (ids >= 0).any():
        return None
    error, predicted, observed = metrics.calibration(truth, (ids, probabilities), ids.shape[1])
    return Curve(ids.shape[1], error, predicted.tolist(), observed.tolist())


def _answered(scores: Array, right: Array, any_label: Array, n_points: int = 100) -> list[Answered]:
    """Precision against coverage, from the most confident rows to all; equal scores share one point."""
    order = np.argsort(-scores, kind="stable")
    order = order[any_label[order]]
    if not order.size:
        return []
    sorted_scores = scores[order].astype(np.float64)
    ends = np.flatnonzero(np.append(np.diff(sorted_scores) != 0, True)) + 1  # rows answered at each threshold
    wanted = np.ceil(len(scores) * np.arange(1, n_points + 1) / n_points)
    ends = ends[np.unique(np.minimum(np.searchsorted(ends, wanted), len(ends) - 1))]
    precision = np.cumsum(right[order])[ends - 1] / ends
    points = zip(sorted_scores[ends - 1].tolist(), (ends / len(scores)).tolist(), precision.tolist())
    return [Answered(*point) for point in points]


def _over_threshold(truth: csr_matrix, ids: Array, scores: Array, threshold: float) -> OverThreshold:
    listed = ids >= 0
    hits = metrics.Ranking(truth, ids, ids.shape[1]).hits.astype(bool)
    return over_threshold(scores[listed], hits[listed], threshold, true=truth.nnz, rows=len(ids))


def _label_counts(predicted: _Predicted, counts: Array, names: _Names) -> LabelCounts:
    true = predicted.true
    listed = np.flatnonzero((counts + true)[: len(names)])
    listed = listed[np.lexsort((-counts[listed], -true[listed]))]
    columns = (column[listed].tolist() for column in (counts, true, predicted.predicted, predicted.found))
    return LabelCounts([names.with_label(column) for column in listed.tolist()], *columns)


def _label_lists(predicted: _Predicted, counts: Array, names: _Names) -> LabelLists:
    """The best and worst labels, among those with many test rows if possible: their F1 is less noisy."""
    seen = counts > 0
    least = next(
        rows for rows in (10, 5, 2, 1) if rows == 1 or (seen & (predicted.true >= rows)).sum() >= 2 * LISTED
    )
    chosen = np.flatnonzero(seen & (predicted.true >= least))
    listed = min(LISTED, (len(chosen) + 1) // 2)
    best = chosen[np.lexsort((-predicted.true[chosen], -predicted.f1[chosen]))[:listed]]
    worst = chosen[
        np.lexsort((-predicted.true[chosen], predicted.f1[chosen]))[: min(listed, len(chosen) - listed)]
    ]
    lists = (
        [predicted.line(label, int(counts[label]), names[label]) for label in labels]
        for labels in (best, worst)
    )
    return LabelLists(least, len(chosen), *lists)


def _confusion(predicted: _Predicted, first: metrics.Ranking, names: _Names) -> Confusion:
    """Pair each wrong top label with the true labels of its row that are below the threshold."""
    n_classes = len(names)
    wrong = np.flatnonzero((first.ids[:, 0] >= 0) & (first.hits[:, 0] == 0))
    missed = csr_matrix(predicted.truth - predicted.hits)[wrong, :n_classes].tocoo()
    real = missed.data > 0
    pairs = first.ids[wrong[missed.row[real]], 0] * n_classes + missed.col[real]
    pairs, rows = np.unique(pairs, return_counts=True)
    most = np.argsort(-rows, kind="stable")[:CONFUSED]
    return Confusion(
        len(wrong),
        len(pairs),
        [
            Pair(names[one], names[other], count, count / int(predicted.true[other]))
            for one, other, count in zip(
                (pairs[most] // n_classes).tolist(), (pairs[most] % n_classes).tolist(), rows[most].tolist()
            )
        ],
    )


def _label_map(method: Any, predicted: _Predicted, counts: Array, names: _Names) -> LabelMap | None:
    if not hasattr(method, "label_embeddings"):
        return None
    frequent = np.argsort(-counts[: len(names)], kind="stable")[: np.count_nonzero(counts)]
    drawn = frequent[:DRAWN]
    positions = projection.flat(np.asarray(method.label_embeddings())[drawn]).round(4)
    return LabelMap(
        n=len(frequent),
        names=[names[label] for label in drawn],
        x=positions[:, 0].tolist(),
        y=positions[:, 1].tolist(),
        training=counts[drawn].tolist(),
        test=predicted.true[drawn].tolist(),
        f1=[round(float(predicted.f1[label]), 4) if predicted.true[label] else None for label in drawn],
    )
