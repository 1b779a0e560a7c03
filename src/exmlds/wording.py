"""How messages name what to say: as arguments of Python, or as the options of a command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

_OPTIONS: ContextVar[Mapping[str, str]] = ContextVar("options", default=MappingProxyType({}))


@contextmanager
def worded(options: Mapping[str, str]) -> Iterator[None]:
    """Name options instead of arguments.

    >>> with worded({"format": "--format"}):
    ...     say("format", "csv")
    '--format csv'
    """
    token = _OPTIONS.set(options)
    try:
        yield
    finally:
        _OPTIONS.reset(token)


def named(argument: str) -> str:
    return _OPTIONS.get().get(argument, argument)


def say(argument: str, value: str = "…") -> str:
    """
    >>> say("format", "csv")
    'format="csv"'
    """
    name = named(argument)
    return f"{name} {value}" if name.startswith("-") else f'{name}="{value}"'


def for_no_labels() -> str:
    """What reads texts without labels."""
    return named("labelled=False")
