"""The labels of a model as the service shows them: by id, with names in several languages, and searched."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from textwrap import shorten
from typing import Any

from ..models.text import TextClassifier
from .problems import Problem


class Labels:
    """The labels of a model, and the concepts of its vocabulary that are no labels yet.

    Ids are strings, also where the labels of the model are numbers.
    """

    def __init__(self, model: TextClassifier, before: Labels | None = None) -> None:
        """before : the labels of the model before a change, which may be the same ones"""
        self.vocabulary, self.language, self.names = model.vocabulary_, model.language, model.names_
        self.counts: list[int] = model.label_counts_.tolist()
        if before is not None and before.names is self.names is not None:
            self._share(before)
            return
        self.classes: list[Any] = model.classes_.tolist()
        self.columns = {str(label): column for column, label in enumerate(self.classes)}
        self._shown: dict[tuple[str, str | None], str] = {}  # names of labels by language

    def _share(self, before: Labels) -> None:
        """Share what does not depend on the numbers of documents."""
        self.classes, self.columns, self._shown = before.classes, before.columns, before._shown
        if "_searched" in vars(before):
            self._searched = before._searched

    def label(self, id: str) -> Any:
        """The label with this id as the model has it."""
        column = self.columns.get(id)
        if column is None:
            raise unknown(id)
        return self.classes[column]

    def known(self, id: str) -> Any:
        """The label with this id as the model has it; another id, such as that of a new label, as it is."""
        column = self.columns.get(id)
        return id if column is None else self.classes[column]

    def count(self, id: str) -> int:
        column = self.columns.get(id)
        return 0 if column is None else self.counts[column]

    def check_language(self, language: str | None) -> None:
        if language is None or (self.vocabulary and language in self.vocabulary.languages):
            return
        there = ", ".join(self.languages) or "none, because it has no vocabulary with languages"
        raise Problem("unknown-language", f"Leave out the language, or choose one of the model: {there}.")

    @property
    def languages(self) -> list[str]:
        """The languages of names, the one in which labels are named by default first."""
        codes = [] if self.vocabulary is None else [code for code in self.vocabulary.languages if code]
        return sorted(codes, key=lambda code: code != self.language)

    def name(self, id: str, language: str | None = None) -> str:
        """The name of a label in a language, or in the language of the model."""
        if self.vocabulary is None:
            return id
        key = id, language or self.language
        if key not in self._shown:
            self._shown[key] = self.vocabulary.name(*key)
        return self._shown[key]

    def notation(self, id: str) -> str | None:
        known = self.vocabulary is not None and id in self.vocabulary
        return self.vocabulary.notation(id) if known else None  # type: ignore[union-attr]

    def short(self, label: Hashable, language: str | None = None) -> dict[str, Any]:
        id = str(label)
        return {"id": id, "label": self.name(id, language)}

    def suggestion(self, column: int, score: float, language: str | None) -> dict[str, Any]:
        shown = self.short(self.classes[column], language)
        return {**shown, "notation": self.notation(shown["id"]), "score": score}

    def described(self, id: str, language: str | None = None) -> dict[str, Any]:
        return {**self.short(id, language), "notation": self.notation(id), "count": self.count(id)}

    def found(self, id: str, language: str | None = None) -> dict[str, Any]:
        """A label with its other names, in the language or in all."""
        names: list[str] = []
        if self.vocabulary is not None and id in self.vocabulary:
            names = self.vocabulary.all_names(id, language)
        shown = self.described(id, language)
        others = dict.fromkeys(name for name in names if name != shown["label"])
        return {**shown, "alternatives": list(others)}

    def search(self, query: str, n: int) -> list[str]:
        """The labels with a name, in any language, or an id that holds the query.

        Equal ones come first, then those that begin with it, then those with a word that does; among these,
        labels with more documents. An empty query finds the labels with most documents.
        """
        wanted = query.strip().casefold()
        if not wanted:
            return self._by_count[:n]
        inside, best = f" {wanted}", dict[str, int]()
        for name, id in self._searched:
            if wanted in name:
                rank = 0 if name == wanted else 1 if name.startswith(wanted) else 2 if inside in name else 3
                best[id] = min(rank, best.get(id, rank))
        return sorted(best, key=lambda id: (best[id], -self.count(id), len(self.name(id))))[:n]

    @cached_property
    def _by_count(self) -> list[str]:
        return sorted(self.columns, key=lambda id: -self.count(id))

    @cached_property
    def _searched(self) -> list[tuple[str, str]]:
        """All names and ids in lower case, with the ids of their labels."""
        found = [(id.casefold(), id) for id in self.columns]
        if self.vocabulary is None:
            return found
        for id in self.vocabulary:
            if id in self.columns or not self.vocabulary.is_deprecated(id):
                found += [(name.casefold(), id) for name in self.vocabulary.all_names(id)]
        return found


def unknown(id: str) -> Problem:
    shown = shorten(id, 100, placeholder="…")
    return Problem(
        "unknown-label", f"There is no label {shown!r}. /v1/labels?search= finds the ids of labels."
    )
