"""Why a label has its probability: the terms of its classifier, and what each kind of evidence adds."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from ..stages import rerank, stacking
from ..voting.explain import ExplainOptions, Margin, Term
from .pipeline import ShortlistScores

Array = np.ndarray

SHOWN = 0.005  # log-odds that make a difference in the second digit


def margin(classifiers: rerank.Classifiers, A: csr_matrix, label: int, options: ExplainOptions) -> Margin:
    """The terms w_f x_f of a label's classifier on the row A, (1, d) csr."""
    added = classifiers.weights(label)[A.indices] * A.data
    order = np.argsort(-added, kind="stable")
    strongest, weakest = order[: options.n], order[::-1][: options.n]
    for_, against = (
        [Term(options.name(A.indices[i]), float(added[i])) for i in some if sign * added[i] > 0]
        for some, sign in ((strongest, 1), (weakest, -1))
    )
    shown = sum(term.weight for term in for_ + against)
    bias, total = float(classifiers.bias[label]), float(added.sum())
    return Margin(total + bias, bias, for_, against, total - shown)


def log_odds(
    stacker: stacking.Stacker,
    scores: ShortlistScores,
    column: int,
    score: float,
    adjustment: str,
    engine: Any,
) -> dict[str, float]:
    """What adds up to the logit of the score of the label in a column of one row's short list.

    adjustment : the name of what stands between its probability and its score, where they differ
    """
    evidence = scores.evidence()
    added = (evidence[0, column].astype(np.float64) - stacker.mean) / stacker.scale * stacker.weights
    terms = {"bias": stacker.bias}
    for value, names in zip(added, scores.evidence_names(), strict=True):
        for name in names:
            terms[name] = terms.get(name, 0.0) + float(value) / len(names)
    if len(stacker.label_bias) > 1:
        terms["label bias"] = float(stacker.label_bias[scores.ids[0, column]])
    logits = scores.logits(stacker, engine)
    probability = float(stacking.probabilities(stacker, logits)[0, column])
    adjusted = _logit(score) - _logit(probability)
    if abs(adjusted) < SHOWN:
        probability, adjusted = score, 0.0
    terms["calibration"] = _logit(probability) - sum(terms.values())
    return {**terms, adjustment: adjusted} if adjusted else terms


def _logit(p: float) -> float:
    return float(np.log(p / (1 - p)))
