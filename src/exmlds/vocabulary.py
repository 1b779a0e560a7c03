"""A vocabulary: concepts with names in several languages, and the relations among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import numpy as np

from .errors import DataError, did_you_mean, some

Array = np.ndarray

PREFERRED, ALTERNATIVE, HIDDEN = range(3)  # kinds of names; a hidden one is only for searching
CURRENT, WITHOUT_REPLACEMENT = -1, -2  # in `Vocabulary.replaced_by`: no deprecated concept, and no successor


class ConceptNames(NamedTuple):
    """All names, concept after concept, and preferred before others.

    texts : (m,) object
    languages : (m,) int16, positions in `Vocabulary.languages`
    kinds : (m,) int8, PREFERRED, ALTERNATIVE or HIDDEN
    starts : (n + 1,) int64, where the names of each concept start
    """

    texts: Array
    languages: Array
    kinds: Array
    starts: Array


class Vocabulary:
    """Concepts with names in several languages, broader and related concepts, and notations.

    `exmlds.data.read_vocabulary` reads one from a file. A concept is given by its id, such as a URI.

    Attributes
    ----------
    ids : (n,) list of the ids of concepts
    languages : codes of the languages of names, such as "en", the main one first; "" is for names without
        a language
    names : all names
    broader, related : (m, 2) int32, positions of a concept and of one that is broader, or related
    notations : notation of each concept that has one, by id
    replaced_by : (n,) int32, CURRENT, WITHOUT_REPLACEMENT, or the position of the concept that replaces a
        deprecated one
    """

    def __init__(
        self,
        ids: Sequence[str],
        languages: Sequence[str],
        names: ConceptNames,
        *,
        broader: Array | None = None,
        related: Array | None = None,
        notations: Mapping[str, str] | None = None,
        replaced_by: Array | None = None,
    ) -> None:
        none = np.zeros((0, 2), np.int32)
        self.ids, self.languages, self.names = list(ids), list(languages), names
        self.broader = none if broader is None else broader
        self.related = none if related is None else related
        self.notations = dict(notations or {})
        self.replaced_by = np.full(len(self.ids), CURRENT, np.int32) if replaced_by is None else replaced_by
        self.position = {id: position for position, id in enumerate(self.ids)}

    @classmethod
    def of_names(cls, names: Mapping[str, str], language: str = "") -> Vocabulary:
        """A vocabulary of concepts with one name each, by id.

        >>> Vocabulary.of_names({"p1": "sea birds"}, "en").name("p1")
        'sea birds'
        """
        n = len(names)
        table = ConceptNames(
            np.array(list(names.values()), object),
            np.zeros(n, np.int16),
            np.full(n, PREFERRED, np.int8),
            np.arange(n + 1),
        )
        return cls(list(names), [language], table)

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, id: object) -> bool:
        return id in self.position

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def __repr__(self) -> str:
        languages = some([code or "no language" for code in self.languages])
        return f"<Vocabulary: {len(self):,} concepts, {len(self.names.texts):,} names ({languages})>"

    def name(self, id: str, language: str | None = None) -> str:
        """The preferred name of a concept; that of the first language where this one has none, or the id.

        >>> words = Vocabulary.of_names({"p1": "sea birds"}, "en")
        >>> words.name("p1"), words.name("p2")
        ('sea birds', 'p2')
        """
        position = self.position.get(id)
        if position is None:
            return id
        own = slice(*self.names.starts[position : position + 2])
        is_preferred = self.names.kinds[own] == PREFERRED
        texts, languages = self.names.texts[own][is_preferred], self.names.languages[own][is_preferred]
        if not len(texts):
            return id
        wanted = None if language is None else self.language_position(language)
        best = np.lexsort((np.arange(len(texts)), languages, languages != wanted))[0]
        return str(texts[best])

    def all_names(self, id: str, language: str | None = None) -> list[str]:
        """All names of a concept, preferred ones first, in one language or in all."""
        own = slice(*self.names.starts[self.position[id] : self.position[id] + 2])
        texts = self.names.texts[own]
        if language is not None:
            texts = texts[self.names.languages[own] == self.language_position(language)]
        return texts.tolist()

    def language_position(self, language: str) -> int:
        if language not in self.languages:
            there = some(sorted(code for code in self.languages if code)) or "none with a language"
            raise DataError(f"The vocabulary has no names in language {language!r}. It has: {there}.")
        return self.languages.index(language)

    def broader_of(self, id: str) -> list[str]:
        return self._related(self.broader, id)

    def narrower_of(self, id: str) -> list[str]:
        return self._related(self.broader[:, ::-1], id)

    def related_to(self, id: str) -> list[str]:
        return sorted({*self._related(self.related, id), *self._related(self.related[:, ::-1], id)})

    def _related(self, pairs: Array, id: str) -> list[str]:
        return [self.ids[other] for other in pairs[pairs[:, 0] == self.position[id], 1].tolist()]

    def is_deprecated(self, id: str) -> bool:
        return bool(self.replaced_by[self.position[id]] != CURRENT)

    def current(self, id: str) -> str | None:
        """The concept itself, or the one that replaces it where it is deprecated, or None if none does.

        >>> words = Vocabulary.of_names({"old": "aeroplane", "new": "airplane"})
        >>> words.replaced_by[0] = 1
        >>> words.current("old"), words.current("new")
        ('new', 'new')
        """
        position, seen = self.position[id], set[int]()
        while (following := int(self.replaced_by[position])) >= 0 and position not in seen:
            seen.add(position)
            position = following
        return self.ids[position] if self.replaced_by[position] == CURRENT else None

    def find_cycle(self) -> list[str]:
        """Concepts each of which is broader than the one before, and the first than the last; or none."""
        graph: dict[int, list[int]] = {}
        for narrow, broad in self.broader.tolist():
            graph.setdefault(narrow, []).append(broad)
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            return [self.ids[position] for position in error.args[1]]
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
        concept_of = np.repeat(np.arange(len(self)), np.diff(self.names.starts))
        for concept, text in zip(concept_of.tolist(), self.names.texts.tolist()):
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
        """The position of a concept, which is added if it is new."""
        return self.positions.setdefault(id, len(self.positions))

    def add_language(self, language: str) -> int:
        """The position of a language, which is added if it is new."""
        return self.languages.setdefault(language, len(self.languages))

    def add_name(self, concept: int, text: str, language: str = "", kind: int = PREFERRED) -> None:
        self.concepts.append(concept)
        self.texts.append(text)
        self.name_languages.append(self.add_language(language))
        self.kinds.append(kind)

    def build(self, kept: Iterable[int] | None = None) -> Vocabulary:
        """The vocabulary of all concepts, or of some of them."""
        ids = list(self.positions)
        numbers = np.arange(len(ids)) if kept is None else np.array(sorted(kept), np.int64)
        new = np.full(len(ids) + 1, -1, np.int64)
        new[numbers] = np.arange(len(numbers))
        concepts = new[np.array(self.concepts, np.int64)]
        languages = np.array(self.name_languages, np.int16)
        kinds = np.array(self.kinds, np.int8)
        order = np.lexsort((languages, kinds, concepts))
        order = order[concepts[order] >= 0]
        texts = np.empty(len(self.texts), object)
        texts[:] = self.texts
        starts = np.searchsorted(concepts[order], np.arange(len(numbers) + 1))
        replaced_by = np.full(len(ids), CURRENT, np.int64)
        for old, current in self.replaced_by.items():
            is_kept = current >= 0 and new[current] >= 0
            replaced_by[old] = new[current] if is_kept else WITHOUT_REPLACEMENT
        kept_ids = [ids[number] for number in numbers.tolist()]
        return Vocabulary(
            kept_ids,
            list(self.languages),
            ConceptNames(texts[order], languages[order], kinds[order], starts),
            broader=_pairs(self.broader, new),
            related=_pairs(self.related, new),
            notations={id: self.notations[id] for id in kept_ids if id in self.notations},
            replaced_by=replaced_by[numbers].astype(np.int32),
        )


def _pairs(pairs: list[tuple[int, int]], new: Array) -> Array:
    """(m, 2) int32, the pairs with the new numbers of concepts, each once."""
    numbers = new[np.array(pairs, np.int64).reshape(-1, 2)]
    return np.unique(numbers[(numbers >= 0).all(axis=1)], axis=0).astype(np.int32)
