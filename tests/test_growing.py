"""Models that grow: rows vote at once, removed ones leave no vote, and the calls alone decide the result."""

from __future__ import annotations

import copy
import pickle
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix, vstack
from sklearn.base import clone
from sklearn.preprocessing import normalize

import exmlds
from exmlds import ExMLDS, ExMLDS1, ExMLDS2, ExMLDS3, ExMLDS4, FeatureNeighbors, MostFrequent
from exmlds.data import Dataset, make_library
from exmlds.models import exmlds4
from exmlds.stages import index
from exmlds.storage import tree
from exmlds.voting import memory

N_LABELS, N_BLOCK = 6, 3
METHODS: list[Any] = [
    FeatureNeighbors(growable=True, n_neighbors=5),
    ExMLDS1(growable=True, n_neighbors=5, n_components=12, random_state=0),
    ExMLDS2(growable=True, n_neighbors=5, n_components=12, random_state=0),
    ExMLDS3(growable=True, n_neighbors=5, n_components=12, random_state=0),
    ExMLDS4(growable=True, n_neighbors=5, n_components=12, random_state=0),
    ExMLDS(growable=True, random_state=0),
]
every_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
Fitted = Callable[..., Any]


def rows_of(*blocks: int, n: int = 1, seed: int = 0) -> csr_matrix:
    """(n, d) rows with the features of some labels, which no two rows have equal."""
    X = np.zeros((n, N_LABELS * N_BLOCK), np.float32)
    for block in blocks:
        noise = np.random.default_rng((seed, block)).random((n, N_BLOCK))
        X[:, block * N_BLOCK : (block + 1) * N_BLOCK] = 1 + 0.2 * noise
    return csr_matrix(X)


@pytest.fixture(scope="module")
def data() -> Dataset:
    """120 rows; the label of a row is the block of its features."""
    labels = np.arange(120) % N_LABELS
    X = vstack([rows_of(int(label), seed=row) for row, label in enumerate(labels)], format="csr")
    Y = csr_matrix((np.ones(120, np.float32), labels, np.arange(121)), (120, N_LABELS))
    return Dataset(X, Y, None)


@pytest.fixture
def model(method: Any, data: Dataset, fitted: Fitted) -> Any:
    """The method fitted on the data; a copy that tests may change."""
    return copy.deepcopy(fitted(method, data))


def best(model: Any, X: Any) -> list[int]:
    return model.predict_topk(X, 1)[0][:, 0].tolist()


def assert_ranks_high(model: Any, X: Any, label: int) -> None:
    """A label is the best one; the classifiers of `ExMLDS` may have learnt that another one is."""
    n = 2 if isinstance(model, ExMLDS) else 1
    assert label in model.predict_topk(X, n)[0][0]


def assert_same(one: Any, other: Any, X: Any) -> None:
    for own, theirs in zip(one.predict_topk(X, 4), other.predict_topk(X, 4)):
        np.testing.assert_array_equal(own, theirs)


@every_method
def test_a_new_row_votes_at_once_and_is_counted(method: Any, model: Any, data: Dataset) -> None:
    query = rows_of(0, 3, seed=1)
    model.partial_fit(rows_of(0, 3, n=10), [[5]] * 10)
    assert_ranks_high(model, query, 5)
    assert model.label_counts_.tolist() == [20, 20, 20, 20, 20, 30]
    assert model.n_samples_fit_ == 130
    assert best(model, data.X) == data.Y.indices.tolist(), "the other rows are predicted as before"


@every_method
def test_a_new_label_is_predicted_at_once(method: Any, model: Any) -> None:
    model.partial_fit(rows_of(1, 4, n=10), [[6]] * 10)
    assert model.classes_.tolist() == list(range(7))
    assert best(model, rows_of(1, 4, seed=1)) == [6]
    Y = csr_matrix((np.ones(10, np.float32), np.full(10, 8), np.arange(11)), (10, 9))
    model.partial_fit(rows_of(2, 5, n=10), Y)
    assert model.n_labels_ == 9
    assert best(model, rows_of(2, 5, seed=1)) == [8]
    assert model.label_counts_.tolist() == [20] * 6 + [10, 0, 10]


