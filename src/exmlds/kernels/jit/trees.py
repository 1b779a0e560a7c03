"""Trees that divide rows by their labels and then by their features: growing a level, and walking down."""

import numpy as np

from .compiler import kernel, reordering_kernel

# As in the twin; kernels import no constants that numba's cache would miss.
LEAST_GAIN = 1e-10
N_SWEEPS, INNER_SHARE = 10, 0.1
N_HALVINGS, DECREASE = 30, 0.01
LEAST_CURVATURE = 1e-12


@kernel
def assign_sides(indptr, labels, gains, discounts, rows, begins, ends, states, n_rounds, sides):
    """See the twin in reference/trees.py."""
    number = np.full(len(gains), -1, np.int64)
    ideals = np.cumsum(discounts)
    for node in range(len(begins)):
        first, last, state = begins[node], ends[node], states[node]
        n_values = 0
        for p in range(first, last):
            n_values += indptr[rows[p] + 1] - indptr[rows[p]]
        used, n_used = np.empty(min(n_values, len(gains)), np.int64), 0
        for p in range(first, last):
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            sides[p] = np.int8(state >> np.uint64(63))
            for q in range(indptr[rows[p]], indptr[rows[p] + 1]):
                if number[labels[q]] < 0:
                    number[labels[q]], used[n_used] = n_used, labels[q]
                    n_used += 1
        sums, weights = np.empty((2, n_used)), np.empty((2, n_used))
        for _ in range(n_rounds):
            sums[:] = 0
            for p in range(first, last):
                start, stop = indptr[rows[p]], indptr[rows[p] + 1]
                for q in range(start, stop):
                    sums[sides[p], number[labels[q]]] += gains[labels[q]] / ideals[stop - start - 1]
            for side in range(2):
                order = np.argsort(-sums[side], kind="mergesort")
                for rank in range(n_used):
                    weights[side, order[rank]] = discounts[rank]
            has_changed = False
            for p in range(first, last):
                gain = 0.0
                for q in range(indptr[rows[p]], indptr[rows[p] + 1]):
                    own = number[labels[q]]
                    gain += gains[labels[q]] * (weights[1, own] - weights[0, own])
                side = np.int8(gain > 0)
                if abs(gain) > LEAST_GAIN and side != sides[p]:
                    sides[p], has_changed = side, True
            if not has_changed:
                break
        for label in used[:n_used]:
            number[label] = -1


@kernel
def fit_separators(
    indptr,
    features,
    values,
    n_features,
    rows,
    sides,
    begins,
    ends,
    costs,
    tolerance,
    n_steps,
    starts,
    out_features,
    out_weights,
    bias,
    margins,
):
    """See the twin in reference/trees.py."""
    number, n_out = np.full(n_features, -1, np.int64), starts[0]
    for node in range(len(begins)):
        first, n = begins[node], ends[node] - begins[node]
        n_right = 0
        for p in range(first, first + n):
            n_right += sides[p]
            margins[p] = 0
        bias[node] = 0
        if 0 < n_right < n:
            signs, of_rows = np.empty(n), np.empty(n)
            for i in range(n):
                signs[i] = 2.0 * sides[first + i] - 1
                of_rows[i] = costs[node] * n / (n_right if sides[first + i] else n - n_right)
            names, columns, members, entries = _by_feature(
                indptr, features, values, rows[first : first + n], number
            )
            w = _descend(columns, members, entries, signs, of_rows, tolerance, n_steps)
            m = len(names)
            bias[node] = w[m]
            for i in range(n):
                margins[first + i] = bias[node]
            for j in range(m):
                weight = np.float32(w[j])
                if weight != 0:
                    out_features[n_out], out_weights[n_out] = names[j], weight
                    n_out += 1
                    for q in range(columns[j], columns[j + 1]):
                        margins[first + members[q]] += np.float64(weight) * entries[q]
        starts[node + 1] = n_out


@kernel
def _by_feature(indptr, features, values, rows, number):
    """The values of some rows column by column, with a last column of ones for the bias.

    number : (d,) −1, a work array that is so again at the end
    returns the features of the columns in the order of their first use; where each column starts; and the
    rows and values in it
    """
    n_values = 0
    for row in rows:
        n_values += indptr[row + 1] - indptr[row]
    names, m = np.empty(min(n_values, len(number)), np.int32), 0
    for row in rows:
        for p in range(indptr[row], indptr[row + 1]):
            if number[features[p]] < 0:
                number[features[p]], names[m] = m, features[p]
                m += 1
    columns = np.zeros(m + 2, np.int64)
    for row in rows:
        for p in range(indptr[row], indptr[row + 1]):
            columns[number[features[p]] + 1] += 1
    columns[m + 1] = len(rows)
    for j in range(m + 1):
        columns[j + 1] += columns[j]
    members, entries = np.empty(n_values + len(rows), np.int32), np.ones(n_values + len(rows), np.float32)
    position = columns[: m + 1].copy()
    for i in range(len(rows)):
        for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
            j = number[features[p]]
            members[position[j]], entries[position[j]] = i, values[p]
            position[j] += 1
        members[position[m]] = i
        position[m] += 1
    for j in range(m):
        number[names[j]] = -1
    return names[:m], columns, members, entries


