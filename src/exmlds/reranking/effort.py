"""How much work a fit of a re-ranking model takes, in one word."""

from __future__ import annotations

from typing import NamedTuple


class Effort(NamedTuple):
    """What a fit spends its time on.

    is_searched : whether the configuration is chosen on held-out rows of a sample; otherwise it is the first
        shortlister with its usual scaling of features, and the first of `costs` and `shortlists`
    shortlists, costs : to choose among; of the costs, a later one is taken where it is no worse
    n_learners : members of the ensemble of joint learning
    n_epochs, n_dense_epochs : of joint learning, for sparse rows and for dense ones
    n_more_epochs : of the refit on all rows, which resumes the last fold
    n_passes, n_more_passes : over the examples of a label, in a fold and in the refit
    n_folds : folds at least and at most; between them, as many as give enough held-out rows
    second_rows : rows up to which a second shortlister may be better, or gives more evidence
    """

    is_searched: bool
    shortlists: tuple[int, ...]
    costs: tuple[float, ...]
    n_learners: int
    n_epochs: int
    n_dense_epochs: int
    n_more_epochs: int
    n_passes: int
    n_more_passes: int
    n_folds: tuple[int, int]
    second_rows: int


EFFORTS = {
    "fast": Effort(False, (120,), (0.5,), 1, 3, 5, 0, 6, 2, (1, 1), 0),
    "balanced": Effort(True, (120, 240), (1.0, 0.3), 1, 3, 10, 2, 10, 5, (1, 5), 8_000),
    "best": Effort(True, (240, 480), (1.0, 0.3), 3, 6, 20, 2, 10, 5, (3, 5), 100_000),
}
