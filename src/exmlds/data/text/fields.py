"""Fields and columns: choosing those with texts and labels, and making a document of a row."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...errors import Argument, DataError
from .decoding import REPLACE
from .documents import ANY_FORMAT, UNLABELLED, Document, ReadOptions, bare_uri, split_labels, unique

TEXT_NAMES = ("text", "body", "content", "document", "abstract", "title")
LABEL_NAMES = (
    *("labels", "label", "tags", "tag", "categories", "category"),
    *("subject_uris", "subjects", "subject", "keywords", "topics"),
)
ID_NAMES = ("id", "doc_id", "document_id", "identifier")


def guess(names: Iterable[str], usual: Sequence[str]) -> str | None:
    by_name = {name.casefold(): name for name in reversed(list(names))}
    return next((by_name[name] for name in usual if name in by_name), None)


def with_fields(options: ReadOptions, where: str, noun: str, names: list[str]) -> ReadOptions:
    """Add the text and label fields to the options; raise an error if they do not exist."""
    known = {"where": where, "noun": noun, "names": _listed(names), "format": ANY_FORMAT}
    no_header = ", or {format} if this is not a header" if options.delimiter else ""
    text = options.text or tuple(filter(None, [guess(names, TEXT_NAMES)]))
    if not text:
        message = "{where}: no {noun} has a standard name for texts. There are: {names}. Pass {text}"
        raise DataError(f"{message}{no_header}.", text=Argument("text", "…"), **known)
    labels = (options.labels or guess(names, LABEL_NAMES)) if options.labelled else None
    if options.labelled and labels is None:
        message = "{where}: no {noun} has a standard name for labels. There are: {names}. Pass {labels}"
        message += f"{no_header}. Read texts without labels with {{unlabelled}}."
        raise DataError(message, labels=Argument("labels", "…"), unlabelled=UNLABELLED, **known)
    others = [name for name in names if name not in (*text, labels) and names.count(name) == 1]
    id = options.id or guess(others, ID_NAMES)
    for name in (*text, *filter(None, [labels, id])):
        if names.count(name) != 1:
            number = "more than one" if name in names else "no"
            message = "{where}: there is {number} {noun} {name!r}. There are: {names}. Choose one of them"
            raise DataError(f"{message}{no_header}.", number=number, name=name, **known)
    return options._replace(text=text, labels=labels, id=id)


def _listed(names: Iterable[str]) -> str:
    shown = [name if len(name) <= 40 else name[:40] + "…" for name in names]
    return ", ".join(shown[:20]) + (", …" if len(shown) > 20 else "")


def document_of(row: Mapping[str, Any], options: ReadOptions, where: str) -> Document:
    """Make a document of a row. A null is an empty text, or no labels."""
    parts = [_value(row, name, where, options) for name in options.text]
    for name, part in zip(options.text, parts):
        if part is not None and not isinstance(part, str):
            raise DataError(f"{where}: {name!r} is {shown(part)}, not a text. Write it as a string.")
    value = None if options.labels is None else _value(row, options.labels, where, options)
    labels = labels_of(value, options.label_separator, where)
    own_id = None if options.id is None else id_of(row.get(options.id))
    return joined([part or "" for part in parts], labels, where, own_id)


def joined(texts: Sequence[str], labels: list[str], where: str, own_id: str | None) -> Document:
    """A document of the texts of one or several fields."""
    return Document("\n".join(texts), labels, where, own_id, tuple(texts) if len(texts) > 1 else ())


def id_of(value: Any) -> str | None:
    """An id as a string; None if it is missing or empty, or neither a string nor a whole number."""
    return str(value).strip() or None if isinstance(value, str) or type(value) is int else None


def _value(row: Mapping[str, Any], name: str, where: str, options: ReadOptions) -> Any:
    if name in row:
        return row[name]
    message = (
        "{where}: there is no field {name!r}. There are: {names}. "
        'Add it, "" or [] where it is empty, or choose fields with {text}'
    )
    message += " and {labels}." if options.labelled else "."
    fields = {"text": Argument("text"), "labels": Argument("labels")}
    raise DataError(message, where=where, name=name, names=_listed(row), **fields)


def without_surrogates(document: Document, errors: str) -> Document:
    """Reject or replace lone surrogates: JSON can encode them, but UTF-8 files cannot hold them."""
    try:
        "\n".join([document.text, *document.labels, document.id or ""]).encode()
    except UnicodeEncodeError as error:
        if errors == "strict":
            half = f"\\u{ord(error.object[error.start]):04x}"
            message = "{where}: {half} is half of a surrogate pair. Write both, or pass {errors} to read �."
            raise DataError(message, where=document.where, half=half, errors=REPLACE) from None
        labels, id = unique(map(_mended, document.labels)), document.id and _mended(document.id)
        fields = tuple(map(_mended, document.fields))
        return document._replace(text=_mended(document.text), labels=labels, id=id, fields=fields)
    return document


def _mended(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def labels_of(value: Any, separator: str | None, where: str) -> list[str]:
    """The label names in a list, a string or a number; the name of an Annif object is its URI."""
    if value is None:
        return []
    if isinstance(value, str):
        return split_labels(value, separator)
    names = value if isinstance(value, list) else [value]
    return unique([name if isinstance(name, str) else _name_of(name, where) for name in names])


def _name_of(value: Any, where: str) -> str:
    if type(value) is int or (isinstance(value, float) and math.isfinite(value)):
        return str(value)
    uri = value.get("uri") if isinstance(value, dict) else None
    if isinstance(uri, str) and bare_uri(uri.strip()):
        return bare_uri(uri.strip())
    wanted = "Labels are strings or numbers, or objects with a uri"
    raise DataError(f"{where}: {shown(value)} is not a label. {wanted}.")


def shown(value: Any) -> str:
    try:
        shown = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        shown = str(type(value).__name__)
    return shown if len(shown) <= 40 else shown[:40] + "…"
