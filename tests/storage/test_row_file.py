"""Files of rows: by key, and whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from exmlds import DataError
from exmlds.storage import row_file


def test_the_records_of_a_key_come_back_in_their_order(tmp_path: Path) -> None:
    X = csr_matrix(np.eye(3, dtype=np.float32))
    row_file.write(tmp_path / "rows", [("a", {"X": X}), ("b", 5), ("a", {"X": 2 * X})])
    first, second = row_file.read(tmp_path / "rows", "a")
    np.testing.assert_array_equal(first["X"].toarray(), np.eye(3))
    np.testing.assert_array_equal(second["X"].toarray(), 2 * np.eye(3))
    assert row_file.read_one(tmp_path / "rows", "b") == 5
    assert not list(row_file.read(tmp_path / "rows", "c"))
    sizes = row_file.sizes(tmp_path / "rows")
    assert sizes["a"] > 2 * sizes["b"] > 0


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> object:
        yield "a", 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        row_file.write(tmp_path / "rows", broken())  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("change", ["cut", "flip", "other"])
def test_damage_is_named(tmp_path: Path, change: str) -> None:
    path = tmp_path / "rows"
    row_file.write(path, [("a", {"X": np.arange(100)})])
    raw = bytearray(path.read_bytes())
    if change == "flip":
        raw[200] ^= 1
    path.write_bytes({"cut": raw[:-3], "flip": raw, "other": b"text"}[change])
    with pytest.raises(DataError, match="rows is damaged; remove it"):
        list(row_file.read(path, "a"))
