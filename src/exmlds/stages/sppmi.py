"""The shifted positive PMI (SPPMI) matrix of the label overlaps of rows, equation (4) of the paper.

    M = Y Yᵀ,   PMI_ij = log(M_ij |M| / (m_i m_j)),   SPPMI_ij = max(PMI_ij − log k, 0)

With smoothing α, m_i^α / Σ m^α replaces m_i / |M| on both sides, so that the matrix stays symmetric (Levy,
Goldberg and Dagan smooth one side).

SPPMI is zero where M is, so it has the sparsity of M. Rows with equal labels have equal rows in it, so only
the rows of distinct label sets are computed. With the (n, m) matrix G that assigns rows to their sets and the
counts W = GᵀG,

    SPPMI = G S Gᵀ = (G W^−½) (W^½ S W^½) (G W^−½)ᵀ,

and the columns of G W^−½ are orthonormal, so an SVD of W^½ S W^½, (m, m), gives one of SPPMI, (n, n).

Algorithm 3 embeds labels together with the rows. The matrix is then the SPPMI of

    A = [[μ₂ M, μ₃ Y], [μ₃ Yᵀ, μ₁ C]]

with the label co-occurrences C. The labels follow the label sets, each with the count 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, hstack
from scipy.sparse.linalg import LinearOperator

from ..runtime.parallel import blocks, map_blocks

Array = np.ndarray

BLOCK = 512  # rows in a block of S
DENSE_FROM = 0.02  # share of stored values above which a dense product is faster than a sparse one


class LabelSets(NamedTuple):
    """The distinct label sets of the rows.

    sets : (m, L) csr of ones
    group : (n,) int64, the set of each row
    counts : (m,) int64, the number of rows of each set
    """

    sets: csr_matrix
    group: Array
    counts: Array


def distinct(Y: csr_matrix) -> LabelSets:
    """Group equal rows of Y, compared by two hashes: sums of random 64-bit keys of their labels."""
    keys = np.random.default_rng(0).integers(2**63, size=(2, Y.shape[1]), dtype=np.uint64)
    sums = np.zeros((2, Y.shape[0]), np.uint64)
    filled = np.flatnonzero(np.diff(Y.indptr))
    for total, key in zip(sums, keys):
        total[filled] = np.add.reduceat(key[Y.indices], Y.indptr[filled]) if filled.size else 0
    order = np.lexsort(sums)
    new = np.ones(len(order), bool)
    new[1:] = (sums[:, order[1:]] != sums[:, order[:-1]]).any(axis=0)
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(new) - 1
    return LabelSets(Y[order[new]], group, np.bincount(group))


class Overlaps(NamedTuple):
    """What each block of SPPMI is computed from, for m label sets and the L labels or none after them.

    sets : (m, L) csr of ones
    pattern : (m, m) csr of ones, the overlaps that are kept; None keeps all
    mu : the weights (μ₂, μ₃) of M and Y
    below : (L, m + L) csr, the lower block row [μ₃ Yᵀ, μ₁ C] of A; None where labels are not embedded
    logs : (m + L,) float32, log of a_i / |A|, the share of each row of A
    log_total : log |A| + log k
    scale : (m + L,) float32, the square root of the counts
    conditional : whether log(A_ij / a_j) − log k replaces the PMI
    """

    sets: csr_matrix
    pattern: csr_matrix | None
    mu: tuple[float, float]
    below: csr_matrix | None
    logs: Array
    log_total: float
    scale: Array
    conditional: bool


def prepare(
    label_sets: LabelSets,
    *,
    shift: float = 1.0,
    smoothing: float = 1.0,
    n_neighbors: int | None = None,
    conditional: bool = False,
    cooccurrence: csr_matrix | None = None,
    mu: tuple[float, float, float] = (1.0, 1.0, 1.0),
) -> Overlaps:
    """Compute the row sums of M, or of A, over all n rows, from the distinct label sets and their counts.

    n_neighbors : keep only the overlaps with this many nearest label sets; None keeps all
    conditional : use the log conditional probability, as noise-contrastive estimation does, not the PMI
    cooccurrence : (L, L) csr, C; None embeds no labels
    mu : (μ₁, μ₂, μ₃), the weights of C, M and Y
    """
    sets, counts = label_sets.sets, label_sets.counts.astype(np.float64)
    mu_labels, mu_rows, mu_row_label = mu
    pattern = None if n_neighbors is None else _nearest(sets, n_neighbors)
    # Without a pattern the sums need no (m, m) product: M 1 = Y (Yᵀ 1).
    M_times = sets @ (sets.T @ counts) if pattern is None else pattern.multiply(sets @ sets.T) @ counts
    sums = mu_rows * np.asarray(M_times).ravel()  # a_i = Σ_j μ₂⟨y_i, y_j⟩ + …
    below = None
    if cooccurrence is not None:
        below = hstack([mu_row_label * sets.T, mu_labels * cooccurrence], format="csr", dtype=np.float32)
        below.eliminate_zeros()
        sums += mu_row_label * np.asarray(sets.sum(axis=1)).ravel()
        counts = np.concatenate([counts, np.ones(sets.shape[1])])
        sums = np.concatenate([sums, below @ counts])
    # log(a_i^α / Σ a^α), for rows of A repeated by their counts.
    logs = smoothing * np.log(np.maximum(sums, np.finfo(np.float64).tiny))
    logs -= np.log(counts @ np.exp(logs))
    return Overlaps(
        sets,
        pattern,
        (mu_rows, mu_row_label),
        below,
        logs.astype(np.float32),
        float(np.log(counts @ sums) + np.log(shift)),
        np.sqrt(counts).astype(np.float32),
        conditional,
    )


def _joint_rows(overlaps: Overlaps, rows: slice) -> csr_matrix:
    """A block of rows of A, either of label sets or of labels."""
    m = overlaps.sets.shape[0]
    if overlaps.below is not None and rows.start >= m:
        return overlaps.below[rows.start - m : rows.stop - m]
    mu_rows, mu_row_label = overlaps.mu
    if mu_rows:
        M = (overlaps.sets[rows] @ overlaps.sets.T).tocsr()
        M = M if overlaps.pattern is None else overlaps.pattern[rows].multiply(M).tocsr()
        M.data *= np.float32(mu_rows)
    else:
        M = csr_matrix((rows.stop - rows.start, m), dtype=np.float32)
    if overlaps.below is None:
        return M
    A = hstack([M, mu_row_label * overlaps.sets[rows]], format="csr", dtype=np.float32)
    A.eliminate_zeros()
    return A


def rows_of(overlaps: Overlaps, rows: slice, *, transposed: bool = False) -> csr_matrix:
    """A block of rows of W^½ S W^½, csr float32, or of its transpose, which differs if conditional."""
    A = _joint_rows(overlaps, rows)
    row = np.repeat(np.arange(rows.start, rows.stop), np.diff(A.indptr))
    values = np.log(A.data, dtype=np.float32)
    values -= np.float32(overlaps.log_total)
    if not overlaps.conditional or transposed:
        values -= overlaps.logs[row]
    if not overlaps.conditional or not transposed:
        values -= overlaps.logs[A.indices]
    np.maximum(values, 0, out=values)
    values *= overlaps.scale[row]
    values *= overlaps.scale[A.indices]
    A = csr_matrix((values, A.indices, A.indptr), shape=A.shape)
    A.eliminate_zeros()
    return A


def operator(overlaps: Overlaps, *, n_jobs: int | None, max_bytes: float = 1e9) -> LinearOperator:
    """W^½ S W^½ as an operator, cached if it fits in max_bytes, otherwise recomputed for each product."""
    m = overlaps.sets.shape[0]
    size = len(overlaps.scale)
    todo = [*blocks(m, BLOCK), *(slice(m + b.start, m + b.stop) for b in blocks(size - m, BLOCK))]

    def multiplier(transposed: bool, budget: float) -> tuple[Callable[[Array], Array], float]:
        """The product with the matrix or its transpose, and the bytes of its cache."""
        cache: dict[int, csr_matrix | Array] = {}
        used = 0.0

        def make(rows: slice) -> csr_matrix | Array:
            block = rows_of(overlaps, rows, transposed=transposed)
            is_dense = block.nnz > DENSE_FROM * block.shape[0] * size
            bytes_dense, bytes_sparse = 4 * block.shape[0] * size, 8 * block.nnz
            return block.toarray() if is_dense and bytes_dense < 1.5 * bytes_sparse else block

        for rows, block in zip(
            todo, map_blocks(make, todo, n_jobs=n_jobs, stage="label overlaps", total=size)
        ):
            used += block.nbytes if isinstance(block, np.ndarray) else 8 * block.nnz
            # A cache of some of the blocks would save little, so it is all or nothing.
            if used > budget:
                cache.clear()
                break
            cache[rows.start] = block

        def multiply(Q: Array) -> Array:
            Q = np.ascontiguousarray(Q, np.float32).reshape(size, -1)

            def product(rows: slice) -> Array:
                block = cache[rows.start] if cache else make(rows)
                if isinstance(block, np.ndarray):
                    return block @ Q
                dense = block.nnz > DENSE_FROM * block.shape[0] * size
                return (block.toarray() if dense else block) @ Q

            return np.concatenate(
                list(map_blocks(product, todo, n_jobs=n_jobs, stage="factorizing", total=size))
            )

        return multiply, used if cache else 0.0

    multiply, used = multiplier(False, max_bytes)
    transposed = multiplier(True, max_bytes - used)[0] if overlaps.conditional else multiply
    return LinearOperator(
        (size, size),
        matvec=multiply,
        rmatvec=transposed,
        matmat=multiply,
        rmatmat=transposed,
        dtype=np.float32,
    )


def _nearest(sets: csr_matrix, k: int) -> csr_matrix:
    """(m, m) csr of ones where j is one of the k nearest label sets of i by cosine, or the reverse."""
    lengths = np.sqrt(np.asarray(sets.sum(axis=1), np.float64)).ravel()
    unit = csr_matrix(
        (sets.data / np.repeat(np.maximum(lengths, 1), np.diff(sets.indptr)), sets.indices, sets.indptr),
        shape=sets.shape,
    )
    pieces = []
    for rows in blocks(sets.shape[0], BLOCK):
        cosines = (unit[rows] @ unit.T).tocsr()
        for row in range(cosines.shape[0]):
            stored = slice(cosines.indptr[row], cosines.indptr[row + 1])
            order = np.lexsort((cosines.indices[stored], -cosines.data[stored]))[:k]
            pieces.append((np.full(len(order), rows.start + row), cosines.indices[stored][order]))
    i, j = (np.concatenate(side) for side in zip(*pieces))
    pattern = csr_matrix((np.ones(len(i), np.float32), (i, j)), shape=(sets.shape[0],) * 2)
    pattern = (pattern + pattern.T).tocsr()
    pattern.data[:] = 1
    return pattern
