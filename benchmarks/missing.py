"""The paper's Table 4: precision with hidden labels, with and without the C of all labels.

    EXMLDS_DATA=… python benchmarks/missing.py --validation    # a fifth of the training rows, to develop on
    EXMLDS_DATA=… python benchmarks/missing.py --test          # the test rows, to be read rarely

ExMLDS3 has its default settings. The seed determines which training labels are hidden. `full` passes C = YᵀY
of all training labels, as the paper does; `visible` passes only the remaining labels. Seeds 0–4 are used at
0% and at 80%, where the paper has figures, and seeds 0 and 1 elsewhere. The results of a run with the default
options go to results/, where sets that are not available keep their figures, and each evaluation on test rows
is logged in results/test-readings.jsonl. Those of another run are printed, unless --output FILE names a file,
which keeps its other figures.
"""

from __future__ import annotations

from statistics import mean
from typing import Any

import numpy as np

from exmlds import ExMLDS3, metrics
from exmlds.data import Dataset, available, load
from exmlds.selection import hide_labels, random_split
from measure import destination, parser_of, seconds, several, write_sets

SETS = ("bibtex", "rcv1subset1", "eurlex-4k")
SHARES = (0.8, 0.0, 0.2, 0.4, 0.6, 0.9)
KNOWN = ("full", "visible")
PLACES = (1, 3, 5)


def one(train: Dataset, test: Dataset, share: float, known: str, seed: int) -> dict[str, Any]:
    visible = hide_labels(train.Y, share, random_state=seed)
    C = train.Y.T @ train.Y if known == "full" else None
    model = ExMLDS3(random_state=seed)
    taken = seconds(lambda: model.fit(train.X, visible, label_cooccurrence=C))
    ranking = metrics.Ranking(test.Y, model.predict_topk(test.X, 5), 5)
    per_row = {f"P@{k}": ranking.sums(f"P@{k}")[0] for k in PLACES}
    return {
        **{name: float(values.mean()) for name, values in per_row.items()},
        "standard_error": {name: float(v.std() / np.sqrt(len(v))) for name, v in per_row.items()},
        "fit_seconds": taken,
        "visible_share": model.visible_share_,
        "chosen": [model.features_, model.l2_, model.temperature_, model.mu_, model.complete_labels_],
    }


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    names = ("P@1", "P@3", "P@5", "fit_seconds", "visible_share")
    return {
        **{name: mean(run[name] for run in runs) for name in names},
        "standard_error": {k: mean(run["standard_error"][k] for run in runs) for k in ("P@1", "P@3", "P@5")},
        "chosen": [run["chosen"] for run in runs],
        "seeds": len(runs),
    }


def main() -> None:
    parser = parser_of(__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--validation", action="store_true")
    which.add_argument("--test", action="store_true")
    known_sets = dict.fromkeys((*SETS, *available()))
    parser.add_argument("--sets", type=several(known_sets), default=SETS, help="names, separated by commas")
    options = parser.parse_args()
    split = "validation" if options.validation else "test"
    path = destination(parser, options, f"missing-{split}", free=("validation", "test"))
    results: dict[str, Any] = {}
    for name in options.sets:
        if name not in available():
            print(f"{name}: not under EXMLDS_DATA, left out")
            continue
        train, test = load(name)
        if options.validation:
            fit_rows, held_rows = random_split(train.X.shape[0], 0.2, random_state=1)
            train, test = train.rows(fit_rows), train.rows(held_rows)
        results[name] = {known: {} for known in KNOWN}
        for share in SHARES:
            for known in KNOWN:
                seeds = range(5 if share in (0.8, 0.0) else 2)
                runs = [one(train, test, share, known, seed) for seed in seeds]
                row = results[name][known][str(share)] = summary(runs)
                shown = "/".join(f"{100 * row[f'P@{k}']:.2f}" for k in PLACES)
                error = "/".join(f"{100 * e:.2f}" for e in row["standard_error"].values())
                print(
                    f"{name} {share:.0%} hidden, {known}: {shown} ± {error}, {row['fit_seconds']:.1f} s",
                    flush=True,
                )
                if share == 0 and known == "full":  # without hidden labels, both cases are the same
                    results[name]["visible"]["0.0"] = row
                    break
    write_sets("missing", split, results, path)


if __name__ == "__main__":
    main()
