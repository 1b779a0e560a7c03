"""Write the tables of README and docs from the committed results, between their `<!-- table: … -->` marks.

python benchmarks/tables.py
"""

from __future__ import annotations

import json
import re
from math import log, sqrt
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from exmlds.data.registry import DATASETS, DatasetInfo

ROOT = Path(__file__).parent.parent
PAGES = tuple(
    ROOT / "docs" / name
    for name in ("../README.md", "index.md", "benchmarks.md", "performance.md", "the-paper.md")
)
NOT_PUBLISHED = DatasetInfo(0, 0, 0, 0)
PAPER_HIDDEN = ("ExMLDS3", "SLEEC", "LEML", "LEML-IMC")

# Measured with the original on 2 cores and the same files; it is no longer available as a package.
ANNEXML = {
    "eurlex-4k": "80.07/64.18/52.64, 466 s, 2.8 ms, 84 MB",
    "delicious": "64.57/59.00/54.21, 141 s, 46 MB",
}


def results(name: str) -> dict[str, Any]:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))


def table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def speed() -> str:
    reading, metrics = results("reading"), results("metrics")
    rows = [
        [
            f"reading EURLex-4K, {reading['megabytes']:.0f} MB of text, one thread",
            f"{reading['seconds']:.2f} s",
            f"scikit-learn's svmlight reader {reading['scikit_learn_seconds']:.2f} s",
            f"**{reading['times_as_fast']:.1f}×**",
            f"{reading['different_features']} values differ; peak memory "
            f"{reading['peak_over_matrices']:.1f}× the matrices",
        ],
        [
            f"all metrics at 1, 3, 5 on {metrics['peer_rows']:,} rows × {metrics['labels']:,} labels",
            f"{1000 * metrics['seconds_on_peer_rows']:.0f} ms",
            f"napkinXC's {1000 * metrics['napkinxc_seconds']:,.0f} ms",
            f"**{metrics['times_as_fast']:.0f}×**",
            f"largest difference {metrics['largest_difference']:.0e}; a million rows take "
            f"{metrics['seconds']:.1f} s",
        ],
    ]
    return table(["what", "exmlds", "peer, same run", "times as fast", "beside it"], rows)


def startup() -> str:
    rows = [
        [f"`{command}`", f"{figures['wall_seconds']:.2f} s", f"{figures['cpu_seconds']:.2f} s"]
        for command, figures in results("startup")["commands"].items()
    ]
    return table(["command", "wall", "CPU"], rows)


def baselines() -> str:
    rows = []
    for row in results("baselines")["rows"]:
        sizes = f"{row['train']:,} × {row['features']:,} × {row['labels']:,}"
        psp = "/".join(f"{100 * row[f'PSP@{k}']:.2f}" for k in (1, 3, 5))
        timing = [f"{row['fit_seconds']:.1f} s", f"{row['ms_per_row']:.2f} ms"]
        rows.append([row["data"], sizes, row["method"], _precision(row), psp, *timing])
    cores = results("baselines")["machine"]["cores"]
    columns = ["data set", "rows × features × labels", "method", "P@1/3/5", "PSP@1/3/5"]
    return table([*columns, f"fit, {cores} cores", "a row"], rows)


def paper() -> str:
    figures = results("paper-test")
    rows = []
    for name, variants in figures["sets"].items():
        info, default, fixed = DATASETS[name], variants["default"], variants["fixed"]
        error = "/".join(f"{100 * e:.2f}" for e in default["standard_error"].values())
        rows.append(
            [
                name,
                f"{default['train']:,} × {default['features']:,} × {default['labels']:,}",
                "/".join(f"{p:.2f}" for p in info.paper["ExMLDS1"]),
                _precision(variants["paper"]),
                f"**{_precision(default)}** ± {error}",
                f"{info.paper_seconds['ExMLDS1']:,.0f} s",
                f"{fixed['fit_seconds']:.1f} s",
                f"{default['fit_seconds']:.0f} s",
                f"{default['ms_per_row']:.2f}/{default['ms_one_row']:.1f} ms",
                f"{default['peak_bytes'] / 1e9:.1f} GB",
            ]
        )
    cores = figures["machine"]["cores"]
    columns = [
        "data set",
        "rows × features × labels",
        "the paper's ExMLDS1",
        "`ExMLDS1.paper()`",
        "`ExMLDS1()`",
    ]
    columns += [
        "paper, 40 cores",
        f"one fit, {cores} cores",
        "with its choices",
        "a row in batches/alone",
        "peak",
    ]
    return table(columns, rows)


