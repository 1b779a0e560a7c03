"""WARP: the step on a pair of labels, the bound of lengths, and what is learnt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from exmlds.stages import warp
from exmlds.stages.warp import WarpState

pytestmark = pytest.mark.twins
OPTIONS: dict[str, float] = {"learning_rate": 0.1, "max_norm": 10.0}


def test_a_step_by_hand() -> None:
    V = np.array([[1.0, 0], [0, 1]], np.float32)
    H = np.array([[0.5, 0], [0, 0.25]], np.float32)
    X = csr_matrix(np.array([[2.0, 0]], np.float32))
    Y = csr_matrix(np.array([[1.0, 0]], np.float32))
    # z = (2, 0). The label scores 1 and the other one 0, which is not above 1 − 1: no step is taken.
    state = warp.epoch(WarpState(V.copy(), H.copy(), 0, 0, 10**6), X, Y, **OPTIONS)
    np.testing.assert_array_equal(state.V, V)
    np.testing.assert_array_equal(state.H, H)
    assert state.epoch == 1
    # Now it scores 0.8. Of two labels the rank is 1, so the weight is 1, where the other one is drawn.
    H[0, 0] = 0.4
    for seed in range(20):
        state = warp.epoch(WarpState(V.copy(), H.copy(), seed, 0, 10**6), X, Y, **OPTIONS)
        if not np.array_equal(state.H, H):
            break
    np.testing.assert_allclose(state.H, [[0.4 + 0.2, 0], [-0.2, 0.25]], rtol=1e-5)
    np.testing.assert_allclose(state.V, [[1 + 0.1 * 2 * 0.4, -0.1 * 2 * 0.25], [0, 1]], rtol=1e-5)


def test_the_weight_is_the_harmonic_sum_of_the_estimated_rank() -> None:
    np.testing.assert_allclose(warp.harmonic_sums(4), [0, 1, 1.5, 1.5 + 1 / 3], rtol=1e-6)
    # All 19 other labels violate the margin, so the first draw that is not the label itself is taken: the
    # estimate of the rank is 19, or 9 if that is the second draw.
    V, H = np.ones((1, 1), np.float32), np.zeros((20, 1), np.float32)
    X, Y = csr_matrix(np.ones((1, 1), np.float32)), csr_matrix(np.eye(20, dtype=np.float32)[:1])
    state = warp.epoch(WarpState(V, H, 0, 0, 10**6), X, Y, **OPTIONS)
    weights = [0.1 * (1 / np.arange(1, rank + 1)).sum() for rank in (19, 9)]
    assert min(abs(state.H[0, 0] - weight) for weight in weights) < 1e-5
    assert (state.H < 0).sum() == 1


def data(rng: np.random.Generator) -> tuple[csr_matrix, csr_matrix]:
    """Row i has the features and the labels i and i + 1, of 10."""
    Y = np.eye(10, dtype=np.float32) + np.roll(np.eye(10, dtype=np.float32), 1, axis=1)
    Y = np.tile(Y, (20, 1))
    X = Y + 0.1 * rng.random(Y.shape, dtype=np.float32)
    return csr_matrix(X), csr_matrix(Y)


def trained(X: csr_matrix, Y: csr_matrix, n_epochs: int = 20, seed: int = 0, **changes: Any) -> WarpState:
    options = {**OPTIONS, **changes}
    state = warp.init(
        10, 10, 8, max_norm=options["max_norm"], n_epochs=n_epochs, rng=np.random.default_rng(seed)
    )
    while state.epoch < n_epochs:
        state = warp.epoch(state, X, Y, **options)
    return state


def test_it_ranks_the_labels_of_a_row_first(rng: np.random.Generator) -> None:
    X, Y = data(rng)
    state = trained(X, Y)
    first_two = np.argsort(-(X @ state.V @ state.H.T), axis=1)[:, :2]
    assert np.take_along_axis(Y.toarray(), first_two, axis=1).all()


def test_lengths_are_bounded(rng: np.random.Generator) -> None:
    state = trained(*data(rng), max_norm=0.7)
    lengths = [np.linalg.norm(rows, axis=1) for rows in (state.V, state.H)]
    assert max(rows.max() for rows in lengths) == pytest.approx(0.7, rel=1e-5)
    start = warp.init(10, 10, 8, max_norm=0.1, n_epochs=1, rng=rng)
    assert np.linalg.norm(start.V, axis=1).max() <= 0.1 + 1e-6


def test_a_seed_gives_one_result_and_training_resumes(rng: np.random.Generator) -> None:
    X, Y = data(rng)
    whole, again, other = (trained(X, Y, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(whole.V, again.V)
    assert not np.allclose(whole.V, other.V)
    state = warp.init(10, 10, 8, max_norm=10.0, n_epochs=20, rng=np.random.default_rng(0))
    for _ in range(20):
        state = warp.epoch(state._replace(V=state.V.copy(), H=state.H.copy()), X, Y, **OPTIONS)
    np.testing.assert_array_equal(state.H, whole.H)


def test_rows_with_no_label_or_all_labels_change_nothing(rng: np.random.Generator) -> None:
    X = csr_matrix(np.eye(3, 10, dtype=np.float32))
    for Y in (np.zeros((3, 10), np.float32), np.ones((3, 10), np.float32)):
        start = warp.init(10, 10, 4, max_norm=10.0, n_epochs=2, rng=rng)
        state = warp.epoch(start._replace(V=start.V.copy(), H=start.H.copy()), X, csr_matrix(Y), **OPTIONS)
        np.testing.assert_array_equal(state.V, start.V)
        np.testing.assert_array_equal(state.H, start.H)
