"""Neighbours vote on labels, equation (1) of the paper; labels near to a row add to it, Algorithm 4."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from .. import kernels

Array = np.ndarray

LABELS = 8_192  # labels scored at a time


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


def drop_dissimilar(neighbors: Array, similarities: Array) -> Array:
    """Neighbours by cosine without those that have nothing in common with the row, or the opposite."""
    return np.where(similarities > 0, neighbors, -1)


def top_labels(neighbors: Array, weights: Array, Y: csr_matrix, k: int) -> tuple[Array, Array]:
    """The k labels with the largest share of the vote: (q, k) int64 ids, −1 pads, and (q, k) shares.

    Where nobody votes, it is the labels' shares of all rows.
    """
    ids = np.full((len(neighbors), k), -1, np.int64)
    shares = np.zeros((len(neighbors), k), np.float32)
    kernels.vote(neighbors, weights, Y.indptr, Y.indices, Y.shape[1], ids, shares)
    _fill_with_prior(np.max(weights, axis=1, initial=0) <= 0, Y, ids, shares)
    return ids, shares


def _fill_with_prior(silent: Array, Y: csr_matrix, ids: Array, shares: Array) -> None:
    if not silent.any():
        return
    prior = np.bincount(Y.indices, weights=Y.data, minlength=Y.shape[1]) / max(Y.shape[0], 1)
    frequent = np.argsort(-prior, kind="stable")[: ids.shape[1]]
    ids[silent, : len(frequent)], shares[silent, : len(frequent)] = frequent, prior[frequent]


class LabelScorer(NamedTuple):
    """Embedded labels: Z₂, (L, r), and Z₂ᵀZ₂, by which ‖Z₂ z‖ is known without a row of all labels."""

    embeddings: Array
    gram: Array

    def scaled(self, Z: Array) -> Array:
        """Rows z as z / ‖Z₂ z‖, so that their scores have the length 1; z = 0 stays."""
        squares = np.einsum("ij,ij->i", Z @ self.gram, Z)
        lengths = np.sqrt(np.maximum(squares, 0, dtype=np.float64))
        return Z * np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)[:, None].astype(
            np.float32
        )


def label_scorer(Z: Array) -> LabelScorer:
    """A scorer of the labels that lie at the rows of Z."""
    return LabelScorer(Z, (Z.T.astype(np.float64) @ Z).astype(np.float32))


def top_labels_with_embeddings(
    neighbors: Array, weights: Array, Y: csr_matrix, embeddings: list[Array], scorer: LabelScorer, k: int
) -> tuple[Array, Array]:
    """The k labels with the best s₁/‖s₁‖ + s₂/‖s₂‖, Algorithm 4, halved: (q, k) ids, −1 pads, and scores.

    s₁ : the votes of neighbours for their labels, which may be weighted: the values of Y
    s₂ = Z₂ z : how near the labels are, for each of the places of a row; places have one voice together
    """
    n, n_labels = len(neighbors), Y.shape[1]
    Z = scorer.scaled(np.sum([scorer.scaled(z) for z in embeddings], axis=0)) * np.float32(0.5)
    ids, scores = np.full((n, k), -1, np.int64), np.zeros((n, k), np.float32)  # a score must be above 0
    for start in range(0, n_labels, LABELS):
        block = Z @ scorer.embeddings[start : start + LABELS].T
        kernels.add_votes(neighbors, weights, Y.indptr, Y.indices, Y.data, n_labels, start, 0.5, block)
        kernels.merge_topk(block, start, ids, scores)
    _fill_with_prior(ids[:, 0] < 0, Y, ids, scores)
    return ids, np.minimum(scores, 1)
