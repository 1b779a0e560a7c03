"""Label votes of neighbours."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

Array = np.ndarray


def vote(
    neighbors: Array,
    weights: Array,
    y_indptr: Array,
    y_indices: Array,
    n_labels: int,
    ids: Array,
    scores: Array,
) -> None:
    """Write the k labels with the largest vote shares: equation (1) of the paper, weighted.

    neighbors : (queries, m) int64, rows of Y, −1 pads
    weights : (queries, m) float32; a neighbour with weight 0 does not vote
    y_indptr, y_indices : the labels Y of the rows as csr
    ids, scores : (queries, k) int64 and float32; entries without a label are not written
    """
    for q in range(len(neighbors)):
        voters = (neighbors[q] >= 0) & (weights[q] > 0)
        votes = np.zeros(n_labels)
        for row, weight in zip(neighbors[q, voters], weights[q, voters].astype(np.float64)):
            votes[y_indices[y_indptr[row] : y_indptr[row + 1]]] += weight
        named = np.flatnonzero(votes)
        shares = (votes[named] / weights[q, voters].astype(np.float64).sum()).astype(np.float32)
        order = np.lexsort((named, -shares))[: ids.shape[1]]
        ids[q, : len(order)], scores[q, : len(order)] = named[order], shares[order]


def add_votes(
    neighbors: Array,
    weights: Array,
    y_indptr: Array,
    y_indices: Array,
    y_data: Array,
    n_labels: int,
    start: int,
    length: float,
    scores: Array,
) -> None:
    """Add votes to a block of scores; the votes of a query for all labels are scaled to the norm `length`.

    neighbors, weights, y_indptr, y_indices : as in `vote`
    y_data : ≥ 0, the share of a vote that each label of a row gets
    start : the label of the first column of scores
    scores : (queries, block of labels) float32, updated in place
    """
    voters = (neighbors >= 0) & (weights > 0)
    starts = np.concatenate(([0], np.cumsum(voters.sum(axis=1))))
    ballots = csr_matrix(
        (weights[voters].astype(np.float64), neighbors[voters], starts), (len(neighbors), len(y_indptr) - 1)
    )
    votes = (ballots @ csr_matrix((y_data, y_indices, y_indptr), (len(y_indptr) - 1, n_labels))).toarray()
    lengths = np.linalg.norm(votes, axis=1, keepdims=True)
    votes *= length / np.where(lengths > 0, lengths, 1)
    scores += votes[:, start : start + scores.shape[1]].astype(np.float32)
