"""From neighbouring groups to neighbouring rows."""

from .compiler import kernel


@kernel
def expand_neighbors(near, group, starts, members, draws, out):
    """See the twin in reference/neighbors.py."""
    k = out.shape[1]
    for row in range(len(group)):
        n = 0
        for place in range(near.shape[1]):
            g = near[group[row], place]
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
        for place in range(n, k):
            out[row, place] = -1
