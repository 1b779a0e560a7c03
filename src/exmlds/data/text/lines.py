"""Readers of the formats without named fields: a document is a line, or the whole file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ...errors import DataError
from .documents import (
    URI,
    Document,
    ReadOptions,
    bare,
    bare_uri,
    count,
    filled,
    lines_of,
    unique,
    whole_text,
)


def read_document(path: Path, options: ReadOptions) -> Iterator[Document]:
    yield Document(whole_text(path, options.decoder), [], str(path), path.name)


def read_lines(path: Path, options: ReadOptions) -> Iterator[Document]:
    for where, line in lines_of(path, options.decoder):
        yield Document(bare(line), [], where)


def read_fasttext(path: Path, options: ReadOptions) -> Iterator[Document]:
    """Read fastText lines. As in fastText, a word with the prefix is a label anywhere in the line."""
    prefix, escaped = options.label_prefix, re.escape(options.label_prefix)
    # The pattern starts with the prefix, which makes the search fast; the look-behind then rejects a prefix
    # in the middle of a word.
    label = re.compile(rf"{escaped}(?<![^ \t]{escaped})([^ \t]*)[ \t]*")
    for where, line in lines_of(path, options.decoder):
        line = bare(line)
        names: list[str] = []
        if prefix in line:
            names = label.findall(line)
            line = label.sub("", line).strip(" \t") if names else line
        yield Document(line, unique(names) if options.labelled else [], where)


def read_libmultilabel(path: Path, options: ReadOptions) -> Iterator[Document]:
    n_cells = 0
    for where, line in filled(path, options.decoder):
        cells = line.split("\t")
        n_cells = n_cells or len(cells)
        if len(cells) != n_cells or n_cells not in (2, 3):
            wanted = f"{n_cells} cells, as the first line" if n_cells in (2, 3) else "2 or 3 cells"
            raise DataError(
                f"{where}: got {count(cells)} instead of {wanted}. "
                "A line is `id<TAB>label label<TAB>text` or `label label<TAB>text`, without other tabs."
            )
        names = cells[-2].split(options.label_separator or " ") if options.labelled else []
        yield Document(cells[-1], unique(names), where, cells[0].strip() if n_cells == 3 else None)


def read_annif_tsv(path: Path, options: ReadOptions) -> Iterator[Document]:
    for where, line in filled(path, options.decoder):
        text, tab, uris = line.partition("\t")
        if options.labelled and not tab:
            raise DataError(f"{where}: there is no tab. A line is `text<TAB><uri> <uri>`.")
        words = uris.split()
        if "\t" in uris:
            for word in words:
                if not URI.fullmatch(word):
                    raise DataError(
                        f"{where}: {word!r} follows a tab and is not a URI. "
                        "A line is `text<TAB><uri> <uri>`, without other tabs."
                    )
        yield Document(text, unique(map(bare_uri, words)) if options.labelled else [], where)
