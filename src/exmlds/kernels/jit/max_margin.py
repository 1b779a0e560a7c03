"""Sparse weights of all labels with the max-margin loss, by steps on the dual variables of one row."""

import numpy as np

from .compiler import kernel

FIRST_SIZE = 4  # slots of a new table or list
LEAST_VIOLATION, LEAST_ALPHA = np.float32(1e-3), np.float32(1e-7)  # as in the twin


@kernel
def train_max_margin(
    indptr,
    features,
    values,
    squares,
    order,
    n_features,
    n_select,
    cost,
    l1,
    most_dense,
    seed,
    starts,
    n_positive,
    counts,
    labels,
    alphas,
    scores,
):
    """See the twin in reference/max_margin.py.

    Xᵀα is a dense matrix, or has a table of labels and values for each feature, with open addressing. The
    weights that are not 0 are in lists, one for each feature.
    """
    d, n_labels = n_features, len(scores)
    is_dense = d * n_labels <= most_dense
    t_start, t_size, t_count = np.zeros(d, np.int64), np.zeros(d, np.int64), np.zeros(d, np.int64)
    keys, sums = np.empty(0, np.int32), np.zeros(d * n_labels if is_dense else 0, np.float32)
    l_start, l_size, l_count = np.zeros(d, np.int64), np.zeros(d, np.int64), np.zeros(d, np.int64)
    l_labels, l_weights = np.empty(0, np.int32), np.empty(0, np.float32)
    t_end = l_end = 0
    mark, touched, widest = np.zeros(n_labels, np.int32), np.empty(n_labels, np.int32), 0
    for row in range(len(starts) - 1):
        widest = max(widest, starts[row + 1] - starts[row])
    changed, steps, weights = (
        np.empty(widest, np.int32),
        np.empty(widest, np.float32),
        np.empty(widest, np.float32),
    )
    targets, chosen, state = np.empty(widest, np.float64), np.empty(n_select, np.int32), np.uint64(seed)
    # First the sums of the dual variables that are given are formed, as if each of them were a step.
    n_given = len(starts) - 1
    for visit in range(n_given + len(order)):
        is_given = visit < n_given
        row = visit if is_given else order[visit - n_given]
        begin, n_active, n_changed = starts[row], counts[row], 0
        here = slice(indptr[row], indptr[row + 1])
        own_features, own_values = features[here], values[here]
        if n_positive[row] == 0 or squares[row] == 0:
            continue
        if is_given:
            for a in range(begin, begin + n_active):
                if alphas[a] != 0:
                    changed[n_changed], steps[n_changed] = labels[a], alphas[a]
                    n_changed += 1
        else:
            n_touched = _multiply(
                own_features, own_values, l_start, l_count, l_labels, l_weights, scores, touched
            )
            state, n_active = _add_violating(
                scores,
                touched[:n_touched],
                labels[begin : starts[row + 1]],
                alphas[begin : starts[row + 1]],
                n_active,
                n_positive[row],
                mark,
                chosen,
                state,
            )
            end, middle = begin + n_active, n_positive[row]
            own = targets[:n_active]
            for i in range(n_active):
                label = labels[begin + i]
                slope = scores[label] if i < middle else 1 + scores[label]
                own[i] = alphas[begin + i] - slope / squares[row]
            for i in range(middle, n_active):
                own[i] = -own[i]
            _project(own[middle:], own[:middle], cost)
            for i in range(middle, n_active):
                own[i] = -own[i]
            n_kept = begin
            for a in range(begin, end):
                new = np.float32(own[a - begin])
                if abs(new) < LEAST_ALPHA:
                    new = np.float32(0)
                if new != alphas[a]:
                    changed[n_changed], steps[n_changed] = labels[a], new - alphas[a]
                    n_changed += 1
                if a < begin + middle or new != 0:
                    labels[n_kept], alphas[n_kept] = labels[a], new
                    n_kept += 1
            counts[row] = n_kept - begin
            for label in touched[:n_touched]:
                scores[label] = 0
        if n_changed == 0:
            continue
        for a in range(n_changed):
            mark[changed[a]] = a + 1
        for p in range(len(own_features)):
            f, x = own_features[p], own_values[p]
            if not is_dense and t_size[f] < n_labels and 2 * (t_count[f] + n_changed) > t_size[f]:
                keys, sums, t_end = _grow_table(
                    f, t_count[f] + n_changed, n_labels, t_start, t_size, t_end, keys, sums
                )
            if l_count[f] + n_changed > l_size[f]:
                l_labels, l_weights, l_end = _grow_list(
                    f, l_count[f] + n_changed, l_start, l_size, l_end, l_labels, l_weights
                )
            n_listed = 0
            for a in range(n_changed):
                label = changed[a]
                if is_dense:
                    slot = f * n_labels + label
                else:
                    slot = _slot(keys, t_start[f], t_size[f], label)
                    if keys[slot] < 0:
                        keys[slot], sums[slot] = label, 0
                        t_count[f] += 1
                old = sums[slot]
                sums[slot] = new_sum = np.float32(old + x * steps[a])
                weights[a] = _soft(new_sum, l1)
                if _soft(old, l1) != 0:
                    n_listed += 1
                elif weights[a] != 0:  # it is not in the list yet
                    last = l_start[f] + l_count[f]
                    l_labels[last], l_weights[last] = label, weights[a]
                    l_count[f] += 1
                    n_listed += 1
            position = l_start[f]
            while n_listed > 0:
                a = mark[l_labels[position]] - 1
                if a >= 0:
                    n_listed -= 1
                    if weights[a] == 0:
                        l_count[f] -= 1
                        last = l_start[f] + l_count[f]
                        l_labels[position], l_weights[position] = l_labels[last], l_weights[last]
                        continue
                    l_weights[position] = weights[a]
                position += 1
        for a in range(n_changed):
            mark[changed[a]] = 0


