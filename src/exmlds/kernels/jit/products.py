"""Products of blocks of a matrix, which its factorization consists of: those of SciPy and BLAS."""

import numpy as np
from scipy.sparse import csr_matrix


def multiply_csr(indptr, indices, data, Q, out):
    """See the twin in reference/products.py."""
    out[:] = csr_matrix((data, indices, indptr), shape=(len(out), len(Q))) @ Q


def multiply_dense(A, Q, out):
    """See the twin in reference/products.py."""
    np.matmul(A, Q, out=out)
