"""Search in cells, compared with exact search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from exmlds.stages import cells, index

Array = np.ndarray


@pytest.fixture(scope="module")
def rows() -> Array:
    """Clusters, as embeddings have them."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(60, 10))
    return (centers[rng.integers(0, 60, 3_000)] + 0.4 * rng.normal(size=(3_000, 10))).astype(np.float32)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("storage", ["float32", "float16", "int8"])
def test_nearly_all_exact_neighbours_are_found(rows: Array, metric: str, storage: str) -> None:
    Q = rows[:200] + 0.1
    exact, expected = index.search(index.build(rows, metric, storage), Q, 10)
    ids, similar = index.search(index.build(rows, metric, storage, in_cells=True), Q, 10)
    assert np.mean([len(set(a) & set(b)) for a, b in zip(ids, exact)]) > 9.5
    np.testing.assert_allclose(similar[:, 0], expected[:, 0], atol=1e-5)
    assert (np.diff(similar, axis=1) <= 0).all()


@pytest.mark.twins
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_with_all_cells_probed_the_search_is_exact(
    rows: Array, metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("N_PROBES", "MOST_ROWS", "MARGIN"):
        monkeypatch.setattr(cells, name, 10_000)
    for found, expected in zip(
        index.search(index.build(rows[:300], metric, in_cells=True), rows[300:320], 7),
        index.search(index.build(rows[:300], metric), rows[300:320], 7),
    ):
        np.testing.assert_array_equal(found, expected)


def test_a_query_between_cells_reads_more_of_them(rows: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "FEWEST_PROBES", 8)
    built = index.build(rows, "cosine", in_cells=True).segments[0].rows
    center, far = built.centers[:1], np.random.default_rng(1).normal(size=(1, rows.shape[1]))
    far = (far / np.linalg.norm(far)).astype(np.float32)
    near_one, near_all = (_probed(built, Q, 5) for Q in (center, far))
    assert near_one[0] == 0
    assert cells.FEWEST_PROBES <= len(near_one) < len(near_all)
    similar = np.sort(built.centers @ far[0])[::-1]
    assert len(near_all) == (similar >= similar[0] - cells.MARGIN).sum()
    narrow = cells.nearest_cells(built, far, "cosine", 5, breadth=0.5)[0]
    assert (narrow >= 0).sum() == max((similar >= similar[0] - cells.MARGIN / 2).sum(), 4) < len(near_all)
    monkeypatch.setattr(cells, "MOST_ROWS", 11.5 * len(rows) / len(built.centers))
    assert set(_probed(built, far, 5)) == set(np.argsort(-(built.centers @ far[0]))[:12])
    # Many rows can't be found in a few cells, however near these are.
    n_rows = np.diff(built.starts)[_probed(built, center, 900)].sum()
    assert 900 < n_rows < len(rows)


def _probed(built: cells.Cells, Q: Array, k: int) -> Array:
    probes = cells.nearest_cells(built, Q, "cosine", k)[0]
    return probes[probes >= 0]


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("is_in_two_segments", [False, True])
def test_rows_that_the_index_holds_find_themselves(
    rows: Array, metric: str, is_in_two_segments: bool
) -> None:
    n_first = 2_000 if is_in_two_segments else len(rows)
    built = index.build(rows[:n_first], metric, in_cells=True)
    if is_in_two_segments:
        built = index.extend(built, rows[n_first:])
    Z = index.stored_rows(built, index.positions(built)[1_900:2_100])
    lengths = np.linalg.norm(rows[1_900:2_100], axis=1, keepdims=True) if metric == "cosine" else 1
    np.testing.assert_allclose(Z * lengths, rows[1_900:2_100], atol=1e-5)
    near, _ = index.search(built, Z, 10)
    exact, _ = index.search(index.build(rows, metric), rows[1_900:2_100], 10)
    assert (near[:, 0] == np.arange(1_900, 2_100)).all()
    assert np.mean([len(set(a) & set(b)) for a, b in zip(near, exact)]) > 9.5


def test_the_number_of_threads_does_not_matter(rows: Array) -> None:
    one, other = (cells.build(rows, "cosine", "float32", n_jobs) for n_jobs in (1, 2))
    for array, same in zip(
        (one.centers, one.starts, one.numbers), (other.centers, other.starts, other.numbers)
    ):
        np.testing.assert_array_equal(array, same)


@pytest.mark.parametrize("n", [1, 2, 3, 20])
def test_few_rows(rows: Array, n: int) -> None:
    ids, similar = index.search(index.build(rows[:n], "cosine", in_cells=True), rows[:4], 5)
    exact, expected = index.search(index.build(rows[:n], "cosine"), rows[:4], 5)
    np.testing.assert_array_equal(ids, exact)
    np.testing.assert_array_equal(similar, expected)


def test_equal_rows_are_all_found(rows: Array) -> None:
    same = np.repeat(rows[:1], 500, axis=0)
    ids, similar = index.search(index.build(same, "cosine", in_cells=True), same[:2], 500)
    np.testing.assert_array_equal(np.sort(ids, axis=1), np.tile(np.arange(500), (2, 1)))
    np.testing.assert_allclose(similar, 1, atol=1e-6)


def test_segments_of_both_kinds_merge_and_rows_can_be_removed(rows: Array) -> None:
    whole = index.build(rows[:500], "cosine")
    parts = index.extend(index.build(rows[:300], "cosine", in_cells=True), rows[300:500])
    ids, _ = index.search(whole, rows[500:520], 8)
    merged, similar = index.search(parts, rows[500:520], 8)
    assert np.mean(merged == ids) > 0.95
    assert (np.diff(similar, axis=1) <= 0).all()
    first: Any = parts.segments[0]
    removed = merged[0, 0] if merged[0, 0] < 300 else merged[0][merged[0] < 300][0]
    first.bias[first.rows.numbers == removed] = -np.inf
    assert removed not in index.search(parts, rows[500:520], 8)[0]


@pytest.mark.parametrize("in_cells", [False, True])
def test_a_similarity_does_not_depend_on_the_other_queries(rows: Array, in_cells: bool) -> None:
    built = index.build(rows, "cosine", in_cells=in_cells)
    ids, similar = index.search(built, rows[:40], 9)
    for own in range(40):
        alone = index.search(built, rows[own : own + 1], 9)
        np.testing.assert_array_equal(ids[own], alone[0][0])
        np.testing.assert_array_equal(similar[own], alone[1][0])


def test_large_cells_are_split(rng: np.random.Generator) -> None:
    """One dense cloud among rows that are far apart."""
    cloud = rng.normal(size=(2_000, 6)).astype(np.float32) * 0.01 + 1
    built = cells.build(
        np.concatenate([rng.normal(size=(400, 6)).astype(np.float32) * 5, cloud]), "euclidean", "float32", 1
    )
    assert np.diff(built.starts).max() < 400


def test_rows_are_kept_in_their_cells(rows: Array) -> None:
    built = index.build(rows[:300], "cosine", in_cells=True).segments[0]
    is_kept = np.arange(300) % 3 > 0
    kept = cells.keep(built.rows, is_kept)
    cells.check(kept, 200, rows.shape[1])
    assert (np.diff(kept.starts) > 0).all()
    original = np.flatnonzero(is_kept)[kept.numbers]
    unit = rows[:300] / np.linalg.norm(rows[:300], axis=1, keepdims=True)
    np.testing.assert_allclose(kept.rows.values, unit[original], atol=1e-5)
