"""Sparse matrices in .npz files, one matrix per file, as PECOS writes `X.trn.npz` and `Y.trn.npz`.

A file that `write_npz(…, mapped=True)` wrote is one too, which other programs read as well. Its arrays are
not compressed, begin at multiples of 64 bytes, and are float32 csr with sorted indices, so that they can be
used as they lie in the file: `read_npz` checks them block by block and memory-maps them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from struct import pack, unpack
from time import perf_counter
from typing import IO, Any, Self
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy
from scipy.sparse import csr_matrix, issparse, load_npz, save_npz

from ..errors import DataError
from ..runtime import progress
from ..storage.files import PathLike, reading, replacing
from ..validation.arrays import value_blocks
from ..validation.targets import indicator
from .dataset import Dataset
from .read_log import logger

Array = np.ndarray

MAPPED = b"exmlds: mapped"  # the comment of an archive whose arrays are memory-mapped
ALIGNMENT = 64
PADDING = 0xD935  # the number of the extra field by which the members of an archive are aligned
CHUNK = 1 << 22  # bytes that are copied or checked at a time
LARGEST = np.iinfo(np.int32).max


def is_npz(path: PathLike) -> bool:
    """Whether the file is a zip archive, as every .npz file is."""
    with reading(Path(path)) as file:
        return file.read(4) == b"PK\x03\x04"


def is_mapped_npz(path: PathLike) -> bool:
    """Whether the file was written to be memory-mapped: the comment of an archive is at its end."""
    try:
        with Path(path).open("rb") as file:
            if file.seek(0, os.SEEK_END) < len(MAPPED):
                return False
            file.seek(-len(MAPPED), os.SEEK_END)
            return file.read() == MAPPED
    except OSError:
        return False  # the reader explains what is wrong with it


def read_npz(path: PathLike) -> csr_matrix:
    """Read a sparse matrix as csr float32, with sorted indices and duplicates summed.

    The arrays of a file that `write_npz` wrote with `mapped=True` are memory-mapped and read-only.
    """
    path, started = Path(path), perf_counter()
    is_mapped = is_mapped_npz(path)
    try:
        matrix = _map(path) if is_mapped else _load(path)
        matrix.check_format(full_check=True)
        if not is_mapped:
            matrix.sum_duplicates()
        elif not matrix.has_canonical_format:
            raise ValueError("the indices of a row do not ascend")
    except Exception as error:  # damaged archives raise many types of errors, zlib's and the tokenizer's too
        hint = "convert the data again" if is_mapped else "write it with scipy.sparse.save_npz"
        raise DataError(f"{path}: cannot be read as a sparse matrix ({error}); {hint}.") from None
    for block in value_blocks(matrix.data):
        wrong = np.flatnonzero(~np.isfinite(matrix.data[block]))
        if wrong.size:
            at = block.start + wrong[0]
            row = np.searchsorted(matrix.indptr, at, "right") - 1
            raise DataError(
                f"{path}: row {row}, counted from 0, holds {matrix.data[at]}, which is not finite; remove it."
            )
    logger.info("read %s: %s rows in %.2f s", path, f"{matrix.shape[0]:,}", perf_counter() - started)
    return matrix


def npz_shape(path: PathLike) -> tuple[int, int]:
    """The shape of a sparse matrix, whose values are not read."""
    try:
        with reading(Path(path)) as file, np.load(file) as archive:
            n_rows, n_columns = archive["shape"].tolist()
    except Exception:  # of many types, which reading all explains
        n_rows, n_columns = read_npz(path).shape
    return n_rows, n_columns


def _load(path: Path) -> csr_matrix:
    """The matrix in memory."""
    with reading(path) as file:
        _check_size(file, path.stat().st_size)
        file.seek(0)
        matrix = load_npz(file)
    if not issparse(matrix):
        raise ValueError("not a sparse matrix")
    return csr_matrix(matrix, dtype=np.float32)


def _check_size(file: IO[bytes], size: int) -> None:
    """Reject an absurd number of rows, which formats other than csr can declare in a small file."""
    with np.load(file) as archive:
        rows = int(archive["shape"][0])
    if 8 * rows > max(10**8, 1_000 * size):
        raise ValueError(f"{rows} rows are declared in a file of {size} bytes")


def _map(path: Path) -> csr_matrix:
    """The matrix with its values and indices where they lie in the file; every byte is compared first."""
    with path.open("rb") as file, ZipFile(file) as archive:
        for member in archive.infolist():
            if member.compress_type != ZIP_STORED:
                raise ValueError(f"{member.filename} is compressed")
            with archive.open(member) as content:  # at the end, zipfile compares the checksum
                while content.read(CHUNK):
                    pass
        shape, kind = (npy.read_array(archive.open(f"{name}.npy")) for name in ("shape", "format"))
        if kind.item() != b"csr" or shape.shape != (2,) or shape.dtype.kind != "i":
            raise ValueError("not a csr matrix")
        data, indices, indptr = (
            _map_array(file, archive.getinfo(f"{name}.npy")) for name in ("data", "indices", "indptr")
        )
    n_rows, n_columns = shape.tolist()
    if data.dtype != np.float32 or indices.dtype not in (np.int32, np.int64) or indptr.dtype != np.int64:
        raise ValueError(f"the arrays are {data.dtype}, {indices.dtype} and {indptr.dtype}")
    if len(indptr) != n_rows + 1 or len(data) != len(indices) or not 0 <= n_columns <= LARGEST:
        raise ValueError("the arrays do not have the lengths of the matrix")
    indptr = np.array(indptr)  # small, and read for every row
    if indptr[0] != 0 or indptr[-1] != len(data) or (np.diff(indptr) < 0).any():
        raise ValueError("the ends of the rows do not ascend")
    return csr_matrix((data, indices, indptr), shape=(n_rows, n_columns))


def _map_array(file: IO[bytes], member: ZipInfo) -> Array:
    file.seek(member.header_offset)
    header = unpack("<4s22x2H", file.read(30))
    start = member.header_offset + 30 + header[1] + header[2]
    file.seek(start)
    version, (shape, _, dtype) = npy.read_magic(file), npy.read_array_header_1_0(file)
    offset = file.tell()
    if version != (1, 0) or len(shape) != 1 or dtype.hasobject or offset % ALIGNMENT:
        raise ValueError(f"{member.filename} can't be memory-mapped")
    if offset - start + shape[0] * dtype.itemsize != member.file_size:
        raise ValueError(f"{member.filename} has the wrong size")
    if not shape[0]:  # there is nothing to map
        return np.empty(0, dtype)
    return np.asarray(np.memmap(file, dtype, "r", offset, shape))


def write_npz(
    path: PathLike, dataset: Dataset | Iterable[Dataset], *, mapped: bool = False
) -> tuple[Path, Path]:
    """Write a pair of files, `X.name.npz` and `Y.name.npz`, and return their paths.

    Parameters
    ----------
    path : the path of either file, or one without `X.` and `Y.`, which are then added
    dataset : a data set; with `mapped`, it may be an iterable of its blocks of rows, which are written one by
        one, so that it may be larger than memory
    mapped : write files that `read_npz` and `read_xc` memory-map; they are not compressed
    """
    paths = npz_pair(Path(path))
    if mapped:
        with writing_mapped(paths) as (X, Y):
            for block in [dataset] if isinstance(dataset, Dataset) else dataset:
                X.append(block.X)
                Y.append(indicator(block.Y))
        return paths
    if not isinstance(dataset, Dataset):
        raise DataError("Blocks of rows can be written with mapped=True only.")
    with replacing(paths[0]) as x_file, replacing(paths[1]) as y_file:
        save_npz(x_file, dataset.X)
        save_npz(y_file, dataset.Y)
    return paths


def npz_pair(path: Path) -> tuple[Path, Path]:
    """The paths of the features and of the labels, from one of them or from a name without `X.` and `Y.`."""
    name = path.name[2:] if path.name.startswith(("X.", "Y.")) else path.name
    return path.with_name(f"X.{name}"), path.with_name(f"Y.{name}")


@contextmanager
def writing_mapped(paths: tuple[Path, Path]) -> Iterator[tuple[MatrixSpool, MatrixSpool]]:
    """Append blocks of rows to X and Y; both files are written and renamed at the end, if all went well."""
    with MatrixSpool(paths[0]) as X, MatrixSpool(paths[1]) as Y:
        yield X, Y
        if X.n_rows != Y.n_rows:
            raise DataError(f"X has {X.n_rows} rows, but Y has {Y.n_rows}; they must describe the same rows.")
        with replacing(paths[0]) as x_file, replacing(paths[1]) as y_file:
            X.save(x_file)
            Y.save(y_file)


class MatrixSpool:
    """The rows of a matrix that is written in blocks, in temporary files without names beside its own.

    n_rows, nnz : of the rows so far
    n_columns : of the widest block so far; it may be raised
    """

    def __init__(self, path: Path) -> None:
        self.path, self.n_rows, self.nnz, self.n_columns = path, 0, 0, 0

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            try:
                self.data, self.indices, self.indptr = (
                    opened.enter_context(tempfile.TemporaryFile(dir=self.path.parent)) for _ in range(3)
                )
            except OSError as error:
                raise DataError(f"{self.path}: cannot be written ({error.strerror}).") from None
            self._write(self.indptr, np.zeros(1), "<i8")
            self._files = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def append(self, X: Any) -> None:
        """Append rows; their indices are sorted and duplicates summed."""
        X = csr_matrix(X, dtype=np.float32)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        if not all(np.isfinite(X.data[block]).all() for block in value_blocks(X.data)):
            raise DataError("X holds values that are not finite float32 numbers.")
        self._write(self.data, X.data, "<f4")
        self._write(self.indices, X.indices, "<i4")
        self._write(self.indptr, self.nnz + X.indptr[1:].astype(np.int64), "<i8")
        self.n_rows, self.nnz = self.n_rows + X.shape[0], self.nnz + X.nnz
        self.n_columns = max(self.n_columns, X.shape[1])

    def _write(self, file: IO[bytes], array: Array, dtype: str) -> None:
        try:
            for block in value_blocks(array):
                file.write(array[block].astype(dtype, copy=False).data)
        except OSError as error:
            raise DataError(f"{self.path}: cannot be written ({error.strerror}).") from None

    def ids(self) -> tuple[Array, Array]:
        """(nnz,) the column of each value, and (n + 1,) the ends of the rows, memory-mapped."""
        if not self.nnz:
            return np.zeros(0, np.int32), np.zeros(self.n_rows + 1, np.int64)
        self.indices.flush()
        self.indptr.flush()
        return np.memmap(self.indices, "<i4", "r"), np.memmap(self.indptr, "<i8", "r")

    def save(self, file: IO[bytes]) -> None:
        """Write the matrix as an archive, as `scipy.sparse.save_npz` does, with aligned arrays."""
        # scipy converts both to int64, in memory, where one of them is.
        index_type = "<i4" if self.nnz <= LARGEST else "<i8"
        shape = np.array([self.n_rows, self.n_columns], "<i8")
        with (
            ZipFile(file, "w", ZIP_STORED) as archive,
            progress.stage("writing", self.nnz, "values") as advance,
        ):
            archive.comment = MAPPED
            _write_member(archive, file, "indptr", "<i8", (self.n_rows + 1,), _chunks(self.indptr))
            _write_member(archive, file, "format", "|S3", (), [np.array(b"csr").tobytes()])
            _write_member(archive, file, "shape", "<i8", (2,), [shape.tobytes()])
            indices = (np.frombuffer(chunk, "<i4").astype(index_type).data for chunk in _chunks(self.indices))
            _write_member(archive, file, "indices", index_type, (self.nnz,), indices)
            _write_member(archive, file, "data", "<f4", (self.nnz,), _chunks(self.data, advance))


def _chunks(file: IO[bytes], advance: Callable[[int], None] = lambda _: None) -> Iterator[bytes]:
    file.seek(0)
    while chunk := file.read(CHUNK):
        yield chunk
        advance(len(chunk) // 4)


def _write_member(
    archive: ZipFile, file: IO[bytes], name: str, dtype: str, shape: tuple[int, ...], chunks: Iterable[Any]
) -> None:
    """Write an array, whose header is a multiple of 64 bytes, to where its values are aligned."""
    member = ZipInfo(f"{name}.npy")
    # The header of a member has 30 bytes, its name, and extra fields: that of large files, 20, and ours.
    before = file.tell() + 30 + len(member.filename) + 20 + 4
    member.extra = pack("<2H", PADDING, -before % ALIGNMENT) + bytes(-before % ALIGNMENT)
    with archive.open(member, "w", force_zip64=True) as content:
        npy.write_array_header_1_0(content, {"descr": dtype, "fortran_order": False, "shape": shape})
        for chunk in chunks:
            content.write(chunk)
