"""Measure the baselines on the data sets, with defaults, seed 0 and the published split.

EXMLDS_DATA=… python benchmarks/baselines.py
"""

from __future__ import annotations

from functools import partial
from typing import Any

from exmlds import FeatureNeighbors, MostFrequent, metrics
from exmlds.data import available, load, make_library
from measure import destination, parser_of, seconds, write_results

SETS = (
    *("bibtex", "citeulike-t", "delicious", "eurlex-4k", "mediamill", "rcv1subset1"),
    "reuters21578-90",
)


def main() -> None:
    parser = parser_of(__doc__)
    missing = [name for name in SETS if name not in available()]
    path = destination(parser, parser.parse_args(), "baselines", missing=missing)
    books = make_library(300)
    for method in (MostFrequent, FeatureNeighbors):  # compile first
        for X in (books.X, books.X.toarray()):
            method().fit(X, books.Y).predict_topk(X)
    rows: list[dict[str, Any]] = []
    for name in SETS:
        if name in missing:
            print(f"{name}: not under EXMLDS_DATA, left out")
            continue
        train, test = load(name)
        for method in (MostFrequent, FeatureNeighbors):
            model = method(random_state=0)
            fit_seconds = seconds(partial(model.fit, train.X, train.Y))
            predict_seconds = seconds(partial(model.predict_topk, test.X, 5))
            weights = metrics.inverse_propensity(train.Y)
            report = metrics.report(test.Y, model.predict_topk(test.X, 5), inverse_propensity=weights)
            row = {
                "data": name,
                "method": method.__name__,
                "train": train.X.shape[0],
                "test": test.X.shape[0],
                "features": train.X.shape[1],
                "labels": train.Y.shape[1],
                "fit_seconds": fit_seconds,
                "ms_per_row": 1000 * predict_seconds / test.X.shape[0],
                **report,
            }
            rows.append(row)
            print(name, method.__name__, *(f"{100 * report[f'P@{k}']:.2f}" for k in (1, 3, 5)))
    write_results(path, {"rows": rows})


if __name__ == "__main__":
    main()
