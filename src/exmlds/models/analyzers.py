"""Analyzers: which terms texts have, and the tf-idf vectorizer of these terms.

A text is read once and kept as the ids of its words (`Tokens`). All analyzers work on these ids: each
distinct word is stemmed once, pairs are neighbouring ids, and the character n-grams of texts are the counts
of words times a matrix of the n-grams of each word. Several analyzers can therefore be compared on the same
texts at little cost (`analyzer_search.py`).
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, hstack, vstack
from sklearn.preprocessing import normalize

from ..validation import stored
from . import languages

Array = np.ndarray

TOKEN = re.compile(r"(?u)\b\w\w+\b")  # the words of scikit-learn's vectorizers
MIN_TEXTS = 2  # of a pair or an n-gram; most of those that only one text has never come again
NGRAM = 4  # characters; three lengths, 3 to 5, predict no better and have three times as many terms
PART_WEIGHT = 0.5  # length of a row's pairs or n-grams where that of its words is 1
BLOCK = 4_000_000  # tokens that are counted at a time, to bound the memory
MAX_FIELDS = 16


class Analysis(NamedTuple):
    """What the terms of an analyzer are.

    stems : words are replaced by their stems, by the language of the text
    stops : the function words of the text's language, the stop words, are left out
    pairs : pairs of neighbouring words are terms too
    ngrams : sequences of four characters within words are terms too
    """

    stems: bool = False
    stops: bool = False
    pairs: bool = False
    ngrams: bool = False

    @property
    def name(self) -> str:
        """The name of the analyzer, such as "stems-stops+pairs"."""
        parts = ("-stops" * self.stops, "+pairs" * self.pairs, "+ngrams" * self.ngrams)
        return ("stems" if self.stems else "words") + "".join(parts)


ANALYZERS = {how.name: how for how in (Analysis(*flags) for flags in product((False, True), repeat=4))}


class Tokens(NamedTuple):
    """Texts as the ids of their words.

    words : the distinct words, in lower case
    ids : (m,) int32 the word of each token, text after text
    starts : (n + 1,) int64 where the tokens of each text begin
    fields : (m,) uint8 the field of each token, counted from the last one of its text, which is 0
    """

    words: list[str]
    ids: Array
    starts: Array
    fields: Array

    @property
    def n(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Array:
        """(n,) int64 number of words of each text."""
        return np.diff(self.starts)

    def rows(self) -> Array:
        """(m,) int64 the text of each token."""
        return np.repeat(np.arange(self.n), self.lengths)

    def take(self, rows: Array) -> Tokens:
        """Some of the texts, with the words that they have."""
        taken, starts = self._ranges(self.starts[rows], self.lengths[rows])
        used, ids = np.unique(self.ids[taken], return_inverse=True)
        words = [self.words[word] for word in used]
        return Tokens(words, ids.astype(np.int32), starts, self.fields[taken])

    def cut(self, max_words: int | None) -> Tokens:
        """The first words of each text; all where `max_words` is None."""
        if max_words is None or not self.n or self.lengths.max() <= max_words:
            return self
        taken, starts = self._ranges(self.starts[:-1], np.minimum(self.lengths, max_words))
        return Tokens(self.words, self.ids[taken], starts, self.fields[taken])

    @staticmethod
    def _ranges(begins: Array, lengths: Array) -> tuple[Array, Array]:
        """The positions of tokens, from `begins` on for each text, and where they start in a row."""
        starts = np.concatenate([[0], np.cumsum(lengths)])
        return np.arange(starts[-1]) + np.repeat(begins - starts[:-1], lengths), starts

    def blocks(self) -> Iterator[Tokens]:
        """The texts in blocks of about `BLOCK` tokens, with the same ids."""
        first = 0
        while first < self.n:
            last = int(np.searchsorted(self.starts, self.starts[first] + BLOCK, side="right")) - 1
            last = min(max(last, first + 1), self.n)
            start, end = self.starts[[first, last]]
            starts = self.starts[first : last + 1] - start
            yield Tokens(self.words, self.ids[start:end], starts, self.fields[start:end])
            first = last

    def counts(self) -> csr_matrix:
        """(n, n_words) float32 how often each text has each word."""
        return _count(self.rows(), self.ids, self.n, len(self.words))


def tokenize(texts: Iterable[str | Sequence[str]]) -> Tokens:
    """Read texts one by one as the ids of their words.

    texts : each is a string, or has a string for each of its fields, the main one last
    """
    columns: dict[str, int] = {}
    ids, starts, fields = array("i"), array("q", [0]), bytearray()
    for text in texts:
        parts = (text,) if isinstance(text, str) else text
        for field, part in zip(reversed(range(len(parts))), parts):
            found = [columns.setdefault(word, len(columns)) for word in TOKEN.findall(part.lower())]
            ids.extend(found)
            fields.extend(bytes([min(field, MAX_FIELDS - 1)]) * len(found))
        starts.append(len(ids))
    if not ids:
        return Tokens([], np.zeros(0, np.int32), np.array(starts, np.int64), np.zeros(0, np.uint8))
    # Without a copy: there may be billions of tokens.
    fields_of_tokens = np.frombuffer(fields, np.uint8)
    return Tokens(
        list(columns), np.frombuffer(ids, np.intc), np.frombuffer(starts, np.int64), fields_of_tokens
    )


class TermVectorizer:
    """Sublinear tf-idf of the terms of an analyzer.

    With the analyzer "words", the vectors are those of scikit-learn's `TfidfVectorizer(sublinear_tf=True)`.
    Words, pairs and n-grams are parts of a row: each part is scaled to a length of its own, `PART_WEIGHT` for
    the latter two, and then the row to length 1. The columns are words, pairs and n-grams, in this order.

    Parameters
    ----------
    analyzer : a name of `ANALYZERS`
    max_words : words of a text that are read, from its beginning; None is all
    field_weights : how often a word counts in each field, in their order; the last weight is of the last
        field, and fields before the first weight have 1

    Attributes
    ----------
    languages_ : the languages of the training texts, the most frequent first, where the analyzer uses them
    terms_ : the words or stems, in alphabetical order
    pairs_ : (p,) int64 ascending, first × number of terms + second, by the columns of two terms
    ngrams_ : the n-grams; a blank is the beginning or the end of a word
    idf_ : (d,) float32 inverse document frequencies
    """

    trials: Sequence[Any] = ()  # of the search that has chosen the parameters

    def __init__(
        self, analyzer: str = "words", max_words: int | None = None, field_weights: Sequence[float] = (1.0,)
    ) -> None:
        self.analyzer, self.field_weights = analyzer, tuple(map(float, field_weights))
        self.max_words = None if max_words is None else int(max_words)

    @property
    def _how(self) -> Analysis:
        return ANALYZERS[self.analyzer]

    def fit_transform(self, texts: Iterable[str | Sequence[str]]) -> csr_matrix:
        """Learn the terms of texts, and return their (n, d) vectors."""
        return self.fit_tokens(tokenize(texts))

    def transform(self, texts: Iterable[str | Sequence[str]]) -> csr_matrix:
        """(n, d) float32 vectors of texts."""
        return self._weigh(self._count_parts(tokenize(texts).cut(self.max_words)))

    def fit_tokens(self, tokens: Tokens) -> csr_matrix:
        """Learn the terms of texts that were read, and return their (n, d) vectors."""
        tokens = tokens.cut(self.max_words)
        self.languages_ = self._find_languages(tokens)
        self._set_terms(self._find_terms(tokens))
        self.pairs_ = self._find_pairs(tokens)
        self._set_ngrams(self._find_ngrams(tokens))
        parts = self._count_parts(tokens)
        in_texts = np.concatenate([np.bincount(part.indices, minlength=part.shape[1]) for part in parts])
        self.idf_ = (np.log((1 + tokens.n) / (1 + in_texts)) + 1).astype(np.float32)
        return self._weigh(parts)

    def count_terms(self, texts: Iterable[str | Sequence[str]]) -> dict[str, int]:
        """How many texts have each term, in the languages that are known; without pairs and n-grams."""
        tokens = tokenize(texts).cut(self.max_words)
        counter = TermVectorizer(self.analyzer, self.max_words, self.field_weights)
        counter.languages_ = self.languages_
        counter._set_terms(counter._find_terms(tokens))
        columns = counter._column_table(tokens.words)
        in_texts = np.zeros(len(counter.terms_), np.int64)
        for block in tokens.blocks():
            found = counter._columns_of(block, columns)
            in_texts += np.bincount(
                _count(block.rows(), found, block.n, len(in_texts)).indices, minlength=len(in_texts)
            )
        return dict(zip(counter.terms_, in_texts.tolist()))

    def with_counts(self, counts: Mapping[str, int], n: int) -> TermVectorizer:
        """A fitted vectorizer of these terms, each with the number of texts, of n, that have it."""
        fitted = TermVectorizer(self.analyzer, self.max_words, self.field_weights)
        fitted.languages_, fitted.pairs_ = self.languages_, np.zeros(0, np.int64)
        fitted._set_terms(sorted(counts))
        fitted._set_ngrams([])
        in_texts = np.array([counts[term] for term in fitted.terms_], np.int64)
        fitted.idf_ = (np.log((1 + n) / (1 + in_texts)) + 1).astype(np.float32)
        return fitted

    def words_with_terms(self, text: str) -> Iterator[tuple[re.Match[str], str]]:
        """The words of a text that are read, and the term of each; "" for a stop word.

        >>> vectorizer = TermVectorizer("words")
        >>> _ = vectorizer.fit_transform(["bread and salt"])
        >>> [(word.span(), term) for word, term in vectorizer.words_with_terms("Salt, bread")]
        [((0, 4), 'salt'), ((6, 11), 'bread')]
        """
        tokens = tokenize([text])
        if not tokens.n or not tokens.words:
            return
        terms = dict(zip(tokens.words, self._terms_of(tokens.words)[self._detect(tokens)[0]]))
        for word in islice(TOKEN.finditer(text), self.max_words):
            yield word, terms.get(word.group().lower(), "")

    def get_feature_names_out(self) -> Array:
        """(d,) the terms: words, pairs with a blank between them, and n-grams such as "bak*" and "*ake*"."""
        n_terms = max(len(self.terms_), 1)
        first, second = (half.tolist() for half in np.divmod(self.pairs_, n_terms))
        pairs = [f"{self.terms_[one]} {self.terms_[other]}" for one, other in zip(first, second)]
        return np.array([*self.terms_, *pairs, *map(_ngram_name, self.ngrams_)], object)

    def _set_terms(self, terms: list[str]) -> None:
        self.terms_, self._columns = terms, {term: column for column, term in enumerate(terms)}

    def _set_ngrams(self, ngrams: list[str]) -> None:
        self.ngrams_, self._ngram_columns = ngrams, {ngram: column for column, ngram in enumerate(ngrams)}

    def _find_languages(self, tokens: Tokens) -> list[str]:
        if not (self._how.stems or self._how.stops):
            return []
        scores = [language_scores(block) for block in tokens.blocks()]
        return languages.languages_of(np.concatenate(scores)) if scores else []

    def _find_terms(self, tokens: Tokens) -> list[str]:
        by_language = self._terms_of(tokens.words)
        used = np.zeros((len(by_language), len(tokens.words)), bool)
        for block in tokens.blocks():
            used[self._detect(block)[block.rows()], block.ids] = True
        terms = {by_language[language][word] for language, word in np.argwhere(used).tolist()}
        return sorted(filter(None, terms))

    def _find_pairs(self, tokens: Tokens) -> Array:
        if not self._how.pairs:
            return np.zeros(0, np.int64)
        table, found = self._column_table(tokens.words), []
        for block in tokens.blocks():
            rows, keys, _ = self._pairs_of(block, self._columns_of(block, table))
            order = np.lexsort((rows, keys))
            rows, keys = rows[order], keys[order]
            is_new = np.ones(len(keys), bool)  # a pair counts once in each text
            is_new[1:] = (keys[1:] != keys[:-1]) | (rows[1:] != rows[:-1])
            found.append(keys[is_new])
        pairs, in_texts = np.unique(np.concatenate([np.zeros(0, np.int64), *found]), return_counts=True)
        return pairs[in_texts >= MIN_TEXTS]

    def _find_ngrams(self, tokens: Tokens) -> list[str]:
        if not self._how.ngrams:
            return []
        n_texts = np.zeros(len(tokens.words), np.int64)
        for block in tokens.blocks():
            n_texts += np.bincount(block.counts().indices, minlength=len(tokens.words))
        counts: dict[str, int] = {}
        for word, n in zip(tokens.words, n_texts.tolist()):
            for ngram in _ngrams(word):
                counts[ngram] = counts.get(ngram, 0) + n
        return sorted(ngram for ngram, n in counts.items() if n >= MIN_TEXTS)

    def _terms_of(self, words: list[str]) -> list[list[str]]:
        """The terms of words, in each of the languages; "" for a stop word."""
        if not self.languages_:
            return [words]
        found = []
        for language in self.languages_:
            terms = languages.stems(words, language) if self._how.stems else list(words)
            if self._how.stops:
                stops = languages.FUNCTION_WORDS[language]
                terms = ["" if word in stops else term for word, term in zip(words, terms)]
            found.append(terms)
        return found

    def _column_table(self, words: list[str]) -> Array:
        """(n_languages or 1, n_words) int32 the columns of words by language; −1 where there is none."""
        find = self._columns.get
        return np.array([[find(term, -1) for term in terms] for terms in self._terms_of(words)], np.int32)

    def _detect(self, tokens: Tokens) -> Array:
        """(n,) the position of each text's language in `languages_`."""
        if len(self.languages_) < 2:
            return np.zeros(tokens.n, np.int64)
        return languages.detect(language_scores(tokens), self.languages_)

    def _columns_of(self, tokens: Tokens, table: Array) -> Array:
        """(m,) int32 the column of each token; −1 where there is none."""
        if len(table) == 1:
            return table[0, tokens.ids]
        return table[self._detect(tokens)[tokens.rows()], tokens.ids]

    def _pairs_of(self, tokens: Tokens, columns: Array) -> tuple[Array, Array, Array]:
        """Neighbouring terms within texts: their rows, keys as in `pairs_`, and weights."""
        kept = columns >= 0 if self._how.stops else slice(None)  # words beside a stop word are neighbours
        columns, rows, weights = columns[kept], tokens.rows()[kept], self._weights(tokens)[kept]
        is_pair = (rows[1:] == rows[:-1]) & (columns[1:] >= 0) & (columns[:-1] >= 0)
        keys = columns[:-1][is_pair].astype(np.int64) * len(self.terms_) + columns[1:][is_pair]
        return rows[:-1][is_pair], keys, weights[:-1][is_pair]

    def _weights(self, tokens: Tokens) -> Array:
        """(m,) float32 how often each token counts, by its field."""
        weights = np.ones(MAX_FIELDS, np.float32)
        weights[: len(self.field_weights)] = self.field_weights[::-1]  # `fields` counts from the last one
        return weights[tokens.fields]

    def _count_parts(self, tokens: Tokens) -> list[csr_matrix]:
        """(n, …) the weighted counts of words, of pairs and of n-grams."""
        table, ngrams = self._column_table(tokens.words), self._ngram_table(tokens.words)
        counted = [self._count_block(block, table, ngrams) for block in tokens.blocks()]
        return [vstack(parts, format="csr") if len(parts) > 1 else parts[0] for parts in zip(*counted)]

    def _count_block(self, tokens: Tokens, table: Array, ngrams: csr_matrix | None) -> list[csr_matrix]:
        columns, weights = self._columns_of(tokens, table), self._weights(tokens)
        parts = [_count(tokens.rows(), columns, tokens.n, len(self.terms_), weights)]
        if self._how.pairs:
            rows, keys, weights_of_pairs = self._pairs_of(tokens, columns)
            found = np.searchsorted(self.pairs_, keys)
            known = np.append(self.pairs_, -1)[found] == keys
            pairs = np.where(known, found, -1).astype(np.int32)
            parts.append(_count(rows, pairs, tokens.n, len(self.pairs_), weights_of_pairs))
        if ngrams is not None:
            words = np.where(columns >= 0, tokens.ids, -1) if self._how.stops else tokens.ids
            parts.append(
                csr_matrix(_count(tokens.rows(), words, tokens.n, ngrams.shape[0], weights) @ ngrams)
            )
        return parts

    def _ngram_table(self, words: list[str]) -> csr_matrix | None:
        """(n_words, n_ngrams) which n-grams each word has; None where they are no terms."""
        if not self._how.ngrams:
            return None
        columns = self._ngram_columns
        found = [[columns[ngram] for ngram in _ngrams(word) if ngram in columns] for word in words]
        starts = np.concatenate([[0], np.cumsum([len(one) for one in found], dtype=np.int64)])
        indices = np.array([column for one in found for column in one], np.int32)
        ones = np.ones(len(indices), np.float32)
        return csr_matrix((ones, indices, starts), shape=(len(words), len(columns)))

    def _weigh(self, parts: list[csr_matrix]) -> csr_matrix:
        """(n, d) float32 sublinear tf-idf rows of length 1."""
        first = 0
        for part, length in zip(parts, (1.0, PART_WEIGHT, PART_WEIGHT)):
            idf = self.idf_[first : first + part.shape[1]]
            part.data = (1 + np.log(part.data)) * idf[part.indices]
            first += part.shape[1]
            if len(parts) > 1 and part.nnz:
                normalize(part, copy=False)
                part.data *= np.float32(length)
        rows = hstack(parts, format="csr") if len(parts) > 1 else parts[0]
        rows.sort_indices()
        return normalize(rows, copy=False) if rows.nnz else rows

    def plain(self) -> dict[str, Any]:
        """What was learnt, as a model folder holds it."""
        return {
            "class": type(self).__name__,
            "parameters": {
                "analyzer": self.analyzer,
                "max_words": self.max_words,
                "field_weights": list(self.field_weights),
            },
            "languages": self.languages_,
            "terms": np.array(self.terms_, object),
            "pairs": self.pairs_,
            "ngrams": np.array(self.ngrams_, object),
            "idf": self.idf_,
        }

    @classmethod
    def restored(cls, kept: Mapping[str, Any]) -> TermVectorizer:
        """The vectorizer that `plain` describes; a ValueError if it is not as `plain` writes it."""
        given = kept["parameters"]
        stored.require(given["analyzer"] in ANALYZERS, "the analyzer is not one of this version of exmlds")
        if given["max_words"] is not None:
            stored.whole(given["max_words"], "the number of words", 1)
        weights = [stored.number(weight, "the weight of a field") for weight in given["field_weights"]]
        is_right = len(weights) <= MAX_FIELDS and all(1 <= weight < np.inf for weight in weights)
        stored.require(is_right, "the weights of fields are not at least 1")
        model = cls(given["analyzer"], given["max_words"], weights)
        known = isinstance(kept["languages"], list) and set(kept["languages"]) <= set(languages.LANGUAGES)
        stored.require(known, "the languages are not ones of this version of exmlds")
        model.languages_ = kept["languages"]
        model._set_terms(stored.strings(kept["terms"], "the terms", None).tolist())
        model._set_ngrams(stored.strings(kept["ngrams"], "the n-grams", None).tolist())
        n_terms = len(model.terms_)
        pairs = stored.ids(kept["pairs"], "the pairs", None, n_terms**2, dtypes="int64")
        model.pairs_ = stored.ascending(pairs, "the pairs")
        n = n_terms + len(pairs) + len(model.ngrams_)
        model.idf_ = stored.array(kept["idf"], "the idf", "float32", n)
        stored.require(np.isfinite(model.idf_).all(), "the idf is not finite")
        return model


