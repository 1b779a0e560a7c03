"""The shifted positive PMI matrix of the rows' label overlaps, equation (4) of the paper.

    M = Y Yᵀ,   PMI_ij = log(M_ij |M| / (m_i m_j)),   SPPMI_ij = max(PMI_ij − log k, 0)

With smoothing α, m_i^α / Σ m^α takes the place of m_i / |M| on both sides, so that the matrix stays symmetric
(Levy, Goldberg and Dagan smooth one side).

It is zero where M is, so it lives on the pattern of M. Rows with the same labels have the same row in it, so
it is made of the distinct label sets only: with G the (n, m) matrix that says which set a row has and W = GᵀG
the counts,

    SPPMI = G S Gᵀ = (G W^−½) (W^½ S W^½) (G W^−½)ᵀ,

and the columns of G W^−½ are orthonormal: an SVD of W^½ S W^½, (m, m), is one of SPPMI, (n, n).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import LinearOperator

from ..parallel import blocks, map_blocks

Array = np.ndarray

BLOCK = 512  # rows of S made at a time
DENSE_FROM = 0.02  # share of filled cells from which a dense product beats a sparse one


class LabelSets(NamedTuple):
    """The distinct label sets of the rows.

    sets : (m, L) csr of ones;  group : (n,) the set of each row;  counts : (m,) rows of each set
    """

    sets: csr_matrix
    group: Array
    counts: Array


def distinct(Y: csr_matrix) -> LabelSets:
    """Find the rows of Y that are the same, told apart by two sums of random 64-bit numbers, one a label."""
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
    """What SPPMI is made from, block by block.

    sets : (m, L) csr of ones
    pattern : (m, m) csr of ones, the overlaps that count, or None for all
    logs : (m,) log of the share of each set, m_i / |M|;  log_total : log |M| + log k
    scale : (m,) the square root of the counts
    """

    sets: csr_matrix
    pattern: csr_matrix | None
    logs: Array
    log_total: float
    scale: Array


def prepare(
    label_sets: LabelSets, *, shift: float = 1.0, smoothing: float = 1.0, n_neighbors: int | None = None
) -> Overlaps:
    """The sums of M over all n rows, from the distinct sets and their counts."""
    sets, counts = label_sets.sets, label_sets.counts.astype(np.float64)
    pattern = None if n_neighbors is None else _nearest(sets, n_neighbors)
    M_times = sets @ (sets.T @ counts) if pattern is None else pattern.multiply(sets @ sets.T) @ counts
    sums = np.asarray(M_times).ravel()  # m_i = Σ_j ⟨y_i, y_j⟩
    logs = smoothing * np.log(np.maximum(sums, np.finfo(np.float64).tiny))
    logs -= np.log(counts @ np.exp(logs))
    return Overlaps(
        sets,
        pattern,
        logs.astype(np.float32),
        float(np.log(counts @ sums) + np.log(shift)),
        np.sqrt(counts).astype(np.float32),
    )


def rows_of(overlaps: Overlaps, rows: slice) -> csr_matrix:
    """A block of the rows of W^½ S W^½, (b, m) csr float32."""
    sets = overlaps.sets
    M = (sets[rows] @ sets.T).tocsr()
    if overlaps.pattern is not None:
        M = overlaps.pattern[rows].multiply(M).tocsr()
    row = np.repeat(np.arange(rows.start, rows.stop), np.diff(M.indptr))
    pmi = np.log(M.data, dtype=np.float32)
    pmi -= np.float32(overlaps.log_total)
    pmi -= overlaps.logs[row]
    pmi -= overlaps.logs[M.indices]
    np.maximum(pmi, 0, out=pmi)
    pmi *= overlaps.scale[row]
    pmi *= overlaps.scale[M.indices]
    M = csr_matrix((pmi, M.indices, M.indptr), shape=M.shape)
    M.eliminate_zeros()
    return M


def operator(overlaps: Overlaps, *, n_jobs: int | None, max_bytes: float = 1e9) -> LinearOperator:
    """W^½ S W^½ to multiply with: kept if it fits in max_bytes, made anew for each product if not."""
    m = overlaps.sets.shape[0]
    todo = blocks(m, BLOCK)

    def make(rows: slice) -> csr_matrix | Array:
        block = rows_of(overlaps, rows)
        is_dense = block.nnz > DENSE_FROM * block.shape[0] * m
        bytes_dense, bytes_sparse = 4 * block.shape[0] * m, 8 * block.nnz
        return block.toarray() if is_dense and bytes_dense < 1.5 * bytes_sparse else block

    kept: list[csr_matrix | Array] | None = []
    size = 0
    for block in map_blocks(make, todo, n_jobs=n_jobs, stage="label overlaps", total=m):
        size += block.nbytes if isinstance(block, np.ndarray) else 8 * block.nnz
        if size > max_bytes:
            kept = None
            break
        assert kept is not None
        kept.append(block)

    def multiply(Q: Array) -> Array:
        Q = np.ascontiguousarray(Q, np.float32).reshape(m, -1)

        def product(rows: slice) -> Array:
            block = make(rows) if kept is None else kept[rows.start // BLOCK]
            if isinstance(block, np.ndarray):
                return block @ Q
            dense = block.nnz > DENSE_FROM * block.shape[0] * m
            return (block.toarray() if dense else block) @ Q

        return np.concatenate(list(map_blocks(product, todo, n_jobs=n_jobs, stage="factorizing", total=m)))

    return LinearOperator((m, m), matvec=multiply, matmat=multiply, dtype=np.float32)


def _nearest(sets: csr_matrix, k: int) -> csr_matrix:
    """(m, m) ones where j is among the k label sets nearest to i by cosine, or i among those of j."""
    lengths = np.sqrt(np.asarray(sets.sum(axis=1), np.float64)).ravel()
    unit = csr_matrix(
        (sets.data / np.repeat(np.maximum(lengths, 1), np.diff(sets.indptr)), sets.indices, sets.indptr),
        shape=sets.shape,
    )
    pieces = []
    for rows in blocks(sets.shape[0], BLOCK):
        near = (unit[rows] @ unit.T).tocsr()
        for row in range(near.shape[0]):
            mine = slice(near.indptr[row], near.indptr[row + 1])
            order = np.lexsort((near.indices[mine], -near.data[mine]))[:k]
            pieces.append((np.full(len(order), rows.start + row), near.indices[mine][order]))
    i, j = (np.concatenate(side) for side in zip(*pieces))
    pattern = csr_matrix((np.ones(len(i), np.float32), (i, j)), shape=(sets.shape[0],) * 2)
    pattern = (pattern + pattern.T).tocsr()
    pattern.data[:] = 1
    return pattern
