"""Compare a model that grows with one that is fitted to all rows at once, and measure what growing takes.

    EXMLDS_DATA=… python benchmarks/growth.py --validation    # a fifth of the training rows, to develop on
    EXMLDS_DATA=… python benchmarks/growth.py --test          # the test rows, to be read rarely

`ExMLDS(growable=True)` is fitted to 80% of the rows, in random order, and grows by the others in 20 batches.
Each seed has a validation split of its own, on none of which a setting was chosen.

- "grown" and "full": P@1, P@3 and P@5 after growing, and of one fit to all rows.
- "hidden": a tenth of the labels is taken from the first 80% of the rows, so that growing brings them as new
  ones. `recall` is the share of the true pairs of these labels among the first five of each row, after
  growing and of one fit to the same rows and labels.
- "batch": seconds of a batch of 1% of the rows (the mean), over those of the full fit in the same run.
- "growing": the same of the 20 batches of the growing model, some of which train its map further.
- "one_row": milliseconds to add one row and to predict it (the median of 20).
- "slower": the time of predictions before the rows that were added are merged with the others
  (`drop_removed`), over the time afterwards.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import mean, median
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from exmlds import ExMLDS, metrics
from exmlds.data import make_library
from measure import destination, parser_of, race, seconds, several, write_sets
from paper import rows_for

SETS = ("eurlex-4k", "citeulike-t", "gutenberg-lcsh", "reuters21578-90")
FIRST, BATCHES, HIDDEN = 0.8, 20, 0.1
SINGLE_ROWS = 20
FIRST_SPLIT = 200  # seed of the first validation split; settings were chosen on splits with smaller ones
MEASURES = ("P@1", "P@3", "P@5")

Array = np.ndarray


class Rows(NamedTuple):
    """Training rows in random order, the number of those that a growing model begins with, and test rows."""

    X: csr_matrix
    Y: csr_matrix
    n_first: int
    queries: csr_matrix
    truth: csr_matrix

    def batches(self, n: int) -> list[slice]:
        edges = np.linspace(self.n_first, self.X.shape[0], n + 1).astype(int).tolist()
        return [slice(start, stop) for start, stop in pairwise(edges)]


def read(name: str, validation: bool, seed: int) -> Rows:
    train, test = rows_for(name, seed, validation, FIRST_SPLIT + seed)
    order = np.random.default_rng(seed).permutation(train.X.shape[0])
    return Rows(train.X[order], train.Y[order], round(FIRST * len(order)), test.X, test.Y)


def fitted(X: csr_matrix, Y: csr_matrix, seed: int) -> tuple[ExMLDS, float]:
    model = ExMLDS(growable=True, random_state=seed)
    return model, seconds(lambda: model.fit(X, Y))


def grow(rows: Rows, Y: csr_matrix, seed: int) -> tuple[ExMLDS, list[float]]:
    """A model of the first rows that grew by the others, and the seconds of each batch."""
    first = slice(rows.n_first)
    model, _ = fitted(rows.X[first], Y[first], seed)
    spent = [seconds(lambda own=own: model.partial_fit(rows.X[own], Y[own])) for own in rows.batches(BATCHES)]  # type: ignore[misc]
    return model, spent


def precisions(model: ExMLDS, rows: Rows) -> dict[str, float]:
    ranking = metrics.Ranking(rows.truth, model.predict_topk(rows.queries, 5)[0], 5)
    return {name: 100 * ranking.value(name) for name in MEASURES}


def without_labels(Y: csr_matrix, labels: Array, n: int) -> csr_matrix:
    """Y without some labels in its first n rows."""
    kept = Y.copy()
    is_hidden = np.zeros(Y.shape[1], bool)
    is_hidden[labels] = True
    first = np.arange(Y.nnz) < Y.indptr[n]
    kept.data = np.where(first & is_hidden[Y.indices], 0, Y.data)
    kept.eliminate_zeros()
    return kept


def recall_of(model: ExMLDS, rows: Rows, labels: Array) -> float:
    """The share of the true pairs of some labels among the first five of each row."""
    own_truth = csr_matrix(rows.truth[:, labels])
    position = np.full(rows.truth.shape[1], -1)
    position[labels] = np.arange(len(labels))
    ids = model.predict_topk(rows.queries, 5)[0]
    own = np.where(ids >= 0, position[np.maximum(ids, 0)], -1)
    return float(metrics.Ranking(own_truth, own, 5).hits.sum() / max(own_truth.nnz, 1))


def measured(rows: Rows, seed: int) -> dict[str, Any]:
    full, fit_seconds = fitted(rows.X, rows.Y, seed)
    grown, spent_growing = grow(rows, rows.Y, seed)
    found: dict[str, Any] = {"full": precisions(full, rows), "grown": precisions(grown, rows)}
    used = np.unique(rows.Y.indices)
    rng = np.random.default_rng(seed)
    hidden = np.sort(rng.permutation(used)[: round(HIDDEN * len(used))])
    Y = without_labels(rows.Y, hidden, rows.n_first)
    found["hidden"] = {
        "full": recall_of(fitted(rows.X, Y, seed)[0], rows, hidden),
        "grown": recall_of(grow(rows, Y, seed)[0], rows, hidden),
    }
    # A hundredth of the rows at a time, and then single rows.
    n = rows.X.shape[0]
    size, start = max(n // 100, 1), n - n // 20
    growing, _ = fitted(rows.X[:start], rows.Y[:start], seed)
    batches = [slice(at, at + size) for at in range(start, n - size - SINGLE_ROWS, size)]
    spent = [seconds(lambda own=own: growing.partial_fit(rows.X[own], rows.Y[own])) for own in batches]  # type: ignore[misc]

    def one(row: int) -> None:
        growing.partial_fit(rows.X[row : row + 1], rows.Y[row : row + 1])
        growing.predict_topk(rows.X[row : row + 1])

    singles = [seconds(lambda row=row: one(row)) for row in range(n - SINGLE_ROWS, n)]  # type: ignore[misc]
    merged = ExMLDS(growable=True)
    merged.__dict__.update(vars(growing))
    merged.drop_removed()
    some = rows.queries[:2_000]
    times = race(3, before=lambda: growing.predict_topk(some), after=lambda: merged.predict_topk(some))
    return {
        **found,
        "fit_seconds": fit_seconds,
        "batch": mean(spent) / fit_seconds,
        "growing": mean(spent_growing) / fit_seconds,
        "one_row": 1000 * median(singles),
        "slower": times["before"] / times["after"],
    }


def averaged(runs: list[Any]) -> Any:
    """The mean of the numbers of several runs, entry by entry."""
    if isinstance(runs[0], dict):
        return {key: averaged([run[key] for run in runs]) for key in runs[0]}
    return mean(runs)


def main() -> None:
    parser = parser_of(__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--validation", action="store_true")
    which.add_argument("--test", action="store_true")
    parser.add_argument("--sets", type=several(SETS), default=SETS, help="names, separated by commas")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    name_of_results = "growth-validation" if options.validation else "growth"
    path = destination(parser, options, name_of_results, free=("validation", "test"))
    books = make_library(400, random_state=0)  # compile first
    ExMLDS(growable=True).fit(books.X[:300], books.Y[:300]).partial_fit(books.X[300:], books.Y[300:])
    sets: dict[str, Any] = {}
    for name in options.sets:
        runs = []
        for seed in range(options.seeds):
            runs.append(measured(read(name, options.validation, seed), seed))
            print(name, seed, runs[-1], flush=True)
        sets[name] = {**averaged(runs), "seeds": options.seeds, "runs": runs}
    write_sets("growth", "validation" if options.validation else "test", sets, path)


if __name__ == "__main__":
    main()
