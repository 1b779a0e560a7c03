"""Row operations on sparse and dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from exmlds.validation.arrays import block_of, row_norms, unit_rows, with_values

DENSE = np.array([[3.0, 4.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 2.0]], np.float32)


@pytest.mark.parametrize("X", [DENSE, csr_matrix(DENSE)], ids=["dense", "sparse"])
def test_lengths_by_hand(X: csr_matrix) -> None:
    assert row_norms(X).tolist() == [5.0, 0.0, 2.0]
    assert row_norms(X[:1]).tolist() == [5.0]
    scaled = unit_rows(X)
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(csr_matrix(scaled).toarray(), [[0.6, 0.8, 0], [0, 0, 0], [0, 0, 1]])


def test_with_values_does_not_change_its_input() -> None:
    X = csr_matrix(DENSE)
    other = with_values(X, X.data + 1)
    assert other.toarray().tolist() == [[4, 5, 0], [0, 0, 0], [0, 0, 3]]
    assert X.toarray().tolist() == DENSE.tolist()


def test_blocks() -> None:
    X = csr_matrix(DENSE)
    assert block_of(X, slice(0, 3)) is X
    assert block_of(X, slice(0, 9)) is X
    assert block_of(X, slice(1, 3)).toarray().tolist() == DENSE[1:].tolist()
