"""How many parts a fit is cut into, and how many bytes it takes: known from parameters and sizes alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..base import BLOCK
from ..runtime import parallel
from ..runtime.memory import LEAST, DataSize, Estimate
from ..selection import MAX_HELD_OUT
from ..stages import factorize, features, quantize, regress, sppmi
from ..validation import params
from ..validation.arrays import FILLED

PART = 40_000  # rows of a part at most, where `n_parts` is "auto"
CELLS_FROM = 5_000  # rows of a part below which a search among all of them is as fast
SMALLEST_PART = 1_000  # rows of a part that `max_memory` may lead to
PAPER_PART = 6_000  # rows for each part where `n_parts` is "paper", rounded down as in the code of AnnexML
PROBED = 40_000  # rows that l2 and temperature are chosen on: the best ones depend on the number of rows
MIN_PROBED = 2_000  # rows that settings are chosen on where memory is short
SEARCHED_ROWS = 8_192  # that a block of queries is multiplied with at a time, as in `kernels.jit.topk`
OVERLAPS = 1e9  # bytes of label overlaps that are cached; beyond, they are computed again for each product


class MemoryModel(NamedTuple):
    """The parameters of a voting method that decide how it is partitioned and how much memory it takes.

    largest_part : rows of a part at most, where `n_parts` is "auto"
    learners_in_parallel : whether learners are fitted on threads of their own
    n_embeddings, n_votings : embeddings and labels to vote for that are compared on held-out rows
    is_tuned : whether settings are chosen on held-out rows
    has_threshold : whether the threshold is chosen on held-out rows
    max_splits : hold-outs that settings are chosen on, at most; fewer where a hold-out is large
    embedding_bytes : bytes to embed a part; None is the cost of factorizing label overlaps
    labels_bytes : bytes that the model keeps of the labels; None is those of Y
    voting_bytes : bytes of the labels that rows vote for, where they are not Y; None where they are
    """

    n_components: int
    n_parts: str | int
    n_learners: int
    features: str
    max_memory: float | str | None
    n_jobs: int | None
    keep_rows: bool
    storage: str = "float32"
    index_kind: str = "auto"
    largest_part: int = PART
    learners_in_parallel: bool = False
    n_embeddings: int = 1
    n_votings: int = 1
    is_tuned: bool = True
    has_threshold: bool = True
    max_splits: int = 1
    embedding_bytes: Callable[[DataSize, int], float] | None = None
    labels_bytes: Callable[[DataSize], float] | None = None
    voting_bytes: Callable[[DataSize], float] | None = None

    @property
    def memory_limit(self) -> float:
        return np.inf if self.max_memory is None else params.as_bytes(self.max_memory)

    @property
    def max_overlaps(self) -> float:
        """Bytes of label overlaps that may be cached."""
        return min(OVERLAPS, self.memory_limit / 4)

    def count_parts(self, data: DataSize) -> int:
        """As given; "auto" is the fewest parts that are small enough and keep a fit within `max_memory`."""
        if self.n_parts != "auto":
            given = data.n // PAPER_PART if self.n_parts == "paper" else int(self.n_parts)
            return min(max(given, 1), data.n)
        fewest = max(1, -(-data.n // self.largest_part))
        if self.max_memory is None:
            return fewest
        most = max(fewest, data.n // SMALLEST_PART)
        tries = [min(fewest << doubled, most) for doubled in range(most.bit_length() + 1)]
        costs = [self._cost(data, n_parts).memory for n_parts in tries]
        fit = [n_parts for n_parts, cost in zip(tries, costs) if cost <= self.memory_limit]
        return fit[0] if fit else tries[int(np.argmin(costs))]

    def n_probed(self, data: DataSize, n_parts: int) -> int:
        """Rows that settings are chosen on; fewer where they would not fit into `max_memory`."""
        probed = min(data.n, PROBED)
        while probed > MIN_PROBED and self._probing(data, n_parts, probed) > self.memory_limit / 2:
            probed //= 2
        return probed

    def n_splits(self, n: int) -> int:
        """Hold-outs of n rows that settings are chosen on: more where few rows would decide."""
        return int(np.clip(round(MAX_HELD_OUT / (0.2 * n)), 1, self.max_splits))

    def estimate(self, data: DataSize) -> Estimate:
        """Bytes of a fit and of its model."""
        cost = self._cost(data, self.count_parts(data))
        return cost.with_rows(data) if self.keep_rows else cost

    def has_cells(self, n: int) -> bool:
        """Whether a search in a part of n rows reads the nearest cells only."""
        return self.index_kind == "auto" and n >= CELLS_FROM

    def _cost(self, data: DataSize, n_parts: int) -> Estimate:
        """Sizes of the arrays that a fit holds at once; of those that depend on the data, the largest."""
        has_kernel, item = self._takes_kernel(data), quantize.ITEM_BYTES[self.storage]
        n_landmarks = min(features.LANDMARKS, data.n) if has_kernel else 0
        in_part = part_rows(data.n, n_parts)
        map_rows = (4.0 if has_kernel else item) * n_parts * self.part_features(data, in_part)
        embeddings = self.n_components * (map_rows + item * data.n)
        # Where there are parts, a learner has a centre for each, and a fit scores all rows against them.
        centers = 4.0 * n_parts * data.d if n_parts > 1 else 0.0
        routing = 8.0 * n_parts * data.n + 5 * centers if n_parts > 1 else 0.0
        maps = self.n_learners * (embeddings + centers) + 4.0 * n_landmarks * data.d
        held = 3 * data.rows_bytes() + 6 * data.labels_bytes() + 48.0 * n_landmarks**2 + LEAST
        at_once = min(parallel.n_threads(self.n_jobs), self.n_learners) if self.learners_in_parallel else 1
        labels = data.labels_bytes() if self.labels_bytes is None else self.labels_bytes(data)
        fitting = maps + labels + at_once * max(self._working(data, n_parts, in_part), routing)
        if self.has_threshold and not self.is_tuned:  # a second fit, on a part of the rows
            fitting += maps + labels
        probing = self._probing(data, n_parts, self.n_probed(data, n_parts)) if self.is_tuned else 0.0
        return Estimate(held + max(probing, fitting), maps + labels)

    def _probing(self, data: DataSize, n_parts: int, probed: int) -> float:
        """Bytes to choose settings on these rows: all hold-outs are at the same setting at the same time."""
        m, width = round(0.8 * probed), self.n_components * self.n_embeddings
        voting = 0.0 if self.voting_bytes is None else self.n_votings * self.voting_bytes(data)
        held = self._held(data, m, width) + 4.0 * self.part_features(data, m) * width + voting
        return self.n_splits(probed) * held + self._transient(data, n_parts, m, width)

    def _working(self, data: DataSize, n_parts: int, m: int) -> float:
        """Bytes to transform, embed and regress on m rows."""
        return self._held(data, m, self.n_components) + self._transient(data, n_parts, m, self.n_components)

    def _held(self, data: DataSize, m: int, width: int) -> float:
        """Bytes of m transformed rows, their embeddings in so many columns, and their Gram matrix."""
        d, is_dense = self.part_features(data, m), _is_dense(data)
        rows = 4.0 * m * d if is_dense else 28.0 * m * data.nnz / data.n
        return rows + 24.0 * m * width + (4.0 * min(m, d) ** 2 if self._is_exact(data, m, width) else 0.0)

    def _transient(self, data: DataSize, n_parts: int, m: int, width: int) -> float:
        """Bytes that embedding m rows, or regressing on them, takes for a while, and searches and votes."""
        d, threads = self.part_features(data, m), parallel.n_threads(self.n_jobs)
        exact = self._is_exact(data, m, width)
        solving = 4.0 * min(m, d) ** 2 if exact else 32.0 * threads * regress.COLUMNS * d
        solving += (16.0 if d <= m else 8.0) * d * width + 12.0 * m * width
        embed = self.factorization_bytes if self.embedding_bytes is None else self.embedding_bytes
        searching = 8.0 * BLOCK * min(m, SEARCHED_ROWS)  # similarities of a block of queries, and a copy
        return max(embed(data, n_parts), solving) + threads * (searching + 16.0 * data.n_labels)

    def _is_exact(self, data: DataSize, m: int, width: int) -> bool:
        d = self.part_features(data, m)
        return regress.is_exact(m, d, m * d if _is_dense(data) else m * data.nnz / data.n, width)

    def factorization_bytes(
        self,
        data: DataSize,
        n_parts: int,
        *,
        n_labels: int = 0,
        pairs: float = 0.0,
        n_neighbors: int | None = None,
        n_matrices: int = 1,
    ) -> float:
        """Bytes to factorize the label overlaps of a part, of which any two may overlap.

        n_labels, pairs : labels that are embedded too, and their pairs and those with rows
        n_neighbors : nearest label sets that overlaps are limited to
        n_matrices : 2 where the transpose of the matrix is another one
        """
        m, threads = part_rows(data.n, n_parts), parallel.n_threads(self.n_jobs)
        nodes = float(m + n_labels)
        stored, searching = 4.0 * m * nodes + 12.0 * pairs, 0.0
        if n_neighbors is not None:
            stored, searching = min(stored, 16.0 * m * n_neighbors), 100.0 * m * n_neighbors
        cells = min(sppmi.block_rows(int(nodes)), nodes) * nodes
        blocks = threads * (5.4 * cells + 24.0 * (min(sppmi.ENTRIES, cells) + nodes))
        whole = 48.0 * nodes**2 if nodes <= factorize.EXACT else 0.0
        cached = min(self.max_overlaps, n_matrices * stored) + searching
        return cached + blocks + whole + 24.0 * nodes * (1.1 * self.n_components + 10)

    def _takes_kernel(self, data: DataSize) -> bool:
        return self.features == "nystroem" or (self.features == "auto" and _is_dense(data))

    def part_features(self, data: DataSize, m: int) -> int:
        """Features of m rows, at most."""
        if self._takes_kernel(data):
            return min(features.LANDMARKS, data.n)
        return min(data.d, -(-data.nnz * m // data.n))


def part_rows(n: int, n_parts: int) -> int:
    """The most rows of a part: parts of similar rows differ in size, up to this."""
    return n if n_parts == 1 else min(n, 2 * n // n_parts)


def _is_dense(data: DataSize) -> bool:
    return data.nnz > FILLED * data.n * data.d
