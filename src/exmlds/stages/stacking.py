"""Stacking: one calibrated probability for each label on a short list.

The stacker combines the evidence for a label (neighbour votes, classifier margin, training frequency, other
labels of the row) in three steps, all fitted on held-out rows:

1. a logistic regression on the evidence and its products, in which each pair of a row and a label is weighted
   by 1 / rank, since the top of the list is what users see;
2. a bias for each label that is true more or less often than its evidence predicts (`fit_label_bias`);
3. isotonic regression from logits to probabilities, so that a share p of labels of probability p is true.

`top_rerank` may then change the order of the most probable labels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..kernels import DEFAULT, Engine
from ..runtime.parallel import Workers, blocks
from ..validation import stored

Array = np.ndarray

MIN_SHARE = 1e-4  # Vote shares are clipped here before the logarithm.
MAX_MARGIN = 4.0  # Margins are clipped to ±MAX_MARGIN.
MIN_PROBABILITY, MAX_PROBABILITY = 1e-6, 1 - 1e-6
LOG_RANK = 10  # index of log(rank) in the evidence
FEW_LARGEST = 32  # of many, which are found faster than by sorting all
N_BINS = 2**14  # of logits, before the isotonic regression
CURVE_POINTS = 200  # most points kept of the isotonic curve
RIDGE_FACTOR = 2.0  # The penalty is doubled: the final fit trains on more rows than the held-out scores saw.
PAIRS = 4_096  # pairs whose sums are added up at a time
RIDGE = 1.0  # L2 penalty of the weights of the regression, in units of pairs
REGRESSION_STEPS, LAST_GAIN = 100, 1e-4  # of Newton's method: at most; gain for a pair that is small enough
NEWTON_STEPS, MAX_STEP, LAST_STEP = 10, 1.0, 1e-3  # of the label biases: at most, largest, small enough
BIAS_BLOCKS = 8  # blocks of pairs whose sums by labels are added up at the same time
VOTES, MARGIN, FREQUENCY, SECOND, OTHERS = "votes", "classifier", "frequency", "second votes", "other labels"
CENTROID, NAME = "similar rows of the label", "name in the text"
MIN_MATCH = 1e-3  # Scores of matched names are clipped here before the logarithm.
# The names of each column of the evidence, in its order; a product has the names of both factors.
BASE_NAMES = (
    *((VOTES,), (VOTES,), (MARGIN,), (MARGIN,), (FREQUENCY,), (VOTES, MARGIN), (MARGIN, FREQUENCY)),
    *((VOTES, FREQUENCY), (MARGIN,), (VOTES,), (VOTES,), (MARGIN,)),
)
SECOND_NAMES = ((SECOND,), (SECOND,), (SECOND, MARGIN), (SECOND,), (SECOND, VOTES))
LIFT_NAMES = ((OTHERS,), (OTHERS, MARGIN), (OTHERS, FREQUENCY))
CENTROID_NAMES = ((CENTROID,), (CENTROID,), (CENTROID, MARGIN), (CENTROID, FREQUENCY), (CENTROID,))
MATCH_NAMES = (
    *((NAME,), (NAME,), (NAME, MARGIN), (NAME, VOTES), (NAME, FREQUENCY), (NAME, MARGIN)),
    *((NAME,), (NAME, MARGIN), (NAME, VOTES)),
)


class Stacker(NamedTuple):
    """A fitted stacker.

    mean, scale, weights : (f,) float64, standardization of the evidence and weights of the regression
    bias : intercept of the regression
    label_bias : (L,) float32, added to the logits of each label; (1,) zero where no label has a bias
    logits, probabilities : (m,) float64, points of the isotonic curve from logits to probabilities
    top_weights : (2, f) float64, weights of the evidence for the first rank and for the ranks behind it
        (`top_rerank`); None ranks all labels by their logits
    """

    mean: Array
    scale: Array
    weights: Array
    bias: float
    label_bias: Array
    logits: Array
    probabilities: Array
    top_weights: Array | None = None


def check(stacker: Any, n_evidence: int, n_labels: int) -> None:
    """Check a stacker that comes from a file."""
    stored.record(stacker, "the stacker", Stacker)
    for part in (stacker.mean, stacker.scale, stacker.weights):
        stored.array(part, "weights of the stacker", "float64", n_evidence)
    stored.number(stacker.bias, "the bias of the stacker")
    has_biases = np.shape(stacker.label_bias) != (1,)
    stored.array(stacker.label_bias, "biases of labels", stored.FLOATS, n_labels if has_biases else 1)
    n = len(stored.array(stacker.logits, "the calibration curve", stored.FLOATS, None))
    stored.array(stacker.probabilities, "the calibration curve", stored.FLOATS, n)
    stored.require(n, "the calibration curve is empty")
    if stacker.top_weights is not None:
        stored.array(stacker.top_weights, "weights of the top re-ranker", stored.FLOATS, 2, n_evidence)


class HeldOutPairs(NamedTuple):
    """Training data of the stacker: pairs of a held-out row and a label on its short list.

    evidence : (m, f) float32
    labels : (m,) int64, the label of each pair
    hits : (m,) bool, whether the row has the label
    weights : (m,) float, sample weights; None weights all pairs equally
    """

    evidence: Array
    labels: Array
    hits: Array
    weights: Array | None = None

    @property
    def is_informative(self) -> bool:
        """Whether the pairs hold both hits and misses, so that something can be learnt."""
        return bool(self.hits.any() and not self.hits.all())


def evidence_names(
    has_second: bool, has_lifts: bool, has_centroids: bool = False, has_matches: bool = False
) -> list[tuple[str, ...]]:
    """(f,) names of the sources of each column of the evidence."""
    return [
        *BASE_NAMES,
        *(SECOND_NAMES if has_second else ()),
        *(LIFT_NAMES if has_lifts else ()),
        *(CENTROID_NAMES if has_centroids else ()),
        *(MATCH_NAMES if has_matches else ()),
    ]


def build_evidence(
    votes: Array,
    margins: Array,
    counts: Array,
    second_votes: Array | None = None,
    lifts: Array | None = None,
    similarities: Array | None = None,
    matches: Array | None = None,
    match_lifts: Array | None = None,
    *,
    columns: Array | None = None,
) -> Array:
    """(n, k, f) float32, the evidence for each label on the short lists.

    votes : (n, k) vote shares, best first
    margins : (n, k) classifier margins, −inf where the list is padded
    counts : (n, k) number of training rows of each label
    second_votes : (n, k) vote shares of a second model, if there is one
    lifts : (n, k) log-lifts from the other labels of the row (`label_lift`), if they are used
    similarities : (n, k) to the centroid of each label, −inf where the list is padded, if they are used
    matches, match_lifts : (n, k) scores of the labels' names in the text, 0 without one, and log-lifts of
        these labels (`name_match`), if names are used
    columns : (n, m) the places on the lists whose evidence is wanted, (n, m, f); None wants all
    """
    ranks = np.broadcast_to(np.arange(votes.shape[1]), votes.shape) if columns is None else columns

    def own(values: Array) -> Array:
        return values if columns is None else np.take_along_axis(values, columns, axis=1)

    best_margin = np.clip(margins.max(axis=1, keepdims=True), -MAX_MARGIN, MAX_MARGIN)
    votes, z = own(votes), np.clip(own(margins), -MAX_MARGIN, MAX_MARGIN)
    v, c = np.log(np.maximum(votes, MIN_SHARE)), np.log(np.maximum(own(counts), 1))
    log_rank, behind_best = np.log1p(ranks.astype(np.float32)), z - best_margin
    parts = [v, votes, z, np.tanh(z), c, v * z, z * c, v * c, z * z, v * v, log_rank, behind_best]
    if second_votes is not None:
        second_votes = own(second_votes)
        s = np.log(np.maximum(second_votes, MIN_SHARE))
        parts += [s, second_votes, s * z, s * s, s * v]
    if lifts is not None:
        parts += [own(lifts), own(lifts) * z, own(lifts) * c]
    if similarities is not None:
        similarities = np.where(np.isfinite(similarities), similarities, 0)
        a, most_similar = own(similarities), similarities.max(axis=1, keepdims=True)
        parts += [a, a * a, a * z, a * c, a - most_similar]
    if matches is not None and match_lifts is not None:
        matches, match_lifts = own(matches), own(match_lifts)
        is_matched = (matches > 0).astype(np.float32)
        m = np.log(np.maximum(matches, MIN_MATCH) / MIN_MATCH)
        parts += [is_matched, m, is_matched * z, is_matched * v, m * c, m * z]
        parts += [match_lifts, match_lifts * z, match_lifts * v]
    return np.stack(parts, axis=-1).astype(np.float32, copy=False)


def fit(pairs: HeldOutPairs, *, n_jobs: int | None = None, engine: Engine = DEFAULT) -> Stacker:
    """Fit the logistic regression and its calibration, without label biases."""
    evidence, _, hits, weights = pairs
    zeros, no_bias = np.zeros(evidence.shape[1]), np.zeros(1, np.float32)
    # Without both hits and misses nothing can be fitted: keep the order of the votes and the hit rate.
    if not pairs.is_informative:
        hit_rate = np.clip(hits.mean() if len(hits) else 0.5, MIN_PROBABILITY, MAX_PROBABILITY)
        by_votes, curve = np.eye(1, evidence.shape[1])[0], np.full(2, float(hit_rate))
        return Stacker(zeros, zeros + 1, by_votes, 0.0, no_bias, np.array([-1.0, 1.0]), curve)
    # Each pair has the weight 1 / rank: the first ranks decide P@k.
    pair_weights = np.exp(-evidence[:, LOG_RANK], dtype=np.float64)
    pair_weights = pair_weights if weights is None else pair_weights * weights
    pair_weights *= len(pair_weights) / pair_weights.sum()
    with Workers(n_jobs) as workers:
        mean, scale = _standardization(evidence, workers)
        fitted = _regress(evidence, hits, pair_weights, mean, 1 / scale, workers, engine)
    stacker = Stacker(mean, scale, fitted[:-1], float(fitted[-1]), no_bias, zeros, zeros)
    return _calibrate(stacker, _regression(stacker, evidence, engine), pairs)


def calibrate_alone(pairs: HeldOutPairs) -> Stacker:
    """Calibrate the only column of the evidence, which is a logit: the order of labels stays as it is."""
    one, no_bias = np.ones(1), np.zeros(1, np.float32)
    stacker = Stacker(np.zeros(1), one, one, 0.0, no_bias, np.zeros(1), np.zeros(1))
    if not pairs.is_informative:  # the logits are the probabilities
        points = np.linspace(-14, 14, CURVE_POINTS)
        return stacker._replace(logits=points, probabilities=1 / (1 + np.exp(-points)))
    return _calibrate(stacker, pairs.evidence[:, 0].astype(np.float64), pairs)


def _standardization(evidence: Array, workers: Workers) -> tuple[Array, Array]:
    """(f,) float64 each, the mean and the deviation of the evidence, 1 where it is constant."""

    def moments(block: slice) -> Array:
        part = evidence[block].astype(np.float64)
        return np.stack([part.sum(axis=0), np.einsum("ij,ij->j", part, part)])

    mean, square = np.sum(workers.map(moments, blocks(len(evidence), PAIRS)), axis=0) / len(evidence)
    variance = square - mean**2
    is_constant = variance <= 1e-12 * square  # what rounding leaves
    return mean, np.sqrt(np.where(is_constant, 1, variance))


def _regress(
    evidence: Array,
    hits: Array,
    pair_weights: Array,
    mean: Array,
    inverse_scale: Array,
    workers: Workers,
    engine: Engine,
) -> Array:
    """(f + 1,) weights of the standardized evidence and the intercept, by Newton's method.

    The sums of blocks of pairs are added in their order, so that they do not depend on the number of threads.
    """
    n = evidence.shape[1] + 1
    ridge = np.append(np.full(n - 1, RIDGE), 0)

    def derivatives(weights: Array) -> tuple[Array, Array]:
        def sums(block: slice) -> Array:
            found = np.empty((n + 1, n))
            given = evidence[block], hits[block], pair_weights[block], mean, inverse_scale, weights
            engine.logistic_sums(*given, found[0], found[1:])
            return found

        total = np.sum(workers.map(sums, blocks(len(evidence), PAIRS)), axis=0)
        return total[0] + ridge * weights, total[1:] + np.diag(ridge)

    enough, weights = LAST_GAIN * pair_weights.sum(), np.zeros(n)
    gradient, curvature = derivatives(weights)
    for _ in range(REGRESSION_STEPS):
        step = np.linalg.solve(curvature, -gradient)
        slope = gradient @ step
        gradient, curvature = derivatives(weights + step)
        # The loss is convex: where it rises as steeply as it fell at first, the step was too long.
        while gradient @ step > -slope:
            step, slope = step / 2, slope / 2
            gradient, curvature = derivatives(weights + step)
        weights = weights + step
        if max(-slope / 2, np.abs(gradient).max()) <= enough:
            break
    return weights


def fit_label_bias(
    stacker: Stacker,
    pairs: HeldOutPairs,
    n_labels: int,
    *,
    n_jobs: int | None = None,
    engine: Engine = DEFAULT,
) -> Stacker:
    """Add a bias for each label, estimated by ridge-penalized logistic regression, and calibrate again.

    The penalty is RIDGE_FACTOR over the variance of the true biases, which is estimated by moments: the
    variance of the labels' residuals beyond what chance explains. Where nothing is left beyond chance, the
    stacker is returned as it is.
    """
    evidence, labels, hits, weights = pairs
    if not pairs.is_informative or n_labels < 2:
        return stacker
    logits, label_bias = _regression(stacker, evidence, engine), np.zeros(n_labels)
    w = np.zeros(0) if weights is None else np.asarray(weights, np.float64)
    size = max(-(-len(logits) // BIAS_BLOCKS), n_labels)  # of a block, whose sums take as much memory

    def residuals(workers: Workers) -> Array:
        """(3, L) Σ w(y − p), Σ wp(1 − p) and Σ w²p(1 − p) over the pairs of each label."""

        def sums(block: slice) -> Array:
            found = np.zeros((3, n_labels))
            engine.label_sums(logits[block], labels[block], hits[block], w[block], label_bias, found)
            return found

        return np.sum(workers.map(sums, blocks(len(logits), size)), axis=0)

    with Workers(n_jobs) as workers:
        residual, curvature, noise = residuals(workers)
        # E[residual²] = noise + variance · curvature² to first order in the biases.
        variance = (residual**2 - noise).sum() / (curvature**2).sum()
        if variance <= 0:
            return stacker
        ridge = RIDGE_FACTOR / variance
        # Newton's method separates into one equation for each label; clipped steps keep it from overshooting.
        for _ in range(NEWTON_STEPS):
            steps = np.clip((residual - ridge * label_bias) / (curvature + ridge), -MAX_STEP, MAX_STEP)
            label_bias += steps
            if np.abs(steps).max() < LAST_STEP:
                break
            residual, curvature, _ = residuals(workers)
    stacker = stacker._replace(label_bias=label_bias.astype(np.float32))
    return _calibrate(stacker, logits + stacker.label_bias[labels], pairs)


def with_labels(stacker: Stacker, n_labels: int) -> Stacker:
    """The stacker for more labels, which have no bias."""
    if len(stacker.label_bias) == 1:
        return stacker
    none = np.zeros(n_labels - len(stacker.label_bias), np.float32)
    return stacker._replace(label_bias=np.concatenate([stacker.label_bias, none]))


def logits(stacker: Stacker, evidence: Array, labels: Array, *, engine: Engine = DEFAULT) -> Array:
    """(…) float64, the logits of labels (…) by the evidence (…, f) on them; a label of −1 has any."""
    found = _regression(stacker, evidence, engine)
    return found + stacker.label_bias[labels] if len(stacker.label_bias) > 1 else found


def logits_of_lists(stacker: Stacker, labels: Array, *given: Array | None, engine: Engine = DEFAULT) -> Array:
    """(n, k) float64, the logits of the labels on short lists, −1 pads, whose evidence is not stored.

    given : votes, margins, counts, … as `build_evidence` takes them
    """
    weights, none = stacker.weights / stacker.scale, np.zeros((0, 0), np.float32)
    parts = [none if part is None else np.ascontiguousarray(part, np.float32) for part in given]
    parts[2] = np.ascontiguousarray(given[2], np.float64)
    parts += [none] * (8 - len(parts))
    limits, found = np.array([MIN_SHARE, MAX_MARGIN, MIN_MATCH], np.float32), np.empty(labels.shape)
    engine.weigh_pairs(*parts, limits, weights, float(stacker.bias - stacker.mean @ weights), found)
    return found + stacker.label_bias[labels] if len(stacker.label_bias) > 1 else found


def largest(scores: Array, k: int, *, engine: Engine = DEFAULT) -> Array:
    """(n, k) columns of the largest scores, (n, m), equal ones in the order of the columns."""
    n, width = scores.shape
    if k > FEW_LARGEST:
        return np.argsort(-scores, axis=1, kind="stable")[:, :k]
    columns, values = np.empty((n, min(k, width)), np.int64), np.empty((n, min(k, width)))
    starts, numbers = np.arange(n + 1) * width, np.tile(np.arange(width), n)
    engine.rank_rows(starts, numbers, np.ascontiguousarray(scores, np.float64).ravel(), columns, values)
    return columns


def probabilities(stacker: Stacker, logits: Array) -> Array:
    """(…) float32, the calibrated probabilities of labels.

    The isotonic curve has flat steps, so logits also order labels of equal probability.
    """
    return np.interp(logits, stacker.logits, stacker.probabilities).astype(np.float32)


def _regression(stacker: Stacker, evidence: Array, engine: Engine = DEFAULT) -> Array:
    """(…) float64, the logits of the regression, without label biases."""
    weights = stacker.weights / stacker.scale
    flat = np.ascontiguousarray(evidence, np.float32).reshape(-1, len(weights))
    found = np.empty(len(flat))
    engine.weigh_evidence(flat, weights, stacker.bias - stacker.mean @ weights, found)
    return found.reshape(evidence.shape[:-1])


def _binned(logits: Array, pairs: HeldOutPairs) -> tuple[Array, Array, Array]:
    """The mean logit, the share of hits and the weight of narrow bins: sorting all pairs takes longer."""
    lowest = logits.min()
    width = max((logits.max() - lowest) / N_BINS, np.finfo(np.float32).tiny)
    bins = np.minimum((logits - lowest) / width, N_BINS - 1).astype(np.int64)
    weights = np.bincount(bins, pairs.weights, N_BINS)
    present = np.flatnonzero(weights)
    sums = (
        np.bincount(bins, values if pairs.weights is None else values * pairs.weights, N_BINS)[present]
        for values in (logits, pairs.hits)
    )
    means, hit_rates = (total / weights[present] for total in sums)
    return means, hit_rates, weights[present]


def _calibrate(stacker: Stacker, logits: Array, pairs: HeldOutPairs) -> Stacker:
    """Fit the isotonic curve from these logits to the share of hits.

    Each step of the curve is shrunk by one extra pair that is a hit at the overall hit rate, so that a step
    of a few pairs that are all hits does not claim certainty.
    """
    from sklearn.isotonic import IsotonicRegression  # not needed to predict

    points, hit_rates, point_weights = _binned(logits, pairs)
    curve = IsotonicRegression(out_of_bounds="clip").fit(points, hit_rates, sample_weight=point_weights)
    steps, step_of_point = np.unique(curve.y_thresholds_, return_inverse=True)
    step_of_bin = np.searchsorted(steps, curve.predict(points)).clip(0, len(steps) - 1)
    weights = np.bincount(step_of_bin, point_weights, len(steps))
    prior = np.average(hit_rates, weights=point_weights)
    shrunk = np.maximum.accumulate((weights * steps + prior) / (weights + 1))
    probabilities = shrunk.clip(MIN_PROBABILITY, MAX_PROBABILITY)[step_of_point]
    # Evenly spaced points bound the size of the saved curve.
    kept = np.unique(np.linspace(0, len(probabilities) - 1, CURVE_POINTS).round().astype(int))
    return stacker._replace(logits=curve.X_thresholds_[kept], probabilities=probabilities[kept])
