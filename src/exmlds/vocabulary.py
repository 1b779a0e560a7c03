"""A vocabulary: concepts with names in several languages, and the relations among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

import numpy as np

from .errors import DataError, did_you_mean, some
from .validation import stored
from .validation.targets import plain_name

Array = np.ndarray

PREFERRED, ALTERNATIVE, HIDDEN = range(3)  # kinds of names; a hidden one is only for searching
CURRENT, WITHOUT_REPLACEMENT = (
    -1,
    -2,
)  # in `VocabularyTables.replaced_by`: no deprecated concept, and no successor


class VocabularyTables(NamedTuple):
    """The arrays of a vocabulary of n concepts with m names, as a model folder holds them.

    ids : (n,) object, the ids of concepts
    languages : (l,) object, codes of the languages of names
    texts : (m,) object, all names, concept after concept, and preferred before others
    name_languages : (m,) int16, positions in `languages`
    kinds : (m,) int8, PREFERRED, ALTERNATIVE or HIDDEN
    starts : (n + 1,) int64, where the names of each concept start
    broader, related : (p, 2) int32, positions of a concept and of one that is broader, or related
    notations : (n,) object, "" where a concept has none
    replaced_by : (n,) int32, CURRENT, WITHOUT_REPLACEMENT, or the position of the concept that replaces a
        deprecated one
    """

    ids: Array
    languages: Array
    texts: Array
    name_languages: Array
    kinds: Array
    starts: Array
    broader: Array
    related: Array
    notations: Array
    replaced_by: Array


def check(tables: Any) -> None:
    """Check the tables of a vocabulary that come from a file."""
    stored.record(tables, "the vocabulary", VocabularyTables)
    n = len(stored.strings(tables.ids, "the ids of concepts", None))
    stored.require(len(set(tables.ids.tolist())) == n, "two concepts of the vocabulary have the same id")
    n_languages = len(stored.strings(tables.languages, "the languages of names", None))
    m = len(stored.strings(tables.texts, "the names of concepts", None))
    stored.ids(tables.name_languages, "the languages of names", m, n_languages, dtypes="int16")
    stored.ids(tables.kinds, "the kinds of names", m, HIDDEN + 1, dtypes="int8")
    stored.offsets(tables.starts, "the names of concepts", n, m)
    for pairs in (tables.broader, tables.related):
        stored.array(pairs, "the relations of concepts", "int32", None, 2)
        stored.ids(pairs.ravel(), "the relations of concepts", None, n, dtypes="int32")
    stored.strings(tables.notations, "the notations of concepts", n)
    stored.ids(tables.replaced_by, "replaced concepts", n, n, low=WITHOUT_REPLACEMENT, dtypes="int32")


class Vocabulary:
    """Concepts with names in several languages, broader and related concepts, and notations.

    `exmlds.data.read_vocabulary` reads one from a file. A concept is given by its id, such as a URI.

    Attributes
    ----------
    ids : the ids of concepts
    languages : codes of the languages of names, such as "en", the main one first; "" is for names without
        a language
    tables : all that the vocabulary holds
    """

    def __init__(self, tables: VocabularyTables) -> None:
        self.tables = tables
        self.ids: list[str] = tables.ids.tolist()
        self.languages: list[str] = tables.languages.tolist()
        self.position = {id: position for position, id in enumerate(self.ids)}

    @classmethod
    def of_names(cls, names: Mapping[str, str], language: str = "") -> Vocabulary:
        """A vocabulary of concepts with one name each, by id.

        >>> Vocabulary.of_names({"p1": "sea birds"}, "en").name("p1")
        'sea birds'
        """
        builder = VocabularyBuilder()
        for id, name in names.items():
            builder.add_name(builder.concept(id), name, language)
        return builder.build()

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, id: object) -> bool:
        return id in self.position

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def __repr__(self) -> str:
        languages = some([code or "no language" for code in self.languages])
        return f"<Vocabulary: {len(self):,} concepts, {len(self.tables.texts):,} names ({languages})>"

    def name(self, id: str, language: str | None = None) -> str:
        """The preferred name of a concept; that of the first language where this one has none, or the id.

        >>> words = Vocabulary.of_names({"p1": "sea birds"}, "en")
        >>> words.name("p1"), words.name("p2")
        ('sea birds', 'p2')
        """
        position = self.position.get(id)
        if position is None:
            return id
        wanted = None if language is None else self.language_position(language)
        own = slice(*self.tables.starts[position : position + 2])
        languages = self.tables.name_languages[own][self.tables.kinds[own] == PREFERRED]
        if not len(languages):
            return id
        # Preferred names come first, in the order of the languages.
        return str(self.tables.texts[own][int(np.argmax(languages == wanted))])

    def all_names(self, id: str, language: str | None = None) -> list[str]:
        """All names of a concept, preferred ones first, in one language or in all."""
        own = slice(*self.tables.starts[self.position[id] : self.position[id] + 2])
        texts = self.tables.texts[own]
        if language is not None:
            texts = texts[self.tables.name_languages[own] == self.language_position(language)]
        return texts.tolist()

    def ids_by_name(self) -> dict[str, str | None]:
        """The concept of each preferred name, without regard to case; None where several have the name."""
        found: dict[str, str | None] = {}
        concept_of = np.repeat(np.arange(len(self)), np.diff(self.tables.starts))
        is_preferred = self.tables.kinds == PREFERRED
        for concept, text in zip(concept_of[is_preferred].tolist(), self.tables.texts[is_preferred].tolist()):
            id, name = self.ids[concept], text.casefold()
            found[name] = id if found.get(name, id) == id else None
        return found

    def language_position(self, language: str) -> int:
        if language not in self.languages:
            there = some(sorted(code for code in self.languages if code)) or "none with a language"
            raise DataError(f"The vocabulary has no names in language {language!r}. It has: {there}.")
        return self.languages.index(language)

    def broader_of(self, id: str) -> list[str]:
        return self._related(self.tables.broader, id)

    def narrower_of(self, id: str) -> list[str]:
        return self._related(self.tables.broader[:, ::-1], id)

    def related_to(self, id: str) -> list[str]:
        return sorted(
            {*self._related(self.tables.related, id), *self._related(self.tables.related[:, ::-1], id)}
        )

    def _related(self, pairs: Array, id: str) -> list[str]:
        return [self.ids[other] for other in pairs[pairs[:, 0] == self.position[id], 1].tolist()]

    def notation(self, id: str) -> str | None:
        """The notation of a concept, such as its number in a classification, or None."""
        return self.tables.notations[self.position[id]] or None

    def is_deprecated(self, id: str) -> bool:
        return bool(self.tables.replaced_by[self.position[id]] != CURRENT)

    def in_use(self) -> set[str]:
        """The concepts that are not deprecated.

        >>> words = Vocabulary.of_names({"old": "aeroplane", "new": "airplane"})
        >>> words.tables.replaced_by[0] = 1
        >>> words.in_use()
        {'new'}
        """
        return set(self.tables.ids[self.tables.replaced_by == CURRENT].tolist())

    def current(self, id: str) -> str | None:
        """The concept itself, or the one that replaces it where it is deprecated, or None if none does.

        >>> words = Vocabulary.of_names({"old": "aeroplane", "new": "airplane"})
        >>> words.tables.replaced_by[0] = 1
        >>> words.current("old"), words.current("new")
        ('new', 'new')
        """
        position, seen = self.position[id], set[int]()
        while (following := int(self.tables.replaced_by[position])) >= 0 and position not in seen:
            seen.add(position)
            position = following
        return self.ids[position] if self.tables.replaced_by[position] == CURRENT else None

    def find_cycle(self) -> list[str]:
        """Concepts, the first again at the end, each of which is broader than the one before; or none."""
        graph: dict[int, list[int]] = {}
        for narrow, broad in self.tables.broader.tolist():
            graph.setdefault(narrow, []).append(broad)
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            return [self.ids[position] for position in reversed(error.args[1])]
        return []

    def search(self, query: str, n: int = 10) -> list[str]:
        """The concepts whose names, in any language, are most like the query: equal, beginning with it, or
        containing it; of these, those with shorter names first.

        >>> words = Vocabulary.of_names({"1": "birds", "2": "sea birds", "3": "fish"})
        >>> words.search("Bird")
        ['1', '2']
        """
        wanted = query.strip().casefold()
        found: dict[int, tuple[int, int]] = {}
        concept_of = np.repeat(np.arange(len(self)), np.diff(self.tables.starts))
        for concept, text in zip(concept_of.tolist(), self.tables.texts.tolist()):
            folded = text.casefold()
            if wanted not in folded:
                continue
            rank = 0 if folded == wanted else 1 if folded.startswith(wanted) else 2
            found[concept] = min(found.get(concept, (9, 0)), (rank, len(text)))
        return [self.ids[concept] for concept in sorted(found, key=lambda one: (found[one], one))[:n]]

    def require(self, id: str) -> int:
        """The position of a concept; an error that names a similar id where there is none."""
        if id not in self.position:
            raise DataError(f"The vocabulary has no concept {id!r}.{did_you_mean(id, self.ids)}")
        return self.position[id]


class VocabularyBuilder:
    """Collects the parts of a vocabulary in any order, as files hold them."""

    def __init__(self) -> None:
        self.positions: dict[str, int] = {}
        self.languages: dict[str, int] = {}
        self.concepts: list[int] = []
        self.texts: list[str] = []
        self.name_languages: list[int] = []
        self.kinds: list[int] = []
        self.broader: list[tuple[int, int]] = []
        self.related: list[tuple[int, int]] = []
        self.notations: dict[str, str] = {}
        self.replaced_by: dict[int, int] = {}

    def concept(self, id: str) -> int:
        """The position of a concept, which is added if it is new; its id is written as labels are."""
        return self.positions.setdefault(plain_name(id), len(self.positions))

    def add_language(self, language: str) -> int:
        """The position of a language, which is added if it is new."""
        return self.languages.setdefault(language, len(self.languages))

    def add_name(self, concept: int, text: str, language: str = "", kind: int = PREFERRED) -> None:
        self.concepts.append(concept)
        self.texts.append(text)
        self.name_languages.append(self.add_language(language))
        self.kinds.append(kind)

    def build(self) -> Vocabulary:
        concepts, kinds = np.array(self.concepts, np.int64), np.array(self.kinds, np.int8)
        languages = np.array(self.name_languages, np.int16)
        order = np.lexsort((languages, kinds, concepts))
        ids = list(self.positions)
        replaced_by = np.full(len(ids), CURRENT, np.int32)
        replaced_by[list(self.replaced_by)] = list(self.replaced_by.values())
        return Vocabulary(
            VocabularyTables(
                _objects(ids),
                _objects(list(self.languages)),
                _objects(self.texts)[order],
                languages[order],
                kinds[order],
                np.searchsorted(concepts[order], np.arange(len(ids) + 1)).astype(np.int64),
                _pairs(self.broader),
                _pairs(self.related),
                _objects([self.notations.get(id, "") for id in ids]),
                replaced_by,
            )
        )


def _objects(values: list[str]) -> Array:
    """(n,) object."""
    found = np.empty(len(values), object)
    found[:] = values
    return found


def _pairs(pairs: list[tuple[int, int]]) -> Array:
    """(m, 2) int32, each pair once."""
    return np.unique(np.array(pairs, np.int32).reshape(-1, 2), axis=0)