@kernel
def _soft(value, l1):
    return max(value - l1, np.float32(0)) + min(value + l1, np.float32(0))


@kernel
def _slot(keys, start, size, label):
    """Where a label is in a table, or the empty slot where it belongs; size is a power of 2."""
    i = label & (size - 1)
    while keys[start + i] >= 0 and keys[start + i] != label:
        i = (i + 1) & (size - 1)
    return start + i


@kernel
def _grow_table(feature, n_entries, n_labels, t_start, t_size, t_end, keys, sums):
    """Move the table of a feature to a larger one; returns the arrays, and the end of what is in use."""
    size = FIRST_SIZE
    while size < n_labels and size < 2 * n_entries:
        size *= 2
    if t_end + size > len(keys):
        # Tables that have moved leave gaps, which go where all tables move to new arrays.
        keys, sums, t_end = _move(t_start, t_size, keys, sums, size)
    old = slice(t_start[feature], t_start[feature] + t_size[feature])
    keys[t_end : t_end + size] = -1
    for p in range(old.start, old.stop):
        if keys[p] >= 0:
            slot = _slot(keys, t_end, size, keys[p])
            keys[slot], sums[slot] = keys[p], sums[p]
    t_start[feature], t_size[feature] = t_end, size
    return keys, sums, t_end + size


@kernel
def _grow_list(feature, n_entries, l_start, l_size, l_end, l_labels, l_weights):
    """Move the list of a feature to a larger one; returns the arrays, and the end of what is in use."""
    size = max(FIRST_SIZE, 2 * n_entries)
    if l_end + size > len(l_labels):
        l_labels, l_weights, l_end = _move(l_start, l_size, l_labels, l_weights, size)
    old, n = l_start[feature], l_size[feature]
    for p in range(n):
        l_labels[l_end + p], l_weights[l_end + p] = l_labels[old + p], l_weights[old + p]
    l_start[feature], l_size[feature] = l_end, size
    return l_labels, l_weights, l_end + size


