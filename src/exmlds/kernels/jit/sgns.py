"""Skip-gram with negative sampling, pair by pair."""

import numpy as np

from .compiler import reordering_kernel


@reordering_kernel
def sgns_pairs(rows, columns, weights, negatives, first_rate, last_rate, vectors, contexts, skip_self):
    """See the twin in reference/sgns.py."""
    rank = vectors.shape[1]
    change = np.empty(rank, np.float32)
    for p in range(len(rows)):
        rate = np.float32(first_rate + (last_rate - first_rate) * p / len(rows)) * weights[p]
        vector = vectors[rows[p]]
        change[:] = 0
        for t in range(negatives.shape[1] + 1):
            target = columns[p] if t == 0 else negatives[p, t - 1]
            if skip_self and t > 0 and target == rows[p]:
                continue
            context = contexts[target]
            dot = np.float32(0)
            for c in range(rank):
                dot += vector[c] * context[c]
            target_value = np.float32(1) if t == 0 else np.float32(0)
            step = rate * (target_value - np.float32(1) / (np.float32(1) + np.exp(-dot)))
            # One loop takes half the time of two, which would each check whether their rows overlap.
            for c in range(rank):
                before = context[c]
                change[c] += step * before
                context[c] = before + step * vector[c]
        for c in range(rank):
            vector[c] += change[c]