def _precision(row: dict[str, Any]) -> str:
    return "/".join(f"{100 * row[f'P@{k}']:.2f}" for k in (1, 3, 5))


def missing() -> str:
    rows = []
    for name, known in results("missing-test")["sets"].items():
        paper, here = DATASETS[registered(name)].paper_hidden, [known[k]["0.8"] for k in ("full", "visible")]
        error = "/".join(f"{100 * e:.2f}" for e in here[0]["standard_error"].values())
        rows.append(
            [
                name,
                *("/".join(f"{p:.2f}" for p in paper[method]) for method in PAPER_HIDDEN),
                f"**{_precision(here[0])}** ± {error}",
                f"**{_precision(here[1])}**",
                _precision(known["full"]["0.0"]),
                f"{here[0]['fit_seconds']:.0f} s",
            ]
        )
    columns = ["data set", *(f"the paper's {method}" for method in PAPER_HIDDEN)]
    columns += ["`ExMLDS3()`, C of all labels", "C of the visible ones", "nothing hidden", "fit"]
    return table(columns, rows)


def registered(name: str) -> str:
    return next(key for key, info in DATASETS.items() if (info.folder or key) == name)


def family() -> str:
    rows = []
    for name, methods in results("family-test")["sets"].items():
        seconds = DATASETS[name].paper_seconds
        for method, row in methods.items():
            error = "/".join(f"{100 * e:.2f}" for e in row["standard_error"].values())
            took = f"{seconds[method]:,.0f} s" if method in seconds else "–"
            times = [f"{row['fit_seconds']:.0f} s", f"{row['ms_per_row']:.2f}/{row['ms_one_row']:.1f} ms"]
            rows.append([name, method, f"{_precision(row)} ± {error}", took, *times])
    columns = ["data set", "method", "P@1/3/5", "paper, 40 cores", "with its choices, 2 cores"]
    return table([*columns, "a row in batches/alone"], rows)


def joint() -> str:
    rows = []
    for name, row in results("joint-test")["sets"].items():
        error = "/".join(f"{100 * e:.2f}" for e in row["standard_error"].values())
        ndcg = "/".join(f"{100 * row[f'nDCG@{k}']:.2f}" for k in (1, 3, 5))
        times = [f"{row['fit_seconds']:.1f} s", f"{row['with_choices_seconds']:.0f} s"]
        sizes = [f"{row['ms_per_row']:.2f} ms", f"{row['model_bytes'] / 1e6:.1f} MB"]
        annexml = ANNEXML.get(name, "–")
        rows.append([name, annexml, f"**{_precision(row)}** ± {error}", ndcg, *times, *sizes])
    columns = ["data set", "AnnexML, 15 learners", "P@1/3/5", "nDCG@1/3/5", "one fit, 2 cores"]
    return table([*columns, "with its choices", "a row", "model"], rows)


PEERS = {
    "ours-fast": '`ExMLDS(effort="fast")`',
    "ours": "`ExMLDS()`",
    "ours-best": '`ExMLDS(effort="best")`',
    "pecos": "PECOS, XR-Linear",
    "parabel": "omikuji, Parabel",
    "bonsai": "omikuji, Bonsai",
    "plt": "napkinXC, PLT",
    "plt-3": "napkinXC, 3 PLTs",
    "one-vs-rest": "scikit-learn, one-vs-rest",
    "ridge": "ridge regression",
}
OURS = tuple(peer for peer in PEERS if peer.startswith("ours"))


def by_labels() -> dict[str, Any]:
    """The sets of the comparison, those with the most labels first, each with its methods in order."""
    sets = results("peers")["sets"]
    return {
        name: {
            **sets[name],
            "peers": {peer: sets[name]["peers"][peer] for peer in PEERS if peer in sets[name]["peers"]},
        }
        for name in sorted(sets, key=lambda name: -sets[name]["labels"])
    }


def measured(data: dict[str, Any]) -> dict[str, Any]:
    return {peer: row for peer, row in data["peers"].items() if "missing" not in row}


