"""The kernels of the graphics card give what their twins give: compiled for the CPU, or on a card.

With EXMLDS_TEST_CARD=1 the same tests run on the card of this machine.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix, hstack, random_array
from sklearn.base import clone

from exmlds import DataError, ExMLDS, ExMLDS1, ExMLDS4, FeatureNeighbors, Partitioned, TextClassifier, load
from exmlds.data import make_xmc
from exmlds.kernels import CARD, DEFAULT, OPERATIONS, Engine
from exmlds.kernels.cuda import device, joint, topk
from exmlds.kernels.reference import rerank as reference
from exmlds.stages import quantize, rerank
from exmlds.stages.rerank import pad_rows

from .cuda_on_cpu import COMPILER, CardOnCPU

TWIN = Engine("reference")


@pytest.fixture
def card(built: Any) -> Iterator[Any]:
    """The card, or the CPU in its place for the time of a test."""
    if isinstance(built, CardOnCPU):
        device.use(built)
    yield built
    device.use(None)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if os.environ.get("EXMLDS_TEST_CARD"):
        yield device.current()
        return
    if COMPILER is None:
        pytest.skip("there is neither a graphics card nor a C++ compiler")
    yield CardOnCPU(tmp_path_factory.mktemp("cuda"))


def sparse(rng: np.random.Generator, n: int, d: int, density: float = 0.3) -> csr_matrix:
    made = csr_matrix(random_array((n, d), density=density, random_state=rng, dtype=np.float32, format="csr"))
    made.sort_indices()
    return made


def same_best(found: tuple[np.ndarray, np.ndarray], twin: tuple[np.ndarray, np.ndarray]) -> None:
    """Equal ids, but where scores are equal up to rounding."""
    np.testing.assert_allclose(found[1], twin[1], rtol=1e-5, atol=1e-6)
    different = found[0] != twin[0]
    assert different.mean() < 0.02


@pytest.mark.parametrize(
    ("n", "r", "k", "storage"), [(40, 5, 7, "float32"), (3_000, 20, 10, "float16"), (9, 4, 12, "int8")]
)
@pytest.mark.parametrize("is_euclidean", [False, True])
def test_search_rows(card: Any, n: int, r: int, k: int, storage: str, is_euclidean: bool) -> None:
    rng = np.random.default_rng(n)
    rows, Q = (rng.standard_normal((m, r)).astype(np.float32) for m in (n, 6))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    scale = np.zeros(0, np.float32)
    if storage == "int8":
        scale = np.full(n, 1 / 127, np.float32)
        rows = np.rint(rows * 127).astype(np.int8)
    rows = rows.astype(storage)
    bias = np.zeros(n, np.float32)
    if is_euclidean:
        bias = -np.square(rows.astype(np.float32) * (1 / 127 if len(scale) else 1)).sum(axis=1)
    bias[::5] = -np.inf
    results = []
    for engine in (CARD, TWIN):
        positions, scores = np.full((6, k), -1, np.int64), np.full((6, k), -np.inf, np.float32)
        engine.search_rows(Q, rows, scale, bias, is_euclidean, positions, scores)
        exact = rows.astype(np.float32) * (scale[:, None] if len(scale) else 1)
        ids = positions.copy()
        engine.rescore(Q, exact, bias, is_euclidean, positions, ids, scores)
        results.append((ids, scores))
    same_best(*results)


@pytest.mark.parametrize(("seed", "m", "k"), [(0, 8, 5), (1, 40, 30), (2, 3, 50)])
def test_vote(card: Any, seed: int, m: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    Y = sparse(rng, 60, 25, 0.15)
    neighbors = rng.integers(-1, 60, (9, m))
    weights = (rng.random((9, m)) * (rng.random((9, m)) < 0.8)).astype(np.float32)
    weights[3] = 0
    results = []
    for engine in (CARD, TWIN):
        ids, shares = np.full((9, k), -1, np.int64), np.zeros((9, k), np.float32)
        engine.vote(neighbors, weights, Y.indptr, Y.indices, 25, ids, shares)
        results.append((ids, shares))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


def test_a_query_with_very_many_votes(card: Any) -> None:
    Y = csr_matrix(np.ones((200, 60), np.float32))
    neighbors, weights = np.arange(200)[None], np.ones((1, 200), np.float32)
    ids, shares = np.full((1, 3), -1, np.int64), np.zeros((1, 3), np.float32)
    CARD.vote(neighbors, weights, Y.indptr, Y.indices, 60, ids, shares)
    assert (ids.tolist(), shares.tolist()) == ([[0, 1, 2]], [[1, 1, 1]])


@pytest.mark.parametrize(("seed", "k"), [(0, 4), (1, 40)])
def test_sparse_topk(card: Any, seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    X, Q = sparse(rng, 50, 20), sparse(rng, 7, 20)
    postings = csr_matrix(X.T)
    bias = np.zeros(50, np.float32)
    bias[::7] = -np.inf
    results = []
    for engine in (CARD, TWIN):
        ids, scores = np.full((7, k), -1, np.int64), np.full((7, k), -np.inf, np.float32)
        given = Q.indptr, Q.indices, Q.data, postings.indptr, postings.indices, postings.data
        engine.sparse_topk(*given, bias, 10, ids, scores)
        results.append((ids, scores))
    same_best(*results)


@pytest.mark.parametrize("storage", ["float32", "float16", "int8"])
def test_multiply_packed(card: Any, storage: str) -> None:
    rng = np.random.default_rng(0)
    X, columns = sparse(rng, 12, 40), np.flatnonzero(rng.random(40) < 0.7)
    packed = quantize.pack(rng.standard_normal((len(columns), 5)).astype(np.float32), storage)
    found = [np.full((12, 5), np.nan, np.float32) for _ in range(2)]
    for engine, Z in zip((CARD, TWIN), found):
        engine.multiply_packed(X.indptr, X.indices, X.data, columns, *packed, Z)
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-5)


def test_products(card: Any) -> None:
    rng = np.random.default_rng(3)
    A, Q = sparse(rng, 9, 30), rng.standard_normal((30, 6)).astype(np.float32)
    found = [np.full((9, 6), np.nan, np.float32) for _ in range(4)]
    for engine, (by_values, by_rows) in zip((CARD, TWIN), (found[:2], found[2:])):
        engine.multiply_csr(A.indptr, A.indices, A.data, Q, by_values)
        engine.multiply_dense(A.toarray(), Q, by_rows)
    for one in found[1:]:
        np.testing.assert_allclose(one, found[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("is_full", [True, False])
def test_weigh_pairs(card: Any, is_full: bool) -> None:
    given = lists_of_pairs(np.random.default_rng(0), 7, 40, is_full)
    found = [np.empty((7, 40)) for _ in range(2)]
    for engine, logits in zip((CARD, TWIN), found):
        engine.weigh_pairs(*given, logits)
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-5)


def lists_of_pairs(rng: np.random.Generator, n: int, k: int, is_full: bool) -> tuple[Any, ...]:
    """The arguments of `weigh_pairs`."""
    none = np.zeros((0, 0), np.float32)
    votes, second, lifts, matches, match_lifts = (rng.random((5, n, k)) - 0.2).astype(np.float32)
    margins, similar = rng.normal(0, 3, (2, n, k)).astype(np.float32)
    margins[:, -3:] = similar[:, -3:] = -np.inf
    counts = rng.integers(0, 9, (n, k)).astype(float)
    others = (second, lifts, similar, matches, match_lifts) if is_full else (none,) * 5
    limits, weights = np.array([1e-4, 4, 1e-3], np.float32), rng.normal(size=34 if is_full else 12)
    return votes, margins, counts, *others, limits, weights, 0.3


@pytest.mark.parametrize("is_cosine", [True, False])
@pytest.mark.parametrize(("n", "batch_size"), [(30, 8), (70, 64)])
def test_train_batches(card: Any, n: int, batch_size: int, is_cosine: bool) -> None:
    rng = np.random.default_rng(n)
    X, rank = sparse(rng, n, 40, 0.2), 6
    neighbors = rng.integers(-1, n, (n, 4))
    group, rows = rng.integers(0, n // 2, n), rng.permutation(n)
    contexts = rng.integers(0, n, n)
    start = rng.standard_normal((40, rank)).astype(np.float32), rng.random((40, rank)).astype(np.float32)
    results = []
    for engine in (CARD, TWIN):
        V, squares = (part.copy() for part in start)
        b = min(batch_size, n)
        work = [np.empty(shape, np.float32) for shape in ((2 * b, rank), (2 * b, rank), 2 * b, b * b)]
        given = X.indptr, X.indices, X.data, rows, contexts, batch_size, neighbors, group
        settings = np.float32(5), is_cosine, np.float32(0.1)
        edges, barrier, chain = np.array([0, 40]), np.zeros(24, np.int64), np.full((4, n), -1)
        engine.train_batches(0, edges, barrier, *given, *settings, *work, chain, V, squares)
        results.append((V, squares))
    for found, twin in zip(*results):
        np.testing.assert_allclose(found, twin, rtol=2e-3, atol=2e-4)


def dual_objective(X: csr_matrix, given: Any, alphas: np.ndarray, cost: float) -> float:
    """Of the squared hinge: Σ α − ‖w‖²/2 − b²/2 − Σ α²/(4 C), over all labels."""
    total = 0.0
    for first, last in zip(given.starts[:-1], given.starts[1:]):
        own = slice(first, last)
        signed = (alphas[own] * given.signs[own]).astype(float)
        w, bias = X[given.rows[own]].T @ signed, signed.sum()
        total += alphas[own].sum() - (w @ w + bias**2) / 2 - np.square(alphas[own]).sum() / (4 * cost)
    return total


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("room", [10**9, 2_000])
def test_train_labels(card: Any, loss: str, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X, Y = sparse(rng, 120, 30, 0.3), sparse(rng, 120, 9, 0.15)
    Y.data[:] = 1
    given = rerank.examples(Y, rng.integers(0, 9, (120, 4)).astype(np.int32))
    # With little memory, weights are written in several rounds.
    monkeypatch.setattr(type(card), "free_bytes", lambda _: room)
    settings = {"loss": loss, "cost": 0.5, "n_epochs": 200, "tolerance": 1e-4, "keep_from": 0.01}
    results = [rerank.train(pad_rows(X), given, engine=engine, **settings) for engine in (CARD, DEFAULT)]
    (found, alphas), (twin, twin_alphas) = results
    np.testing.assert_allclose(alphas, twin_alphas, rtol=2e-2, atol=2e-3)
    if loss == "squared_hinge":
        objectives = [dual_objective(X, given, own, 0.5) for own in (alphas, twin_alphas)]
        assert objectives[0] == pytest.approx(objectives[1], rel=1e-4)
    np.testing.assert_allclose(found.bias, twin.bias, rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose(found.scale, twin.scale, rtol=1e-2)
    dense = [weights_of(part, 30) for part in (found, twin)]
    np.testing.assert_allclose(*dense, atol=0.05)
    # Again from what was found, and with new examples first: nothing moves far.
    for n_new in (0, 3):
        again, moved = rerank.train(
            pad_rows(X), given, engine=CARD, start=alphas.copy(), n_new_epochs=n_new, **settings
        )
        np.testing.assert_allclose(moved, alphas, rtol=2e-2, atol=5e-3)
        np.testing.assert_allclose(weights_of(again, 30), dense[0], atol=0.05)


def test_few_passes_visit_examples_in_the_order_of_the_cpu(card: Any) -> None:
    """After one pass the result still depends on the order of the examples."""
    rng = np.random.default_rng(1)
    X, Y = sparse(rng, 90, 25, 0.3), sparse(rng, 90, 5, 0.3)
    Y.data[:] = 1
    given = rerank.examples(Y, np.tile(np.arange(5, dtype=np.int32), (90, 1)))
    settings = {"cost": 1.0, "n_epochs": 1, "tolerance": 1e-4}
    alphas = [rerank.train(pad_rows(X), given, engine=engine, **settings)[1] for engine in (CARD, DEFAULT)]
    np.testing.assert_allclose(*alphas, rtol=1e-3, atol=1e-5)


def weights_of(weights: Any, d: int) -> np.ndarray:
    """(L, d) the weights of labels."""
    own = csr_matrix(
        (weights.values.astype(float), weights.features, weights.starts), (len(weights.scale), d)
    )
    assert own.has_canonical_format or len(np.unique(own.indices)) <= d
    return own.toarray() * weights.scale[:, None]


def test_score_labels(card: Any) -> None:
    rng = np.random.default_rng(2)
    X = csr_matrix(hstack([sparse(rng, 80, 20, 0.4), sparse(rng, 80, 200, 0.01)]), dtype=np.float32)
    Y, lists = sparse(rng, 80, 12, 0.1), np.tile(np.arange(12, dtype=np.int32), (80, 1))
    Y.data[:] = 1
    fitted, _ = rerank.fit(X, rerank.examples(Y, lists[:, :4]))
    assert len(fitted.dense)
    assert len(fitted.values)
    ids = np.where(rng.random((80, 12)) < 0.3, -1, rng.permuted(lists, axis=1)).astype(np.int64)
    margins = [rerank.score(fitted, X, ids, engine=engine) for engine in (CARD, TWIN)]
    np.testing.assert_allclose(*margins, rtol=1e-4, atol=1e-5)


def test_the_kernels_have_the_constants_of_the_twin() -> None:
    code = device.source("rerank")
    assert f"#define SHRINK_MARGIN {reference.SHRINK_MARGIN}f" in code
    assert f"#define SETTLED {reference.SETTLED}f" in code
    assert set(OPERATIONS) >= CARD.on_card
    assert f"#define ROWS {joint.ROWS} " in device.source("joint")
    assert f"#define STEP {topk.STEP // device.THREADS} " in device.source("topk")


@pytest.mark.parametrize("most", [60_000, 0])
def test_what_does_not_fit_into_shared_memory(card: Any, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is left to the CPU."""
    monkeypatch.setattr(card, "most_shared", most)
    made = make_xmc(60, 30, 6, random_state=1)
    options: dict[str, Any] = {"features": "l2", "temperature": 0.05, "n_components": 4, "random_state": 0}
    found = [
        ExMLDS4(n_epochs=2, device=name, **options).fit(made.X, made.Y).predict_topk(made.X, 3)
        for name in ("cuda", "cpu")
    ]
    assert (found[0][0] == found[1][0]).mean() > 0.9


