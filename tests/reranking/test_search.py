"""What `ExMLDS` chooses among before anything is fitted."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from exmlds.reranking.search import candidate_scalings, default_scaling, shortest_sufficient

PLACES = np.random.default_rng(0).random((40, 30)) < 0.1
NUMBERS = np.random.default_rng(1).integers(1, 9, (40, 30))


@pytest.mark.parametrize(
    ("rows", "kinds", "mapped_by"),
    [
        (csr_matrix(PLACES * NUMBERS), ["l2", "log1p-l2", "idf-l2"], "log1p-l2"),
        (csr_matrix(PLACES * 1.0), ["l2", "idf-l2"], "l2"),
        (csr_matrix(PLACES * NUMBERS * 0.3), ["l2", "sqrt-l2"], "sqrt-l2"),
        (csr_matrix(PLACES * (NUMBERS - 4.5)), ["l2"], "l2"),
    ],
    ids=["counts", "binary", "weights", "signed"],
)
def test_features_by_the_numbers_of_sparse_rows(rows: csr_matrix, kinds: list[str], mapped_by: str) -> None:
    assert candidate_scalings(rows) == kinds
    assert default_scaling(rows) == mapped_by


def test_features_of_dense_rows() -> None:
    assert candidate_scalings(NUMBERS * 0.3) == ["l2", "standardize"]


@pytest.mark.parametrize(
    ("recalls", "length"), [([0.5, 0.7, 0.705], 2), ([0.5, 0.505, 0.9], 1), ([0.5, 0.6, 0.7], 3)]
)
def test_lists_grow_while_they_hold_more(recalls: list[float], length: int) -> None:
    assert shortest_sufficient([1, 2, 3], np.array(recalls)) == length
