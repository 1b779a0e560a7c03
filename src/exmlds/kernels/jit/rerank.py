"""Linear classifiers, one per label, trained by dual coordinate descent, and their margins on short lists."""

import numpy as np

from .compiler import kernel, reordering_kernel

SETTLED = np.float32(0.2)  # as in the twin, as the next one
SHRINK_MARGIN = np.float32(0.05)  # as in the twin; kernels import no constants that numba's cache would miss
MAX_COPIED = 2**18  # values of a label's examples that are copied at most: 1.5 MB, a second-level cache
FEW_EPOCHS = 2  # up to which a copy takes longer than it saves
UNUSED = np.uint32(2**32 - 1)
# Unsigned indices need no check for negative ones, and numba adds only unsigned numbers to them.
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


@kernel
def collect_examples(first, y_indptr, y_labels, listed, more_indptr, more_labels, position, rows, signs):
    """See the twin in reference/rerank.py."""
    is_filled = len(rows) > 0
    seen = np.full(len(position), -1, np.int64)  # the last row that a label was an example of
    for row in range(len(listed)):
        for p in range(y_indptr[row], y_indptr[row + 1]):
            label = y_labels[p]
            seen[label] = row
            if is_filled:
                rows[position[label]], signs[position[label]] = first + row, 1
            position[label] += 1
        n_listed, start = listed.shape[1], more_indptr[row]
        for i in range(n_listed + more_indptr[row + 1] - start):
            label = listed[row, i] if i < n_listed else more_labels[start + i - n_listed]
            if label >= 0 and seen[label] != row:
                seen[label] = row
                if is_filled:
                    rows[position[label]], signs[position[label]] = first + row, -1
                position[label] += 1


@kernel
def merge_examples(
    before_starts,
    before_rows,
    before_signs,
    before_alphas,
    added_starts,
    added_rows,
    added_signs,
    starts,
    rows,
    signs,
    alphas,
):
    """See the twin in reference/rerank.py."""
    is_filled, n_written = len(rows) > 0, starts[0]
    for label in range(len(starts) - 1):
        p, end = before_starts[label], before_starts[label + 1]
        for q in range(added_starts[label], added_starts[label + 1]):
            while p < end and before_rows[p] < added_rows[q]:
                if is_filled:
                    rows[n_written], signs[n_written] = before_rows[p], before_signs[p]
                    alphas[n_written] = before_alphas[p]
                n_written += 1
                p += 1
            if p == end or before_rows[p] > added_rows[q]:
                if is_filled:
                    rows[n_written], signs[n_written], alphas[n_written] = added_rows[q], added_signs[q], 0
                n_written += 1
        last = n_written + end - p
        if is_filled:
            rows[n_written:last], signs[n_written:last] = before_rows[p:end], before_signs[p:end]
            alphas[n_written:last] = before_alphas[p:end]
        starts[label + 1] = n_written = last


@kernel
def select_examples(
    starts,
    rows,
    signs,
    alphas,
    labels,
    is_live,
    own_starts,
    positions,
    own_rows,
    own_signs,
    own_alphas,
):
    """See the twin in reference/rerank.py."""
    is_filled, at, stop = len(positions) > 0, own_starts[0], own_starts[len(labels)]
    for i in range(len(labels)):
        for p in range(starts[labels[i]], starts[labels[i] + 1]):
            # Those that are left out are written too, and overwritten, as in `merge_weights`.
            if is_filled and at < stop:
                positions[at], own_rows[at], own_signs[at] = p, rows[p], signs[p]
                own_alphas[at] = max(alphas[p], np.float32(0))
            at += ((signs[p] > 0) | (alphas[p] >= 0)) & is_live[rows[p]]
        own_starts[i + 1] = at


