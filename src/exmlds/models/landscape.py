"""Where labels lie: which are similar, and which training rows are typical of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.decomposition import TruncatedSVD

from .. import compact
from ..matrices import unit_rows

if TYPE_CHECKING:
    from .neighbors import NeighborVoting

Array = np.ndarray

DIMENSIONS = 100  # of labels that are placed by what they occur with


def row_places(method: NeighborVoting) -> Array | None:
    """(n, r) where the rows that vote lie, of length 1; None where parts or a graph do not tell."""
    learner = method.learners_[0]
    if len(learner.parts) > 1 or len(learner.parts[0].found.segments) > 1:
        return None
    rows = learner.parts[0].found.segments[0].rows
    if not isinstance(rows, compact.Packed):
        return None
    places = np.empty(rows.values.shape, np.float32)
    places[learner.parts[0].rows] = compact.unpack(rows)
    return unit_rows(places)


def label_places(method: NeighborVoting) -> Array:
    """(L, r) of length 1: where a method embeds labels, or the middle of the rows that have them.

    Where rows lie in several parts, labels are placed by which others they occur with.
    """
    if method.scorer_ is not None:
        return unit_rows(np.asarray(method.scorer_.places))
    Y = method.labels_
    places = row_places(method)
    if places is not None:
        return unit_rows(np.asarray(Y.T @ places))
    together = csr_matrix(unit_rows(csr_matrix(Y.T @ Y, dtype=np.float32)))
    rank = max(1, min(DIMENSIONS, together.shape[0] - 1))
    return unit_rows(TruncatedSVD(rank, random_state=0).fit_transform(together))


def similar(method: NeighborVoting, label: int, k: int) -> list[tuple[int, float]]:
    """The k labels nearest to one, by cosine."""
    places = label_places(method)
    cosines = places @ places[label]
    cosines[label] = -np.inf
    best = np.argsort(-cosines, kind="stable")[:k]
    return [(int(j), float(cosines[j])) for j in best if cosines[j] > 0]


def typical(method: NeighborVoting, label: int, n: int) -> list[tuple[int, float]]:
    """The n rows with the label that lie nearest to their middle, among those that vote, and their cosines.

    Where it is not known where rows lie: those with the fewest labels beside it, and 1 over their number.
    """
    Y = method.labels_
    column = Y[:, [label]].tocoo()
    mine = column.row[column.data >= 1]
    places = row_places(method)
    if places is None:
        near = 1 / np.maximum(np.diff(Y.indptr)[mine], 1)
    else:
        near = places[mine] @ unit_rows(places[mine].sum(axis=0, keepdims=True))[0]
    best = np.argsort(-near, kind="stable")[:n]
    return [(int(mine[i]), float(near[i])) for i in best]
