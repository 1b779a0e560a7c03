"""Write the tables of README and docs from the committed results, between their `<!-- table: … -->` marks.

python benchmarks/tables.py
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from exmlds.data import DATASETS

ROOT = Path(__file__).parent.parent
PAGES = tuple(ROOT / name for name in ("README.md", "docs/index.md", "docs/benchmarks.md"))
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


def scaling() -> str:
    figures = results("scaling")
    rows = [
        [
            f"{run['rows']:,}",
            f"{run['parts']}",
            f"{run['fit_seconds']:,.0f} s",
            f"{run['with_choices_seconds']:,.0f} s",
            f"{run['peak_bytes'] / 1e9:.1f} GB",
            f"{run['estimated_bytes'] / 1e9:.1f} GB",
            f"{run['ms_per_row']:.2f} ms",
            _precision(run),
        ]
        for run in figures["runs"]
    ]
    grown = figures["exponents"]
    powers = [f"n^{grown[key]:.2f}" for key in ("fit_seconds", "with_choices_seconds", "peak_bytes")]
    rows.append(["grows as", "", *powers, "", "", ""])
    columns = ["rows", "parts", "one fit", "with its choices", "peak", "`estimate`", "a row", "P@1/3/5"]
    return table(columns, rows)


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
    "ours": "exmlds",
    "parabel": "omikuji, Parabel",
    "bonsai": "omikuji, Bonsai",
    "plt": "napkinXC, PLT",
    "plt-3": "napkinXC, 3 PLTs",
    "pecos": "PECOS, XR-Linear",
    "one-vs-rest": "scikit-learn, one-vs-rest",
}


def peers() -> str:
    figures = results("peers")
    rows = []
    for name, data in figures["sets"].items():
        sizes = f"{data['train']:,} × {data['features']:,} × {data['labels']:,}"
        for peer, row in data["peers"].items():
            method = f"`{row['name']}()`" if "name" in row else PEERS[peer]
            if "missing" in row:
                rows.append([name, sizes, method, f"missing: {row['missing']}", *["–"] * 6])
                continue
            psp = "/".join(f"{100 * row[f'PSP@{k}']:.2f}" for k in (1, 3, 5))
            against = "<br>".join(
                f"{100 * d:+.2f} ({100 * low:+.2f} to {100 * high:+.2f})".replace("-", "−")
                for d, low, high in row.get("against", {}).values()
            )
            rows.append(
                [
                    name,
                    sizes,
                    method,
                    f"**{_precision(row)}**" if peer == "ours" else _precision(row),
                    psp,
                    against or "–",
                    f"{row['fit_seconds']:.1f} s",
                    f"{row['ms_per_row']:.2f}/{row['ms_one_row']:.2f} ms",
                    f"{row['peak_bytes'] / 1e9:.2f} GB",
                    f"{row['model_bytes'] / 1e6:.1f} MB",
                ]
            )
    columns = ["data set", "rows × features × labels", "method", "P@1/3/5", "PSP@1/3/5"]
    columns += ["ours less it, P@1, 3, 5, with 95% interval", f"fit, {figures['machine']['cores']} cores"]
    return table([*columns, "a row in batches/alone", "peak", "model"], rows)


def ahead(n_sets: int | None = None) -> str:
    """Compare ours with the system that has the best mean of P@1, P@3 and P@5.

    n_sets : only so many data sets, those with the most labels
    """
    sets = results("peers")["sets"]
    rows = []
    for name in sorted(sets, key=lambda name: -sets[name]["labels"])[:n_sets]:
        entries = {key: row for key, row in sets[name]["peers"].items() if "missing" not in row}
        ours = entries.pop("ours")
        best = max(entries, key=lambda key: sum(entries[key][f"P@{k}"] for k in (1, 3, 5)))
        cells = [name, f"{sets[name]['labels']:,}", f"**{_precision(ours)}**", f"{ours['fit_seconds']:.0f} s"]
        cells += [PEERS[best], _precision(entries[best]), f"{entries[best]['fit_seconds']:.0f} s"]
        rows.append(cells)
    fit = f"fit, {results('peers')['machine']['cores']} cores"
    columns = ["data set", "labels", "`ExMLDS()`, P@1/3/5", fit, "most accurate peer", "P@1/3/5", fit]
    return table(columns, rows)


def first() -> str:
    return ahead(3)


def differences() -> str:
    """Count how often ours has the higher P@1, P@3 or P@5, and how often that could be chance."""
    rows = [row for data in results("peers")["sets"].values() for row in data["peers"].values()]
    found = [difference for row in rows for difference in row.get("against", {}).values()]
    ahead, open_ = sum(d > 0 for d, _, _ in found), sum(low <= 0 <= high for _, low, high in found)
    return (
        f"With default settings, `ExMLDS()` has the higher P@1, P@3 or P@5 in {ahead} of {len(found)} "
        f"comparisons with other systems; the 95% interval of {open_} differences includes zero."
    )


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
            f"**{ours['F1']:.3f}**",
            f"**{100 * ours['P@1']:.2f}**",
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


TABLES = {
    "first": first,
    "differences": differences,
    "ahead": ahead,
    "splits": splits,
    "texts": texts,
    "peers": peers,
    "joint": joint,
    "speed": speed,
    "startup": startup,
    "paper": paper,
    "family": family,
    "missing": missing,
    "scaling": scaling,
    "baselines": baselines,
    "fuzz": fuzz,
}


def fill(text: str) -> str:
    """Return the text with every table between its marks regenerated."""
    for name, make in TABLES.items():
        mark = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", re.S)
        if mark.search(text):
            text = mark.sub(rf"\g<1>{make()}\n\g<2>", text)
    return text


def main() -> None:
    for page in PAGES:
        page.write_text(fill(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
