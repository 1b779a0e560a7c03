"""The logits of the stacker, and the sums that its regression is fitted by."""

import numpy as np

from .compiler import kernel, reordering_kernel

LANES = 64  # pairs whose evidence is turned over, so that sums run over pairs


@kernel
def weigh_evidence(evidence, weights, bias, logits):
    """See the twin in reference/stacking.py."""
    for i in range(len(evidence)):
        total = bias
        for j in range(len(weights)):
            total += evidence[i, j] * weights[j]
        logits[i] = total


@kernel
def weigh_pairs(
    votes,
    margins,
    counts,
    second_votes,
    lifts,
    similarities,
    matches,
    match_lifts,
    limits,
    weights,
    bias,
    logits,
):
    """See the twin in reference/stacking.py."""
    least_share, largest_margin, least_match = limits[0], limits[1], limits[2]
    n, k = votes.shape
    values = np.zeros(len(weights), np.float32)
    log_ranks = np.empty(k, np.float32)
    for j in range(k):
        log_ranks[j] = np.log1p(np.float32(j))
    for i in range(n):
        best_margin, most_similar = -largest_margin, np.float32(-np.inf)
        for j in range(k):
            best_margin = max(best_margin, min(margins[i, j], largest_margin))
            if len(similarities):
                is_label = similarities[i, j] > -np.inf
                most_similar = max(most_similar, similarities[i, j] if is_label else np.float32(0))
        for j in range(k):
            v, z = (
                np.log(max(votes[i, j], least_share)),
                min(max(margins[i, j], -largest_margin), largest_margin),
            )
            c = np.log(max(counts[i, j], 1.0))
            values[0], values[1], values[2], values[3], values[4] = v, votes[i, j], z, np.tanh(z), c
            values[5], values[6], values[7], values[8], values[9] = v * z, z * c, v * c, z * z, v * v
            values[10], values[11] = log_ranks[j], z - best_margin
            f = 12
            if len(second_votes):
                s = np.log(max(second_votes[i, j], least_share))
                values[f], values[f + 1], values[f + 2] = s, second_votes[i, j], s * z
                values[f + 3], values[f + 4] = s * s, s * v
                f += 5
            if len(lifts):
                lift = lifts[i, j]
                values[f], values[f + 1], values[f + 2] = lift, lift * z, lift * c
                f += 3
            if len(similarities):
                a = similarities[i, j] if similarities[i, j] > -np.inf else np.float32(0)
                values[f], values[f + 1], values[f + 2] = a, a * a, a * z
                values[f + 3], values[f + 4] = a * c, a - most_similar
                f += 5
            if len(matches):
                is_matched = np.float32(matches[i, j] > 0)
                m, lift = np.log(max(matches[i, j], least_match) / least_match), match_lifts[i, j]
                values[f], values[f + 1], values[f + 2] = is_matched, m, is_matched * z
                values[f + 3], values[f + 4], values[f + 5] = is_matched * v, m * c, m * z
                values[f + 6], values[f + 7], values[f + 8] = lift, lift * z, lift * v
            total = bias
            for p in range(len(weights)):
                total += values[p] * weights[p]
            logits[i, j] = total


@reordering_kernel
def logistic_sums(evidence, hits, pair_weights, mean, inverse_scale, weights, gradient, curvature):
    """See the twin in reference/stacking.py."""
    n_columns = len(weights)
    columns = np.ones((n_columns, LANES))
    z, residuals, curves, weighted = np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty(LANES)
    gradient[:], curvature[:] = 0, 0
    for start in range(0, len(evidence), LANES):
        n = min(LANES, len(evidence) - start)
        z[:], residuals[:], curves[:] = weights[n_columns - 1], 0, 0
        for j in range(n_columns - 1):
            for i in range(n):
                columns[j, i] = (evidence[start + i, j] - mean[j]) * inverse_scale[j]
            for i in range(LANES):
                z[i] += columns[j, i] * weights[j]
        for i in range(n):
            odds = np.exp(-abs(z[i]))
            larger = 1 / (1 + odds)
            p = larger if z[i] >= 0 else odds * larger
            residuals[i] = pair_weights[start + i] * (p - hits[start + i])
            curves[i] = pair_weights[start + i] * odds * larger * larger
        for j in range(n_columns):
            total = 0.0
            for i in range(LANES):
                total += residuals[i] * columns[j, i]
                weighted[i] = curves[i] * columns[j, i]
            gradient[j] += total
            for k in range(j + 1):
                total = 0.0
                for i in range(LANES):
                    total += weighted[i] * columns[k, i]
                curvature[j, k] += total
    for j in range(n_columns):
        for k in range(j):
            curvature[k, j] = curvature[j, k]


@kernel
def label_sums(logits, labels, hits, pair_weights, label_bias, sums):
    """See the twin in reference/stacking.py."""
    for i in range(len(logits)):
        label, weight = labels[i], pair_weights[i] if len(pair_weights) else 1.0
        p = 1 / (1 + np.exp(-(logits[i] + label_bias[label])))
        curve = weight * p * (1 - p)
        sums[0, label] += weight * (hits[i] - p)
        sums[1, label] += curve
        sums[2, label] += weight * curve
