"""A positive matrix of low rank that is close to a symmetric one at the entries that are known.

    min over M ⪰ 0 of rank r of  ‖P_Ω(G − M)‖²

Singular value projection (Jain, Meka and Dhillon, 2010) alternates a gradient step, M + η P_Ω(G − M), with
the projection to the r largest positive eigenvalues.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import lu, qr
from scipy.sparse import csr_matrix

from ..kernels import DEFAULT, Engine
from ..runtime.parallel import bounded_blocks, map_blocks

Array = np.ndarray

ENTRIES = 2_000_000  # known entries in a block of rows
MORE = 10  # further columns of the subspace, which make the last wanted one accurate
FIRST_PASSES = 4  # from a random subspace; each later step starts from the one before


def embed(
    known: csr_matrix,
    rank: int,
    rng: np.random.Generator,
    *,
    step: float = 1.0,
    n_iterations: int = 30,
    tolerance: float = 1e-3,
    n_jobs: int | None = None,
    engine: Engine = DEFAULT,
) -> Array:
    """(m, r) float32 Z with M = Z Zᵀ.

    known : (m, m) csr float32 of the entries that are known, symmetric, also in its pattern
    step : η; with 1 the error never grows
    tolerance : iterations end when the error falls by a smaller share
    """
    m = known.shape[0]
    width = min(m, rank + MORE)
    Z = np.zeros((m, rank), np.float32)
    Q = rng.standard_normal((m, width), dtype=np.float32)
    todo = bounded_blocks(np.diff(known.indptr).tolist(), ENTRIES)

    def over_rows(work: Callable[[slice], Array]) -> Array:
        """(m, …) or (nnz,) what a function gives for blocks of rows."""
        parts = map_blocks(work, todo, n_jobs=n_jobs, stage="completing similarities", total=m)
        return np.concatenate(list(parts))

    def missing(rows: slice) -> Array:
        """What M lacks of the known entries of some rows."""
        own = slice(known.indptr[rows.start], known.indptr[rows.stop])
        products = np.empty(own.stop - own.start, np.float32)
        engine.pair_products(known.indptr, known.indices, Z, Z, rows.start, products)
        return known.data[own] - products

    before = np.inf
    for iteration in range(n_iterations):
        residual = csr_matrix((over_rows(missing), known.indices, known.indptr), known.shape)
        error = float(np.linalg.norm(residual.data))
        if before - error < tolerance * before < np.inf:
            break
        before = error

        def product(Q: Array) -> Array:
            """(M + η P_Ω(G − M)) Q."""
            ZtQ = Z.T @ Q  # noqa: B023 (it is called in this iteration only)
            return over_rows(lambda rows: Z[rows] @ ZtQ + np.float32(step) * (residual[rows] @ Q))  # noqa: B023

        for _ in range(FIRST_PASSES if iteration == 0 else 1):
            Q = lu(product(Q), permute_l=True, check_finite=False)[0]
        Q = qr(Q, mode="economic", overwrite_a=True, check_finite=False)[0]
        small = np.asarray(Q.T @ product(Q), np.float64)  # Rayleigh–Ritz
        values, vectors = np.linalg.eigh((small + small.T) / 2)
        largest = np.argsort(-values, kind="stable")[:rank]
        scaled = vectors[:, largest] * np.sqrt(np.maximum(values[largest], 0))
        Z = np.zeros((m, rank), np.float32)
        Z[:, : len(largest)] = Q @ scaled.astype(np.float32)
    return Z
