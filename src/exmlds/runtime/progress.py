"""Progress of long work: one bar for the whole of it, with the names of its phases.

Work is a tree of phases; its leaves are stages that count units, such as rows. Each part fills a share of
the phase around it. Nothing is shown by default. Inside `shown()` the outermost part has a bar, on a terminal
or in a notebook; elsewhere a line is written every `SECONDS_BETWEEN_LINES`, so short work is quiet in a pipe.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from threading import Lock
from typing import Any, Protocol

from .logs import logger

SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_UPDATES = 0.1
SECONDS_BEFORE_A_BAR = 0.5  # in a notebook, where what was shown stays

Advance = Callable[[int], None]


def _ignore(done: int) -> None:
    return None


class _Part:
    """A phase or a stage, and the share of the whole, from `start` to `end`, that it fills."""

    def __init__(self, name: str, start: float, end: float, total: int | None = None, unit: str = "") -> None:
        self.name, self.start, self.end, self.total, self.unit = name, start, end, total, unit
        self.position, self.done = start, 0

    def child_end(self, until: float | None) -> float:
        """Where the next part within this one ends: half of the rest where its share is not known."""
        if until is None:
            return (self.position + self.end) / 2
        return self.start + until * (self.end - self.start)

    def counted(self) -> str:
        if not self.unit:
            return ""
        return f"{self.done:,}{f'/{self.total:,}' if self.total else ''} {self.unit}"


class _Display(Protocol):
    """Where progress is shown."""

    def update(self, fraction: float | None, text: str) -> None: ...

    def close(self, text: str | None) -> None: ...


class _Work:
    """The parts that are open, from the whole to the innermost one."""

    def __init__(self, make_display: Callable[[], _Display]) -> None:
        self.make_display, self.lock, self.parts = make_display, Lock(), list[_Part]()

    def open(self, part: _Part) -> None:
        if not self.parts:
            self.display, self.started, self.shown_at = self.make_display(), time.perf_counter(), 0.0
        self.parts.append(part)
        self.show()

    def close(self, done: str | None) -> None:
        part = self.parts.pop()
        if self.parts:
            self.parts[-1].position = part.end
        else:
            self.display.close(done and f"{done} in {duration(time.perf_counter() - self.started)}")

    def advance(self, part: _Part, done: int) -> None:
        with self.lock:
            part.done += done
            if part.total:
                part.position = part.start + min(1.0, part.done / part.total) * (part.end - part.start)
            self.show()

    def show(self) -> None:
        now = time.perf_counter()
        if now - self.shown_at < SECONDS_BETWEEN_UPDATES:
            return
        self.shown_at = now
        last = self.parts[-1]
        is_known = len(self.parts) > 1 or last.total is not None or not last.unit
        names = ": ".join(dict.fromkeys(part.name for part in (self.parts[0], *self.parts[-2:])))
        left = time_left(last.position, now - self.started) if is_known else ""
        self.display.update(
            last.position if is_known else None, " · ".join(filter(None, (names, last.counted(), left)))
        )


_work: ContextVar[_Work | None] = ContextVar("exmlds_progress", default=None)


@contextmanager
def phase(name: str, n_rows: int, until: float | None = None) -> Iterator[None]:
    """A part of a fit, which is logged with its time.

    until : the share of the phase around it that is done when this one is
    """
    started, work = time.perf_counter(), _work.get()
    if work is None:
        yield
    else:
        outer = work.parts[-1] if work.parts else None
        work.open(_Part(name, outer.position, outer.child_end(until)) if outer else _Part(name, 0.0, 1.0))
        is_done = False
        try:
            yield
            is_done = True
        finally:
            work.close(f"{name}: {n_rows:,} rows" if is_done else None)
    logger.info("%s: %d rows in %.2f s", name, n_rows, time.perf_counter() - started)


@contextmanager
def stage(name: str, total: int | None, unit: str = "rows", until: float | None = None) -> Iterator[Advance]:
    """Start a stage of `total` units; it yields a function to call with the number of units just done.

    A stage within a stage is not shown.

    until : the share of the phase around it that is done when this one is
    """
    work = _work.get()
    if work is None or (work.parts and work.parts[-1].unit):
        yield _ignore
        return
    outer = work.parts[-1] if work.parts else _Part("", 0.0, 1.0)
    part = _Part(name, outer.position, outer.child_end(until) if work.parts else 1.0, total, unit)
    work.open(part)
    try:
        yield lambda done: work.advance(part, done)
    finally:
        work.close(None)


@contextmanager
def shown(on: bool = True) -> Iterator[None]:
    """Show the progress of what runs inside the `with` block, on stderr or in the notebook."""
    if not on or _work.get() is not None:
        yield
        return
    token = _work.set(_Work(_find_display))
    try:
        yield
    finally:
        _work.reset(token)


@contextmanager
def hidden() -> Iterator[None]:
    """Show nothing of what runs inside the `with` block, which is one unit of a stage around it."""
    token = _work.set(None)
    try:
        yield
    finally:
        _work.reset(token)


def duration(seconds: float) -> str:
    """A length of time as people say it.

    >>> duration(0.42), duration(75), duration(9000)
    ('0.4 s', '1 min 15 s', '2 h 30 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def time_left(fraction: float, elapsed: float) -> str:
    """An estimate from the share that is done, where there is enough to tell.

    >>> time_left(0.25, 20)
    'about 1 min 0 s left'
    """
    if fraction < 0.02 or elapsed < 2:
        return ""
    return f"about {duration(elapsed * (1 - fraction) / fraction)} left"


def _find_display() -> _Display:
    if "ipykernel" in sys.modules and sys.modules["IPython"].get_ipython() is not None:
        return _Notebook()  # other packages import ipykernel, too
    from rich.console import Console

    console = Console(stderr=True)
    return _Terminal(console) if console.is_terminal else _Lines()


class _Terminal:
    """A bar on stderr, which is removed at the end."""

    def __init__(self, console: Any) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        columns = BarColumn(24), TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.description}")
        self.bar = Progress(*columns, console=console, transient=True)
        self.task = self.bar.add_task("", total=None)
        self.bar.start()

    def update(self, fraction: float | None, text: str) -> None:
        from rich.markup import escape as escape_markup

        total = None if fraction is None else 1.0
        self.bar.update(self.task, total=total, completed=fraction or 0.0, description=escape_markup(text))

    def close(self, text: str | None) -> None:
        self.bar.stop()
        if text:
            self.bar.console.print(text, highlight=False, markup=False)


