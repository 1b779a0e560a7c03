"""The report: its numbers equal the metrics, and the page is safe, self-contained and interactive."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix, hstack
from sklearn.base import clone

import exmlds
from exmlds import DataError, ExMLDS, ExMLDS1, FeatureNeighbors, MostFrequent, TextClassifier, cli, metrics
from exmlds.data import Document, make_library, make_xmc, write_xc
from exmlds.report import EvaluationReport, make, page, projection, thresholds

METHODS = {
    "ExMLDS": ExMLDS(random_state=0),
    "psp[ExMLDS]": ExMLDS(objective="psp", random_state=0),
    "ExMLDS1": ExMLDS1(n_components=16, random_state=0),
    "FeatureNeighbors": FeatureNeighbors(),
    "MostFrequent": MostFrequent(),
}


@pytest.fixture(scope="module", params=METHODS)
def case(request: pytest.FixtureRequest, case_of: Callable[[Any], Any]) -> Any:
    return case_of(METHODS[request.param])


def data_of(html: bytes) -> Any:
    """The JSON in a page."""
    found = re.search(rb'<script type="application/json" id="report-data">(.*?)</script>', html, re.S)
    assert found is not None
    return json.loads(found[1])


def test_values_are_those_of_the_metrics(case: Any) -> None:
    model, test, report = case
    found = data_of(page.rendered(report))
    weights = metrics.inverse_propensity(model.label_counts_, n_rows=model.n_samples_fit_)
    top = model.predict_topk(test.X, 5)
    direct = metrics.report(test.Y, top, inverse_propensity=weights, intervals=True)
    assert {name: entry["value"] for name, entry in found["measures"].items()} == direct
    for name, interval in direct.intervals.items():
        assert found["measures"][name] == interval._asdict()
    groups = metrics.by_frequency(test.Y, top, model.label_counts_, 5)
    assert found["groups"] == [group._asdict() for group in groups]
    predicted = model.predict(test.X)
    hits = predicted.multiply(test.Y).sum()
    at = found["at_threshold"]
    assert at["threshold"] == model.threshold_
    assert at["labels_a_row"] == pytest.approx(predicted.nnz / 150)
    assert at["precision"]["value"] == pytest.approx(hits / predicted.nnz)
    assert at["recall"]["value"] == pytest.approx(hits / test.Y.nnz)
    assert at["f1"]["value"] == pytest.approx(2 * hits / (predicted.nnz + test.Y.nnz))
    assert at["f1"]["low"] < at["f1"]["value"] < at["f1"]["high"]
    sizes = found["data"]
    assert (sizes["rows"], sizes["labels"], sizes["training_rows"], sizes["features"]) == (150, 37, 450, 371)
    assert sizes["labels_a_row"] == pytest.approx(test.Y.nnz / 150)


def test_calibration_is_of_probabilities(case: Any) -> None:
    model, test, report = case
    ids, _ = model.predict_topk(test.X, 5)
    if not isinstance(model, ExMLDS):
        assert report.calibration is None
        share = "shares of the training rows" if isinstance(model, MostFrequent) else "shares of votes"
        assert f"{type(model).__name__} are {share}. They rank labels" in page.rendered(report).decode()
        return
    probabilities = np.take_along_axis(model.predict_proba(test.X).toarray(), ids, 1)
    expected = metrics.calibration(test.Y, (ids, probabilities))
    assert report.calibration is not None
    assert report.calibration.error == pytest.approx(expected.error, abs=1e-6)
    np.testing.assert_allclose(report.calibration.predicted, expected.predicted, atol=1e-6)
    np.testing.assert_allclose(report.calibration.observed, expected.observed, atol=1e-6)
    assert (report.scores == "probabilities") == (model.objective == "precision")


def test_calibration_with_many_unused_labels(case_of: Callable[[Any], Any]) -> None:
    """A fit leaves out labels without a row; the propensities of the others are still theirs."""
    method, (_, test, report) = METHODS["psp[ExMLDS]"], case_of(METHODS["psp[ExMLDS]"])
    books = make_library(600, random_state=0)
    unused = csr_matrix((600, 300_000), dtype=np.float32)
    Y = hstack([unused, books.Y]).tocsr()
    model = clone(method).fit(books.X[:450], Y[:450])
    wide = make(model, test.X, Y[450:])
    assert wide.calibration is not None
    assert wide.calibration.error == pytest.approx(report.calibration.error, abs=1e-6)


def test_precision_against_coverage(case: Any) -> None:
    ids, scores = case.model.predict_topk(case.test.X, 1)
    right = np.array([case.test.Y[row, label] for row, label in enumerate(ids[:, 0])])
    assert case.report.answered
    for bar, coverage, precision in case.report.answered:
        answered = scores[:, 0] >= bar
        assert (coverage, precision) == pytest.approx((answered.mean(), right[answered].mean()))
    coverages = [point.coverage for point in case.report.answered]
    assert coverages == sorted(set(coverages))
    assert coverages[-1] == 1
    if isinstance(case.model, MostFrequent):  # all rows have the same score
        assert len(coverages) == 1


def test_labels_by_their_f1(case: Any) -> None:
    model, test, report = case
    predicted, truth = model.predict(test.X).toarray() > 0, test.Y.toarray() > 0
    both = predicted & truth
    lists = report.labels
    eligible = truth.sum(0) >= lists.least
    assert lists.n == eligible.sum()
    assert len(lists.best) == len(lists.worst) == 15
    f1 = 2 * both.sum(0) / np.maximum(predicted.sum(0) + truth.sum(0), 1)
    assert [line.f1 for line in lists.best] == pytest.approx(np.sort(f1[eligible])[::-1][:15].tolist())
    assert [line.f1 for line in lists.worst] == pytest.approx(np.sort(f1[eligible])[:15].tolist())
    names = model.classes_.tolist()
    for line in (*lists.best, *lists.worst):
        label = names.index(line.label)
        assert (line.test, line.training) == (truth[:, label].sum(), model.label_counts_[label])
        assert line.recall == both[:, label].sum() / truth[:, label].sum()
        if line.precision is None:
            assert not predicted[:, label].any()
        else:
            assert line.precision == both[:, label].sum() / predicted[:, label].sum()


def test_counts_over_the_threshold(case: Any) -> None:
    model, test, report = case
    curve = report.over_threshold
    assert curve.thresholds[curve.own] == model.threshold_
    assert curve.thresholds == sorted(set(curve.thresholds))
    assert 50 <= len(curve.thresholds) <= 103
    ids, scores = model.predict_topk(test.X, min(model.max_labels, 37))
    for i, threshold in enumerate(curve.thresholds):
        assigned = right = 0
        for row in range(150):
            true = set(test.Y[row].indices)
            for label, score in zip(ids[row], scores[row]):
                if label >= 0 and score >= np.float32(threshold):
                    assigned += 1
                    right += label in true
        assert (curve.assigned[i], curve.right[i]) == (assigned, right)
        assert curve.precision(i) == (right / assigned if assigned else None)
        assert curve.recall(i) == right / test.Y.nnz
        assert curve.f1(i) == 2 * right / (assigned + test.Y.nnz)
    assert curve.precision(curve.own) == report.at_threshold.precision.value
    assert curve.recall(curve.own) == report.at_threshold.recall.value
    assert curve.assigned[-1] <= curve.assigned[curve.own] <= curve.assigned[0]


@pytest.mark.parametrize(
    ("low", "high", "own"),
    [
        (0.0, 1.0, 0.5),
        (0.0, 0.0, 0.0),
        (0.0, 0.0, 0.5),
        (-3.0, 700.0, 1e-9),
        (0.0, 3e-7, 2e-7),
        (0.0, 1.0, 30.0),
    ],
)
def test_the_grid_of_thresholds_covers_all_scores(low: float, high: float, own: float) -> None:
    found = thresholds.grid(low, high, own)
    assert own in found
    assert found[0] <= low or low == high == own
    assert found[-1] >= max(high, own)
    assert len(found) <= 103
    assert (np.diff(found) > 0).all()


def test_all_labels_with_their_counts(case: Any) -> None:
    model, test, report = case
    predicted, truth = model.predict(test.X).toarray() > 0, test.Y.toarray() > 0
    assert sorted(report.label_counts.names) == sorted(model.classes_)
    assert report.label_counts.test == sorted(truth.sum(0), reverse=True)
    names = model.classes_.tolist()
    for name, training, in_test, assigned, found, precision, recall, f1 in report.label_counts.rows():
        label = names.index(name)
        both = (predicted & truth)[:, label].sum()
        assert (training, in_test, assigned, found) == (
            model.label_counts_[label], truth[:, label].sum(), predicted[:, label].sum(), both,
        )  # fmt: skip
        assert precision == (both / assigned if assigned else None)
        assert recall == (both / in_test if in_test else None)
        assert f1 == (2 * both / (in_test + assigned) if in_test else None)
    written = BytesIO()
    report.label_counts.write_csv(written)
    lines = list(csv.DictReader(StringIO(written.getvalue().decode())))
    assert [line["label"] for line in lines] == report.label_counts.names
    assert [int(line["found"]) for line in lines] == report.label_counts.found


def test_mistakes_are_rows_with_a_wrong_top_label(case: Any) -> None:
    model, test, report = case
    ids, scores = model.predict_topk(test.X, min(model.max_labels, 37))
    truth, predicted, names = test.Y.toarray() > 0, model.predict(test.X).toarray() > 0, model.classes_
    wrong = {row for row in range(150) if not truth[row, ids[row, 0]]}
    assert len(report.examples) == min(12, len(wrong))
    firsts = [example.ranked[0] for example in report.examples]
    assert [first.score for first in firsts] == sorted((first.score for first in firsts), reverse=True)
    assert len({first.label for first in firsts}) == min(12, len({ids[row, 0] for row in wrong}))
    for example in report.examples:
        assert example.row in wrong
        assert example.text is None
        reached = {names[label] for label in np.flatnonzero(predicted[example.row])}
        true = {names[label] for label in np.flatnonzero(truth[example.row])}
        assert example.ranked[0].label == names[ids[example.row, 0]]
        assert example.ranked[0].score == scores[example.row, 0]
        assert {label.label for label in example.ranked if label.assigned} == reached
        assert all(label.right == (label.label in true) for label in example.ranked)
        assert set(example.missed) == true - reached
    if report.examples:
        assert f"Row {report.examples[0].row}</p>" in page.rendered(report).decode()


def test_confused_pairs(case: Any) -> None:
    model, test, report = case
    first = model.predict_topk(test.X, 1)[0][:, 0]
    predicted = model.predict(test.X).toarray()
    names = model.classes_
    pairs: Counter[tuple[str, str]] = Counter()
    wrong = 0
    for row, label in enumerate(first):
        true = test.Y[row].indices
        if label not in true:
            wrong += 1
            pairs.update((names[label], names[other]) for other in true if not predicted[row, other])
    assert (report.confused.wrong_rows, report.confused.n) == (wrong, len(pairs))
    assert all(pairs[pair.predicted, pair.missed] == pair.rows for pair in report.confused.pairs)
    assert [p.rows for p in report.confused.pairs] == sorted(pairs.values(), reverse=True)[:20]


def test_the_map_of_labels(case: Any) -> None:
    html = page.rendered(case.report).decode()
    if not hasattr(case.model, "label_embeddings"):
        assert case.report.label_map is None
        assert "has no label embeddings, so there is no label map" in html
        return
    drawn = case.report.label_map
    assert drawn is not None
    assert sorted(drawn.names) == sorted(case.model.classes_)
    assert drawn.training == sorted(case.model.label_counts_.tolist(), reverse=True)
    points = np.array([drawn.x, drawn.y])
    assert points.min() >= 0
    assert points.max() <= 1
    assert np.ptp(points, axis=1).max() > 0.99
    again = make(case.model, case.test.X, case.test.Y).label_map
    assert again == drawn
    assert "All of the 37 labels with a training row are drawn" in html


def test_similar_labels_are_close_on_the_map() -> None:
    rng = np.random.default_rng(0)
    middles = np.eye(4)
    points = np.repeat(middles, 10, axis=0) + 0.02 * rng.normal(size=(40, 4))
    flat = projection.flat(points)
    groups = flat.reshape(4, 10, 2)
    within = np.linalg.norm(groups - groups.mean(axis=1, keepdims=True), axis=2).max()
    between = np.linalg.norm(groups.mean(axis=1)[:, None] - groups.mean(axis=1), axis=2)
    assert within < between[~np.eye(4, dtype=bool)].min() / 2


@pytest.mark.parametrize("n", [1, 2, 3, 10, 11])
def test_few_labels_have_a_map(n: int) -> None:
    for points in (np.eye(n, 3), np.zeros((n, 3))):
        flat = projection.flat(points)
        assert flat.shape == (n, 2)
        assert (flat >= 0).all()
        assert (flat <= 1).all()


def test_settings_say_what_was_chosen(case_of: Callable[[Any], Any]) -> None:
    case = case_of(FeatureNeighbors(n_neighbors=7))
    settings = {name: (value, chosen) for name, value, chosen in case.report.settings}
    assert settings["n_neighbors"] == ("7", "")
    assert settings["threshold"] == ("auto", f"{case.model.threshold_:.6g}")


TEXTS = [
    "goals and a red card", "the keeper held the ball", "a late goal wins", "over the bar",
    "bread with seeds", "flour, yeast and salt", "knead the dough, bake the bread", "a cake of flour",
]  # fmt: skip
LABELS = [["sport"]] * 4 + [["baking"]] * 4


@pytest.mark.parametrize("method", [ExMLDS1(n_components=2, random_state=0), FeatureNeighbors(n_neighbors=3)])
def test_models_of_texts(method: Any) -> None:
    model = TextClassifier(model=method).fit(TEXTS, LABELS)
    texts = ["bread and salt", "the ball", "a sonnet of bread"]
    report = make(model, texts, [["baking"], ["sport"], ["poetry"]], k=[1, 2])
    assert report.method == type(method).__name__
    assert report.data.unseen_labels == report.data.unseen == 1
    assert report.measures["P@1"].value == pytest.approx(2 / 3)
    assert report.groups[-1].name == "unseen"
    settings = {name: value for name, value, _ in report.settings}
    assert settings["vectorizer"] == "tfidf"
    assert "model__random_state" in settings
    html = page.rendered(report).decode()
    assert "1 label of the test rows had no training row and cannot be predicted" in html
    assert (report.label_map is None) == isinstance(method, FeatureNeighbors)
    assert report.unit == "text"
    (mistake,) = report.examples
    assert (mistake.row, mistake.text, mistake.missed) == (
        2,
        "a sonnet of bread",
        ["(a label without a training row)"],
    )
    assert '<p class="text" dir="auto">a sonnet of bread</p>' in html
    assert "texts</dd>" in html
    streamed = make(model, iter(texts), [["baking"], ["sport"], ["poetry"]], k=[1, 2], n_examples=0)
    assert streamed == report._replace(examples=[])
    assert (
        "1 text of 3 has a wrong first label. No examples were asked for." in page.rendered(streamed).decode()
    )


def test_other_ks_and_small_data() -> None:
    model = MostFrequent().fit([[0.0], [1.0]], [["a"], ["a"]])
    report = make(model, [[2.0]], [["a"]], k=[4, 2])
    assert report.ks == [2, 4]
    assert report.measures["P@2"].value == 0.5
    assert b"nDCG@4" in page.rendered(report)


def test_nothing_to_compare_with_is_an_error() -> None:
    model = MostFrequent().fit([[0.0], [1.0]], [["a"], ["b"]])
    for truth in ([[], []], csr_matrix((2, 2))):
        with pytest.raises(DataError, match="No test row has a true label"):
            make(model, [[0.0], [1.0]], truth)


def test_tiles_say_what_the_measures_mean() -> None:
    model = MostFrequent(threshold=0.5).fit([[0.0]] * 4, [["a"], ["a"], ["a", "b"], ["b", "c"]])
    html = page.rendered(make(model, [[0.0]] * 3, [["a"], ["b"], ["a", "b"]], k=[2])).decode()
    shown = " ".join(Elements(html).texts)
    assert re.search(r"The first label is right for\s+67\s+of 100\s+rows", shown)
    assert re.search(r"Of the assigned labels,\s+67\s+of 100\s+are right", shown)
    assert re.search(r"Of the right labels,\s+100\s+of 100\s+are found", shown)
    assert re.search(r"A row gets\s+2.00\s+labels\s+on average,\s+where 1.33 are right", shown)
    assert "At 0.5: 67 of 100 assigned labels are right, 100 of 100 right labels are found." in shown


def test_reports_are_tables_in_a_notebook(embedded: Any) -> None:
    model, test, report = embedded
    shown = report._replace(title="<b>\x07")._repr_html_()
    assert '<caption style="text-align:left">&lt;b&gt;\\x07</caption>' in shown
    assert f'<td style="text-align:right">{100 * report.measures["P@1"].value:.2f}</td>' in shown
    measured = metrics.report(test.Y, model.predict_topk(test.X, 5), intervals=True)
    found = Elements(measured._repr_html_())
    assert found.count["tr"] == 6
    assert [text for text in found.texts if text] == re.findall(
        r"(?m)^\d+ rows.*|[\d.]+ \(.*?\)|\S+", str(measured)
    )


class Elements(HTMLParser):
    """Count the elements of a page, and collect its attributes and texts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.count: Counter[str] = Counter()
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.count[tag] += 1
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_names_do_no_harm(wicked: EvaluationReport, wicked_names: list[str]) -> None:
    html = page.rendered(wicked).decode()
    found = Elements(html)
    assert found.count["script"] == 2
    assert found.count["img"] == 0
    assert not [name for name, _ in found.attributes if name.startswith("on")]
    assert "<script>alert" not in html
    shown = "".join(found.texts)
    assert wicked_names[0] in shown
    assert wicked_names[3] in shown
    visible = r"half \ud800 a pair, \u2028 and a line, \x07 a bell, \u202eand back\u202c"
    assert visible in shown
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e]", html)
    for part in ("label_map", "label_counts"):
        assert set(data_of(html.encode())[part]["names"]) == {*wicked_names[:4], visible}
    assert data_of(html.encode())["title"] == wicked_names[1]


