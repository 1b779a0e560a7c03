"""Inner products of sparse rows."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

Array = np.ndarray


def gram_rows(
    indptr: Array,
    indices: Array,
    data: Array,
    t_indptr: Array,
    t_indices: Array,
    t_data: Array,
    start: int,
    out: Array,
) -> None:
    """Add the rows from `start` on of A Aᵀ, up to the diagonal, to `out`.

    indptr, indices, data : A as csr, float32;  t_* : its transpose as csr, its columns sorted
    out : (b, n) float32
    """
    n = len(indptr) - 1
    A = csr_matrix((data, indices, indptr), shape=(n, len(t_indptr) - 1))
    products = (A[start : start + len(out)] @ A.T).toarray()
    out += np.tril(products, start)