@kernel
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
    n_new_epochs,
    n_epochs,
    tolerance,
    keep_from,
    alphas,
    w,
    out_starts,
    out_features,
    out_values,
    out_scale,
    out_bias,
):
    """See the twin in reference/rerank.py."""
    most, most_values, is_repeated = 0, 0, n_epochs > FEW_EPOCHS
    for label in range(first, last):
        most = max(most, starts[label + 1] - starts[label])
        most_values = max(most_values, _count_values(indptr, rows[starts[label] : starts[label + 1]]))
    # A copy of a label's examples, with its features numbered from 0, stays in the cache during all passes.
    copy_size = min(most_values, MAX_COPIED) if is_repeated else 0
    own_features, own_values = np.empty(copy_size, features.dtype), np.empty(copy_size, np.float32)
    all_features, used = np.arange(len(w), dtype=np.uint32), np.empty(len(w) + 1, np.uint32)
    number = np.full(len(w), UNUSED, np.uint32)
    begins, ends, order = np.empty(most, np.uint64), np.empty(most, np.uint64), np.empty(most, np.uint32)
    n_out = 0
    for label in range(first, last):
        here = slice(starts[label], starts[label + 1])
        own, alpha = rows[here], alphas[here]
        n_values = _count_values(indptr, own)
        # w[i] is the weight of feature names[i], for each i in at.
        if is_repeated and n_values <= copy_size:
            n_used = _copy_rows(
                indptr, features, values, own, number, begins, ends, own_features, own_values, used
            )
            at, names, x = all_features[:n_used], used, (begins, ends, own_features, own_values)
        else:
            for i in range(len(own)):
                begins[i], ends[i] = indptr[own[i]], indptr[own[i] + 1]
            at, names, x = all_features, all_features, (begins, ends, features, values)
            if n_values < 4 * len(w):  # Most features would have no weight.
                at = used[: _list_features(begins[: len(own)], ends, features, number, used)]
        seed = np.uint64(label) * np.uint64(2654435761) + np.uint64(12345)
        limits = is_logistic, n_new_epochs, n_epochs, tolerance
        out_bias[label - first] = _descend(
            *x, own, signs[here], squares, costs, seed, *limits, alpha, order, w
        )
        largest = np.float32(0)
        for i in at:
            largest = max(largest, abs(w[i]))
        out_scale[label - first] = scale = largest / np.float32(127)
        least, divisor, begin = keep_from * largest, scale if scale > 0 else np.float32(1), n_out
        for i in at:
            # Those that are pruned are written too, and overwritten: a branch would often be predicted wrong.
            out_features[n_out] = i
            n_out += (w[i] != 0) & (abs(w[i]) >= least)
        for p in range(begin, n_out):
            i = out_features[p]
            out_features[p], out_values[p] = names[i], np.int8(np.rint(w[i] / divisor))
        for i in at:
            w[i] = 0
        out_starts[label - first + 1] = n_out


@kernel
def _count_values(indptr, rows):
    count = 0
    for row in rows:
        count += indptr[row + 1] - indptr[row]
    return count


@kernel
def _list_features(begins, ends, features, number, used):
    """List the features of examples in the order of their first use; returns the number of these.

    number : as in `_copy_rows`
    """
    n_used = np.uint32(0)
    for i in range(len(begins)):
        for p in range(begins[i], ends[i]):
            # No branch, as in `_copy_rows`.
            used[n_used] = features[p]
            n_used += np.uint32(number[features[p]] == UNUSED)
            number[features[p]] = 0
    for f in used[:n_used]:
        number[f] = UNUSED
    return n_used


@kernel
def _copy_rows(indptr, features, values, rows, number, begins, ends, own_features, own_values, used):
    """Copy rows, and number their features in the order of their first use; returns the number of these.

    number : (d,) UNUSED, a work array that is so again at the end
    """
    n_copied, n_used = np.uint64(0), np.uint32(0)
    for i in range(len(rows)):
        begins[i] = n_copied
        for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
            f = features[p]
            # No branch, which would often be predicted wrong: an unused number is larger than all others.
            own_number = min(number[f], n_used)
            number[f], used[n_used] = own_number, f
            n_used += np.uint32(own_number == n_used)
            own_features[n_copied], own_values[n_copied] = own_number, values[p]
            n_copied += ONE
        ends[i] = n_copied
    for f in used[:n_used]:
        number[f] = UNUSED
    return n_used


