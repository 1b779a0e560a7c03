"""Annif's corpus folder: one file per document, with its subjects in a file beside it."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

from ...errors import Argument, DataError, DataWarning
from ...storage.files import listing, reading
from .documents import (
    LABELS_BY_NAME,
    UNLABELLED,
    Document,
    ReadOptions,
    bare_uri,
    filled,
    unique,
    whole_text,
)
from .jsonl import json_document, row_of

SHOWN = 5  # names of documents in a warning
_DOCUMENT = re.compile(r"([^.].*)\.(txt|json)(\.gz)?")


def documents_in(folder: Path) -> list[Path]:
    """The .txt documents of a folder, or its .json documents if there are no .txt files."""
    try:
        found = sorted(path for path in folder.iterdir() if _DOCUMENT.fullmatch(path.name) and path.is_file())
    except OSError as error:
        raise DataError(f"{folder}: cannot be read ({error.strerror}).") from None
    texts = [path for path in found if not _is_json(path)]
    return texts or (found if found and _holds_a_text(found[0]) else [])


def require_documents(folder: Path) -> list[Path]:
    """The documents of a folder; raise an error if there are none."""
    if documents := documents_in(folder):
        return documents
    raise DataError(f"{folder} holds no documents (.txt files); name a file in it.{listing(folder)}")


def _is_json(document: Path) -> bool:
    return document.name.removesuffix(".gz").endswith(".json")


def _holds_a_text(document: Path) -> bool:
    """Whether a JSON file is a document: a folder may hold other JSON files."""
    with reading(document) as file:
        raw = file.read()
    try:
        row = json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and "text" in row


def subjects_of(document: Path) -> Path | None:
    """The file with the labels of a document. Like Annif, it prefers .tsv to .key."""
    stem = document.name.removesuffix(".gz").removesuffix(".txt")
    files = (document.with_name(stem + suffix) for suffix in (".tsv", ".tsv.gz", ".key", ".key.gz"))
    return next((path for path in files if path.is_file()), None)


def check_folder(folder: Path, options: ReadOptions) -> None:
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; annif-folder needs a folder of doc.txt or doc.json.")
    if options.labels not in (None, "uri", "label"):
        message = '{labels} must be "uri" or "label" for an Annif folder. Got {got!r} instead.'
        raise DataError(message, labels=Argument("labels"), got=options.labels)
    documents = require_documents(folder)
    names = {path.name for path in documents}
    twice = next((name for name in sorted(names) if f"{name}.gz" in names), None)
    if twice:
        raise DataError(f"{folder} has both {twice} and {twice}.gz; remove one of them.")
    if not options.labelled or _is_json(documents[0]):
        return
    kinds = {path.name.removesuffix(".gz")[-4:] for path in map(subjects_of, documents) if path}
    if not kinds:
        message = (
            "{folder} has no labels beside its documents: {document} needs a doc.tsv or a doc.key. "
            "Name a file in the folder, or read texts without labels with {unlabelled}."
        )
        raise DataError(message, folder=folder, document=documents[0].name, unlabelled=UNLABELLED)
    if ".key" in kinds and options.labels != "label" and (".tsv" in kinds or options.labels == "uri"):
        message = "{folder} has .key files, which name labels without URIs. Pass {labels} to use names."
        raise DataError(message, folder=folder, labels=LABELS_BY_NAME)


def read_folder(folder: Path, options: ReadOptions) -> Iterator[Document]:
    """Yield the documents; if labels are read, warn after the last one of those without subjects."""
    n_documents, without = 0, []
    for document in _documents(folder, options):
        n_documents += 1
        if not document.labels:
            without.append(str(document.id))
        yield document
    if options.labelled and without:
        some = ", ".join(without[:SHOWN]) + (", …" if len(without) > SHOWN else "")
        warnings.warn(
            f"{folder}: {len(without):,} of {n_documents:,} documents have no subjects: {some}. "
            "No label is learnt from them, and metrics at k count 0 for them.",
            DataWarning,
            stacklevel=3,
        )


def _documents(folder: Path, options: ReadOptions) -> Iterator[Document]:
    for document in documents_in(folder):
        where, text = str(document), whole_text(document, options.errors)
        if _is_json(document):
            yield _read_json(text, options, where)._replace(id=document.name)
            continue
        subjects = subjects_of(document) if options.labelled else None
        labels = unique(_subject_names(subjects, options)) if subjects else []
        yield Document(text, labels, where, document.name)


def _read_json(text: str, options: ReadOptions, where: str) -> Document:
    """Read a document from one object, {"text": …, "subjects": [{"uri": …, "label": …}, …]}."""
    row = row_of(where, text)
    names = row.get("subjects") or []
    if options.labels == "label" and isinstance(names, list):
        names = [subject.get("label") if isinstance(subject, dict) else subject for subject in names]
    fields = options._replace(text=("text",), labels="subjects" if options.labelled else None)
    return json_document(where, text, {**row, "subjects": names}, fields)


def _subject_names(path: Path, options: ReadOptions) -> Iterator[str]:
    is_table = path.name.removesuffix(".gz").endswith(".tsv")
    for where, line in filled(path, options.errors):
        uri, tab, rest = line.partition("\t")
        if not is_table:
            yield line
        elif options.labels != "label":
            if not bare_uri(uri.strip()):
                message = "{where}: there is no URI before the name. Add it, or pass {labels} to use names."
                raise DataError(message, where=where, labels=LABELS_BY_NAME)
            yield bare_uri(uri.strip())
        elif tab:
            yield rest.partition("\t")[0]
        else:
            raise DataError(f"{where}: there is no name after the URI. A line is `<uri><TAB>name`.")
