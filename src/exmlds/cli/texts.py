"""Options about texts, and texts from a file, a pipe or the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ..errors import DataError

if TYPE_CHECKING:
    from ..base import XMCEstimator
    from ..data import Texts

TextColumn = Annotated[
    list[str] | None,
    typer.Option(
        "--text-column",
        help="The field or column of texts; may be repeated to join several.  [default: told by its name]",
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option("--label-column", help="The field or column of labels.  [default: told by its name]"),
]
LabelSeparator = Annotated[
    str | None, typer.Option("--label-separator", help="What stands between labels in a cell.")
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="Of texts: jsonl, csv, tsv, fasttext, libmultilabel, annif-folder, annif-tsv, parquet, lines.  "
        "[default: told by content]",
    ),
]
EncodingErrors = Annotated[
    str,
    typer.Option(
        "--encoding-errors", help="Of what is not UTF-8: strict refuses it, replace puts � in its place."
    ),
]
GivenText = Annotated[str | None, typer.Option("--text", help="A text, in the place of DATA.")]

OPTIONS = {  # as messages name them, by the arguments of `open_texts`
    "text": "--text-column",
    "labels": "--label-column",
    "label_separator": "--label-separator",
    "format": "--format",
    "errors": "--encoding-errors",
    "labelled=False": "`exmlds predict`",
}
AS_THEY_COME = (None, "jsonl", "lines")  # formats whose lines can be answered one by one


class TextOptions(NamedTuple):
    """What the options of a command say about texts, by the arguments of `open_texts`."""

    text: list[str] | None = None
    format: str | None = None
    errors: str = "strict"
    labels: str | None = None
    label_separator: str | None = None

    def check_given_text(self, text: str | None) -> None:
        """A text on the command line has no use for any of it, either."""
        if text is not None and self != TextOptions():
            raise DataError("A --text is taken as it is; options about files of texts do not apply.")

    def check_numbers(self, source: object) -> None:
        """Numbers have no use for any of it."""
        if self != TextOptions():
            raise DataError(f"{source} holds numbers; options about texts do not apply.")


def takes_texts(model: XMCEstimator) -> bool:
    from .. import TextClassifier

    return isinstance(model, TextClassifier)


def opened(path: Path, options: TextOptions, *, labelled: bool = True) -> Texts:
    """The texts of a file, by the options of a command."""
    from ..data import open_texts

    return open_texts(path, **options._asdict(), labelled=labelled)


def lines_of_a_pipe(options: TextOptions) -> Iterator[str]:
    """Texts from standard input as they come, one a line; of a JSON object, its text."""
    from ..data.text import texts_as_they_come
    from .sources import standard_input

    documents = texts_as_they_come(
        standard_input(), "standard input", text=options.text, format=options.format, errors=options.errors
    )
    for document in documents:
        yield document.text


def check_kind(model: XMCEstimator, name: Path, source: Path, options: TextOptions) -> None:
    """Texts are for models of texts, numbers for the others."""
    from ..data import is_text

    if not source.exists():
        raise DataError(f"{source}: there is no such file.")
    if source.is_file() and not source.stat().st_size:
        raise DataError(f"{source} is empty.")
    holds_texts = options.format is not None or is_text(source)
    if takes_texts(model) and not holds_texts:
        raise DataError(f"{name} was trained on texts, but {source} holds numbers.")
    if not takes_texts(model) and holds_texts:
        raise DataError(f"{name} was trained on features, but {source} holds texts.")
    if not holds_texts:
        options.check_numbers(source)
