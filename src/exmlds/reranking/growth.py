"""Growth of a re-ranking model: classifiers of labels that gained or lost rows are trained again."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from ..selection import TrainingSet
from ..stages import features, rerank
from ..validation import stored
from ..validation.arrays import take_rows
from ..voting.base import NeighborVoting
from .pipeline import PRUNE_BELOW, TrainedExamples, examples_of_new_rows, transform_sparse

Array = np.ndarray

N_PASSES = 5  # over the examples of a label that is trained again, from its last α
REFIT_SHARE = 0.005  # of all rows that are added or removed before classifiers are trained again
BEYOND = np.float32(-1)  # stands for the dual variable 0 of an example that its classifier was trained with
MIN_CHANGE = 0.1  # share of its rows that a label gains or loses before its classifier is trained again
# Of the labels that are due, those with most changed rows for their number of examples come first, until
# this many times the examples of the changed rows, at the average number of a row, are trained with.
EXAMPLES_PER_ROW = 30.0


class RerankerUpdate(NamedTuple):
    """What follows for the classifiers from rows that were added and removed.

    examples : those that the added rows bring
    labels : (m,) int64, ascending, whose classifiers were trained again;  weights : theirs
    alphas : (p,) float32, the dual variables of their examples that they were trained with
    """

    examples: rerank.Examples
    labels: Array
    weights: rerank.LabelWeights
    alphas: Array


class ClassifierSettings(NamedTuple):
    """How classifiers are trained: feature transform, length of short lists, loss and cost."""

    feature_map: features.Features
    shortlist: int
    loss: str
    cost: float


def due_labels(counts: Array, trained_counts: Array, n_examples: Array, n_allowed: float) -> Array:
    """The labels whose classifiers are to be trained again, ascending.

    counts : (L,) rows of each label;  trained_counts : (L,) when its classifier was trained, 0 for none
    n_examples : (L,) of each label;  n_allowed : examples of all these labels together, at most
    """
    change = np.abs(counts - trained_counts)
    due = np.flatnonzero((change >= np.maximum(MIN_CHANGE * trained_counts, 1)) & (counts > 0))
    due = due[np.argsort(-change[due] / np.maximum(n_examples[due], 1), kind="stable")]
    # New labels have no classifier at all.
    is_allowed = (np.cumsum(n_examples[due]) <= n_allowed) | (trained_counts[due] == 0)
    return np.sort(due[is_allowed])


def train_again(
    shortlister: NeighborVoting,
    rows: TrainingSet,
    n_before: int,
    trained: TrainedExamples,
    trained_counts: Array,
    n_changed: int,
    settings: ClassifierSettings,
) -> RerankerUpdate:
    """Collect the examples of added rows, and train the classifiers of the labels that changed most.

    shortlister : with the added rows;  rows : all that vote, in their order
    n_before : number of them when examples were last collected;  trained : these
    trained_counts : (L,) rows of each label when it was trained;  n_changed : rows added and removed since
    """
    added = nothing(rows.Y.shape[1])
    if rows.n > n_before:
        added = examples_of_new_rows(shortlister, rows, settings.shortlist, n_before)
    examples, alphas = extended(trained, added, engine=shortlister.engine)
    n_allowed = EXAMPLES_PER_ROW * len(examples.rows) * n_changed / rows.n
    labels = due_labels(shortlister.column_counts_, trained_counts, np.diff(examples.starts), n_allowed)
    own = _active(TrainedExamples(examples, alphas), labels, rows.Y)
    # Only rows that are examples are transformed.
    is_needed = np.zeros(rows.n, bool)
    is_needed[examples.rows[own.positions]] = True
    number = (np.cumsum(is_needed) - 1).astype(np.int32)
    weights, alphas = rerank.train(
        transform_sparse(settings.feature_map, take_rows(rows.X, np.flatnonzero(is_needed))),
        rerank.Examples(own.starts, number[examples.rows[own.positions]], examples.signs[own.positions]),
        loss=settings.loss,
        cost=settings.cost,
        keep_from=PRUNE_BELOW,
        start=np.maximum(alphas[own.positions], 0),
        n_epochs=N_PASSES,
        n_jobs=shortlister.n_jobs,
        engine=shortlister.engine,
    )
    return RerankerUpdate(added, labels, weights, alphas)


def apply_update(
    trained: TrainedExamples, update: RerankerUpdate, Y: csr_matrix, *, engine: Any
) -> TrainedExamples:
    """The examples and dual variables after an update; Y : (n, L) the labels of all rows that vote."""
    examples, alphas = extended(trained, update.examples, engine=engine)
    own = _active(TrainedExamples(examples, alphas), update.labels, Y).positions
    stored.array(update.alphas, "dual variables", "float32", len(own))
    alphas[own] = mark_trained(update.alphas)
    return TrainedExamples(examples, alphas)


def extended(trained: TrainedExamples, added: rerank.Examples, *, engine: Any) -> TrainedExamples:
    """The examples with further ones, also of labels that came later, which are not trained."""
    before = trained.examples
    n_new = len(added.starts) - len(before.starts)
    before = before._replace(starts=np.concatenate([before.starts, np.full(n_new, before.starts[-1])]))
    return TrainedExamples(*rerank.extend_examples(before, trained.alphas, added, engine=engine))


def mark_trained(alphas: Array) -> Array:
    """Dual variables as they are kept: 0 is that of an example that a classifier was not trained with yet."""
    return np.where(alphas > 0, alphas, BEYOND)


def without_rows(trained: TrainedExamples, is_dropped: Array) -> TrainedExamples:
    """The examples of the other rows, which are counted anew; is_dropped : (n,) bool."""
    examples, alphas = trained
    kept = rerank.positions_of(examples, np.arange(len(examples.starts) - 1))
    kept = kept.keep(~is_dropped[examples.rows])
    rows = (np.cumsum(~is_dropped) - 1)[examples.rows[kept.positions]].astype(np.int32)
    return TrainedExamples(
        rerank.Examples(kept.starts, rows, examples.signs[kept.positions]), alphas[kept.positions]
    )


def nothing(n_labels: int) -> rerank.Examples:
    """No examples."""
    return rerank.Examples(np.zeros(n_labels + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int8))


def _active(trained: TrainedExamples, labels: Array, Y: csr_matrix) -> rerank.ExamplePositions:
    """The examples of labels that their classifiers are trained with again.

    Negative ones that were beyond their margin do not change them. Removed rows have no labels in Y.
    """
    examples, alphas = trained
    own = rerank.positions_of(examples, labels)
    at = own.positions
    is_active = ((examples.signs[at] > 0) | (alphas[at] >= 0)) & (np.diff(Y.indptr) > 0)[examples.rows[at]]
    return own.keep(is_active)


def check_update(update: Any, n: int, n_labels: int, classifiers: rerank.Classifiers) -> None:
    """Check an update of classifiers, of n rows and n_labels labels, that comes from a file."""
    stored.record(update, "an update of classifiers", RerankerUpdate)
    rerank.check_examples(update.examples, n, n_labels)
    labels = stored.ids(update.labels, "trained labels", None, n_labels)
    stored.ascending(labels, "trained labels")
    rerank.check_update(update.weights, len(labels), classifiers)
