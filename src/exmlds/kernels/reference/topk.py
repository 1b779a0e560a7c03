"""Top-k selection, best first; ties go to the smaller id."""

from __future__ import annotations

from collections import Counter

import numpy as np

Array = np.ndarray


def _best(ids: Array, scores: Array, k: int) -> tuple[Array, Array]:
    order = np.lexsort((ids, -scores))[:k]
    return ids[order], scores[order]


def sparse_topk(
    q_indptr: Array,
    q_indices: Array,
    q_data: Array,
    p_indptr: Array,
    p_rows: Array,
    p_data: Array,
    bias: Array,
    offset: int,
    best_ids: Array,
    best_scores: Array,
) -> None:
    """Update the best rows of each sparse query with the rows of one segment of an inverted index.

    q_indptr, q_indices, q_data : the queries as csr float32
    p_indptr, p_rows, p_data : the posting lists: for each feature its rows and their values, float32
    bias : (rows,) float32, added to the inner product; −inf excludes a row
    offset : the id of the segment's first row, larger than all ids in best_ids
    best_ids, best_scores : (queries, k) int64 and float32, best first; −1 and −inf where empty
    """
    n_features = len(p_indptr) - 1
    rows = np.zeros((len(bias), n_features), np.float32)  # (rows, d)
    for feature in range(n_features):
        for p in range(p_indptr[feature], p_indptr[feature + 1]):
            rows[p_rows[p], feature] += p_data[p]
    for q in range(len(q_indptr) - 1):
        stored = slice(q_indptr[q], q_indptr[q + 1])
        scores = bias + rows[:, q_indices[stored]] @ q_data[stored]
        merge_topk(scores[None], offset, best_ids[q : q + 1], best_scores[q : q + 1])


def merge_topk(scores: Array, offset: int, best_ids: Array, best_scores: Array) -> None:
    """Update the best rows of each query with a block of scores.

    scores : (queries, rows) float32
    offset, best_ids, best_scores : as in `sparse_topk`
    """
    k = best_ids.shape[1]
    rows = offset + np.arange(scores.shape[1])
    for q in range(scores.shape[0]):
        present = scores[q] > -np.inf
        ids = np.concatenate((best_ids[q], rows[present]))
        both = np.concatenate((best_scores[q], scores[q, present]))
        best_ids[q], best_scores[q] = _best(ids, both, k)


def search_rows(
    Q: Array, rows: Array, scale: Array, bias: Array, is_euclidean: bool, positions: Array, scores: Array
) -> None:
    """Write the rows with the largest ⟨q, x⟩, or 2⟨q, x⟩, plus bias; scores may be rounded, see `rescore`.

    Q : (queries, r) float32
    rows, scale : (n, r) float32, float16 or int8, and the factors of int8 rows, (n,), or (0,)
    bias : (n,) float32; −inf excludes a row;  is_euclidean : whether inner products count twice
    positions, scores : (queries, k) int64 and float32, given as −1 and −inf, and returned best first
    """
    X = rows.astype(np.float32)
    if len(scale):
        X *= scale[:, None]
    factor = np.float32(2 if is_euclidean else 1)
    for q in range(len(Q)):
        exact = (X * (factor * Q[q])).sum(axis=1) + bias
        merge_topk(exact[None], 0, positions[q : q + 1], scores[q : q + 1])


def choose_cells(nearness: Array, margin: np.float32, fewest: int, cells: Array) -> int:
    """Write the cells that each query probes, the four nearest before the others; returns the largest number.

    nearness : (queries, all cells) float32
    margin : difference from the nearest cell within which cells are probed
    fewest : number of cells that are probed at least
    cells : (queries, most) int64, given as −1; with more than `most` cells, the nearest are written
    """
    largest = 0
    for q in range(len(nearness)):
        is_near = nearness[q] >= nearness[q].max() - margin
        n = min(max(int(is_near.sum()), fewest), cells.shape[1])
        cells[q, :n] = _best(np.arange(nearness.shape[1]), nearness[q], n)[0]
        largest = max(largest, n)
    return largest


