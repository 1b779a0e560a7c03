"""Top-k selection, best first; ties go to the smaller id."""

import numpy as np

from .compiler import kernel, reordering_kernel

SEARCHED_ROWS = 8_192  # that queries are multiplied with at a time
N_FIRST = 4  # nearest cells of a query that are read before all others


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
def _is_before(score, row, other_score, other_row):
    return score > other_score or (score == other_score and row < other_row)


@kernel
def _select(ids, scores, n, k):
    """Move the k best of the first n entries to the front, in any order; returns the k-th score."""
    low, high = 0, n - 1
    while low < high:
        middle = (low + high) // 2
        score, row = scores[middle], ids[middle]
        i, j = low, high
        while i <= j:
            while _is_before(scores[i], ids[i], score, row):
                i += 1
            while _is_before(score, row, scores[j], ids[j]):
                j -= 1
            if i <= j:
                scores[i], scores[j] = scores[j], scores[i]
                ids[i], ids[j] = ids[j], ids[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    return scores[:k].min()


@kernel
def _write_best(ids, scores, n, best_ids, best_scores):
    """Write the best of the first n entries, best first."""
    k = len(best_ids)
    if n > k:
        _select(ids, scores, n, k)
        n = k
    for i in range(n):
        insert(best_ids[: i + 1], best_scores[: i + 1], scores[i], ids[i])


@kernel
def merge_topk(scores, offset, best_ids, best_scores):
    """See the twin in reference/topk.py."""
    k = best_ids.shape[1]
    # Entries above the worst one are collected, and the best k of them selected when there are too many.
    size = 2 * k + 8
    ids, kept = np.empty(size, np.int64), np.empty(size, best_scores.dtype)
    for q in range(scores.shape[0]):
        n, worst = 0, best_scores[q, k - 1]
        while n < k and best_ids[q, n] >= 0:
            ids[n], kept[n] = best_ids[q, n], best_scores[q, n]
            n += 1
        for row in range(scores.shape[1]):
            if scores[q, row] > worst:
                ids[n], kept[n] = row + offset, scores[q, row]
                n += 1
                if n == size:
                    worst, n = _select(ids, kept, n, k), k
        _write_best(ids, kept, n, best_ids[q], best_scores[q])


def search_rows(Q, rows, scale, bias, is_euclidean, positions, scores):
    """See the twin in reference/topk.py. The products are those of BLAS, block by block."""
    queries = 2 * Q if is_euclidean else Q
    for start in range(0, len(rows), SEARCHED_ROWS):
        block = slice(start, start + SEARCHED_ROWS)
        X = rows[block].astype(np.float32, copy=False)
        products = queries @ (X * scale[block][:, None] if len(scale) else X).T  # (q, block)
        merge_topk(products + bias[block], start, positions, scores)


@kernel
def choose_cells(nearness, margin, fewest, cells):
    """See the twin in reference/topk.py."""
    n_cells, most = nearness.shape[1], cells.shape[1]
    ids, near = np.empty(n_cells, np.int64), np.empty(n_cells, np.float32)
    largest = 0
    for q in range(nearness.shape[0]):
        least, n = nearness[q].max() - margin, 0
        for cell in range(n_cells):
            if nearness[q, cell] >= least:
                ids[n], near[n] = cell, nearness[q, cell]
                n += 1
        if n < fewest:
            for cell in range(n_cells):
                ids[cell], near[cell] = cell, nearness[q, cell]
            _select(ids, near, n_cells, fewest)
            n = fewest
        elif n > most:
            _select(ids, near, n, most)
            n = most
        _select(ids, near, n, min(n, N_FIRST))
        cells[q, :n] = ids[:n]
        largest = max(largest, n)
    return largest


@reordering_kernel
def search_cells(Q, probes, starts, rows, bias, best, best_scores):
    """See the twin in reference/topk.py."""
    n_queries, n_probes = probes.shape
    n_cells, k = len(starts) - 1, best.shape[1]
    # As in merge_topk, for all queries at a time.
    size = 2 * k + 8
    ids, kept = np.empty((n_queries, size), np.int64), np.empty((n_queries, size), np.float32)
    n_kept, worst = np.zeros(n_queries, np.int64), np.full(n_queries, -np.inf, np.float32)
    # The nearest cells come first: their rows raise the bar for those of the others.
    n_first = min(N_FIRST, n_probes)
    for near in (probes[:, :n_first], probes[:, n_first:]):
        # Sort the pairs of a query and a cell by cell, so that each cell is read once for all its queries.
        ends = np.zeros(n_cells + 1, np.int64)
        for q in range(n_queries):
            for p in range(near.shape[1]):
                if near[q, p] >= 0:
                    ends[near[q, p] + 1] += 1
        largest = 0
        for cell in range(n_cells):
            largest = max(largest, ends[cell + 1])
            ends[cell + 1] += ends[cell]
        queries, position = np.empty(near.size, np.int64), ends[:-1].copy()
        for q in range(n_queries):
            for p in range(near.shape[1]):
                if near[q, p] >= 0:
                    queries[position[near[q, p]]] = q
                    position[near[q, p]] += 1
        gathered = np.empty((largest, Q.shape[1]), np.float32)
        for cell in range(n_cells):
            probing = queries[ends[cell] : ends[cell + 1]]
            first, n_rows = starts[cell], starts[cell + 1] - starts[cell]
            if len(probing) == 0 or n_rows == 0:
                continue
            for i in range(len(probing)):
                gathered[i] = Q[probing[i]]
            scores = np.dot(gathered[: len(probing)], rows[first : first + n_rows].T)
            for i in range(len(probing)):
                q = probing[i]
                n, least = n_kept[q], worst[q]
                for j in range(n_rows):
                    score = scores[i, j] + bias[first + j]
                    if score > least:
                        ids[q, n], kept[q, n] = first + j, score
                        n += 1
                        if n == size:
                            least, n = _select(ids[q], kept[q], n, k), k
                n_kept[q], worst[q] = n, least
    for q in range(n_queries):
        _write_best(ids[q], kept[q], n_kept[q], best[q], best_scores[q])


@reordering_kernel
def rescore(Q, rows, bias, is_euclidean, positions, ids, scores):
    """See the twin in reference/topk.py."""
    for q in range(len(Q)):
        query = Q[q]
        for i in range(positions.shape[1]):
            position = positions[q, i]
            if position < 0:
                break
            row, score = rows[position], np.float32(0)
            if is_euclidean:
                for c in range(len(query)):
                    score -= (query[c] - row[c]) ** 2
                if bias[position] == -np.inf:
                    score = bias[position]
            else:
                for c in range(len(query)):
                    score += query[c] * row[c]
                score += bias[position]
            # The list is almost sorted, so that few entries move.
            own, j = ids[q, i], i
            while j > 0 and (score > scores[q, j - 1] or (score == scores[q, j - 1] and own < ids[q, j - 1])):
                ids[q, j], scores[q, j] = ids[q, j - 1], scores[q, j - 1]
                j -= 1
            ids[q, j], scores[q, j] = own, score


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
