"""Regression of many labels through a space of low rank, by alternating least squares.

    min over W, H of  ‖P_Ω(T − X W Hᵀ)‖² + l2 (s² ‖W‖² + ‖D H‖²)

With s² the mean squared length of the rows, the unit of X does not change the products X W Hᵀ. Where all
cells of T are known, each half is solved exactly: the rows of H by one Cholesky factor, the columns of W by
an eigendecomposition of the Gram matrix of X, which serves all of them, or by conjugate gradients where that
is faster. Where only the cells in Ω are known, conjugate gradients solve each half.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.sparse import csr_matrix, issparse

from ..kernels import DEFAULT, Engine
from ..runtime.parallel import bounded_blocks, map_blocks
from ..validation.arrays import squared

Array = np.ndarray

MOST_EXACT = 6_000  # largest min(n, d) whose Gram matrix is decomposed
TOLERANCE = 1e-3  # relative residual at which conjugate gradients stop
N_STEPS = 50  # of conjugate gradients, at most
ENTRIES = 2_000_000  # known cells in a block of rows


class Factors(NamedTuple):
    """W, (d, r), and H, (t, r), float32; a row x has the values x W Hᵀ."""

    W: Array
    H: Array


def fit(
    X: Any,
    T: Any,
    rank: int,
    rng: np.random.Generator,
    *,
    l2: float,
    mean_square: float = 1.0,
    scales: Array | None = None,
    known: csr_matrix | None = None,
    n_iterations: int = 10,
    n_jobs: int | None = None,
    engine: Engine = DEFAULT,
) -> Factors:
    """Alternate between W and H, from a random H.

    X : (n, d) csr or dense;  T : (n, t) csr or dense
    mean_square : s²
    scales : (t,) float32, the diagonal of D; ones if not given
    known : (n, t) csr, the cells of Ω; all if not given
    """
    D2 = np.ones(T.shape[1], np.float32) if scales is None else np.square(scales)
    H = rng.standard_normal((T.shape[1], rank), dtype=np.float32) / np.float32(np.sqrt(rank))
    W, l2_of_map = np.zeros((X.shape[1], rank), np.float32), l2 * mean_square
    if known is None:
        solve = _ridge_by_column(X)
        for _ in range(n_iterations):
            values, rotation = np.linalg.eigh(np.asarray(H.T @ H, np.float64))
            # In the rotated space the columns of W do not depend on each other.
            H = H @ rotation.astype(np.float32)
            W = solve(X.T @ np.asarray(T @ H), values, l2_of_map, W)
            H = _labels_of(np.asarray(X @ W), T, l2, D2)
        return Factors(W, H)
    cells = _Cells(known, T, n_jobs, engine)
    for _ in range(n_iterations):

        def rows_of(V: Array) -> Array:
            """The gradient for W without its constant part."""
            return np.asarray(X.T @ (cells.products(np.asarray(X @ V), H) @ H)) + np.float32(l2_of_map) * V  # noqa: B023

        W = conjugate_gradients(rows_of, np.asarray(X.T @ (cells.targets @ H)), W)
        Z = np.asarray(X @ W, np.float32)

        def labels_of(V: Array) -> Array:
            return np.asarray(cells.products(Z, V).T @ Z) + (np.float32(l2) * D2)[:, None] * V  # noqa: B023

        H = conjugate_gradients(labels_of, np.asarray(cells.targets.T @ Z), H)
    return Factors(W, H)


def _labels_of(Z: Array, T: Any, l2: float, D2: Array) -> Array:
    """(t, r) H for the embeddings Z of the rows: (ZᵀZ + l2 dⱼ² I) hⱼ = Zᵀ tⱼ."""
    gram, right = np.asarray(Z.T @ Z, np.float64), np.asarray(T.T @ Z, np.float64)
    least = 1e-9 * np.trace(gram) / len(gram) + 1e-30
    if np.ptp(D2) == 0:
        factor = cho_factor(gram + max(l2 * float(D2[0]), least) * np.eye(len(gram)))
        return np.asarray(cho_solve(factor, right.T).T, np.float32)
    values, vectors = np.linalg.eigh(gram)
    penalties = np.maximum(l2 * D2.astype(np.float64), least)[:, None]
    return np.asarray((right @ vectors) / (np.maximum(values, 0) + penalties) @ vectors.T, np.float32)


def _ridge_by_column(X: Any) -> Callable[[Array, Array, float, Array], Array]:
    """A function that solves (cₖ XᵀX + l2 I) wₖ = bₖ for all columns k: of B, c, l2, and where to start."""
    n, d = X.shape
    if min(n, d) > MOST_EXACT:
        squares = squared(X).sum(axis=0) if issparse(X) else np.square(X).sum(axis=0)
        diagonal = np.asarray(squares, np.float32).ravel()[:, None]

        def by_gradients(B: Array, c: Array, l2: float, start: Array) -> Array:
            factors = np.maximum(c, 0).astype(np.float32)
            return conjugate_gradients(
                lambda V: np.asarray(X.T @ (X @ V)) * factors + np.float32(l2) * V,
                B,
                start,
                diagonal * factors + np.float32(max(l2, 1e-8)),
            )

        return by_gradients
    gram = X.T @ X if d <= n else X @ X.T
    gram = gram.toarray() if issparse(gram) else np.asarray(gram)
    values, Q = eigh(gram.astype(np.float32), overwrite_a=True, check_finite=False)
    values = np.maximum(values, 0)

    def exact(B: Array, c: Array, l2: float, start: Array) -> Array:
        factors, least = np.maximum(c, 0), 1e-7 * float(values[-1] * max(c.max(initial=0), 0)) + 1e-30
        inverse = 1 / (values[:, None] * factors + max(l2, least))  # (min(n, d), r)
        if d <= n:
            return np.asarray(Q @ (inverse * (Q.T @ B)), np.float32)
        # (c XᵀX + l2 I)⁻¹ = (I − c Xᵀ (c XXᵀ + l2 I)⁻¹ X) / l2
        XB = Q.T @ np.asarray(X @ B)
        return np.asarray((B - X.T @ (Q @ (inverse * factors * XB))) / max(l2, least), np.float32)

    return exact


def conjugate_gradients(
    operator: Callable[[Array], Array], B: Array, start: Array, diagonal: Array | None = None
) -> Array:
    """Solve operator(V) = B, for a symmetric positive operator; diagonal : of a preconditioner, or None."""
    V = start.astype(np.float32, copy=True)
    inverse = np.float32(1) if diagonal is None else 1 / diagonal
    R = np.asarray(B - operator(V), np.float32)
    goal = TOLERANCE**2 * float(np.einsum("ij,ij->", B, B, dtype=np.float64))
    D = R * inverse
    energy = float(np.einsum("ij,ij->", R, D, dtype=np.float64))
    for _ in range(N_STEPS):
        if float(np.einsum("ij,ij->", R, R, dtype=np.float64)) <= goal:
            break
        AD = operator(D)
        curvature = float(np.einsum("ij,ij->", D, AD, dtype=np.float64))
        if not curvature > 0:
            break
        step = np.float32(energy / curvature)
        V += step * D
        R -= step * AD
        scaled = R * inverse
        following = float(np.einsum("ij,ij->", R, scaled, dtype=np.float64))
        D = scaled + np.float32(following / energy) * D
        energy = following
    return V


class _Cells:
    """The cells that are known.

    targets : (n, t) csr, the values of T there
    """

    def __init__(self, known: csr_matrix, T: Any, n_jobs: int | None, engine: Engine) -> None:
        self.pattern = csr_matrix(known, copy=True)
        self.pattern.sort_indices()
        self.targets = csr_matrix(self.pattern.multiply(T), dtype=np.float32)
        self._engine, self._n_jobs = engine, n_jobs
        self._todo = bounded_blocks(np.diff(self.pattern.indptr).tolist(), ENTRIES)

    def products(self, Z: Array, H: Array) -> csr_matrix:
        """(n, t) csr, Z Hᵀ in the known cells."""
        indptr, indices = self.pattern.indptr, self.pattern.indices
        values = np.empty(self.pattern.nnz, np.float32)
        Z, H = np.ascontiguousarray(Z, np.float32), np.ascontiguousarray(H, np.float32)

        def fill(rows: slice) -> None:
            own = slice(indptr[rows.start], indptr[rows.stop])
            self._engine.pair_products(indptr, indices, Z, H, rows.start, values[own])

        n = self.pattern.shape[0]
        for _ in map_blocks(fill, self._todo, n_jobs=self._n_jobs, stage="known cells", total=n):
            pass
        return csr_matrix((values, indices, indptr), self.pattern.shape)
