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
