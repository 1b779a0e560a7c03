"""The formats by name, and the check that a format uses the options given for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from ...errors import Argument, DataError
from .annif import read_folder
from .documents import UNLABELLED, Document, ReadOptions
from .jsonl import json_names, read_jsonl
from .lines import read_annif_tsv, read_fasttext, read_libmultilabel, read_lines
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
}

# Readers of the field names, for the formats that have fields.
NAMES: dict[str, Callable[[Path, ReadOptions], tuple[str, str, list[str]]]] = {
    "jsonl": json_names,
    "csv": table_names,
    "tsv": table_names,
    "parquet": parquet_names,
}


def check_options(path: Path | str, format: str, options: ReadOptions) -> None:
    """Raise an error if the format does not use one of the given options."""
    unused = {
        "text": bool(options.text) and format not in NAMES,
        "labels": options.labels is not None and format not in (*NAMES, "annif-folder"),
        "label_separator": options.label_separator is not None
        and options.labelled
        and format not in (*NAMES, "libmultilabel"),
        "label_prefix": options.label_prefix != "__label__" and options.labelled and format != "fasttext",
    }
    for name, is_unused in unused.items():
        if is_unused:
            raise DataError(
                "{path} is {kind}, which does not use {argument}; leave it out, or pass {format}.",
                path=path,
                kind=format,
                argument=Argument(name),
                format=Argument("format", "…"),
            )
    if format == "lines" and options.labelled:
        raise DataError(
            "{path}: plain lines have no labels; read them with {unlabelled}.",
            path=path,
            unlabelled=UNLABELLED,
        )
