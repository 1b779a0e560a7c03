"""Labels of training data as concepts of a vocabulary, their names, and what they have in common."""

from __future__ import annotations

import warnings
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from ..errors import DataWarning, some
from ..validation.targets import plain_name
from ..vocabulary import CURRENT, Vocabulary
from . import languages
from .name_matcher import SUBDIVISION, LabelName

NAMED = 5  # concepts in a warning


def ids_of_names(labels: Iterable[Any], vocabulary: Vocabulary) -> dict[Any, Any]:
    """The concept of each label that is a preferred name; other labels are given as they are."""
    by_name: dict[str, str | None] = {}

    def id_of(label: Any) -> Any:
        if not isinstance(label, str):
            return label
        id = plain_name(label)
        if id in vocabulary:
            return id
        if not by_name:
            by_name.update(vocabulary.ids_by_name())
        return by_name.get(id.casefold()) or id

    return {label: id_of(label) for label in labels}


def current_concepts(labels: Iterable[Any], vocabulary: Vocabulary) -> dict[Any, Any]:
    """The concept of each label, by its id or preferred name, or the one that replaces it."""
    ids = ids_of_names(labels, vocabulary)
    return {label: (id in vocabulary and vocabulary.current(id)) or id for label, id in ids.items()}


def as_concepts(labels: Iterable[Any], vocabulary: Vocabulary) -> list[list[Any]]:
    """The labels of each row as ids of concepts.

    A preferred name stands for its concept, and a deprecated concept for the one that replaces it. Labels
    that the vocabulary does not know stay as they are, and empty ones are dropped. What was changed or is
    unknown is counted in a warning.
    """
    replaced, retired, unknown = Counter[str](), Counter[str](), Counter[str]()
    rows = [[row] if isinstance(row, str) else row if isinstance(row, list) else list(row) for row in labels]
    in_use = vocabulary.in_use()
    others = [label for label in dict.fromkeys(chain.from_iterable(rows)) if label not in in_use]
    if not others:
        return rows
    found = current_concepts(others, vocabulary)
    problems: dict[Any, Counter[str]] = {}
    for label, now in found.items():
        if now == "":
            continue
        if now not in vocabulary:
            problems[label] = unknown
        elif vocabulary.is_deprecated(now):
            problems[label] = retired
        elif label in vocabulary and now != label:
            problems[label] = replaced
    if problems:
        for label in chain.from_iterable(rows):
            if label in problems:
                problems[label][str(label)] += 1
    _warn(unknown, "are not in the vocabulary; they are kept as they are")
    _warn(replaced, "are deprecated concepts; those that replace them are learnt instead")
    _warn(retired, "are deprecated concepts that nothing replaces; they are kept as they are")
    if all(now == label and now != "" for label, now in found.items()):
        return rows
    return [
        [now for now in dict.fromkeys(found.get(label, label) for label in row) if now != ""] for row in rows
    ]


def _warn(counts: Counter[str], problem: str) -> None:
    if counts:
        most = [f"{label} ({n:,})" for label, n in counts.most_common(NAMED + 1)]
        warnings.warn(
            f"{len(counts):,} labels of the training data, {counts.total():,} entries, {problem}: "
            f"{some(most, NAMED)}.",
            DataWarning,
            stacklevel=4,
        )


def all_labels(labels: Iterable[Iterable[Any]], vocabulary: Vocabulary) -> list[str] | None:
    """The labels of training data and all concepts of the vocabulary that are in use, in one order.

    It is None where labels are not strings, which no concept is.
    """
    own = set(chain.from_iterable(labels))
    if not all(isinstance(label, str) for label in own):
        return None
    return sorted(own | vocabulary.in_use())


class LabelNames:
    """The names of labels, and what they have in common, by a vocabulary.

    labels : (L,) ids of concepts, and others, in the order of the columns
    text_languages : those of the texts, such as "english", in which names without a language may be
    """

    def __init__(
        self, labels: Sequence[str], vocabulary: Vocabulary, text_languages: Sequence[str] = ()
    ) -> None:
        self.labels, self.vocabulary, self.text_languages = labels, vocabulary, text_languages
        self.columns = {label: column for column, label in enumerate(labels)}

    def names(self) -> Iterator[LabelName]:
        """All names of all labels, in all languages.

        The names of a deprecated concept are names of the one that replaces it.
        """
        tables = self.vocabulary.tables
        stemmings, starts = list(map(self._stemmings, tables.languages.tolist())), tables.starts.tolist()
        texts, of_names = tables.texts.tolist(), tables.name_languages.tolist()
        is_deprecated = (tables.replaced_by != CURRENT).tolist()
        for position, id in enumerate(self.vocabulary.ids):
            current = self.vocabulary.current(id) if is_deprecated[position] else None
            column = self.columns.get(current or id)
            if column is not None:
                for at in range(starts[position], starts[position + 1]):
                    for language in stemmings[of_names[at]]:
                        yield LabelName(column, texts[at], language)

    def _stemmings(self, code: str) -> Sequence[str]:
        """The languages whose stemmers are used for names in a language; [""] where there is none."""
        known = languages.BY_CODE.get(code.partition("-")[0].lower())
        return [known] if known else [""] if code else self.text_languages or [""]

    def attributes(self) -> list[csr_matrix]:
        """(L, A) csr of ones for each kind of attributes that labels share; none where they share nothing.

        The kinds are broader concepts with subdivisions of headings, and headings. A concept that others are
        narrower than has itself as an attribute too.
        """
        tables = self.vocabulary.tables
        shared, headings = _Attributes(self.columns), _Attributes(self.columns)
        ids, texts = self.vocabulary.ids, tables.texts.tolist()
        for narrow, broad in tables.broader.tolist():
            shared.add(ids[narrow], broad)
            shared.add(ids[broad], broad)
        has_subdivisions = False
        starts = tables.starts.tolist()
        for start, end, id in zip(starts, starts[1:], ids):
            if start < end:  # the first name is a preferred one
                heading, *subdivisions = map(str.strip, texts[start].split(SUBDIVISION))
                headings.add(id, heading)
                for subdivision in subdivisions:
                    shared.add(id, subdivision)
                    has_subdivisions = True
        kinds = [shared, headings] if has_subdivisions else [shared]
        return [kind.matrix() for kind in kinds if kind.numbers]


class _Attributes:
    """Attributes of one kind: names, or positions of concepts, and the labels that have them."""

    def __init__(self, columns: Mapping[str, int]) -> None:
        self.columns = columns
        self.numbers: dict[str | int, int] = {}
        self.rows, self.own = array("q"), array("q")

    def add(self, label: str, attribute: str | int) -> None:
        if label in self.columns:
            self.rows.append(self.columns[label])
            self.own.append(self.numbers.setdefault(attribute, len(self.numbers)))

    def matrix(self) -> csr_matrix:
        """(L, A) csr of ones."""
        shape = len(self.columns), len(self.numbers)
        found = csr_matrix((np.ones(len(self.rows), np.float32), (self.rows, self.own)), shape)
        found.data[:] = 1  # a label may have an attribute twice
        return found
