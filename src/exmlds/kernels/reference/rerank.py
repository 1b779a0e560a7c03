"""Linear classifiers, one per label, trained by dual coordinate descent, and their margins on short lists."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

Array = np.ndarray

SETTLED = 0.2  # With n_new_epochs, training also stops at a mean gradient below this share of the tolerance.
SHRINK_MARGIN = 0.05  # An example with α = 0 whose gradient is larger is removed from the active set.


def collect_examples(
    first: int,
    y_indptr: Array,
    y_labels: Array,
    listed: Array,
    more_indptr: Array,
    more_labels: Array,
    position: Array,
    rows: Array,
    signs: Array,
) -> None:
    """Write the examples of each label: its rows, and those whose short list or further labels hold it.

    first : the number of the first row
    y_indptr, y_labels : the labels of each row;  more_indptr, more_labels : further labels of each row
    listed : (n, k) int32, short lists, −1 pads
    position : (L,) int64, where the examples of each label begin; in the end, where they end
    rows, signs : (m,) int32, and int8, 1 for a row that has the label and −1 for others; if they are empty,
        only position is written
    """
    for row in range(len(listed)):
        true = set(y_labels[y_indptr[row] : y_indptr[row + 1]].tolist())
        near = set(listed[row].tolist()) | set(more_labels[more_indptr[row] : more_indptr[row + 1]].tolist())
        for label in true | (near - {-1}):
            if len(rows):
                rows[position[label]], signs[position[label]] = first + row, 1 if label in true else -1
            position[label] += 1


def merge_examples(
    before_starts: Array,
    before_rows: Array,
    before_signs: Array,
    before_alphas: Array,
    added_starts: Array,
    added_rows: Array,
    added_signs: Array,
    starts: Array,
    rows: Array,
    signs: Array,
    alphas: Array,
) -> None:
    """Write the examples of each label that were trained on before, with their α, and those that are added.

    before_starts, before_rows, before_signs, before_alphas : the earlier examples, their rows ascending
    added_starts, added_rows, added_signs : the other ones; one that was there before is left out
    starts : (L + 1,) int64, where the examples of each label begin; all but the first are written
    rows, signs, alphas : (m,) int32, int8 and float32; if they are empty, only starts is written
    """
    is_filled, n_written = len(rows) > 0, int(starts[0])
    for label in range(len(starts) - 1):
        before, added = (slice(s[label], s[label + 1]) for s in (before_starts, added_starts))
        known = dict(
            zip(
                before_rows[before].tolist(),
                zip(before_signs[before].tolist(), before_alphas[before].tolist()),
            )
        )
        for row, sign in zip(added_rows[added].tolist(), added_signs[added].tolist()):
            known.setdefault(row, (sign, 0.0))
        for row in sorted(known):
            if is_filled:
                rows[n_written], (signs[n_written], alphas[n_written]) = row, known[row]
            n_written += 1
        starts[label + 1] = n_written


def select_examples(
    starts: Array,
    rows: Array,
    signs: Array,
    alphas: Array,
    labels: Array,
    is_live: Array,
    own_starts: Array,
    positions: Array,
    own_rows: Array,
    own_signs: Array,
    own_alphas: Array,
) -> None:
    """Write the examples with which labels are trained again, without negative ones with an α below 0.

    starts, rows, signs, alphas : the examples of all labels, and their α
    labels : (m,) those to be trained;  is_live : (n,) bool, rows that still are examples
    own_starts : (m + 1,) int64, where the examples of these labels begin, and those of the last one end;
        all but the first are written
    positions, own_rows, own_signs, own_alphas : int64, int32, int8 and float32: where each example is, and
        what it is, with an α of at least 0; if they are empty, only own_starts is written
    """
    n = int(own_starts[0])
    for i, label in enumerate(labels.tolist()):
        own = np.arange(starts[label], starts[label + 1])
        own = own[((signs[own] > 0) | (alphas[own] >= 0)) & is_live[rows[own]]]
        here = slice(n, n + len(own))
        if len(positions):
            positions[here], own_rows[here], own_signs[here] = own, rows[own], signs[own]
            own_alphas[here] = np.maximum(alphas[own], 0)
        own_starts[i + 1] = n = here.stop


def train_labels(
    indptr: Array,
    features: Array,
    values: Array,
    squares: Array,
    starts: Array,
    rows: Array,
    signs: Array,
    costs: Array,
    first: int,
    last: int,
    is_logistic: bool,
    n_new_epochs: int,
    n_epochs: int,
    tolerance: float,
    keep_from: float,
    alphas: Array,
    w: Array,
    out_starts: Array,
    out_features: Array,
    out_values: Array,
    out_scale: Array,
    out_bias: Array,
) -> None:
    """For each label, minimize (‖w‖² + b²)/2 + Σ cost loss(sign (w x + b)) over its examples.

    The loss of a margin m is max(0, 1 − m)², or log(1 + exp(−m)). Dual coordinate descent writes
    w = Σ α sign x and optimizes one α at a time. It shrinks as LIBLINEAR does: an example with α = 0 leaves
    the active set when its gradient exceeds SHRINK_MARGIN, or the largest gradient of the previous epoch; all
    examples return when the active set has converged. Where some α start from 0 and some do not, up to
    n_new_epochs passes over the former alone come first, which are not counted in n_epochs; the squared hinge
    then also stops when the mean gradient of a pass over all is below SETTLED times the tolerance.

    indptr, features, values : the rows x as csr float32, features uint16 or uint32; each row has a multiple
        of 4 values, the last of them zeros
    squares : (n,) float32, ‖x‖²
    starts, rows, signs : the examples of each label, rows int32 and signs int8 of ±1
    costs : (n,) float32, of each row
    first, last : the range of labels to train
    n_epochs : most passes over the examples
    tolerance : training stops when no gradient (for "logistic": no step) is larger
    keep_from : weights below this share of a label's largest weight are pruned
    alphas : (m,) float32, the initial α of the examples, overwritten by the final ones
    w : (d,) float32 zeros, a work array that is zero again at the end
    out_starts, out_features, out_values : the remaining weights of each label, quantized to int8;
        out_starts[0] is 0, and the others have a place more than there are weights, which may be written too
    out_scale, out_bias : (last − first,) float32, the largest weight of each label over 127, and its bias
    """
    d = len(w)
    n_out = 0
    limits = is_logistic, n_new_epochs, n_epochs, tolerance
    for label in range(first, last):
        here = slice(starts[label], starts[label + 1])
        X = np.zeros((here.stop - here.start, d + 1))
        for x, row in zip(X, rows[here]):
            np.add.at(x, features[indptr[row] : indptr[row + 1]], values[indptr[row] : indptr[row + 1]])
            x[d] = 1
        X *= signs[here, None]
        alpha = alphas[here].astype(float)
        weights = _descend(X, costs[rows[here]].astype(float), alpha, label, *limits)
        alphas[here] = alpha
        out_bias[label - first] = weights[d]
        largest = np.abs(weights[:d]).max(initial=0)
        kept = [f for f in range(d) if weights[f] and abs(weights[f]) >= keep_from * largest]
        out_features[n_out : n_out + len(kept)] = kept
        out_scale[label - first] = largest / 127
        out_values[n_out : n_out + len(kept)] = np.rint(weights[kept] * 127 / largest) if kept else 0
        n_out += len(kept)
        out_starts[label - first + 1] = n_out


def _descend(
    X: Array,
    costs: Array,
    alpha: Array,
    label: int,
    is_logistic: bool,
    n_new_epochs: int,
    n_epochs: int,
    tolerance: float,
) -> Array:
    """Return the weights, bias last; alpha changes in position."""
    threshold = SHRINK_MARGIN if alpha.any() else np.inf
    order, inactive, epoch = list(range(len(X))), list[int](), 0
    if n_new_epochs and 0 < np.count_nonzero(alpha == 0) < len(X):
        order, inactive = (np.flatnonzero(which).tolist() for which in (alpha == 0, alpha != 0))
        epoch, threshold = -n_new_epochs, np.inf
    if is_logistic:
        alpha[alpha == 0] = 1e-3 * costs[alpha == 0]
    weights = alpha @ X
    state = (label * 2654435761 + 12345) % 2**64
    while epoch < n_epochs:
        violation = largest = total = 0.0
        for i in range(len(order) - 1, 0, -1):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            j = (state >> 33) * (i + 1) >> 31
            order[i], order[j] = order[j], order[i]
        position = 0
        while position < len(order):
            i = order[position]
            margin = X[i] @ weights
            square = X[i] @ X[i]
            if is_logistic:
                new = _logistic_optimum(alpha[i], costs[i], square, margin)
                violation = max(violation, abs(new - alpha[i]) / costs[i])
            else:
                gradient = margin - 1 + alpha[i] / (2 * costs[i])
                if alpha[i] == 0 and gradient > threshold:
                    order[position], order[-1] = order[-1], order[position]
                    inactive.append(order.pop())
                    continue
                if alpha[i] > 0 or gradient < 0:
                    violation, largest = max(violation, abs(gradient)), max(largest, gradient)
                    total += abs(gradient)
                new = max(alpha[i] - gradient / (square + 1 / (2 * costs[i])), 0.0)
            weights = weights + (new - alpha[i]) * X[i]
            alpha[i] = new
            position += 1
        threshold = min(largest, SHRINK_MARGIN) if largest > 0 else SHRINK_MARGIN
        epoch += 1
        if epoch <= 0:
            if violation < tolerance or epoch == 0:
                order, inactive, epoch = [*order, *reversed(inactive)], [], 0
                threshold = SHRINK_MARGIN
        elif n_new_epochs and not is_logistic and total < SETTLED * tolerance * len(order):
            break
        elif violation < tolerance:
            if not inactive:
                break
            order, inactive, threshold = [*order, *reversed(inactive)], [], np.inf
    return weights


def _logistic_optimum(old: float, cost: float, square: float, margin: float) -> float:
    """The root α of the derivative log(α / (cost − α)) + margin + square (α − old)."""

    def slope(log_odds: float) -> float:  # As a function of log(α / (cost − α)), α keeps its digits.
        return log_odds + margin + square * (cost / (1 + np.exp(-log_odds)) - old)

    return cost / (1 + np.exp(-brentq(slope, -700, 700)))


def average_rows(
    indptr: Array,
    features: Array,
    values: Array,
    starts: Array,
    rows: Array,
    factors: Array,
    idf: Array,
    first: int,
    last: int,
    keep_from: float,
    w: Array,
    out_starts: Array,
    out_features: Array,
    out_values: Array,
    out_scale: Array,
) -> None:
    """For each label, add up D x over its rows, scale the sum to unit length, and multiply it by D again.

    indptr, features, values : the rows x as csr float32
    starts, rows : where the rows of each label begin and end, and these;  factors : (n,) float32, of each row
    idf : (d,) float32, the diagonal of D;  first, last : the range of labels
    keep_from : weights of at most this share of a label's largest weight are pruned
    w : (d,) float32 zeros, a work array that is zero again at the end
    out_starts, out_features, out_values : as of `train_labels`
    out_scale : (last − first,) float32, the largest weight of each label over 127
    """
    n_out = 0
    for i, label in enumerate(range(first, last)):
        sums = np.zeros(len(w), np.float32)
        for row in rows[starts[label] : starts[label + 1]]:
            here = slice(indptr[row], indptr[row + 1])
            np.add.at(sums, features[here], factors[row] * values[here])
        length = np.linalg.norm((sums * idf).astype(float))
        sums = (sums * idf) * idf
        largest = np.abs(sums).max(initial=0)
        kept = np.flatnonzero(np.abs(sums) > keep_from * largest)
        end = n_out + len(kept)
        out_features[n_out:end] = kept
        out_values[n_out:end] = np.rint(sums[kept] * (127 / largest)) if len(kept) else 0
        out_scale[i] = largest / 127 / (length or 1)
        out_starts[i + 1] = n_out = end


def group_by_feature(
    first: int,
    starts: Array,
    features: Array,
    values: Array,
    dense_slot: Array,
    position: Array,
    labels: Array,
    grouped: Array,
    dense: Array,
) -> None:
    """Write the weights of consecutive labels, which are given by label, by feature.

    first : the number of the first label
    starts, features, values : (b + 1,) int64, (m,) int32 and (m,) int8, the weights of each of these labels
    dense_slot : (d,) int32, the row of each dense feature in `dense`, −1 for others; (0,) only counts
    position : (d,) int64, where the weights of a sparse feature go; the number of these labels' is added
    labels, grouped : uint and int8, the weights of sparse features, written
    dense : (h, L) int8 zeros, the weights of dense features, written
    """
    for label, here in enumerate(map(slice, starts[:-1], starts[1:]), first):
        for f, value in zip(features[here].tolist(), values[here].tolist()):
            if len(dense_slot) and dense_slot[f] >= 0:
                dense[dense_slot[f], label] = value
                continue
            if len(dense_slot):
                labels[position[f]], grouped[position[f]] = label, value
            position[f] += 1


def score_labels(
    indptr: Array,
    features: Array,
    values: Array,
    starts: Array,
    labels: Array,
    weights: Array,
    dense: Array,
    dense_slot: Array,
    scale: Array,
    bias: Array,
    totals: Array,
    ids: Array,
    out: Array,
) -> None:
    """Write the margins w x + b of the labels on each row's short list.

    indptr, features, values : the rows x as csr float32
    starts, labels, weights : (d + 1,) int64, (m,) uint and (m,) int8, the weights of each sparse feature
    dense, dense_slot : (h, L) int8 weights of the dense features, and (d,) int32 their rows, −1 for others
    scale, bias : (L,) float32; all weights are multiplied by the label's scale
    totals : (L,) float32 zeros, a work array that is zero again at the end
    ids : (n, k) int64 labels, −1 pads
    out : (n, k) float32, −inf for pads
    """
    for row, listed in enumerate(ids):
        sums = np.zeros(len(totals))
        for p in range(indptr[row], indptr[row + 1]):
            here, slot = slice(starts[features[p]], starts[features[p] + 1]), dense_slot[features[p]]
            sums[labels[here]] += float(values[p]) * weights[here]
            if slot >= 0:
                sums += float(values[p]) * dense[slot]
        out[row] = np.where(listed >= 0, (sums * scale + bias)[listed], -np.inf)


def merge_weights(
    starts: Array,
    labels: Array,
    values: Array,
    is_replaced: Array,
    add_starts: Array,
    add_labels: Array,
    add_values: Array,
    ends: Array,
    out_labels: Array,
    out_values: Array,
) -> None:
    """Merge further weights into weights that are stored by feature, in place of those of some labels.

    starts, labels, values : (d + 1,), (m,) and (m,), the weights of each feature
    is_replaced : (L,) uint8, 1 for labels whose weights are left out
    add_starts, add_labels, add_values : the further ones, in the same form
    ends : (d + 1,) int64, where the merged weights of each feature begin, and those of the last one end
    out_labels, out_values : get these; if they are empty, only ends is written, but for its first value
    """
    for feature in range(len(starts) - 1):
        before, added = (slice(some[feature], some[feature + 1]) for some in (starts, add_starts))
        is_kept = is_replaced[labels[before]] == 0
        own = np.concatenate([labels[before][is_kept], add_labels[added]])
        at = slice(ends[feature], ends[feature] + len(own))
        if len(out_labels):
            out_labels[at], out_values[at] = own, np.concatenate([values[before][is_kept], add_values[added]])
        ends[feature + 1] = at.stop
