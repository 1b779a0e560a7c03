"""Expansion of neighbouring groups to neighbouring rows."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def expand_neighbors(
    nearest: Array, group: Array, starts: Array, members: Array, draws: Array, out: Array
) -> None:
    """Write the first k rows, other than the row itself, of the nearest groups of each row's group.

    nearest : (g, m) int64, the nearest groups of each group, nearest first, −1 pads
    group : (n,) int64, the group of each row
    starts, members : (g + 1,) and (n,) int64, the rows of each group
    draws : (n,) float64 in [0, 1), where a row starts within a group, so that rows take different members
    out : (n, k) int64, −1 pads
    """
    out[:] = -1
    for row, own in enumerate(group):
        found: list[int] = []
        for g in nearest[own]:
            if g < 0:
                break
            rows = members[starts[g] : starts[g + 1]]
            found.extend(member for member in np.roll(rows, -int(draws[row] * len(rows))) if member != row)
        found = found[: out.shape[1]]
        out[row, : len(found)] = found