@every_method
def test_removed_rows_leave_no_vote(method: Any, model: Any, data: Dataset) -> None:
    """After them, the model predicts as one that never had them, though it was told of their labels."""
    never = copy.deepcopy(model)
    X, Y = rows_of(0, 3, n=4), [[5]] * 4
    model.partial_fit(X, Y, ids=["a", "b", "c", "d"]).remove_rows(["a", "b", "c", "d"])
    queries = vstack([data.X[:30], rows_of(0, 3, seed=1)], format="csr")
    if isinstance(model, ExMLDS):  # whose classifier of the label may have been trained again
        assert best(model, queries) == best(never, queries)
    else:
        np.testing.assert_array_equal(model.predict_topk(queries, 4)[0], never.predict_topk(queries, 4)[0])
        np.testing.assert_allclose(
            model.predict_topk(queries, 4)[1], never.predict_topk(queries, 4)[1], rtol=1e-5
        )
    assert model.label_counts_.tolist() == never.label_counts_.tolist()
    assert model.row_ids_ == never.row_ids_


@every_method
def test_rows_of_a_fit_can_be_removed(method: Any, model: Any, data: Dataset) -> None:
    """A label without rows is never a vote of others."""
    model.remove_rows([row for row in range(120) if row % N_LABELS == 2])
    assert 2 not in model.predict_topk(data.X[:1], 1)[0]
    assert model.label_counts_.tolist() == [20, 20, 0, 20, 20, 20]
    assert best(model, data.X[[0, 1, 3]]) == [0, 1, 3]
    before = model.predict_topk(data.X, 3)
    model.drop_removed()
    np.testing.assert_array_equal(model.predict_topk(data.X, 3)[0], before[0])
    np.testing.assert_allclose(model.predict_topk(data.X, 3)[1], before[1], rtol=1e-5)
    assert len(model.growth_.ids) == len(model.row_ids_) == 100


@every_method
def test_a_label_that_has_lost_all_rows_is_not_predicted(method: Any, model: Any, tmp_path: Path) -> None:
    """Nor is a byte of the place of its only row left after a purge, also where labels have embeddings."""
    never = copy.deepcopy(model)
    model.partial_fit(rows_of(1, 4), [[6]], ids=["only"])
    model.remove_rows(["only"])
    query = rows_of(1, 4, seed=1)
    assert 6 not in model.predict_topk(query, 7)[0]
    model.drop_removed().save(tmp_path / "model")
    if model.__class__ not in (FeatureNeighbors, ExMLDS):
        place = never.transform(rows_of(1, 4))[0, :6].astype(np.float32).tobytes()
        assert not any(place in file.read_bytes() for file in (tmp_path / "model").iterdir())
    model.partial_fit(rows_of(1, 4, n=10), [[6]] * 10)
    assert_ranks_high(model, query, 6)


@every_method
def test_relabel(method: Any, model: Any, data: Dataset) -> None:
    own = [row for row in range(120) if row % N_LABELS == 2]
    model.relabel(own, [["4"] if model.names_ is not None else [4]] * 20)
    assert best(model, data.X[2:3]) == [4]
    assert model.label_counts_.tolist() == [20, 20, 0, 20, 40, 20]
    assert sorted(model.row_ids_) == sorted(map(str, range(120)))


@every_method
def test_rows_are_replaced_by_their_ids(method: Any, model: Any) -> None:
    model.partial_fit(rows_of(0, 3, n=10), [[5]] * 10, ids=range(200, 210))
    with pytest.raises(ValueError, match="a row with the id '200' already"):
        model.partial_fit(rows_of(0, 3, n=10), [[4]] * 10, ids=range(200, 210))
    model.partial_fit(rows_of(0, 3, n=10, seed=2), [[4]] * 10, ids=range(200, 210), replace=True)
    assert_ranks_high(model, rows_of(0, 3, seed=1), 4)
    assert (model.growth_.n_added, model.growth_.n_removed, model.n_samples_fit_) == (20, 10, 130)


def changed(model: Any, folder: Path | None = None) -> Any:
    """Several changes, after each of which the model is saved and loaded if there is a folder."""
    changes: list[Callable[[Any], Any]] = [
        lambda model: model.partial_fit(rows_of(0, 3, n=6), [[5]] * 6, ids=list("abcdef")),
        lambda model: model.remove_rows(["a", 7]),
        lambda model: model.partial_fit(rows_of(1, 4, n=6), [[6]] * 6),
        lambda model: model.relabel(["b", 8], [[7], [1, 3]]),
        lambda model: model.drop_removed(),
        lambda model: model.partial_fit(rows_of(2, n=1), [[2]]),
    ]
    for number, change in enumerate(changes):
        model = change(model)
        if folder is not None:
            model.save(folder / str(number))
            model = exmlds.load(folder / str(number))
    return model


