"""Blocks of rows on our own threads.

Kernels release the GIL. The blocks are the same whatever the number of threads, and BLAS runs on one
thread inside them, so a result does not depend on `n_jobs`.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from itertools import islice
from threading import Event, Lock, local
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from . import progress

Result = TypeVar("Result")


def n_threads(n_jobs: int | None) -> int:
    """The number of threads that `n_jobs` asks for: None and −1 mean all cores, −2 all but one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return cores
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


@cache
def _blas() -> ThreadpoolController:
    # Made once: looking for the loaded libraries takes about a millisecond, more than predicting a row.
    return ThreadpoolController()


class _OneBlasThread:
    """The limit is the process's: set by the first that enters, lifted by the last that leaves."""

    def __init__(self) -> None:
        self.lock, self.inside, self.limiter = Lock(), 0, None

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                self.limiter = _blas().limit(limits=1, user_api="blas")
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                self.limiter.restore_original_limits()  # type: ignore[attr-defined]


_one_blas_thread = _OneBlasThread()


def one_blas_thread() -> AbstractContextManager[Any]:
    """BLAS on one thread inside the block.

    With two, factorizations of moderate size took up to 15 times as long on two cores, and results would
    depend on the number of cores.
    """
    return _one_blas_thread


def blocks(n: int, size: int) -> list[slice]:
    """The rows 0…n−1 cut into slices of `size`.

    >>> blocks(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


class _Ended(Exception):
    """What a block is part of has ended."""


_within = local()  # .ended: an event, set when the call that this thread works for has ended


def _go_on(ended: Event | None) -> None:
    if ended is not None and ended.is_set():
        raise _Ended


def map_blocks(
    work: Callable[[slice], Result], rows: Iterable[slice], *, n_jobs: int | None, stage: str, total: int
) -> Iterator[Result]:
    """Yield work(block) for each block, in order; at most two blocks a thread are under way.

    Where it ends early, by Ctrl-C for one, the blocks under way end at their own next call of this.
    """
    todo = list(rows)
    threads = min(n_threads(n_jobs), len(todo))
    mine, outer = Event(), getattr(_within, "ended", None)

    def guarded(block: slice) -> Result:
        _within.ended = mine
        return work(block)

    with progress.stage(stage, total) as advance, one_blas_thread():
        if threads <= 1:
            for block in todo:
                _go_on(outer)
                yield work(block)
                advance(block.stop - block.start)
            return
        with ThreadPoolExecutor(threads) as pool:
            queue = iter(todo)
            under_way = deque((block, pool.submit(guarded, block)) for block in islice(queue, 2 * threads))
            try:
                while under_way:
                    _go_on(outer)
                    block, future = under_way.popleft()
                    yield future.result()
                    advance(block.stop - block.start)
                    for following in islice(queue, 1):
                        under_way.append((following, pool.submit(guarded, following)))
            finally:
                mine.set()
                for _, future in under_way:
                    future.cancel()
