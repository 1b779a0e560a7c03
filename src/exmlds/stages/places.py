"""Which labels take the first places of a row, one after another: a conditional logit for each place.

The blend asks whether a label is right, over all pairs. Who takes a place is asked within a row, where what
its labels have in common cancels out, and by other weights for the first place than for the fifth.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

Array = np.ndarray

PLACES = 5  # that are contested
RIVALS = 5  # for each: the likeliest labels without a place
LIKELIEST = PLACES + RIVALS - 1  # labels of a row that may get one
RIDGE = 80.0  # of the weights, in rows
STEPS = 100  # of L-BFGS, at most
PAD = -1e300  # as a score: before what has a place already, behind all others


def fit(known: Array, sums: Array, hits: Array, row_weights: Array | None = None) -> Array:
    """(PLACES, f) weights of the evidence, added to the sums.

    known : (n, k, f) evidence of the likeliest labels, best first;  sums : (n, k) of the blend, −inf pads
    hits : (n, k) whether they are true;  row_weights : (n,) how much rows count, if not all the same
    """
    weights, rows = np.zeros((PLACES, known.shape[2])), np.arange(len(sums))[:, None]
    asked = known[:, :RIVALS][np.isfinite(sums[:, :RIVALS])]
    if not len(asked):
        return weights
    scale = asked.std(axis=0, dtype=np.float64)
    scale[scale == 0] = 1
    for place in range(PLACES):
        rivals = order(weights[:place], known, sums)[:, place : place + RIVALS]
        theirs = known[rows, rivals] / scale, sums[rows, rivals], hits[rows, rivals]
        weights[place] = _contest(*theirs, row_weights) / scale
    return weights


def order(weights: Array, known: Array, sums: Array) -> Array:
    """(n, k) the likeliest labels by the places they take; those without one follow as they were."""
    n, k = sums.shape
    n_places, rows = min(len(weights), k), np.arange(n)
    scores = np.maximum(sums[..., None] + known @ weights.T, PAD)
    seats, free = np.empty((n, k), np.intp), np.ones((n, k), bool)
    for place in range(n_places):
        rivals = slice(place + RIVALS)  # but those before that have a place
        best = np.where(free[:, rivals], scores[:, rivals, place], -np.inf).argmax(axis=1)
        seats[:, place], free[rows, best] = best, False
    seats[:, n_places:] = np.nonzero(free)[1].reshape(n, k - n_places)
    return seats


def _contest(known: Array, sums: Array, hits: Array, row_weights: Array | None) -> Array:
    """(f,) the weights w of max Σ log P(a hit is chosen) − RIDGE ‖w‖²/2, P being softmax(sums + known w)."""
    tells = hits.any(axis=1) & (~hits & np.isfinite(sums)).any(axis=1)
    start = np.zeros(known.shape[2])
    if not tells.any():
        return start
    known, sums, hits = known[tells], sums[tells], hits[tells]
    counted = np.ones(len(hits)) if row_weights is None else row_weights[tells]

    def loss(weights: Array) -> tuple[float, Array]:
        scores = sums + known @ weights
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances = odds / odds.sum(axis=1, keepdims=True)
        of_hits = np.where(hits, chances, 0)
        right = np.maximum(of_hits.sum(axis=1), np.finfo(float).tiny)
        slopes = counted[:, None] * (chances - of_hits / right[:, None])
        gradient = slopes.ravel() @ known.reshape(-1, len(weights)) + RIDGE * weights
        return float(RIDGE / 2 * weights @ weights - counted @ np.log(right)), gradient

    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    return np.asarray(found.x)
