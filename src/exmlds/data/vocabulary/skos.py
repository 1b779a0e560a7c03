"""Vocabularies in SKOS, parsed by pyoxigraph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from ...errors import DataError
from ...runtime import progress
from ...storage.files import bytes_read, reading
from ...validation.targets import plain_name
from ...vocabulary import ALTERNATIVE, HIDDEN, PREFERRED, WITHOUT_REPLACEMENT, VocabularyBuilder

SKOS = "http://www.w3.org/2004/02/skos/core#"
XL = "http://www.w3.org/2008/05/skos-xl#"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
DEPRECATED = "http://www.w3.org/2002/07/owl#deprecated"
REPLACED_BY = "http://purl.org/dc/terms/isReplacedBy"
KINDS = {"prefLabel": PREFERRED, "altLabel": ALTERNATIVE, "hiddenLabel": HIDDEN}
NAME_KINDS = {SKOS + name: kind for name, kind in KINDS.items()}
XL_KINDS = {XL + name: kind for name, kind in KINDS.items()}


def read_turtle(path: Path, builder: VocabularyBuilder, language: str) -> None:
    _read(path, builder, language, "TURTLE")


def read_rdfxml(path: Path, builder: VocabularyBuilder, language: str) -> None:
    _read(path, builder, language, "RDF_XML")


def read_ntriples(path: Path, builder: VocabularyBuilder, language: str) -> None:
    _read(path, builder, language, "N_TRIPLES")


def _read(path: Path, builder: VocabularyBuilder, language: str, format: str) -> None:
    """Add the concepts of a file; what has the type of a concept, or is one in a relation, is one."""
    found = _Concepts(language)
    for triple in _triples(path, format):
        found.add(triple.subject, triple.predicate.value, triple.object)
    if not found.concepts:
        raise DataError(f"{path}: holds no concept of SKOS (skos:Concept); is it a vocabulary?")
    found.move_to(builder)


class _Concepts:
    """The triples about names and relations, kept until it is known which subjects are concepts."""

    def __init__(self, language: str) -> None:
        self.language = language
        self.concepts: dict[str, None] = {}
        self.names: list[tuple[str, int, str, str]] = []
        self.xl_names: list[tuple[str, int, str]] = []
        self.xl_forms: dict[str, tuple[str, str]] = {}
        self.links: dict[str, list[tuple[str, str]]] = {"broader": [], "narrower": [], "related": []}
        self.notations: dict[str, str] = {}
        self.deprecated: dict[str, None] = {}
        self.replaced_by: dict[str, str] = {}

    def add(self, subject: Any, predicate: str, value: Any) -> None:
        id = subject.value
        if predicate in NAME_KINDS:
            self.names.append((id, NAME_KINDS[predicate], *self._literal(value)))
        elif predicate == TYPE:
            if value.value == SKOS + "Concept":
                self.concepts[id] = None
        elif predicate in XL_KINDS:
            self.xl_names.append((id, XL_KINDS[predicate], value.value))
        elif predicate == XL + "literalForm":
            self.xl_forms[id] = self._literal(value)
        elif predicate.startswith(SKOS) and predicate[len(SKOS) :] in self.links:
            self.links[predicate[len(SKOS) :]].append((id, value.value))
        elif predicate == SKOS + "notation":
            self.notations.setdefault(id, plain_name(value.value))
        elif predicate == DEPRECATED:
            if value.value in ("true", "1"):
                self.deprecated[id] = None
        elif predicate == REPLACED_BY:
            self.replaced_by[id] = value.value

    def _literal(self, value: Any) -> tuple[str, str]:
        return plain_name(value.value), getattr(value, "language", None) or self.language

    def move_to(self, builder: VocabularyBuilder) -> None:
        """Add the names and relations of concepts to a vocabulary."""
        for id in self.concepts:
            builder.concept(id)
        names = self.names + [
            (id, kind, *self.xl_forms[form]) for id, kind, form in self.xl_names if form in self.xl_forms
        ]
        # The order of triples means nothing, so the language with most names is the main one.
        for language, _ in Counter(language for _, _, _, language in names).most_common():
            builder.add_language(language)
        preferred: set[tuple[str, str]] = set()
        for id, kind, text, language in names:
            if id not in self.concepts or not text:
                continue
            # A concept has one preferred name in a language; further ones are alternatives.
            if kind == PREFERRED and (id, language) in preferred:
                kind = ALTERNATIVE
            elif kind == PREFERRED:
                preferred.add((id, language))
            builder.add_name(builder.concept(id), text, language, kind)
        for relation, pairs in self.links.items():
            target = builder.related if relation == "related" else builder.broader
            for id, other in pairs:
                if id in self.concepts and other in self.concepts:
                    pair = builder.concept(id), builder.concept(other)
                    target.append(pair[::-1] if relation == "narrower" else pair)
        builder.notations |= {id: text for id, text in self.notations.items() if id in self.concepts}
        for id in {**self.deprecated, **self.replaced_by}:
            if id in self.concepts:
                new = self.replaced_by.get(id)
                is_known = new in self.concepts
                builder.replaced_by[builder.concept(id)] = (
                    builder.concept(str(new)) if is_known else WITHOUT_REPLACEMENT
                )


class _Counted:
    """A file that reports how many bytes of it, on disk, have been read."""

    def __init__(self, file: IO[bytes], advance: progress.Advance) -> None:
        self.file, self.advance, self.reported = file, advance, 0

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(size)
        now = bytes_read(self.file)
        self.advance(now - self.reported)
        self.reported = now
        return data


def _triples(path: Path, format: str) -> Iterator[Any]:
    """The triples of a file, one by one."""
    try:
        oxigraph = import_module("pyoxigraph")
    except ImportError:
        raise DataError(f'{path}: SKOS needs pyoxigraph. Install it: pip install "exmlds[skos]".') from None
    rdf_format = getattr(oxigraph.RdfFormat, format)
    with (
        reading(path) as file,
        progress.stage("reading the vocabulary", path.stat().st_size, "bytes") as advance,
    ):
        try:
            yield from oxigraph.parse(
                _Counted(file, advance), format=rdf_format, base_iri=f"file:///{path.name}"
            )
        except SyntaxError as error:
            where = f"{path}:{error.lineno}" if error.lineno else str(path)
            raise DataError(f"{where}: not valid {format.title().replace('_', '/')} ({error.msg}).") from None
        except ValueError as error:
            raise DataError(f"{path}: cannot be read as {format.title()} ({error}).") from None
