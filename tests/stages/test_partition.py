"""Parts of similar rows."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from exmlds.stages import partition


def blobs(rng: np.random.Generator, sizes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    truth = np.repeat(np.arange(len(sizes)), sizes)
    X = 3 * np.eye(len(sizes), 6)[truth] + 0.1 * rng.random((len(truth), 6))
    return X.astype(np.float32), truth


def test_similar_rows_fall_together(rng: np.random.Generator) -> None:
    X, truth = blobs(rng, (30, 20, 25))
    for form in (X, csr_matrix(X)):
        best = 0.0
        for seed in range(5):  # k-means may start badly
            router, parts = partition.fit(form, 3, 60, np.random.default_rng(seed))
            assert sorted(np.concatenate(parts)) == list(range(75))
            pure = sum(np.bincount(truth[rows]).max() for rows in parts if rows.size) / 75
            best = max(best, pure)
            asked = router.assign(form, 3)
            assert sorted(asked[0]) == [0, 1, 2]
            home = np.empty(75, int)
            for p, rows in enumerate(parts):
                home[rows] = p
            assert (asked[:, 0] == home).mean() > 0.99
        assert best == 1


def test_no_part_is_above_the_cap(rng: np.random.Generator) -> None:
    X, _ = blobs(rng, (90, 5, 5))
    _, parts = partition.fit(X, 3, 40, rng)
    assert max(map(len, parts)) <= 40
    assert sorted(np.concatenate(parts)) == list(range(100))


def test_one_part_needs_no_centres(rng: np.random.Generator) -> None:
    router, parts = partition.fit(csr_matrix(np.eye(4)), 1, 9, rng)
    assert parts[0].tolist() == [0, 1, 2, 3]
    assert router.assign(csr_matrix(np.eye(4)), 3).tolist() == [[0]] * 4
