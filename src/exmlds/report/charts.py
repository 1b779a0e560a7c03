"""Charts as inline SVG; the shapes have CSS classes, and the page's style sheet has the colours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from math import floor

WIDTH, HEIGHT = 440, 280
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 14, 44
INNER_WIDTH, INNER_HEIGHT = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

Point = tuple[float, float, str]  # x and y as shares, and the tooltip


def curve(
    points: Sequence[Point], *, title: str, x: str, y: str, low: float = 0.0, diagonal: bool = False
) -> str:
    """A line chart of shares; the y axis goes from `low` to 1, the x axis from 0 to 1."""
    drawn = [_frame(x, y, low), _shares_below()]
    if diagonal:
        drawn.append(f'<path class="ideal" d="M{_at(0, 0, low)}L{_at(1, 1, low)}"/>')
    positions = [_at(across, up, low) for across, up, _ in points]
    drawn.append(f'<path class="line" d="M{"L".join(positions)}"/>')
    radius = 3.5 if len(points) <= 30 else 2
    for position, (_, _, tooltip) in zip(positions, points):
        cx, cy = position.split()
        drawn.append(
            f'<circle class="dot" cx="{cx}" cy="{cy}" r="{radius}"><title>{escape(tooltip)}</title></circle>'
        )
    return _svg(title, drawn)


def lines(
    x_values: Sequence[float],
    series: Sequence[tuple[str, Sequence[float | None]]],
    marked: int,
    *,
    title: str,
    x: str,
) -> str:
    """Line charts of shares over one axis of numbers; each series is (CSS class, values), None is a gap.

    A vertical line marks one of the x values; its position on the page is moved by the script.
    """
    low, wide = x_values[0], (x_values[-1] - x_values[0]) or 1.0
    across = [(value - low) / wide for value in x_values]
    drawn = [_frame(x, "%", 0.0)]
    for tick in range(5):
        place, value = tick / 4, low + wide * tick / 4
        drawn.append(
            f'<text class="middle" x="{LEFT + place * INNER_WIDTH:.1f}" '
            f'y="{TOP + INNER_HEIGHT + 17}">{value:.3g}</text>'
        )
    for name, values in series:
        points = [_at(place, value, 0.0) for place, value in zip(across, values) if value is not None]
        drawn.append(f'<path class="line {name}" d="M{"L".join(points)}"/>' if points else "")
    drawn.append(
        f'<path class="marker" d="M{LEFT} {TOP}v{INNER_HEIGHT}" data-width="{INNER_WIDTH}" '
        f'transform="translate({across[marked] * INNER_WIDTH:.1f} 0)"/>'
    )
    return _svg(title, drawn)


def bars(values: Sequence[tuple[str, float, str]], *, title: str, x: str, y: str) -> str:
    """A bar chart; each bar is (name, share, tooltip)."""
    drawn = [_frame(x, y, 0.0)]
    step = INNER_WIDTH / max(len(values), 1)
    width = min(0.68 * step, 44)
    for i, (name, share, tooltip) in enumerate(values):
        middle, height = LEFT + (i + 0.5) * step, share * INNER_HEIGHT
        top = TOP + INNER_HEIGHT - height
        drawn.append(
            f"<g><title>{escape(tooltip)}</title>"
            f'<rect class="bar" x="{middle - width / 2:.1f}" y="{top:.1f}" '
            f'width="{width:.1f}" height="{height:.1f}" rx="1.5"/>'
            f'<text class="value" x="{middle:.1f}" y="{max(top - 5, 11):.1f}">{100 * share:.0f}</text>'
            f'<text class="middle" x="{middle:.1f}" y="{TOP + INNER_HEIGHT + 17}">{escape(name)}</text></g>'
        )
    return _svg(title, drawn)


def floor_of(shares: Iterable[float]) -> float:
    """The lower end of an axis that shows all the shares.

    >>> floor_of([0.87, 0.99]), floor_of([0.3]), floor_of([1.0])
    (0.8, 0.0, 0.9)
    """
    low = min(floor(10 * min(shares, default=0.0)), 9) / 10
    return low if low >= 0.5 else 0.0


def _at(x: float, y: float, low: float) -> str:
    return f"{LEFT + x * INNER_WIDTH:.1f} {TOP + INNER_HEIGHT * (1 - (y - low) / (1 - low)):.1f}"


def _frame(x: str, y: str, low: float) -> str:
    """Grid lines at round percentages, and the axis titles."""
    drawn = []
    step = 5 if low >= 0.8 else 10 if low >= 0.5 else 25
    for percent in range(round(100 * low), 101, step):
        height = _at(0, percent / 100, low).split()[1]
        drawn.append(f'<path class="grid" d="M{LEFT} {height}h{INNER_WIDTH}"/>')
        drawn.append(f'<text class="end" x="{LEFT - 8}" y="{float(height) + 4:.1f}">{percent}</text>')
    middle = LEFT + INNER_WIDTH / 2
    drawn.append(f'<text class="middle axis" x="{middle}" y="{HEIGHT - 6}">{escape(x)}</text>')
    turned = f"translate(12 {TOP + INNER_HEIGHT / 2}) rotate(-90)"
    drawn.append(f'<text class="middle axis" transform="{turned}">{escape(y)}</text>')
    return "".join(drawn)


def _shares_below() -> str:
    return "".join(
        f'<text class="middle" x="{LEFT + percent / 100 * INNER_WIDTH:.1f}" '
        f'y="{TOP + INNER_HEIGHT + 17}">{percent}</text>'
        for percent in range(0, 101, 25)
    )


def _svg(title: str, drawn: Iterable[str]) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{''.join(drawn)}</svg>"
    )
