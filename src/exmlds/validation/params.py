"""Constraints on parameter values: declared once for each parameter, and checked by `fit`."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from ..kernels import DEVICES


class Constraint(NamedTuple):
    """The allowed values of a parameter.

    description : completes the sentence "The parameter must be …"
    allows : whether a value is allowed
    """

    description: str
    allows: Callable[[Any], bool]


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def whole(low: int, high: float = np.inf) -> Constraint:
    """A whole number in [low, high]."""
    return Constraint(
        f"a whole number of at least {low}" + ("" if high == np.inf else f" and at most {high}"),
        lambda value: _is(value, Integral) and low <= value <= high,
    )


def number(low: float, high: float = np.inf, *, above: bool = False) -> Constraint:
    """A finite number in [low, high], or in (low, high] with `above`."""
    edge = "more than" if above else "at least"
    description = f"a number of {edge} {low:g}" + ("" if high == np.inf else f" and at most {high:g}")
    return Constraint(
        description,
        lambda value: (
            _is(value, Real)
            and (low < value if above else low <= value)
            and value <= high
            and value != np.inf
        ),
    )


def one_of(*choices: Any) -> Constraint:
    """One of the choices."""
    description = (
        " or ".join(map(repr, choices)) if len(choices) < 3 else f"one of {', '.join(map(repr, choices))}"
    )
    plain = (str, bool, Real, type(None))  # Arrays are excluded, since == compares their entries.
    return Constraint(
        description, lambda value: isinstance(value, plain) and any(value == choice for choice in choices)
    )


def three(constraint: Constraint) -> Constraint:
    """Three values that each satisfy the constraint."""
    return Constraint(
        f"three values, each {constraint.description}",
        lambda value: (
            isinstance(value, (tuple, list)) and len(value) == 3 and all(map(constraint.allows, value))
        ),
    )


def either(*constraints: Constraint) -> Constraint:
    """A value that satisfies any of the constraints."""
    return Constraint(
        " or ".join(constraint.description for constraint in constraints),
        lambda value: any(constraint.allows(value) for constraint in constraints),
    )


DEVICE = one_of(*DEVICES)
NEIGHBORS = whole(1, 2**20)  # every query has arrays of this length
VERBOSE = Constraint(
    "a whole number of at least 0", lambda value: isinstance(value, bool) or whole(0).allows(value)
)
N_JOBS = Constraint(
    "None (all cores) or a whole number that is not 0",
    lambda value: value is None or (_is(value, Integral) and value != 0),
)
SEED = Constraint(
    "None, a whole number of at least 0 or a NumPy random generator",
    lambda value: (
        value is None
        or (_is(value, Integral) and value >= 0)
        or isinstance(value, (np.random.RandomState, np.random.Generator))
    ),
)


UNITS = {"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


def as_bytes(value: float | str) -> float:
    """Bytes from a number or a string such as "500 MB"; NaN for anything else.

    >>> as_bytes("1.5GB")
    1500000000.0
    """
    number, unit = str(value).strip(), 1.0
    if isinstance(value, str) and number[-2:].upper() in UNITS:
        number, unit = number[:-2], UNITS[number[-2:].upper()]
    try:
        return float(number) * unit
    except ValueError:
        return np.nan


MEMORY = Constraint(
    "None, a number of bytes, or a string such as '8 GB'",
    lambda value: value is None or (not isinstance(value, bool) and 0 < as_bytes(value) < np.inf),
)


def as_precision(value: Any) -> float:
    """The precision in a string such as "precision=0.9"; NaN for anything else.

    >>> as_precision("precision=0.9")
    0.9
    """
    name, _, number = str(value).partition("=")
    try:
        return float(number) if name.strip() == "precision" else np.nan
    except ValueError:
        return np.nan


# A rule that no score of the held-out rows satisfies chooses the number just above the largest one.
THRESHOLD = Constraint(
    "a number from 0 to 1, as scores are, such as 0.5 for 50%",
    number(0, float(np.nextafter(np.float32(1), np.float32(2)))).allows,
)
PRECISION = Constraint("a string such as 'precision=0.9'", lambda value: 0 < as_precision(value) <= 1)


def check_count(name: str, value: Any) -> None:
    """Raise a ValueError unless an argument is a whole number of at least 1."""
    if not whole(1).allows(value):
        raise ValueError(f"{name} must be {whole(1).description}. Got {reprlib.repr(value)} instead.")


def check(owner: str, parameters: Mapping[str, Any], constraints: Mapping[str, Constraint]) -> None:
    """Raise a ValueError for the first parameter that violates its constraint, if it has one."""
    for name, value in parameters.items():
        if name in constraints and not constraints[name].allows(value):
            allowed = constraints[name].description
            raise ValueError(
                f"The {name!r} parameter of {owner} must be {allowed}. Got {reprlib.repr(value)} instead."
            )
