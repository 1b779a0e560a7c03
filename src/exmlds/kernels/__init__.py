"""Performance-critical operations: arrays in, preallocated arrays out.

`jit/` compiles them with numba. `reference/` holds a slow and obvious NumPy twin of each, with the same
signature and no shared code; both have one file per topic. An `Engine` gives the operations of one of
them; EXMLDS_KERNELS=reference makes the twins the default.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import numpy as np

OPERATIONS = {
    "parse_rows": "xc_parser",
    "sparse_topk": "topk",
    "merge_topk": "topk",
    "choose_cells": "topk",
    "search_cells": "topk",
    "rescore": "topk",
    "rank_rows": "topk",
    "vote": "vote",
    "add_votes": "vote",
    "mark_hits": "hits",
    "find_repeated": "hits",
    "split_by_labels": "split",
    "find_names": "names",
    "collect_matches": "names",
    "row_lengths": "rows",
    "fingerprint_rows": "rows",
    "scale_rows": "rows",
    "pad_rows": "rows",
    "multiply_rows": "rows",
    "inner_products": "rows",
    "match_evidence": "names",
    "match_logits": "names",
    "join_lists": "names",
    "gram_rows": "gram",
    "expand_neighbors": "neighbors",
    "nearest_sets": "topk",
    "sgns_pairs": "sgns",
    "embed_rows": "joint",
    "negative_weights": "joint",
    "softmax_gradient": "joint",
    "adagrad_rows": "joint",
    "train_batches": "joint",
    "collect_examples": "rerank",
    "merge_examples": "rerank",
    "select_examples": "rerank",
    "train_labels": "rerank",
    "average_rows": "rerank",
    "group_by_feature": "rerank",
    "merge_weights": "rerank",
    "score_labels": "rerank",
    "weigh_evidence": "stacking",
    "logistic_sums": "stacking",
    "label_sums": "stacking",
    "ftrl_rows": "gate",
    "pair_products": "pairs",
    "warp_rows": "warp",
    "train_hinge": "hinge",
    "train_max_margin": "max_margin",
    "assign_sides": "trees",
    "fit_separators": "trees",
    "route_rows": "trees",
}

ENGINES = ("jit", "reference")


class Engine:
    """One implementation of all operations, each loaded when it is first used.

    An estimator has an engine and passes it on to the stages.
    """

    def __init__(self, name: str) -> None:
        if name not in ENGINES:
            raise ValueError(f"EXMLDS_KERNELS must be 'jit' or 'reference'. Got {name!r} instead.")
        self.name = name

    def __getattr__(self, name: str) -> Any:
        if name not in OPERATIONS:
            raise AttributeError(f"There is no operation {name!r}.")
        operation = getattr(import_module(f".{self.name}.{OPERATIONS[name]}", __name__), name)
        setattr(self, name, operation)
        return operation

    def products(self, X: np.ndarray, W: np.ndarray) -> np.ndarray:
        """(n, r) float32, x W of each dense row x by itself (`multiply_rows`)."""
        Z = np.empty((len(X), W.shape[1]), np.float32)
        self.multiply_rows(np.ascontiguousarray(X, np.float32), np.ascontiguousarray(W, np.float32), Z)
        return Z

    def similarities(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """(n, m) float32, the inner products of all rows of A and B, each by itself (`inner_products`)."""
        products = np.empty((len(A), len(B)), np.float32)
        self.inner_products(np.ascontiguousarray(A, np.float32), np.ascontiguousarray(B), products)
        return products


DEFAULT = Engine(os.environ.get("EXMLDS_KERNELS", "jit"))
