"""From neighbouring groups to neighbouring rows."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def expand_neighbors(
    near: Array, group: Array, starts: Array, members: Array, draws: Array, out: Array
) -> None:
    """The first k rows, other than itself, of the groups near to each row's group.

    near : (g, m) int64 groups near to each, nearest first, −1 pads
    group : (n,) int64 the group of each row
    starts, members : (g + 1,), (n,) int64 the rows of each group
    draws : (n,) float64 in [0, 1): where in a group a row begins, so that not all take the same ones
    out : (n, k) int64, −1 pads
    """
    out[:] = -1
    for row, own in enumerate(group):
        found: list[int] = []
        for g in near[own]:
            if g < 0:
                break
            rows = members[starts[g] : starts[g + 1]]
            found.extend(member for member in np.roll(rows, -int(draws[row] * len(rows))) if member != row)
        found = found[: out.shape[1]]
        out[row, : len(found)] = found
