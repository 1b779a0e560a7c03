"""XC text, the format of the Extreme Classification Repository, and its relatives.

    n d L                      a header, which may be missing
    l1,l2 f:v f:v …            one row a line, ids from 0; a row with no label begins with a blank

Also read: svmlight multi-label (no header, `# comments`), the split form (`trn_X_Xf.txt` with `trn_X_Y.txt`),
.npz pairs, and .gz of each. Formats are told by content.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn

import numpy as np
from scipy.sparse import csr_matrix

from .. import kernels, progress
from ..errors import DataError, DataWarning
from ..files import PathLike, bytes_read, reading, replacing
from ..kernels import problems
from .dataset import Dataset
from .names import find_names
from .npz import is_npz, read_npz

Array = np.ndarray
HeaderChoice = bool | Literal["auto"]

BLOCK = 1 << 18  # bytes parsed at a time; more would show in the peak memory, not in the speed
STREAMED = 1 << 20  # bytes a block of `iter_xc`
LARGEST = np.iinfo(np.int32).max  # ids are int32


class Header(NamedTuple):
    n_rows: int
    n_features: int
    n_labels: int | None  # None: one half of the split form, or predictions


class Block(NamedTuple):
    """Parsed rows: features and values of all rows, one after another, with the count of each row."""

    features: Array
    values: Array
    labels: Array
    features_of_row: Array
    labels_of_row: Array
    disorder: bool


def read_xc(
    path: PathLike,
    labels: PathLike | None = None,
    *,
    header: HeaderChoice = "auto",
    one_based: bool = False,
    n_features: int | None = None,
    n_labels: int | None = None,
) -> Dataset:
    """Read a data set in any of the formats above.

    Parameters
    ----------
    path : the file; of a pair (split form, npz) either one, if they lie side by side under their usual names
    labels : the other file of a pair, the one with the labels
    header : "auto" takes a first line of three whole numbers for a header; True and False decide it
    one_based : ids in the file start from 1, as some svmlight files have it
    n_features, n_labels : the width of X and Y where there is no header; from the largest ids if not given

    Example
    -------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "two.txt"
    >>> _ = path.write_text("2 4 3\\n0,2 1:0.5 3:2\\n1 0:1\\n")
    >>> read_xc(path)
    Dataset(2 rows, 4 features (1.5 a row), 3 labels (1.50 a row))
    """
    path = Path(path)
    if labels is None and is_npz(path):
        path, labels = _pair(path)
    if labels is not None:
        return _read_pair(path, Path(labels), n_features, n_labels)
    text = _Text(path, labelled=True, header=header, base=int(one_based), limits=(n_features, n_labels))
    if text.is_half:
        return _read_pair(*_pair(path), n_features, n_labels)
    X, Y = text.read()
    label_names = find_names(path, ("label_names.txt",), Y.shape[1], fixed=text.n_labels is not None)
    feature_names = find_names(
        path, ("feature_names.txt", "vocab.txt"), X.shape[1], fixed=text.n_features is not None
    )
    if label_names:
        Y.resize(Y.shape[0], len(label_names))
    if feature_names:
        X.resize(X.shape[0], len(feature_names))
    return Dataset(X, Y, label_names, feature_names)


def iter_xc(
    path: PathLike, *, n_features: int | None = None, n_labels: int | None = None, block: int = STREAMED
) -> Iterator[Dataset]:
    """Yield the rows of a file in blocks of about `block` bytes, so that it may be larger than memory.

    A text file without a header needs n_features; without n_labels, Y is as wide as its block asks for. Of a
    pair, the features' file alone is read, and Y has no columns.
    """
    path = Path(path)
    if is_npz(path):
        X = read_npz(path)
        yield Dataset(X, csr_matrix((X.shape[0], 0), dtype=np.float32))
        return
    text = _Text(path, labelled=True, limits=(n_features, n_labels), block=block)
    if text.is_half:
        text = _Text(path, labelled=False, limits=(n_features, 0), block=block)
    if text.n_features is None:
        raise DataError(f"{path} has no header; say n_features to read it in blocks.")
    warned = False
    for piece in text.blocks():
        X, Y = _matrices(piece, text.n_features, text.n_labels)
        if piece.disorder:
            _put_in_order(X, Y)
            if not warned:
                warnings.warn(
                    f"{path}: ids out of order were sorted, repeated ones merged.", DataWarning, stacklevel=2
                )
                warned = True
        yield Dataset(X, Y)


def read_sparse(path: PathLike, *, n_columns: int | None = None, ordered: bool = True) -> csr_matrix:
    """Read one half of the split form: rows of `id:value`, with or without a header `n d`.

    ordered : False leaves the ids of a row as they stand in the file
    """
    X, _ = _Text(Path(path), labelled=False, limits=(n_columns, None)).read(ordered)
    return X


def read_label_filter(path: PathLike, shape: tuple[int, int]) -> csr_matrix:
    """Read a label-filter file (`filter_labels_test.txt`): lines of `row label`, pairs not to be predicted.

    Returns a csr of `shape` with a 1 for each pair; pass it as `deny`.
    """
    n_rows, n_labels = shape
    text = _Text(Path(path), labelled=True, header=False, limits=(n_labels, n_rows))
    pieces = list(text.blocks())
    line = 0
    for piece in pieces:
        wrong = np.flatnonzero((piece.features_of_row != 1) | (piece.labels_of_row != 1))
        if wrong.size:
            raise DataError(f"{path}:{line + wrong[0] + 1}: a label filter has two ids a line, `row label`.")
        line += len(piece.features_of_row)
    rows = np.concatenate([piece.labels for piece in pieces])
    columns = np.concatenate([piece.features for piece in pieces])
    pairs = csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)
    pairs.data[:] = 1
    return pairs


def write_xc(path: PathLike, dataset: Dataset) -> None:
    """Write XC text with its header; gzipped if the name ends in .gz.

    The values are written so that reading them gives the same float32 back.
    """
    X, Y = dataset.X.tocsr(), dataset.Y.tocsr()
    n = X.shape[0]
    with replacing(path) as file, progress.stage("writing", n) as advance:
        file.write(f"{n} {X.shape[1]} {Y.shape[1]}\n".encode())
        for start in range(0, n, 1000):
            rows = range(start, min(start + 1000, n))
            x_start = X.indptr[start]
            tokens = _tokens(X, rows.start, rows.stop)
            lines = []
            for row in rows:
                names = ",".join(map(str, Y.indices[Y.indptr[row] : Y.indptr[row + 1]].tolist()))
                mine = tokens[X.indptr[row] - x_start : X.indptr[row + 1] - x_start]
                lines.append(f"{names} {' '.join(mine)}\n")
            file.write("".join(lines).encode())
            advance(len(rows))


def _tokens(X: csr_matrix, start: int, stop: int) -> list[str]:
    mine = slice(X.indptr[start], X.indptr[stop])
    values = X.data[mine].astype(np.float32).astype("U").tolist()  # the shortest text of each float32
    return [f"{i}:{v.removesuffix('.0')}" for i, v in zip(X.indices[mine].tolist(), values)]


def _pair(path: Path) -> tuple[Path, Path]:
    """The features' and the labels' file, when `path` is either."""
    usual = (("X_Xf", "X_Y"), ("Xf", "Y"), ("X.", "Y."), ("X_", "Y_"))
    for x_name, y_name in usual:
        for mine, other in ((x_name, y_name), (y_name, x_name)):
            sibling = path.with_name(path.name.replace(mine, other, 1))
            if mine in path.name and sibling.is_file():
                return (path, sibling) if mine == x_name else (sibling, path)
    raise DataError(
        f"{path} holds a matrix alone, and no file with the other half lies beside it; "
        "name both: read_xc(features, labels), or --labels FILE on the command line."
    )


def _read_pair(x_path: Path, y_path: Path, n_features: int | None, n_labels: int | None) -> Dataset:
    halves = []
    for path, width in ((x_path, n_features), (y_path, n_labels)):
        half = read_npz(path) if is_npz(path) else read_sparse(path, n_columns=width)
        if width is not None and half.shape[1] != width:
            raise DataError(f"{path} has {half.shape[1]} columns, but {width} are expected.")
        halves.append(half)
    X, Y = halves
    if X.shape[0] != Y.shape[0]:
        raise DataError(
            f"{x_path} has {X.shape[0]} rows, {y_path} has {Y.shape[0]}; they must be of the same rows."
        )
    Y.eliminate_zeros()
    Y.data[:] = 1
    label_names = find_names(y_path, ("label_names.txt",), Y.shape[1], fixed=True)
    feature_names = find_names(x_path, ("feature_names.txt", "vocab.txt"), X.shape[1], fixed=True)
    return Dataset(X, Y, label_names, feature_names)


class _Text:
    """One text file: its header, its layout, its rows in blocks."""

    def __init__(
        self,
        path: Path,
        *,
        labelled: bool,
        header: HeaderChoice = "auto",
        base: int = 0,
        limits: tuple[int | None, int | None] = (None, None),
        block: int = BLOCK,
    ) -> None:
        self.path, self.labelled, self.base, self.block = path, labelled, base, block
        self.n_features, self.n_labels = limits
        self.header, self.is_half = self._read_header(header)
        if self.header:
            widths = (self.header.n_features, self.header.n_labels)
            for what, declared, wanted in zip(("features", "labels"), widths, limits):
                if declared is not None and declared > LARGEST:
                    raise DataError(f"{path}:1: the header declares {declared} {what}; at most {LARGEST}.")
                if wanted is not None and declared is not None and declared != wanted:
                    raise DataError(f"{path}:1: the header declares {declared} {what}, not {wanted}.")
            self.n_features = self.header.n_features
            self.n_labels = self.n_labels if self.header.n_labels is None else self.header.n_labels

    def _read_header(self, choice: HeaderChoice) -> tuple[Header | None, bool]:
        with reading(self.path) as file:
            start = file.read(1 << 16)
        if not start:
            raise DataError(f"{self.path} is empty.")
        if b"\0" in start:
            raise DataError(f"{self.path} is not text: it holds NUL bytes. Is it the right file?")
        first, _, rest = start.removeprefix(b"\xef\xbb\xbf").partition(b"\n")
        numbers = first.split()
        whole = all(re.fullmatch(rb"[0-9]{1,18}", number) for number in numbers)
        if choice is False or not whole or len(numbers) not in (2, 3):
            if choice is True:
                token = first[:40].decode(errors="backslashreplace")
                raise DataError(f"{self.path}:1: expected a header `rows features labels`, got {token!r}.")
            return None, False
        if len(numbers) == 3 and (self.labelled or choice is True):
            n_rows, n_features, n_labels = map(int, numbers)
            return Header(n_rows, n_features, n_labels), False
        if len(numbers) == 2:
            second = rest.partition(b"\n")[0]
            if self.labelled:
                is_half = not (second[:1].isdigit() and b":" not in second.split()[0])
                return (Header(int(numbers[0]), int(numbers[1]), None), True) if is_half else (None, False)
            # Rows of bare ids look like this header; then the number of lines decides.
            if b":" in second or int(numbers[0]) == self._count_lines() - 1:
                return Header(int(numbers[0]), int(numbers[1]), None), False
        return None, False

    def _count_lines(self) -> int:
        with reading(self.path) as file:
            return sum(1 for _ in file)

    def read(self, ordered: bool = True) -> tuple[csr_matrix, csr_matrix]:
        features, labels = _Growing(np.int32), _Growing(np.int32)
        values = _Growing(np.float32)
        features_of_row, labels_of_row = _Growing(np.int64), _Growing(np.int64)
        disorder = False
        for piece in self.blocks():
            features.extend(piece.features)
            values.extend(piece.values)
            labels.extend(piece.labels)
            features_of_row.extend(piece.features_of_row)
            labels_of_row.extend(piece.labels_of_row)
            disorder |= piece.disorder
        whole = Block(
            features.done(),
            values.done(),
            labels.done(),
            features_of_row.done(),
            labels_of_row.done(),
            disorder,
        )
        X, Y = _matrices(whole, self.n_features, self.n_labels)
        if disorder and ordered:
            repeated = _put_in_order(X, Y)
            warnings.warn(
                f"{self.path}: ids out of order were sorted; {repeated[0]} repeated features were summed, "
                f"{repeated[1]} repeated labels were taken once.",
                DataWarning,
                stacklevel=3,
            )
        return X, Y

    def blocks(self) -> Iterator[Block]:
        """Parse the file; the rows are counted against the header at the end."""
        n_rows = n_blank = 0  # blank: lines at the end so far that may be no rows
        held_back: Block | None = None  # blank lines, given out as rows only when a row follows them
        for piece, blank_tail in self._parsed():
            size = len(piece.features_of_row)
            if self.header:  # it says which of the empty rows at the end are rows
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
            hint = "" if self.header.n_labels is None else " If that line is a row, say header=False."
            raise DataError(
                f"{self.path}:1: the header declares {self.header.n_rows} rows, the file has {n_rows}.{hint}"
            )

    def _parsed(self) -> Iterator[tuple[Block, int]]:
        lines_before = 1 if self.header else 0
        try:
            size = self.path.stat().st_size
        except OSError:
            size = 0
        with (
            reading(self.path) as file,
            progress.stage(f"reading {self.path.name}", size, "bytes") as advance,
        ):
            chunks = _whole_lines(file, self.block)
            first = next(chunks).removeprefix(b"\xef\xbb\xbf")
            if self.header:
                first = first.partition(b"\n")[2]
            done = 0
            for chunk in chain([first], chunks):
                parsed = self._parse(chunk, lines_before)
                lines_before += chunk.count(b"\n")
                yield parsed
                advance(bytes_read(file) - done)
                done = bytes_read(file)

    def _parse(self, chunk: bytes, lines_before: int) -> tuple[Block, int]:
        text = np.frombuffer(chunk, np.uint8)
        most = len(chunk) // 2 + 1
        features, labels = np.empty(most, np.int32), np.empty(most, np.int32)
        values = np.empty(most, np.float32)
        lines = chunk.count(b"\n") + 1
        features_of_row, labels_of_row = np.empty(lines, np.int64), np.empty(lines, np.int64)
        hard_numbers = np.empty((len(chunk) // 6 + 1, 3), np.int64)
        limits = [LARGEST if limit is None else limit for limit in (self.n_features, self.n_labels)]
        n_rows, n_values, n_labels, n_hard, blank_tail, disorder, problem, start, end = kernels.parse_rows(
            text,
            self.labelled,
            self.base,
            *limits,
            features,
            values,
            labels,
            features_of_row,
            labels_of_row,
            hard_numbers,
        )
        for index, token_start, token_end in hard_numbers[:n_hard].tolist():
            value = float(chunk[token_start:token_end].partition(b":")[2])
            if abs(value) >= problems.FLOAT32_OVERFLOW:
                problem, start, end = problems.NOT_FINITE, token_start, token_end
                break
            values[index] = value
        if problem:
            line = lines_before + chunk.count(b"\n", 0, start) + 1
            self._complain(line, chunk[start:end], problem)
        piece = Block(
            features[:n_values],
            values[:n_values],
            labels[:n_labels],
            features_of_row[:n_rows],
            labels_of_row[:n_rows],
            disorder,
        )
        return piece, blank_tail

    def _complain(self, line: int, token: bytes, problem: int) -> NoReturn:
        shown = token[:40].decode("utf-8", "backslashreplace") + ("…" if len(token) > 40 else "")
        declared = "the header declares" if self.header else "expected are"
        row = "l1,l2 f:v f:v" if self.labelled else "id:value id:value"
        said = {
            problems.NOT_A_NUMBER: f"{shown!r} is not a number; a row looks like `{row}`.",
            problems.NOT_FINITE: f"{shown!r} is not a finite float32 value; remove it or scale the values.",
            problems.NEGATIVE_ID: f"{shown!r} has an id below {self.base}; ids start from {self.base}.",
            problems.EMPTY_ID: f"{shown!r} has an empty label id; labels look like `3,17`.",
            problems.FEATURE_OUT_OF_RANGE: (
                f"feature index {shown.partition(':')[0]} is out of range; "
                f"{declared} {LARGEST if self.n_features is None else self.n_features} features."
            ),
            problems.LABEL_OUT_OF_RANGE: (
                f"label {shown} is out of range; "
                f"{declared} {LARGEST if self.n_labels is None else self.n_labels} labels."
            ),
        }
        raise DataError(f"{self.path}:{line}: {said[problem]}")


def _whole_lines(file: object, size: int) -> Iterator[bytes]:
    begun: list[bytes] = []  # of a line that is not at its end yet
    while chunk := file.read(size):  # type: ignore[attr-defined]
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
    """Without the last rows, which are empty."""
    return piece._replace(features_of_row=piece.features_of_row[:n], labels_of_row=piece.labels_of_row[:n])


def _matrices(piece: Block, n_features: int | None, n_labels: int | None) -> tuple[csr_matrix, csr_matrix]:
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


def _put_in_order(X: csr_matrix, Y: csr_matrix) -> tuple[int, int]:
    """Sort the ids of each row, sum repeated features, take repeated labels once; how many there were."""
    before = X.nnz, Y.nnz
    for matrix in (X, Y):
        matrix.has_canonical_format = False
        matrix.sum_duplicates()
    Y.data[:] = 1
    return before[0] - X.nnz, before[1] - Y.nnz


class _Growing:
    """An array that grows by an eighth in place, so that the peak stays near its final size."""

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
