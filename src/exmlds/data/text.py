"""Texts with their labels, read one after another.

    jsonl          {"text": "…", "labels": ["a", "b"]} a line; "label" may be one string
    csv, tsv       a header and rows; a quoted cell may run over several lines
    fasttext       __label__a __label__b text
    libmultilabel  id<TAB>a b<TAB>text, or a b<TAB>text
    annif-tsv      text<TAB><uri> <uri>
    annif-folder   doc.txt with doc.tsv (<uri><TAB>name a line) or doc.key (a name a line)
    parquet        columns, as in a table; needs pip install "exmlds[parquet]"
    lines          a text a line, without labels

They are UTF-8, gzipped or not, and told by content. A line ends at \\n or \\r\\n and nowhere else. Labels
lose the blanks around them, empty ones are left out, repeated ones are taken once.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

from .. import progress
from ..errors import DataError
from ..files import PathLike, reading

TEXT_NAMES = ("text", "body", "content", "document", "abstract", "title")
LABEL_NAMES = ("labels", "label", "tags", "tag", "categories", "category", "subjects", "keywords", "topics")
DELIMITERS = {"tsv": "\t", "csv": ",;"}

START = 1 << 16  # bytes that tell the format
SEEN = 64  # words of a line that tell whether it is numbers
LARGEST_CELL = 2**31 - 1  # the csv module keeps its limit in a C long, which has 32 bits on Windows
BATCH = 256  # rows of Parquet at a time
PARQUET = b"PAR1"
ZIP = b"PK\x03\x04"  # what an .npz file is
BOM = b"\xef\xbb\xbf"
OTHER_BOMS = (b"\xff\xfe", b"\xfe\xff")  # of UTF-16 and UTF-32

_NUMBERS = re.compile(rb"-?[0-9,]+(:\S*)?")
_PAIR = re.compile(rb"[0-9]+:\S*")
_JSON = re.compile(rb"\s*(\{|\[\s*\{)")
_URI = re.compile(r"<[^<>\s]+>|https?://\S+")
_DOCUMENT = re.compile(r"([^.].*)\.txt(\.gz)?")


class Document(NamedTuple):
    """One text.

    text : as it stands in the file, "" where it is empty
    labels : each once, in the order of the file; [] where there are none
    where : the file and the line (of Parquet, the row), for messages
    """

    text: str
    labels: list[str]
    where: str


class _Plan(NamedTuple):
    """How to read: what was asked for, then what the file has told."""

    text: tuple[str, ...]  # fields or columns; () is to be guessed, or the format has none
    labels: str | None
    label_separator: str | None
    label_prefix: str
    labelled: bool
    errors: str
    delimiter: str = ""


class Texts:
    """The documents of a file or a folder. Every iteration reads it again; nothing is held in memory.

    path : what is read
    format : the name of its format, as above
    text, labels : the fields or columns in use, () and None where the format has none
    """

    def __init__(self, path: Path, format: str, plan: _Plan) -> None:
        self.path, self.format = path, format
        self.text, self.labels = plan.text, plan.labels
        self._plan = plan

    def __iter__(self) -> Iterator[Document]:
        documents = _READERS[self.format](self.path, self._plan)
        first = next(documents, None)
        if first is None:
            raise DataError(f"{self.path} holds no documents.")
        yield first
        yield from documents

    def __repr__(self) -> str:
        fields = f", text: {' + '.join(self.text)}" if self.text else ""
        fields += f", labels: {self.labels}" if self.labels else ""
        return f"Texts({self.path}, {self.format}{fields})"


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
        tag, categories, category, subjects, keywords, topics. Of an Annif folder, the column of doc.tsv:
        "uri", which is taken if nothing is said, or "label"
    label_separator : what stands between labels in a string. If not said: a cell of csv or tsv that begins
        with `[` is a JSON list, one that holds a `|` is split there, any other is split at `;`, and none at a
        comma; a string in jsonl and parquet is one label; libmultilabel has blanks
    label_prefix : what labels begin with in fasttext
    format : one of those above, where it is not to be told by content
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
    if isinstance(text, str):
        text = (text,)
    if (text is not None and not text) or label_separator == "" or not label_prefix:
        raise DataError("text, label_separator and label_prefix must not be empty.")
    if errors not in ("strict", "replace"):
        raise DataError(f"errors must be 'strict' or 'replace'. Got {errors!r} instead.")
    if format is not None and format not in _READERS:
        raise DataError(f"format must be one of {', '.join(_READERS)}. Got {format!r} instead.")
    path = Path(path)
    plan = _Plan(
        tuple(text or ()), labels if labelled else None, label_separator, label_prefix, labelled, errors
    )
    if format is None and path.is_dir():
        format = "annif-folder"
    if format == "annif-folder":
        _check_options(path, format, plan)
        _check_folder(path, plan)
        return Texts(path, format, plan)
    start = _start(path)
    if not start:
        raise DataError(f"{path} is empty.")
    _check_encoding(path, start)
    format = format or _told(path, start, plan)
    _check_options(path, format, plan)
    if format in DELIMITERS:
        plan = plan._replace(delimiter=_delimiter(_sample(start), DELIMITERS[format], plan))
    if format in _NAMES:
        plan = _with_fields(plan, *_NAMES[format](path, plan))
    return Texts(path, format, plan)


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


def is_text(path: PathLike) -> bool:
    """Whether a file or a folder holds texts, not numbers in one of the formats of `read_xc`.

    A file of numbers has a first row of nothing but ids and `id:value`, and most of its rows hold some. An
    empty file holds no texts.
    """
    path = Path(path)
    if path.is_dir():
        documents = _documents(path)
        with_subjects = any(_subjects(document) for document in documents)
        numeric = any(_is_numeric(_start(document)) for document in documents[:20])
        return with_subjects or (bool(documents) and not numeric)
    start = _start(path)
    if start.startswith((PARQUET, *OTHER_BOMS)):
        return True
    return bool(start.strip()) and b"\0" not in start and not _is_numeric(start)


def _start(path: Path) -> bytes:
    with reading(path) as file:
        return file.read(START).removeprefix(BOM)


def _check_encoding(path: Path, start: bytes) -> None:
    if start.startswith(OTHER_BOMS):
        raise DataError(f"{path} is UTF-16 or UTF-32; save it as UTF-8.")
    if b"\0" in start and not start.startswith((PARQUET, ZIP)):
        raise DataError(f"{path} is not text: it holds NUL bytes. Is it the right file, and UTF-8?")


def _told(path: Path, start: bytes, plan: _Plan) -> str:
    """The format: what can be nothing else first, plain lines last."""
    if start.startswith(PARQUET):
        return "parquet"
    if _JSON.match(start):
        return "jsonl"
    if _is_numeric(start):
        raise DataError(f'{path} holds numbers, not texts. Read it with read_xc, or say format="…".')
    lines = _sample(start)
    if not lines:
        raise DataError(f"{path} holds no documents.")
    table = _named_table(lines, plan)
    if table:
        return table
    if any(line.startswith(plan.label_prefix) for line in lines):
        return "fasttext"
    if plan.text or plan.labels:  # no other format has fields
        return max(DELIMITERS, key=lambda kind: max(len(_header(lines, d)) for d in DELIMITERS[kind]))
    table = _partly_named_table(lines)
    if table:
        return table
    if _have_uris(lines):
        return "annif-tsv"
    if _in_two_or_three(lines, plan.labelled):
        return "libmultilabel"
    table = _other_table(lines)
    if table:
        return table
    if plan.labelled:
        known = ", ".join(_READERS)
        raise DataError(
            f'{path} is none of the formats that are read: {known}. Say format="…" if it is one of them, '
            "or labelled=False if it is plain text, a document a line."
        )
    return "lines"


def _sample(start: bytes) -> list[str]:
    """The lines that are not empty, without the last one where it is cut off."""
    lines = start.decode("utf-8", "replace").split("\n")
    if len(start) >= START - len(BOM) and len(lines) > 1:
        lines.pop()
    return [line.removesuffix("\r") for line in lines if line not in ("", "\r")]


def _is_numeric(start: bytes) -> bool:
    """Whether the first row is numbers and most rows hold some: a file of numbers with a fault is no text."""
    if start.startswith(ZIP):
        return True
    rows = [line.partition(b"#")[0].split(None, SEEN)[:SEEN] for line in start.split(b"\n")]
    rows = [row for row in rows if row]
    if not rows or not all(map(_NUMBERS.fullmatch, rows[0])):
        return False
    some = [all(map(_NUMBERS.fullmatch, row)) or any(map(_PAIR.fullmatch, row)) for row in rows]
    return 2 * sum(some) > len(rows)


def _have_uris(lines: list[str]) -> bool:
    """Whether most of what stands behind a tab is URIs."""
    behind = [words for line in lines if (words := line.partition("\t")[2].split())]
    return bool(behind) and 2 * sum(all(map(_URI.fullmatch, words)) for words in behind) > len(behind)


def _in_two_or_three(lines: list[str], labelled: bool) -> bool:
    """Whether lines have the tabs of LibMultiLabel: most, or all where it may be plain text."""
    tabs = lines[0].count("\t")
    alike = sum(line.count("\t") == tabs for line in lines)
    return tabs in (1, 2) and (2 * alike >= len(lines) if labelled else alike == len(lines))


def _header(lines: Iterable[str], delimiter: str) -> list[str]:
    return next(_cells(lines, delimiter), [])


def _cells(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    _allow_large_cells()
    try:
        yield from csv.reader(lines, delimiter=delimiter)
    except csv.Error:
        return


def _named_table(lines: list[str], plan: _Plan) -> str | None:
    """A table whose header has the columns that are wanted."""
    for kind, delimiters in DELIMITERS.items():
        if any(_has_columns(_header(lines, delimiter), plan) for delimiter in delimiters):
            return kind
    return None


def _has_columns(header: list[str], plan: _Plan) -> bool:
    names = [cell.strip() for cell in header]
    if not plan.labelled and names != header:
        return False  # prose has a blank after a comma
    text = set(plan.text) <= set(names) if plan.text else _guess(names, TEXT_NAMES)
    labels = not plan.labelled or (plan.labels in names if plan.labels else _guess(names, LABEL_NAMES))
    return bool(text and labels)


def _partly_named_table(lines: list[str]) -> str | None:
    """A table with words for a header, one of them usual; it could be taken for a line of LibMultiLabel."""
    for kind, delimiters in DELIMITERS.items():
        for delimiter in delimiters:
            header = _header(lines, delimiter)
            words = len(header) > 1 and all(len(cell.split()) == 1 for cell in header)
            if words and _guess(header, TEXT_NAMES + LABEL_NAMES):
                return kind
    return None


def _other_table(lines: list[str]) -> str | None:
    """A table by its looks: a row of names, and as many cells in most rows."""
    for kind, delimiters in DELIMITERS.items():
        for delimiter in delimiters:
            header, *rows = list(_cells(lines, delimiter)) or [[]]
            names = len(header) > 1 and len(set(header)) == len(header)
            names = names and all(cell and cell == cell.strip() and len(cell) <= 60 for cell in header)
            if names and rows and 2 * sum(len(row) == len(header) for row in rows) >= len(rows):
                return kind
    return None


def _delimiter(lines: list[str], among: str, plan: _Plan) -> str:
    return max(among, key=lambda d: (_has_columns(_header(lines, d), plan), len(_header(lines, d))))


def _check_options(path: Path, format: str, plan: _Plan) -> None:
    """Refuse what the format has no use for."""
    said = {
        "text": bool(plan.text) and format not in _NAMES,
        "labels": plan.labels is not None and format not in (*_NAMES, "annif-folder"),
        "label_separator": plan.label_separator is not None
        and plan.labelled
        and format not in (*_NAMES, "libmultilabel"),
        "label_prefix": plan.label_prefix != "__label__" and plan.labelled and format != "fasttext",
    }
    for option, useless in said.items():
        if useless:
            raise DataError(
                f'{path} is {format}, which has no use for {option}; leave it out, or say format="…".'
            )
    if format == "lines" and plan.labelled:
        raise DataError(f"{path}: plain lines have no labels; say labelled=False.")


def _guess(names: Iterable[str], usual: Sequence[str]) -> str | None:
    known = {name.casefold(): name for name in reversed(list(names))}
    return next((known[name] for name in usual if name in known), None)


def _with_fields(plan: _Plan, where: str, noun: str, names: list[str]) -> _Plan:
    """The plan with the fields or columns in it, which must be there."""
    there = f"There are: {_listed(names)}."
    no_header = ', or format="…" if this is no header' if plan.delimiter else ""
    for name in (*plan.text, *([plan.labels] if plan.labels else [])):
        if names.count(name) != 1:
            count = "no" if name not in names else "more than one"
            raise DataError(f"{where}: there is {count} {noun} {name!r}. {there} Say one of them{no_header}.")
    text = plan.text or tuple(filter(None, [_guess(names, TEXT_NAMES)]))
    if not text:
        raise DataError(
            f'{where}: no {noun} has a usual name for texts. {there} Say text="…" (--text-column){no_header}.'
        )
    labels = (plan.labels or _guess(names, LABEL_NAMES)) if plan.labelled else None
    if plan.labelled and labels is None:
        raise DataError(
            f"{where}: no {noun} has a usual name for labels. {there} "
            f'Say labels="…" (--label-column), or labelled=False if there are none{no_header}.'
        )
    return plan._replace(text=text, labels=labels)


def _listed(names: Iterable[str]) -> str:
    shown = [name if len(name) <= 40 else name[:40] + "…" for name in names]
    return ", ".join(shown[:20]) + (", …" if len(shown) > 20 else "")


def _lines(path: Path, errors: str) -> Iterator[tuple[str, str]]:
    """Where each line stands, and the line with its end."""
    name = str(path)
    with reading(path) as file:
        for number, raw in enumerate(file, start=1):
            if number == 1:
                raw = raw.removeprefix(BOM)
            where = f"{name}:{number}"
            yield where, _decoded(raw, errors, where)


def _decoded(raw: bytes, errors: str, where: str) -> str:
    try:
        return raw.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{where}: not UTF-8 ({error.reason} at byte {error.start + 1}). "
            'Save it as UTF-8, or say errors="replace" to go on with � in its place.'
        ) from None


def _bare(line: str) -> str:
    return line[:-2] if line.endswith("\r\n") else line.removesuffix("\n")


def _filled(path: Path, errors: str) -> Iterator[tuple[str, str]]:
    """Lines without their ends, blank ones left out."""
    for where, line in _lines(path, errors):
        line = _bare(line)
        if line:
            yield where, line


def _read_lines(path: Path, plan: _Plan) -> Iterator[Document]:
    for where, line in _lines(path, plan.errors):
        yield Document(_bare(line), [], where)


def _read_fasttext(path: Path, plan: _Plan) -> Iterator[Document]:
    """A word with the prefix is a label wherever it stands, as it is for fastText itself."""
    prefix, escaped = plan.label_prefix, re.escape(plan.label_prefix)
    # the prefix first, so that the search for it is fast; then that no word goes on into it
    label = re.compile(rf"{escaped}(?<![^ \t]{escaped})([^ \t]*)[ \t]*")
    for where, line in _lines(path, plan.errors):
        line = _bare(line)
        names: list[str] = []
        if prefix in line:
            names = label.findall(line)
            line = label.sub("", line).strip(" \t") if names else line
        yield Document(line, _unique(names) if plan.labelled else [], where)


def _read_libmultilabel(path: Path, plan: _Plan) -> Iterator[Document]:
    n_cells = 0
    for where, line in _filled(path, plan.errors):
        cells = line.split("\t")
        n_cells = n_cells or len(cells)
        if len(cells) != n_cells or n_cells not in (2, 3):
            wanted = f"{n_cells} cells, as the first line" if n_cells in (2, 3) else "2 or 3 cells"
            raise DataError(
                f"{where}: got {_count(cells)} instead of {wanted}. "
                "A line is `id<TAB>label label<TAB>text` or `label label<TAB>text`, without other tabs."
            )
        names = cells[-2].split(plan.label_separator or " ") if plan.labelled else []
        yield Document(cells[-1], _unique(names), where)


def _read_annif_tsv(path: Path, plan: _Plan) -> Iterator[Document]:
    for where, line in _filled(path, plan.errors):
        text, tab, uris = line.partition("\t")
        if plan.labelled and not tab:
            raise DataError(f"{where}: no tab. A line is `text<TAB><uri> <uri>`.")
        yield Document(text, _unique(map(_uri, uris.split())) if plan.labelled else [], where)


def _uri(cell: str) -> str:
    return cell[1:-1] if cell.startswith("<") and cell.endswith(">") else cell


def _count(cells: Sequence[str]) -> str:
    return f"{len(cells)} cell{'s' * (len(cells) != 1)}"


def _documents(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if _DOCUMENT.fullmatch(path.name) and path.is_file())
    except OSError as error:
        raise DataError(f"{folder}: cannot be read ({error.strerror}).") from None


def _subjects(document: Path) -> Path | None:
    """The file with the labels of a document; Annif, too, looks for .tsv first."""
    stem = document.name.removesuffix(".gz").removesuffix(".txt")
    files = (document.with_name(stem + suffix) for suffix in (".tsv", ".tsv.gz", ".key", ".key.gz"))
    return next((path for path in files if path.is_file()), None)


def _check_folder(folder: Path, plan: _Plan) -> None:
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; annif-folder is one of doc.txt with doc.tsv or doc.key.")
    if plan.labels not in (None, "uri", "label"):
        raise DataError(f'labels must be "uri" or "label" for an Annif folder. Got {plan.labels!r} instead.')
    documents = _documents(folder)
    if not documents:
        raise DataError(f"{folder} is a folder without documents, doc.txt; name a file in it.")
    if not plan.labelled:
        return
    kinds = {path.name.removesuffix(".gz")[-4:] for path in map(_subjects, documents) if path}
    if not kinds:
        raise DataError(
            f"{folder} has no labels beside its documents: {documents[0].name} needs a doc.tsv or a doc.key. "
            "Name a file in it, or say labelled=False."
        )
    if ".key" in kinds and plan.labels != "label" and (".tsv" in kinds or plan.labels == "uri"):
        raise DataError(
            f"{folder} has .key files, which name labels without URIs. "
            'Say labels="label" to take names everywhere.'
        )


def _read_folder(folder: Path, plan: _Plan) -> Iterator[Document]:
    for document in _documents(folder):
        with reading(document) as file:
            raw = file.read().removeprefix(BOM)
        _check_encoding(document, raw)
        subjects = _subjects(document) if plan.labelled else None
        labels = _unique(_subject_names(subjects, plan)) if subjects else []
        yield Document(_decoded(raw, plan.errors, str(document)), labels, str(document))


def _subject_names(path: Path, plan: _Plan) -> Iterator[str]:
    is_table = path.name.removesuffix(".gz").endswith(".tsv")
    for where, line in _filled(path, plan.errors):
        uri, tab, rest = line.partition("\t")
        if not is_table:
            yield line
        elif plan.labels != "label":
            yield _uri(uri.strip())
        elif tab:
            yield rest.partition("\t")[0]
        else:
            raise DataError(f"{where}: no name behind the URI. A line is `<uri><TAB>name`.")


def _json_rows(path: Path, plan: _Plan) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for where, line in _lines(path, plan.errors):
        if line.isspace() or not line:
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            column = min(error.pos, len(_bare(line))) + 1
            raise DataError(
                f"{where}:{column}: not JSON ({error.msg}). "
                'Write one object a line, {"text": …, "labels": […]}.'
            ) from None
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}: cannot be read as JSON ({error}).") from None
        if not isinstance(row, dict):
            raise DataError(f'{where}: not an object. Write one a line, {{"text": …, "labels": […]}}.')
        yield where, line, row


def _json_names(path: Path, plan: _Plan) -> tuple[str, str, list[str]]:
    for where, _, row in _json_rows(path, plan):
        return where, "field", list(row)
    raise DataError(f"{path} holds no documents.")


def _read_jsonl(path: Path, plan: _Plan) -> Iterator[Document]:
    for where, line, row in _json_rows(path, plan):
        document = _document(row, plan, where)
        if "\\u" in line:
            document = _without_surrogates(document, plan.errors)
        yield document


def _document(row: Mapping[str, Any], plan: _Plan, where: str) -> Document:
    """null is an empty text, or no labels."""
    parts = []
    for name in plan.text:
        part = row[name] if name in row else _missing(row, name, where)
        if part is None:
            part = ""
        elif not isinstance(part, str):
            raise DataError(f"{where}: {name!r} is {_shown(part)}, not a text. Write it as a string.")
        parts.append(part)
    labels: list[str] = []
    if plan.labels is not None:
        value = row[plan.labels] if plan.labels in row else _missing(row, plan.labels, where)
        labels = _labels(value, plan.label_separator, where)
    return Document("\n".join(parts), labels, where)


def _missing(row: Mapping[str, Any], name: str, where: str) -> Any:
    raise DataError(
        f"{where}: there is no field {name!r}. There are: {_listed(row)}. "
        'Add it, "" or [] where it is empty, or choose the fields by text and labels.'
    )


def _without_surrogates(document: Document, errors: str) -> Document:
    """JSON can spell half a character, which no file can be written with."""
    try:
        "\n".join([document.text, *document.labels]).encode()
    except UnicodeEncodeError as error:
        if errors == "strict":
            half = f"\\u{ord(error.object[error.start]):04x}"
            raise DataError(
                f"{document.where}: {half} is half a character. "
                'Write both halves, or say errors="replace" to go on with � in its place.'
            ) from None
        return document._replace(text=_mended(document.text), labels=_unique(map(_mended, document.labels)))
    return document


def _mended(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _labels(value: Any, separator: str | None, where: str) -> list[str]:
    """The names in a list, in a string or in a number."""
    if value is None:
        return []
    if isinstance(value, str):
        return _unique(value.split(separator) if separator else [value])
    names = value if isinstance(value, list) else [value]
    return _unique([name if isinstance(name, str) else _number(name, where) for name in names])


def _number(name: Any, where: str) -> str:
    if type(name) is int or (isinstance(name, float) and math.isfinite(name)):
        return str(name)
    raise DataError(f"{where}: {_shown(name)} is not a label. Labels are strings or numbers.")


def _shown(value: Any) -> str:
    try:
        shown = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        shown = str(type(value).__name__)
    return shown if len(shown) <= 40 else shown[:40] + "…"


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([trimmed for name in names if (trimmed := name.strip())]))


def _cell_labels(cell: str, separator: str | None, where: str) -> list[str]:
    if separator is None:
        if cell.lstrip().startswith("["):
            return _labels(_json_list(cell, where), None, where)
        separator = "|" if "|" in cell else ";"
    return _unique(cell.split(separator))


def _json_list(cell: str, where: str) -> list[Any]:
    try:
        return json.loads(cell)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{where}: {_shown(cell)} is not a JSON list ({error}). "
            'Write ["a", "b"], or say label_separator="…" (--label-separator).'
        ) from None


def _allow_large_cells() -> None:
    """The limit is one for the whole process: raised, never lowered."""
    if csv.field_size_limit() < LARGEST_CELL:
        csv.field_size_limit(LARGEST_CELL)


def _table_rows(path: Path, plan: _Plan) -> Iterator[tuple[str, list[str]]]:
    """Where each row begins, and its cells."""
    _allow_large_cells()
    rows = csv.reader((line for _, line in _lines(path, plan.errors)), delimiter=plan.delimiter, strict=True)
    begins = 1
    while True:
        where = f"{path}:{begins}"
        try:
            cells = next(rows, None)
        except csv.Error as error:
            raise DataError(
                f"{where}: not a row of cells ({error}). "
                "Quote a cell that holds quotes or line ends, and write each quote inside it twice."
            ) from None
        if cells is None:
            return
        if cells:
            yield where, cells
        begins = rows.line_num + 1


def _table_names(path: Path, plan: _Plan) -> tuple[str, str, list[str]]:
    for where, cells in _table_rows(path, plan):
        return where, "column", [cell.strip() for cell in cells]
    raise DataError(f"{path} holds no documents.")


def _read_table(path: Path, plan: _Plan) -> Iterator[Document]:
    rows = _table_rows(path, plan)
    _, header = next(rows)
    names = [cell.strip() for cell in header]
    text = [names.index(name) for name in plan.text]
    labels = None if plan.labels is None else names.index(plan.labels)
    for where, cells in rows:
        if len(cells) != len(names):
            raise DataError(
                f"{where}: got {_count(cells)}, but the header has {_count(names)}. "
                f"Quote a cell that holds {plan.delimiter!r}, quotes or line ends."
            )
        cell = "" if labels is None else cells[labels]
        found = _cell_labels(cell, plan.label_separator, where)
        document = Document("\n".join([cells[column] for column in text]), found, where)
        yield _without_surrogates(document, plan.errors) if "\\u" in cell else document


@contextmanager
def _parquet(path: Path) -> Iterator[Any]:
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise DataError(
            f'{path}: Parquet needs pyarrow. Install it: pip install "exmlds[parquet]".'
        ) from None
    try:
        with ExitStack() as stack:
            file = stack.enter_context(reading(path))
            if isinstance(getattr(file, "raw", None), gzip.GzipFile):  # Parquet is read from its end
                packed, file = file, stack.enter_context(tempfile.TemporaryFile())
                shutil.copyfileobj(packed, file)
            yield stack.enter_context(parquet.ParquetFile(file))
    except arrow.ArrowException as error:
        raise DataError(f"{path}: cannot be read as Parquet ({error}). Fetch or write it again.") from None


def _parquet_names(path: Path, plan: _Plan) -> tuple[str, str, list[str]]:
    with _parquet(path) as file:
        return str(path), "column", file.schema_arrow.names


def _read_parquet(path: Path, plan: _Plan) -> Iterator[Document]:
    columns = list(dict.fromkeys([*plan.text, *([plan.labels] if plan.labels else [])]))
    number = 0
    with _parquet(path) as file:
        for batch in file.iter_batches(batch_size=BATCH, columns=columns):
            for row in batch.to_pylist():
                number += 1
                yield _document(row, plan, f"{path}:{number}")


_READERS: dict[str, Callable[[Path, _Plan], Iterator[Document]]] = {
    "jsonl": _read_jsonl,
    "csv": _read_table,
    "tsv": _read_table,
    "fasttext": _read_fasttext,
    "libmultilabel": _read_libmultilabel,
    "annif-folder": _read_folder,
    "annif-tsv": _read_annif_tsv,
    "parquet": _read_parquet,
    "lines": _read_lines,
}
_NAMES: dict[str, Callable[[Path, _Plan], tuple[str, str, list[str]]]] = {  # of the formats that have fields
    "jsonl": _json_names,
    "csv": _table_names,
    "tsv": _table_names,
    "parquet": _parquet_names,
}
