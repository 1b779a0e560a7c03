"""Label completion: add labels that are likely missing, by the co-occurrences of labels.

The co-occurrence matrix C is symmetric and non-negative, in any unit. Where it counts the rows that have both
labels, C_ij / C_ii is the share of the rows with label i that also have label j.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix, diags_array

Array = np.ndarray

KEPT = 50  # most labels that one label can add
LEAST = 0.01  # least share C_ij / C_ii with which a label is added
LEAST_VISIBLE = 0.02  # lower bound of the estimated visible share
SUREST = np.nextafter(np.float32(1), np.float32(0))  # An added label weighs less than an observed one.


def visible_share(Y: csr_matrix, C: csr_matrix) -> float:
    """Estimate the share p of the true labels that Y shows, in (0, 1].

    If each label is observed with probability p, both labels of a pair are observed with p². The ratio of
    pairs to single labels is therefore p times as large in YᵀY as in the C of the complete labels. Where the
    diagonal of C sums to less than the labels of Y, C does not count these rows; p can't be estimated and
    is 1.
    """
    if C.diagonal().sum() < Y.nnz:
        return 1.0

    def pairs_to_singles(counts: csr_matrix) -> float:
        singles = counts.diagonal().sum()
        return float((counts.sum() - singles) / singles) if singles > 0 else 0.0

    observed_ratio, complete_ratio = pairs_to_singles(csr_matrix(Y.T @ Y)), pairs_to_singles(C)
    return float(np.clip(observed_ratio / complete_ratio, LEAST_VISIBLE, 1.0)) if complete_ratio > 0 else 1.0


def rescale_counts(Y: csr_matrix, C: csr_matrix, share: float) -> csr_matrix:
    """Rescale C as if it counted the rows of Y with complete labels: its diagonal sums to nnz(Y) / share."""
    size = C.diagonal().sum() or C.max()
    return (C * (Y.nnz / share / size)).astype(np.float32)


def conditional_share(C: csr_matrix) -> csr_matrix:
    """(L, L) csr float32, the shares C_ij / C_ii for i ≠ j: the KEPT largest of each row, of at least LEAST.

    Where C has no diagonal, the largest value of the row takes its place.
    """
    largest = C.max(axis=1).toarray().ravel()
    whole = np.maximum(C.diagonal(), largest)
    P = csr_matrix(diags_array(np.divide(1, whole, out=np.zeros_like(whole), where=whole > 0)) @ C)
    P.setdiag(0)
    for row in range(P.shape[0]):
        shares = P.data[P.indptr[row] : P.indptr[row + 1]]
        shares[np.argsort(-shares, kind="stable")[KEPT:]] = 0
        shares[shares < LEAST] = 0
    P.eliminate_zeros()
    return P.astype(np.float32)


def complete(Y: csr_matrix, P: csr_matrix, strength: float, observed: csr_matrix | None = None) -> csr_matrix:
    """Add likely missing labels to Y, with the weight strength × min(sum of their shares, 1), below 1.

    Y : (n, L) csr of ones
    P : (L, L) csr, the shares of `conditional_share`
    observed : (n, L) csr of ones, the observed cells; a label that is observed as absent stays absent
    """
    if not strength:
        return Y
    added = csr_matrix(Y @ P)
    added.data = np.minimum(np.minimum(added.data, 1) * np.float32(strength), SUREST)
    if observed is not None:
        added -= added.multiply(observed)
    completed = csr_matrix(added.maximum(Y), dtype=np.float32)
    completed.eliminate_zeros()
    completed.sort_indices()
    return completed
