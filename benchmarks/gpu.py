"""Fit and predict on a graphics card, beside the CPU of the same machine.

    EXMLDS_DATA=… python benchmarks/gpu.py --validation          # rows held out of the training rows
    EXMLDS_DATA=… python benchmarks/gpu.py --test                # the test rows, to be read rarely
    python benchmarks/gpu.py --validation --parts amazon,large

- sets: `ExMLDS()` on EURLex-4K and citeulike-t, on the card and on the CPU with all cores; seconds are those
  of a fit after one that compiles the kernels, the median of three.
- family: `ExMLDS1`, `ExMLDS4` and `FeatureNeighbors` on EURLex-4K, once.
- amazon: made-up rows of the size of Amazon-670K (490,449 rows, 135,909 features, 670,091 labels, 75 values
  and 5.5 labels of a row), fitted from arrays in memory; 153,025 others are predicted.
- large: 3 million rows and 3 million labels.

`operations` are the seconds of all calls of each operation on the card, with the copies that they need, and
`phases` those of the parts of a fit.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from statistics import mean, median
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from cores import Phases
from exmlds import ExMLDS, ExMLDS1, ExMLDS4, FeatureNeighbors, kernels, metrics
from exmlds.data import load, make_library
from exmlds.kernels.cuda import device
from exmlds.selection import random_split
from measure import destination, parser_of, peak_bytes, seconds, several, write_results

SETS = ("eurlex-4k", "citeulike-t")
FAMILY_SET = "eurlex-4k"
PARTS = ("sets", "family", "amazon", "large")
BATCH = 1_000  # rows that are predicted in one call
TOPICAL = 0.7  # share of the values of a made-up row that belong to its labels
WORDS_OF_LABEL = 40


class Size(NamedTuple):
    """How many made-up rows, features and labels, and the values and labels of a row on average."""

    rows: int
    features: int
    labels: int
    values: int = 75
    labels_of_row: float = 5.5


AMAZON, AMAZON_QUERIES = Size(490_449, 135_909, 670_091), 153_025
LARGE, LARGE_QUERIES = Size(3_000_000, 500_000, 3_000_000), 100_000


def made_up(size: Size, n_more: int, xp: Any, seed: int = 0) -> list[tuple[csr_matrix, csr_matrix]]:
    """Rows to fit and rows to predict, made by NumPy or on the card.

    Labels follow a power law, those of a row are near each other, and most of its values are words of its
    labels.
    """
    rng = xp.random.default_rng(seed)
    n, d, n_labels = size.rows + n_more, size.features, size.labels
    chance = xp.cumsum((xp.arange(n_labels) + 50.0) ** -0.8)
    first = xp.searchsorted(chance, rng.random(n) * chance[-1])
    most = 2 * int(size.labels_of_row)
    near = xp.clip(first[:, None] + rng.integers(-12, 13, (n, most)), 0, n_labels - 1)
    near[:, 0] = first
    counts = 1 + (rng.random((n, most - 1)) < (size.labels_of_row - 1) / (most - 1)).sum(axis=1)
    is_label = xp.arange(most) < counts[:, None]
    draws = int(size.values * 1.15)
    common = xp.cumsum((xp.arange(d) + 20.0) ** -1.0)
    blocks = []
    for start in range(0, n, 200_000):
        own = slice(start, min(start + 200_000, n))
        m = own.stop - own.start
        which = (rng.random((m, draws)) * counts[own, None]).astype(np.int64)
        label = xp.take_along_axis(near[own], which, axis=1)
        # The words of a label are drawn by a generator that its number seeds.
        word = label * WORDS_OF_LABEL + (rng.random((m, draws)) ** 1.5 * WORDS_OF_LABEL).astype(np.int64)
        mixed = (word.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
        chosen = mixed.astype(np.float64) / 2**24
        chosen = xp.where(rng.random((m, draws)) < TOPICAL, chosen, rng.random((m, draws)))
        features = xp.sort(xp.searchsorted(common, chosen * common[-1]), axis=1)
        is_new = xp.ones((m, draws), bool)
        is_new[:, 1:] = features[:, 1:] != features[:, :-1]
        blocks.append((_host(is_new.sum(axis=1)), _host(features[is_new].astype(np.int32))))
    indptr = np.concatenate([[0], np.cumsum(np.concatenate([part[0] for part in blocks]))])
    indices = np.concatenate([part[1] for part in blocks])
    values = np.random.default_rng(seed).random(len(indices), dtype=np.float32) + np.float32(0.5)
    X = csr_matrix((values, indices, indptr), (n, d))
    rows, columns = (_host(part) for part in xp.nonzero(is_label))
    Y = csr_matrix((np.ones(len(rows), np.float32), (rows, _host(near)[rows, columns])), (n, n_labels))
    Y.data[:] = 1
    return [(X[: size.rows], Y[: size.rows]), (X[size.rows :], Y[size.rows :])]


def _host(array: Any) -> np.ndarray:
    return array.get() if hasattr(array, "get") else array


class Timed:
    """Adds up the seconds of each operation on the card inside a `with` block."""

    def __enter__(self) -> dict[str, float]:
        self.seconds: dict[str, float] = {}
        self.before = {name: getattr(kernels.CARD, name) for name in kernels.ON_CARD}
        for name, operation in self.before.items():
            setattr(kernels.CARD, name, self._timed(name, operation))
        return self.seconds

    def _timed(self, name: str, operation: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            with device.current().lock:  # without the time of waiting for other threads
                started = time.perf_counter()
                operation(*given)
                self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started

        return call

    def __exit__(self, *_: object) -> None:
        for name, operation in self.before.items():
            setattr(kernels.CARD, name, operation)


def fitted(model: Any, X: Any, Y: Any) -> dict[str, Any]:
    phases, logger = Phases(), logging.getLogger("exmlds")
    logger.addHandler(phases)
    logger.setLevel(logging.INFO)
    try:
        with Timed() as operations:
            spent = seconds(lambda: model.fit(X, Y))
    finally:
        logger.removeHandler(phases)
    return {
        "fit_seconds": round(spent, 3),
        "operations": {name: round(value, 3) for name, value in sorted(operations.items())},
        "phases": phases.seconds,
    }


def predicted(model: Any, X: csr_matrix, Y: csr_matrix) -> dict[str, Any]:
    started = time.perf_counter()
    ids, _ = model.predict_topk(X, 5)
    spent = time.perf_counter() - started
    ranking = metrics.Ranking(Y, ids, 5)
    return {
        "predict_seconds": round(spent, 3),
        **{f"P@{k}": round(100 * ranking.value(f"P@{k}"), 2) for k in (1, 3, 5)},
    }


def in_batches(model: Any, X: csr_matrix) -> float:
    """Microseconds of a row, where rows are predicted in batches; the median of five rounds."""
    batches = [X[start : start + BATCH] for start in range(0, X.shape[0] - BATCH + 1, BATCH)]
    rounds = [seconds(lambda: [model.predict_topk(batch, 5) for batch in batches]) for _ in range(5)]
    return round(1e6 * median(rounds) / (BATCH * len(batches)), 1)


def compare(methods: Sequence[type[Any]], name: str, options: Any, n_seeds: int) -> dict[str, Any]:
    """Methods on a data set, on the card and on the CPU."""
    found: dict[str, Any] = {}
    train, test = load(name)
    if options.validation:
        fit_rows, held_rows = random_split(train.X.shape[0], 0.2, random_state=0)
        train, test = train.rows(fit_rows), train.rows(held_rows)
    for method in methods:
        for where in ("cuda", "cpu"):
            runs = []
            for seed in range(n_seeds):
                model = method(device=where, random_state=seed)
                run = {**fitted(model, train.X, train.Y), **predicted(model, test.X, test.Y)}
                run["batch_us_per_row"] = in_batches(model, test.X)
                runs.append(run)
                print(name, method.__name__, where, seed, run, flush=True)
            found[f"{method.__name__} {where}"] = {**averaged(runs), "seeds": n_seeds}
    return found


def averaged(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The mean precision and the median of all else; operations and phases are those of the last run."""
    found: dict[str, Any] = {}
    for key, last in runs[-1].items():
        if isinstance(last, dict):
            found[key] = last
        elif key.startswith("P@"):
            found[key] = round(mean(run[key] for run in runs), 2)
        else:
            found[key] = round(median(run[key] for run in runs), 3)
    return found


