"""Lengths and fingerprints of csr rows, scaled rows, and rows padded to a multiple of four values."""

import numpy as np

from .compiler import kernel


@kernel
def row_lengths(indptr, values, lengths):
    """See the twin in reference/rows.py."""
    for row in range(len(lengths)):
        total = 0.0
        for p in range(indptr[row], indptr[row + 1]):
            total += np.float64(values[p]) * np.float64(values[p])
        lengths[row] = np.sqrt(total)


@kernel
def fingerprint_rows(indptr, columns, values, found):
    """See the twin in reference/rows.py."""
    for row in range(len(found)):
        found[row] = 0
        for p in range(indptr[row], indptr[row + 1]):
            root = np.sqrt(np.float64(columns[p]))
            found[row] += root + (np.pi * root + np.e) * values[p]


@kernel
def scale_rows(indptr, values, scale, scaled):
    """See the twin in reference/rows.py."""
    for row in range(len(scale)):
        for p in range(indptr[row], indptr[row + 1]):
            scaled[p] = values[p] * scale[row]


@kernel
def pad_rows(indptr, features, values, padded_indptr, padded_features, padded_values):
    """See the twin in reference/rows.py."""
    for row in range(len(indptr) - 1):
        shift = padded_indptr[row] - indptr[row]
        for p in range(indptr[row], indptr[row + 1]):
            padded_features[p + shift] = features[p]
            padded_values[p + shift] = values[p]
