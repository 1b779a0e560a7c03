"""Requests that come at about the same time are predicted together, on a thread beside the event loop.

A text alone takes several times as long as one among many. A request waits a few milliseconds for others, and
while texts are predicted, those that come meanwhile make the next batch.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from .problems import busy

WINDOW_SECONDS = 0.003  # that a request waits for others
ENOUGH = 16  # texts, from which a batch waits for no others
MOST_IN_BATCH = 64  # texts that are predicted together
MOST_WAITING = 4_000  # texts that wait, before requests are refused
MOST_SECONDS = 60.0  # that a request waits for its result

Predict = Callable[[Any, list[Any]], Sequence[Any]]


class Waiting(NamedTuple):
    """Some texts of a request: the options, the time of arrival, and where the results go."""

    options: Hashable
    texts: list[Any]
    arrived: float
    results: asyncio.Future[Sequence[Any]]


class Batcher:
    """Predicts texts in batches of requests that have the same options.

    predict : gives a result for each text; it is called on a thread, one call at a time
    observe : is called with the number of texts of each batch
    """

    def __init__(self, predict: Predict, observe: Callable[[int], None] = lambda n: None) -> None:
        self.predict, self.observe = predict, observe
        self.n_waiting = 0
        self._queue: deque[Waiting] = deque()
        self._arrival = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="exmlds-predict")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to predict; call it in the event loop."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._thread.shutdown()

    async def submit(self, texts: Sequence[Any], options: Hashable) -> list[Any]:
        """The result of each text; a `Problem` where too many texts are waiting."""
        if self.n_waiting + len(texts) > MOST_WAITING and self.n_waiting:
            raise busy(f"{self.n_waiting:,} texts are waiting for suggestions.")
        loop, now = asyncio.get_running_loop(), time.monotonic()
        waiting = [
            Waiting(options, list(texts[start : start + MOST_IN_BATCH]), now, loop.create_future())
            for start in range(0, len(texts), MOST_IN_BATCH)
        ]
        self._queue.extend(waiting)
        self.n_waiting += len(texts)
        self._arrival.set()
        try:
            async with asyncio.timeout(MOST_SECONDS):
                found = [await one.results for one in waiting]
        except TimeoutError:
            raise busy(f"The texts were not predicted within {MOST_SECONDS:g} seconds.") from None
        finally:
            for one in waiting:  # nobody needs them any more where this call was cancelled
                one.results.cancel()
        return [result for results in found for result in results]

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._arrival.wait()
            await self._wait_for_others()
            batch = self._take()
            if not batch:
                continue
            texts = [text for one in batch for text in one.texts]
            self.observe(len(texts))
            try:
                results = await loop.run_in_executor(self._thread, self.predict, batch[0].options, texts)
            except Exception as error:
                for one in batch:
                    _fail(one, error)
                continue
            start = 0
            for one in batch:
                _succeed(one, results[start : start + len(one.texts)])
                start += len(one.texts)

    async def _wait_for_others(self) -> None:
        """Wait until the oldest request has waited for long enough, or there are enough texts."""
        rest = self._queue[0].arrived + WINDOW_SECONDS - time.monotonic() if self._queue else 0
        if rest > 0 and self.n_waiting < ENOUGH:
            await asyncio.sleep(rest)

    def _take(self) -> list[Waiting]:
        """The next batch: the oldest texts, and those after them with the same options."""
        batch: list[Waiting] = []
        others: deque[Waiting] = deque()
        n = 0
        while self._queue:
            one = self._queue.popleft()
            if one.results.done():
                self.n_waiting -= len(one.texts)
            elif not batch or (one.options == batch[0].options and n + len(one.texts) <= MOST_IN_BATCH):
                batch.append(one)
                n += len(one.texts)
            else:
                others.append(one)
        self._queue = others
        self.n_waiting -= n
        if not others:
            self._arrival.clear()
        return batch


def _succeed(one: Waiting, results: Sequence[Any]) -> None:
    if not one.results.done():
        one.results.set_result(results)


def _fail(one: Waiting, error: Exception) -> None:
    if not one.results.done():
        one.results.set_exception(error)
