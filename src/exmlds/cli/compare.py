"""The command `exmlds compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from .arguments import AsJson, LabelsFile, MetricKs, TestData, complete_path
from .settings import OwnMethod, import_method
from .texts import EncodingErrors, Format, LabelColumn, LabelSeparator, TextColumn, TextOptions


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
    labels: LabelsFile = None,
    resamples: Annotated[int, Option(min=100, help="The number of bootstrap resamples.")] = 2000,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    label_separator: LabelSeparator = None,
    format: Format = None,
    encoding_errors: EncodingErrors = "strict",
    method: OwnMethod = None,
    as_json: AsJson = False,
) -> None:
    """Compare two models or files of predictions by a paired bootstrap.

    Both are measured on the same resampled rows.
    """
    from .. import metrics
    from ..runtime import progress
    from .output import percent, print_json, print_table, say
    from .sources import parse_ks, ranked, read_for, refuse_swapped

    import_method(method)
    ks = parse_ks(k)
    refuse_swapped("compare FIRST SECOND DATA", first, second, data)
    with progress.shown():
        options = TextOptions(text_column, format, encoding_errors, label_column, label_separator)
        test, rankers = read_for(data, labels, first, second, options=options)
        a, b = (ranked(ranker, test, max(ks)) for ranker in rankers)
        names = [f"{family}@{at}" for family in ("P", "nDCG", "R") for at in ks]
        rows = metrics.compare(test.Y, a, b, names, n_resamples=resamples)
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
