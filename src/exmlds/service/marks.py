"""The words of a text that speak for a label or against it, and where they are."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

from ..models.analyzers import TOKEN, TermVectorizer, ngram_names
from ..models.name_matcher import WORD
from ..voting.explain import Explanation


class Mark(NamedTuple):
    """A range of characters of a text; kind : "word", or "name" of the label."""

    start: int
    end: int
    weight: float
    kind: str


def feature_weights(why: Explanation) -> dict[Any, float]:
    """What features add to the margin of the label's classifier, or else to the votes."""
    if why.margin is not None:
        return {term.feature: term.weight for term in (*why.margin.for_, *why.margin.against)}
    weights: dict[Any, float] = defaultdict(float)
    for voter in why.voters:
        for term in voter.terms:
            weights[term.feature] += voter.share * term.weight
    return dict(weights)


def word_weights(vectorizer: Any, text: str, weights: dict[Any, float]) -> dict[str, float]:
    """What the words of a text add, in lower case: those of which features with a weight consist."""
    if isinstance(vectorizer, TermVectorizer):
        found = _by_terms(vectorizer, text, weights)
    elif isinstance(vectorizer, (CountVectorizer, HashingVectorizer)):
        found = _by_words(vectorizer, text, weights)
    else:  # the features of an encoder are not words
        found = {}
    return {word: weight for word, weight in found.items() if weight}


def _by_terms(vectorizer: TermVectorizer, text: str, weights: dict[Any, float]) -> dict[str, float]:
    words = [(word.group().lower(), term) for word, term in vectorizer.words_with_terms(text) if term]
    found = {word: weights.get(term, 0.0) for word, term in words}
    has_ngrams = any("*" in feature for feature in weights)
    for word in found if has_ngrams else ():
        found[word] += sum(weights.get(ngram, 0.0) for ngram in ngram_names(word))
    for (first, one), (second, other) in dict.fromkeys(pairwise(words)):
        half = weights.get(f"{one} {other}", 0.0) / 2
        found[first] += half
        found[second] += half
    return found


def _by_words(vectorizer: Any, text: str, weights: dict[Any, float]) -> dict[str, float]:
    """By the features of each word alone, which those of scikit-learn's vectorizers are in most cases."""
    words = list(dict.fromkeys(TOKEN.findall(text.lower())))
    if isinstance(vectorizer, HashingVectorizer):
        rows = vectorizer.transform(words or [""])
        features = [columns.tolist() for columns in np.split(rows.indices, rows.indptr[1:-1])]
    else:
        features = list(map(vectorizer.build_analyzer(), words))
    return {
        word: sum(weights.get(feature, 0.0) for feature in set(own)) for word, own in zip(words, features)
    }


def marks(text: str, words: dict[str, float], names: Sequence[str]) -> list[Mark]:
    """Where words and names of the label stand in a text, in the order of the text.

    words : their weights;  names : in lower case, with a blank between two words
    """
    found = [
        Mark(*word.span(), words[word.group().lower()], "word")
        for word in TOKEN.finditer(text)
        if word.group().lower() in words
    ]
    return sorted([*found, *_names(text, names)])


def _names(text: str, names: Sequence[str]) -> Iterator[Mark]:
    words = list(WORD.finditer(text))
    plain = [_folded(word) for word in words]
    for name in names:
        own = name.split()
        for first in range(len(plain) - len(own) + 1):
            if plain[first : first + len(own)] == own:
                yield Mark(words[first].start(), words[first + len(own) - 1].end(), 1.0, "name")


def _folded(word: re.Match[str]) -> str:
    """A word as a `NameMatcher` reads it."""
    return unicodedata.normalize("NFKC", word.group()).casefold()