def search_cells(
    Q: Array, probes: Array, starts: Array, rows: Array, bias: Array, best: Array, best_scores: Array
) -> None:
    """Write the best rows of each query among the rows of the cells that it probes.

    Q : (queries, r) float32
    probes : (queries, p) int64, different cells of each query, −1 pads
    starts : (cells + 1,) int64, the rows of a cell are rows[starts[cell] : starts[cell + 1]]
    rows, bias : (n, r) float32, and (n,) float32, added to the inner product; −inf excludes a row
    best, best_scores : (queries, k) int64 and float32; given as −1 and −inf, and returned best first
    """
    k = best.shape[1]
    for q in range(len(Q)):
        probed = probes[q, probes[q] >= 0]
        near = np.concatenate([np.arange(starts[cell], starts[cell + 1]) for cell in probed])
        # Without BLAS, some versions of which set the flag of an invalid operation for finite numbers.
        scores = np.einsum("ij,j->i", rows[near], Q[q]) + bias[near]
        near, scores = _best(near[scores > -np.inf], scores[scores > -np.inf], k)
        best[q, : len(near)], best_scores[q, : len(near)] = near, scores


def rescore(
    Q: Array, rows: Array, bias: Array, is_euclidean: bool, positions: Array, ids: Array, scores: Array
) -> None:
    """Compute the scores of found rows again and sort them: a score then depends on query and row alone.

    The result of a matrix product depends on its shape in the last bits, and so on the other queries; and the
    distance of near rows would be the difference of two large numbers.

    Q : (queries, r) float32;  rows, bias : (n, r) and (n,) float32; a bias of −inf excludes a row
    is_euclidean : whether a score is −‖q − x‖², or ⟨q, x⟩ with the bias
    positions : (queries, k) int64, where the rows are, −1 pads at the end
    ids, scores : (queries, k) int64 and float32 of these rows, in place
    """
    for q in range(len(Q)):
        present = positions[q] >= 0
        near = positions[q, present]
        if is_euclidean:
            exact = -np.square(rows[near] - Q[q]).sum(axis=1)
            exact[bias[near] == -np.inf] = -np.inf
        else:
            exact = (rows[near] * Q[q]).sum(axis=1) + bias[near]
        ids[q, present], scores[q, present] = _best(ids[q, present], exact, len(near))


def rank_rows(indptr: Array, indices: Array, data: Array, ids: Array, scores: Array) -> None:
    """Write the k best columns of each csr row.

    indptr, indices, data : csr; data has the dtype of scores
    ids, scores : (rows, k) int64 and float; entries beyond the length of a row are not written
    """
    k = ids.shape[1]
    for row in range(len(indptr) - 1):
        stored = slice(indptr[row], indptr[row + 1])
        best = _best(indices[stored], data[stored], k)
        ids[row, : len(best[0])], scores[row, : len(best[0])] = best


def nearest_sets(
    indptr: Array,
    labels: Array,
    p_indptr: Array,
    p_sets: Array,
    weights: Array,
    draws: Array,
    budget: int,
    start: int,
    stop: int,
    best_ids: Array,
    best_scores: Array,
) -> None:
    """For each label set i from start to stop, write the k sets j with the largest |i ∩ j| w_j > 0.

    indptr, labels : the labels of each set, in the order in which their posting lists are read
    p_indptr, p_sets : the posting lists: the sets that have each label
    weights : (m,) float32, w
    draws : (m,) float64 in [0, 1), where reading starts in a list that is longer than the budget left
    budget : most entries of posting lists that are read for a set; the remaining labels are ignored
    best_ids, best_scores : (m, k) int64 and float32, best first, ties to the smaller id; −1 and −inf pad
    """
    for i in range(start, stop):
        common: Counter[int] = Counter()
        left = budget
        for label in labels[indptr[i] : indptr[i + 1]]:
            sharing = p_sets[p_indptr[label] : p_indptr[label + 1]].tolist()
            if len(sharing) > left:
                first = int(draws[i] * (len(sharing) - left + 1))
                sharing = sharing[first : first + left]
            common.update(sharing)
            left -= len(sharing)
        scored = sorted((-np.float32(count) * weights[j], j) for j, count in common.items())
        for rank, (negative, j) in enumerate(scored[: best_ids.shape[1]]):
            best_ids[i, rank], best_scores[i, rank] = j, -negative
