"""Columns that a model was fitted on, and those that rows got later."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from exmlds.validation.columns import UsedColumns


def test_labels_that_come_later_stand_behind_the_others() -> None:
    columns = UsedColumns(None, np.array([2, 5, 7])).with_labels(np.array([9, 0])).with_labels(np.array([6]))
    assert columns.all_labels.tolist() == [2, 5, 7, 9, 0, 6]  # type: ignore[union-attr]
    assert columns.with_labels(np.array([], np.int64)) is columns
    assert [columns.used(label) for label in (2, 7, 9, 0, 6, 1, 8)] == [0, 2, 3, 4, 5, None, None]
    assert columns.given(np.array([0, 3, 5, -1])).tolist() == [2, 9, 6, -1]
    Y = csr_matrix(np.arange(1, 21, dtype=np.float32).reshape(2, 10))
    np.testing.assert_array_equal(columns.of_labels(Y).toarray(), Y.toarray()[:, [2, 5, 7, 9, 0, 6]])
    assert columns.of_labels(Y).has_sorted_indices
    spread = columns.spread(np.arange(1, 7), 10)
    assert spread.tolist() == [5, 0, 1, 0, 0, 2, 6, 3, 0, 4]
    C = csr_matrix(np.arange(100, dtype=np.float32).reshape(10, 10))
    side = columns.side({"label_cooccurrence": C})["label_cooccurrence"]
    own = [2, 5, 7, 9, 0, 6]
    np.testing.assert_array_equal(side.toarray(), C.toarray()[np.ix_(own, own)])


def test_a_model_of_all_labels_has_all_that_come_later() -> None:
    columns = UsedColumns(None, None).with_labels(np.array([9]))
    assert columns.all_labels is None
    assert columns.used(9) == 9