class _Notebook:
    """A bar in the output of a cell, with a closing line in its place at the end; none for quick work."""

    def __init__(self) -> None:
        self.started, self.handle = time.perf_counter(), None

    def update(self, fraction: float | None, text: str) -> None:
        if time.perf_counter() - self.started >= SECONDS_BEFORE_A_BAR:
            value = "" if fraction is None else f' value="{fraction:.3f}"'
            self._show(f"<progress{value}></progress> {escape(text)}")

    def close(self, text: str | None) -> None:
        if text or self.handle is not None:
            self._show(escape(text or ""))

    def _show(self, content: str) -> None:
        from IPython.display import HTML, display

        if self.handle is None:
            self.handle = display(HTML(content), display_id=True)
        else:
            self.handle.update(HTML(content))


class _Lines:
    """A line on stderr every few seconds, for logs; work that takes less time says nothing."""

    def __init__(self) -> None:
        self.written_at, self.is_written = time.perf_counter(), False

    def update(self, fraction: float | None, text: str) -> None:
        now = time.perf_counter()
        if now - self.written_at >= SECONDS_BETWEEN_LINES:
            self.written_at, self.is_written = now, True
            share = "" if fraction is None else f"{100 * fraction:.0f} % "
            print(f"{share}{text}", file=sys.stderr, flush=True)

    def close(self, text: str | None) -> None:
        if text and self.is_written:
            print(text, file=sys.stderr, flush=True)
