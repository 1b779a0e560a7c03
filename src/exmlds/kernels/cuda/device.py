"""The graphics card: its arrays, its kernels, and copies of arrays of the host.

Kernels are CUDA C in the files beside this one. CuPy compiles them when they are first used, and gives the
arrays; a `Device` has both. The tests put another one in its place, which runs the same files on the CPU.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, RLock
from typing import Any

import numpy as np

Array = np.ndarray

INSTALL = 'pip install "exmlds[cuda]"'
THREADS, WARP = 256, 32  # in a block, unless a kernel wants another number; that step together
STATIC_SHARED = 1024  # bytes of shared memory that the variables of a kernel take, at most
ALLOWED_SHARED = 32 * 1024  # bytes of shared memory that need no permission on any card


class Device:
    """One card. Kernels and copies of all threads of the host go to it one after the other.

    xp : the module of its arrays, with NumPy's interface
    n_blocks : that keep the card busy where each takes work as long as there is some
    most_shared : bytes of shared memory that a block may ask for; operations that need more run on the CPU
    """

    def __init__(self) -> None:
        self.xp = _cupy()
        self.lock = RLock()
        facts = self.xp.cuda.Device().attributes
        self.n_blocks = 8 * int(facts["MultiProcessorCount"])
        self.most_shared = int(facts["MaxSharedMemoryPerBlockOptin"]) - STATIC_SHARED
        self._modules: dict[str, Any] = {}
        self._kernels: dict[tuple[str, str], Any] = {}
        self._copies: dict[tuple[int, str], Any] = {}

    def kernel(self, topic: str, name: str) -> Any:
        """A kernel of the file of a topic: kernel((blocks,), (threads,), arguments, shared_mem=bytes)."""
        found = self._kernels.get((topic, name))
        if found is None:
            if topic not in self._modules:
                options = ("-std=c++17", "-fmad=true")
                self._modules[topic] = self.xp.RawModule(code=source(topic), options=options)
            found = self._kernels[topic, name] = self._modules[topic].get_function(name)
        return found

    def launch(
        self, topic: str, name: str, blocks: int, *arguments: Any, threads: int = THREADS, shared: int = 0
    ) -> None:
        """Start a kernel; numbers must be NumPy scalars of the type that it takes."""
        if not blocks:
            return
        kernel = self.kernel(topic, name)
        if shared > ALLOWED_SHARED and kernel.max_dynamic_shared_size_bytes < shared:
            kernel.max_dynamic_shared_size_bytes = shared
        kernel((blocks,), (threads,), arguments, shared_mem=shared)

    def copy(self, array: Array, dtype: Any = None) -> Any:
        """A copy of an array of the host."""
        found = self.xp.asarray(np.ascontiguousarray(array))
        return found if dtype is None or found.dtype == dtype else found.astype(dtype)

    def resident(self, array: Array, dtype: Any) -> Any:
        """A copy that stays on the card as long as the array lives, which must not change meanwhile."""
        key = (id(array), np.dtype(dtype).str)
        found = self._copies.get(key)
        if found is None:
            found = self._copies[key] = self.copy(array, dtype)
            weakref.finalize(array, self._copies.pop, key, None)
        return found

    def empty(self, shape: Any, dtype: Any) -> Any:
        return self.xp.empty(shape, dtype)

    def to_host(self, array: Any, out: Array | None = None) -> Array:
        """An array of the card as one of the host."""
        if out is None:
            return array.get()
        if out.flags.c_contiguous:
            return array.get(out=out)
        out[...] = array.get()
        return out

    @contextmanager
    def memory_limit(self, most: float) -> Iterator[None]:
        """Let arrays take so many bytes at most inside the `with` block, or what is allowed already."""
        pool = self.xp.get_default_memory_pool()
        before = pool.get_limit()
        pool.free_all_blocks()
        pool.set_limit(size=int(min(most, before) if before else most))
        try:
            yield
        finally:
            pool.set_limit(size=before)

    def free_bytes(self) -> int:
        """Memory of the card that is left, with what its pool can give."""
        free, _ = self.xp.cuda.runtime.memGetInfo()
        pool = self.xp.get_default_memory_pool()
        limit = pool.get_limit()
        left = free + pool.free_bytes()
        return int(min(left, limit - pool.used_bytes()) if limit else left)

    @contextmanager
    def working(self) -> Iterator[Device]:
        """Work on the card inside the `with` block, while no other thread does."""
        with self.lock:
            try:
                yield self
            except self.xp.cuda.memory.OutOfMemoryError as error:
                self._copies.clear()
                self.xp.get_default_memory_pool().free_all_blocks()
                raise MemoryError(
                    f"The graphics card has too little memory: {error}. Set max_memory to less than it has, "
                    "take fewer n_components or a shorter list of labels, or use device='cpu'."
                ) from None


_current: Device | None = None
_making = Lock()


def current() -> Device:
    """The device that operations run on."""
    global _current
    if _current is None:
        with _making:
            _current = _current or Device()
    return _current


def use(device: Device | None) -> None:
    """Run operations on another device; None is the card."""
    global _current
    _current = device


def source(topic: str) -> str:
    """The CUDA C of a topic, with what all files begin with."""
    folder = Path(__file__).parent
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in ("prelude.cuh", f"{topic}.cu"))


def power_of_two(n: int) -> int:
    """The least power of two that is at least n."""
    return 1 << max(n - 1, 0).bit_length()


def _cupy() -> Any:
    try:
        import cupy
    except ImportError:
        raise ImportError(f"device='cuda' needs CuPy: {INSTALL}") from None
    try:
        n = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise RuntimeError(f"device='cuda' needs an NVIDIA card with its driver: {error}") from None
    if not n:
        raise RuntimeError("device='cuda' needs an NVIDIA card, and there is none.")
    return cupy
