"""A linear classifier for each label, by dual coordinate descent, and its margins on short lists."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

Array = np.ndarray

RESTING = 0.05  # beyond its margin: an example with α = 0 rests


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
    n_epochs: int,
    tolerance: float,
    keep_from: float,
    alphas: Array,
    w: Array,
    out_starts: Array,
    out_features: Array,
    out_values: Array,
    out_bias: Array,
) -> None:
    """For each label: min over w, b of (‖w‖² + b²)/2 + Σ cost loss(sign (w x + b)) over its examples.

    The loss is max(0, 1 − m)², or log(1 + exp(−m)). With w = Σ α sign x, one α after another is made the
    best; those that are 0 and beyond their margin by `RESTING`, or by more than others were before, rest till
    these are done.

    indptr, features, values : the rows x, csr, features uint32;  squares : (n,) float32, ‖x‖²
    starts, rows, signs, costs : the examples of each label, float32 signs of ±1 and float32 costs
    first, last : the labels to train
    n_epochs, tolerance : it ends after so many, or when no gradient (of "logistic": no step) is beyond this
    keep_from : weights below this share of a label's largest are left out
    alphas : float32, of the examples: where they start, zeros if nothing is known, and where they end
    w : (d,) float32 zeros, and again zeros at the end
    out_starts, out_features, out_values : the weights that are left, of each label; out_starts[0] is 0
    out_bias : (last − first,) float32
    """
    d = len(w)
    n_out = 0
    for label in range(first, last):
        here = slice(starts[label], starts[label + 1])
        X = np.zeros((here.stop - here.start, d + 1))
        for x, row in zip(X, rows[here]):
            x[features[indptr[row] : indptr[row + 1]]] = values[indptr[row] : indptr[row + 1]]
            x[d] = 1
        X *= signs[here, None]
        alpha = alphas[here].astype(float)
        weights = _descend(X, costs[here].astype(float), alpha, label, is_logistic, n_epochs, tolerance)
        alphas[here] = alpha
        out_bias[label - first] = weights[d]
        largest = np.abs(weights[:d]).max(initial=0)
        kept = [f for f in range(d) if weights[f] and abs(weights[f]) >= keep_from * largest]
        out_features[n_out : n_out + len(kept)] = kept
        out_values[n_out : n_out + len(kept)] = weights[kept]
        n_out += len(kept)
        out_starts[label - first + 1] = n_out


def _descend(
    X: Array, costs: Array, alpha: Array, label: int, is_logistic: bool, n_epochs: int, tolerance: float
) -> Array:
    """The weights; alpha changes in place."""
    highest = RESTING if alpha.any() else np.inf
    if is_logistic:
        alpha[alpha == 0] = 1e-3 * costs[alpha == 0]
    weights = alpha @ X
    order, rested = list(range(len(X))), list[int]()
    state = (label * 2654435761 + 12345) % 2**64
    for _ in range(n_epochs):
        furthest = high = 0.0
        for i in range(len(order) - 1, 0, -1):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            j = (state >> 33) % (i + 1)
            order[i], order[j] = order[j], order[i]
        place = 0
        while place < len(order):
            i = order[place]
            margin = X[i] @ weights
            square = X[i] @ X[i]
            if is_logistic:
                new = _logistic_optimum(alpha[i], costs[i], square, margin)
                furthest = max(furthest, abs(new - alpha[i]) / costs[i])
            else:
                gradient = margin - 1 + alpha[i] / (2 * costs[i])
                if alpha[i] == 0 and gradient > highest:
                    order[place], order[-1] = order[-1], order[place]
                    rested.append(order.pop())
                    continue
                if alpha[i] > 0 or gradient < 0:
                    furthest, high = max(furthest, abs(gradient)), max(high, gradient)
                new = max(alpha[i] - gradient / (square + 1 / (2 * costs[i])), 0.0)
            weights = weights + (new - alpha[i]) * X[i]
            alpha[i] = new
            place += 1
        highest = min(high, RESTING) if high > 0 else RESTING
        if furthest < tolerance:
            if not rested:
                break
            order, rested, highest = [*order, *reversed(rested)], [], np.inf
    return weights


def _logistic_optimum(old: float, cost: float, square: float, margin: float) -> float:
    """The α where the derivative log(α / (cost − α)) + margin + square (α − old) is 0."""

    def slope(share: float) -> float:  # of log(α / (cost − α)), in which α has all its digits
        return share + margin + square * (cost / (1 + np.exp(-share)) - old)

    return cost / (1 + np.exp(-brentq(slope, -700, 700)))


def score_labels(
    indptr: Array,
    features: Array,
    values: Array,
    starts: Array,
    labels: Array,
    weights: Array,
    full: Array,
    places: Array,
    scale: Array,
    bias: Array,
    totals: Array,
    ids: Array,
    out: Array,
) -> None:
    """The margins w x + b of the labels on each row's short list.

    starts, labels, weights : those of each feature, to be multiplied by the label's scale
    full, places : the weights of some features for all labels, and where in it they are, or −1
    totals : (L,) float32 zeros, and again zeros at the end
    ids : (n, k) labels, −1 pads;  out : (n, k) float32, −inf where the list is padded
    """
    for row, listed in enumerate(ids):
        sums = np.zeros(len(totals))
        for p in range(indptr[row], indptr[row + 1]):
            here, place = slice(starts[features[p]], starts[features[p] + 1]), places[features[p]]
            sums[labels[here]] += float(values[p]) * weights[here]
            if place >= 0:
                sums += float(values[p]) * full[place]
        out[row] = np.where(listed >= 0, (sums * scale + bias)[listed], -np.inf)