def peers() -> str:
    """A section for each data set: accuracy, times and sizes of all methods."""
    cores = results("peers")["machine"]["cores"]
    columns = ["method", "P@1/3/5", f"fit, {cores} cores", "PECOS = 1", "ms per row in batches/alone"]
    columns += ["peak memory", "model"]
    sections = []
    for name, data in by_labels().items():
        rows = []
        for peer, row in measured(data).items():
            precision = f"**{_precision(row)}**" if peer == "ours" else _precision(row)
            times = [_seconds(row["fit_seconds"]), _times_pecos(row, data)]
            times += [f"{_ms(row['ms_per_row'])}/{_ms(row['ms_one_row'])}"]
            sizes = [_bytes(row["peak_bytes"]), _bytes(row["model_bytes"])]
            rows.append([PEERS[peer], precision, *times, *sizes])
        title = (
            f"### {name}: {data['train']:,} rows × {data['features']:,} features × {data['labels']:,} labels"
        )
        sections += [title, table(columns, rows), _runs(data)]
    return "\n" + "\n\n".join(sections) + "\n"


def _seconds(seconds: float) -> str:
    digits = 2 if seconds < 1 else 1 if seconds < 100 else 0
    return f"{seconds:,.{digits}f} s"


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:.2f}" if milliseconds < 10 else f"{milliseconds:,.0f}"


def _bytes(size: float) -> str:
    return f"{size / 1e9:.2f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"


def _times_pecos(row: dict[str, Any], data: dict[str, Any]) -> str:
    """The seconds of a fit as a multiple of PECOS's, in the same turn where that was measured."""
    pecos = measured(data).get("pecos")
    if pecos is None:
        return "–"
    times = row.get("times_pecos", row["fit_seconds"] / pecos["fit_seconds"])
    return f"{times:.1f}" if times < 10 else f"{times:,.0f}"


def _runs(data: dict[str, Any]) -> str:
    """How often the methods were run and when, and why some are missing."""
    found = measured(data)
    seeds = [row["seeds"] for row in found.values()]
    usual = max(set(seeds), key=lambda n: (seeds.count(n), n))
    exceptions = [
        f"{n} of {', '.join(PEERS[peer] for peer in found if found[peer]['seeds'] == n)}"
        for n in sorted(set(seeds) - {usual}, reverse=True)
    ]
    dates = sorted({row["measured"]["date"] for row in found.values()})
    said = f"Runs: {'; '.join([f'{usual} of each method', *exceptions])}."
    said = said.replace("each method;", "each method, except")
    said += f" Measured on {' to '.join(dict.fromkeys((dates[0], dates[-1])))}."
    for peer, row in data["peers"].items():
        if "missing" in row:
            said += f" Missing: {PEERS[peer]} ({row['missing']})."
    return said


def psp() -> str:
    """A section for each data set: propensity-scored precision, and the differences to ours."""
    columns = ["method", "PSP@1/3/5", *(f"`ExMLDS()` less it, P@{k}" for k in (1, 3, 5))]
    sections = []
    for name, data in by_labels().items():
        rows = []
        for peer, row in measured(data).items():
            scored = "/".join(f"{100 * row[f'PSP@{k}']:.2f}" for k in (1, 3, 5))
            differences = [_difference(*found) for found in row.get("against", {}).values()]
            rows.append([PEERS[peer], scored, *(differences or ["–"] * 3)])
        sections += [f"### Differences on {name}", table(columns, rows)]
    return "\n" + "\n\n".join(sections) + "\n"


def _difference(value: float, *interval: float) -> str:
    """A difference in percentage points with its 95% interval, if there is one."""
    ends = " to ".join(f"{100 * end:+.2f}" for end in interval)
    return (f"{100 * value:+.2f}" + (f" ({ends})" if ends else "")).replace("-", "−")


def ahead(n_sets: int | None = None) -> str:
    """Compare ours with the system that has the best mean of P@1, P@3 and P@5.

    n_sets : only so many data sets, those with the most labels
    """
    rows = []
    for name, data in by_labels().items():
        entries = measured(data)
        others = {peer: row for peer, row in entries.items() if peer not in OURS}
        if "ours" not in entries or not others:
            continue
        ours = entries["ours"]
        best = max(others, key=lambda key: sum(others[key][f"P@{k}"] for k in (1, 3, 5)))
        cells = [name, f"{data['labels']:,}", f"**{_precision(ours)}**", _seconds(ours["fit_seconds"])]
        cells += [PEERS[best], _precision(others[best]), _seconds(others[best]["fit_seconds"])]
        rows.append(cells)
    fit = f"fit, {results('peers')['machine']['cores']} cores"
    columns = ["data set", "labels", "`ExMLDS()`, P@1/3/5", fit, "most accurate peer", "P@1/3/5", fit]
    return table(columns, rows[:n_sets])


