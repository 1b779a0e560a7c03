"""Expansion of neighbouring groups to neighbouring rows."""

from .compiler import kernel


@kernel
def expand_neighbors(nearest, group, starts, members, draws, out):
    """See the twin in reference/neighbors.py."""
    k = out.shape[1]
    for row in range(len(group)):
        n = 0
        for column in range(nearest.shape[1]):
            g = nearest[group[row], column]
            if g < 0 or n == k:
                break
            size = starts[g + 1] - starts[g]
            first = int(draws[row] * size)
            for step in range(size):
                if n == k:
                    break
                member = members[starts[g] + (first + step) % size]
                if member != row:
                    out[row, n] = member
                    n += 1
        for column in range(n, k):
            out[row, column] = -1
