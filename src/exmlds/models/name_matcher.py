"""Names of a vocabulary in texts: where they stand, and how often such a match is right."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import chain, compress, repeat
from typing import Any, NamedTuple, TypeVar

import numpy as np
import Stemmer
from scipy.sparse import csr_matrix, vstack

from ..runtime.parallel import Workers, blocks, bounded_blocks, map_blocks, one_blas_thread
from ..stages import name_match
from ..validation import stored
from ..validation.observed import contains
from .languages import COMPOUNDING

Array = np.ndarray
Text = str | Sequence[str]  # a text, or its fields, such as title and body
Result = TypeVar("Result")

BETWEEN = "\0"  # two texts that are read together
WORD = re.compile(rf"\w+|{BETWEEN}")
# What separates words in texts of ASCII, as blanks; `BETWEEN` stays.
SEPARATORS = {code: " " for code in range(1, 128) if not chr(code).isalnum()}
QUALIFIER = re.compile(r"\([^)]*\)")
HAS_DIGIT = re.compile(r"\d")
SUBDIVISION = "--"  # of a heading, as in "Motion pictures -- Reviews"
MOST_WORDS = 12  # of a name
MOST_WITH_A_HEADING = 100  # labels with the same heading that a match may mean
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


class Words(NamedTuple):
    """The words of n texts, in lower case.

    distinct : each word once;  ids : (m,) int32 the words of all texts, by their positions in `distinct`
    starts : (n + 1,) int64 where the words of each text start
    """

    distinct: list[str]
    ids: Array
    starts: Array

    @classmethod
    def of(cls, texts: Sequence[str]) -> Words:
        """The words of texts, which are read together: reading them one by one takes longer."""
        numbers: defaultdict[str, int] = defaultdict()
        numbers.default_factory = numbers.__len__
        numbers[BETWEEN]  # which has the number 0
        # Texts of ASCII need no normalization and no pattern, which take most of the time.
        is_ascii = list(map(str.isascii, texts))
        plain = _read_together(list(compress(texts, is_ascii)), numbers, in_ascii=True)
        if all(is_ascii):
            ids, starts = plain
        else:
            others = _read_together([text for text in texts if not text.isascii()], numbers, in_ascii=False)
            ids, starts = _interleaved(np.array(is_ascii), plain, others)
        return cls(list(numbers)[1:], ids, starts)


def _read_together(texts: list[str], numbers: dict[str, int], *, in_ascii: bool) -> tuple[Array, Array]:
    """The ids of words, which are one less than their numbers, and (n + 1,) where those of each text start.

    numbers : of words, which gives a new word the next one, and `BETWEEN` 0
    """
    together = f" {BETWEEN} ".join(texts)
    if together.count(BETWEEN) >= max(len(texts), 1):
        together = f" {BETWEEN} ".join(text.replace(BETWEEN, " ") for text in texts)
    if in_ascii:
        found = together.lower().translate(SEPARATORS).split()
    else:
        found = WORD.findall(unicodedata.normalize("NFKC", together).casefold().replace("_", " "))
    ids = np.fromiter(map(numbers.__getitem__, found), np.int32, len(found)) - 1
    ends = np.flatnonzero(ids < 0)
    ids = ids[ids >= 0]
    starts = np.concatenate(([0], ends - np.arange(len(ends)), [len(ids)] * bool(texts)))
    return ids, starts.astype(np.int64)


def _interleaved(
    is_first: Array, first: tuple[Array, Array], second: tuple[Array, Array]
) -> tuple[Array, Array]:
    """The ids and starts of texts, some of which are in the first and the others in the second part."""
    begins, lengths = np.empty(len(is_first), np.int64), np.empty(len(is_first), np.int64)
    for (_, starts), own, offset in ((first, is_first, 0), (second, ~is_first, len(first[0]))):
        begins[own], lengths[own] = starts[:-1] + offset, np.diff(starts)
    starts = np.concatenate(([0], np.cumsum(lengths)))
    at = np.arange(starts[-1]) + np.repeat(begins - starts[:-1], lengths)
    return np.concatenate([first[0], second[0]])[at], starts


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, in their order.

    >>> words_of("Häuser, 19th-century")
    ['häuser', '19th', 'century']
    """
    words = Words.of([text])
    return [words.distinct[word] for word in words.ids]


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
    bare = QUALIFIER.sub(" ", heading).strip() if "(" in heading else heading
    if bare != heading:
        yield bare, kind
    if "," not in bare:
        return
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
    """The token of each word by a stemming; −1 for a word of no name.

    letters : of a stem that count;  loose : the table of the same language by fewer letters, whose tokens
        are found with those of this one, so that a word is stemmed once
    """

    def __init__(self, language: str, letters: int | None = None, loose: TokenTable | None = None) -> None:
        self.stemmer = Stemmer.Stemmer(language, 0) if language else None
        self.letters, self.loose = letters, loose
        self.by_stem: dict[str, int] = {}

    def stems(self, words: list[str]) -> list[str]:
        """The stems of words, which takes less time for many words together."""
        stems = words if self.stemmer is None else self.stemmer.stemWords(words)
        return stems if self.letters is None else [stem[: self.letters] for stem in stems]

    def stem(self, word: str) -> str:
        return self.stems([word])[0]

    def tokens_of(self, words: list[str]) -> list[int]:
        """The tokens of words, which the table keeps."""
        found = list(map(self.get, words))
        if None in found:
            new = [word for word, token in zip(words, found) if token is None]
            self._add(new, self.stems(new))
            return list(map(self.__getitem__, words))
        return found  # type: ignore[return-value]

    def _add(self, words: list[str], stems: list[str]) -> None:
        self.update(zip(words, map(self.by_stem.get, stems, repeat(-1))))
        if self.loose is not None:
            self.loose._add(words, [stem[: self.loose.letters] for stem in stems])

    def __missing__(self, word: str) -> int:
        self._add([word], self.stems([word]))
        return self[word]


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
        cls,
        names: Iterable[LabelName],
        texts: Sequence[Text],
        Y: csr_matrix,
        rng: np.random.Generator,
        n_jobs: int | None = None,
    ) -> tuple[NameMatcher, csr_matrix]:
        """Index the names, and learn from texts and their labels, (n, L), how often matches are right.

        Returns also the (n, L) matches in these texts, as `match` makes them.
        """
        matcher = cls(_index(names, np.bincount(Y.indices, minlength=Y.shape[1])), Y.shape[1])
        order = rng.permutation(len(texts))
        shuffled = [texts[row] for row in order.tolist()]
        n_characters = np.cumsum(_n_characters(shuffled[:TEXTS_TO_LEARN_FROM]))
        n = int((n_characters <= CHARACTERS_TO_LEARN_FROM).sum())
        found = list(_map_texts(matcher._find, shuffled[:n], n_jobs))
        matcher.index = _learnt(matcher.index, found, Y[order[:n]])
        with Workers(n_jobs) as workers:
            scored = workers.map(lambda own: matcher._score(found[own.start]), blocks(len(found), 1))
        scored += _map_texts(matcher._match, shuffled[n:], n_jobs)
        matches = vstack([matcher._match([]), *scored], format="csr")
        return matcher, csr_matrix(matches[np.argsort(order)])

    def match(self, texts: Sequence[Text], n_jobs: int | None = None) -> csr_matrix:
        """(n, L) csr, the scores of all labels whose names stand in the texts.

        texts : each is a string, or has a string for each of its fields; no name goes on in the next field
        """
        if len(texts) <= 1:
            return self._match(texts)
        found = list(_map_texts(self._match, texts, n_jobs))
        return vstack(found, format="csr") if len(found) > 1 else found[0]

    def _match(self, texts: Sequence[Text]) -> csr_matrix:
        return self._score(self._find(texts))

    def _score(self, names: NamesInTexts) -> csr_matrix:
        index, n = self.index, len(names.lengths)
        texts, labels, facts = names.pairs(index, self.n_labels)
        given = facts, texts, names.lengths, index.rarity
        scores = name_match.match_scores(*given, index.weights, index.bias)
        return csr_matrix((scores, labels, np.searchsorted(texts, np.arange(n + 1))), (n, self.n_labels))

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

    def _find(self, texts: Sequence[Text]) -> NamesInTexts:
        """All names in texts."""
        fields = [fields_of(text) for text in texts]
        words = Words.of(list(chain.from_iterable(fields)))
        in_fields = [self._find_by(tokens, words) for tokens in self.tokens]
        joined = name_match.Occurrences._make(np.concatenate(part) for part in zip(*in_fields))
        n_fields = np.array(list(map(len, fields)), np.int64)
        if len(words.starts) > len(texts) + 1:
            joined = name_match.join_fields(joined, words.starts, n_fields)
        order = np.argsort(joined.texts, kind="stable")
        ends = words.starts[np.concatenate(([0], np.cumsum(n_fields)))]
        return NamesInTexts(name_match.Occurrences._make(part[order] for part in joined), np.diff(ends))

    def _find_by(self, tokens: TokenTable | PartTable, words: Words) -> name_match.Occurrences:
        """All names in fields, by one stemming."""
        if len(tokens) > MOST_CACHED:
            tokens.clear()
        if isinstance(tokens, TokenTable):
            own = np.array(tokens.tokens_of(words.distinct), np.int32)
            return name_match.find(self.index.trie, words.starts, own[words.ids])
        of_words = list(map(tokens.__getitem__, words.distinct))
        parts = [(at, token) for at, word in enumerate(words.ids.tolist()) for token in of_words[word]]
        positions, of_parts = np.array(parts, np.int64).reshape(-1, 2).T
        return name_match.find_single(self.index.trie, words.starts, positions, of_parts)


