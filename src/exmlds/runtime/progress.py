"""Progress bars of long stages.

Nothing is shown by default. Inside `shown()`, a stage has a bar on the terminal, and none in a pipe. A stage
nested in another has no bar of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

_bars: ContextVar[Progress | None] = ContextVar("exmlds_progress", default=None)

Advance = Callable[[int], None]


@contextmanager
def stage(name: str, total: int | None, unit: str = "rows") -> Iterator[Advance]:
    """Start a stage of `total` units; it yields a function to call with the number of units just done."""
    bars = _bars.get()
    if bars is None or bars.tasks:
        yield _ignore
        return
    task = bars.add_task(name, total=total, unit=unit)
    try:
        yield lambda done: bars.advance(task, done)
    finally:
        bars.remove_task(task)


def _ignore(done: int) -> None:
    return None


@contextmanager
def shown(on: bool = True) -> Iterator[None]:
    """Show the stages inside the `with` block as bars on stderr, if stderr is a terminal."""
    if not on or _bars.get() is not None:
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        token = _bars.set(bars)
        try:
            yield
        finally:
            _bars.reset(token)
