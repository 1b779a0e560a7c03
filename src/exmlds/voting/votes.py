"""What passes from stage to stage of a method whose neighbours vote."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray


class Embedding(NamedTuple):
    """Where training rows lie, and labels too where a method embeds them."""

    rows: Array  # (n, r)
    labels: Array | None = None  # (L, r)

    def part(self, rows: Array) -> Array:
        """The embeddings of some rows."""
        return self.rows[rows]


class Votes(NamedTuple):
    """What a block of rows was told.

    neighbors, weights : (b, m) training rows, −1 pads, and how much each counts
    places : (b, r) where the rows lie, for each learner and each part asked
    """

    neighbors: Array
    weights: Array
    places: list[Array]

    def rows(self, block: slice) -> Votes:
        return Votes(self.neighbors[block], self.weights[block], [Z[block] for Z in self.places])
