"""Arrays in memory-mapped files: rows may be larger than memory, and then what is made of them is a file too.

A scratch array is a temporary file without a name, which is gone with the array. The folder of such files is
that of the module `tempfile`, which the environment variable TMPDIR sets.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import Any

import numpy as np

from ..errors import DataError

Array = np.ndarray

SCRATCH_FROM = 1 << 20  # bytes below which an array is made in memory in any case


def is_mapped(array: Any) -> bool:
    """Whether the numbers of an array are those of a memory-mapped file."""
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, mmap.mmap)


def zeros(size: int, dtype: Any, like: Array) -> Array:
    """(size,) an array of zeros: a scratch array if `like` is memory-mapped, otherwise in memory."""
    n_bytes = size * np.dtype(dtype).itemsize
    if n_bytes < max(SCRATCH_FROM, 1) or not is_mapped(like):
        return np.zeros(size, dtype)
    return _scratch(size, dtype, n_bytes)


def _scratch(size: int, dtype: Any, n_bytes: int) -> Array:
    try:
        with tempfile.TemporaryFile(prefix="exmlds-") as file:
            # A file with holes would end the process where the disk is full, so the space is taken at once.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, n_bytes)
            else:
                file.truncate(n_bytes)
            return np.asarray(np.memmap(file, dtype, "r+", shape=(size,)))
    except OSError as error:
        raise DataError(
            f"{tempfile.gettempdir()} has no room for {n_bytes / 1e9:.2g} GB of scratch files, which a fit "
            f"on memory-mapped rows needs ({error.strerror}). Set the environment variable TMPDIR to a "
            "folder on a disk with more room."
        ) from None