@kernel
def _descend(
    begins,
    ends,
    features,
    values,
    rows,
    signs,
    squares,
    costs,
    state,
    is_logistic,
    n_new_epochs,
    n_epochs,
    tolerance,
    alpha,
    order,
    w,
):
    """Dual coordinate descent of one label; writes w and α, and returns the bias.

    begins, ends : where the values of each example are
    state : of the random generator
    w : (d,) float32 zeros
    """
    m, n_new = len(rows), 0
    # Start from w = Σ α sign x; the logistic dual is not defined at α = 0. A warm start shrinks at once.
    bias, threshold = np.float32(0), np.float32(np.inf)
    slacks, rates = np.empty(m, np.float32), np.empty(m, np.float32)
    for i in range(m):
        slacks[i] = np.float32(0.5) / costs[rows[i]]
        rates[i] = 1 / (squares[rows[i]] + 1 + slacks[i])
        # New examples are before the others.
        if alpha[i] == 0:
            order[n_new] = i
            n_new += 1
        else:
            order[m - 1 - i + n_new] = i
            threshold = SHRINK_MARGIN
        if alpha[i] == 0 and is_logistic:
            alpha[i] = np.float32(1e-3) * costs[rows[i]]
        if alpha[i] != 0:
            step = alpha[i] * np.float32(signs[i])
            bias += step
            for p in range(begins[i], ends[i]):
                w[features[p]] += step * values[p]
    active, epoch = m, 0
    if n_new_epochs > 0 and 0 < n_new < m:
        active, epoch, threshold = n_new, -n_new_epochs, np.float32(np.inf)
    else:
        for i in range(m):
            order[i] = i
    while epoch < n_epochs:
        # Shuffle the active examples with a linear congruential generator, as the twin does.
        violation, largest, total = np.float32(0), np.float32(0), np.float32(0)
        for i in range(active - 1, 0, -1):
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            j = int(((state >> np.uint64(33)) * np.uint64(i + 1)) >> np.uint64(31))
            order[i], order[j] = order[j], order[i]
        position = 0
        while position < active:
            i = order[position]
            sign = np.float32(signs[i])
            # Four independent sums hide the latency of the additions.
            a = b = c = d = np.float32(0)
            for p in range(begins[i], ends[i], FOUR):
                a += w[features[p]] * values[p]
                b += w[features[p + ONE]] * values[p + ONE]
                c += w[features[p + TWO]] * values[p + TWO]
                d += w[features[p + THREE]] * values[p + THREE]
            margin = sign * (bias + ((a + b) + (c + d)))
            old = alpha[i]
            if is_logistic:
                cost = costs[rows[i]]
                new = _logistic_step(old, cost, squares[rows[i]] + 1, margin)
                violation = max(violation, abs(new - old) / cost)
            else:
                gradient = margin - 1 + old * slacks[i]
                if old == 0:
                    if gradient > threshold:  # shrinking
                        active -= 1
                        order[position], order[active] = order[active], order[position]
                        continue
                    if gradient >= 0:
                        position += 1
                        continue
                violation = max(violation, abs(gradient))
                total += abs(gradient)
                largest = max(largest, gradient)
                new = max(old - gradient * rates[i], np.float32(0))
            step = (new - old) * sign
            if step != 0:
                alpha[i] = new
                bias += step
                for p in range(begins[i], ends[i], FOUR):
                    w[features[p]] += step * values[p]
                    w[features[p + ONE]] += step * values[p + ONE]
                    w[features[p + TWO]] += step * values[p + TWO]
                    w[features[p + THREE]] += step * values[p + THREE]
            position += 1
        threshold = min(largest, SHRINK_MARGIN) if largest > 0 else SHRINK_MARGIN
        epoch += 1
        if epoch <= 0:  # The pass was over new examples alone.
            if violation < tolerance or epoch == 0:
                active, epoch, threshold = m, 0, SHRINK_MARGIN
        elif n_new_epochs > 0 and not is_logistic and total < SETTLED * tolerance * np.float32(active):
            break
        # Converged on the active set: stop, or check all examples once more.
        elif violation < tolerance:
            if active == m:
                break
            active, threshold = m, np.float32(np.inf)
    return bias


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


