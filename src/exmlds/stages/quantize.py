"""Quantize matrices row by row: float16, or int8 with one scale per row; and multiply rows with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from ..kernels import DEFAULT, Engine
from ..runtime.parallel import blocks, map_blocks
from ..validation import stored

Array = np.ndarray

ITEM_BYTES = {"float32": 4.0, "float16": 2.0, "int8": 1.0}
STORAGES = tuple(ITEM_BYTES)
ROWS = 1_024  # rows that are embedded at a time


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


def concatenate(parts: Sequence[Packed]) -> Packed:
    """Quantized matrices of one dtype on top of each other."""
    return Packed(*(np.concatenate(arrays) for arrays in zip(*parts)))


def keep(packed: Packed, is_kept: Array) -> Packed:
    """Some of the rows."""
    return Packed(packed.values[is_kept], packed.scale[is_kept] if len(packed.scale) else packed.scale)


def times(X: Any, packed: Packed, columns: Array, *, engine: Engine = DEFAULT) -> Array:
    """(b, r), the product of X[:, columns] and the quantized matrix A, whose rows belong to these columns.

    X : (b, d) csr float32 or dense
    columns : (n,) int64, ascending
    """
    if not issparse(X):
        X = X[:, columns] if len(columns) < X.shape[1] else X
        return engine.products(X, unpack(packed))
    Z = np.empty((X.shape[0], packed.values.shape[1]), np.float32)
    engine.multiply_packed(X.indptr, X.indices, X.data, columns, *packed, Z)
    return Z


def embed(X: Any, V: Array, *, n_jobs: int | None = None, engine: Engine = DEFAULT) -> Array:
    """(n, r) float32, z = x V, in blocks of rows on several threads.

    X : (n, d) csr float32 or dense;  V : (d, r) float32
    """
    Z = np.empty((X.shape[0], V.shape[1]), np.float32)

    def write(block: slice) -> None:
        if issparse(X):
            rows = np.arange(block.start, block.stop)
            engine.embed_rows(X.indptr, X.indices, X.data, rows, V, Z[block])
        else:
            Z[block] = X[block] @ V

    for _ in map_blocks(write, blocks(len(Z), ROWS), n_jobs=n_jobs, stage="embedding", total=len(Z)):
        pass
    return Z
