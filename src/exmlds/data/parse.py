"""Parsing rows of `l1,l2 f:v f:v` in a text file into the arrays of sparse matrices, block by block."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Literal, NamedTuple, NoReturn

import numpy as np
from scipy.sparse import csr_matrix

from ..errors import DataError, DataWarning
from ..kernels import DEFAULT, parse_errors
from ..runtime import progress
from ..storage.files import bytes_read, reading
from ..validation.columns import occurring
from .read_log import log_reading

Array = np.ndarray
HeaderChoice = bool | Literal["auto"]

BLOCK = 1 << 18  # bytes parsed at a time; more would raise the peak memory, not the speed
_LONE_RETURN = re.compile(rb"\r+(?![\r\n]|\Z)")
LARGEST = np.iinfo(np.int32).max  # ids are int32
FAR_ABOVE = 100, 1_000_000  # a largest id that exceeds the number of ids by this factor and this difference


class Header(NamedTuple):
    n_rows: int
    n_features: int
    n_labels: int | None  # None for one half of the split form, and for predictions


class Block(NamedTuple):
    """Parsed rows: features, values and labels of all rows concatenated, with their counts per row.

    The arrays come first, in the order of DTYPES and of the kernel's arguments.

    disorder : some ids of a row are not sorted, or are repeated
    """

    features: Array
    values: Array
    labels: Array
    features_of_row: Array
    labels_of_row: Array
    disorder: bool


DTYPES = (np.int32, np.float32, np.int32, np.int64, np.int64)  # of the arrays of a Block


class TextFile:
    """A text file: its header, its layout, and its rows in blocks.

    labelled : rows begin with labels
    base : the smallest id, 0 or 1
    limits : the expected numbers of features and of labels, None if any number will do
    nouns : what messages call a feature and a label
    """

    def __init__(
        self,
        path: Path,
        *,
        labelled: bool,
        header: HeaderChoice = "auto",
        base: int = 0,
        limits: tuple[int | None, int | None] = (None, None),
        block: int = BLOCK,
        nouns: tuple[str, str] = ("feature", "label"),
    ) -> None:
        self.nouns = nouns
        self.path, self.labelled, self.base, self.block = path, labelled, base, block
        self.n_features, self.n_labels = limits
        self.header, self.is_half = self._read_header(header)
        if header is True and self.header is None:
            raise DataError(f"{self.header_at}: expected a header, `rows features labels`.")
        if self.header:
            widths = (self.header.n_features, self.header.n_labels)
            for noun, declared, wanted in zip(nouns, widths, limits):
                problem = f"{self.header_at}: the header declares {declared} {noun}s"
                if declared is not None and declared > LARGEST:
                    raise DataError(f"{problem}; at most {LARGEST}.")
                if declared is not None and wanted not in (None, declared):
                    hint = (
                        f" If a training file without a header gave that number, by its largest {noun}, add "
                        "the header `rows features labels` to it and train again."
                    )
                    raise DataError(
                        f"{problem}, but {wanted} are expected.{hint if declared > wanted else ''}"
                    )
            self.n_features = self.header.n_features
            self.n_labels = self.n_labels if self.header.n_labels is None else self.header.n_labels

    @property
    def has_widths(self) -> tuple[bool, bool]:
        """Whether the numbers of features and of labels are given, by the header or the caller."""
        return self.n_features is not None, self.n_labels is not None

    @property
    def header_at(self) -> str:
        return f"{self.path}:{self.header_line}"

    def _read_header(self, choice: HeaderChoice) -> tuple[Header | None, bool]:
        with reading(self.path) as file:
            start = file.read(1 << 16)
        if not start:
            raise DataError(f"{self.path} is empty.")
        if b"\0" in start:
            raise DataError(f"{self.path} is not text: it holds NUL bytes. Is it the right file?")
        lines = start.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        comments = next((i for i, line in enumerate(lines) if not line.startswith(b"#")), len(lines) - 1)
        self.header_line = comments + 1
        first, second = (*lines[comments:], b"")[:2]
        numbers = first.split()
        whole = all(re.fullmatch(rb"[0-9]{1,18}", number) for number in numbers)
        whole = whole and b"\r" not in first.rstrip(b"\r")
        is_long = choice == "auto" and whole and len(numbers) > 2 + self.labelled
        if is_long and any(b":" in line for line in lines[self.header_line :]):
            forms = "`rows features labels`, nor a row of this file, `l1,l2 f:v f:v`"
            forms = forms if self.labelled else "`rows columns`, nor a row of this file, `id:value id:value`"
            raise DataError(f"{self.header_at}: {len(numbers)} numbers are neither a header, {forms}.")
        if choice is False or not whole or len(numbers) not in (2, 3):
            return None, False
        if len(numbers) == 3 and (self.labelled or choice is True):
            n_rows, n_features, n_labels = map(int, numbers)
            return Header(n_rows, n_features, n_labels), False
        if len(numbers) == 2:
            if self.labelled:
                is_half = not (second[:1].isdigit() and b":" not in second.split()[0])
                return (Header(int(numbers[0]), int(numbers[1]), None), True) if is_half else (None, False)
            # Rows of bare ids look like this header; it is one if the number of lines agrees.
            if b":" in second or int(numbers[0]) == self._count_lines() - self.header_line:
                return Header(int(numbers[0]), int(numbers[1]), None), False
        return None, False

    def _count_lines(self) -> int:
        with reading(self.path) as file:
            return sum(1 for _ in file)

    def read(self, ordered: bool = True) -> tuple[csr_matrix, csr_matrix]:
        """Read all rows; `ordered` sorts the ids of each row and merges repeated ones, with a warning."""
        arrays = [_Growing(dtype) for dtype in DTYPES]
        disorder = False
        for *parts, piece_disorder in self.blocks():
            for array, part in zip(arrays, parts):
                array.extend(part)
            disorder |= piece_disorder
        whole = Block._make((*(array.done() for array in arrays), disorder))
        X, Y = matrices(whole, self.n_features, self.n_labels)
        self.warn_of_gaps((X.indices, X.indptr), (Y.indices, Y.indptr))
        if disorder and ordered:
            self._warn_of_disorder(*put_in_order(self.path, X, Y))
        return X, Y

    def ordered_blocks(self) -> Iterator[tuple[csr_matrix, csr_matrix]]:
        """X and Y block by block, with sorted ids; a width that is not known is that of the block."""
        merged, disorder = np.zeros(2, np.int64), False
        for piece in self.blocks():
            X, Y = matrices(piece, self.n_features, self.n_labels)
            if piece.disorder:
                merged += put_in_order(self.path, X, Y)
                disorder = True
            yield X, Y
        if disorder:
            self._warn_of_disorder(*merged.tolist())

    def _warn_of_disorder(self, features: int, labels: int) -> None:
        """Warn of ids that were sorted, and of so many features and labels that were merged."""
        done = ["unsorted ids were sorted"]
        done += [f"{features} repeated features were summed"] if features else []
        done += [f"{labels} repeated labels were merged"] if labels else []
        warnings.warn(
            f"{self.path}: {', '.join(done)}.",
            DataWarning,
            stacklevel=4,
        )

    def warn_of_gaps(self, *matrices: tuple[Array, Array]) -> None:
        """Warn if the largest id of X or Y, which decides the width of the matrix, looks mistyped.

        matrices : the columns of the values, and the ends of the rows
        """
        factor, difference = FAR_ABOVE
        for noun, (ids, ends), width in zip(self.nouns, matrices, (self.n_features, self.n_labels)):
            largest = int(ids.max(initial=0))
            # Most files end here; counting the distinct ids takes a sort.
            if width is not None or largest <= difference:
                continue
            n_ids = len(occurring(ids, largest + 1))
            if largest > factor * n_ids and largest - n_ids > difference:
                row = int(np.searchsorted(ends[1:], int(np.argmax(ids)), side="right"))
                warnings.warn(
                    f"{self.path}:{self._line_of(row)}: {noun} {largest + self.base} is far above the number "
                    f"of {noun}s, {n_ids:,}; is it mistyped? No header declares how many there are, so the "
                    f"matrix gets {largest + 1:,} columns, and a model of it may take much memory.",
                    DataWarning,
                    stacklevel=4,
                )

    def _line_of(self, row: int) -> int:
        """The number of a row's line, counted from 1; comments and the header are no rows."""
        with reading(self.path) as file:
            for number, line in enumerate(file, start=1):
                is_row = number > (self.header_line if self.header else 0)
                if is_row and not line.removeprefix(b"\xef\xbb\xbf").startswith(b"#"):
                    row -= 1
                    if row < 0:
                        break
        return number

    def blocks(self) -> Iterator[Block]:
        """Parse the file block by block; at the end, the number of rows must be the header's."""
        return log_reading(self.path, self._blocks(), lambda block: len(block.features_of_row))

    def _blocks(self) -> Iterator[Block]:
        # Blank lines at the end of a file may be empty rows or nothing. They are held back until a row
        # follows them, or until the header's count decides.
        n_rows = n_blank = 0
        held_back: Block | None = None
        for piece, blank_tail in self._parsed():
            size = len(piece.features_of_row)
            if self.header:  # its count decides about all empty rows at the end, not only blank lines
                filled = np.flatnonzero(piece.features_of_row + piece.labels_of_row)
                blank_tail = size - (filled[-1] + 1 if filled.size else 0)
            if blank_tail < size:
                if held_back is not None:
                    yield held_back
                    n_rows += len(held_back.features_of_row)
                    held_back = None
                yield _first_rows(piece, size - blank_tail)
                n_rows += size - blank_tail
                n_blank = 0
            n_blank += blank_tail
            held_back = _empty_rows(n_blank) if n_blank else held_back
        if self.header is None:
            if n_rows == 0:
                raise DataError(f"{self.path} holds no rows.")
            return
        missing = self.header.n_rows - n_rows
        if 0 < missing <= n_blank:
            yield _empty_rows(missing)
        elif missing:
            counts = f"the header declares {self.header.n_rows} rows, the file has {n_rows}"
            raise DataError(f"{self.header_at}: {counts}. Correct that line, or remove it.")

    def _parsed(self) -> Iterator[tuple[Block, int]]:
        lines_before = self.header_line if self.header else 0
        try:
            size = self.path.stat().st_size
        except OSError:
            size = 0
        stage = progress.stage(f"reading {self.path.name}", size, "bytes")
        with reading(self.path) as file, stage as advance:
            chunks = _whole_lines(file, self.block)
            first = next(chunks).removeprefix(b"\xef\xbb\xbf")
            if self.header:
                first = (*first.split(b"\n", lines_before), b"")[lines_before]
            done = 0
            for chunk in chain([first], chunks):
                self._check_line_ends(chunk, lines_before)
                parsed = self._parse(chunk, lines_before)
                lines_before += chunk.count(b"\n")
                yield parsed
                advance(bytes_read(file) - done)
                done = bytes_read(file)

    def _check_line_ends(self, chunk: bytes, lines_before: int) -> None:
        """Reject a \\r within a line; a file whose lines end in \\r alone would be read as one row."""
        if b"\r" in chunk and (found := _LONE_RETURN.search(chunk)):
            line = lines_before + chunk.count(b"\n", 0, found.start()) + 1
            raise DataError(f"{self.path}:{line}: a \\r within a line; end lines in \\n or \\r\\n.")

    def _parse(self, chunk: bytes, lines_before: int) -> tuple[Block, int]:
        text = np.frombuffer(chunk, np.uint8)
        most, lines = len(chunk) // 2 + 1, chunk.count(b"\n") + 1
        room = (most, most, most, lines, lines)
        arrays = [np.empty(size, dtype) for size, dtype in zip(room, DTYPES)]
        hard_numbers = np.empty((len(chunk) // 6 + 1, 3), np.int64)
        limits = [LARGEST if limit is None else limit for limit in (self.n_features, self.n_labels)]
        n_rows, n_values, n_labels, n_hard, blank_tail, disorder, problem, start, end = DEFAULT.parse_rows(
            text, self.labelled, self.base, *limits, *arrays, hard_numbers
        )
        # The kernel leaves numbers that it cannot round correctly to Python's float().
        values = arrays[1]
        for index, token_start, token_end in hard_numbers[:n_hard].tolist():
            value = float(chunk[token_start:token_end].partition(b":")[2])
            if abs(value) >= parse_errors.FLOAT32_OVERFLOW:
                problem, start, end = parse_errors.NOT_FINITE, token_start, token_end
                break
            values[index] = value
        if problem:
            line = lines_before + chunk.count(b"\n", 0, start) + 1
            self._complain(line, chunk[start:end], problem)
        used = (n_values, n_values, n_labels, n_rows, n_rows)
        filled = (array[:size] for array, size in zip(arrays, used))
        return Block._make((*filled, disorder)), blank_tail

    def _complain(self, line: int, token: bytes, problem: int) -> NoReturn:
        shown = token[:40].decode("utf-8", "backslashreplace") + ("…" if len(token) > 40 else "")
        row = "l1,l2 f:v f:v" if self.labelled else "id:value id:value"
        kind = "number" if shown.partition(":")[0].isdigit() and ":" in shown else "whole number"
        smallest = f"ids start from {self.base}"
        if token.startswith(b"-1") and not self.labelled:
            smallest += "; leave the padding of rows out"
        messages = {
            parse_errors.NOT_A_NUMBER: f"{shown!r} is not a {kind}; a row looks like `{row}`.",
            parse_errors.NOT_FINITE: f"{shown!r} is not a finite float32; remove it or scale the values.",
            parse_errors.NEGATIVE_ID: f"{shown!r} has an id below {self.base}; {smallest}.",
            parse_errors.EMPTY_ID: f"{shown!r} has an empty label id; labels look like `3,17`.",
            parse_errors.FEATURE_OUT_OF_RANGE: self._out_of_range(shown, 0, self.n_features),
            parse_errors.LABEL_OUT_OF_RANGE: self._out_of_range(shown, 1, self.n_labels),
        }
        raise DataError(f"{self.path}:{line}: {messages[problem]}")

    def _out_of_range(self, token: str, which: int, limit: int | None) -> str:
        declared = "the header declares" if self.header else "at most" if limit is None else "there are"
        noun = self.nouns[which]
        index = "feature index" if noun == "feature" else noun
        limit = LARGEST if limit is None else limit
        return f"{index} {token.partition(':')[0]} is out of range; {declared} {limit} {noun}s."


def _whole_lines(file: IO[bytes], size: int) -> Iterator[bytes]:
    """Yield chunks of about `size` bytes that end at a newline."""
    begun: list[bytes] = []  # pieces of a line whose newline has not been read yet
    while chunk := file.read(size):
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield b"".join([*begun, chunk[:cut]])
            begun = []
        if cut < len(chunk):
            begun.append(chunk[cut:])
    yield b"".join(begun)


def _empty_rows(n: int) -> Block:
    none, zeros = np.empty(0, np.int32), np.zeros(n, np.int64)
    return Block(none, none.astype(np.float32), none, zeros, zeros, False)


def _first_rows(piece: Block, n: int) -> Block:
    """The first n rows; the rows after them must be empty."""
    return piece._replace(features_of_row=piece.features_of_row[:n], labels_of_row=piece.labels_of_row[:n])


def matrices(piece: Block, n_features: int | None, n_labels: int | None) -> tuple[csr_matrix, csr_matrix]:
    """The csr matrices X and Y of parsed rows; a width of None is taken from the largest id."""
    ones = np.ones(len(piece.labels), np.float32)
    return (
        _csr(piece.values, piece.features, piece.features_of_row, n_features),
        _csr(ones, piece.labels, piece.labels_of_row, n_labels),
    )


def _csr(data: Array, indices: Array, counts: Array, width: int | None) -> csr_matrix:
    if width is None:
        width = int(indices.max()) + 1 if len(indices) else 0
    dtype = np.int32 if len(indices) <= LARGEST else np.int64
    indptr = np.zeros(len(counts) + 1, dtype)
    np.cumsum(counts, out=indptr[1:])
    return csr_matrix((data, indices, indptr), shape=(len(counts), width), copy=False)


def put_in_order(path: Path, X: csr_matrix, Y: csr_matrix) -> tuple[int, int]:
    """Sort the ids of each row and merge repeated ones; return how many features and labels were merged."""
    before = X.nnz, Y.nnz
    for matrix in (X, Y):
        matrix.has_canonical_format = False
        matrix.sum_duplicates()
    Y.data[:] = 1
    if not np.isfinite(X.data).all():
        raise DataError(f"{path}: repeated features sum to more than a float32 can hold; scale the values.")
    return before[0] - X.nnz, before[1] - Y.nnz


class _Growing:
    """An array that grows in place by an eighth, so that the peak memory stays near its final size."""

    def __init__(self, dtype: type) -> None:
        self.array: Array = np.empty(1 << 10, dtype)
        self.size = 0

    def extend(self, more: Array) -> None:
        size = self.size + len(more)
        if size > len(self.array):
            self.array.resize(max(size, len(self.array) * 9 // 8), refcheck=False)
        self.array[self.size : size] = more
        self.size = size

    def done(self) -> Array:
        self.array.resize(self.size, refcheck=False)
        return self.array
