"""Lengths and fingerprints of csr rows, scaled rows, and rows padded to a multiple of four values."""

import numpy as np

from .compiler import kernel, reordering_kernel

CACHED = 32  # rows of a matrix that are read again for each row of another


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


@reordering_kernel
def multiply_rows(X, W, Z):
    """See the twin in reference/rows.py."""
    d = len(W)
    for row in range(len(X)):
        x, z = X[row], Z[row]
        z[:] = 0
        j = 0
        # Four features at a time: z is read and written once for all of them.
        while j + 4 <= d:
            a, b, c, e = x[j], x[j + 1], x[j + 2], x[j + 3]
            first, second, third, fourth = W[j], W[j + 1], W[j + 2], W[j + 3]
            for i in range(len(z)):
                z[i] += a * first[i] + b * second[i] + c * third[i] + e * fourth[i]
            j += 4
        while j < d:
            factor, own = x[j], W[j]
            for i in range(len(z)):
                z[i] += factor * own[i]
            j += 1


@reordering_kernel
def inner_products(A, B, products):
    """See the twin in reference/rows.py."""
    zero = np.float32(0)
    for start in range(0, len(B), CACHED):
        stop = min(start + CACHED, len(B))
        for row in range(len(A)):
            own, j = A[row], start
            while j + 4 <= stop:  # a is read once for four rows of B
                first, second, third, fourth = B[j], B[j + 1], B[j + 2], B[j + 3]
                s, t, u, v = zero, zero, zero, zero
                for c in range(len(own)):
                    s += own[c] * first[c]
                    t += own[c] * second[c]
                    u += own[c] * third[c]
                    v += own[c] * fourth[c]
                products[row, j], products[row, j + 1] = s, t
                products[row, j + 2], products[row, j + 3] = u, v
                j += 4
            while j < stop:
                last, s = B[j], zero
                for c in range(len(own)):
                    s += own[c] * last[c]
                products[row, j] = s
                j += 1
