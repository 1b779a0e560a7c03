"""Which of a row's likeliest labels takes the first place, and how the others follow: two contests.

The blend asks whether a label is right, over all pairs. Who stands before whom is asked within a row, where
what its labels have in common cancels out. For the first place one label that is right is enough; behind it
all that are right should come before the others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import combinations

import numpy as np
from scipy.optimize import minimize

Array = np.ndarray

TOP1_CANDIDATES = 5  # for the first place: the likeliest labels
TOPK_CANDIDATES = 9  # labels of a row that are put in order
RIDGE = 80.0  # of the weights, in rows
STEPS = 100  # of L-BFGS, at most
PAD = -1e300  # as a score: behind all others


def fit(evidence: Array, logits: Array, hits: Array, row_weights: Array | None = None) -> Array:
    """(2, f) weights of the evidence, added to the sums: for the first place, and for those behind it.

    known : (n, k, f) evidence of the likeliest labels, best first;  sums : (n, k) of the blend, −inf pads
    hits : (n, k) whether they are true;  row_weights : (n,) how much rows count, if not all the same
    """
    weights, rows = np.zeros((2, evidence.shape[2])), np.arange(len(logits))[:, None]
    asked = evidence[:, :TOP1_CANDIDATES][np.isfinite(logits[:, :TOP1_CANDIDATES])]
    if not len(asked):
        return weights
    scale = asked.std(axis=0, dtype=np.float64)
    scale[scale == 0] = 1
    evidence = evidence / scale
    weights[0] = _fit_listwise(
        _log_any_hit,
        evidence[:, :TOP1_CANDIDATES],
        logits[:, :TOP1_CANDIDATES],
        hits[:, :TOP1_CANDIDATES],
        row_weights,
    )
    others = order(weights, evidence, logits)[:, 1:]
    weights[1] = _fit_listwise(
        _log_hit_set, evidence[rows, others], logits[rows, others], hits[rows, others], row_weights
    )
    return weights / scale


def order(weights: Array, evidence: Array, logits: Array) -> Array:
    """(n, k) the likeliest labels in the order of their places."""
    scores = np.maximum(logits[..., None] + evidence @ weights.T, PAD)
    first, behind = scores[:, :TOP1_CANDIDATES, 0].argmax(axis=1), scores[..., 1]
    behind[np.arange(len(behind)), first] = np.inf
    return np.argsort(-behind, axis=1, kind="stable")


def _fit_listwise(
    chance: Callable[[Array, Array], tuple[Array, Array]],
    evidence: Array,
    logits: Array,
    hits: Array,
    row_weights: Array | None,
) -> Array:
    """(f,) the weights w of max Σ log chance(sums + known w) − RIDGE ‖w‖²/2, over rows that tell."""
    tells = hits.any(axis=1) & (~hits & np.isfinite(logits)).any(axis=1)
    start = np.zeros(evidence.shape[2])
    if not tells.any():
        return start
    evidence, logits, hits = evidence[tells], np.maximum(logits[tells], PAD), hits[tells]
    counted = np.ones(len(hits)) if row_weights is None else row_weights[tells]

    def loss(weights: Array) -> tuple[float, Array]:
        logs, chosen = chance(logits + evidence @ weights, hits)
        slopes = counted[:, None] * chosen
        gradient = RIDGE * weights - slopes.ravel() @ evidence.reshape(-1, len(weights))
        return float(RIDGE / 2 * weights @ weights - counted @ logs), gradient

    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    return np.asarray(found.x)


def _log_any_hit(scores: Array, hits: Array) -> tuple[Array, Array]:
    """(n,) log of the hits' share of all exp(score), and its slopes, (n, k)."""
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances = odds / odds.sum(axis=1, keepdims=True)
    of_hits = np.where(hits, chances, 0)
    share = np.maximum(of_hits.sum(axis=1), np.finfo(float).tiny)
    return np.log(share), of_hits / share[:, None] - chances


def _log_hit_set(scores: Array, hits: Array) -> tuple[Array, Array]:
    """(n,) log of the hits' share of exp(Σ score) of all sets as large, and its slopes, (n, k)."""
    logs, slopes, sizes = np.where(hits, scores, 0).sum(axis=1), hits.astype(float), hits.sum(axis=1)
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
    """(m, k) all sets of so many of k labels: 1 for those that are in it."""
    return np.array([np.isin(np.arange(k), members) for members in combinations(range(k), size)], float)
