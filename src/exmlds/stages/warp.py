"""Weighted approximate-rank pairwise loss (WARP): a map of rows and embeddings of labels that rank labels.

With z = x V, label l of a row should score higher than each label m that the row lacks, by 1 at least:

    min over V, H of  Σ over rows and their labels l of  w(rank of l),    w(k) = Σ 1/i for i = 1 … k

where the rank of l is the number of labels m with ⟨z, h_m⟩ > ⟨z, h_l⟩ − 1. Labels m are drawn until one of
these is found; the number of draws estimates the rank, and a gradient step is taken on this pair with the
weight w. The rows of V and H are no longer than a bound. Training runs on one thread, so that a seed
determines the result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from ..kernels import DEFAULT, Engine
from ..runtime import progress

Array = np.ndarray

CHUNK = 1 << 10  # rows in a call of the kernel


class WarpState(NamedTuple):
    """State after `epoch` of `n_epochs`; each epoch has its own random generator, seeded by (seed, epoch).

    V : (d, r) float32, the map
    H : (L, r) float32, the embeddings of labels
    """

    V: Array
    H: Array
    seed: int
    epoch: int
    n_epochs: int


def init(
    d: int, n_labels: int, rank: int, *, max_norm: float, n_epochs: int, rng: np.random.Generator
) -> WarpState:
    """Draw V and H from a normal distribution with a deviation of 1 / √r, within the bound of their rows."""
    V, H = (rng.standard_normal((n, rank), dtype=np.float32) for n in (d, n_labels))
    for rows in (V, H):
        rows /= np.float32(rank**0.5)
        rows *= np.minimum(1, max_norm / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))
    return WarpState(V, H, int(rng.integers(2**63)), 0, n_epochs)


def epoch(
    state: WarpState,
    X: csr_matrix,
    Y: csr_matrix,
    *,
    learning_rate: float,
    max_norm: float,
    engine: Engine = DEFAULT,
) -> WarpState:
    """Visit every row that has a label once, in a new random order; V and H change in place.

    The learning rate decays linearly from `learning_rate` to 0 over the rows of all epochs.

    X : (n, d) csr float32;  Y : (n, L) csr
    """
    rng = np.random.default_rng([state.seed, state.epoch])
    order = rng.permutation(np.flatnonzero(np.diff(Y.indptr)))
    harmonic = harmonic_sums(len(state.H))
    number = rng.integers(2**63, size=1).astype(np.uint64)
    with progress.stage("WARP", len(order)) as advance:
        for start in range(0, len(order), CHUNK):
            rows = order[start : start + CHUNK]
            ends = state.epoch + np.array([start, start + len(rows)]) / len(order)
            first, last = learning_rate * (1 - ends / state.n_epochs)
            arrays = X.indptr, X.indices, X.data, Y.indptr, Y.indices
            given = rows, float(first), float(last), float(max_norm), harmonic, number
            engine.warp_rows(*arrays, *given, state.V, state.H)
            advance(len(rows))
    return state._replace(epoch=state.epoch + 1)


def harmonic_sums(n: int) -> Array:
    """(n,) float32, the sums of 1/i for i = 1 … k, for each k from 0."""
    return np.concatenate([[0], np.cumsum(1 / np.arange(1, n))]).astype(np.float32)
