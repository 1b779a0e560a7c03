"""The command `exmlds predict`."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from .arguments import ByteOrderMark, Cluster, Device, ModelFolder, Workers, complete_data
from .settings import OwnMethod, Trusted, load_model
from .startup import import_for_prediction
from .texts import Encoding, EncodingErrors, Format, GivenText, IdColumn, Language, TextColumn

if TYPE_CHECKING:
    import numpy as np

    from ..errors import DataError
    from .texts import TextOptions

SHOWN = 10  # messages about lines that cannot be read


def predict(
    model: ModelFolder,
    data: Annotated[
        str | None,
        Argument(
            metavar="DATA",
            help="A file, a folder of documents, - for standard input, or the name of a data set.",
            autocompletion=complete_data,
        ),
    ] = None,
    text: GivenText = None,
    k: Annotated[
        int | None,
        Option("-k", help="The number of labels per row.  [default: 5; with --threshold, all that reach it]"),
    ] = None,
    threshold: Annotated[
        str | None,
        Option(
            metavar="SCORE",
            help="Predict the labels with at least this score, from 0 to 1; model is the threshold that was "
            "chosen in training, such as by --set threshold=precision=0.95.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        Option(
            "-o",
            "--output",
            help="The file to write, .csv, .tsv, .jsonl or .txt; .gz is gzipped.  "
            "[default: -, standard output]",
        ),
    ] = None,
    output_format: Annotated[
        str | None,
        Option(
            help="The format of the predictions: text, jsonl, csv or tsv.  "
            "[default: by the ending of the output file, otherwise text]"
        ),
    ] = None,
    bom: ByteOrderMark = False,
    allow: Annotated[Path | None, Option(help="A file of the only labels to predict, one per line.")] = None,
    deny: Annotated[Path | None, Option(help="A file of labels not to predict, one per line.")] = None,
    text_column: TextColumn = None,
    id_column: IdColumn = None,
    language: Language = None,
    format: Format = None,
    encoding: Encoding = "utf-8",
    encoding_errors: EncodingErrors = "strict",
    method: OwnMethod = None,
    trusted: Trusted = None,
    workers: Workers = None,
    cluster: Cluster = None,
    device: Device = "cpu",
    as_json: Annotated[bool, Option("--json", help="The same as --output-format jsonl.")] = False,
) -> None:
    """Predict the top k labels of every row.

    Rows are predicted block by block, so that the data may be larger than memory. Each has an id: that of
    the data (a column or field id, doc_id, document_id or identifier, LibMultiLabel's first cell, or the file
    name in a folder), otherwise the number of the row, counted from 1.

    The output format text has one line per row, best label first: `label:score` pairs for rows of numbers,
    without ids, and tab-separated id, name, score, name, score, … for texts (no id with --text). A tab,
    newline, backslash or other control character in a name is escaped, as \\t, \\n, \\\\ or \\x1b. jsonl has
    one object per row, with id, labels and scores; csv and tsv have one line per label, with id, rank, label
    and score, and a line with the id alone for a row without labels.

    A text without any word that the model knows gets no labels; a warning names such texts.

    Texts from standard input, one per line, are answered line by line. They are JSON objects if the first
    line is one, or with --format jsonl; --format lines reads each line as a text. A line that cannot be read
    is reported and gets no labels; the exit code is then 1. --format document reads a whole file, or all of
    standard input, as one text.

    DATA may be a pattern of several files, such as 'shards/*.jsonl.gz', quoted: --output is a folder then,
    which gets a file for each of them. --workers and --cluster predict several of them at the same time.
    """
    import_for_prediction()
    from .in_parts import is_pattern, predict_shards

    if (workers, cluster) != (None, None) or (data is not None and is_pattern(data)):
        options_of_all = {
            **{"k": k, "threshold": threshold, "output_format": output_format, "bom": bom, "allow": allow},
            **{"deny": deny, "text_column": text_column, "id_column": id_column, "language": language},
            **{"format": format, "encoding": encoding, "encoding_errors": encoding_errors},
            **{"method": method, "trusted": trusted, "device": device, "as_json": as_json},
        }
        predict_shards(predict, model, data, output, options_of_all, workers, cluster)
        return
    from .. import data as io
    from ..errors import DataError, NoKnownWordWarning
    from ..runtime import progress
    from .prediction_writer import TABLES, PredictionWriter, choose_format
    from .sources import check_output, locate, refuse_swapped
    from .standard_input import is_packed_input
    from .texts import TextOptions, check_kind, set_language, takes_texts

    output = None if output == Path("-") else output
    output_format = choose_format(output_format, as_json, output)
    if bom and output_format not in TABLES:
        raise DataError(f"--bom is for csv and tsv; the output format is {output_format}.")
    refuse_swapped("predict MODEL DATA", model, data)
    given = None if threshold in (None, "model") else _checked_threshold(str(threshold))
    fitted: Any = load_model(model, method, trusted, device=device)
    set_language(fitted, model, language)
    least = float(fitted.threshold_) if threshold == "model" else given
    allowed, denied = (_listed(path, fitted.classes_) for path in (allow, deny))
    if (data is None) == (text is None):
        raise DataError(
            "Pass either a file, a folder, - for standard input (`… | exmlds predict MODEL -`), or --text."
        )
    options = TextOptions(text_column, format, encoding_errors, id=id_column, encoding=encoding)
    options.check_given_text(text)
    of_texts = takes_texts(fitted)
    if text is not None and not of_texts:
        raise DataError(f"{model} was trained on features, not on texts.")
    streams = of_texts and data == "-" and options.is_streamable() and not is_packed_input()
    source = None if text is not None or streams else locate(str(data), "test")
    if source is not None:
        check_kind(fitted, model, source, options)
    check_output(output, source, allow, deny)
    if k is None:
        k = 5 if least is None else fitted.max_labels
    k = min(k, fitted.n_labels_)

    def rank(X: Any) -> tuple[np.ndarray, np.ndarray]:
        columns, scores = fitted.predict_topk(X, k, allow=allowed, deny=denied)
        if least is not None:
            columns[scores < least] = -1
        return columns, scores

    started = perf_counter()
    tally = _Tally()
    with (
        # There is no progress bar if the predictions may go to the same terminal.
        progress.shown(output is not None),
        _opened(output) as file,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", NoKnownWordWarning)  # the tally counts the texts of all blocks
        writer = PredictionWriter(
            *(file, output_format, fitted.classes_),
            of_texts=of_texts,
            with_ids=text is None,
            name_of=None if getattr(fitted, "vocabulary_", None) is None else fitted.label_name,
            bom=bom,
        )
        if of_texts:
            for ids, texts in _blocks_of_texts(source, text, options, tally):
                columns, scores = rank(texts)
                tally.find_no_words(fitted, ids, texts, columns)
                writer.write(ids, columns, scores)
                file.flush()
        else:
            assert source is not None
            with progress.stage("predicting", io.declared_rows(source)) as advance:
                for block in io.iter_xc(source, n_features=fitted.n_features_in_):
                    columns, scores = rank(block.X)
                    writer.write(tally.number([None] * len(columns)), columns, scores)
                    advance(len(columns))
    tally.warn_of_no_words()
    if output is not None and sys.stderr.isatty():
        rows = f"{tally.n:,} {'texts' if of_texts else 'rows'} in {perf_counter() - started:.1f} s"
        print(f"Predicted {rows}; {output}, {output_format}, {tally.source_of_ids}", file=sys.stderr)
    tally.exit_if_bad(format)


def _checked_threshold(text: str) -> float:
    from ..errors import DataError

    try:
        threshold = float(text)
    except ValueError:
        threshold = math.nan
    if not 0 <= threshold <= 1:
        raise DataError(
            f"--threshold must be a number from 0 to 1, such as 0.5 for 50%, or model. Got {text!r} instead."
        )
    return threshold


class _Tally:
    """Counts the rows of a command, those with an id in the data, and those that could not be predicted."""

    def __init__(self) -> None:
        self.n = self.n_own_ids = 0
        self.no_words: list[str] = []  # ids of texts without a known word
        self.bad_lines: list[str] = []  # numbers of lines of a stream that could not be read

    def number(self, own_ids: Sequence[str | None]) -> list[str]:
        """Count rows; return their ids, or their numbers where the data has none."""
        first, self.n = self.n + 1, self.n + len(own_ids)
        self.n_own_ids += sum(id is not None for id in own_ids)
        return [id or str(number) for number, id in enumerate(own_ids, start=first)]

    def report(self, line: int, error: DataError) -> None:
        """Report a line of a stream that cannot be read; after some lines, they are only counted."""
        from .output import harmless
        from .texts import OPTIONS

        self.bad_lines.append(str(line))
        if len(self.bad_lines) <= SHOWN:
            print(f"exmlds: {harmless(error.with_options(OPTIONS))}", file=sys.stderr)

    def find_no_words(self, fitted: Any, ids: list[str], texts: list[str], columns: np.ndarray) -> None:
        """Collect the texts that got no label because the model knows none of their words."""
        rows = [row for row, best in enumerate(columns[:, 0].tolist()) if best < 0]
        if rows and ids[-1:] != self.bad_lines[-1:]:  # a line that was not read came as an empty text
            n_words = fitted.vectorizer_.transform([texts[row] for row in rows]).getnnz(axis=1)
            self.no_words += [ids[row] for row, n in zip(rows, n_words) if not n]

    @property
    def source_of_ids(self) -> str:
        if self.n_own_ids in (0, self.n):
            return "ids from the data" if self.n_own_ids else "row numbers as ids"
        return f"ids from the data for {self.n_own_ids:,} rows, row numbers for the others"

    def warn_of_no_words(self) -> None:
        from ..errors import some
        from ..models.text import warn_of_no_words

        if self.no_words:
            warn_of_no_words(len(self.no_words), self.n, f"Their ids: {some(self.no_words)}.")

    def exit_if_bad(self, format: str | None) -> None:
        """End the command with exit code 1 if lines could not be read."""
        from ..errors import some

        if not self.bad_lines:
            return
        hint = "" if format else " If each line is a plain text, pass --format lines."
        print(
            f"exmlds: {len(self.bad_lines):,} of {self.n:,} lines could not be read and got no labels: "
            f"{some(self.bad_lines)}.{hint}",
            file=sys.stderr,
        )
        raise typer.Exit(1)


def _blocks_of_texts(
    source: Path | None, text: str | None, options: TextOptions, tally: _Tally
) -> Iterator[tuple[list[str], list[str]]]:
    """Yield ids and texts: blocks of a file, single lines of standard input, or the given text."""
    from ..base import BLOCK
    from .texts import opened, stream_standard_input

    if text is not None:
        yield tally.number([None]), [text]
    elif source is None:
        for document in stream_standard_input(options, tally.report):
            # Blank lines may have been skipped, so that the number of a line is not that of the text.
            tally.number([document.id])
            yield [document.id or document.where.rpartition(":")[2]], [document.text]
    else:
        documents = iter(opened(source, options, labelled=False))
        while block := list(islice(documents, 16 * BLOCK)):
            yield tally.number([document.id for document in block]), [document.text for document in block]


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
