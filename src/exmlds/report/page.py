"""Rendering a report as one self-contained HTML file: style, script, charts and data are in it."""

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
    "P": "precision: share of the top k labels that are correct",
    "nDCG": "normalized discounted cumulative gain: higher ranks weigh more",
    "PSP": "propensity-scored precision: rare labels weigh more",
    "PSnDCG": "propensity-scored nDCG: rare labels weigh more",
    "R": "recall: share of a row’s true labels among the top k",
    "macro-F1": "mean over labels of F1, if the top k labels are predicted",
    "coverage": "share of the labels in the test rows that are found at least once",
}


def rendered(report: EvaluationReport) -> bytes:
    """The page as UTF-8."""
    sections = [
        ("summary", "Summary", _summary(report)),
        ("measures", "Measures", _measures(report)),
        ("tail", "Head to tail", _groups(report)),
        ("scores", "Scores", _scores(report)),
        ("labels", "Labels", _labels(report)),
        ("confused", "Confused labels", _confused(report)),
        ("map", "Label map", _label_map(report)),
        ("data", "Data and parameters", _data(report)),
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
    return text.encode("utf-8", "replace")  # a name may hold a lone surrogate, which UTF-8 cannot encode


def as_json(report: EvaluationReport) -> str:
    """The report's data as JSON for a script element; escaping keeps a name from closing the element."""
    text = json.dumps(_plain(report), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _plain(value: Any) -> Any:
    """Convert named tuples to dictionaries."""
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
        sentences.append(f"The top label is correct for {_percent(right.value)} % of the rows.")
    sentences.append(
        f"At the threshold of {chosen.threshold:.3g}, the model predicts {chosen.labels_a_row:.2f} labels "
        f"per row, where {data.labels_a_row:.2f} are true; {_percent(chosen.precision.value)} % of the "
        f"predicted labels are correct, and {_percent(chosen.recall.value)} % of the true labels are found."
    )
    if data.unseen:
        sentences.append(
            f"{_number(data.unseen_labels, 'label')} of the test rows had no training row and cannot be "
            "predicted; such labels make up "
            f"{_percent(data.unseen / (data.rows * data.labels_a_row))} % of all true labels."
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
            f"<p>The scores of {escape(report.method)} are {escape(report.scores)}. They rank labels and "
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
        beside = f" (The scores are {escape(report.scores)}; the curve shows the probabilities.)"
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
        return "<p>Where the top label is wrong, no known true label is missed.</p>"
    listed = "The most frequent are listed." if len(confused.pairs) < confused.n else ""
    table = _table(
        ["Top label, but wrong", "True, but not predicted", "Rows", "Of its test rows, %"],
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
        f"<p>In {_number(confused.wrong_rows, 'row')} the top label is wrong. It is paired with each true "
        f"label that did not reach the threshold: {_number(confused.n, 'pair')} of labels. {listed}</p>"
        f'<div class="narrow">{table}</div>'
    )


def _label_map(report: EvaluationReport) -> str:
    drawn = report.label_map
    if drawn is None:
        return f"<p>{escape(report.method)} has no label embeddings, so there is no label map.</p>"
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
            f"<code>{escape(setting.name)}</code>",
            f"<code>{escape(setting.value)}</code>"
            + (f' <span class="small">chosen: {escape(setting.chosen)}</span>' if setting.chosen else ""),
        )
        for setting in report.settings
    ]
    return (
        f'<div class="columns"><div><h3>Data</h3>{_pairs(sizes, "numbers")}</div>'
        f"<div><h3>Parameters of {escape(report.method)}</h3>{_pairs(settings)}</div></div>"
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
    """A table of cells that are HTML already; a first cell of class "number" aligns its column as numbers."""
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
