"""The logits of the stacker, and the sums that its regression is fitted by."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def weigh_evidence(evidence: Array, weights: Array, bias: float, logits: Array) -> None:
    """Write the weighted sum of the evidence on each label, plus the bias.

    evidence : (m, f) float32;  weights : (f,) float64;  logits : (m,) float64, written
    """
    logits[:] = np.asarray(evidence, np.float64) @ weights + bias


def weigh_pairs(
    votes: Array,
    margins: Array,
    counts: Array,
    second_votes: Array,
    lifts: Array,
    similarities: Array,
    matches: Array,
    match_lifts: Array,
    limits: Array,
    weights: Array,
    bias: float,
    logits: Array,
) -> None:
    """Write the weighted sum of the evidence on each label of short lists, plus the bias.

    votes, margins, counts, … : (n, k) float32, what the evidence is made of, see `stacking.build_evidence`;
        what is not used is (0, 0); counts is float64
    limits : (3,) float32, the least share of votes, the largest margin and the least score of a match
    weights : (f,) float64, in the order of the evidence;  logits : (n, k) float64, written
    """
    least_share, largest_margin, least_match = limits
    for i in range(len(votes)):
        z = np.clip(margins[i], -largest_margin, largest_margin)
        a = np.where(similarities[i] > -np.inf, similarities[i], 0) if len(similarities) else None
        for j in range(votes.shape[1]):
            v, own, c = np.log(max(votes[i, j], least_share)), votes[i, j], np.log(max(counts[i, j], 1))
            values = [v, own, z[j], np.tanh(z[j]), c, v * z[j], z[j] * c, v * c, z[j] ** 2, v * v]
            values += [np.log1p(np.float32(j)), z[j] - z.max()]
            if len(second_votes):
                s = np.log(max(second_votes[i, j], least_share))
                values += [s, second_votes[i, j], s * z[j], s * s, s * v]
            if len(lifts):
                values += [lifts[i, j], lifts[i, j] * z[j], lifts[i, j] * c]
            if a is not None:
                values += [a[j], a[j] ** 2, a[j] * z[j], a[j] * c, a[j] - a.max()]
            if len(matches):
                is_matched, m = matches[i, j] > 0, np.log(max(matches[i, j], least_match) / least_match)
                values += [is_matched, m, is_matched * z[j], is_matched * v, m * c, m * z[j]]
                values += [match_lifts[i, j], match_lifts[i, j] * z[j], match_lifts[i, j] * v]
            logits[i, j] = np.asarray(values, np.float32).astype(float) @ weights + bias


def logistic_sums(
    evidence: Array,
    hits: Array,
    pair_weights: Array,
    mean: Array,
    inverse_scale: Array,
    weights: Array,
    gradient: Array,
    curvature: Array,
) -> None:
    """Write the first and second derivatives of the logistic loss of some pairs by the weights.

    evidence : (m, f) float32, used as (evidence − mean) · inverse_scale;  hits : (m,) bool
    pair_weights : (m,) float64, of the pairs;  mean, inverse_scale : (f,) float64
    weights : (f + 1,) float64, the last one is the intercept
    gradient, curvature : (f + 1,) and (f + 1, f + 1) float64, written
    """
    X = np.column_stack([(evidence - mean) * inverse_scale, np.ones(len(evidence))])
    p = 1 / (1 + np.exp(-X @ weights))
    gradient[:] = (pair_weights * (p - hits)) @ X
    curvature[:] = (pair_weights * p * (1 - p) * X.T) @ X


def label_sums(
    logits: Array, labels: Array, hits: Array, pair_weights: Array, label_bias: Array, sums: Array
) -> None:
    """Add what the pairs of each label sum up to: w(y − p), wp(1 − p) and w²p(1 − p), by their order.

    logits : (m,) float64, without biases of labels;  labels : (m,) int64;  hits : (m,) bool
    pair_weights : (m,) float64, or empty where all are 1
    label_bias : (L,) float64;  sums : (3, L) float64, added to
    """
    w = pair_weights if len(pair_weights) else np.ones(len(logits))
    p = 1 / (1 + np.exp(-(logits + label_bias[labels])))
    for total, terms in zip(sums, (w * (hits - p), w * p * (1 - p), w * w * p * (1 - p))):
        np.add.at(total, labels, terms)
