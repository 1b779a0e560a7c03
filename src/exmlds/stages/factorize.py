"""Truncated eigendecomposition or SVD of a square matrix by randomized subspace iteration.

The matrix is used only through products with it, so it may be a LinearOperator.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh, lu, qr
from scipy.sparse.linalg import aslinearoperator

Array = np.ndarray

EXACT = 1_000  # largest size at which the matrix is formed and factorized exactly


def embed(
    A: Any, rank: int, rng: np.random.Generator, *, symmetric: bool = True, n_passes: int = 4
) -> tuple[Array, Array]:
    """Return U, (m, r), and the singular values s, (r,), largest first; the embedding is Z = U √s.

    A : (m, m) array, sparse matrix or LinearOperator
    symmetric : whether A = Q Λ Qᵀ. Its SVD is Q |Λ| (Q sign Λ)ᵀ, so the singular values are |λ| and the left
        singular vectors are the eigenvectors. Otherwise U and s² are those of A Aᵀ = U s² Uᵀ.
    n_passes : iterations of multiplying by A and re-orthogonalizing. Four gave votes as good as eight on
        EURLex-4K, in a quarter of the time of Lanczos.

    Where m is below the rank, the columns beyond m are zero.
    """
    if not symmetric:
        operator = aslinearoperator(A)
        U, squares = embed(operator @ operator.H, rank, rng, n_passes=n_passes)
        return U, np.sqrt(squares)
    m = A.shape[0]
    width = min(m, rank + rank // 10 + 10)  # Oversampling makes the last wanted columns accurate.
    if m <= max(EXACT, width):
        full = np.asarray(A @ np.eye(m, dtype=np.float32), np.float64)
        values, vectors = eigh((full + full.T) / 2)
    else:
        Q = rng.standard_normal((m, width), dtype=np.float32)
        for _ in range(n_passes - 1):
            # LU keeps the columns independent in a quarter of the time of a QR decomposition.
            Q = lu(A @ Q, permute_l=True, check_finite=False)[0]
        Q = qr(A @ Q, mode="economic", overwrite_a=True, check_finite=False)[0]
        small = np.asarray(Q.T @ (A @ Q), np.float64)  # Rayleigh–Ritz
        values, rotation = np.linalg.eigh((small + small.T) / 2)
        vectors = Q @ rotation.astype(np.float32)
    order = np.argsort(-np.abs(values), kind="stable")[:rank]
    U, s = np.zeros((m, rank), np.float32), np.zeros(rank, np.float32)
    U[:, : len(order)], s[: len(order)] = vectors[:, order], np.abs(values[order])
    return U, s
