"""Fit the stacker on the short lists of held-out rows, and rank the labels of short lists by it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from ..base import BLOCK
from ..runtime import parallel
from ..runtime.logs import logger
from ..selection import TrainingSet
from ..stages import stacking, top_rerank
from ..validation.observed import contains, known_cells
from ..voting.settings_search import mean_precision
from .pipeline import ShortlistScores

Array = np.ndarray
Result = TypeVar("Result")

STACKER_PAIRS = 200_000  # pairs of a row and a label that the stacker is fitted on, at most
TRIAL_PAIRS = 80_000  # those of a stacker that only compares configurations
TIE_STEP = np.float32(2**-22)  # relative step between equal scores of neighbouring ranks: two float32 steps


class HeldOutEvidence(NamedTuple):
    """What a stacker is fitted on.

    ids : (h, k) the short lists of held-out rows, −1 pads;  evidence : (h, k, f) on their labels
    hits : (h, k) bool, whether the row has the label;  is_known : (h, k) bool, whether that can be judged
    row_weights : (h,) sample weights, or None;  n_labels : number of all labels
    """

    ids: Array
    evidence: Array
    hits: Array
    is_known: Array
    row_weights: Array | None
    n_labels: int

    @classmethod
    def of(cls, scores: ShortlistScores, held_out: TrainingSet, n_jobs: int | None = None) -> HeldOutEvidence:
        evidence = np.empty((*scores.ids.shape, len(scores.evidence_names())), np.float32)

        def write(rows: slice) -> None:
            evidence[rows] = scores.slice(rows, slice(None)).evidence()

        _in_blocks(write, len(evidence), n_jobs)
        is_known = known_cells(held_out.observed, scores.ids)
        hits = contains(held_out.Y, scores.ids) & is_known
        return cls(scores.ids, evidence, hits, is_known, held_out.row_weights, held_out.Y.shape[1])

    def pairs(self, n: int | None = None) -> stacking.HeldOutPairs:
        """The pairs of the first n rows and the labels on their lists that can be judged."""
        known, weights = self.is_known[:n], None
        if self.row_weights is not None:
            weights = np.broadcast_to(self.row_weights[:n, None], known.shape)[known]
        evidence = self.evidence[:n]
        # Almost always all cells are known, and nothing has to be copied.
        flat = evidence.reshape(-1, evidence.shape[2]) if known.all() else evidence[known]
        return stacking.HeldOutPairs(flat, self.ids[:n][known], self.hits[:n][known], weights)


class Stacked(NamedTuple):
    """A stacker fitted on held-out rows, and what it makes of them.

    ids, probabilities : (h, k) of the held-out rows, best first
    recall : share of their true labels on the short lists;  quality : the mean of P@1, P@3 and P@5
    """

    stacker: stacking.Stacker
    ids: Array
    probabilities: Array
    recall: float
    quality: float


def stack(
    scores: ShortlistScores, held: TrainingSet, k: int, gains: Array | None, n_jobs: int | None
) -> Stacked:
    """Fit the stacker, the label biases and the top re-ranker on held-out rows, and calibrate probabilities.

    gains : (L,) weights of the labels where rare ones are favoured; the top re-ranker is left out then
    """
    given = HeldOutEvidence.of(scores, held, n_jobs)
    stacker = _fit_stacker(given, STACKER_PAIRS, n_jobs)
    stacker = stacking.fit_label_bias(stacker, given.pairs(), given.n_labels, n_jobs=n_jobs)
    if gains is None:
        stacker = add_top_reranker(stacker, given)
    recall = float(contains(held.Y, scores.ids).sum() / max(held.Y.nnz, 1))
    ids, probabilities = _rank_held_out(stacker, given, k, gains, n_jobs)
    quality = mean_precision(held.Y, ids[:, :5])
    logger.debug("held-out rows: mean of P@1, P@3 and P@5 %.4f, recall of short lists %.4f", quality, recall)
    return Stacked(stacker, ids, probabilities, recall, quality)


def stacked_quality(scores: ShortlistScores, held: TrainingSet, n_jobs: int | None = None) -> float:
    """The mean of P@1, P@3 and P@5 on held-out rows, by a stacker fitted on them."""
    given = HeldOutEvidence.of(scores, held, n_jobs)
    stacker = _fit_stacker(given, TRIAL_PAIRS, n_jobs)
    return mean_precision(held.Y, _rank_held_out(stacker, given, 5, None, n_jobs)[0])


def _fit_stacker(given: HeldOutEvidence, n_pairs: int, n_jobs: int | None) -> stacking.Stacker:
    """Fit the stacker on the first rows, about as many as have this number of pairs."""
    return stacking.fit(given.pairs(n_pairs // given.ids.shape[1] + 1), n_jobs=n_jobs)


def add_top_reranker(stacker: stacking.Stacker, given: HeldOutEvidence) -> stacking.Stacker:
    """Fit the re-ranker of the top 9 on held-out scores."""
    logits = _logits(stacker, given.evidence, np.where(given.is_known, given.ids, -1))
    best = stacking.largest(logits, top_rerank.TOPK_CANDIDATES)
    weights = top_rerank.fit(
        _taken(given.evidence, best), _taken(logits, best), _taken(given.hits, best), given.row_weights
    )
    return stacker._replace(top_weights=weights)


def _rank_held_out(
    stacker: stacking.Stacker, given: HeldOutEvidence, k: int, gains: Array | None, n_jobs: int | None
) -> tuple[Array, Array]:
    """The k best labels of held-out rows, with probabilities."""

    def rank(rows: slice) -> tuple[Array, Array]:
        ids, evidence = given.ids[rows], given.evidence[rows]
        return rank_by_stacker(
            stacker, ids, _logits(stacker, evidence, ids), partial(_taken, evidence), k, gains
        )

    ranked = _in_blocks(rank, len(given.ids), n_jobs)
    ids, probabilities = map(np.concatenate, zip(*ranked))
    return ids, probabilities


def _in_blocks(work: Callable[[slice], Result], n: int, n_jobs: int | None) -> list[Result]:
    return list(
        parallel.map_blocks(work, parallel.fine_blocks(n, BLOCK), n_jobs=n_jobs, stage="stacking", total=n)
    )


def _taken(values: Array, columns: Array) -> Array:
    """(b, m, …) what each row has in these columns, (b, m)."""
    return values[np.arange(len(values))[:, None], columns]


def rank_by_stacker(
    stacker: stacking.Stacker,
    ids: Array,
    logits: Array,
    evidence: Callable[[Array], Array],
    k: int,
    gains: Array | None = None,
) -> tuple[Array, Array]:
    """The k best labels of short lists, with probabilities, times `gains` of labels if given.

    A label that the top re-ranker moves up takes the probability of its new rank, and those that it passes
    take the next ones, so that probabilities stay sorted.

    ids : (b, k) short lists, −1 pads;  logits : (b, k) of their labels, −inf for pads
    evidence : gives (b, m, f), that on the labels in these columns, (b, m)
    """
    scores = logits
    if gains is not None:
        scores = stacking.probabilities(stacker, logits) * gains[ids]
        scores[ids < 0] = -np.inf
    best = stacking.largest(scores, max(k, top_rerank.TOPK_CANDIDATES))
    values = _taken(logits if gains is None else scores, best)
    if gains is None:
        values = stacking.probabilities(stacker, values)
    if stacker.top_weights is not None:
        top = best[:, : top_rerank.TOPK_CANDIDATES]
        order = top_rerank.order(stacker.top_weights, evidence(top), _taken(logits, top))
        best = np.concatenate([_taken(top, order), best[:, top_rerank.TOPK_CANDIDATES :]], axis=1)
    ids = _taken(ids, best)
    return ids[:, :k], np.where(ids >= 0, break_ties(values), 0)[:, :k]


def extend_by_votes(
    best: Array, probabilities: Array, scores: ShortlistScores, k: int, gains: Array | None
) -> tuple[Array, Array]:
    """Append labels beyond the short list, by votes; their scores are below all of the list."""
    ids, votes = scores.ids[:, best.shape[1] : k], scores.votes[:, best.shape[1] : k]
    first = np.maximum(votes.max(axis=1, keepdims=True, initial=0), np.finfo(np.float32).tiny)
    certainty, present = probabilities if gains is None else probabilities / gains[best], best >= 0
    least = np.min(certainty, axis=1, keepdims=True, where=present, initial=1)
    after = least * np.minimum(votes / first, 1)
    if gains is not None:
        last = np.min(probabilities, axis=1, keepdims=True, where=present, initial=1)
        after = np.minimum.accumulate(np.minimum(after * gains[ids], last), axis=1)
    return np.hstack([best, ids]), np.hstack([probabilities, break_ties(after, 1)])


def break_ties(scores: Array, first: int = 0) -> Array:
    """Scores (n, k) that do not rise, with equal ones made to fall slightly: sorting then keeps their order.

    first : the rank of the first column
    """
    return scores * (1 - TIE_STEP * np.arange(first, first + scores.shape[1], dtype=np.float32))


def _logits(stacker: stacking.Stacker, evidence: Array, ids: Array) -> Array:
    """(b, k) the logits of the labels on short lists; those of pads are −inf."""
    return np.where(ids >= 0, stacking.logits(stacker, evidence, ids), -np.inf)
