"""Time all metrics at 1, 3 and 5 on a million rows, and compare with napkinXC on a part of them.

pip install -e ".[bench]" && python benchmarks/metrics.py
"""

from __future__ import annotations

import json

import numpy as np

from exmlds import metrics
from exmlds.data import make_xmc
from measure import destination, parser_of, race, seconds, write_results

ROWS, PEER_ROWS, LABELS = 1_000_000, 20_000, 10_000


def main() -> None:
    parser = parser_of(__doc__)
    path = destination(parser, parser.parse_args(), "metrics")
    try:
        import napkinxc.metrics as peer
    except ImportError:
        raise SystemExit("napkinXC is missing; install it with: pip install -e '.[bench]'") from None
    data = make_xmc(ROWS, 200, LABELS, features_per_row=2, random_state=0)
    rng = np.random.default_rng(0)
    # Half of the rows have a true label first, so that no metric is trivial.
    ids = np.argsort(rng.random((ROWS, 40)), axis=1)[:, :5] * 250 + rng.integers(0, 250, (ROWS, 1))
    first = data.Y.indices[data.Y.indptr[:-1]]
    right = (rng.random(ROWS) < 0.5) & ~(ids[:, 1:] == first[:, None]).any(axis=1)
    ids[right, 0] = first[right]
    weights = metrics.inverse_propensity(data.Y)

    def ours(rows: int) -> metrics.MetricReport:
        return metrics.report(data.Y[:rows], ids[:rows], inverse_propensity=weights)

    truth = [row.tolist() for row in np.split(data.Y.indices, data.Y.indptr[1:-1])[:PEER_ROWS]]
    said = ids[:PEER_ROWS].tolist()

    def theirs() -> dict[str, np.ndarray]:
        return {
            "P": peer.precision_at_k(truth, said, 5),
            "R": peer.recall_at_k(truth, said, 5),
            "nDCG": peer.ndcg_at_k(truth, said, 5),
            "PSP": peer.psprecision_at_k(truth, said, weights, 5),
            "PSnDCG": peer.psndcg_at_k(truth, said, weights, 5),
            "coverage": peer.coverage_at_k(truth, said, 5),
        }

    taken = race(3, ours=lambda: ours(PEER_ROWS), theirs=theirs)
    report = ours(PEER_ROWS)
    apart = max(
        abs(report[f"{family}@{k}"] - values[k - 1]) for family, values in theirs().items() for k in (1, 3, 5)
    )
    results = {
        "rows": ROWS,
        "labels": LABELS,
        "seconds": min(seconds(lambda: ours(ROWS)) for _ in range(3)),
        "seconds_with_intervals": seconds(
            lambda: metrics.report(data.Y, ids, inverse_propensity=weights, intervals=True)
        ),
        "P@1": ours(ROWS)["P@1"],
        "peer_rows": PEER_ROWS,
        "seconds_on_peer_rows": taken["ours"],
        "napkinxc_seconds": taken["theirs"],
        "times_as_fast": taken["theirs"] / taken["ours"],
        "largest_difference": float(apart),
    }
    print(json.dumps(results, indent=1))
    write_results(path, results)


if __name__ == "__main__":
    main()
