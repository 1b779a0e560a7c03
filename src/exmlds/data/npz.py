"""Sparse matrices in .npz files, one matrix per file, as PECOS writes `X.trn.npz` and `Y.trn.npz`."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import IO

import numpy as np
from scipy.sparse import csr_matrix, issparse, load_npz, save_npz

from ..errors import DataError
from ..storage.files import PathLike, reading, replacing
from .dataset import Dataset
from .read_log import logger


def is_npz(path: PathLike) -> bool:
    """Whether the file is a zip archive, as every .npz file is."""
    with reading(Path(path)) as file:
        return file.read(4) == b"PK\x03\x04"


def read_npz(path: PathLike) -> csr_matrix:
    """Read a sparse matrix as csr float32, with sorted indices and duplicates summed."""
    path, started = Path(path), perf_counter()
    try:
        with reading(path) as file:
            _check_size(file, path.stat().st_size)
            file.seek(0)
            matrix = load_npz(file)
        if not issparse(matrix):
            raise ValueError("not a sparse matrix")
        matrix = csr_matrix(matrix, dtype=np.float32)
        matrix.check_format(full_check=True)
        matrix.sum_duplicates()
    except Exception as error:  # damaged archives raise many types of errors, zlib's and the tokenizer's too
        hint = "write it with scipy.sparse.save_npz"
        raise DataError(f"{path}: cannot be read as a sparse matrix ({error}); {hint}.") from None
    if not np.isfinite(matrix.data).all():
        raise DataError(f"{path} holds values that are not finite; remove them.")
    logger.info("read %s: %s rows in %.2f s", path, f"{matrix.shape[0]:,}", perf_counter() - started)
    return matrix


def _check_size(file: IO[bytes], size: int) -> None:
    """Reject an absurd number of rows, which formats other than csr can declare in a small file."""
    with np.load(file) as archive:
        rows = int(archive["shape"][0])
    if 8 * rows > max(10**8, 1_000 * size):
        raise ValueError(f"{rows} rows are declared in a file of {size} bytes")


def write_npz(path: PathLike, dataset: Dataset) -> tuple[Path, Path]:
    """Write a pair of files, `X.name.npz` and `Y.name.npz`, and return their paths.

    path : the path of either file, or one without `X.` and `Y.`, which are then added
    """
    paths = npz_pair(Path(path))
    with replacing(paths[0]) as x_file, replacing(paths[1]) as y_file:
        save_npz(x_file, dataset.X)
        save_npz(y_file, dataset.Y)
    return paths


def npz_pair(path: Path) -> tuple[Path, Path]:
    """The paths of the features and of the labels, from one of them or from a name without `X.` and `Y.`."""
    name = path.name[2:] if path.name.startswith(("X.", "Y.")) else path.name
    return path.with_name(f"X.{name}"), path.with_name(f"Y.{name}")
