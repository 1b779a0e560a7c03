"""Starts of a service that are refused before a model is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run

pytest.importorskip("fastapi")


@pytest.mark.parametrize(
    ("options", "environment", "message"),
    [
        (("--host", "0.0.0.0"), {}, "Others can reach 0.0.0.0"),
        ((), {"EXMLDS_READ_TOKEN": "short"}, "at least 16"),
        (("--read-token-file", "/nowhere/token"), {}, "there is no such file"),
        (("--max-body", "many"), {}, "max_body"),
        (("--no-feedback", "--feedback-file", "x"), {}, "either"),
        (("--cors", "a.example/page"), {}, "an origin is a scheme and a host"),
        (("--port", "0"), {}, "there is no such model"),
    ],
)
def test_an_unsafe_or_wrong_start_is_refused(
    options: tuple[str, ...],
    environment: dict[str, str],
    message: str,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    done = run("serve", tmp_path / "none", *options)  # a service that starts would not end
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
