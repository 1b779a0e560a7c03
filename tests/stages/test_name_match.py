"""Names in texts: the trie, the occurrences, and what matches say about labels, by hand and by twins."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.special import expit, logit

from exmlds.kernels import Engine
from exmlds.stages import name_match

BOTH = [Engine("jit"), Engine("reference")]
sequences = st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=12)


def joined(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    starts = np.concatenate(([0], np.cumsum([len(row) for row in rows], dtype=np.int64))).astype(np.int64)
    return starts, np.array([token for row in rows for token in row], np.int32)


def built(names: list[list[int]], n_tokens: int = 4) -> tuple[name_match.NameTrie, np.ndarray]:
    return name_match.build(*joined(names), n_tokens)


@pytest.mark.parametrize("engine", BOTH)
def test_names_within_names_are_found(engine: Engine) -> None:
    trie, nodes = built([[0], [0, 1], [1, 2], [3]])
    found = name_match.find(trie, *joined([[0, 1, 2], [-1, 3], []]), engine=engine)
    assert found.texts.tolist() == [0, 0, 0, 1]
    assert found.starts.tolist() == [0, 0, 1, 1]
    assert found.lengths.tolist() == [1, 2, 2, 1]
    assert found.nodes.tolist() == nodes.tolist()
    assert found.covered.tolist() == [True, False, False, False]


def test_a_name_in_a_longer_one_that_starts_before_is_covered() -> None:
    trie, _ = built([[0, 1, 2], [1], [2, 3]])
    found = name_match.find(trie, *joined([[0, 1, 2, 3]]))
    assert list(zip(found.starts.tolist(), found.covered.tolist())) == [(0, False), (1, True), (2, False)]


@settings(max_examples=200)
@given(sequences, st.lists(st.lists(st.integers(-1, 3), max_size=9), max_size=4))
def test_both_engines_find_the_same(names: list[list[int]], texts: list[list[int]]) -> None:
    trie, nodes = built(names)
    assert [node >= 0 for node in nodes] == [len(name) > 0 for name in names]
    assert name_match.check(trie) == len(trie.ends)
    own, twin = (name_match.find(trie, *joined(texts), engine=engine) for engine in BOTH)
    for one, other in zip(own, twin):
        np.testing.assert_array_equal(one, other)
    spans = {
        (text, start, tuple(words[start : start + length]))
        for text, words in enumerate(texts)
        for start in range(len(words))
        for length in range(1, len(words) - start + 1)
    }
    there = {span for span in spans if list(span[2]) in names}
    found = {
        (text, start, tuple(texts[text][start : start + length]))
        for text, start, length in zip(own.texts.tolist(), own.starts.tolist(), own.lengths.tolist())
    }
    assert found == there


def test_what_there_is_no_room_for_is_left_out() -> None:
    trie, _ = built([[0], [0, 1]])
    for engine in BOTH:
        found = name_match.find(trie._replace(most_nested=1), *joined([[0, 1]]), engine=engine)
        assert found.lengths.tolist() == [1, 2]
        found = name_match.find(trie._replace(most_nested=0), *joined([[0, 1]]), engine=engine)
        assert not len(found.texts)


@settings(max_examples=100)
@given(sequences, st.lists(st.lists(st.integers(-1, 3), max_size=9), max_size=4), st.integers(0, 2**32 - 1))
def test_both_engines_collect_the_same_pairs(
    names: list[list[int]], texts: list[list[int]], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    trie, _ = built(names)
    occurrences = name_match.find(trie, *joined(texts))
    occurrences = occurrences._replace(in_first=rng.random(len(occurrences.texts)) < 0.5)
    counts = rng.integers(1, 4, len(trie.ends))
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    labels = np.concatenate([rng.permutation(5)[:n] for n in counts] or [[]]).astype(np.int32)
    kinds = rng.integers(0, 4, len(labels)).astype(np.int8)
    own, twin = (name_match.collect(occurrences, starts, labels, kinds, 5, engine=engine) for engine in BOTH)
    for one, other in zip(own, twin):
        np.testing.assert_array_equal(one, other)
    n_words, rarity = np.array(list(map(len, texts)), np.int64), rng.random(len(trie.ends)).astype(np.float32)
    facts = own[2].copy()
    facts[:, 0] = rng.integers(0, 16, len(facts))  # all forms and agreements
    given = facts, own[0], n_words, rarity
    evidence = [name_match.evidence(*given, engine=engine) for engine in BOTH]
    np.testing.assert_allclose(*evidence, rtol=1e-6)
    assert np.isfinite(evidence).all()
    weights, bias = rng.standard_normal(name_match.N_EVIDENCE), float(rng.standard_normal())
    scores = [name_match.match_scores(*given, weights, bias, engine=engine) for engine in BOTH]
    np.testing.assert_allclose(*scores, rtol=1e-5)
    np.testing.assert_allclose(scores[0], expit(evidence[0] @ weights + bias), rtol=1e-5)


def test_facts_of_a_pair_by_hand() -> None:
    trie, nodes = built([[0], [0, 1]])
    # The first two tokens are the title.
    occurrences = name_match.find(trie, *joined([[3, 0, 1, 0]]))
    occurrences = occurrences._replace(in_first=occurrences.starts < 2)
    # Both names are those of label 7, the first is also that of label 2.
    of_node = {int(nodes[0]): [(2, 0), (7, 1)], int(nodes[1]): [(7, 2)]}
    listed = [of_node.get(node, []) for node in range(len(trie.ends))]
    starts = np.concatenate(([0], np.cumsum([len(one) for one in listed]))).astype(np.int64)
    flat = [pair for one in listed for pair in one]
    labels, kinds = (np.array(part, dtype) for part, dtype in zip(zip(*flat), (np.int32, np.int8)))
    texts, found, facts = name_match.collect(occurrences, starts, labels, kinds, 8)
    assert (texts.tolist(), found.tolist()) == ([0, 0], [2, 7])
    # The smallest kind, the longest, all covered, their number, the first, labels that share it, where, and
    # their number in the title.
    assert facts.tolist() == [[0, 1, 0, 2, 1, 2, nodes[0], 1], [1, 2, 0, 3, 1, 1, nodes[1], 2]]


@pytest.mark.parametrize("engine", BOTH)
def test_no_name_goes_on_in_the_next_field(engine: Engine) -> None:
    trie, nodes = built([[0], [0, 1]])
    # The first text has the fields (2, 0) and (1, 0, 1), the second one is a single field, the last has none.
    indptr, tokens = joined([[2, 0], [1, 0, 1], [3, 0, 1], [], []])
    found = name_match.find(trie, indptr, tokens, engine=engine)
    found = name_match.join_fields(found, indptr, np.array([2, 1, 2]))
    assert found.texts.tolist() == [0, 0, 0, 1, 1]
    assert found.starts.tolist() == [1, 3, 3, 1, 1]
    assert found.nodes.tolist() == [nodes[0], nodes[0], nodes[1], nodes[0], nodes[1]]
    assert found.in_first.tolist() == [True, False, False, False, False]


def test_several_names_at_one_place() -> None:
    trie, nodes = built([[0], [2], [0, 1]])
    indptr = np.array([0, 3, 3, 5])
    # Token 1 is no name alone.
    found = name_match.find_single(trie, indptr, np.array([1, 1, 2, 4]), np.array([0, 2, 1, 2]))
    assert found.texts.tolist() == [0, 0, 2]
    assert found.starts.tolist() == [1, 1, 1]
    assert found.nodes.tolist() == [nodes[0], nodes[1], nodes[1]]
    assert found.lengths.tolist() == [1, 1, 1]
    assert not (found.covered | found.in_first).any()


def test_lifts_of_labels_by_hand() -> None:
    matches = csr_matrix(np.array([[0.5, 0.25, 0.5], [0.5, 0, 0], [0, 0.25, 0]], np.float32))
    Y = csr_matrix(np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0]], np.float32))
    # Label 0 has two hits where one is expected, label 1 has one of 0.5, and no row has label 2.
    np.testing.assert_allclose(name_match.label_lifts(matches, Y), [log(3 / 2), log(2 / 1.5), 0], rtol=1e-6)


def test_matched_labels_join_short_lists_once() -> None:
    ids = np.array([[4, 1, 0, 3], [2, -1, -1, -1]])
    votes = np.array([[0.5, 0.3, 0.1, 0.1], [1, 0, 0, 0]], np.float32)
    matches = csr_matrix(([0.1, 0.2, 0.9, 0.3], ([0, 0, 0, 1], [0, 1, 5, 4])), (2, 6), dtype=np.float32)
    joined_ids, joined_votes = name_match.join_short_lists(ids, votes, matches, 2)
    most = name_match.MOST_LISTED
    assert joined_ids.shape == (2, 2 + most + 2)
    assert joined_ids[:, :4].tolist() == [[4, 1, 5, 0], [2, -1, 4, -1]]
    assert joined_ids[:, 2 + most :].tolist() == [[3, -1], [-1, -1]]  # label 0 has moved up
    np.testing.assert_allclose(joined_votes[0, [0, 1, 2, 3, 2 + most]], [0.5, 0.3, 0, 0, 0.1])
    scores = name_match.scores_of(matches, joined_ids)
    np.testing.assert_allclose(scores[0, :5], [0, 0.2, 0.9, 0.1, 0], rtol=1e-6)
    np.testing.assert_allclose(scores[1, :3], [0, 0, 0.3], rtol=1e-6)


@settings(max_examples=100)
@given(st.integers(0, 2**32 - 1))
def test_both_engines_join_the_same_lists(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_labels, k = 60, int(rng.integers(0, 12))
    ids = np.argsort(rng.random((3, n_labels)), axis=1)[:, :k]
    ids[np.arange(k) >= rng.integers(0, k + 1, 3)[:, None]] = -1
    votes = rng.random((3, k), dtype=np.float32)
    scores = np.where(rng.random((3, n_labels)) < 0.6, rng.integers(0, 9, (3, n_labels)) / 200, 0)
    matches, listed = csr_matrix(scores.astype(np.float32)), int(rng.integers(0, k + 2))
    own, twin = (name_match.join_short_lists(ids, votes, matches, listed, engine=engine) for engine in BOTH)
    np.testing.assert_array_equal(own[0], twin[0])
    np.testing.assert_array_equal(own[1], twin[1])


def test_labels_whose_names_hardly_ever_mean_them_join_no_list() -> None:
    few = name_match.MIN_LISTED_SCORE
    matches = csr_matrix(np.array([[few / 2, few, 0, 2 * few]], np.float32))
    ids, _ = name_match.join_short_lists(np.array([[2]]), np.ones((1, 1), np.float32), matches, 1)
    assert ids[0, :4].tolist() == [2, 3, 1, -1]
    assert name_match.best_of_rows(matches).indices.tolist() == [1, 3]


def test_the_best_matches_of_rows() -> None:
    matches = csr_matrix(np.array([[0.1, 0.5, 0.3], [0, 0, 0], [0.2, 0, 0]], np.float32))
    best = name_match.best_of_rows(matches, 2).toarray()
    np.testing.assert_allclose(best, [[0, 0.5, 0.3], [0, 0, 0], [0.2, 0, 0]])
    equal = csr_matrix(np.array([[0.3, 0.3, 0.3], [0.1, 0.4, 0.4], [0, 0.2, 0.3]], np.float32))
    best = name_match.best_of_rows(equal, 2).toarray()  # of equal ones, the first
    np.testing.assert_allclose(best, [[0.3, 0.3, 0], [0, 0.4, 0.4], [0, 0.2, 0.3]])


def test_support_by_hand() -> None:
    attributes = csr_matrix(np.array([[1, 1], [1, 0], [0, 1], [0, 0]], np.float32))
    ids, probabilities = np.array([[1, 2, -1]]), np.array([[0.6, 0.3, 0.9]], np.float32)
    rows, labels = np.zeros(4, int), np.arange(4)
    found = name_match.support(attributes, ids, probabilities, rows, labels)
    # Label 0 has both attributes; the only label with that of label 1 is itself; label 3 has none.
    np.testing.assert_allclose(found, [(0.6 + 0.3) / 2, 0, 0, np.nan], rtol=1e-6)


def test_untrained_labels_take_their_ranks() -> None:
    ids, scores = np.array([[3, 1], [2, -1]]), np.array([[0.8, 0.2], [0.4, 0]], np.float32)
    untrained = csr_matrix(([0.5, 0.1], ([0, 1], [5, 4])), (2, 6), dtype=np.float32)
    ranked, found = name_match.add_named(ids, scores, untrained, 2)
    assert ranked.tolist() == [[3, 5], [2, 4]]
    np.testing.assert_allclose(found, [[0.8, 0.5], [0.4, 0.1]], rtol=1e-6)
    unchanged, _ = name_match.add_named(ids, scores, csr_matrix((2, 6), dtype=np.float32), 1)
    assert unchanged.tolist() == [[3], [2]]


def test_a_label_that_is_ranked_and_named_has_the_higher_score() -> None:
    ids, scores = np.array([[3, 1, 0], [2, -1, -1]]), np.array([[0.8, 0.2, 0.1], [0.4, 0, 0]], np.float32)
    named = csr_matrix(([0.5, 0.1, 0.3], ([0, 0, 1], [0, 3, 2])), (2, 6), dtype=np.float32)
    ranked, found = name_match.add_named(ids, scores, named, 3)
    assert ranked.tolist() == [[3, 0, 1], [2, -1, -1]]
    np.testing.assert_allclose(found, [[0.8, 0.5, 0.2], [0.4, 0, 0]], rtol=1e-6)


def test_the_scorer_learns_how_often_untrained_labels_are_right() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random(20_000)
    is_unseen = rng.random(20_000) < 0.3
    supports = rng.random((20_000, 1))
    # Trained labels are right as often as their scores say, and unseen ones never.
    hits = (rng.random(20_000) < scores) & ~is_unseen
    evidence = name_match.untrained_evidence(scores, supports, np.ones(20_000))
    scorer = name_match.fit_untrained(evidence, hits, is_unseen)
    never = name_match.score_untrained(scorer, scores, evidence)
    assert (never < scores).mean() > 0.9
    as_often = name_match.fit_untrained(evidence, rng.random(20_000) < scores, is_unseen)
    found = name_match.score_untrained(as_often, scores, evidence)
    assert np.abs(found - scores).mean() < 0.05
    assert name_match.fit_untrained(evidence, np.zeros(20_000, bool), is_unseen) is None
    as_they_are = name_match.score_untrained(None, scores, evidence)
    np.testing.assert_array_equal(as_they_are, np.minimum(scores, np.float32(name_match.MOST_UNTRAINED)))


def test_a_name_alone_takes_the_first_rank_only_by_a_margin() -> None:
    scores = np.array([0.7, 0.44, 0.41, 0.39, 0.2], np.float32)
    found = name_match.give_way(scores, np.full(5, 0.4, np.float32))
    np.testing.assert_array_equal(found[[0, 3, 4]], scores[[0, 3, 4]])
    assert 0.4 > found[1] > found[2] > 0.3999
    np.testing.assert_array_equal(name_match.give_way(scores, np.zeros(5, np.float32)), scores)


@pytest.mark.parametrize("n_kinds", [1, 2])
@pytest.mark.parametrize("seed", range(12))
def test_a_better_match_and_more_support_are_never_worse(n_kinds: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, supports = rng.random(300) ** 4, rng.random((300, n_kinds))
    evidence = name_match.untrained_evidence(scores, supports, rng.integers(1, 4, 300))
    # By chance, or by mistake, high scores are wrong, and so is more support, or both together.
    of_match, of_support, of_both = rng.normal(size=3)
    strange = of_match * scores + of_support * supports[:, 0] + of_both * scores * supports[:, -1]
    hits = rng.random(300) < expit(2 * strange - 1)
    scorer = name_match.fit_untrained(evidence, hits, np.zeros(300, bool))
    # It was fitted to the evidence that it is used on.
    assert abs(name_match.score_untrained(scorer, scores, evidence).mean() - hits.mean()) < 0.005
    better = np.array([0, 1e-6, 1e-3, 0.1, 0.5, 0.9, 0.9999, 1.0])
    given = [(np.full(8, match), better[:, None] * np.ones(n_kinds)) for match in better]
    given += [(better, np.full((8, n_kinds), support)) for support in (0.0, 0.3, 1.0)]
    for own_scores, own_supports in given:
        evidence = name_match.untrained_evidence(own_scores, own_supports, np.ones(8))
        assert (np.diff(name_match.score_untrained(scorer, own_scores, evidence)) >= -1e-6).all()


def test_support_that_hurts_does_not_count() -> None:
    rng = np.random.default_rng(1)
    scores, supports = rng.random(5_000), rng.random((5_000, 2))
    evidence = name_match.untrained_evidence(scores, supports, np.ones(5_000))
    # The first attribute helps, the second is wrong where it is supported.
    hits = rng.random(5_000) < scores * supports[:, 0] * (1 - supports[:, 1])
    scorer = name_match.fit_untrained(evidence, hits, np.zeros(5_000, bool))
    assert scorer is not None
    assert (scorer.weights[:4] >= 0).all()
    assert scorer.weights[2:4].max() > 0.1
    assert scorer.weights[5:7].tolist() == [0, 0]


def test_evidence_by_hand() -> None:
    found = name_match.untrained_evidence(
        np.array([1e-9, 0.5, 1.0]), np.array([[0.09, np.nan], [1, 0.09], [0.09, 0.09]]), np.array([1, 2, 0])
    )
    low, high, s = logit(1e-4), logit(0.95), np.log(0.1 / 1.01)
    middle = (0 - low) / (high - low)
    expected = [
        [low, np.log(2), s, 0, 0, 0, 0, 1],
        [0, np.log(3), 0, 0, 0, s * (1 - middle), s * middle, 0],
        [-low, 0, 0, s, 0, 0, s, 0],
    ]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_weights_of_the_first_version_give_the_same() -> None:
    scores, supports = np.array([1e-4, 0.01, 0.6, 0.9]), np.array([[0.0], [0.4], [np.nan], [1.0]])
    evidence = name_match.untrained_evidence(scores, supports, np.arange(4))
    match, has_none = logit(scores), np.isnan(supports[:, 0])
    supported = np.log((np.where(has_none, 1, supports[:, 0]) + 0.01) / 1.01)
    before = np.array([0.8, 0.6, -0.2, 0.03])
    expected = np.stack([match, supported, has_none, match * supported], axis=1) @ before
    np.testing.assert_allclose(evidence @ name_match.weights_of_first_version(before, 1), expected)
    np.testing.assert_allclose(
        evidence[:, :2] @ name_match.weights_of_first_version(before * [1, 0, 0, 0], 0), 0.8 * match
    )


def test_evidence_that_is_the_same_everywhere_has_no_weight() -> None:
    hits = np.array([True, False, False, False])
    weights, bias = name_match.logistic_regression(np.full((4, 2), 7.0), hits)
    assert weights.tolist() == [0, 0]
    assert bias == pytest.approx(log(1 / 3))
    varied = np.column_stack([np.full(4, 7.0), [3.0, 0, 1, 0]])
    weights, _ = name_match.logistic_regression(varied, hits)
    assert weights[0] == 0 < weights[1]
