"""The exceptions and warnings of the package, as a tree:

ExmldsError
├── DataError      (a ValueError) a file or a matrix cannot be used
└── ModelError     (a ValueError) a saved model is damaged, foreign or newer
DataWarning        (a UserWarning) the input was repaired, or looks like a mistake
└── NoKnownWordWarning    texts hold no word that the model knows, and get no labels
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

NEAR = 0.75  # the least similarity of two names, from 0 to 1, at which a message suggests one for the other


def did_you_mean(name: str, known: Iterable[str], show: Callable[[str], object] = repr) -> str:
    """The last sentence of a message about an unknown name: the known name nearest to it, if any is near.

    >>> did_you_mean("sports", ["law", "sport"]), did_you_mean("sports", ["law"])
    (" Did you mean 'sport'?", '')
    """
    near = get_close_matches(name, known, n=1, cutoff=NEAR)
    return f" Did you mean {show(near[0])}?" if near else ""


def some(names: Sequence[str], n: int = 10) -> str:
    """The first n names, for a message.

    >>> some(["a", "b", "c"], 2)
    'a, b, …'
    """
    return ", ".join(names[:n]) + (", …" if len(names) > n else "")


class ExmldsError(Exception):
    """The root of every error that this package raises on purpose."""


class Argument(NamedTuple):
    """An argument that a message tells the user to pass.

    >>> str(Argument("format", "csv")), Argument("format", "csv").as_option({"format": "--format"})
    ('format="csv"', '--format csv')
    """

    name: str
    value: str | bool | None = None  # None: the message names the argument only

    def __str__(self) -> str:
        if self.value is None:
            return self.name
        return f'{self.name}="{self.value}"' if isinstance(self.value, str) else f"{self.name}={self.value}"

    def as_option(self, options: Mapping[str, str]) -> str:
        """Name the command-line option instead; `options` maps an argument, or `name=value`, to it."""
        if str(self) in options:
            return options[str(self)]
        if self.name not in options:
            return str(self)
        return options[self.name] if self.value is None else f"{options[self.name]} {self.value}"


class DataError(ExmldsError, ValueError):
    """Input that cannot be used; the message says what was wrong, what was got and what to do.

    message : the text, or a `str.format` template if there are values
    values : what the template holds; an `Argument` is worded for Python by `str(error)` and for the command
        line by `with_options`

    >>> pass_format = Argument("format", "csv")
    >>> error = DataError("{path} is empty; pass {format}.", path="{a}", format=pass_format)
    >>> str(error), error.with_options({"format": "--format"})
    ('{a} is empty; pass format="csv".', '{a} is empty; pass --format csv.')
    """

    def __init__(self, message: str, **values: object) -> None:
        super().__init__(message.format(**values) if values else message)
        self._template, self._values = message, values

    def with_options(self, options: Mapping[str, str]) -> str:
        """The message with command-line options in place of Python arguments."""
        if not self._values:
            return str(self)
        values = {
            name: value.as_option(options) if isinstance(value, Argument) else value
            for name, value in self._values.items()
        }
        return self._template.format(**values)


class ModelError(ExmldsError, ValueError):
    """A model folder that cannot be read or written."""


class DataWarning(UserWarning):
    """The input was usable after a repair, which the message names, or it looks like a mistake."""


class NoKnownWordWarning(DataWarning):
    """Texts hold no word that the model knows; no labels are predicted for them."""
