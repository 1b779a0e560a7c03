"""The best labels of rows: k columns and their scores, among those that may be said, and as csr."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_matrix, issparse

from . import metrics
from .validation.arrays import Matrix

Array = np.ndarray
Best: TypeAlias = tuple[Array, Array]  # (n, k) int64 columns, best first, −1 pads; (n, k) float32 scores


class LabelFilter:
    """Which labels may be said of which rows.

    rules : labels, (L,) bool for all rows or (n, L) csr for each, and whether they are allowed or denied
    """

    def __init__(self, rules: Sequence[tuple[Matrix, bool]]) -> None:
        self.rules = rules

    def __call__(self, ids: Array, block: slice) -> Array:
        keep = ids >= 0
        for listed, is_allowed in self.rules:
            if issparse(listed):
                keep &= metrics.among(listed[block], ids) == is_allowed
            else:
                keep &= listed[np.maximum(ids, 0)] == is_allowed
        return keep

    def best(self, propose: Callable[[int], Best], k: int, n_labels: int, block: slice) -> Best:
        """The k best that may be said of a block of rows; more are proposed until that many are found."""
        asked = k
        while True:
            asked = min(4 * asked, n_labels)
            ids, scores = padded(*propose(asked), asked)
            keep = self(ids, block)
            exhausted = ids[:, -1] < 0
            if asked == n_labels or ((keep.sum(axis=1) >= k) | exhausted).all():
                break
        first = np.argsort(~keep, axis=1, kind="stable")[:, :k]
        ids = np.where(np.take_along_axis(keep, first, 1), np.take_along_axis(ids, first, 1), -1)
        return padded(ids, np.take_along_axis(scores, first, 1), k)


def padded(ids: Array, scores: Array, k: int) -> Best:
    """k wide, with −1 and 0 where there is no candidate."""
    n, have = ids.shape
    wide = np.full((n, k), -1, np.int64), np.zeros((n, k), np.float32)
    real = (ids >= 0) & (scores > 0)
    wide[0][:, :have] = np.where(real, ids, -1)
    wide[1][:, :have] = np.where(real, scores, 0)
    return wide


def to_csr(ids: Array, scores: Array, n_labels: int) -> csr_matrix:
    """(n, n_labels) csr of the scores, without the pads."""
    present = ids >= 0
    order = np.argsort(np.where(present, ids, n_labels), axis=1, kind="stable")
    ids, scores = np.take_along_axis(ids, order, 1), np.take_along_axis(scores, order, 1)
    counts = present.sum(axis=1)
    present = np.arange(ids.shape[1]) < counts[:, None]
    indptr = np.concatenate(([0], np.cumsum(counts)))
    return csr_matrix((scores[present], ids[present], indptr), shape=(len(ids), n_labels))
