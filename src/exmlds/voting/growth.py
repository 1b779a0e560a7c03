"""How voting methods grow: rows and labels join the index and the votes, and maps may be replaced."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix, issparse, vstack

from ..growing import GrowingEstimator, RowsChange, emptied, widened
from ..runtime.parallel import blocks, map_blocks
from ..selection import TrainingSet
from ..stages import features, index, quantize, vote
from ..validation.arrays import Matrix, take_rows
from .votes import Learner, Part

Array = np.ndarray


class GrowingVoting(GrowingEstimator):
    """What `NeighborVoting` does when rows and labels are added and removed."""

    storage: Any  # of the row embeddings

    def with_rows(self, rows: TrainingSet, *, is_merged: bool = True) -> Self:
        """The model with further rows that vote, all of them with a label; its maps stay as they are.

        is_merged : whether they are put among the others at once, which takes time for these too
        """
        n = self.labels_.shape[0]
        added = np.arange(n, n + rows.n)
        other = copy.copy(self)
        is_routed = any(len(learner.parts) > 1 for learner in self.learners_)
        routed = features.apply_for_routing(self.feature_map_, rows.X) if is_routed else rows.X
        A = features.apply(self.feature_map_, rows.X)
        other.learners_ = [self._add_rows(learner, A, routed, added, is_merged) for learner in self.learners_]
        other.labels_ = vstack([self.labels_, self._labels_of_added(rows.Y)], format="csr")
        other.rows_ = np.arange(n + rows.n, dtype=np.int32)
        other.n_samples_fit_ = n + rows.n
        if self.voter_weights_ is not None:
            weights = np.ones(rows.n) if rows.row_weights is None else rows.row_weights
            other.voter_weights_ = np.concatenate([self.voter_weights_, weights])
        return other

    def _labels_of_added(self, Y: csr_matrix) -> csr_matrix:
        """(m, L) the labels that added rows vote for."""
        return Y

    def _add_rows(
        self, learner: Learner, X: Matrix, routed: Matrix, numbers: Array, is_merged: bool
    ) -> Learner:
        """A learner with further rows, each in the part that it is routed to."""
        choice = np.zeros(len(numbers), np.int64)
        if len(learner.parts) > 1:
            choice = learner.router.assign(routed, 1)[:, 0]
        parts = list(learner.parts)
        for p in np.unique(choice):
            part, own = parts[p], np.flatnonzero(choice == p)
            Z = quantize.times(X[own], part.V, part.columns, engine=self.engine)
            grown = index.append(part.row_index, Z, self.storage)
            parts[p] = part._replace(
                rows=np.concatenate([part.rows, numbers[own]]),
                row_index=index.compact(grown, n_jobs=self.n_jobs) if is_merged else grown,
            )
        return learner._replace(parts=parts)

    def with_labels(self, n_labels: int) -> Self:
        """The model with further labels, which no row has yet."""
        n_before = self.labels_.shape[1]
        if n_labels == n_before:
            return self
        other = copy.copy(self)
        other.labels_, other.n_labels_ = widened(self.labels_, n_labels), n_labels
        other.column_counts_ = np.zeros(n_labels, self.column_counts_.dtype)
        other.column_counts_[:n_before] = self.column_counts_[:n_before]
        if self.scorer_ is not None:
            none = np.zeros((n_labels - n_before, self.scorer_.embeddings.shape[1]), np.float32)
            other.scorer_ = vote.label_scorer(np.concatenate([self.scorer_.embeddings, none]))
        return other

    def without_rows(self, voters: Array) -> Self:
        """The model in which some of the rows that vote, by their positions, do not vote any more."""
        if not len(voters):
            return self
        is_out = np.zeros(self.labels_.shape[0], bool)
        is_out[voters] = True
        other = self._with_parts(
            lambda part: part._replace(
                row_index=index.exclude(part.row_index, np.flatnonzero(is_out[part.rows]))
            )
        )
        lost = self.labels_[voters]
        other.column_counts_ = self.column_counts_ - np.bincount(
            lost.indices[lost.data >= 1], minlength=lost.shape[1]
        )
        other.labels_ = emptied(self.labels_, voters)
        return other

    def grown(self, removed: Array, X: Matrix, Y: csr_matrix) -> Self:
        """The model without some of its voters, by their positions, and with rows that all have a label."""
        other = self.with_labels(Y.shape[1]).without_rows(removed)
        if Y.shape[0]:
            other = other.with_rows(TrainingSet(X, Y, {}, {}), is_merged=False)
            other.column_counts_ = other.column_counts_ + np.bincount(Y.indices, minlength=Y.shape[1])
        return other

    def _apply_rows(self, change: RowsChange, n_labels: int) -> None:
        added, n = np.flatnonzero(np.diff(change.labels.indptr)), len(self._growth().ids)
        rows = np.asarray(self.rows_)
        other = self.grown(voters_of(rows, change.removed, n), change.X[added], change.labels[added])
        for name in ("learners_", "labels_", "scorer_", "voter_weights_"):
            setattr(self, name, getattr(other, name))
        self.rows_: Array = np.concatenate([rows, n + added]).astype(np.int32)

    def without_voters(self, is_dropped: Array) -> Self:
        """The model without the space of some voters, (n,) bool, that were removed."""
        number = np.cumsum(~is_dropped) - 1
        other = self._with_parts(
            lambda part: part._replace(
                rows=number[part.rows[~is_dropped[part.rows]]],
                row_index=index.drop(part.row_index, np.flatnonzero(is_dropped[part.rows])),
            )
        )
        other.labels_ = self.labels_[~is_dropped]
        other.rows_ = np.arange(len(number) - is_dropped.sum(), dtype=np.int32)
        other.n_samples_fit_ = len(other.rows_)
        if self.voter_weights_ is not None:
            other.voter_weights_ = self.voter_weights_[~is_dropped]
        return other

    def _drop_voters(self, is_removed: Array, number: Array) -> None:
        is_dropped = is_removed[self.rows_]
        other = self.without_voters(is_dropped)
        for name in ("learners_", "labels_", "voter_weights_"):
            setattr(self, name, getattr(other, name))
        self.rows_ = number[self.rows_[~is_dropped]].astype(np.int32)

    def merged(self) -> Self:
        """The model with the rows that were added put among the others."""
        return self._with_parts(
            lambda part: part._replace(row_index=index.compact(part.row_index, n_jobs=self.n_jobs))
        )

    def _with_parts(self, change: Callable[[Part], Part]) -> Self:
        """The model with each part of each learner changed."""
        other = copy.copy(self)
        other.learners_ = [
            learner._replace(parts=list(map(change, learner.parts))) for learner in self.learners_
        ]
        return other

    def needs_further_maps(self, n_mapped: int) -> bool:
        """Whether the rows after the first n_mapped that vote are so many that maps are trained on them."""
        return False

    def further_maps(self, X: Matrix, n_mapped: int) -> list[list[quantize.Packed]]:
        """The maps of all learners and parts, trained further on the rows that came later.

        X : (n, d) the rows that vote;  n_mapped : how many there were when maps were last trained
        """
        raise NotImplementedError

    def with_maps(self, X: Matrix, maps: list[list[quantize.Packed]]) -> Self:
        """The model with other maps, by which all rows that vote, X, are embedded again."""
        A, is_removed = features.apply(self.feature_map_, X), np.diff(self.labels_.indptr) == 0
        given = iter([V for of_parts in maps for V in of_parts])

        def replace(part: Part) -> Part:
            V, own, how = next(given), is_removed[part.rows], {"n_jobs": self.n_jobs}
            Z = self._embedded(part.own_features(take_rows(A, part.rows)), V)
            in_cells = self._memory_model().has_cells(int((~own).sum()))
            built = index.build_without(Z, own, self.metric, self.storage, in_cells=in_cells, **how)
            return part._replace(V=V, row_index=built)

        return self._with_parts(replace)

    def _embedded(self, X: Matrix, V: quantize.Packed) -> Array:
        """(n, r) float32, rows by a map, each on its own: BLAS rounds a row by those beside it."""
        if issparse(X):
            return quantize.embed(X, quantize.unpack(V), n_jobs=self.n_jobs, engine=self.engine)
        columns = np.arange(X.shape[1])
        found = map_blocks(
            lambda block: quantize.times(X[block], V, columns, engine=self.engine),
            blocks(X.shape[0], quantize.ROWS),
            n_jobs=self.n_jobs,
            stage="embedding",
            total=X.shape[0],
        )
        return np.concatenate([np.zeros((0, V.values.shape[1]), np.float32), *found])

    def has_long_tail(self, n_more: int) -> bool:
        """Whether the rows that were added to a part, with some more, are many."""
        return any(
            index.has_long_tail(part.row_index, n_more)
            for learner in self.learners_
            for part in learner.parts
        )

    def _has_long_tail(self, n_more: int) -> bool:
        return self.has_long_tail(n_more)

    def _merge_segments(self) -> None:
        self.learners_: list[Learner] = self.merged().learners_


def voters_of(voters: Array, rows: Array, n: int) -> Array:
    """The positions of some of the n rows among the voters, which are rows; those of others are left out."""
    position = np.full(n, -1)
    position[voters] = np.arange(len(voters))
    return position[rows][position[rows] >= 0]
