"""Inner products of rows that are given in pairs."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def pair_products(indptr: Array, indices: Array, A: Array, B: Array, start: int, products: Array) -> None:
    """Write ⟨Aᵢ, Bⱼ⟩ for each pair (i, j) of some rows of a csr pattern.

    indptr, indices : (n + 1,) and (m,) the pattern
    A, B : (n, r) and (k, r) float32
    start : the first row i;  products : (p,) float32, of the pairs of as many rows as they belong to
    """
    first = indptr[start]
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))[first : first + len(products)]
    columns = indices[first : first + len(products)]
    products[:] = (A[rows].astype(np.float64) * B[columns]).sum(axis=1)
