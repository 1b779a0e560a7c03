"""Performance-critical operations: arrays in, preallocated arrays out.

`jit/` compiles them with numba. `reference/` holds a slow and obvious NumPy twin of each, with the same
signature and no shared code; both have one file per topic. EXMLDS_KERNELS=reference runs everything on the
twins.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

OPERATIONS = {
    "parse_rows": "xc_parser",
    "sparse_topk": "topk",
    "merge_topk": "topk",
    "rank_rows": "topk",
    "vote": "vote",
    "add_votes": "vote",
    "mark_hits": "hits",
    "split_by_labels": "split",
    "gram_rows": "gram",
    "expand_neighbors": "neighbors",
    "nearest_sets": "topk",
    "sgns_pairs": "sgns",
    "adagrad_features": "joint",
    "train_labels": "rerank",
    "score_labels": "rerank",
    "ftrl_rows": "gate",
}

ENGINE = os.environ.get("EXMLDS_KERNELS", "jit")
if ENGINE not in ("jit", "reference"):
    raise ValueError(f"EXMLDS_KERNELS must be 'jit' or 'reference'. Got {ENGINE!r} instead.")


def __getattr__(name: str) -> Any:
    if name not in OPERATIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    operation = getattr(import_module(f".{ENGINE}.{OPERATIONS[name]}", __name__), name)
    globals()[name] = operation
    return operation