class NamesInTexts(NamedTuple):
    """All names in texts, by text, and (n,) numbers of words of the texts."""

    occurrences: name_match.Occurrences
    lengths: Array

    def pairs(self, index: NameIndex, n_labels: int) -> tuple[Array, Array, Array]:
        """Pairs of a text and a label whose name stands in it, and the facts, as `name_match.collect` has."""
        own = index.label_starts, index.labels, index.kinds
        return name_match.collect(self.occurrences, *own, n_labels)


def _tables(languages: list[str], agreements: list[int]) -> Iterator[TokenTable | PartTable]:
    """The tables of stemmings, without tokens."""
    loose = {language: TokenTable(language, LOOSE_LETTERS) for language in languages}
    by_stems = {language: TokenTable(language, loose=loose[language]) for language in languages}
    for language, agreement in zip(languages, agreements):
        if agreement == BY_STEMS:
            yield by_stems[language]
        elif agreement == LOOSELY:
            yield loose[language]
        else:
            yield PartTable(by_stems[language])


def _n_characters(texts: Iterable[Text]) -> list[int]:
    return [len(text) if isinstance(text, str) else sum(map(len, text)) for text in texts]


def _map_texts(
    work: Callable[[Sequence[Text]], Result], texts: Sequence[Text], n_jobs: int | None
) -> Iterator[Result]:
    """Results of blocks of texts with at most CHARACTERS together, or one text, and at most TEXTS."""
    least = CHARACTERS // TEXTS
    parts = bounded_blocks(np.maximum(_n_characters(texts), least).tolist(), CHARACTERS)
    return map_blocks(
        lambda block: work(texts[block]), parts, n_jobs=n_jobs, stage="names in texts", total=len(texts)
    )


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
        np.zeros(name_match.N_EVIDENCE),
        0.0,
    )