def made_up_run(size: Size, n_queries: int, effort: str) -> dict[str, Any]:
    card: Any = device.current().xp
    started = time.perf_counter()
    (X, Y), (queries, truth) = made_up(size, n_queries, card)
    card.get_default_memory_pool().free_all_blocks()
    making = time.perf_counter() - started
    print(f"made {X.shape} {Y.shape}, {X.nnz / X.shape[0]:.1f} values, {making:.1f} s", flush=True)
    peak = Peak(card)
    model = ExMLDS(device="cuda", effort=effort, random_state=0)
    run: dict[str, Any] = {**size._asdict(), "effort": effort, "queries": n_queries}
    run |= fitted(model, X, Y)
    print(run, flush=True)
    run |= predicted(model, queries, truth)
    return {**run, "peak_card_bytes": peak.most(), "peak_host_bytes": peak_bytes()}


class Peak:
    """The most memory of the card that its pool has taken so far."""

    def __init__(self, card: Any) -> None:
        self.pool = card.get_default_memory_pool()

    def most(self) -> int:
        return int(self.pool.total_bytes())


def the_card() -> dict[str, Any]:
    cupy: Any = device.current().xp
    facts = cupy.cuda.runtime.getDeviceProperties(0)
    return {
        "card": facts["name"].decode(),
        "driver": cupy.cuda.runtime.driverGetVersion(),
        "runtime": cupy.cuda.runtime.runtimeGetVersion(),
        "cupy": cupy.__version__,
    }


