"""Classifiers of labels, against scikit-learn's solvers of the same problem."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from exmlds import kernels
from exmlds.data import Dataset, make_xmc
from exmlds.stages import rerank


@pytest.fixture(scope="module")
def data() -> Dataset:
    made = make_xmc(200, 60, 8, random_state=0)
    return made._replace(X=csr_matrix(normalize(made.X)))


def all_labels(data: Dataset) -> np.ndarray:
    return np.tile(np.arange(data.Y.shape[1]), (data.Y.shape[0], 1))


@pytest.mark.parametrize("loss", rerank.LOSSES)
@pytest.mark.parametrize("cost", [0.3, 3.0, 30.0])
def test_same_as_scikit_learn(data: Dataset, loss: str, cost: float) -> None:
    ids = all_labels(data)
    found, _ = rerank.fit(
        data.X, rerank.examples(data.Y, ids), loss=loss, cost=cost, n_epochs=2_000, tolerance=1e-4
    )
    margins = rerank.score(found, data.X, ids)
    X = np.hstack([data.X.toarray(), np.ones((200, 1))]).astype(float)  # the bias counts in the norm
    for label in range(data.Y.shape[1]):
        y = data.Y[:, [label]].toarray().ravel()
        if loss == "logistic":
            theirs = LogisticRegression(C=cost, fit_intercept=False, tol=1e-8, max_iter=5_000)
        else:
            theirs = LinearSVC(C=cost, fit_intercept=False, dual=True, tol=1e-8, max_iter=200_000)
        expected = theirs.fit(X, y).decision_function(X)
        np.testing.assert_allclose(margins[:, label], expected, atol=0.03 * np.abs(expected).max())


def test_examples_by_hand() -> None:
    Y = csr_matrix(np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0]], np.float32))
    found = rerank.examples(Y, np.array([[0, 2], [0, -1], [1, 0]]))
    assert found.starts.tolist() == [0, 3, 5, 6]
    assert found.rows.tolist() == [0, 1, 2, 1, 2, 0]
    assert found.signs.tolist() == [1, -1, 1, 1, 1, -1]


@pytest.mark.twins
def test_rows_count_as_much_as_their_weights(data: Dataset) -> None:
    ids = all_labels(data)
    weights = np.where(np.arange(200) < 100, 0.001, 1.0)
    found, _ = rerank.fit(data.X, rerank.examples(data.Y, ids), row_weights=weights)
    margins = rerank.score(found, data.X, ids)
    fits = np.where(data.Y.toarray() > 0, margins, -margins)
    assert fits[100:].mean() > fits[:100].mean()


@pytest.mark.twins
def test_small_weights_are_pruned(data: Dataset) -> None:
    given = rerank.examples(data.Y, all_labels(data))
    whole, pruned = (rerank.fit(data.X, given, keep_from=share)[0] for share in (0.0, 0.2))
    for label in range(8):
        all_, kept = (np.abs(found.weights(label)) for found in (whole, pruned))
        assert 0 < (kept > 0).sum() < (all_ > 0).sum()
        assert kept[kept > 0].min() >= 0.19 * kept.max()
        np.testing.assert_array_equal(kept[kept > 0], all_[kept > 0])
    np.testing.assert_array_equal(whole.bias, pruned.bias)


@pytest.mark.twins
def test_warm_start_from_some_of_the_rows(data: Dataset) -> None:
    ids = all_labels(data)
    few, all_ = rerank.examples(data.Y[:150], ids[:150]), rerank.examples(data.Y, ids)
    _, alphas = rerank.fit(data.X[:150], few, n_epochs=500, tolerance=1e-4)
    new = rerank.examples(data.Y[150:], ids[150:])
    new = new._replace(rows=new.rows + np.int32(150))
    merged, start = rerank.extend_examples(few, alphas, new)
    for one, other in zip(merged, all_):
        np.testing.assert_array_equal(one, other)
    for label in range(8):
        here, own = (slice(some.starts[label], some.starts[label + 1]) for some in (few, all_))
        np.testing.assert_array_equal(start[own], np.concatenate([alphas[here], np.zeros(50)]))
    best, _ = rerank.fit(data.X, all_, n_epochs=500, tolerance=1e-4)
    one_pass, gone_on = (rerank.fit(data.X, all_, n_epochs=1, start=given)[0] for given in (None, start))
    errors = [
        np.abs(rerank.score(c, data.X, ids) - rerank.score(best, data.X, ids)).mean()
        for c in (one_pass, gone_on)
    ]
    assert errors[1] < errors[0] / 2


def test_new_examples_first_come_nearer_to_the_best(data: Dataset) -> None:
    """Where few examples are new: steps of one pass over all come from both, in random order."""
    ids = all_labels(data)
    few, all_ = rerank.examples(data.Y[:190], ids[:190]), rerank.examples(data.Y, ids)
    _, alphas = rerank.fit(data.X[:190], few, n_epochs=500, tolerance=1e-4)
    new = rerank.examples(data.Y[190:], ids[190:])
    _, start = rerank.extend_examples(few, alphas, new._replace(rows=new.rows + np.int32(190)))
    best, _ = rerank.fit(data.X, all_, n_epochs=500, tolerance=1e-4)
    errors = []
    for n_new_epochs in (0, 10):
        found, _ = rerank.fit(data.X, all_, start=start.copy(), n_new_epochs=n_new_epochs, n_epochs=1)
        errors.append(np.abs(rerank.score(found, data.X, ids) - rerank.score(best, data.X, ids)).mean())
    assert errors[1] < errors[0]


def test_a_label_that_hardly_changes_is_trained_in_one_pass_again(data: Dataset) -> None:
    given = rerank.examples(data.Y, all_labels(data))
    _, start = rerank.fit(data.X, given, n_epochs=100, tolerance=1e-3)
    settings = {"tolerance": 0.1, "cost": 1.01}

    def go_on(n_new_epochs: int, n_epochs: int) -> np.ndarray:
        own = {"start": start.copy(), "n_new_epochs": n_new_epochs, "n_epochs": n_epochs}
        return rerank.train(rerank.pad_rows(data.X), given, **settings, **own)[1]

    np.testing.assert_array_equal(go_on(10, 1), go_on(10, 5))
    assert not np.array_equal(go_on(0, 1), go_on(0, 5))


def test_warm_start_without_common_examples(data: Dataset) -> None:
    none = rerank.examples(csr_matrix((3, 8), dtype=np.float32), np.full((3, 1), -1))
    given = rerank.examples(data.Y, all_labels(data))
    merged, start = rerank.extend_examples(none, np.zeros(0, np.float32), given)
    np.testing.assert_array_equal(merged.rows, given.rows)
    assert not start.any()


@pytest.mark.twins
def test_a_label_without_examples_and_lists_with_pads(data: Dataset) -> None:
    Y = csr_matrix((data.Y.data, data.Y.indices, data.Y.indptr), shape=(200, 9))
    given = rerank.examples(Y, np.full((200, 2), -1))
    found, _ = rerank.fit(data.X, given)
    margins = rerank.score(found, data.X[:3], np.array([[8, -1], [0, 8], [-1, -1]]))
    assert margins[0, 0] == margins[1, 1] == 0
    assert np.isneginf(margins[[0, 2, 2], [1, 0, 1]]).all()


def test_blocks_of_labels_have_about_the_same_number_of_examples() -> None:
    starts = np.cumsum([0, 1, 1, 6, 0, 2, 2])
    assert rerank.label_blocks(starts, 3) == [slice(0, 3), slice(3, 6)]
    assert rerank.label_blocks(starts, 6) == [slice(0, 2), slice(2, 3), slice(3, 5), slice(5, 6)]
    assert rerank.label_blocks(starts, 1) == [slice(0, 6)]
    assert rerank.label_blocks(np.zeros(4, np.int64), 3) == [slice(0, 3)]


@pytest.mark.twins
def test_threads_do_not_matter(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rerank, "TRAINING_BLOCKS", 3)
    monkeypatch.setattr(kernels.DEFAULT, "block_examples", 1)
    given = rerank.examples(data.Y, all_labels(data))
    one, two = (rerank.fit(data.X, given, n_jobs=n_jobs)[0] for n_jobs in (1, 2))
    for a, b in zip(one, two):
        np.testing.assert_array_equal(a, b)


def test_threads_do_not_matter_to_what_is_trained_again(data: Dataset) -> None:
    given = rerank.examples(data.Y, all_labels(data))
    rng = np.random.default_rng(0)
    alphas = rng.integers(-1, 2, len(given.rows)).astype(np.float32)
    labels, is_live = np.arange(1, data.Y.shape[1], 2), rng.random(data.X.shape[0]) < 0.9
    trained, _ = rerank.train(
        rerank.pad_rows(data.X), rerank.examples(csr_matrix(data.Y[:, labels]), all_labels(data)[:, :3])
    )
    first, _ = rerank.fit(data.X, given)
    found = []
    for n_jobs in (1, 3):
        counts = rerank.count_trainable(given, alphas, labels, is_live, n_jobs=n_jobs)
        own = rerank.select_examples(given, alphas, labels, is_live, counts, n_jobs=n_jobs)
        replaced = rerank.replace(first, labels, trained, data.Y.shape[1], n_jobs=n_jobs)
        found.append([own.positions, *own.examples, own.alphas, *replaced])
    for one, other in zip(*found):
        np.testing.assert_array_equal(one, other)
    assert (np.diff(own.examples.starts) == counts).all()
    is_own = is_live[given.rows] & ((given.signs > 0) | (alphas >= 0))
    label = np.repeat(np.arange(data.Y.shape[1]), np.diff(given.starts))
    assert found[0][0].tolist() == np.flatnonzero(is_own & np.isin(label, labels)).tolist()


def test_classifiers_are_replaced_label_by_label(data: Dataset) -> None:
    """With new labels behind the others, and none for a label that is not given."""
    ids = all_labels(data)
    settings = {"loss": "hinge", "cost": 1.0}
    first, _ = rerank.fit(data.X, rerank.examples(data.Y[:, :6], ids[:, :6]), **settings)
    labels = np.array([1, 4, 7])
    trained, _ = rerank.train(
        rerank.pad_rows(data.X),
        rerank.examples(csr_matrix(data.Y[:, labels]), ids[:, :3]),
        loss="hinge",
        cost=5.0,
    )
    expected, _ = rerank.fit(
        data.X, rerank.examples(csr_matrix(data.Y[:, labels]), ids[:, :3]), loss="hinge", cost=5.0
    )
    found = rerank.replace(first, labels, trained, 8)
    rerank.check(found, data.X.shape[1], 8)
    margins = rerank.score(found, data.X, ids)
    np.testing.assert_allclose(margins[:, labels], rerank.score(expected, data.X, ids[:, :3]), atol=1e-5)
    others = [0, 2, 3, 5]
    np.testing.assert_allclose(
        margins[:, others], rerank.score(first, data.X, ids[:, :6])[:, others], atol=1e-5
    )
    assert (margins[:, 6] == 0).all()
    without = rerank.score(rerank.without(found, np.array([1, 2])), data.X, ids)
    assert (without[:, [1, 2]] == -1).all()
    np.testing.assert_array_equal(without[:, 3:], margins[:, 3:])


def test_centroids_are_the_mean_rows_of_labels_weighted_by_idf(data: Dataset) -> None:
    X, n = csr_matrix(normalize(data.X), dtype=np.float32), data.X.shape[0]
    weights = np.random.default_rng(0).random(n) + 0.5
    centroids = rerank.fit_centroids(X, data.Y, row_weights=weights, n_jobs=2)
    idf = 1 + np.log((1 + n) / (1 + X.getnnz(axis=0)))
    means = normalize((data.Y.multiply(weights[:, None]).T @ X).toarray() * idf)
    ids = np.tile(np.append(np.arange(data.Y.shape[1]), -1), (n, 1))
    found = rerank.score(centroids, X, ids)
    np.testing.assert_allclose(found[:, :-1], (X.toarray() * idf) @ means.T, atol=0.02 * idf.max())
    assert (found[:, -1] == -np.inf).all()
    pruned = rerank.fit_centroids(X, data.Y, row_weights=weights, keep_from=0.5)
    assert np.count_nonzero(pruned.weights(0)) < np.count_nonzero(centroids.weights(0))
