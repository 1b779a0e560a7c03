"""The command `exmlds predict`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

from typer import Argument, Option

from .settings import OwnMethod, import_method
from .texts import EncodingErrors, Format, GivenText, TextColumn

if TYPE_CHECKING:
    import numpy as np

    from .texts import TextOptions


def predict(
    model: Annotated[Path, Argument(help="A model folder.")],
    data: Annotated[
        str | None, Argument(help="A file, - for standard input, or the name of a data set.")
    ] = None,
    text: GivenText = None,
    k: Annotated[int, Option("-k", help="The number of labels per row.")] = 5,
    output: Annotated[
        Path | None,
        Option("-o", "--output", help="The file to write; .gz is gzipped.  [default: -, standard output]"),
    ] = None,
    allow: Annotated[Path | None, Option(help="A file of the only labels to predict, one per line.")] = None,
    deny: Annotated[Path | None, Option(help="A file of labels not to predict, one per line.")] = None,
    text_column: TextColumn = None,
    format: Format = None,
    encoding_errors: EncodingErrors = "strict",
    method: OwnMethod = None,
    as_json: Annotated[
        bool, Option("--json", help="Write one JSON object per row, with label names.")
    ] = False,
) -> None:
    """Predict the top k labels of every row.

    Writes one line of `label:score` pairs per row, best first, block by block, so that the data may be larger
    than memory. For texts, it writes tab-separated names and scores; a tab, newline or backslash in a name is
    escaped as \\t, \\n, \\r or \\\\, and so are other control characters. Texts from standard input, one per
    line, are answered line by line; a line that begins with `{` is a JSON object with a text.
    """
    from .. import data as io
    from .. import load
    from ..errors import DataError
    from ..runtime import progress
    from .sources import check_output, is_packed_input, locate
    from .texts import STREAMABLE, TextOptions, check_kind, takes_texts

    import_method(method)
    fitted = load(model)
    allowed, denied = (_listed(path, fitted.classes_) for path in (allow, deny))
    if output == Path("-"):
        output = None
    if (data is None) == (text is None):
        raise DataError("Pass either a file (- for standard input) or --text.")
    options = TextOptions(text_column, format, encoding_errors)
    options.check_given_text(text)
    if text is not None and not takes_texts(fitted):
        raise DataError(f"{model} was trained on features, not on texts.")
    streams = takes_texts(fitted) and data == "-" and format in STREAMABLE and not is_packed_input()
    source = None if text is not None or streams else locate(str(data), "test")
    if source is not None:
        check_kind(fitted, model, source, options)
        check_output(output, source)
    # There is no progress bar if the predictions may go to the same terminal.
    if source is None or takes_texts(fitted):
        with progress.shown(output is not None), _opened(output) as file:
            for texts in _texts(source, text, options):
                ids, scores = fitted.predict_topk(texts, k, allow=allowed, deny=denied)
                (_write_json if as_json else _write_names)(file, ids, scores, fitted.classes_)
                file.flush()
        return
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


def _texts(source: Path | None, text: str | None, options: TextOptions) -> Iterator[list[str]]:
    """Yield batches of texts: blocks of a file, single lines of standard input, or the given text."""
    from ..base import BLOCK
    from .texts import opened, stream_standard_input

    if text is not None:
        yield [text]
    elif source is None:
        for line in stream_standard_input(options):
            yield [line]
    else:
        documents = iter(opened(source, options, labelled=False))
        while block := [document.text for document in islice(documents, 16 * BLOCK)]:
            yield block


@contextmanager
def _opened(output: Path | None) -> Iterator[IO[bytes]]:
    from ..storage.files import replacing

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
        raise DataError(f"{path} holds no label; write one per line.")
    if classes.dtype == object:
        return names
    if not all(name.isdigit() for name in names):
        raise DataError(f"{path}: this model's labels are numbers; write one per line.")
    return [int(name) for name in names]


def _write_names(file: IO[bytes], ids: np.ndarray, scores: np.ndarray, classes: np.ndarray) -> None:
    from .output import escaped

    for columns, values in zip(ids, scores):
        pairs = [f"{escaped(str(classes[c]))}\t{v:.4g}" for c, v in zip(columns, values) if c >= 0]
        file.write("\t".join(pairs).encode() + b"\n")


def _write_json(file: IO[bytes], ids: np.ndarray, scores: np.ndarray, classes: np.ndarray) -> None:
    import json

    for columns, values in zip(ids, scores):
        present = columns >= 0
        row = {
            "labels": classes[columns[present]].tolist(),
            "scores": [float(f"{v:.6g}") for v in values[present]],
        }
        file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
