"""Record what every method predicts, and compare later: a change of the code should not change predictions.

    EXMLDS_DATA=… python benchmarks/freeze.py record          # writes results/frozen.npz
    EXMLDS_DATA=… python benchmarks/freeze.py check           # exit code 1 where predictions differ
    EXMLDS_DATA=… python benchmarks/freeze.py check --sets library bibtex --seeds 0 --only ExMLDS4

The record holds the top 20 ids and scores of a few test rows for every method, with its defaults and with its
`paper()` settings. Ids must be equal and scores equal to 1e-6. Test labels are not read. Another processor or
another version of a library may round differently, so make a record on the machine that checks it. --output
FILE names another record; a part is recorded only where it is named.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import exmlds
from exmlds import ExMLDS, ExMLDS1, ExMLDS2, ExMLDS3, ExMLDS4, FeatureNeighbors, MostFrequent, TextClassifier
from exmlds.data import load, make_library, open_texts
from exmlds.data.registry import find
from measure import RESULTS, changed_options, parser_of

Array = np.ndarray
Frozen = dict[str, Array]

RECORD = RESULTS / "frozen.npz"
TOP, QUERIES, LARGEST = 20, 25, 5_000  # labels a row, test rows a set, training rows a set
SETS = ("library", "bibtex", "reuters21578-90", "eurlex-4k", "mediamill")
TOLERANCE = 1e-6

# How each method is fitted: an estimator from a seed, and what `fit` takes beside X and Y.
Fit = tuple[Callable[[int], Any], Callable[[Any], dict[str, Any]]]


def plain(_: Any) -> dict[str, Any]:
    return {}


def observed(Y: Any) -> dict[str, Any]:
    """Half of the cells of each row are observed."""
    known = np.random.default_rng(0).random(Y.shape) < 0.5
    return {"observed": known.astype(np.float32)}


def weighted(Y: Any) -> dict[str, Any]:
    return {"sample_weight": np.random.default_rng(0).uniform(0.5, 2.0, Y.shape[0])}


FITS: dict[str, Fit] = {
    "ExMLDS": (lambda seed: ExMLDS(random_state=seed, time_budget=None), plain),
    "ExMLDS psp": (lambda seed: ExMLDS(random_state=seed, objective="psp"), plain),
    "ExMLDS observed": (lambda seed: ExMLDS(random_state=seed), observed),
    "ExMLDS sample_weight": (lambda seed: ExMLDS(random_state=seed), weighted),
    "ExMLDS1": (lambda seed: ExMLDS1(random_state=seed), plain),
    "ExMLDS1.paper": (lambda seed: ExMLDS1.paper(random_state=seed), plain),
    "ExMLDS2": (lambda seed: ExMLDS2(random_state=seed), plain),
    "ExMLDS2.paper": (lambda seed: ExMLDS2.paper(random_state=seed), plain),
    "ExMLDS3": (lambda seed: ExMLDS3(random_state=seed), plain),
    "ExMLDS3.paper": (lambda seed: ExMLDS3.paper(random_state=seed), plain),
    "ExMLDS4": (lambda seed: ExMLDS4(random_state=seed), plain),
    # Two of the paper's 15 learners, which differ in nothing but their seeds.
    "ExMLDS4.paper": (lambda seed: ExMLDS4.paper(random_state=seed, n_learners=2), plain),
    "FeatureNeighbors": (lambda seed: FeatureNeighbors(random_state=seed), plain),
    "MostFrequent": (lambda seed: MostFrequent(random_state=seed), plain),
}


def data(name: str) -> tuple[Any, Any, Any]:
    """The training matrices X and Y, and the features of a few test rows."""
    if name == "library":
        books = make_library(1_000, random_state=0)
        return books.X[:800], books.Y[:800], books.X[800 : 800 + QUERIES]
    train, test = load(name)
    return train.X[:LARGEST], train.Y[:LARGEST], test.X[:QUERIES]


def predictions(sets: list[str], seeds: list[int], only: list[str]) -> Iterator[tuple[str, Array, Array]]:
    """Yield the name of each fit with its predicted ids and scores."""
    for name in sets:
        X, Y, queries = data(name)
        for label, (make, side) in FITS.items():
            if only and label.split()[0].split(".")[0] not in only:
                continue
            for seed in seeds:
                yield f"{name}/{label}/{seed}", *make(seed).fit(X, Y, **side(Y)).predict_topk(queries, TOP)
        if name.startswith("reuters") and (not only or "TextClassifier" in only):
            train, test = (find(name, split).with_name(f"{split}.jsonl.gz") for split in ("train", "test"))
            texts = [document.text for document in open_texts(test)][:QUERIES]
            for seed in seeds:
                model = TextClassifier(model=ExMLDS(random_state=seed)).fit(open_texts(train))
                yield f"{name}/TextClassifier/{seed}", *model.predict_topk(texts, TOP)


def difference(before: Frozen, fit: str, ids: Array, scores: Array) -> str | None:
    """Describe the difference from the record, or return None."""
    if f"{fit}/ids" not in before:
        return "is not in the record"
    n_moved = int((before[f"{fit}/ids"] != ids).any(axis=1).sum())
    if n_moved:
        return f"has other ids in {n_moved} of {len(ids)} rows"
    largest = float(np.abs(before[f"{fit}/scores"] - scores).max())
    return f"has scores that differ by {largest:.1e}" if largest > TOLERANCE else None


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("action", choices=("record", "check"))
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--only", nargs="+", default=[], help="names of classes")
    options = parser.parse_args()
    changed = changed_options(parser, options, free=("action",))
    if options.action == "record" and changed and options.output is None:
        parser.error(f"{', '.join(changed)} records a part; name the file that it is added to with --output")
    record = options.output or RECORD
    before: Frozen = dict(np.load(record)) if record.is_file() else {}
    failed, started = 0, time.perf_counter()
    for fit, ids, scores in predictions(options.sets, options.seeds, options.only):
        if options.action == "record":
            before |= {f"{fit}/ids": ids.astype(np.int32), f"{fit}/scores": scores}
            np.savez_compressed(record, **before)  # type: ignore[arg-type]
            found = None
        else:
            found = difference(before, fit, ids, scores)
        failed += found is not None
        print(f"{time.perf_counter() - started:7.1f} s  {fit}: {found or 'ok'}", flush=True)
    print(f"exmlds {exmlds.__version__}: {failed} fits differ", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
