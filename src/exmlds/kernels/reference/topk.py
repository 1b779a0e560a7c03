"""The k best of many, best first; among equals the smaller id is better."""

from __future__ import annotations

from collections import Counter

import numpy as np

Array = np.ndarray


def _best(ids: Array, scores: Array, k: int) -> tuple[Array, Array]:
    order = np.lexsort((ids, -scores))[:k]
    return ids[order], scores[order]


def sparse_topk(
    q_indptr: Array,
    q_indices: Array,
    q_data: Array,
    p_indptr: Array,
    p_rows: Array,
    p_data: Array,
    bias: Array,
    offset: int,
    best_ids: Array,
    best_scores: Array,
) -> None:
    """Update the best rows of each sparse query with the rows of one segment.

    q_* : the queries as csr, float32
    p_* : the segment's rows as csc, that is, for each feature its rows and their values
    bias : (rows,) float32, added to the inner product; −inf leaves a row out
    offset : the id of the segment's first row, above all ids that are in best_ids
    best_ids, best_scores : (queries, k) int64 and float32, best first; −1 and −inf where empty
    """
    n_features = len(p_indptr) - 1
    rows = np.zeros((len(bias), n_features), np.float32)  # (rows, d)
    for feature in range(n_features):
        for p in range(p_indptr[feature], p_indptr[feature + 1]):
            rows[p_rows[p], feature] += p_data[p]
    for q in range(len(q_indptr) - 1):
        mine = slice(q_indptr[q], q_indptr[q + 1])
        scores = bias + rows[:, q_indices[mine]] @ q_data[mine]
        merge_topk(scores[None], offset, best_ids[q : q + 1], best_scores[q : q + 1])


def merge_topk(scores: Array, offset: int, best_ids: Array, best_scores: Array) -> None:
    """Update the best rows of each query with a block of scores.

    scores : (queries, rows) float32
    offset, best_ids, best_scores : as for `sparse_topk`
    """
    k = best_ids.shape[1]
    rows = offset + np.arange(scores.shape[1])
    for q in range(scores.shape[0]):
        present = scores[q] > -np.inf
        ids = np.concatenate((best_ids[q], rows[present]))
        both = np.concatenate((best_scores[q], scores[q, present]))
        best_ids[q], best_scores[q] = _best(ids, both, k)


def rank_rows(indptr: Array, indices: Array, data: Array, ids: Array, scores: Array) -> None:
    """Write the k best columns of each csr row.

    indptr, indices, data : csr, data of the dtype of scores
    ids, scores : (rows, k) int64 and float; what a short row does not fill is left as it is
    """
    k = ids.shape[1]
    for row in range(len(indptr) - 1):
        mine = slice(indptr[row], indptr[row + 1])
        best = _best(indices[mine], data[mine], k)
        ids[row, : len(best[0])], scores[row, : len(best[0])] = best


def nearest_sets(
    indptr: Array,
    labels: Array,
    p_indptr: Array,
    p_sets: Array,
    weights: Array,
    draws: Array,
    budget: int,
    start: int,
    stop: int,
    best_ids: Array,
    best_scores: Array,
) -> None:
    """For the sets i from start to stop the k sets j of most |i ∩ j| w_j among those that share a label.

    indptr, labels : the labels of each set, in the order in which they are asked for sets
    p_indptr, p_sets : the sets of each label
    weights : (m,) float32, w
    draws : (m,) float64 in [0, 1): where the stretch begins of a list that is longer than what is left
    budget : entries of the lists that are read for a set; labels beyond it do not count
    best_ids, best_scores : (m, k) int64 and float32, best first, of equals the smaller id; −1 and −inf pad
    """
    for i in range(start, stop):
        common: Counter[int] = Counter()
        left = budget
        for label in labels[indptr[i] : indptr[i + 1]]:
            sharing = p_sets[p_indptr[label] : p_indptr[label + 1]].tolist()
            if len(sharing) > left:
                first = int(draws[i] * (len(sharing) - left + 1))
                sharing = sharing[first : first + left]
            common.update(sharing)
            left -= len(sharing)
        scored = sorted((-np.float32(count) * weights[j], j) for j, count in common.items())
        for place, (negative, j) in enumerate(scored[: best_ids.shape[1]]):
            best_ids[i, place], best_scores[i, place] = j, -negative
