"""The linear map from features to embeddings.

min over V of  ‖Z − XV‖² + l2 ‖V‖² + l1 ‖XV‖₁
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import issparse

Array = np.ndarray

MOST_EXACT = 8_000  # features or rows, whichever is less, up to which the system is factorized


def fit(X: Any, Z: Array, *, l2: float, l1: float = 0.0) -> Array:
    """V (d, r) for X (n, d), sparse or dense, and Z (n, r)."""
    if l1 == 0:
        return solver(X, l2)(X.T @ Z)
    return admm(X, Z, l2=l2, l1=l1)


def solver(X: Any, l2: float) -> Callable[[Array], Array]:
    """B ↦ (XᵀX + l2 I)⁻¹ B, by the smaller of XᵀX and XXᵀ, or by conjugate gradients where both are large."""
    n, d = X.shape
    if min(n, d) > MOST_EXACT:
        return lambda B: _conjugate_gradients(X, l2, B)
    primal = d <= n
    G = _gram(X.T if primal else X)
    # A trace of the scale keeps the system definite when l2 is 0 and features repeat.
    l2 = max(l2, 1e-6 * float(np.trace(G)) / len(G) + 1e-30)
    G[np.diag_indices_from(G)] += np.float32(l2)
    factor = cho_factor(G, lower=True, overwrite_a=True, check_finite=False)

    def once(B: Array) -> Array:
        if primal:
            return cho_solve(factor, B, check_finite=False)
        # (XᵀX + l2 I)⁻¹ = (I − Xᵀ(XXᵀ + l2 I)⁻¹X) / l2
        return (B - X.T @ cho_solve(factor, X @ B, check_finite=False)) / np.float32(l2)

    def refined(B: Array) -> Array:
        # Factorized in float32, three times as fast as in float64; two corrections bring the digits back.
        B = np.asarray(B, np.float32)
        V = once(B)
        for _ in range(2):
            V += once(B - X.T @ (X @ V) - np.float32(l2) * V)
        return V

    return refined


def _gram(X: Any) -> Array:
    """X Xᵀ, dense float32."""
    product = X @ X.T
    return np.asarray(product.toarray() if issparse(product) else product, np.float32)


def _conjugate_gradients(X: Any, l2: float, B: Array, *, tolerance: float = 1e-4, limit: int = 200) -> Array:
    """All columns at once, each with its own step, preconditioned by the diagonal."""
    squares = X.multiply(X).sum(axis=0) if issparse(X) else np.square(X).sum(axis=0)
    diagonal = (np.asarray(squares, np.float32).ravel() + max(l2, 1e-8))[:, None]
    V = np.zeros(B.shape, np.float32)
    R = np.asarray(B, np.float32).copy()
    D = R / diagonal
    descent = np.einsum("ij,ij->j", R, D)
    goal = tolerance**2 * np.einsum("ij,ij->j", R, R)
    for _ in range(limit):
        AD = X.T @ (X @ D) + l2 * D
        curvature = np.einsum("ij,ij->j", D, AD)
        step = np.divide(descent, curvature, out=np.zeros_like(descent), where=curvature > 0)
        V += step * D
        R -= step * AD
        if (np.einsum("ij,ij->j", R, R) <= goal).all():
            break
        P = R / diagonal
        following = np.einsum("ij,ij->j", R, P)
        D = P + np.divide(following, descent, out=np.zeros_like(descent), where=descent > 0) * D
        descent = following
    return V


def admm(
    X: Any, Z: Array, *, l2: float, l1: float, rho: float = 1.0, tolerance: float = 1e-4, limit: int = 500
) -> Array:
    """Split XV = W (Boyd et al., 2011, section 3): ridge for V, soft thresholds for W, a scaled dual u.

    Stops when the primal residual XV − W and the dual residual ρ Xᵀ(W − W_before) are small (their 3.3.1).
    """
    # V = argmin ‖Z − XV‖² + l2‖V‖² + ρ/2 ‖XV − W + u‖², that is,
    # (XᵀX + 2l2/(2+ρ) I) V = Xᵀ(2Z + ρ(W − u)) / (2+ρ)
    solve = solver(X, 2 * l2 / (2 + rho))
    W = np.zeros_like(Z)
    u = np.zeros_like(Z)
    for _ in range(limit):
        V = solve(X.T @ (2 * Z + rho * (W - u)) / (2 + rho))
        XV = X @ V
        before = W
        W = np.sign(XV + u) * np.maximum(np.abs(XV + u) - l1 / rho, 0)
        u = u + XV - W
        primal, dual = np.linalg.norm(XV - W), rho * np.linalg.norm(X.T @ (W - before))
        small = tolerance * (1e-2 * np.sqrt(Z.size) + max(np.linalg.norm(XV), np.linalg.norm(W)))
        if primal < small and dual < tolerance * (1e-2 * np.sqrt(V.size) + rho * np.linalg.norm(X.T @ u)):
            break
    return V.astype(np.float32)
