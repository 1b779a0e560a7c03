"""Errors about the arguments of a method that name the class of the user and what to write instead."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast

from ..errors import did_you_mean

Method = TypeVar("Method", bound=Callable[..., Any])


def explained(method: Method) -> Method:
    """A method of an estimator that names unknown keywords, and keywords that are given by position.

    The estimator's `_takers(name)` completes the message on an unknown keyword.
    """
    known = list(signature(method).parameters.values())[1:]
    if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in known):
        return method
    positional = [each.name for each in known if each.kind is each.POSITIONAL_OR_KEYWORD]
    keywords = [each.name for each in known if each.kind is each.KEYWORD_ONLY]

    @wraps(method)
    def call(self: Any, *given: Any, **named: Any) -> Any:
        owner = f"{type(self).__name__}.{method.__name__}"
        if keywords and len(given) > len(positional):
            example = f"{keywords[0]}={reprlib.repr(given[len(positional)])}"
            raise TypeError(
                f"{owner} takes {', '.join(positional)} by position; name what follows, such as "
                f"{method.__name__}({', '.join([*positional, example])})."
            )
        for name in named:
            if name not in positional and name not in keywords:
                hint = self._takers(name) or did_you_mean(name, keywords)
                raise TypeError(f"{owner} takes no argument {name!r}.{hint}")
        return method(self, *given, **named)

    return cast(Method, call)
