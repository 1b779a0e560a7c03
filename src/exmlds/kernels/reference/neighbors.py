"""The nearest label sets, and from neighbouring groups to neighbouring rows."""

from __future__ import annotations

from collections import Counter

import numpy as np

Array = np.ndarray


def expand_neighbors(
    near: Array, group: Array, starts: Array, members: Array, draws: Array, out: Array
) -> None:
    """The first k rows, other than itself, of the groups near to each row's group.

    near : (g, m) int64 groups near to each, nearest first, −1 pads
    group : (n,) int64 the group of each row
    starts, members : (g + 1,), (n,) int64 the rows of each group
    draws : (n,) float64 in [0, 1): where in a group a row begins, so that not all take the same ones
    out : (n, k) int64, −1 pads
    """
    out[:] = -1
    for row, own in enumerate(group):
        found: list[int] = []
        for g in near[own]:
            if g < 0:
                break
            rows = members[starts[g] : starts[g + 1]]
            found.extend(member for member in np.roll(rows, -int(draws[row] * len(rows))) if member != row)
        found = found[: out.shape[1]]
        out[row, : len(found)] = found


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
    """For the sets i from start to stop the k sets j of most |i ∩ j| w_j among those that share a label.

    indptr, labels : the labels of each set, in the order in which they are asked for sets
    p_indptr, p_sets : the sets of each label
    weights : (m,) float32, w
    draws : (m,) float64 in [0, 1): where the stretch begins of a list that is longer than what is left
    budget : entries of the lists that are read for a set; labels beyond it do not count
    best_ids, best_scores : (m, k) int64 and float32, best first, of equals the smaller id; −1 and −inf pad
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
        for place, (negative, j) in enumerate(scored[: best_ids.shape[1]]):
            best_ids[i, place], best_scores[i, place] = j, -negative
