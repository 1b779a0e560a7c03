"""Annif's corpus folder: one file per document, with its subjects in a file beside it."""

from __future__ import annotations

import json
import re
import unicodedata
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from ...errors import Argument, DataError, DataWarning, some
from ...storage.files import listing, reading
from .decoding import SHOWN
from .documents import (
    FORMATTED_ENDINGS,
    LABELS_BY_NAME,
    UNLABELLED,
    Document,
    ReadOptions,
    bare_uri,
    begins_with_uri,
    filled,
    unique,
    whole_text,
)
from .jsonl import json_document, row_of

_NAME = re.compile(r"([^.].*)\.(txt|json|tsv|key)(\.gz)?", re.IGNORECASE)
_HEADER_CELLS = {"uri", "url", "label", "labels", "name", "subject", "subjects", "subject_uri", "notation"}


class CorpusFile(NamedTuple):
    """A file of a corpus: a document, or the subjects of one.

    stem : its name without the ending
    kind : txt, json, tsv or key
    """

    path: Path
    stem: str
    kind: str

    @property
    def key(self) -> str:
        """The stem by which documents and subjects are matched; macOS writes ö as o and an accent."""
        return unicodedata.normalize("NFC", self.stem)


def corpus_file(path: Path) -> CorpusFile | None:
    """The part that a file has in a corpus, by its name; None if it has none."""
    match = _NAME.fullmatch(path.name)
    return CorpusFile(path, match[1], match[2].lower()) if match else None


class Corpus(NamedTuple):
    """The files of a folder: its documents in order, and the files of subjects."""

    documents: list[CorpusFile]
    subjects: list[CorpusFile]

    @classmethod
    def of(cls, folder: Path) -> Corpus:
        """The .txt documents of a folder, or its .json documents if there are no .txt files."""
        try:
            named = [
                file for path in sorted(folder.iterdir()) if (file := corpus_file(path)) and path.is_file()
            ]
        except OSError as error:
            raise DataError(f"{folder}: cannot be read ({error.strerror}).") from None
        objects = [file for file in named if file.kind == "json"]
        documents = [file for file in named if file.kind == "txt"]
        if not documents and objects and _holds_a_text(objects[0].path):
            documents = objects
        return cls(documents, [file for file in named if file.kind in ("tsv", "key")])

    def files_of_subjects(self) -> dict[Path, list[CorpusFile]]:
        """The files with the subjects of each document, by its path; the first one is read.

        Like Annif, it prefers .tsv to .key.
        """
        by_key: dict[str, list[CorpusFile]] = {}
        for file in self.subjects:
            by_key.setdefault(file.key, []).append(file)
        return {
            document.path: sorted(
                by_key.get(document.key, []),
                key=lambda file: (file.stem != document.stem, file.kind == "key"),
            )
            for document in self.documents
            if document.kind == "txt"
        }

    def has_names_only(self) -> bool:
        """Whether all subjects are in .key files, which hold names and no URIs."""
        return {files[0].kind for files in self.files_of_subjects().values() if files} == {"key"}


def require_documents(folder: Path) -> Corpus:
    """The files of a folder; raise an error if it has no documents."""
    corpus = Corpus.of(folder)
    if corpus.documents:
        return corpus
    advice = "name a file in it"
    if _formatted(folder):
        advice = "save the texts of its documents as .txt files"
    elif (paths := list(folder.iterdir())) and all(path.is_dir() for path in paths):
        advice = "name one of its folders, or put all documents into one"
    raise DataError(f"{folder} holds no documents (.txt files); {advice}.{listing(folder)}")


def _holds_a_text(document: Path) -> bool:
    """Whether a JSON file is a document: a folder may hold other JSON files."""
    with reading(document) as file:
        raw = file.read()
    try:
        row = json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and "text" in row


def check_folder(folder: Path, options: ReadOptions) -> None:
    """Raise an error if the folder cannot be read with these options; warn of files that are left out."""
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; annif-folder needs a folder of doc.txt or doc.json.")
    if options.labels not in (None, "uri", "label"):
        message = '{labels} must be "uri" or "label" for an Annif folder. Got {got!r} instead.'
        raise DataError(message, labels=Argument("labels"), got=options.labels)
    corpus = require_documents(folder)
    for one, other in pairwise(sorted(corpus.documents, key=lambda document: document.stem)):
        if one.stem == other.stem:
            raise DataError(f"{folder} has both {one.path.name} and {other.path.name}; remove one of them.")
    stems = {document.stem for document in corpus.documents}
    if left_out := sorted(path.name for path in _formatted(folder) if path.stem not in stems):
        n, names = len(left_out), some(left_out, SHOWN)
        _warn(f"{folder}: {n:,} documents that are no plain text (.txt) are left out: {names}.")
    if options.labelled and corpus.documents[0].kind == "txt":
        _check_subjects(folder, corpus, options)


