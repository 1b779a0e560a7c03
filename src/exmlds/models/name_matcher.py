"""Names of a vocabulary in texts: where they stand, and how often such a match is right."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
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
from .languages import COMPOUNDING

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
# The form in which a name stands in a text: as it is, rewritten, only its heading, which is the part before
# the subdivisions, or only the part of that before a comma.
WHOLE, REWRITTEN, HEADING, FIRST_PART = range(4)
N_FORMS = 4
# How its words agree with those of the text: by their stems, loosely, which is by the beginnings of their
# stems, or as a part of a compound, the last one or another.
BY_STEMS, LOOSELY, AS_LAST_PART, AS_PART = range(4)
N_AGREEMENTS = 4
N_KINDS = N_FORMS * N_AGREEMENTS  # the kind of a match is its form + N_FORMS × how words agree
LOOSE_LETTERS = 5  # of a stem, by which words agree loosely
MIN_PART = 4  # letters of a part of a compound
MOST_PARTS, MOST_LETTERS = 3, 40  # of a compound
PART_STEMS = {AS_LAST_PART: "-{}", AS_PART: "{}-"}  # the stems of parts in the index, such as "-politik"


class NameIndex(NamedTuple):
    """The names of labels, as sequences of stemmed words.

    languages, agreements : (s,) object and int8, the stemmings: languages of Snowball stemmers, "" for none,
        and how words agree; AS_PART is for all parts of compounds
    stems : (t,) object, the stem of each token;  stemmings : (t,) int16, the position of its stemming
    trie : of all names
    label_starts : (m + 1,) int64, where the labels of each node of the trie start
    labels, kinds : (p,) int32 and int8, the labels with a name that ends there, and its kind
    rarity : (m,) float32, −log of the share of training texts that the name stands in
    weights : (f,) float64, of the evidence on a match;  bias : added to them, the logit of its score
    """

    languages: Array
    agreements: Array
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


def parts_of(
    word: str, stem: Callable[[str], str], known: Container[str], most: int = MOST_PARTS
) -> tuple[str, ...]:
    """The stems of the parts of a compound, all of which are known; () for a word that is none.

    Of several ways to split it, the one with the fewest parts is taken, and of these the one with the longest
    first part. A linking element, as in "Arbeit-s-markt", is left to the stemmer: it looks like an ending.

    >>> parts_of("arbeitsmarktpolitik", lambda word: word.removesuffix("s"), {"arbeit", "markt", "politik"})
    ('arbeit', 'markt', 'politik')
    """
    found: tuple[str, ...] = ()
    for end in range(MIN_PART, len(word) - MIN_PART + 1):
        first, last = stem(word[:end]), word[end:]
        if first not in known:
            continue
        others: tuple[str, ...] = ()
        if (own := stem(last)) in known:
            others = (own,)
        elif most > 2:
            others = parts_of(last, stem, known, most - 1)
        if others and (not found or len(others) < len(found)):
            found = first, *others
    return found


class TokenTable(dict[str, int]):
    """The token of each word by a stemming; −1 for a word of no name."""

    def __init__(self, language: str, letters: int | None = None) -> None:
        self.stemmer = Stemmer.Stemmer(language, 0) if language else None
        self.letters = letters
        self.by_stem: dict[str, int] = {}

    def stem(self, word: str) -> str:
        return (word if self.stemmer is None else self.stemmer.stemWord(word))[: self.letters]

    def __missing__(self, word: str) -> int:
        token = self[word] = self.by_stem.get(self.stem(word), -1)
        return token


class PartTable(dict[str, tuple[int, ...]]):
    """The tokens of the parts of each compound that is no word of a name; () for other words.

    words : the table of whole words
    """

    def __init__(self, words: TokenTable) -> None:
        self.words = words
        self.by_stem: dict[str, int] = {}

    def __missing__(self, word: str) -> tuple[int, ...]:
        is_one = len(word) <= MOST_LETTERS and self.words[word] < 0
        parts = parts_of(word, self.words.stem, self.words.by_stem) if is_one else ()
        stems = [PART_STEMS[AS_PART].format(stem) for stem in parts[:-1]]
        stems += [PART_STEMS[AS_LAST_PART].format(stem) for stem in parts[-1:]]
        found = self[word] = tuple(self.by_stem[stem] for stem in stems if stem in self.by_stem)
        return found


class NameMatcher:
    """Finds the names of labels in texts.

    index : what it has learnt, with one name or more;  n_labels : number of all labels
    """

    def __reduce__(self) -> tuple[type[NameMatcher], tuple[NameIndex, int]]:
        return NameMatcher, (self.index, self.n_labels)  # stemmers can't be pickled

    def __init__(self, index: NameIndex, n_labels: int) -> None:
        self.index, self.n_labels = index, n_labels
        self.tokens = list(_tables(index.languages.tolist(), index.agreements.tolist()))
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

    def _find(self, texts: Sequence[Text]) -> tuple[name_match.Occurrences, Array]:
        """All names in texts, by text, and (n,) numbers of words."""
        n_fields = np.array([len(fields_of(text)) for text in texts], np.int64)
        words = [words_of(field) for text in texts for field in fields_of(text)]
        indptr = np.concatenate(([0], np.cumsum(list(map(len, words)), dtype=np.int64)))
        found = []
        for tokens in self.tokens:
            if len(tokens) > MOST_CACHED:
                tokens.clear()
            found.append(self._find_by(tokens, words, indptr))
        in_fields = name_match.Occurrences._make(np.concatenate(part) for part in zip(*found))
        in_texts = name_match.join_fields(in_fields, indptr, n_fields)
        order = np.argsort(in_texts.texts, kind="stable")
        text_ends = np.concatenate(([0], np.cumsum(n_fields)))
        return name_match.Occurrences._make(part[order] for part in in_texts), np.diff(indptr[text_ends])

    def _find_by(
        self, tokens: TokenTable | PartTable, words: list[list[str]], indptr: Array
    ) -> name_match.Occurrences:
        """All names in fields, by one stemming."""
        in_order = chain.from_iterable(words)
        if isinstance(tokens, TokenTable):
            ids = np.fromiter(map(tokens.__getitem__, in_order), np.int32, int(indptr[-1]))
            return name_match.find(self.index.trie, indptr, ids)
        parts = [(at, token) for at, word in enumerate(in_order) for token in tokens[word]]
        positions, of_parts = np.array(parts, np.int64).reshape(-1, 2).T
        return name_match.find_single(self.index.trie, indptr, positions, of_parts)


class MatchedPairs(NamedTuple):
    """Pairs of a text and a label whose name stands in it, by text and label, (m,) each.

    evidence : f arrays, what is known of the matches
    """

    texts: Array
    labels: Array
    evidence: list[Array]

    @classmethod
    def of(cls, occurrences: name_match.Occurrences, text_lengths: Array, index: NameIndex) -> MatchedPairs:
        texts, labels, facts = name_match.collect(occurrences, index.label_starts, index.labels, index.kinds)
        kinds, length, covered, count, start, n_shared, nodes, count_in_first = facts.T
        of_text = np.maximum(text_lengths[texts], 1)
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
            kinds % N_FORMS == REWRITTEN,
            kinds % N_FORMS == HEADING,
            kinds % N_FORMS == FIRST_PART,
            kinds // N_FORMS == LOOSELY,
            rarity * log_length,
            rarity * shared,
            log_length * covered,
            rarity * rarity,
            count_in_first > 0,
            np.log1p(count_in_first),
            kinds // N_FORMS == AS_LAST_PART,
            kinds // N_FORMS == AS_PART,
        ]
        return cls(texts, labels, evidence)

    def logits(self, index: NameIndex) -> Array:
        """(m,) of the scores of the matches."""
        found = np.full(len(self.labels), index.bias)
        for weight, column in zip(index.weights.tolist(), self.evidence):
            found += weight * column
        return found


N_EVIDENCE = 20


def _tables(languages: list[str], agreements: list[int]) -> Iterator[TokenTable | PartTable]:
    """The tables of stemmings, without tokens."""
    by_stems = {language: TokenTable(language) for language in languages}
    for language, agreement in zip(languages, agreements):
        if agreement == BY_STEMS:
            yield by_stems[language]
        elif agreement == LOOSELY:
            yield TokenTable(language, LOOSE_LETTERS)
        else:
            yield PartTable(by_stems[language])


def _n_characters(text: Text) -> int:
    return sum(map(len, fields_of(text)))


def _blocks(texts: Sequence[Text]) -> list[slice]:
    """Blocks of texts with at most CHARACTERS together, or one text, and at most TEXTS."""
    least = CHARACTERS // TEXTS
    return bounded_blocks([max(_n_characters(text), least) for text in texts], CHARACTERS)


class NameForms(NamedTuple):
    """All forms of all names, as sequences of tokens.

    languages : of the names;  tokens : (t,) the language, how words agree, and the stem of each token
    starts, sequences : (f + 1,) int64 and int32, the tokens of each form
    labels, kinds : (f,) int64
    """

    languages: list[str]
    tokens: list[tuple[str, int, str]]
    starts: Array
    sequences: Array
    labels: Array
    kinds: Array


def _index(names: Iterable[LabelName], counts: Array) -> NameIndex:
    """The index of names, which nothing was learnt for yet; counts : (L,) training texts of each label."""
    forms = _with_other_agreements(_forms_by_stems(names))
    trie, nodes = name_match.build(forms.starts, forms.sequences, len(forms.tokens))
    own, m = _forms_of_nodes(forms, nodes, counts), len(trie.ends)
    stemmings = [
        (language, agreement)
        for agreement in (BY_STEMS, LOOSELY, AS_PART)
        for language in forms.languages
        if agreement != AS_PART or language in COMPOUNDING
    ]
    position = {stemming: number for number, stemming in enumerate(stemmings)}
    return NameIndex(
        _objects([language for language, _ in stemmings]),
        np.array([agreement for _, agreement in stemmings], np.int8),
        _objects([stem for _, _, stem in forms.tokens]),
        np.array([position[language, agreement] for language, agreement, _ in forms.tokens], np.int16),
        trie,
        np.searchsorted(nodes[own], np.arange(m + 1)).astype(np.int64),
        forms.labels[own].astype(np.int32),
        forms.kinds[own].astype(np.int8),
        np.zeros(m, np.float32),
        np.zeros(N_EVIDENCE),
        0.0,
    )


def _forms_by_stems(names: Iterable[LabelName]) -> NameForms:
    """All forms of names, by the stems of their words."""
    tables: dict[str, TokenTable] = {}
    numbers: dict[tuple[str, int, str], int] = {}
    flat: list[int] = []
    forms: list[tuple[int, int, int]] = []  # the number of words, the label and the kind of each form
    for label, text, language in names:
        if language not in tables:
            tables[language] = TokenTable(language)
        tokens = tables[language]
        for form, kind in forms_of(text):
            words = words_of(form)
            if not 0 < len(words) <= MOST_WORDS:
                continue
            for word in words:
                if word not in tokens:
                    key = language, BY_STEMS, tokens.stem(word)
                    tokens[word] = numbers.setdefault(key, len(numbers))
                flat.append(tokens[word])
            forms.append((len(words), label, kind))
    lengths, labels, kinds = np.array(forms, np.int64).reshape(-1, 3).T
    starts = np.concatenate(([0], np.cumsum(lengths)))
    return NameForms(list(tables), list(numbers), starts, np.array(flat, np.int32), labels, kinds)


def _with_other_agreements(forms: NameForms) -> NameForms:
    """The forms by stems, all of them loosely, and those of one word as parts of compounds."""
    numbers = {token: number for number, token in enumerate(forms.tokens)}

    def renamed(sequences: Array, agreement: int, stem_of: Callable[[str], str]) -> Array:
        """Sequences with tokens of other stems."""
        new = np.zeros(len(forms.tokens), np.int32)
        for token in np.unique(sequences).tolist():
            language, _, stem = forms.tokens[token]
            new[token] = numbers.setdefault((language, agreement, stem_of(stem)), len(numbers))
        return new[sequences]

    lengths = np.diff(forms.starts)
    may_be_part = np.array([language in COMPOUNDING for language, _, _ in forms.tokens], bool)
    single = np.flatnonzero(lengths == 1)
    single = single[may_be_part[forms.sequences[forms.starts[single]]]]
    words = forms.sequences[forms.starts[single]]
    copies = [forms.sequences, renamed(forms.sequences, LOOSELY, lambda stem: stem[:LOOSE_LETTERS])]
    copies += [renamed(words, AS_PART, pattern.format) for pattern in PART_STEMS.values()]
    own = np.concatenate([np.arange(len(lengths))] * 2 + [single] * len(PART_STEMS))
    agreements = np.repeat(
        [BY_STEMS, LOOSELY, *PART_STEMS], [len(lengths)] * 2 + [len(single)] * len(PART_STEMS)
    )
    return NameForms(
        forms.languages,
        list(numbers),
        np.concatenate(([0], np.cumsum(lengths[own]))),
        np.concatenate(copies),
        forms.labels[own],
        forms.kinds[own] + N_FORMS * agreements,
    )


def _forms_of_nodes(forms: NameForms, nodes: Array, counts: Array) -> Array:
    """The forms that count at each node of the trie, in the order of nodes and labels.

    nodes : (f,) where each form ends;  counts : (L,) training texts of each label
    """
    labels, kinds = forms.labels, forms.kinds
    # Each label once at a node, with its smallest kind.
    order = np.lexsort((kinds, labels, nodes))
    same = (np.diff(nodes[order]) == 0) & (np.diff(labels[order]) == 0)
    order = order[np.concatenate(([True], ~same))] if len(order) else order
    # Of many labels with the same heading, the most frequent ones.
    is_limited = kinds[order] % N_FORMS >= HEADING
    order = order[np.lexsort((-counts[labels[order]], is_limited, nodes[order]))]
    rank = np.arange(len(order)) - np.searchsorted(nodes[order], nodes[order])
    order = order[(rank < MOST_WITH_A_HEADING) | (kinds[order] % N_FORMS < HEADING)]
    return order[np.lexsort((labels[order], nodes[order]))]


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
    stored.ids(index.agreements, "the stemmings of names", s, N_AGREEMENTS, dtypes="int8")
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
