"""Rendering a report as one self-contained HTML file: style, script, charts and data are in it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from math import floor
from string import Template
from typing import Any

from ..display import harmless, html
from . import Curve, EvaluationReport, LabelCounts, LabelLine, Measure, charts, mistakes, short

EMBEDDED = 10_000  # labels whose counts are in the page; the others are named by their number
SHOWN = 20  # of these, the labels that are on one page of the table

MEANINGS = {
    "P": "precision: share of the top k labels that are correct",
    "nDCG": "normalized discounted cumulative gain: higher ranks weigh more",
    "PSP": "propensity-scored precision: rare labels weigh more",
    "PSnDCG": "propensity-scored nDCG: rare labels weigh more",
    "R": "recall: share of a row’s true labels among the top k",
    "macro-F1": "mean over labels that occur in training or test of F1, if the top k labels are predicted",
    "coverage": "share of the labels in the test rows that are found at least once",
}


def rendered(report: EvaluationReport) -> bytes:
    """The page as UTF-8."""
    sections = [
        ("summary", "Summary", _summary(report)),
        ("threshold", "Threshold", _threshold(report)),
        ("mistakes", "Mistakes", _mistakes(report)),
        ("labels", "Labels", _labels(report)),
        ("confused", "Confused labels", _confused(report)),
        ("measures", "Measures", _measures(report)),
        ("tail", "Head to tail", _groups(report)),
        ("scores", "Scores", _scores(report)),
        ("map", "Label map", _label_map(report)),
        ("data", "Data", _data(report)),
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
        title=html(report.title),
        version=html(report.version),
        date=html(report.date),
        facts=html(" · ".join(facts)),
        style=_file("page.css"),
        contents="".join(f'<a href="#{name}">{html(title)}</a>' for name, title, _ in sections),
        sections="\n".join(
            f'<section id="{name}" aria-labelledby="{name}-title">'
            f'<h2 id="{name}-title">{html(title)}</h2>{body}</section>'
            for name, title, body in sections
        ),
        data=as_json(report._replace(label_counts=_embedded(report))),
        script=script,
        script_sum=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    return text.encode()


def as_json(report: EvaluationReport) -> str:
    """The report's data as JSON for a script element; escaping keeps a name from closing the element."""
    text = json.dumps(_plain(report), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _plain(value: Any) -> Any:
    """Convert named tuples to dictionaries, and control characters to escapes."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return harmless(value) if isinstance(value, str) else value


def _embedded(report: EvaluationReport) -> LabelCounts:
    """The part of the label table that is in the page, with names of limited length."""
    counts = report.label_counts.first(EMBEDDED)
    return counts._replace(names=[short(name) for name in counts.names])


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _summary(report: EvaluationReport) -> str:
    chosen, unit = report.at_threshold, report.unit
    tiles = [
        _tile("The first label is right for", report.first_label, f"{unit}s", "precision at 1"),
        _tile("Of the assigned labels,", chosen.precision, "are right", "precision"),
        _tile("Of the right labels,", chosen.recall, "are found", "recall"),
        f'<div><dt>A {unit} gets</dt><dd class="big">{chosen.labels_a_row:.2f}<small>labels</small></dd>'
        f'<dd>on average,</dd><dd class="small">where {report.data.labels_a_row:.2f} are right</dd></div>',
    ]
    return f'<p>{_in_words(report)}</p><dl class="figures">{"".join(tiles)}</dl>'


def _tile(before: str, measure: Measure, after: str, name: str) -> str:
    return (
        f'<div><dt>{before}</dt><dd class="big">{_of_100(measure.value)}<small>of 100</small></dd>'
        f'<dd>{after}</dd><dd class="small"><span>{name}: {_percent(measure.value)} %</span>'
        f"<span>interval: {_interval(measure)}</span></dd></div>"
    )


def _in_words(report: EvaluationReport) -> str:
    data = report.data
    sentences = [
        f"{_number(data.rows, f'test {report.unit}')} were compared with their right labels. A label is "
        f"assigned if its score reaches {report.at_threshold.threshold:.3g}, the threshold of the model. "
        "All intervals are 95 % confidence intervals."
    ]
    if data.unseen:
        sentences.append(
            f"{_number(data.unseen_labels, 'label')} of the test rows had no training row and cannot be "
            "predicted; such labels make up "
            f"{_percent(data.unseen / (data.rows * data.labels_a_row))} % of all true labels."
        )
    return " ".join(sentences)


def _threshold(report: EvaluationReport) -> str:
    curve = report.over_threshold
    n = len(curve.thresholds)
    drawn = charts.lines(
        curve.thresholds,
        [
            ("precision", [curve.precision(i) for i in range(n)]),
            ("recall", [curve.recall(i) for i in range(n)]),
            ("f1", [curve.f1(i) for i in range(n)]),
        ],
        curve.own,
        title="Precision, recall and F1 of the assigned labels over the threshold",
        x="threshold",
    )
    key = "".join(
        '<span><svg class="sample" viewBox="0 0 24 8" aria-hidden="true">'
        f'<path class="line {kind}" d="M0 4h24"/></svg>{name}</span>'
        for kind, name in (("precision", "precision"), ("recall", "recall"), ("f1", "F1"))
    )
    own = f"{curve.thresholds[curve.own]:.3g}"
    precision = curve.precision(curve.own)
    values = [
        ("Precision, %", "–" if precision is None else _percent(precision)),
        ("Recall, %", _percent(curve.recall(curve.own))),
        ("F1, %", _percent(curve.f1(curve.own))),
        (f"Labels per {report.unit}", f"{curve.assigned[curve.own] / curve.rows:.2f}"),
    ]
    return (
        "<p>A higher threshold assigns fewer labels: usually more of them are right, and fewer of the right "
        f"labels are found. The threshold of the model is {own}.</p>"
        f'<div class="columns"><figure><p class="legend small">{key}</p>{drawn}</figure><div class="slider">'
        f'<div class="tools" hidden><label for="level">Threshold</label>'
        f'<input id="level" type="range" min="0" max="{n - 1}" step="1" value="{curve.own}">'
        f'<button type="button" id="own-level">Back to {own}</button></div>'
        f'<p class="says"><output id="meaning" for="level">{_meaning(report, curve.own)}</output></p>'
        f"{_pairs(values, 'numbers')}"
        '<noscript><p class="small">With JavaScript, a slider shows the values at other thresholds.</p>'
        "</noscript></div></div>"
    )


def _meaning(report: EvaluationReport, i: int) -> str:
    """What a threshold means, in words; the script says the same for other thresholds."""
    curve = report.over_threshold
    precision = curve.precision(i)
    right = "no label is assigned"
    if precision is not None:
        right = f"{_of_100(precision)} of 100 assigned labels are right"
    return f"At {curve.thresholds[i]:.3g}: {right}, {_of_100(curve.recall(i))} of 100 right labels are found."


def _mistakes(report: EvaluationReport) -> str:
    wrong, total = report.confused.wrong_rows, report.data.rows
    if not wrong:
        return f"<p>No {report.unit} has a wrong first label.</p>"
    count = (
        f"{_number(wrong, report.unit)} of {total:,} {'has' if wrong == 1 else 'have'} a wrong first label."
    )
    if not report.examples:
        return f"<p>{count} No examples were asked for.</p>"
    named, row = "Rows are counted from 0;", "N"
    if any(example.id is not None for example in report.examples):
        named, row = "Rows are named by their ids, and counted from 0;", "ID"
    return (
        f"<p>{count} Those whose scores are highest are listed, with different first labels where possible. "
        f"{named} <code>exmlds explain MODEL DATA --row {row}</code> explains a prediction.</p>"
        f'<ol class="examples">{"".join(map(_mistake, report.examples))}</ol>'
    )


def _ranked(label: mistakes.RankedLabel) -> str:
    kind, mark = ("right", "✓") if label.right else ("wrong", "✗")
    below = "" if label.assigned else ", below the threshold"
    return (
        f'<li class="{kind}"><span aria-hidden="true">{mark}</span><span class="unseen">{kind}: </span> '
        f'{_name(label.label)} <span class="small">{label.score:.2f}{below}</span></li>'
    )


def _mistake(mistake: mistakes.Mistake) -> str:
    ranked = "".join(map(_ranked, mistake.ranked))
    missed = "".join(f'<li class="missed">{_name(label)}</li>' for label in mistake.missed)
    if mistake.more:
        missed += f'<li class="small">and {mistake.more:,} more</li>'
    shown = (
        "" if mistake.text is None else f'<p class="text" dir="auto">{html(mistake.text) or "(empty)"}</p>'
    )
    name = f"Row {mistake.row}" if mistake.id is None else f"{_name(short(mistake.id))}, row {mistake.row}"
    return (
        f'<li><p class="small id">{name}</p>{shown}<dl><dt>Labels of the model</dt>'
        f'<dd><ul class="chips">{ranked}</ul></dd>'
        f'<dt>Missed</dt><dd><ul class="chips">{missed or "<li class=small>none</li>"}</ul></dd></dl></li>'
    )


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
        title="At k",
    )
    predicted = report.at_threshold
    threshold = _table(
        ["Measure, %", "Value"],
        [
            [
                _head("micro-precision", "share of the predicted labels that are true"),
                _measure(predicted.precision),
            ],
            [
                _head("micro-recall", "share of the true labels that are predicted"),
                _measure(predicted.recall),
            ],
            [_head("micro-F1", "harmonic mean of both"), _measure(predicted.f1)],
        ],
        kind="measures",
        title=f"At the threshold of {predicted.threshold:.3g}",
    )
    return (
        "<p>The 95 % interval below each value is a bootstrap over the test rows.</p>"
        f'<div class="columns left">{at_ks}{threshold}</div>'
    )


def _groups(report: EvaluationReport) -> str:
    most = report.ks[-1]
    drawn = charts.bars(
        [
            (group.name, group.recall, f"{group.found:,} of {group.true:,} found; {_rows_of(group)}")
            for group in report.groups
        ],
        title=f"Recall at {most} by label frequency",
        x="tenths of the labels, the most frequent first",
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
        title=f"By label frequency in training, measures at {most} in %",
    )
    return (
        "<p>The labels are grouped into tenths by their number of training rows. Recall is the share of "
        f"their occurrences in the test rows that are among the top {most}.</p>"
        f'<div class="columns right"><figure><h3>Recall at {most}</h3>{drawn}</figure>{table}</div>'
    )


def _rows_of(group: Any) -> str:
    return f"labels with {group.most:,} to {group.least:,} training rows"


def _scores(report: EvaluationReport) -> str:
    note, first = "", ""
    if report.calibration is None:
        note = (
            f"<p>The scores of {html(report.method)} are {html(report.scores)}. They rank labels and "
            "are not probabilities, so there is no calibration curve.</p>"
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
        title="Calibration curve: observed frequency against predicted probability",
        x="predicted probability, %",
        y="observed frequency, %",
        diagonal=True,
    )
    beside = ""
    if report.scores != "probabilities":
        beside = f" (The scores are {html(report.scores)}; the curve shows the probabilities.)"
    return (
        f"<figure><h3>Calibration: expected error {100 * curve.error:.2f} points</h3>{drawn}"
        f"<figcaption>The top {curve.k} labels of each row, in {len(curve.predicted)} bins of equal size. On "
        "the dashed line, probabilities are exact: of the labels predicted with 80 %, 80 of 100 are true. "
        f"The expected calibration error is the mean distance from it.{beside}</figcaption></figure>"
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
                f"{_percent(point.precision)} % correct",
            )
            for point in points
        ],
        title="Precision of the top label against the share of rows answered",
        x="coverage: rows answered, %",
        y="precision of the top label, %",
        low=charts.floor_of(point.precision for point in points),
    )
    return (
        f"<figure><h3>Precision against coverage</h3>{drawn}<figcaption>Only rows whose top label reaches a "
        "minimum score are answered; a higher minimum answers fewer rows."
        f"{_example(report)}</figcaption></figure>"
    )


def _example(report: EvaluationReport) -> str:
    """An example: the minimum score that answers about half of the rows, if not all rows have it."""
    half = next((point for point in report.answered if point.coverage >= 0.5), report.answered[-1])
    if half is report.answered[-1]:
        return ""
    return (
        f" With a minimum score of {half.bar:.3g}, {_percent(half.coverage)} % of the rows are answered, and "
        f"{_percent(half.precision)} % of these correctly."
    )


def _labels(report: EvaluationReport) -> str:
    lists = report.labels
    if not lists.n:
        return "<p>No label of the test rows has a training row.</p>"
    at_least = f"at least {_number(lists.least, 'test row')}"
    return (
        f"<p>F1 at the threshold, among the {_number(lists.n, 'label')} that occur in {at_least}. "
        "Click on a column header to sort by it.</p>"
        f'<div class="columns">{_label_table("Best", lists.best)}'
        f"{_label_table('Worst', lists.worst) if lists.worst else ''}</div>{_all_labels(report)}"
    )


def _all_labels(report: EvaluationReport) -> str:
    """The table of all labels; the script adds search, order, further pages and the download."""
    counts = report.label_counts
    n, embedded = len(counts.names), min(EMBEDDED, len(counts.names))
    which = f"All {_number(n, 'label')} that have a training or a test row."
    if embedded < n:
        which = (
            f"Of {_number(n, 'label')} that have a training or a test row, the {embedded:,} with the most "
            "test rows are in this page. <code>exmlds report … --label-table FILE</code> writes all as CSV."
        )
    table = _table(
        ["Label", "F1", "Precision", "Recall", "Test", "Assigned", "Training"],
        [
            [_head(short(name))]
            + [_cell("–" if share is None else _percent(share)) for share in (f1, precision, recall)]
            + [_cell(f"{rows:,}") for rows in (test, assigned, training)]
            for name, training, test, assigned, _, precision, recall, f1 in counts.first(SHOWN).rows()
        ],
        kind="stacked",
        title="All labels",
        sorted_by=(4, True),
    )
    return (
        f'<div id="all-labels"><p>{which} F1, precision and recall are in %, at the threshold; “test”, '
        '“assigned” and “training” are numbers of rows.</p><div class="tools" hidden>'
        '<label for="label-search">Find a label</label>'
        '<input id="label-search" type="search" autocomplete="off" spellcheck="false">'
        '<button type="button" class="download">Download CSV</button></div>'
        f'{table}<div class="tools pager" hidden><button type="button" data-turn="-1">Previous</button>'
        '<output class="small" for="label-search"></output>'
        '<button type="button" data-turn="1">Next</button></div>'
        f'<noscript><p class="small">The first {min(SHOWN, n)} are shown. Search, further pages and the '
        "download need JavaScript.</p></noscript></div>"
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
        kind="stacked sortable",
        title=title,
        sorted_by=(1, title == "Best"),
    )


def _confused(report: EvaluationReport) -> str:
    confused = report.confused
    if not confused.pairs:
        return "<p>Where the top label is wrong, no known true label is missed.</p>"
    listed = "The most frequent are listed." if len(confused.pairs) < confused.n else ""
    table = _table(
        ["Top label, but wrong", "True, but not predicted", "Rows", "Of its test rows, %"],
        [
            [
                _head(pair.predicted),
                f'<td class="name">{_name(pair.missed)}</td>',
                _sorted_cell(f"{pair.rows:,}", pair.rows),
                _sorted_cell(f"{_bar(pair.share)}<span>{_percent(pair.share)}</span>", pair.share),
            ]
            for pair in confused.pairs
        ],
        kind="stacked sortable",
        title="Pairs of labels",
        sorted_by=(2, True),
    )
    return (
        f"<p>In {_number(confused.wrong_rows, 'row')} the top label is wrong. It is paired with each true "
        f"label that did not reach the threshold: {_number(confused.n, 'pair')} of labels. {listed}</p>"
        f'<div class="narrow">{table}</div>'
    )


def _label_map(report: EvaluationReport) -> str:
    drawn = report.label_map
    if drawn is None:
        return f"<p>{html(report.method)} has no label embeddings, so there is no label map.</p>"
    which = "All" if len(drawn.names) == drawn.n else f"The {len(drawn.names):,} most frequent"
    swatches = "".join(f'<span class="q{i}"></span>' for i in range(5))
    return (
        "<p>A t-SNE projection of the label embeddings: labels of similar rows are close to each other. "
        f"{which} of the {_number(drawn.n, 'label')} with a training row are drawn; the size of a dot shows "
        "its number of training rows.</p>"
        '<div><div class="tools" hidden><label for="search">Find a label</label>'
        '<input id="search" type="search" autocomplete="off" spellcheck="false">'
        '<span class="zoom"><button type="button" data-zoom="in" aria-label="Zoom in">+</button>'
        '<button type="button" data-zoom="out" aria-label="Zoom out">−</button>'
        '<button type="button" data-zoom="all">All</button></span></div>'
        '<div class="found"><output class="small" for="search"></output>'
        '<ul class="matches" aria-label="Labels found"></ul></div>'
        '<div class="map"><svg role="img" tabindex="0" aria-label="Label map; the field above finds '
        'labels by name, arrow keys move the map, plus and minus zoom"></svg>'
        '<div class="tooltip" role="status" hidden></div></div>'
        f'<p class="key small">F1 from 0 {swatches} to 100 %<span class="gap"></span>'
        '<span class="none"></span> not in the test rows</p>'
        "<noscript><p>The map needs JavaScript, which is disabled in this browser.</p></noscript></div>"
    )


def _data(report: EvaluationReport) -> str:
    data = report.data
    sizes = [
        ("Training rows", f"{data.training_rows:,}"),
        ("Features", f"{data.features:,}"),
        ("Labels", f"{data.labels:,}"),
        ("Labels per training row", f"{data.training_labels_a_row:.2f}"),
        ("Test rows", f"{data.rows:,}"),
        ("Labels per test row", f"{data.labels_a_row:.2f}"),
        ("Test rows without a label", f"{data.rows_without_label:,}"),
        ("Labels in the test rows", f"{data.labels_in_test:,}"),
        ("Of these, without a training row", f"{data.unseen_labels:,}"),
    ]
    settings = [
        (
            f"<code>{html(setting.name)}</code>",
            f"<code>{html(setting.value)}</code>"
            + (f' <span class="small">chosen: {html(setting.chosen)}</span>' if setting.chosen else ""),
        )
        for setting in report.settings
    ]
    return (
        f'<div class="columns"><div><h3>Data</h3>{_pairs(sizes, "numbers")}</div>'
        f"<div><h3>Parameters of {html(report.method)}</h3>{_pairs(settings)}</div></div>"
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
    """A table of cells that are HTML already; the class of a head, "number" or "name", is that of cells."""
    rows = list(rows)
    heads, n_numbers = [], 0
    for i, column in enumerate(columns):
        is_number = bool(rows) and 'class="number"' in rows[0][i]
        n_numbers += is_number
        kind_of_cells = "number" if is_number else "name"
        order = ""
        if sorted_by is not None and sorted_by[0] == i:
            order = f' aria-sort="{"descending" if sorted_by[1] else "ascending"}"'
        heads.append(f'<th scope="col" class="{kind_of_cells}"{order}>{html(column)}</th>')
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{html(title)}">'
        f'<table class="{kind}" style="--numbers:{max(n_numbers, 1)}">'
        f"<caption>{html(title)}</caption><thead><tr>{''.join(heads)}</tr></thead><tbody>{body}</tbody></table>"
        "</div>"
    )


def _head(name: str, meaning: str = "") -> str:
    note = f'<span class="small">{html(meaning)}</span>' if meaning else ""
    return f'<th scope="row" class="name">{_name(name)}{note}</th>'


def _name(label: str) -> str:
    """A label as HTML. A URI may be broken after its slashes, so that its last part is not."""
    parts = re.split(r"(?<=[/#])(?![/#])", label) if "://" in label else [label]
    return "<wbr>".join(map(html, parts))


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


def _of_100(share: float) -> str:
    """A share as a number of 100; one that is not exactly 0 or 1 never reads so.

    >>> _of_100(0.946), _of_100(0.999), _of_100(1.0)
    ('95', '99.9', '100')
    """
    whole = floor(100 * share + 0.5)
    if whole in (0, 100) and share not in (0, 1):
        return f"{min(max(100 * share, 0.1), 99.9):.1f}"
    return str(whole)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _number(n: int, noun: str) -> str:
    """
    >>> _number(1, "row"), _number(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
