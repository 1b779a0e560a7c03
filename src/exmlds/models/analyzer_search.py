"""The choice of the analyzer, of the weights of fields and of the length of texts, on held-out rows.

Candidates are compared by the votes of the nearest training texts, leave-one-out, on a sample: a text is left
out of its own neighbours, so every text of the sample is held out once. This takes a tenth of a second for a
candidate, and orders analyzers as `ExMLDS` does (docs/decisions/0004-analyzers.md has the figures).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from .. import metrics
from ..validation import targets
from .analyzers import TermVectorizer, Tokens, tokenize
from .baselines import FeatureNeighbors

Array = np.ndarray

MIN_TEXTS = 50  # labelled ones; with fewer there is nothing to choose on
# The sample is a quarter of the texts, or 8,000 where that is more: with more texts, terms that are rare in a
# small sample become useful. It has at most 300,000 words, but at least 2,000 texts.
SAMPLE_SHARE, MANY_TEXTS = 0.25, 8_000
SAMPLE_TOKENS, MIN_SAMPLE = 300_000, 2_000
N_NEIGHBORS = 20
HELD_OUT = 5_000  # texts of the sample that are left out of it one by one, and predicted
DEPTHS = (1, 3, 5)  # the score is the mean of the precisions at these depths
# Terms in ascending number. Candidates within one standard error of the best one count as equal.
BASES = ("stems-stops", "stems", "words-stops", "words")
FIELD_WEIGHTS = (1.0, 2.0, 4.0)
LENGTHS = (3_000, 1_000, 300)  # words
NO_WORDS = "The texts hold no words that the vectorizer takes; are they empty?"
LONG_SHARE = 0.1  # of the texts that a length must cut, to be tried


class Trial(NamedTuple):
    """One candidate, and its score on held-out texts."""

    analyzer: str
    max_words: int | None
    field_weights: list[float]
    score: float


class Requested(NamedTuple):
    """What to choose: "auto" is chosen, anything else is taken as it is.

    with_ngrams : whether character n-grams may be chosen; they make a fit take twice as long
    """

    analyzer: str = "auto"
    max_words: Any = "auto"
    field_weights: Any = "auto"
    with_ngrams: bool = False

    def is_open(self, n_fields: int) -> bool:
        """Whether there is anything to choose for texts of so many fields."""
        return "auto" in (self.analyzer, self.max_words) or (self.field_weights == "auto" and n_fields > 1)


def fit_terms(
    texts: Iterable[str | Sequence[str]],
    labels: Any,
    requested: Requested,
    seed: int,
    sample_weight: Any = None,
) -> tuple[TermVectorizer, csr_matrix, list[Trial]]:
    """A fitted vectorizer with the settings that predict held-out texts best, (n, d) vectors, and all trials.

    texts : read once, one by one;  labels : as for `fit`, read after the texts
    sample_weight : (n,) or None; texts with a weight of 0 take no part in the choice
    """
    tokens = tokenize(texts)
    if not len(tokens.ids):
        raise ValueError(NO_WORDS)
    n_fields = int(tokens.fields.max()) + 1
    start = TermVectorizer(
        "words" if requested.analyzer == "auto" else requested.analyzer,
        None if requested.max_words == "auto" else requested.max_words,
        [1.0] * n_fields if requested.field_weights == "auto" else requested.field_weights,
    )
    rows = _sample(tokens, seed, sample_weight)
    Y = _sample_labels(labels, rows, tokens.n) if requested.is_open(n_fields) else None
    if Y is None or np.count_nonzero(np.diff(Y.indptr)) < MIN_TEXTS:
        chosen, trials = start, list[Trial]()
    else:
        chosen, trials = choose(start, tokens.take(rows), Y, requested, seed)
    vectors = chosen.fit_tokens(tokens)
    if not vectors.nnz:
        raise ValueError(NO_WORDS)
    return chosen, vectors, trials


def choose(
    start: TermVectorizer, tokens: Tokens, Y: csr_matrix, requested: Requested, seed: int
) -> tuple[TermVectorizer, list[Trial]]:
    """Choose what is open, one after another: the analyzer, the weights of fields, the length of texts.

    start : an unfitted vectorizer with the settings that are given
    tokens, Y : a sample of training texts, and (n, L) their labels
    """
    search, chosen = _Search(tokens, Y, seed), start
    if requested.analyzer == "auto":
        chosen = search.analyzer(chosen, requested.with_ngrams)
    if requested.field_weights == "auto":
        for field in reversed(range(len(start.field_weights) - 1)):  # the last one, the text, has weight 1
            chosen = search.field_weight(chosen, field)
    if requested.max_words == "auto":
        chosen = search.length(chosen)
    return chosen, search.trials


def _sample(tokens: Tokens, seed: int, sample_weight: Any) -> Array:
    """Ascending rows of texts to choose on: fewer where texts are long."""
    mean_length = len(tokens.ids) / tokens.n
    n_sample = int(min(max(SAMPLE_SHARE * tokens.n, MANY_TEXTS), SAMPLE_TOKENS / mean_length))
    order = np.random.default_rng(seed).permutation(tokens.n)
    if np.shape(sample_weight) == (tokens.n,):
        order = order[np.asarray(sample_weight)[order] > 0]
    return np.sort(order[: max(n_sample, MIN_SAMPLE)])


def _sample_labels(labels: Any, rows: Array, n: int) -> csr_matrix | None:
    """(n_sample, L) the labels of these rows; None where they are wrong, which the model's fit reports."""
    labels = targets.as_array(labels)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if targets.is_indicator(labels):
                whole = targets.indicator(labels)
                return whole[rows] if whole.shape[0] == n else None
            labels = list(labels)
            return targets.encode([labels[row] for row in rows])[0] if len(labels) == n else None
    except (TypeError, ValueError):
        return None


