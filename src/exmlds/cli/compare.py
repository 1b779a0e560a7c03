"""The command `exmlds compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from .arguments import AsJson, LabelsFile, MetricKs, TestData, complete_path
from .propensity import Propensity, TrainFile, parse_propensity, training_counts
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


def compare(
    first: Annotated[
        Path,
        Argument(
            metavar="FIRST", help="A model folder or a file of predictions.", autocompletion=complete_path
        ),
    ],
    second: Annotated[
        Path,
        Argument(
            metavar="SECOND",
            help="Another model folder or file of predictions.",
            autocompletion=complete_path,
        ),
    ],
    data: TestData,
    k: MetricKs = "1 3 5",
    train: TrainFile = None,
    labels: LabelsFile = None,
    propensity: Propensity = None,
    resamples: Annotated[int, Option(min=100, help="The number of bootstrap resamples.")] = 2000,
    text_column: TextColumn = None,
    id_column: IdColumn = None,
    label_column: LabelColumn = None,
    label_separator: LabelSeparator = None,
    format: Format = None,
    encoding: Encoding = "utf-8",
    encoding_errors: EncodingErrors = "strict",
    method: OwnMethod = None,
    trusted: Trusted = None,
    as_json: AsJson = False,
) -> None:
    """Compare two models or files of predictions by a paired bootstrap.

    Both are measured on the same resampled rows. PSP weighs labels by their frequency in the training data
    or, without --train, in the training rows of the first model.
    """
    from .. import metrics
    from ..runtime import progress
    from .output import percent, print_json, print_table, say
    from .sources import parse_ks, ranked, read_for, refuse_swapped

    ks, a_and_b = parse_ks(k), parse_propensity(propensity, data)
    refuse_swapped("compare FIRST SECOND DATA", first, second, data)
    with progress.shown():
        options = TextOptions(
            text_column, format, encoding_errors, label_column, label_separator, id_column, encoding
        )
        test, rankers = read_for(data, labels, first, second, options=options, method=method, trusted=trusted)
        counts = training_counts(rankers, train, test, options)
        a, b = (ranked(ranker, test, max(ks))[0] for ranker in rankers)
        weights = None
        if counts is not None:
            weights = metrics.inverse_propensity(counts.of_labels, *a_and_b, n_rows=counts.n_rows)
        families = ("P", "nDCG", "R", *(() if weights is None else ("PSP",)))
        names = [f"{family}@{at}" for family in families for at in ks]
        rows = metrics.compare(test.Y, a, b, names, inverse_propensity=weights, n_resamples=resamples)
    if as_json:
        print_json([row._asdict() for row in rows])
        return
    print_table(
        ("", str(first), str(second), "difference", "95% interval", "p"),
        [
            (
                row.name,
                percent(row.first),
                percent(row.second),
                f"{100 * row.difference:+.2f}",
                f"{100 * row.low:+.2f} … {100 * row.high:+.2f}",
                f"{row.p_value:.3f}" if row.p_value >= 0.001 else "<0.001",
            )
            for row in rows
        ],
    )
    say(f"{test.Y.shape[0]:,} rows, {resamples:,} bootstrap resamples of them")
    if counts is None:
        say("PSP needs the training data: --train FILE")
    else:
        say(f"propensities of PSP from {counts.source}")