@every_method
def test_the_same_calls_give_the_same_model_also_across_folders(
    method: Any, model: Any, data: Dataset, tmp_path: Path
) -> None:
    other = changed(copy.deepcopy(model), tmp_path)
    model = changed(model)
    queries = vstack([data.X[:30], rows_of(0, 3, seed=1), rows_of(1, 4, seed=1)], format="csr")
    assert_same(model, other, queries)
    assert model.row_ids_ == other.row_ids_
    assert model.row_ids_[-1] == "132", "numbers go on from the first fit"
    assert_same(model, pickle.loads(pickle.dumps(model)), queries)
    assert not hasattr(clone(model), "growth_") or clone(model).growth_ is None


@every_method
def test_dense_rows_grow_as_sparse_ones_do(method: Any, model: Any, data: Dataset) -> None:
    dense = clone(method).fit(data.X.toarray(), data.Y)
    for own, form in ((model, csr_matrix), (dense, csr_matrix.toarray), (dense, csr_matrix)):
        own.partial_fit(form(rows_of(0, 3, n=10)), [[5]] * 10)
    for own in (model, dense):
        assert_ranks_high(own, rows_of(0, 3, seed=1), 5)


@every_method
def test_refresh_is_a_fit_of_all_rows(method: Any, model: Any, data: Dataset) -> None:
    model.partial_fit(rows_of(0, 3, n=12), [[5]] * 12, ids=[f"n{i}" for i in range(12)])
    model.remove_rows(range(12)).refresh()
    X = vstack([data.X[12:], rows_of(0, 3, n=12)], format="csr")
    Y = vstack([data.Y[12:], csr_matrix((np.ones(12), np.full(12, 5), np.arange(13)), (12, 6))])
    assert_same(model, clone(method).fit(X, csr_matrix(Y)), data.X)
    assert model.row_ids_ == [*map(str, range(12, 120)), *(f"n{i}" for i in range(12))]
    assert (model.growth_.n_added, model.growth_.n_removed) == (0, 0)
    model.partial_fit(rows_of(0), [[0]])
    assert model.row_ids_[-1] == "132", "no id is given twice"


@every_method
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda m: m.remove_rows(["x"]), "no row with the id 'x'"),
        (lambda m: m.remove_rows([1, "1"]), "given twice"),
        (lambda m: m.remove_rows("1"), "list of ids"),
        (lambda m: m.remove_rows(range(120)), "No row with a label would be left"),
        (lambda m: m.relabel([1, 2], [[1]]), "2 ids, but Y has 1"),
        (lambda m: m.partial_fit(rows_of(0, n=2), [[1]]), "2 rows, but Y has 1"),
        (lambda m: m.partial_fit(rows_of(0, n=2), [[1], [2]], ids=["a", "a"]), "'a' is given twice"),
        (lambda m: m.partial_fit(rows_of(0, n=2), [[1], [2]], ids=["a"]), "2 rows, but 1 ids"),
        (lambda m: m.partial_fit(rows_of(0, n=2), [["one"], ["two"]]), "whole numbers"),
        (lambda m: m.partial_fit(rows_of(0)[:, :5], [[1]]), "features"),
        (lambda m: m.partial_fit(rows_of(0), [[1]], sample_weight=[1]), "takes no argument 'sample_weight'"),
        (lambda m: m.partial_fit(rows_of(0), csr_matrix((1, 2), dtype=np.float32)), "2 columns"),
    ],
)
def test_a_wrong_call_changes_nothing(
    method: Any, data: Dataset, fitted: Fitted, wrong: Callable[[Any], Any], message: str
) -> None:
    """The fixture sees at the end whether a model has changed."""
    with pytest.raises((ValueError, TypeError), match=message):
        wrong(fitted(method, data))


