"""Reading Parquet files with pyarrow."""

from __future__ import annotations

import gzip
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from ...errors import DataError
from ...storage.files import reading
from .documents import Document, ReadOptions
from .fields import document_of

BATCH = 256  # rows read at a time


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise DataError(
            f'{path}: Parquet needs pyarrow. Install it: pip install "exmlds[parquet]".'
        ) from None
    try:
        with ExitStack() as stack:
            file = stack.enter_context(reading(path))
            # Parquet is read from its end, so a gzipped file must be unpacked first.
            if isinstance(getattr(file, "raw", None), gzip.GzipFile):
                packed, file = file, stack.enter_context(tempfile.TemporaryFile())
                shutil.copyfileobj(packed, file)
            yield stack.enter_context(parquet.ParquetFile(file))
    except (arrow.ArrowException, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as Parquet ({error}). Download or write it again.") from None


def parquet_names(path: Path, options: ReadOptions) -> tuple[str, str, list[str]]:
    with _opened(path) as file:
        return str(path), "column", file.schema_arrow.names


def read_parquet(path: Path, options: ReadOptions) -> Iterator[Document]:
    columns = list(dict.fromkeys(filter(None, [*options.text, options.labels, options.id])))
    number = 0
    with _opened(path) as file:
        for batch in file.iter_batches(batch_size=BATCH, columns=columns):
            for row in batch.to_pylist():
                number += 1
                yield document_of(row, options, f"{path}:{number}")
