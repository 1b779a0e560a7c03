"""Fields and columns: which hold texts and labels, and the document in a row of them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...errors import DataError
from ...wording import for_no_labels, named, say
from .documents import Document, ReadOptions, bare_uri, unique

TEXT_NAMES = ("text", "body", "content", "document", "abstract", "title")
LABEL_NAMES = (
    *("labels", "label", "tags", "tag", "categories", "category"),
    *("subject_uris", "subjects", "keywords", "topics"),
)


def guess(names: Iterable[str], usual: Sequence[str]) -> str | None:
    known = {name.casefold(): name for name in reversed(list(names))}
    return next((known[name] for name in usual if name in known), None)


def with_fields(options: ReadOptions, where: str, noun: str, names: list[str]) -> ReadOptions:
    """The plan with the fields or columns in it, which must be there."""
    there = f"There are: {_listed(names)}."
    no_header = f", or {say('format')} if this is no header" if options.delimiter else ""
    text = options.text or tuple(filter(None, [guess(names, TEXT_NAMES)]))
    if not text:
        raise DataError(
            f"{where}: no {noun} has a usual name for texts. {there} Say {say('text')}{no_header}."
        )
    labels = (options.labels or guess(names, LABEL_NAMES)) if options.labelled else None
    if options.labelled and labels is None:
        raise DataError(
            f"{where}: no {noun} has a usual name for labels. {there} "
            f"Say {say('labels')}{no_header}. Texts without labels are for {for_no_labels()}."
        )
    for name in (*text, *([labels] if labels else [])):
        if names.count(name) != 1:
            count = "no" if name not in names else "more than one"
            raise DataError(f"{where}: there is {count} {noun} {name!r}. {there} Say one of them{no_header}.")
    return options._replace(text=text, labels=labels)


def _listed(names: Iterable[str]) -> str:
    shown = [name if len(name) <= 40 else name[:40] + "…" for name in names]
    return ", ".join(shown[:20]) + (", …" if len(shown) > 20 else "")


def document_of(row: Mapping[str, Any], options: ReadOptions, where: str) -> Document:
    """null is an empty text, or no labels."""
    parts = []
    for name in options.text:
        part = row[name] if name in row else _missing(row, name, where, options)
        if part is None:
            part = ""
        elif not isinstance(part, str):
            raise DataError(f"{where}: {name!r} is {shown(part)}, not a text. Write it as a string.")
        parts.append(part)
    labels: list[str] = []
    if options.labels is not None:
        value = (
            row[options.labels] if options.labels in row else _missing(row, options.labels, where, options)
        )
        labels = labels_of(value, options.label_separator, where)
    return Document("\n".join(parts), labels, where)


def _missing(row: Mapping[str, Any], name: str, where: str, options: ReadOptions) -> Any:
    fields = named("text") + (f" and {named('labels')}" if options.labelled else "")
    raise DataError(
        f"{where}: there is no field {name!r}. There are: {_listed(row)}. "
        f'Add it, "" or [] where it is empty, or choose fields by {fields}.'
    )


def without_surrogates(document: Document, errors: str) -> Document:
    """JSON can spell half a character, which no file can be written with."""
    try:
        "\n".join([document.text, *document.labels]).encode()
    except UnicodeEncodeError as error:
        if errors == "strict":
            half = f"\\u{ord(error.object[error.start]):04x}"
            raise DataError(
                f"{document.where}: {half} is half a character. "
                f"Write both halves, or say {say('errors', 'replace')} to go on with � in its place."
            ) from None
        return document._replace(text=_mended(document.text), labels=unique(map(_mended, document.labels)))
    return document


def _mended(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def labels_of(value: Any, separator: str | None, where: str) -> list[str]:
    """The names in a list, in a string or in a number; of an object, as Annif has it, its URI."""
    if value is None:
        return []
    if isinstance(value, str):
        return unique(value.split(separator) if separator else [value])
    names = value if isinstance(value, list) else [value]
    return unique([name if isinstance(name, str) else _name_of(name, where) for name in names])


def _name_of(value: Any, where: str) -> str:
    if type(value) is int or (isinstance(value, float) and math.isfinite(value)):
        return str(value)
    uri = value.get("uri") if isinstance(value, dict) else None
    if isinstance(uri, str) and bare_uri(uri.strip()):
        return bare_uri(uri.strip())
    raise DataError(
        f"{where}: {shown(value)} is not a label. Labels are strings or numbers, or objects with a uri."
    )


def shown(value: Any) -> str:
    try:
        shown = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        shown = str(type(value).__name__)
    return shown if len(shown) <= 40 else shown[:40] + "…"
