"""Skip-gram with negative sampling: equation (3) of the paper and its combined objective (5).

Words and contexts share one numbering, and a relation lists the observed pairs. For each observed pair (i, j)
with random negatives j', stochastic gradient ascent is done on

    log σ(⟨z_i, c_j⟩) + Σ over j' of log σ(−⟨z_i, c_j'⟩)

pair by pair, in a new random order in each epoch. With tied vectors, as in the paper, c is z; otherwise, as
in word2vec, c is learnt beside z. Training runs on one thread, so that a seed determines the result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from ..kernels import DEFAULT, Engine
from ..runtime import progress

Array = np.ndarray

CHUNK = 1 << 14  # pairs in a call of the kernel
TABLE = 1 << 20  # least size of the table that negatives are drawn from
SLOWEST = 1e-4  # least learning rate, as a share of the first


class Relation(NamedTuple):
    """Observed pairs of one kind, and how their negatives are drawn.

    rows, columns : (p,) int64, the pairs
    weights : (p,) float32, factor of the gradient of each pair
    table : (t,) int64, negatives are drawn uniformly from its entries, or from the numbers of a range
    n_negative : negatives of each pair
    """

    rows: Array
    columns: Array
    weights: Array
    table: Array | range
    n_negative: int


class SgnsState(NamedTuple):
    """State after `epoch` of `n_epochs`; each epoch has its own random generator, seeded by (seed, epoch).

    vectors : (n, r) float32, z
    contexts : (n, r) float32, c; (0, r) where the vectors are tied
    """

    vectors: Array
    contexts: Array
    seed: int
    epoch: int
    n_epochs: int


def relate(
    graph: csr_matrix,
    n_negative: int,
    *,
    power: float = 0.0,
    weight: float = 1.0,
    row_offset: int = 0,
    column_offset: int = 0,
) -> Relation:
    """Build a relation from a graph.

    graph : (rows, columns) csr, its values are the counts of the pairs
    power : negatives are drawn in proportion to the count of a column to this power; 0 is uniform
    weight : factor of the weights of all pairs
    row_offset, column_offset : the numbers of the first row and the first column
    """
    rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr)) + row_offset
    columns = graph.indices.astype(np.int64) + column_offset
    counts = np.bincount(graph.indices, weights=graph.data, minlength=graph.shape[1])
    weights = (weight * graph.data).astype(np.float32)
    return Relation(rows, columns, weights, _table(counts, power, column_offset), n_negative)


def relate_pairs(
    rows: Array, columns: Array, n_columns: int, n_negative: int, *, power: float = 0.0
) -> Relation:
    """Build a relation from a list of pairs, in which each occurrence counts.

    rows, columns : (p,) int64
    n_columns, n_negative, power : columns in all, and as in `relate`
    """
    counts = np.bincount(columns, minlength=n_columns)
    return Relation(rows, columns, np.ones(len(rows), np.float32), _table(counts, power, 0), n_negative)


def _table(counts: Array, power: float, offset: int) -> Array | range:
    """(t,) int64, each column repeated in proportion to its count to the power, rounded.

    With power 0 it is a range that holds every column once, also those that were never observed.

    offset : the number of the first column
    """
    columns = range(offset, offset + len(counts))
    if power == 0:
        return columns
    shares = np.where(counts > 0, counts, 0) ** power * (counts > 0)
    if not shares.any():  # There are no pairs, so nothing will be drawn.
        return columns
    size = max(TABLE, 16 * len(counts))
    edges = np.rint(size * np.cumsum(shares) / shares.sum()).astype(np.int64)
    return np.repeat(columns, np.diff(edges, prepend=0))


def _draw(relation: Relation, n: int, rng: np.random.Generator) -> Array:
    """(n, n_negative) int64, the negatives of n pairs."""
    drawn = rng.integers(len(relation.table), size=(n, relation.n_negative))
    if isinstance(relation.table, range):
        drawn += relation.table.start
        return drawn
    return relation.table[drawn]


def init(n: int, rank: int, *, n_epochs: int, tied: bool, rng: np.random.Generator) -> SgnsState:
    """Draw small random vectors; contexts start at 0."""
    vectors = (rng.random((n, rank), dtype=np.float32) - np.float32(0.5)) / np.float32(rank**0.5)
    contexts = np.zeros((0 if tied else n, rank), np.float32)
    return SgnsState(vectors, contexts, int(rng.integers(2**63)), 0, n_epochs)


def epoch(
    state: SgnsState, relations: list[Relation], learning_rate: float, *, engine: Engine = DEFAULT
) -> SgnsState:
    """Visit every pair of every relation once, in a new random order; the vectors change in place.

    The learning rate decays linearly from `learning_rate` over the pairs of all epochs.
    """
    rng = np.random.default_rng([state.seed, state.epoch])
    tied = not len(state.contexts)
    chunks = [
        (relation, order[start : start + CHUNK])
        for relation in relations
        for order in [rng.permutation(len(relation.rows))]
        for start in range(0, len(order), CHUNK)
    ]
    n_pairs = sum(len(relation.rows) for relation in relations)
    seen = state.epoch * n_pairs
    with progress.stage("skip-grams", n_pairs) as advance:
        # Shuffling the chunks interleaves the relations.
        for position in rng.permutation(len(chunks)):
            relation, pairs = chunks[position]
            negatives = _draw(relation, len(pairs), rng)
            ends = np.array([seen, seen + len(pairs)]) / (state.n_epochs * n_pairs)
            first, last = learning_rate * np.maximum(1 - ends, SLOWEST)
            observed = (part[pairs] for part in (relation.rows, relation.columns, relation.weights))
            contexts = state.vectors if tied else state.contexts
            rates = float(first), float(last)
            engine.sgns_pairs(*observed, negatives, *rates, state.vectors, contexts, tied)
            seen += len(pairs)
            advance(len(pairs))
    return state._replace(epoch=state.epoch + 1)
