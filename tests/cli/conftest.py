"""A command as a user types it, run in this process."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable
from typing import NamedTuple

import pytest

from exmlds import cli


class Done(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process."""

    def command(*arguments: object) -> Done:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            monkeypatch.setattr(sys, "argv", ["exmlds", *map(str, arguments)])
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
