"""Rows held out so that every label is held out in its share."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def split_by_labels(
    indptr: Array, indices: Array, order: Array, frequency: Array, share: float, held: Array
) -> None:
    """Walk through the rows once and hold a row out where that brings its labels nearer to their share.

    indptr, indices : the labels of the rows, csr
    order : (n,) int64, the order of the walk
    frequency : (L,) int64, rows of each label
    held : (n,) uint8, set to 1 for the rows held out

    A label's debt is the share of its rows seen so far less those held out. A row is held out where that
    lowers the sum of squared debts, (debt − 1)² < debt² summed over its labels and over the set of all rows.
    A label with two rows or more keeps one that is not held out.
    """
    debt = np.zeros(len(frequency) + 1)  # the last one is for all rows
    kept = frequency.astype(np.int64)
    for row in order:
        labels = indices[indptr[row] : indptr[row + 1]]
        accounts = np.append(labels, len(frequency))
        debt[accounts] += share
        last_of_its_label = (frequency[labels] > 1) & (kept[labels] == 1)
        lowers = np.sum(debt[accounts] ** 2 - (debt[accounts] - 1) ** 2) > 0
        if lowers and not last_of_its_label.any():
            held[row] = 1
            debt[accounts] -= 1
            kept[labels] -= 1