def first() -> str:
    return ahead(3)


def differences() -> str:
    """Count how often ours has the higher P@1, P@3 or P@5, and how often that could be chance."""
    sets = results("peers")["sets"].values()
    rows = [row for data in sets for peer, row in data["peers"].items() if peer not in OURS]
    found = [difference for row in rows for difference in row.get("against", {}).values()]
    ahead, open_ = sum(d > 0 for d, _, _ in found), sum(low <= 0 <= high for _, low, high in found)
    return (
        f"With default settings, `ExMLDS()` has the higher P@1, P@3 or P@5 in {ahead} of {len(found)} "
        f"comparisons with other systems; the 95% interval of {open_} differences includes zero."
    )


SERIES = {
    "titles": "Titles of yso-finna-en",
    "synthetic-titles": "Synthetic titles",
    "abstracts": "Synthetic abstracts",
}


def scaling() -> str:
    """A section for each series: times and memory by the number of rows, and their exponents."""
    columns = ["rows", "method", "fit", "PECOS = 1", "peak memory", "ms per row", "P@1/3/5"]
    sections = []
    for name, series in results("scaling")["series"].items():
        rows = []
        for n in sorted({run["rows"] for run in series["runs"]}):
            runs = {run["system"]: run for run in series["runs"] if run["rows"] == n}
            for peer in (peer for peer in PEERS if peer in runs):
                run = runs[peer]
                if "missing" in run:
                    rows.append([f"{n:,}", PEERS[peer], f"missing: {run['missing']}", *["–"] * 4])
                    continue
                times = [_seconds(run["fit_seconds"]), _times_pecos(run, {"peers": runs})]
                sizes = [_bytes(run["peak_bytes"]), _ms(run["ms_per_row"])]
                rows.append([f"{n:,}", PEERS[peer], *times, *sizes, _precision(run)])
        for peer in (peer for peer in PEERS if peer in series["exponents"]):
            power = {key: f"n^{value:.2f}" for key, value in series["exponents"][peer].items()}
            rows.append(["grows as", PEERS[peer], power["fit_seconds"], "", power["peak_bytes"], "", ""])
        title = (
            f"### {SERIES[name]}: {series['features']:,} features × {series['labels']:,} labels, "
            f"{series['features_per_row']:.0f} features per row"
        )
        sections += [title, table(columns, rows)]
    return "\n" + "\n\n".join(sections) + "\n"


def splits() -> str:
    found = results("splits")
    rows = []
    for method, kinds in found["methods"].items():
        means = {kind: _precision({k: v["mean"] for k, v in row.items()}) for kind, row in kinds.items()}
        spread = "/".join(f"{100 * kinds['random'][f'P@{k}']['sd']:.1f}" for k in (1, 3, 5))
        rows.append([f"`{method}()`", means["given"], f"{means['random']} (standard deviation {spread})"])
    return table([found["set"], "P@1/3/5, fixed split", f"{found['seeds']} random splits of all rows"], rows)


def texts() -> str:
    found, streamed = results("texts"), results("texts-long")
    ours, machine = found["ours"], found["support_vector_machine"]
    rows = [
        [
            "`TextClassifier()`, defaults",
            f"**{ours['F1']:.3f}** ± {ours['standard_error']['F1']:.3f}",
            f"**{100 * ours['P@1']:.2f}** ± {100 * ours['standard_error']['P@1']:.2f}",
            f"fitted in {found['fit_seconds']:.0f} s, a text explained in {found['explain_ms']:.0f} ms",
        ],
        [
            f"tf-idf, a linear support vector machine a label, C = {machine['C']:g}",
            f"{machine['F1']:.3f}",
            f"{100 * machine['P@1']:.2f}",
            "C and counts chosen on a fifth of the training texts",
        ],
    ]
    own = streamed["peak_bytes"] - streamed["bytes_before"]
    size, minutes = streamed["file_bytes"] / 1e9, streamed["seconds"] / 60
    note = (
        f"{streamed['texts']:,} made-up texts, {size:.1f} GB of JSON lines, become vectors in {minutes:.0f} "
        f"minutes (`--long 2`); the process grows by {own / 1e9:.1f} GB: the vectors and their making, not "
        "the texts."
    )
    return table(["Reuters-21578 from its texts", "micro-F1", "P@1", "beside it"], rows) + f"\n\n{note}"


ANNIF = {
    "ours": "`TextClassifier(vocabulary=…)`",
    "omikuji": "Annif, Omikuji",
    "mllm": "Annif, MLLM",
    "ensemble": "Annif, ensemble",
    "nn-ensemble": "Annif, neural ensemble",
}


