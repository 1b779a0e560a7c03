"""A small method that grows, for the tests of journals and for `benchmarks/crash.py`.

`NoteCounter` ranks labels by their counts, and keeps a note, a string, of each row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_matrix

from exmlds import XMCEstimator
from exmlds.storage import records
from exmlds.validation import stored

Array = np.ndarray


class NotesAdded(NamedTuple):
    """counts : (L,) rows that are added for each label;  notes : (m,) of them"""

    counts: Array
    notes: Array


class NotesRemoved(NamedTuple):
    """counts : (L,) rows that are removed for each label;  numbers : (m,) of the rows that are removed"""

    counts: Array
    numbers: Array


records.register("notes-added/1", NotesAdded)
records.register("notes-removed/1", NotesRemoved)


@dataclass(kw_only=True, eq=False, repr=False)
class NoteCounter(XMCEstimator):
    """The most frequent labels; every row has one label and a note."""

    threshold: str | float = 0.1

    def _fit(self, X: Any, Y: csr_matrix, rng: np.random.Generator, **side: Any) -> None:
        self.notes_ = np.array([f"row {row}" for row in range(X.shape[0])], object)
        self.labels_of_notes_ = Y.indices.astype(np.int64)
        self.removed_ = np.zeros(X.shape[0], bool)

    def _candidates(self, X: Any, k: int) -> tuple[Array, Array]:
        best = np.argsort(-self.column_counts_, kind="stable")[:k]
        scores = (self.column_counts_[best] / max(1, self.column_counts_.sum())).astype(np.float32)
        ids = np.where(scores > 0, best, -1)
        return np.tile(ids, (X.shape[0], 1)), np.tile(np.where(scores > 0, scores, 0), (X.shape[0], 1))

    def add(self, label: int, notes: list[str]) -> Self:
        """Add rows with a label."""
        counts = np.zeros(self.n_labels_, np.int64)
        counts[label] = len(notes)
        self._commit_change(NotesAdded(counts, np.array(notes, object)))
        return self

    def remove(self, numbers: list[int]) -> Self:
        """Remove rows by their numbers."""
        lost = np.bincount(self.labels_of_notes_[numbers], minlength=self.n_labels_)
        self._commit_change(NotesRemoved(lost, np.array(numbers, np.int64)))
        return self

    def _apply_change(self, change: Any) -> None:
        counts = stored.array(change.counts, "the counts of a change", stored.INTEGERS, self.n_labels_)
        if isinstance(change, NotesAdded):
            n = len(change.notes)
            stored.require(counts.sum() == n, "the counts are not those of the rows")
            self.notes_ = np.concatenate([self.notes_, change.notes])
            self.labels_of_notes_ = np.concatenate(
                [self.labels_of_notes_, np.repeat(np.arange(self.n_labels_), counts)]
            )
            self.removed_ = np.concatenate([self.removed_, np.zeros(n, bool)])
            self.column_counts_ = self.column_counts_ + counts
            self.n_samples_fit_ += n
        elif isinstance(change, NotesRemoved):
            numbers = stored.ids(change.numbers, "the removed rows", None, len(self.notes_))
            self.removed_ = self.removed_.copy()
            self.removed_[numbers] = True
            self.column_counts_ = self.column_counts_ - counts
            self.n_samples_fit_ -= len(numbers)
        else:
            super()._apply_change(change)

    def _compact(self, purge: bool) -> None:
        if purge:
            kept = ~self.removed_
            self.notes_, self.labels_of_notes_ = self.notes_[kept], self.labels_of_notes_[kept]
            self.removed_ = np.zeros(len(self.notes_), bool)

    def state(self) -> tuple[Any, ...]:
        """What changes, in a form that `==` compares."""
        arrays = (self.notes_, self.labels_of_notes_, self.removed_, self.column_counts_)
        return (self.n_samples_fit_, *(array.tolist() for array in arrays))


def fitted() -> NoteCounter:
    """A small model to grow."""
    Y = csr_matrix(np.eye(3, dtype=np.float32)[[0, 1, 2, 0]])
    return NoteCounter().fit(np.ones((4, 2), np.float32), Y)


def change(model: NoteCounter, number: int) -> None:
    """Make the change of a number: it adds one or two rows, or removes one that was added before."""
    if number % 4 == 3:
        model.remove([model.notes_.tolist().index(f"change {number - 3}")])
    else:
        model.add(number % 3, [f"change {number}", f"second of {number}"][: 1 + number % 2])


def facts(model: NoteCounter) -> Any:
    """What the changes up to now have made of a model, whether it was compacted or not."""
    notes = [note for note, is_removed in zip(model.notes_, model.removed_) if not is_removed]
    ids, scores = model.predict_topk(np.ones((1, 2), np.float32), 3)
    return [model.n_samples_fit_, notes, ids.tolist(), scores.tolist()]
