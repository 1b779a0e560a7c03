"""Labels, co-occurrences of labels and observed cells, as users give them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_matrix, csr_matrix

from exmlds import DataWarning
from exmlds.validation import targets

C = np.array([[3, 1, 0], [1, 2, 0.5], [0, 0.5, 0]])
Y = csr_matrix(np.array([[1, 0, 0], [0, 1, 1]], np.float32))


def changed(i: int, j: int, value: float) -> np.ndarray:
    wrong = C.copy()
    wrong[i, j] = value
    return wrong


@pytest.mark.parametrize("form", [np.asarray, csr_matrix, csc_matrix, coo_array, np.ndarray.tolist])
def test_any_kind_of_matrix(form: Any) -> None:
    found = targets.cooccurrence(form(C), 3)
    assert found.format == "csr"
    assert found.dtype == np.float64
    assert found.nnz == 6
    np.testing.assert_array_equal(found.toarray(), C)


def test_whole_numbers_and_booleans() -> None:
    for dtype in (np.int8, np.uint64, bool):
        found = targets.cooccurrence(np.eye(3).astype(dtype), 3)
        np.testing.assert_array_equal(found.toarray(), np.eye(3))


def test_the_users_matrix_is_left_alone() -> None:
    given = csr_matrix((np.array([1.0, 2, 0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    found = targets.cooccurrence(given, 2)
    assert found.toarray().tolist() == [[3, 0], [0, 0]]
    assert given.data.tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            C[:2],
            r"shape \(3, 3\), one row and one column per label. Got \(2, 3\) instead.*exmlds.LabelMatrix",
        ),
        (np.eye(4), r"shape \(3, 3\).* Got \(4, 4\) instead"),
        (np.ones(3), r"shape \(3, 3\).* Got \(1, 3\) instead"),
        (changed(1, 2, np.nan), "must be finite. Got nan for labels 1 and 2 instead"),
        (changed(2, 2, np.inf), "must be finite. Got inf for labels 2 and 2 instead"),
        (changed(0, 1, -2), r"must be at least 0. Got -2.0 for labels 0 and 1 instead"),
        (changed(0, 2, 4), r"must be symmetric. Got 4.0 for labels 0 and 2, but 0.0 for 2 and 0"),
        (np.zeros((3, 3)), "holds nothing but zeros"),
        (csr_matrix((3, 3)), "holds nothing but zeros"),
        ([["a"] * 3] * 3, "must be a matrix of numbers"),
        ([[1, 2, 3], [1]], "must be a matrix of numbers"),
        (np.ones((3, 3, 3)), "must be a matrix of numbers"),
        ("C.npz", "must be a matrix of numbers"),
    ],
)
def test_an_error_says_what_and_where(wrong: Any, message: str) -> None:
    with pytest.raises(ValueError, match="label_cooccurrence.*" + message):
        targets.cooccurrence(wrong, 3)
    if isinstance(wrong, np.ndarray) and wrong.ndim == 2:
        with pytest.raises(ValueError, match="label_cooccurrence.*" + message):
            targets.cooccurrence(csr_matrix(wrong), 3)


def test_the_largest_asymmetry_is_named() -> None:
    wrong = C.copy()
    wrong[0, 1], wrong[2, 1] = 1.5, 9
    with pytest.raises(ValueError, match="labels 1 and 2, but 9.0 for 2 and 1|labels 2 and 1, but 0.5"):
        targets.cooccurrence(wrong, 3)


def test_asymmetry_by_rounding_is_allowed() -> None:
    for scale in (1e-12, 1, 1e12):
        targets.cooccurrence(scale * changed(0, 1, 1 + 1e-7), 3)
        with pytest.raises(ValueError, match="symmetric"):
            targets.cooccurrence(scale * changed(0, 1, 1 + 1e-5), 3)


def test_explicit_zeros_are_dropped() -> None:
    given = csr_matrix((np.array([2.0, 0]), np.array([0, 1]), np.array([0, 2, 2])), shape=(2, 2))
    assert targets.cooccurrence(given, 2).nnz == 1


def test_present_labels_are_observed() -> None:
    known = targets.observed_cells(np.array([[0, 1, 0], [0, 1, 0]]), Y)
    assert known.format == "csr"
    assert known.toarray().tolist() == [[1, 1, 0], [0, 1, 1]]
    assert (known.data == 1).all()
    everything = targets.observed_cells(csr_matrix(np.ones((2, 3), bool)), Y)
    assert everything.toarray().tolist() == [[1] * 3] * 2


def test_observed_must_have_the_shape_of_the_labels() -> None:
    with pytest.raises(ValueError, match=r"observed.*shape of Y, \(2, 3\). Got \(3, 2\) instead"):
        targets.observed_cells(np.ones((3, 2)), Y)


def test_observed_must_be_0_and_1() -> None:
    with pytest.raises(ValueError, match="observed must be .* holds 0 and 1 only"):
        targets.observed_cells(np.array([[0, 1, 0], [0, 0.5, 0]]), Y)


def test_labels_are_stripped_as_by_the_readers() -> None:
    Y, classes = targets.encode([["a\t", " a", "b"], ["", " "], ("b\n",), {"c"}])
    assert classes.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(Y.toarray(), [[1, 1, 0], [0, 0, 0], [0, 1, 0], [0, 0, 1]])
    for column in (["b ", "", "a"], np.array(["b ", "", "a"]), np.array(["b ", "", "a"], object)):
        Y, classes = targets.encode(column)
        assert classes.tolist() == ["a", "b"]
        np.testing.assert_array_equal(Y.toarray(), [[0, 1], [0, 0], [1, 0]])


def test_label_names_are_stripped() -> None:
    _, classes = targets.encode(np.eye(2), ["a\t", " b"])
    assert classes.tolist() == ["a", "b"]
    Y, _ = targets.encode([["b\t"], ["a"]], ["a\t", " b"])
    np.testing.assert_array_equal(Y.toarray(), [[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="must differ without surrounding whitespace; 'a' appears twice"):
        targets.encode(np.eye(2), ["a", "a "])


def test_strings_that_look_like_lists() -> None:
    crops = ["grain, rice", "grain, wheat", "rice, wheat", "corn"]
    with pytest.warns(DataWarning, match=r"3 of 4 labels .*'grain, rice'; .*y = \[labels.split\(','\) for"):
        _, classes = targets.encode(crops)
    assert len(classes) == 4
    assert targets.encode([labels.split(",") for labels in crops])[1].tolist() == [
        "corn",
        "grain",
        "rice",
        "wheat",
    ]
    with pytest.warns(DataWarning, match=r"split\('\|'\)"):
        targets.encode([labels.replace(", ", "|") for labels in crops])


@pytest.mark.parametrize(
    "names",
    [
        ["Paris, France", "Lyon, France", "Berlin, Germany", "Bonn, Germany", "France", "Germany"],
        ["Austen, Jane", "Smith, Jane", "Smith, John", "Miller, John", "Miller, Jane"],
        ["Diabetes, Type 1", "Diabetes, Type 2", "Glycogenosis, Type 1", "Glycogenosis, Type 2", "Asthma"],
        ["grain", "rice"] * 20 + ["grain, rice", "rice, grain", "grain, rice, corn"],
        ["a, b", "b, a"],
    ],
    ids=["places", "people", "diseases", "rare", "few"],
)
def test_names_with_commas_are_no_lists(names: list[str]) -> None:
    targets.encode(names)  # a warning is an error here
    targets.encode([[name] for name in names])


def as_series(rows: list[Any]) -> Any:
    return pytest.importorskip("pandas").Series(rows)


@pytest.mark.parametrize("form", [list, as_series, lambda rows: [row.tolist() for row in rows]])
def test_rows_of_0_and_1_are_ambiguous(form: Any) -> None:
    with pytest.raises(ValueError, match=r"ambiguous: lists of 0 and 1 of equal length.*np\.stack\(Y\)"):
        targets.encode(form(list(np.eye(3, dtype=int))))
    assert targets.encode(np.stack(form(list(np.eye(3, dtype=int)))))[0].nnz == 3


def long_format(n: int) -> tuple[csr_matrix, csr_matrix]:
    """A row for each label of n texts, which have two labels each."""
    X = csr_matrix(np.eye(n)).astype(np.float32)[np.repeat(np.arange(n), 2)]
    return X, csr_matrix(np.eye(5, dtype=np.float32)[np.arange(2 * n) % 5])


@pytest.mark.parametrize("form", [csr_matrix, csr_matrix.toarray])
def test_a_row_for_each_label_is_warned_of(form: Any) -> None:
    X, Y = long_format(4)
    with pytest.warns(DataWarning, match=r'4 texts, or rows of X, occur several .*groupby\("text"'):
        targets.warn_of_repeated_rows(form(X), Y)


def test_other_rows_that_recur_are_no_mistake() -> None:
    X, Y = long_format(4)
    several = Y.copy().tolil()
    several[0, 4] = 1
    targets.warn_of_repeated_rows(X, several.tocsr())  # a row has its labels
    targets.warn_of_repeated_rows(X[[0, 1] * 8], Y[[0, 1] * 8])  # labels of equal rows recur
    targets.warn_of_repeated_rows(*long_format(2))  # too few
    targets.warn_of_repeated_rows(csr_matrix((8, 3), dtype=np.float32), Y)  # nothing is known of these rows
    rest = csr_matrix(np.diag(np.arange(1, 101, dtype=np.float32)))
    targets.warn_of_repeated_rows(
        csr_matrix(np.vstack([X.toarray() @ np.eye(4, 100), rest.toarray()]), dtype=np.float32),
        csr_matrix(np.eye(5, dtype=np.float32)[np.arange(108) % 5]),
    )  # a small share of all rows


@pytest.mark.parametrize("form", [csr_matrix, lambda X: X.toarray()])
def test_copies_of_rows_are_warned_of(form: Any, rng: np.random.Generator) -> None:
    X = csr_matrix(rng.random((300, 5)) * (rng.random((300, 5)) < 0.5), dtype=np.float32)
    Y = csr_matrix(rng.random((300, 8)) < 0.4, dtype=np.float32)
    targets.warn_of_repeated_rows(form(X), Y)
    twice = np.concatenate([np.arange(300), np.arange(90)])
    with pytest.warns(DataWarning, match=r"\d\d of 3\d\d rows are copies of others"):
        targets.warn_of_repeated_rows(form(X[twice]), Y[twice])
    targets.warn_of_repeated_rows(form(X[twice[:340]]), Y[twice[:340]])  # a small share


def test_an_index_in_another_order_is_warned_of() -> None:
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=["a", "b", "c"])
    y = pd.Series([["one"], ["two"], ["three"]], index=["a", "b", "c"])
    with pytest.warns(DataWarning, match=r"same index in another order.*y = y\.loc\[X\.index\]"):
        targets.warn_of_order(X, y.iloc[::-1])
    for other in (y, y.reset_index(drop=True), y.tolist(), y.iloc[:2]):
        targets.warn_of_order(X, other)


@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan"), "NA", "NaT"])
def test_missing_labels_are_named(missing: Any) -> None:
    if isinstance(missing, str):  # what Pandas has for them
        missing = getattr(pytest.importorskip("pandas"), missing)
    with pytest.raises(ValueError, match="Row 1 has no label but"):
        targets.encode(["a", missing])


def test_labels_may_be_an_iterator() -> None:
    assert targets.encode(iter([[7], [8, 9]]))[1].tolist() == [7, 8, 9]


def test_labels_are_normalized_to_nfc() -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    matrix, classes = targets.encode([[composed], [decomposed]])
    assert (matrix.shape, list(classes)) == ((2, 1), [composed])
    assert list(targets.encode([[composed]], [decomposed])[1]) == [composed]
