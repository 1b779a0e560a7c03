"""ExMLDS with names of labels as evidence: matches are candidates and evidence, also of untrained labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix, hstack
from sklearn.preprocessing import normalize

from exmlds import ExMLDS, FeatureNeighbors, load
from exmlds.data import Dataset, make_xmc
from exmlds.metrics import precision_at_k
from exmlds.reranking.untrained import UntrainedLabels
from exmlds.stages.name_match import UntrainedScorer

HIDDEN = 3  # a label that no training row has


@pytest.fixture(scope="module")
def data() -> Dataset:
    return make_xmc(700, 60, 40, random_state=0)


@pytest.fixture(scope="module")
def matches(data: Dataset) -> csr_matrix:
    """Of the true labels, four in five match; and as many others."""
    rng = np.random.default_rng(1)
    true = csr_matrix(data.Y, copy=True)
    true.data = np.where(rng.random(true.nnz) < 0.8, 0.5, 0).astype(np.float32)
    rows, labels = rng.integers(0, 700, true.nnz), rng.integers(0, 40, true.nnz)
    wrong = csr_matrix((np.full(true.nnz, 0.5, np.float32), (rows, labels)), true.shape)
    return csr_matrix(true.maximum(wrong))


@pytest.fixture(scope="module")
def model(data: Dataset, matches: csr_matrix) -> ExMLDS:
    return ExMLDS(random_state=0).fit(data.X[:500], without_hidden(data), name_matches=matches[:500])


def without_hidden(data: Dataset) -> csr_matrix:
    Y = data.Y[:500].tolil()
    Y[:, HIDDEN] = 0
    return csr_matrix(Y)


def test_matches_are_evidence(data: Dataset, matches: csr_matrix, model: ExMLDS) -> None:
    plain = ExMLDS(random_state=0).fit(data.X[:500], without_hidden(data))
    with_names = model.predict_topk(data.X[500:], 5, name_matches=matches[500:])
    gained = precision_at_k(data.Y[500:], with_names, 3) - precision_at_k(
        data.Y[500:], plain.predict_topk(data.X[500:], 5), 3
    )
    assert gained > 0.03
    kinds = {name for names in model.pipeline.score(data.X[:1]).evidence_names() for name in names}
    assert "name in the text" in kinds


def test_a_label_without_training_rows_is_predicted_by_its_name(
    data: Dataset, matches: csr_matrix, model: ExMLDS
) -> None:
    has_match = matches[500:][:, [HIDDEN]].toarray()[:, 0] > 0
    ids, scores = model.predict_topk(data.X[500:], 40, name_matches=matches[500:])
    is_there = (ids == HIDDEN).any(axis=1)
    np.testing.assert_array_equal(is_there, has_match)
    assert (np.diff(scores, axis=1) <= 0).all()
    assert scores.max() <= 1
    ids, _ = model.predict_topk(data.X[500:], 40)
    assert not (ids == HIDDEN).any()
    ids, _ = model.predict_topk(data.X[500:], 1, name_matches=matches[500:], allow=[HIDDEN])
    np.testing.assert_array_equal(ids[:, 0] == HIDDEN, has_match)
    assert model.label_counts_[HIDDEN] == 0
    assert model.n_labels_ == 40


def test_the_number_of_labels_asked_for_changes_no_rank(
    data: Dataset, matches: csr_matrix, model: ExMLDS
) -> None:
    few, _ = model.predict_topk(data.X[500:], 3, name_matches=matches[500:])
    many, _ = model.predict_topk(data.X[500:], 20, name_matches=matches[500:])
    np.testing.assert_array_equal(few, many[:, :3])
    one, _ = model.predict_topk(data.X[500:501], 3, name_matches=matches[500:501])
    np.testing.assert_array_equal(one, few[:1])


def test_a_saved_model_keeps_them(data: Dataset, matches: csr_matrix, model: ExMLDS, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for one, other in zip(
        again.predict_topk(data.X[500:], 9, name_matches=matches[500:]),  # type: ignore[call-arg]
        model.predict_topk(data.X[500:], 9, name_matches=matches[500:]),
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("n_kinds", [1, 2])
def test_attributes_support_untrained_labels(
    data: Dataset, matches: csr_matrix, n_kinds: int, tmp_path: Path
) -> None:
    # The hidden label has the attribute of label 0, which is probable in the rows that have it.
    attributes = csr_matrix(([1, 1], ([HIDDEN, 0], [0, 0])), (40, 1))
    given = attributes if n_kinds == 1 else [attributes, csr_matrix(np.eye(40))]
    model = ExMLDS(random_state=0).fit(
        data.X[:500], without_hidden(data), name_matches=matches[:500], label_attributes=given
    )
    assert model.untrained_ is not None
    assert [kind.nnz for kind in model.untrained_.attributes] == [2, 40][:n_kinds]
    model.save(tmp_path / "model")
    model = load(tmp_path / "model")  # type: ignore[assignment]
    ids, _ = model.predict_topk(data.X[500:], 40, name_matches=matches[500:])
    assert (ids == HIDDEN).any()


def test_a_folder_of_the_first_version_gives_the_same(
    data: Dataset, matches: csr_matrix, tmp_path: Path
) -> None:
    attributes = csr_matrix(([1, 1], ([HIDDEN, 0], [0, 0])), (40, 1), dtype=np.float32)
    model = ExMLDS(random_state=0).fit(
        data.X[:500], without_hidden(data), name_matches=matches[:500], label_attributes=attributes
    )
    scorer = UntrainedScorer(np.array([0.9, 0.4, -0.1, 0.02]), -0.5)
    model.untrained_ = UntrainedLabels(attributes, scorer)  # type: ignore[arg-type]
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert isinstance(again, ExMLDS)
    assert again.untrained_ is not None
    (kind,) = again.untrained_.attributes
    np.testing.assert_array_equal(kind.toarray(), attributes.toarray())
    np.testing.assert_allclose(again.untrained_.scorer.weights[[0, 1, 4]], [0.9, 0, -0.1])  # type: ignore[union-attr]
    assert (again.predict_topk(data.X[500:], 40, name_matches=matches[500:])[0] == HIDDEN).any()


def test_label_rows_teach_the_map(data: Dataset) -> None:
    # A word for each label, which stands in some rows whatever their labels are.
    words = csr_matrix(np.random.default_rng(3).random((700, 40)) < 0.03, dtype=np.float32)
    X = csr_matrix(hstack([data.X, words]))
    label_rows = csr_matrix(hstack([csr_matrix((40, 60)), np.eye(40)]))

    def nearness(given: csr_matrix | None) -> float:
        model = ExMLDS(random_state=0, candidates="joint").fit(X[:500], data.Y[:500], label_rows=given)
        cosines = normalize(model.transform(X)) @ normalize(model.transform(label_rows)).T
        return float(cosines[data.Y.toarray() > 0].mean() - cosines[data.Y.toarray() == 0].mean())

    assert nearness(label_rows) > nearness(None) + 0.1


def test_label_rows_need_no_matches_and_may_leave_labels_out(data: Dataset) -> None:
    label_rows = csr_matrix(data.Y[:500].T @ csr_matrix(data.X[:500]))
    label_rows = csr_matrix(label_rows.multiply(np.arange(40)[:, None] % 2))
    for rows in (slice(500), slice(30)):  # also with votes alone
        model = ExMLDS(random_state=0).fit(data.X[rows], without_hidden(data)[rows], label_rows=label_rows)
        assert model.predict_topk(data.X[500:], 3)[0].shape == (200, 3)


def test_label_rows_leave_out_the_features_that_x_leaves_out(data: Dataset) -> None:
    label_rows = csr_matrix(data.Y[:500].T @ csr_matrix(data.X[:500]), dtype=np.float32)

    def ranked(width: int) -> np.ndarray:
        X, given = (
            csr_matrix((A.data, A.indices, A.indptr), (A.shape[0], width))
            for A in (csr_matrix(data.X), label_rows)
        )
        model = ExMLDS(random_state=0, effort="fast").fit(X[:500], without_hidden(data), label_rows=given)
        return model.predict_topk(X[500:], 3)[0]

    np.testing.assert_array_equal(ranked(60), ranked(2**21))


def test_few_rows_have_names_too(data: Dataset, matches: csr_matrix) -> None:
    model = ExMLDS(random_state=0).fit(data.X[:30], without_hidden(data)[:30], name_matches=matches[:30])
    ids, _ = model.predict_topk(data.X[500:], 40, name_matches=matches[500:])
    np.testing.assert_array_equal((ids == HIDDEN).any(axis=1), matches[500:][:, [HIDDEN]].toarray()[:, 0] > 0)


@pytest.mark.parametrize("objective", ["precision", "psp"])
@pytest.mark.parametrize("effort", ["fast", "balanced"])
def test_other_settings_take_names(data: Dataset, matches: csr_matrix, objective: str, effort: str) -> None:
    model = ExMLDS(random_state=0, objective=objective, effort=effort, loss="squared_hinge")
    model.fit(data.X[:500], data.Y[:500], name_matches=matches[:500])
    found = model.predict_topk(data.X[500:], 5, name_matches=matches[500:])
    assert precision_at_k(data.Y[500:], found, 1) > 0.6


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros((500, 40)), "must be a sparse matrix of shape .500, 40.. Got ndarray"),
        (csr_matrix((500, 39)), "must be a sparse matrix of shape .500, 40.. Got .500, 39."),
        (csr_matrix(([2.0], ([7], [0])), (500, 40)), "must be from 0 to 1. Got 2 in row 7"),
        (csr_matrix(([np.nan], ([7], [0])), (500, 40)), "must be from 0 to 1. Got nan in row 7"),
    ],
)
def test_wrong_matches(data: Dataset, model: ExMLDS, wrong: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ExMLDS().fit(data.X[:500], data.Y[:500], name_matches=wrong)
    with pytest.raises(ValueError, match=message):
        model.predict_topk(data.X[:500], name_matches=wrong)


def test_wrong_uses(data: Dataset, matches: csr_matrix) -> None:
    plain = ExMLDS(random_state=0).fit(data.X[:60], data.Y[:60])
    with pytest.raises(ValueError, match="fitted without name_matches"):
        plain.predict_topk(data.X[:2], name_matches=matches[:2])
    with pytest.raises(ValueError, match="label_attributes must be a sparse matrix with 40 rows"):
        ExMLDS().fit(data.X, data.Y, name_matches=matches, label_attributes=hstack([matches.T[:5]]))
    with pytest.raises(ValueError, match="Got list instead"):
        ExMLDS().fit(data.X, data.Y, name_matches=matches, label_attributes=[[1, 2], [3]])
    with pytest.raises(
        ValueError, match=r"label_rows must be a sparse matrix of shape \(40, 60\).*\(40, 59\)"
    ):
        ExMLDS().fit(data.X, data.Y, label_rows=csr_matrix((40, 59)))
    with pytest.raises(ValueError, match="label_rows must be finite"):
        ExMLDS().fit(data.X, data.Y, label_rows=csr_matrix(([np.inf], ([3], [2])), (40, 60)))
    with pytest.raises(TypeError, match="name_matches"):
        FeatureNeighbors().fit(data.X, data.Y, name_matches=matches)  # type: ignore[call-arg]


def test_no_label_follows_a_pad(data: Dataset, matches: csr_matrix) -> None:
    model = ExMLDS(random_state=0, shortlist=5)
    model.fit(data.X[:500], without_hidden(data), name_matches=matches[:500])
    nothing = csr_matrix((200, 40), dtype=np.float32)
    for given in (matches[500:], nothing):
        ids, scores = model.predict_topk(data.X[500:], 39, name_matches=given)
        assert not ((ids[:, 1:] >= 0) & (ids[:, :-1] < 0)).any()
        assert (np.diff(scores, axis=1) <= 0).all()
    plain, _ = (
        ExMLDS(random_state=0, shortlist=5)
        .fit(data.X[:500], without_hidden(data))
        .predict_topk(data.X[500:], 39)
    )
    assert (ids >= 0).sum() >= 0.95 * (plain >= 0).sum()
    allowed, _ = model.predict_topk(data.X[500:], 1, name_matches=nothing, allow=[int(plain[0, 20])])
    assert (allowed >= 0).any()


def test_favoured_rare_labels_have_probabilities_too(data: Dataset, matches: csr_matrix) -> None:
    model = ExMLDS(random_state=0, objective="psp")
    model.fit(data.X[:500], without_hidden(data), name_matches=matches[:500])
    ids, scores = model.predict_topk(data.X[500:], 40, name_matches=matches[500:])
    gains = model._label_gains()
    assert gains is not None
    assert gains[HIDDEN] == 1
    assert (scores[ids >= 0] / gains[ids[ids >= 0]] <= 1.001).all()
    assert (scores[ids == HIDDEN] < 0.9).all()


def test_unknown_cells_are_no_misses(data: Dataset, matches: csr_matrix) -> None:
    observed = csr_matrix(np.ones((500, 40)))
    observed[:, 7] = 0
    observed.eliminate_zeros()
    model = ExMLDS(random_state=0).fit(
        data.X[:500], without_hidden(data), name_matches=matches[:500], observed=observed
    )
    assert model.match_lifts_ is not None
    hits = without_hidden(data)[:, [7]].multiply(matches[:500][:, [7]]).nnz
    assert model.match_lifts_[model.columns_.used(7)] == pytest.approx(
        np.log((hits + 1) / (0.5 * hits + 1)), abs=1e-4
    )
