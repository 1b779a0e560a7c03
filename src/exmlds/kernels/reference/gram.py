"""The Gram matrix of sparse rows."""

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
    """Add b rows of the lower triangle of A Aᵀ, from row `start`, to `out`.

    indptr, indices, data : A as csr float32
    t_indptr, t_indices, t_data : Aᵀ as csr float32 with sorted indices
    out : (b, n) float32
    """
    n = len(indptr) - 1
    A = csr_matrix((data, indices, indptr), shape=(n, len(t_indptr) - 1))
    products = (A[start : start + len(out)] @ A.T).toarray()
    out += np.tril(products, start)
