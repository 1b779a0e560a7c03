"""One probability from what is known of a label on a row's short list: votes, margin, how common it is.

A logistic regression on these and their products, fitted on rows that neither voted nor taught, each label
weighed by one over its place; then made level by isotonic regression, so that of labels with probability p
a share p is right.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

Array = np.ndarray

FEWEST_VOTES = 1e-4  # that a logarithm is taken of
MARGIN = 4.0  # margins beyond it count as it
LEAST, MOST = 1e-6, 1 - 1e-6  # probabilities
PLACE = 10  # of log(place on the list) in the evidence
LEVELS = 200  # of the isotonic curve
KINDS = (  # of evidence, in its order
    *("votes", "votes", "classifier", "classifier", "frequency", "in combination", "in combination"),
    *("in combination", "classifier", "votes", "votes", "classifier"),
    *("second votes", "second votes", "in combination", "second votes", "in combination"),
)


class Blend(NamedTuple):
    """mean, scale, weights : (f,) float64 of the evidence;  bias : of the regression
    sums, levels : (m,) float64, the isotonic curve from the regression's sum to a probability
    """

    mean: Array
    scale: Array
    weights: Array
    bias: float
    sums: Array
    levels: Array


def evidence(votes: Array, margins: Array, counts: Array, seconds: Array | None = None) -> Array:
    """(n, k, f) float32 of short lists.

    votes : (n, k) shares, best first;  margins : (n, k), −inf where the list is padded
    counts : (n, k) training rows of the labels;  seconds : (n, k) shares of other voters, if there are any
    """
    v = np.log(np.maximum(votes, FEWEST_VOTES))
    z = np.clip(margins, -MARGIN, MARGIN)
    c = np.log(np.maximum(counts, 1))
    place = np.broadcast_to(np.log1p(np.arange(votes.shape[1], dtype=np.float32)), votes.shape)
    behind = z - z.max(axis=1, keepdims=True)
    parts = [v, votes, z, np.tanh(z), c, v * z, z * c, v * c, z * z, v * v, place, behind]
    if seconds is not None:
        s = np.log(np.maximum(seconds, FEWEST_VOTES))
        parts += [s, seconds, s * z, s * s, s * v]
    return np.stack(parts, axis=-1).astype(np.float32)


def fit(known: Array, hits: Array, weights: Array | None = None) -> Blend:
    """Learn from pairs of held-out rows and listed labels.

    known : (m, f) their evidence;  hits : (m,) whether the label is a true one;  weights : (m,) of the pairs
    """
    if hits.all() or not hits.any():  # nothing to tell apart: the order of the votes stays
        share = np.full(2, float(np.clip(hits.mean() if len(hits) else 0.5, LEAST, MOST)))
        by_votes = np.zeros(known.shape[1])
        by_votes[0] = 1
        nothing = np.zeros(known.shape[1])
        return Blend(nothing, nothing + 1, by_votes, 0.0, np.array([-1.0, 1.0]), share)
    mean, scale = known.mean(axis=0, dtype=np.float64), known.std(axis=0, dtype=np.float64)
    scale[scale == 0] = 1
    nearer = np.exp(-known[:, PLACE])  # 1 / place: the first places are what is seen
    nearer = nearer if weights is None else nearer * weights
    nearer *= len(nearer) / nearer.sum()
    model = LogisticRegression(solver="newton-cholesky").fit(
        (known - mean) / scale, hits, sample_weight=nearer
    )
    blend = Blend(mean, scale, model.coef_[0], float(model.intercept_[0]), np.zeros(0), np.zeros(0))
    sums = _sums(blend, known)
    curve = IsotonicRegression(y_min=LEAST, y_max=MOST, out_of_bounds="clip")
    curve.fit(sums, hits, sample_weight=weights)
    places = np.unique(np.linspace(0, len(curve.X_thresholds_) - 1, LEVELS).round().astype(int))
    return blend._replace(sums=curve.X_thresholds_[places], levels=curve.y_thresholds_[places])


def apply(blend: Blend, known: Array) -> tuple[Array, Array]:
    """Sums to rank by, and probabilities, of evidence (…, f); sums also tell equal probabilities apart."""
    sums = _sums(blend, known)
    return sums, np.interp(sums, blend.sums, blend.levels).astype(np.float32)


def _sums(blend: Blend, known: Array) -> Array:
    return ((known - blend.mean) / blend.scale) @ blend.weights + blend.bias
