"""Products of blocks of a matrix, which its factorization consists of."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def multiply_csr(indptr: Array, indices: Array, data: Array, Q: Array, out: Array) -> None:
    """Write the product of a block of a sparse matrix and a dense one.

    indptr, indices, data : (b, m) csr, float32;  Q : (m, r) float32;  out : (b, r) float32
    """
    for row in range(len(out)):
        own = slice(indptr[row], indptr[row + 1])
        out[row] = (data[own, None].astype(np.float64) * Q[indices[own]]).sum(axis=0)


def multiply_dense(A: Array, Q: Array, out: Array) -> None:
    """Write the product of a block of a dense matrix and another one.

    A : (b, m) float32;  Q : (m, r) float32;  out : (b, r) float32
    """
    for row in range(len(out)):
        out[row] = (A[row, :, None].astype(np.float64) * Q).sum(axis=0)
