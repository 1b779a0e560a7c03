"""The label space: which labels are similar, which rows are typical of a label, and embeddings of rows."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..base import XMCPredictor
from ..stages import quantize
from ..validation import params
from ..validation.arrays import unit_rows
from .votes import VotingModel

Array = np.ndarray

COOCCURRENCE_RANK = 100  # dimensions of labels that are embedded by their co-occurrences


class LabelSpaceMixin(ClassNamePrefixFeaturesOutMixin, TransformerMixin, XMCPredictor):
    """A model that embeds rows, and labels with them."""

    @abstractmethod
    def _voting_model(self) -> VotingModel:
        """The voting method whose embeddings are used."""

    def transform(self, X: Any) -> Array:
        """(n, n_learners × r) float32 embeddings of rows, learner after learner.

        Rows are near each other by cosine where their labels should be alike. Where rows are cut into parts,
        embeddings of rows in different parts can't be compared.
        """
        check_is_fitted(self)
        return self._voting_model().embed(self._checked_rows(X, reset=False))

    @property
    def _n_features_out(self) -> int:
        return sum(learner.parts[0].V.values.shape[1] for learner in self._voting_model().learners)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        assert tags.transformer_tags is not None
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def similar_labels(self, label: Any, k: int = 10) -> list[tuple[Any, float]]:
        """The k labels nearest to a label in the label space, and their cosines."""
        check_is_fitted(self)
        params.check_count("k", k)
        column = self._used_column(label)
        return [
            (self._used_label(other), cosine) for other, cosine in similar(self._voting_model(), column, k)
        ]

    def typical_rows(self, label: Any, n: int = 5) -> list[tuple[int, float]]:
        """The n training rows with the label that are nearest to their mean, and their cosines with it."""
        check_is_fitted(self)
        params.check_count("n", n)
        voting = self._voting_model()
        found = typical(voting, self._used_column(label), n)
        return [(int(voting.row_numbers[row]), cosine) for row, cosine in found]

    def label_embeddings(self) -> Array:
        """(L, r) unit embeddings of the labels: near each other where similar rows have them."""
        check_is_fitted(self)
        return self.columns_.spread(label_embeddings(self._voting_model()), self.n_labels_)


def row_embeddings(voting: VotingModel) -> Array | None:
    """(n, r) unit embeddings of the rows that vote; None where they are in several parts or in a graph."""
    parts = voting.learners[0].parts
    segments = parts[0].row_index.segments
    if len(parts) > 1 or not all(isinstance(segment.rows, quantize.Packed) for segment in segments):
        return None
    rows = np.concatenate([quantize.unpack(segment.rows) for segment in segments])
    embeddings = np.empty(rows.shape, np.float32)
    embeddings[parts[0].rows] = rows
    return unit_rows(embeddings)


def label_embeddings(voting: VotingModel) -> Array:
    """(L, r) unit embeddings: those that a method learns, or the means of the rows that have the labels.

    Where rows are in several parts, labels are embedded by a truncated SVD of their co-occurrences.
    """
    if voting.scorer is not None:
        return unit_rows(np.asarray(voting.scorer.embeddings))
    Y = voting.labels
    of_rows = row_embeddings(voting)
    if of_rows is not None:
        return unit_rows(np.asarray(Y.T @ of_rows))
    cooccurrence = csr_matrix(unit_rows(csr_matrix(Y.T @ Y, dtype=np.float32)))
    if cooccurrence.shape[0] == 1:
        return np.ones((1, 1), np.float32)
    from sklearn.decomposition import TruncatedSVD  # not needed to predict

    rank = max(1, min(COOCCURRENCE_RANK, cooccurrence.shape[0] - 1))
    return unit_rows(TruncatedSVD(rank, random_state=0).fit_transform(cooccurrence))


def similar(voting: VotingModel, label: int, k: int) -> list[tuple[int, float]]:
    """The k labels nearest to one by cosine."""
    embeddings = label_embeddings(voting)
    cosines = embeddings @ embeddings[label]
    cosines[label] = -np.inf
    best = np.argsort(-cosines, kind="stable")[:k]
    return [(int(j), float(cosines[j])) for j in best if cosines[j] > 0]


def typical(voting: VotingModel, label: int, n: int) -> list[tuple[int, float]]:
    """The n rows with the label that are nearest to their mean, among those that vote, and their cosines.

    Where row embeddings are not available: those with the fewest other labels, and 1 over their number.
    """
    Y = voting.labels
    column = Y[:, [label]].tocoo()
    own = column.row[column.data >= 1]
    embeddings = row_embeddings(voting)
    if embeddings is None:
        near = 1 / np.maximum(np.diff(Y.indptr)[own], 1)
    else:
        near = embeddings[own] @ unit_rows(embeddings[own].sum(axis=0, keepdims=True))[0]
    best = np.argsort(-near, kind="stable")[:n]
    return [(int(own[i]), float(near[i])) for i in best]
