"""Performance-critical operations: arrays in, preallocated arrays out.

`jit/` compiles them with numba. `reference/` holds a slow and obvious NumPy twin of each, with the same
signature and no shared code; both have one file per topic. `cuda/` has those that take most of the time of a
fit, for a graphics card. An `Engine` gives the operations of one of them; EXMLDS_KERNELS=reference makes the
twins the default.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any

import numpy as np

OPERATIONS = {
    "parse_rows": "xc_parser",
    "sparse_topk": "topk",
    "merge_topk": "topk",
    "search_rows": "topk",
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
    "multiply_packed": "joint",
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
    "weigh_pairs": "stacking",
    "logistic_sums": "stacking",
    "label_sums": "stacking",
    "ftrl_rows": "gate",
    "pair_products": "pairs",
    "warp_rows": "warp",
    "multiply_csr": "products",
    "multiply_dense": "products",
    "train_hinge": "hinge",
    "train_max_margin": "max_margin",
    "assign_sides": "trees",
    "fit_separators": "trees",
    "route_rows": "trees",
}

ENGINES = ("jit", "reference")
DEVICES = ("cpu", "cuda")  # that `engine_of` knows
ON_CARD = frozenset(
    {
        *("train_batches", "multiply_packed", "search_rows", "sparse_topk", "rescore", "vote"),
        *("train_labels", "score_labels", "weigh_pairs", "multiply_csr", "multiply_dense"),
    }
)


class Engine:
    """One implementation of all operations, each loaded when it is first used.

    An estimator has an engine and passes it on to the stages.

    on_card : operations that run on the graphics card
    searches_cells : whether a search reads the nearest cells of an index alone, where it has some
    training_threads : most threads of the host that call `train_batches` together
    batches : of joint learning that are trained in one call
    block_examples : examples of the labels that are trained in one call, at least
    block_rows : rows that are searched for or ranked in one call, at least
    """

    def __init__(self, name: str, on_card: frozenset[str] = frozenset()) -> None:
        if name not in ENGINES:
            raise ValueError(f"EXMLDS_KERNELS must be 'jit' or 'reference'. Got {name!r} instead.")
        self.name, self.on_card = name, on_card
        self.searches_cells = not on_card
        self.training_threads = 1 if on_card else 1_024
        self.batches = 1_000_000 if on_card else 32
        self.block_examples = 2**23 if on_card else 2**14
        self.block_rows = 1_024 if on_card else 96

    def __getattr__(self, name: str) -> Any:
        if name not in OPERATIONS:
            raise AttributeError(f"There is no operation {name!r}.")
        package = "cuda" if name in self.on_card else self.name
        operation = getattr(import_module(f".{package}.{OPERATIONS[name]}", __name__), name)
        setattr(self, name, operation)
        return operation

    def memory_limit(self, most: float | None) -> AbstractContextManager[None]:
        """Take at most so many bytes of the graphics card, if there is one, inside the `with` block."""
        if most is None or not self.on_card:
            return nullcontext()
        from .cuda import device as card

        return card.current().memory_limit(most)

    def __reduce__(self) -> tuple[Any, ...]:
        return _named, (self.name, bool(self.on_card))

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
CARD = Engine(DEFAULT.name, ON_CARD)


def _named(name: str, is_on_card: bool) -> Engine:
    """The engine that was pickled."""
    own = CARD if is_on_card else DEFAULT
    return own if own.name == name else Engine(name, own.on_card)


def engine_of(device: str) -> Engine:
    """The engine of a device: "cpu", or "cuda", which needs CuPy and an NVIDIA card."""
    if device == "cpu":
        return DEFAULT
    from .cuda import device as card

    card.current()  # complains here where it is missing, before any work is done
    return CARD
