"""Label lift, by hand and by loops."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from exmlds.data import make_xmc
from exmlds.stages import label_lift


def test_lifts_by_hand() -> None:
    Y = csr_matrix(np.array([[1, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 1]], np.float32))
    share = 2.5 / 4  # of each label
    once, never = log((1 + 2 * share) / (4 * share)), log(2 * share / (4 * share))
    expected = [[0, once, never], [once, 0, once], [never, once, 0]]
    np.testing.assert_allclose(label_lift.fit(Y), expected, atol=1e-3)


def test_a_label_that_never_occurs_lifts_none() -> None:
    lifts = label_lift.fit(csr_matrix(np.array([[1, 0], [1, 0]], np.float32)))
    np.testing.assert_allclose(lifts[1], 0, atol=1e-3)
    assert np.isfinite(lifts).all()


def test_lifts_of_blocks_are_those_of_all_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    Y = make_xmc(300, 20, 40, random_state=0).Y
    whole = label_lift.fit(Y)
    monkeypatch.setattr(label_lift, "BLOCK", 7)
    np.testing.assert_array_equal(label_lift.fit(Y), whole)


def test_likely_labels_lift_others() -> None:
    rng = np.random.default_rng(0)
    lifts = rng.normal(size=(30, 30)).astype(np.float16)
    np.fill_diagonal(lifts, 0)
    ids = np.stack([rng.permutation(30)[:20] for _ in range(5)])
    margins = rng.normal(size=ids.shape).astype(np.float32)
    ids[0, 12:], margins[0, 12:] = -1, -np.inf
    ids[1, 4:], margins[1, 4:] = -1, -np.inf
    found = label_lift.apply(lifts, ids, margins)
    for row in range(5):
        given = sorted(range(20), key=lambda column: -margins[row, column])[:10]
        for column in np.flatnonzero(ids[row] >= 0):
            expected = sum(
                float(lifts[ids[row, other], ids[row, column]]) / (1 + exp(-3 * margins[row, other]))
                for other in given
                if ids[row, other] >= 0
            )
            np.testing.assert_allclose(found[row, column], expected, atol=1e-4)


def test_pads_and_large_margins_do_not_warn() -> None:
    found = label_lift.apply(np.zeros((2, 2), np.float16), np.array([[0, -1]]), np.array([[-1e6, -np.inf]]))
    assert found.tolist() == [[0, 0]]
