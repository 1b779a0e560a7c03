"""Printing: tables for people, JSON for programs, and text that is safe for a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from ..display import harmless

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def print_json(value: Any) -> None:
    json.dump(value, sys.stdout, ensure_ascii=False, indent=1)
    sys.stdout.write("\n")


def say(line: str) -> None:
    """Print a line for people."""
    print(harmless(line))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str | None = None) -> None:
    """Print a table; columns of numbers are right-aligned, and whole numbers are grouped by thousands."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    cells = [[harmless(f"{cell:,}" if type(cell) is int else str(cell)) for cell in row] for row in rows]
    for i, column in enumerate(columns):
        numbers = all((row[i].lstrip("+-") or "0")[0].isdigit() for row in cells)
        table.add_column(Text(harmless(column)), justify="right" if numbers else "left", overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    console = Console(highlight=False)
    if not console.is_terminal:  # nothing wraps in a pipe
        console = Console(highlight=False, width=1000)
    console.print(table)
    console.print()


def escaped(name: str) -> str:
    r"""Escape a name for a line of tab-separated cells.

    >>> escaped("C:\temp\tand more")
    'C:\\temp\\tand more'
    """
    return harmless(name.translate(_ESCAPES))


def percent(share: float) -> str:
    return f"{100 * share:.2f}"


def size(n_bytes: int) -> str:
    """
    >>> size(2_500_000)
    '2.5 MB'
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000 or unit == "GB":
            break
        n_bytes /= 1000  # type: ignore[assignment]
    return f"{n_bytes:.0f} {unit}" if unit == "bytes" else f"{n_bytes:.1f} {unit}"


def named(text: str, id: str | None) -> str:
    """A text on one line, after its id if it has one.

    >>> named("one two", "a.txt"), named("one two", None)
    ('a.txt: one two', 'one two')
    """
    return short(text) if id is None else f"{id}: {short(text)}"


def short(text: str, most: int = 60) -> str:
    """Put a text on one line, and truncate it to `most` characters.

    >>> short("one two three", 8)
    'one two…'
    """
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
