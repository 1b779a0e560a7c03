"""The WARP loss by stochastic gradient descent, row by row."""

import numpy as np

from .compiler import reordering_kernel


@reordering_kernel
def warp_rows(
    indptr,
    features,
    values,
    label_indptr,
    labels,
    rows,
    first_rate,
    last_rate,
    max_norm,
    harmonic,
    state,
    V,
    H,
):
    """See the twin in reference/warp.py."""
    n_labels, rank = H.shape
    z, change = np.empty(rank, np.float32), np.empty(rank, np.float32)
    # Scores of the row in hand are computed when they are first needed: most draws repeat a label.
    scores, scored_for = np.empty(n_labels, np.float32), np.full(n_labels, -1, np.int64)
    has_label = np.full(n_labels, -1, np.int64)  # the last visit whose row has the label
    most = np.float32(max_norm)
    number = state[0]
    for i in range(len(rows)):
        row = rows[i]
        rate = np.float32(first_rate + (last_rate - first_rate) * i / len(rows))
        z[:] = 0
        change[:] = 0
        for e in range(indptr[row], indptr[row + 1]):
            v, value = V[features[e]], values[e]
            for c in range(rank):
                z[c] += value * v[c]
        for p in range(label_indptr[row], label_indptr[row + 1]):
            has_label[labels[p]] = i
        is_changed = False
        for p in range(label_indptr[row], label_indptr[row + 1]):
            label = labels[p]
            if scored_for[label] != i:
                scores[label], scored_for[label] = _score(z, H[label]), i
            limit = scores[label] - np.float32(1)
            for n_draws in range(1, n_labels):
                number = number * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
                other = np.int64((number >> np.uint64(33)) * np.uint64(n_labels) >> np.uint64(31))
                if has_label[other] == i:
                    continue
                if scored_for[other] != i:
                    scores[other], scored_for[other] = _score(z, H[other]), i
                if scores[other] > limit:
                    step = rate * harmonic[(n_labels - 1) // n_draws]
                    positive, negative = H[label], H[other]
                    for c in range(rank):
                        change[c] += step * (positive[c] - negative[c])
                    _step(positive, z, step, most)
                    _step(negative, z, -step, most)
                    scored_for[label], scored_for[other] = -1, -1
                    is_changed = True
                    break
        if is_changed:
            for e in range(indptr[row], indptr[row + 1]):
                _step(V[features[e]], change, values[e], most)
    state[0] = number


@reordering_kernel
def _score(z, h):
    total = np.float32(0)
    for c in range(len(z)):
        total += z[c] * h[c]
    return total


@reordering_kernel
def _step(vector, direction, size, max_norm):
    """Add a multiple of the direction, and bound the length."""
    square = np.float32(0)
    for c in range(len(vector)):
        vector[c] += size * direction[c]
        square += vector[c] * vector[c]
    if square > max_norm * max_norm:
        scale = max_norm / np.sqrt(square)
        for c in range(len(vector)):
            vector[c] *= scale
