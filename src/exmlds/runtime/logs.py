"""The logger "exmlds": phases of a fit at INFO with rows and seconds, choices at DEBUG; silent by default."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger("exmlds")
logger.addHandler(logging.NullHandler())


@contextmanager
def phase(name: str, n_rows: int) -> Iterator[None]:
    """Log how long the block took."""
    started = time.perf_counter()
    yield
    logger.info("%s: %d rows in %.2f s", name, n_rows, time.perf_counter() - started)
