"""Readers of vocabularies.

    skos    Turtle, RDF/XML or N-Triples; needs pip install "exmlds[skos]"
    tsv     <uri><TAB>name[<TAB>notation] per line, as Annif has them
    csv     a header with uri, label_en, label_fi, …, and notation, as Annif has them
    list    one name per line, which is the id of the concept too

Files are UTF-8, plain or gzipped, and the format is detected from the content.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from ...errors import Argument, DataError, DataWarning, some
from ...storage.files import PathLike, reading
from ...vocabulary import Vocabulary, VocabularyBuilder
from . import skos, tables

__all__ = ["Vocabulary", "read_vocabulary"]

READERS: dict[str, Callable[[Path, VocabularyBuilder, str], None]] = {
    "turtle": skos.read_turtle,
    "rdfxml": skos.read_rdfxml,
    "ntriples": skos.read_ntriples,
    "tsv": tables.read_tsv,
    "csv": tables.read_csv,
    "list": tables.read_list,
}
START = 1 << 14  # bytes by which a format is detected
MOST_NAMED = 6  # concepts of a cycle in the warning
LANGUAGE_IN_NAME = re.compile(r"[-_.]([a-z]{2,3})\.(?:tsv|csv|txt)(?:\.gz)?$")


def read_vocabulary(
    path: PathLike | Sequence[PathLike], *, language: str | None = None, format: str | None = None
) -> Vocabulary:
    """Read a vocabulary from a file, or from several, such as one for each language.

    Parameters
    ----------
    path : a file or a list of files; the names of a concept are collected from all of them
    language : the language of names that have none, such as "en". By default it is the ending of the file
        name, as in "yso-en.tsv"
    format : one of those above, where it is not detected; "turtle", "rdfxml" or "ntriples" for SKOS

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "birds-en.tsv"
    >>> _ = path.write_text("<urn:1>\\tsea birds\\n<urn:2>\\tgulls\\n")
    >>> birds = read_vocabulary(path)
    >>> birds.name("urn:2"), birds.languages
    ('gulls', ['en'])
    """
    if format is not None and format not in READERS:
        message = "{format} must be one of {known}. Got {got!r} instead."
        raise DataError(message, format=Argument("format"), known=some(list(READERS)), got=format)
    builder = VocabularyBuilder()
    paths = [path] if isinstance(path, (str, Path)) or not isinstance(path, Sequence) else path
    for file in map(Path, paths):
        found = LANGUAGE_IN_NAME.search(file.name)
        own_language = language if language is not None else found[1] if found else ""
        READERS[format or detect_format(file)](file, builder, own_language)
    vocabulary = builder.build()
    if cycle := vocabulary.find_cycle():
        named = " → ".join(f"{vocabulary.name(id)} ({id})" for id in cycle[:MOST_NAMED])
        named += " → …" * (len(cycle) > MOST_NAMED)
        warnings.warn(
            f"{some([str(file) for file in paths])}: broader concepts form a cycle, in which each is "
            f"narrower than the next: {named}. The relations are used as they are; remove one of them.",
            DataWarning,
            stacklevel=2,
        )
    return vocabulary


def detect_format(path: Path) -> str:
    """The format of a vocabulary, by its first bytes."""
    with reading(path) as file:
        start = file.read(START)
    if not start.strip():
        raise DataError(f"{path} is empty; a vocabulary has at least one concept.")
    text = start.decode("utf-8-sig", errors="replace").lstrip()
    first = text.splitlines()[0]
    if re.match(r"<\?xml|<rdf:RDF|<!DOCTYPE", text):
        return "rdfxml"
    if re.match(r"@prefix|@base|(?i:prefix|base)\s|#", text):
        return "turtle"
    if re.match(r"<[^>]*>\s+<[^>]*>\s", first):
        return "ntriples" if first.rstrip().endswith(".") else "turtle"
    if "\t" in first:
        return "tsv"
    return "csv" if tables.is_csv_header(first) else "list"
