"""Draw the figures of README and docs from the committed results, as self-contained SVG.

python benchmarks/figures.py
"""

from __future__ import annotations

from math import ceil, floor, log10
from pathlib import Path
from statistics import mean
from typing import Any

from exmlds.data import DATASETS
from tables import PEERS, ROOT, registered, results

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, GAP = 250, 170, 40, 34, 40, 26
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#57606a}.title{font-weight:600}.grid{stroke:#8883}"
    ".full{stroke:#0969da;fill:none;stroke-width:2}.visible{stroke:#cf222e;fill:none;stroke-width:2;"
    "stroke-dasharray:5 3}.paper{fill:#8250df}"
)
COLORS = ("#cf222e", "#0969da", "#54aeff", "#1a7f37", "#4ac26b", "#8250df", "#9a6700")  # as PEERS


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
    """Draw accuracy over fit time: one panel per data set, one point per method, and the Pareto front."""
    sets = results("peers")["sets"]
    across, down = WIDTH + LEFT + GAP, TOP + HEIGHT + BOTTOM
    n_across = min(len(sets), 4)
    panels = [
        _race(name, data["peers"], LEFT + i % n_across * across, TOP + i // n_across * down)
        for i, (name, data) in enumerate(sets.items())
    ]
    height = ceil(len(sets) / n_across) * down + 48
    legend = []
    for i, (name, color) in enumerate(zip(PEERS.values(), COLORS)):
        x, y = LEFT + i % 4 * 190, height - 30 + i // 4 * 20
        legend.append(f'<circle cx="{x}" cy="{y - 4}" r="5" fill="{color}"/>')
        legend.append(f'<text x="{x + 10}" y="{y}">{name}</text>')
    width = max(n_across * across, 800) + 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="Mean of P@1, P@3 and P@5 over training seconds, by method and data set">'
        f"<style>{STYLE}.best{{stroke:#8888;fill:none;stroke-dasharray:4 3}}</style>"
        f"{''.join(panels)}{''.join(legend)}</svg>\n"
    )


def _race(name: str, rows: dict[str, Any], left: int, top: int) -> str:
    points = {
        peer: (log10(row["fit_seconds"]), 100 * mean(row[f"P@{k}"] for k in (1, 3, 5)))
        for peer, row in rows.items()
        if "missing" not in row
    }
    times, scores = zip(*points.values())
    first, last = floor(min(times)), max(ceil(max(times)), floor(min(times)) + 1)
    step = next(size for size in (0.5, 1, 2, 5, 10, 20) if 5 * size >= max(scores) - min(scores))
    low, high = step * floor(min(scores) / step - 0.2), step * ceil(max(scores) / step + 0.2)

    def place(time: float, score: float) -> tuple[float, float]:
        x = left + WIDTH * (time - first) / (last - first)
        return round(x, 1), round(top + HEIGHT * (high - score) / (high - low), 1)

    drawn = [f'<text class="title" x="{left}" y="{top - 14}">{name}, mean of P@1, 3, 5</text>']
    for i in range(round((high - low) / step) + 1):
        x, y = place(first, low + i * step)
        drawn.append(f'<path class="grid" d="M{x} {y}h{WIDTH}"/>')
        drawn.append(f'<text x="{left - 6}" y="{y + 4}" text-anchor="end">{low + i * step:g}</text>')
    for power in range(first, last + 1):
        x, y = place(power, low)
        drawn.append(f'<path class="grid" d="M{x} {y}v-{HEIGHT}"/>')
        drawn.append(f'<text x="{x}" y="{y + 16}" text-anchor="middle">{10.0**power:g} s</text>')
    best = [point for point in points.values() if not _is_beaten(point, list(points.values()))]
    line = "L".join("{} {}".format(*place(*point)) for point in sorted(best))
    drawn.append(f'<path class="best" d="M{line}"/>')
    for peer, color in zip(PEERS, COLORS):
        if peer in points:
            x, y = place(*points[peer])
            drawn.append(f'<circle cx="{x}" cy="{y}" r="5" fill="{color}"/>')
    return "".join(drawn)


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
            drawn.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{COLORS[0]}"/>')
    height = TOP + HEIGHT + BOTTOM + 10
    words = "% of the labels said with a probability (across) that are true (up)"
    width = len(sets) * across + 30
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="Share of true labels over their probability, by data set">'
        f"<style>{STYLE}.best{{stroke:#8888;fill:none;stroke-dasharray:4 3}}</style>"
        f'{"".join(drawn)}<text x="{LEFT}" y="{height - 10}">{words}</text></svg>\n'
    )


FIGURES = {"missing": missing, "peers": peers, "calibration": calibration}


def path(name: str) -> Path:
    return ROOT / "docs" / "figures" / f"{name}.svg"


def main() -> None:
    for name, draw in FIGURES.items():
        path(name).parent.mkdir(exist_ok=True)
        path(name).write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
