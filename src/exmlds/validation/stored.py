"""Checks of what a model folder holds: types, shapes and ranges, before anything computes with it.

The kernels do not check their indices, so a wrong one would read or write memory of others. Each function
raises a ValueError that names the part.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse

Array = np.ndarray

FLOATS = "float32 float64"
INTEGERS = "int32 int64"


def require(is_right: Any, what: str) -> None:
    """Raise a ValueError with this text unless the condition holds."""
    if not is_right:
        raise ValueError(what)


def record(value: Any, name: str, kind: type[Any]) -> None:
    """A value of this class."""
    require(isinstance(value, kind), f"{name} is not a {kind.__name__}")


def array(value: Any, name: str, dtypes: str, *shape: int | None) -> Array:
    """A dense array of one of these dtypes and of this shape; None is any length."""
    require(isinstance(value, np.ndarray), f"{name} is not an array")
    require(value.dtype.name in dtypes.split(), f"{name} has the wrong dtype {value.dtype}")
    fits = value.ndim == len(shape) and all(n in (m, None) for n, m in zip(shape, value.shape))
    require(fits, f"{name} has the wrong shape {value.shape}")
    return value


def ids(value: Any, name: str, n: int | None, below: int, *, low: int = 0, dtypes: str = INTEGERS) -> Array:
    """(n,) integers of at least `low` and below `below`."""
    found = array(value, name, dtypes, n)
    within = not len(found) or (low <= int(found.min()) and int(found.max()) < below)
    require(within, f"{name} holds numbers that are not within {low} and {below - 1}")
    return found


def ascending(value: Array, name: str) -> Array:
    """Numbers each of which is larger than the one before it."""
    require((value[1:] > value[:-1]).all(), f"{name} does not ascend")
    return value


def matrix(value: Any, name: str, n: int | None, d: int) -> csr_matrix | Array:
    """An (n, d) csr or dense matrix of numbers."""
    if not issparse(value):
        return array(value, name, FLOATS, n, d)
    fits = value.shape[1] == d and n in (value.shape[0], None)
    require(
        fits and value.data.dtype.name in FLOATS.split(), f"{name} has the wrong shape {value.shape} or dtype"
    )
    return value


def number(value: Any, name: str) -> float:
    """A number; NaN and infinity are numbers too."""
    require(isinstance(value, (int, float)) and not isinstance(value, bool), f"{name} is not a number")
    return float(value)


def whole(value: Any, name: str, low: int) -> int:
    """A whole number of at least `low` that fits into 63 bits."""
    require(type(value) is int and low <= value < 2**63, f"{name} is not a whole number of at least {low}")
    return value


def strings(value: Any, name: str, n: int | None) -> Array:
    """(n,) strings."""
    found = array(value, name, "object", n)
    require(all(isinstance(one, str) for one in found), f"{name} holds other things than strings")
    return found


def offsets(value: Any, name: str, n: int, end: int) -> Array:
    """(n + 1,) int64 that begin with 0, do not fall and end with `end`."""
    found = array(value, name, "int64", n + 1)
    follows = found[0] == 0 and found[-1] == end and (found[1:] >= found[:-1]).all()
    require(follows, f"{name} does not divide what it belongs to")
    return found
