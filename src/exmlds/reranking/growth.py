"""Growth of a re-ranking model: classifiers of labels that gained or lost rows are trained again."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..selection import TrainingSet
from ..stages import features, rerank
from ..validation import stored
from ..validation.arrays import take_rows
from ..voting.base import NeighborVoting
from .pipeline import PRUNE_BELOW, examples_of_new_rows, transform_sparse

Array = np.ndarray

REFIT_SHARE = 0.005  # of all rows that are added or removed before classifiers are trained again
DUE_SHARE = 0.2  # of a label's rows that it gains or loses before its classifier is trained again


class RerankerUpdate(NamedTuple):
    """What follows for the classifiers from rows that were added and removed.

    examples : those that the added rows bring
    labels : (m,) int64, ascending, whose classifiers were trained again;  weights : theirs
    """

    examples: rerank.Examples
    labels: Array
    weights: rerank.LabelWeights


class ClassifierSettings(NamedTuple):
    """How classifiers are trained: feature transform, length of short lists, and as in `rerank.train`."""

    feature_map: features.Features
    shortlist: int
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
    shortlister: NeighborVoting,
    rows: TrainingSet,
    n_before: int,
    examples: rerank.Examples,
    labels: Array,
    settings: ClassifierSettings,
) -> RerankerUpdate:
    """Collect the examples of added rows, and train the classifiers of some labels with them.

    shortlister : with the added rows;  rows : all that vote, in their order
    n_before : number of them when examples were last collected;  examples : these
    labels : (m,) ascending
    """
    if rows.n > n_before:
        added = examples_of_new_rows(shortlister, rows, settings.shortlist, n_before)
    else:
        nothing = np.zeros(rows.Y.shape[1] + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int8)
        added = rerank.Examples(*nothing)
    is_used = np.diff(rows.Y.indptr) > 0  # removed rows have no labels
    own = rerank.select(rerank.extend(examples, added, engine=shortlister.engine), labels, is_used)
    # Only rows that are examples are transformed.
    numbers, position = np.unique(own.rows, return_inverse=True)
    weights, _ = rerank.train(
        transform_sparse(settings.feature_map, take_rows(rows.X, numbers)),
        own._replace(rows=position.astype(np.int32)),
        loss=settings.loss,
        cost=settings.cost,
        keep_from=PRUNE_BELOW,
        n_epochs=settings.n_passes,
        n_jobs=shortlister.n_jobs,
        engine=shortlister.engine,
    )
    return RerankerUpdate(added, labels, weights)


def check_update(update: Any, n: int, n_labels: int, classifiers: rerank.Classifiers) -> None:
    """Check an update of classifiers, of n rows and n_labels labels, that comes from a file."""
    stored.record(update, "an update of classifiers", RerankerUpdate)
    rerank.check_examples(update.examples, n, n_labels)
    labels = stored.ids(update.labels, "trained labels", None, n_labels)
    stored.ascending(labels, "trained labels")
    rerank.check_update(update.weights, len(labels), classifiers)
