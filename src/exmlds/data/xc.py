"""XC text, the format of the Extreme Classification Repository, and its relatives.

    n d L                      a header, which may be missing
    l1,l2 f:v f:v …            one row per line, ids from 0; a row without labels
                               begins with a space

Also read: svmlight multi-label (no header, `# comments`), the split form (`trn_X_Xf.txt` with `trn_X_Y.txt`),
.npz pairs, and each of them gzipped. The format is detected from the content. Pairs that `write_npz` wrote
with `mapped=True` are memory-mapped.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from ..errors import DataError, DataWarning
from ..runtime import progress
from ..storage.files import PathLike, replacing
from ..validation.arrays import row_blocks
from ..validation.targets import indicator
from .dataset import Dataset
from .names import names_beside
from .npz import is_npz, read_npz
from .parse import HeaderChoice, TextFile, matrices, put_in_order

STREAMED = 1 << 20  # bytes per block of `iter_xc`


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
    path : the file; for a pair (split form, npz) either file, if both are in one folder under standard names
    labels : the labels' file of a pair
    header : "auto" treats a first line of three integers as a header; True requires one, False expects none
    one_based : ids in the file start from 1, as in some svmlight files
    n_features, n_labels : the width of X and Y if there is no header; by default, from the largest ids

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "two.txt"
    >>> _ = path.write_text("2 4 3\\n0,2 1:0.5 3:2\\n1 0:1\\n")
    >>> read_xc(path)
    Dataset(2 rows, 4 features (1.5 per row), 3 labels (1.50 per row))
    """
    path = Path(path)
    if labels is None and is_npz(path):
        path, labels = pair_of(path)
    if labels is not None:
        if one_based or (header is not True and header != "auto"):
            raise DataError("one_based and header apply to labels and features in one file, not to a pair.")
        return _read_pair(path, Path(labels), n_features, n_labels)
    text = TextFile(path, labelled=True, header=header, base=int(one_based), limits=(n_features, n_labels))
    if text.is_half:
        return _read_pair(*pair_of(path), n_features, n_labels)
    X, Y = text.read()
    names = names_beside(path, path, X.shape[1], Y.shape[1], are_fixed=text.has_widths)
    if names.labels:
        Y.resize(Y.shape[0], len(names.labels))
    if names.features:
        X.resize(X.shape[0], len(names.features))
    return Dataset(X, Y, *names)


def iter_xc(
    path: PathLike, *, n_features: int | None = None, n_labels: int | None = None, block: int = STREAMED
) -> Iterator[Dataset]:
    """Yield the rows of a file in blocks of about `block` bytes, so that it may be larger than memory.

    A text file without a header needs n_features; without n_labels, the width of Y is that of the block's
    largest label. For a pair, only the file of features is read, and Y has no columns.
    """
    path = Path(path)
    if is_npz(path):
        X = read_npz(path)
        for rows in row_blocks(X):
            yield Dataset(X[rows], csr_matrix((rows.stop - rows.start, 0), dtype=np.float32))
        return
    text = TextFile(path, labelled=True, limits=(n_features, n_labels), block=block)
    if text.is_half:
        text = TextFile(path, labelled=False, limits=(n_features, 0), block=block)
    if text.n_features is None:
        raise DataError(f"{path} has no header; pass n_features to read it in blocks.")
    warned = False
    for piece in text.blocks():
        X, Y = matrices(piece, text.n_features, text.n_labels)
        if piece.disorder:
            put_in_order(path, X, Y)
            if not warned:
                warnings.warn(
                    f"{path}: unsorted ids were sorted, repeated ones merged.", DataWarning, stacklevel=2
                )
                warned = True
        yield Dataset(X, Y)


def read_sparse(
    path: PathLike, *, n_columns: int | None = None, ordered: bool = True, noun: str = "column"
) -> csr_matrix:
    """Read one half of the split form: rows of `id:value`, with or without a header `n d`.

    n_columns : the width of the matrix; by default, that of the header or of the largest id
    ordered : False keeps the ids of a row in the order of the file
    noun : what error messages call an id
    """
    text = TextFile(Path(path), labelled=False, limits=(n_columns, None), nouns=(noun, noun))
    return text.read(ordered)[0]


def read_matrix(
    path: PathLike, *, n_columns: int | None = None, ordered: bool = True, noun: str = "column"
) -> csr_matrix:
    """Read one sparse matrix: .npz, or text with the arguments of `read_sparse`."""
    if is_npz(path):
        return read_npz(path)
    return read_sparse(path, n_columns=n_columns, ordered=ordered, noun=noun)