@pytest.mark.slow
def test_a_whole_model(card: Any, tmp_path: Path) -> None:
    """Fitted on the card: like that of the CPU, the same again, and predicting on either."""
    made = make_xmc(60, 40, 8, random_state=0)
    given: dict[str, Any] = {"effort": "fast", "shortlist": 6, "random_state": 0}
    models = [ExMLDS(device=name, **given).fit(made.X, made.Y) for name in ("cuda", "cuda", "cpu")]
    if isinstance(card, CardOnCPU):
        assert card.launched >= {"embed_batch", "train_labels", "rescore_rows", "vote"}
        card.launched.clear()
        models[2].predict_topk(made.X)
        assert not card.launched
    ids, scores = zip(*(model.predict_topk(made.X, 3) for model in models))
    np.testing.assert_array_equal(ids[0], ids[1])
    np.testing.assert_array_equal(scores[0], scores[1])
    assert (ids[0][:, 0] == ids[2][:, 0]).mean() > 0.8
    models[0].save(tmp_path / "model")
    for where, at_most in (("cpu", 1e-3), ("cuda", 1e-6)):
        loaded = load(tmp_path / "model", device=where)
        getattr(card, "launched", set()).clear()
        found, its_scores = loaded.predict_topk(made.X, 3)
        if isinstance(card, CardOnCPU):
            assert ("score_labels" in card.launched) == (where == "cuda")
            card.launched.clear()
            loaded.explain(made.X[:1])
            assert ("vote" in card.launched) == (where == "cuda")
            card.launched.clear()
        assert (found == ids[0]).mean() > 0.95
        np.testing.assert_allclose(its_scores, scores[0], atol=at_most)


