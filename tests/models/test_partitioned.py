"""Partitioned models: parts as whole estimators, and what merges them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import exmlds
from exmlds import ExMLDS4, FeatureNeighbors, ModelError, MostFrequent, Partitioned, TextClassifier
from exmlds.data import Dataset, make_library, make_xmc
from exmlds.models import partitioned
from exmlds.storage import model_folder
from exmlds.storage.inner import InnerModel

Fitted = Callable[..., Any]


@pytest.fixture(scope="module")
def books() -> Dataset:
    return make_library(1_500, random_state=0)


@pytest.fixture
def model(books: Dataset, fitted: Fitted) -> Partitioned:
    return fitted(Partitioned(estimator=FeatureNeighbors(), n_parts=3, random_state=0), books, slice(1_200))


def same(one: Any, other: Any, X: Any) -> None:
    for a, b in zip(one.predict_topk(X, 9), other.predict_topk(X, 9)):
        np.testing.assert_array_equal(a, b)


def test_parts_predict_about_as_well_as_the_whole(model: Partitioned, books: Dataset) -> None:
    test = books.rows(slice(1_200, None))
    whole = FeatureNeighbors(random_state=0).fit(books.X[:1_200], books.Y[:1_200])
    assert len(model.parts_) == 3
    assert model.score(test.X, test.Y) > whole.score(test.X, test.Y) - 0.02
    ids, scores = model.predict_topk(test.X, 9)
    assert (np.diff(scores, axis=1) <= 0).all()
    assert ((ids >= 0) == (scores > 0)).all()
    np.testing.assert_array_equal(model.predict_topk(test.X, 3)[0], ids[:, :3])


def test_scores_of_several_parts_are_calibrated(model: Partitioned, books: Dataset) -> None:
    test = books.rows(slice(1_200, None))
    assert model._score_meaning == "probabilities"
    probabilities = model.predict_proba(test.X)
    hits = np.asarray(test.Y[probabilities.nonzero()]).ravel()
    assert abs(probabilities.data.mean() - hits.mean()) < 0.03  # by some 60 held-out rows
    assert model.held_out_metrics_ is not None
    assert model.held_out_metrics_["rows"] >= partitioned.MIN_HELD


def test_rows_and_labels_of_parts(model: Partitioned, books: Dataset) -> None:
    rows = np.concatenate(model.part_rows_)
    n_held = 1_200 - len(np.unique(rows))
    assert n_held == model.held_out_metrics_["rows"]  # type: ignore[index]
    assert len(rows) == pytest.approx(1.75 * (1_200 - n_held), abs=30)  # as `overlap` says
    for number, (labels, own) in enumerate(zip(model.part_labels_, model.part_rows_)):
        np.testing.assert_array_equal(labels, np.unique(books.Y[own].indices))
        assert model.parts_[number].n_samples_fit_ == len(own)
        counts = model.part_label_counts_[[number]].toarray()[0]
        np.testing.assert_array_equal(counts, np.bincount(books.Y[own].indices, minlength=books.Y.shape[1]))


def test_parts_weigh_by_their_fractions_of_the_rows_of_a_label(model: Partitioned, books: Dataset) -> None:
    rows = books.X[1_200:]
    before = model.predict_topk(rows, 9)[1]
    equal = copy.deepcopy(model)
    equal.part_label_counts_ = 0 * model.part_label_counts_
    assert (equal.predict_topk(rows, 9)[1] != before).any()


def test_few_rows_are_held_out() -> None:
    shares = {900: 0, 1_000: 0.05, 6_000: 0.05, 10_000: 0.03, 50_000: 0.02, 10**6: 0.003}
    for n, share in shares.items():
        assert partitioned._held_share(n) == pytest.approx(share), n


def test_one_part_is_the_estimator_itself(books: Dataset) -> None:
    one = Partitioned(estimator=FeatureNeighbors(), random_state=0).fit(books.X[:200], books.Y[:200])
    alone = FeatureNeighbors(random_state=0).fit(books.X[:200], books.Y[:200])
    same(one, alone, books.X[200:300])
    assert one.threshold_ == alone.threshold_
    assert one._score_meaning == alone._score_meaning


def test_every_parameter_counts(model: Partitioned, books: Dataset) -> None:
    def fitted(**parameters: Any) -> Partitioned:
        settings = {"estimator": FeatureNeighbors(), "n_parts": 3, "random_state": 0, **parameters}
        return Partitioned(**settings).fit(books.X[:1_200], books.Y[:1_200])

    before = model.predict_topk(books.X[1_200:], 9)[1]
    for changed in ({"n_parts": 2}, {"n_parts_probed": 1}, {"overlap": 0.0}, {"estimator": MostFrequent()}):
        assert (fitted(**changed).predict_topk(books.X[1_200:], 9)[1] != before).any(), changed
    same(fitted(), model, books.X[1_200:])


def test_a_saved_model_consists_of_whole_models(model: Partitioned, books: Dataset, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    same(exmlds.load(tmp_path / "m"), model, books.X[1_200:])
    (parts,) = tmp_path.glob("m/parts-*")
    part = exmlds.load(parts / "1")
    np.testing.assert_array_equal(
        part.predict_topk(books.X[:9])[0], model.parts_[1].predict_topk(books.X[:9])[0]
    )
    sizes = [model_folder.size(folder) for folder in parts.iterdir()]
    assert model_folder.size(tmp_path / "m") > sum(sizes)


def test_a_new_generation_replaces_all_parts(model: Partitioned, books: Dataset, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    (before,) = tmp_path.glob("m/parts-*")
    again = exmlds.load(tmp_path / "m")
    again.save(tmp_path / "m")
    (after,) = tmp_path.glob("m/parts-*")
    assert after != before
    same(exmlds.load(tmp_path / "m"), model, books.X[1_200:])


def test_parts_stay_on_disk_where_memory_is_limited(
    model: Partitioned, books: Dataset, tmp_path: Path
) -> None:
    limited = copy.deepcopy(model).set_params(max_memory=1_000)
    limited.save(tmp_path / "m")
    back = exmlds.load(tmp_path / "m")
    assert all(isinstance(part, InnerModel) for part in back.parts_)
    same(back, model, books.X[1_200:])
    back.save(tmp_path / "copy")
    same(exmlds.load(tmp_path / "copy"), model, books.X[1_200:])
    same(pickle.loads(pickle.dumps(back)), model, books.X[1_200:])


def test_parts_stay_on_disk_where_they_take_half_of_the_memory(
    model: Partitioned, books: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.save(tmp_path / "m")
    assert not any(isinstance(part, InnerModel) for part in exmlds.load(tmp_path / "m").parts_)
    size = model_folder.size(tmp_path / "m")
    monkeypatch.setattr("exmlds.models.partitioned.physical_bytes", lambda: size)
    back = exmlds.load(tmp_path / "m")
    assert all(isinstance(part, InnerModel) for part in back.parts_)
    same(back, model, books.X[1_200:])


def test_a_damaged_or_foreign_part_is_refused(model: Partitioned, books: Dataset, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    (arrays,) = tmp_path.glob("m/parts-*/0/arrays-*")
    raw = arrays.read_bytes()
    arrays.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    with pytest.raises(ModelError, match="does not match its checksums"):
        exmlds.load(tmp_path / "m")
    other = MostFrequent().fit(books.X[:50, :9], books.Y[:50])
    other.save(arrays.parent)
    with pytest.raises(ModelError, match="a part has other features or labels"):
        exmlds.load(tmp_path / "m")


def test_links_out_of_the_folder_are_refused(model: Partitioned, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    (parts,) = tmp_path.glob("m/parts-*")
    (parts / "0").rename(tmp_path / "elsewhere")
    (parts / "0").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelError, match="0 is a link; a model consists of real files"):
        exmlds.load(tmp_path / "m")
    with pytest.raises(ModelError, match="0 is a link"):
        InnerModel(parts / "0").write(tmp_path / "copy")


def test_a_model_that_is_replaced_while_it_is_read_is_read_again(
    model: Partitioned, books: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.save(tmp_path / "m")
    load_inner, is_first = partitioned.load_inner, True

    def replaced(part: InnerModel) -> Any:
        nonlocal is_first
        if is_first:
            is_first = False
            model.save(tmp_path / "m")  # its old parts are gone
        return load_inner(part)

    monkeypatch.setattr(partitioned, "load_inner", replaced)
    same(exmlds.load(tmp_path / "m"), model, books.X[1_200:])


def test_explanations_name_rows_and_labels_of_the_whole(books: Dataset) -> None:
    model = Partitioned(estimator=ExMLDS4(n_epochs=3, features="l2", temperature=0.1), n_parts=2)
    model.set_params(random_state=0).fit(books.X[:300], books.Y[:300], label_names=books.label_names)
    ids, scores = model.predict_topk(books.X[300:320], 2)
    for row, why in enumerate(model.explain(books.X[300:320])):
        assert why.label == model.classes_[ids[row, 0]]
        assert why.score == pytest.approx(scores[row, 0], abs=1e-6)
        assert why.prior == pytest.approx(model.label_counts_[ids[row, 0]] / 300)
        for voter in why.voters:
            assert books.Y[voter.row, ids[row, 0]] == 1
    second = model.classes_[ids[0, 1]]
    assert model.explain(books.X[300:301], second)[0].label == second


def test_texts_go_through_parts() -> None:
    texts = [f"{animal} number {number}" for number in range(40) for animal in ("cat", "dog")]
    labels = [["cats"], ["dogs"]] * 40
    inner = Partitioned(estimator=FeatureNeighbors(), n_parts=2, random_state=0)
    model = TextClassifier(inner, analyzer="words", max_words=None, field_weights=()).fit(texts, labels)
    assert model.predict_labels(["a cat", "my dog"], k=1) == [["cats"], ["dogs"]]


@pytest.mark.parametrize("n_parts", [2, 6])
def test_edge_cases_with_parts(n_parts: int) -> None:
    def fitted(X: Any, Y: Any) -> Partitioned:
        return Partitioned(estimator=FeatureNeighbors(), n_parts=n_parts, random_state=0).fit(X, Y)

    tiny = fitted(np.eye(4), [["a"], ["b"], ["a"], []])
    assert set(np.concatenate(tiny.predict_labels(np.eye(4), k=2))) <= {"a", "b"}
    no_feature = fitted(csr_matrix((60, 5)), np.eye(3)[np.arange(60) % 3])
    assert np.isfinite(no_feature.predict_topk(csr_matrix((2, 5)), 2)[1]).all()
    same_rows = fitted(np.ones((9, 2)), [["a"], ["b"], ["a"]] * 3)
    assert same_rows.predict_topk(np.ones((1, 2)), 2)[0].max() <= 1
    dense = make_xmc(80, 10, 6, random_state=0)
    ids = fitted(dense.X.toarray(), dense.Y).predict_topk(dense.X.toarray(), 4)[0]
    np.testing.assert_array_equal(ids, fitted(dense.X, dense.Y).predict_topk(dense.X, 4)[0])


def test_memory_decides_on_the_number_of_parts() -> None:
    sizes = (10**6, 10**5, 10**5, 3 * 10**7)
    free, bounded = Partitioned(), Partitioned(max_memory="3 GB")
    assert bounded.estimate(*sizes).memory <= 3e9 < Partitioned(n_parts=2).estimate(*sizes).memory
    assert free.estimate(*sizes).memory < Partitioned(n_parts=1).estimate(*sizes).memory


def test_the_estimator_is_an_estimator() -> None:
    with pytest.raises(ValueError, match="'estimator' parameter of Partitioned must be None or an estimator"):
        Partitioned(estimator="exmlds").fit(np.eye(3), np.eye(3))


# Growing.


@pytest.fixture
def growing(books: Dataset, fitted: Fitted) -> Partitioned:
    inner = ExMLDS4(n_epochs=3, features="l2", temperature=0.1, growable=True)
    return copy.deepcopy(fitted(Partitioned(estimator=inner, n_parts=2, random_state=0), books, slice(300)))


def test_new_rows_and_labels_go_to_the_likeliest_part(growing: Partitioned, books: Dataset) -> None:
    before = growing.predict_topk(books.X[:50])
    rows = books.X[300:340]
    growing.partial_fit(rows, [["fresh"]] * 40)
    assert growing.n_samples_fit_ == 340
    assert growing.classes_[-1] == "fresh"
    assert growing.label_counts_[-1] == 40
    assert sum(part.n_samples_fit_ for part in growing.parts_) == sum(map(len, growing.part_rows_))
    assert np.mean(["fresh" in row for row in growing.predict_labels(rows, k=3)]) > 0.8
    assert growing.explain(rows[:1], "fresh")[0].voters[0].row >= 300
    assert growing.part_label_counts_.shape == (2, growing.n_labels_)
    assert growing.part_label_counts_[:, [-1]].sum() == 40
    assert (growing.predict_topk(books.X[:50])[1] != before[1]).any()


def test_growth_is_saved_and_a_model_open_for_writing_keeps_it(
    growing: Partitioned, books: Dataset, tmp_path: Path
) -> None:
    growing.save(tmp_path / "m")
    with exmlds.load(tmp_path / "m", writable=True) as model:
        model.partial_fit(books.X[300:340], books.Y[300:340])
    same(exmlds.load(tmp_path / "m"), growing.partial_fit(books.X[300:340], books.Y[300:340]), books.X[:99])


def test_a_growth_that_fails_changes_nothing(growing: Partitioned, books: Dataset) -> None:
    before, parts = growing.predict_topk(books.X[:50]), list(growing.parts_)
    with pytest.raises(ValueError, match="X has 5 rows, but Y has 4"):
        growing.partial_fit(books.X[:5], books.Y[:4])
    assert growing.parts_ == parts
    np.testing.assert_array_equal(growing.predict_topk(books.X[:50])[1], before[1])


def test_parts_that_cannot_grow_say_what_to_set(model: Partitioned) -> None:
    with pytest.raises(AttributeError, match=r"Partitioned\(estimator=FeatureNeighbors\(growable=True\)\)"):
        model.partial_fit(np.eye(3), np.eye(3))
    assert hasattr(Partitioned(estimator=exmlds.ExMLDS(growable=True)), "partial_fit")
