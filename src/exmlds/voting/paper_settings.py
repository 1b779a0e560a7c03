"""The settings of SLEEC's released code for each data set, which the paper takes over."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple


class ReleasedSettings(NamedTuple):
    """The settings for one data set.

    cost : C of its regression, ‖w‖² / 2 + C Σ error²
    features : "none" where the released code takes rows as they are
    mean_square : of the lengths of the rows, which our l2 is in units of
    """

    n_learners: int
    n_parts: int
    n_components: int
    n_neighbors: int
    n_neighbors_fit: int
    cost: float
    features: str = "l2"
    mean_square: float = 1.0

    def parameters(self, known: Collection[str]) -> dict[str, Any]:
        """The parameters of an estimator that has those that are known."""
        own = {**self._asdict(), "l2": 1 / (2 * self.cost * self.mean_square)}
        return {name: value for name, value in own.items() if name in known}


RELEASED = {
    "bibtex": ReleasedSettings(1, 1, 100, 25, 250, 0.2),
    "delicious": ReleasedSettings(1, 1, 100, 70, 500, 0.1),
    "eurlex-4k": ReleasedSettings(5, 3, 100, 8, 100, 1.0),
    "mediamill": ReleasedSettings(15, 5, 30, 4, 300, 1.0, features="none", mean_square=21.6),
    "delicious-200k": ReleasedSettings(5, 50, 50, 70, 50, 0.1),
}


def released(data_set: str) -> ReleasedSettings:
    """The settings for a data set; a ValueError names those that there are."""
    if data_set not in RELEASED:
        raise ValueError(
            f"SLEEC's authors released no settings for {data_set!r}. There are settings for "
            f"{', '.join(RELEASED)}; leave the name out for a general rule."
        )
    return RELEASED[data_set]
