"""Decorators that compile the kernels.

numba caches a compiled kernel beside its source, or in the user's cache folder; where neither is writable, it
compiles the kernel again in each process, and so it does where a file of the cache is damaged. A kernel calls
only functions of its own file, since numba's cache does not detect changes in other files.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    return _compiled(function)


def reordering_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a kernel whose sums may be reordered, so that inner products are vectorized."""
    return _compiled(function, fastmath={"reassoc", "contract", "nsz"})


def _compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    compiled = njit(nogil=True, **options)(function)
    with suppress(RuntimeError):  # There is no writable folder for the cache.
        compiled._cache = _RebuiltCache(function)
    return compiled


class _RebuiltCache(FunctionCache):
    """numba's cache of a kernel, in which a file that cannot be read is a kernel that is not there.

    numba imports all that it can compile before it loads a compiled kernel, which needs numba's memory
    management only. The compiler imports the rest for a kernel that is not in the cache.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            rtsys.initialize(target_context)
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        except Exception:  # unpickling a damaged file raises anything
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(Exception):  # such as a full disk; the kernel is compiled already
            super().save_overload(sig, data)
