"""One file that holds all arrays of a model, with a CRC-32 of each of its blocks.

The arrays follow each other at multiples of 64 bytes, little-endian and without headers; a manifest says
where each is. `read` copies the file into memory and checks it there, so that a loaded model has no open
file, and nothing that happens to the file changes it.
"""

from __future__ import annotations

import errno
import math
import os
import stat
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from ..errors import ModelError

Array = np.ndarray

BLOCK = 1 << 22  # bytes that have one checksum
ALIGNMENT = 64
DTYPES = {
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
}
ADVICE = "Copy the model again, or train it again."
# A model folder may come from anywhere: links are not followed, and opening a pipe does not wait.
SAFELY: int = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def open_regular(path: Path, flags: int = os.O_RDONLY, mode: str = "rb") -> IO[bytes]:
    """Open a file of a model folder; links, pipes and devices are refused.

    Where there is no file, the error is FileNotFoundError or NotADirectoryError, otherwise a ModelError.
    """
    try:
        handle = os.open(path, flags | SAFELY, 0o666)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ModelError(
                f"{path} is a link; a model consists of real files. Copy them (cp -L), or train again."
            ) from None
        raise ModelError(f"{path}: cannot be opened ({error.strerror}).") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ModelError(f"{path} is not a regular file; a model consists of regular files.")
    return os.fdopen(handle, mode)


class ArrayWriter:
    """Appends arrays to a file.

    arrays : what the manifest holds of each array by name: where it is, its shape, dtype and order
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.size = file, 0
        self.arrays: dict[str, dict[str, Any]] = {}
        self.sums: list[int] = []

    def add(self, array: Array, name: str) -> str:
        """Append an array of one of DTYPES; returns its name, with a number where another has that name."""
        name = f"{len(self.arrays)}-{name}" if name in self.arrays else name
        # The order is kept, because BLAS rounds differently for a transposed matrix.
        order: Literal["C", "F"] = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        self._write(bytes(-self.size % ALIGNMENT))
        self.arrays[name] = {
            "offset": self.size,
            "bytes": array.nbytes,
            "shape": list(array.shape),
            "dtype": array.dtype.name,
            "order": order,
        }
        plain = np.asarray(array, array.dtype.newbyteorder("<")).reshape(-1, order=order)
        self._write(plain.view(np.uint8).data)
        return name

    def _write(self, data: bytes | memoryview) -> None:
        while len(data):
            if self.size % BLOCK == 0:
                self.sums.append(0)
            part = data[: BLOCK - self.size % BLOCK]
            self.file.write(part)
            self.sums[-1] = zlib.crc32(part, self.sums[-1])
            self.size += len(part)
            data = data[len(part) :]


def read(path: Path, size: int, sums: list[int]) -> Array:
    """(size,) uint8, the file in memory; a ModelError where it does not match its checksums."""
    with open_regular(path) as file, ThreadPoolExecutor(1) as pool:
        if os.fstat(file.fileno()).st_size != size or len(sums) != -(-size // BLOCK):
            raise ModelError(f"{path} is damaged: it has the wrong size. {ADVICE}")
        try:
            content: Array = np.empty(size, np.uint8)
            whole, found = content.data, []
            for start in range(0, size, BLOCK):  # One thread sums up a block while the next one is read.
                block = whole[start : start + BLOCK]
                if file.readinto(block) != len(block):  # type: ignore[attr-defined]
                    raise ModelError(f"{path} is damaged: it has the wrong size. {ADVICE}")
                found.append(pool.submit(zlib.crc32, block))
        except MemoryError:
            raise ModelError(f"{path} needs {size / 1e9:.3g} GB of memory, more than there is.") from None
        except OSError as error:
            raise ModelError(f"{path}: cannot be read ({error.strerror}).") from None
        if [one.result() for one in found] != sums:
            raise ModelError(f"{path} is damaged: it does not match its checksums. {ADVICE}")
    return content


def view(content: Array, entry: dict[str, Any]) -> Array:
    """The array that an entry of the manifest describes; a ValueError if it is not within the content."""
    offset, n_bytes, shape = entry["offset"], entry["bytes"], entry["shape"]
    if entry["dtype"] not in DTYPES or entry["order"] not in ("C", "F"):
        raise ValueError("an array has an unknown dtype or order")
    dtype = np.dtype(entry["dtype"])
    if not all(type(number) is int and number >= 0 for number in (offset, n_bytes, *shape)):
        raise ValueError("an array has a size that is not a whole number")
    if math.prod(shape) * dtype.itemsize != n_bytes or offset + n_bytes > len(content) or offset % ALIGNMENT:
        raise ValueError("an array is not within the file")
    raw = content[offset : offset + n_bytes]
    if dtype.kind == "b" and raw.max(initial=0) > 1:
        raise ValueError("an array of truth values holds other values")
    array = raw.view(dtype.newbyteorder("<")).astype(dtype, copy=False)
    return array.reshape(shape, order=entry["order"])
