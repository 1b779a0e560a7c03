"""The decorators of all kernels.

A compiled kernel is cached beside its source, or under the user's cache folder; where neither can be
written it is compiled anew in each process. A kernel calls only functions of its own file: numba's cache
does not notice a change in another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    return _compiled(function)


def reordering_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """For inner products of vectors: their sums may be taken in another order, several at a time."""
    return _compiled(function, fastmath={"reassoc", "contract", "nsz"})


def _compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    try:
        return njit(nogil=True, cache=True, **options)(function)
    except RuntimeError:  # numba found no folder that it may write its cache to
        return njit(nogil=True, **options)(function)