@pytest.mark.slow
def test_other_methods(card: Any) -> None:
    """Votes alone, with parts, dense rows and several learners; and what wraps an estimator."""
    made = make_xmc(60, 30, 6, random_state=1)
    options: dict[str, Any] = {"features": "l2", "temperature": 0.05, "n_components": 4, "random_state": 0}
    methods: list[tuple[Any, Any]] = [
        (FeatureNeighbors(), made.X),
        (ExMLDS1(l2=1.0, **options), made.X),
        (ExMLDS4(n_epochs=2, n_learners=2, n_parts=2, **options), made.X),
        (ExMLDS4(n_epochs=2, n_learners=1, **options), made.X.toarray()),
    ]
    for method, X in methods:
        found = [
            clone(method).set_params(device=name).fit(X, made.Y).predict_topk(X, 3)
            for name in ("cuda", "cpu")
        ]
        assert (found[0][0] == found[1][0]).mean() > 0.9, method
        np.testing.assert_allclose(found[0][1], found[1][1], atol=2e-2)
    inner = FeatureNeighbors(device="cuda")
    parts = Partitioned(estimator=inner, n_parts=2, random_state=0).fit(made.X, made.Y)
    assert parts.device == "cuda"
    assert parts.predict_topk(made.X, 2)[0].shape == (60, 2)
    parts.device = "cpu"
    assert parts.device == "cpu"
    texts = TextClassifier(FeatureNeighbors(device="cuda")).fit(["a cat", "dogs"], [["cat"], ["dog"]])
    assert texts.device == "cuda"
    texts.device = "cpu"
    assert texts.model_.device == "cpu"
    if isinstance(card, CardOnCPU):
        card.launched.clear()
        parts.predict_topk(made.X, 2)
        texts.predict_labels(["cat"])
        assert not card.launched


