"""`exmlds predict`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import numpy as np


def predict(
    model: Annotated[Path, typer.Argument(help="A model folder.")],
    data: Annotated[str, typer.Argument(help="A file, - for a pipe, or the name of a data set.")],
    k: Annotated[int, typer.Option("-k", help="Labels a row.")] = 5,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="A file; .gz is gzipped.")] = None,
    allow: Annotated[Path | None, typer.Option(help="A file of labels to choose among, one a line.")] = None,
    deny: Annotated[Path | None, typer.Option(help="A file of labels to leave out, one a line.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a row, with label names.")] = False,
) -> None:
    """Predict the best labels of every row.

    Writes `label:score`, best first, one row a line, block by block: the data may be larger than memory.
    """
    from .. import data as io
    from .. import load, progress
    from .sources import check_output, locate

    fitted = load(model)
    source = locate(data, "test")
    check_output(output, source)
    allowed, denied = (_listed(path, fitted.classes_) for path in (allow, deny))
    # No bar where the predictions may go to the same terminal.
    with (
        progress.shown(output is not None),
        _opened(output) as file,
        progress.stage("predicting", io.declared_rows(source)) as advance,
    ):
        for block in io.iter_xc(source, n_features=fitted.n_features_in_):
            ids, scores = fitted.predict_topk(block.X, k, allow=allowed, deny=denied)
            if as_json:
                _write_json(file, ids, scores, fitted.classes_)
            else:
                io.write_predictions(file, ids, scores)
            advance(len(ids))


@contextmanager
def _opened(output: Path | None) -> Iterator[IO[bytes]]:
    from ..files import replacing

    if output is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with replacing(output) as file:
            yield file


def _listed(path: Path | None, classes: np.ndarray) -> list[str] | list[int] | None:
    from ..data import read_names
    from ..errors import DataError

    if path is None:
        return None
    names = [name for name in read_names(path) if name]
    if not names:
        raise DataError(f"{path} names no label.")
    if classes.dtype == object:
        return names
    if not all(name.isdigit() for name in names):
        raise DataError(f"{path}: this model's labels are numbers; write one a line.")
    return [int(name) for name in names]


def _write_json(file: IO[bytes], ids: np.ndarray, scores: np.ndarray, classes: np.ndarray) -> None:
    import json

    for columns, values in zip(ids, scores):
        present = columns >= 0
        row = {
            "labels": classes[columns[present]].tolist(),
            "scores": [float(f"{v:.6g}") for v in values[present]],
        }
        file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