@kernel
def _move(start, size, labels, values, n_more):
    """Copy the parts of all features, one after the other, to arrays that have room for more."""
    n = size.sum()
    new_labels, new_values, end = (
        np.empty(n + n // 2 + 16 * n_more, np.int32),
        np.empty(n + n // 2 + 16 * n_more, np.float32),
        0,
    )
    for f in range(len(start)):
        for p in range(size[f]):
            new_labels[end + p], new_values[end + p] = labels[start[f] + p], values[start[f] + p]
        start[f] = end
        end += size[f]
    return new_labels, new_values, end


@kernel
def _multiply(features, values, l_start, l_count, l_labels, l_weights, scores, touched):
    """Write the scores of the labels that share a feature with a row; returns how many there are."""
    n_touched = 0
    for p in range(len(features)):
        f, x = features[p], values[p]
        for q in range(l_start[f], l_start[f] + l_count[f]):
            label = l_labels[q]
            if scores[label] == 0:
                touched[n_touched] = label
                n_touched += 1
            scores[label] += x * l_weights[q]
            if scores[label] == 0:  # terms that cancel out; the label must not be listed again
                scores[label] = np.float32(1e-30)
    return n_touched


@kernel
def _add_violating(scores, touched, labels, alphas, n_active, n_positive, mark, chosen, state):
    """Add the negative labels with the highest scores that violate the margin to the active set of a row."""
    limit, n_chosen, lowest = min(len(chosen), len(labels) - n_active), 0, np.float32(np.inf)
    for i in range(n_active):
        mark[labels[i]] = 1
        if i < n_positive:
            lowest = min(lowest, scores[labels[i]])
    for label in touched:
        if mark[label] == 0 and 1 + scores[label] - lowest > LEAST_VIOLATION:
            n_chosen = _insert(scores, label, chosen, n_chosen, limit)
    n_above = 0
    while n_above < n_chosen and scores[chosen[n_above]] > 0:
        n_above += 1
    if 1 - lowest > LEAST_VIOLATION:
        for _ in range(limit - n_above):
            # A linear congruential generator draws one of the labels that share no feature with the row.
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            label = np.int32(((state >> np.uint64(33)) * np.uint64(len(scores))) >> np.uint64(31))
            if mark[label] == 0 and scores[label] == 0:
                mark[label] = 1
                n_chosen = _insert(scores, label, chosen, n_chosen, limit)
    for i in range(n_active):
        mark[labels[i]] = 0
    for label in chosen[:n_chosen]:
        mark[label] = 0
        labels[n_active], alphas[n_active] = label, 0
        n_active += 1
    return state, n_active


@kernel
def _insert(scores, label, chosen, n_chosen, limit):
    """Insert a label into a list, sorted by descending score and then by label, whose last may drop out."""
    if n_chosen == limit:
        if limit == 0 or not _is_before(scores, label, chosen[limit - 1]):
            return n_chosen
        n_chosen -= 1
    i = n_chosen
    while i > 0 and _is_before(scores, label, chosen[i - 1]):
        chosen[i] = chosen[i - 1]
        i -= 1
    chosen[i] = label
    return n_chosen + 1


@kernel
def _is_before(scores, label, other):
    return scores[label] > scores[other] or (scores[label] == scores[other] and label < other)


@kernel
def _project(b, c, total):
    """The nearest b ≥ 0 and c ≥ 0 with Σb = Σc ≤ total, written in place."""
    if len(b) == 0 or len(c) == 0 or b.max() + c.max() <= 0:
        b[:] = 0
        c[:] = 0
        return
    # The solution is max(b − θ, 0), max(c + θ, 0). Entries that are above 0 stay so as others join them.
    sorted_b, sorted_c = np.sort(b)[::-1], np.sort(c)[::-1]
    i = j = 1
    sum_b, sum_c = sorted_b[0], sorted_c[0]
    shift = (sum_b - sum_c) / 2
    while True:
        if i < len(b) and sorted_b[i] > shift:
            sum_b += sorted_b[i]
            i += 1
        elif j < len(c) and sorted_c[j] > -shift:
            sum_c += sorted_c[j]
            j += 1
        else:
            break
        shift = (sum_b - sum_c) / (i + j)
    shift_b, shift_c = shift, -shift
    if sum_b - i * shift > total:
        shift_b, shift_c = _simplex_shift(sorted_b, total), _simplex_shift(sorted_c, total)
    for i in range(len(b)):
        b[i] = max(b[i] - shift_b, 0.0)
    for j in range(len(c)):
        c[j] = max(c[j] - shift_c, 0.0)


@kernel
def _simplex_shift(descending, total):
    """The θ with Σ max(v − θ, 0) = total, for sorted values v."""
    n, sum_ = 1, descending[0]
    shift = sum_ - total
    while n < len(descending) and descending[n] > shift:
        sum_ += descending[n]
        n += 1
        shift = (sum_ - total) / n
    return shift
