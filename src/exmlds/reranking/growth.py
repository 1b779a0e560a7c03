"""Growth of a re-ranking model: classifiers of labels that gained or lost rows are trained again."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from ..selection import TrainingSet
from ..stages import features, quantize, rerank
from ..validation import stored
from ..validation.arrays import Matrix
from ..voting.base import NeighborVoting
from .pipeline import PRUNE_BELOW, TrainedExamples, examples_of_new_rows, transform_sparse

Array = np.ndarray

# Passes over the new examples of a label that is trained again, at most, and then over all, from the last α.
N_NEW_PASSES, N_PASSES = 10, 2
REFIT_SHARE = 0.005  # of all rows that are added or removed before classifiers are trained again
BEYOND = np.float32(-1)  # stands for the dual variable 0 of an example that its classifier was trained with
MIN_CHANGE = 0.01  # share of its rows that a label gains or loses before its classifier is trained again
# Of the labels that have changed, those with most changed rows for the number of examples that they are
# trained with come first, until these are this many times as many as the changed rows have on average, or so
# many for each changed row.
EXAMPLES_SHARE, EXAMPLES_PER_ROW = 15.0, 3_000
# A label with fewer rows gets a new centroid, of this many rows at most, when it gains or loses one; that of
# a label with more hardly changes by one row.
CENTROID_ROWS = 100


class RerankerUpdate(NamedTuple):
    """What follows for the classifiers from rows that were added and removed.

    examples : those that the added rows bring
    labels : (m,) int64, ascending, whose classifiers were trained again;  weights : theirs
    alphas : (p,) float32, the dual variables of their examples that they were trained with
    maps : of the shortlister, of each learner and part, where they were trained again, or None
    """

    examples: rerank.Examples
    labels: Array
    weights: rerank.LabelWeights
    alphas: Array
    maps: list[list[quantize.Packed]] | None = None


class ClassifierSettings(NamedTuple):
    """How classifiers are trained: feature transform, length of short lists, loss and cost."""

    feature_map: features.Features
    shortlist: int
    loss: str
    cost: float


def changed_labels(counts: Array, trained_counts: Array) -> Array:
    """The labels whose rows have changed enough for their classifiers to be trained again, ascending.

    counts : (L,) rows of each label;  trained_counts : (L,) when its classifier was trained, 0 for none
    """
    change = np.abs(counts - trained_counts)
    return np.flatnonzero((change >= np.maximum(MIN_CHANGE * trained_counts, 1)) & (counts > 0))


def first_labels(change: Array, n_examples: Array, is_new: Array, n_allowed: float) -> Array:
    """(m,) bool, the labels that are trained now: those that changed most for their number of examples.

    change : (m,) changed rows of each label;  n_examples : (m,) with which each would be trained
    is_new : (m,) bool, labels without a classifier, which are trained in any case
    n_allowed : examples of all others together, at most
    """
    order = np.argsort(-change / np.maximum(n_examples, 1), kind="stable")
    is_first = is_new.copy()
    is_first[order[np.cumsum(n_examples[order]) <= n_allowed]] = True
    return is_first


class Retraining(NamedTuple):
    """What was computed on the way to an update: a change that comes from a file has the update alone.

    trained : all examples with their dual variables, after the update
    rows : the rows that vote, in the form in which classifiers are trained
    shortlister : with the added rows, and with other maps where the update has some
    """

    update: RerankerUpdate
    trained: TrainedExamples
    rows: rerank.PaddedRows
    shortlister: NeighborVoting


def train_again(
    shortlister: NeighborVoting,
    X: Matrix,
    n_before: int,
    trained: TrainedExamples,
    trained_counts: Array,
    n_changed: int,
    settings: ClassifierSettings,
    padded: rerank.PaddedRows | None = None,
    maps: list[list[quantize.Packed]] | None = None,
) -> Retraining:
    """Collect the examples of added rows, and train the classifiers of the labels that changed most.

    shortlister : with the added rows, and with these maps where they are new
    X : (m, d) the last of the rows that vote: all of them, or those that are not padded yet
    n_before : number of them when examples were last collected;  trained : these
    trained_counts : (L,) rows of each label when it was trained;  n_changed : rows added and removed since
    padded : the first of the rows, where they are known from an earlier call
    """
    engine, Y = shortlister.engine, shortlister.labels_
    n, added = Y.shape[0], nothing(Y.shape[1])
    if n > n_before:
        new = TrainingSet(X[n_before - n :], Y[n_before:], {}, {})
        added = examples_of_new_rows(shortlister, new, n_before, settings.shortlist)
    examples, alphas = extended(trained, added, n_jobs=shortlister.n_jobs, engine=engine)
    is_live = _has_labels(Y)
    on_threads: dict[str, Any] = {"n_jobs": shortlister.n_jobs, "engine": engine}
    counts = shortlister.column_counts_
    due = changed_labels(counts, trained_counts)
    n_examples = rerank.count_trainable(examples, alphas, due, is_live, **on_threads)
    change = np.abs(counts - trained_counts)[due]
    n_live = int(is_live.sum())
    # Examples of removed rows do not count, whether they are still stored or not.
    n_all = len(examples.rows) if n_live == n else int(is_live[examples.rows].sum())
    n_allowed = n_changed * max(EXAMPLES_SHARE * n_all / max(n_live, 1), EXAMPLES_PER_ROW)
    is_first = first_labels(change, n_examples, trained_counts[due] == 0, n_allowed)
    labels = due[is_first]
    own = rerank.select_examples(examples, alphas, labels, is_live, n_examples[is_first], **on_threads)
    further = rerank.pad_rows(transform_sparse(settings.feature_map, X), engine=engine)
    padded = further if padded is None else padded.with_rows(further)
    weights, own_alphas = rerank.train(
        padded,
        own.examples,
        loss=settings.loss,
        cost=settings.cost,
        keep_from=PRUNE_BELOW,
        start=own.alphas,
        n_new_epochs=N_NEW_PASSES,
        n_epochs=N_PASSES,
        n_jobs=shortlister.n_jobs,
        engine=engine,
    )
    alphas[own.positions] = mark_trained(own_alphas)
    update = RerankerUpdate(added, labels, weights, own_alphas, maps)
    return Retraining(update, TrainedExamples(examples, alphas), padded, shortlister)


def apply_update(
    trained: TrainedExamples, update: RerankerUpdate, Y: csr_matrix, *, n_jobs: int | None, engine: Any
) -> TrainedExamples:
    """The examples and dual variables after an update; Y : (n, L) the labels of all rows that vote."""
    examples, alphas = extended(trained, update.examples, n_jobs=n_jobs, engine=engine)
    is_live = _has_labels(Y)
    on_threads: dict[str, Any] = {"n_jobs": n_jobs, "engine": engine}
    counts = rerank.count_trainable(examples, alphas, update.labels, is_live, **on_threads)
    own = rerank.select_examples(examples, alphas, update.labels, is_live, counts, **on_threads)
    stored.array(update.alphas, "dual variables", "float32", len(own.positions))
    alphas[own.positions] = mark_trained(update.alphas)
    return TrainedExamples(examples, alphas)


def _has_labels(Y: csr_matrix) -> Array:
    """(n,) bool, rows that were not removed: these have no labels."""
    return np.diff(Y.indptr) > 0


def labels_to_average(labels: csr_matrix, removed: csr_matrix, counts: Array) -> Array:
    """The labels whose centroids follow from a change, ascending: those with few rows.

    labels, removed : csr, labels of the added and the removed rows;  counts : (L,) rows of each afterwards

    Several changes that only add or only remove rows give the same as one of all their rows.
    """
    n_added, n_removed = (np.bincount(Y.indices, minlength=len(counts)) for Y in (labels, removed))
    had_few = (n_added > 0) & (counts - n_added < CENTROID_ROWS)
    return np.flatnonzero(had_few | ((n_removed > 0) & (counts < CENTROID_ROWS)))


def first_rows_of(Y: csr_matrix, labels: Array) -> tuple[Array, Array]:
    """The first `CENTROID_ROWS` rows of each of some labels, ascending: (m + 1,) starts, and the rows."""
    number = np.full(Y.shape[1], -1)
    number[labels] = np.arange(len(labels))
    stored_at = np.flatnonzero((number[Y.indices] >= 0) & (Y.data >= 1))
    owner = number[Y.indices[stored_at]]
    order = np.argsort(owner, kind="stable")
    sizes = np.bincount(owner, minlength=len(labels))
    rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    first = stored_at[order[rank < CENTROID_ROWS]]
    starts = np.concatenate(([0], np.cumsum(np.minimum(sizes, CENTROID_ROWS))))
    return starts, np.searchsorted(Y.indptr, first, side="right") - 1


def extended(
    trained: TrainedExamples, added: rerank.Examples, *, n_jobs: int | None, engine: Any
) -> TrainedExamples:
    """The examples with further ones, also of labels that came later, which are not trained."""
    before = trained.examples
    n_new = len(added.starts) - len(before.starts)
    before = before._replace(starts=np.concatenate([before.starts, np.full(n_new, before.starts[-1])]))
    return TrainedExamples(
        *rerank.extend_examples(before, trained.alphas, added, n_jobs=n_jobs, engine=engine)
    )


def mark_trained(alphas: Array) -> Array:
    """Dual variables as they are kept: 0 is that of an example that a classifier was not trained with yet."""
    return np.where(alphas > 0, alphas, BEYOND)


def nothing(n_labels: int) -> rerank.Examples:
    """No examples."""
    return rerank.Examples(np.zeros(n_labels + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int8))


def check_update(
    update: Any, n: int, n_labels: int, classifiers: rerank.Classifiers, shortlister: NeighborVoting
) -> None:
    """Check an update of classifiers, of n rows and n_labels labels, that comes from a file."""
    stored.record(update, "an update of classifiers", RerankerUpdate)
    rerank.check_examples(update.examples, n, n_labels)
    labels = stored.ids(update.labels, "trained labels", None, n_labels)
    stored.ascending(labels, "trained labels")
    rerank.check_update(update.weights, len(labels), classifiers)
    if update.maps is not None:
        shapes = [[part.V.values.shape for part in learner.parts] for learner in shortlister.learners_]
        fits = isinstance(update.maps, list) and list(map(len, update.maps)) == list(map(len, shapes))
        stored.require(fits, "the maps are those of other learners or parts")
        for maps, own in zip(update.maps, shapes):
            for V, shape in zip(maps, own):
                quantize.check(V, "a map", *shape)