class _Search:
    """The trials on one sample of texts."""

    def __init__(self, tokens: Tokens, Y: csr_matrix, seed: int) -> None:
        used, columns = np.unique(Y.indices, return_inverse=True)
        self.tokens, self.seed = tokens, seed
        self.Y = csr_matrix((np.ones(Y.nnz, np.float32), columns, Y.indptr), shape=(Y.shape[0], len(used)))
        self.trials: list[Trial] = []
        self._tried: dict[tuple[Any, ...], Array] = {}

    def analyzer(self, start: TermVectorizer, with_ngrams: bool) -> TermVectorizer:
        """Stems or words, with or without stop words; and pairs and n-grams where they add to it."""
        bases = [_changed(start, analyzer=name) for name in BASES]
        chosen, precisions = self._simplest(bases)
        if not with_ngrams:
            # Pairs make a fit take twice as long, and a gain within the noise would not be worth it.
            return self._extended(chosen, precisions, "+pairs", n_errors=2, min_gain=0.01)[0]
        chosen, precisions = self._extended(chosen, precisions, "+pairs")
        return self._extended(chosen, precisions, "+ngrams")[0]

    def field_weight(self, start: TermVectorizer, field: int) -> TermVectorizer:
        """The weight of the words of a field, 1 where others are no better."""
        weights = list(start.field_weights)
        candidates = [
            _changed(start, field_weights=[*weights[:field], weight, *weights[field + 1 :]])
            for weight in FIELD_WEIGHTS
        ]
        return self._simplest(candidates)[0]

    def length(self, start: TermVectorizer) -> TermVectorizer:
        """The number of words that are read; all where no other number is better."""
        lengths = [n for n in LENGTHS if (self.tokens.lengths > n).mean() >= LONG_SHARE]
        if not lengths:
            return start
        # Classifiers make more of the end of a text than neighbours do, so a cut needs a clear gain.
        return self._simplest([start, *(_changed(start, max_words=n) for n in lengths)], n_errors=2)[0]

    def _simplest(
        self, candidates: Sequence[TermVectorizer], n_errors: float = 1.0
    ) -> tuple[TermVectorizer, Array]:
        """The first candidate that is within so many standard errors of the best, and its precisions."""
        tried = [self._precisions(candidate) for candidate in candidates]
        best = tried[int(np.argmax([precisions.mean() for precisions in tried]))]
        differences = [best - precisions for precisions in tried]
        position = next(i for i, one in enumerate(differences) if one.mean() <= n_errors * _error(one))
        return candidates[position], tried[position]

    def _extended(
        self,
        start: TermVectorizer,
        precisions: Array,
        part: str,
        n_errors: float = 1.0,
        min_gain: float = 0.0,
    ) -> tuple[TermVectorizer, Array]:
        """The analyzer with one more part, where it gains more than its standard error and `min_gain`."""
        extended = _changed(start, analyzer=start.analyzer + part)
        found = self._precisions(extended)
        gain = (found - precisions).mean()
        needed = max(n_errors * _error(found - precisions), min_gain * precisions.mean())
        return (extended, found) if gain > needed else (start, precisions)

    def _precisions(self, candidate: TermVectorizer) -> Array:
        """(h,) mean of P@1, P@3 and P@5 of each held-out text; the texts are the same for all candidates."""
        settings = candidate.analyzer, candidate.max_words, candidate.field_weights
        if settings not in self._tried:
            self._tried[settings] = precisions = self._held_out_precisions(candidate)
            self.trials.append(Trial(*settings[:2], list(settings[2]), float(precisions.mean())))
        return self._tried[settings]

    def _held_out_precisions(self, candidate: TermVectorizer) -> Array:
        X = candidate.fit_tokens(self.tokens)
        if not X.nnz:  # all words are stop words
            return np.zeros(1)
        k = min(max(DEPTHS), self.Y.shape[1])
        # Not by `fit`, whose warnings about the data the fit of the model repeats.
        voting, rng = FeatureNeighbors(n_neighbors=N_NEIGHBORS), np.random.default_rng(self.seed)
        voting._max_held_out = HELD_OUT
        voting._start_as(X, self.Y)
        voting._fit(X, self.Y, rng)
        held_out = voting._score_on_holdout(X, self.Y, k, rng)
        ranking = metrics.Ranking(self.Y[held_out.rows], (held_out.ids, held_out.scores), k)
        depths = [depth for depth in DEPTHS if depth <= k]
        return np.mean([ranking.sums(f"P@{depth}")[0] for depth in depths], axis=0)


def _changed(vectorizer: TermVectorizer, **settings: Any) -> TermVectorizer:
    """An unfitted vectorizer with other settings."""
    names = ("analyzer", "max_words", "field_weights")
    return TermVectorizer(**{**{name: getattr(vectorizer, name) for name in names}, **settings})


def _error(differences: Array) -> float:
    """The standard error of the mean of paired differences."""
    return float(differences.std() / np.sqrt(len(differences)))
