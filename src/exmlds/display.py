"""Text from data files that is safe to show: control characters as escapes, and tables for notebooks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Any

# The control characters C0, delete and C1, those that change the writing direction, line separators, and
# halves of surrogate pairs, which no encoding can write.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(text: str) -> str:
    r"""Escape the control characters of a text, so that a file cannot control a terminal or a page.

    >>> harmless("a\x1b[2Jb\n")
    'a\\x1b[2Jb\\n'
    """
    return _CONTROLS.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def html(text: str) -> str:
    """Escape a text for HTML, its control characters included."""
    return escape(harmless(text))


def html_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> str:
    """A small table for a notebook; the first column has names, numbers are right-aligned. All is escaped."""
    heads = "".join(f'<th scope="col">{html(name)}</th>' for name in columns)
    body = "".join(
        f'<tr><th scope="row" style="text-align:left">{html(name)}</th>'
        + "".join(f'<td style="text-align:{_side(cell)}">{html(cell)}</td>' for cell in cells)
        + "</tr>"
        for name, *cells in rows
    )
    caption = f'<caption style="text-align:left">{html(title)}</caption>' if title else ""
    below = f"<p>{html(note)}</p>" if note else ""
    return f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{below}"


def _side(cell: str) -> str:
    return "right" if re.fullmatch(r"[-+−]?[\d.,]+ ?%?", cell) else "left"


class Tables(list[Any]):
    """A list of things that a notebook shows one below the other."""

    def _repr_html_(self) -> str:
        return "".join(item._repr_html_() for item in self)
