"""Parallel blocks of rows on a thread pool.

Kernels release the GIL. The blocks do not depend on the number of threads, and BLAS runs on one thread inside
them, so a result does not depend on `n_jobs`.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from itertools import islice, pairwise
from threading import Event, Lock, local
from typing import Any, TypeVar

import scipy.linalg.cython_blas  # noqa: F401 (SciPy's BLAS, which numba uses, must be there before it is limited)
from threadpoolctl import OpenBLASController, ThreadpoolController

from . import progress

Result = TypeVar("Result")
Other = TypeVar("Other")

MANY_BLOCKS, LEAST_ROWS = (
    32,
    96,
)  # blocks that keep many cores busy; rows below which a block is mostly overhead
MANY_THREADS = 8  # from which on two calls are made at the same time: fewer are busy with one of them
MAX_WORKERS = 6  # threads for short maps: to hand work over to another one takes about as long as to do it


def n_threads(n_jobs: int | None) -> int:
    """The number of threads for `n_jobs`: None and −1 mean all cores, −2 all but one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return cores
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


def _own_threads(n_jobs: int | None) -> int:
    """The number of threads for `n_jobs` where the calling thread has a share of them."""
    return max(n_threads(n_jobs) // getattr(_current, "share", 1), 1)


@cache
def _blas() -> ThreadpoolController:
    # Cached: finding the loaded libraries takes about a millisecond, more than predicting one row.
    return ThreadpoolController()


class _OneBlasThread:
    """A process-wide limit: the first thread that enters sets it, the last that leaves lifts it.

    The two need not be the same thread, so each takes the control of OpenBLAS: threadpoolctl ignores limits
    of any thread but the one that set the first.
    """

    def __init__(self) -> None:
        self.lock, self.inside, self.limiter, self.own = Lock(), 0, None, local()

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                _release_control()
                self.limiter = _blas().limit(limits=1, user_api="blas")
            self._count(1)

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self._count(-1)
            if not self.inside:
                self._lift()

    def _count(self, change: int) -> None:
        self.inside += change
        self.own.inside = self._own_inside() + change

    def _own_inside(self) -> int:
        return getattr(self.own, "inside", 0)

    def _lift(self) -> None:
        _release_control()
        self.limiter.restore_original_limits()  # type: ignore[attr-defined]
        _release_control()

    def after_fork_in_child(self) -> None:
        """The child has none of the other threads that are inside."""
        if self.inside and not self._own_inside():
            self._lift()
        self.inside = self._own_inside()
        self.lock.release()


def _release_control() -> None:
    if hasattr(OpenBLASController, "clear_controlling_thread"):  # since threadpoolctl 3.8
        OpenBLASController.clear_controlling_thread(force=True)


_one_blas_thread = _OneBlasThread()
if hasattr(os, "register_at_fork"):
    # With the lock held no thread changes the number of BLAS threads while the process forks: a child that is
    # made in the middle of that, or while BLAS runs on several threads, hangs at its first product.
    os.register_at_fork(
        before=_one_blas_thread.lock.acquire,
        after_in_parent=_one_blas_thread.lock.release,
        after_in_child=_one_blas_thread.after_fork_in_child,
    )


def one_blas_thread() -> AbstractContextManager[Any]:
    """Limit BLAS to one thread inside the `with` block.

    With two threads on two cores, factorizations of moderate size took up to 15 times as long, and results
    would depend on the number of cores.
    """
    return _one_blas_thread


def blocks(n: int, size: int) -> list[slice]:
    """Cut the rows 0…n−1 into slices of `size`.

    >>> blocks(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def fine_blocks(n: int, most: int, least: int = LEAST_ROWS) -> list[slice]:
    """Cut rows into blocks of at most this size, or of fewer where that would make too few for many cores.

    least : size that no block but the last is below; it takes precedence

    >>> [len(fine_blocks(n, 256)) for n in (96, 1_536, 4_096, 256_000)]
    [1, 16, 32, 1000]
    """
    return blocks(n, max(least, min(most, -(-n // MANY_BLOCKS))))


def bounded_blocks(sizes: Sequence[int], most: int) -> list[slice]:
    """Cut rows into consecutive blocks of at most this size, or of one row where it is larger.

    sizes : (n,) the size of each row

    >>> bounded_blocks([2, 2, 9, 1], 4)
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    cuts, left = [0], most
    for row, size in enumerate(sizes):
        if size > left and row > cuts[-1]:
            cuts.append(row)
            left = most
        left -= size
    return [slice(*pair) for pair in pairwise([*cuts, len(sizes)])] if len(sizes) else []


class _Pools:
    """Idle thread pools, which are used again: to start and end 16 threads takes some milliseconds."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.idle: dict[int, list[ThreadPoolExecutor]] = {}

    def take(self, threads: int) -> ThreadPoolExecutor:
        """A pool that nobody else uses."""
        with self.lock:
            idle = self.idle.get(threads)
            return idle.pop() if idle else ThreadPoolExecutor(threads, thread_name_prefix="exmlds")

    def give_back(self, pool: ThreadPoolExecutor, threads: int) -> None:
        """Keep a pool, all of whose work is done."""
        with self.lock:
            self.idle.setdefault(threads, []).append(pool)

    def forget(self) -> None:
        """A process that was forked has none of the threads."""
        self.__init__()  # type: ignore[misc]


_pools = _Pools()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.forget)


class _Cancelled(Exception):
    """The call of `map_blocks` that this block belongs to has ended."""


# .cancelled: the event that cancels the call that this thread works for;  .n_beside: threads that work for it
# .share: what the number of threads is divided by
_current = local()


def _check_cancelled(cancelled: Event | None) -> None:
    if cancelled is not None and cancelled.is_set():
        raise _Cancelled


class Workers:
    """Threads for many short maps.

    Used in a `with` block, inside which BLAS runs on one thread. Inside a block of `map_blocks`, they share
    the cores with its other threads.

    most : threads at most
    """

    def __init__(self, n_jobs: int | None, most: int = MAX_WORKERS) -> None:
        self.threads = max(min(_own_threads(n_jobs) // getattr(_current, "n_beside", 1), most), 1)
        self.pool = _pools.take(self.threads) if self.threads > 1 else None

    def __enter__(self) -> Workers:
        one_blas_thread().__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        one_blas_thread().__exit__(None, None, None)
        if self.pool is not None:
            _pools.give_back(self.pool, self.threads)

    def shares(self, n: int, unit: int = 1) -> list[slice]:
        """The rows 0…n−1 in one slice for each thread, all but the last of them multiples of the unit.

        A result must not depend on where these end, since they depend on the number of threads.
        """
        return blocks(n, -(-n // (self.threads * unit)) * unit)

    def map(self, work: Callable[[slice], Result], rows: list[slice]) -> list[Result]:
        """The result of each block, in order; each thread works on consecutive blocks."""
        _check_cancelled(getattr(_current, "cancelled", None))
        if self.pool is None or len(rows) < 2:
            return [work(block) for block in rows]
        share = -(-len(rows) // self.threads)
        # The calling thread takes the first share itself.
        others = [
            self.pool.submit(lambda own: [work(block) for block in own], rows[start : start + share])
            for start in range(share, len(rows), share)
        ]
        try:
            found = [work(block) for block in rows[:share]]
        finally:
            wait(others)
        for future in others:
            found += future.result()
        return found

    def together(self, work: Callable[[int], None], cancel: Callable[[], None]) -> None:
        """Run work(0), work(1), … at the same time, one on each thread: they may wait for each other.

        cancel : ends the others where one of them fails or cannot be started
        """
        _check_cancelled(getattr(_current, "cancelled", None))

        def guarded(thread: int) -> None:
            try:
                work(thread)
            except BaseException:
                cancel()
                raise

        others: list[Future[None]] = []
        try:
            for thread in range(1, self.threads):
                assert self.pool is not None
                others.append(self.pool.submit(guarded, thread))
        except BaseException:
            cancel()
            raise
        try:
            guarded(0)
        finally:
            wait(others)
        for future in others:
            future.result()


@contextmanager
def _as_current(**values: Any) -> Iterator[None]:
    """Give the calling thread these values inside the `with` block."""
    before = vars(_current).copy()
    vars(_current).update(values)
    try:
        yield
    finally:
        vars(_current).clear()
        vars(_current).update(before)


def beside(
    other: Callable[[], Other], work: Callable[[], Result], *, n_jobs: int | None, shares: tuple[int, int]
) -> tuple[Other, Result]:
    """Run two calls: at the same time where there are `MANY_THREADS`, otherwise one after the other.

    shares : what the number of threads is divided by in each of them
    """
    if _own_threads(n_jobs) < MANY_THREADS:
        return other(), work()
    cancelled, share = Event(), getattr(_current, "share", 1)

    def guarded() -> Other:
        with _as_current(cancelled=cancelled, share=share * shares[0]):
            return other()

    with one_blas_thread():
        pool = _pools.take(1)
        future = pool.submit(guarded)
        try:
            with _as_current(share=share * shares[1]):
                found = work()
            return future.result(), found
        finally:
            cancelled.set()
            wait([future])
            _pools.give_back(pool, 1)


def map_blocks(
    work: Callable[[slice], Result],
    rows: Iterable[slice],
    *,
    n_jobs: int | None,
    stage: str,
    total: int,
    unit: str = "rows",
) -> Iterator[Result]:
    """Yield work(block) for each block, in order; at most two blocks per thread are pending.

    Where the iteration ends early, for example by Ctrl-C, running blocks stop at their next nested call of
    this function.
    """
    todo = list(rows)
    most = _own_threads(n_jobs)
    threads = min(most, len(todo))
    cancelled, outer = Event(), getattr(_current, "cancelled", None)
    n_beside = max(threads, 1) * getattr(_current, "n_beside", 1)
    share = getattr(_current, "share", 1)

    def guarded(block: slice) -> Result:
        with _as_current(cancelled=cancelled, n_beside=n_beside, share=share):
            return work(block)

    with progress.stage(stage, total, unit) as advance, one_blas_thread():
        if threads <= 1:
            for block in todo:
                _check_cancelled(outer)
                yield work(block)
                advance(block.stop - block.start)
            return
        pool, pending = _pools.take(most), deque[tuple[slice, Future[Result]]]()
        try:
            queue = iter(todo)
            pending.extend((block, pool.submit(guarded, block)) for block in islice(queue, 2 * threads))
            while pending:
                _check_cancelled(outer)
                block, future = pending.popleft()
                yield future.result()
                advance(block.stop - block.start)
                pending.extend((after, pool.submit(guarded, after)) for after in islice(queue, 1))
        finally:
            cancelled.set()
            wait([future for _, future in pending if not future.cancel()])
            _pools.give_back(pool, most)
