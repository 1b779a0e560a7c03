"""Every kernel gives what its slow, obvious twin gives."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_matrix, csr_matrix, random_array

from exmlds.kernels import parse_errors
from exmlds.kernels.jit import gate as jit_gate
from exmlds.kernels.jit import gram as jit_gram
from exmlds.kernels.jit import hinge as jit_hinge
from exmlds.kernels.jit import hits as jit_hits
from exmlds.kernels.jit import joint as jit_joint
from exmlds.kernels.jit import max_margin as jit_max_margin
from exmlds.kernels.jit import neighbors as jit_neighbors
from exmlds.kernels.jit import pairs as jit_pairs
from exmlds.kernels.jit import products as jit_products
from exmlds.kernels.jit import rerank as jit_rerank
from exmlds.kernels.jit import rows as jit_rows
from exmlds.kernels.jit import sgns as jit_sgns
from exmlds.kernels.jit import split as jit_split
from exmlds.kernels.jit import stacking as jit_stacking
from exmlds.kernels.jit import topk as jit_topk
from exmlds.kernels.jit import trees as jit_trees
from exmlds.kernels.jit import vote as jit_vote
from exmlds.kernels.jit import warp as jit_warp
from exmlds.kernels.jit import xc_parser as jit_xc_parser
from exmlds.kernels.reference import (
    gate,
    gram,
    hinge,
    hits,
    joint,
    max_margin,
    neighbors,
    pairs,
    products,
    rerank,
    rows,
    sgns,
    split,
    stacking,
    topk,
    trees,
    vote,
    warp,
    xc_parser,
)
from exmlds.stages import quantize
from exmlds.stages.max_margin import start as start_max_margin
from exmlds.stages.rerank import pad_rows
from exmlds.stages.stacking import build_evidence

seeds = st.integers(0, 2**32 - 1)


def sparse(rng: np.random.Generator, n: int, d: int, density: float = 0.3) -> csr_matrix:
    return csr_matrix(random_array((n, d), density=density, random_state=rng, dtype=np.float32, format="csr"))


def parse(engine: Any, raw: bytes, labelled: bool, base: int = 0, d: int = 50, n_labels: int = 20) -> tuple:
    most = len(raw) // 2 + 1
    features, labels = np.zeros(most, np.int32), np.zeros(most, np.int32)
    values = np.zeros(most, np.float32)
    lines = raw.count(b"\n") + 1
    of_row = np.zeros(lines, np.int64), np.zeros(lines, np.int64)
    hard = np.zeros((len(raw) // 6 + 1, 3), np.int64)
    found = engine.parse_rows(
        np.frombuffer(raw, np.uint8), labelled, base, d, n_labels, features, values, labels, *of_row, hard
    )
    n_rows, n_values, n_marks, n_hard, blank, disorder, problem, start, end = found
    for index, token_start, token_end in hard[:n_hard].tolist():
        value = float(raw[token_start:token_end].partition(b":")[2])
        if abs(value) >= parse_errors.FLOAT32_OVERFLOW:
            problem, start, end = parse_errors.NOT_FINITE, token_start, token_end
            break
        values[index] = value
    if problem:
        return problem, start, end
    return (
        n_rows,
        blank,
        bool(disorder),
        features[:n_values].tolist(),
        values[:n_values].tolist(),
        labels[:n_marks].tolist(),
        of_row[0][:n_rows].tolist(),
        of_row[1][:n_rows].tolist(),
    )


ids = st.integers(-2, 60).map(str) | st.sampled_from(["", "x", "007", "99999999999999999999"])
numbers = (
    st.floats(allow_nan=True, allow_infinity=True).map(repr)
    | st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr)
    | st.integers(0, 10**25).map(str)
    | st.sampled_from(["", ".", "1.", ".5", "+2", "-0", "1e", "1e5", "1e999", "nan", "-inf", "1:2", "0.1.2"])
)
feature = st.tuples(ids, st.sampled_from([":", ":", ":", ""]), numbers).map("".join)
row = st.tuples(
    st.lists(ids, max_size=3).map(",".join),
    st.sampled_from([" ", "  ", "\t", " # note ", ""]),
    st.lists(feature, max_size=4).map(" ".join),
    st.sampled_from(["\n", "\n", "\r\n", " \n", "\r", "\n\n"]),
).map("".join)
good_row = st.tuples(
    st.lists(st.integers(0, 19).map(str), max_size=3).map(",".join),
    st.lists(
        st.tuples(st.integers(0, 49), st.floats(width=32, allow_nan=False, allow_infinity=False)), max_size=5
    ),
).map(lambda r: f"{r[0]} {' '.join(f'{i}:{v!r}' for i, v in r[1])}\n")
texts = st.lists(row, max_size=3).map("".join) | st.lists(good_row, max_size=5).map("".join)


@settings(max_examples=600)
@given(texts.map(str.encode) | st.binary(max_size=40), st.booleans(), st.integers(0, 1))
@example(b"1,2 3:4.5 # x\n 5:1\n\n", True, 0)
@example(b"1 2:123456789012345678901234567890 3:1e-30 4:0.1\n", True, 0)
@example(b"3 4: 5:2\n", True, 0)
@example(b"0:1e23 0:1e23 0:1e23", False, 0)
def test_parse_rows(raw: bytes, labelled: bool, base: int) -> None:
    assert parse(jit_xc_parser, raw, labelled, base) == parse(xc_parser, raw, labelled, base)


def test_parse_rows_by_hand() -> None:
    raw = b"2,0 1:0.5 7\n 3:-1e2\n\n4\n"
    n_rows, blank, disorder, features, values, labels, of_features, of_labels = parse(
        jit_xc_parser, raw, True
    )
    assert (n_rows, blank, disorder) == (4, 0, True)
    assert (features, values) == ([1, 7, 3], [0.5, 1.0, -100.0])
    assert (labels, of_features, of_labels) == ([2, 0, 4], [2, 1, 0, 0], [2, 0, 0, 1])


@pytest.mark.parametrize("engine", [jit_xc_parser, xc_parser])
@pytest.mark.parametrize(
    ("raw", "problem", "token"),
    [
        (b"1 2:x\n", parse_errors.NOT_A_NUMBER, b"2:x"),
        (b"1 2:nan\n", parse_errors.NOT_FINITE, b"2:nan"),
        (b"1 2:1e39\n", parse_errors.NOT_FINITE, b"2:1e39"),
        (b"1 -2:1\n", parse_errors.NEGATIVE_ID, b"-2:1"),
        (b"1 50:1\n", parse_errors.FEATURE_OUT_OF_RANGE, b"50:1"),
        (b"1,20 5:1\n", parse_errors.LABEL_OUT_OF_RANGE, b"20"),
        (b"1,,2 5:1\n", parse_errors.EMPTY_ID, b",2"),
    ],
)
def test_parse_rows_points_at_the_token(engine: Any, raw: bytes, problem: int, token: bytes) -> None:
    found, start, end = parse(engine, raw, True)
    assert (found, raw[start:end]) == (problem, token)


@settings(max_examples=100)
@given(seeds, st.integers(1, 8), st.integers(1, 12), st.integers(1, 6))
def test_sparse_topk(seed: int, n_queries: int, n_rows: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    Q, rows = sparse(rng, n_queries, 5), sparse(rng, n_rows, 5).tocsc()
    for matrix in (Q, rows):  # small whole numbers: sums are exact in any order, and ties are many
        matrix.data = rng.integers(-2, 3, matrix.nnz).astype(np.float32)
    bias = np.where(rng.random(n_rows) < 0.2, -np.inf, 0).astype(np.float32)
    results = []
    for engine in (jit_topk, topk):
        best = np.full((n_queries, k), -1, np.int64), np.full((n_queries, k), -np.inf, np.float32)
        for offset in (0, n_rows):
            engine.sparse_topk(
                Q.indptr, Q.indices, Q.data, rows.indptr, rows.indices, rows.data, bias, offset, *best
            )
        results.append(best)
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


@settings(max_examples=100)
@given(seeds, st.integers(1, 5), st.integers(0, 9), st.integers(1, 6))
def test_merge_topk(seed: int, n_queries: int, n_rows: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    results = []
    first, second = (rng.integers(0, 4, (2, n_queries, n_rows)) / 2).astype(np.float32)  # many ties
    for engine in (jit_topk, topk):
        best = np.full((n_queries, k), -1, np.int64), np.full((n_queries, k), -np.inf, np.float32)
        engine.merge_topk(first, 0, *best)
        engine.merge_topk(second, n_rows, *best)
        results.append(best)
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


@settings(max_examples=100)
@given(seeds, st.integers(1, 5), st.integers(1, 9), st.integers(1, 6))
def test_rank_rows(seed: int, n: int, n_labels: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    scores = sparse(rng, n, n_labels, 0.6)
    scores.data = rng.integers(-2, 3, scores.nnz).astype(np.float64)  # many ties
    results = []
    for engine in (jit_topk, topk):
        best = np.full((n, k), -1, np.int64), np.zeros((n, k))
        engine.rank_rows(scores.indptr, scores.indices, scores.data, *best)
        results.append(best)
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


@settings(max_examples=100)
@given(seeds, st.integers(1, 5), st.integers(1, 4), st.integers(1, 8))
def test_vote(seed: int, n_queries: int, m: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    Y = sparse(rng, 6, 7)
    neighbors = rng.integers(-1, 6, (n_queries, m))
    weights = rng.choice(np.array([0, 0.25, 0.5, 1], np.float32), (n_queries, m))
    results = []
    for engine in (jit_vote, vote):
        best = np.full((n_queries, k), -1, np.int64), np.zeros((n_queries, k), np.float32)
        engine.vote(neighbors, weights, Y.indptr, Y.indices, 7, *best)
        results.append(best)
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


@settings(max_examples=100)
@given(seeds, st.integers(1, 5), st.integers(1, 4), st.integers(0, 6), st.integers(1, 7))
def test_add_votes(seed: int, n_queries: int, m: int, start: int, n_scored: int) -> None:
    rng = np.random.default_rng(seed)
    Y = sparse(rng, 6, 7)
    Y.data = rng.choice(np.array([0, 0.3, 1], np.float32), Y.nnz)
    neighbors = rng.integers(-1, 6, (n_queries, m))
    weights = rng.choice(np.array([0, 0.25, 0.5, 1], np.float32), (n_queries, m))
    before = rng.normal(size=(n_queries, min(n_scored, 7 - start))).astype(np.float32)
    results = []
    for engine in (jit_vote, vote):
        scores = before.copy()
        engine.add_votes(neighbors, weights, Y.indptr, Y.indices, Y.data, 7, start, 0.5, scores)
        results.append(scores)
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6, atol=1e-7)


@settings(max_examples=100)
@given(seeds, st.integers(1, 6), st.integers(1, 5))
def test_mark_hits(seed: int, n: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    Y, guesses = sparse(rng, n, 8), rng.integers(-1, 8, (n, k))
    results = []
    for engine in (jit_hits, hits):
        marks = np.full((n, k), 9, np.uint8)
        engine.mark_hits(Y.indptr, Y.indices, guesses, marks)
        results.append((engine.find_repeated(guesses), marks.tolist()))
    assert results[0] == results[1]


@settings(max_examples=50)
@given(seeds, st.integers(0, 6), st.integers(1, 20))
def test_weigh_evidence(seed: int, n: int, f: int) -> None:
    rng = np.random.default_rng(seed)
    evidence, weights = rng.standard_normal((n, f)).astype(np.float32), rng.standard_normal(f)
    found = np.full((2, n), np.nan)
    for engine, logits in zip((jit_stacking, stacking), found):
        engine.weigh_evidence(evidence, weights, 0.5, logits)
    np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-12)


@settings(max_examples=50)
@given(seeds, st.sampled_from([0, 1, 63, 64, 65, 200]), st.integers(1, 20))
def test_logistic_sums(seed: int, n: int, f: int) -> None:
    rng = np.random.default_rng(seed)
    evidence, weights = rng.normal(2, 3, (n, f)).astype(np.float32), rng.standard_normal(f + 1)
    pairs = evidence, rng.random(n) < 0.5, rng.random(n)
    found = np.full((2, f + 2, f + 1), np.nan)
    for engine, sums in zip((jit_stacking, stacking), found):
        engine.logistic_sums(*pairs, np.full(f, 2.0), np.full(f, 0.5), weights, sums[0], sums[1:])
    np.testing.assert_allclose(*found, rtol=1e-10, atol=1e-10)


@settings(max_examples=50)
@given(seeds, st.integers(0, 30), st.integers(1, 8), st.booleans())
def test_label_sums(seed: int, n: int, n_labels: int, is_weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    pairs = rng.normal(0, 5, n), rng.integers(0, n_labels, n), rng.random(n) < 0.5
    weights, found = rng.random(n if is_weighted else 0), np.ones((2, 3, n_labels))
    label_bias = rng.standard_normal(n_labels)
    for engine, sums in zip((jit_stacking, stacking), found):
        engine.label_sums(*pairs, weights, label_bias, sums)
    np.testing.assert_allclose(*found, rtol=1e-12)


@settings(max_examples=50)
@given(seeds, st.integers(1, 8), st.integers(1, 20))
def test_rows(seed: int, n: int, d: int) -> None:
    X = sparse(np.random.default_rng(seed), n, d)
    starts = np.concatenate(([0], np.cumsum(-(-np.diff(X.indptr) // 4) * 4)))
    found = []
    for engine in (jit_rows, rows):
        lengths, fingerprints, scaled = np.empty(n), np.empty(n), np.empty(X.nnz, np.float32)
        padded = np.zeros(starts[-1], np.uint16), np.zeros(starts[-1], np.float32)
        engine.row_lengths(X.indptr, X.data, lengths)
        engine.fingerprint_rows(X.indptr, X.indices, X.data, fingerprints)
        engine.scale_rows(X.indptr, X.data, lengths, scaled)
        engine.pad_rows(X.indptr, X.indices, X.data, starts, *padded)
        found.append((lengths, scaled, *padded, fingerprints))
    for jit, twin in zip(*(parts[:-1] for parts in found)):
        np.testing.assert_array_equal(jit, twin)
    np.testing.assert_allclose(found[0][-1], found[1][-1], rtol=1e-12)


@settings(max_examples=100)
@given(seeds, st.integers(2, 40), st.sampled_from([0.1, 0.25, 0.5]))
def test_split_by_labels(seed: int, n: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    Y = sparse(rng, n, 6, 0.2)
    order, frequency = rng.permutation(n), np.bincount(Y.indices, minlength=6)
    results = []
    for engine in (jit_split, split):
        held_out = np.zeros(n, np.uint8)
        engine.split_by_labels(Y.indptr, Y.indices, order, frequency, share, held_out)
        results.append(held_out.tolist())
    assert results[0] == results[1]
    kept = np.bincount(Y[np.flatnonzero(np.array(results[0]) == 0)].indices, minlength=6)
    assert not ((kept == 0) & (frequency > 1)).any()


@given(seed=seeds)
@settings(max_examples=20)
def test_gram_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = sparse(rng, int(rng.integers(1, 12)), int(rng.integers(1, 9)))
    At = A.T.tocsr()
    start = int(rng.integers(A.shape[0]))
    out = np.zeros((2, A.shape[0] - start, A.shape[0]), np.float32)
    for engine, filled in zip((jit_gram, gram), out):
        engine.gram_rows(A.indptr, A.indices, A.data, At.indptr, At.indices, At.data, start, filled)
    np.testing.assert_allclose(out[0], out[1], rtol=1e-5)
    np.testing.assert_allclose(out[0], np.tril((A @ A.T).toarray()[start:], start), rtol=1e-5)


@settings(max_examples=100)
@given(seeds, st.integers(0, 60), st.integers(0, 4), st.integers(1, 9), st.booleans())
@example(0, 60, 4, 3, True)
def test_sgns_pairs(seed: int, n_pairs: int, n_negative: int, rank: int, tied: bool) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    rows, columns = rng.integers(0, n, n_pairs), rng.integers(0, n, n_pairs)
    if tied:
        columns = (rows + rng.integers(1, n, n_pairs)) % n  # no row is its own context
    weights = rng.choice(np.array([0, 0.5, 1, 2], np.float32), n_pairs)
    negatives = rng.integers(0, n, (n_pairs, n_negative))
    start = rng.normal(size=(2, n, rank)).astype(np.float32)
    results = []
    for engine in (jit_sgns, sgns):
        vectors, contexts = start.copy()
        contexts = vectors if tied else contexts
        engine.sgns_pairs(rows, columns, weights, negatives, 0.3, 0.1, vectors, contexts, tied)
        results.append((vectors, contexts))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("engine", [jit_sgns, sgns])
def test_sgns_pairs_by_hand(engine: Any) -> None:
    vectors, contexts = np.array([[1.0, 0], [0, 0]], np.float32), np.array([[0, 2.0], [0, 0]], np.float32)
    pair = np.array([0]), np.array([1]), np.array([0.5], np.float32), np.array([[0, 0]])
    engine.sgns_pairs(*pair, 0.4, 0.4, vectors, contexts, False)  # all inner products are 0, and σ(0) = ½
    step = 0.4 * 0.5 / 2  # also where the negative is met again, which has moved by then
    np.testing.assert_allclose(contexts, [[-2 * step, 2], [step, 0]], rtol=1e-5)
    np.testing.assert_allclose(vectors, [[1 + step * step, -4 * step], [0, 0]], rtol=1e-5)


@pytest.mark.parametrize("engine", [jit_sgns, sgns])
def test_sgns_pairs_leaves_out_a_row_as_its_own_negative(engine: Any) -> None:
    start = np.array([[1, 0.5], [0.2, -1]], np.float32)
    pair = np.array([0]), np.array([1]), np.ones(1, np.float32)
    with_self, without = start.copy(), start.copy()
    engine.sgns_pairs(*pair, np.array([[0, 0]]), 0.1, 0.1, with_self, with_self, True)
    engine.sgns_pairs(*pair, np.zeros((1, 0), np.int64), 0.1, 0.1, without, without, True)
    np.testing.assert_array_equal(with_self, without)
    assert (without != start).all()


@settings(max_examples=60)
@given(seeds, st.integers(0, 12), st.integers(1, 9), st.integers(1, 5), st.sampled_from([0.5, 2.0, 10.0]))
@example(0, 12, 1, 3, 0.5)
def test_warp_rows(seed: int, n_rows: int, n_labels: int, rank: int, max_norm: float) -> None:
    rng = np.random.default_rng(seed)
    X, Y = sparse(rng, 6, 7), sparse(rng, 6, n_labels)
    rows = rng.integers(0, 6, n_rows)
    start = [rng.normal(size=(n, rank)).astype(np.float32) / 4 for n in (7, n_labels)]
    harmonic = np.concatenate([[0], np.cumsum(1 / np.arange(1, n_labels))]).astype(np.float32)
    results = []
    for engine in (jit_warp, warp):
        state, (V, H) = np.array([seed], np.uint64), (part.copy() for part in start)
        arrays = X.indptr, X.indices, X.data, Y.indptr, Y.indices
        engine.warp_rows(*arrays, rows, 0.3, 0.1, max_norm, harmonic, state, V, H)
        results.append((state, V, H))
    assert results[0][0] == results[1][0]  # as many numbers were drawn
    for one, other in zip(results[0][1:], results[1][1:]):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@settings(max_examples=100)
@given(seeds, st.integers(0, 20), st.integers(1, 6), st.integers(1, 8))
def test_expand_neighbors(seed: int, n: int, n_groups: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    group = rng.integers(0, n_groups, n)
    nearest = np.array([rng.permutation(n_groups) for _ in range(n_groups)])
    nearest[np.arange(n_groups) >= rng.integers(0, n_groups + 1, (n_groups, 1))] = -1
    starts = np.concatenate(([0], np.cumsum(np.bincount(group, minlength=n_groups))))
    members, draws = np.argsort(group, kind="stable"), rng.random(n)
    out = np.full((2, n, k), 99, np.int64)
    for engine, filled in zip((jit_neighbors, neighbors), out):
        engine.expand_neighbors(nearest, group, starts, members, draws, filled)
    np.testing.assert_array_equal(out[0], out[1])


@given(seed=seeds, k=st.integers(1, 5), budget=st.sampled_from([1, 3, 10, 10_000]))
@settings(max_examples=60)
def test_nearest_sets(seed: int, k: int, budget: int) -> None:
    rng = np.random.default_rng(seed)
    sets = csr_matrix(rng.random((20, 8)) < 0.3, dtype=np.float32)
    postings = sets.tocsc()
    weights = np.exp2(-rng.integers(0, 3, 20)).astype(np.float32)  # products are exact, and so are ties
    start, stop = 3, 18
    ids, scores = np.full((2, 20, k), -1, np.int64), np.full((2, 20, k), -np.inf, np.float32)
    draws = rng.random(20)
    for engine, best, score in zip((jit_topk, topk), ids, scores):
        engine.nearest_sets(
            sets.indptr,
            sets.indices,
            postings.indptr,
            postings.indices,
            weights,
            draws,
            budget,
            start,
            stop,
            best,
            score,
        )
    np.testing.assert_array_equal(ids[0], ids[1])
    np.testing.assert_array_equal(scores[0], scores[1])
    assert (ids[0][[0, 1, 2, 18, 19]] == -1).all()


@given(seed=seeds)
@settings(max_examples=20)
def test_adagrad_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, d, r = (int(rng.integers(1, size)) for size in (10, 12, 9))
    X, rows = sparse(rng, n, d), rng.integers(0, n, int(rng.integers(1, 8)))
    X.sort_indices()
    gradients = rng.normal(size=(len(rows), r)).astype(np.float32)
    start = int(rng.integers(d))
    stop = int(rng.integers(start, d)) + 1
    V = np.repeat(rng.normal(size=(1, d, r)).astype(np.float32), 2, axis=0)
    sums = np.repeat(
        rng.random((1, d, r), dtype=np.float32) * (rng.random((1, d, r)) < 0.7), 2, axis=0
    ).astype(np.float32)
    before = V[0].copy()
    for engine, v, s in zip((jit_joint, joint), V, sums):
        batch = (X.indptr, X.indices, X.data, rows, gradients)
        engine.adagrad_rows(*batch, start, stop, np.float32(0.1), v, s)
    np.testing.assert_allclose(V[0], V[1], atol=1e-5)
    np.testing.assert_allclose(sums[0], sums[1], rtol=1e-4, atol=1e-6)
    untouched = np.ones(d, bool)
    untouched[start:stop] = False
    np.testing.assert_array_equal(V[0][untouched], before[untouched])


@given(seed=seeds)
@settings(max_examples=20)
def test_embed_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, d, r, b = (int(rng.integers(1, size)) for size in (10, 12, 20, 8))
    X, rows, V = sparse(rng, n, d), rng.integers(0, n, b), rng.normal(size=(d, r)).astype(np.float32)
    for engine in (jit_joint, joint):
        Z = np.full((b, r), np.nan, np.float32)
        engine.embed_rows(X.indptr, X.indices, X.data, rows, V, Z)
        np.testing.assert_allclose(Z, (X @ V)[rows], atol=1e-4)


@given(seeds, st.integers(1, 4), st.sampled_from(["float32", "float16", "int8"]))
def test_multiply_packed(seed: int, n: int, storage: str) -> None:
    rng = np.random.default_rng(seed)
    X, columns = sparse(rng, n, 12), np.flatnonzero(rng.random(12) < 0.7)
    given = quantize.pack(rng.standard_normal((len(columns), 3)).astype(np.float32), storage)
    found = [np.empty((n, 3), np.float32) for _ in range(2)]
    for engine, Z in zip((jit_joint, joint), found):
        engine.multiply_packed(X.indptr, X.indices, X.data, columns, *given, Z)
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-5)


@given(seeds, st.integers(1, 9), st.integers(1, 9), st.booleans(), st.booleans())
def test_search_rows(seed: int, n: int, k: int, is_euclidean: bool, is_quantized: bool) -> None:
    rng = np.random.default_rng(seed)
    given = quantize.pack(
        rng.integers(-3, 4, (n, 4)).astype(np.float32), "int8" if is_quantized else "float16"
    )
    Q, bias = rng.integers(-3, 4, (5, 4)).astype(np.float32), np.where(rng.random(n) < 0.2, -np.inf, 0)
    found = []
    for engine in (jit_topk, topk):
        best = np.full((5, k), -1, np.int64), np.full((5, k), -np.inf, np.float32)
        engine.search_rows(Q, *given, bias.astype(np.float32), is_euclidean, *best)
        found.append(best)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-5, atol=1e-4)


@given(seeds, st.integers(0, 6), st.integers(1, 9))
def test_block_products(seed: int, n: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    A, Q = sparse(rng, n, m), rng.standard_normal((m, 3)).astype(np.float32)
    found = [np.full((n, 3), np.nan, np.float32) for _ in range(4)]
    for engine, (by_values, by_rows) in zip((jit_products, products), (found[:2], found[2:])):
        engine.multiply_csr(A.indptr, A.indices, A.data, Q, by_values)
        engine.multiply_dense(A.toarray(), Q, by_rows)
    for one in found[1:]:
        np.testing.assert_allclose(one, found[0], rtol=1e-4, atol=1e-5)


@given(seeds, st.integers(1, 4), st.integers(1, 9), *[st.booleans()] * 4)
def test_weigh_pairs(
    seed: int, n: int, k: int, second: bool, lifts: bool, similar: bool, matched: bool
) -> None:
    """Against the twin, and against the evidence that the regression is fitted on."""
    rng, none = np.random.default_rng(seed), np.zeros((0, 0), np.float32)
    parts = [(rng.random((n, k)) - 0.2).astype(np.float32) for _ in range(7)]
    margins = rng.normal(0, 3, (n, k)).astype(np.float32)
    margins[:, -1:] = parts[3][:, -1:] = -np.inf
    counts, has = rng.integers(0, 9, (n, k)), (second, lifts, similar, matched, matched)
    others = [part if given else none for part, given in zip(parts[1:], has)]
    given = [part if has else None for part, has in zip(parts[1:], has)]
    evidence = build_evidence(parts[0], margins, counts, *given)
    weights, limits = rng.normal(size=evidence.shape[2]), np.array([1e-4, 4, 1e-3], np.float32)
    found = [np.empty((n, k)) for _ in range(2)]
    for engine, logits in zip((jit_stacking, stacking), found):
        engine.weigh_pairs(parts[0], margins, counts.astype(float), *others, limits, weights, 0.3, logits)
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found[0], evidence.astype(float) @ weights + 0.3, rtol=1e-5, atol=1e-5)
    columns = rng.integers(0, k, (n, 3))
    some = build_evidence(parts[0], margins, counts, *given, columns=columns)
    np.testing.assert_array_equal(some, evidence[np.arange(n)[:, None], columns])


@given(seed=seeds)
@settings(max_examples=20)
def test_products_row_by_row(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, d, r = (int(rng.integers(size)) for size in (6, 12, 40))
    X, W = (rng.normal(size=shape).astype(np.float32) for shape in ((n, d), (d, r)))
    for engine in (jit_rows, rows):
        Z = np.full((n, r), np.nan, np.float32)
        engine.multiply_rows(X, W, Z)
        np.testing.assert_allclose(Z, X @ W, atol=1e-5)
        products = np.full((n, r), np.nan, np.float32)
        engine.inner_products(X, np.ascontiguousarray(W.T), products)
        np.testing.assert_allclose(products, X @ W, atol=1e-5)


@given(seed=seeds, gamma=st.sampled_from([1.0, 10.0, 300.0]))
@settings(max_examples=50)
def test_softmax_gradient(seed: int, gamma: float) -> None:
    rng = np.random.default_rng(seed)
    b, r = int(rng.integers(1, 20)), int(rng.integers(1, 9))
    start = int(rng.integers(b))
    stop = int(rng.integers(start, b)) + 1
    U = rng.normal(size=(2 * b, r)).astype(np.float32)
    weights = rng.choice(np.array([0, 0.5, 1], np.float32), (b, b))
    np.fill_diagonal(weights, 0)
    found = []
    for engine in (jit_joint, joint):
        by_rows, by_contexts = np.zeros((stop - start, r), np.float32), np.zeros((5, b, r), np.float32)
        given_ = U, weights, np.float32(gamma), start, stop, 4, by_rows, by_contexts
        found.append((engine.softmax_gradient(*given_), by_rows, by_contexts))
    for one, other in zip(*found):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3 * gamma)


@given(seed=seeds)
@settings(max_examples=50)
def test_negative_weights(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 15))
    b, neighbors = int(rng.integers(1, n + 1)), rng.integers(-1, n, (n, 3))
    rows, contexts, group = rng.permutation(n)[:b], rng.integers(0, n, b), rng.integers(0, n, n)
    found = []
    for engine in (jit_joint, joint):
        chain, weights = np.full((4, n), -1), np.full((b, b), np.nan, np.float32)
        engine.negative_weights(rows, contexts, neighbors, group, chain, weights)
        assert (chain == -1).all()
        found.append(weights)
    np.testing.assert_array_equal(*found)


class JointBatches:
    """What `train_batches` takes: several batches of rows, the last of them shorter."""

    def __init__(self, n_threads: int, is_cosine: bool = True) -> None:
        rng = np.random.default_rng(n_threads)
        n, d, r, b = 300, 40, 5, 100
        X = sparse(rng, n, d)
        X.sort_indices()
        self.V, self.squares = rng.normal(size=(d, r)).astype(np.float32), np.full((d, r), 0.1, np.float32)
        self.barrier, self.chain = np.zeros(24, np.int64), np.full((4, n), -1)
        neighbors, group = rng.integers(-1, n, (n, 3)), rng.integers(0, 150, n)
        shapes = (2 * b, r), (2 * b, r), 2 * b, b * b
        edges = np.linspace(0, d, n_threads + 1).astype(np.int64)
        self.arguments = (
            *(edges, self.barrier, X.indptr, X.indices, X.data),
            *(rng.permutation(n)[:250], rng.integers(0, n, 250), b, neighbors, group),
            *(np.float32(3), is_cosine, np.float32(0.1)),
            *(np.empty(shape, np.float32) for shape in shapes),
            *(self.chain, self.V, self.squares),
        )


@pytest.mark.parametrize("is_cosine", [True, False])
@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_train_batches(n_threads: int, is_cosine: bool) -> None:
    """The threads together do what the twin does on one."""
    found = []
    for engine in (jit_joint, joint):
        batches = JointBatches(n_threads, is_cosine)
        with ThreadPoolExecutor(n_threads) as pool:
            done = [pool.submit(engine.train_batches, i, *batches.arguments) for i in range(n_threads)]
            assert [future.result() for future in done] == [None] * n_threads
        assert (batches.chain == -1).all()
        found.append(batches)
    np.testing.assert_allclose(found[0].V, found[1].V, atol=1e-4)
    np.testing.assert_allclose(found[0].squares, found[1].squares, rtol=1e-3, atol=1e-5)


def test_a_cancelled_thread_does_not_wait_for_others() -> None:
    batches = JointBatches(2)
    before, batches.barrier[16] = batches.V.copy(), 1
    jit_joint.train_batches(0, *batches.arguments)
    np.testing.assert_array_equal(batches.V, before)


@given(seed=seeds)
@settings(max_examples=50)
def test_choose_cells(seed: int) -> None:
    rng = np.random.default_rng(seed)
    q, n, most = (int(rng.integers(1, size)) for size in (6, 30, 40))
    nearness = (rng.integers(-9, 10, (q, n)) / 8).astype(np.float32)  # many are equal
    most = min(most, n)
    fewest, margin = int(rng.integers(1, most + 1)), np.float32(rng.choice([0.25, 1, np.inf]))
    found = []
    for engine in (jit_topk, topk):
        chosen = np.full((q, most), -1)
        largest = engine.choose_cells(nearness, margin, fewest, chosen)
        assert largest == (chosen >= 0).sum(axis=1).max()
        found.append((np.sort(chosen[:, :4], axis=1), np.sort(chosen, axis=1)))
    for one, other in zip(*found):
        np.testing.assert_array_equal(one, other)


@given(seed=seeds)
@settings(max_examples=50)
def test_search_cells(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, r, q, k, n_cells = (int(rng.integers(1, size)) for size in (40, 20, 9, 12, 6))
    # Small whole numbers, so that sums are exact and many scores are equal.
    Q, rows = (rng.integers(-2, 3, (m, r)).astype(np.float32) for m in (q, n))
    bias = np.where(rng.random(n) < 0.2, -np.inf, rng.integers(-1, 2, n)).astype(np.float32)
    starts = np.concatenate(([0], np.sort(rng.integers(0, n + 1, n_cells - 1)), [n]))
    probes = np.argsort(rng.random((q, n_cells)), axis=1)[:, : int(rng.integers(1, n_cells + 1))]
    probes[np.arange(probes.shape[1]) >= rng.integers(1, n_cells + 1, (q, 1))] = -1
    found = []
    for engine in (jit_topk, topk):
        ids, scores = np.full((q, k), -1), np.full((q, k), -np.inf, np.float32)
        engine.search_cells(Q, probes, starts, rows, bias, ids, scores)
        found.append(scores)
        assert all(len(set(own[own >= 0])) == (own >= 0).sum() for own in ids)
        for own, ids_of_own, its_scores in zip(Q, ids, scores):
            is_found = ids_of_own >= 0
            near = ids_of_own[is_found]
            np.testing.assert_array_equal(rows[near] @ own + bias[near], its_scores[is_found])
            assert (np.diff(its_scores[is_found]) <= 0).all()
    np.testing.assert_array_equal(*found)


@given(seed=seeds, is_euclidean=st.booleans())
@settings(max_examples=50)
def test_rescore(seed: int, is_euclidean: bool) -> None:
    rng = np.random.default_rng(seed)
    n, r, q = (int(rng.integers(1, size)) for size in (30, 20, 6))
    Q, rows = (rng.integers(-2, 3, (m, r)).astype(np.float32) for m in (q, n))
    bias, numbers = rng.integers(-1, 2, n).astype(np.float32), rng.permutation(n)
    bias[rng.random(n) < 0.1] = -np.inf
    positions = np.array([rng.permutation(n) for _ in range(q)])[:, : int(rng.integers(1, n + 1))]
    positions[:, int(rng.integers(1, n + 1)) :] = -1
    found = []
    for engine in (jit_topk, topk):
        ids = np.where(positions >= 0, numbers[positions], -1)
        scores = np.where(positions >= 0, np.float32(0), np.float32(-np.inf))
        engine.rescore(Q, rows, bias, is_euclidean, positions, ids, scores)
        found.append((ids, scores))
    for one, other in zip(*found):
        np.testing.assert_array_equal(one, other)


@settings(max_examples=50)
@given(seeds, st.integers(0, 12), st.integers(1, 9), st.sampled_from([0.0, 0.3, 50.0]))
def test_ftrl_rows(seed: int, n: int, n_parts: int, l1: float) -> None:
    rng = np.random.default_rng(seed)
    X = sparse(rng, n, int(rng.integers(1, 12)))
    order, targets = rng.permutation(np.repeat(np.arange(n), 2)), rng.integers(0, n_parts, n)
    results = []
    for engine in (jit_gate, gate):
        state = tuple(np.zeros((X.shape[1], n_parts), np.float32) for _ in range(3))
        step = np.float32(0.7), np.float32(l1)
        engine.ftrl_rows(X.indptr, X.indices, X.data, order, targets, *step, *state)
        results.append(state)
    for fast, slow in zip(*results):
        np.testing.assert_allclose(fast, slow, rtol=1e-4, atol=1e-5)
    assert l1 < 50 or not results[0][0].any()


@pytest.mark.parametrize("engine", [jit_gate, gate])
def test_ftrl_rows_by_hand(engine: Any) -> None:
    X = csr_matrix(np.array([[2, 0.1, 0], [0, 0, 0], [1, 0, 0]], np.float32))
    W, z, squares = (np.zeros((3, 2), np.float32) for _ in range(3))
    step = np.array([1, 1, 0]), np.float32(0.5), np.float32(0.2)
    engine.ftrl_rows(X.indptr, X.indices, X.data, np.array([0, 1]), *step, W, z, squares)
    # Both parts have the share ½, so g = ±x/2 = ±1 and ±0.05, and 0.05 is below l1; zeros teach nothing.
    np.testing.assert_allclose(z, [[1, -1], [0.05, -0.05], [0, 0]], rtol=1e-6)
    np.testing.assert_allclose(squares, [[1, 1], [0.0025, 0.0025], [0, 0]], rtol=1e-6)
    np.testing.assert_allclose(W, [[-0.2, 0.2], [0, 0], [0, 0]], rtol=1e-6)  # ∓(1 − 0.2)/((1 + 1)/0.5)
    engine.ftrl_rows(X.indptr, X.indices, X.data, np.array([2]), *step, W, z, squares)
    g = 1 / (1 + np.exp(-0.4))  # the share of part 1, where the row does not belong
    root = np.sqrt(1 + g**2)
    moved = 1 - g + 0.2 * (root - 1) / 0.5
    np.testing.assert_allclose(z[0], [moved, -moved], rtol=1e-5)
    np.testing.assert_allclose(W[0, 1], (moved - 0.2) / ((1 + root) / 0.5), rtol=1e-5)


@given(seed=seeds)
@settings(max_examples=50)
def test_collect_and_merge_examples(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, n_labels, k = (int(rng.integers(1, size)) for size in (12, 9, 6))
    Y, more = sparse(rng, n, n_labels), sparse(rng, n, n_labels)
    listed = np.array([rng.permutation(np.arange(-1, n_labels))[:k] for _ in range(n)], np.int32)
    middle = int(rng.integers(0, n + 1))
    found = []
    for engine in (jit_rerank, rerank):

        def collect(position: np.ndarray, rows: np.ndarray, signs: np.ndarray, engine: Any = engine) -> None:
            for first, last in ((0, middle), (middle, n)):
                given_ = Y.indptr[first : last + 1], Y.indices, listed[first:last]
                further = more.indptr[first : last + 1], more.indices
                engine.collect_examples(first, *given_, *further, position, rows, signs)

        ends = np.zeros(n_labels, np.int64)
        collect(ends, np.zeros(0, np.int32), np.zeros(0, np.int8))
        starts = np.concatenate(([0], np.cumsum(ends)))
        rows, signs = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.int8)
        collect(starts[:-1].copy(), rows, signs)
        found.append((starts, rows, signs))
    for one, other in zip(*found):
        np.testing.assert_array_equal(one, other)
    # Some of the examples were there before; some of these are added again.
    starts, rows, signs = found[0]
    label = np.repeat(np.arange(n_labels), np.diff(starts))
    was_there = rng.random(len(rows)) < 0.5
    is_added = ~was_there | (rng.random(len(rows)) < 0.3)

    def starts_of(chosen: np.ndarray) -> np.ndarray:
        return np.concatenate(([0], np.cumsum(np.bincount(label[chosen], minlength=n_labels))))

    before = rng.random(was_there.sum()).astype(np.float32)
    earlier = (starts_of(was_there), rows[was_there], signs[was_there])
    added = (starts_of(is_added), rows[is_added], signs[is_added])
    expected = np.zeros(len(rows), np.float32)
    expected[was_there] = before
    n_given = was_there.sum() + is_added.sum()
    for engine in (jit_rerank, rerank):
        merged = np.zeros_like(starts), *(np.zeros(n_given, kind) for kind in (np.int32, np.int8, np.float32))
        engine.merge_examples(*earlier, before, *added, *merged)
        np.testing.assert_array_equal(merged[0], starts)
        for one, other in zip(merged[1:], (rows, signs, expected)):
            np.testing.assert_array_equal(one[: len(rows)], other)
        counted = np.zeros_like(starts)
        engine.merge_examples(*earlier, before, *added, counted, *(one[:0] for one in merged[1:]))
        np.testing.assert_array_equal(counted, starts)
    # Of some labels, those that are trained again are selected.
    alphas = rng.integers(-1, 2, len(rows)).astype(np.float32)
    labels, is_live = np.flatnonzero(rng.integers(0, 2, n_labels)), rng.random(n) < 0.7
    selected = []
    for engine in (jit_rerank, rerank):
        ends, own = np.zeros(len(labels) + 1, np.int64), [np.zeros(len(rows), np.int64) for _ in range(4)]
        given_ = starts, rows, signs, alphas, labels, is_live, ends
        engine.select_examples(*given_, *(values[:0] for values in own))
        counted = ends.copy()
        engine.select_examples(*given_, *own)
        np.testing.assert_array_equal(counted, ends)
        selected.append([ends.tolist(), *(values.tolist() for values in own)])
    assert selected[0] == selected[1]
    chosen = ((signs > 0) | (alphas >= 0)) & is_live[rows] & np.isin(label, labels)
    assert selected[0][1][: chosen.sum()] == np.flatnonzero(chosen).tolist()


@given(
    seed=seeds,
    is_logistic=st.booleans(),
    is_warm=st.booleans(),
    n_new_epochs=st.integers(0, 4),
    n_epochs=st.integers(1, 30),
)
@settings(max_examples=30)
def test_train_labels(seed: int, is_logistic: bool, is_warm: bool, n_new_epochs: int, n_epochs: int) -> None:
    rng = np.random.default_rng(seed)
    n, n_labels = 12, 4
    sizes = rng.integers(0, n, n_labels)
    rows = np.concatenate([rng.permutation(n)[:size] for size in sizes]).astype(np.int32)
    compare_trained(rng, sparse(rng, n, 9), sizes, rows, is_logistic, is_warm, n_new_epochs, n_epochs)


def test_train_a_label_with_more_values_than_are_copied() -> None:
    rng = np.random.default_rng(0)
    n, d = 1_100, 240
    assert n * d > jit_rerank.MAX_COPIED
    X = csr_matrix(rng.uniform(0.1, 1, (n, d)).astype(np.float32) / d**0.5)
    rows = np.tile(np.arange(n, dtype=np.int32), 2)
    compare_trained(rng, X, np.array([n, n]), rows, False, False, 0, 2)


def compare_trained(
    rng: np.random.Generator,
    X: csr_matrix,
    sizes: np.ndarray,
    rows: np.ndarray,
    is_logistic: bool,
    is_warm: bool,
    n_new_epochs: int,
    n_epochs: int,
) -> None:
    """Train all labels but the first with both engines, and compare their weights and dual variables.

    An example leaves the active set when its gradient exceeds the largest one of the last pass, which may
    be its own. Where such a decision hangs on rounding, so that the slow twin itself takes another path with
    slightly different values, the engines may take different paths too, until both have converged.

    sizes : number of examples of each label;  rows : of all examples
    """
    (n, d), n_trained = X.shape, len(sizes) - 1
    starts = np.concatenate(([0], np.cumsum(sizes)))
    signs = rng.choice(np.array([-1, 1], np.int8), len(rows))
    costs = rng.uniform(0.1, 3, n).astype(np.float32)
    start = costs[rows] * is_warm * rng.choice(np.array([0, 0.1, 0.9], np.float32), len(rows))

    def train(engine: Any, X: csr_matrix, n_epochs: int) -> tuple[np.ndarray, np.ndarray]:
        w, scale, bias = (np.zeros(length, np.float32) for length in (d, n_trained, n_trained))
        size, alphas = n_trained * d + 1, start.copy()
        out = np.zeros(n_trained + 1, np.int64), np.zeros(size, np.int32), np.zeros(size, np.int8)
        examples = (starts, rows, signs, costs, 1, n_trained + 1)
        settings_ = (is_logistic, n_new_epochs, n_epochs, np.float32(1e-3), np.float32(0))
        engine.train_labels(*pad_rows(X)[:4], *examples, *settings_, alphas, w, *out, scale, bias)
        assert not w.any()
        dense = np.zeros((n_trained, d))
        for label in range(n_trained):
            here = slice(out[0][label], out[0][label + 1])
            dense[label, out[1][here]] = out[2][here] * scale[label]
        return np.hstack([dense, bias[:, None]]), alphas

    def differ(one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]) -> bool:
        return any(np.abs(a - b).max(initial=0) > most for a, b, most in zip(one, other, (0.02, 0.05)))

    def hangs_on_rounding(found: tuple[np.ndarray, np.ndarray]) -> bool:
        for _ in range(8):
            near = X.copy()
            near.data = near.data * (1 + rng.uniform(-1e-6, 1e-6, X.nnz)).astype(np.float32)
            if differ(train(rerank, near, n_epochs), found):
                return True
        return False

    expected = train(rerank, X, n_epochs)
    if differ(train(jit_rerank, X, n_epochs), expected):
        assert hangs_on_rounding(expected)
        assert not differ(train(jit_rerank, X, 300), train(rerank, X, 300))


@given(seed=seeds, keep_from=st.sampled_from([0, 0.3]))
@settings(max_examples=30)
def test_average_rows(seed: int, keep_from: float) -> None:
    rng = np.random.default_rng(seed)
    n, d, n_labels = 12, 9, 4
    sizes = rng.integers(0, n, n_labels)
    starts, rows = np.concatenate(([0], np.cumsum(sizes))), rng.integers(0, n, sizes.sum())
    X, n_averaged = pad_rows(sparse(rng, n, d)), n_labels - 1
    factors, idf = (rng.uniform(0.5, 2, length).astype(np.float32) for length in (n, d))
    found = []
    for engine in (jit_rerank, rerank):
        w, scale, size = np.zeros(d, np.float32), np.zeros(n_averaged, np.float32), n_averaged * d + 1
        out = np.zeros(n_averaged + 1, np.int64), np.zeros(size, np.int32), np.zeros(size, np.int8)
        given_ = starts, rows, factors, idf, 1, n_labels, np.float32(keep_from)
        engine.average_rows(*X[:3], *given_, w, *out, scale)
        assert not w.any()
        m = out[0][-1]
        quantized = csr_matrix((out[2][:m].astype(int), out[1][:m], out[0]), (n_averaged, d)).toarray()
        found.append((quantized, scale))
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-5)
    for label, (weights, factor) in enumerate(zip(*found[0]), 1):
        own = rows[starts[label] : starts[label + 1]]
        dense = csr_matrix((X.values, X.features, X.starts), (n, d)).toarray()[own]
        mean = factors[own] @ dense * idf
        mean *= idf / max(np.linalg.norm(mean), 1e-9)
        mean[np.abs(mean) <= keep_from * np.abs(mean).max()] = 0
        np.testing.assert_allclose(weights * factor, mean, atol=np.abs(mean).max() / 127 + 1e-6)


@given(seed=seeds)
@settings(max_examples=30)
def test_group_by_feature(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_labels, d = 5, 7
    W = sparse(rng, n_labels, d)
    values = rng.integers(-127, 128, W.nnz).astype(np.int8)
    given_ = 1, W.indptr[1:5].astype(np.int64), W.indices.astype(np.int32), values  # labels 1 to 3
    dense_slot = np.array([-1, 0, -1, -1, 1, -1, -1], np.int32)
    label = np.repeat(np.arange(n_labels), np.diff(W.indptr))
    is_grouped = (label >= 1) & (label < 4)
    is_sparse = is_grouped & (dense_slot[W.indices] < 0)
    results = []
    for engine in (jit_rerank, rerank):
        counts = np.zeros(d, np.int64)
        none = np.empty(0, np.uint16), np.empty(0, np.int8), np.empty((0, 0), np.int8)
        engine.group_by_feature(*given_, np.empty(0, np.int32), counts, *none)
        np.testing.assert_array_equal(counts, np.bincount(W.indices[is_grouped], minlength=d))
        starts = np.concatenate(([0], np.cumsum(np.bincount(W.indices[is_sparse], minlength=d))))
        out = np.zeros(starts[-1], np.uint16), np.zeros(starts[-1], np.int8), np.zeros((2, n_labels), np.int8)
        engine.group_by_feature(*given_, dense_slot, starts[:-1].copy(), *out)
        results.append([array.tolist() for array in out])
        dense = csr_matrix((values * is_grouped, W.indices, W.indptr), shape=W.shape).toarray()
        np.testing.assert_array_equal(out[2], dense[:, [1, 4]].T)
        for f in np.unique(W.indices[is_sparse]):
            here = slice(starts[f], starts[f + 1])
            np.testing.assert_array_equal(out[1][here], dense[out[0][here], f])
    assert results[0] == results[1]


def test_shrinking_has_the_same_margin() -> None:
    assert np.float32(rerank.SHRINK_MARGIN) == jit_rerank.SHRINK_MARGIN


@given(seed=seeds)
@settings(max_examples=20)
def test_score_labels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, W = sparse(rng, 6, 9), sparse(rng, 9, 5)
    dense_slot = np.array([-1, 0, -1, -1, 1, -1, -1, -1, -1], np.int32)
    W = csr_matrix(W.multiply(dense_slot[:, None] < 0))
    values, dense = (rng.integers(-127, 128, size).astype(np.int8) for size in (W.nnz, (2, 5)))
    scale, bias = rng.random(5, dtype=np.float32), rng.random(5, dtype=np.float32)
    ids = rng.integers(-1, 5, (6, 4))
    out = np.empty((2, 6, 4), np.float32)
    for engine, filled in zip((jit_rerank, rerank), out):
        totals = np.zeros(5, np.float32)
        weights = (W.indptr.astype(np.int64), W.indices.astype(np.uint16), values, dense, dense_slot)
        engine.score_labels(X.indptr, X.indices, X.data, *weights, scale, bias, totals, ids, filled)
        assert not totals.any()
    np.testing.assert_allclose(out[0], out[1], rtol=1e-4, atol=1e-4)


@given(seed=seeds)
@settings(max_examples=20)
def test_pair_products(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pattern, rank = sparse(rng, 9, 6), int(rng.integers(1, 8))
    A, B = (rng.normal(size=(n, rank)).astype(np.float32) for n in (9, 6))
    start = int(rng.integers(0, 9))
    products = np.zeros((2, pattern.nnz - pattern.indptr[start]), np.float32)
    for out, engine in zip(products, (jit_pairs, pairs)):
        engine.pair_products(pattern.indptr, pattern.indices, A, B, start, out)
    np.testing.assert_allclose(products[0], products[1], rtol=1e-4, atol=1e-5)
    rows, columns = pattern.nonzero()
    of_rows = rows >= start
    np.testing.assert_allclose(products[1], (A @ B.T)[rows, columns][of_rows], rtol=1e-4, atol=1e-5)


@given(seed=seeds, is_squared=st.booleans(), l1=st.sampled_from([0.0, 0.1, 1.0]))
@settings(max_examples=20)
def test_train_hinge(seed: int, is_squared: bool, l1: float) -> None:
    rng = np.random.default_rng(seed)
    n, d, n_labels = 14, 7, 4
    X, Y = sparse(rng, n, d), csc_matrix(rng.random((n, n_labels)) < 0.3)
    by_feature, squares = X.tocsc(), np.asarray(X.multiply(X).sum(axis=1), np.float32).ravel()
    rows_ = X.indptr, X.indices, X.data, squares, by_feature.indptr, by_feature.indices, by_feature.data
    slack, most = (0.5, np.inf) if is_squared else (0.0, 1.0)
    limits = (*(np.float32(slack), np.float32(most), np.float32(l1)), 5, 2_000, np.float32(1e-4))
    found = []
    for engine in (jit_hinge, hinge):
        out = np.zeros(4, np.int64), np.zeros(3 * d, np.int32), np.zeros(3 * d, np.float32)
        bias = np.zeros(3, np.float32)
        engine.train_hinge(*rows_, Y.indptr, Y.indices, 1, n_labels, *limits, *out, bias)
        m = out[0][-1]
        W = csr_matrix((out[2][:m], out[1][:m], out[0]), (3, d)).toarray()
        found.append(np.hstack([W, bias[:, None]]))
    np.testing.assert_allclose(*found, atol=0.02)


def test_hinge_adds_as_many_examples() -> None:
    assert hinge.LEAST_ADDED == jit_hinge.LEAST_ADDED


@given(seed=seeds, l1=st.sampled_from([0.05, 0.2]), is_dense=st.booleans())
@settings(max_examples=20)
def test_train_max_margin(seed: int, l1: float, is_dense: bool) -> None:
    compare_max_margin(seed, 12, l1, is_dense)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_select", [1, 2])
def test_train_max_margin_where_few_labels_join(seed: int, n_select: int) -> None:
    """Labels whose scores are nearly equal may take the place of each other, so that the seeds are fixed."""
    compare_max_margin(seed, n_select, 0.1, True)


def test_max_margin_has_the_same_constants() -> None:
    for name in ("LEAST_VIOLATION", "LEAST_ALPHA"):
        assert np.float32(getattr(max_margin, name)) == getattr(jit_max_margin, name)


def compare_max_margin(seed: int, n_select: int, l1: float, is_dense: bool) -> None:
    rng = np.random.default_rng(seed)
    n, d, n_labels = 8, 6, 12
    X, Y = sparse(rng, n, d), csr_matrix(rng.random((n, n_labels)) < 0.3)
    squares = np.asarray(X.multiply(X).sum(axis=1), np.float32).ravel()
    orders = [rng.integers(0, n, size).astype(np.int32) for size in (20, 0, 5)]
    found = []
    for engine in (jit_max_margin, max_margin):
        sets, scores = start_max_margin(Y), np.zeros(n_labels, np.float32)
        for order in orders:  # also from dual variables that are not 0
            given_ = X.indptr, X.indices, X.data, squares, order, d, n_select
            limits = 1.0, np.float32(l1), 1_000 if is_dense else 0, 7
            engine.train_max_margin(*given_, *limits, *sets, scores)
        assert not scores.any()
        A = np.zeros((n, n_labels))
        for row in range(n):
            own = slice(sets.starts[row], sets.starts[row] + sets.counts[row])
            A[row, sets.labels[own]] = sets.alphas[own]
        found.append(A)
    np.testing.assert_allclose(*found, atol=1e-4)


@given(seed=seeds)
@settings(max_examples=20)
def test_merge_weights(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, n_labels = 9, 6
    before, added = sparse(rng, d, n_labels), sparse(rng, d, n_labels)
    is_replaced = rng.integers(0, 2, n_labels).astype(np.uint8)
    added = csr_matrix(added.multiply(is_replaced == 1))
    added.eliminate_zeros()
    parts = [
        (A.indptr.astype(np.int64), A.indices.astype(np.uint16), rng.integers(1, 99, A.nnz).astype(np.int8))
        for A in (before, added)
    ]
    dense = [csr_matrix((p[2], p[1], p[0]), (d, n_labels)).toarray() for p in parts]
    m = before.nnz + added.nnz
    results = []
    for engine in (jit_rerank, rerank):
        # At some place among other weights, whose neighbours stay as they are.
        ends, labels, values = np.full(d + 1, 2), np.full(m + 9, 99, np.uint16), np.full(m + 9, 99, np.int8)
        given = *parts[0], is_replaced, *parts[1], ends
        engine.merge_weights(*given, labels[:0], values[:0])
        starts = ends.copy()
        engine.merge_weights(*given, labels, values)
        np.testing.assert_array_equal(ends, starts)
        for out in (labels, values):
            assert (out[:2] == 99).all()
            assert (out[ends[-1] :] == 99).all()
        results.append([ends.tolist(), labels.tolist(), values.tolist()])
        own = slice(2, ends[-1])
        merged = csr_matrix((values[own], labels[own], ends - 2), (d, n_labels)).toarray()
        np.testing.assert_array_equal(merged, np.where(is_replaced == 1, dense[1], dense[0]))
    assert results[0] == results[1]


def nodes_of(rng: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
    """Rows in any order, and where those of two nodes are; some rows belong to none."""
    cuts = np.sort(rng.integers(0, n + 1, 3))
    return rng.permutation(n), cuts[:2], cuts[1:]


@given(seed=seeds)
@settings(max_examples=40)
def test_assign_sides(seed: int) -> None:
    rng = np.random.default_rng(seed)
    Y = sparse(rng, 30, 8) + csr_matrix(np.eye(8, dtype=np.float32)[rng.integers(0, 8, 30)])
    gains = rng.random(8) + 0.1  # without ties, which the last bits of sums would decide
    nodes, states = nodes_of(rng, 30), rng.integers(2**63, size=2, dtype=np.uint64)
    n_rounds, sides = int(rng.integers(0, 20)), np.full((2, 30), 5, np.int8)
    discounts = 1 / np.log2(np.arange(2, 10))
    for out, engine in zip(sides, (jit_trees, trees)):
        engine.assign_sides(Y.indptr, Y.indices, gains, discounts, *nodes, states, n_rounds, out)
    np.testing.assert_array_equal(sides[0], sides[1])
    inside = np.zeros(30, bool)
    inside[nodes[1][0] : nodes[2][1]] = True
    assert set(sides[0][inside]) <= {0, 1}
    assert set(sides[0][~inside]) <= {5}


@given(seed=seeds)
@settings(max_examples=40)
def test_fit_separators(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, sides = sparse(rng, 30, 8), rng.integers(0, 2, 30).astype(np.int8)
    rows, begins, ends = nodes_of(rng, 30)
    costs = rng.random(2) + 0.5
    found = []
    for engine in (jit_trees, trees):
        starts, bias, margins = np.zeros(3, np.int64), np.zeros(2, np.float32), np.full(30, 9.0)
        features, weights = np.zeros(30 * 8, np.int32), np.zeros(30 * 8, np.float32)
        engine.fit_separators(
            *(
                X.indptr,
                X.indices,
                X.data,
                8,
                rows,
                sides,
                begins,
                ends,
                costs,
                1e-9,
                20,
            ),  # without stopping early, which the last bits would decide
            *(starts, features, weights, bias, margins),
        )
        found.append((starts, features[: starts[2]], weights[: starts[2]], bias, margins))
    for one, other in zip(*found):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    assert (found[0][4][: begins[0]] == 9).all()


@given(seed=seeds)
@settings(max_examples=20)
def test_route_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, n_nodes = sparse(rng, 9, 6), 5
    separators = sparse(rng, n_nodes, 6, 0.5)
    separators.data -= 0.5
    # A node's children are later nodes or leaves; the last tree is a leaf alone.
    children = np.array(
        [[rng.choice([-1 - node, node + 1]) for _ in range(2)] for node in range(n_nodes - 1)]
    )
    children = np.vstack([children, [[-8, -9]]])
    roots, bias = np.array([0, 2, -3]), (rng.random(n_nodes) - 0.5).astype(np.float32)
    weights = separators.indptr.astype(np.int64), separators.indices.astype(np.int32), separators.data
    leaves, x = np.zeros((2, 9, 3), np.int64), np.zeros(6, np.float32)
    for out, engine in zip(leaves, (jit_trees, trees)):
        engine.route_rows(X.indptr, X.indices, X.data, roots, children, *weights, bias, x, out)
        assert not x.any()
    np.testing.assert_array_equal(leaves[0], leaves[1])
    assert (leaves[0][:, 2] == 2).all()
