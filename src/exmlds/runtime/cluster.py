"""Independent tasks, one after the other here or on the workers of a Dask cluster.

This is the only module that imports Dask. A task is a function that can be pickled, with its arguments; it
writes what it makes to files, and returns nothing, so that it may run anywhere, and twice.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..errors import DataError
from . import progress

INSTALL = 'pip install "exmlds[cluster]"'


def current_client() -> Any | None:
    """The Dask client of the `with` block around the call, or None."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:  # there is none
        return None


def run(
    work: Callable[..., None], tasks: Sequence[tuple[Any, ...]], stage: str, until: float | None = None
) -> None:
    """Call `work(*task)` for each task: on the workers of the current client, or here where there is none.

    The first task that fails ends the others, and its error is raised here.

    stage, until : as `progress.stage` takes them
    """
    client = current_client()
    with progress.stage(stage, len(tasks), "tasks", until) as advance:
        if client is None:
            for task in tasks:
                with progress.hidden():
                    work(*task)
                advance(1)
            return
        from distributed import KilledWorker, as_completed

        futures = client.map(work, *zip(*tasks), pure=False)
        try:
            for _ in as_completed(futures, with_results=True):
                advance(1)
        except KilledWorker as error:
            raise DataError(
                f"{stage}: a task has ended several workers, {error.last_worker.address} at last, mostly by "
                "a lack of memory: use more parts, smaller shards, or workers with more memory."
            ) from None
        finally:
            client.cancel(futures)


@contextmanager
def connected(address: str | None = None, n_workers: int = 0) -> Iterator[None]:
    """Run tasks on a cluster inside the `with` block.

    address : of the scheduler, such as tcp://10.0.0.1:8786
    n_workers : without an address, the number of worker processes that are started on this machine, each with
        one thread
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise DataError(f"A cluster needs Dask: {INSTALL}.") from None
    if address is None:
        # The errors of tasks are raised here; workers would write their tracebacks too.
        cluster = LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            memory_limit=0,
            silence_logs=logging.CRITICAL,
            dashboard_address="127.0.0.1:0",
        )
        with cluster, Client(cluster) as client:
            print(f"exmlds: dashboard: {client.dashboard_link}", file=sys.stderr)
            yield
        return
    try:
        client = Client(address)
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{address}: no scheduler of Dask answers there ({error}).") from None
    with client:
        print(f"exmlds: dashboard: {client.dashboard_link}", file=sys.stderr)
        yield
