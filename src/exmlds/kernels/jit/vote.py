"""Label votes of neighbours."""

import numpy as np

from .compiler import kernel


@kernel
def vote(neighbors, weights, y_indptr, y_indices, n_labels, ids, scores):
    """See the twin in reference/vote.py."""
    k = ids.shape[1]
    votes = np.zeros(n_labels, np.float64)
    named = np.empty(n_labels, np.int64)
    for q in range(neighbors.shape[0]):
        n_named = 0
        total = 0.0
        for j in range(neighbors.shape[1]):
            row = neighbors[q, j]
            if row < 0 or weights[q, j] <= 0:
                continue
            total += weights[q, j]
            for p in range(y_indptr[row], y_indptr[row + 1]):
                label = y_indices[p]
                if votes[label] == 0:
                    named[n_named] = label
                    n_named += 1
                votes[label] += weights[q, j]
        n = 0
        for j in range(n_named):
            label = named[j]
            score = np.float32(votes[label] / total)
            votes[label] = 0
            if n < k:
                n += 1
            elif score < scores[q, k - 1] or (score == scores[q, k - 1] and label > ids[q, k - 1]):
                continue
            i = n - 1
            while i > 0 and (
                score > scores[q, i - 1] or (score == scores[q, i - 1] and label < ids[q, i - 1])
            ):
                ids[q, i] = ids[q, i - 1]
                scores[q, i] = scores[q, i - 1]
                i -= 1
            ids[q, i] = label
            scores[q, i] = score


@kernel
def add_votes(neighbors, weights, y_indptr, y_indices, y_data, n_labels, start, length, scores):
    """See the twin in reference/vote.py."""
    votes = np.zeros(n_labels, np.float64)
    named = np.empty(n_labels, np.int64)
    for q in range(neighbors.shape[0]):
        n_named = 0
        for j in range(neighbors.shape[1]):
            row = neighbors[q, j]
            if row < 0 or weights[q, j] <= 0:
                continue
            for p in range(y_indptr[row], y_indptr[row + 1]):
                label = y_indices[p]
                if votes[label] == 0 and weights[q, j] * y_data[p] > 0:  # A tiny product is 0.
                    named[n_named] = label
                    n_named += 1
                votes[label] += weights[q, j] * y_data[p]
        squares = 0.0
        for j in range(n_named):
            squares += votes[named[j]] ** 2
        for j in range(n_named):
            column = named[j] - start
            if 0 <= column < scores.shape[1]:
                scores[q, column] += np.float32(length * votes[named[j]] / np.sqrt(squares))
            votes[named[j]] = 0
