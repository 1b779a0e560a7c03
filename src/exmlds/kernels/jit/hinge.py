"""Linear classifiers with few weights, one per label, trained on few examples each."""

import numpy as np

from .compiler import kernel, reordering_kernel

LEAST_ADDED = 16  # as in the twin; kernels import no constants that numba's cache would miss


@kernel
def train_hinge(
    indptr,
    features,
    values,
    squares,
    f_starts,
    f_rows,
    f_values,
    y_starts,
    y_rows,
    first,
    last,
    slack,
    most,
    l1,
    n_passes,
    n_epochs,
    tolerance,
    out_starts,
    out_features,
    out_values,
    out_bias,
):
    """See the twin in reference/hinge.py."""
    n, d = len(indptr) - 1, len(f_starts) - 1
    signs, alpha, margins = np.zeros(n, np.int8), np.zeros(n, np.float32), np.zeros(n, np.float32)
    active, touched, outside = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    is_used, used, sums, w = (
        np.zeros(d, np.bool_),
        np.empty(d, np.int32),
        np.zeros(d, np.float32),
        np.zeros(d, np.float32),
    )
    rows = indptr, features, values, squares
    limits = slack, most, l1, tolerance
    n_out = 0
    for label in range(first, last):
        state = np.uint64(label) * np.uint64(2654435761) + np.uint64(12345)
        n_active = 0
        for p in range(y_starts[label], y_starts[label + 1]):
            signs[y_rows[p]], active[n_active] = 1, y_rows[p]
            n_active += 1
        state, n_active = _add_random(signs, active, n_active, n_active, margins, state)
        n_used, bias, epoch = 0, np.float32(0), 0
        while epoch < n_epochs:
            violation = np.float32(0)
            for _ in range(min(n_passes, n_epochs - epoch)):
                state = _shuffle(active, n_active, state)
                violation, bias, n_used = _descend(
                    *rows, active[:n_active], signs, *limits, alpha, sums, w, is_used, used, n_used, bias
                )
                epoch += 1
                if violation < tolerance:
                    break
            n_active = _shrink(active, n_active, signs, alpha)
            n_touched = _multiply(w, used, n_used, f_starts, f_rows, f_values, margins, touched)
            n_before = n_active
            state, n_active = _add_violating(
                margins, touched[:n_touched], bias, tolerance, signs, active, n_active, outside, state
            )
            for row in touched[:n_touched]:
                margins[row] = 0
            if n_active == n_before and violation < tolerance:
                break
        for i in range(n_active):
            signs[active[i]] = alpha[active[i]] = 0
        for f in used[:n_used]:
            if w[f] != 0:
                out_features[n_out], out_values[n_out] = f, w[f]
                n_out += 1
            is_used[f], sums[f], w[f] = False, 0, 0
        out_starts[label - first + 1], out_bias[label - first] = n_out, bias


@kernel
def _draw(state, n):
    """A number below n, by a linear congruential generator, and its next state."""
    state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
    return state, int(((state >> np.uint64(33)) * np.uint64(n)) >> np.uint64(31))


@kernel
def _shuffle(active, n_active, state):
    for i in range(n_active - 1, 0, -1):
        state, j = _draw(state, i + 1)
        active[i], active[j] = active[j], active[i]
    return state


@kernel
def _add_random(signs, active, n_active, n_draws, margins, state):
    """Draw rows, and add those to the active set that are not in it and share no feature with w."""
    for _ in range(n_draws):
        state, row = _draw(state, len(signs))
        if signs[row] == 0 and margins[row] == 0:
            signs[row], active[n_active] = -1, row
            n_active += 1
    return state, n_active


@reordering_kernel
def _inner(w, features, values):
    total = np.float32(0)
    for p in range(len(values)):
        total += w[features[p]] * values[p]
    return total


@kernel
def _descend(
    indptr,
    features,
    values,
    squares,
    active,
    signs,
    slack,
    most,
    l1,
    tolerance,
    alpha,
    sums,
    w,
    is_used,
    used,
    n_used,
    bias,
):
    """One pass over the active examples; returns the largest gradient, the bias and the features used."""
    violation = np.float32(0)
    for row in active:
        sign, old = np.float32(signs[row]), alpha[row]
        here = slice(indptr[row], indptr[row + 1])
        own_features, own_values = features[here], values[here]
        gradient = sign * (bias + _inner(w, own_features, own_values)) - 1 + old * slack
        if (old == 0 and gradient >= 0) or (old == most and gradient <= 0):
            continue
        violation = max(violation, abs(gradient))
        new = min(max(old - gradient / (squares[row] + 1 + slack), np.float32(0)), most)
        step = np.float32((new - old) * sign)
        if step == 0:
            continue
        alpha[row] = new
        bias += step
        for p in range(len(own_values)):
            f = own_features[p]
            if not is_used[f]:
                is_used[f], used[n_used] = True, f
                n_used += 1
            sums[f] = total = sums[f] + step * own_values[p]
            w[f] = max(total - l1, np.float32(0)) + min(total + l1, np.float32(0))
    return violation, bias, n_used


@kernel
def _shrink(active, n_active, signs, alpha):
    """Drop negative examples with α = 0 from the active set."""
    n_kept = 0
    for i in range(n_active):
        row = active[i]
        if signs[row] > 0 or alpha[row] > 0:
            active[n_kept] = row
            n_kept += 1
        else:
            signs[row] = 0
    return n_kept


@kernel
def _multiply(w, used, n_used, f_starts, f_rows, f_values, margins, touched):
    """Write ⟨w, x⟩ of the rows that share a feature with w; returns how many there are."""
    n_touched = 0
    for f in used[:n_used]:
        weight = w[f]
        if weight == 0:
            continue
        for p in range(f_starts[f], f_starts[f + 1]):
            row = f_rows[p]
            if margins[row] == 0:
                touched[n_touched] = row
                n_touched += 1
            margins[row] += weight * f_values[p]
            if margins[row] == 0:  # the sum of terms that cancel out; the row must not be listed again
                margins[row] = np.float32(1e-30)
    return n_touched


@kernel
def _add_violating(margins, touched, bias, tolerance, signs, active, n_active, outside, state):
    """Add the rows that violate the margin most to the active set, at most as many as it has."""
    n_outside, limit = 0, max(n_active, LEAST_ADDED)
    for row in touched:
        if signs[row] == 0 and 1 + bias + margins[row] > tolerance:
            outside[n_outside] = row
            n_outside += 1
    n_added = min(n_outside, limit)
    if n_outside > limit:
        order = np.argsort(-margins[outside[:n_outside]], kind="mergesort")
        for i in range(limit):
            row = outside[order[i]]
            signs[row], active[n_active + i] = -1, row
    else:
        for i in range(n_outside):
            signs[outside[i]], active[n_active + i] = -1, outside[i]
    n_active += n_added
    if 1 + bias > tolerance:
        state, n_active = _add_random(signs, active, n_active, limit - n_added, margins, state)
    return state, n_active
