"""A command as a user types it, run in this process."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any, NamedTuple

import pytest

from exmlds import cli
from exmlds.cli import sources


class Done(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Done]


@contextmanager
def pipe_of(data: bytes) -> Iterator[Any]:
    """The end of a pipe that these bytes come out of."""
    end, start = os.pipe()

    def send() -> None:
        with suppress(BrokenPipeError), open(start, "wb") as file:
            file.write(data)

    sender = Thread(target=send)
    sender.start()
    with open(end, encoding="utf-8") as file:
        yield file
    sender.join()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process; `data` are sent to it by a pipe, None closes its standard input."""

    def command(*arguments: object, data: bytes | None = b"") -> Done:
        with warnings.catch_warnings(), pipe_of(data or b"") as pipe:
            warnings.simplefilter("default")
            monkeypatch.setattr(sys, "argv", ["exmlds", *map(str, arguments)])
            monkeypatch.setattr(sys, "stdin", None if data is None else pipe)
            importlib.reload(sources)  # in a process of its own, no command has read the pipe before
            code = 0
            logger = logging.getLogger("exmlds")
            handlers, level = logger.handlers, logger.level
            try:
                cli.main()
            except SystemExit as stop:
                code = int(stop.code or 0)
            finally:
                logger.handlers = handlers
                logger.setLevel(level)
        return Done(code, *capfd.readouterr())

    return command
