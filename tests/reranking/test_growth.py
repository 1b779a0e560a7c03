"""Centroids of labels that gain and lose rows."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import exmlds
from exmlds import ExMLDS
from exmlds.data import Dataset, make_library
from exmlds.reranking import growth
from exmlds.reranking.growth import (
    CENTROID_ROWS,
    changed_labels,
    first_labels,
    first_rows_of,
    labels_to_average,
)
from exmlds.reranking.pipeline import PRUNE_CENTROIDS_BELOW, transform_sparse
from exmlds.stages import rerank


def grown(books: Dataset, **changes: object) -> ExMLDS:
    """A model that has learnt nothing of the last label, and then gets the rows that have it."""
    model = ExMLDS(growable=True, cost=1.0, shortlist=8, random_state=0, **changes)  # type: ignore[arg-type]
    has_last = books.Y[:, [-1]].toarray().ravel() > 0
    return model.fit(books.X[~has_last], books.Y[~has_last][:, :-1])


def test_labels_that_have_changed() -> None:
    counts, trained_counts = np.array([5, 6, 4, 1, 0, 1009, 1010]), np.array([5, 5, 5, 0, 3, 1000, 1000])
    assert changed_labels(counts, trained_counts).tolist() == [1, 2, 3, 6]


def test_labels_that_changed_most_for_their_examples_are_trained_first() -> None:
    change, n_examples = np.array([1, 3, 2, 1]), np.array([10, 60, 10, 500])
    is_new = np.array([False, False, False, True])
    for n_allowed, expected in (
        (9, [3]),
        (10, [2, 3]),
        (20, [0, 2, 3]),
        (80, [0, 1, 2, 3]),
    ):
        found = first_labels(change, n_examples, is_new, n_allowed)
        assert np.flatnonzero(found).tolist() == expected


def test_examples_for_each_changed_row_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    books = make_library(300, random_state=0)
    model = ExMLDS(growable=True, cost=1.0, shortlist=8, random_state=0).fit(books.X[:280], books.Y[:280])
    n_trained = []
    for share, n_allowed in ((0.0, 0), (0.0, 20), (0.0, 10_000), (1_000.0, 0)):
        monkeypatch.setattr(growth, "EXAMPLES_SHARE", share)
        monkeypatch.setattr(growth, "EXAMPLES_PER_ROW", n_allowed)
        other = copy.copy(model)
        other.partial_fit(books.X[280:], books.Y[280:])
        changed = other.trained_counts_ != model.trained_counts_
        n_trained.append(int(changed.sum()))
    assert n_trained[0] == 0
    assert 0 < n_trained[1] < n_trained[2] == n_trained[3]


def test_labels_with_few_rows_are_averaged_again() -> None:
    added = csr_matrix([[1, 1, 0, 0]], dtype=np.float32)
    removed = csr_matrix([[0, 0, 1, 1]], dtype=np.float32)
    counts = np.array([CENTROID_ROWS, CENTROID_ROWS + 1, CENTROID_ROWS - 1, CENTROID_ROWS])
    assert labels_to_average(added, removed, counts).tolist() == [0, 2]
    assert labels_to_average(added[:0], removed[:0], counts).tolist() == []


def test_the_first_rows_of_labels() -> None:
    Y = csr_matrix((CENTROID_ROWS + 3, 3), dtype=np.float32).tolil()
    Y[1:, 0] = 1
    Y[[2, 5], 2] = 1
    starts, rows = first_rows_of(csr_matrix(Y), np.array([0, 2]))
    assert starts.tolist() == [0, CENTROID_ROWS, CENTROID_ROWS + 2]
    assert rows.tolist() == [*range(1, CENTROID_ROWS + 1), 2, 5]


def test_a_new_label_has_the_centroid_of_its_rows(tmp_path: Path) -> None:
    books = make_library(300, random_state=0)
    last = books.Y.shape[1] - 1
    rows = np.flatnonzero(books.Y[:, [last]].toarray().ravel() > 0)[:5]
    model = grown(books)
    model.save(tmp_path / "model")
    with exmlds.load(tmp_path / "model", writable=True) as written:
        for row in rows:  # one by one, which are joined when the journal is read
            written.partial_fit(books.X[[row]], books.Y[[row]])
        centroid = written.centroids_.weights(last)
    model.partial_fit(books.X[rows], books.Y[rows])
    np.testing.assert_array_equal(model.centroids_.weights(last), centroid)
    np.testing.assert_array_equal(exmlds.load(tmp_path / "model").centroids_.weights(last), centroid)
    A = transform_sparse(model.feature_map_, model.kept_rows_[-len(rows) :]).toarray()
    mean = (A * model.centroid_idf_).sum(axis=0)
    mean *= model.centroid_idf_ / np.linalg.norm(mean)
    mean[np.abs(mean) <= PRUNE_CENTROIDS_BELOW * np.abs(mean).max()] = 0
    np.testing.assert_allclose(centroid, mean, atol=np.abs(mean).max() / 127)
    # Nothing of removed rows is left in it.
    model.remove_rows(model.row_ids_[-len(rows) :])
    assert not model.centroids_.weights(last).any()


def test_centroids_stay_where_a_label_has_many_rows() -> None:
    books = make_library(900, random_state=0)
    model = grown(books)
    counts = model.column_counts_.copy()
    frequent = int(np.argmax(counts))
    assert counts[frequent] > CENTROID_ROWS
    before = rerank.Classifiers.weights(model.centroids_, frequent)
    row = np.flatnonzero(books.Y[:, [frequent]].toarray().ravel() > 0)[:1]
    model.partial_fit(books.X[row], books.Y[row][:, : len(counts)])
    np.testing.assert_array_equal(model.centroids_.weights(frequent), before)


def test_evidence_stays_within_what_the_stacker_was_fitted_on(tmp_path: Path) -> None:
    """A label that comes with one row has a centroid nearer to rows like it than any label had before."""
    books = make_library(300, random_state=0)
    model = grown(books)
    # How few rows the rarest label of the held-out lists has depends on rounding, so the limit is set here.
    model.evidence_limits_ = model.evidence_limits_._replace(least_count=3.0)
    least_count, largest_similarity = model.evidence_limits_
    assert model.pipeline.limits is None  # nothing has changed yet
    last = books.Y.shape[1] - 1
    row = np.flatnonzero(books.Y[:, [last]].toarray().ravel() > 0)[:1]
    model.partial_fit(books.X[row], books.Y[row])
    scores = model.pipeline.score(books.X[row])
    own = scores.slice(slice(None), scores.ids[0] == last)
    assert own.similarities[0, 0] == np.float32(largest_similarity)
    assert own.counts[0, 0] == least_count
    unlimited = model.pipeline._replace(limits=None).score(books.X[row])
    beyond = unlimited.slice(slice(None), unlimited.ids[0] == last)
    assert beyond.similarities[0, 0] > largest_similarity
    assert beyond.counts[0, 0] == 1
    model.save(tmp_path / "model")
    assert exmlds.load(tmp_path / "model").pipeline.limits == model.evidence_limits_


def test_a_fit_without_centroids_limits_no_similarity(tmp_path: Path) -> None:
    books = make_library(300, random_state=0)
    model = grown(books, effort="fast")
    assert model.evidence_limits_.largest_similarity == np.inf
    model.save(tmp_path / "model")
    assert exmlds.load(tmp_path / "model").evidence_limits_ == model.evidence_limits_


def test_space_of_removed_rows_does_not_matter_to_what_comes_later() -> None:
    """Removed rows count nowhere, whether they are still stored or not."""
    books = make_library(300, random_state=0)
    model = ExMLDS(growable=True, cost=1.0, shortlist=8, candidates="joint", random_state=0)
    model.fit(books.X[:200], books.Y[:200])
    assert model.lifts_ is not None
    other = copy.copy(model)
    for each in (model, other):
        each.remove_rows(range(40))
        if each is other:
            each.drop_removed()
        each.partial_fit(books.X[200:], books.Y[200:])
    np.testing.assert_array_equal(model.lifts_, other.lifts_)
    for one, another in zip(model.predict_topk(books.X, 5), other.predict_topk(books.X, 5)):
        np.testing.assert_array_equal(one, another)
