"""`exmlds evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .texts import EncodingErrors, Format, LabelColumn, LabelSeparator, TextColumn, TextOptions

if TYPE_CHECKING:
    import numpy as np


def evaluate(
    model: Annotated[str, typer.Argument(help="A model folder; with --predictions, leave it out.")],
    data: Annotated[
        str | None, typer.Argument(help="A file, or the name of a data set: its test split.")
    ] = None,
    k: Annotated[str, typer.Option("-k", help="Places to measure at.")] = "1 3 5",
    predictions: Annotated[
        Path | None, typer.Option(help="Anybody's predictions, `label:score` a row.")
    ] = None,
    train: Annotated[
        str | None, typer.Option(help="The training file, for PSP when there is no model.")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="The labels' file, when DATA has features alone.")
    ] = None,
    filter_: Annotated[
        Path | None, typer.Option("--filter", help="Pairs `row label` that are not to be predicted.")
    ] = None,
    propensity: Annotated[
        str | None, typer.Option(help="A,B of the propensities.  [default: the data set's, or 0.55,1.5]")
    ] = None,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="95% bootstrap intervals over rows.")
    ] = False,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    label_separator: LabelSeparator = None,
    format: Format = None,
    encoding_errors: EncodingErrors = "strict",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure a model, or anybody's predictions.

    P, R, nDCG, PSP, PSnDCG, macro-F1 and coverage at k, and a table from the head to the tail of the labels.
    """
    from .. import metrics
    from ..errors import DataError
    from ..runtime import progress
    from .output import percent, print_json, print_table
    from .sources import parse_ks, ranked, read_for

    if predictions is not None:
        if data is not None:
            raise DataError("Name a model or --predictions, not both.")
        model, data = str(predictions), model
    elif data is None:
        raise DataError("Name the data to evaluate on: `exmlds evaluate MODEL DATA`.")
    ks = parse_ks(k)
    with progress.shown():
        test, (ranker,) = read_for(
            data,
            labels,
            Path(model),
            options=TextOptions(text_column, format, encoding_errors, label_column, label_separator),
        )
        ids = ranked(ranker, test, max(ks), filter_)
        counts, n_train = _training_counts(ranker, train, test.Y.shape[1])
    weights = None
    if counts is not None:
        A, B = _propensity(propensity, data)
        weights = metrics.inverse_propensity(counts, A, B, n_rows=n_train)
    report = metrics.report(test.Y, ids, k=ks, inverse_propensity=weights, intervals=intervals)
    predicted = None if isinstance(ranker, Path) else _at_threshold(ranker, test)
    groups = [] if counts is None else metrics.by_frequency(test.Y, ids, counts, max(ks))
    unseen = None if counts is None else _unseen(test, counts)
    if as_json:
        result: dict[str, Any] = {"rows": report.n_rows, "labels": report.n_labels, **report}
        if intervals:
            result["intervals"] = {name: [i.low, i.high] for name, i in report.intervals.items()}
        if predicted is not None:
            result["at_threshold"] = predicted
        if unseen is not None:
            result["unseen"] = unseen
        result["by_frequency"] = [group._asdict() for group in groups]
        print_json(result)
        return
    print(report)
    if predicted is not None:
        print(
            f"At the threshold of {predicted['threshold']:.3g}: {predicted['labels_a_row']:.2f} labels "
            f"per row, micro-F1 {percent(predicted['F1'])}, precision {percent(predicted['precision'])}, "
            f"recall {percent(predicted['recall'])}"
        )
    if unseen is not None and unseen["labels"]:
        print(
            f"{unseen['labels']:,} of the {unseen['of']:,} labels of these rows were not in training; "
            f"they stand {unseen['times']:,} times"
        )
    if not groups:
        print("PSP, PSnDCG and the table from head to tail need the training file: --train FILE")
    else:
        print()
        print_table(
            (
                "tenth",
                "labels",
                "training rows",
                "in test",
                "found",
                "recall %",
                "precision %",
                "coverage %",
            ),
            [
                (
                    group.name,
                    f"{group.n_labels:,}",
                    f"{group.most:,}–{group.least:,}",
                    f"{group.true:,}",
                    f"{group.found:,}",
                    percent(group.recall),
                    percent(group.precision),
                    percent(group.coverage),
                )
                for group in groups
            ],
            title=f"Head to tail, at {max(ks)}",
        )


def _training_counts(ranker: Any, train: str | None, n_labels: int) -> tuple[np.ndarray | None, int]:
    import numpy as np

    from ..data import read_xc
    from .sources import locate, refuse_texts

    if train is not None:
        path = locate(train, "train")
        refuse_texts(path, "--train")
        Y = read_xc(path, n_labels=n_labels).Y
        return np.bincount(Y.indices, minlength=n_labels), Y.shape[0]
    if not isinstance(ranker, Path):
        unseen = n_labels - len(ranker.label_counts_)
        return np.pad(ranker.label_counts_, (0, unseen)), ranker.n_samples_fit_
    return None, 0


def _unseen(test: Any, counts: np.ndarray) -> dict[str, int]:
    """Labels that the rows have and that no training row had."""
    true = test.Y.getnnz(axis=0)
    unseen = (true > 0) & (counts == 0)
    return {"labels": int(unseen.sum()), "of": int((true > 0).sum()), "times": int(true[unseen].sum())}


def _at_threshold(model: Any, test: Any) -> dict[str, float]:
    """Of the labels that `predict` says."""
    predicted = model.predict(test.X)
    hits = float(predicted.multiply(test.Y[:, : predicted.shape[1]]).sum())
    precision, recall = hits / max(predicted.nnz, 1), hits / max(test.Y.nnz, 1)
    return {
        "threshold": float(model.threshold_),
        "labels_a_row": predicted.nnz / max(predicted.shape[0], 1),
        "precision": precision,
        "recall": recall,
        "F1": 2 * hits / max(predicted.nnz + test.Y.nnz, 1),
    }


def _propensity(text: str | None, data: str) -> tuple[float, float]:
    from ..data import propensity_parameters
    from ..errors import DataError

    if text is None:
        return propensity_parameters(data.lower())
    try:
        A, B = (float(part) for part in text.split(","))
    except ValueError:
        raise DataError(f"--propensity takes A,B such as 0.55,1.5. Got {text!r} instead.") from None
    return A, B
