"""PPD-Sparse and PD-Sparse: what they learn, that few weights are enough, and that models are kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import exmlds
from exmlds import OneVsAll, PDSparse, PPDSparse
from exmlds.data import Dataset, make_library
from exmlds.metrics import precision_at_k
from exmlds.models import pd_sparse


@pytest.fixture(scope="module")
def books() -> Dataset:
    return make_library(400, random_state=0)


def quality(model: exmlds.XMCEstimator, books: Dataset) -> float:
    train, test = books.rows(np.arange(300)), books.rows(np.arange(300, 400))
    return precision_at_k(test.Y, model.fit(train.X, train.Y).predict_topk(test.X, 1), 1)


def test_ppd_sparse_without_l1_is_one_vs_all(books: Dataset) -> None:
    sparse = PPDSparse(l1=0.0, n_epochs=200, threshold=0.5).fit(books.X, books.Y)
    plain = OneVsAll(n_epochs=200, threshold=0.5).fit(books.X, books.Y)
    np.testing.assert_allclose(sparse.weights_.toarray(), plain.weights_.toarray(), atol=0.1)
    np.testing.assert_allclose(sparse.bias_, plain.bias_, atol=0.1)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_ppd_sparse_needs_few_weights(books: Dataset, loss: str) -> None:
    sparse, dense = (PPDSparse(loss=loss, l1=l1, threshold=0.5) for l1 in (0.1, 0.0))
    assert quality(sparse, books) > quality(dense, books) - 0.05
    assert sparse.weights_.nnz < 0.5 * dense.weights_.nnz


def test_pd_sparse_ends_when_held_out_rows_gain_nothing(books: Dataset) -> None:
    model = PDSparse(l1=0.1, random_state=0, threshold=0.5)
    assert quality(model, books) > 0.6
    assert 1 <= model.n_epochs_ <= 50
    assert model.l1_ == 0.1
    short = PDSparse(l1=0.1, n_epochs=1, random_state=0, threshold=0.5).fit(books.X, books.Y)
    assert short.n_epochs_ == 1


def test_pd_sparse_chooses_its_penalty_and_needs_few_weights(books: Dataset) -> None:
    chosen, sparse, dense = (PDSparse(l1=l1, random_state=0, threshold=0.5) for l1 in ("auto", 0.3, 0.0))
    qualities = [quality(model, books) for model in (chosen, sparse, dense)]
    assert chosen.l1_ in pd_sparse.L1S
    assert qualities[0] > max(qualities[1:]) - 0.05
    assert sparse.weights_.nnz < 0.5 * dense.weights_.nnz


@pytest.mark.parametrize("method", [PPDSparse, PDSparse])
def test_the_result_does_not_depend_on_n_jobs(method: type[exmlds.XMCEstimator], books: Dataset) -> None:
    one, three = (method(n_jobs=n, random_state=0, threshold=0.5).fit(books.X, books.Y) for n in (1, 3))
    np.testing.assert_array_equal(one.weights_.toarray(), three.weights_.toarray())
    np.testing.assert_array_equal(one.bias_, three.bias_)


@pytest.mark.parametrize("method", [PPDSparse, PDSparse])
def test_a_model_is_kept(method: type[exmlds.XMCEstimator], books: Dataset, tmp_path: Path) -> None:
    model = method(random_state=0, threshold=0.5).fit(books.X, books.Y)
    model.save(tmp_path / "model")
    for expected, found in zip(
        model.predict_topk(books.X), exmlds.load(tmp_path / "model").predict_topk(books.X)
    ):
        np.testing.assert_array_equal(expected, found)


def test_labels_without_rows_are_no_candidates(books: Dataset) -> None:
    Y = books.Y.tolil()
    Y[:, 3] = 0
    for model in (PPDSparse(threshold=0.5), PDSparse(l1=0.1, n_epochs=1, threshold=0.5)):
        ids, _ = model.fit(books.X, Y.tocsr()).predict_topk(books.X, Y.shape[1])
        assert not (ids == 3).any()


def test_the_settings_of_the_papers() -> None:
    assert PDSparse.paper(n_epochs=7).get_params()["n_epochs"] == 7
    assert PPDSparse.paper(cost=2.0).get_params()["cost"] == 2.0
    assert PPDSparse.paper().get_params()["l1"] == 0.1
