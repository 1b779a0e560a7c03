"""Feature transforms: scaling, idf, standardization and the Nyström kernel map.

A transform is fitted on the training rows, saved with the model, and applied before everything else.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from scipy.linalg.lapack import dtrtri
from scipy.sparse import issparse

from ..kernels import DEFAULT, Engine
from ..runtime.parallel import blocks, map_blocks
from ..validation import stored
from ..validation.arrays import FILLED, count_columns, map_values, unit_rows, value_blocks

Array = np.ndarray

KINDS = ("none", "l2", "sqrt-l2", "log1p-l2", "idf-l2", "standardize", "nystroem")
SCALINGS = tuple(kind for kind in KINDS if kind != "nystroem")  # the features stay what they are
DAMPED = ("sqrt-l2", "log1p-l2", "idf-l2")  # kinds that reduce large values
LANDMARKS = 3_000  # training rows that the Nyström map is built on
BLOCK = 1_024  # rows in a block of the kernel map


class Features(NamedTuple):
    """A fitted transform; the arrays that a kind does not use are empty.

    center : (d,) float32, means of "standardize" and "nystroem"; empty where sparse rows are not centred
    scale : (d,) float32, inverse deviations of the same; for "idf-l2" the idf, 1 + log((1 + n) / (1 + n_j))
    landmarks : (m, d) float32, standardized rows of "nystroem"
    projection : (m, m) float32, after which inner products approximate the kernel; empty once it is folded
        into a map V (`fold_projection`)
    gamma : γ of the kernel exp(−γ‖x − x'‖²)
    """

    kind: str
    center: Array
    scale: Array
    landmarks: Array
    projection: Array
    gamma: float


def fits(kind: str, X: Any) -> bool:
    """Whether a transform makes sense for X.

    Roots and logarithms need values of at least 0, and have no effect where all are equal. The idf is for
    sparse counts, the kernel for dense rows.
    """
    if kind == "nystroem":
        return are_dense(X)
    if kind == "idf-l2":
        return are_counts(X) and not are_dense(X)
    if kind not in DAMPED:
        return True
    values = X.data if issparse(X) else X[X != 0]  # so that the form of X does not matter
    return bool(values.size and 0 <= values.min() < values.max())


def are_counts(X: Any) -> bool:
    """Whether all values are whole numbers of at least 0."""
    values = X.data if issparse(X) else X
    parts = (values[block] for block in value_blocks(values))
    return bool(values.min(initial=0) >= 0 and all((part == np.rint(part)).all() for part in parts))


def are_dense(X: Any) -> bool:
    """Whether X is dense, or is csr of which more than `FILLED` is stored."""
    return not issparse(X) or X.nnz > FILLED * X.shape[0] * X.shape[1]


def check(features: Any, d: int) -> int:
    """Check a transform of d features that comes from a file; returns the number of transformed features."""
    stored.record(features, "the feature transform", Features)
    stored.require(features.kind in KINDS, f"the feature transform {features.kind!r} is not known")
    scales = features.kind in ("idf-l2", "standardize", "nystroem")
    centers = features.kind == "nystroem" or (features.kind == "standardize" and np.size(features.center) > 0)
    stored.array(features.center, "centres of features", "float32", d if centers else 0)
    stored.array(features.scale, "scales of features", "float32", d if scales else 0)
    stored.require(np.isfinite(stored.number(features.gamma, "gamma")), "gamma is not finite")
    if features.kind != "nystroem":
        return d
    m = len(stored.array(features.landmarks, "landmarks", "float32", None, d))
    if np.size(features.projection):
        stored.array(features.projection, "the projection", "float32", m, m)
    return m


def fit(kind: str, X: Any, rng: np.random.Generator) -> Features:
    """Fit a transform on the training rows X, (n, d)."""
    none = np.zeros(0, np.float32)
    plain = Features(kind, none, none, none, none, 0.0)
    if kind == "idf-l2":
        rows_with = count_columns(X) if issparse(X) else (X != 0).sum(axis=0)
        return plain._replace(scale=(1 + np.log((1 + X.shape[0]) / (1 + rows_with))).astype(np.float32))
    if kind not in ("standardize", "nystroem"):
        return plain
    mean = np.asarray(X.mean(axis=0), np.float64).ravel()
    squares = X.multiply(X).mean(axis=0) if issparse(X) else np.square(X, dtype=np.float64).mean(axis=0)
    spread = np.sqrt(np.maximum(np.asarray(squares, np.float64).ravel() - mean**2, 0))
    scale = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0).astype(np.float32)
    # Centring would make sparse rows dense, so they are only scaled; the kernel map is dense anyway.
    center = mean.astype(np.float32) if are_dense(X) or kind == "nystroem" else none
    standardized = plain._replace(center=center, scale=scale)
    if kind == "standardize":
        return standardized
    sample = np.sort(rng.choice(X.shape[0], min(LANDMARKS, X.shape[0]), replace=False))
    landmarks = _standardize(standardized, X[sample])
    # The median heuristic sets the bandwidth of the kernel.
    gamma = 1 / max(float(np.median(_squared_distances(landmarks, landmarks, DEFAULT))), 1e-12)
    K = np.exp(-gamma * _squared_distances(landmarks, landmarks, DEFAULT)).astype(np.float64)
    projection = _projection(K).astype(np.float32)
    return standardized._replace(kind=kind, landmarks=landmarks, projection=projection, gamma=gamma)


def _projection(K: Array) -> Array:
    """P (m, m) with P Pᵀ = (K + ε I)⁻¹, by a Cholesky factor.

    Rows may repeat, so ε starts at about 1e-6 of the largest eigenvalue. Where distances are mostly rounding
    errors K is not positive definite, and ε grows until the factorization succeeds.
    """
    ridge = 1e-6 * K.sum() / len(K)
    while True:
        shifted = K.copy()
        shifted[np.diag_indices_from(K)] += ridge
        try:
            factor = cholesky(shifted, overwrite_a=True, check_finite=False)
            return dtrtri(factor, overwrite_c=True)[0]
        except LinAlgError:
            if not ridge < len(K):  # No eigenvalue exceeds the trace, which is len(K).
                raise
            ridge *= 10


def apply(features: Features, X: Any, *, engine: Engine = DEFAULT) -> Any:
    """(n, d') float32, the transformed rows; sparse where X is sparse and the kind allows it."""
    if features.kind == "none":
        return X
    if features.kind == "standardize":
        return _standardize(features, X)
    if features.kind == "nystroem":
        return _kernel_map(features, _standardize(features, X), engine)
    if features.kind == "l2":
        return unit_rows(X)
    dampen = np.sqrt if features.kind == "sqrt-l2" else np.log1p
    if not issparse(X):
        X = dampen(np.maximum(X, 0))
        return unit_rows(X * features.scale if features.kind == "idf-l2" else X)
    X = map_values(X, lambda values, _: dampen(np.maximum(values, 0)))
    return unit_rows(_standardize(features, X) if features.kind == "idf-l2" else X, in_place=True)


def fold_projection(features: Features, V: Array) -> Array:
    """(m, r), the map V with the Nyström projection folded in, for rows without projection."""
    return features.projection @ V


def without_projection(features: Features) -> Features:
    """Drop the projection once V contains it: it takes most of the memory and time of the kernel map."""
    return features._replace(projection=np.zeros(0, np.float32))


def apply_for_routing(features: Features, X: Any) -> Any:
    """The transformed rows for the router: as `apply`, but without the kernel map, which each part fits."""
    return _standardize(features, X) if features.kind == "nystroem" else apply(features, X)


def _standardize(features: Features, X: Any) -> Any:
    if not len(features.center):
        return map_values(X, lambda values, columns: values * features.scale[columns])
    dense = X.toarray() if issparse(X) else np.asarray(X, np.float32)
    return (dense - features.center) * features.scale


def _kernel_map(features: Features, X: Array, engine: Engine) -> Array:
    P = features.projection
    mapped = np.empty((len(X), P.shape[1] if len(P) else len(features.landmarks)), np.float32)

    def fill(block: slice) -> None:
        distances = _squared_distances(X[block], features.landmarks, engine)
        distances *= np.float32(-features.gamma)
        kernel = np.exp(distances, out=distances)
        mapped[block] = kernel @ P if len(P) else kernel

    for _ in map_blocks(fill, blocks(len(X), BLOCK), n_jobs=None, stage="features", total=len(X)):
        pass
    return mapped


def _squared_distances(A: Array, B: Array, engine: Engine) -> Array:
    squares = (np.einsum("ij,ij->i", rows, rows) for rows in (A, B))
    distances = np.add.outer(*squares) - 2 * engine.products(A, B.T)
    return np.maximum(distances, 0, out=distances)
