"""Profile a default fit of ExMLDS stage by stage; docs/performance.md discusses the result.

    EXMLDS_DATA=… python benchmarks/stages.py            # EURLex-4K
    EXMLDS_DATA=… python benchmarks/stages.py mediamill

The seconds are those of the calling thread, which waits for the other threads. The time of a nested stage
counts in both stages.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
from pathlib import Path
from typing import Any

from exmlds import ExMLDS
from exmlds.data import load, make_library
from measure import seconds

STAGES = {
    "search.py": ("search",),
    "pipeline.py": ("fit_shortlister", "shortlists_leave_one_out", "fit_reranker", "score_in_blocks"),
    "stack.py": ("stack", "stacked_quality", "add_top_reranker", "rank_by_stacker"),
    "joint.py": ("epoch",),
    "neighbors.py": ("nearest_sets",),
    "rerank.py": ("examples", "fit"),
    "stacking.py": ("fit", "build_evidence", "fit_label_bias"),
}


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "eurlex-4k"
    books = make_library(200)
    for X in (books.X, books.X.toarray()):  # compile first
        ExMLDS(random_state=0).fit(X, books.Y).predict_topk(X)
    (train, test), profile = load(name), cProfile.Profile()
    model = ExMLDS(random_state=0)
    profile.runcall(model.fit, train.X, train.Y)
    stats: Any = pstats.Stats(profile)
    print(f"{name}: fit {stats.total_tt:.1f} s, shortlists of {model.shortlist_}")
    for (file, _, function), (calls, _, _, spent, _) in sorted(
        stats.stats.items(), key=lambda entry: -entry[1][3]
    ):
        if function in STAGES.get(Path(file).name, ()):
            print(f"  {Path(file).stem + '.' + function:34} {spent:7.2f} s  {calls} calls")
    print(
        f"  predicting {1000 * seconds(lambda: model.predict_topk(test.X, 5)) / test.X.shape[0]:.3f} ms a row"
    )


if __name__ == "__main__":
    main()
