"""What explanations say adds up to what was predicted."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from exmlds import ExMLDS, ExMLDS1, ExMLDS3, ExMLDS4, MostFrequent
from exmlds.data import Dataset
from exmlds.stages import features

FAST: dict[str, Any] = {"random_state": 0, "features": "l2", "temperature": 0.05}


Fitted = Callable[..., Any]


@pytest.fixture(scope="module")
def books(library: Dataset) -> Dataset:
    return library


METHODS = {
    "exmlds1": ExMLDS1(n_components=30, **FAST),
    "parts": ExMLDS1(n_components=20, n_parts=3, n_parts_probed=2, n_learners=2, **FAST),
    "exmlds3": ExMLDS3(n_components=30, complete_labels=0.6, **FAST),
    "exmlds4": ExMLDS4(n_components=30, n_epochs=4, **FAST),
    "uniform": ExMLDS1(n_components=30, vote="uniform", **FAST),
    "exmlds": ExMLDS(random_state=0),
    "joint": ExMLDS(random_state=0, candidates="joint"),
    "votes": ExMLDS(random_state=0, loss="none"),
    "psp": ExMLDS(random_state=0, objective="psp"),
}


@pytest.fixture(scope="module", params=METHODS, ids=str)
def model(request: pytest.FixtureRequest, books: Dataset, fitted: Fitted) -> Any:
    return fitted(METHODS[request.param], books, slice(350))


@pytest.mark.twins
def test_the_parts_add_up(model: Any, books: Dataset) -> None:
    asked = books.X[350:360]
    ids, scores = model.predict_topk(asked, 1)
    for why, column, score in zip(model.explain(asked, n=4), ids[:, 0], scores[:, 0]):
        assert why.label == model.classes_[column]
        assert why.score == pytest.approx(score, abs=1e-5)
        assert len(why.voters) <= 4
        shares = [voter.share for voter in why.voters]
        assert shares == sorted(shares, reverse=True)
        assert sum(shares) + why.other_voters + why.prior_or_label_score == pytest.approx(why.votes, abs=1e-5)
        assert why.prior == pytest.approx(books.Y[:350, [column]].sum() / 350)
        if not why.log_odds:
            assert why.votes == pytest.approx(why.score, abs=1e-5)


def test_log_odds_become_the_probability(model: Any, books: Dataset) -> None:
    if not isinstance(model, ExMLDS):
        pytest.skip("votes are the score")
    assert model.stacker_ is not None
    for why in model.explain(books.X[350:356]):
        assert why.score == pytest.approx(1 / (1 + np.exp(-sum(why.log_odds.values()))), abs=1e-5)
        beyond = ("calibration", "gain of the label", "top-rank adjustment")
        before = sum(value for kind, value in why.log_odds.items() if kind not in beyond)
        probability = np.interp(before, model.stacker_.logits, model.stacker_.probabilities)
        gain = 1 if model.gains_ is None else model.gains_[list(model.classes_).index(why.label)]
        if "top-rank adjustment" not in why.log_odds:
            assert why.score == pytest.approx(probability * gain, abs=1e-5)


def test_top_rank_adjustments_are_explained(books: Dataset, fitted: Fitted) -> None:
    """Scores fall from place to place; one that moved has another label's probability, and says so."""
    model = fitted(METHODS["exmlds"], books, slice(350))
    ids, scores = model.predict_topk(books.X[350:], 9)
    plain = without_top_reranker(model)
    theirs, same_scores = plain.predict_topk(books.X[350:], 9)
    np.testing.assert_array_equal(scores, same_scores)
    np.testing.assert_array_equal(np.sort(ids, axis=1), np.sort(theirs, axis=1))
    moved = np.argwhere(ids != theirs)
    assert len(moved) > 5
    for row, place in moved[:5]:
        (why,) = model.explain(books.X[350 + row], model.classes_[ids[row, place]])
        assert why.score == pytest.approx(scores[row, place], abs=1e-6)
        (before,) = plain.explain(books.X[350 + row], model.classes_[ids[row, place]])
        assert ("top-rank adjustment" in why.log_odds) == (before.score != pytest.approx(why.score, abs=1e-5))
        assert "top-rank adjustment" not in before.log_odds
    for k in (1, 3, 20):
        np.testing.assert_array_equal(model.predict_topk(books.X[350:], k)[0][:, :9], ids[:, :k])


def without_top_reranker(model: ExMLDS) -> ExMLDS:
    plain = copy.copy(model)
    assert plain.stacker_ is not None
    plain.stacker_ = plain.stacker_._replace(top_weights=None)
    return plain


