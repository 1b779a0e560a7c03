"""Marking the predictions that are true labels."""

from .compiler import kernel


@kernel
def mark_hits(y_indptr, y_indices, ids, hits):
    """See the twin in reference/hits.py."""
    for row in range(ids.shape[0]):
        for j in range(ids.shape[1]):
            label = ids[row, j]
            hits[row, j] = 0
            if label < 0:
                continue
            low = y_indptr[row]
            high = y_indptr[row + 1]
            while low < high:
                middle = (low + high) // 2
                if y_indices[middle] < label:
                    low = middle + 1
                else:
                    high = middle
            if low < y_indptr[row + 1] and y_indices[low] == label:
                hits[row, j] = 1


@kernel
def find_repeated(ids):
    """See the twin in reference/hits.py."""
    for row in range(ids.shape[0]):
        for j in range(ids.shape[1]):
            for i in range(j):
                if ids[row, j] >= 0 and ids[row, i] == ids[row, j]:
                    return row
    return -1
