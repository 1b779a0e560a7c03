"""How much work a fit of a re-ranking model takes, in one word."""

from __future__ import annotations

from typing import NamedTuple


class Effort(NamedTuple):
    """What a fit spends its time on.

    is_searched : whether the configuration is chosen on held-out rows of a sample; otherwise it is the first
        shortlister with its usual scaling of features, and the first of `costs` and `shortlists`
    shortlists, costs : to choose among; of the costs, a later one is taken where it is no worse
    n_neighbors : rows that vote on a short list; with fewer, more labels have no vote at all
    n_learners : members of the ensemble of joint learning
    n_epochs, n_dense_epochs : of joint learning, for sparse rows and for dense ones
    n_passes, n_more_passes : over the examples of a label, in a fold and, at most, in the refit
    n_folds : folds at least and at most; between them, as many as give enough held-out rows
    has_centroids : whether the similarity to the mean row of each label is evidence too
    second_rows : rows up to which a second shortlister may be better, or gives more evidence
    """

    is_searched: bool
    shortlists: tuple[int, ...]
    costs: tuple[float, ...]
    n_neighbors: int
    n_learners: int
    n_epochs: int
    n_dense_epochs: int
    n_passes: int
    n_more_passes: int
    n_folds: tuple[int, int]
    has_centroids: bool
    second_rows: int


BALANCED = Effort(
    is_searched=True,
    shortlists=(120, 240),
    costs=(1.0, 0.3),
    n_neighbors=100,
    n_learners=1,
    n_epochs=5,
    n_dense_epochs=10,
    n_passes=10,
    n_more_passes=5,
    n_folds=(1, 5),
    has_centroids=True,
    second_rows=8_000,
)
EFFORTS = {
    "fast": BALANCED._replace(
        is_searched=False,
        shortlists=(120,),
        costs=(0.5,),
        n_neighbors=60,
        n_epochs=3,
        n_dense_epochs=5,
        n_passes=6,
        n_more_passes=2,
        has_centroids=False,
        second_rows=0,
    ),
    "balanced": BALANCED,
    "best": BALANCED._replace(
        shortlists=(240, 480),
        n_learners=3,
        n_epochs=6,
        n_dense_epochs=20,
        n_folds=(3, 5),
    ),
}
