"""The logits of the stacker, and the sums that its regression is fitted by."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def weigh_evidence(evidence: Array, weights: Array, bias: float, logits: Array) -> None:
    """Write the weighted sum of the evidence on each label, plus the bias.

    evidence : (m, f) float32;  weights : (f,) float64;  logits : (m,) float64, written
    """
    logits[:] = np.asarray(evidence, np.float64) @ weights + bias


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
