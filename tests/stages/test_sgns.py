"""Skip-gram training factorizes PMI, and can be resumed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import block_diag, csr_matrix

from exmlds.stages import sgns


def counted(rng: np.random.Generator) -> np.ndarray:
    """(6, 6) whole counts above 0; rows and columns differ much in size."""
    sizes = np.outer(rng.permutation([1, 2, 3, 5, 6, 8]), rng.permutation([1, 2, 4, 8, 12, 20]))
    return np.rint(1 + sizes * rng.uniform(0.4, 2, (6, 6)))


def limit(counts: np.ndarray, power: float, n_negative: int) -> np.ndarray:
    """log(#(i, j) / (#(i) P(j))) − log k, with P what negatives are drawn by; if P(j) = #(j) / #, the PMI."""
    drawn = counts.sum(axis=0) ** power
    drawn = drawn / drawn.sum()
    return np.log(counts / (counts.sum(axis=1)[:, None] * drawn)) - np.log(n_negative)


def trained(
    graph: csr_matrix, seed: int = 0, n_epochs: int = 5, *, tied: bool = True, rate: float = 0.1
) -> sgns.State:
    state = sgns.init(max(graph.shape), 4, n_epochs=n_epochs, tied=tied, rng=np.random.default_rng(seed))
    for _ in range(n_epochs):
        state = sgns.epoch(state, [sgns.relate(graph, 3)], rate)
    return state


def ring(n: int) -> csr_matrix:
    """Each row has the next two as its contexts."""
    rows = np.repeat(np.arange(n), 2)
    columns = (rows + np.tile([1, 2], n)) % n
    return csr_matrix((np.ones(2 * n, np.float32), (rows, columns)), shape=(n, n))


@pytest.mark.parametrize(("power", "n_negative"), [(1, 1), (1, 3), (0, 1), (0, 3), (0.75, 1), (0.75, 3)])
def test_inner_products_become_shifted_pmi(power: float, n_negative: int, rng: np.random.Generator) -> None:
    counts = counted(rng)
    relation = sgns.relate(csr_matrix(counts), n_negative, power=power, weight=1 / counts.mean())
    rows, columns, weights = (np.tile(of_pairs, 500) for of_pairs in relation[:3])
    often = relation._replace(rows=rows, columns=columns, weights=weights)  # each pair 500 times an epoch
    state = sgns.init(6, 8, n_epochs=16, tied=False, rng=rng)
    for _ in range(state.n_epochs):
        state = sgns.epoch(state, [often], 0.1)
    learnt = state.vectors @ state.contexts.T

    def error(expected: np.ndarray) -> float:
        return float(np.abs(learnt - expected).mean())

    assert error(limit(counts, power, n_negative)) < 0.1
    for other_power in (0, 0.75, 1):
        for other_number in (1, 2, 3):
            if (other_power, other_number) != (power, n_negative):
                assert error(limit(counts, other_power, other_number)) > 0.15
    if power == 0:
        assert error(limit(counts.T, power, n_negative).T) > 0.15  # rows are not columns


def test_the_limit_by_hand() -> None:
    counts = np.array([[3.0, 1], [6, 2]])  # independent
    np.testing.assert_allclose(limit(counts, 1, 1), 0, atol=1e-12)
    np.testing.assert_allclose(limit(counts, 0, 1), np.log(np.array([[1.5, 0.5]] * 2)))


@pytest.mark.parametrize("power", [0, 0.75])
def test_a_list_of_pairs_is_a_graph_with_an_edge_for_each(power: float) -> None:
    listed = sgns.relate_pairs(np.array([0, 2, 0]), np.array([1, 0, 1]), 4, 3, power=power)
    graph = csr_matrix(np.array([[0, 2.0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]]))
    counted = sgns.relate(graph, 3, power=power)
    np.testing.assert_array_equal(listed.table, counted.table)
    assert listed.n_negative == 3
    assert listed.rows.tolist() == [0, 2, 0]
    assert listed.columns.tolist() == [1, 0, 1]
    assert listed.weights.tolist() == [1, 1, 1]


@pytest.mark.twins
@pytest.mark.parametrize("tied", [True, False])
def test_a_seed_gives_one_result(tied: bool) -> None:
    first, again, other = (trained(ring(20), seed, tied=tied) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.vectors, again.vectors)
    np.testing.assert_array_equal(first.contexts, again.contexts)
    assert np.abs(first.vectors - other.vectors).max() > 0.1


@pytest.mark.twins
@pytest.mark.parametrize("tied", [True, False])
def test_training_resumes_where_it_was_left(tied: bool, rng: np.random.Generator) -> None:
    relations = [sgns.relate(ring(20), 3), sgns.relate(ring(20), 2, weight=0.5)]
    state = sgns.init(20, 4, n_epochs=5, tied=tied, rng=rng)
    for _ in range(2):
        state = sgns.epoch(state, relations, 0.1)
    copied = state._replace(vectors=state.vectors.copy(), contexts=state.contexts.copy())
    ends = []
    for part in (state, copied):
        while part.epoch < part.n_epochs:
            part = sgns.epoch(part, relations, 0.1)
        ends.append(part)
    assert ends[0].epoch == 5
    assert ends[0].vectors is not ends[1].vectors
    np.testing.assert_array_equal(ends[0].vectors, ends[1].vectors)
    np.testing.assert_array_equal(ends[0].contexts, ends[1].contexts)


@pytest.mark.twins
def test_an_epoch_draws_its_own_order_and_negatives(rng: np.random.Generator) -> None:
    relations = [sgns.relate(ring(20), 3)]
    start = sgns.init(20, 4, n_epochs=1000, tied=True, rng=rng)
    steps = []
    for number in (0, 1):
        state = start._replace(vectors=start.vectors.copy(), epoch=number)
        steps.append(sgns.epoch(state, relations, 0.1).vectors - start.vectors)
    assert np.abs(steps[0] - steps[1]).max() > 0.1 * np.abs(steps[0]).max()


@pytest.mark.twins
def test_the_learning_rate_falls_to_almost_nothing(rng: np.random.Generator) -> None:
    relations = [sgns.relate(ring(500), 0)]
    start = sgns.init(500, 4, n_epochs=100, tied=True, rng=rng)
    sizes = []
    for number in (0, 50, 90, 99):
        state = start._replace(vectors=start.vectors.copy(), epoch=number)
        sizes.append(np.abs(sgns.epoch(state, relations, 0.01).vectors - start.vectors).mean())
    np.testing.assert_allclose(np.array(sizes[:3]) / sizes[0], [1, 0.5, 0.1], rtol=0.1)
    assert 0 < sizes[3] < 0.01 * sizes[0]


@pytest.mark.twins
def test_chunks_do_not_lose_pairs(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sgns, "CHUNK", 7)
    state = sgns.init(20, 4, n_epochs=10**6, tied=False, rng=rng)  # so many that the rate stays
    expected = ring(20).T @ state.vectors * 1e-4 / 2  # σ(0) = ½
    sgns.epoch(state, [sgns.relate(ring(20), 0)], 1e-4)
    np.testing.assert_allclose(state.contexts, expected, rtol=1e-3)


@pytest.mark.parametrize("power", [1.0, 0.75, 0.5])
def test_negatives_are_drawn_in_proportion_to_counts(power: float, rng: np.random.Generator) -> None:
    counts = rng.integers(1, 50, (10, 30)) * (rng.random((10, 30)) < 0.3)
    counts[:, 4] = counts[:, 29] = 0
    table = sgns.relate(csr_matrix(counts), 1, power=power).table
    sums = counts.sum(axis=0)
    shares = np.bincount(table, minlength=30) / len(table)
    np.testing.assert_allclose(shares, sums**power / (sums**power).sum(), atol=1e-3)
    assert not np.isin(table, [4, 29]).any()


def test_negatives_are_drawn_uniformly_by_default() -> None:
    counts = csr_matrix(np.array([[5.0, 0, 1], [7, 0, 0]]))
    table = sgns.relate(counts, 1).table
    np.testing.assert_array_equal(np.bincount(table) / len(table), [1 / 3] * 3)


def test_pairs_of_a_graph() -> None:
    graph = csr_matrix(np.array([[0, 2.0, 0], [0, 0, 0], [1, 0, 3]]))
    relation = sgns.relate(graph, 4, weight=0.5, row_offset=10, column_offset=20)
    assert relation.rows.tolist() == [10, 12, 12]
    assert relation.columns.tolist() == [21, 20, 22]
    assert relation.weights.tolist() == [1, 0.5, 1.5]
    assert sorted(set(relation.table)) == [20, 21, 22]
    assert relation.n_negative == 4


@pytest.mark.twins
@pytest.mark.parametrize("power", [0.0, 0.75])
@pytest.mark.parametrize("tied", [True, False])
def test_offsets_say_which_vectors_change(power: float, tied: bool, rng: np.random.Generator) -> None:
    graph = csr_matrix(rng.integers(1, 4, (3, 4)))
    relation = sgns.relate(graph, 5, power=power, row_offset=2, column_offset=6)
    state = sgns.init(12, 4, n_epochs=3, tied=tied, rng=rng)
    before = state.vectors.copy()
    for _ in range(3):
        state = sgns.epoch(state, [relation], 0.1)
    changed = np.flatnonzero((state.vectors != before).any(axis=1))
    if tied:
        assert changed.tolist() == [2, 3, 4, 6, 7, 8, 9]
    else:
        assert changed.tolist() == [2, 3, 4]
        assert np.flatnonzero(state.contexts.any(axis=1)).tolist() == [6, 7, 8, 9]


@pytest.mark.twins
def test_a_relation_of_weight_0_changes_nothing(rng: np.random.Generator) -> None:
    state = sgns.init(20, 4, n_epochs=1, tied=True, rng=rng)
    before = state.vectors.copy()
    sgns.epoch(state, [sgns.relate(ring(20), 3, weight=0)], 0.1)
    np.testing.assert_array_equal(state.vectors, before)


@pytest.mark.twins
def test_training_brings_blocks_together(rng: np.random.Generator) -> None:
    blocks = csr_matrix(
        block_diag([csr_matrix(np.ones((8, 8), np.float32) - np.eye(8, dtype=np.float32))] * 4)
    )
    blocks.eliminate_zeros()
    pairs = blocks.nonzero()

    def likelihood(state: sgns.State) -> float:
        products = (state.vectors @ state.vectors.T)[pairs].astype(np.float64)
        return float(-np.logaddexp(0, -products).mean())

    state = sgns.init(32, 8, n_epochs=60, tied=True, rng=rng)
    seen = [likelihood(state)]
    for _ in range(state.n_epochs):
        state = sgns.epoch(state, [sgns.relate(blocks, 5)], 0.1)
        seen.append(likelihood(state))
    assert seen[-1] > seen[1] + 0.1 > seen[0] + 0.1
    unit = state.vectors / np.linalg.norm(state.vectors, axis=1, keepdims=True)
    cosines = unit @ unit.T
    same = np.kron(np.eye(4), np.ones((8, 8))) > 0
    within, between = (np.where(which, cosines, 0).sum(axis=1) / which.sum(axis=1) for which in (same, ~same))
    assert (within > between + 0.5).all()
