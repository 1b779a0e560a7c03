"""Lengths and fingerprints of csr rows, scaled rows, and rows padded to a multiple of four values."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def row_lengths(indptr: Array, values: Array, lengths: Array) -> None:
    """Write the Euclidean length of each row, (n,) float64, summed up in the order of its values."""
    for row in range(len(lengths)):
        squares = np.square(values[indptr[row] : indptr[row + 1]], dtype=np.float64)
        lengths[row] = np.sqrt(np.cumsum(squares)[-1]) if len(squares) else 0


def fingerprint_rows(indptr: Array, columns: Array, values: Array, found: Array) -> None:
    """Write (n,) float64 numbers that equal rows share, and others hardly ever; 0 for an empty row."""
    for row in range(len(found)):
        own = slice(indptr[row], indptr[row + 1])
        roots = np.sqrt(columns[own], dtype=np.float64)
        found[row] = np.sum(roots + (np.pi * roots + np.e) * values[own])


def scale_rows(indptr: Array, values: Array, scale: Array, scaled: Array) -> None:
    """Write the values of each row times its scale, (n,) float64; scaled : float32, may be values itself."""
    for row, factor in enumerate(scale):
        own = slice(indptr[row], indptr[row + 1])
        scaled[own] = values[own] * np.float64(factor)


def pad_rows(
    indptr: Array,
    features: Array,
    values: Array,
    padded_indptr: Array,
    padded_features: Array,
    padded_values: Array,
) -> None:
    """Copy rows to where padded_indptr says that they begin; what follows the end of a row is not written."""
    for row in range(len(indptr) - 1):
        own = slice(indptr[row], indptr[row + 1])
        start = padded_indptr[row]
        place = slice(start, start + own.stop - own.start)
        padded_features[place], padded_values[place] = features[own], values[own]


def multiply_rows(X: Array, W: Array, Z: Array) -> None:
    """Write x W of each dense row x by itself, so that it does not depend on the other rows.

    The result of a matrix product depends on its shape in the last bits, and so on the other rows.

    X : (n, d) float32;  W : (d, r) float32;  Z : (n, r) float32
    """
    for row in range(len(X)):
        Z[row] = (X[row, :, None] * W).sum(axis=0)


def inner_products(A: Array, B: Array, products: Array) -> None:
    """Write ⟨a, b⟩ for all rows a of A and b of B, each by itself, as `multiply_rows` does.

    A, B : (n, r) and (m, r) float32;  products : (n, m) float32
    """
    for row in range(len(A)):
        products[row] = (A[row] * B).sum(axis=1)
