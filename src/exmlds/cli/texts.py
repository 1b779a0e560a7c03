"""Options about texts, and texts from a file, a pipe or the command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DataError

if TYPE_CHECKING:
    from ..contract import XMCEstimator
    from ..data import Texts

TextColumn = Annotated[
    str | None,
    typer.Option("--text-column", help="The field or column of texts.  [default: told by its name]"),
]
LabelColumn = Annotated[
    str | None,
    typer.Option("--label-column", help="The field or column of labels.  [default: told by its name]"),
]
LabelSeparator = Annotated[
    str | None, typer.Option("--label-separator", help="What stands between labels in a cell.")
]
GivenText = Annotated[str | None, typer.Option("--text", help="A text, in the place of DATA.")]


def takes_texts(model: XMCEstimator) -> bool:
    from .. import TextClassifier

    return isinstance(model, TextClassifier)


def opened(path: Path, text: str | None, label: str | None, separator: str | None, **options: Any) -> Texts:
    """The texts of a file, by the options of a command."""
    from ..data import open_texts

    return open_texts(path, text=text, labels=label, label_separator=separator, **options)


def lines_of_a_pipe() -> Iterator[str]:
    """Texts from standard input as they come, one a line; a JSON object's `text`."""
    import json

    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            text = line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise DataError(f"Line {number} of standard input is not UTF-8.") from None
        if text.startswith("{"):
            try:
                found = json.loads(text)
            except ValueError:
                found = {}
            if isinstance(found.get("text"), str):
                text = found["text"]
        yield text


def check_kind(model: XMCEstimator, name: Path, source: Path) -> None:
    """Texts are for models of texts, numbers for the others."""
    from ..data import is_text

    if not source.exists():
        raise DataError(f"{source}: there is no such file.")
    if source.is_file() and not source.stat().st_size:
        raise DataError(f"{source} is empty.")
    if takes_texts(model) and not is_text(source):
        raise DataError(f"{name} was trained on texts, but {source} holds numbers.")
    if not takes_texts(model) and is_text(source):
        raise DataError(f"{name} was trained on features, but {source} holds texts.")
