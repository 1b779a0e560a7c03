"""Measure the calibration error of the probabilities of ExMLDS on the test rows.

    EXMLDS_DATA=… python benchmarks/calibration.py    # reads the test rows

This is the expected calibration error over the five best labels of each row, in 15 bins of equal size, with
seed 0.
"""

from __future__ import annotations

from exmlds import ExMLDS, metrics
from exmlds.data import available, load
from measure import destination, parser_of, write_results

SETS = ("eurlex-4k", "citeulike-t", "delicious", "bibtex")


def main() -> None:
    parser = parser_of(__doc__)
    missing = [name for name in SETS if name not in available()]
    path = destination(parser, parser.parse_args(), "calibration", missing=missing)
    sets = {}
    for name in SETS:
        if name in missing:
            print(f"{name}: not under EXMLDS_DATA, left out")
            continue
        train, test = load(name)
        model = ExMLDS(random_state=0).fit(train.X, train.Y)
        error, said, found = metrics.calibration(test.Y, model.predict_topk(test.X, 5))
        sets[name] = {"error": error, "said": said.tolist(), "found": found.tolist()}
        print(f"{name}: {error:.4f}", flush=True)
    write_results(path, {"places": 5, "bins": 15, "sets": sets})


if __name__ == "__main__":
    main()
