"""Measure how much the fixed split of a set matters: compare methods on it and on random splits of all rows.

    EXMLDS_DATA=… python benchmarks/splits.py            # Delicious

Random splits have test rows of the fixed split among their training rows, so no choice may be based on them.
They give the figure that is comparable with published figures on other splits.
"""

from __future__ import annotations

from statistics import mean, stdev
from typing import Any

import numpy as np
from scipy.sparse import vstack

from exmlds import ExMLDS, FeatureNeighbors, metrics
from exmlds.data import Dataset, load
from measure import destination, parser_of, write_results

SEEDS = 5
MEASURES = ("P@1", "P@3", "P@5")


def precisions(method: Any, train: Dataset, test: Dataset, seed: int) -> list[float]:
    model = method(random_state=seed).fit(train.X, train.Y)
    ranking = metrics.Ranking(test.Y, model.predict_topk(test.X, 5)[0], 5)
    return [ranking.value(name) for name in MEASURES]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("set", nargs="?", default="delicious", help="a data set")
    options = parser.parse_args()
    path = destination(parser, options, "splits")
    name = options.set
    train, test = load(name)
    n = train.X.shape[0]
    both = train._replace(X=vstack([train.X, test.X]).tocsr(), Y=vstack([train.Y, test.Y]).tocsr())
    found: dict[str, Any] = {}
    for method in (FeatureNeighbors, ExMLDS):
        given = [precisions(method, train, test, seed) for seed in range(SEEDS)]
        drawn = []
        for seed in range(SEEDS):
            order = np.random.default_rng(seed).permutation(both.X.shape[0])
            drawn.append(precisions(method, both.rows(order[:n]), both.rows(order[n:]), seed))
        found[method.__name__] = {
            kind: {
                m: {"mean": mean(run[i] for run in runs), "sd": stdev(run[i] for run in runs)}
                for i, m in enumerate(MEASURES)
            }
            for kind, runs in (("given", given), ("random", drawn))
        }
        for kind, row in found[method.__name__].items():
            shown = ", ".join(f"{m} {100 * v['mean']:.2f} (sd {100 * v['sd']:.2f})" for m, v in row.items())
            print(f"{name} {method.__name__} on {kind} splits: {shown}", flush=True)
    write_results(path, {"set": name, "seeds": SEEDS, "methods": found})


if __name__ == "__main__":
    main()
