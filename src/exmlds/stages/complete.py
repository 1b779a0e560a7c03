"""Label completion: add labels that are likely missing, by the co-occurrences of labels.

The co-occurrence matrix C is symmetric and non-negative, in any unit. Where it counts the rows that have both
labels, C_ij / C_ii is the share of the rows with label i that also have label j.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix, diags_array, vstack

from ..runtime.parallel import bounded_blocks

Array = np.ndarray

PAIRS = 1 << 19  # co-occurrences that are counted at a time; those of a single label may be more
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

    def pairs_to_singles(total: np.floating, singles: np.floating) -> float:
        return float((total - singles) / singles) if singles > 0 else 0.0

    # The sums of YᵀY need no (L, L) product: its rows sum to Yᵀ(Y 1), and its diagonal counts the labels.
    row_sums = Y.T @ (Y @ np.ones(Y.shape[1], Y.dtype))
    label_counts = np.bincount(Y.indices, minlength=Y.shape[1]).astype(Y.dtype)
    observed_ratio = pairs_to_singles(row_sums.sum(), label_counts.sum())
    complete_ratio = pairs_to_singles(C.sum(), C.diagonal().sum())
    return float(np.clip(observed_ratio / complete_ratio, LEAST_VISIBLE, 1.0)) if complete_ratio > 0 else 1.0


def rescale_counts(Y: csr_matrix, C: csr_matrix, share: float) -> csr_matrix:
    """Rescale C as if it counted the rows of Y with complete labels: its diagonal sums to nnz(Y) / share."""
    size = C.diagonal().sum() or C.max()
    return (C * (Y.nnz / share / size)).astype(np.float32)


def cosines(C: csr_matrix) -> csr_matrix:
    """(L, L) csr float32, C_ij / √(C_ii C_jj): cosines of the columns of Y where C is YᵀY.

    Where C has no diagonal, the largest value of the row takes its place.
    """
    whole = _whole(C)
    scale = diags_array(np.divide(1, np.sqrt(whole), out=np.zeros(len(whole)), where=whole > 0))
    return csr_matrix(scale @ C @ scale, dtype=np.float32)


def conditional_share(C: csr_matrix) -> csr_matrix:
    """(L, L) csr float32, the shares C_ij / C_ii for i ≠ j: the KEPT largest of each row, of at least LEAST.

    Where C has no diagonal, the largest value of the row takes its place.
    """
    return _largest_shares(C, 0)


def own_conditional_share(Y: csr_matrix) -> csr_matrix:
    """As `conditional_share` of YᵀY, of which some rows are formed at a time.

    Y : (n, L) csr of ones
    """
    Yt = Y.T.tocsr()
    in_row = np.concatenate(([0], np.cumsum(np.diff(Y.indptr)[Yt.indices])))[Yt.indptr]  # of labels with j
    most = np.minimum(np.diff(in_row), Y.shape[1])
    shares = []
    for labels in bounded_blocks(most.tolist(), PAIRS):
        C = csr_matrix(Yt[labels] @ Y)
        C.sort_indices()
        shares.append(_largest_shares(C, labels.start))
    return csr_matrix(vstack(shares))


def _largest_shares(C: csr_matrix, first: int) -> csr_matrix:
    """The shares of some rows of co-occurrences, the first of which is that of label `first`."""
    whole = _whole(C, first)
    P = csr_matrix(diags_array(np.divide(1, whole, out=np.zeros_like(whole), where=whole > 0)) @ C)
    for row in range(P.shape[0]):
        own = slice(P.indptr[row], P.indptr[row + 1])
        shares = P.data[own]
        shares[P.indices[own] == first + row] = 0
        shares[np.argsort(-shares, kind="stable")[KEPT:]] = 0
        shares[shares < LEAST] = 0
    P.eliminate_zeros()
    return P.astype(np.float32)


def _whole(C: csr_matrix, first: int = 0) -> Array:
    """The diagonal of some rows of co-occurrences, or the largest value of a row where that is larger."""
    return np.maximum(C.diagonal(first), C.max(axis=1).toarray().ravel())


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
