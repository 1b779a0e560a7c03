"""Labels that no training row has, which only their names in a text can suggest."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from ..stages import name_match
from ..validation import stored
from ..validation.columns import UsedColumns
from ..validation.observed import contains
from .cross_fit import CrossFit
from .stack import Stacked

Array = np.ndarray

SUPPORTING_LABELS = 30  # labels of a row, the most probable ones, that support others with their attributes


class UntrainedLabels(NamedTuple):
    """Scores labels without training rows by the matches of their names.

    attributes : (L, A) csr of ones for each kind of attributes that labels share
    scorer : as fitted on held-out rows; None takes the scores of matches as they are
    """

    attributes: list[csr_matrix]
    scorer: name_match.UntrainedScorer | None = None

    def fit(
        self, matches: csr_matrix, Y: csr_matrix, columns: UsedColumns, fitted: CrossFit, stacked: Stacked
    ) -> UntrainedLabels:
        """With a scorer that has learnt from the matches in held-out rows.

        matches : (h, L) of all labels;  Y : (h, L′) of those that rows have;  columns : which these are
        """
        rows, labels = _pairs(matches)
        counts = columns.spread(fitted.counts.T, matches.shape[1])
        is_unseen = counts[labels, fitted.folds[rows]] == 0
        truth = csr_matrix((Y.data, columns.given(Y.indices), Y.indptr), matches.shape)
        hits = contains(truth[rows], labels[:, None].astype(np.int64))[:, 0]
        evidence = self._evidence(matches, columns.given(stacked.ids), stacked.probabilities)
        return self._replace(scorer=name_match.fit_untrained(evidence, hits, is_unseen))

    def add(
        self,
        ids: Array,
        scores: Array,
        matches: csr_matrix,
        columns: UsedColumns,
        k: int,
        gains: Array | None = None,
    ) -> tuple[Array, Array]:
        """The k best of the labels that a model has ranked, and of untrained ones that match.

        Labels that got their first rows after the fit keep what their names give: the stacker has learnt
        little of names that stand for labels with one or two rows.

        ids, scores : (b, k′) with at least SUPPORTING_LABELS, or all labels;  matches : (b, L) of all labels
        gains : (L,) what the scores are multiplied by; 1 for untrained labels
        """
        named = name_match.entries(matches, ~columns.were_fitted(matches.indices))
        probabilities = scores if gains is None else scores / gains[ids]
        evidence = None if self.scorer is None else self._evidence(named, ids, probabilities)
        found = name_match.score_untrained(self.scorer, named.data, evidence)
        best = scores.max(axis=1, initial=0)
        named.data = name_match.give_way(found, best[_pairs(named)[0]])
        return name_match.add_named(ids, scores, named, k)

    def with_labels(self, n_labels: int) -> UntrainedLabels:
        """For more labels, which have no attributes."""
        if all(own.shape[0] == n_labels for own in self.attributes):
            return self
        attributes = []
        for own in self.attributes:
            more = np.full(n_labels - own.shape[0], own.nnz, own.indptr.dtype)
            starts = np.concatenate([own.indptr, more])
            attributes.append(csr_matrix((own.data, own.indices, starts), (n_labels, own.shape[1])))
        return self._replace(attributes=attributes)

    def _evidence(self, matches: csr_matrix, ids: Array, probabilities: Array) -> Array:
        """(m, f) of the matches in rows whose best labels have these probabilities."""
        rows, labels = _pairs(matches)
        likely = ids[:, :SUPPORTING_LABELS], probabilities[:, :SUPPORTING_LABELS]
        supports = np.empty((len(rows), len(self.attributes)))
        n_attributes = np.zeros(len(rows), np.int64)
        for kind, own in enumerate(self.attributes):
            supports[:, kind] = name_match.support(own, *likely, rows, labels)
            n_attributes += own.indptr[labels + 1] - own.indptr[labels]
        return name_match.untrained_evidence(matches.data, supports, n_attributes)

    @classmethod
    def of_first_version(cls, stored_labels: UntrainedLabels) -> UntrainedLabels:
        """From a folder of the first version, with a matrix of attributes or None, and other weights."""
        one, scorer = stored_labels
        attributes: Any = [] if one is None else [one]
        if scorer is not None:
            weights = name_match.weights_of_first_version(scorer.weights, len(attributes))
            scorer = scorer._replace(weights=weights)
        return cls(attributes, scorer)


def _pairs(matches: csr_matrix) -> tuple[Array, Array]:
    """The rows and the labels of matches."""
    return np.repeat(np.arange(matches.shape[0]), np.diff(matches.indptr)), matches.indices


def check(untrained: Any, n_labels: int) -> None:
    """Check what comes from a file."""
    stored.record(untrained, "labels without training rows", UntrainedLabels)
    stored.require(isinstance(untrained.attributes, list), "the attributes of labels are no list")
    for own in untrained.attributes:
        stored.record(own, "the attributes of labels", csr_matrix)
        stored.require(own.shape[0] == n_labels, "the attributes are those of other labels")
    if untrained.scorer is not None:
        name_match.check_untrained(untrained.scorer, len(untrained.attributes))
