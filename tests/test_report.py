"""The report: its numbers equal the metrics, and the page is safe, self-contained and interactive."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import struct
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import exmlds
from exmlds import DataError, ExMLDS, ExMLDS1, FeatureNeighbors, MostFrequent, TextClassifier, cli, metrics
from exmlds.data import Dataset, make_library, make_xmc, write_xc
from exmlds.report import EvaluationReport, make, page, projection

METHODS = {
    "ExMLDS": ExMLDS(random_state=0),
    "psp[ExMLDS]": ExMLDS(objective="psp", random_state=0),
    "ExMLDS1": ExMLDS1(n_components=16, random_state=0),
    "FeatureNeighbors": FeatureNeighbors(),
    "MostFrequent": MostFrequent(),
}


class Case(NamedTuple):
    model: Any
    test: Dataset
    report: EvaluationReport


@pytest.fixture(scope="module")
def case_of(fitted: Callable[..., Any]) -> Callable[[Any], Case]:
    books = make_library(600, random_state=0)
    test = books.rows(slice(450, None))

    def made(method: Any) -> Case:
        model = fitted(method, books, slice(450))
        return Case(model, test, make(model, test.X, test.Y, title="Books", date="2025-01-02"))

    return made


@pytest.fixture(scope="module", params=METHODS)
def case(request: pytest.FixtureRequest, case_of: Callable[[Any], Case]) -> Case:
    return case_of(METHODS[request.param])


@pytest.fixture(scope="module")
def embedded(case_of: Callable[[Any], Case]) -> Case:
    """A model with label embeddings that is fitted quickly."""
    return case_of(METHODS["ExMLDS1"])


def data_of(html: bytes) -> Any:
    """The JSON in a page."""
    found = re.search(rb'<script type="application/json" id="report-data">(.*?)</script>', html, re.S)
    assert found is not None
    return json.loads(found[1])


def test_values_are_those_of_the_metrics(case: Case) -> None:
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


def test_calibration_is_of_probabilities(case: Case) -> None:
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


def test_precision_against_coverage(case: Case) -> None:
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


def test_labels_by_their_f1(case: Case) -> None:
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


def test_confused_pairs(case: Case) -> None:
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


def test_the_map_of_labels(case: Case) -> None:
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


def test_settings_say_what_was_chosen(case_of: Callable[[Any], Case]) -> None:
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
    texts = ["bread and salt", "the ball", "a sonnet"]
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


WICKED = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "<!-- <script>",
    "\"quoted\" & 'single' > $title ${script}",
    "half \ud800 a pair, \u2028 and a line",
]


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


def wicked_report() -> EvaluationReport:
    rng = np.random.default_rng(0)
    X = np.repeat(np.eye(5), 6, axis=0) + 0.1 * rng.random((30, 5))
    Y = [[WICKED[i // 6]] for i in range(30)]
    model = ExMLDS1(n_components=4, n_neighbors=3, random_state=0).fit(X, Y)
    wrong = [[WICKED[(i // 6 + 1) % 5]] for i in range(30)]  # so that there are confused pairs
    return make(model, X, wrong, k=[1], title=WICKED[1])


def test_names_do_no_harm() -> None:
    report = wicked_report()
    html = page.rendered(report).decode()
    found = Elements(html)
    assert found.count["script"] == 2
    assert found.count["img"] == 0
    assert not [name for name, _ in found.attributes if name.startswith("on")]
    assert "<script>alert" not in html
    shown = "".join(found.texts)
    assert WICKED[0] in shown
    assert WICKED[3] in shown
    names = data_of(html.encode())["label_map"]["names"]
    assert set(WICKED[:4]) <= set(names)
    assert data_of(html.encode())["title"] == WICKED[1]


def test_the_page_loads_nothing(embedded: Case) -> None:
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


def test_tables_are_accessible(embedded: Case) -> None:
    html = page.rendered(embedded.report).decode()
    assert html.count("<caption>") == html.count("<table") == 6
    assert "<th>" not in html  # each has a scope
    assert html.count("<h1>") == 1
    assert re.findall(r"<svg(?![^>]*aria-label)", html) == []
    assert 'lang="en"' in html


def test_many_labels_and_long_names_make_no_large_page() -> None:
    n = 50_000
    names = [f"{label} {'very ' * 60}long" for label in range(n)]
    Y = csr_matrix((np.ones(n, np.float32), (np.arange(n) % 500, np.arange(n))), shape=(500, n))
    model = MostFrequent(threshold=0.0).fit(np.ones((500, 1)), Y, label_names=names)
    assert len(page.rendered(make(model, np.ones((500, 1)), Y))) < 200_000


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


# The command.


@pytest.fixture(scope="module")
def files(embedded: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
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
        ((files / "model", files / "test.txt", "-k", "0"), "-k must be positive integers"),
    ):
        code, err = command(*arguments, "-o", out)
        assert (code, message in err, err.count("\n")) == (2, True, 1), err
    for place, message in (
        (tmp_path, "is a folder"),
        (tmp_path / "none" / "report.html", "cannot be written"),
        (files / "test.txt", "is being read"),
        (files / "model" / "report.html", "is a model folder"),
    ):
        code, err = command(files / "model", files / "test.txt", "-o", place)
        assert (code, message in err) == (2, True), err
    assert out.read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bare.txt", "few.txt", "report.html"]


# The page in a browser.

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")


@pytest.fixture
def browse(tmp_path: Path) -> Callable[..., str]:
    """Open a page in Chromium; returns the document after its scripts have run, or writes a screenshot."""

    def run(html: bytes, fragment: str = "", *options: str) -> str:
        (tmp_path / "page.html").write_bytes(html)
        flags = (
            "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
            "--disable-background-networking --disable-component-update --hide-scrollbars "
            f"--window-size=1000,800 --virtual-time-budget=3000 --user-data-dir={tmp_path / 'profile'}"
        )
        address = (tmp_path / "page.html").as_uri() + fragment
        done = subprocess.run(
            [str(CHROMIUM), *flags.split(), *(options or ("--dump-dom",)), address],
            capture_output=True,
            timeout=120,
            check=True,
        )
        return done.stdout.decode()

    return run


def with_script(html: bytes, script: str) -> bytes:
    """The page with one more script, and without the policy that would block it."""
    bare = re.sub(rb"<meta http-equiv[^>]*>", b"", html)
    return bare.replace(b"</body>", f"<script>{script}</script></body>".encode())


@pytest.mark.slow
@in_a_browser
def test_the_script_draws_and_searches(browse: Callable[..., str], embedded: Case) -> None:
    html = page.rendered(embedded.report)
    seen = browse(html)
    assert 'data-drawn="37"' in seen
    assert "37 labels drawn" in seen
    assert seen.count("<circle") > 37  # the charts have some, too
    searched = browse(html, "#search=MUSIC")
    assert "1 of 37 labels match" in searched
    assert re.search(r"<li><button[^>]*>music</button></li>", searched)
    assert len(re.findall(r'<circle[^>]*class="[^"]*\bhit\b', searched)) == 1


@pytest.mark.slow
@in_a_browser
def test_names_do_no_harm_in_a_browser(browse: Callable[..., str]) -> None:
    seen = browse(page.rendered(wicked_report()), "#search=script")
    assert "4 of 5 labels match" in seen
    assert 'data-drawn="5"' in seen
    assert "<img" not in seen


@pytest.mark.slow
@in_a_browser
def test_columns_are_sorted_and_the_map_is_moved(browse: Callable[..., str], embedded: Case) -> None:
    script = """
      const head = document.querySelector("#labels th:nth-child(6) button");
      const column = () => [...document.querySelectorAll("#labels table")[0].tBodies[0].rows]
        .map((row) => +row.cells[5].dataset.v);
      const sorted = [];
      for (let i = 0; i < 2; i++) { head.click(); sorted.push(column()); }
      const dots = [...document.querySelectorAll(".map circle")];
      const spread = () => Math.max(...dots.map((dot) => +dot.getAttribute("cx")))
        - Math.min(...dots.map((dot) => +dot.getAttribute("cx")));
      const wide = [spread()], zoom = (name) => document.querySelector(`[data-zoom=${name}]`).click();
      zoom("in"); wide.push(spread());
      zoom("all"); wide.push(spread());
      const svg = document.querySelector(".map svg"), box = svg.getBoundingClientRect();
      const at = (x, y) => ({ clientX: box.left + x, clientY: box.top + y, bubbles: true, cancelable: true });
      const over = dots[0], [x, y] = [+over.getAttribute("cx"), +over.getAttribute("cy")];
      svg.dispatchEvent(new WheelEvent("wheel", { ...at(x, y), deltaY: -400 })); wide.push(spread());
      svg.dispatchEvent(new PointerEvent("pointermove", at(x + 1, y)));
      svg.dispatchEvent(new PointerEvent("pointermove", at(x, y)));
      const tooltip = document.querySelector(".tooltip").textContent;
      svg.dispatchEvent(new WheelEvent("wheel", { ...at(x, y), deltaY: -400 })); wide.push(spread());
      document.title = JSON.stringify({ sorted, wide, tooltip });
    """
    seen = browse(with_script(page.rendered(embedded.report), script))
    found = re.search(r"<title>(.*?)</title>", seen)
    assert found is not None
    state = json.loads(found[1].replace("&amp;", "&"))
    lines = sorted(line.training for line in embedded.report.labels.best)
    assert state["sorted"] == [lines[::-1], lines]
    start, closer, back, scrolled, wheeled = state["wide"]
    assert closer == pytest.approx(1.5 * start, rel=0.01)
    assert back == scrolled == start  # scrolling the page over the map does not zoom
    assert wheeled == pytest.approx(start * np.exp(0.64), rel=0.01)
    drawn = embedded.report.label_map
    assert drawn is not None
    assert state["tooltip"].startswith(f"{drawn.names[0]}{drawn.training[0]} training rows")


def corner(png: bytes) -> tuple[int, ...]:
    """The red, green and blue of the first pixel, which no PNG filter changes."""
    packed, place = b"", 8
    while place < len(png):
        (size,) = struct.unpack(">I", png[place : place + 4])
        if png[place + 4 : place + 8] == b"IDAT":
            packed += png[place + 8 : place + 8 + size]
        place += 12 + size
    return tuple(zlib.decompress(packed)[1:4])


@pytest.mark.slow
@in_a_browser
def test_light_and_dark(browse: Callable[..., str], embedded: Case, tmp_path: Path) -> None:
    html, out = page.rendered(embedded.report), tmp_path / "out.png"
    for fragment, prefers, dark in (
        ("", 1, False),
        ("", 0, True),
        ("#theme=dark", 1, True),
        ("#theme=light", 0, False),
    ):
        browse(html, fragment, f"--screenshot={out}", f"--blink-settings=preferredColorScheme={prefers}")
        assert (max(corner(out.read_bytes())) < 60) == dark, (fragment, prefers)
        assert (min(corner(out.read_bytes())) > 200) == (not dark)


@pytest.mark.slow
@in_a_browser
def test_it_can_be_printed(browse: Callable[..., str], embedded: Case, tmp_path: Path) -> None:
    out = tmp_path / "out.pdf"
    browse(page.rendered(embedded.report), "#theme=dark", f"--print-to-pdf={out}")
    assert out.read_bytes().startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", out.read_bytes())) <= 12