def _forms_by_stems(names: Iterable[LabelName]) -> NameForms:
    """All forms of names, by the stems of their words."""
    by_language: defaultdict[str, tuple[list[str], list[int], list[int]]] = defaultdict(lambda: ([], [], []))
    for label, text, language in names:
        forms, kinds, labels = by_language[language]
        for form, kind in forms_of(text):
            forms.append(form)
            kinds.append(kind)
            labels.append(label)
    found: list[tuple[Array, ...]] = []
    keys: list[tuple[str, int, str]] = []
    for language, (forms, kinds, labels) in by_language.items():
        words, table, first = Words.of(forms), TokenTable(language), len(keys)
        stems = table.stems(words.distinct)
        numbers = {stem: first + number for number, stem in enumerate(dict.fromkeys(stems))}
        keys += [(language, BY_STEMS, stem) for stem in numbers]
        tokens = np.array([numbers[stem] for stem in stems], np.int32)[words.ids]
        lengths = np.diff(words.starts)
        is_kept = (lengths > 0) & (lengths <= MOST_WORDS)
        kept = lengths[is_kept], tokens[np.repeat(is_kept, lengths)]
        found.append((*kept, np.array(labels)[is_kept], np.array(kinds)[is_kept]))
    empty = (np.zeros(0, np.int64), np.zeros(0, np.int32), *[np.zeros(0, np.int64)] * 2)
    lengths, tokens, of_labels, of_kinds = map(np.concatenate, zip(empty, *found))
    starts = np.concatenate(([0], np.cumsum(lengths)))
    return NameForms(list(by_language), keys, starts, tokens, of_labels, of_kinds)


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
    # Each label once at a node, with its smallest kind. Sorting one array of keys takes less time than three.
    keys = (nodes * np.int64(len(counts)) + forms.labels) * N_KINDS + forms.kinds
    order = np.argsort(keys)
    is_kept = np.ones(len(order), bool)
    is_kept[1:] = np.diff(keys[order] // N_KINDS) > 0
    order = order[is_kept]
    # Of many labels with the same heading, the most frequent ones, beside those with other names.
    at, is_limited = nodes[order], forms.kinds[order] % N_FORMS >= HEADING
    n_others = np.bincount(at[~is_limited], minlength=int(nodes.max(initial=0)) + 1)
    limited = np.flatnonzero(is_limited)
    limited = limited[np.lexsort((-counts[forms.labels[order[limited]]], at[limited]))]
    rank = n_others[at[limited]] + np.arange(len(limited)) - np.searchsorted(at[limited], at[limited])
    is_kept = np.ones(len(order), bool)
    is_kept[limited[rank >= MOST_WITH_A_HEADING]] = False
    return order[is_kept]


def _learnt(index: NameIndex, found: Sequence[NamesInTexts], Y: csr_matrix) -> NameIndex:
    """The index with the rarity of names, and with what matches say about labels.

    found : names in blocks of texts;  Y : (n, L) the labels of all these texts
    """
    m = len(index.rarity)
    counts = np.zeros(m, np.int64)
    for names in found:
        in_texts = np.unique(names.occurrences.texts * m + names.occurrences.nodes)
        counts += np.bincount(in_texts % m, minlength=m)
    index = index._replace(rarity=-np.log((counts + 0.5) / (Y.shape[0] + 1)).astype(np.float32))
    evidence, hits, first, room = [], [], 0, PAIRS_TO_LEARN_FROM
    for names in found:
        ends = np.cumsum(np.diff(index.label_starts)[names.occurrences.nodes])
        last = int(np.searchsorted(ends, room))
        few = name_match.Occurrences._make(part[:last] for part in names.occurrences)
        texts, labels, facts = names._replace(occurrences=few).pairs(index, Y.shape[1])
        hits.append(contains(csr_matrix(Y[first + texts]), labels[:, None])[:, 0])
        evidence.append(name_match.evidence(facts, texts, names.lengths, index.rarity))
        first += len(names.lengths)
        if last < len(ends):
            break
        room -= int(ends.max(initial=0))
    if not evidence:
        return index
    weights, bias = _learn(np.concatenate(evidence), np.concatenate(hits))
    return index._replace(weights=weights, bias=bias)


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
    weights = stored.array(index.weights, "weights of matches", "float64", name_match.N_EVIDENCE)
    stored.number(index.bias, "the bias of matches")
    finite = np.isfinite(rarity).all() and np.isfinite(weights).all() and np.isfinite(index.bias)
    stored.require(finite, "weights of matches of names are not finite")
