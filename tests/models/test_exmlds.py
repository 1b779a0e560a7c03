"""ExMLDS: neighbours make short lists, classifiers re-rank them, a stacker combines both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from exmlds import ExMLDS, ExMLDS3, ExMLDS4, FeatureNeighbors, MostFrequent, load, metrics
from exmlds.data import Dataset, make_xmc
from exmlds.data import load as load_data
from exmlds.reranking import pipeline
from exmlds.reranking.stack import HeldOutEvidence, add_top_reranker
from exmlds.selection import HoldOut, TrainingSet, hide_labels

FIXED: dict[str, Any] = {"candidates": "joint", "cost": 1.0, "shortlist": 30, "random_state": 0}


@pytest.fixture(scope="module")
def made() -> tuple[Dataset, Dataset]:
    data = make_xmc(1_500, 600, 200, feature_noise=0.4, random_state=0)
    return data.rows(slice(0, 1_200)), data.rows(slice(1_200, None))


@pytest.fixture(scope="module")
def model(made: tuple[Dataset, Dataset]) -> ExMLDS:
    return ExMLDS(**FIXED).fit(made[0].X, made[0].Y)


def precision(model: Any, data: Dataset) -> float:
    ranking = metrics.Ranking(data.Y, model.predict_topk(data.X, 5)[0], 5)
    return float(np.mean([ranking.value(f"P@{k}") for k in (1, 3, 5)]))


@pytest.mark.parametrize("effort", ["fast", "best"])
def test_effort(made: tuple[Dataset, Dataset], effort: str) -> None:
    train, test = made
    fitted = ExMLDS(effort=effort, random_state=0).fit(train.X, train.Y)
    usual = ExMLDS(random_state=0).fit(train.X, train.Y)
    assert precision(fitted, test) > precision(usual, test) - 0.02
    if effort == "fast":
        assert fitted.search_results_["step"] == []  # nothing is searched
        assert fitted.shortlist_ == 120
        assert fitted.second_shortlister_ is None
        assert fitted.centroids_ is None
    else:
        assert fitted.centroids_ is not None
        assert len(fitted.search_results_["step"]) > 2
        learners = [len(one.learners_) for one in (fitted.shortlister_, fitted.second_shortlister_)]
        assert max(learners) == 3


def test_given_parameters_take_precedence_over_effort(made: tuple[Dataset, Dataset]) -> None:
    train, _ = made
    fitted = ExMLDS(effort="fast", shortlist=30, cost=2.0, n_learners=2, random_state=0)
    fitted.fit(train.X[:400], train.Y[:400])
    assert (fitted.shortlist_, fitted.cost_, len(fitted.shortlister_.learners_)) == (30, 2.0, 2)


def test_new_rows_add_examples_of_their_own_and_of_their_neighbours(made: tuple[Dataset, Dataset]) -> None:
    """Labels of new rows get their negatives from the rows nearest to these."""
    train, _ = made
    rows = TrainingSet(train.X, train.Y, {}, {})
    n_before = 3 * rows.n // 4
    new = np.arange(n_before, rows.n)
    shortlister = ExMLDS4(n_epochs=2, n_learners=1, features="l2", temperature=0.05, random_state=0)
    shortlister.fit_as_shortlister(rows)
    listed = pipeline.shortlists_leave_one_out(shortlister, rows.X, 30)
    added = pipeline.examples_of_new_rows(shortlister, rows.subset(new), n_before, 30)
    found = np.zeros(rows.Y.shape, int)
    found[added.rows, np.repeat(np.arange(rows.Y.shape[1]), np.diff(added.starts))] = added.signs
    near = np.vstack([one.neighbors for one in shortlister.leave_one_out(rows.X)(new)])
    expected, has_label = np.zeros(rows.Y.shape, int), rows.Y.toarray() > 0
    for row, nearest in zip(new, near):
        expected[row, listed[row][listed[row] >= 0]] = -1
        expected[row, has_label[row]] = 1
        for other in nearest[(nearest >= 0) & (nearest < n_before)]:
            expected[other, has_label[row]] = -1
    np.testing.assert_array_equal(found, expected)


def test_better_than_votes_alone(made: tuple[Dataset, Dataset], model: ExMLDS) -> None:
    train, test = made
    votes = ExMLDS(**{**FIXED, "loss": "none"}).fit(train.X, train.Y)
    assert votes.classifiers_ is None
    assert precision(model, test) > precision(votes, test)
    assert precision(model, test) > precision(ExMLDS4(random_state=0).fit(train.X, train.Y), test)


def test_probabilities_are_calibrated(made: tuple[Dataset, Dataset], model: ExMLDS) -> None:
    test = made[1]
    ids, scores = model.predict_topk(test.X, 5)
    hits = metrics.Ranking(test.Y, ids, 5).hits
    assert abs(scores.mean() - hits.mean()) < 0.05
    sure = scores > 0.7
    assert hits[sure].mean() > 0.7
    np.testing.assert_array_equal(model.predict_proba(test.X).data, model.decision_function(test.X).data)


def test_thresholds(made: tuple[Dataset, Dataset]) -> None:
    train, test = made
    said = {}
    for threshold in ("f1", "precision=0.9", 0.05):
        model = ExMLDS(**FIXED, threshold=threshold).fit(train.X, train.Y)
        predicted = model.predict(test.X)
        said[threshold] = (predicted.multiply(test.Y).sum() / predicted.sum(), predicted.sum())
    assert said["precision=0.9"][0] > 0.8
    assert said["precision=0.9"][1] < said["f1"][1] < said[0.05][1]


def test_abstaining(made: tuple[Dataset, Dataset]) -> None:
    train, test = made
    model = ExMLDS(**FIXED, threshold="precision=1.0").fit(train.X, train.Y)
    assert [] in model.predict_labels(test.X)


def test_propensity_scored_precision_gains(made: tuple[Dataset, Dataset], model: ExMLDS) -> None:
    train, test = made
    rare = ExMLDS(**FIXED, objective="psp").fit(train.X, train.Y)
    inverse = metrics.inverse_propensity(train.Y)
    gained, before = (
        metrics.psp_at_k(test.Y, m.predict_topk(test.X, 1)[0], inverse, 1) for m in (rare, model)
    )
    assert gained > before
    probabilities = rare.predict_proba(test.X)
    assert probabilities.max() <= 1 + 1e-5
    assert probabilities.sum() > rare.decision_function(test.X).sum()


def test_maps_of_dense_rows_are_learnt_longer_and_read_as_they_are() -> None:
    data = make_xmc(300, 600, 8, random_state=0)
    filled = data.X.toarray() + np.float32(0.01)
    sparse, dense = (ExMLDS(**FIXED).fit(X, data.Y).shortlister_ for X in (data.X, filled))
    assert isinstance(sparse, ExMLDS4)
    assert isinstance(dense, ExMLDS4)
    assert sparse.n_epochs < dense.n_epochs
    kept = [voting.learners_[0].parts[0].V.values.dtype for voting in (sparse, dense)]
    assert kept == [np.float16, np.float32]


def test_few_labels_are_all_on_the_list() -> None:
    data = make_xmc(400, 100, 20, random_state=0)
    model = ExMLDS(random_state=0).fit(data.X, data.Y)
    assert model.shortlist_ == 20
    assert model.shortlist_recall_ == 1.0
    assert (model.predict_topk(data.X, 20)[0] >= 0).all()


def test_lists_may_be_asked_for_more_than_the_short_list(
    made: tuple[Dataset, Dataset], model: ExMLDS
) -> None:
    ids, scores = model.predict_topk(made[1].X, 60)
    assert ((ids >= 0).sum(axis=1) > 30).any()
    assert (np.diff(scores, axis=1) <= 0).all()
    for row in ids:
        assert len(set(row[row >= 0])) == (row >= 0).sum()


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("cost", 0.1), ("shortlist", 10), ("loss", "logistic"), ("n_learners", 2), ("candidates", "sppmi")],
)
def test_every_parameter_changes_the_result(
    made: tuple[Dataset, Dataset], model: ExMLDS, parameter: str, value: Any
) -> None:
    train, test = made
    other = ExMLDS(**{**FIXED, parameter: value}).fit(train.X, train.Y)
    assert not np.allclose(model.predict_topk(test.X)[1], other.predict_topk(test.X)[1], atol=1e-4)


def test_rows_count_as_much_as_their_weights() -> None:
    """The same rows have one label or the other; the weights say which comes first."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(100, 5))).repeat(2, axis=0)
    Y = np.tile([[1, 0], [0, 1]], (100, 1))
    for first in (0, 1):
        weights = np.where(np.arange(200) % 2 == first, 1.0, 0.01)
        model = ExMLDS(random_state=0, candidates="joint").fit(X, Y, sample_weight=weights)
        assert np.mean(model.predict_topk(X, 1)[0] == first) > 0.9


