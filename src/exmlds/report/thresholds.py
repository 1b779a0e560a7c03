"""Precision, recall and F1 of the assigned labels over the threshold."""

from __future__ import annotations

from math import ceil, floor, log10
from typing import NamedTuple

import numpy as np

Array = np.ndarray

STEPS = 100  # largest number of steps between the ends of the grid


class OverThreshold(NamedTuple):
    """Counts for each threshold of a grid in ascending order; precision, recall and F1 are their ratios.

    own : the position of the model's threshold in the grid
    assigned : labels with at least that score, over all rows
    right : those of them that are true
    true : true labels of all rows
    """

    own: int
    thresholds: list[float]
    assigned: list[int]
    right: list[int]
    true: int
    rows: int

    def precision(self, i: int) -> float | None:
        return self.right[i] / self.assigned[i] if self.assigned[i] else None

    def recall(self, i: int) -> float:
        return self.right[i] / self.true

    def f1(self, i: int) -> float:
        return 2 * self.right[i] / (self.assigned[i] + self.true)


def over_threshold(scores: Array, hits: Array, threshold: float, *, true: int, rows: int) -> OverThreshold:
    """Count the assigned and the right labels for each threshold of a round grid and for the model's own.

    scores : (m,) float, of all labels that could be assigned
    hits : (m,) bool, whether they are true
    """
    order = np.argsort(-scores, kind="stable")
    descending, found = -scores[order], np.concatenate(([0], np.cumsum(hits[order])))
    thresholds = grid(float(scores.min(initial=0.0)), float(scores.max(initial=0.0)), threshold)
    # `predict` compares a score with the threshold in the precision of the scores.
    assigned = np.searchsorted(descending, -thresholds.astype(scores.dtype), side="right")
    return OverThreshold(
        own=int(np.searchsorted(thresholds, threshold)),
        thresholds=thresholds.tolist(),
        assigned=assigned.tolist(),
        right=found[assigned].tolist(),
        true=true,
        rows=rows,
    )


def grid(low: float, high: float, own: float) -> Array:
    """Ascending multiples of a round step that cover the scores, and the model's own threshold.

    >>> grid(0.0, 0.97, 0.333)[[0, 33, 34, 35, -1]].tolist()
    [0.0, 0.33, 0.333, 0.34, 0.97]
    """
    high = max(high, own)
    if high <= low:
        return np.array([own])
    power = floor(log10((high - low) / STEPS))
    step = next(m * 10.0**power for m in (1, 2, 5, 10, 20) if (high - low) / (m * 10.0**power) <= STEPS)
    multiples = np.arange(floor(low / step), ceil(high / step) + 1) * step
    return np.unique(np.append(multiples.round(max(0, 1 - power)), own))
