"""The formats by name, and the check that a format uses the options given for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from ...errors import Argument, DataError
from .annif import read_folder
from .documents import ANY_FORMAT, UNLABELLED, Document, ReadOptions
from .jsonl import json_names, read_jsonl
from .lines import read_annif_tsv, read_document, read_fasttext, read_libmultilabel, read_lines
from .parquet import parquet_names, read_parquet
from .table import read_table, table_names

DELIMITERS = {"tsv": "\t", "csv": ",;"}

READERS: dict[str, Callable[[Path, ReadOptions], Iterator[Document]]] = {
    "jsonl": read_jsonl,
    "csv": read_table,
    "tsv": read_table,
    "fasttext": read_fasttext,
    "libmultilabel": read_libmultilabel,
    "annif-folder": read_folder,
    "annif-tsv": read_annif_tsv,
    "parquet": read_parquet,
    "lines": read_lines,
    "document": read_document,
}

# Readers of the field names, for the formats that have fields.
NAMES: dict[str, Callable[[Path, ReadOptions], tuple[str, str, list[str]]]] = {
    "jsonl": json_names,
    "csv": table_names,
    "tsv": table_names,
    "parquet": parquet_names,
}

SPLIT_FORMATS = (*NAMES, "libmultilabel")  # those whose labels may be in one string


def check_options(path: Path | str, format: str, options: ReadOptions) -> None:
    """Raise an error if the format does not use one of the given options."""
    # For each option, whether it is given, and the formats that use it.
    uses: dict[str, tuple[bool, tuple[str, ...]]] = {
        "text": (bool(options.text), (*NAMES,)),
        "labels": (options.labels is not None, (*NAMES, "annif-folder")),
        "id": (options.id is not None, (*NAMES,)),
        "label_separator": (options.labelled and bool(options.label_separator), SPLIT_FORMATS),
        "encoding": (not options.decoder.is_utf8, tuple(set(READERS) - {"parquet"})),
        "label_prefix": (options.labelled and options.label_prefix != "__label__", ("fasttext",)),
    }
    for name, (is_given, formats) in uses.items():
        if is_given and format not in formats:
            message = "{path} is {kind}, which does not use {argument}; leave it out, or pass {format}."
            raise DataError(message, path=path, kind=format, argument=Argument(name), format=ANY_FORMAT)
    if format in ("lines", "document") and options.labelled:
        message = "{path}: the format {kind} has no labels; read it with {unlabelled}."
        raise DataError(message, path=path, kind=format, unlabelled=UNLABELLED)
