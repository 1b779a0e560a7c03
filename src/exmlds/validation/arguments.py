"""Errors about the arguments of a method that name the class of the user and what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])


def explained(method: Method) -> Method:
    """A method of an estimator that names unknown keywords, and keywords that are given by position.

    The estimator's `_takers(name)` completes the message on an unknown keyword.
    """
    known = list(signature(method).parameters.values())[1:]
    positional = [each.name for each in known if each.kind is each.POSITIONAL_OR_KEYWORD]
    keywords = [each.name for each in known if each.kind is each.KEYWORD_ONLY]

    @wraps(method)
    def call(self: Any, *given: Any, **named: Any) -> Any:
        owner = f"{type(self).__name__}.{method.__name__}"
        if len(given) > len(positional):
            shown = ", ".join([*positional, f"{keywords[0]}=…"])
            raise TypeError(
                f"{owner} takes {' and '.join(positional)} by position; name the others, such as "
                f"{method.__name__}({shown})."
            )
        for name in named:
            if name not in positional and name not in keywords:
                raise TypeError(f"{owner} takes no argument {name!r}.{self._takers(name)}")
        return method(self, *given, **named)

    return cast(Method, call)
