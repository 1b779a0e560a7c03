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

from ..kernels import DEFAULT, Engine
from ..runtime.parallel import blocks, bounded_blocks, map_blocks

Array = np.ndarray

BLOCK = 512  # rows in a block of S,
CELLS = 1 << 26  # or fewer, where the block would have more cells
ENTRIES = 1 << 19  # overlaps that a thread computes at a time; those of a single row may be more
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


class Product(NamedTuple):
    """A sparse matrix, left @ right or left alone, of which blocks of rows are made when they are needed.

    The product of label sets with themselves has m² entries where all of them share a label, so it is never
    formed as a whole.

    left : (r, p) csr;  right : (p, c) csr, or None
    """

    left: csr_matrix
    right: csr_matrix | None = None

    def rows(self, rows: slice) -> csr_matrix:
        return self.left[rows] if self.right is None else csr_matrix(self.left[rows] @ self.right)

    def most_entries(self, rows: slice) -> Array:
        """(b,) int64, an upper bound of the stored values of each row of a block."""
        left = self.left[rows]
        if self.right is None:
            return np.diff(left.indptr).astype(np.int64)
        sizes = np.diff(self.right.indptr)[left.indices]
        ends = np.concatenate(([0], np.cumsum(sizes)))[left.indptr]
        return np.minimum(np.diff(ends), self.right.shape[1])


class Overlaps(NamedTuple):
    """What each block of SPPMI is computed from, for m label sets and the L labels or none after them.

    sets, postings : (m, L) and (L, m) csr of ones, the labels of each set and the sets of each label
    M : (m, m) the overlaps of label sets, all of them or those of the nearest sets
    C : (L, L) the label co-occurrences; None where labels are not embedded
    mu : the weights (μ₁, μ₂, μ₃) of C, M and Y
    logs : (m + L,) float32, log of a_i / |A|, the share of each row of A
    log_total : log |A| + log k
    scale : (m + L,) float32, the square root of the counts
    conditional : whether log(A_ij / a_j) − log k replaces the PMI
    """

    sets: csr_matrix
    postings: csr_matrix
    M: Product
    C: Product | None
    mu: tuple[float, float, float]
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
    with_labels: bool = False,
    cooccurrence: csr_matrix | None = None,
    mu: tuple[float, float, float] = (1.0, 1.0, 1.0),
    n_jobs: int | None = None,
    engine: Engine = DEFAULT,
) -> Overlaps:
    """Compute the row sums of M, or of A, over all n rows, from the distinct label sets and their counts.

    n_neighbors : keep only the overlaps with this many nearest label sets; None keeps all
    conditional : use the log conditional probability, as noise-contrastive estimation does, not the PMI
    with_labels : whether labels are embedded too
    cooccurrence : (L, L) csr, C; None is YᵀY over all n rows
    mu : (μ₁, μ₂, μ₃), the weights of C, M and Y
    """
    sets, counts = label_sets.sets, label_sets.counts.astype(np.float64)
    postings = sets.T.tocsr()
    if n_neighbors is None:
        # The sums need no (m, m) product: M 1 = Y (Yᵀ 1).
        M, sums = Product(sets, postings), sets @ (postings @ counts)
    else:
        M = Product(_nearest(sets, n_neighbors, n_jobs, engine))
        sums = M.left @ counts
    C = None
    if with_labels and cooccurrence is None:
        weights = label_sets.counts.astype(np.float32)[postings.indices]
        C = Product(csr_matrix((weights, postings.indices, postings.indptr), shape=postings.shape), sets)
    elif with_labels:
        C = Product(cooccurrence)
    sums = mu[1] * np.asarray(sums).ravel()  # a_i = Σ_j μ₂⟨y_i, y_j⟩ + …
    none = np.zeros(0, np.float32)
    overlaps = Overlaps(sets, postings, M, C, mu, none, 0.0, none, conditional)
    if with_labels:
        sums += mu[2] * np.asarray(sets.sum(axis=1)).ravel()
        counts = np.concatenate([counts, np.ones(sets.shape[1])])
        labels = slice(len(sums), len(counts))
        of_labels = [_joint_rows(overlaps, piece) @ counts for piece in _pieces(overlaps, labels)]
        sums = np.concatenate([sums, *of_labels])
    # log(a_i^α / Σ a^α), for rows of A repeated by their counts.
    logs = smoothing * np.log(np.maximum(sums, np.finfo(np.float64).tiny))
    logs -= np.log(counts @ np.exp(logs))
    return overlaps._replace(
        logs=logs.astype(np.float32),
        log_total=float(np.log(counts @ sums) + np.log(shift)),
        scale=np.sqrt(counts).astype(np.float32),
    )


