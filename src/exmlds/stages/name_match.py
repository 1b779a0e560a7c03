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
PRIOR_HITS = 1.0  # pseudo-hits, expected and found, of each label
MIN_SCORE = 1e-4  # of a match, and the distance of the largest from 1
MIN_SPREAD = 1e-6  # standard deviation of evidence that something can be learnt from
MOST_UNTRAINED = 0.95  # probability of a label without training rows: a name alone is never certain
MIN_SUPPORT = 0.01  # is added to supports before the logarithm
SHIFT_SHARE = 0.5  # of a negative shift of the logits of untrained labels


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
    occurrences: Occurrences, label_starts: Array, labels: Array, kinds: Array, *, engine: Engine = DEFAULT
) -> tuple[Array, Array, Array]:
    """Pairs of a text and a label whose name occurs in it: (m,) texts, (m,) labels, and (m, 8) facts.

    The facts are those of the kernel `collect_matches`.

    label_starts, labels, kinds : (nodes + 1,), (p,) and (p,), the labels with a name that ends at each node
        of the trie, and the kinds of these names
    """
    room = int(np.diff(label_starts)[occurrences.nodes].sum())
    texts, own = np.empty(room, np.int64), np.empty(room, np.int64)
    facts, slots = np.empty((room, 8), np.int32), np.full(int(labels.max(initial=-1)) + 1, -1, np.int64)
    n = engine.collect_matches(*occurrences, label_starts, labels, kinds, slots, texts, own, facts)
    return texts[:n], own[:n], facts[:n]


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
    """The labels with the largest scores of each row, at most so many, as csr."""
    rows = np.repeat(np.arange(matches.shape[0]), np.diff(matches.indptr))
    order = np.lexsort((-matches.data, rows))
    rank = np.arange(len(order)) - matches.indptr[rows]
    kept = np.sort(order[rank < most])
    indptr = np.concatenate(([0], np.cumsum(np.bincount(rows[kept], minlength=matches.shape[0]))))
    return csr_matrix((matches.data[kept], matches.indices[kept], indptr), matches.shape)


def join_short_lists(ids: Array, votes: Array, matches: csr_matrix, listed: int) -> tuple[Array, Array]:
    """Short lists with the best MOST_LISTED of the matched labels that are not on them, without votes.

    These labels follow the first `listed` ones, and what followed those comes after them.

    ids, votes : (b, k) short lists, −1 pads, and vote shares
    """
    n, n_labels = len(ids), matches.shape[1]
    first = ids[:, :listed]
    own = np.arange(n)[:, None] * n_labels
    rows = np.repeat(np.arange(n), np.diff(matches.indptr))
    is_new = ~np.isin(rows * n_labels + matches.indices, (own + first)[first >= 0])
    starts = np.concatenate(([0], np.cumsum(np.bincount(rows[is_new], minlength=n))))
    new = best_of_rows(csr_matrix((matches.data[is_new], matches.indices[is_new], starts), matches.shape))
    new_rows = np.repeat(np.arange(n), np.diff(new.indptr))
    order = np.lexsort((-new.data, new_rows))
    added = np.full((n, MOST_LISTED), -1, np.int64)
    added[new_rows, np.arange(new.nnz) - new.indptr[new_rows]] = new.indices[order]
    rest, rest_votes = ids[:, listed:], votes[:, listed:]
    if rest.size:
        is_listed = np.isin(own + rest, (own + added)[added >= 0])
        compact = np.argsort(is_listed, axis=1, kind="stable")
        rest = np.take_along_axis(np.where(is_listed, -1, rest), compact, axis=1)
        rest_votes = np.take_along_axis(np.where(is_listed, 0, rest_votes), compact, axis=1)
    no_votes = np.zeros(added.shape, votes.dtype)
    return (
        np.concatenate([first, added, rest], axis=1),
        np.concatenate([votes[:, :listed], no_votes, rest_votes], axis=1),
    )


def scores_of(matches: csr_matrix, ids: Array) -> Array:
    """(b, k) float32, the scores of labels, 0 where they do not match; ids : (b, k), −1 pads"""
    n_labels = matches.shape[1]
    stored_at = np.repeat(np.arange(len(ids)), np.diff(matches.indptr)) * n_labels + matches.indices
    wanted = np.where(ids >= 0, np.arange(len(ids))[:, None] * n_labels + ids, -1)
    at = np.minimum(np.searchsorted(stored_at, wanted), max(len(stored_at) - 1, 0))
    if not len(stored_at):
        return np.zeros(ids.shape, np.float32)
    return np.where(stored_at[at] == wanted, matches.data[at], 0).astype(np.float32)


def without(matches: csr_matrix, left_out: Array) -> csr_matrix:
    """The matches of all labels but those of the mask left_out, (L,) bool."""
    kept = ~left_out[matches.indices]
    starts = np.concatenate(([0], np.cumsum(kept)))[matches.indptr]
    return csr_matrix((matches.data[kept], matches.indices[kept], starts), matches.shape)


