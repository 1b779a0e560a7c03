"""Top-k selection, best first; ties go to the smaller id."""

import numpy as np

from .compiler import kernel


@kernel
def insert(best_ids, best_scores, score, row):
    """Insert (row, score) into a sorted list, whose last entry is dropped."""
    i = len(best_ids) - 1
    while i > 0 and (score > best_scores[i - 1] or (score == best_scores[i - 1] and row < best_ids[i - 1])):
        best_ids[i] = best_ids[i - 1]
        best_scores[i] = best_scores[i - 1]
        i -= 1
    best_ids[i] = row
    best_scores[i] = score


@kernel
def sparse_topk(q_indptr, q_indices, q_data, p_indptr, p_rows, p_data, bias, offset, best_ids, best_scores):
    """See the twin in reference/topk.py."""
    last = best_ids.shape[1] - 1
    scores = np.empty_like(bias)
    for q in range(len(q_indptr) - 1):
        scores[:] = bias
        for j in range(q_indptr[q], q_indptr[q + 1]):
            weight = q_data[j]
            feature = q_indices[j]
            for p in range(p_indptr[feature], p_indptr[feature + 1]):
                scores[p_rows[p]] += weight * p_data[p]
        for row in range(len(scores)):
            if scores[row] > best_scores[q, last]:
                insert(best_ids[q], best_scores[q], scores[row], row + offset)


@kernel
def merge_topk(scores, offset, best_ids, best_scores):
    """See the twin in reference/topk.py."""
    last = best_ids.shape[1] - 1
    for q in range(scores.shape[0]):
        for row in range(scores.shape[1]):
            if scores[q, row] > best_scores[q, last]:
                insert(best_ids[q], best_scores[q], scores[q, row], row + offset)


@kernel
def rank_rows(indptr, indices, data, ids, scores):
    """See the twin in reference/topk.py."""
    k = ids.shape[1]
    for row in range(len(indptr) - 1):
        n = 0
        for j in range(indptr[row], indptr[row + 1]):
            if n < k:
                n += 1
                insert(ids[row, :n], scores[row, :n], data[j], indices[j])
            elif data[j] > scores[row, k - 1] or (
                data[j] == scores[row, k - 1] and indices[j] < ids[row, k - 1]
            ):
                insert(ids[row], scores[row], data[j], indices[j])


@kernel
def nearest_sets(
    indptr, labels, p_indptr, p_sets, weights, draws, budget, start, stop, best_ids, best_scores
):
    """See the twin in reference/topk.py."""
    last = best_ids.shape[1] - 1
    common = np.zeros(len(weights), np.int32)
    met = np.empty(len(weights), np.int64)
    for i in range(start, stop):
        left = budget
        n_met = 0
        for p in range(indptr[i], indptr[i + 1]):
            begin = p_indptr[labels[p]]
            size = p_indptr[labels[p] + 1] - begin
            first = begin + (int(draws[i] * (size - left + 1)) if size > left else 0)
            for q in range(first, first + min(size, left)):
                j = p_sets[q]
                if common[j] == 0:
                    met[n_met] = j
                    n_met += 1
                common[j] += 1
            left -= min(size, left)
        # Score the sets that share a label, and reset their counts for the next set.
        for i_met in range(n_met):
            j = met[i_met]
            score = common[j] * weights[j]
            common[j] = 0
            worst = best_scores[i, last]
            if score > worst or (score == worst and j < best_ids[i, last]):
                insert(best_ids[i], best_scores[i], score, j)
