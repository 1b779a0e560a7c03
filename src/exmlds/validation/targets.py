"""Conversion of targets in any supported form to an indicator matrix, and checks of side information."""

from __future__ import annotations

import reprlib
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, issparse

from .. import kernels
from ..errors import DataWarning
from .arrays import check_range, without_tiny

Array = np.ndarray

SEPARATORS = (",", ";", "|")  # between labels in one string
MIN_LISTS = 3  # different strings that must look like lists of labels
MIN_SHARE = 0.1  # share of the rows that such strings must have
MIN_RECURRING = 2 / 3  # share of their pieces that must be pieces of other strings too
MIN_MOVABLE = 1 / 4  # share of their pieces that must occur first in one string and later in another
MIN_SPLIT = 3  # different rows of X that must occur several times, each time with another label
MIN_COPIED, MIN_COPIES = 0.2, 50  # share and number of rows that must be copies of others

AMBIGUOUS = (
    "Y is ambiguous: lists of 0 and 1 of equal length. Pass a matrix of 0 and 1 as an array, np.stack(Y); "
    "lists must hold the labels themselves."
)


def encode(Y: Any, label_names: Sequence[str] | None = None) -> tuple[csr_matrix, Array | None]:
    """Return the (n, L) indicator matrix, csr of ones, and the (L,) classes of its columns; None is 0…L−1.

    Y : 2-d array, data frame or sparse matrix of 0 and 1; a list of lists or sets of labels, strings or
        whole numbers; or a 1-d array with one label per row. Strings are stripped of surrounding
        whitespace and normalized to Unicode NFC, and empty ones are dropped, as by the readers of files
    label_names : the names of all columns; for lists of labels they also fix the order of the columns
    """
    Y = as_array(Y)
    if is_indicator(Y):
        if label_names is None and hasattr(Y, "columns"):
            label_names = [str(name) for name in Y.columns]
        matrix = indicator(Y)
        return matrix, None if label_names is None else _classes(label_names, matrix.shape[1])
    rows = label_rows(Y)
    if _could_be_indicator(Y, rows):
        raise ValueError(AMBIGUOUS)
    if label_names is not None:
        classes = _classes(label_names, len(label_names))
        return from_rows(rows, _listed(rows, classes)), classes
    try:
        names = sorted({label for row in rows for label in row})
    except TypeError:
        raise ValueError("The labels in Y must be all strings or all whole numbers.") from None
    classes = np.array(names) if names and not isinstance(names[0], str) else _objects(names)
    return from_rows(rows, {name: column for column, name in enumerate(names)}), classes


def _listed(rows: list[list[Any]], classes: Array) -> dict[Any, int]:
    columns = {name: column for column, name in enumerate(classes)}
    for number, row in enumerate(rows):
        for label in row:
            if label not in columns:
                raise ValueError(f"Label {label!r} of row {number} is not among the label_names.")
    return columns


def as_array(Y: Any) -> Any:
    """Convert array-likes that are neither arrays nor sequences to arrays."""
    return np.asarray(Y) if hasattr(Y, "__array__") and not hasattr(Y, "ndim") else Y


def is_indicator(Y: Any) -> bool:
    """Whether Y is an indicator matrix rather than a list of labels per row."""
    return issparse(Y) or getattr(Y, "ndim", 0) == 2