def declared_rows(path: PathLike) -> int | None:
    """The number of rows that a text file's header declares, or None if there is no header."""
    header = None if is_npz(path) else TextFile(Path(path), labelled=True).header
    return None if header is None else header.n_rows


def read_label_filter(path: PathLike, shape: tuple[int, int]) -> csr_matrix:
    """Read a label filter (`filter_labels_test.txt`): lines of `row label`, pairs that are not predicted.

    Returns a csr of `shape` with a 1 for each pair; pass it as `deny`.
    """
    n_rows, n_labels = shape
    nouns = ("label", "row")
    text = TextFile(Path(path), labelled=True, header=False, limits=(n_labels, n_rows), nouns=nouns)
    pieces = list(text.blocks())
    line = 0
    for piece in pieces:
        wrong = np.flatnonzero((piece.features_of_row != 1) | (piece.labels_of_row != 1))
        if wrong.size:
            where = f"{path}:{line + wrong[0] + 1}"
            raise DataError(f"{where}: a label filter has two ids per line, `row label`.")
        line += len(piece.features_of_row)
    rows = np.concatenate([piece.labels for piece in pieces])
    columns = np.concatenate([piece.features for piece in pieces])
    pairs = csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)
    pairs.data[:] = 1
    return pairs


def write_xc(path: PathLike, dataset: Dataset) -> None:
    """Write XC text with a header; gzipped if the name ends in .gz.

    Reading the file gives the same float32 values.
    """
    X, Y = csr_matrix(dataset.X, dtype=np.float32), indicator(dataset.Y)
    n = X.shape[0]
    if Y.shape[0] != n:
        raise DataError(f"X has {n} rows, but Y has {Y.shape[0]}; they must describe the same rows.")
    if not np.isfinite(X.data).all():
        raise DataError("X holds values that are not finite float32 numbers.")
    with replacing(path) as file, progress.stage("writing", n) as advance:
        file.write(f"{n} {X.shape[1]} {Y.shape[1]}\n".encode())
        for start in range(0, n, 1000):
            rows = range(start, min(start + 1000, n))
            x_start = X.indptr[start]
            tokens = _tokens(X, rows.start, rows.stop)
            lines = []
            for row in rows:
                names = ",".join(map(str, Y.indices[Y.indptr[row] : Y.indptr[row + 1]].tolist()))
                own = tokens[X.indptr[row] - x_start : X.indptr[row + 1] - x_start]
                lines.append(f"{names} {' '.join(own)}\n")
            file.write("".join(lines).encode())
            advance(len(rows))


def _tokens(X: csr_matrix, start: int, stop: int) -> list[str]:
    own = slice(X.indptr[start], X.indptr[stop])
    values = X.data[own].astype("U").tolist()  # the shortest text that gives each float32 back
    return [f"{i}:{v.removesuffix('.0')}" for i, v in zip(X.indices[own].tolist(), values)]


def indicator_of(Y: csr_matrix) -> csr_matrix:
    """(n, L) a copy in memory with 1 for each value other than 0."""
    Y = Y.copy()
    Y.eliminate_zeros()
    Y.data[:] = 1
    return Y


def pair_of(path: Path) -> tuple[Path, Path]:
    """The features' and the labels' file of a pair, from the path of either."""
    usual = (("X_Xf", "X_Y"), ("Xf", "Y"), ("X.", "Y."), ("X_", "Y_"))
    for x_name, y_name in usual:
        for own, other in ((x_name, y_name), (y_name, x_name)):
            sibling = path.with_name(path.name.replace(own, other, 1))
            if own in path.name and sibling.is_file():
                return (path, sibling) if own == x_name else (sibling, path)
    raise DataError(
        f"{path} holds one matrix, and the file with the other half is not in its folder; "
        "name both: read_xc(features, labels), or --labels FILE on the command line."
    )


def _read_pair(x_path: Path, y_path: Path, n_features: int | None, n_labels: int | None) -> Dataset:
    halves = []
    for path, width in ((x_path, n_features), (y_path, n_labels)):
        half = read_matrix(path, n_columns=width)
        if width is not None and half.shape[1] != width:
            raise DataError(f"{path} has {half.shape[1]} columns, but {width} are expected.")
        halves.append(half)
    X, Y = halves
    if X.shape[0] != Y.shape[0]:
        counts = f"{x_path} has {X.shape[0]} rows, {y_path} has {Y.shape[0]}"
        raise DataError(f"{counts}; they must describe the same rows.")
    Y = indicator_of(Y)
    return Dataset(X, Y, *names_beside(x_path, y_path, X.shape[1], Y.shape[1]))
