"""A stratified hold-out split: about the same share of the rows of every label is held out."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def split_by_labels(
    indptr: Array, indices: Array, order: Array, frequency: Array, share: float, held_out: Array
) -> None:
    """Visit the rows once, and hold a row out where that brings its labels closer to their share.

    The debt of a label is `share` times its rows visited so far, less those held out. A row is held out where
    that lowers the sum of squared debts, (debt − 1)² < debt², over its labels and over the set of all rows.
    A label with two rows or more keeps at least one that is not held out.

    indptr, indices : the labels of the rows as csr
    order : (n,) int64, the order in which rows are visited
    frequency : (L,) int64, the number of rows of each label
    share : the share of rows to hold out
    held_out : (n,) uint8, set to 1 for held-out rows
    """
    debt = np.zeros(len(frequency) + 1)  # the last entry is for the set of all rows
    kept = frequency.astype(np.int64)
    for row in order:
        labels = indices[indptr[row] : indptr[row + 1]]
        accounts = np.append(labels, len(frequency))
        debt[accounts] += share
        last_of_its_label = (frequency[labels] > 1) & (kept[labels] == 1)
        lowers = np.sum(debt[accounts] ** 2 - (debt[accounts] - 1) ** 2) > 0
        if lowers and not last_of_its_label.any():
            held_out[row] = 1
            debt[accounts] -= 1
            kept[labels] -= 1
