"""Trees over rows: small cases with an obvious right answer, and what the optimization promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from exmlds.kernels import Engine
from exmlds.stages import trees

Array = np.ndarray
ENGINES = pytest.mark.parametrize("engine", [Engine("jit"), Engine("reference")], ids=lambda own: own.name)


def two_topics(n: int) -> tuple[csr_matrix, csr_matrix]:
    """Rows of feature 0 have labels 0 and 1, rows of feature 1 have labels 2 and 3."""
    topic = np.arange(n) % 2
    X = np.column_stack([topic == 0, topic == 1, np.ones(n)]).astype(np.float32)
    Y = np.column_stack([topic == 0, topic == 0, topic == 1, topic == 1])
    return csr_matrix(X), csr_matrix(Y, dtype=np.float32)


@ENGINES
def test_one_split_is_obviously_right(engine: Engine) -> None:
    X, Y = two_topics(24)
    forest = trees.fit(X, Y, 5, np.random.default_rng(0), max_leaf=12, n_jobs=1, engine=engine)
    assert len(forest.children) == 5  # one node in each tree
    assert set(forest.features) <= {0, 1}  # the third tells nothing
    assert (np.sort(forest.leaves.toarray(), axis=1) == [0, 0, 1, 1]).all()
    scores = trees.score(forest, X[:2], engine=engine)
    np.testing.assert_allclose(scores.toarray(), [[1, 1, 0, 0], [0, 0, 1, 1]])


@ENGINES
def test_a_leaf_has_the_distribution_of_its_rows(engine: Engine) -> None:
    X = csr_matrix(np.ones((4, 1), np.float32))
    Y = csr_matrix(np.array([[1, 1, 0], [1, 0, 0], [1, 1, 0], [1, 0, 1]], np.float32))
    rng = np.random.default_rng(0)
    plain = trees.fit(X, Y, 2, rng, n_jobs=1, engine=engine)
    assert plain.roots.tolist() == [-1, -2]  # both trees are a leaf
    np.testing.assert_allclose(trees.score(plain, X[:1], engine=engine).toarray(), [[1, 0.5, 0.25]])
    short = trees.fit(X, Y, 2, rng, n_leaf_labels=2, n_jobs=1, engine=engine)
    np.testing.assert_allclose(short.leaves.toarray(), [[1, 0.5, 0]] * 2)


def objective(Y: Array, gains: Array, sides: Array) -> float:
    """The sum over rows of the nDCG by the best ranking of each side."""
    discounts = 1 / np.log2(np.arange(2, Y.shape[1] + 2))
    total = 0.0
    for side in (0, 1):
        own = Y[sides == side]
        ideal = np.array([discounts[: int(n)].sum() for n in own.sum(axis=1)])
        sums = np.sort((own * gains / ideal[:, None]).sum(axis=0))[::-1]
        total += float(sums @ discounts)
    return total


def assigned(engine: Engine, Y: csr_matrix, gains: Array, n_rounds: int, seed: int) -> Array:
    n, n_labels = Y.shape
    sides = np.zeros(n, np.int8)
    discounts = 1 / np.log2(np.arange(2, n_labels + 2))
    node = np.array([0]), np.array([n]), np.array([seed], np.uint64)
    engine.assign_sides(Y.indptr, Y.indices, gains, discounts, np.arange(n), *node, n_rounds, sides)
    return sides


@ENGINES
def test_no_round_makes_the_objective_worse(engine: Engine) -> None:
    rng = np.random.default_rng(0)
    for seed in range(5):
        Y = rng.random((60, 15)) < 0.2
        Y[np.arange(60), rng.integers(15, size=60)] = True
        matrix, gains = csr_matrix(Y, dtype=np.float32), rng.random(15)
        values = [objective(Y, gains, assigned(engine, matrix, gains, n, seed)) for n in range(30)]
        assert (np.diff(values) >= -1e-9).all()
        assert values[-1] > values[0] * 1.02
        # At the end no row would gain by changing sides, given the rankings.
        np.testing.assert_array_equal(*(assigned(engine, matrix, gains, n, seed) for n in (100, 101)))


@ENGINES
def test_a_separator_is_where_no_direction_is_better(engine: Engine) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6)).astype(np.float32)
    sides = (X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=80) > 0.7).astype(np.int8)
    A, n = csr_matrix(X), 80
    starts, bias = np.zeros(2, np.int64), np.zeros(1, np.float32)
    features, weights, margins = np.zeros(n * 6, np.int32), np.zeros(n * 6, np.float32), np.zeros(n)
    node: Any = np.arange(n), sides, np.array([0]), np.array([n])
    engine.fit_separators(
        A.indptr,
        A.indices,
        A.data,
        6,
        *node,
        np.array([0.3]),
        1e-6,
        100,
        starts,
        features,
        weights,
        bias,
        margins,
    )
    w = np.append(np.zeros(6), bias[0])
    w[features[: starts[1]]] = weights[: starts[1]]
    with_bias, signs = np.column_stack([X, np.ones(n)]), 2.0 * sides - 1
    np.testing.assert_allclose(margins, with_bias @ w, atol=1e-5)
    costs = 0.3 * n / np.where(sides == 1, sides.sum(), n - sides.sum())
    gradient = -with_bias.T @ (costs * signs / (1 + np.exp(signs * margins)))
    assert 0 < np.count_nonzero(w) < 7
    np.testing.assert_allclose(gradient[w != 0], -np.sign(w[w != 0]), atol=1e-4)
    assert (np.abs(gradient[w == 0]) <= 1).all()


def test_rows_that_cannot_be_told_apart_are_one_leaf() -> None:
    X, Y = (
        csr_matrix(np.ones((30, 2), np.float32)),
        csr_matrix(np.eye(3, dtype=np.float32)[np.arange(30) % 3]),
    )
    forest = trees.fit(X, Y, 1, np.random.default_rng(0), n_jobs=1)
    assert (len(forest.children), forest.leaves.shape[0]) == (0, 1)


def damaged(forest: trees.Forest) -> dict[str, trees.Forest]:
    """Forests that the kernel must not see, by what `check` says of them."""

    def moved(name: str, at: Any, value: Any) -> trees.Forest:
        array = getattr(forest, name).copy()
        array[at] = value
        return forest._replace(**{name: array})

    n_leaves, n_nodes = forest.leaves.shape[0], len(forest.children)
    leaves = forest.leaves.copy()
    leaves.data[0] = np.nan
    return {
        "roots of trees holds": moved("roots", 0, n_nodes),
        "nodes of trees holds": moved("children", (0, 0), -1 - n_leaves),
        "not in order": moved("children", (n_nodes - 1, 1), 0),
        "there are no trees": forest._replace(roots=forest.roots[:0]),
        "features of trees holds": moved("features", 0, 60),
        "weights of trees": forest._replace(weights=forest.weights[:-1]),
        "weights of nodes": moved("starts", 1, len(forest.weights) + 1),
        "biases of nodes": forest._replace(bias=forest.bias.astype(np.float64)),
        "no shares": forest._replace(leaves=leaves),
        "not a csr_matrix": forest._replace(leaves=forest.leaves.toarray()),
        "wrong shape": forest._replace(leaves=forest.leaves[:, :3]),
        "not a Forest": tuple(forest),  # type: ignore[dict-item]
    }


def test_damaged_trees_are_refused() -> None:
    rng = np.random.default_rng(0)
    X = csr_matrix(rng.random((80, 60), np.float32) * (rng.random((80, 60)) < 0.3))
    Y = csr_matrix(np.eye(8, dtype=np.float32)[np.argmax(X[:, :8].toarray(), axis=1)])
    forest = trees.fit(X, Y, 3, rng, n_jobs=1)
    assert len(forest.children) > 3
    trees.check(forest, 60, 8)
    for words, wrong in damaged(forest).items():
        with pytest.raises(ValueError, match=words):
            trees.check(wrong, 60, 8)
