"""Names of a vocabulary in texts: where they stand, and how often such a match is right."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import Stemmer
from scipy.sparse import csr_matrix, vstack
from scipy.special import expit

from ..runtime.parallel import bounded_blocks, map_blocks, one_blas_thread
from ..stages import name_match
from ..validation import stored
from ..validation.observed import contains

Array = np.ndarray
Text = str | Sequence[str]  # a text, or its fields, such as title and body

WORD = re.compile(r"[^\W_]+")
QUALIFIER = re.compile(r"\([^)]*\)")
HAS_DIGIT = re.compile(r"\d")
SUBDIVISION = "--"  # of a heading, as in "Motion pictures -- Reviews"
MOST_WORDS = 12  # of a name
MOST_WITH_A_HEADING = 30  # labels with the same heading that a match may mean
TEXTS, CHARACTERS = 4_096, 2_000_000  # of the texts whose names are scored at a time, at most
TEXTS_TO_LEARN_FROM, CHARACTERS_TO_LEARN_FROM = 20_000, 20_000_000
MOST_CACHED = 500_000  # words whose tokens are kept
PAIRS_TO_LEARN_FROM = 80_000  # of a text and a label whose name stands in it
# How a name stands in a text: as it is, rewritten, only its heading, which is the part before the
# subdivisions, or only the part of that before a comma; LOOSE is added where only word beginnings agree.
WHOLE, REWRITTEN, HEADING, FIRST_PART, LOOSE = range(5)
N_KINDS = 2 * LOOSE
LOOSE_LETTERS = 5  # of a stem, by which words agree loosely


class NameIndex(NamedTuple):
    """The names of labels, as sequences of stemmed words.

    languages, is_loose : (s,) object and bool, the stemmings: languages of Snowball stemmers, "" for none,
        and whether only the beginnings of stems count
    stems : (t,) object, the stem of each token;  stemmings : (t,) int16, the position of its stemming
    trie : of all names
    label_starts : (m + 1,) int64, where the labels of each node of the trie start
    labels, kinds : (p,) int32 and int8, the labels with a name that ends there, and its kind
    rarity : (m,) float32, −log of the share of training texts that the name stands in
    weights : (f,) float64, of the evidence on a match;  bias : added to them, the logit of its score
    """

    languages: Array
    is_loose: Array
    stems: Array
    stemmings: Array
    trie: name_match.NameTrie
    label_starts: Array
    labels: Array
    kinds: Array
    rarity: Array
    weights: Array
    bias: float


class LabelName(NamedTuple):
    """A name of a label, a column, and the language of its stems, such as "english"; "" for none."""

    label: int
    text: str
    language: str


def words_of(text: str) -> list[str]:
    """The words of a text in lower case.

    >>> words_of("Häuser, 19th-century")
    ['häuser', '19th', 'century']
    """
    return WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def fields_of(text: Text) -> Sequence[str]:
    """The fields of a text; one where it has none."""
    return (text,) if isinstance(text, str) else text


def forms_of(name: str) -> Iterator[tuple[str, int]]:
    """The forms in which a name may stand in a text, and their kinds.

    Dates and qualifiers in parentheses may be left out, and an inverted name may be in natural order.

    >>> list(forms_of("Art, Roman (Italy) -- History"))  # doctest: +NORMALIZE_WHITESPACE
    [('Art, Roman (Italy) -- History', 0), ('Art, Roman (Italy)', 2), ('Art, Roman', 2),
     ('Roman Art', 2), ('Art', 3)]
    """
    yield name, WHOLE
    heading = name.split(SUBDIVISION)[0].strip()
    kind = REWRITTEN if heading == name else HEADING
    if heading != name:
        yield heading, HEADING
    bare = QUALIFIER.sub(" ", heading).strip()
    if bare != heading:
        yield bare, kind
    parts = [part.strip() for part in bare.split(",")]
    plain = [part for part in parts if part and not HAS_DIGIT.search(part)]
    if len(plain) < len(parts):
        yield ", ".join(plain), kind
    if len(parts) > 1 and len(plain) == 2:
        yield f"{plain[1]} {plain[0]}", kind
    if len(plain) > 1:
        yield plain[0], FIRST_PART


class TokenTable(dict[str, int]):
    """The token of each word by a stemming; −1 for a word of no name."""

    def __init__(self, language: str, is_loose: bool) -> None:
        self.stemmer = Stemmer.Stemmer(language, 0) if language else None
        self.letters = LOOSE_LETTERS if is_loose else None
        self.by_stem: dict[str, int] = {}

    def stem(self, word: str) -> str:
        return (word if self.stemmer is None else self.stemmer.stemWord(word))[: self.letters]

    def __missing__(self, word: str) -> int:
        token = self[word] = self.by_stem.get(self.stem(word), -1)
        return token


class NameMatcher:
    """Finds the names of labels in texts.

    index : what it has learnt, with one name or more;  n_labels : number of all labels
    """

    def __reduce__(self) -> tuple[type[NameMatcher], tuple[NameIndex, int]]:
        return NameMatcher, (self.index, self.n_labels)  # stemmers can't be pickled

    def __init__(self, index: NameIndex, n_labels: int) -> None:
        self.index, self.n_labels = index, n_labels
        self.tokens = [TokenTable(*stemming) for stemming in zip(index.languages.tolist(), index.is_loose)]
        for token, (stem, stemming) in enumerate(zip(index.stems.tolist(), index.stemmings.tolist())):
            self.tokens[stemming].by_stem[stem] = token

    @classmethod
    def fit(
        cls, names: Iterable[LabelName], texts: Sequence[Text], Y: csr_matrix, rng: np.random.Generator
    ) -> NameMatcher:
        """Index the names, and learn from texts and their labels, (n, L), how often matches are right."""
        matcher = cls(_index(names, np.bincount(Y.indices, minlength=Y.shape[1])), Y.shape[1])
        rows = rng.permutation(len(texts))[:TEXTS_TO_LEARN_FROM]
        rows = rows[np.cumsum([_n_characters(texts[row]) for row in rows]) <= CHARACTERS_TO_LEARN_FROM]
        occurrences, lengths = matcher._find([texts[row] for row in rows])
        index = matcher.index._replace(rarity=_rarity(occurrences, len(rows), matcher.index))
        # The pairs of the first texts.
        n_pairs = np.cumsum(np.diff(index.label_starts)[occurrences.nodes])
        last = np.searchsorted(n_pairs, PAIRS_TO_LEARN_FROM)
        pairs = MatchedPairs.of(
            name_match.Occurrences._make(part[:last] for part in occurrences), lengths, index
        )
        hits = contains(csr_matrix(Y[rows[pairs.texts]]), pairs.labels[:, None])[:, 0]
        weights, bias = _learn(np.stack(pairs.evidence, axis=1), hits)
        matcher.index = index._replace(weights=weights, bias=bias)
        return matcher

    def match(self, texts: Sequence[Text], n_jobs: int | None = None) -> csr_matrix:
        """(n, L) csr, the scores of all labels whose names stand in the texts.

        texts : each is a string, or has a string for each of its fields; no name goes on in the next field
        """
        found = list(
            map_blocks(
                lambda block: self._match(texts[block]),
                _blocks(texts),
                n_jobs=n_jobs,
                stage="names in texts",
                total=len(texts),
            )
        )
        return vstack(found, format="csr") if len(found) > 1 else found[0] if found else self._match([])

    def _match(self, texts: Sequence[Text]) -> csr_matrix:
        pairs = MatchedPairs.of(*self._find(texts), self.index)
        scores = expit(pairs.logits(self.index))
        scores = np.maximum(scores, np.finfo(np.float32).tiny).astype(np.float32)
        indptr = np.searchsorted(pairs.texts, np.arange(len(texts) + 1))
        return csr_matrix((scores, pairs.labels, indptr), (len(texts), self.n_labels))

    def matched_words(self, text: Text, label: int) -> tuple[str, ...]:
        """The words of a text that are a name of the label, the longest first, each once."""
        occurrences, _ = self._find([text])
        words, found = [word for field in fields_of(text) for word in words_of(field)], {}
        starts, lengths, nodes = (part.tolist() for part in occurrences[1:4])
        for start, length, node in zip(starts, lengths, nodes):
            own = slice(*self.index.label_starts[node : node + 2])
            if label in self.index.labels[own]:
                found[" ".join(words[start : start + length])] = length
        return tuple(sorted(found, key=lambda name: -found[name]))

    def _find(self, texts: Sequence[Text]) -> tuple[name_match.Occurrences, TextLengths]:
        """All names in texts, by text, and the lengths of the texts."""
        n_fields = np.array([len(fields_of(text)) for text in texts], np.int64)
        words = [words_of(field) for text in texts for field in fields_of(text)]
        indptr = np.concatenate(([0], np.cumsum(list(map(len, words)), dtype=np.int64)))
        found = []
        for tokens in self.tokens:
            if len(tokens) > MOST_CACHED:
                tokens.clear()
            ids = np.fromiter(map(tokens.__getitem__, chain.from_iterable(words)), np.int32, int(indptr[-1]))
            found.append(name_match.find(self.index.trie, indptr, ids))
        parts = name_match.Occurrences._make(np.concatenate(part) for part in zip(*found))
        parts = name_match.join_fields(parts, indptr, n_fields)
        order = np.argsort(parts.texts, kind="stable")
        lengths = TextLengths.of(np.diff(indptr), n_fields)
        return name_match.Occurrences._make(part[order] for part in parts), lengths


class TextLengths(NamedTuple):
    """Numbers of words, (n,) each: of whole texts, and of the first of several fields, at least 1."""

    whole: Array
    first: Array

    @classmethod
    def of(cls, field_lengths: Array, n_fields: Array) -> TextLengths:
        """From the numbers of words of all fields, text after text."""
        starts = np.cumsum(n_fields) - n_fields
        ends = np.concatenate(([0], np.cumsum(field_lengths)))
        whole = ends[starts + n_fields] - ends[starts]
        return cls(np.maximum(whole, 1), np.maximum(field_lengths[starts], 1))


class MatchedPairs(NamedTuple):
    """Pairs of a text and a label whose name stands in it, by text and label, (m,) each.

    evidence : f arrays, what is known of the matches
    """

    texts: Array
    labels: Array
    evidence: list[Array]

    @classmethod
    def of(
        cls, occurrences: name_match.Occurrences, text_lengths: TextLengths, index: NameIndex
    ) -> MatchedPairs:
        texts, labels, facts = name_match.collect(occurrences, index.label_starts, index.labels, index.kinds)
        kinds, length, covered, count, start, n_shared, nodes, count_in_first, length_in_first = facts.T
        of_text = text_lengths.whole[texts]
        log_length, rarity, shared = np.log(length), index.rarity[nodes], np.log(n_shared)
        evidence = [
            log_length,
            covered,
            np.log(count),
            length / of_text,
            start / of_text,
            np.log(of_text),
            rarity,
            shared,
            kinds % LOOSE == REWRITTEN,
            kinds % LOOSE == HEADING,
            kinds % LOOSE == FIRST_PART,
            kinds >= LOOSE,
            rarity * log_length,
            rarity * shared,
            log_length * covered,
            rarity * rarity,
            count_in_first > 0,
            np.log1p(count_in_first),
            length_in_first / text_lengths.first[texts],
            (count_in_first > 0) * rarity,
        ]
        return cls(texts, labels, evidence)

    def logits(self, index: NameIndex) -> Array:
        """(m,) of the scores of the matches."""
        found = np.full(len(self.labels), index.bias)
        for weight, column in zip(index.weights.tolist(), self.evidence):
            found += weight * column
        return found


N_EVIDENCE = 20


def _n_characters(text: Text) -> int:
    return sum(map(len, fields_of(text)))


def _blocks(texts: Sequence[Text]) -> list[slice]:
    """Blocks of texts with at most CHARACTERS together, or one text, and at most TEXTS."""
    least = CHARACTERS // TEXTS
    return bounded_blocks([max(_n_characters(text), least) for text in texts], CHARACTERS)


def _index(names: Iterable[LabelName], counts: Array) -> NameIndex:
    """The index of names, which nothing was learnt for yet; counts : (L,) training texts of each label."""
    tables: dict[str, TokenTable] = {}
    numbers: dict[tuple[str, str], int] = {}  # of a language and a stem
    flat: list[int] = []
    forms: list[tuple[int, int, int]] = []  # the number of words, the label and the kind of each form
    for label, text, language in names:
        if language not in tables:
            tables[language] = TokenTable(language, is_loose=False)
        tokens = tables[language]
        for form, kind in forms_of(text):
            words = words_of(form)
            if not 0 < len(words) <= MOST_WORDS:
                continue
            for word in words:
                if word not in tokens:
                    tokens[word] = numbers.setdefault((language, tokens.stem(word)), len(numbers))
                flat.append(tokens[word])
            forms.append((len(words), label, kind))
    languages = list(tables)
    # Loose stemmings have the same names, with the first letters of the stems.
    loose: dict[tuple[str, str], int] = {}
    loosely = [loose.setdefault((language, stem[:LOOSE_LETTERS]), len(loose)) for language, stem in numbers]
    sequences = np.array(flat, np.int32)
    sequences = np.concatenate([sequences, np.array(loosely, np.int32)[sequences] + len(numbers)])
    lengths, labels, kinds = np.array(forms, np.int64).reshape(-1, 3).T
    starts = np.concatenate(([0], np.cumsum(np.tile(lengths, 2))))
    trie, nodes = name_match.build(starts, sequences, len(numbers) + len(loose))
    labels, kinds = np.tile(labels, 2), np.concatenate([kinds, kinds + LOOSE])
    # Each label once at a node, with its smallest kind.
    order = np.lexsort((kinds, labels, nodes))
    same = (np.diff(nodes[order]) == 0) & (np.diff(labels[order]) == 0)
    order = order[np.concatenate(([True], ~same))] if len(order) else order
    # Of many labels with the same heading, the most frequent ones.
    is_limited = kinds[order] % LOOSE >= HEADING
    order = order[np.lexsort((-counts[labels[order]], is_limited, nodes[order]))]
    m = len(trie.ends)
    rank = np.arange(len(order)) - np.searchsorted(nodes[order], np.arange(m))[nodes[order]]
    order = order[(rank < MOST_WITH_A_HEADING) | (kinds[order] % LOOSE < HEADING)]
    order = order[np.lexsort((labels[order], nodes[order]))]
    stems = [*numbers, *loose]
    position = {language: number for number, language in enumerate(languages)}
    return NameIndex(
        _objects(languages * 2),
        np.repeat([False, True], len(languages)),
        _objects([stem for _, stem in stems]),
        np.array(
            [
                position[language] + len(languages) * (at >= len(numbers))
                for at, (language, _) in enumerate(stems)
            ],
            np.int16,
        ),
        trie,
        np.searchsorted(nodes[order], np.arange(m + 1)).astype(np.int64),
        labels[order].astype(np.int32),
        kinds[order].astype(np.int8),
        np.zeros(m, np.float32),
        np.zeros(N_EVIDENCE),
        0.0,
    )


def _rarity(occurrences: name_match.Occurrences, n: int, index: NameIndex) -> Array:
    """(m,) −log of the share of texts that each name stands in."""
    m = len(index.rarity)
    pairs = np.unique(occurrences.texts * m + occurrences.nodes)
    counts = np.bincount(pairs % m, minlength=m)
    return -np.log((counts + 0.5) / (n + 1)).astype(np.float32)


def _learn(evidence: Array, hits: Array) -> tuple[Array, float]:
    """The weights and the bias of a logistic regression; where hits or misses are missing, their share."""
    if not hits.any() or hits.all():
        share = (hits.sum() + 0.5) / (len(hits) + 1)
        return np.zeros(evidence.shape[1]), float(np.log(share / (1 - share)))
    with one_blas_thread():
        return name_match.logistic_regression(evidence, hits)


def _objects(values: list[str]) -> Array:
    found = np.empty(len(values), object)
    found[:] = values
    return found


def check(index: Any, n_labels: int) -> None:
    """Check an index that comes from a file."""
    stored.record(index, "the names", NameIndex)
    m = name_match.check(index.trie)
    s = len(stored.strings(index.languages, "the languages of names", None))
    known = set(index.languages.tolist()) <= {"", *Stemmer.algorithms()}
    stored.require(known, "the names are in languages without a stemmer")
    stored.array(index.is_loose, "the stemmings of names", "bool", s)
    t = len(stored.strings(index.stems, "the stems of names", None))
    stored.require(t == len(index.trie.first_nodes), "the names have other words than their trie")
    stored.ids(index.stemmings, "the stemmings of names", t, s, dtypes="int16")
    p = len(stored.ids(index.labels, "labels of names", None, n_labels, dtypes="int32"))
    stored.offsets(index.label_starts, "labels of names", m, p)
    stored.ids(index.kinds, "kinds of names", p, N_KINDS, dtypes="int8")
    stored.require(s, "the names have no words")
    rarity = stored.array(index.rarity, "the rarity of names", stored.FLOATS, m)
    weights = stored.array(index.weights, "weights of matches", "float64", N_EVIDENCE)
    stored.number(index.bias, "the bias of matches")
    finite = np.isfinite(rarity).all() and np.isfinite(weights).all() and np.isfinite(index.bias)
    stored.require(finite, "weights of matches of names are not finite")