def indicator(Y: Any) -> csr_matrix:
    """Convert an indicator matrix of any kind and dtype to csr float32 ones with sorted columns."""
    if not issparse(Y):
        Y = np.asarray(Y)
        try:
            Y = Y if Y.dtype.kind in "biuf" else Y.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                "A 2-d Y must hold 0 and 1. Got values that are not numbers; pass labels as one list per row."
            ) from None
    matrix = csr_matrix(Y)
    if matrix.data.dtype != bool:
        strange = np.flatnonzero((matrix.data != 0) & (matrix.data != 1))
        if strange.size:
            row = int(np.searchsorted(matrix.indptr, strange[0], side="right")) - 1
            raise ValueError(
                f"Y must hold 0 and 1 only. Got {matrix.data[strange[0]]} in row {row} instead. "
                "Are these values, not labels? Unknown label type: continuous targets can't be learnt."
            )
    matrix = matrix.astype(np.float32, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    matrix.data[:] = 1
    return matrix


def label_rows(Y: Any) -> list[list[Any]]:
    """Convert Y to one list of labels per row; strings are stripped, and empty ones are dropped.

    Where each row is one string, warn of strings that look like lists of labels.
    """
    if isinstance(Y, str) or not isinstance(Y, Iterable):
        raise ValueError(
            f"Y must be a matrix of 0 and 1, or one list of labels per row. Got {type(Y).__name__} instead."
        )
    rows, are_strings = [], True
    for i, row in enumerate(Y):
        are_strings = are_strings and isinstance(row, str)
        if isinstance(row, (list, tuple, set, frozenset, np.ndarray)) and not _is_scalar_array(row):
            labels = [_plain(label, i) for label in row]
        else:
            labels = [_plain(row, i)]
        rows.append([label for label in labels if label != ""])
    if are_strings:
        _refuse_written_lists(rows)
        _warn_of_lists(rows)
    return rows


class Unsplit(NamedTuple):
    """Strings that look like lists of labels: their separator, their number, and one of them."""

    separator: str
    n: int
    example: str


def find_unsplit(rows: Sequence[Sequence[Any]]) -> Unsplit | None:
    """Find labels that look like lists of labels, such as "grain, rice", in rows of mostly one label.

    Names may hold a comma too, such as "Paris, France" or "Austen, Jane". In lists, most pieces are also
    pieces of other strings, and many stand first in one string and later in another.
    """
    strings = Counter(row[0] for row in rows if len(row) == 1 and isinstance(row[0], str))
    n_filled = sum(len(row) > 0 for row in rows)
    if n_filled - strings.total() >= MIN_SHARE * n_filled:
        return None
    for separator in SEPARATORS:
        split = {string: _pieces(string, separator) for string in strings}
        lists = {string: pieces for string, pieces in split.items() if len(pieces) > 1}
        n_rows = sum(strings[string] for string in lists)
        if len(lists) < MIN_LISTS or n_rows < MIN_SHARE * n_filled:
            continue
        occurrences = Counter(piece for pieces in split.values() for piece in set(pieces))
        firsts = {pieces[0] for pieces in split.values() if pieces}
        movable = firsts & {piece for pieces in lists.values() for piece in pieces[1:]}
        pieces = [piece for pieces in lists.values() for piece in pieces]
        n_recurring = sum(occurrences[piece] > 1 for piece in pieces)
        n_movable = sum(piece in movable for piece in pieces)
        if n_recurring >= MIN_RECURRING * len(pieces) and n_movable >= MIN_MOVABLE * len(pieces):
            return Unsplit(separator, n_rows, max(lists, key=strings.__getitem__))
    return None


class SplitParts(NamedTuple):
    """Labels that may be the ends of longer labels: their number, one of them, and the label before it."""

    n: int
    example: str
    before: str


def find_parts(rows: Sequence[Sequence[str]]) -> SplitParts | None:
    """Find labels that occur only after one and the same label, as "France" does if "Paris, France" is split.

    Each must occur twice, and there must be several of them, because a few occur in any data.
    """
    before: dict[str, Counter[str | None]] = {}
    for row in rows:
        for previous, label in zip((None, *row), row):
            before.setdefault(label, Counter())[previous] += 1
    parts = {
        label: next(iter(counts))
        for label, counts in before.items()
        if len(counts) == 1 and None not in counts and counts.total() > 1
    }
    if len(parts) < MIN_LISTS or len(parts) < MIN_SHARE * len(before):
        return None
    label, previous = next(iter(parts.items()))
    return SplitParts(len(parts), label, str(previous))


def _pieces(string: str, separator: str) -> list[str]:
    return [piece for part in string.split(separator) if (piece := part.strip())]


def warn_of_repeated_rows(X: Any, Y: csr_matrix) -> None:
    """Warn of rows that are there several times: as copies, or once for each label of a text.

    X : (n, d) csr or dense, the rows in one form;  Y : (n, L) csr of ones
    """
    row, counts = _fingerprints(X), np.diff(Y.indptr)
    is_known = (row != 0) & (counts > 0)  # rows without features, or without labels, say nothing
    row, labels, n = row[is_known], _fingerprints(Y)[is_known], int(is_known.sum())
    _, group, sizes = np.unique(row, return_inverse=True, return_counts=True)
    _, pairs = np.unique(row * np.sqrt(2) + labels, return_index=True)
    n_distinct = np.bincount(group[pairs], minlength=len(sizes))
    # In equal rows that were not split, labels recur.
    is_split = (sizes > 1) & (n_distinct == sizes) & (counts.max(initial=0) <= 1)
    n_split, n_copies = int(is_split.sum()), n - len(pairs)
    if n_split >= MIN_SPLIT and sizes[is_split].sum() >= MIN_SHARE * len(counts):
        warnings.warn(
            f"{n_split:,} texts, or rows of X, occur several times with different labels. Put all labels of "
            'a text into one row; with Pandas: df.groupby("text", sort=False)["labels"].agg(list).'
            "reset_index().",
            DataWarning,
            stacklevel=2,
        )
    elif n_copies >= max(MIN_COPIED * n, MIN_COPIES):
        warnings.warn(
            f"{n_copies:,} of {n:,} rows are copies of others, with the same features and labels. Rows that "
            "are held out are then not new to the model, so that its threshold, probabilities and held-out "
            'metrics are too optimistic. Leave copies out; with Pandas: df.drop_duplicates("text").',
            DataWarning,
            stacklevel=2,
        )


def _fingerprints(A: Any) -> Array:
    """(n,) numbers that equal rows share, and others hardly ever; 0 for a row of zeros."""
    if not issparse(A):
        # A product by BLAS could differ in the last bits between equal rows.
        return np.einsum("ij,j->i", A, np.random.default_rng(0).random(A.shape[1]))
    found = np.empty(A.shape[0])
    kernels.DEFAULT.fingerprint_rows(A.indptr, A.indices, A.data, found)
    return found


def warn_of_order(X: Any, y: Any) -> None:
    """Warn of data frames or columns of Pandas whose indices differ in their order only."""
    if not (hasattr(X, "iloc") and hasattr(y, "iloc")) or X.index.equals(y.index):
        return
    if len(X) == len(y) and set(X.index) == set(y.index):
        warnings.warn(
            "X and y have the same index in another order, and rows are matched by their positions. Align "
            "them first: y = y.loc[X.index].",
            DataWarning,
            stacklevel=2,
        )


def _refuse_written_lists(rows: list[list[Any]]) -> None:
    """Refuse lists that became strings, as in a column of lists that was written to a CSV file."""
    filled = [row[0] for row in rows if row]
    if filled and all(label.startswith("[") and label.endswith("]") for label in filled):
        raise ValueError(
            f"The labels in y are lists that were written as strings, such as {reprlib.repr(filled[0])}. "
            "Read them: y = [ast.literal_eval(labels) for labels in y]."
        )


def _warn_of_lists(rows: list[list[Any]]) -> None:
    if unsplit := find_unsplit(rows):
        warnings.warn(
            f"{unsplit.n:,} of {len(rows):,} labels look like lists of labels, such as "
            f"{reprlib.repr(unsplit.example)}; each is taken as one label. Split them first: "
            f"y = [labels.split({unsplit.separator!r}) for labels in y].",
            DataWarning,
            stacklevel=2,
        )


def refuse_indicator_rows(Y: Any, rows: list[list[Any]]) -> None:
    """Refuse nested lists of 0 and 1 that can't be lists of labels, since they repeat some."""
    if _could_be_indicator(Y, rows) and any(len(set(row)) < len(row) for row in rows):
        raise ValueError(AMBIGUOUS)


def _could_be_indicator(Y: Any, rows: list[list[Any]]) -> bool:
    """Whether nested lists of 0 and 1 could be a matrix rather than lists of the labels 0 and 1."""
    are_lists = all(isinstance(row, (list, tuple, np.ndarray)) for row in Y)
    one_length = len({len(row) for row in rows}) == 1 and len(rows[0]) > 1
    return are_lists and one_length and all(label in (0, 1) for row in rows for label in row)


def _is_scalar_array(row: Any) -> bool:
    return isinstance(row, np.ndarray) and row.ndim == 0


def plain_name(name: str) -> str:
    """A label without surrounding whitespace, in Unicode NFC: macOS writes é as e and an accent."""
    name = name.strip()
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or the missing value of Pandas."""
    if isinstance(value, (float, np.floating)):
        return bool(value != value)  # NaN
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _plain(label: Any, row: int) -> Any:
    if isinstance(label, np.generic) or _is_scalar_array(label):
        label = label.item()
    if isinstance(label, str):
        return plain_name(label)
    if isinstance(label, int) and not isinstance(label, bool):
        return label
    if isinstance(label, bool) or (isinstance(label, float) and label.is_integer()):
        return int(label)
    if is_missing(label):
        raise ValueError(f"Row {row} has no label but {label!r}: leave it out, or give an empty list.")
    kind = " Unknown label type: continuous targets can't be learnt." if isinstance(label, float) else ""
    raise ValueError(
        f"Labels must be strings or whole numbers. Got {reprlib.repr(label)} in row {row} instead.{kind}"
    )


def from_rows(rows: Sequence[Iterable[Any]], column: dict[Any, int]) -> csr_matrix:
    """(n, L) csr of ones; a label without a column gets the next free one, and is added to `column`."""
    indices: list[int] = []
    indptr = [0]
    for row in rows:
        indices.extend(sorted({column.setdefault(label, len(column)) for label in row}))
        indptr.append(len(indices))
    parts = (np.ones(len(indices), np.float32), np.array(indices, np.int32), np.array(indptr))
    return csr_matrix(parts, shape=(len(indptr) - 1, len(column)))


class LabelMatrix:
    """Wraps an (L, L) matrix so that cross-validation does not index it by rows.

    scikit-learn's cross-validation cuts every fit argument that has as many rows as X.
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix


def cooccurrence(C: Any, n_labels: int) -> csr_matrix:
    """Check a label co-occurrence matrix for shape, finite values, signs and symmetry; return csr float64."""
    try:
        C = C if issparse(C) else np.atleast_2d(C)
    except ValueError:
        raise ValueError(
            "label_cooccurrence must be a matrix of numbers; its rows differ in length."
        ) from None
    if C.ndim != 2 or C.dtype.kind not in "biuf":
        got = f"{C.ndim} dimensions" if C.ndim != 2 else f"{C.dtype}"
        raise ValueError(f"label_cooccurrence must be a matrix of numbers. Got {got} instead.")
    C = csr_matrix(C, dtype=np.float64, copy=True)
    if C.shape != (n_labels, n_labels):
        raise ValueError(
            f"label_cooccurrence must be of shape {(n_labels, n_labels)}, one row and one column per label. "
            f"Got {C.shape} instead. If cross-validation has cut it, pass exmlds.LabelMatrix(C)."
        )
    C.sum_duplicates()

    def place(entry: int) -> str:
        row = int(np.searchsorted(C.indptr, entry, side="right")) - 1
        return f"for labels {row} and {C.indices[entry]}"

    for words, wrong in (
        ("finite", ~np.isfinite(C.data)),
        ("at least 0", np.where(np.isfinite(C.data), C.data, 0) < 0),
    ):
        if wrong.any():
            entry = int(np.argmax(wrong))
            got = f"Got {C.data[entry]} {place(entry)}"
            raise ValueError(f"label_cooccurrence must be {words}. {got} instead.")
    advice = "Divide the matrix by a number; its unit does not matter."
    check_range(C.data, "label_cooccurrence", place, advice)
    C.data = without_tiny(C.data)
    uneven = abs(C - C.T).tocoo()
    if uneven.nnz and uneven.data.max() > 1e-6 * max(C.data.max(), 1e-300):
        entry = int(np.argmax(uneven.data))
        i, j = int(uneven.row[entry]), int(uneven.col[entry])
        raise ValueError(
            f"label_cooccurrence must be symmetric. Got {C[i, j]} for labels {i} and {j}, but {C[j, i]} for "
            f"{j} and {i}."
        )
    C.eliminate_zeros()
    if not C.nnz:
        raise ValueError("label_cooccurrence holds nothing but zeros.")
    return C


def observed_cells(observed: Any, Y: csr_matrix) -> csr_matrix:
    """(n, L) csr of ones, the observed cells of Y, which include all labels that are present."""
    try:
        observed = indicator(observed)
    except ValueError:
        raise ValueError("observed must be a matrix of the shape of Y that holds 0 and 1 only.") from None
    if observed.shape != Y.shape:
        raise ValueError(f"observed must be of the shape of Y, {Y.shape}. Got {observed.shape} instead.")
    return csr_matrix(observed.maximum(Y), dtype=np.float32)


def of_missing(Y: csr_matrix, *, label_cooccurrence: Any, observed: Any) -> dict[str, Any]:
    """Check the side information on missing labels; return it by the argument names of `fit`."""
    C = label_cooccurrence.matrix if isinstance(label_cooccurrence, LabelMatrix) else label_cooccurrence
    return {
        "label_cooccurrence": None if C is None else cooccurrence(C, Y.shape[1]),
        "observed": None if observed is None else observed_cells(observed, Y),
    }


def match_scores(matches: Any, shape: tuple[int, int]) -> csr_matrix:
    """(n, L) csr float32 with sorted columns, the checked scores of names in texts; zeros are left out."""
    if not issparse(matches) or matches.shape != shape:
        got = f"{matches.shape}" if issparse(matches) else type(matches).__name__
        raise ValueError(f"name_matches must be a sparse matrix of shape {shape}. Got {got} instead.")
    found = csr_matrix(matches, dtype=np.float32, copy=True)
    found.sum_duplicates()
    found.eliminate_zeros()
    wrong = np.flatnonzero(~((found.data > 0) & (found.data <= 1)))
    if wrong.size:
        row = int(np.searchsorted(found.indptr, wrong[0], "right")) - 1
        raise ValueError(
            f"name_matches must be from 0 to 1. Got {found.data[wrong[0]]:g} in row {row} instead."
        )
    return found


def kinds_of_attributes(attributes: Any, n_labels: int) -> list[csr_matrix]:
    """The checked attributes of labels, (L, A) csr of ones for each kind.

    attributes : a matrix, or a list of one for each kind
    """
    kinds = attributes if isinstance(attributes, (list, tuple)) else [attributes]
    return [_attributes_of_labels(kind, n_labels) for kind in kinds]


def _attributes_of_labels(attributes: Any, n_labels: int) -> csr_matrix:
    if not issparse(attributes) or attributes.shape[0] != n_labels:
        got = f"{attributes.shape}" if issparse(attributes) else type(attributes).__name__
        raise ValueError(
            f"label_attributes must be a sparse matrix with {n_labels} rows, one for each label. "
            f"Got {got} instead."
        )
    found = csr_matrix(attributes != 0, dtype=np.float32)
    found.sort_indices()
    return found


def rows_of_labels(label_rows: Any, shape: tuple[int, int]) -> csr_matrix:
    """(L, d) csr float32, the checked features that describe labels."""
    if not issparse(label_rows) or label_rows.shape != shape:
        got = f"{label_rows.shape}" if issparse(label_rows) else type(label_rows).__name__
        raise ValueError(
            f"label_rows must be a sparse matrix of shape {shape}, with the features of X for each label. "
            f"Got {got} instead."
        )
    found = csr_matrix(label_rows, dtype=np.float32)
    if not np.isfinite(found.data).all():
        raise ValueError("label_rows must be finite.")
    return found


def row_weights(weights: Any, n: int) -> Array:
    """(n,) float32, checked sample weights."""
    try:
        found = np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight must be one number per row.") from None
    if found.shape != (n,):
        raise ValueError(f"sample_weight must be of shape {(n,)}. Got {found.shape} instead.")
    wrong = np.flatnonzero(~(np.isfinite(found) & (found >= 0)))
    if wrong.size:
        got = f"Got {found[wrong[0]]:g} in row {wrong[0]}"
        raise ValueError(f"sample_weight must be finite and not negative. {got} instead.")
    if not found.any():
        raise ValueError("Not all of sample_weight may be zero.")
    advice = "Weights are relative to their mean, so divide all of them by the same number."
    check_range(found, "sample_weight", lambda row: f"in row {row}", advice)
    return without_tiny(found).astype(np.float32)


def _classes(label_names: Sequence[str], n_labels: int) -> Array:
    label_names = [plain_name(str(name)) for name in label_names]
    if len(label_names) != n_labels:
        raise ValueError(f"There are {len(label_names)} label_names, but Y has {n_labels} columns.")
    if len(set(label_names)) < n_labels:
        seen: set[str] = set()
        twice = next(name for name in label_names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"label_names must differ without surrounding whitespace; {twice!r} appears twice.")
    return _objects(label_names)


def _objects(names: list[str]) -> Array:
    # dtype object: with 'U' one long name would widen every entry.
    classes = np.empty(len(names), object)
    classes[:] = names
    return classes
