"""Readers of texts with labels. They stream: one document is in memory at a time.

    jsonl          one {"text": "…", "labels": ["a", "b"]} per line; "label" may be one
                   string, and labels may be Annif's objects, {"uri": "…"}
    csv, tsv       a header and rows; a quoted cell may span several lines
    fasttext       __label__a __label__b text
    libmultilabel  id<TAB>a b<TAB>text, or a b<TAB>text
    annif-tsv      text<TAB><uri> <uri>
    annif-folder   doc.txt with doc.tsv (<uri><TAB>name per line) or doc.key (one name per
                   line), or doc.json with a text and subjects,
                   {"text": "…", "subjects": [{"uri": "…", "label": "…"}]}; the case of the
                   endings does not matter
    parquet        columns, as in a table; needs pip install "exmlds[parquet]"
    lines          one text per line, without labels
    document       the whole file is one text, without labels; it is never detected

Files are UTF-8 or in a given encoding, plain or gzipped, and the format is detected from the content. Lines
end at \\n or \\r\\n only. Labels are stripped of surrounding whitespace and normalized to Unicode NFC; empty
labels are dropped, and duplicates are kept once. A document has the id of its field or column, of
LibMultiLabel's first cell, or its file name if the file is one document.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from ...errors import Argument, DataError, DataWarning
from ...runtime import progress
from ...storage.files import PathLike
from ...validation.targets import find_parts, find_unsplit
from ..read_log import log_reading
from .annif import Corpus, check_folder
from .annif import corpus_file as corpus_file
from .annif import require_documents as require_documents
from .decoding import BOM, Decoder
from .documents import OTHER_BOMS, PARQUET, Document, bare, check_encoding, formatted_kind, start_of
from .documents import ReadOptions as ReadOptions
from .documents import begins_with_uri as begins_with_uri
from .fields import with_fields
from .formats import DELIMITERS, NAMES, READERS, SPLIT_FORMATS, check_options
from .jsonl import json_document, row_of
from .sniff import first_lines, is_numeric, sniff_format, with_delimiter

SEEN = 1_000  # documents whose labels are checked for lists that were not split

__all__ = ["Document", "Texts", "is_text", "open_texts", "read_texts"]


class Texts:
    """An iterable over the documents of a file or a folder. Each iteration reads the file again.

    path : the file or folder
    format : the name of its format, as listed above
    text, labels, id : the fields or columns in use; () and None if the format has no fields
    """

    def __init__(self, path: Path, format: str, options: ReadOptions) -> None:
        self.path, self.format = path, format
        self.text, self.labels, self.id = options.text, options.labels, options.id
        self._options = options

    def __iter__(self) -> Iterator[Document]:
        self._options.decoder.damaged.clear()
        documents = log_reading(self.path, READERS[self.format](self.path, self._options))
        first = next(documents, None)
        if first is None:
            raise DataError(f"{self.path} holds no documents.")
        yield first
        if self._options.labelled and self.format in (*SPLIT_FORMATS, "annif-folder"):
            seen = [first.labels]
            for document in islice(documents, SEEN):
                seen.append(document.labels)
                yield document
            self._warn_of_lists(seen)
        yield from documents
        self._options.decoder.warn_of_damage(self.path)

    def _warn_of_lists(self, labels: list[list[str]]) -> None:
        """Warn if the labels of these documents look like lists, or like parts of labels that were split."""
        if self._options.label_separator and (parts := find_parts(labels)):
            warnings.warn(
                f"{self.path}: {parts.n:,} labels only follow one and the same label, such as "
                f"{parts.example!r} after {parts.before!r}. If {self._options.label_separator!r} is within "
                "labels too, they were split there: use another separator in the file.",
                DataWarning,
                stacklevel=3,
            )
        if unsplit := find_unsplit(labels):
            separator = unsplit.separator
            advice = (
                f'Pass label_separator="{separator}" (--label-separator "{separator}" on the command line)'
            )
            if self.format == "annif-folder":
                advice = "Write one label per line"
            warnings.warn(
                f"{self.path}: {unsplit.n:,} of the first {len(labels):,} documents have a label that looks "
                f"like a list of labels, such as {unsplit.example!r}; each is read as one label. {advice} "
                f"unless labels themselves may hold {separator!r}, as in 'Paris{separator} France'.",
                DataWarning,
                stacklevel=3,
            )

    def __repr__(self) -> str:
        return f"Texts({self.path}, {self.description})"

    @property
    def description(self) -> str:
        """The format and the fields in use, for messages."""
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
    id: str | None = None,
    encoding: str = "utf-8",
) -> Texts:
    """Open texts in any of the formats above, to iterate over their documents.

    Parameters
    ----------
    path : a file, or the folder of an Annif corpus
    text : the field or column with the text; several are joined by a newline. By default, the first existing
        one of text, body, content, document, abstract, title; case does not matter
    labels : the field or column with the labels. By default, the first existing one of labels, label, tags,
        tag, categories, category, subject_uris, subjects, subject, keywords, topics. For an
        Annif folder, "uri" (the default) or "label"
    label_separator : the separator between labels in a string. By default, a csv or tsv cell that begins with
        `[` is a JSON list, a cell that holds a `|` is split there, and any other cell is split at `;`, never
        at a comma; Annif's column subject_uris is split at spaces; a string in jsonl and parquet is one
        label; libmultilabel labels are split at spaces. There is a warning if labels look like lists.
        In every format, URIs in angle brackets, such as `<http://a>, <http://b>`, are split and lose them
    label_prefix : the prefix of labels in fasttext
    format : one of the formats above; by default it is detected from the content. Lines of two or three cells
        without a header are read as libmultilabel only if the last cell is clearly the text; otherwise the
        file is rejected as ambiguous
    labelled : if False, no labels are read or required, and a file in no other format is read as plain lines
    errors : "replace" reads � in place of bytes that are not in the encoding, and a warning names the files
        or lines; "strict" raises an error
    id : the field or column with the ids of the documents. By default, the first existing one of id, doc_id,
        document_id, identifier, or none
    encoding : the encoding of the files, as Python names it, such as "latin-1"

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "two.csv"
    >>> _ = path.write_text("title,tags\\nOn ants,biology|insects\\nOn tides,seas\\n")
    >>> [(document.text, document.labels) for document in open_texts(path)]
    [('On ants', ['biology', 'insects']), ('On tides', ['seas'])]
    """
    options = _checked_options(
        text, labels, label_separator, label_prefix, format, labelled, Decoder(encoding, errors), id
    )
    path = Path(path)
    if format is None and path.is_dir():
        format = "annif-folder"
    if format == "annif-folder":
        check_options(path, format, options)
        check_folder(path, options)
        return Texts(path, format, options)
    start = start_of(path, options.decoder)
    if not start:
        raise DataError(f"{path} is empty.")
    check_encoding(path, start)
    has_lines = format != "document" and not start.startswith(PARQUET)
    if has_lines and b"\r" in start.rstrip() and b"\n" not in start:
        raise DataError(f"{path} ends its lines in \\r alone; save it with \\n or \\r\\n.")
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
    decoder: Decoder,
    id: str | None,
) -> ReadOptions:
    """Check the arguments of `open_texts` that do not depend on the file."""
    if isinstance(text, str):
        text = (text,)
    if (text is not None and not text) or label_separator == "" or not label_prefix:
        named = {name: Argument(name) for name in ("text", "label_separator", "label_prefix")}
        raise DataError("{text}, {label_separator} and {label_prefix} must not be empty.", **named)
    if format is not None and format not in READERS:
        message = f"{{format}} must be one of {', '.join(READERS)}. Got {{got!r}} instead."
        raise DataError(message, format=Argument("format"), got=format)
    labels = labels if labelled else None
    return ReadOptions(tuple(text or ()), labels, label_separator, label_prefix, labelled, decoder, id)


def read_texts(path: PathLike, **options: Any) -> tuple[list[str], list[list[str]]]:
    """Read all texts and their labels into memory, with the options of `open_texts`."""
    opened = open_texts(path, **options)
    texts, labels = [], []
    with progress.stage(f"reading {opened.path.name}", None, "texts") as advance:
        for document in opened:
            texts.append(document.text)
            labels.append(document.labels)
            advance(1)
    return texts, labels


def stream_texts(
    file: Iterable[bytes],
    name: str,
    *,
    text: Sequence[str] | None = None,
    format: str | None = None,
    errors: str = "strict",
    id: str | None = None,
    report: Callable[[int, DataError], None] | None = None,
    found_text: Callable[[int], None] | None = None,
) -> Iterator[Document]:
    """Yield the documents of a stream, without labels, each as soon as its line arrives.

    If format is "jsonl", or if fields are given, every line is a JSON object; if format is "lines", every
    line is a text. Otherwise the first line that is not blank decides for all lines: they are objects if it
    is one. Blank lines between objects are skipped.

    report : called with the number of a line that cannot be read and its error; the line then gives an empty
        document. By default, the error is raised
    found_text : called with the number of each line that is a text, before its document is yielded
    """
    decoder = Decoder(errors=errors)
    options = _checked_options(text, None, None, "__label__", format, False, decoder, id)
    check_options(name, format or "jsonl", options)
    are_objects = None if format is None else format == "jsonl"
    if text or id:
        are_objects = True
    for number, raw in enumerate(file, start=1):
        where = f"{name}:{number}"
        document = Document("", [], where)
        try:
            line = decoder.decode(raw.removeprefix(BOM) if number == 1 else raw, where)
            is_blank = not line or line.isspace()
            if are_objects and is_blank:
                continue
            if are_objects is None and not is_blank:
                are_objects = _is_object(line)
            if are_objects:
                row = row_of(where, line)
                fields = with_fields(options, where, "field", list(row))
                document = json_document(where, line, row, fields)
            else:
                document = Document(bare(line), [], where)
                if found_text is not None and are_objects is False:
                    found_text(number)
        except DataError as error:
            if report is None:
                raise
            report(number, error)
        yield document
    decoder.warn_of_damage(name)


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def is_text(path: PathLike) -> bool:
    """Whether a file or a folder holds texts, and not numbers in one of the formats of `read_xc`.

    The first row of a file of numbers consists of ids and `id:value` pairs, and most of its rows hold some.
    An empty file holds no texts. A PDF or Word file counts as texts, so that `open_texts` says what to do.
    """
    path = Path(path)
    if path.is_dir():
        corpus = Corpus.of(path)
        numeric = any(is_numeric(start_of(document.path)) for document in corpus.documents[:20])
        return any(corpus.files_of_subjects().values()) or (bool(corpus.documents) and not numeric)
    start = start_of(path)
    if start.startswith((PARQUET, *OTHER_BOMS)) or formatted_kind(path, start):
        return True
    return bool(start.strip()) and b"\0" not in start and not is_numeric(start)
