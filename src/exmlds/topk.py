"""Top-k lists of labels: filtering by allowed and denied labels, padding, conversion to csr and to tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import csr_matrix, issparse

from .display import html_table
from .validation.arrays import Matrix
from .validation.observed import contains

Array = np.ndarray
Best: TypeAlias = tuple[Array, Array]  # (n, k) int64 columns, best first, −1 pads; (n, k) float32 scores

SHOWN = 20  # rows in a notebook


class LabelFilter:
    """Restricts predictions to permitted labels.

    rules : pairs of labels, (L,) bool for all rows or (n, L) csr for each row, and whether these labels are
        the only allowed ones (True) or denied (False)
    """

    def __init__(self, rules: Sequence[tuple[Matrix, bool]]) -> None:
        self.rules = rules

    def __call__(self, ids: Array, block: slice) -> Array:
        """(b, k) bool, which ids of a block of rows are permitted."""
        keep = ids >= 0
        for listed, is_allowed in self.rules:
            if issparse(listed):
                keep &= contains(listed[block], ids) == is_allowed
            else:
                keep &= listed[np.maximum(ids, 0)] == is_allowed
        return keep

    def best(self, rank: Callable[[int], Best], k: int, n_labels: int, block: slice) -> Best:
        """The k best permitted labels of a block of rows; `rank(m)` returns the m best of all labels."""
        n_ranked = k
        # Quadruple the number of proposals until every row has k permitted ones or no candidate is left.
        while True:
            n_ranked = min(4 * n_ranked, n_labels)
            ids, scores = padded(*rank(n_ranked), n_ranked)
            keep = self(ids, block)
            exhausted = ids[:, -1] < 0
            if n_ranked == n_labels or ((keep.sum(axis=1) >= k) | exhausted).all():
                break
        first = np.argsort(~keep, axis=1, kind="stable")[:, :k]
        ids = np.where(np.take_along_axis(keep, first, 1), np.take_along_axis(ids, first, 1), -1)
        return padded(ids, np.take_along_axis(scores, first, 1), k)


def padded(ids: Array, scores: Array, k: int) -> Best:
    """Pad ids and scores to k columns, with −1 and 0; a score that is not positive is no candidate."""
    n, have = ids.shape
    wide = np.full((n, k), -1, np.int64), np.zeros((n, k), np.float32)
    real = (ids >= 0) & (scores > 0)
    wide[0][:, :have] = np.where(real, ids, -1)
    wide[1][:, :have] = np.where(real, scores, 0)
    return wide


def check_candidates(where: str, found: Any, n: int, k: int, n_labels: int) -> None:
    """Raise an error if `found`, what a method outside the package ranks, is not as `_candidates` requires.

    where : what to call the method;  n : rows of the block;  n_labels : columns that it may rank
    """
    parts = found if isinstance(found, tuple | list) else [found]
    shapes = [part.shape if isinstance(part, np.ndarray) else type(part).__name__ for part in parts]
    if len(shapes) != 2 or shapes[0] != shapes[1] or len(shapes[0]) != 2 or shapes[0][0] != n:
        got = " and ".join(map(str, shapes))
        raise ValueError(f"{where} must return a pair of ({n}, m) arrays, ids and scores. Got {got} instead.")
    ids, scores = found
    if ids.shape[1] > k:
        raise ValueError(f"{where} must return at most {k} columns. Got {ids.shape[1]} instead.")
    if ids.dtype.kind not in "iu" or scores.dtype.kind != "f":
        raise ValueError(
            f"{where} must return ids that are integers and scores that are floats. "
            f"Got {ids.dtype} and {scores.dtype} instead."
        )
    used = np.where(ids >= 0, scores, 0)  # the scores of pads do not matter
    for wrong, problem in (
        ((ids < -1) | (ids >= n_labels), f"an id that is not in 0 … {n_labels - 1}, nor −1 for none"),
        (~np.isfinite(used), "a score that is not finite"),
        ((used < 0) | (used > 1), "a score that is not in 0 … 1"),
        (used[:, 1:] > used[:, :-1], "scores that are not descending"),
    ):
        if wrong.any():
            row = int(np.argmax(wrong.any(axis=1)))
            shown = f"ids {ids[row].tolist()[:10]}, scores {scores[row].tolist()[:10]}"
            raise ValueError(f"{where} returned {problem}, in row {row} of its block: {shown}.")


def to_csr(ids: Array, scores: Array, n_labels: int) -> csr_matrix:
    """(n, n_labels) csr of the scores with sorted columns, without the pads."""
    present = ids >= 0
    order = np.argsort(np.where(present, ids, n_labels), axis=1, kind="stable")
    ids, scores = np.take_along_axis(ids, order, 1), np.take_along_axis(scores, order, 1)
    counts = present.sum(axis=1)
    present = np.arange(ids.shape[1]) < counts[:, None]
    indptr = np.concatenate(([0], np.cumsum(counts)))
    return csr_matrix((scores[present], ids[present], indptr), shape=(len(ids), n_labels))


class Suggestion(NamedTuple):
    """A label for a row, how to show it, and its score; `Suggestions.score_name` says what that is."""

    label: Any
    name: str
    score: float


class Suggestions(list[list[Suggestion]]):
    """A list of suggestions for each row, best first.

    row_names : what the rows are called in data frames; their numbers where nothing is given
    score_name : the name of the column of scores: "probability" if the model calibrates them, else "score"
    """

    def __init__(
        self,
        rows: Iterable[list[Suggestion]],
        row_names: Sequence[Any] | None = None,
        score_name: str = "score",
    ) -> None:
        super().__init__(rows)
        self.row_names = range(len(self)) if row_names is None else row_names
        self.score_name = score_name

    def columns(self) -> dict[str, list[Any]]:
        """One entry for each suggestion.

        Its columns are row, the name of a row; position, its number from 0; rank, from 1; label, name, and
        `score_name`.
        """
        found = [
            (row, position, rank, *suggestion)
            for position, (row, suggestions) in enumerate(zip(self.row_names, self))
            for rank, suggestion in enumerate(suggestions, 1)
        ]
        names = ("row", "position", "rank", "label", "name", self.score_name)
        return dict(zip(names, map(list, zip(*found)))) if found else {name: [] for name in names}

    def to_pandas(self) -> Any:
        """A pandas data frame of `columns()`."""
        try:
            import pandas
        except ImportError:
            raise ImportError("Data frames need pandas: pip install pandas.") from None
        return pandas.DataFrame(self.columns())

    def to_polars(self) -> Any:
        """A Polars data frame of `columns()`."""
        try:
            import polars
        except ImportError:
            raise ImportError("Data frames need Polars: pip install polars.") from None
        return polars.DataFrame(self.columns())

    def _repr_html_(self) -> str:
        rows = [
            (str(row), ", ".join(f"{found.name} ({found.score:.2f})" for found in suggestions))
            for row, suggestions in zip(self.row_names[:SHOWN], self)
        ]
        note = f"{SHOWN} of {len(self):,} rows" if len(self) > SHOWN else ""
        return html_table("", ("row", f"label ({self.score_name})"), rows, note)
