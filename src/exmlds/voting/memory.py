"""How many parts a fit has, and how many bytes it takes, told before there are any."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..base import XMCEstimator
from ..runtime import parallel
from ..runtime.memory import DataSize, Estimate
from ..stages import features, quantize, regress
from ..validation import params

PART = 40_000  # rows of a part at most, where `n_parts` is "auto"
APPROXIMATE_FROM = 50_000  # rows of a part, below which exact search is as fast
SMALLEST_PART = 1_000  # rows of a part that `max_memory` may lead to
PAPER_PART = 6_000  # rows of a part, about, where it is "paper"
PROBED = 40_000  # rows that l2 and temperature are chosen on: the best ones depend on the number of rows
FEWEST_PROBED = 2_000  # of them, where memory is short
OVERLAPS = 1e9  # bytes of label overlaps that are kept; beyond, they are made again for each product


class MemoryBound(XMCEstimator):
    """A method whose rows are cut into parts, so that a fit stays within `max_memory`."""

    n_components: int
    n_parts: str | int
    n_learners: int
    features: str
    keep_rows: bool

    # A method may make parameters of these.
    storage: str = "float32"  # of V, but for the kernel, and of where training rows lie
    index: str = "exact"
    # Whether learners are fitted on threads of their own: for methods that need little memory for one.
    _learners_at_once: ClassVar[bool] = False

    def _n_parts(self, data: DataSize) -> int:
        """As asked for; "auto" is the fewest that keep a part under PART rows and a fit under max_memory."""
        if self.n_parts != "auto":
            given = round(data.n / PAPER_PART) if self.n_parts == "paper" else int(self.n_parts)
            return min(max(given, 1), data.n)
        fewest = max(1, -(-data.n // self._largest_part()))
        if self.max_memory is None:
            return fewest
        most = max(fewest, data.n // SMALLEST_PART)
        tries = [min(fewest << doubled, most) for doubled in range(most.bit_length() + 1)]
        costs = [self._cost(data, n_parts).memory for n_parts in tries]
        fit = [n_parts for n_parts, cost in zip(tries, costs) if cost <= params.as_bytes(self.max_memory)]
        return fit[0] if fit else tries[int(np.argmin(costs))]

    def _largest_part(self) -> int:
        """Rows of a part at most, where `n_parts` is "auto"."""
        return PART

    def _part_rows(self, n: int, n_parts: int) -> int:
        """The most rows of a part: parts of similar rows are not all of one size, within this."""
        return n if n_parts == 1 else min(n, 2 * n // n_parts)

    def _n_probed(self, data: DataSize, n_parts: int) -> int:
        """Rows that settings are chosen on; fewer where they would not fit into max_memory."""
        probed = min(data.n, PROBED)
        if self.max_memory is not None:
            allowed = params.as_bytes(self.max_memory)
            while probed > FEWEST_PROBED and self._working(data, n_parts, probed) > allowed / 2:
                probed //= 2
        return probed

    def _max_overlaps(self) -> float:
        return OVERLAPS if self.max_memory is None else min(OVERLAPS, params.as_bytes(self.max_memory) / 4)

    def _estimate(self, data: DataSize) -> Estimate:
        cost = self._cost(data, self._n_parts(data))
        return cost.with_rows(data) if self.keep_rows else cost

    def _cost(self, data: DataSize, n_parts: int) -> Estimate:
        """Sizes of the arrays that `_fit` holds at once; of those that depend on the data, the most."""
        has_kernel, item = self._takes_kernel(data), quantize.ITEM_BYTES[self.storage]
        n_landmarks = min(features.LANDMARKS, data.n) if has_kernel else 0
        in_part = self._part_rows(data.n, n_parts)
        mapped = (4.0 if has_kernel else item) * n_parts * self._part_features(data, in_part)
        places = self.n_components * (mapped + item * data.n)
        maps = self.n_learners * (places + self._graph_bytes(data, n_parts)) + 4.0 * n_landmarks * data.d
        probed = self._n_probed(data, n_parts)
        n_tried = self._n_splits(probed) * self._n_embeddings()
        probing = self._working(data, n_parts, probed) + (n_tried - 1) * 12.0 * probed * self.n_components
        held = 3 * data.rows_bytes() + 2 * data.labels_bytes() + 24.0 * n_landmarks**2
        at_once = min(parallel.n_threads(self.n_jobs), self.n_learners) if self._learners_at_once else 1
        fitting = maps + self._labels_bytes(data) + at_once * self._working(data, n_parts, in_part)
        return Estimate(held + max(probing, fitting), maps + self._labels_bytes(data))

    def _working(self, data: DataSize, n_parts: int, m: int) -> float:
        """Bytes to transform, embed and regress on m rows."""
        r, d, is_dense = self.n_components, self._part_features(data, m), self._is_dense(data)
        rows = 4.0 * m * d if is_dense else 16.0 * m * data.nnz / data.n
        exact = regress.is_exact(m, d, m * d if is_dense else m * data.nnz / data.n, r)
        threads = parallel.n_threads(self.n_jobs)
        solving = 8.0 * min(m, d) ** 2 if exact else 32.0 * threads * regress.COLUMNS * d
        return rows + 12.0 * m * r + max(self._embedding_bytes(data, n_parts), solving + 16.0 * d * r)

    def _embedding_bytes(self, data: DataSize, n_parts: int) -> float:
        """Bytes to embed a part, or all rows where they are embedded together."""
        m = float(self._part_rows(data.n, n_parts))
        return min(self._max_overlaps(), 4.0 * m * m) + 16.0 * m * 1.1 * self.n_components

    def _graph_bytes(self, data: DataSize, n_parts: int) -> float:
        """Bytes of the links of graphs that are searched, without the rows."""
        return 0.0 if self._is_searched_exactly(data.n // n_parts) else 300.0 * data.n

    def _is_searched_exactly(self, n: int) -> bool:
        """Whether a part of n rows is."""
        return self.index == "exact" or n < APPROXIMATE_FROM

    def _labels_bytes(self, data: DataSize) -> float:
        """Bytes of what a model keeps of the labels."""
        return data.labels_bytes()

    def _is_dense(self, data: DataSize) -> bool:
        return data.nnz > features.FILLED * data.n * data.d

    def _takes_kernel(self, data: DataSize) -> bool:
        return self.features == "nystroem" or (self.features == "auto" and self._is_dense(data))

    def _part_features(self, data: DataSize, m: int) -> int:
        """Features of m rows, at most."""
        if self._takes_kernel(data):
            return min(features.LANDMARKS, data.n)
        return min(data.d, -(-data.nnz * m // data.n))

    def _n_embeddings(self) -> int:
        """How many `_embedding_settings` there are."""
        return 1

    def _n_splits(self, n: int) -> int:
        """Of n rows into training and held-out ones."""
        return 1
