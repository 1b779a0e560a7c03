"""Label votes of neighbours on a graphics card."""

from __future__ import annotations

import numpy as np

from ..jit.vote import vote as vote_on_cpu
from .device import current, power_of_two

Array = np.ndarray

MOST_NEIGHBORS = 2**16


def vote(
    neighbors: Array,
    weights: Array,
    y_indptr: Array,
    y_indices: Array,
    n_labels: int,
    ids: Array,
    scores: Array,
) -> None:
    """See the twin in reference/vote.py; ids is given as −1 and scores as 0.

    Queries with very many votes are counted on the CPU.
    """
    n, m = neighbors.shape
    if not n or not m or m >= MOST_NEIGHBORS:
        vote_on_cpu(neighbors, weights, y_indptr, y_indices, n_labels, ids, scores)
        return
    with current().working() as device:
        xp, indptr = device.xp, device.resident(y_indptr, np.int64)
        voters = device.copy(neighbors, np.int64), device.copy(weights, np.float32)
        rows = xp.maximum(voters[0], 0)
        votes = (indptr[rows + 1] - indptr[rows]) * ((voters[0] >= 0) & (voters[1] > 0))
        most = int(votes.sum(axis=1).max())
        capacity = power_of_two(max(most, 2))
        shared = 16 * capacity + 8 * m + 8
        if shared <= device.most_shared:
            labels = device.resident(y_indices, np.uint32)
            out = xp.full(ids.shape, -1, np.int64), xp.zeros(scores.shape, np.float32)
            sizes = np.int32(ids.shape[1]), np.int32(capacity)
            given = *voters, np.int32(m), indptr, labels, *sizes, *out
            device.launch("vote", "vote", n, *given, shared=shared)
            for array, found in zip((ids, scores), out):
                device.to_host(found, array)
            return
    vote_on_cpu(neighbors, weights, y_indptr, y_indices, n_labels, ids, scores)
