"""Rows of numbers in fewer bytes: float16, or int8 with a scale a row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

Array = np.ndarray

ITEM_BYTES = {"float32": 4.0, "float16": 2.0, "int8": 1.0}
STORAGES = tuple(ITEM_BYTES)


class Packed(NamedTuple):
    """Rows as they are kept.

    values : (n, r) float32, float16 or int8
    scale : (n,) float32, by which int8 rows are multiplied; or (0,)
    """

    values: Array
    scale: Array


def pack(A: Array, storage: str) -> Packed:
    """The rows of A, (n, r), as `storage` says; values beyond what float16 can hold become its largest."""
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
    """Some of the rows, or all, as float32."""
    values = packed.values[rows]
    if not len(packed.scale):
        return values if values.dtype == np.float32 else values.astype(np.float32)
    return values * packed.scale[rows][:, None]


def times(X: Any, packed: Packed, columns: Array) -> Array:
    """X A, (b, r), for the columns of X, (b, d) sparse or dense, that the rows of A stand for.

    columns : (n,) ascending;  only the rows of A that a sparse X needs are unpacked
    """
    if issparse(X) and X.shape[0] == 1 and len(columns):  # without the matrices that several rows need
        places = np.searchsorted(columns, X.indices)
        places[places == len(columns)] = 0
        known = columns[places] == X.indices
        return (X.data * known)[None] @ unpack(packed, places)
    X = X[:, columns] if len(columns) < X.shape[1] else X
    if packed.values.dtype == np.float32 or not issparse(X):
        return np.asarray(X @ unpack(packed))
    needed, place = np.unique(X.indices, return_inverse=True)
    smaller = type(X)((X.data, place.astype(np.int32), X.indptr), shape=(X.shape[0], len(needed)))
    return np.asarray(smaller @ unpack(packed, needed))