def annif() -> str:
    """A section for each data set: accuracy and times of ours and of Annif; nothing before it is measured."""
    try:
        found = results("annif")
    except FileNotFoundError:
        return ""
    columns = ["system", "P@1/3/5", "nDCG@10", *(f"ours less it, {name}" for name in ("P@1", "nDCG@10"))]
    columns += [f"fit, {found['machine']['cores']} cores", "ms per document"]
    sections = []
    for name, data in found["sets"].items():
        rows, missing = [], []
        for system, row in data["systems"].items():
            if "missing" in row:
                missing.append(f"Missing: {ANNIF[system]} ({row['missing']}).")
                continue
            precision = f"**{_precision(row)}**" if system == "ours" else _precision(row)
            against = row.get("against", {})
            differences = [_difference(*against[key]) if against else "–" for key in ("P@1", "nDCG@10")]
            times = [_seconds(row["fit_seconds"]), _ms(row["ms_per_row"])]
            rows.append([ANNIF[system], precision, f"{100 * row['nDCG@10']:.2f}", *differences, *times])
        title = (
            f"### Annif on {name}: {data['train']:,} titles × {data['labels']:,} labels, {data['names']:,} "
            "names"
        )
        trained = (
            f"MLLM was trained on {data['mllm_rows']:,} titles, and the neural ensemble on "
            f"{data['ensemble_rows']:,}. {data['test']:,} were predicted."
        )
        sections += [title, table(columns, rows), " ".join([trained, *missing])]
    return "\n" + "\n\n".join(sections) + "\n"


def names() -> str:
    """What names add on each set, and the labels that were hidden from training."""
    found = results("names")["sets"]
    rows = []
    for name, data in found.items():
        plain, named = data["without"], data["with"]
        rows.append(
            [
                f"{name}, {data['train']:,} titles, {data['concepts']:,} concepts",
                "/".join(f"{plain[key]:.2f}" for key in ("P@1", "P@3", "P@5")),
                f"**{'/'.join(f'{named[key]:.2f}' for key in ('P@1', 'P@3', 'P@5'))}**",
                f"{_seconds(plain['fit_seconds'])}, {_seconds(named['fit_seconds'])} ({data['times']:.2f}×)",
                f"{_ms(plain['ms_one_text'])}, {_ms(named['ms_one_text'])}",
            ]
        )
    hidden = [
        [
            name,
            f"{data['hidden']['pairs']:,}",
            f"{100 * data['hidden']['named']:.1f}%",
            f"{100 * data['hidden']['named_in_ten']:.1f}%",
            f"{100 * data['hidden']['wrong_first']:.2f}%",
        ]
        for name, data in found.items()
    ]
    columns = ["P@1/3/5", "without names", "with names", "fit", "ms, one text"]
    hidden_columns = ["2,000 hidden labels", "true pairs", "named in the text", "of these in the first ten"]
    return f"{table(columns, rows)}\n\n{table([*hidden_columns, 'of wrong first labels'], hidden)}"


def hidden_labels() -> str:
    """Labels that were hidden from training, on validation splits."""
    try:
        sets = results("names-validation")["sets"]
    except FileNotFoundError:
        return ""
    rows = []
    for name, data in sets.items():
        splits = data["hidden_on_splits"]
        shares = [100 * split["named_in_ten"] for split in splits]
        named = round(sum(split["pairs"] * split["named"] for split in splits))
        wrong = 100 * mean(split["wrong_first"] for split in splits)
        share = f"{mean(shares):.1f} ± {_standard_error(shares):.1f}%"
        rows.append([name, str(len(splits)), f"{named:,}", share, f"{wrong:.2f}%"])
    columns = ["2,000 hidden labels", "splits", "pairs named in the text", "of these in the first ten"]
    return table([*columns, "of wrong first labels"], rows)


def vocabularies() -> str:
    """Seconds and memory of reading a large vocabulary."""
    found = results("vocabularies")
    rows = [
        [
            {"tsv": "TSV, a file a language", "turtle": "SKOS in Turtle"}[format],
            f"{row['concepts']:,}",
            f"{row['names']:,}",
            _bytes(row["bytes"]),
            _seconds(row["seconds"]),
            _bytes(row["peak_bytes"]),
        ]
        for format, row in found["formats"].items()
    ]
    return table(["vocabulary", "concepts", "names", "file", "read in", "peak"], rows)


