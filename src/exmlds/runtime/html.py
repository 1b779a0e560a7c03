"""Small tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any
from unicodedata import category


def visible(text: object) -> str:
    """A text whose control characters, also those that turn the direction of writing, are seen as escapes.

    >>> visible("tab\\tand bell\\a")
    'tab\\\\tand bell\\\\x07'
    """
    return "".join(c if c.isprintable() or category(c) == "Zs" else repr(c)[1:-1] for c in str(text))


def table(header: Sequence[str], rows: Iterable[Iterable[Any]], caption: str = "") -> str:
    """A table in HTML; the first cell of a row is its heading, and every cell is escaped."""
    lines = ["".join(f"<th>{escape(visible(name))}</th>" for name in header)]
    for first, *others in rows:
        cells = "".join(f"<td>{escape(visible(cell))}</td>" for cell in others)
        lines.append(f"<th>{escape(visible(first))}</th>{cells}")
    title = f"<caption>{escape(visible(caption))}</caption>" if caption else ""
    return f"<table>{title}{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


class Tables(list[Any]):
    """A list of things that a notebook shows one below the other."""

    def _repr_html_(self) -> str:
        return "".join(item._repr_html_() for item in self)