def test_a_pickled_model_has_the_engine_of_its_device(card: Any) -> None:
    made = make_xmc(40, 20, 5, random_state=1)
    model = pickle.loads(pickle.dumps(FeatureNeighbors(device="cuda").fit(made.X, made.Y)))
    assert model.engine is CARD
    assert pickle.loads(pickle.dumps(CARD)) is CARD
    assert pickle.loads(pickle.dumps(TWIN)).name == "reference"


def test_copies_leave_with_their_arrays(card: Any) -> None:
    array = np.arange(5.0)
    assert card.resident(array, np.float32) is card.resident(array, np.float32)
    n = len(card._copies)
    del array
    assert len(card._copies) == n - 1


def test_a_small_limit_of_memory(card: Any) -> None:
    with CARD.memory_limit(10_000_000):
        assert card.free_bytes() <= 10_000_000
    assert card.free_bytes() > 10_000_000
    with DEFAULT.memory_limit(1):
        pass


@pytest.mark.skipif(find_spec("cupy") is not None, reason="CuPy is installed")
def test_what_a_card_needs_is_named() -> None:
    device.use(None)
    with pytest.raises(DataError, match=r'needs CuPy: pip install "exmlds\[cuda\]"'):
        FeatureNeighbors(device="cuda").fit(np.eye(3), [["a"], ["b"], ["a"]])
    with pytest.raises(ValueError, match="'device' parameter"):
        FeatureNeighbors(device="gpu").fit(np.eye(3), [["a"], ["b"], ["a"]])
