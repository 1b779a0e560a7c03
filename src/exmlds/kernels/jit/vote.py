"""Label votes of neighbours."""

import numpy as np

from .compiler import kernel


@kernel
def vote(neighbors, weights, y_indptr, y_indices, n_labels, ids, scores):
    """See the twin in reference/vote.py."""
    votes = np.zeros(n_labels, np.float64)
    named, shares = np.empty(n_labels, np.int64), np.empty(n_labels, np.float32)
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
        for j in range(n_named):
            shares[j] = votes[named[j]] / total
            votes[named[j]] = 0
        n = min(n_named, ids.shape[1])
        _sort_best(named, shares, n_named, n)
        ids[q, :n], scores[q, :n] = named[:n], shares[:n]


@kernel
def _is_before(score, label, other_score, other_label):
    return score > other_score or (score == other_score and label < other_label)


@kernel
def _sort_best(ids, scores, n, k):
    """Sort the first n entries by quicksort, as far as the k best need it; ties go to the smaller id."""
    pending = np.empty((64, 2), np.int64)  # more than quicksort needs, since it takes the smaller part first
    n_pending, low, high = 0, 0, n - 1
    while True:
        while high - low > 16 and low < k:
            middle = (low + high) // 2
            score, label = scores[middle], ids[middle]
            i, j = low, high
            while i <= j:
                while _is_before(scores[i], ids[i], score, label):
                    i += 1
                while _is_before(score, label, scores[j], ids[j]):
                    j -= 1
                if i <= j:
                    scores[i], scores[j] = scores[j], scores[i]
                    ids[i], ids[j] = ids[j], ids[i]
                    i += 1
                    j -= 1
            if j - low < high - i:
                pending[n_pending, 0], pending[n_pending, 1] = i, high
                high = j
            else:
                pending[n_pending, 0], pending[n_pending, 1] = low, j
                low = i
            n_pending += 1
        if low < k:  # insertion sort of a few entries
            for i in range(low + 1, high + 1):
                score, label, j = scores[i], ids[i], i
                while j > low and _is_before(score, label, scores[j - 1], ids[j - 1]):
                    scores[j], ids[j] = scores[j - 1], ids[j - 1]
                    j -= 1
                scores[j], ids[j] = score, label
        if n_pending == 0:
            return
        n_pending -= 1
        low, high = pending[n_pending, 0], pending[n_pending, 1]


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
