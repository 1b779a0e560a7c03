"""Where labels lie: which are similar, and which training rows are typical of them."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.decomposition import TruncatedSVD
from sklearn.utils.validation import check_is_fitted

from ..base import XMCEstimator
from ..stages import quantize
from ..validation import params
from ..validation.arrays import unit_rows

if TYPE_CHECKING:
    from .base import NeighborVoting

Array = np.ndarray

DIMENSIONS = 100  # of labels that are placed by what they occur with


class LabelSpaceMixin(XMCEstimator):
    """An estimator that knows where labels lie."""

    @abstractmethod
    def _voting_model(self) -> tuple[NeighborVoting, Array]:
        """The method that tells, and what its rows are called."""

    def similar_labels(self, label: Any, k: int = 10) -> list[tuple[Any, float]]:
        """The k labels that lie nearest to a label, by cosine, and their cosines."""
        check_is_fitted(self)
        params.check_count("k", k)
        column = self._known_columns([label])[0]
        return [(self._label(other), cosine) for other, cosine in similar(self._voting_model()[0], column, k)]

    def typical_rows(self, label: Any, n: int = 5) -> list[tuple[int, float]]:
        """The n training rows with the label that lie nearest to their middle, and their cosines with it."""
        check_is_fitted(self)
        params.check_count("n", n)
        method, numbers = self._voting_model()
        found = typical(method, self._known_columns([label])[0], n)
        return [(int(numbers[row]), cosine) for row, cosine in found]

    def label_embeddings(self) -> Array:
        """(L, r) where the labels lie, of length 1: near each other where they are had by similar rows."""
        check_is_fitted(self)
        return label_embeddings(self._voting_model()[0])


def row_embeddings(method: NeighborVoting) -> Array | None:
    """(n, r) where the rows that vote lie, of length 1; None where parts or a graph do not tell."""
    learner = method.learners_[0]
    if len(learner.parts) > 1 or len(learner.parts[0].found.segments) > 1:
        return None
    rows = learner.parts[0].found.segments[0].rows
    if not isinstance(rows, quantize.Packed):
        return None
    places = np.empty(rows.values.shape, np.float32)
    places[learner.parts[0].rows] = quantize.unpack(rows)
    return unit_rows(places)


def label_embeddings(method: NeighborVoting) -> Array:
    """(L, r) of length 1: where a method embeds labels, or the middle of the rows that have them.

    Where rows lie in several parts, labels are placed by which others they occur with.
    """
    if method.scorer_ is not None:
        return unit_rows(np.asarray(method.scorer_.embeddings))
    Y = method.labels_
    places = row_embeddings(method)
    if places is not None:
        return unit_rows(np.asarray(Y.T @ places))
    together = csr_matrix(unit_rows(csr_matrix(Y.T @ Y, dtype=np.float32)))
    if together.shape[0] == 1:
        return np.ones((1, 1), np.float32)
    rank = max(1, min(DIMENSIONS, together.shape[0] - 1))
    return unit_rows(TruncatedSVD(rank, random_state=0).fit_transform(together))


def similar(method: NeighborVoting, label: int, k: int) -> list[tuple[int, float]]:
    """The k labels nearest to one, by cosine."""
    places = label_embeddings(method)
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
    places = row_embeddings(method)
    if places is None:
        near = 1 / np.maximum(np.diff(Y.indptr)[mine], 1)
    else:
        near = places[mine] @ unit_rows(places[mine].sum(axis=0, keepdims=True))[0]
    best = np.argsort(-near, kind="stable")[:n]
    return [(int(mine[i]), float(near[i])) for i in best]
