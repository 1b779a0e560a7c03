"""Folds within a time budget: what the refit continues from is the last fold that was fitted."""

from __future__ import annotations

import numpy as np
import pytest

from exmlds import ExMLDS4
from exmlds.data import make_xmc
from exmlds.reranking.cross_fit import cross_fit, refit, start
from exmlds.reranking.pipeline import Config
from exmlds.reranking.search import TimeBudget
from exmlds.selection import HoldOut, TrainingSet


class TwoFolds(TimeBudget):
    """Time for two folds, and for no refit where `is_over`."""

    def __init__(self, is_over: bool) -> None:
        super().__init__(None)
        self.asked, self.is_over = 0, is_over

    def allows(self, seconds: float) -> bool:
        self.asked += 1
        return self.asked == 1 or (self.asked > 2 and not self.is_over)


@pytest.mark.parametrize("is_over", [False, True])
def test_the_last_fold_that_was_fitted_is_the_last(is_over: bool) -> None:
    data = make_xmc(300, 60, 12, random_state=0)
    labelled = np.flatnonzero(np.diff(data.Y.indptr))
    rows = TrainingSet(data.X[labelled], data.Y[labelled], {}, {})
    method = ExMLDS4(n_components=5, features="l2", n_epochs=2, n_learners=1, temperature=0.1, threshold=0.0)
    rngs = [np.random.default_rng(seed) for seed in range(3)]
    budget = TwoFolds(is_over)
    fitted = cross_fit(
        Config(method, None, 8, "l2", "squared_hinge", 1.0, (10, 5), False),
        rows,
        start(method, rows, fold_rng=rngs[0], fit_rng=rngs[1], n_folds=(1, 5)),
        fit_rng=rngs[1],
        ensemble_rng=None,
        budget=budget,
    )
    folds = HoldOut.folds(rows.n, np.random.default_rng(0))
    np.testing.assert_array_equal(fitted.held_rows, np.concatenate([f.held_rows for f in folds[:2]]))
    np.testing.assert_array_equal(fitted.train_rows, folds[1].train_rows)
    (pipeline, _), used = refit(fitted, rows, rngs[2], budget)
    assert len(used) == (len(folds[1].train_rows) if is_over else rows.n)
    np.testing.assert_array_equal(used[: len(folds[1].train_rows)], folds[1].train_rows)
    np.testing.assert_array_equal(pipeline.shortlister.labels_.toarray(), rows.Y[used].toarray())
