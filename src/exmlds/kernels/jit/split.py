"""A stratified hold-out split: about the same share of the rows of every label is held out."""

import numpy as np

from .compiler import kernel


@kernel
def split_by_labels(indptr, indices, order, frequency, share, held_out):
    """See the twin in reference/split.py."""
    debt = np.zeros(len(frequency), np.float64)
    left = frequency.copy()
    all_rows_debt = 0.0
    for row in order:
        all_rows_debt += share
        gain = 2 * all_rows_debt - 1
        is_allowed = True
        for j in range(indptr[row], indptr[row + 1]):
            label = indices[j]
            debt[label] += share
            gain += 2 * debt[label] - 1
            if frequency[label] > 1 and left[label] == 1:
                is_allowed = False
        if gain > 0 and is_allowed:
            held_out[row] = 1
            all_rows_debt -= 1
            for j in range(indptr[row], indptr[row + 1]):
                debt[indices[j]] -= 1
                left[indices[j]] -= 1
