"""Regression from features to embeddings (Algorithm 2 of the paper).

    min over V of  ‖Z − XV‖² + l2 ‖V‖² + l1 ‖XV‖₁

With l1 = 0 this is ridge regression, solved by a Cholesky factor or, for large X, by conjugate gradients;
otherwise ADMM alternates ridge regressions with soft thresholding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import issparse

from ..kernels import DEFAULT, Engine
from ..runtime.parallel import blocks, map_blocks
from ..validation.arrays import squared

Array = np.ndarray

COLUMNS = 64  # columns of the embedding in a block of conjugate gradients
GRAM_BLOCK = 256  # rows in a block of the Gram matrix
MOST_EXACT = 10_000  # largest min(n, d) at which the Gram matrix may be factorized
TOLERANCE = 1e-3  # relative residual at which conjugate gradients stop, ‖Xᵀ(Z − XV) − l2 V‖ / ‖XᵀZ‖
SPARSE_FLOPS = 1_500  # cost of conjugate gradients for each stored value of X, in dense operations


class System(NamedTuple):
    """What all solutions for one X share.

    X, Xt : (n, d) and (d, n) csr or dense
    gram : lower triangle of the smaller of XᵀX (primal) and XXᵀ; None where conjugate gradients are faster
    """

    X: Any
    Xt: Any
    gram: Array | None
    primal: bool


def fit(X: Any, Z: Array, *, l2: float, l1: float = 0.0, n_jobs: int | None = None) -> Array:
    """(d, r) float32, the solution V for X, (n, d) csr or dense, and Z, (n, r)."""
    return next(path(X, Z, [l2], l1=l1, n_jobs=n_jobs))


def path(
    X: Any,
    Z: Array,
    l2s: Iterable[float],
    *,
    l1: float = 0.0,
    n_jobs: int | None = None,
    engine: Engine = DEFAULT,
) -> Iterator[Array]:
    """Yield V for each l2 in turn; the Gram matrix is computed once."""
    system = prepare(X, Z.shape[1], n_jobs, engine=engine)
    for l2 in l2s:
        V = solver(system, l2, n_jobs)(Z) if l1 == 0 else admm(system, Z, l2=l2, l1=l1, n_jobs=n_jobs)
        # C order: otherwise the product of a sparse row and V would copy all of V.
        yield np.ascontiguousarray(V, np.float32)


def is_exact(n: int, d: int, nnz: float, width: int) -> bool:
    """Whether Cholesky is affordable, and not slower than conjugate gradients, for `width` columns."""
    smaller = float(min(n, d))
    return smaller <= MOST_EXACT and smaller**3 / 3 + 6 * smaller**2 * width <= SPARSE_FLOPS * nnz * width


def prepare(X: Any, width: int, n_jobs: int | None = None, *, engine: Engine = DEFAULT) -> System:
    """Compute what all solutions for X share; `width` is the number of columns of Z."""
    n, d = X.shape
    X = X.sorted_indices() if issparse(X) and not X.has_sorted_indices else X
    Xt = X.T.tocsr() if issparse(X) else X.T  # Products with csr are faster than with csc.
    primal = d <= n
    exact = is_exact(n, d, X.nnz if issparse(X) else X.size, width)
    rows, columns = (Xt, X) if primal else (X, Xt)
    return System(X, Xt, _gram(rows, columns, n_jobs, engine) if exact else None, primal)


def _gram(A: Any, At: Any, n_jobs: int | None, engine: Engine) -> Array:
    """Dense float32 A Aᵀ, of which only the lower triangle is valid."""
    G = np.zeros((A.shape[0], A.shape[0]), np.float32)

    def fill(rows: slice) -> None:
        if issparse(A):
            engine.gram_rows(A.indptr, A.indices, A.data, At.indptr, At.indices, At.data, rows.start, G[rows])
        else:
            G[rows, : rows.stop] = A[rows] @ At[:, : rows.stop]

    for _ in map_blocks(
        fill, blocks(len(G), GRAM_BLOCK), n_jobs=n_jobs, stage="regression", total=len(G), unit="features"
    ):
        pass
    return G


def solver(system: System, l2: float, n_jobs: int | None = None) -> Callable[[Array], Array]:
    """Return the function T ↦ (XᵀX + l2 I)⁻¹ XᵀT = Xᵀ(XXᵀ + l2 I)⁻¹ T, from (n, r) to (d, r)."""
    X, Xt, gram, primal = system
    if gram is None:
        return lambda T: _solve_in_blocks(system, l2, Xt @ T, n_jobs)
    # A small multiple of the mean diagonal keeps the system definite where l2 is 0 and features repeat.
    l2 = max(l2, 1e-6 * float(np.trace(gram)) / max(len(gram), 1) + 1e-30)
    G = gram.copy()
    G[np.diag_indices_from(G)] += np.float32(l2)
    factor = cho_factor(G, lower=True, overwrite_a=True, check_finite=False)
    A, At = (Xt, X) if primal else (X, Xt)  # G = A Aᵀ + l2 I

    def solve(B: Array) -> Array:
        # float32 is three times as fast as float64; one step of iterative refinement restores the accuracy.
        W = cho_solve(factor, B, check_finite=False)
        W += cho_solve(factor, B - A @ (At @ W) - np.float32(l2) * W, check_finite=False)
        return W

    def solution(T: Array) -> Array:
        T = np.asarray(T, np.float32)
        return solve(Xt @ T) if primal else Xt @ solve(T)

    return solution


def _solve_in_blocks(system: System, l2: float, B: Array, n_jobs: int | None) -> Array:
    """Solve for the columns of B by conjugate gradients, in parallel blocks of columns."""
    V = np.empty(B.shape, np.float32)
    columns = blocks(B.shape[1], COLUMNS)
    solved = map_blocks(
        lambda block: _conjugate_gradients(system, l2, B[:, block]),
        columns,
        n_jobs=n_jobs,
        stage="regression",
        total=B.shape[1],
        unit="dimensions",
    )
    for block, v in zip(columns, solved):
        V[:, block] = v
    return V


def _conjugate_gradients(system: System, l2: float, B: Array, limit: int = 200) -> Array:
    """Solve (XᵀX + l2 I) V = B, each column with its own step, with a Jacobi preconditioner."""
    X, Xt = system.X, system.Xt
    squares = squared(X).sum(axis=0) if issparse(X) else np.square(X).sum(axis=0)
    diagonal = (np.asarray(squares, np.float32).ravel() + np.float32(max(l2, 1e-8)))[:, None]
    V = np.zeros(B.shape, np.float32)
    R = np.array(B, np.float32, order="C")
    D = R / diagonal
    buffer = np.empty_like(R)  # Allocating arrays of this size takes longer than the sums.
    energy = np.einsum("ij,ij->j", R, D)
    # All columns iterate until the last one has converged.
    goal = TOLERANCE**2 * np.einsum("ij,ij->j", R, R)
    for _ in range(limit):
        AD = Xt @ (X @ D)
        AD += np.multiply(D, np.float32(l2), out=buffer)
        curvature = np.einsum("ij,ij->j", D, AD)
        step = np.divide(energy, curvature, out=np.zeros_like(energy), where=curvature > 0)
        V += np.multiply(D, step, out=buffer)
        R -= np.multiply(AD, step, out=buffer)
        if (np.einsum("ij,ij->j", R, R) <= goal).all():
            break
        next_energy = np.einsum("ij,ij->j", R, np.divide(R, diagonal, out=buffer))
        D *= np.divide(next_energy, energy, out=np.zeros_like(energy), where=energy > 0)
        D += buffer
        energy = next_energy
    return V


def admm(
    system: System,
    Z: Array,
    *,
    l2: float,
    l1: float,
    rho: float = 1.0,
    tolerance: float = 1e-4,
    limit: int = 500,
    n_jobs: int | None = None,
) -> Array:
    """ADMM with the splitting XV = W (Boyd et al., 2011, section 3).

    Each iteration is a ridge regression for V, soft thresholding for W, and an update of the scaled dual u.
    It stops when the primal residual XV − W and the dual residual ρ Xᵀ(W − W_before) are small (their 3.3.1).
    """
    # V = argmin ‖Z − XV‖² + l2‖V‖² + ρ/2 ‖XV − W + u‖², that is,
    # (XᵀX + 2l2/(2+ρ) I) V = Xᵀ(2Z + ρ(W − u)) / (2+ρ)
    X, Xt = system.X, system.Xt
    solve = solver(system, 2 * l2 / (2 + rho), n_jobs)
    W = np.zeros_like(Z)
    u = np.zeros_like(Z)
    target = np.linalg.norm(Xt @ Z)
    for _ in range(limit):
        V = solve((2 * Z + rho * (W - u)) / (2 + rho))
        XV = X @ V
        before = W
        W = np.sign(XV + u) * np.maximum(np.abs(XV + u) - l1 / rho, 0)
        u = u + XV - W
        primal, dual = np.linalg.norm(XV - W), rho * np.linalg.norm(Xt @ (W - before))
        # In place of absolute tolerances, a share of Z, so that the scale of Z does not matter.
        primal_scale = max(np.linalg.norm(XV), np.linalg.norm(W)) + 1e-2 * np.linalg.norm(Z)
        dual_scale = rho * np.linalg.norm(Xt @ u) + 1e-2 * target
        if primal < tolerance * primal_scale and dual < tolerance * dual_scale:
            break
    return V
