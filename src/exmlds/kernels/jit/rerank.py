"""Linear classifiers, one per label, trained by dual coordinate descent, and their margins on short lists."""

import numpy as np

from .compiler import kernel, reordering_kernel

SHRINK_MARGIN = np.float32(0.05)  # as in the twin; kernels import no constants that numba's cache would miss


@kernel
def collect_examples(y_indptr, y_labels, listed, more_indptr, more_labels, position, rows, signs):
    """See the twin in reference/rerank.py."""
    is_filled = len(rows) > 0
    seen = np.full(len(position), -1, np.int64)  # the last row that a label was an example of
    for row in range(len(listed)):
        for p in range(y_indptr[row], y_indptr[row + 1]):
            label = y_labels[p]
            seen[label] = row
            if is_filled:
                rows[position[label]], signs[position[label]] = row, 1
            position[label] += 1
        n_listed, first = listed.shape[1], more_indptr[row]
        for i in range(n_listed + more_indptr[row + 1] - first):
            label = listed[row, i] if i < n_listed else more_labels[first + i - n_listed]
            if label >= 0 and seen[label] != row:
                seen[label] = row
                if is_filled:
                    rows[position[label]], signs[position[label]] = row, -1
                position[label] += 1


@kernel
def merge_examples(
    before_starts,
    before_rows,
    before_signs,
    before_alphas,
    row_numbers,
    added_starts,
    added_rows,
    added_signs,
    starts,
    rows,
    signs,
    alphas,
):
    """See the twin in reference/rerank.py."""
    is_filled, n_written = len(rows) > 0, 0
    for label in range(len(starts) - 1):
        p, end = before_starts[label], before_starts[label + 1]
        q, added_end = added_starts[label], added_starts[label + 1]
        while p < end or q < added_end:
            row = row_numbers[before_rows[p]] if p < end else -1
            if p < end and (q == added_end or row <= added_rows[q]):
                if is_filled:
                    rows[n_written], signs[n_written], alphas[n_written] = (
                        row,
                        before_signs[p],
                        before_alphas[p],
                    )
                p += 1
                if q < added_end and added_rows[q] == row:
                    q += 1
            else:
                if is_filled:
                    rows[n_written], signs[n_written], alphas[n_written] = added_rows[q], added_signs[q], 0
                q += 1
            n_written += 1
        starts[label + 1] = n_written


@reordering_kernel
def train_labels(
    indptr,
    features,
    values,
    squares,
    starts,
    rows,
    signs,
    costs,
    first,
    last,
    is_logistic,
    n_epochs,
    tolerance,
    keep_from,
    alphas,
    w,
    out_starts,
    out_features,
    out_values,
    out_bias,
):
    """See the twin in reference/rerank.py."""
    most = 0
    for label in range(first, last):
        most = max(most, starts[label + 1] - starts[label])
    order, is_moved = np.empty(most, np.int64), np.empty(most, np.bool_)
    n_out = 0
    for label in range(first, last):
        begin = starts[label]
        m = starts[label + 1] - begin
        alpha = alphas[begin : begin + m]
        # Start from w = Σ α sign x; the logistic dual is not defined at α = 0. A warm start shrinks at once.
        bias, threshold = np.float32(0), np.float32(np.inf)
        for i in range(m):
            order[i] = i
            if alpha[i] != 0:
                threshold = SHRINK_MARGIN
            elif is_logistic:
                alpha[i] = np.float32(1e-3) * costs[rows[begin + i]]
            is_moved[i] = alpha[i] != 0
            if is_moved[i]:
                row, step = rows[begin + i], alpha[i] * np.float32(signs[begin + i])
                bias += step
                for p in range(indptr[row], indptr[row + 1]):
                    w[features[p]] += step * values[p]
        state = np.uint64(label) * np.uint64(2654435761) + np.uint64(12345)
        active = m
        for _ in range(n_epochs):
            # Shuffle the active examples with a linear congruential generator, as the twin does.
            violation, largest = np.float32(0), np.float32(0)
            for i in range(active - 1, 0, -1):
                state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
                j = int((state >> np.uint64(33)) % np.uint64(i + 1))
                order[i], order[j] = order[j], order[i]
            position = 0
            while position < active:
                i = order[position]
                row, sign = rows[begin + i], np.float32(signs[begin + i])
                cost = costs[row]
                stop = indptr[row + 1]
                p = indptr[row]
                # Four independent sums hide the latency of the additions.
                a = b = c = d = np.float32(0)
                while p + 4 <= stop:
                    a += w[features[p]] * values[p]
                    b += w[features[p + 1]] * values[p + 1]
                    c += w[features[p + 2]] * values[p + 2]
                    d += w[features[p + 3]] * values[p + 3]
                    p += 4
                while p < stop:
                    a += w[features[p]] * values[p]
                    p += 1
                margin = sign * (bias + a + b + c + d)
                old = alpha[i]
                if is_logistic:
                    new = _logistic_step(old, cost, squares[row] + 1, margin)
                    violation = max(violation, abs(new - old) / cost)
                else:
                    slack = np.float32(0.5) / cost
                    gradient = margin - 1 + old * slack
                    if old == 0:
                        if gradient > threshold:  # shrinking
                            active -= 1
                            order[position], order[active] = order[active], order[position]
                            continue
                        if gradient >= 0:
                            position += 1
                            continue
                    violation = max(violation, abs(gradient))
                    largest = max(largest, gradient)
                    new = max(old - gradient / (squares[row] + 1 + slack), np.float32(0))
                step = (new - old) * sign
                if step != 0:
                    alpha[i] = new
                    is_moved[i] = True
                    bias += step
                    for p in range(indptr[row], indptr[row + 1]):
                        w[features[p]] += step * values[p]
                position += 1
            threshold = min(largest, SHRINK_MARGIN) if largest > 0 else SHRINK_MARGIN
            # Converged on the active set: stop, or check all examples once more.
            if violation < tolerance:
                if active == m:
                    break
                active, threshold = m, np.float32(np.inf)
        out_bias[label - first] = bias
        moved = rows[begin : begin + m][is_moved[:m]]
        n_out = _write_weights(indptr, features, moved, keep_from, w, out_features, out_values, n_out)
        out_starts[label - first + 1] = n_out


