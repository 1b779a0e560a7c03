"""Pairs of .npz files that are memory-mapped: writing, reading, conversion in blocks, and damage."""

from __future__ import annotations

import gzip
import os
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, load_npz, save_npz

from exmlds import DataError, DataWarning
from exmlds.data import (
    Dataset,
    convert_to_mapped,
    find,
    iter_xc,
    load,
    make_xmc,
    read_npz,
    read_xc,
    write_npz,
    write_xc,
)
from exmlds.data import npz as npz_module
from exmlds.data.npz import is_mapped_npz
from exmlds.validation.mapped import is_mapped


@pytest.fixture(scope="module")
def data() -> Dataset:
    return make_xmc(60, 50, 9, random_state=0)


def assert_equal(found: Dataset, expected: Dataset) -> None:
    for one, other in zip(found[:2], expected[:2]):
        assert one.shape == other.shape
        assert one.dtype == other.dtype == np.float32
        np.testing.assert_array_equal(one.toarray(), other.toarray())
    assert found[2:] == expected[2:]


def test_a_pair_is_mapped_and_read_by_others_too(data: Dataset, tmp_path: Path) -> None:
    x_path, y_path = write_npz(tmp_path / "trn.npz", data, mapped=True)
    assert (x_path.name, y_path.name) == ("X.trn.npz", "Y.trn.npz")
    found = read_xc(y_path)
    assert_equal(found, data)
    for part in (found.X.data, found.X.indices):
        assert is_mapped(part)
        assert not part.flags.writeable
        assert part.ctypes.data % 64 == 0
    assert not is_mapped(found.Y.data)
    for path, matrix in zip((x_path, y_path), data[:2]):
        assert is_mapped_npz(path)
        np.testing.assert_array_equal(load_npz(path).toarray(), matrix.toarray())
    # The files may be replaced while they are in use.
    write_npz(x_path, data.rows(slice(0, 5)), mapped=True)
    assert_equal(found, data)
    assert read_xc(x_path).X.shape == (5, 50)


def test_other_pairs_are_read_into_memory(data: Dataset, tmp_path: Path) -> None:
    x_path, _ = write_npz(tmp_path / "trn.npz", data)
    save_npz(tmp_path / "plain.npz", data.X, compressed=False)
    for path in (x_path, tmp_path / "plain.npz"):
        assert not is_mapped_npz(path)
        assert not is_mapped(read_npz(path).data)
    assert not is_mapped_npz(tmp_path)
    assert not is_mapped_npz(tmp_path / "gone.npz")
    assert not is_mapped_npz(Path(os.devnull))


def test_blocks_of_rows_are_written_one_by_one(data: Dataset, tmp_path: Path) -> None:
    path, _ = write_npz(
        tmp_path / "X.a.npz", (data.rows(slice(i, i + 7)) for i in range(0, 60, 7)), mapped=True
    )
    assert_equal(read_xc(path), data)
    with pytest.raises(DataError, match="mapped=True only"):
        write_npz(tmp_path / "X.b.npz", iter([data]))
    np.testing.assert_array_equal(np.vstack([block.X.toarray() for block in iter_xc(path)]), data.X.toarray())


def test_rows_are_put_in_order_and_checked(tmp_path: Path) -> None:
    X = csr_matrix((np.array([1.0, 2, 3, 4]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])), shape=(2, 3))
    Y = np.array([[1, 0], [0, 1]])
    path, _ = write_npz(tmp_path / "X.a.npz", Dataset(X, Y), mapped=True)  # type: ignore[arg-type]
    assert read_xc(path).X.toarray().tolist() == [[2, 0, 4], [0, 4, 0]]
    X.data[1] = np.inf
    for wrong in (Dataset(X, Y), Dataset(X[:1], Y)):  # type: ignore[arg-type]
        with pytest.raises(DataError, match=r"not finite|X has 1 rows, but Y has 2"):
            write_npz(path, wrong, mapped=True)
    assert read_xc(path).X.toarray().tolist() == [[2, 0, 4], [0, 4, 0]]  # as before
    assert sorted(os.listdir(tmp_path)) == ["X.a.npz", "Y.a.npz"]


