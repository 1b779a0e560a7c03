"""The command `exmlds evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Argument, Option

from .arguments import AsJson, Device, LabelsFile, MetricKs, complete_data, complete_model
from .propensity import Propensity, TrainFile, TrainingCounts, parse_propensity, training_counts
from .settings import OwnMethod, Trusted
from .texts import (
    Encoding,
    EncodingErrors,
    Format,
    IdColumn,
    LabelColumn,
    LabelSeparator,
    TextColumn,
    TextOptions,
)

if TYPE_CHECKING:
    import numpy as np
    from scipy.sparse import csr_matrix

    from .. import metrics


def evaluate(
    model: Annotated[
        str,
        Argument(
            metavar="MODEL", help="A model folder; omit it with --predictions.", autocompletion=complete_model
        ),
    ],
    data: Annotated[
        str | None,
        Argument(
            metavar="DATA",
            help="A file, a folder of documents, or the name of a data set (its test split is used).",
            autocompletion=complete_data,
        ),
    ] = None,
    k: MetricKs = "1 3 5",
    predictions: Annotated[
        Path | None,
        Option(
            help="A file of predictions: a row of `label:score` pairs per line, or what `predict` writes."
        ),
    ] = None,
    train: TrainFile = None,
    labels: LabelsFile = None,
    filter_: Annotated[
        Path | None, Option("--filter", help="A label filter: pairs `row label` that are not predicted.")
    ] = None,
    propensity: Propensity = None,
    intervals: Annotated[bool, Option("--intervals", help="Show 95% bootstrap intervals over rows.")] = False,
    text_column: TextColumn = None,
    id_column: IdColumn = None,
    label_column: LabelColumn = None,
    label_separator: LabelSeparator = None,
    format: Format = None,
    encoding: Encoding = "utf-8",
    encoding_errors: EncodingErrors = "strict",
    method: OwnMethod = None,
    trusted: Trusted = None,
    device: Device = "cpu",
    as_json: AsJson = False,
) -> None:
    """Evaluate a model or a file of predictions.

    Prints P, R, nDCG, PSP, PSnDCG, macro-F1 and coverage at k, and a table by label frequency, head to tail.
    macro-F1 is the mean over labels that occur in the training or the test rows.

    The rows of predictions for texts are matched with DATA by their ids, in any order; texts without ids are
    numbered from 1, as `exmlds predict` does. There must be one row for each text.
    """
    from ..runtime import progress
    from .sources import parse_ks, read_for

    path, data = _check(model, data, predictions)
    ks, a_and_b = parse_ks(k), parse_propensity(propensity, data)
    options = TextOptions(
        text_column, format, encoding_errors, label_column, label_separator, id_column, encoding
    )
    with progress.shown():
        test, (ranker,) = read_for(
            data, labels, path, options=options, method=method, trusted=trusted, device=device
        )
        counts = training_counts([ranker], train, test, options)
        result = _run(ranker, test, counts, ks, filter_, a_and_b, intervals)
    (_print_json if as_json else _print_tables)(result)


class _EvaluateResult(NamedTuple):
    """The measures; what needs a model or the training labels is None or empty without them."""

    report: metrics.MetricReport
    k: int
    at_threshold: dict[str, float] | None
    unseen: dict[str, int] | None
    propensities_from: str | None
    groups: list[metrics.FrequencyGroup]


def _check(model: str, data: str | None, predictions: Path | None) -> tuple[Path, str]:
    """Return what is evaluated, a model or predictions, and on which data."""
    from ..errors import DataError
    from .sources import refuse_swapped

    if predictions is not None:
        if data is not None:
            raise DataError("Name a model or --predictions, not both.")
        return predictions, model  # the first argument is the data then
    if data is None:
        raise DataError("Name the data to evaluate on: `exmlds evaluate MODEL DATA`.")
    refuse_swapped("evaluate MODEL DATA", model, data)
    return Path(model), data


def _run(
    ranker: Any,
    test: Any,
    counts: TrainingCounts | None,
    ks: list[int],
    label_filter: Path | None,
    a_and_b: Any,
    intervals: bool,
) -> _EvaluateResult:
    """Rank the labels once, and compute every measure of the ranking."""
    from .. import metrics
    from .sources import ranked

    truth, most = test.Y, max(ks)
    at_threshold = None
    if isinstance(ranker, Path):
        ids, _ = ranked(ranker, test, most, label_filter)
    else:  # the labels that it assigns are the first ones of its ranking, down to the threshold
        considered = min(ranker.max_labels, ranker.n_labels_)
        ids, scores = ranked(ranker, test, max(most, considered), label_filter)
        at_threshold = _at_threshold(ranker, truth, ids[:, :considered], scores[:, :considered])
        ids = ids[:, :most]
    weights, unseen, source, groups = None, None, None, []
    if counts is not None:
        truth = counts.widened(truth)
        weights = metrics.inverse_propensity(counts.of_labels, *a_and_b, n_rows=counts.n_rows)
        unseen, source = _unseen(truth, counts.of_labels), counts.source
        groups = metrics.by_frequency(truth, ids, counts.of_labels, most)
    given = None if counts is None else counts.of_labels
    report = metrics.report(
        truth, ids, k=ks, inverse_propensity=weights, label_counts=given, intervals=intervals
    )
    return _EvaluateResult(report, most, at_threshold, unseen, source, groups)


def _print_json(result: _EvaluateResult) -> None:
    from .output import print_json

    report = result.report
    values: dict[str, Any] = {"rows": report.n_rows, "labels": report.n_labels, **report}
    if report.intervals:
        values["intervals"] = {name: [i.low, i.high] for name, i in report.intervals.items()}
    if result.at_threshold is not None:
        values["at_threshold"] = result.at_threshold
    if result.unseen is not None:
        values["unseen"] = result.unseen
        values["propensities_from"] = result.propensities_from
    values["by_frequency"] = [group._asdict() for group in result.groups]
    print_json(values)


def _print_tables(result: _EvaluateResult) -> None:
    from .output import percent, print_table

    print(result.report)
    if result.at_threshold is not None:
        values = result.at_threshold
        print(
            f"At the threshold of {values['threshold']:.3g}: {values['labels_a_row']:.2f} labels per row, "
            f"micro-F1 {percent(values['F1'])}, precision {percent(values['precision'])}, "
            f"recall {percent(values['recall'])}"
        )
    if result.unseen is not None and result.unseen["labels"]:
        print(
            f"{result.unseen['labels']:,} of the {result.unseen['of']:,} labels of these rows were not in "
            f"training; they occur {result.unseen['times']:,} times"
        )
    if not result.groups:
        print(
            "PSP, PSnDCG and the table from head to tail need the training labels: evaluate the model "
            "itself, or name the training data: --train FILE"
        )
        return
    print(f"Propensities of PSP and PSnDCG from {result.propensities_from}")
    print()
    header = ("tenth", "labels", "training rows", "in test", "found", "recall %", "precision %", "coverage %")
    rows = []
    for group in result.groups:
        shares = map(percent, (group.recall, group.precision, group.coverage))
        counts = (group.n_labels, f"{group.most:,}–{group.least:,}", group.true, group.found)
        rows.append((group.name, *counts, *shares))
    print_table(header, rows, title=f"Head to tail, at {result.k}")


def _unseen(truth: csr_matrix, counts: np.ndarray) -> dict[str, int]:
    """Counts of the test labels that have no training row."""
    true = truth.getnnz(axis=0)
    unseen = (true > 0) & (counts == 0)
    return {"labels": int(unseen.sum()), "of": int((true > 0).sum()), "times": int(true[unseen].sum())}


def _at_threshold(model: Any, truth: csr_matrix, ids: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """Micro-averaged measures of the ranked labels that reach the threshold."""
    from .. import metrics

    threshold = model._usable_threshold()
    reached = (ids >= 0) & (scores >= threshold)
    hits = metrics.Ranking(truth, ids, ids.shape[1]).hits
    return {
        "threshold": threshold,
        "labels_a_row": float(reached.sum() / max(len(ids), 1)),
        **metrics.micro_averages(int(hits[reached].sum()), int(reached.sum()), truth.nnz),
    }