def growth() -> str:
    """Models that grew beside models that were fitted to all rows at once."""
    rows = []
    for name, data in results("growth")["sets"].items():
        full, grown = (
            "/".join(f"{data[key][p]:.2f}" for p in ("P@1", "P@3", "P@5")) for key in ("full", "grown")
        )
        hidden = " and ".join(f"{100 * data['hidden'][key]:.1f}%" for key in ("full", "grown"))
        times = f"{_seconds(data['fit_seconds'])}, {100 * data['batch']:.1f}%, {100 * data['growing']:.1f}%"
        rows.append([name, full, grown, hidden, times, _ms(data["one_row"]), f"{data['slower']:.2f}×"])
    columns = ["P@1/3/5", "one fit", "grown", "recall@5 of new labels", "fit, batches of 1%", "ms, one row"]
    return table([*columns, "before merging"], rows)


def growth_validation() -> str:
    """The differences of the same on validation splits, with their standard errors over the splits."""
    try:
        sets = results("growth-validation")["sets"]
    except FileNotFoundError:
        return ""
    rows = []
    for name, data in sets.items():
        runs = data["runs"]
        differences = [
            _signed([run["grown"][p] - run["full"][p] for run in runs]) for p in ("P@1", "P@3", "P@5")
        ]
        recall = f"{data['hidden']['grown'] / data['hidden']['full']:.2f}"
        batches = f"{100 * data['batch']:.1f}%, {100 * data['growing']:.1f}%"
        times = [batches, _ms(data["one_row"]), f"{data['slower']:.2f}×"]
        rows.append([name, str(len(runs)), *differences, recall, *times])
    columns = ["grown less one fit", "splits", "P@1", "P@3", "P@5", "recall@5 of new labels, grown / one fit"]
    return table([*columns, "batches of 1%", "ms, one row", "before merging"], rows)


def _signed(values: list[float]) -> str:
    """The mean with its sign, and its standard error."""
    return f"{mean(values):+.2f} ± {_standard_error(values):.2f}".replace("-", "−")


def _standard_error(values: list[float]) -> float:
    return stdev(values) / sqrt(len(values))


def parts() -> str:
    """Partitioned models beside one model of all rows."""
    rows = []
    for name, systems in results("cluster")["quality, test"].items():
        for system, row in systems.items():
            precisions = "/".join(f"{row[p]:.2f}" for p in ("P@1", "P@3", "P@5"))
            rows.append([name, system, precisions, _seconds(row["fit_seconds"]), _ms(row["ms_per_row"])])
    return table(["data set", "model", "P@1/3/5", "fit, one part after the other", "ms, a row"], rows)


def workers() -> str:
    """The stages of the same fit on one worker and on two."""
    rows = []
    for name, data in results("cluster").get("workers", {}).items():
        one, two = data["1"], data["2"]
        for stage, single in one["stages"].items():
            pair = [single, two["stages"][stage]]
            tasks = "" if stage == "driver" else f"{single['tasks']:,}"
            ratio = f"{pair[0]['seconds'] / pair[1]['seconds']:.2f}×"
            times = [f"{figures['seconds']:.2f} s" for figures in pair]
            cpu = [f"{figures['cpu_seconds']:.1f} s" for figures in pair]
            rows.append([name, stage, tasks, *times, ratio, *cpu])
        for title, key in (("**all**", "fit_seconds"), ("**with the start of the workers**", "seconds")):
            seconds = [run[key] for run in (one, two)]
            total = [f"**{value:.1f} s**" for value in seconds]
            rows.append([name, title, "", *total, f"**{seconds[0] / seconds[1]:.2f}×**", "", ""])
    columns = ["data set", "stage", "tasks", "1 worker", "2 workers", "times as fast"]
    return table([*columns, "CPU, 1 worker", "CPU, 2 workers"], rows) if rows else ""


def card() -> str:
    """Real data on a graphics card and on the CPU beside it."""
    found = results("gpu")
    rows = []
    measured = [*found["sets"].items(), *found["family"].items()]
    for name, systems in measured:
        for system, row in systems.items():
            method, where = system.split()
            rows.append(
                [
                    name,
                    f"`{method}`",
                    "card" if where == "cuda" else f"CPU, {found['machine']['cores']} cores",
                    "/".join(f"{row[p]:.2f}" for p in ("P@1", "P@3", "P@5")),
                    f"{row['fit_seconds']:.2f} s",
                    f"{row['batch_us_per_row']:.0f} µs",
                ]
            )
    columns = ["data set", "method", "on", "P@1/3/5", "fit", "a row, in batches of 1,000"]
    return table(columns, rows)


