"""The options for texts, and texts from a file or from standard input."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Option

from ..display import harmless
from ..errors import DataError, DataWarning
from ..storage.files import near_path
from .standard_input import has_several_lines, standard_input, with_display_name

if TYPE_CHECKING:
    from ..base import XMCEstimator
    from ..data import Document, Texts

TextColumn = Annotated[
    list[str] | None,
    Option(
        "--text-column",
        metavar="NAME",
        help="The field or column of texts; repeat it to join several.  [default: detected by name]",
    ),
]
IdColumn = Annotated[
    str | None,
    Option("--id-column", help="The field or column of the ids of texts.  [default: detected by name]"),
]
LabelColumn = Annotated[
    str | None,
    Option(
        "--label-column", metavar="NAME", help="The field or column of labels.  [default: detected by name]"
    ),
]
LabelSeparator = Annotated[
    str | None, Option("--label-separator", help="The separator between the labels in a cell.")
]
Format = Annotated[
    str | None,
    Option(
        "--format",
        help="The format of texts: jsonl, csv, tsv, fasttext, libmultilabel, annif-folder, annif-tsv, "
        "parquet, lines, document (one whole file).  [default: detected from the content]",
    ),
]
Encoding = Annotated[str, Option("--encoding", help="The encoding of texts, such as latin-1 or utf-16.")]
EncodingErrors = Annotated[
    str,
    Option(
        "--encoding-errors",
        help="Bytes that are not in the encoding: strict is an error, replace reads � instead.",
    ),
]
Vectorizer = Annotated[
    str | None,
    Option(
        "--vectorizer",
        help="The vectorizer of texts: tfidf, or hashing, which stores no vocabulary.  [default: tfidf]",
    ),
]
Analyzer = Annotated[
    str | None,
    Option(
        "--analyzer",
        metavar="NAME",
        help="The terms of texts: words or stems; -stops leaves stop words out, +pairs adds pairs of words, "
        "+ngrams character n-grams, such as stems-stops+pairs.  [default: auto, chosen on held-out texts]",
    ),
]
MaxWords = Annotated[
    int | None,
    Option(
        "--max-words", min=1, help="The words of a text to read.  [default: auto, chosen on held-out texts]"
    ),
]
FieldWeights = Annotated[
    list[float] | None,
    Option(
        "--field-weight",
        metavar="NUMBER",
        help="How often words of a --text-column count; repeat it for each, in the same order.  "
        "[default: auto, chosen on held-out texts]",
    ),
]
GivenText = Annotated[str | None, Option("--text", help="A text, instead of DATA.")]

OPTIONS = {  # how messages name arguments on the command line
    "text": "--text-column",
    "labels": "--label-column",
    "label_separator": "--label-separator",
    "format": "--format",
    "id": "--id-column",
    "errors": "--encoding-errors",
    "encoding": "--encoding",
    "vocabulary": "--vocabulary",
    "analyzer": "--analyzer",
    "max_words": "--max-words",
    "field_weights": "--field-weight",
    "labelled=False": "`exmlds predict`",
}
STREAMABLE = (None, "jsonl", "lines")  # values of --format that allow answers line by line


Language = Annotated[
    str | None,
    Option(
        metavar="CODE",
        help="The language in which labels are named, such as en.  [default: the main one of the vocabulary]",
    ),
]


def analysis(
    analyzer: str | None, max_words: int | None, field_weights: list[float] | None
) -> dict[str, Any]:
    """The parameters of a `TextClassifier` that the options for terms set; others keep their defaults."""
    given = {"analyzer": analyzer, "max_words": max_words, "field_weights": field_weights}
    return {name: value for name, value in given.items() if value is not None}


class TextOptions(NamedTuple):
    """The options of a command for texts, named as the arguments of `open_texts`."""

    text: list[str] | None = None
    format: str | None = None
    errors: str = "strict"
    labels: str | None = None
    label_separator: str | None = None
    id: str | None = None
    encoding: str = "utf-8"

    def holds_texts(self, path: Path) -> bool:
        """Whether a file or folder holds texts, by these options or by its content."""
        from ..data import is_text

        return self.format is not None or self.encoding != "utf-8" or is_text(path)

    def is_streamable(self) -> bool:
        """Whether standard input can be answered line by line."""
        return self.format in STREAMABLE and self.encoding == "utf-8"

    def check_given_text(self, text: str | None) -> None:
        """Check a text that is given on the command line: no option applies, and it should not be a path."""
        if text is not None and self != TextOptions():
            raise DataError("--text is used as it is; the options for files of texts do not apply.")
        if text is not None and os.path.isfile(text):
            message = f"{text} is a file, but --text takes the words of a text; leave out --text to read it."
            warnings.warn(message, DataWarning, stacklevel=2)

    def check_numbers(self, source: object) -> None:
        """Raise an error if any option is set: none applies to numbers."""
        if self != TextOptions():
            raise DataError(f"{source} holds numbers; the options for texts do not apply.")


def takes_texts(model: XMCEstimator) -> bool:
    from .. import TextClassifier

    return isinstance(model, TextClassifier)


def opened(path: Path, options: TextOptions, *, labelled: bool = True) -> Texts:
    """Open the texts of a file with the options of a command."""
    from ..data import open_texts
    from ..data.text import first_lines, start_of

    texts = open_texts(path, **options._asdict(), labelled=labelled)
    if options.format is None and texts.format == "lines" and len(first_lines(start_of(path))) > 1:
        _say_lines(with_display_name(str(path)))
    return texts


def _say_lines(name: str) -> None:
    """Say that lines were taken for texts, because a file of several lines may be one text."""
    message = f"{name} is read as one text per line; pass --format document if it is one text, or"
    print(f"exmlds: {harmless(message)} --format lines if this is right.", file=sys.stderr)


def stream_standard_input(
    options: TextOptions, report: Callable[[int, DataError], None]
) -> Iterator[Document]:
    """Yield documents from standard input as their lines arrive; `report` is called for a bad line."""
    from ..data.text import stream_texts

    several = options.format is None and has_several_lines()
    is_said = options.format is not None

    def say_lines(line: int) -> None:
        nonlocal is_said
        if not is_said and (several or line > 1):
            _say_lines("standard input")
            is_said = True

    yield from stream_texts(
        standard_input(),
        "standard input",
        text=options.text,
        format=options.format,
        errors=options.errors,
        id=options.id,
        report=report,
        found_text=say_lines,
    )


def check_kind(model: XMCEstimator, name: Path, source: Path, options: TextOptions) -> None:
    """Raise an error unless the data holds texts for a model of texts, or numbers for any other model."""
    from ..data.text import require_documents

    if not source.exists():
        raise DataError(f"{source}: there is no such file.{near_path(source)}")
    if source.is_file() and not source.stat().st_size:
        raise DataError(f"{source} is empty.")
    holds_texts = options.holds_texts(source)
    if takes_texts(model) and not holds_texts:
        if source.is_dir():
            require_documents(source)
        raise DataError(f"{name} was trained on texts, but {source} holds numbers.")
    if not takes_texts(model) and holds_texts:
        raise DataError(f"{name} was trained on features, but {source} holds texts.")
    if not holds_texts:
        options.check_numbers(source)


def set_language(fitted: Any, model: Path, language: str | None) -> None:
    """Let a model name its labels in this language, if one is given."""
    if language is None:
        return
    if getattr(fitted, "vocabulary_", None) is None:
        raise DataError(f"{model} has no vocabulary that --language could use; train it with --vocabulary.")
    fitted.set_params(language=language)