def test_margins_add_up(model: Any, books: Dataset) -> None:
    if not isinstance(model, ExMLDS) or model.classifiers_ is None:
        pytest.skip("no classifiers")
    x = books.X[355:356]
    scores = model.pipeline.score(x)
    for label in scores.ids[0][:5]:
        (why,) = model.explain(x, model.classes_[label], n=3)
        margin = why.margin
        assert margin.value == pytest.approx(float(scores.margins[0][scores.ids[0] == label][0]), abs=1e-4)
        shown = sum(term.weight for term in margin.for_ + margin.against)
        assert shown + margin.rest + margin.bias == pytest.approx(margin.value, abs=1e-5)
        assert all(term.weight > 0 for term in margin.for_)
        assert all(term.weight < 0 for term in margin.against)


def test_terms_of_a_voter_add_up_to_its_similarity(books: Dataset, fitted: Fitted) -> None:
    model = fitted(METHODS["exmlds1"], books, slice(350))
    x = books.X[350:351]
    (why,) = model.explain(x, n=50)
    A = features.apply(model.feature_map_, books.X[:351])
    V = np.zeros((books.X.shape[1], 30))
    part = model.learners_[0].parts[0]
    V[part.columns] = part.V.values
    Z = A @ V
    for voter in why.voters:
        cosine = Z[350] @ Z[voter.row] / np.linalg.norm(Z[350]) / np.linalg.norm(Z[voter.row])
        assert voter.similarity == pytest.approx(cosine, abs=1e-4)
        assert len(voter.terms) == x.nnz  # n is more than there are
        assert sum(term.weight for term in voter.terms) == pytest.approx(cosine, abs=1e-4)
        for term in voter.terms:
            alone = A[350, term.feature] * (V[term.feature] @ Z[voter.row])
            alone /= np.linalg.norm(Z[350]) * np.linalg.norm(Z[voter.row])
            assert term.weight == pytest.approx(alone, abs=1e-4)


@pytest.mark.parametrize(
    "method",
    [
        ExMLDS4(n_components=30, n_epochs=4, n_learners=3, **FAST),
        METHODS["parts"],
    ],
    ids=["learners", "parts"],
)
def test_terms_are_of_the_map_that_found_the_voter(method: Any, books: Dataset, fitted: Fitted) -> None:
    model = fitted(method, books, slice(350))
    compared = 0
    for why in model.explain(books.X[350:370], n=1_000):
        for voter in why.voters:
            assert sum(term.weight for term in voter.terms) == pytest.approx(voter.similarity, abs=2e-3)
            compared += 1
    assert compared > 100


def test_labels_that_are_near_where_no_row_votes() -> None:
    """Rows against all others: their scores are what labels near to them give, and so are explanations."""
    rng = np.random.default_rng(1)
    X = np.abs(rng.normal(size=(60, 4)))
    Y = (X + 0.3 * rng.normal(size=X.shape) > 1).astype(int)
    Y[Y.sum(axis=1) == 0, 0] = 1
    model = ExMLDS3(n_components=4, features="none", complete_labels=0.0, temperature=0.05, random_state=0)
    model.fit(X, Y)
    asked, near = rng.normal(size=(400, 4)) - 1.0, 0
    for why, score in zip(model.explain(asked), model.predict_topk(asked, 1)[1][:, 0]):
        assert why.score == pytest.approx(score, abs=1e-5)
        near += not why.voters and why.score != pytest.approx(why.prior)
    assert near > 3


def test_where_labels_lie_in_corner_cases() -> None:
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(60, 5)))
    one = ExMLDS1(n_parts=3, n_components=3, **FAST).fit(X, [["a"]] * 60)
    np.testing.assert_array_equal(one.label_embeddings(), [[1]])
    assert one.similar_labels("a") == []
    Y = np.ones((60, 3), int)
    Y[50:, 1:], Y[55] = 0, (0, 1, 1)  # row 55 lacks label 0, which completion gives it
    model = ExMLDS3(n_components=3, complete_labels=1.0, **FAST).fit(X, Y)
    assert model.labels_[55, 0] > 0.99
    assert sorted(row for row, _ in model.typical_rows(0, 60)) == [row for row in range(60) if row != 55]


def test_kept_rows_are_the_models_own(books: Dataset) -> None:
    X = books.X.toarray().astype(np.float32)
    model = ExMLDS1(n_components=30, keep_rows=True, **FAST).fit(X, books.Y)
    asked = X[:1].copy()
    before = model.explain(asked)
    X[:] = 0
    assert model.explain(asked) == before