def made_up_on_card() -> str:
    """Large made-up data on a graphics card."""
    rows = []
    for name, row in results("gpu").items():
        if name.split()[0] not in ("amazon", "large"):
            continue
        sizes = f"{row['rows']:,} × {row['features']:,} × {row['labels']:,}"
        predicted = f"{row['queries']:,} in {row['predict_seconds']:.1f} s"
        peaks = [f"{row[key] / 1e9:.0f} GB" for key in ("peak_card_bytes", "peak_host_bytes")]
        rows.append([sizes, _seconds(row["fit_seconds"]), predicted, *peaks])
    return table(["rows × features × labels", "fit", "rows predicted", "peak, card", "peak, host"], rows)


def expected_seconds(run: dict[str, Any], n_workers: int, ms_per_task: float) -> float:
    """The seconds of a fit on so many workers, from the CPU seconds of its stages.

    A stage takes its CPU seconds divided by the workers, but no less than its longest task: that of the
    largest part, or an equal share for tasks of shards. The driver and the router do not get faster.
    """
    total = 0.0
    for stage, figures in run["stages"].items():
        if stage == "driver":
            total += figures["seconds"]
            continue
        largest = run["largest_part"] if stage == "fitting parts" else 1.0
        longest = min(largest / figures["tasks"], 1.0) * figures["cpu_seconds"]
        total += max(figures["cpu_seconds"] / n_workers, longest) + figures["tasks"] * ms_per_task / 1000
    return total


def more_workers() -> str:
    """What is to be expected of more workers than were measured."""
    found = results("cluster")
    if "scheduler" not in found:
        return ""
    ms_per_task = 1000 * found["scheduler"]["seconds"] / found["scheduler"]["tasks"]
    runs = [(f"{name}, {data['rows']:,} rows", data["1"]) for name, data in found.get("workers", {}).items()]
    made_up = sorted(found.get("memory", {}).values(), key=lambda run: run["rows"])
    runs += [(f"made-up, {run['rows']:,} rows", run) for run in made_up[-1:]]
    rows = []
    for name, run in runs:
        stages = run["stages"]
        serial = stages["driver"]["seconds"] + stages["learning the router"]["cpu_seconds"]
        times = [expected_seconds(run, n_workers, ms_per_task) for n_workers in (1, 2, 8, 32, 128)]
        gains = [f"{seconds:,.0f} s, {times[0] / seconds:.1f}×" for seconds in times[1:]]
        parts = stages["fitting parts"]["tasks"]
        rows.append([name, str(parts), f"{times[0]:,.0f} s", f"{100 * serial / times[0]:.1f}%", *gains])
    columns = ["data", "parts", "1 worker", "not parallel", "2 workers", "8 workers", "32 workers"]
    return table([*columns, "128 workers"], rows) if rows else ""


def in_little_memory() -> str:
    """Fits to made-up rows by workers with little memory."""
    rows = []
    made_up = sorted(results("cluster").get("memory", {}).values(), key=lambda run: run["rows"])
    for run in made_up:
        cpu = sum(figures["cpu_seconds"] for figures in run["stages"].values())
        rows.append(
            [
                f"{run['rows']:,}",
                f"{run['shards']}",
                f"{run['parts']}",
                f"{run['fit_seconds']:,.0f} s",
                f"{cpu:,.0f} s",
                " and ".join(f"{peak / 1e9:.2f}" for peak in run["worker_peak_bytes"]) + " GB",
                f"{run['driver_peak_bytes'] / 1e9:.2f} GB",
                f"{run['model_bytes'] / 1e9:.1f} GB",
                f"{run['disk_peak_bytes'] / 1e9:.1f} GB",
                f"{run['rows_per_second']:,}",
            ]
        )
    if len(made_up) > 1:
        first, last = made_up[0], made_up[-1]
        cpus = [sum(each["cpu_seconds"] for each in run["stages"].values()) for run in (first, last)]
        growth = log(last["rows"] / first["rows"])
        exponents = [
            log(last["fit_seconds"] / first["fit_seconds"]) / growth,
            log(cpus[1] / cpus[0]) / growth,
        ]
        rows.append(["grows as", "", "", *(f"n^{exponent:.2f}" for exponent in exponents), *[""] * 5])
    columns = ["rows", "shards", "parts", "fit", "CPU", "peak of the workers", "of the driver", "model"]
    return table([*columns, "largest use of disk", "rows predicted a second"], rows) if rows else ""


