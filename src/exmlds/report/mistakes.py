"""Example mistakes: rows whose top label is wrong although its score is high."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from ..models.text import TextClassifier, text_column

Array = np.ndarray

LISTED_LABELS = 8  # assigned labels, and missed ones, of an example
TEXT_LENGTH = 500  # longer texts are truncated


class RankedLabel(NamedTuple):
    """A label that the model ranks high; `assigned` says whether it reaches the threshold."""

    label: str
    score: float
    right: bool
    assigned: bool


class Mistake(NamedTuple):
    """A row whose top label is wrong.

    row : its number, counted from 0, which is the `position` in a table of suggestions
    id : that of the document, or its label in the index of a data frame; None if it has none but the number
    text : its text or the beginning of it on one line, None if the rows are no texts
    ranked : the top label, and the others that reach the threshold, best first
    missed : true labels that do not reach the threshold
    more : missed labels that are not listed
    """

    row: int
    id: str | None
    text: str | None
    ranked: list[RankedLabel]
    missed: list[str]
    more: int


def documents_of(model: Any, X: Any) -> list[Any] | None:
    """The rows as texts or documents, or None if they are no texts."""
    if not isinstance(model, TextClassifier):
        return None
    return list(text_column(X))


def most_confident(scores: Array, top: Array, wrong: Array, n: int) -> Array:
    """(≤ n,) rows with a wrong top label, the highest scores first.

    The best row of each top label comes before the second best of any, so that the examples differ.

    scores, top : (rows,), the score and the id of the top label
    wrong : (rows,) bool
    """
    rows = np.flatnonzero(wrong)
    rows = rows[np.lexsort((-scores[rows], top[rows]))]
    starts = np.flatnonzero(np.append(True, np.diff(top[rows]) != 0)) if rows.size else rows
    turn = np.arange(len(rows)) - np.repeat(starts, np.diff(np.append(starts, len(rows))))  # 0 is the best
    chosen = rows[np.lexsort((-scores[rows], turn))[:n]]
    return chosen[np.argsort(-scores[chosen], kind="stable")]


def examples(
    rows: Array,
    ids: Array,
    scores: Array,
    truth: csr_matrix,
    *,
    threshold: float,
    name_of: Callable[[int], str],
    documents: Sequence[Any] | None,
    index: Sequence[Any] | None = None,
) -> list[Mistake]:
    """The mistakes of some rows.

    name_of : gives the name of a column of truth;  index : of the data frame that the rows came in
    """
    found = []
    for row in rows.tolist():
        true = set(truth[row].indices.tolist())
        reached = (ids[row] >= 0) & (scores[row] >= threshold)
        listed = [0, *(np.flatnonzero(reached[1:]) + 1).tolist()]
        missed = sorted(true - set(ids[row][reached].tolist()))
        found.append(
            Mistake(
                row,
                _id(row, documents, index),
                None if documents is None else _beginning(getattr(documents[row], "text", documents[row])),
                [
                    RankedLabel(
                        name_of(ids[row, rank]),
                        float(scores[row, rank]),
                        int(ids[row, rank]) in true,
                        bool(reached[rank]),
                    )
                    for rank in listed[:LISTED_LABELS]
                ],
                [name_of(label) for label in missed[:LISTED_LABELS]],
                max(0, len(missed) - LISTED_LABELS),
            )
        )
    return found


def _id(row: int, documents: Sequence[Any] | None, index: Sequence[Any] | None) -> str | None:
    if index is not None:
        return None if str(index[row]) == str(row) else str(index[row])
    return None if documents is None else getattr(documents[row], "id", None)


def _beginning(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= TEXT_LENGTH else f"{text[: TEXT_LENGTH - 1].rstrip()}…"
