"""Decorators that compile the kernels.

numba caches a compiled kernel beside its source, or in the user's cache folder; where neither is writable, it
compiles the kernel again in each process. A kernel calls only functions of its own file, since numba's cache
does not detect changes in other files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    return _compiled(function)


def reordering_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a kernel whose sums may be reordered, so that inner products are vectorized."""
    return _compiled(function, fastmath={"reassoc", "contract", "nsz"})


def _compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    try:
        return njit(nogil=True, cache=True, **options)(function)
    except RuntimeError:  # There is no writable folder for the cache.
        return njit(nogil=True, **options)(function)
