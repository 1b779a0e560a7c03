"""Draw the figures of README and docs from the committed results, as self-contained SVG.

python benchmarks/figures.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

from exmlds.data import DATASETS
from tables import OURS, PEERS, ROOT, SERIES, by_labels, measured, registered, results

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, GAP = 250, 170, 40, 34, 40, 26
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#57606a}.title{font-weight:600}.grid{stroke:#8883}"
    ".full{stroke:#0969da;fill:none;stroke-width:2}.visible{stroke:#cf222e;fill:none;stroke-width:2;"
    "stroke-dasharray:5 3}.paper{fill:#8250df}"
)
COLORS = {
    "ours-fast": "#ff8182",
    "ours": "#cf222e",
    "ours-best": "#82071e",
    "pecos": "#8250df",
    "parabel": "#0969da",
    "bonsai": "#54aeff",
    "plt": "#1a7f37",
    "plt-3": "#4ac26b",
    "one-vs-rest": "#9a6700",
    "ridge": "#6e7781",
}
ACROSS, PANEL = 3, 196  # panels side by side and their width: 12 px stay 12 px in a window of 1280 px
STEP_RIGHT, STEP_DOWN = PANEL + LEFT + 16, TOP + HEIGHT + BOTTOM

Place = Callable[[float, float], tuple[float, float]]


def missing() -> str:
    """Draw P@1 over the share of hidden labels: one panel per data set, one line per C, the paper's point."""
    sets = results("missing-test")["sets"]
    panels = [
        _panel(name, known, LEFT + i * (WIDTH + LEFT + GAP)) for i, (name, known) in enumerate(sets.items())
    ]
    total = len(sets) * (WIDTH + LEFT + GAP) + 10
    height = TOP + HEIGHT + BOTTOM + 28
    base = height - 10
    legend = (
        f'<path class="full" d="M{LEFT} {base - 4}h28"/>'
        f'<text x="{LEFT + 34}" y="{base}">C of all labels</text>'
        f'<path class="visible" d="M{LEFT + 150} {base - 4}h28"/>'
        f'<text x="{LEFT + 184}" y="{base}">C of the visible labels</text>'
        f'<circle class="paper" cx="{LEFT + 350}" cy="{base - 4}" r="4"/>'
        f'<text x="{LEFT + 362}" y="{base}">the paper’s ExMLDS3</text>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {height}" role="img" '
        f'aria-label="P@1 of ExMLDS3 as more training labels are hidden"><style>{STYLE}</style>'
        f"{''.join(panels)}{legend}</svg>\n"
    )


def _panel(name: str, known: dict[str, Any], left: int) -> str:
    low, high = 0.4, 1.0

    def place(share: float, value: float) -> str:
        return f"{left + share * WIDTH:.1f} {TOP + HEIGHT * (high - value) / (high - low):.1f}"

    drawn = [f'<text class="title" x="{left}" y="{TOP - 14}">{name}, P@1</text>']
    for percent in range(40, 101, 20):
        x, y = place(0, percent / 100).split()
        drawn.append(f'<path class="grid" d="M{x} {y}h{WIDTH}"/>')
        drawn.append(f'<text x="{left - 30}" y="{float(y) + 4}">{percent}</text>')
    for percent in range(0, 101, 20):
        x, y = place(percent / 100, low).split()
        drawn.append(f'<text x="{x}" y="{float(y) + 18}" text-anchor="middle">{percent}</text>')
    x, y = place(0.5, low).split()
    drawn.append(f'<text x="{x}" y="{float(y) + 34}" text-anchor="middle">% of labels hidden</text>')
    for which, shares in known.items():
        points = sorted((float(share), row["P@1"]) for share, row in shares.items())
        drawn.append(f'<path class="{which}" d="M{"L".join(place(*point) for point in points)}"/>')
    x, y = place(0.8, DATASETS[registered(name)].paper_hidden["ExMLDS3"][0] / 100).split()
    drawn.append(f'<circle class="paper" cx="{x}" cy="{y}" r="4"/>')
    return "".join(drawn)


def peers() -> str:
    """Draw P@1 over fit time: one panel per data set, one point per method, and the Pareto front."""
    panels = [
        _race(name, measured(data), *_corner(i))
        for i, (name, data) in enumerate(by_labels().items())
        if measured(data)
    ]
    shown = {peer for data in by_labels().values() for peer in measured(data)}
    return _small_multiples(panels, shown, "P@1 over training seconds, by method and data set")