def _formatted(folder: Path) -> list[Path]:
    """The files of a folder that are PDFs, of a word processor or the like, by their endings."""
    return [path for path in folder.iterdir() if path.suffix.lower() in FORMATTED_ENDINGS and path.is_file()]


def _check_subjects(folder: Path, corpus: Corpus, options: ReadOptions) -> None:
    by_document = corpus.files_of_subjects()
    read = [files[0] for files in by_document.values() if files]
    if not read:
        first = corpus.documents[0]
        message = (
            "{folder} has no labels beside its documents: {document} needs {stem}.tsv or {stem}.key. "
            "Name a file in the folder, or read texts without labels with {unlabelled}."
        )
        values = {"folder": folder, "document": first.path.name, "stem": first.stem}
        raise DataError(message, **values, unlabelled=UNLABELLED)
    kinds = {file.kind for file in read}
    if kinds == {"key"} and options.labels == "uri":
        message = (
            "The subjects of {folder} are in .key files, which hold names and no URIs. Leave out {labels}."
        )
        raise DataError(message, folder=folder, labels=Argument("labels"))
    if kinds == {"key", "tsv"} and options.labels != "label":
        message = "{folder} has .key files, which name labels without URIs. Pass {labels} to use names."
        raise DataError(message, folder=folder, labels=LABELS_BY_NAME)
    several = [files[0].path.name for files in by_document.values() if len(files) > 1]
    if several:
        names = some(several, SHOWN)
        _warn(f"{folder}: {len(several):,} documents have several files of subjects; those read are {names}.")
    used = {file.path for files in by_document.values() for file in files}
    if alone := [file.path.name for file in corpus.subjects if file.path not in used]:
        _warn(f"{folder}: {len(alone):,} files of subjects have no document (.txt): {some(alone, SHOWN)}.")


def _warn(message: str) -> None:
    warnings.warn(message, DataWarning, stacklevel=4)


def read_folder(folder: Path, options: ReadOptions) -> Iterator[Document]:
    """Yield the documents; if labels are read, warn after the last one of those without subjects."""
    corpus = Corpus.of(folder)
    subjects = corpus.files_of_subjects() if options.labelled else {}
    headers: list[str] = []
    without: list[str] = []
    for file in corpus.documents:
        text = whole_text(file.path, options.decoder)
        if file.kind == "json":
            document = _read_json(text, options, str(file.path))._replace(id=file.path.name)
        else:
            found = subjects.get(file.path)
            labels = unique(_subject_names(found[0], options, headers)) if found else []
            document = Document(text, labels, str(file.path), file.path.name)
        if not document.labels:
            without.append(file.path.name)
        yield document
    if headers:
        names = some(headers, SHOWN)
        _warn(f"{folder}: the first line of {len(headers):,} .tsv files is a header and is skipped: {names}.")
    if options.labelled and without:
        _warn(
            f"{folder}: {len(without):,} of {len(corpus.documents):,} documents have no subjects: "
            f"{some(without, SHOWN)}. No label is learnt from them, and metrics at k count 0 for them."
        )


def _read_json(text: str, options: ReadOptions, where: str) -> Document:
    """Read a document from one object, {"text": …, "subjects": [{"uri": …, "label": …}, …]}."""
    row = row_of(where, text)
    names = row.get("subjects") or []
    if options.labels == "label" and isinstance(names, list):
        names = [subject.get("label") if isinstance(subject, dict) else subject for subject in names]
    fields = options._replace(text=("text",), labels="subjects" if options.labelled else None)
    return json_document(where, text, {**row, "subjects": names}, fields)


def _subject_names(file: CorpusFile, options: ReadOptions, headers: list[str]) -> Iterator[str]:
    """Yield the subjects in a file; its name is added to headers if it has a header line."""
    lines = list(filled(file.path, options.decoder))
    if file.kind == "key":
        yield from (line for _, line in lines)
        return
    if _has_header([line for _, line in lines]):
        headers.append(file.path.name)
        del lines[0]
    for where, line in lines:
        uri, tab, rest = line.partition("\t")
        if options.labels != "label":
            if not bare_uri(uri.strip()):
                message = "{where}: there is no URI before the name. Add it, or pass {labels} to use names."
                raise DataError(message, where=where, labels=LABELS_BY_NAME)
            yield bare_uri(uri.strip())
        elif tab:
            yield rest.partition("\t")[0]
        else:
            raise DataError(f"{where}: there is no name after the URI. A line is `<uri><TAB>name`.")


def _has_header(lines: list[str]) -> bool:
    """Whether the first line has the names of columns, or is the only one without a URI."""
    if not lines:
        return False
    if {cell.strip().casefold() for cell in lines[0].split("\t")} <= _HEADER_CELLS:
        return True
    has_uri = [begins_with_uri(line) for line in lines]
    return len(lines) > 1 and not has_uri[0] and all(has_uri[1:])