def _ngrams(word: str) -> set[str]:
    padded = f" {word} "
    return {padded[start : start + NGRAM] for start in range(len(padded) - NGRAM + 1)}


def _ngram_name(ngram: str) -> str:
    return f"*{ngram}*".replace("* ", "").replace(" *", "")


def ngram_names(word: str) -> set[str]:
    """The n-grams of a word, as features are called.

    >>> sorted(ngram_names("bread"))
    ['*brea*', '*ead', '*read*', 'bre*']
    """
    return set(map(_ngram_name, _ngrams(word)))


def language_scores(tokens: Tokens) -> Array:
    """(n, n_languages) sums of the weights of each text's words."""
    positions, weights = languages.word_weights(tokens.words)
    return tokens.counts()[:, positions] @ weights


def languages_of_texts(texts: Sequence[str | Sequence[str]]) -> list[str]:
    """The languages of texts, the most frequent first; [] where none is recognized."""
    return languages.languages_of(language_scores(tokenize(texts))) if texts else []


def _count(rows: Array, columns: Array, n: int, d: int, weights: Array | None = None) -> csr_matrix:
    """(n, d) float32 csr of sums of weights, 1 by default; rows ascend, and a column of −1 is left out."""
    data = np.ones(len(columns), np.float32) if weights is None else weights
    known = columns >= 0
    rows, columns, data = rows[known], columns[known], data[known]
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    counts = csr_matrix((data, columns, starts), shape=(n, d))
    counts.sum_duplicates()
    return counts
