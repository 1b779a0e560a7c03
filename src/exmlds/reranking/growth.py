"""Growth of a re-ranking model: classifiers of labels that gained or lost rows are trained again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from ..runtime import parallel
from ..stages import features, rerank
from ..validation.arrays import Matrix, take_rows
from ..voting.base import NeighborVoting
from .pipeline import LIST_BLOCK, PRUNE_BELOW, transform_sparse

Array = np.ndarray

REFIT_SHARE = 0.005  # of all rows that are added or removed before classifiers are trained again
DUE_SHARE = 0.2  # of a label's rows that it gains or loses before its classifier is trained again


class RerankerUpdate(NamedTuple):
    """Classifiers that were trained again.

    labels : (m,) int64, ascending;  weights : theirs
    """

    labels: Array
    weights: rerank.LabelWeights


class ClassifierSettings(NamedTuple):
    """How classifiers are trained: as in `rerank.train`, and the feature transform before."""

    feature_map: features.Features
    loss: str
    cost: float
    n_passes: int


def due_labels(counts: Array, trained_counts: Array) -> Array:
    """The labels whose classifiers are to be trained again, ascending.

    counts : (L,) rows of each label;  trained_counts : (L,) when its classifier was trained, 0 for none
    """
    change = np.abs(counts - trained_counts)
    return np.flatnonzero((change >= np.maximum(DUE_SHARE * trained_counts, 1)) & (counts > 0))


def train_again(
    shortlister: NeighborVoting, X: Matrix, labels: Array, settings: ClassifierSettings
) -> RerankerUpdate:
    """Train the classifiers of some labels on the rows that have them and on the rows nearest to these.

    In a fit, the negatives of a label are the rows whose short lists hold it: those that have its rows among
    their neighbours. Here they are the neighbours of its rows, so that only few rows are searched for.

    X : (n, d) the rows that vote, in their order;  labels : (m,) ascending
    """
    positives = _columns(shortlister.labels_, labels)
    members = np.flatnonzero(np.diff(positives.indptr))  # rows that have one of the labels
    search = shortlister.leave_one_out(X)
    found = parallel.map_blocks(
        lambda block: np.concatenate([one.neighbors for one in search(members[block])], axis=1),
        parallel.blocks(len(members), LIST_BLOCK),
        n_jobs=shortlister.n_jobs,
        stage="neighbours of the rows of labels",
        total=len(members),
    )
    near = np.concatenate(list(found))
    is_near = near >= 0
    voters = csr_matrix(
        (np.ones(int(is_near.sum()), np.float32), (near[is_near], np.nonzero(is_near)[0])),
        (positives.shape[0], len(members)),
    )
    listed = csr_matrix(voters @ positives[members])
    # Only rows that are examples are transformed.
    rows = np.flatnonzero(np.diff(positives.indptr) + np.diff(listed.indptr))
    examples = rerank.examples(
        positives[rows], np.empty((len(rows), 0), np.int32), listed[rows], engine=shortlister.engine
    )
    weights, _ = rerank.train(
        transform_sparse(settings.feature_map, take_rows(X, rows)),
        examples,
        loss=settings.loss,
        cost=settings.cost,
        keep_from=PRUNE_BELOW,
        n_epochs=settings.n_passes,
        n_jobs=shortlister.n_jobs,
        engine=shortlister.engine,
    )
    return RerankerUpdate(labels, weights)


def _columns(Y: csr_matrix, labels: Array) -> csr_matrix:
    """(n, m) csr of ones, the columns of labels, ascending, where a row has them."""
    position = np.full(Y.shape[1], -1)
    position[labels] = np.arange(len(labels))
    is_listed = (position[Y.indices] >= 0) & (Y.data >= 1)
    counts = np.concatenate(([0], np.cumsum(is_listed)))[Y.indptr]
    columns = position[Y.indices[is_listed]].astype(np.int32)
    return csr_matrix((np.ones(len(columns), np.float32), columns, counts), (Y.shape[0], len(labels)))
