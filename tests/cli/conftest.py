"""A command as a user types it, run in this process."""

from __future__ import annotations

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
            try:
                cli.main()
            except SystemExit as stop:
                code = int(stop.code or 0)
        return Done(code, *capfd.readouterr())

    return command