def main() -> None:
    parser = parser_of(__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--validation", action="store_true")
    which.add_argument("--test", action="store_true")
    parser.add_argument("--parts", type=several(PARTS), default=PARTS, help="names, separated by commas")
    parser.add_argument("--sets", type=several(SETS), default=SETS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--efforts", type=several(("fast", "balanced")), default=("balanced",))
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of made-up rows and labels")
    options = parser.parse_args()
    path = destination(parser, options, "gpu", free=("validation", "test"))
    results: dict[str, Any] = {"card": the_card()}
    books = make_library(400, random_state=0)
    compiling = seconds(
        lambda: ExMLDS(device="cuda", random_state=0).fit(books.X, books.Y).predict_topk(books.X)
    )
    print(f"compiled in {compiling:.1f} s", flush=True)
    if "sets" in options.parts:
        results["sets"] = {name: compare([ExMLDS], name, options, options.seeds) for name in options.sets}
    if "family" in options.parts:
        results["family"] = {
            FAMILY_SET: compare([ExMLDS1, ExMLDS4, FeatureNeighbors], FAMILY_SET, options, 1)
        }
    for name, size, n_queries in (("amazon", AMAZON, AMAZON_QUERIES), ("large", LARGE, LARGE_QUERIES)):
        if name in options.parts:
            scaled = size._replace(
                rows=int(size.rows * options.scale), labels=int(size.labels * options.scale)
            )
            for effort in options.efforts:
                found = made_up_run(scaled, int(n_queries * options.scale), effort)
                results[f"{name} {effort}"] = found
                print(name, effort, found, flush=True)
    write_results(path, results)


if __name__ == "__main__":
    main()
