"""Measurements of a service in the text format of Prometheus."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
TEXTS = (1, 2, 4, 8, 16, 32, 64)

Labels = tuple[tuple[str, str], ...]


class Histogram:
    """Counts of values up to each bound, and their sum."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds, self.counts, self.sum = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def lines(self, name: str, labels: Labels = ()) -> Iterator[str]:
        total = 0
        for bound, n in zip((*map(str, self.bounds), "+Inf"), self.counts):
            total += n
            yield _line(f"{name}_bucket", (*labels, ("le", bound)), total)
        yield _line(f"{name}_sum", labels, self.sum)
        yield _line(f"{name}_count", labels, total)


class Measurements:
    """What is counted of requests and batches."""

    def __init__(self) -> None:
        self.requests: Counter[Labels] = Counter()
        self.seconds: dict[str, Histogram] = {}
        self.batches = Histogram(TEXTS)

    def add_request(self, method: str, route: str, status: int, seconds: float) -> None:
        self.requests[("method", method), ("route", route), ("status", str(status))] += 1
        self.seconds.setdefault(route, Histogram(SECONDS)).add(seconds)

    def text(self, gauges: Mapping[str, tuple[str, float]], totals: Mapping[str, tuple[str, float]]) -> str:
        """All measurements; gauges, totals : others, by name, with what they are."""
        lines = list(_heading("exmlds_requests_total", "counter", "Requests, by route and status."))
        lines += [_line("exmlds_requests_total", labels, n) for labels, n in sorted(self.requests.items())]
        lines += _heading("exmlds_request_seconds", "histogram", "Seconds until the answer was sent.")
        for route, histogram in sorted(self.seconds.items()):
            lines += histogram.lines("exmlds_request_seconds", (("route", route),))
        lines += _heading("exmlds_batch_texts", "histogram", "Texts that were predicted together.")
        lines += self.batches.lines("exmlds_batch_texts")
        for kind, found in (("gauge", gauges), ("counter", totals)):
            for name, (what, value) in found.items():
                lines += [*_heading(name, kind, what), _line(name, (), value)]
        return "".join(f"{line}\n" for line in lines)


def _heading(name: str, kind: str, what: str) -> Iterator[str]:
    yield f"# HELP {name} {what}"
    yield f"# TYPE {name} {kind}"


def _line(name: str, labels: Labels, value: float) -> str:
    shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{{{shown}}} {value:.12g}" if shown else f"{name} {value:.12g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def resident_bytes() -> float:
    """The memory of this process; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0
