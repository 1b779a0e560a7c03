"""What every public estimator keeps; a new one is found and tested by itself."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csc_matrix, csr_array, csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import exmlds
from exmlds import XMCEstimator
from exmlds.data import Dataset, make_xmc

METHODS: list[type[XMCEstimator]] = [
    value
    for value in (getattr(exmlds, name) for name in exmlds.__all__)
    if isinstance(value, type)
    and issubclass(value, XMCEstimator)
    and value not in (XMCEstimator, exmlds.TextClassifier)  # texts have tests of their own
]
every_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)

SPARSE = "predict, predict_proba and decision_function return csr: (n, L) dense does not fit in memory"
EXPECTED_FAILURES = {
    "check_classifier_data_not_an_array": SPARSE,
    "check_classifiers_classes": SPARSE,
    "check_classifiers_multilabel_output_format_decision_function": SPARSE,
    "check_classifiers_multilabel_output_format_predict": SPARSE,
    "check_classifiers_multilabel_output_format_predict_proba": SPARSE,
    "check_classifiers_multilabel_representation_invariance": SPARSE,
    "check_classifiers_one_label": SPARSE,
    "check_classifiers_train": SPARSE,
    "check_decision_proba_consistency": SPARSE,
    "check_estimator_sparse_array": SPARSE,
    "check_estimator_sparse_matrix": SPARSE,
    "check_supervised_y_2d": "a column of class numbers is no indicator; it is refused, not guessed at",
}
FOLDS = "copies of a row fall into different folds, a row of weight two does not"
WEIGHTED = {f"check_sample_weight_equivalence_on_{form}_data": FOLDS for form in ("dense", "sparse")}


@parametrize_with_checks(
    [method() for method in METHODS],
    expected_failed_checks=lambda estimator: (
        EXPECTED_FAILURES | (WEIGHTED if isinstance(estimator, exmlds.ExMLDS) else {})
    ),
)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@every_method
def test_parameters_are_those_of_every_method_and_its_own(method: type[XMCEstimator]) -> None:
    """An attribute that is learnt must not be annotated in the class: it would become a parameter."""
    parameters, common = signature(method).parameters, signature(XMCEstimator).parameters
    assert all(parameters[name] == common[name] for name in common)
    assert all(told.kind is told.KEYWORD_ONLY for told in parameters.values())
    assert all(name in method._constraints for name in parameters)


Fitted = Callable[..., Any]
FEW = slice(40)  # rows that any method learns from in no time


@pytest.fixture(scope="module")
def data() -> Dataset:
    return make_xmc(120, 30, 12, random_state=0)


@pytest.fixture
def model(method: type[XMCEstimator], data: Dataset, fitted: Fitted) -> Any:
    """The method fitted on the data: to ask, not to change."""
    return fitted(method(random_state=0), data)


@pytest.mark.twins
@every_method
def test_topk_is_ids_and_scores_best_first(
    method: type[XMCEstimator], model: XMCEstimator, data: Dataset
) -> None:
    ids, scores = model.predict_topk(data.X, 20)
    assert (ids.shape, ids.dtype, scores.dtype) == ((120, 20), np.int64, np.float32)
    assert (np.diff(scores, axis=1) <= 0).all()
    assert ((ids >= 0) == (scores > 0)).all()
    assert (ids < 12).all()
    assert (ids[:, 12:] == -1).all()
    assert scores.max() <= 1
    assert all(len(set(row[row >= 0])) == (row >= 0).sum() for row in ids)
    first_five = model.predict_topk(data.X, 5)
    np.testing.assert_array_equal(first_five[0], ids[:, :5])


@every_method
def test_a_dense_row_has_the_same_scores_beside_any_rows(
    method: type[XMCEstimator], rng: np.random.Generator
) -> None:
    X = rng.normal(size=(60, 40)).astype(np.float32)
    Y = rng.random((60, 8)) < 0.3
    model = method(random_state=0).fit(X, Y)
    ids, scores = model.predict_topk(X, 8)
    for n in (1, 2, 3, 5, 17, 33, 59):
        rows = rng.permutation(60)[:n]
        for expected, found in zip((ids, scores), model.predict_topk(X[rows], 8)):
            np.testing.assert_array_equal(found, expected[rows])


# Sums in another order may round a weight kept as float16 or int8 the other way.
ROUNDING = 5e-3


@every_method
def test_sparse_and_dense_rows_give_the_same(
    method: type[XMCEstimator], model: XMCEstimator, data: Dataset
) -> None:
    dense = data.X.toarray()
    found = method(random_state=0).fit(dense, data.Y).predict_topk(dense, 5)
    # In AnnexML all votes count the same, so of two rows with equal cosines either may have the last one.
    one_vote = 1 / (model.n_learners * model.n_neighbors) if isinstance(model, exmlds.AnnexML) else 0
    rounding = max(ROUNDING, 1.001 * one_vote)
    np.testing.assert_allclose(found[1], model.predict_topk(data.X, 5)[1], atol=rounding)


@every_method
def test_every_form_of_rows_gives_the_same(
    method: type[XMCEstimator], data: Dataset, fitted: Fitted, tmp_path: Path
) -> None:
    expected = fitted(method(random_state=0), data, FEW).predict_topk(data.X[FEW], 5)
    data = data.rows(FEW)
    dense = data.X.toarray()
    np.save(tmp_path / "X.npy", dense)
    shuffled = data.X.copy()
    for row in range(shuffled.shape[0]):  # columns of each row in reverse order
        mine = slice(shuffled.indptr[row], shuffled.indptr[row + 1])
        shuffled.indices[mine] = shuffled.indices[mine][::-1].copy()
        shuffled.data[mine] = shuffled.data[mine][::-1].copy()
    shuffled.has_sorted_indices = False
    forms: list[Any] = [
        csr_array(data.X),
        csc_matrix(data.X),
        data.X.astype(np.int64),
        data.X.astype(np.float64),
        shuffled,
        dense,
        dense.astype(np.uint8),
        np.asfortranarray(dense),
        np.load(tmp_path / "X.npy", mmap_mode="r"),
        dense.tolist(),
    ]
    for X in forms:
        model = method(random_state=0).fit(X, data.Y)
        np.testing.assert_allclose(model.predict_topk(X, 5)[1], expected[1], atol=ROUNDING)


def lists_of(Y: csr_matrix) -> list[list[int]]:
    return [row.tolist() for row in np.split(Y.indices, Y.indptr[1:-1])]


@every_method
def test_a_matrix_and_lists_of_labels_give_the_same(
    method: type[XMCEstimator], model: XMCEstimator, data: Dataset
) -> None:
    rows = lists_of(data.Y)
    by_lists = method(random_state=0).fit(data.X, rows)
    for one, other in zip(by_lists.predict_topk(data.X, 5), model.predict_topk(data.X, 5)):
        np.testing.assert_array_equal(one, other)
    assert by_lists.score(data.X, rows) == pytest.approx(model.score(data.X, data.Y))


@every_method
def test_every_form_of_labels_gives_the_same(
    method: type[XMCEstimator], data: Dataset, fitted: Fitted
) -> None:
    data, reference = data.rows(FEW), fitted(method(random_state=0), data, FEW)
    expected, score = reference.predict_topk(data.X, 5), reference.score(data.X, data.Y)
    rows = lists_of(data.Y)
    dense = data.Y.toarray()
    forms: list[Any] = [
        csr_array(data.Y),
        csc_matrix(data.Y),
        data.Y.astype(np.int64),
        data.Y.astype(bool),
        dense,
        dense.astype(int),
        dense.astype(bool),
        rows,
        [set(row) for row in rows],
        [[f"label {label:02}" for label in row] for row in rows],
    ]
    for Y in forms:
        model = method(random_state=0).fit(data.X, Y)
        np.testing.assert_array_equal(model.predict_topk(data.X, 5)[0], expected[0])
        assert model.score(data.X, Y) == pytest.approx(score)


@every_method
def test_names_come_back(method: type[XMCEstimator], library: Dataset, fitted: Fitted) -> None:
    model = fitted(method(random_state=0), library)
    assert model.classes_.tolist() == library.label_names
    ids, _scores = model.predict_topk(library.X[:5], 3)
    assert model.predict_labels(library.X[:5], k=3) == [
        [str(model.classes_[label]) for label in row if label >= 0] for row in ids
    ]
    by_threshold = model.predict_labels(library.X[:5])
    assert [set(row) for row in by_threshold] == [
        set(model.classes_[row.indices]) for row in model.predict(library.X[:5])
    ]


@every_method
def test_predict_is_an_indicator_by_the_threshold(
    method: type[XMCEstimator], model: XMCEstimator, data: Dataset, fitted: Fitted
) -> None:
    said, scores = model.predict(data.X), model.decision_function(data.X)
    assert isinstance(said, csr_matrix)
    assert said.shape == scores.shape == (120, 12)
    np.testing.assert_array_equal(said.toarray(), scores.toarray() >= model.threshold_)
    assert scores.data.min() > 0
    assert scores.has_sorted_indices
    probabilities = model.predict_proba(data.X)
    assert probabilities.data.max() <= 1
    certain = method(threshold=1, random_state=0).fit(data.X, data.Y).predict(data.X)
    assert certain.nnz == (scores.data == 1).sum()
    everything = fitted(method(threshold=0.0, random_state=0), data).predict(data.X)
    assert everything.nnz == scores.nnz


@every_method
def test_max_labels_bounds_the_scores(method: type[XMCEstimator], data: Dataset) -> None:
    scores = method(max_labels=2, random_state=0).fit(data.X, data.Y).decision_function(data.X)
    assert np.diff(scores.indptr).max() == 2


@every_method
def test_allow_and_deny(method: type[XMCEstimator], model: XMCEstimator, data: Dataset) -> None:
    everything, _scores = model.predict_topk(data.X, 12)
    for k in (1, 3, 12):
        denied, _ = model.predict_topk(data.X, k, deny=[0, 3])
        allowed, allowed_scores = model.predict_topk(data.X, k, allow=[1, 2, 5])
        for row in range(120):
            full = everything[row][everything[row] >= 0].tolist()
            padding = [-1] * k
            assert denied[row].tolist() == ([i for i in full if i not in (0, 3)] + padding)[:k]
            assert allowed[row].tolist() == ([i for i in full if i in (1, 2, 5)] + padding)[:k]
        assert (allowed_scores[allowed < 0] == 0).all()
    for_each_row = csr_matrix(np.arange(120)[:, None] % 12 == np.arange(12))
    mine, _ = model.predict_topk(data.X, 12, allow=for_each_row)
    others, _ = model.predict_topk(data.X, 12, deny=for_each_row)
    for row in range(120):
        assert set(mine[row]) <= {row % 12, -1}
        assert row % 12 not in others[row]
    both, _ = model.predict_topk(data.X, 3, allow=[1, 2], deny=[2])
    assert set(both.ravel()) <= {1, -1}
    with pytest.raises(ValueError, match="Label 'x' is not known"):
        model.predict_topk(data.X, allow=["x"])
    with pytest.raises(ValueError, match="must be of shape"):
        model.predict_topk(data.X, deny=csr_matrix((3, 12)))
    with pytest.raises(ValueError, match="Got the string"):
        model.predict_topk(data.X, allow="label")


@every_method
def test_lists_may_be_iterators(method: type[XMCEstimator], model: XMCEstimator, data: Dataset) -> None:
    np.testing.assert_array_equal(
        model.predict_topk(data.X, 3, deny=iter([0, 3]))[0], model.predict_topk(data.X, 3, deny=[0, 3])[0]
    )


@every_method
def test_padding_is_no_label(method: type[XMCEstimator], data: Dataset, fitted: Fitted) -> None:
    model = fitted(method(threshold=0.0, random_state=0), data)
    for row, said in zip(model.predict_labels(data.X[:9]), model.predict(data.X[:9])):
        assert len(row) < model.max_labels
        assert sorted(row) == sorted(model.classes_[said.indices])
    with pytest.raises(ValueError, match="Got 0"):
        model.predict_labels(data.X, k=0)


@every_method
def test_the_labels_0_and_1_can_be_scored(method: type[XMCEstimator]) -> None:
    model = method().fit(np.eye(4), [[0], [1], [0, 1], [0]])
    assert model.score(np.eye(4)[:1], [[0, 1]]) == 1


@every_method
def test_score_takes_weights(method: type[XMCEstimator]) -> None:
    model = method().fit(np.ones((4, 1)), [["a"], ["a"], ["a"], ["b"]])
    assert model.score(np.ones((2, 1)), [["a"], ["b"]], sample_weight=np.array([3, 1])) == 0.75


@every_method
def test_save_and_load(method: type[XMCEstimator], library: Dataset, fitted: Fitted, tmp_path: Path) -> None:
    model = copy.deepcopy(fitted(method(random_state=0), library)).set_params(max_labels=7)
    model.save(tmp_path / "model")
    back = exmlds.load(tmp_path / "model")
    assert type(back) is method
    assert back.get_params() == model.get_params()
    assert back.threshold_ == model.threshold_
    assert back.predict_labels(library.X) == model.predict_labels(library.X)
    for ours, theirs in zip(back.predict_topk(library.X), model.predict_topk(library.X)):
        np.testing.assert_array_equal(ours, theirs)


@every_method
def test_threads_do_not_change_the_result(
    method: type[XMCEstimator], library: Dataset, fitted: Fitted
) -> None:
    on_all_cores = fitted(method(random_state=0), library)
    expected = on_all_cores.predict_topk(library.X)
    for n_jobs in (1, 3):
        model = method(random_state=0, n_jobs=n_jobs).fit(library.X, library.Y)
        found = model.predict_topk(library.X)
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_allclose(found[1], expected[1], atol=1e-6)
        assert model.threshold_ == pytest.approx(on_all_cores.threshold_)


@every_method
def test_scikit_learn_tools(method: type[XMCEstimator], data: Dataset) -> None:
    model = method(random_state=0)
    again = clone(model.set_params(max_labels=9))
    assert again.get_params() == model.get_params()
    pipeline = make_pipeline(MaxAbsScaler(), method(random_state=0)).fit(data.X, data.Y)
    assert pipeline.score(data.X, data.Y) > 0.2
    dense = data.Y.toarray()  # cross_val_score itself refuses a sparse Y
    assert len(cross_val_score(method(random_state=0), data.X, dense, cv=2)) == 2
    search = GridSearchCV(method(random_state=0), {"max_labels": [3, 5]}, cv=2).fit(data.X, data.Y)
    assert search.best_score_ > 0.2
    kept = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(
        kept.predict_topk(data.X)[0], search.best_estimator_.predict_topk(data.X)[0]
    )


@pytest.mark.twins
@every_method
def test_edge_cases(method: type[XMCEstimator]) -> None:
    one_row = method().fit([[1.0, 2.0]], [["only"]])
    assert one_row.predict_labels([[3.0, 4.0]], k=3) == [["only"]]
    for seed in range(3):  # few rows with labels: there is little to hold out
        few = np.zeros((8, 3))
        few[0, :2] = 1
        assert method(random_state=seed).fit(np.eye(8), few).predict_topk(np.eye(8), 1)[0].max() <= 1
    no_feature = method().fit(csr_matrix((60, 5)), np.eye(3)[np.arange(60) % 3])
    assert np.isfinite(no_feature.predict_topk(csr_matrix((2, 5)), 2)[1]).all()
    one_class = method().fit(np.eye(6), np.ones((6, 1)))
    assert one_class.predict_topk(np.eye(6), 2)[0].tolist() == [[0, -1]] * 6
    same_rows = method().fit(np.ones((9, 2)), [["a"], ["b"], ["a"]] * 3)
    # Algorithm 4 adds nearness to labels, which by PMI is larger for the rarer one.
    assert same_rows.predict_labels([[1.0, 1.0]], k=1) == [["b" if method is exmlds.ExMLDS3 else "a"]]
    with_empty = method().fit(
        csr_matrix(np.diag([1.0, 1, 1, 0, 0, 1])), csr_matrix(np.diag([1.0, 0, 1, 0, 1, 1]))
    )
    ids, scores = with_empty.predict_topk(csr_matrix(np.diag([1.0, 1, 1, 0, 0, 1])), 4)
    assert np.isfinite(scores).all()
    assert (ids[:, 0] >= 0).all()
    never_seen = method().fit(np.eye(3), csr_matrix(np.eye(3, 5)))
    assert set(never_seen.predict_topk(np.eye(3), 5)[0].ravel()) <= {-1, 0, 1, 2}


@every_method
def test_labels_not_seen_at_fit_count_as_missed(method: type[XMCEstimator]) -> None:
    model = method().fit(np.eye(2), [["a"], ["a"]])
    assert model.score(np.eye(2), [["a"], ["new"]]) == 0.5
    assert model.label_matrix([["new"], ["a"]], unknown="append").toarray().tolist() == [[0, 1], [1, 0]]


@every_method
@pytest.mark.parametrize(
    ("X", "Y", "said"),
    [
        (np.eye(2), np.array([[0, 2], [1, 0]]), r"0 and 1 only. Got 2.* in row 0"),
        (np.eye(2), np.array([[0, np.nan], [1, 0]]), r"0 and 1 only. Got nan"),
        (np.eye(2), csr_matrix(np.array([[0, -1], [1, 0]])), r"0 and 1 only. Got -1"),
        (np.eye(2), np.zeros((2, 3)), "no label at all"),
        (np.eye(2), [[], []], "no label at all"),
        (np.eye(2), np.eye(3), "X has 2 rows, but Y has 3"),
        (np.eye(2), None, "requires y"),
        (np.eye(2), "labels", "one list of labels per row"),
        (np.eye(2), [["a"], [1]], "all strings or all whole numbers"),
        (np.eye(2), [[0, 1], [1, 0]], r"lists of 0 and 1 of equal length.*np.stack"),
        (np.eye(2), [[True, False], [False, True]], "lists of 0 and 1"),
        (np.eye(2), np.array([["a", "b"], ["c", "d"]]), "A 2-d Y must hold 0 and 1"),
        (np.eye(2), [[None], ["a"]], "Row 0 has no label but None: leave it out"),
        (np.eye(2), [[0.5], ["a"]], "Got 0.5 in row 0"),
        (np.array([[np.nan, 1], [0, 1]]), np.eye(2), "NaN"),
        (np.array([[np.inf, 1], [0, 1]]), np.eye(2), "infinity"),
        (csr_matrix(np.array([[1e300, 1], [0, 1]])), np.eye(2), "in row 0, column 0. Scale the features"),
        (np.ones(3), np.eye(3), "2D array"),
        (np.ones((0, 3)), np.ones((0, 2)), "0 sample"),
    ],
)
def test_bad_input_is_named(method: type[XMCEstimator], X: Any, Y: Any, said: str) -> None:
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=said):
        method().fit(X, Y)


@every_method
@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"threshold": "best"}, "The 'threshold' parameter of .* must be 'auto' or 'f1' or a string such as"),
        ({"threshold": -1}, "or a number from 0 to 1, as scores are, such as 0.5 for 50%. Got -1 instead"),
        ({"threshold": 1.5}, "Got 1.5 instead"),
        ({"max_labels": 0}, "The 'max_labels' parameter of .* must be a whole number of at least 1. Got 0"),
        ({"max_labels": 2.5}, "Got 2.5 instead"),
        ({"n_jobs": 0}, "'n_jobs' parameter"),
        ({"random_state": "x"}, "'random_state' parameter"),
        ({"verbose": -1}, "'verbose' parameter"),
    ],
)
def test_bad_parameters_are_named(method: type[XMCEstimator], parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        method(**parameters).fit(np.eye(3), np.eye(3))


@every_method
def test_every_parameter_has_its_limits_and_its_place(method: type[XMCEstimator]) -> None:
    parameters = method().get_params()
    for name in parameters:
        with pytest.raises(ValueError, match=f"The '{name}' parameter of {method.__name__} must be"):
            method(**{name: object()}).fit(np.eye(3), np.eye(3))
    assert {"threshold", "max_labels", "n_jobs", "random_state", "verbose"} <= set(parameters)
    with pytest.raises(TypeError):
        method(5)  # type: ignore[call-arg]


@every_method
def test_wrong_use_after_fit_is_named(method: type[XMCEstimator], model: XMCEstimator, data: Dataset) -> None:
    with pytest.raises(ValueError, match="X has 2 features, but"):
        model.predict_topk(np.ones((1, 2)))
    with pytest.raises(ValueError, match="k must be a whole number of at least 1. Got 0"):
        model.predict_topk(data.X, 0)
    with pytest.raises(ValueError, match="Y has 3 columns, but .* knows 12 labels"):
        model.score(data.X, np.ones((120, 3)))
    with pytest.raises(ValueError, match="12 columns|11 label_names"):
        method().fit(data.X, data.Y, label_names=list("abcdefghijk"))
    with pytest.raises(ValueError, match="'a' appears twice"):
        method().fit(data.X, data.Y, label_names=[*list("abcdefghijka")[:11], "a"])
    with pytest.raises(ValueError, match="Label 'c' of row 1 is not among the label_names"):
        method().fit(np.eye(2), [["a"], ["c"]], label_names=["a", "b"])


@every_method
def test_label_names_say_the_columns_of_lists_too(method: type[XMCEstimator]) -> None:
    names = ["never seen", "b", "a"]
    model = method(random_state=0).fit(np.eye(2), [["a"], ["b"]], label_names=names)
    assert model.classes_.tolist() == names
    assert model.label_counts_.tolist() == [0, 1, 1]


class Frame:
    """As much of a data frame as the contract uses."""

    def __init__(self, values: np.ndarray, columns: list[str]) -> None:
        self.values, self.columns, self.ndim = values, columns, values.ndim

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.values, dtype)


@every_method
def test_columns_of_a_frame_name_the_labels(method: type[XMCEstimator]) -> None:
    model = method().fit(np.eye(2), Frame(np.eye(2), ["x", "y"]))
    assert model.classes_.tolist() == ["x", "y"]


@every_method
def test_memory_is_estimated_and_bounded(
    method: type[XMCEstimator], model: XMCEstimator, data: Dataset
) -> None:
    small, large = (method().estimate(n, 1_000, 1_000, 50 * n) for n in (10**4, 10**6))
    assert 0 < small.memory < large.memory < 1e11
    assert 0 < small.size <= large.size
    roomy = method(max_memory="4 GB", random_state=0).fit(data.X, data.Y)
    np.testing.assert_array_equal(roomy.predict_topk(data.X, 5)[0], model.predict_topk(data.X, 5)[0])
    with pytest.raises(ValueError, match="needs about .* GB for 120 rows, 30 features and 12 labels"):
        method(max_memory=1000).fit(data.X, data.Y)
    for wrong in ("much", 0, True, "-1 GB"):
        with pytest.raises(ValueError, match="'max_memory' parameter"):
            method(max_memory=wrong).fit(data.X, data.Y)


@pytest.mark.parametrize("method", METHODS)
def test_a_fit_that_fails_leaves_the_model_as_it_was(
    method: type[XMCEstimator], data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = method(random_state=0)

    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(XMCEstimator, "_choose_threshold", stop)  # at the very end
    with pytest.raises(KeyboardInterrupt):
        model.fit(data.X[:60], data.Y[:60])
    with pytest.raises(NotFittedError):
        model.predict_topk(data.X)
    monkeypatch.undo()
    before = model.fit(data.X, data.Y).predict_topk(data.X)
    monkeypatch.setattr(XMCEstimator, "_choose_threshold", stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(data.X[:60, :9], data.Y[:60, :4])
    for old, new in zip(before, model.predict_topk(data.X)):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("method", [exmlds.ExMLDS1, exmlds.FeatureNeighbors])
def test_arguments_that_fit_does_not_take_are_named(method: type[XMCEstimator], data: Dataset) -> None:
    name = method.__name__
    taken = f"{name}.fit takes no argument 'sample_weight'. ExMLDS.fit and {name}.score take it."
    with pytest.raises(TypeError, match=re.escape(taken)):
        method().fit(data.X, data.Y, sample_weight=np.ones(120))  # type: ignore[call-arg]


@every_method
def test_names_of_features_belong_to_explanations(method: type[XMCEstimator], data: Dataset) -> None:
    taken = f"{method.__name__}.fit takes no argument 'feature_names'. {method.__name__}.explain takes it."
    with pytest.raises(TypeError, match=re.escape(taken)):
        method().fit(data.X, data.Y, feature_names=["a"])  # type: ignore[call-arg]


def test_verbose_may_be_true(data: Dataset) -> None:
    assert exmlds.MostFrequent(verbose=True).fit(data.X, data.Y).verbose


def test_long_values_are_shortened_in_messages(data: Dataset) -> None:
    with pytest.raises(ValueError, match="'threshold' parameter") as refused:
        exmlds.MostFrequent(threshold=list(range(1000))).fit(data.X, data.Y)  # type: ignore[arg-type]
    assert len(str(refused.value)) < 250
