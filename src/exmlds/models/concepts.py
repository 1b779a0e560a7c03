"""Labels of training data as concepts of a vocabulary."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable
from typing import Any

from ..errors import DataWarning, some
from ..validation.targets import plain_name
from ..vocabulary import Vocabulary

NAMED = 5  # concepts in a warning


def as_concepts(labels: Iterable[Any], vocabulary: Vocabulary) -> list[list[Any]]:
    """The labels of each row as ids of concepts.

    A preferred name stands for its concept, and a deprecated concept for the one that replaces it. Labels
    that the vocabulary does not know stay as they are. What was changed or is unknown is counted in a
    warning.
    """
    found: dict[Any, Any] = {}
    by_name: dict[str, str | None] = {}
    replaced, retired, unknown = Counter[str](), Counter[str](), Counter[str]()

    def concept(label: Any) -> Any:
        if not isinstance(label, str):
            return label
        id = plain_name(label)
        if id not in vocabulary:
            if not by_name:
                by_name.update(vocabulary.ids_by_name())
            id = by_name.get(id.casefold()) or id
        return id if id not in vocabulary else vocabulary.current(id) or id

    rows = []
    for row in labels:
        own = [row] if isinstance(row, str) else list(row)
        for label in own:
            if label not in found:
                found[label] = concept(label)
            text = str(label)
            if found[label] not in vocabulary:
                unknown[text] += 1
            elif vocabulary.is_deprecated(found[label]):
                retired[text] += 1
            elif text in vocabulary and found[label] != text:
                replaced[text] += 1
        rows.append(list(dict.fromkeys(found[label] for label in own)))
    _warn(unknown, "are not in the vocabulary; they are kept as they are")
    _warn(replaced, "are deprecated concepts; those that replace them are learnt instead")
    _warn(retired, "are deprecated concepts that nothing replaces; they are kept as they are")
    return rows


def _warn(counts: Counter[str], problem: str) -> None:
    if counts:
        most = [f"{label} ({n:,})" for label, n in counts.most_common(NAMED + 1)]
        warnings.warn(
            f"{len(counts):,} labels of the training data, {counts.total():,} entries, {problem}: "
            f"{some(most, NAMED)}.",
            DataWarning,
            stacklevel=4,
        )
