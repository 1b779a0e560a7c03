"""A report as one HTML file: style, script, charts and data are in it, and nothing is fetched."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from . import Curve, EvaluationReport, LabelLine, Measure, charts

MEANINGS = {
    "P": "share of the first k places that are right",
    "nDCG": "the same, with more weight on the first places, against the best order",
    "PSP": "precision that counts rare labels for more",
    "PSnDCG": "nDCG that counts rare labels for more",
    "R": "share of a row’s labels among the first k places",
    "macro-F1": "mean over labels of F1, when the first k places are said",
    "coverage": "share of the labels in the test rows that are found at least once",
}


def rendered(report: EvaluationReport) -> bytes:
    """The page, UTF-8."""
    sections = [
        ("summary", "Summary", _summary(report)),
        ("measures", "Measures", _measures(report)),
        ("tail", "Head to tail", _groups(report)),
        ("scores", "Scores", _scores(report)),
        ("labels", "Labels", _labels(report)),
        ("confused", "Confused labels", _confused(report)),
        ("map", "Label map", _label_map(report)),
        ("data", "Data and settings", _data(report)),
    ]
    script = _file("page.js")
    facts = (
        *([] if report.method in report.title else [report.method]),
        _number(report.data.labels, "label"),
        _number(report.data.training_rows, "training row"),
        _number(report.data.rows, "test row"),
        report.date,
    )
    text = Template(_file("page.html")).substitute(
        title=escape(report.title),
        version=escape(report.version),
        date=escape(report.date),
        facts=escape(" · ".join(facts)),
        style=_file("page.css"),
        contents="".join(f'<a href="#{name}">{escape(title)}</a>' for name, title, _ in sections),
        sections="\n".join(
            f'<section id="{name}" aria-labelledby="{name}-title">'
            f'<h2 id="{name}-title">{escape(title)}</h2>{body}</section>'
            for name, title, body in sections
        ),
        data=as_json(report),
        script=script,
        script_sum=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    return text.encode("utf-8", "replace")  # half a surrogate pair in a name has no UTF-8


def as_json(report: EvaluationReport) -> str:
    """The report's data, so that it can stand in a script element: no name in it ends the element."""
    text = json.dumps(_plain(report), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _plain(value: Any) -> Any:
    """Tuples with names as objects."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _summary(report: EvaluationReport) -> str:
    low, high = report.ks[0], report.ks[-1]
    names = (f"P@{low}", f"nDCG@{high}", f"PSP@{high}")
    figures = [(name, report.measures[name]) for name in names]
    figures.append(("micro-F1 at the threshold", report.at_threshold.f1))
    shown = "".join(
        f'<div><dt>{escape(title)}</dt><dd class="big">{_percent(measure.value)}<small>%</small></dd>'
        f'<dd class="small">{_interval(measure)}</dd></div>'
        for title, measure in figures
    )
    return f'<p>{_in_words(report)}</p><dl class="figures">{shown}</dl>'


def _in_words(report: EvaluationReport) -> str:
    data, chosen = report.data, report.at_threshold
    right = report.measures.get("P@1")
    sentences = []
    if right is not None:
        sentences.append(f"The first label is right for {_percent(right.value)} % of the rows.")
    sentences.append(
        f"At the threshold of {chosen.threshold:.3g}, the model predicts {chosen.labels_a_row:.2f} labels "
        f"per row, where {data.labels_a_row:.2f} are true; {_percent(chosen.precision.value)} % of the "
        f"predicted labels are correct, and {_percent(chosen.recall.value)} % of the true labels are found."
    )
    if data.unseen:
        sentences.append(
            f"{_number(data.unseen_labels, 'label')} of the test rows had no training row and cannot be "
            f"found; {_percent(data.unseen / (data.rows * data.labels_a_row))} % of what is true is of these."
        )
    return " ".join(sentences)


def _measures(report: EvaluationReport) -> str:
    families = list(dict.fromkeys(name.partition("@")[0] for name in report.measures))
    ordered = sorted(families, key=lambda family: list(MEANINGS).index(family))
    at_ks = _table(
        ["Measure, %", *(f"@{k}" for k in report.ks)],
        [
            [_head(family, MEANINGS[family])]
            + [_measure(report.measures[f"{family}@{k}"]) for k in report.ks]
            for family in ordered
        ],
        kind="measures",
        title="The first k places",
    )
    predicted = report.at_threshold
    threshold = _table(
        ["Measure, %", "Value"],
        [
            [
                _head("micro-precision", "share of the labels said that are true"),
                _measure(predicted.precision),
            ],
            [_head("micro-recall", "share of the true labels that are said"), _measure(predicted.recall)],
            [_head("micro-F1", "their harmonic mean"), _measure(predicted.f1)],
        ],
        kind="measures",
        title=f"At the threshold of {predicted.threshold:.3g}",
    )
    return (
        "<p>Below each value stands its 95 % interval, by drawing the test rows again with replacement.</p>"
        f'<div class="columns left">{at_ks}{threshold}</div>'
    )


def _groups(report: EvaluationReport) -> str:
    most = report.ks[-1]
    drawn = charts.bars(
        [
            (group.name, group.recall, f"{group.found:,} of {group.true:,} found; {_rows_of(group)}")
            for group in report.groups
        ],
        title=f"Recall at {most} of each tenth of the labels",
        x="tenth of the labels, the most frequent first",
        y=f"recall at {most}, %",
    )
    table = _table(
        ["Tenth", "Labels", "Training rows", "In test", "Recall", "Precision", "Coverage"],
        [
            [
                _head(group.name),
                _cell(f"{group.n_labels:,}"),
                _cell(f"{group.most:,}" + (f"–{group.least:,}" if group.least < group.most else "")),
                _cell(f"{group.true:,}"),
                *(_cell(_percent(share)) for share in (group.recall, group.precision, group.coverage)),
            ]
            for group in report.groups
        ],
        kind="tight",
        title=f"By frequency in training, in % of the first {most} places",
    )
    return (
        "<p>The labels in groups of equal size, by the training rows that they have. Recall is the share of "
        f"their occurrences in the test rows that are among the first {most} places.</p>"
        f'<div class="columns right"><figure><h3>Recall at {most}</h3>{drawn}</figure>{table}</div>'
    )


def _rows_of(group: Any) -> str:
    return f"labels with {group.most:,} to {group.least:,} training rows"


def _scores(report: EvaluationReport) -> str:
    note, first = "", ""
    if report.calibration is None:
        note = (
            f"<p>The scores of {escape(report.method)} are {escape(report.scores)}. They order labels and "
            "are no probabilities, so there is no calibration to show.</p>"
        )
    else:
        first = _calibration(report, report.calibration)
    return f'{note}<div class="columns">{first}{_answered(report)}</div>'


def _calibration(report: EvaluationReport, curve: Curve) -> str:
    drawn = charts.curve(
        [
            (predicted, observed, f"predicted {_percent(predicted)} %, observed {_percent(observed)} %")
            for predicted, observed in zip(curve.predicted, curve.observed)
        ],
        title="Share of labels that are true against the probability said",
        x="probability said, %",
        y="share that is true, %",
        diagonal=True,
    )
    beside = ""
    if report.scores != "probabilities":
        beside = f" (Scores are {escape(report.scores)} here; the probabilities behind them are shown.)"
    return (
        f"<figure><h3>Calibration: the error is {100 * curve.error:.2f} points</h3>{drawn}"
        f"<figcaption>Of the first {curve.k} labels of each row, in {len(curve.predicted)} bins of equal "
        "size. On the dashed line, what is said with 80 % comes true in 80 of 100 cases. The error is the "
        f"mean distance from it.{beside}</figcaption></figure>"
    )


def _answered(report: EvaluationReport) -> str:
    points = report.answered
    if not points:
        note = "No row has a prediction."
        return f"<figure><h3>Precision against coverage</h3><figcaption>{note}</figcaption></figure>"
    drawn = charts.curve(
        [
            (
                point.coverage,
                point.precision,
                f"score at least {point.bar:.3g}: {_percent(point.coverage)} % of rows answered, "
                f"{_percent(point.precision)} % right",
            )
            for point in points
        ],
        title="Share of right first labels against the share of rows answered",
        x="rows answered, %",
        y="first label right, %",
        low=charts.floor_of(point.precision for point in points),
    )
    return (
        f"<figure><h3>Precision against coverage</h3>{drawn}<figcaption>Only rows whose first label scores "
        "high enough are answered: the higher the bar, the fewer rows."
        f"{_example(report)}</figcaption></figure>"
    )


def _example(report: EvaluationReport) -> str:
    """The bar for about half of the rows, where that is better than none."""
    half = next((point for point in report.answered if point.coverage >= 0.5), report.answered[-1])
    if half is report.answered[-1]:
        return ""
    return (
        f" With scores of at least {half.bar:.3g}, {_percent(half.coverage)} % of the rows are answered, and "
        f"{_percent(half.precision)} % of these rightly."
    )


def _labels(report: EvaluationReport) -> str:
    lists = report.labels
    if not lists.n:
        return "<p>No label of the test rows has a training row.</p>"
    at_least = f"at least {_number(lists.least, 'test row')}"
    return (
        f"<p>F1 at the threshold, of the {_number(lists.n, 'label')} that {at_least} "
        f"{'has' if lists.least == 1 else 'have'}. A click on the head of a column sorts by it.</p>"
        f'<div class="columns">{_label_table("Best", lists.best)}'
        f"{_label_table('Worst', lists.worst) if lists.worst else ''}</div>"
    )


def _label_table(title: str, lines: Sequence[LabelLine]) -> str:
    return _table(
        ["Label", "F1", "Precision", "Recall", "Test", "Training"],
        [
            [
                _head(line.label),
                _sorted_cell(_percent(line.f1), line.f1),
                _sorted_cell("–", -1) if line.precision is None else _share(line.precision),
                _share(line.recall),
                _sorted_cell(f"{line.test:,}", line.test),
                _sorted_cell(f"{line.training:,}", line.training),
            ]
            for line in lines
        ],
        kind="sortable",
        title=title,
        sorted_by=(1, title == "Best"),
    )


def _confused(report: EvaluationReport) -> str:
    confused = report.confused
    if not confused.pairs:
        return "<p>Where the first label is wrong, no known true label is missed.</p>"
    listed = "The most frequent are listed." if len(confused.pairs) < confused.n else ""
    table = _table(
        ["Said first, but wrong", "True, but not said", "Rows", "Of its test rows, %"],
        [
            [
                _head(pair.predicted),
                f"<td>{escape(pair.missed)}</td>",
                _sorted_cell(f"{pair.rows:,}", pair.rows),
                _sorted_cell(f"{_bar(pair.share)}<span>{_percent(pair.share)}</span>", pair.share),
            ]
            for pair in confused.pairs
        ],
        kind="sortable",
        title="Pairs of labels",
        sorted_by=(2, True),
    )
    return (
        f"<p>In {_number(confused.wrong_rows, 'row')} the first label is wrong. Beside it stands each true "
        f"label that did not reach the threshold: {_number(confused.n, 'pair')} of labels. {listed}</p>"
        f'<div class="narrow">{table}</div>'
    )


def _label_map(report: EvaluationReport) -> str:
    drawn = report.label_map
    if drawn is None:
        return f"<p>{escape(report.method)} does not say where labels lie, so there is no map of them.</p>"
    which = "All" if len(drawn.names) == drawn.n else f"The {len(drawn.names):,} most frequent"
    swatches = "".join(f'<span class="q{i}"></span>' for i in range(5))
    return (
        "<p>Labels that lie near each other are had by similar rows. "
        f"{which} of the {_number(drawn.n, 'label')} with a training row are drawn; the larger, the more "
        "rows.</p>"
        '<div><div class="tools" hidden><label for="search">Find a label</label>'
        '<input id="search" type="search" autocomplete="off" spellcheck="false">'
        '<span class="zoom"><button type="button" data-zoom="in" aria-label="Zoom in">+</button>'
        '<button type="button" data-zoom="out" aria-label="Zoom out">−</button>'
        '<button type="button" data-zoom="all">All</button></span></div>'
        '<div class="found"><output class="small" for="search"></output>'
        '<ul class="matches" aria-label="Labels found"></ul></div>'
        '<div class="map"><svg role="img" tabindex="0" aria-label="Map of labels; the field above finds '
        'labels by name, arrows move the map, plus and minus zoom"></svg>'
        '<div class="told" role="status" hidden></div></div>'
        f'<p class="key small">F1 from 0 {swatches} to 100 %<span class="gap"></span>'
        '<span class="none"></span> not in the test rows</p>'
        "<noscript><p>The map is drawn by a script, which this browser does not run.</p></noscript></div>"
    )


def _data(report: EvaluationReport) -> str:
    data = report.data
    sizes = [
        ("Training rows", f"{data.training_rows:,}"),
        ("Features", f"{data.features:,}"),
        ("Labels", f"{data.labels:,}"),
        ("Labels a training row", f"{data.training_labels_a_row:.2f}"),
        ("Test rows", f"{data.rows:,}"),
        ("Labels a test row", f"{data.labels_a_row:.2f}"),
        ("Test rows without a label", f"{data.rows_without_label:,}"),
        ("Labels in the test rows", f"{data.labels_in_test:,}"),
        ("Of these, without a training row", f"{data.unseen_labels:,}"),
    ]
    settings = [
        (
            f"<code>{escape(setting.name)}</code>",
            f"<code>{escape(setting.value)}</code>"
            + (f' <span class="small">chosen: {escape(setting.chosen)}</span>' if setting.chosen else ""),
        )
        for setting in report.settings
    ]
    return (
        f'<div class="columns"><div><h3>Data</h3>{_pairs(sizes, "numbers")}</div>'
        f"<div><h3>Settings of {escape(report.method)}</h3>{_pairs(settings)}</div></div>"
    )


def _pairs(pairs: Iterable[tuple[str, str]], kind: str = "") -> str:
    items = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in pairs)
    return f'<dl class="pairs {kind}">{items}</dl>'


def _table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str,
    kind: str = "",
    sorted_by: tuple[int, bool] | None = None,
) -> str:
    """Rows of cells that are HTML; the cell `<td class="number"` makes its column one of numbers."""
    rows = list(rows)
    heads = []
    for i, column in enumerate(columns):
        number = ' class="number"' if rows and 'class="number"' in rows[0][i] else ""
        order = ""
        if sorted_by is not None and sorted_by[0] == i:
            order = f' aria-sort="{"descending" if sorted_by[1] else "ascending"}"'
        heads.append(f'<th scope="col"{number}{order}>{escape(column)}</th>')
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(title)}"><table class="{kind}">'
        f"<caption>{escape(title)}</caption><thead><tr>{''.join(heads)}</tr></thead><tbody>{body}</tbody></table>"
        "</div>"
    )


def _head(name: str, meaning: str = "") -> str:
    note = f'<span class="small">{escape(meaning)}</span>' if meaning else ""
    return f'<th scope="row">{escape(name)}{note}</th>'


def _cell(shown: str) -> str:
    return f'<td class="number">{shown}</td>'


def _sorted_cell(shown: str, value: float) -> str:
    return f'<td class="number" data-v="{value:.6g}">{shown}</td>'


def _share(value: float) -> str:
    return _sorted_cell(_percent(value), value)


def _bar(share: float) -> str:
    return f'<span class="share" aria-hidden="true"><i style="width:{100 * share:.1f}%"></i></span>'


def _measure(measure: Measure) -> str:
    return _cell(f'{100 * measure.value:.2f}<span class="small">{_interval(measure)}</span>')


def _interval(measure: Measure) -> str:
    if measure.low is None or measure.high is None:
        return ""
    return f"{_percent(measure.low)}–{_percent(measure.high)}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _number(n: int, noun: str) -> str:
    """
    >>> _number(1, "row"), _number(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
