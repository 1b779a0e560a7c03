"""Which predictions can be judged where only some cells of Y are observed."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from exmlds.validation import observed


def test_known_cells() -> None:
    """Rows with a quarter of their cells observed are informative, if there are enough of them."""
    cells = np.zeros((60, 8), np.float32)
    cells[:, 0] = 1  # one of eight cells is observed
    cells[:50, 3] = 1  # two of eight
    matrix = csr_matrix(cells)
    ids = np.tile([[0, 3, 5, -1]], (60, 1))
    np.testing.assert_array_equal(observed.informative_rows(matrix), np.arange(60) < 50)
    expected = np.zeros((60, 4), bool)
    expected[:50, :2] = True
    np.testing.assert_array_equal(observed.known_cells(matrix, ids), expected)
    everything = np.tile([[True, True, True, False]], (60, 1))
    np.testing.assert_array_equal(observed.known_cells(None, ids), everything)
    np.testing.assert_array_equal(observed.known_cells(matrix[1:], ids[1:]), everything[1:])  # 49 rows
