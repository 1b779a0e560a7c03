"""What a model is good for, on rows that it has not seen: measured here, drawn by `page`.

    test = read_xc("test.txt")
    report = make(model, test.X, test.Y)
    with replacing("report.html") as file:
        file.write(page.rendered(report))

Everything in a `Report` is plain: numbers, strings, lists and tuples with names.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date as calendar_date
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, issparse

from .. import __version__, metrics
from ..base import XMCEstimator
from ..errors import DataError
from ..models.baselines import MostFrequent
from ..models.exmlds import ExMLDS
from . import projection

Array = np.ndarray

LISTED = 15  # labels in each of the lists of the best and the worst
CONFUSED = 20  # pairs of labels
DRAWN = 2_000  # labels on the map: as many take about 6 s to place on one core
NAME_LENGTH = 120  # characters of a label's name, and of a setting


class Setting(NamedTuple):
    """A parameter as it was given, and what "auto" became, or "" where there is nothing to add."""

    name: str
    value: str
    chosen: str


class Data(NamedTuple):
    """Sizes. `unseen_labels` are those of the test rows without a training row, had `unseen` times."""

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
    """A value and its 95% interval over rows; means over labels have none."""

    value: float
    low: float | None
    high: float | None


class AtThreshold(NamedTuple):
    """Of the labels that `predict` says."""

    threshold: float
    labels_a_row: float
    precision: Measure
    recall: Measure
    f1: Measure


class Curve(NamedTuple):
    """Of the first `places` labels of each row: the probabilities said and the shares found true, by bins."""

    places: int
    error: float
    said: list[float]
    found: list[float]


class Answered(NamedTuple):
    """Rows whose first label scores at least `bar`: their share of all, and the share where it is right."""

    bar: float
    coverage: float
    precision: float


class LabelLine(NamedTuple):
    """A label at the threshold; precision is None where it is never said."""

    label: str
    f1: float
    precision: float | None
    recall: float
    test: int
    training: int


class LabelLists(NamedTuple):
    """The best and the worst of the `n` labels that at least `least` test rows have."""

    least: int
    n: int
    best: list[LabelLine]
    worst: list[LabelLine]


class Pair(NamedTuple):
    """In so many rows `said` stood first and was wrong, and `missed` was true and below the threshold."""

    said: str
    missed: str
    rows: int
    share: float  # of the test rows that have the missed label


class Confusion(NamedTuple):
    """The most frequent of `n` pairs, and the rows whose first label is wrong."""

    wrong_rows: int
    n: int
    pairs: list[Pair]


class LabelMap(NamedTuple):
    """The most frequent of `n` labels with a training row, those with most rows first.

    x, y : in [0, 1];  f1 : at the threshold, None where no test row has the label
    """

    n: int
    names: list[str]
    x: list[float]
    y: list[float]
    training: list[int]
    test: list[int]
    f1: list[float | None]


class Report(NamedTuple):
    """All that is on the page. What a model does not have is None.

    measures : by name, {"P@1": …};  groups : from the most frequent labels to the rarest
    scores : what a score is, such as "probabilities"
    """

    title: str
    date: str
    version: str
    method: str
    settings: list[Setting]
    data: Data
    places: list[int]
    measures: dict[str, Measure]
    at_threshold: AtThreshold
    groups: list[metrics.FrequencyGroup]
    scores: str
    calibration: Curve | None
    answered: list[Answered]
    labels: LabelLists
    confused: Confusion
    label_map: LabelMap | None


def make(
    model: XMCEstimator,
    X: Any,
    Y: Any,
    *,
    k: Sequence[int] = (1, 3, 5),
    propensity: tuple[float, float] = (0.55, 1.5),
    title: str | None = None,
    date: str | None = None,
) -> Report:
    """Measure a model on test rows.

    Parameters
    ----------
    X : rows as the model takes them
    Y : their true labels: a csr matrix whose first columns are `classes_`, or as `fit` takes them
    k : places to measure at
    propensity : A and B of PSP
    title, date : of the page; the method's name, and today

    Example
    -------
    >>> from exmlds import MostFrequent
    >>> model = MostFrequent().fit([[0.0], [1.0], [2.0]], [["a"], ["a", "b"], ["a"]])
    >>> make(model, [[3.0], [4.0]], [["a"], ["b"]], k=[1]).measures["P@1"].value
    0.5
    """
    method = getattr(model, "model_", model)  # of texts
    truth = metrics.label_matrix(Y) if issparse(Y) else model.label_matrix(Y)
    if not truth.nnz:
        raise DataError("No test row has a true label, so that there is nothing to compare with.")
    n_classes, most = len(model.classes_), max(k)
    considered = min(model.max_labels, n_classes)
    ids, scores = model.predict_topk(X, max(most, considered))
    first = metrics.Ranking(truth, ids[:, :most], most)
    counts = np.pad(model.label_counts_, (0, truth.shape[1] - n_classes))  # none of those never seen
    weights = metrics.inverse_propensity(counts, *propensity, n_rows=model.n_samples_fit_)
    said = _Said(truth, ids[:, :considered], scores[:, :considered] >= model.threshold_)
    names = _Names(model.classes_)
    kind, probabilities = _probabilities(method, ids[:, :most], scores[:, :most])
    return Report(
        title=title or type(method).__name__,
        date=date or calendar_date.today().isoformat(),
        version=__version__,
        method=type(method).__name__,
        settings=_settings(model),
        data=_data(model, truth, counts),
        places=sorted(k),
        measures=_measures(metrics.report(truth, first.ids, k=k, inverse_propensity=weights, intervals=True)),
        at_threshold=said.measures(float(model.threshold_)),
        groups=metrics.by_frequency(truth, first.ids, counts, most),
        scores=kind,
        calibration=None if probabilities is None else _curve(truth, first.ids, probabilities),
        answered=_answered(scores[:, 0], first.hits[:, 0] > 0, ids[:, 0] >= 0),
        labels=_label_lists(said, counts, names),
        confused=_confusion(said, first, names),
        label_map=_label_map(method, said, counts, names),
    )


class _Names:
    """Names of labels by their columns, cut where they are long."""

    def __init__(self, classes: Array) -> None:
        self.classes = classes

    def __getitem__(self, column: int) -> str:
        return _short(str(self.classes[column]))

    def __len__(self) -> int:
        return len(self.classes)


class _Said:
    """The labels that reach the threshold beside the true ones.

    labels : (n, L) csr of ones;  true, predicted, found : (L,) rows
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
        hits, said, true = (
            np.diff(matrix.indptr).astype(np.float64) for matrix in (self.hits, self.labels, self.truth)
        )
        sums = {"precision": (hits, said), "recall": (hits, true), "f1": (2 * hits, said + true)}
        found = {name: Measure(*metrics.bootstrap(parts)) for name, parts in sums.items()}
        return AtThreshold(threshold, float(said.mean()), **found)

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
    """Parameters as scikit-learn names them: those of a model of texts' own model after `model__`."""
    own = [
        Setting(name, _short(_shown(value)), _chosen(model, name, value))
        for name, value in model.get_params(deep=False).items()
        if name != "model"
    ]
    inner = getattr(model, "model_", None)
    if inner is None:
        return own
    return own + [setting._replace(name=f"model__{setting.name}") for setting in _settings(inner)]