@reordering_kernel
def _descend(columns, members, entries, signs, costs, tolerance, n_steps):
    """(m,) the minimum of ‖w‖₁ + Σ c log(1 + exp(−s ⟨w, x⟩)), by Newton's method.

    columns, members, entries : X in csc, as `_by_feature` gives it
    """
    m, n = len(columns) - 1, len(signs)
    w, step, gradient, curvature = np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m)
    totals, change, pull, curve = np.zeros(n), np.zeros(n), np.empty(n), np.empty(n)
    working = np.empty(m, np.int64)
    first_violation = 0.0
    for iteration in range(n_steps):
        loss = 0.0
        for i in range(n):
            margin = signs[i] * totals[i]
            small = np.exp(-abs(margin))
            loss += costs[i] * (np.log1p(small) + max(-margin, 0.0))
            wrong = (small if margin > 0 else 1.0) / (1 + small)
            pull[i], curve[i] = -costs[i] * signs[i] * wrong, costs[i] * wrong * (1 - wrong)
        violation, n_working = 0.0, 0
        for j in range(m):
            g = 0.0
            for q in range(columns[j], columns[j + 1]):
                g += pull[members[q]] * entries[q]
            excess = _excess(w[j], g)
            violation += excess
            if w[j] != 0 or excess > 0:
                h = LEAST_CURVATURE
                for q in range(columns[j], columns[j + 1]):
                    x = np.float64(entries[q])
                    h += curve[members[q]] * x * x
                gradient[j], curvature[j], step[j], working[n_working] = g, h, 0, j
                n_working += 1
        if iteration == 0:
            first_violation = violation
        if violation <= tolerance * first_violation:
            break
        change[:] = 0
        for _ in range(N_SWEEPS):
            rest = 0.0
            for k in range(n_working):
                j = working[k]
                g = gradient[j]
                for q in range(columns[j], columns[j + 1]):
                    g += curve[members[q]] * entries[q] * change[members[q]]
                rest += _excess(w[j] + step[j], g)
                z = _best_step(w[j] + step[j], g, curvature[j])
                if z != 0:
                    step[j] += z
                    for q in range(columns[j], columns[j + 1]):
                        change[members[q]] += z * entries[q]
            if rest <= INNER_SHARE * violation:
                break
        # Armijo's rule for the sum of the loss and the norm.
        expected, norm = 0.0, 0.0
        for j in working[:n_working]:
            expected += gradient[j] * step[j] + abs(w[j] + step[j]) - abs(w[j])
            norm += abs(w[j])
        if expected >= 0:
            break
        size = 1.0
        for _ in range(N_HALVINGS):
            new_loss, new_norm = 0.0, 0.0
            for i in range(n):
                margin = signs[i] * (totals[i] + size * change[i])
                new_loss += costs[i] * (np.log1p(np.exp(-abs(margin))) + max(-margin, 0.0))
            for j in working[:n_working]:
                new_norm += abs(w[j] + size * step[j])
            if new_loss + new_norm - loss - norm <= DECREASE * size * expected:
                break
            size *= 0.5
        for j in working[:n_working]:
            w[j] += size * step[j]
        for i in range(n):
            totals[i] += size * change[i]
    return w


@kernel
def _excess(weight, gradient):
    """How far the least subgradient of the loss and |w| is from 0."""
    if weight == 0:
        return max(abs(gradient) - 1, 0.0)
    return abs(gradient + np.sign(weight))


@kernel
def _best_step(weight, gradient, curvature):
    """The z that minimizes gradient z + curvature z² / 2 + |weight + z|."""
    if gradient + 1 <= curvature * weight:
        return -(gradient + 1) / curvature
    if gradient - 1 >= curvature * weight:
        return -(gradient - 1) / curvature
    return -weight


@kernel
def route_rows(indptr, features, values, roots, children, starts, used, weights, bias, x, leaves):
    """See the twin in reference/trees.py."""
    for row in range(len(leaves)):
        for p in range(indptr[row], indptr[row + 1]):
            x[features[p]] = values[p]
        for tree in range(len(roots)):
            node = roots[tree]
            while node >= 0:
                margin = np.float64(bias[node])
                for q in range(starts[node], starts[node + 1]):
                    margin += np.float64(weights[q]) * x[used[q]]
                node = children[node, 1 if margin > 0 else 0]
            leaves[row, tree] = -1 - node
        for p in range(indptr[row], indptr[row + 1]):
            x[features[p]] = 0
