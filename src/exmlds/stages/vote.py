"""Label scores by neighbour votes, equation (1) of the paper, and by label embeddings, Algorithm 4."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from ..kernels import DEFAULT, Engine
from ..validation import stored

Array = np.ndarray

LABELS = 8_192  # labels in a block of the scores


def weigh(neighbors: Array, similarities: Array, vote: str, temperature: float) -> Array:
    """(q, m) float32, vote weights of the neighbours; pads have the weight 0.

    neighbors : (q, m) int64, −1 pads
    similarities : (q, m) float32
    vote : "uniform", as in the paper, or "similarity", exp((s − s₁) / temperature) with s₁ of the nearest
    """
    present = neighbors >= 0
    if vote == "uniform":
        return present.astype(np.float32)
    # Relative to the nearest neighbour, so that the exponent never overflows.
    nearest = np.where(present, similarities, -np.inf).max(axis=1, keepdims=True, initial=-np.inf)
    behind = np.where(present, similarities - np.where(np.isfinite(nearest), nearest, 0), 0)
    return np.where(present, np.exp(behind.astype(np.float64) / temperature), 0).astype(np.float32)


def drop_dissimilar(neighbors: Array, similarities: Array) -> Array:
    """Replace neighbours whose cosine is not positive by pads."""
    return np.where(similarities > 0, neighbors, -1)


def top_labels(
    neighbors: Array, weights: Array, Y: csr_matrix, k: int, *, engine: Engine = DEFAULT
) -> tuple[Array, Array]:
    """The k labels with the largest vote shares: (q, k) int64 ids, −1 pads, and (q, k) float32 shares.

    A query without any vote gets the most frequent labels, with their share of all rows.
    """
    ids = np.full((len(neighbors), k), -1, np.int64)
    shares = np.zeros((len(neighbors), k), np.float32)
    engine.vote(neighbors, weights, Y.indptr, Y.indices, Y.shape[1], ids, shares)
    _fill_with_prior(np.max(weights, axis=1, initial=0) <= 0, Y, ids, shares)
    return ids, shares


def _fill_with_prior(no_votes: Array, Y: csr_matrix, ids: Array, shares: Array) -> None:
    """Write the most frequent labels into the rows of the mask no_votes, (q,) bool."""
    if not no_votes.any():
        return
    n = int((np.diff(Y.indptr) > 0).sum())  # rows that were removed have no label any more
    prior = np.bincount(Y.indices, weights=Y.data, minlength=Y.shape[1]) / max(n, 1)
    frequent = np.argsort(-prior, kind="stable")[: ids.shape[1]]
    ids[no_votes, : len(frequent)], shares[no_votes, : len(frequent)] = frequent, prior[frequent]


class LabelScorer(NamedTuple):
    """Scores labels by their embeddings.

    embeddings : (L, r) float32, Z₂
    gram : (r, r) float32, Z₂ᵀZ₂, which gives ‖Z₂ z‖ without the scores of all labels
    """

    embeddings: Array
    gram: Array

    def scaled(self, Z: Array, engine: Engine) -> Array:
        """Scale each row z of Z to z / ‖Z₂ z‖, so that its scores have unit length; z = 0 is kept."""
        squares = np.einsum("ij,ij->i", engine.products(Z, self.gram), Z)
        lengths = np.sqrt(np.maximum(squares, 0, dtype=np.float64))
        return Z * np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)[:, None].astype(
            np.float32
        )


def check(scorer: Any, n_labels: int, rank: int) -> None:
    """Check a scorer that comes from a file."""
    stored.record(scorer, "the label scorer", LabelScorer)
    stored.array(scorer.embeddings, "label embeddings", stored.FLOATS, n_labels, rank)
    stored.array(scorer.gram, "the Gram matrix of labels", stored.FLOATS, rank, rank)


def label_scorer(Z: Array) -> LabelScorer:
    """Build a scorer from label embeddings, (L, r)."""
    return LabelScorer(Z, (Z.T.astype(np.float64) @ Z).astype(np.float32))


def top_labels_with_embeddings(
    neighbors: Array,
    weights: Array,
    Y: csr_matrix,
    embeddings: list[Array],
    scorer: LabelScorer,
    k: int,
    *,
    engine: Engine = DEFAULT,
) -> tuple[Array, Array]:
    """The k labels with the largest (s₁/‖s₁‖ + s₂/‖s₂‖) / 2, Algorithm 4: (q, k) ids, −1 pads, and scores.

    s₁ are the votes of the neighbours for their labels, and s₂ = Z₂ z.

    neighbors, weights : (q, m) int64 ids of rows of Y, −1 pads, and float32 vote weights
    Y : (n, L) csr, its values are the weights of completed labels
    embeddings : list of (q, r), the queries embedded by each learner; s₂ sums their unit-length scores
    """
    n, n_labels = len(neighbors), Y.shape[1]
    Z = scorer.scaled(np.sum([scorer.scaled(z, engine) for z in embeddings], axis=0), engine) * np.float32(
        0.5
    )
    ids, scores = np.full((n, k), -1, np.int64), np.zeros((n, k), np.float32)  # Only scores above 0 enter.
    for start in range(0, n_labels, LABELS):
        block = engine.similarities(Z, scorer.embeddings[start : start + LABELS])
        engine.add_votes(neighbors, weights, Y.indptr, Y.indices, Y.data, n_labels, start, 0.5, block)
        engine.merge_topk(block, start, ids, scores)
    _fill_with_prior(ids[:, 0] < 0, Y, ids, scores)
    return ids, np.minimum(scores, 1)
