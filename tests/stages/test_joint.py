"""Joint learning: losses and gradients against slow formulas and finite differences, and the stepper."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from exmlds.data import make_xmc
from exmlds.kernels import Engine
from exmlds.stages import joint

EXACT = Engine("reference")  # in double precision, unlike the compiled kernels
LOSSES = [
    joint.Loss(kind, similarity, gamma=3.0, margin=0.2, n_negative=5.0)
    for kind in ("softmax", "sgns")
    for similarity in ("cosine", "inner")
]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: f"{loss.kind}-{loss.similarity}")


def problem(seed: int, b: int = 6, r: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    weights = np.where(rng.random((b, b)) < 0.2, 0, rng.random((b, b)))
    np.fill_diagonal(weights, 0)
    return rng.normal(size=(2 * b, r)), weights


def slow_loss(Z: np.ndarray, weights: np.ndarray, loss: joint.Loss) -> float:
    """The loss by its formulas, pair by pair."""
    b = len(weights)
    total = 0.0

    def similarity(i: int, j: int) -> float:
        product = float(Z[i] @ Z[b + j])
        return (
            product
            if loss.similarity == "inner"
            else product / np.linalg.norm(Z[i]) / np.linalg.norm(Z[b + j])
        )

    for i in range(b):
        others = [j for j in range(b) if weights[i, j]]
        if loss.kind == "softmax":
            own = np.exp(loss.gamma * similarity(i, i))
            theirs = sum(weights[i, j] * np.exp(loss.gamma * similarity(i, j)) for j in others)
            total -= np.log(own / (own + theirs))
        else:
            total += np.log1p(np.exp(-loss.gamma * (similarity(i, i) - loss.margin)))
            for j in others:
                total += (
                    loss.n_negative
                    * weights[i, j]
                    / weights[i].sum()
                    * np.log1p(np.exp(loss.gamma * (similarity(i, j) - loss.margin)))
                )
    return total / b


@every_loss
def test_the_loss_is_the_formula(loss: joint.Loss) -> None:
    for seed in range(5):
        Z, weights = problem(seed)
        assert joint.gradient(Z, weights, loss, engine=EXACT)[0] == pytest.approx(
            slow_loss(Z, weights, loss), rel=1e-9
        )


@every_loss
def test_the_gradient_is_that_of_finite_differences(loss: joint.Loss) -> None:
    Z, weights = problem(0)
    _, dZ = joint.gradient(Z, weights, loss, engine=EXACT)
    step = 1e-6
    for cell in np.ndindex(Z.shape):
        values = []
        for sign in (1, -1):
            moved = Z.copy()
            moved[cell] += sign * step
            values.append(slow_loss(moved, weights, loss))
        assert dZ[cell] == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-4, abs=1e-7)


def test_ignored_pairs_do_not_affect_the_softmax() -> None:
    Z = np.array([[1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0], [90, 0, 0], [1, 0, 0]], np.float32)
    weights = np.array([[0, 0, 1], [1, 0, 1], [1, 1, 0]], np.float32)
    _, dZ = joint.gradient(Z, weights, joint.Loss("softmax", "inner", gamma=10.0))
    assert dZ[5, 0] == pytest.approx(10 / 3, rel=1e-3)


def test_the_papers_gradient_of_the_cosine() -> None:
    """∇K of the paper for one pair, by V: its final formula, with z = Vᵀx."""
    rng = np.random.default_rng(0)
    V, x, y = rng.normal(size=(5, 3)), rng.normal(size=5), rng.normal(size=5)
    z, w = V.T @ x, V.T @ y
    a, b, c = z @ w, 1 / np.linalg.norm(z), 1 / np.linalg.norm(w)
    expected = -a * b**3 * c * np.outer(x, z) - a * b * c**3 * np.outer(y, w)
    expected += b * c * (np.outer(x, w) + np.outer(y, z))
    Z = np.array([z, w])
    loss = joint.Loss("sgns", "cosine", gamma=1.0, n_negative=1.0)
    _, dZ = joint.gradient(Z, np.zeros((1, 1)), loss, engine=EXACT)
    K = a * b * c
    found = np.outer(x, dZ[0]) + np.outer(y, dZ[1])
    np.testing.assert_allclose(found, -(1 - 1 / (1 + np.exp(-K))) * expected, atol=1e-12)


def test_no_negative_is_of_the_context_or_has_the_same_labels() -> None:
    neighbors = np.array([[1, 2, -1], [0, -1, -1], [3, -1, -1], [2, 1, -1], [5, -1, -1], [4, -1, -1]])
    group = np.array([0, 1, 2, 3, 0, 5])
    rows, contexts = np.array([0, 2, 3, 4]), np.array([1, 3, 2, 5])
    found = joint.negatives(rows, contexts, neighbors, group)
    expected = 1 - np.eye(4)
    expected[0, 2] = 0  # row 2 is of the context of row 0
    expected[1, 2] = 0  # row 2 is itself
    expected[2, 0] = 0  # row 1 is of the context of row 3
    expected[2, 1] = 0  # row 3 is itself
    np.testing.assert_array_equal(found, expected)
    assert (
        joint.negatives(np.array([0, 1]), np.array([1, 4]), neighbors, group)[0, 1] == 0
    )  # the labels of row 0


def test_negatives_where_contexts_repeat(rng: np.random.Generator) -> None:
    neighbors, rows = rng.integers(-1, 12, (12, 4)), rng.permutation(12)[:8]
    contexts = rng.integers(0, 12, 8)
    counts = joint.negatives(rows, contexts, neighbors, np.arange(12))
    for i, row in enumerate(rows):
        for j, context in enumerate(contexts):
            assert counts[i, j] == (i != j and context != row and context not in neighbors[row])


def test_negatives_may_count_by_how_little_they_share() -> None:
    neighbors, group = np.full((3, 1), -1), np.arange(3)
    sets = csr_matrix(np.array([[1, 0, 0], [0.6, 0.8, 0], [0, 0, 1]], np.float32))
    found = joint.negatives(np.array([0, 2]), np.array([2, 1]), neighbors, group, sets)
    np.testing.assert_allclose(found, [[0, 0.4], [0, 0]], atol=1e-6)
    assert found[1, 0] == 0  # itself
    found = joint.negatives(np.array([0, 1]), np.array([1, 2]), neighbors, group, sets)
    np.testing.assert_allclose(found, [[0, 1], [0, 0]], atol=1e-6)


def trained(n_epochs: int, n_jobs: int = 1, dense: bool = False, seed: int = 0) -> joint.State:
    data = make_xmc(300, 40, 12, random_state=0)
    rng = np.random.default_rng(1)
    neighbors = rng.integers(-1, 300, size=(300, 3))
    neighbors = -np.sort(-neighbors, axis=1)
    group = np.arange(300)
    state = joint.init(40, 8, np.random.default_rng(seed))
    X = data.X.toarray() if dense else data.X
    for _ in range(n_epochs):
        state = joint.epoch(
            state, X, neighbors, group, joint.Loss(), learning_rate=0.1, batch_size=64, n_jobs=n_jobs
        )
    return state


@pytest.mark.twins
def test_a_seed_gives_one_result_whatever_the_threads() -> None:
    one = trained(3)
    np.testing.assert_array_equal(one.V, trained(3, n_jobs=2).V)
    np.testing.assert_allclose(one.V, trained(3, dense=True).V, atol=1e-4)
    assert not np.allclose(one.V, trained(3, seed=1).V)


@pytest.mark.twins
def test_an_epoch_resumes_from_a_state() -> None:
    data = make_xmc(100, 30, 8, random_state=0)
    neighbors = np.tile(np.arange(1, 4), (100, 1))
    options = {"learning_rate": 0.1, "batch_size": 32}
    first = joint.init(30, 5, np.random.default_rng(0))
    for _ in range(2):
        first = joint.epoch(first, data.X, neighbors, np.arange(100), joint.Loss(), **options)  # type: ignore[arg-type]
    kept = first._replace(V=first.V.copy(), squares=first.squares.copy())
    on, again = (
        joint.epoch(state, data.X, neighbors, np.arange(100), joint.Loss(), **options)  # type: ignore[arg-type]
        for state in (first, kept)
    )
    np.testing.assert_array_equal(on.V, again.V)
    assert on.epoch == 3


@pytest.mark.twins
@every_loss
def test_training_brings_related_rows_together(loss: joint.Loss) -> None:
    rng = np.random.default_rng(0)
    block = np.repeat(np.arange(4), 25)
    X = csr_matrix((rng.random((100, 40)) < 0.05) | (np.arange(40) // 10 == block[:, None]), dtype=np.float32)
    X = csr_matrix(X.multiply(rng.random((100, 40)) < 0.4), dtype=np.float32)
    neighbors = np.array(
        [rng.permutation(np.flatnonzero((block == block[i]) & (np.arange(100) != i)))[:5] for i in range(100)]
    )
    state = joint.init(40, 6, np.random.default_rng(0))

    def apart(V: np.ndarray) -> float:
        Z = X @ V
        Z /= np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-9)
        K = Z @ Z.T
        same = block[:, None] == block
        return float(K[same].mean() - K[~same].mean())

    before = apart(state.V)
    for _ in range(30):
        state = joint.epoch(state, X, neighbors, np.arange(100), loss, learning_rate=0.1, batch_size=32)
    assert apart(state.V) > before + 0.15


def test_a_warm_start_estimates_the_sums_of_squared_gradients() -> None:
    data = make_xmc(400, 60, 20, random_state=0)
    near = np.random.default_rng(0).integers(0, 400, (400, 3))
    near[300:] = -1  # these rows came later
    group, loss = np.arange(400), joint.Loss()
    V = np.random.default_rng(1).normal(size=(60, 8)).astype(np.float32)
    before = V.copy()
    how = {"batch_size": 64, "n_jobs": 1}
    state = joint.warm_start(V, data.X, near, group, loss, n_epochs=4, n_sample=300, seed=0, **how)
    np.testing.assert_array_equal(state.V, before)
    by_hand = joint.JointState(before.copy(), np.zeros_like(V), 0, 0)
    by_hand = joint.epoch(by_hand, data.X, near, group, loss, learning_rate=0.0, **how)
    total = joint.EARLY_GRADIENTS * 4 * by_hand.squares.sum() * 400 / 300  # other batches, other negatives
    assert abs(state.squares.sum() - total) < 0.2 * total
    assert (state.squares >= 0).all()


def test_further_training_brings_new_rows_together_and_keeps_the_others() -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(600) % 20
    X = np.zeros((600, 40), np.float32)
    X[np.arange(600), labels + 20 * (np.arange(600) >= 400)] = 1  # new rows have other words
    X, group = csr_matrix(X + 0.2 * (rng.random(X.shape) < 0.05)), labels
    near = np.array([rng.choice(np.flatnonzero(labels == label), 5) for label in labels])
    old, new = near.copy(), near.copy()
    old[400:], new[:400] = -1, -1
    loss, how = joint.Loss(), {"batch_size": 64, "n_jobs": 1}

    def nearness(V: np.ndarray, rows: np.ndarray) -> float:
        Z = X @ V
        Z /= np.linalg.norm(Z, axis=1, keepdims=True)
        same = labels[rows][:, None] == labels[None, :400]
        cosines = Z[rows] @ Z[:400].T
        return float(cosines[same].mean() - cosines[~same].mean())

    first = joint.init(40, 8, rng)
    old_alone = np.where(old >= 400, -1, old)
    old_alone = np.take_along_axis(old_alone, np.argsort(old_alone < 0, axis=1, kind="stable"), axis=1)
    for _ in range(4):
        first = joint.epoch(first, X, old_alone, group, loss, learning_rate=0.1, **how)
    before = nearness(first.V, np.arange(400)), nearness(first.V, np.arange(400, 600))
    state = joint.warm_start(first.V.copy(), X, old_alone, group, loss, 4, 200, 0, **how)
    for _ in range(3):
        state = joint.epoch(state, X, new, group, loss, learning_rate=0.1, **how)
    after = nearness(state.V, np.arange(400)), nearness(state.V, np.arange(400, 600))
    assert after[1] > before[1] + 0.3
    assert after[0] > before[0] - 0.1
