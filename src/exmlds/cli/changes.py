"""A model folder that a command changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import DataError
from .settings import load_model

MUCH_GROWTH = 0.3  # of the rows at the fit, from which the user is told to train again


@contextmanager
def changed(model: Path, method: list[str] | None, trusted: list[str] | None) -> Iterator[Any]:
    """Open a model that can grow for writing: each change is on disk before its call returns."""
    with load_model(model, method, trusted, writable=True) as fitted:
        if getattr(fitted, "growth_", None) is None:
            raise DataError(
                f"{model} does not keep its training rows, which it needs to grow; train it with --growable."
            )
        yield fitted


def growth_of(fitted: Any) -> dict[str, Any]:
    """What `--json` tells of the size of a model, and of its growth since the last fit."""
    growth = fitted.growth_
    return {
        "rows": int(fitted.n_samples_fit_),
        "labels": fitted.n_labels_,
        "added_since_fit": growth.n_added,
        "removed_since_fit": growth.n_removed,
        "share_changed": round((growth.n_added + growth.n_removed) / growth.n_fitted, 4),
    }


def number_of(n: int, what: str) -> str:
    """A number with what is counted, such as "1 row" or "2,000 rows"."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def tell(line: str, summary: dict[str, Any]) -> None:
    """Say on stderr what was done, and what to do where a model has grown much."""
    import sys

    from ..display import harmless

    rows, labels = number_of(summary["rows"], "row"), number_of(summary["labels"], "label")
    print(harmless(f"{line} {summary['model']} has {rows} and {labels} now."), file=sys.stderr)
    if summary["share_changed"] >= MUCH_GROWTH:
        print(
            f"Rows added and removed since the last fit are {100 * summary['share_changed']:.0f}% of those "
            "of the fit: train the model again on all data for its best quality.",
            file=sys.stderr,
        )