@pytest.mark.parametrize("objective", ["precision", "psp"])
def test_labels_after_the_short_list(objective: str, books: Dataset) -> None:
    """Their scores are explained as predicted, and they are less probable than those on the list."""
    model = ExMLDS(random_state=0, shortlist=5, max_labels=12, objective=objective)
    model.fit(books.X[:350], books.Y[:350])
    asked = books.X[350:353]
    ids, scores = model.predict_topk(asked, 12)
    assert (np.diff(scores, axis=1) <= 1e-7).all()
    for row, x in enumerate(asked):
        for column, score in zip(ids[row], scores[row]):
            if column >= 0:
                (why,) = model.explain(x, model.classes_[column])
                assert why.score == pytest.approx(score, abs=1e-6)
                assert why.votes >= 0
    for row, sure in enumerate(model.predict_proba(asked).toarray()):
        listed = ids[row, :5]
        after = ids[row, 5:][ids[row, 5:] >= 0]
        assert (sure[after] <= sure[listed].min() + 1e-6).all()


def test_names_numbers_and_kept_rows(books: Dataset) -> None:
    Y = books.Y.copy()
    Y.data[Y.indptr[0] : Y.indptr[5]] = 0  # five rows without labels do not vote, and keep their numbers
    Y.eliminate_zeros()
    model = ExMLDS(random_state=0, keep_rows=True).fit(books.X, Y, label_names=books.label_names)
    (why,) = model.explain(books.X[10:11], n=3, feature_names=books.feature_names)
    assert 10 in [voter.row for voter in why.voters]
    names = np.array(books.feature_names)
    mine = set(names[books.X[10].indices])
    for voter in why.voters:
        theirs = set(names[books.X[voter.row].indices])
        assert Y[voter.row, list(model.classes_).index(why.label)]
        assert {term.feature for term in voter.terms} <= mine & theirs
    assert {term.feature for term in why.margin.for_} <= mine


def test_as_words(books: Dataset, fitted: Fitted) -> None:
    model = fitted(ExMLDS(random_state=0), books)
    (why,) = model.explain(books.X[:1], n=2, feature_names=books.feature_names)
    lines = str(why).splitlines()
    assert lines[0].startswith(f"{why.label}: score {why.score:.3f}")
    assert f"    {why.voters[0].row}: {why.voters[0].share:.3f}" in lines[2]
    assert f"{why.margin.for_[0].feature} {why.margin.for_[0].weight:+.2f}" in str(why)


def test_a_label_may_be_asked_about(books: Dataset, fitted: Fitted) -> None:
    model = fitted(METHODS["exmlds1"], books)
    (why,) = model.explain(books.X[:1], "baking")
    assert why.label == "baking"
    for label, said in (("bakin", "'bakin' is not known"), (7, "7 is not known")):
        with pytest.raises(ValueError, match=said):
            model.explain(books.X[:1], label)
    with pytest.raises(ValueError, match=r"\['baking'\] is not known"):
        model.explain(books.X[:1], ["baking"])
    with pytest.raises(ValueError, match="n must be a whole number"):
        model.typical_rows("baking", 0)
    with pytest.raises(ValueError, match=r"feature_names is \(\)"):
        model.explain(books.X[:1], feature_names=3)
    with pytest.raises(ValueError, match="n must be a whole number"):
        model.explain(books.X[:1], n=0)
    with pytest.raises(ValueError, match=r"feature_names is \(1,\)"):
        model.explain(books.X[:1], feature_names=["one"])


def test_terms_are_features_of_the_row() -> None:
    """Features that are 0 add to a cosine too where they are standardized, but are not what a row has."""
    rng = np.random.default_rng(0)
    X = rng.random((100, 6)) * (rng.random((100, 6)) < 0.6)
    X[:, 5] = 1
    model = ExMLDS1(n_components=5, random_state=0, features="standardize", temperature=0.05)
    (why,) = model.fit(X, [[int(x[0] > 0.3)] for x in X]).explain(X[:1], n=6)
    assert (X[0] == 0).any()
    assert why.voters[0].terms
    assert {term.feature for voter in why.voters for term in voter.terms} <= set(np.flatnonzero(X[0]))


def test_similarity_alone_where_features_are_not_mapped_linearly() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    model = ExMLDS1(n_components=5, random_state=0, features="nystroem").fit(X, [[int(x[0] > 0)] for x in X])
    (why,) = model.explain(X[:1])
    assert why.voters
    assert all(voter.terms == [] for voter in why.voters)


def test_nobody_votes(books: Dataset, fitted: Fitted) -> None:
    model = fitted(METHODS["exmlds1"], books)
    (why,) = model.explain(books.X[:1] * 0)
    assert (why.voters, why.prior_or_label_score) == ([], pytest.approx(why.score))
    assert why.score == pytest.approx(why.prior)


def test_a_method_that_does_not_explain(books: Dataset) -> None:
    with pytest.raises(NotImplementedError, match="MostFrequent does not explain"):
        MostFrequent().fit(books.X, books.Y).explain(books.X[:1])
