"""Draw the README's figures from the committed results, as SVG that needs nothing.

python benchmarks/figures.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from exmlds.data import DATASETS
from tables import ROOT, registered, results

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, GAP = 250, 170, 40, 34, 40, 26
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#57606a}.title{font-weight:600}.grid{stroke:#8883}"
    ".full{stroke:#0969da;fill:none;stroke-width:2}.visible{stroke:#cf222e;fill:none;stroke-width:2;"
    "stroke-dasharray:5 3}.paper{fill:#8250df}"
)


def missing() -> str:
    """P@1 over the share of hidden labels: a panel a data set, a line a C, the paper's point at 80%."""
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


FIGURES = {"missing": missing}


def path(name: str) -> Path:
    return ROOT / "docs" / "figures" / f"{name}.svg"


def main() -> None:
    for name, draw in FIGURES.items():
        path(name).parent.mkdir(exist_ok=True)
        path(name).write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
