"""Texts with their labels, read one after another.

    jsonl          {"text": "…", "labels": ["a", "b"]} a line; "label" may be one string, and labels may be
                   Annif's, {"uri": "…"}
    csv, tsv       a header and rows; a quoted cell may run over several lines
    fasttext       __label__a __label__b text
    libmultilabel  id<TAB>a b<TAB>text, or a b<TAB>text
    annif-tsv      text<TAB><uri> <uri>
    annif-folder   doc.txt with doc.tsv (<uri><TAB>name a line) or doc.key (a name a line), or doc.json,
                   {"text": "…", "subjects": [{"uri": "…", "label": "…"}]}
    parquet        columns, as in a table; needs pip install "exmlds[parquet]"
    lines          a text a line, without labels

They are UTF-8, gzipped or not, and told by content. A line ends at \\n or \\r\\n and nowhere else. Labels
lose the blanks around them, empty ones are left out, repeated ones are taken once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from ...errors import Argument, DataError
from ...runtime import progress
from ...storage.files import PathLike
from ..read_log import log_reading
from .annif import check_folder, documents_in, subjects_of
from .documents import OTHER_BOMS, PARQUET, Document, bare, check_encoding, numbered, start_of
from .documents import ReadOptions as ReadOptions
from .fields import with_fields
from .formats import DELIMITERS, NAMES, READERS, check_options
from .jsonl import json_document, row_of
from .sniff import first_lines, is_numeric, sniff_format, with_delimiter

__all__ = ["Document", "Texts", "is_text", "open_texts", "read_texts"]


class Texts:
    """The documents of a file or a folder. Every iteration reads it again; nothing is held in memory.

    path : what is read
    format : the name of its format, as above
    text, labels : the fields or columns in use, () and None where the format has none
    """

    def __init__(self, path: Path, format: str, options: ReadOptions) -> None:
        self.path, self.format = path, format
        self.text, self.labels = options.text, options.labels
        self._options = options

    def __iter__(self) -> Iterator[Document]:
        documents = log_reading(self.path, READERS[self.format](self.path, self._options))
        first = next(documents, None)
        if first is None:
            raise DataError(f"{self.path} holds no documents.")
        yield first
        yield from documents

    def __repr__(self) -> str:
        return f"Texts({self.path}, {self.description})"

    @property
    def description(self) -> str:
        """The format and what is read of it, in words."""
        fields = f", text: {' + '.join(self.text)}" if self.text else ""
        return self.format + fields + (f", labels: {self.labels}" if self.labels else "")


def open_texts(
    path: PathLike,
    *,
    text: str | Sequence[str] | None = None,
    labels: str | None = None,
    label_separator: str | None = None,
    label_prefix: str = "__label__",
    format: str | None = None,
    labelled: bool = True,
    errors: Literal["strict", "replace"] = "strict",
) -> Texts:
    """Open texts in any of the formats above, to read them document by document.

    Parameters
    ----------
    path : a file, or the folder of an Annif corpus
    text : the field or column with the text; of several, the texts are joined by a line end. If not said, the
        first that there is of text, body, content, document, abstract, title, in capitals or not
    labels : the field or column with the labels. If not said, the first that there is of labels, label, tags,
        tag, categories, category, subject_uris, subjects, keywords, topics. Of an Annif folder, "uri", which
        is taken if nothing is said, or "label"
    label_separator : what stands between labels in a string. If not said: a cell of csv or tsv that begins
        with `[` is a JSON list, one that holds a `|` is split there, any other is split at `;`, and none at a
        comma; in subject_uris, a column of Annif's, URIs have blanks between them; a string in jsonl and
        parquet is one label; libmultilabel has blanks
    label_prefix : what labels begin with in fasttext
    format : one of those above, where it is not to be told by content. Lines of two or three cells without a
        header are libmultilabel only where the last cells clearly are the texts, and refused otherwise
    labelled : False reads no labels and asks for none; what is no other format is then plain lines
    errors : "replace" puts � in the place of what is not UTF-8, instead of an error

    Example
    -------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "two.csv"
    >>> _ = path.write_text("title,tags\\nOn ants,biology|insects\\nOn tides,seas\\n")
    >>> [(document.text, document.labels) for document in open_texts(path)]
    [('On ants', ['biology', 'insects']), ('On tides', ['seas'])]
    """
    options = _checked_options(text, labels, label_separator, label_prefix, format, labelled, errors)
    path = Path(path)
    if format is None and path.is_dir():
        format = "annif-folder"
    if format == "annif-folder":
        check_options(path, format, options)
        check_folder(path, options)
        return Texts(path, format, options)
    start = start_of(path)
    if not start:
        raise DataError(f"{path} is empty.")
    check_encoding(path, start)
    format = format or sniff_format(path, start, options)
    check_options(path, format, options)
    if format in DELIMITERS:
        options = with_delimiter(options, first_lines(start), DELIMITERS[format])
    if format in NAMES:
        options = with_fields(options, *NAMES[format](path, options))
    return Texts(path, format, options)


def _checked_options(
    text: str | Sequence[str] | None,
    labels: str | None,
    label_separator: str | None,
    label_prefix: str,
    format: str | None,
    labelled: bool,
    errors: str,
) -> ReadOptions:
    """What is asked for, checked."""
    if isinstance(text, str):
        text = (text,)
    if (text is not None and not text) or label_separator == "" or not label_prefix:
        raise DataError(
            "{text}, {separator} and {prefix} must not be empty.",
            text=Argument("text"),
            separator=Argument("label_separator"),
            prefix=Argument("label_prefix"),
        )
    if errors not in ("strict", "replace"):
        raise DataError(
            "{argument} must be 'strict' or 'replace'. Got {got!r} instead.",
            argument=Argument("errors"),
            got=errors,
        )
    if format is not None and format not in READERS:
        raise DataError(
            "{argument} must be one of {formats}. Got {got!r} instead.",
            argument=Argument("format"),
            formats=", ".join(READERS),
            got=format,
        )
    labels = labels if labelled else None
    return ReadOptions(tuple(text or ()), labels, label_separator, label_prefix, labelled, errors)


def read_texts(path: PathLike, **options: Any) -> tuple[list[str], list[list[str]]]:
    """Read all texts and their labels, with the options of `open_texts`."""
    opened = open_texts(path, **options)
    texts, labels = [], []
    with progress.stage(f"reading {opened.path.name}", None, "texts") as advance:
        for document in opened:
            texts.append(document.text)
            labels.append(document.labels)
            advance(1)
    return texts, labels


def texts_as_they_come(
    file: Iterable[bytes],
    name: str,
    *,
    text: Sequence[str] | None = None,
    format: str | None = None,
    errors: str = "strict",
) -> Iterator[Document]:
    """The documents of a stream, without labels, each as soon as its line is there.

    A line that begins with `{` is a JSON object, any other is a text; with format "jsonl", or with fields to
    take texts from, all are objects, and with "lines" none is.
    """
    options = _checked_options(text, None, None, "__label__", format, False, errors)
    check_options(name, format or "jsonl", options)
    all_objects = format == "jsonl" or bool(text)
    for where, line in numbered(file, name, errors):
        if all_objects and (not line or line.isspace()):
            continue
        if all_objects or (format is None and line.lstrip().startswith("{")):
            row = row_of(where, line)
            yield json_document(where, line, row, with_fields(options, where, "field", list(row)))
        else:
            yield Document(bare(line), [], where)


def is_text(path: PathLike) -> bool:
    """Whether a file or a folder holds texts, not numbers in one of the formats of `read_xc`.

    A file of numbers has a first row of nothing but ids and `id:value`, and most of its rows hold some. An
    empty file holds no texts.
    """
    path = Path(path)
    if path.is_dir():
        documents = documents_in(path)
        with_subjects = any(subjects_of(document) for document in documents)
        numeric = any(is_numeric(start_of(document)) for document in documents[:20])
        return with_subjects or (bool(documents) and not numeric)
    start = start_of(path)
    if start.startswith((PARQUET, *OTHER_BOMS)):
        return True
    return bool(start.strip()) and b"\0" not in start and not is_numeric(start)
