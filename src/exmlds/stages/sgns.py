"""Skip-gram with negative sampling, equation (3) of the paper and its combined objective (5).

Words and contexts are numbered together; a relation says which pairs of them are observed. For each observed
pair (i, j), its negatives j' are drawn and

    log σ(⟨z_i, c_j⟩) + Σ over j' of log σ(−⟨z_i, c_j'⟩)

is climbed, pair after pair in an order that is drawn anew in each epoch. c is z where the vectors are tied,
as the paper has it, and learnt beside z where not, as word2vec has it. One thread, so that a seed gives one
result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from .. import kernels
from ..runtime import progress

Array = np.ndarray

CHUNK = 1 << 14  # pairs whose negatives are drawn at a time
TABLE = 1 << 20  # entries of a table to draw negatives from, at least
SLOWEST = 1e-4  # of the first learning rate, at the end


class Relation(NamedTuple):
    """Observed pairs.

    rows, columns, weights : (p,) int64, int64, float32: the pairs, and how much each counts
    table : int64, negatives are drawn from its entries
    n_negative : for each pair
    """

    rows: Array
    columns: Array
    weights: Array
    table: Array
    n_negative: int


class SgnsState(NamedTuple):
    """What there is after `epoch` of `n_epochs`; each epoch draws from its own generator.

    vectors, contexts : (n, r) float32; contexts is (0, r) where they are tied
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
    """The pairs of a (rows, columns) graph, its values their counts.

    power : negatives are drawn in proportion to a column's count to this power: 0 is uniform
    weight : of all pairs
    row_offset, column_offset : the numbers of the first row and the first column
    """
    rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr)) + row_offset
    columns = graph.indices.astype(np.int64) + column_offset
    counts = np.bincount(graph.indices, weights=graph.data, minlength=graph.shape[1])
    weights = (weight * graph.data).astype(np.float32)
    return Relation(rows, columns, weights, _table(counts, power) + column_offset, n_negative)


def _table(counts: Array, power: float) -> Array:
    """Each column as many times as its share says, to the nearest; columns never observed are drawn too if
    the power is 0."""
    if power == 0:
        return np.arange(len(counts))
    shares = np.where(counts > 0, counts, 0) ** power * (counts > 0)
    if not shares.any():  # nothing is observed, so nothing will be drawn
        return np.arange(len(counts))
    size = max(TABLE, 16 * len(counts))
    edges = np.rint(size * np.cumsum(shares) / shares.sum()).astype(np.int64)
    return np.repeat(np.arange(len(counts)), np.diff(edges, prepend=0))


def init(n: int, rank: int, *, n_epochs: int, tied: bool, rng: np.random.Generator) -> SgnsState:
    """Small random vectors; contexts start at 0."""
    vectors = (rng.random((n, rank), dtype=np.float32) - np.float32(0.5)) / np.float32(rank**0.5)
    contexts = np.zeros((0 if tied else n, rank), np.float32)
    return SgnsState(vectors, contexts, int(rng.integers(2**63)), 0, n_epochs)


def epoch(state: SgnsState, relations: list[Relation], learning_rate: float) -> SgnsState:
    """Every pair of every relation once, in an order drawn anew; the vectors change in place.

    The learning rate falls from `learning_rate`, linearly in the pairs seen over all epochs.
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
        for place in rng.permutation(len(chunks)):  # relations take turns
            relation, pairs = chunks[place]
            drawn = rng.integers(len(relation.table), size=(len(pairs), relation.n_negative))
            ends = np.array([seen, seen + len(pairs)]) / (state.n_epochs * n_pairs)
            first, last = learning_rate * np.maximum(1 - ends, SLOWEST)
            kernels.sgns_pairs(
                relation.rows[pairs],
                relation.columns[pairs],
                relation.weights[pairs],
                relation.table[drawn],
                float(first),
                float(last),
                state.vectors,
                state.vectors if tied else state.contexts,
                tied,
            )
            seen += len(pairs)
            advance(len(pairs))
    return state._replace(epoch=state.epoch + 1)
