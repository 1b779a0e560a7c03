"""Rows held out so that every label is held out in its share."""

import numpy as np

from .compiler import kernel


@kernel
def split_by_labels(indptr, indices, order, frequency, share, held):
    """See the twin in reference/split.py."""
    debt = np.zeros(len(frequency), np.float64)
    left = frequency.copy()
    all_rows_debt = 0.0
    for row in order:
        all_rows_debt += share
        gain = 2 * all_rows_debt - 1
        may_go = True
        for j in range(indptr[row], indptr[row + 1]):
            label = indices[j]
            debt[label] += share
            gain += 2 * debt[label] - 1
            if frequency[label] > 1 and left[label] == 1:
                may_go = False
        if gain > 0 and may_go:
            held[row] = 1
            all_rows_debt -= 1
            for j in range(indptr[row], indptr[row + 1]):
                debt[indices[j]] -= 1
                left[indices[j]] -= 1