def _pieces(overlaps: Overlaps, rows: slice) -> list[slice]:
    """Cut rows of A, either of label sets or of labels, into pieces that take bounded memory."""
    m = overlaps.sets.shape[0]
    is_labels = rows.start >= m
    own = slice(rows.start - m, rows.stop - m) if is_labels else rows
    product, pairs = (overlaps.C, overlaps.postings) if is_labels else (overlaps.M, overlaps.sets)
    assert product is not None
    entries = product.most_entries(own) + np.diff(pairs.indptr)[own]
    return _shifted(bounded_blocks(entries.tolist(), ENTRIES), rows.start)


def _shifted(rows: list[slice], by: int) -> list[slice]:
    return [slice(block.start + by, block.stop + by) for block in rows]


def _joint_rows(overlaps: Overlaps, rows: slice) -> csr_matrix:
    """A block of rows of A, either of label sets or of labels."""
    m = overlaps.sets.shape[0]
    mu_labels, mu_rows, mu_row_label = overlaps.mu
    if rows.start >= m:
        assert overlaps.C is not None
        own = slice(rows.start - m, rows.stop - m)
        C = overlaps.C.rows(own)
        C.sort_indices()
        left, right = mu_row_label * overlaps.postings[own], mu_labels * C
    else:
        left = csr_matrix((rows.stop - rows.start, m), dtype=np.float32)
        if mu_rows:
            left = overlaps.M.rows(rows)
            left.data *= np.float32(mu_rows)
        if overlaps.C is None:
            return left
        right = mu_row_label * overlaps.sets[rows]
    A = hstack([left, right], format="csr", dtype=np.float32)
    A.eliminate_zeros()
    return A


def rows_of(overlaps: Overlaps, rows: slice, *, transposed: bool = False) -> csr_matrix:
    """A block of rows of W^½ S W^½, csr float32, or of its transpose, which differs if conditional."""
    A = _joint_rows(overlaps, rows)
    in_row = np.diff(A.indptr)
    values = np.log(A.data, dtype=np.float32)
    values -= np.float32(overlaps.log_total)
    if not overlaps.conditional or transposed:
        values -= np.repeat(overlaps.logs[rows], in_row)
    if not overlaps.conditional or not transposed:
        values -= overlaps.logs[A.indices]
    np.maximum(values, 0, out=values)
    values *= np.repeat(overlaps.scale[rows], in_row)
    values *= overlaps.scale[A.indices]
    A = csr_matrix((values, A.indices, A.indptr), shape=A.shape)
    A.eliminate_zeros()
    return A


