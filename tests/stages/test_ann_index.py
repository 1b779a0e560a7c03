"""Approximate neighbours, compared with exact ones."""

from __future__ import annotations

import gc
import sys
import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from exmlds.stages import ann_index, index

pytest.importorskip("usearch")


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(3_000, 10)).astype(np.float32) + 2 * rng.normal(size=(3_000, 1)).astype(
        np.float32
    )


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("storage", ["float32", "float16", "int8"])
def test_nearly_all_exact_neighbours_are_found(rows: np.ndarray, metric: str, storage: str) -> None:
    Q = rows[:200] + 0.1
    exact, expected = index.search(index.build(rows, metric), Q, 10)
    graph = index.build(rows, metric, storage, is_exact=False)
    ids, similar = index.search(graph, Q, 10)
    assert np.mean([len(set(a) & set(b)) for a, b in zip(ids, exact)]) > 9.5
    np.testing.assert_allclose(similar[:, 0], expected[:, 0], atol=0.02)
    assert (np.diff(similar, axis=1) <= 0).all()


def test_the_same_rows_give_the_same_graph_and_threads_do_not_matter(rows: np.ndarray) -> None:
    one, other = (ann_index.build(rows, "cosine", "float16") for _ in range(2))
    np.testing.assert_array_equal(one.saved, other.saved)
    for found, again in zip(*(ann_index.search(one, rows[:50], 5, threads) for threads in (1, 2))):
        np.testing.assert_array_equal(found, again)


@pytest.mark.parametrize("n_queries", [1, 4])
def test_fewer_rows_than_k(rows: np.ndarray, n_queries: int) -> None:
    ids, similar = index.search(index.build(rows[:3], "cosine", is_exact=False), rows[:n_queries], 5)
    assert (np.sort(ids[:, :3], axis=1) == [0, 1, 2]).all()
    assert (ids[:, 3:] == -1).all()
    assert np.isneginf(similar[:, 3:]).all()


def test_segments_of_both_kinds_merge(rows: np.ndarray) -> None:
    whole = index.build(rows[:500], "cosine")
    parts = index.extend(index.build(rows[:300], "cosine", is_exact=False), rows[300:500])
    ids, _ = index.search(whole, rows[500:520], 8)
    merged, similar = index.search(parts, rows[500:520], 8)
    assert np.mean(merged == ids) > 0.95
    assert (np.diff(similar, axis=1) <= 0).all()


def test_an_open_graph_is_closed_with_its_bytes(rows: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = ann_index.build(rows[:50], "cosine", "float16")
    usearch, opened = ann_index.require(), []

    class Index(usearch.Index):  # type: ignore[misc, name-defined]
        @classmethod
        def restore(cls, *given: Any, **options: Any) -> Any:
            made = usearch.Index.restore(*given, **options)
            opened.append(weakref.ref(made))
            return made

    monkeypatch.setattr(ann_index, "require", lambda: SimpleNamespace(Index=Index))
    for _ in range(2):
        ann_index.search(graph, rows[:2], 3, 1)
    assert [one() is not None for one in opened] == [True]  # opened once, and kept
    del graph
    gc.collect()
    assert opened[0]() is None


def test_the_install_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install .exmlds\[approximate\]"):
        ann_index.require()
