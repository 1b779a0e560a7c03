"""A command as a user types it, run in this process."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import pytest

import exmlds
from exmlds import cli
from exmlds.cli.standard_input import copied_input
from exmlds.data import make_library, read_xc, write_xc


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
            copied_input.cache_clear()  # in a process of its own, no command has read the pipe before
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


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train.txt, test.txt.gz, label names and a model."""
    folder = tmp_path_factory.mktemp("cli")
    books = make_library(600, random_state=0)
    write_xc(folder / "train.txt", books.rows(slice(0, 450)))
    write_xc(folder / "test.txt.gz", books.rows(slice(450, None)))
    (folder / "label_names.txt").write_text("\n".join(books.label_names or []), encoding="utf-8")
    train = read_xc(folder / "train.txt")
    model = exmlds.FeatureNeighbors(random_state=0).fit(train.X, train.Y, label_names=train.label_names)
    model.save(folder / "model")
    exmlds.MostFrequent().fit(train.X, train.Y).save(folder / "frequent")
    return folder