@pytest.mark.parametrize(
    ("weights", "said"),
    [(np.ones(3), "of shape"), (np.full(1_200, -1.0), "not negative"), ("many", "one number per row")],
)
def test_bad_weights(made: tuple[Dataset, Dataset], weights: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ExMLDS(**FIXED).fit(made[0].X, made[0].Y, sample_weight=weights)


def test_missing_labels_are_for_joint_sppmi(made: tuple[Dataset, Dataset]) -> None:
    train = made[0]
    visible = hide_labels(train.Y, 0.7, random_state=0)
    model = ExMLDS(random_state=0, cost=1.0, shortlist=30)
    model.fit(train.X, visible, label_cooccurrence=train.Y.T @ train.Y)
    assert isinstance(model.shortlister_, ExMLDS3)
    assert model.shortlister_.visible_share_ < 0.5


def test_a_time_budget_is_kept_in_mind(made: tuple[Dataset, Dataset], model: ExMLDS) -> None:
    train, _ = made
    short = ExMLDS(**FIXED, time_budget=1e-3).fit(train.X, train.Y)
    assert short.shortlister_.n_samples_fit_ < model.shortlister_.n_samples_fit_ == train.X.shape[0]


def test_save_and_load_with_what_is_within(
    made: tuple[Dataset, Dataset], model: ExMLDS, tmp_path: Path
) -> None:
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for one, other in zip(model.predict_topk(made[1].X), again.predict_topk(made[1].X)):
        np.testing.assert_array_equal(one, other)


def test_where_rows_are_few_two_methods_vote(made: tuple[Dataset, Dataset], tmp_path: Path) -> None:
    train, test = made
    both = ExMLDS(**{**FIXED, "candidates": "auto"}).fit(train.X, train.Y)
    assert {type(both.shortlister_), type(both.second_shortlister_)} == {ExMLDS3, ExMLDS4}
    expected = both.predict_topk(test.X)
    both.save(tmp_path / "model")
    for one, other in zip(expected, load(tmp_path / "model").predict_topk(test.X)):
        np.testing.assert_array_equal(one, other)
    both.second_shortlister_.labels_ = both.second_shortlister_.labels_[
        ::-1
    ].tocsr()  # its votes now go astray
    assert not np.allclose(both.predict_topk(test.X)[1], expected[1], atol=1e-4)


@pytest.mark.parametrize("temperature", [0.02, 0.1])
def test_temperatures_are_tried_as_they_are_used(
    made: tuple[Dataset, Dataset], model: ExMLDS, temperature: float
) -> None:
    shortlister, X = model.shortlister_, made[1].X
    found = shortlister.rank_at(X, [0.5, temperature], 5)[1]
    np.testing.assert_array_equal(found, shortlister.with_temperature(temperature).predict_topk(X, 5)[0])


@pytest.mark.data
@pytest.mark.slow
def test_reuters(real_data: Path) -> None:
    train, test = load_data("reuters21578-90")
    model = ExMLDS(random_state=0).fit(train.X, train.Y)
    assert model.score(test.X, test.Y) > 0.935
    assert metrics.calibration(test.Y, model.predict_topk(test.X, 5)).error < 0.03


def test_rows_without_weight_are_left_out_and_the_scale_of_weights_is_nothing(
    made: tuple[Dataset, Dataset],
) -> None:
    train, test = made
    weights = np.where(np.arange(1_200) < 600, 0.0, 1.0)
    half, scaled = (
        ExMLDS(**FIXED).fit(train.X, train.Y, sample_weight=w).predict_topk(test.X, 5)
        for w in (weights, 1e-3 * weights)
    )
    np.testing.assert_array_equal(half[0], scaled[0])
    erased = train.Y.copy()
    erased.data[: erased.indptr[600]] = 0  # of rows without weight
    other = ExMLDS(**FIXED).fit(train.X, erased, sample_weight=weights).predict_topk(test.X, 5)
    np.testing.assert_array_equal(half[1], other[1])
    with pytest.raises(ValueError, match="No row with a label has a sample_weight above 0"):
        ExMLDS(**FIXED).fit([[1.0], [2.0]], [["a"], []], sample_weight=[0.0, 1.0])


def test_probabilities_stay_below_1_with_psp(made: tuple[Dataset, Dataset]) -> None:
    train, test = made
    for n, shortlist in ((40, 30), (1_200, 2)):
        model = ExMLDS(**{**FIXED, "shortlist": shortlist}, objective="psp")
        assert model.fit(train.X[:n], train.Y[:n]).predict_proba(test.X).max() <= 1


def test_few_rows_keep_the_given_settings(made: tuple[Dataset, Dataset]) -> None:
    train = made[0].rows(slice(0, 40))
    C = train.Y.T @ train.Y
    for options, given in (({"candidates": "sppmi"}, {}), ({}, {"label_cooccurrence": C})):
        model = ExMLDS(random_state=0, **options).fit(train.X, train.Y, **given)  # type: ignore[arg-type]
        assert isinstance(model.shortlister_, ExMLDS3)
    for data in (train, made[0]):
        with pytest.raises(ValueError, match="candidates='joint' can't use label_cooccurrence"):
            ExMLDS(candidates="joint").fit(data.X, data.Y, label_cooccurrence=C)


def test_a_budget_adds_learners(made: tuple[Dataset, Dataset], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exmlds.reranking.cross_fit.MIN_GAIN", -1.0)  # any gain is worth it
    ticks = iter(np.arange(0, 1e6, 0.2))
    monkeypatch.setattr("exmlds.reranking.search.TimeBudget.spent", lambda self: float(next(ticks)))
    model = ExMLDS(**FIXED, time_budget=8.0).fit(made[0].X, made[0].Y)
    assert len(model.shortlister_.learners_) > 1


def test_one_row_with_weight_is_enough() -> None:
    weights = np.eye(1, 6)[0]
    for seed in range(4):
        model = ExMLDS(random_state=seed).fit(np.eye(6), [[i] for i in range(6)], sample_weight=weights)
        assert model.predict_labels(np.eye(6)[:1], k=1) == [[0]]


def test_weights_may_be_tiny(made: tuple[Dataset, Dataset], model: ExMLDS) -> None:
    train, test = made
    weights = np.where(np.arange(1_200) % 8 == 0, 1e-42, 1.0)
    other = ExMLDS(**FIXED).fit(train.X, train.Y, sample_weight=weights)
    assert precision(other, test) > precision(model, test) - 0.05


def test_cells_that_are_not_known_are_no_mistakes(made: tuple[Dataset, Dataset]) -> None:
    """With two fifths of the cells seen at random, probabilities are those of labels, not of seen ones."""
    train, test = made[0].rows(slice(700)), made[1]
    known = np.random.default_rng(0).random(train.Y.shape) < 0.4
    seen, settings = train.Y.multiply(known).tocsr(), {**FIXED, "candidates": "sppmi", "complete_labels": 0.6}
    told, plain = (ExMLDS(**settings).fit(train.X, seen, observed=given) for given in (known, None))
    assert precision(told, test) > precision(plain, test)
    errors = [metrics.calibration(test.Y, m.predict_topk(test.X, 5)).error for m in (told, plain)]
    assert errors[0] < 0.08 < 0.12 < errors[1]


def test_a_held_out_row_does_not_count_itself(made: tuple[Dataset, Dataset]) -> None:
    data = made[0]
    rows = TrainingSet(data.X, data.Y, {}, {})
    train, _ = HoldOut.of(1_200, np.arange(0, 1_200, 5)).split(rows)
    np.testing.assert_allclose(train.label_counts(), train.Y.sum(axis=0).A1 * 1.25)
    np.testing.assert_array_equal(rows.label_counts(), data.Y.sum(axis=0).A1)


def test_what_was_chosen_once_is_not_chosen_again(made: tuple[Dataset, Dataset]) -> None:
    train = made[0].rows(slice(300))
    model = ExMLDS(complete_labels=0.5, random_state=0, cost=1.0, shortlist=30).fit(train.X, train.Y)
    assert isinstance(model.shortlister_, ExMLDS3)
    assert "auto" not in (model.shortlister_.l2, model.shortlister_.mu, model.shortlister_.temperature)


def test_estimates_know_of_kept_rows_and_of_votes_alone() -> None:
    size = (10_000, 1_000, 500, 1_000_000)
    plain, kept, votes = (
        ExMLDS(**given).estimate(*size) for given in ({}, {"keep_rows": True}, {"loss": "none"})
    )
    assert kept.size > plain.size + 7e6
    assert votes.memory < plain.memory


def test_the_top_reranker_learns_from_known_cells(made: tuple[Dataset, Dataset], model: ExMLDS) -> None:
    """A label whose cell is not known counts as one that is not on the list."""
    scores, test = model.pipeline.score(made[1].X), made[1]
    rng = np.random.default_rng(0)
    observed = csr_matrix((rng.random(test.Y.shape) < 0.6) | (test.Y.toarray() > 0))
    known = observed.toarray().astype(bool)[np.arange(len(scores.ids))[:, None], scores.ids]
    assert model.stacker_ is not None
    held = TrainingSet(test.X, test.Y, {"observed": observed}, {"observed": True})
    all_known = held._replace(side={})
    shorter = scores._replace(ids=np.where(known & (scores.ids >= 0), scores.ids, -1))
    found, same, other = (
        add_top_reranker(model.stacker_, HeldOutEvidence.of(*given)).top_weights
        for given in ((scores, held), (shorter, all_known), (scores, all_known))
    )
    np.testing.assert_array_equal(found, same)
    assert not np.array_equal(found, other)


def test_sorting_probabilities_gives_the_ranking(made: tuple[Dataset, Dataset], model: ExMLDS) -> None:
    """Also where the isotonic curve makes equals of many."""
    X, equals = made[1].X, 0
    assert model.stacker_ is not None
    scores = model.pipeline.score(X)
    logits = -np.sort(-scores.logits(model.stacker_, model.engine), axis=1)
    levels = np.interp(logits, model.stacker_.logits, model.stacker_.probabilities)
    for ids, top, sure, level in zip(*model.predict_topk(X, 30), model.predict_proba(X).toarray(), levels):
        there = ids >= 0
        np.testing.assert_array_equal(np.argsort(-sure)[: there.sum()], ids[there])
        np.testing.assert_allclose(top[there], level[there], rtol=1e-5)
        equals += np.count_nonzero(np.diff(level[there]) == 0)
    assert equals > 100


def test_what_the_search_tried_is_kept(model: ExMLDS) -> None:
    results = model.search_results_
    assert set(results) == {"step", "params", "score", "seconds"}
    assert len({len(column) for column in results.values()}) == 1
    assert {"shortlister", "re-ranker"} >= set(results["step"]) >= {"shortlister"}
    assert all(0 < score <= 1 for score in results["score"])


@pytest.mark.data
@pytest.mark.slow
def test_few_rows_with_rare_labels(real_data: Path) -> None:
    """With 200 titles, whose labels mostly occur once, the re-ranking is no worse than simpler methods."""
    data, qualities = load_data("gutenberg-lcsh").train, []
    for seed in range(4):
        rows = np.random.default_rng(seed).permutation(data.X.shape[0])
        train, held = data.rows(rows[:200]), data.rows(rows[200:2_200])
        methods = ExMLDS(random_state=seed), MostFrequent(), FeatureNeighbors()
        qualities.append([precision(method.fit(train.X, train.Y), held) for method in methods])
    ours, *others = np.mean(qualities, axis=0)
    assert ours > max(others)
