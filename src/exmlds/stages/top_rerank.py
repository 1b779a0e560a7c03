"""Re-rank the most probable labels of each row with two listwise models.

The stacker is pointwise: it predicts whether each label is true. The order within a row is fitted listwise,
where everything that the labels of a row have in common cancels out. The model of the first rank maximizes
the probability that the top label is true; the model of the ranks behind it maximizes the probability that
all true labels come before the others. Both add a linear function of the evidence to the stacker's logits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import combinations

import numpy as np
from scipy.optimize import minimize

Array = np.ndarray

TOP1_CANDIDATES = 5  # most probable labels that may take the first rank
TOPK_CANDIDATES = 9  # most probable labels that are re-ranked
RIDGE = 80.0  # L2 penalty of the weights, in units of rows
STEPS = 100  # most iterations of L-BFGS
PAD = -1e300  # score of a pad: finite, and below all others


def fit(evidence: Array, logits: Array, hits: Array, row_weights: Array | None = None) -> Array:
    """(2, f) weights of the evidence: for the first rank, and for the ranks behind it.

    evidence : (n, k, f) evidence of the most probable labels, best first
    logits : (n, k) of the stacker, −inf pads
    hits : (n, k) bool, whether the row has the label
    row_weights : (n,) sample weights of rows; None weights all rows equally
    """
    weights, rows = np.zeros((2, evidence.shape[2])), np.arange(len(logits))[:, None]
    candidates = evidence[:, :TOP1_CANDIDATES][np.isfinite(logits[:, :TOP1_CANDIDATES])]
    if not len(candidates):
        return weights
    # The ridge penalty needs evidence of one scale; the returned weights are for evidence as given.
    scale = candidates.std(axis=0, dtype=np.float64)
    scale[scale == 0] = 1
    evidence = evidence / scale
    weights[0] = _fit_listwise(
        _log_any_hit,
        evidence[:, :TOP1_CANDIDATES],
        logits[:, :TOP1_CANDIDATES],
        hits[:, :TOP1_CANDIDATES],
        row_weights,
    )
    # The second model sees what the first leaves over.
    others = order(weights, evidence, logits)[:, 1:]
    weights[1] = _fit_listwise(
        _log_hit_set, evidence[rows, others], logits[rows, others], hits[rows, others], row_weights
    )
    return weights / scale


def order(weights: Array, evidence: Array, logits: Array) -> Array:
    """(n, k) int64, columns of the most probable labels in their new order."""
    scores = np.maximum(logits[..., None] + evidence @ weights.T, PAD)
    first, behind = scores[:, :TOP1_CANDIDATES, 0].argmax(axis=1), scores[..., 1]
    behind[np.arange(len(behind)), first] = np.inf
    return np.argsort(-behind, axis=1, kind="stable")


def _fit_listwise(
    log_likelihood: Callable[[Array, Array], tuple[Array, Array]],
    evidence: Array,
    logits: Array,
    hits: Array,
    row_weights: Array | None,
) -> Array:
    """(f,) the weights w that maximize Σ log_likelihood(logits + evidence w) − RIDGE ‖w‖²/2."""
    # Only rows with both a hit and a miss depend on the order.
    is_informative = hits.any(axis=1) & (~hits & np.isfinite(logits)).any(axis=1)
    start = np.zeros(evidence.shape[2])
    if not is_informative.any():
        return start
    evidence, hits = evidence[is_informative], hits[is_informative]
    logits = np.maximum(logits[is_informative], PAD)
    sample_weight = np.ones(len(hits)) if row_weights is None else row_weights[is_informative]

    def loss(weights: Array) -> tuple[float, Array]:
        logs, slopes = log_likelihood(logits + evidence @ weights, hits)
        slopes = sample_weight[:, None] * slopes
        gradient = RIDGE * weights - slopes.ravel() @ evidence.reshape(-1, len(weights))
        return float(RIDGE / 2 * weights @ weights - sample_weight @ logs), gradient

    optimum = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    return np.asarray(optimum.x)


def _log_any_hit(scores: Array, hits: Array) -> tuple[Array, Array]:
    """(n,) log of the hits' share of all exp(score), and (n, k) its derivatives by the scores."""
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    probabilities = odds / odds.sum(axis=1, keepdims=True)
    of_hits = np.where(hits, probabilities, 0)
    share = np.maximum(of_hits.sum(axis=1), np.finfo(float).tiny)
    return np.log(share), of_hits / share[:, None] - probabilities


def _log_hit_set(scores: Array, hits: Array) -> tuple[Array, Array]:
    """(n,) log of the hit set's share of exp(Σ score) over all sets of its size, and its (n, k) slopes."""
    logs, slopes, sizes = np.where(hits, scores, 0).sum(axis=1), hits.astype(float), hits.sum(axis=1)
    # With at most 8 labels there are at most 70 sets of a size, so the sum over sets is exact.
    for size in np.unique(sizes):
        rows, sets = sizes == size, _sets(scores.shape[1], size)
        totals = scores[rows] @ sets.T
        largest = totals.max(axis=1, keepdims=True)
        odds = np.exp(totals - largest)
        all_odds = odds.sum(axis=1, keepdims=True)
        logs[rows] -= (largest + np.log(all_odds))[:, 0]
        slopes[rows] -= odds / all_odds @ sets
    return logs, slopes


@cache
def _sets(k: int, size: int) -> Array:
    """(m, k) float64, indicators of all sets of `size` out of k labels."""
    return np.array([np.isin(np.arange(k), members) for members in combinations(range(k), size)], float)