def add_untrained(ids: Array, scores: Array, untrained: csr_matrix, k: int) -> tuple[Array, Array]:
    """The k best labels of rows, among those that a model has ranked and those that only their names give.

    ids, scores : (b, k′) ranked labels, best first, −1 pads, and their scores
    untrained : (b, L) csr, the scores of labels without any training row whose names match
    """
    if not untrained.nnz:
        return ids[:, :k], scores[:, :k]
    rows = np.repeat(np.arange(len(ids)), np.diff(untrained.indptr))
    most = int(np.diff(untrained.indptr).max())
    more_ids, more_scores = np.full((len(ids), most), -1, np.int64), np.zeros((len(ids), most), np.float32)
    at = np.arange(untrained.nnz) - untrained.indptr[rows]
    more_ids[rows, at], more_scores[rows, at] = untrained.indices, untrained.data
    ids, scores = np.concatenate([ids, more_ids], axis=1), np.concatenate([scores, more_scores], axis=1)
    best = np.argsort(np.where(ids >= 0, -scores, 1), axis=1, kind="stable")[:, :k]
    return np.take_along_axis(ids, best, axis=1), np.take_along_axis(scores, best, axis=1)


class UntrainedScorer(NamedTuple):
    """Scores labels without any training row by the matches of their names.

    weights : (f,) float64, of `untrained_evidence`;  bias : added to them, the logit of the probability
    """

    weights: Array
    bias: float


def check_untrained(scorer: Any) -> None:
    """Check a scorer that comes from a file."""
    stored.record(scorer, "the scorer of untrained labels", UntrainedScorer)
    weights = stored.array(scorer.weights, "weights of untrained labels", "float64", N_UNTRAINED_EVIDENCE)
    stored.number(scorer.bias, "the bias of untrained labels")
    finite = np.isfinite(weights).all() and np.isfinite(scorer.bias)
    stored.require(finite, "weights of untrained labels are not finite")


def support(
    attributes: csr_matrix | None, ids: Array, probabilities: Array, rows: Array, labels: Array
) -> Array:
    """(m,) float64, how probable the attributes of labels are in rows, by the other labels that have them.

    An attribute is as probable as the labels with it together, at most 1, and the support is the mean over
    the attributes of a label; it is NaN for a label without attributes.

    attributes : (L, A) csr of ones
    ids, probabilities : (b, k) the most probable labels of each row, −1 pads
    rows, labels : (m,) pairs of a row of the block and a label
    """
    if attributes is None or not len(rows):
        return np.full(len(rows), np.nan)
    present = ids >= 0
    shape = len(ids), attributes.shape[0]
    found = csr_matrix((probabilities[present], (np.nonzero(present)[0], ids[present])), shape)
    probable = csr_matrix(found @ attributes)
    probable.data = np.minimum(probable.data, 1)
    numbers = np.diff(attributes.indptr)[labels]
    summed = np.asarray(probable[rows].multiply(attributes[labels]).sum(axis=1), np.float64).ravel()
    own = np.asarray(found[rows, labels], np.float64).ravel() * numbers
    return np.where(numbers > 0, np.maximum(summed - own, 0) / np.maximum(numbers, 1), np.nan)


def untrained_evidence(scores: Array, supports: Array) -> Array:
    """(m, f) float64, what is known of a label that no row has: the score of its match, and its support."""
    match = logit(np.clip(scores.astype(np.float64), MIN_SCORE, 1 - MIN_SCORE))
    has_none = np.isnan(supports)
    supported = np.log((np.where(has_none, 1, supports) + MIN_SUPPORT) / (1 + MIN_SUPPORT))
    return np.stack([match, supported, has_none, match * supported], axis=1)


N_UNTRAINED_EVIDENCE = 4


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
    scorer = _fit_untrained(evidence, hits, is_unseen)
    if not _is_rising(scorer):  # then without the product, and with slopes that are not below 0
        evidence = evidence * np.array([1, 1, 1, 0])
        scorer = _fit_untrained(evidence, hits, is_unseen)
        scorer = scorer._replace(weights=np.maximum(scorer.weights, [0, 0, -np.inf, 0]))
    return scorer


def _fit_untrained(evidence: Array, hits: Array, is_unseen: Array) -> UntrainedScorer:
    match = evidence[:, 0]
    given = np.column_stack([evidence, is_unseen, is_unseen * match])
    weights, bias = logistic_regression(given, hits)
    own = weights[:-2].copy()
    differs = weights[-2] + weights[-1] * match[is_unseen]  # what the logits of unseen labels differ by
    share = 1.0 if differs.sum() > 0 else SHIFT_SHARE
    own[0] += share * weights[-1]
    return UntrainedScorer(own, bias + share * float(weights[-2]))


def _is_rising(scorer: UntrainedScorer) -> bool:
    """Whether a better match is never worse, nor more support, in the ranges of both."""
    of_match, of_support, _, of_both = scorer.weights
    least = np.log(MIN_SUPPORT / (1 + MIN_SUPPORT))
    slopes = [of_match + of_both * end for end in (least, 0)]
    slopes += [of_support + of_both * logit(end) for end in (MIN_SCORE, 1 - MIN_SCORE)]
    return min(slopes) >= 0


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


def score_untrained(scorer: UntrainedScorer | None, scores: Array, supports: Array) -> Array:
    """(m,) float32, the probabilities of labels without training rows; without a scorer those of matches."""
    if scorer is None:
        return scores
    logits = untrained_evidence(scores, supports) @ scorer.weights + scorer.bias
    return np.clip(expit(logits), np.finfo(np.float32).tiny, MOST_UNTRAINED).astype(np.float32)
