"""A device of `kernels.cuda` that is the CPU: NumPy's arrays, and the CUDA kernels compiled as C++.

It runs the very files that the card runs, with their blocks, threads, barriers and shared memory, so that
they can be compared with their twins where there is no card. It does not show speed, nor all races between
threads: those of a block run one after the other between two barriers.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from exmlds.kernels.cuda import device

COMPILER = shutil.which("g++") or shutil.which("c++")


class CardOnCPU(device.Device):
    """Builds the kernels in a folder."""

    def __init__(self, folder: Path) -> None:
        self.xp, self.lock, self.n_blocks = np, RLock(), 3
        self._folder, self._libraries, self._copies = folder, dict[str, Any](), {}
        self.launched = set[str]()
        self.free, self.most_shared = 10**9, 200 * 1024

    def kernel(self, topic: str, name: str) -> Any:
        if topic not in self._libraries:
            code = device.source(topic)
            names = re.findall(r"KERNEL (?:__launch_bounds__\([^)]*\) )?(\w+)\(", code)
            path, library = self._folder / f"{topic}.cc", self._folder / f"{topic}.so"
            header = (Path(__file__).parent / "card.h").read_text(encoding="utf-8")
            path.write_text(
                "\n".join([header, code, *(f"ENTRY({name})" for name in names)]), encoding="utf-8"
            )
            options = ["-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-U_FORTIFY_SOURCE"]
            subprocess.run([str(COMPILER), *options, "-o", str(library), str(path)], check=True)
            self._libraries[topic] = ctypes.CDLL(str(library))
        return getattr(self._libraries[topic], f"launch_{name}")

    def launch(
        self,
        topic: str,
        name: str,
        blocks: int,
        *arguments: Any,
        threads: int = device.THREADS,
        shared: int = 0,
    ) -> None:
        if not blocks:
            return
        self.launched.add(name)
        held = []
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                assert argument.flags.c_contiguous, f"{name}: an array is not contiguous"
                held.append(ctypes.c_void_p(argument.ctypes.data))
            else:
                assert isinstance(argument, np.generic), f"{name}: {argument!r} has no type"
                held.append(np.array([argument]))
        pointers = (ctypes.c_void_p * len(held))(
            *(h.ctypes.data if isinstance(h, np.ndarray) else ctypes.addressof(h) for h in held)
        )
        failed = self.kernel(topic, name)(int(blocks), threads, int(shared), len(held), pointers)
        assert not failed, f"{name}: wrong number of arguments, or too much shared memory"

    def copy(self, array: np.ndarray, dtype: Any = None) -> np.ndarray:
        return np.array(array, dtype=array.dtype if dtype is None else dtype, order="C")

    def to_host(self, array: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        if out is None:
            return array.copy()
        out[...] = array
        return out

    @contextmanager
    def memory_limit(self, most: float) -> Iterator[None]:
        before, self.free = self.free, int(min(most, self.free))
        try:
            yield
        finally:
            self.free = before

    def free_bytes(self) -> int:
        return self.free

    def working(self) -> Any:
        return _Held(self)


class _Held:
    def __init__(self, card: CardOnCPU) -> None:
        self.card = card

    def __enter__(self) -> CardOnCPU:
        self.card.lock.acquire()
        return self.card

    def __exit__(self, *_: object) -> None:
        self.card.lock.release()
