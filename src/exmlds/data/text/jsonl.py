"""JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import DataError
from .documents import Document, Plan, bare, lines_of
from .fields import document_of, without_surrogates


def _rows(path: Path, plan: Plan) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for where, line in lines_of(path, plan.errors):
        if line.isspace() or not line:
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            column = min(error.pos, len(bare(line))) + 1
            raise DataError(
                f"{where}:{column}: not JSON ({error.msg}). "
                'Write one object a line, {"text": …, "labels": […]}.'
            ) from None
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}: cannot be read as JSON ({error}).") from None
        if not isinstance(row, dict):
            raise DataError(f'{where}: not an object. Write one a line, {{"text": …, "labels": […]}}.')
        yield where, line, row


def json_names(path: Path, plan: Plan) -> tuple[str, str, list[str]]:
    for where, _, row in _rows(path, plan):
        return where, "field", list(row)
    raise DataError(f"{path} holds no documents.")


def read_jsonl(path: Path, plan: Plan) -> Iterator[Document]:
    for where, line, row in _rows(path, plan):
        document = document_of(row, plan, where)
        if "\\u" in line:
            document = without_surrogates(document, plan.errors)
        yield document
