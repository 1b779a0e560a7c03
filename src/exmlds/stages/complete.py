"""Labels that are likely missing, from the co-occurrences of labels.

C is symmetric and non-negative, in any unit. Where it counts how many rows have both labels, C_ij / C_ii is
the share of the rows with label i that have label j.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix, diags_array

Array = np.ndarray

KEPT = 50  # labels that a label can bring along, at most
LEAST = 0.01  # with this share, at least
LEAST_VISIBLE = 0.02
SUREST = np.nextafter(np.float32(1), np.float32(0))  # a completed label: below one that is there


def visible_share(Y: csr_matrix, C: csr_matrix) -> float:
    """The share of the labels of C's rows that Y shows, in (0, 1].

    A label shows with probability p, two labels of a row both with p². So the ratio of pairs to single labels
    is p times as large in YᵀY as in the C of all labels. A C whose diagonal sums to less than the labels of Y
    does not count rows, or not these; nothing is known of p then, and it is 1.
    """
    if C.diagonal().sum() < Y.nnz:
        return 1.0

    def pairs_to_singles(counts: csr_matrix) -> float:
        singles = counts.diagonal().sum()
        return float((counts.sum() - singles) / singles) if singles > 0 else 0.0

    seen, all_of_them = pairs_to_singles(csr_matrix(Y.T @ Y)), pairs_to_singles(C)
    return float(np.clip(seen / all_of_them, LEAST_VISIBLE, 1.0)) if all_of_them > 0 else 1.0


def rescale_counts(Y: csr_matrix, C: csr_matrix, share: float) -> csr_matrix:
    """C scaled as if it counted the rows of Y with all their labels: its diagonal sums to nnz(Y) / share."""
    size = C.diagonal().sum() or C.max()
    return (C * (Y.nnz / share / size)).astype(np.float32)


def conditional_share(C: csr_matrix) -> csr_matrix:
    """(L, L) csr, for each label i the labels j that it brings along, with their shares C_ij / C_ii.

    Where C has no diagonal, the largest value of the row stands for it.
    """
    largest = C.max(axis=1).toarray().ravel()
    whole = np.maximum(C.diagonal(), largest)
    P = csr_matrix(diags_array(np.divide(1, whole, out=np.zeros_like(whole), where=whole > 0)) @ C)
    P.setdiag(0)
    for row in range(P.shape[0]):
        mine = P.data[P.indptr[row] : P.indptr[row + 1]]
        mine[np.argsort(-mine, kind="stable")[KEPT:]] = 0
        mine[mine < LEAST] = 0
    P.eliminate_zeros()
    return P.astype(np.float32)


def complete(Y: csr_matrix, P: csr_matrix, strength: float, known: csr_matrix | None = None) -> csr_matrix:
    """Y with labels that are likely missing, at strength × the sum of their shares, which stays below 1.

    known : (n, L) cells that are known; a label that is known and absent stays absent
    """
    if not strength:
        return Y
    added = csr_matrix(Y @ P)
    added.data = np.minimum(np.minimum(added.data, 1) * np.float32(strength), SUREST)
    if known is not None:
        added -= added.multiply(known)
    completed = csr_matrix(added.maximum(Y), dtype=np.float32)
    completed.eliminate_zeros()
    completed.sort_indices()
    return completed