def test_the_page_loads_nothing(embedded: Any) -> None:
    html = page.rendered(embedded.report).decode()
    assert "://" not in html
    assert "url(" not in html
    assert "@import" not in html
    found = Elements(html)
    assert not {"img", "iframe", "object", "embed"} & set(found.count)
    assert not [value for name, value in found.attributes if name in ("src", "srcset", "action")]
    links = [value or "" for name, value in found.attributes if name == "href"]
    assert all(link.startswith(("#", "data:,")) for link in links)
    ids = [value for name, value in found.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert all(link[1:] in ids for link in links if link.startswith("#"))
    policy = next(value or "" for _, value in found.attributes if value and "default-src" in value)
    script = html.rpartition("<script>")[2].partition("</script>")[0]
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{allowed}'" in policy


def test_tables_are_accessible(embedded: Any) -> None:
    html = page.rendered(embedded.report).decode()
    assert html.count("<caption>") == html.count("<table") == 7
    assert "<th>" not in html  # each has a scope
    assert html.count("<h1>") == 1
    assert re.findall(r"<svg(?![^>]*aria-(?:label|hidden))", html) == []
    assert 'lang="en"' in html


def test_many_labels_and_long_names_make_no_large_page() -> None:
    n = 50_000
    names = [f"{label} {'very ' * 60}long" for label in range(n)]
    Y = csr_matrix((np.ones(n, np.float32), (np.arange(n) % 500, np.arange(n))), shape=(500, n))
    model = MostFrequent(threshold=0.0).fit(np.ones((500, 1)), Y, label_names=names)
    report = make(model, np.ones((500, 1)), Y)
    html = page.rendered(report)
    assert len(html) < 1_600_000
    assert b"Of 50,000 labels that have a training or a test row, the 10,000 with the most test rows" in html
    assert len(data_of(html)["label_counts"]["names"]) == 10_000
    assert report.label_counts.names == names


@pytest.mark.slow
def test_a_map_of_many_labels_is_capped() -> None:
    data = make_xmc(6_000, 800, 3_000, random_state=0)
    names = [f"{label} {'very ' * 60}long" for label in range(3_000)]
    settings = {"n_components": 50, "features": "l2", "temperature": 0.1, "threshold": 0.2}
    model = ExMLDS1(random_state=0, **settings).fit(data.X, data.Y, label_names=names)
    report = make(model, data.X[:200], data.Y[:200])
    assert report.label_map is not None
    assert len(report.label_map.names) == 2_000
    assert report.label_map.training[0] == model.label_counts_.max()
    html = page.rendered(report)
    assert len(html) < 1_000_000
    assert b"The 2,000 most frequent of the" in html


def test_mistakes_are_named_by_the_ids_of_documents() -> None:
    model = TextClassifier(model=FeatureNeighbors(n_neighbors=3)).fit(TEXTS, LABELS)
    wrong = [["sport"]] * 3
    documents = [Document(text, [], "", id) for text, id in zip(TEXTS[4:], ("b<1>", "17", None))]
    report = make(model, documents, wrong)
    assert {example.row: example.id for example in report.examples} == {0: "b<1>", 1: "17", 2: None}
    html = page.rendered(report).decode()
    assert '<p class="small id">b&lt;1&gt;, row 0</p>' in html
    assert '<p class="small id">Row 2</p>' in html
    assert "--row ID</code>" in html
    frame = pd.DataFrame({"text": TEXTS[4:7]})
    assert "--row N</code>" in page.rendered(make(model, frame, wrong)).decode()


def test_mistakes_join_with_suggestions_by_the_index_of_a_frame() -> None:
    model = TextClassifier(model=FeatureNeighbors(n_neighbors=3)).fit(TEXTS, LABELS)
    frame = pd.DataFrame({"text": TEXTS[4:7]}, index=["t9", "t7", "t8"])
    report = make(model, frame, [["sport"]] * 3)
    suggested = model.suggest(frame, k=1).to_pandas()
    rows = dict(zip(suggested["position"], suggested["row"]))
    assert {example.row: example.id for example in report.examples} == rows
    html = page.rendered(report).decode()
    assert '<p class="small id">t7, row 1</p>' in html


# The command.


@pytest.fixture(scope="module")
def files(embedded: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    embedded.model.save(folder / "model")
    write_xc(folder / "test.txt", embedded.test)
    texts = [json.dumps({"text": text, "labels": labels}) for text, labels in zip(TEXTS, LABELS)]
    (folder / "texts.jsonl").write_text("\n".join(texts))
    TextClassifier(model=FeatureNeighbors(n_neighbors=3)).fit(TEXTS, LABELS).save(folder / "text-model")
    return folder


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Run `exmlds report …` in this process; returns the exit code and stderr."""

    def run(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["exmlds", "report", *map(str, arguments)])
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        return code, capfd.readouterr().err

    return run


def test_the_command_writes_a_page(command: Callable[..., Any], files: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    assert command(files / "model", files / "test.txt", "-o", out, "-k", "1", "2") == (0, "")
    found = data_of(out.read_bytes())
    assert found["title"] == "ExMLDS1 on test.txt"
    assert found["ks"] == [1, 2]
    model, test = exmlds.load(files / "model"), exmlds.data.read_xc(files / "test.txt")
    assert found["measures"]["P@1"]["value"] == model.score(test.X, test.Y)
    options = ("-o", out, "--title", "Our tags", "--text-column", "text", "--label-column", "labels")
    assert command(files / "text-model", files / "texts.jsonl", *options) == (0, "")
    assert data_of(out.read_bytes())["title"] == "Our tags"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    table = tmp_path / "labels.csv"
    options = ("-o", out, "--label-table", table, "--examples", 2)
    assert command(files / "model", files / "test.txt", *options) == (0, "")
    assert len(data_of(out.read_bytes())["examples"]) == 2
    with table.open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["label"] for line in lines] == data_of(out.read_bytes())["label_counts"]["names"]


def test_errors_leave_what_was_there(command: Callable[..., Any], files: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    out.write_text("precious")
    (tmp_path / "bare.txt").write_text("2 371 37\n 0:1\n 1:1\n")
    (tmp_path / "few.txt").write_text("1 9 37\n0 0:1\n")
    for arguments, message in (
        ((files / "model", tmp_path / "bare.txt"), "bare.txt: no row has a label"),
        ((files / "model", tmp_path / "few.txt"), "declares 9 features, but 371 are expected"),
        ((files / "model", files / "texts.jsonl"), "was trained on features"),
        ((files / "text-model", files / "test.txt"), "was trained on texts"),
        ((files / "model", "no-such-file.txt"), "there is no such file"),
        ((files / "test.txt", files / "test.txt"), "test.txt"),
        ((files / "model", files / "test.txt", "-k", "0"), "-k must be integers from 1"),
    ):
        code, err = command(*arguments, "-o", out)
        assert (code, message in err, err.count("\n")) == (2, True, 1), err
    for place, message in (
        (tmp_path, "is a folder"),
        (tmp_path / "none" / "report.html", "cannot be written"),
        (files / "test.txt", "is being read"),
        (files / "model" / "report.html", "is a model folder"),
    ):
        for options in (("-o", place), ("-o", out, "--label-table", place)):
            code, err = command(files / "model", files / "test.txt", *options)
            assert (code, message in err) == (2, True), err
    code, err = command(files / "model", files / "test.txt", "-o", out, "--label-table", out)
    assert (code, "the same file" in err) == (2, True), err
    assert out.read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bare.txt", "few.txt", "report.html"]
