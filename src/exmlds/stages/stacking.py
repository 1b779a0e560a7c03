"""One probability from what is known of a label on a short list: votes, margin, frequency, other labels.

A logistic regression on these and their products, fitted on rows that neither voted nor taught, each label
weighed by one over its place. Labels that are right more or less often than their evidence says then get a
leaning of their own, and isotonic regression makes the sums level, so that of labels with probability p a
share p is right. `places` then decides between the likeliest.
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
RIDGE_FACTOR = 2.0  # of leanings: labels were taught by fewer rows here than in the last fit
STEPS, LONGEST_STEP = 10, 1.0  # of Newton's method
V, Z, C, S, L = "votes", "classifier", "frequency", "second votes", "other labels"
# Kinds of evidence, in its order; of a product, of both its factors.
OF_LIST = ((V,), (V,), (Z,), (Z,), (C,), (V, Z), (Z, C), (V, C), (Z,), (V,), (V,), (Z,))
OF_SECONDS = ((S,), (S,), (S, Z), (S,), (S, V))
OF_COMPANY = ((L,), (L, Z), (L, C))


class Stacker(NamedTuple):
    """mean, scale, weights : (f,) float64 of the evidence;  bias : of the regression
    leanings : (L,) float32 added to the sums of each label, or one 0 for all
    sums, levels : (m,) float64, the isotonic curve from the regression's sum to a probability
    places : (2, f) float64 weights for a row's first place and for those behind, or None: all by the sums
    """

    mean: Array
    scale: Array
    weights: Array
    bias: float
    label_bias: Array
    logits: Array
    probabilities: Array
    top_weights: Array | None = None


class HeldOutPairs(NamedTuple):
    """Pairs of held-out rows and labels on their lists, to learn from.

    known : (m, f) their evidence;  labels : (m,) which;  hits : (m,) whether it is a true one
    weights : (m,) how much they count, or None where all count the same
    """

    known: Array
    labels: Array
    hits: Array
    weights: Array | None = None

    @property
    def is_informative(self) -> bool:
        """Whether there is anything to tell apart."""
        return bool(self.hits.any() and not self.hits.all())


def kinds(has_seconds: bool, has_company: bool) -> list[tuple[str, ...]]:
    """(f,) what each piece of evidence is about."""
    return [*OF_LIST, *(OF_SECONDS if has_seconds else ()), *(OF_COMPANY if has_company else ())]


def evidence(
    votes: Array, margins: Array, counts: Array, seconds: Array | None = None, company: Array | None = None
) -> Array:
    """(n, k, f) float32 of short lists.

    votes : (n, k) shares, best first;  margins : (n, k), −inf where the list is padded
    counts : (n, k) training rows of the labels;  seconds : (n, k) shares of other voters, if there are any
    company : (n, k) what other labels say, if they are asked
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
    if company is not None:
        parts += [company, company * z, company * c]
    return np.stack(parts, axis=-1).astype(np.float32)


def fit(pairs: HeldOutPairs) -> Stacker:
    """Learn the weights of the evidence, without leanings."""
    known, _, hits, weights = pairs
    nothing, no_leanings = np.zeros(known.shape[1]), np.zeros(1, np.float32)
    if not pairs.is_informative:  # the order of the votes stays
        share = np.full(2, float(np.clip(hits.mean() if len(hits) else 0.5, LEAST, MOST)))
        by_votes = np.eye(1, known.shape[1])[0]
        return Stacker(nothing, nothing + 1, by_votes, 0.0, no_leanings, np.array([-1.0, 1.0]), share)
    mean, scale = known.mean(axis=0, dtype=np.float64), known.std(axis=0, dtype=np.float64)
    scale[scale == 0] = 1
    nearer = np.exp(-known[:, PLACE])  # 1 / place: the first places are what is seen
    nearer = nearer if weights is None else nearer * weights
    nearer *= len(nearer) / nearer.sum()
    model = LogisticRegression(solver="newton-cholesky").fit(
        (known - mean) / scale, hits, sample_weight=nearer
    )
    bias = float(model.intercept_[0])
    blend = Stacker(mean, scale, model.coef_[0], bias, no_leanings, nothing, nothing)
    return _calibrate(blend, _sums(blend, known), pairs)


def fit_label_bias(blend: Stacker, pairs: HeldOutPairs, n_labels: int) -> Stacker:
    """The blend with leanings: for each label the ridge estimate of a number that is added to its sums.

    How much leanings vary is told by the labels' residuals, beyond what chance makes of them; where they do
    not vary, there are none.
    """
    known, labels, hits, weights = pairs
    if not pairs.is_informative or n_labels < 2:
        return blend
    logits, label_bias = _sums(blend, known), np.zeros(n_labels)
    w = np.ones(len(hits)) if weights is None else weights

    def residuals() -> tuple[Array, Array, Array]:
        """(L,) Σ w(y − p), Σ wp(1 − p) and Σ w²p(1 − p) over each label's pairs."""
        p = 1 / (1 + np.exp(-(logits + label_bias[labels])))
        told = (w * (hits - p), w * p * (1 - p), w * w * p * (1 - p))
        off, spread, chance = (np.bincount(labels, values, n_labels) for values in told)
        return off, spread, chance

    off, spread, chance = residuals()
    variance = (off**2 - chance).sum() / (spread**2).sum()
    if variance <= 0:
        return blend
    ridge = RIDGE_FACTOR / variance
    for _ in range(STEPS):
        label_bias += np.clip((off - ridge * label_bias) / (spread + ridge), -LONGEST_STEP, LONGEST_STEP)
        off, spread, _ = residuals()
    blend = blend._replace(label_bias=label_bias.astype(np.float32))
    return _calibrate(blend, logits + blend.label_bias[labels], pairs)


def apply(blend: Stacker, known: Array, labels: Array) -> tuple[Array, Array]:
    """Sums to rank by, and probabilities, of evidence (…, f) of labels (…).

    Sums also tell equal probabilities apart.
    """
    logits = _sums(blend, known)
    if len(blend.label_bias) > 1:
        logits += blend.label_bias[labels]
    return logits, np.interp(logits, blend.logits, blend.probabilities).astype(np.float32)


def _sums(blend: Stacker, known: Array) -> Array:
    weights = blend.weights / blend.scale
    return known @ weights + (blend.bias - blend.mean @ weights)


def _calibrate(blend: Stacker, logits: Array, pairs: HeldOutPairs) -> Stacker:
    """The blend with the curve on which these sums are right as often as it says.

    Each step of the curve counts one pair more, as likely a hit as all pairs are: a few that were all right
    do not make certain.
    """
    curve = IsotonicRegression(out_of_bounds="clip").fit(logits, pairs.hits, sample_weight=pairs.weights)
    steps, which = np.unique(curve.y_thresholds_, return_inverse=True)
    of_pairs = np.searchsorted(steps, curve.predict(logits)).clip(0, len(steps) - 1)
    weights = np.bincount(of_pairs, pairs.weights, len(steps))
    prior = np.average(pairs.hits, weights=pairs.weights)
    probabilities = np.maximum.accumulate((weights * steps + prior) / (weights + 1)).clip(LEAST, MOST)[which]
    places = np.unique(np.linspace(0, len(probabilities) - 1, LEVELS).round().astype(int))
    return blend._replace(logits=curve.X_thresholds_[places], probabilities=probabilities[places])