def scaling() -> str:
    """Draw seconds and memory over rows, both logarithmic: one column of panels per series."""
    series = results("scaling")["series"]
    panels = [
        _growth(f"{SERIES[name]}, {words}", data, key, unit, *_corner(down * ACROSS + i))
        for down, (key, unit, words) in enumerate(
            (("fit_seconds", 1.0, "seconds"), ("peak_bytes", 1e9, "GB"))
        )
        for i, (name, data) in enumerate(series.items())
    ]
    shown = {run["system"] for data in series.values() for run in data["runs"]}
    return _small_multiples(panels, shown, "Training seconds and peak memory over the number of rows")


def _corner(i: int) -> tuple[int, int]:
    """The left and top of the i-th panel."""
    return LEFT + i % ACROSS * STEP_RIGHT, TOP + i // ACROSS * STEP_DOWN


def _small_multiples(panels: list[str], shown: Iterable[str], label: str) -> str:
    """The panels, and a legend of the methods that they show."""
    base = ceil(len(panels) / ACROSS) * STEP_DOWN + 18
    legend = []
    for i, peer in enumerate(peer for peer in PEERS if peer in shown):
        x, y = LEFT + i % ACROSS * STEP_RIGHT, base + i // ACROSS * 20
        legend.append(f'<circle cx="{x}" cy="{y - 4}" r="5" fill="{COLORS[peer]}"/>')
        name = PEERS[peer].strip("`").replace('"', "&quot;")
        legend.append(f'<text x="{x + 10}" y="{y}">{name}</text>')
    width, height = ACROSS * STEP_RIGHT + 6, y + 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{label}"><style>{STYLE}.best{{stroke:#8888;fill:none;stroke-dasharray:4 3}}'
        f".line{{fill:none;stroke-width:2}}</style>{''.join(panels)}{''.join(legend)}</svg>\n"
    )


def _race(name: str, rows: dict[str, Any], left: int, top: int) -> str:
    points = {peer: (log10(row["fit_seconds"]), 100 * row["P@1"]) for peer, row in rows.items()}
    times, scores = zip(*points.values())
    first, last = floor(min(times)), max(ceil(max(times)), floor(min(times)) + 1)
    step = next(size for size in (0.5, 1, 2, 5, 10, 20) if 5 * size >= max(scores) - min(scores))
    low, high = step * floor(min(scores) / step - 0.2), step * ceil(max(scores) / step + 0.2)

    def place(time: float, score: float) -> tuple[float, float]:
        x = left + PANEL * (time - first) / (last - first)
        return round(x, 1), round(top + HEIGHT * (high - score) / (high - low), 1)

    drawn = [f'<text class="title" x="{left}" y="{top - 14}">{name}, P@1</text>']
    ticks = [low + i * step for i in range(round((high - low) / step) + 1)]
    drawn += _grid(place, {power: f"{10.0**power:g} s" for power in range(first, last + 1)}, ticks, "{:g}")
    best = [point for point in points.values() if not _is_beaten(point, list(points.values()))]
    drawn.append(_line("best", place, sorted(best)))
    ours = [points[peer] for peer in OURS if peer in points]
    drawn.append(_line("line", place, ours, f' stroke="{COLORS["ours"]}"'))
    for peer in reversed(points):  # ours are drawn over the others
        x, y = place(*points[peer])
        drawn.append(f'<circle cx="{x}" cy="{y}" r="5" fill="{COLORS[peer]}"/>')
    return "".join(drawn)


def _growth(title: str, data: dict[str, Any], key: str, unit: float, left: int, top: int) -> str:
    runs = [run for run in data["runs"] if "missing" not in run]
    sizes, values = [log10(run["rows"]) for run in runs], [log10(run[key] / unit) for run in runs]
    first, last = floor(min(sizes)), max(ceil(max(sizes)), floor(min(sizes)) + 1)
    low, high = floor(min(values)), max(ceil(max(values)), floor(min(values)) + 1)

    def place(size: float, value: float) -> tuple[float, float]:
        x = left + PANEL * (size - first) / (last - first)
        return round(x, 1), round(top + HEIGHT * (high - value) / (high - low), 1)

    drawn = [f'<text class="title" x="{left}" y="{top - 14}">{title}</text>']
    powers = {power: f"10{_raised(power)}" for power in range(first, last + 1)}
    drawn += _grid(place, powers, [float(power) for power in range(low, high + 1)], "power")
    drawn.append(f'<text x="{left + PANEL / 2}" y="{top + HEIGHT + 30}" text-anchor="middle">rows</text>')
    slopes = []
    for peer in (peer for peer in PEERS if any(run["system"] == peer for run in runs)):
        points = sorted((log10(run["rows"]), log10(run[key] / unit)) for run in runs if run["system"] == peer)
        drawn.append(_line("line", place, points, f' stroke="{COLORS[peer]}"'))
        for x, y in (place(*point) for point in points):
            drawn.append(f'<circle cx="{x}" cy="{y}" r="4" fill="{COLORS[peer]}"/>')
        if peer in data["exponents"]:
            slopes.append((peer, data["exponents"][peer][key]))
    for i, (peer, slope) in enumerate(reversed(slopes)):  # at the lower right, below lines that grow
        at = f'x="{left + PANEL - 6}" y="{top + HEIGHT - 8 - 17 * i}" text-anchor="end"'
        drawn.append(f'<text {at} style="fill:{COLORS[peer]}">n{_raised(f"{slope:.2f}")}</text>')
    return "".join(drawn)