def _chosen(model: Any, name: str, given: Any) -> str:
    """What was made of a parameter, where that is another plain value."""
    chosen = getattr(model, f"{name}_", None)
    if isinstance(chosen, np.generic):
        chosen = chosen.item()
    if not isinstance(chosen, (str, int, float)) or chosen == given:
        return ""
    return _short(_shown(chosen))


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _short(text: str) -> str:
    return text if len(text) <= NAME_LENGTH else f"{text[: NAME_LENGTH - 1]}…"


def _probabilities(method: Any, ids: Array, scores: Array) -> tuple[str, Array | None]:
    """What the scores of a method are, and the probabilities, if they are or hold such."""
    if not isinstance(method, ExMLDS) or method.blend_ is None:
        return "shares of the training rows" if isinstance(method, MostFrequent) else "shares of votes", None
    if method.gains_ is None:
        return "probabilities", scores
    return "probabilities over propensities", np.minimum(scores / method.gains_[np.maximum(ids, 0)], 1)


def _curve(truth: csr_matrix, ids: Array, probabilities: Array) -> Curve | None:
    if not (ids >= 0).any():
        return None
    error, said, found = metrics.calibration(truth, (ids, probabilities), ids.shape[1])
    return Curve(ids.shape[1], error, said.tolist(), found.tolist())


