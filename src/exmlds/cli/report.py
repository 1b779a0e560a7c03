"""The command `exmlds report`."""

from __future__ import annotations

from codecs import BOM_UTF8
from pathlib import Path
from typing import Annotated

from typer import Option

from .arguments import ByteOrderMark, LabelsFile, MetricKs, ModelFolder, TestData
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


def report(
    model: ModelFolder,
    data: TestData,
    output: Annotated[Path, Option("-o", "--output", help="The HTML file to write.")],
    k: MetricKs = "1 3 5",
    labels: LabelsFile = None,
    title: Annotated[
        str | None, Option(help="The title of the page.  [default: the method and DATA]")
    ] = None,
    examples: Annotated[int, Option(min=0, help="The number of example mistakes, shown with texts.")] = 12,
    label_table: Annotated[
        Path | None, Option(help="A CSV file to write the measures of all labels to.")
    ] = None,
    bom: ByteOrderMark = False,
    text_column: TextColumn = None,
    id_column: IdColumn = None,
    label_column: LabelColumn = None,
    label_separator: LabelSeparator = None,
    format: Format = None,
    encoding: Encoding = "utf-8",
    encoding_errors: EncodingErrors = "strict",
    method: OwnMethod = None,
    trusted: Trusted = None,
) -> None:
    """Write an evaluation report as one HTML file: metrics, charts, mistakes, labels and a map, offline."""
    from ..data import propensity_parameters
    from ..errors import DataError
    from ..report import make, page
    from ..runtime import progress
    from ..storage import model_folder
    from ..storage.files import replacing
    from .output import say
    from .prediction_writer import refuse_spreadsheet
    from .sources import check_output, display_name, locate, parse_ks, read_for, refuse_swapped

    ks = parse_ks(k)
    refuse_swapped("report MODEL DATA -o FILE", model, data)
    model_folder.read_manifest(model)  # raises an error that explains why it is not a model
    if output == Path("-"):
        raise DataError("-o must be a file; a report cannot be written to standard output.")
    if label_table == output:
        raise DataError("-o and --label-table name the same file.")
    if bom and label_table is None:
        raise DataError("--bom is for the file of --label-table; name one.")
    refuse_spreadsheet(label_table, ".csv")
    for path in (output, label_table):
        check_output(path, locate(data, "test"), labels)
    if output.suffix.lower() not in (".html", ".htm", ""):
        raise DataError(f"{output}: a report is one HTML file; end the name in .html.")
    with progress.shown(), replacing(output) as file:
        test, (fitted,) = read_for(
            data,
            labels,
            model,
            options=TextOptions(
                text_column, format, encoding_errors, label_column, label_separator, id_column, encoding
            ),
            method=method,
            trusted=trusted,
        )
        assert not isinstance(fitted, Path)
        made = make(
            *(fitted, test.X, test.Y),
            k=ks,
            propensity=propensity_parameters(data.lower()),
            title=title,
            n_examples=examples,
        )
        if title is None:
            made = made._replace(title=f"{made.method} on {display_name(data)}")
        file.write(page.rendered(made))
        if label_table is not None:
            with replacing(label_table) as table:
                table.write(BOM_UTF8 if bom else b"")
                made.label_counts.write_csv(table)
    say(f"Wrote {output}; open it in a browser.")
