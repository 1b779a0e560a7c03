"""The paper's Table 4: precision with hidden labels, with and without the C of all labels.

    EXMLDS_DATA=… python benchmarks/missing.py --validation    # a fifth of the training rows, to develop on
    EXMLDS_DATA=… python benchmarks/missing.py --test          # the test rows, to be read rarely

The seed determines which training labels are hidden. `full` passes C = YᵀY of all training labels, as the
paper does; `visible` passes only the remaining labels. Both have the default settings of ExMLDS3, and
`paper-full` and `paper-visible` have those of ExMLDS3.paper(). Seeds 0–4 are used at 0% and at 80%, where
the paper has figures, and seeds 0 and 1 elsewhere, unless --seeds is given. The results of a run with the
default options go to results/, where sets that are not available keep their figures, and each evaluation on
test rows is logged in results/test-readings.jsonl. Those of another run are printed, unless --output FILE
names a file, which keeps its other figures.
"""

from __future__ import annotations

import argparse
from statistics import mean
from typing import Any

import numpy as np

from exmlds import ExMLDS3, metrics
from exmlds.data import Dataset, available, load
from exmlds.selection import hide_labels, random_split
from measure import destination, parser_of, seconds, several, write_sets

SETS = ("bibtex", "rcv1subset1", "eurlex-4k")
SHARES = (0.8, 0.0, 0.2, 0.4, 0.6, 0.9)
SHARES_OF_PAPER = (0.8, 0.0)
# The method, and whether it is given the C of all labels.
VARIANTS: dict[str, tuple[Any, bool]] = {
    "full": (ExMLDS3, True),
    "visible": (ExMLDS3, False),
    "paper-full": (ExMLDS3.paper, True),
    "paper-visible": (ExMLDS3.paper, False),
}
PLACES = (1, 3, 5)


def parse_shares(text: str) -> list[float]:
    """An argparse type: shares of hidden labels, separated by commas."""
    shares = [float(part) for part in text.split(",")]
    if not all(0 <= share < 1 for share in shares):
        raise argparse.ArgumentTypeError(f"shares must be at least 0 and below 1, not {text!r}")
    return shares


def one(train: Dataset, test: Dataset, share: float, variant: str, seed: int) -> dict[str, Any]:
    visible = hide_labels(train.Y, share, random_state=seed)
    method, knows_all = VARIANTS[variant]
    C = train.Y.T @ train.Y if knows_all else None
    model = method(random_state=seed)
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
    parser.add_argument("--shares", type=parse_shares, default=SHARES, help="numbers, separated by commas")
    parser.add_argument(
        "--variants", type=several(VARIANTS), default=("full", "visible"), help=",".join(VARIANTS)
    )
    parser.add_argument("--seeds", type=int, choices=range(1, 101), metavar="N")
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
        rows: dict[str, Any] = {variant: {} for variant in options.variants}
        for share in options.shares:
            for variant in options.variants:
                same = variant.replace("visible", "full")
                if share == 0 and "0.0" in rows.get(same, {}):  # C is the same without hidden labels
                    rows[variant]["0.0"] = rows[same]["0.0"]
                    continue
                seeds = range(options.seeds or (5 if share in SHARES_OF_PAPER else 2))
                runs = [one(train, test, share, variant, seed) for seed in seeds]
                row = rows[variant][str(share)] = summary(runs)
                shown = "/".join(f"{100 * row[f'P@{k}']:.2f}" for k in PLACES)
                error = "/".join(f"{100 * e:.2f}" for e in row["standard_error"].values())
                print(
                    f"{name} {share:.0%} hidden, {variant}: {shown} ± {error}, {row['fit_seconds']:.1f} s",
                    flush=True,
                )
        results[name] = rows
    write_sets("missing", split, results, path)


if __name__ == "__main__":
    main()