@kernel
def average_rows(
    indptr,
    features,
    values,
    starts,
    rows,
    factors,
    idf,
    first,
    last,
    keep_from,
    w,
    out_starts,
    out_features,
    out_values,
    out_scale,
):
    """See the twin in reference/rerank.py."""
    is_new, used, n_out = np.ones(len(w), np.uint8), np.empty(len(w) + 1, np.uint32), 0
    for label in range(first, last):
        n_used = np.uint32(0)
        for row in rows[starts[label] : starts[label + 1]]:
            for p in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
                f = features[p]
                # No branch, as in `_copy_rows`.
                used[n_used] = f
                n_used += np.uint32(is_new[f])
                is_new[f] = 0
                w[f] += factors[row] * values[p]
        square, largest = 0.0, np.float32(0)
        for f in used[:n_used]:
            is_new[f] = 1
            w[f] *= idf[f]
            square += np.float64(w[f]) * np.float64(w[f])
            w[f] *= idf[f]
            largest = max(largest, abs(w[f]))
        out_scale[label - first] = scale = largest / np.float32(127)
        if square > 0:
            out_scale[label - first] = scale / np.sqrt(square)
        divisor, least = scale if scale > 0 else np.float32(1), keep_from * largest
        for f in used[:n_used]:
            # Those that are pruned are written too, and overwritten.
            out_features[n_out], out_values[n_out] = f, np.int8(np.rint(w[f] / divisor))
            n_out += abs(w[f]) > least
            w[f] = 0
        out_starts[label - first + 1] = n_out


@kernel
def group_by_feature(first, starts, features, values, dense_slot, position, labels, grouped, dense):
    """See the twin in reference/rerank.py."""
    is_filled = len(dense_slot) > 0
    for i in range(len(starts) - 1):
        label = first + i
        for p in range(starts[i], starts[i + 1]):
            f = features[p]
            if not is_filled:
                position[f] += 1
            elif dense_slot[f] >= 0:
                dense[dense_slot[f], label] = values[p]
            else:
                labels[position[f]], grouped[position[f]] = label, values[p]
                position[f] += 1


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


@kernel
def merge_weights(
    starts, labels, values, is_replaced, add_starts, add_labels, add_values, ends, out_labels, out_values
):
    """See the twin in reference/rerank.py."""
    is_filled, at, stop = len(out_labels) > 0, ends[0], ends[len(ends) - 1]
    for feature in range(len(starts) - 1):
        begin, end = starts[feature], starts[feature + 1]
        add_begin, add_end = add_starts[feature], add_starts[feature + 1]
        if is_filled:
            for p in range(begin, end):
                # Those that are left out are written too, and overwritten: a branch for them would often be
                # predicted wrong, but not one for the last of all.
                if at < stop:
                    out_labels[at], out_values[at] = labels[p], values[p]
                at += 1 - is_replaced[labels[p]]
            for p in range(add_begin, add_end):
                out_labels[at], out_values[at] = add_labels[p], add_values[p]
                at += 1
        else:
            for p in range(begin, end):
                at += 1 - is_replaced[labels[p]]
            at += add_end - add_begin
        ends[feature + 1] = at
