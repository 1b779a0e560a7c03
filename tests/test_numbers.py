"""The same numbers give the same model, numbers out of range are named, and empty columns cost nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer

import exmlds
from exmlds import ExMLDS, ExMLDS1, ExMLDS3, ExMLDS4, FeatureNeighbors, MostFrequent, TextClassifier
from exmlds.data import Dataset, make_library
from exmlds.storage import model_folder

ROOT = Path(__file__).parents[1]
WIDE = 100_000_001
SMALL: dict[str, Any] = {"n_components": 10, "random_state": 0}
METHODS = [
    MostFrequent(),
    FeatureNeighbors(),
    ExMLDS1(**SMALL),
    ExMLDS3(**SMALL, features="l2"),
    ExMLDS4(**SMALL, n_epochs=2),
    ExMLDS(random_state=0, cost=1.0, shortlist=8),
]
every_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)


@pytest.fixture(scope="module")
def books() -> Dataset:
    return make_library(150, random_state=0)


def far_apart(n: int) -> np.ndarray:
    """(n,) columns of very many, the last one among them."""
    return np.append(np.arange(n - 1) * 1_000_000, WIDE - 1)


def spread(matrix: csr_matrix) -> csr_matrix:
    """The matrix with its columns far apart."""
    n, d = matrix.shape
    return csr_matrix((matrix.data, far_apart(d)[matrix.indices], matrix.indptr), shape=(n, WIDE))


@every_method
def test_columns_that_never_occur_cost_nothing(method: Any, books: Dataset, tmp_path: Path) -> None:
    X, Y = (csr_matrix(matrix[:, np.unique(matrix.indices)]) for matrix in (books.X, books.Y))
    X = csr_matrix(X[:, :90])
    narrow = clone(method).fit(X, Y)
    ids, scores = narrow.predict_topk(X[:9], 3)
    explained = None if isinstance(method, (MostFrequent, FeatureNeighbors)) else narrow.explain(X[:1])[0]
    wide_X, wide_Y = spread(X), spread(Y)
    tracemalloc.start()
    try:
        model = clone(method).fit(wide_X, wide_Y)
        found, found_scores = model.predict_topk(wide_X[:9], 3)
        model.save(tmp_path / "model")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100e6
    assert model_folder.size(tmp_path / "model") < 2e6
    columns = far_apart(Y.shape[1])
    np.testing.assert_array_equal(found, columns[ids])
    np.testing.assert_allclose(found_scores, scores, rtol=1e-5)
    assert model.predict(wide_X[:2]).shape == (2, WIDE)
    loaded = exmlds.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_topk(wide_X[:9], 3)[0], found)
    assert loaded.predict_labels(wide_X[:1], k=3) == [found[0].tolist()]
    if explained is None:
        return
    why = model.explain(wide_X[:1])[0]
    assert why.label == columns[explained.label]
    assert why.prior == explained.prior
    assert len(why.voters) == len(explained.voters)
    features = far_apart(X.shape[1])
    for voter, before in zip(why.voters, explained.voters):
        assert [t.feature for t in voter.terms] == [features[t.feature] for t in before.terms]
    with pytest.raises(ValueError, match="No training row has the label 7"):
        model.explain(wide_X[:1], label=7)


def test_named_labels_that_never_occur(books: Dataset) -> None:
    """A vocabulary of which a small part is used: names, counts, filters and embeddings keep its order."""
    names = [f"subject {number}" for number in range(20_000)]
    rows = [[names[100 * label] for label in row.indices] for row in books.Y]
    model = ExMLDS3(**SMALL, features="l2", l2=1.0, temperature=0.1).fit(books.X, rows, label_names=names)
    assert model.classes_.tolist() == names
    assert model.label_counts_.sum() == books.Y.nnz
    assert model.label_counts_[100] == books.Y[:, 1].sum()
    (best, second) = model.predict_labels(books.X[:1], k=2)[0]
    assert names.index(best) % 100 == 0
    assert model.predict_labels(books.X[:1], k=1, deny=[best]) == [[second]]
    assert model.predict_labels(books.X[:1], k=1, allow=[names[1]]) == [[]]
    assert model.label_embeddings().shape == (20_000, 10)
    assert np.flatnonzero(model.label_embeddings_.any(axis=1)).max() <= 100 * books.Y.shape[1]
    assert all(label in names for label, _ in model.similar_labels(best, 3))


def test_a_label_with_cooccurrences_can_be_predicted_without_a_row(books: Dataset) -> None:
    n_labels, unseen = 20_000, 19_999
    Y = csr_matrix((books.Y.data, books.Y.indices, books.Y.indptr), shape=(150, n_labels))
    frequent = int(np.bincount(books.Y.indices).argmax())
    C = csr_matrix(Y.T @ Y).tolil()
    C[frequent, unseen] = C[unseen, frequent] = C[unseen, unseen] = C[frequent, frequent]
    model = ExMLDS3(**SMALL, features="l2", l2=1.0, temperature=0.1, complete_labels=1.0)
    model.fit(books.X, Y, label_cooccurrence=C.tocsr())
    row = books.Y[:, [frequent]].toarray().ravel().argmax()
    assert unseen in model.predict_topk(books.X[[row]], 5)[0]


def test_texts_with_a_huge_hash(books: Dataset) -> None:
    texts = [" ".join(f"word{column}" for column in row.indices) for row in books.X]
    labels = [[f"label {column}" for column in row.indices] for row in books.Y]
    vectorizer = HashingVectorizer(n_features=2**24, alternate_sign=False)
    model = TextClassifier(vectorizer=vectorizer, model=FeatureNeighbors(), keep_rows=True).fit(texts, labels)
    assert model.predict_labels(texts[:1], k=1)[0][0] in labels[0]
    assert model.model_.index_.segments[0].rows.shape[0] < 2_000
    assert model.predict_proba(["word1 never-seen"]).shape == (1, len(model.classes_))


@every_method
def test_the_form_of_rows_does_not_matter(method: Any, books: Dataset) -> None:
    cells = books.X.tocoo()
    stored = csr_matrix(
        (
            np.append(cells.data, np.zeros(150, np.float32)),
            (np.append(cells.row, np.arange(150)), np.append(cells.col, np.full(150, 3))),
        ),
        shape=books.X.shape,
    )
    assert stored.nnz > books.X.nnz
    expected = clone(method).fit(books.X, books.Y).predict_topk(books.X[:20], 5)
    for X in (stored, books.X.toarray(), books.X.toarray().astype(np.float64)):
        model = clone(method).fit(X, books.Y)
        for queries in (X[:20], books.X[:20], books.X[:20].toarray()):
            found = model.predict_topk(queries, 5)
            np.testing.assert_array_equal(found[0], expected[0])
            np.testing.assert_array_equal(found[1], expected[1])


def test_filled_rows_take_the_same_choices_in_both_forms(rng: np.random.Generator) -> None:
    centres = rng.normal(size=(10, 12))
    kinds = rng.integers(10, size=300)
    X = (centres[kinds] + 0.3 * rng.normal(size=(300, 12))).astype(np.float32)
    Y = np.eye(10)[kinds]
    dense, sparse = (ExMLDS1(**SMALL).fit(rows, Y) for rows in (X, csr_matrix(X)))
    assert (dense.features_, dense.l2_, dense.temperature_) == (
        sparse.features_,
        sparse.l2_,
        sparse.temperature_,
    )
    (ids, scores), (others, other_scores) = (model.predict_topk(X, 1) for model in (dense, sparse))
    assert np.mean(ids == others) > 0.99
    np.testing.assert_allclose(scores, other_scores, atol=0.01)


@pytest.mark.parametrize("form", [np.asarray, csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("huge", [1e38, -1e38, 1e300, 1e16])
def test_huge_numbers_are_named(form: Any, huge: float, books: Dataset) -> None:
    X = books.X.toarray().astype(np.float64)
    X[7, 5] = huge
    words = f"The numbers in X must be at most 1e+15 in size. Got {huge:g} in row 7, column 5. Scale the feat"
    with pytest.raises(ValueError, match=re.escape(words)):
        FeatureNeighbors().fit(form(X), books.Y)
    model = FeatureNeighbors().fit(books.X, books.Y)
    with pytest.raises(ValueError, match="in row 7, column 5"):
        model.predict_topk(form(X), 1)


@every_method
def test_large_and_tiny_numbers_give_finite_scores(method: Any, books: Dataset) -> None:
    for factor in (1e13, 1e-13):
        scaled = clone(method).fit(books.X * factor, books.Y)
        ids, scores = scaled.predict_topk(books.X[:9] * factor, 3)
        assert np.isfinite(scores).all()
        assert (ids[:, 0] >= 0).all()
    X = books.X.astype(np.float64)
    X.data[X.indptr[0] : X.indptr[1]] = 1e-40  # a row of denormals
    X.data[X.indptr[1] : X.indptr[2]] = 1e-20
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in (X, X.toarray()):
            scores = clone(method).fit(rows, books.Y).predict_topk(rows[:9], 3)[1]
            assert np.isfinite(scores).all()
    with pytest.raises(ValueError, match="must not all be below 1e-15 in size"):
        clone(method).fit(books.X.astype(np.float64) * 1e-20, books.Y)


@pytest.mark.parametrize("kind", ["standardize", "nystroem", "log1p-l2", "l2"])
def test_every_scaling_is_finite_with_tiny_columns(kind: str, rng: np.random.Generator) -> None:
    X = rng.random((60, 6))
    X[:, 0] *= 1e-28
    X[:, 1] *= 1e-35
    X[:, 2] *= 1e14
    Y = (rng.random((60, 5)) < 0.4).astype(int)
    Y[:, 0] = 1
    model = ExMLDS1(features=kind, l2=1.0, temperature=0.1, n_components=4, random_state=0).fit(X, Y)
    assert np.isfinite(model.predict_topk(X, 3)[1]).all()


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (-1.0, "Got -1 in row 3"),
        (np.nan, "Got nan in row 3"),
        (np.inf, "Got inf in row 3"),
        (1e300, r"at most 1e\+15 in size. Got 1e\+300 in row 3"),
    ],
)
def test_weights_out_of_range_are_named(weight: float, words: str, books: Dataset) -> None:
    weights = np.ones(150)
    weights[3] = weight
    with pytest.raises(ValueError, match=words):
        ExMLDS().fit(books.X, books.Y, sample_weight=weights)


def test_cooccurrences_out_of_range_are_named(books: Dataset) -> None:
    C = (books.Y.T @ books.Y).toarray().astype(np.float64)
    C[2, 4] = C[4, 2] = 1e200
    with pytest.raises(ValueError, match=r"at most 1e\+15 in size. Got 1e\+200 for labels 2 and 4. Divide"):
        ExMLDS3().fit(books.X, books.Y, label_cooccurrence=C)


def test_what_weights_promise(books: Dataset) -> None:
    """A weight of 0 leaves a row out, a common factor changes nothing, and metrics count whole numbers."""
    weights = np.tile([0.0, 1.0, 2.0], 50)
    method, present = ExMLDS(random_state=0, cost=1.0, shortlist=8), weights > 0
    some = method.fit(books.X[present], books.Y[present], sample_weight=weights[present])
    expected = some.predict_topk(books.X, 3)
    for given in (weights, 4 * weights):
        found = method.fit(books.X, books.Y, sample_weight=given).predict_topk(books.X, 3)
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])
    model, repeated = MostFrequent().fit(books.X, books.Y), np.repeat(np.arange(150), weights.astype(int))
    score = model.score(books.X, books.Y, sample_weight=weights)
    assert score == pytest.approx(model.score(books.X[repeated], books.Y[repeated]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "method"),
    [
        ("many labels", "ExMLDS1"),
        ("dense labels", "ExMLDS1"),
        ("wide", "ExMLDS3"),
        ("dense", "ExMLDS2"),
        ("a label on every row", "ExMLDS1"),
    ],
)
def test_a_fit_stays_within_its_estimate(shape: str, method: str) -> None:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the peak of a process can't be measured here")
    command = [sys.executable, str(ROOT / "benchmarks" / "memory.py"), "--one", shape, method]
    run = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    # The peak depends on how the threads of a fit overlap: on a busy machine, the estimate of the smallest
    # fit here was 6.4 times its peak.
    assert run["peak"] <= run["estimate"] <= 10 * run["peak"]