def _raised(power: object) -> str:
    return f'<tspan dy="-4" font-size="10">{power}</tspan><tspan dy="4">&#8203;</tspan>'


def _grid(place: Place, across: dict[int, str], up: list[float], form: str) -> list[str]:
    """Grid lines with their labels: powers of ten across; numbers, or powers of ten, upwards."""
    drawn = []
    (left, bottom), (right, top) = place(min(across), up[0]), place(max(across), up[-1])
    for value in up:
        _, y = place(min(across), value)
        drawn.append(f'<path class="grid" d="M{left} {y}H{right}"/>')
        words = f"{10.0**value:g}" if form == "power" else form.format(value)
        drawn.append(f'<text x="{left - 6}" y="{y + 4}" text-anchor="end">{words}</text>')
    for power, words in across.items():
        x, _ = place(power, up[0])
        drawn.append(f'<path class="grid" d="M{x} {bottom}V{top}"/>')
        drawn.append(f'<text x="{x}" y="{bottom + 16}" text-anchor="middle">{words}</text>')
    return drawn


def _line(kind: str, place: Place, points: list[tuple[float, float]], more: str = "") -> str:
    corners = "L".join("{} {}".format(*place(*point)) for point in points)
    return f'<path class="{kind}"{more} d="M{corners}"/>' if len(points) > 1 else ""


def _is_beaten(point: tuple[float, float], others: list[tuple[float, float]]) -> bool:
    """Tell whether another point is both faster and better."""
    return any(time < point[0] and score > point[1] for time, score in others)


def calibration() -> str:
    """Draw the reliability diagrams: one panel per data set, one point per bin."""
    sets = results("calibration")["sets"]
    across = HEIGHT + LEFT + GAP
    drawn = []
    for i, (name, found) in enumerate(sets.items()):
        left = LEFT + i * across
        drawn.append(
            f'<text class="title" x="{left}" y="{TOP - 14}">{name}, error {found["error"]:.3f}</text>'
        )
        for percent in range(0, 101, 25):
            along = HEIGHT * percent / 100
            drawn.append(f'<path class="grid" d="M{left} {TOP + HEIGHT - along}h{HEIGHT}"/>')
            drawn.append(f'<path class="grid" d="M{left + along} {TOP}v{HEIGHT}"/>')
            drawn.append(
                f'<text x="{left - 6}" y="{TOP + HEIGHT - along + 4}" text-anchor="end">{percent}</text>'
            )
            drawn.append(
                f'<text x="{left + along}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{percent}</text>'
            )
        drawn.append(f'<path class="best" d="M{left} {TOP + HEIGHT}l{HEIGHT} -{HEIGHT}"/>')
        for said, true in zip(found["said"], found["found"]):
            x, y = left + HEIGHT * said, TOP + HEIGHT * (1 - true)
            drawn.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{COLORS["ours"]}"/>')
    height = TOP + HEIGHT + BOTTOM + 10
    words = "% of the labels said with a probability (across) that are true (up)"
    width = len(sets) * across + 30
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="Share of true labels over their probability, by data set">'
        f"<style>{STYLE}.best{{stroke:#8888;fill:none;stroke-dasharray:4 3}}</style>"
        f'{"".join(drawn)}<text x="{LEFT}" y="{height - 10}">{words}</text></svg>\n'
    )


FIGURES = {"missing": missing, "peers": peers, "calibration": calibration, "scaling": scaling}


def path(name: str) -> Path:
    return ROOT / "docs" / "figures" / f"{name}.svg"


def main() -> None:
    for name, draw in FIGURES.items():
        path(name).parent.mkdir(exist_ok=True)
        path(name).write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