def _answered(scores: Array, right: Array, any_label: Array, n_points: int = 100) -> list[Answered]:
    """From the surest rows to all that have a prediction; rows with equal scores come together."""
    order = np.argsort(-scores, kind="stable")
    order = order[any_label[order]]
    if not order.size:
        return []
    sorted_scores = scores[order].astype(np.float64)
    ends = np.flatnonzero(np.append(np.diff(sorted_scores) != 0, True)) + 1  # rows answered by each bar
    wanted = np.ceil(len(scores) * np.arange(1, n_points + 1) / n_points)
    ends = ends[np.unique(np.minimum(np.searchsorted(ends, wanted), len(ends) - 1))]
    precision = np.cumsum(right[order])[ends - 1] / ends
    points = zip(sorted_scores[ends - 1].tolist(), (ends / len(scores)).tolist(), precision.tolist())
    return [Answered(*point) for point in points]


def _label_lists(said: _Said, counts: Array, names: _Names) -> LabelLists:
    """Labels with many test rows where there are enough of them; their F1 says more."""
    seen = counts > 0
    least = next(
        rows for rows in (10, 5, 2, 1) if rows == 1 or (seen & (said.true >= rows)).sum() >= 2 * LISTED
    )
    chosen = np.flatnonzero(seen & (said.true >= least))
    listed = min(LISTED, (len(chosen) + 1) // 2)
    best = chosen[np.lexsort((-said.true[chosen], -said.f1[chosen]))[:listed]]
    worst = chosen[np.lexsort((-said.true[chosen], said.f1[chosen]))[: min(listed, len(chosen) - listed)]]
    lists = (
        [said.line(label, int(counts[label]), names[label]) for label in labels] for labels in (best, worst)
    )
    return LabelLists(least, len(chosen), *lists)


def _confusion(said: _Said, first: metrics.Ranking, names: _Names) -> Confusion:
    """First labels that are wrong, with the known true labels that the threshold missed."""
    n_classes = len(names)
    wrong = np.flatnonzero((first.ids[:, 0] >= 0) & (first.hits[:, 0] == 0))
    missed = csr_matrix(said.truth - said.hits)[wrong, :n_classes].tocoo()
    real = missed.data > 0
    pairs = first.ids[wrong[missed.row[real]], 0] * n_classes + missed.col[real]
    pairs, rows = np.unique(pairs, return_counts=True)
    most = np.argsort(-rows, kind="stable")[:CONFUSED]
    return Confusion(
        len(wrong),
        len(pairs),
        [
            Pair(names[one], names[other], count, count / int(said.true[other]))
            for one, other, count in zip(
                (pairs[most] // n_classes).tolist(), (pairs[most] % n_classes).tolist(), rows[most].tolist()
            )
        ],
    )


def _label_map(method: Any, said: _Said, counts: Array, names: _Names) -> LabelMap | None:
    if not hasattr(method, "label_places"):
        return None
    frequent = np.argsort(-counts[: len(names)], kind="stable")[: np.count_nonzero(counts)]
    drawn = frequent[:DRAWN]
    places = projection.flat(np.asarray(method.label_embeddings())[drawn]).round(4)
    return LabelMap(
        n=len(frequent),
        names=[names[label] for label in drawn],
        x=places[:, 0].tolist(),
        y=places[:, 1].tolist(),
        training=counts[drawn].tolist(),
        test=said.true[drawn].tolist(),
        f1=[round(float(said.f1[label]), 4) if said.true[label] else None for label in drawn],
    )