def block_rows(size: int) -> int:
    """Rows in a block of a matrix of so many columns."""
    return max(1, min(BLOCK, CELLS // max(size, 1)))


def _block(overlaps: Overlaps, rows: slice, transposed: bool, dense_above: float) -> csr_matrix | Array:
    """`rows_of`, computed in pieces; dense if more than so many values are stored."""
    found: list[tuple[int, csr_matrix]] = []
    dense: Array | None = None
    shape = rows.stop - rows.start, len(overlaps.scale)
    n_stored = 0
    for piece in _pieces(overlaps, rows):
        part = rows_of(overlaps, piece, transposed=transposed)
        found.append((piece.start - rows.start, part))
        n_stored += part.nnz
        if dense is None and n_stored > dense_above:
            dense = np.empty(shape, np.float32)
        while dense is not None and found:
            start, part = found.pop()
            part.toarray(out=dense[start : start + part.shape[0]])
    if dense is not None:
        return dense
    data, indices, counts = (
        np.concatenate(arrays)
        for arrays in zip(*((part.data, part.indices, np.diff(part.indptr)) for _, part in found))
    )
    return csr_matrix((data, indices, np.concatenate(([0], np.cumsum(counts)))), shape=shape)


def operator(
    overlaps: Overlaps, *, n_jobs: int | None, max_bytes: float = 1e9, engine: Engine = DEFAULT
) -> LinearOperator:
    """W^½ S W^½ as an operator, cached if it fits in max_bytes, otherwise recomputed for each product."""
    m = overlaps.sets.shape[0]
    size = len(overlaps.scale)
    step = block_rows(size)
    todo = [*blocks(m, step), *_shifted(blocks(size - m, step), m)]

    def multiplier(transposed: bool, budget: float) -> tuple[Callable[[Array], Array], float]:
        """The product with the matrix or its transpose, and the bytes of its cache."""
        cache: dict[int, csr_matrix | Array] = {}
        used = 0.0

        def make(rows: slice) -> csr_matrix | Array:
            cells = (rows.stop - rows.start) * size
            # A dense block to be cached must not be much larger than a sparse one.
            return _block(overlaps, rows, transposed, cells / 3)

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
                dense_above = DENSE_FROM * (rows.stop - rows.start) * size
                block = cache[rows.start] if cache else _block(overlaps, rows, transposed, dense_above)
                if not isinstance(block, np.ndarray) and block.nnz > dense_above:
                    block = block.toarray()
                found = np.empty((rows.stop - rows.start, Q.shape[1]), np.float32)
                if isinstance(block, np.ndarray):
                    engine.multiply_dense(block, Q, found)
                else:
                    engine.multiply_csr(block.indptr, block.indices, block.data, Q, found)
                return found

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


def _nearest(sets: csr_matrix, k: int, n_jobs: int | None, engine: Engine) -> csr_matrix:
    """(m, m) csr, |i ∩ j| where j is one of the k nearest label sets of i by cosine, or the reverse."""
    m = sets.shape[0]
    lengths = np.sqrt(np.asarray(sets.sum(axis=1), np.float64)).ravel()
    unit = csr_matrix(
        (sets.data / np.repeat(np.maximum(lengths, 1), np.diff(sets.indptr)), sets.indices, sets.indptr),
        shape=sets.shape,
    )
    cosines = Product(unit, unit.T.tocsr())

    def search(rows: slice) -> tuple[Array, Array]:
        block, shape = cosines.rows(rows), (rows.stop - rows.start, min(k, m))
        ids, best = np.full(shape, -1, np.int64), np.zeros(shape)
        engine.rank_rows(block.indptr, block.indices, block.data, ids, best)
        return ids, best

    todo = bounded_blocks(cosines.most_entries(slice(0, m)).tolist(), ENTRIES)
    found = map_blocks(search, todo, n_jobs=n_jobs, stage="nearest label sets", total=m)
    ids, best = map(np.concatenate, zip(*found))
    i, rank = np.nonzero(ids >= 0)
    j = ids[i, rank]
    overlap = np.rint(best[i, rank] * lengths[i] * lengths[j]).astype(np.float32)
    nearest = csr_matrix((overlap, (i, j)), shape=(m, m))
    nearest = csr_matrix(nearest.maximum(nearest.T))
    # Columns descend, as they always have: their order decides how the sums of a product are rounded.
    backwards = nearest.data[::-1], nearest.indices[::-1], nearest.nnz - nearest.indptr[::-1]
    return csr_matrix(backwards, shape=(m, m))[::-1]
