"""Neighbours vote on labels, equation (1) of the paper."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from .. import kernels

Array = np.ndarray


def weigh(neighbors: Array, similarities: Array, vote: str, temperature: float) -> Array:
    """(q, m) float32 weights of the neighbours; those that pad weigh 0.

    "uniform" is the paper's; "similarity" weighs by exp((s − s₁) / temperature), s₁ that of the nearest.
    """
    present = neighbors >= 0
    if vote == "uniform":
        return present.astype(np.float32)
    nearest = np.where(present, similarities, -np.inf).max(axis=1, keepdims=True, initial=-np.inf)
    behind = np.where(present, similarities - np.where(np.isfinite(nearest), nearest, 0), 0)
    return np.where(present, np.exp(behind.astype(np.float64) / temperature), 0).astype(np.float32)


def only_similar(neighbors: Array, similarities: Array) -> Array:
    """Neighbours by cosine without those that have nothing in common with the row, or the opposite."""
    return np.where(similarities > 0, neighbors, -1)


def count(neighbors: Array, weights: Array, Y: csr_matrix, k: int) -> tuple[Array, Array]:
    """The k labels with the largest share of the vote: (q, k) int64 ids, −1 pads, and (q, k) shares.

    Where nobody votes, it is the labels' shares of all rows.
    """
    ids = np.full((len(neighbors), k), -1, np.int64)
    shares = np.zeros((len(neighbors), k), np.float32)
    kernels.vote(neighbors, weights, Y.indptr, Y.indices, Y.shape[1], ids, shares)
    silent = ~(weights > 0).any(axis=1)
    if silent.any():
        prior = np.bincount(Y.indices, minlength=Y.shape[1]) / max(Y.shape[0], 1)
        frequent = np.argsort(-prior, kind="stable")[:k]
        ids[silent, : len(frequent)], shares[silent, : len(frequent)] = frequent, prior[frequent]
    return ids, shares
