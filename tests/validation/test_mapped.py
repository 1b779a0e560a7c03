"""Operations on memory-mapped rows: the same as in memory, with results in scratch files."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

from exmlds import DataError
from exmlds.stages import features
from exmlds.validation import arrays, columns, mapped, targets


def mapped_csr(folder: Path, X: csr_matrix) -> csr_matrix:
    """X with read-only, memory-mapped values and columns."""
    parts = []
    for name in ("data", "indices"):
        np.save(folder / f"{name}.npy", getattr(X, name))
        parts.append(np.load(folder / f"{name}.npy", mmap_mode="r"))
    return csr_matrix((*parts, X.indptr), shape=X.shape)


@pytest.fixture(name="X")
def some_rows() -> csr_matrix:
    found = csr_matrix(random_array((70, 40), density=0.2, rng=np.random.default_rng(0), dtype=np.float32))
    found.data = np.rint(9 * found.data + 1)
    found = csr_matrix(
        found.multiply(np.arange(70)[:, None] % 7 != 0), dtype=np.float32
    )  # some rows are empty
    found.eliminate_zeros()
    found.sort_indices()
    return found


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "CELLS", 25)
    monkeypatch.setattr(mapped, "SCRATCH_FROM", 0)


def test_what_is_mapped(tmp_path: Path, X: csr_matrix) -> None:
    there = mapped_csr(tmp_path, X)
    assert mapped.is_mapped(there.data)
    assert mapped.is_mapped(there.indices[3:])
    assert not there.data.flags.writeable
    assert not mapped.is_mapped(X.data)
    assert not mapped.is_mapped(there.data + 1)
    assert not mapped.is_mapped(None)


def test_scratch_arrays_are_as_large_as_needed(tmp_path: Path, X: csr_matrix) -> None:
    there = mapped_csr(tmp_path, X)
    made = mapped.zeros(1000, np.int64, there.data)
    assert (mapped.is_mapped(made), made.shape, made.dtype, made.any()) == (True, (1000,), np.int64, False)
    made[:] = 3
    assert made.sum() == 3000
    assert not mapped.is_mapped(mapped.zeros(1000, np.int64, X.data))


def test_a_full_disk_is_an_error(tmp_path: Path, X: csr_matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(DataError, match=r"has no room for 0.008 GB of scratch files.*TMPDIR"):
        mapped.zeros(1_000_000, np.float64, mapped_csr(tmp_path, X).data)


OPERATIONS: dict[str, Callable[[csr_matrix], csr_matrix]] = {
    "unit rows": arrays.unit_rows,
    "squares": arrays.squared,
    "some rows": lambda X: arrays.take_rows(X, np.array([5, 2, 69, 0, 7, 2])),
    "some columns": lambda X: columns.select(X, np.array([1, 4, 5, 30, 39])),
    **{
        kind: lambda X, kind=kind: features.apply(features.fit(kind, X, np.random.default_rng(0)), X)
        for kind in ("l2", "sqrt-l2", "log1p-l2", "idf-l2")
    },
}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_mapped_rows_give_mapped_results(
    operation: Callable[[csr_matrix], csr_matrix],
    tmp_path: Path,
    X: csr_matrix,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = operation(mapped_csr(tmp_path, X))
    assert mapped.is_mapped(found.data)
    monkeypatch.setattr(arrays, "CELLS", 1 << 20)
    expected = operation(X)
    assert not mapped.is_mapped(expected.data)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))
        assert getattr(found, part).dtype == getattr(expected, part).dtype


def test_rows_and_columns_are_those_of_scipy(X: csr_matrix) -> None:
    rows, some = np.array([5, 2, 69, 0, 7, 2]), np.array([1, 4, 5, 30, 39])
    np.testing.assert_array_equal(arrays.take_rows(X, rows).toarray(), X[rows].toarray())
    np.testing.assert_array_equal(columns.select(X, some).toarray(), X[:, some].toarray())
    assert columns.select(X, some[:0]).shape == (70, 0)
    assert arrays.take_rows(X, np.arange(70)) is X
    np.testing.assert_array_equal(arrays.used_columns(X), np.unique(X.indices))
    np.testing.assert_array_equal(arrays.count_columns(X), np.bincount(X.indices, minlength=40))
    np.testing.assert_array_equal(arrays.squared(X).toarray(), X.multiply(X).toarray())


def test_a_block_has_few_values_or_one_row(X: csr_matrix) -> None:
    found = list(arrays.row_blocks(X))
    assert [row for block in found for row in range(block.start, block.stop)] == list(range(70))
    for block in found:
        assert X[block].nnz <= 25 or block.stop - block.start == 1
    assert len(found) > 10


def test_ids_that_occur_are_found_without_sorting_them(
    X: csr_matrix, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = columns.occurring(X.indices, 40)
    monkeypatch.setattr(columns, "FEW_IDS", 0)
    np.testing.assert_array_equal(columns.occurring(X.indices, 40), expected)


def test_repeated_rows_are_recognized_in_blocks(X: csr_matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    in_blocks = targets._fingerprints(X)
    monkeypatch.setattr(arrays, "CELLS", 1 << 20)
    np.testing.assert_array_equal(in_blocks, targets._fingerprints(X))
    assert len(np.unique(in_blocks)) == np.count_nonzero(np.diff(X.indptr)) + 1