@every_method
def test_a_change_that_fails_midway_leaves_the_model_as_it_was(
    method: Any, model: Any, data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = copy.deepcopy(model)
    monkeypatch.setattr("exmlds.growing.stacked", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.partial_fit(rows_of(0, 3, n=10), [[6]] * 10)
    monkeypatch.undo()
    assert_same(model, before, data.X[:20])
    assert model.n_labels_ == before.n_labels_
    model.partial_fit(rows_of(0, 3, n=10), [[6]] * 10)


def test_threads_that_grow_one_open_model_wait_for_each_other(
    data: Dataset, fitted: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All their rows are there and on the disk, and a copy that is made meanwhile is a whole model."""
    fitted(METHODS[0], data).save(tmp_path / "model")
    computed = FeatureNeighbors._with_results

    def slowly(self: Any, change: Any) -> Any:
        time.sleep(0.005)  # Other threads come in between where nothing holds them back.
        return computed(self, change)

    monkeypatch.setattr(FeatureNeighbors, "_with_results", slowly)
    with exmlds.load(tmp_path / "model", writable=True) as model, ThreadPoolExecutor(4) as pool:
        grown = [pool.submit(model.partial_fit, rows_of(0, 3, seed=seed), [[5]]) for seed in range(20)]
        removed = [pool.submit(model.remove_rows, [row]) for row in range(5)]
        seen = [pool.submit(lambda: copy.copy(model).predict_topk(data.X, 3)) for _ in range(5)]
        for call in (*grown, *removed, *seen):
            call.result()
        assert model.row_ids_ == [str(number) for number in range(5, 140)]
        assert_same(model, exmlds.load(tmp_path / "model"), data.X)


@every_method
def test_the_label_space_follows(method: Any, model: Any) -> None:
    if isinstance(model, FeatureNeighbors):
        return
    model.partial_fit(rows_of(1, 4, n=10), [[6]] * 10)
    assert model.label_embeddings().shape[0] == 7
    assert {label for label, _ in model.similar_labels(6, 2)} == {1, 4}
    assert {row for row, _ in model.typical_rows(6, 3)} <= set(range(120, 130))
    (why,) = model.explain(rows_of(1, 4, seed=1), label=6)
    assert {voter.row for voter in why.voters} & set(range(120, 130))


def test_an_unfitted_model_is_fitted_and_one_that_keeps_no_rows_says_what_to_set(data: Dataset) -> None:
    model = FeatureNeighbors(growable=True).partial_fit(data.X, data.Y, ids=range(1, 121))
    assert model.row_ids_[0] == "1"
    for plain in (FeatureNeighbors(), FeatureNeighbors().fit(data.X, data.Y)):
        with pytest.raises(AttributeError, match=r"fit it with FeatureNeighbors\(growable=True\)"):
            plain.partial_fit(data.X, data.Y)
    with pytest.raises(ValueError, match=r"fit it with FeatureNeighbors\(growable=True\)"):
        plain.remove_rows(["1"])
    assert not hasattr(MostFrequent(), "partial_fit")


def test_names_of_labels(data: Dataset) -> None:
    names = list("uvwxyz")
    model = FeatureNeighbors(growable=True).fit(data.X, data.Y, label_names=names)
    model.partial_fit(data.X[:6], data.Y[:6], label_names=names)
    model.partial_fit(rows_of(0, 3), [[" new ", "u"]])
    assert model.classes_.tolist() == [*names, "new"]
    wider = csr_matrix((np.ones(1, np.float32), [7], [0, 1]), (1, 8))
    with pytest.raises(ValueError, match="names of the 1 new columns"):
        model.partial_fit(rows_of(1, 4), wider)
    with pytest.raises(ValueError, match="must differ"):
        model.partial_fit(rows_of(1, 4), wider, label_names=["u"])
    model.partial_fit(rows_of(1, 4), wider, label_names=["newer"])
    model.partial_fit(rows_of(1, 4), wider, label_names=[*names, "new", "newer"])
    assert model.classes_.tolist() == [*names, "new", "newer"]
    with pytest.raises(ValueError, match="of type str"):
        model.partial_fit(rows_of(1, 4), [[3]])
    table = pytest.importorskip("pandas").DataFrame([[1] + [0] * 7], columns=model.classes_[::-1])
    with pytest.raises(ValueError, match="label_names"):
        model.partial_fit(rows_of(1, 4), table)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("form", [csr_matrix, np.asarray])
def test_uniform_votes_of_removed_rows_do_not_count(metric: str, form: Any) -> None:
    """Where fewer rows are left than vote."""
    X = form(np.eye(4, dtype=np.float32) + 0.1)
    method = FeatureNeighbors(growable=True, n_neighbors=4, metric=metric, vote="uniform", threshold=0.5)
    model = clone(method).fit(X, [[0], [1], [2], [2]]).remove_rows([2, 3])
    assert_same(model, clone(method).fit(X[:2], [[0], [1]], label_names=None), X)


def test_rows_without_labels_do_not_vote(data: Dataset, fitted: Fitted) -> None:
    for method in METHODS:
        model = copy.deepcopy(fitted(method, data))
        model.partial_fit(rows_of(0, n=2), [[], [0]], ids=["empty", "full"])
        model.remove_rows(["empty"]).drop_removed()
        assert model.n_samples_fit_ == 121
        assert best(model, rows_of(0)) == [0]


def test_a_part_may_lose_all_its_rows(data: Dataset, tmp_path: Path) -> None:
    model = ExMLDS1(
        growable=True,
        n_parts=3,
        n_parts_probed=3,
        n_neighbors=3,
        n_components=8,
        n_learners=1,
        random_state=0,
    ).fit(data.X, data.Y)
    first = model.learners_[0].parts[0].rows
    model.remove_rows(model.rows_[first].tolist())
    before = model.predict_topk(data.X, 2)
    model.drop_removed()
    np.testing.assert_array_equal(model.predict_topk(data.X, 2)[0], before[0])
    model.save(tmp_path / "model")
    model = exmlds.load(tmp_path / "model").partial_fit(data.X[:40], data.Y[:40])
    assert model.n_samples_fit_ == 160 - len(first)
    assert len(model.learners_[0].parts[0].rows)
    assert (model.predict_topk(data.X, 1)[0] >= 0).all()


def test_labels_that_no_row_has_are_left_out_until_one_has_them(data: Dataset) -> None:
    """A matrix of very many labels: the model has columns of those that occur alone."""
    wide = csr_matrix((data.Y.data, data.Y.indices * 5_000, data.Y.indptr), (120, 40_000))
    model = ExMLDS1(growable=True, n_neighbors=5, n_components=8, random_state=0).fit(data.X, wide)
    model.partial_fit(rows_of(0, 3, n=10), [[17]] * 10)
    model.partial_fit(rows_of(1, 4, n=10), [[12_345, 3]] * 10)
    assert best(model, rows_of(0, 3, seed=1)) == [17]
    assert set(model.predict_topk(rows_of(1, 4, seed=1), 2)[0][0].tolist()) == {12_345, 3}
    assert model.label_counts_[[0, 3, 17, 12_345, 5_000]].tolist() == [20, 10, 10, 10, 20]
    assert best(model.refresh(), rows_of(0, 3, seed=1)) == [17]


@pytest.mark.parametrize(
    "crafted",
    [
        lambda change: change._replace(removed=np.array([500])),
        lambda change: change._replace(removed=np.array([3, 3])),
        lambda change: change._replace(removed=np.array([0])),
        lambda change: change._replace(X=change.X[:, :5]),
        lambda change: change._replace(X=change.X.toarray()),
        lambda change: change._replace(labels=change.labels[:, :2]),
        lambda change: change._replace(labels=change.labels[:1]),
        lambda change: change._replace(labels=change.labels * 2),
        lambda change: change._replace(ids=np.array([1, 2], object)),
        lambda change: change._replace(ids=np.array(["5", "6"], object)),
        lambda change: change._replace(ids=np.array(["a", "a"], object)),
        lambda change: change._replace(used=np.array([0])),
        lambda change: change._replace(names=np.array(["a"], object)),
        lambda change: change._replace(results=(1, 2)),
        lambda change: (1, 2),
    ],
)
def test_crafted_changes_are_refused(data: Dataset, fitted: Fitted, crafted: Callable[[Any], Any]) -> None:
    """A journal may come from anywhere, and kernels do not check their indices."""
    for method in (METHODS[0], METHODS[-1]):
        model = copy.deepcopy(fitted(method, data)).remove_rows([0])
        change = model._rows_added(rows_of(0, n=2), [[1], [2]], ["a", "b"], False, None)
        copy.deepcopy(model)._apply_change(change)
        before = copy.deepcopy(model)
        with pytest.raises(ValueError, match=r"\w"):
            model._commit_change(crafted(change))
        assert_same(model, before, data.X[:5])


def test_a_new_label_is_explained_before_it_has_a_classifier() -> None:
    X, Y, names, _ = make_library(900, random_state=0)
    model = ExMLDS(growable=True, random_state=0).fit(X[:800], Y[:800], label_names=names)
    model.partial_fit(X[800:801], [["brand new"]])
    assert len(model.classifiers_.bias) == len(names)
    why = model.explain(X[800:801], label="brand new")[0]
    assert why.margin is None
    assert why.voters[0].row == 800


def test_replay_gives_the_examples_and_weights_that_were_computed_at_once(tmp_path: Path) -> None:
    """A change that was just computed is applied with what was computed on the way; a journal has less."""
    X, Y, names, _ = make_library(900, random_state=0)
    ExMLDS(growable=True, random_state=0).fit(X[:800], Y[:800], label_names=names).save(tmp_path / "model")
    with exmlds.load(tmp_path / "model", writable=True) as model:
        for start in range(800, 890, 30):
            rows = slice(start, start + 30)
            model.partial_fit(
                X[rows], [[names[label] for label in Y[row].indices] for row in range(rows.start, rows.stop)]
            )
            assert model.growth_.n_pending == 0
        model.remove_rows(range(10))
        other = exmlds.load(tmp_path / "model")
    assert len(model._padded_rows[1].squares) == 890
    for one, theirs in (
        (model.classifiers_, other.classifiers_),
        (model.trained_.examples, other.trained_.examples),
    ):
        for values, same in zip(one, theirs):
            np.testing.assert_array_equal(values, same)
    np.testing.assert_array_equal(model.trained_.alphas, other.trained_.alphas)
    assert_same(model, other, X[:50])


@pytest.mark.parametrize(
    "method",
    [
        *METHODS,
        clone(METHODS[3]).set_params(complete_labels=0.5),
        clone(METHODS[3]).set_params(complete_labels=0.0),
    ],
    ids=lambda method: type(method).__name__,
)
@pytest.mark.parametrize("is_dense", [False, True])
def test_replay_of_single_rows_is_exact(method: Any, data: Dataset, is_dense: bool, tmp_path: Path) -> None:
    """Changes of one row are joined when a journal is read, also those of labels that are new."""
    X = data.X.toarray() if is_dense else data.X
    clone(method).fit(X, data.Y).save(tmp_path / "model")
    with exmlds.load(tmp_path / "model", writable=True) as model:
        for row in range(6):
            model.partial_fit(X[[row]], [[row % 3, 6 + row % 2]])
        for row in range(3):
            model.remove_rows([row])
        model.relabel([4, 5, 6], [[], [7], [9, 1]])
        for row in range(7, 10):
            model.partial_fit(X[[row]], [[row % 3, 8, 9]], ids=[row], replace=True)
            model.partial_fit(X[[row]], [[8]])
        model.remove_rows(model.row_ids_[-1:]).remove_rows(model.row_ids_[-2:])
        has_seventh = model.growth_.labels[:, [7]].toarray().ravel() > 0
        for id in model.growth_.ids[has_seventh & ~model.growth_.is_removed]:
            model.remove_rows([id])
        for row in range(10, 13):
            model.partial_fit(X[[row]], [[row % 3, 7]])
        other = exmlds.load(tmp_path / "model")
    assert tree.dumps(other._state(), "state") == tree.dumps(model._state(), "state")


def test_replay_is_exact_where_a_shortlister_embeds_labels(tmp_path: Path) -> None:
    """Below half a percent of the rows, no classifier is trained again, and changes are joined."""
    X, Y, names, _ = make_library(650, random_state=0)
    method = ExMLDS(growable=True, candidates="sppmi", effort="fast", shortlist=8, cost=1.0, random_state=0)
    method.fit(X[:640], Y[:640], label_names=names).save(tmp_path / "model")
    with exmlds.load(tmp_path / "model", writable=True) as model:
        for row in range(640, 643):
            model.partial_fit(X[[row]], [["brand new"]])
        assert model.growth_.n_pending == 3
        other = exmlds.load(tmp_path / "model")
    assert tree.dumps(other._state(), "state") == tree.dumps(model._state(), "state")


def test_ids_are_strings_or_whole_numbers(data: Dataset) -> None:
    model = FeatureNeighbors(growable=True).fit(data.X, data.Y)
    model.partial_fit(data.X[:3], data.Y[:3], ids=[np.int32(500), "a", np.str_("b")])
    assert model.row_ids_[-3:] == ["500", "a", "b"]
    for wrong in (None, float("nan"), 7.0, True, b"a", (1, 2)):
        with pytest.raises(ValueError, match="Ids are strings or whole numbers"):
            model.partial_fit(data.X[:1], data.Y[:1], ids=[wrong])
        with pytest.raises(ValueError, match="Ids are strings or whole numbers"):
            model.remove_rows([wrong])
    for wrong in (None, 7, b"7"):
        with pytest.raises(ValueError, match="list of ids"):
            model.remove_rows(wrong)
    assert model.n_samples_fit_ == 123


def test_a_row_without_an_id_gets_a_number_that_no_row_has(data: Dataset) -> None:
    """It never replaces a row whose id was given by the user."""
    model = FeatureNeighbors(growable=True).fit(data.X, data.Y, ids=range(2, 122))
    model.partial_fit(data.X[:3], data.Y[:3], replace=True)
    assert model.row_ids_ == [str(number) for number in range(2, 125)]
    assert model.growth_.n_removed == 0


def test_refresh_keeps_whole_numbers_as_labels_and_the_names_of_features(data: Dataset) -> None:
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(data.X.toarray(), columns=[f"f{column}" for column in range(data.X.shape[1])])
    model = FeatureNeighbors(growable=True).fit(X, [[10 * int(label)] for label in data.Y.indices])
    model.partial_fit(X[:3], [[70]] * 3).remove_rows([0]).refresh()
    assert model.classes_.tolist() == [0, 10, 20, 30, 40, 50, 70]
    assert model.feature_names_in_.tolist() == X.columns.tolist()
    assert model.partial_fit(X[3:4], [[80]]).classes_.tolist()[-1] == 80


def test_gains_of_labels_do_not_count_removed_rows(data: Dataset) -> None:
    method = ExMLDS(growable=True, objective="psp", effort="fast", random_state=0)
    model = clone(method).fit(data.X, data.Y).partial_fit(rows_of(0, n=60), [[0]] * 60)
    model.remove_rows([*model.row_ids_[-60:], *range(1, 91, 6)])  # labels of 20 rows, and one of 5
    again = copy.deepcopy(model).drop_removed().relabel([0], [[0]])
    np.testing.assert_array_equal(model.gains_, again.gains_)
    assert model.gains_[0] < model.gains_[1] == 1


def test_single_rows_are_joined_when_a_journal_is_read(
    data: Dataset, fitted: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each change takes time for all rows; so do runs of them, which are as long as they may be."""
    fitted(METHODS[0], data).save(tmp_path / "model")
    with exmlds.load(tmp_path / "model", writable=True) as model:
        for row in range(25):
            model.partial_fit(rows_of(0, seed=row), [[row]], ids=[f"n{row}"])
        for row in range(12):
            model.remove_rows([f"n{row}"])
        model.relabel([1], [[2]]).partial_fit(rows_of(0), [[0]])
    applied = FeatureNeighbors._apply_change
    sizes: list[tuple[int, int]] = []

    def noted(self: Any, change: Any) -> None:
        sizes.append((len(change.removed), len(change.ids)))
        applied(self, change)

    monkeypatch.setattr(FeatureNeighbors, "_apply_change", noted)
    monkeypatch.setattr("exmlds.growing.MOST_JOINED", 10)
    again = exmlds.load(tmp_path / "model")
    assert sizes == [(0, 10), (0, 10), (0, 5), (10, 0), (2, 0), (1, 1), (0, 1)]
    assert tree.dumps(again._state(), "state") == tree.dumps(model._state(), "state")


@pytest.fixture
def books(monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """Rows of which 30 are enough to train the map further."""
    monkeypatch.setattr(exmlds4, "FEWEST_FURTHER", 30)
    monkeypatch.setattr(exmlds4, "FURTHER_SHARE", 0.05)
    return make_library(460, random_state=0)


def maps_of(model: ExMLDS) -> np.ndarray:
    return model.shortlister_.learners_[0].parts[0].V.values


@pytest.mark.parametrize("is_dense", [False, True])
@pytest.mark.parametrize("in_cells", [False, True])
def test_maps_are_trained_on_many_new_rows_and_replay_is_exact(
    books: Dataset, is_dense: bool, in_cells: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "CELLS_FROM", 100 if in_cells else 5_000)
    X = books.X.toarray() if is_dense else books.X
    method = ExMLDS(growable=True, candidates="joint", cost=1.0, shortlist=8, random_state=0)
    method.fit(X[:400], books.Y[:400]).save(tmp_path / "model")
    with exmlds.load(tmp_path / "model", writable=True) as model:
        before = maps_of(model)
        model.partial_fit(X[400:420], books.Y[400:420])
        assert maps_of(model) is before
        model.remove_rows(range(5))
        model.partial_fit(X[420:440], books.Y[420:440])
        assert np.abs(maps_of(model) - before).max() > 0.01
        assert model.n_mapped_ == np.count_nonzero(np.diff(books.Y[:440].indptr))
        model.partial_fit(X[440:], books.Y[440:])
        other = exmlds.load(tmp_path / "model")
    assert tree.dumps(other._state(), "state") == tree.dumps(model._state(), "state")
    rows = model.shortlister_.transform(X[model.rows_])
    indexed = index.stored_rows(
        model.shortlister_.learners_[0].parts[0].row_index,
        index.positions(model.shortlister_.learners_[0].parts[0].row_index),
    )
    cosines = np.einsum("ij,ij->i", normalize(rows), normalize(indexed))
    np.testing.assert_allclose(cosines, 1, atol=1e-4)  # all rows are embedded by the new map


@pytest.mark.parametrize("is_dense", [False, True])
def test_removed_rows_do_not_train_maps_whether_they_are_dropped_or_not(
    books: Dataset, is_dense: bool
) -> None:
    X = books.X.toarray() if is_dense else books.X
    model = ExMLDS(growable=True, candidates="joint", cost=1.0, shortlist=8, random_state=0)
    model.fit(X[:400], books.Y[:400]).partial_fit(X[400:425], books.Y[400:425])
    model.remove_rows([3, 402, 410])
    other = copy.deepcopy(model).drop_removed()
    for each in (model, other):
        each.partial_fit(X[425:], books.Y[425:])
    assert model.n_mapped_ == len(model.rows_)
    assert other.n_mapped_ == len(other.rows_) < len(model.rows_)
    np.testing.assert_array_equal(maps_of(model), maps_of(other))
    assert_same(model, other, X[:60])
    assert_same(model.drop_removed(), other, X[:60])


@pytest.mark.parametrize(
    "crafted",
    [
        lambda maps: [],
        lambda maps: [[]],
        lambda maps: [[maps[0][0]._replace(values=maps[0][0].values[1:])]],
        lambda maps: [[maps[0][0].values]],
        lambda maps: maps[0][0],
    ],
)
def test_crafted_maps_are_refused(books: Dataset, crafted: Callable[[Any], Any]) -> None:
    model = ExMLDS(growable=True, candidates="joint", cost=1.0, shortlist=8, random_state=0)
    model.fit(books.X[:400], books.Y[:400])
    change = model._with_results(model._rows_added(books.X[400:], books.Y[400:], None, False, None))
    assert change.results.maps is not None
    wrong = change._replace(results=change.results._replace(maps=crafted(change.results.maps)))
    before = copy.deepcopy(model)
    with pytest.raises(ValueError, match="map"):
        model._commit_change(wrong)
    assert_same(model, before, books.X[:5])
    model._commit_change(change)


def test_all_parts_of_all_learners_train_their_maps(books: Dataset) -> None:
    method = ExMLDS4(n_parts=2, n_learners=2, n_components=12, n_epochs=4, storage="int8", random_state=0)
    model = method.fit(books.X[:400], books.Y[:400])
    n, added = len(model.rows_), np.arange(400, 460)[np.diff(books.Y[400:].indptr) > 0]
    X = vstack([books.X[model.rows_], books.X[added]], format="csr")
    grown = model.grown(np.array([1, n - 1]), books.X[added], books.Y[added])
    assert grown.needs_further_maps(n)
    before = [part.V.values.copy() for learner in grown.learners_ for part in learner.parts]
    maps = grown.further_maps(X, n)
    again = grown.with_maps(X, maps)
    assert [len(of_parts) for of_parts in maps] == [2, 2]
    for V, old, part in zip(
        [V for of_parts in maps for V in of_parts],
        before,
        [part for learner in again.learners_ for part in learner.parts],
    ):
        assert V.values.dtype == np.int8
        assert (V.values != old).any()
        assert part.V is V
    np.testing.assert_array_equal(before[0], grown.learners_[0].parts[0].V.values)  # nothing in place
    found = again.search_neighbors(X)
    first = np.stack([one.neighbors[:, 0] for one in found])
    has_itself = (first == np.arange(len(X.indptr) - 1)).any(axis=0)
    assert has_itself.mean() > 0.8  # a row is its own nearest one, where it is not routed elsewhere
    assert not np.isin(first, [1, n - 1]).any()  # removed rows are not found


def test_relabelling_all_rows_trains_the_map_from_where_it_was(books: Dataset) -> None:
    model = ExMLDS(growable=True, candidates="joint", cost=1.0, shortlist=8, random_state=0)
    model.fit(books.X[:400], books.Y[:400])
    before = maps_of(model).astype(float)
    model.relabel([model.row_ids_[row] for row in model.rows_], books.Y[model.rows_])
    assert 0.01 < np.abs(maps_of(model) - before).mean() < 0.2
