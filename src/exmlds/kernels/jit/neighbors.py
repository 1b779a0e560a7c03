"""The nearest label sets, and from neighbouring groups to neighbouring rows."""

import numpy as np

from .compiler import kernel
from .topk import insert


@kernel
def expand_neighbors(near, group, starts, members, draws, out):
    """See the twin in reference/neighbors.py."""
    k = out.shape[1]
    for row in range(len(group)):
        n = 0
        for place in range(near.shape[1]):
            g = near[group[row], place]
            if g < 0 or n == k:
                break
            size = starts[g + 1] - starts[g]
            first = int(draws[row] * size)
            for step in range(size):
                if n == k:
                    break
                member = members[starts[g] + (first + step) % size]
                if member != row:
                    out[row, n] = member
                    n += 1
        for place in range(n, k):
            out[row, place] = -1


@kernel
def nearest_sets(
    indptr, labels, p_indptr, p_sets, weights, draws, budget, start, stop, best_ids, best_scores
):
    """See the twin in reference/neighbors.py."""
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
        for place in range(n_met):
            j = met[place]
            score = common[j] * weights[j]
            common[j] = 0
            worst = best_scores[i, last]
            if score > worst or (score == worst and j < best_ids[i, last]):
                insert(best_ids[i], best_scores[i], score, j)
