"""Work beside the event loop that is no prediction: explanations, searches, and changes of the model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from .problems import busy

MOST_SECONDS = 60.0  # that work waits to begin

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Work:
    """A number of threads with a bounded queue.

    name : of the threads;  what : what they do, for a message
    """

    def __init__(self, name: str, what: str, n_threads: int, most_waiting: int) -> None:
        self.what, self.most_waiting = what, most_waiting
        self.n_waiting = 0
        self._pool = ThreadPoolExecutor(n_threads, thread_name_prefix=f"exmlds-{name}")

    async def run(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """The result of the work; a `Problem` where too much is waiting."""
        if self.n_waiting >= self.most_waiting:
            raise busy(f"Too many {self.what} are waiting.")
        self.n_waiting += 1
        job = self._pool.submit(work, *args, **kwargs)
        done = asyncio.wrap_future(job)
        done.add_done_callback(self._count_down)
        await asyncio.wait([done], timeout=MOST_SECONDS)
        if job.cancel():  # it has not begun
            raise busy(f"Other {self.what} took {MOST_SECONDS:g} seconds.")
        # Work that has begun ends, also where its client has gone.
        return await asyncio.shield(done)

    def _count_down(self, done: asyncio.Future[Result]) -> None:
        self.n_waiting -= 1
        if not done.cancelled():
            done.exception()  # seen, also where nobody waits for it

    def close(self) -> None:
        """Wait for all that was begun."""
        self._pool.shutdown()
