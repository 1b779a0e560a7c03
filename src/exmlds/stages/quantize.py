"""Quantize matrices row by row: float16, or int8 with one scale per row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from ..validation import stored

Array = np.ndarray

ITEM_BYTES = {"float32": 4.0, "float16": 2.0, "int8": 1.0}
STORAGES = tuple(ITEM_BYTES)


class Packed(NamedTuple):
    """A quantized matrix.

    values : (n, r) float32, float16 or int8
    scale : (n,) float32, the factor of each int8 row; (0,) for the other dtypes
    """

    values: Array
    scale: Array


def check(packed: Any, name: str, n: int, r: int | None) -> Packed:
    """Check a quantized (n, r) matrix that comes from a file."""
    stored.record(packed, name, Packed)
    values = stored.array(packed.values, name, " ".join(STORAGES), n, r)
    stored.array(packed.scale, f"the scale of {name}", "float32", n if values.dtype == np.int8 else 0)
    return packed


def pack(A: Array, storage: str) -> Packed:
    """Quantize A, (n, r), to a dtype of `STORAGES`; values beyond the range of float16 are clipped to it."""
    none = np.zeros(0, np.float32)
    if storage == "float32":
        return Packed(np.ascontiguousarray(A, np.float32), none)
    if storage == "float16":
        largest = np.finfo(np.float16).max
        return Packed(np.clip(A, -largest, largest).astype(np.float16), none)
    scale = (np.abs(A).max(axis=1, initial=0) / 127).astype(np.float32)
    steps = np.divide(A, scale[:, None], out=np.zeros(A.shape, np.float32), where=scale[:, None] > 0)
    return Packed(np.rint(steps).astype(np.int8), scale)


def unpack(packed: Packed, rows: Any = slice(None)) -> Array:
    """The selected rows as float32; all rows by default."""
    values = packed.values[rows]
    if not len(packed.scale):
        return values if values.dtype == np.float32 else values.astype(np.float32)
    return values * packed.scale[rows][:, None]


def times(X: Any, packed: Packed, columns: Array) -> Array:
    """(b, r), the product of X[:, columns] and the quantized matrix A, whose rows belong to these columns.

    X : (b, d) csr or dense
    columns : (n,) int64, ascending
    """
    # One sparse row: selecting columns of a csr matrix costs more than the product.
    if issparse(X) and X.shape[0] == 1 and len(columns):
        rows = np.searchsorted(columns, X.indices)
        rows[rows == len(columns)] = 0
        is_listed = columns[rows] == X.indices
        return (X.data * is_listed)[None] @ unpack(packed, rows)
    X = X[:, columns] if len(columns) < X.shape[1] else X
    if packed.values.dtype == np.float32 or not issparse(X):
        return np.asarray(X @ unpack(packed))
    # Only the rows of A that a sparse X needs are unpacked.
    needed, position = np.unique(X.indices, return_inverse=True)
    smaller = type(X)((X.data, position.astype(np.int32), X.indptr), shape=(X.shape[0], len(needed)))
    return np.asarray(smaller @ unpack(packed, needed))
