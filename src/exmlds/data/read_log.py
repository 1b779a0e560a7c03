"""Log lines about reading: how many rows a file has, and how long it took."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import TypeVar

logger = logging.getLogger("exmlds")
Piece = TypeVar("Piece")


def log_reading(
    path: Path, pieces: Iterator[Piece], n_rows: Callable[[Piece], int] = lambda _: 1
) -> Iterator[Piece]:
    """Yield the pieces of a file, and log its rows and seconds after the last one.

    The time that the caller spends between two pieces does not count, because readers are streams.

    n_rows : gives the number of rows of a piece
    """
    total, seconds = 0, 0.0
    while True:
        started = perf_counter()
        try:
            piece = next(pieces)
        except StopIteration:
            break
        finally:
            seconds += perf_counter() - started
        total += n_rows(piece)
        yield piece
    logger.info("read %s: %s rows in %.2f s", path, f"{total:,}", seconds)