def fuzz() -> str:
    """The sums of all runs of the fuzzer; a kind that has not been run yet has no row."""
    kinds = {
        "readers": "files for the readers",
        "commands": "commands in one process",
        "models": "damaged models",
    }
    rows = []
    for kind, words in kinds.items():
        found = results("fuzz").get(kind)
        if found:
            outcomes = ", ".join(
                f"{name}: {n:,}" for name, n in found["outcomes"].items() if name != "failure"
            )
            growth = f"{found['memory_growth_mb']:.0f} MB"
            rows.append([words, f"{found['cases']:,}", outcomes, f"{found['failures']:,}", growth])
    return table(["random input", "cases", "outcomes", "failures", "growth of memory"], rows)


def the_paper(number: int, splits: dict[str, str]) -> str:
    """A table of the paper: its figures beside ours, by set and system; splits : their columns' titles."""
    rows = []
    for name, entries in results("tables-of-the-paper-test")["sets"].items():
        info = DATASETS.get(name, NOT_PUBLISHED)
        published = info.paper_hidden if number == 4 else info.paper
        found = {split: entries.get(f"table {number}, {split}", {}) for split in splits}
        for system in dict.fromkeys(system for own in found.values() for system in own):
            cells = [found[split].get(system) for split in splits]
            seconds = next(cell["fit_seconds"] for cell in cells if cell)
            paper = "/".join(f"{p:.2f}" for p in published[system]) if system in published else "–"
            rows.append([name, system, paper, *map(_with_error, cells), f"{seconds:.1f} s"])
    return table(["data set", "system", "the paper", *splits.values(), "fit"], rows)


def joint_learning() -> str:
    """The paper's Table 5, on other sets; the original AnnexML was measured on them."""
    rows = []
    for name, entries in results("tables-of-the-paper-test")["sets"].items():
        for system, row in entries.get("table 5, fixed", {}).items():
            original = ANNEXML.get(name, "–") if system == "AnnexML" else "–"
            seconds = f"{row['fit_seconds']:.0f} s"
            rows.append([name, system, original, _with_error(row), str(row["seeds"]), seconds])
    return table(["data set", "system", "the original, 15 learners", "here", "seeds", "fit"], rows)


def _with_error(row: dict[str, Any] | None) -> str:
    if row is None:
        return "–"
    error = "/".join(f"{100 * e:.2f}" for e in row["standard_error"].values())
    return f"{_precision(row)} ± {error}"


def the_paper_seconds() -> str:
    """The paper's Table 2."""
    rows = []
    for name, entries in results("tables-of-the-paper-test")["sets"].items():
        for system, row in entries.get("table 2, fixed", {}).items():
            published = DATASETS[name].paper_seconds[system]
            ours = row["fit_seconds"]
            rows.append([name, system, f"{published:,.0f} s", f"{ours:.1f} s", f"{published / ours:.0f}×"])
    return table(["data set", "system", "the paper, 40 cores", "here, 2 cores", "times as fast"], rows)


TABLES = {
    "paper2": the_paper_seconds,
    "paper3": lambda: the_paper(3, {"fixed": "here, fixed split", "random": "here, random splits"}),
    "paper4": lambda: the_paper(4, {"fixed": "here"}),
    "paper5": joint_learning,
    "first": first,
    "differences": differences,
    "ahead": ahead,
    "splits": splits,
    "texts": texts,
    "names": names,
    "hidden": hidden_labels,
    "vocabularies": vocabularies,
    "annif": annif,
    "peers": peers,
    "psp": psp,
    "joint": joint,
    "speed": speed,
    "startup": startup,
    "paper": paper,
    "family": family,
    "missing": missing,
    "scaling": scaling,
    "baselines": baselines,
    "growth": growth,
    "growthsplits": growth_validation,
    "parts": parts,
    "workers": workers,
    "expected": more_workers,
    "outofcore": in_little_memory,
    "card": card,
    "bigcard": made_up_on_card,
    "fuzz": fuzz,
}


def fill(text: str) -> str:
    """Return the text with every table between its marks regenerated."""
    for name, make in TABLES.items():
        mark = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", re.S)
        if mark.search(text) and (made := make()):
            text = mark.sub(rf"\g<1>{made}\n\g<2>", text)
    return text


def main() -> None:
    for page in PAGES:
        page.write_text(fill(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
