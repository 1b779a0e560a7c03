"""Names of labels in texts: a trie of all names, and every occurrence of one of them.

Texts and names are sequences of tokens, the numbers of stemmed words. A text is read once: from each of its
tokens on, the trie is followed as far as it goes, so that names within names are found too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import expit, logit

from ..kernels import DEFAULT, Engine
from ..validation import stored

Array = np.ndarray

MOST_LISTED = 20  # labels that only their names add to a short list
MIN_LISTED_SCORE = 0.01  # of these; four matches in five are right less often, and make a fit take longer
PRIOR_HITS = 1.0  # pseudo-hits, expected and found, of each label
MIN_SCORE = 1e-4  # of a match, and the distance of the largest from 1
MIN_SPREAD = 1e-6  # standard deviation of evidence that something can be learnt from
MOST_UNTRAINED = 0.95  # probability of a label without training rows: a name alone is never certain
MIN_SUPPORT = 0.01  # is added to supports before the logarithm
SHIFT_SHARE = 0.5  # of a negative shift of the logits of untrained labels
FIRST_MARGIN = 1.25  # times as probable as others an untrained label must be to take the first rank
TIE_STEP = np.float32(2**-14)  # relative difference of the probability of one that gives way to another


class NameTrie(NamedTuple):
    """A trie of sequences of tokens, without its root.

    first_nodes : (t,) int32, the node that each token leads to from the root, −1 for none
    child_starts : (m + 1,) int64, where the children of each node start
    child_tokens, child_nodes : (c,) int32, the children, by ascending tokens, which each node has
    ends : (m,) uint8, 1 where a sequence ends
    most_nested : the most sequences that end on one path from the root
    """

    first_nodes: Array
    child_starts: Array
    child_tokens: Array
    child_nodes: Array
    ends: Array
    most_nested: int


class Occurrences(NamedTuple):
    """Names in texts, (h,) each, by text, position and length.

    texts : int64, the text;  starts : int64, the position of the first token in it
    lengths : int32, number of tokens;  nodes : int32, the node of the trie where the name ends
    covered : bool, whether it is a part of a longer name there
    in_first : bool, whether it stands in the first of several fields of the text, such as the title
    """

    texts: Array
    starts: Array
    lengths: Array
    nodes: Array
    covered: Array
    in_first: Array


def build(starts: Array, tokens: Array, n_tokens: int) -> tuple[NameTrie, Array]:
    """The trie of s sequences, and (s,) int32 the node where each ends; −1 for an empty one.

    starts : (s + 1,) int64, where each sequence starts;  tokens : int32, from 0 to n_tokens − 1
    """
    lengths = np.diff(starts)
    at = np.full(len(lengths), -1, np.int64)  # the node that each sequence has come to
    parents, child_tokens, nested = [], [], np.zeros(0, np.int64)
    first_nodes, n_nodes, ends = np.full(n_tokens, -1, np.int32), 0, np.zeros(0, bool)
    for depth in range(int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > depth)
        own = tokens[starts[longer] + depth].astype(np.int64)
        keys, inverse = np.unique((at[longer] + 1) * n_tokens + own, return_inverse=True)
        before, token = keys // n_tokens - 1, keys % n_tokens
        numbers = n_nodes + np.arange(len(keys))
        if depth == 0:
            first_nodes[token] = numbers
        else:
            parents.append(before)
            child_tokens.append(token)
        at[longer] = numbers[inverse]
        is_end = np.zeros(len(keys), bool)
        is_end[inverse[lengths[longer] == depth + 1]] = True
        nested = np.concatenate([nested, is_end + (nested[before] if depth else 0)])
        ends = np.concatenate([ends, is_end])
        n_nodes += len(keys)
    parent = np.concatenate([*parents, np.zeros(0, np.int64)])
    n_children = len(parent)
    trie = NameTrie(
        first_nodes,
        np.searchsorted(parent, np.arange(n_nodes + 1)).astype(np.int64),
        np.concatenate([*child_tokens, np.zeros(0, np.int64)]).astype(np.int32),
        np.arange(n_nodes - n_children, n_nodes, dtype=np.int32),
        ends.astype(np.uint8),
        int(nested.max(initial=0)),
    )
    return trie, at.astype(np.int32)


def check(trie: Any) -> int:
    """Check a trie that comes from a file, and return the number of its nodes."""
    stored.record(trie, "the names", NameTrie)
    n = len(stored.array(trie.ends, "the ends of names", "uint8", None))
    stored.ids(trie.first_nodes, "the first words of names", None, n, low=-1, dtypes="int32")
    n_children = len(stored.ids(trie.child_nodes, "the words of names", None, n, dtypes="int32"))
    stored.ids(trie.child_tokens, "the words of names", n_children, len(trie.first_nodes), dtypes="int32")
    stored.offsets(trie.child_starts, "the words of names", n, n_children)
    stored.require(stored.whole(trie.most_nested, "nested names", 0) <= n, "too many names are nested")
    parents = np.repeat(np.arange(n), np.diff(trie.child_starts))
    stored.require((parents < trie.child_nodes).all(), "the words of names form a cycle")
    return n


def find(trie: NameTrie, indptr: Array, tokens: Array, *, engine: Engine = DEFAULT) -> Occurrences:
    """All occurrences of names in texts of one field.

    indptr, tokens : (n + 1,) int64 and int32, the tokens of each text; −1 is a word of no name
    """
    room = len(tokens) * trie.most_nested
    starts, covered = np.empty(room, np.int64), np.empty(room, np.uint8)
    lengths, nodes = np.empty(room, np.int32), np.empty(room, np.int32)
    n = engine.find_names(*trie[:5], indptr, tokens, starts, lengths, nodes, covered)
    texts = np.searchsorted(indptr, starts[:n], "right") - 1
    return Occurrences(
        texts,
        starts[:n] - indptr[texts],
        lengths[:n].copy(),
        nodes[:n].copy(),
        covered[:n].astype(bool),
        np.zeros(n, bool),
    )


def find_single(trie: NameTrie, indptr: Array, positions: Array, tokens: Array) -> Occurrences:
    """The occurrences of names of one token, in texts of one field.

    indptr : (n + 1,) int64, where each text starts
    positions, tokens : (h,) where tokens stand, ascending, several perhaps at one place; each is a name
    """
    nodes = trie.first_nodes[tokens]
    positions, nodes = positions[nodes >= 0], nodes[nodes >= 0]
    texts = np.searchsorted(indptr, positions, "right") - 1
    return Occurrences(
        texts,
        positions - indptr[texts],
        np.ones(len(texts), np.int32),
        nodes,
        np.zeros(len(texts), bool),
        np.zeros(len(texts), bool),
    )


def join_fields(occurrences: Occurrences, indptr: Array, n_fields: Array) -> Occurrences:
    """The occurrences in fields as those in the texts of which they are fields, one after the other.

    occurrences : of `find`, with fields for texts;  indptr : (Σ n_fields + 1,) where the tokens of each start
    n_fields : (n,) int64, number of fields of each text
    """
    first_fields = np.cumsum(n_fields) - n_fields
    fields, text_of_field = occurrences.texts, np.repeat(np.arange(len(n_fields)), n_fields)
    texts = text_of_field[fields]
    return occurrences._replace(
        texts=texts,
        starts=occurrences.starts + indptr[fields] - indptr[first_fields[texts]],
        in_first=(fields == first_fields[texts]) & (n_fields[texts] > 1),
    )


def collect(
    occurrences: Occurrences,
    label_starts: Array,
    labels: Array,
    kinds: Array,
    n_labels: int,
    *,
    engine: Engine = DEFAULT,
) -> tuple[Array, Array, Array]:
    """Pairs of a text and a label whose name occurs in it: (m,) texts, (m,) labels, and (m, 8) facts.

    The facts are those of the kernel `collect_matches`.

    label_starts, labels, kinds : (nodes + 1,), (p,) and (p,), the labels with a name that ends at each node
        of the trie, and the kinds of these names
    n_labels : L
    """
    nodes = occurrences.nodes
    room = int((label_starts[nodes + 1] - label_starts[nodes]).sum())
    texts, own = np.empty(room, np.int64), np.empty(room, np.int64)
    facts, slots = np.empty((room, 8), np.int32), np.full(n_labels, -1, np.int64)
    n = engine.collect_matches(*occurrences, label_starts, labels, kinds, slots, texts, own, facts)
    return texts[:n], own[:n], facts[:n]


def evidence(facts: Array, texts: Array, n_words: Array, rarity: Array, *, engine: Engine = DEFAULT) -> Array:
    """(m, f) float64, what is known of the matches of `collect`.

    n_words : (n,) number of words of each text;  rarity : (nodes,) float32, of each name
    """
    found = np.empty((len(facts), N_EVIDENCE), np.float64)
    engine.match_evidence(facts, texts, n_words, rarity, found)
    return found


N_EVIDENCE = 20


def match_scores(
    facts: Array,
    texts: Array,
    n_words: Array,
    rarity: Array,
    weights: Array,
    bias: float,
    *,
    engine: Engine = DEFAULT,
) -> Array:
    """(m,) float32 above 0, how often matches are right, by a logistic regression on their evidence.

    facts, texts, n_words, rarity : as for `evidence`;  weights, bias : of the regression, (f,) float64
    """
    logits = np.empty(len(facts), np.float64)
    engine.match_logits(facts, texts, n_words, rarity, weights, bias, logits)
    return np.maximum(expit(logits, out=logits), np.finfo(np.float32).tiny).astype(np.float32)


def label_lifts(matches: csr_matrix, Y: csr_matrix) -> Array:
    """(L,) float32, log (hits + PRIOR) / (Σ scores + PRIOR) over the rows in which a label's name stands.

    It is 0 for a label that no row has: nothing is known about it.

    matches : (n, L) csr, the score of each label whose name stands in the text of a row
    Y : (n, L) csr of ones
    """
    n_labels = Y.shape[1]
    hits = np.bincount(matches.multiply(Y).tocsr().indices, minlength=n_labels)
    expected = np.bincount(matches.indices, matches.data, minlength=n_labels)
    lifts = np.log((hits + PRIOR_HITS) / (expected + PRIOR_HITS))
    return np.where(np.bincount(Y.indices, minlength=n_labels) > 0, lifts, 0).astype(np.float32)


def best_of_rows(matches: csr_matrix, most: int = MOST_LISTED) -> csr_matrix:
    """The labels with the largest scores of each row, from MIN_LISTED_SCORE on, at most so many, as csr."""
    matches = entries(matches, matches.data >= MIN_LISTED_SCORE)
    numbers = np.diff(matches.indptr)
    # Most rows have few matches, all of which are kept.
    at = np.flatnonzero(np.repeat(numbers > most, numbers))
    rows = np.searchsorted(matches.indptr, at, side="right") - 1
    order = np.lexsort((-matches.data[at], rows))
    rank = np.arange(len(order)) - np.searchsorted(rows, rows)
    is_best = np.ones(matches.nnz, bool)
    is_best[at[order[rank >= most]]] = False
    return entries(matches, is_best)


def join_short_lists(
    ids: Array, votes: Array, matches: csr_matrix, listed: int, *, engine: Engine = DEFAULT
) -> tuple[Array, Array]:
    """Short lists with the best MOST_LISTED of the matched labels that are not on them, without votes.

    These labels follow the first `listed` ones, and what followed those comes after them.

    ids, votes : (b, k) short lists, −1 pads, and vote shares
    """
    shape, state = (len(ids), ids.shape[1] + MOST_LISTED), np.zeros(matches.shape[1], np.int64)
    joined_ids, joined_votes = np.empty(shape, ids.dtype), np.empty(shape, votes.dtype)
    listed, least = min(listed, ids.shape[1]), np.float32(MIN_LISTED_SCORE)
    given = ids, votes, matches.indptr, matches.indices, matches.data, listed, least, state
    engine.join_lists(*given, joined_ids, joined_votes)
    return joined_ids, joined_votes


def scores_of(matches: csr_matrix, ids: Array) -> Array:
    """(b, k) float32, the scores of labels, 0 where they do not match; ids : (b, k), −1 pads"""
    n_labels = matches.shape[1]
    stored_at = np.repeat(np.arange(len(ids)), np.diff(matches.indptr)) * n_labels + matches.indices
    wanted = np.where(ids >= 0, np.arange(len(ids))[:, None] * n_labels + ids, -1)
    at = np.minimum(np.searchsorted(stored_at, wanted), max(len(stored_at) - 1, 0))
    if not len(stored_at):
        return np.zeros(ids.shape, np.float32)
    return np.where(stored_at[at] == wanted, matches.data[at], 0).astype(np.float32)


def entries(matches: csr_matrix, is_kept: Array) -> csr_matrix:
    """Some of the matches; is_kept : (nnz,) bool"""
    starts = np.concatenate(([0], np.cumsum(is_kept)))[matches.indptr]
    return csr_matrix((matches.data[is_kept], matches.indices[is_kept], starts), matches.shape)


def add_named(ids: Array, scores: Array, named: csr_matrix, k: int) -> tuple[Array, Array]:
    """The k best labels of rows, among those that a model has ranked and those that their names give.

    ids, scores : (b, k′) ranked labels, best first, −1 pads, and their scores
    named : (b, L) csr, the scores of labels whose names match; one that is ranked too has the higher score
    """
    if not named.nnz:
        return ids[:, :k], scores[:, :k]
    rows = np.repeat(np.arange(len(ids)), np.diff(named.indptr))
    most = int(np.diff(named.indptr).max())
    more_ids, more_scores = np.full((len(ids), most), -1, np.int64), np.zeros((len(ids), most), np.float32)
    at = np.arange(named.nnz) - named.indptr[rows]
    more_ids[rows, at], more_scores[rows, at] = named.indices, named.data
    ids, scores = np.concatenate([ids, more_ids], axis=1), np.concatenate([scores, more_scores], axis=1)
    ids, scores = _best_first(ids, scores)
    by_label = np.argsort(ids, axis=1, kind="stable")
    in_order = np.take_along_axis(ids, by_label, axis=1)
    is_repeated = np.zeros(ids.shape, bool)
    is_same = (in_order[:, 1:] == in_order[:, :-1]) & (in_order[:, 1:] >= 0)
    np.put_along_axis(is_repeated, by_label[:, 1:], is_same, axis=1)
    if is_repeated.any():
        ids, scores = _best_first(np.where(is_repeated, -1, ids), np.where(is_repeated, 0, scores))
    return ids[:, :k], scores[:, :k]


def _best_first(ids: Array, scores: Array) -> tuple[Array, Array]:
    order = np.argsort(np.where(ids >= 0, -scores, 1), axis=1, kind="stable")
    return np.take_along_axis(ids, order, axis=1), np.take_along_axis(scores, order, axis=1)


class UntrainedScorer(NamedTuple):
    """Scores labels without any training row by the matches of their names.

    weights : (f,) float64, of `untrained_evidence`;  bias : added to them, the logit of the probability
    """

    weights: Array
    bias: float


def check_untrained(scorer: Any, n_kinds: int) -> None:
    """Check a scorer that comes from a file; n_kinds : of attributes"""
    stored.record(scorer, "the scorer of untrained labels", UntrainedScorer)
    n = FIRST_SUPPORT + EVIDENCE_OF_SUPPORT * n_kinds
    weights = stored.array(scorer.weights, "weights of untrained labels", "float64", n)
    stored.number(scorer.bias, "the bias of untrained labels")
    finite = np.isfinite(weights).all() and np.isfinite(scorer.bias)
    stored.require(finite, "weights of untrained labels are not finite")


def support(attributes: csr_matrix, ids: Array, probabilities: Array, rows: Array, labels: Array) -> Array:
    """(m,) float64, how probable the attributes of labels are in rows, by the other labels that have them.

    An attribute is as probable as the labels with it together, at most 1, and the support is the mean over
    the attributes of a label; it is NaN for a label without attributes.

    attributes : (L, A) csr of ones
    ids, probabilities : (b, k) the most probable labels of each row, −1 pads
    rows, labels : (m,) pairs of a row of the block and a label
    """
    if not len(rows):
        return np.zeros(0)
    n_labels, n_attributes = attributes.shape
    of_rows, columns = np.nonzero(ids >= 0)
    likely, values = ids[of_rows, columns], probabilities[of_rows, columns]
    lengths, found = _attributes_of(attributes, likely)
    keys, inverse = np.unique(np.repeat(of_rows, lengths) * n_attributes + found, return_inverse=True)
    probable = np.minimum(np.bincount(inverse, np.repeat(values, lengths), minlength=len(keys)), 1)
    numbers, found = _attributes_of(attributes, labels)
    of_pairs = _looked_up(np.repeat(rows, numbers) * n_attributes + found, keys, probable)
    summed = np.bincount(np.repeat(np.arange(len(rows)), numbers), of_pairs, minlength=len(rows))
    order = np.argsort(of_rows * n_labels + likely)
    own = _looked_up(rows * n_labels + labels, (of_rows * n_labels + likely)[order], values[order])
    return np.where(numbers > 0, np.maximum(summed - own * numbers, 0) / np.maximum(numbers, 1), np.nan)


def _attributes_of(attributes: csr_matrix, labels: Array) -> tuple[Array, Array]:
    """(m,) numbers of attributes of labels, and the attributes of all of them, label after label."""
    starts = attributes.indptr[labels].astype(np.int64)
    lengths = attributes.indptr[labels + 1] - starts
    ends = np.cumsum(lengths)
    at = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + lengths, lengths)
    return lengths, attributes.indices[at].astype(np.int64)


def _looked_up(wanted: Array, keys: Array, values: Array) -> Array:
    """The values of keys, which ascend; 0 for what is none."""
    if not len(keys):
        return np.zeros(len(wanted))
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, values[at], 0)


def untrained_evidence(scores: Array, supports: Array, n_attributes: Array) -> Array:
    """(m, 2 + 3 g) float64, what is known of labels that no row has.

    These are the logit of the score of its match, the number of its attributes, and for each kind of
    attributes the log of its support, a share for weak and one for strong matches, and whether it has none.

    scores : (m,) of matches;  supports : (m, g) of `support`, for each kind of attributes
    n_attributes : (m,) number of attributes of all kinds
    """
    match = logit(np.clip(scores.astype(np.float64), MIN_SCORE, 1 - MIN_SCORE))
    strength = np.minimum((match - WEAKEST) / (STRONGEST - WEAKEST), 1)  # from 0 to 1
    columns = [match, np.log1p(n_attributes)]
    for each in supports.T:
        has_none = np.isnan(each)
        supported = np.log((np.where(has_none, 1, each) + MIN_SUPPORT) / (1 + MIN_SUPPORT))
        columns += [(1 - strength) * supported, strength * supported, has_none]
    return np.stack(columns, axis=1)


WEAKEST, STRONGEST = logit([MIN_SCORE, MOST_UNTRAINED])
FIRST_SUPPORT, EVIDENCE_OF_SUPPORT = 2, 3  # columns before those of the first kind of attributes, and of each


def fit_untrained(evidence: Array, hits: Array, is_unseen: Array) -> UntrainedScorer | None:
    """Learn to score labels without training rows from matches in held-out rows; None with nothing to learn.

    Labels that do have training rows count as if they had none. By how much the others are right more or less
    often, with the same evidence, depends on the vocabulary: most of its labels may never be used. Where it
    is less, only SHIFT_SHARE of the difference is taken, since a label that is new to the vocabulary will be
    used.

    evidence : (m, f) of `untrained_evidence`;  hits : (m,) bool, whether the row has the label
    is_unseen : (m,) bool, whether no training row has the label
    """
    if not hits.any() or hits.all():
        return None
    counted = evidence
    for _ in range(2 * evidence.shape[1]):  # a few are enough: each round takes freedom away
        scorer = _fit_untrained(counted, hits, is_unseen)
        changed = _monotone(evidence, counted, scorer.weights)
        if changed is None:
            return scorer
        counted = changed
    return None


def _monotone(evidence: Array, counted: Array, weights: Array) -> Array | None:
    """The evidence that counts, with less freedom, if a better match or more support is worse by the weights.

    Support that lowers the probability of weak matches, or of strong ones, does not count for these. If
    better matches lower it, support counts for both alike, or else matches do not count.

    evidence : all of it;  counted : what these weights were learnt from
    """
    changed = counted.copy()
    by_kind, columns = (each[..., FIRST_SUPPORT:] for each in (weights, changed))
    weak, strong = by_kind[0::EVIDENCE_OF_SUPPORT], by_kind[1::EVIDENCE_OF_SUPPORT]
    of_weak, of_strong = columns[:, 0::EVIDENCE_OF_SUPPORT], columns[:, 1::EVIDENCE_OF_SUPPORT]
    if min(weak.min(initial=0), strong.min(initial=0)) < 0:
        of_weak[:, weak < 0] = 0
        of_strong[:, strong < 0] = 0
        return changed
    # The slope of the match is least where the support is least.
    least = np.log(MIN_SUPPORT / (1 + MIN_SUPPORT)) / (STRONGEST - WEAKEST)
    differs = (of_weak != of_strong).any(axis=0)
    falls = differs & (strong > weak)
    if weights[0] + least * (strong - weak)[falls].sum() >= 0:
        return None
    if falls.any():
        given = evidence[:, FIRST_SUPPORT:]
        alike = (given[:, 0::EVIDENCE_OF_SUPPORT] + given[:, 1::EVIDENCE_OF_SUPPORT]) / 2
        of_weak[:, falls] = of_strong[:, falls] = alike[:, falls]
    else:
        changed[:, 0] = 0
    return changed


def _fit_untrained(evidence: Array, hits: Array, is_unseen: Array) -> UntrainedScorer:
    match = evidence[:, 0]
    given = np.column_stack([evidence, is_unseen, is_unseen * match])
    weights, bias = logistic_regression(given, hits)
    own = weights[:-2].copy()
    differs = weights[-2] + weights[-1] * match[is_unseen]  # what the logits of unseen labels differ by
    share = 1.0 if differs.sum() > 0 else SHIFT_SHARE
    own[0] += share * weights[-1]
    return UntrainedScorer(own, bias + share * float(weights[-2]))


def weights_of_first_version(weights: Array, n_kinds: int) -> Array:
    """The weights that give the same logits as those of the first version, for scores up to MOST_UNTRAINED.

    weights : (4,) of the match, the support, whether it has none, and the product of match and support
    n_kinds : of attributes, 0 or 1
    """
    stored.array(weights, "weights of untrained labels", "float64", 4)
    of_match, of_support, of_none, of_product = weights.tolist()
    ends = of_support + of_product * WEAKEST, of_support + of_product * STRONGEST
    return np.array([of_match, 0.0, *[*ends, of_none] * n_kinds])


def logistic_regression(evidence: Array, hits: Array) -> tuple[Array, float]:
    """(f,) weights of the evidence, (m, f), and the bias, with evidence of one scale."""
    from sklearn.linear_model import LogisticRegression  # not needed to predict

    mean, scale = evidence.mean(axis=0), evidence.std(axis=0)
    varies = scale >= MIN_SPREAD  # what is the same everywhere gets no weight
    if not varies.any():
        return np.zeros(len(mean)), float(logit(hits.mean()))
    scaled = (evidence[:, varies] - mean[varies]) / scale[varies]
    model = LogisticRegression(solver="newton-cholesky").fit(scaled, hits)
    weights = np.zeros(len(mean))
    weights[varies] = model.coef_[0] / scale[varies]
    return weights, float(model.intercept_[0] - mean @ weights)


def score_untrained(scorer: UntrainedScorer | None, scores: Array, evidence: Array | None) -> Array:
    """(m,) float32, the probabilities of labels without training rows; without a scorer those of matches.

    scores : (m,) of matches;  evidence : (m, f) of `untrained_evidence`, for a scorer
    """
    if scorer is None or evidence is None:
        return np.minimum(scores, np.float32(MOST_UNTRAINED))
    logits = evidence @ scorer.weights + scorer.bias
    return np.clip(expit(logits), np.finfo(np.float32).tiny, MOST_UNTRAINED).astype(np.float32)


def give_way(scores: Array, best: Array) -> Array:
    """(m,) float32, the scores of untrained labels, of which only some may take the first rank of a row.

    Those that are less than FIRST_MARGIN times as probable as the best label with training rows follow it, in
    their order, since SHIFT_SHARE favours them.

    best : (m,) the score of that label in the row of each
    """
    excess = scores / np.maximum(FIRST_MARGIN * best, np.finfo(np.float32).tiny)
    behind = best * (1 - TIE_STEP * (2 - excess))
    return np.where((scores >= best) & (excess < 1), behind, scores).astype(np.float32)