@reordering_kernel
def _write_weights(indptr, features, rows, keep_from, w, out_features, out_values, n_out):
    """Write the weights that are not pruned, all of them on features of these rows, and reset w to zeros."""
    # A scan of w is cheaper where the rows hold more values than there are features.
    n_read = 0
    for row in rows:
        n_read += indptr[row + 1] - indptr[row]
    largest = np.float32(0)
    if n_read > len(w):
        for f in range(len(w)):
            largest = max(largest, abs(w[f]))
        for f in range(len(w)):
            if w[f] != 0:
                if abs(w[f]) >= keep_from * largest:
                    out_features[n_out] = f
                    out_values[n_out] = w[f]
                    n_out += 1
                w[f] = 0
        return n_out
    for row in rows:
        for p in range(indptr[row], indptr[row + 1]):
            largest = max(largest, abs(w[features[p]]))
    for row in rows:
        for p in range(indptr[row], indptr[row + 1]):
            weight = w[features[p]]
            if weight != 0:
                w[features[p]] = 0
                if abs(weight) >= keep_from * largest:
                    out_features[n_out] = features[p]
                    out_values[n_out] = weight
                    n_out += 1
    return n_out


@reordering_kernel
def _logistic_step(old, cost, square, margin):
    """The root α in (0, cost) of log(α / (cost − α)) + margin + square (α − old), by Newton's method.

    The iteration is on z, the smaller of α and cost − α, so that neither loses precision.
    """
    a, b, c, start = np.float64(square), np.float64(margin), np.float64(cost), np.float64(old)
    is_lower = b + a * (c / 2 - start) > 0
    z = max(min(start if is_lower else c - start, c / 2), 1e-12 * c)
    for _ in range(20):
        rest = b + a * ((z if is_lower else c - z) - start)
        slope = np.log(z / (c - z)) + (rest if is_lower else -rest)
        if abs(slope) < 1e-3:
            break
        new = z - slope / (a + c / (z * (c - z)))
        z = min(new, c / 2) if new > 0 else z * 0.1
    return np.float32(z if is_lower else c - z)


@reordering_kernel
def score_labels(
    indptr, features, values, starts, labels, weights, dense, dense_slot, scale, bias, totals, ids, out
):
    """See the twin in reference/rerank.py."""
    for row in range(len(indptr) - 1):
        out[row] = 0
        n_added = 0
        for p in range(indptr[row], indptr[row + 1]):
            f, x = features[p], values[p]
            if dense_slot[f] >= 0:
                slot_weights = dense[dense_slot[f]]
                for k in range(ids.shape[1]):
                    out[row, k] += x * slot_weights[ids[row, k]]
            for q in range(starts[f], starts[f + 1]):
                totals[labels[q]] += x * weights[q]
            n_added += starts[f + 1] - starts[f]
        for k in range(ids.shape[1]):
            label = ids[row, k]
            out[row, k] = (out[row, k] + totals[label]) * scale[label] + bias[label]
            if label < 0:
                out[row, k] = -np.inf
        # Reset the work array by the cheaper of two ways.
        if n_added > len(totals):
            totals[:] = 0
        else:
            for p in range(indptr[row], indptr[row + 1]):
                for q in range(starts[features[p]], starts[features[p] + 1]):
                    totals[labels[q]] = 0