def test_nothing_at_all(tmp_path: Path) -> None:
    nothing = Dataset(csr_matrix((3, 0), dtype=np.float32), csr_matrix((3, 2), dtype=np.float32))
    path, _ = write_npz(tmp_path / "X.a.npz", nothing, mapped=True)
    assert_equal(read_xc(path), nothing)


def test_more_values_than_32_bits_count(
    data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(npz_module, "LARGEST", 100)
    path, _ = write_npz(tmp_path / "X.a.npz", data, mapped=True)
    with np.load(path) as arrays:
        assert arrays["indices"].dtype == np.int64
    assert_equal(read_xc(path), data)


FORMS: dict[str, Any] = {
    "text": lambda folder, data: write_xc(folder / "a.txt", data) or (folder / "a.txt",),
    "gzip": lambda folder, data: write_xc(folder / "a.txt.gz", data) or (folder / "a.txt.gz",),
    "npz": lambda folder, data: write_npz(folder / "X.b.npz", data)[:1],
    "mapped": lambda folder, data: write_npz(folder / "X.b.npz", data, mapped=True)[:1],
    "named": lambda folder, data: write_npz(folder / "b.npz", data),
}


@pytest.mark.parametrize("form", FORMS)
def test_conversion_of_each_format(form: str, data: Dataset, tmp_path: Path) -> None:
    (tmp_path / "from").mkdir()
    (tmp_path / "from" / "label_names.txt").write_text("".join(f"label {i}\n" for i in range(9)))
    paths = FORMS[form](tmp_path / "from", data)
    names = convert_to_mapped(paths[0], tmp_path / "X.a.npz", *paths[1:])
    assert names == ([f"label {i}" for i in range(9)], None)
    assert is_mapped(read_xc(tmp_path / "X.a.npz").X.data)
    assert_equal(read_xc(tmp_path / "X.a.npz"), data)


def test_conversion_of_the_split_form(data: Dataset, tmp_path: Path) -> None:
    for name, matrix in (("trn_X_Xf.txt", data.X), ("trn_X_Y.txt", data.Y)):
        rows = [" ".join(f"{i}:{v}" for i, v in zip(row.indices, row.data)) for row in matrix]
        header = f"{matrix.shape[0]} {matrix.shape[1]}\n"
        (tmp_path / name).write_text(header + "\n".join(rows) + "\n")
    convert_to_mapped(tmp_path / "trn_X_Y.txt", tmp_path / "X.a.npz")
    assert_equal(read_xc(tmp_path / "X.a.npz"), read_xc(tmp_path / "trn_X_Xf.txt"))
    with pytest.raises(DataError, match="one_based applies to"):
        convert_to_mapped(
            tmp_path / "trn_X_Xf.txt", tmp_path / "X.b.npz", tmp_path / "trn_X_Y.txt", one_based=True
        )


@pytest.mark.parametrize("block", [1, 40, 1 << 20])
def test_conversion_without_a_header(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Widths are those of the largest ids, and disorder is repaired with the same warning as by `read_xc`."""
    monkeypatch.setattr("exmlds.data.convert.STREAMED", block)
    path = tmp_path / "a.txt"
    path.write_text("1 1:1 2:2\n2,3 5:1 3:2 3:1\n 1:4\n5,1,1 7:1\n\n\n2 1:1\n")
    with pytest.warns(DataWarning, match="unsorted") as expected:
        one = read_xc(path, one_based=True)
    with pytest.warns(DataWarning, match="unsorted") as warned:
        convert_to_mapped(path, tmp_path / "X.a.npz", one_based=True)
    assert [str(w.message) for w in warned] == [str(w.message) for w in expected]
    assert_equal(read_xc(tmp_path / "X.a.npz"), one)
    assert one.X.shape == (7, 7)


def test_conversion_warns_of_mistyped_ids(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("0 1:1\n1 2000000000:1\n")
    with pytest.warns(DataWarning, match=r"a.txt:2: feature 2000000000 is far above .* 2; is it mistyped"):
        convert_to_mapped(path, tmp_path / "X.a.npz")
    assert read_xc(tmp_path / "X.a.npz").X.shape == (2, 2_000_000_001)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2 4 3\n0 1:1\n1 2:x\n", r"a.txt:3: '2:x' is not a number"),
        ("2 4 3\n0 1:1\n1 9:1\n", r"a.txt:3: feature index 9 is out of range"),
        ("2 4 3\n0 1:1\n7 2:1\n", r"a.txt:3: label 7 is out of range"),
        ("2 4 3\n0 1:1\n1 2:1e99\n", r"a.txt:3: '2:1e99' is not a finite float32"),
        ("3 4 3\n0 1:1\n1 2:1\n", r"a.txt:1: the header declares 3 rows, the file has 2"),
        ("0 1:1\r1 2:1\n", r"a.txt:1: a \\r within a line"),
    ],
)
def test_bad_input_is_named_and_leaves_nothing(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(DataError, match=message):
        convert_to_mapped(tmp_path / "a.txt", tmp_path / "X.a.npz")
    packed = gzip.compress(text.encode() * 50)
    (tmp_path / "b.txt.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError):
        convert_to_mapped(tmp_path / "b.txt.gz", tmp_path / "X.a.npz")
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "b.txt.gz"]
    with pytest.raises(DataError, match="cannot be written"):
        convert_to_mapped(tmp_path / "a.txt", tmp_path / "gone" / "X.a.npz")


def test_conversion_takes_little_memory(tmp_path: Path) -> None:
    """A text of 8 MB that is 1 MB when packed; its matrix would take 11 MB."""
    row = "1,2 " + " ".join(f"{i}:0.5" for i in range(0, 700)) + "\n"
    with gzip.open(tmp_path / "a.txt.gz", "wt") as file:
        file.write("2000 1000 5\n")
        file.write(row * 2000)
    convert_to_mapped(tmp_path / "a.txt.gz", tmp_path / "X.warm.npz")  # what is loaded once
    tracemalloc.start()
    try:
        convert_to_mapped(tmp_path / "a.txt.gz", tmp_path / "X.a.npz")
        converting = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        X = read_npz(tmp_path / "X.a.npz")
        opening = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert X.nnz == 1_400_000
    assert converting < 30e6  # blocks of 1 MB of text, and the arrays that the parser fills for each
    assert opening < 10e6


def test_named_data_sets_are_mapped_where_they_were_converted(
    data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXMLDS_DATA", str(tmp_path))
    folder = tmp_path / "own"
    folder.mkdir()
    for split, name in (("train", "trn"), ("test", "tst")):
        write_xc(folder / f"{split}.txt.gz", data)
        write_npz(folder / f"X.{name}.npz", data)
        assert find("own", split).name == f"{split}.txt.gz"
        convert_to_mapped(find("own", split), folder / f"X.{name}.npz")
        assert find("own", split).name == f"X.{name}.npz"
    for split in load("own"):
        assert is_mapped(split.X.data)
        assert_equal(split, data)


# Damage.


def test_any_damaged_byte_is_found(data: Dataset, tmp_path: Path) -> None:
    path, _ = write_npz(tmp_path / "X.a.npz", data.rows(slice(0, 9)), mapped=True)
    good = path.read_bytes()
    expected = read_npz(path).toarray()
    rng, refused = np.random.default_rng(0), 0
    for position in rng.choice(len(good) - len(npz_module.MAPPED), 400, replace=False):
        path.write_bytes(good[:position] + bytes([good[position] ^ 0x55]) + good[position + 1 :])
        try:
            found = read_npz(path)
        except DataError as error:
            refused += 1
            assert "convert the data again" in str(error)
            continue
        np.testing.assert_array_equal(found.toarray(), expected)  # a byte that says nothing, such as a date
    assert refused > 250


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.9])
def test_a_file_that_was_cut_is_refused(kept: float, data: Dataset, tmp_path: Path) -> None:
    path, _ = write_npz(tmp_path / "X.a.npz", data, mapped=True)
    good = path.read_bytes()
    path.write_bytes(good[: int(kept * len(good))] + good[-len(npz_module.MAPPED) :])
    with pytest.raises(DataError):
        read_xc(path)
    path.write_bytes(good[: int(kept * len(good))])
    with pytest.raises(DataError):
        read_xc(path)


def crafted(path: Path, **arrays: Any) -> Path:
    """A file whose checksums are right; `changes` are arrays of a (2, 4) matrix, or bytes in their place."""
    good = {
        "indptr": np.array([0, 2, 3]),
        "format": np.array(b"csr"),
        "shape": np.array([2, 4]),
        "indices": np.array([0, 3, 1], np.int32),
        "data": np.array([1, 2, 3], np.float32),
    }
    with path.open("wb") as file, zipfile.ZipFile(file, "w") as archive:
        archive.comment = npz_module.MAPPED
        for name, array in {**good, **arrays}.items():
            if array is not None:
                kind = array.dtype.str, array.shape
                npz_module._write_member(archive, file, name, *kind, [array.tobytes()])
    return path


CRAFTED: dict[str, dict[str, Any]] = {
    "column too large": {"indices": np.array([0, 4, 1], np.int32)},
    "column below 0": {"indices": np.array([-1, 3, 1], np.int32)},
    "unsorted columns": {"indices": np.array([3, 0, 1], np.int32)},
    "repeated columns": {"indices": np.array([3, 3, 1], np.int32)},
    "rows that overlap": {"indptr": np.array([0, 4, 3])},
    "rows after the end": {"indptr": np.array([0, 2, 9])},
    "rows before the start": {"indptr": np.array([-5, 2, 3])},
    "first row later": {"indptr": np.array([1, 2, 3])},
    "another number of rows": {"shape": np.array([3, 4])},
    "negative width": {"shape": np.array([2, -4])},
    "absurd width": {"shape": np.array([2, 2**40])},
    "three dimensions": {"shape": np.array([2, 4, 1])},
    "fractional shape": {"shape": np.array([2.0, 4.0])},
    "another format": {"format": np.array(b"csc")},
    "double precision": {"data": np.array([1, 2, 3], np.float64)},
    "big-endian": {"data": np.array([1, 2, 3], ">f4")},
    "fewer values": {"data": np.array([1, 2], np.float32)},
    "no value": {"data": np.zeros(0, np.float32)},
    "values in two dimensions": {"data": np.ones((3, 1), np.float32)},
    "whole numbers": {"data": np.array([1, 2, 3], np.int32)},
    "short columns": {"indices": np.array([0, 3, 1], np.int16)},
    "short ends": {"indptr": np.array([0, 2, 3], np.int32)},
    "no columns": {"indices": None},
    "no shape": {"shape": None},
    "nan": {"data": np.array([1, np.nan, 3], np.float32)},
    "infinity": {"data": np.array([1, np.inf, 3], np.float32)},
}


def test_a_crafted_file_may_be_right(tmp_path: Path) -> None:
    assert read_npz(crafted(tmp_path / "X.a.npz")).toarray().tolist() == [[1, 0, 0, 2], [0, 3, 0, 0]]


@pytest.mark.parametrize("change", CRAFTED.values(), ids=CRAFTED)
def test_crafted_files_are_refused(change: dict[str, Any], tmp_path: Path) -> None:
    path = crafted(tmp_path / "X.a.npz", **change)
    with pytest.raises(DataError, match=r"X.a.npz"):
        read_npz(path)


def test_arrays_must_lie_in_the_file_as_they_are(data: Dataset, tmp_path: Path) -> None:
    """The comment alone makes no file that can be mapped."""
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        save_npz(tmp_path / "plain.npz", data.X, compressed=False)
        with (
            zipfile.ZipFile(tmp_path / "plain.npz") as source,
            zipfile.ZipFile(tmp_path / "X.a.npz", "w", compression) as target,
        ):
            target.comment = npz_module.MAPPED
            for name in source.namelist():
                target.writestr(name, source.read(name))
        with pytest.raises(DataError, match="convert the data again"):
            read_npz(tmp_path / "X.a.npz")


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 20), st.integers(1, 9))
def test_any_matrix_comes_back(tmp_path: Path, seed: int, n: int, d: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    X, Y = ((rng.random((n, width)) < 0.3) * rng.normal(size=(n, width)) for width in (d, 5))
    given = Dataset(csr_matrix(X, dtype=np.float32), csr_matrix(Y != 0, dtype=np.float32))
    blocks = (given.rows(slice(i, i + size)) for i in range(0, n, size))
    assert_equal(read_xc(write_npz(tmp_path / "X.a.npz", blocks, mapped=True)[0]), given)
