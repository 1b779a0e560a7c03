"""Why a label was said: who voted for it, what made them near, what its classifier saw, how common it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, issparse

from ..stages import features, quantize, rerank, stacking
from ..validation.arrays import Matrix

if TYPE_CHECKING:
    from ..reranking.pipeline import ShortlistScores
    from .base import Learner, NeighborVoting, Part
    from .label_space import LabelSpaceMixin

Array = np.ndarray

SHOWN = 0.005  # log-odds that make a difference in the second digit


class Term(NamedTuple):
    """A feature, by name or number, and what it adds."""

    feature: Any
    weight: float


class Voter(NamedTuple):
    """A training row that voted for the label.

    row : its number, from 0;  similarity : to the row that is explained;  share : what it adds to the votes
    terms : features of the row that is explained by which the two are near, the strongest first: what they
        add to the similarity; where training rows are kept, features that both have; empty where features
        are not mapped linearly
    """

    row: int
    similarity: float
    share: float
    terms: list[Term]


class Margin(NamedTuple):
    """The label's classifier: value = the sum of all terms, those for, those against, `rest` and `bias`."""

    value: float
    bias: float
    for_: list[Term]
    against: list[Term]
    rest: float


class Explanation(NamedTuple):
    """Why a label has its score.

    label, score : as predicted;  prior : share of training rows that have it
    votes : its share of the votes: the voters' shares, those of `other_voters`, and what is `beside` them:
        the nearness of the label itself where a method embeds labels, or its prior where nobody voted
    voters : those with the largest shares
    margin : of its classifier, or None
    log_odds : what each kind of evidence adds, what making the sums level does, what the label's place adds
        where its sum alone gives another one, and the gain of a rare label where these are favoured: s
        together, where 1 / (1 + exp(−s)) is the score; empty where votes are it
    """

    label: Any
    score: float
    prior: float
    votes: float
    voters: list[Voter]
    other_voters: float
    beside: float
    margin: Margin | None
    log_odds: dict[str, float]

    def __str__(self) -> str:
        lines = [
            f"{self.label}: score {self.score:.3f}; {100 * self.prior:.2f}% of the training rows have it"
        ]
        lines += [f"  {self.votes:.3f} of the votes, by the training rows"]
        for row, similarity, share, terms in self.voters:
            lines.append(f"    {row}: {share:.3f}, similarity {similarity:.3f} {_listed(terms)}".rstrip())
        if self.other_voters:
            lines.append(f"    others: {self.other_voters:.3f}")
        if self.beside:
            lines.append(f"    and beside them: {self.beside:.3f}")
        if self.margin is not None:
            lines.append(f"  {self.margin.value:+.3f} by its classifier")
            lines.append(f"    for: {_listed(self.margin.for_)}")
            lines.append(f"    against: {_listed(self.margin.against)}")
        if self.log_odds:
            together = sum(self.log_odds.values())
            lines.append(f"  {together:+.2f} log-odds in all, which is the score of {self.score:.3f}")
            lines += [f"    {kind}: {value:+.2f}" for kind, value in self.log_odds.items()]
        return "\n".join(lines)


class ExplainOptions(NamedTuple):
    """What an explanation should show.

    n : of voters, and of terms;  names : (d,) of features, or None
    kept : gives a training row, (1, d), by its number, or None where they are not kept
    """

    n: int
    names: Any
    kept: Callable[[int], Matrix] | None

    @classmethod
    def of(
        cls, n: int, names: Any, kept: Callable[[int], Matrix] | None, rows: Matrix | None
    ) -> ExplainOptions:
        """rows : (n, d) the training rows, if the model has them."""
        return cls(n, names, kept if rows is None else lambda number: rows[number : number + 1])

    def name(self, column: int) -> Any:
        return int(column) if self.names is None else str(self.names[column])


class VoteBreakdown(NamedTuple):
    """What a label gets of one row's votes: the voters, each once, and what is beside them.

    learners : which one found them, with these similarities; the first, where there are several
    """

    rows: Array
    similarities: Array
    learners: Array
    shares: Array
    beside: float

    @classmethod
    def of(
        cls, rows: Array, similarities: Array, learners: Array, shares: Array, beside: float
    ) -> VoteBreakdown:
        """Of voters that may be asked by several learners."""
        mine = shares > 0
        each, first, which = np.unique(rows[mine], return_index=True, return_inverse=True)
        summed = np.bincount(which, shares[mine], minlength=len(each))
        return cls(each, similarities[mine][first], learners[mine][first], summed, beside)


def _listed(terms: list[Term]) -> str:
    return ", ".join(f"{term.feature} {term.weight:+.2f}" for term in terms)


def by_votes(model: LabelSpaceMixin, X: Matrix, label: int, asked: ExplainOptions) -> Explanation:
    """Why a label has its votes, for the row X, (1, d)."""
    method, numbers = model._voting_model()
    ballot = method.ballot(X, label)
    voters, others = _voters(method, X, ballot, numbers, asked)
    votes = float(ballot.shares.sum() + ballot.beside)
    prior = float(model.label_counts_[label] / model.n_samples_fit_)
    return Explanation(model._label(label), votes, prior, votes, voters, others, ballot.beside, None, {})


def _voters(
    method: NeighborVoting, X: Matrix, ballot: VoteBreakdown, numbers: Array, asked: ExplainOptions
) -> tuple[list[Voter], float]:
    """The voters with the largest shares, and what the others have together.

    X : (1, d);  numbers : what the method's training rows are called
    """
    order = np.argsort(-ballot.shares, kind="stable")
    A, own = features.apply(method.feature_map_, X), csr_matrix(X).indices
    shown = []
    for place in order[: asked.n]:
        row, learner = int(ballot.rows[place]), method.learners_[ballot.learners[place]]
        terms = _terms(learner, A, own, row, int(numbers[row]), asked) if _is_linear(method) else []
        similarity, share = float(ballot.similarities[place]), float(ballot.shares[place])
        shown.append(Voter(int(numbers[row]), similarity, share, terms))
    return shown, float(ballot.shares[order[asked.n :]].sum())


def _is_linear(method: NeighborVoting) -> bool:
    return method.metric == "cosine" and method.feature_map_.kind != "nystroem"


def _terms(
    learner: Learner, A: Matrix, own: Array, row: int, number: int, asked: ExplainOptions
) -> list[Term]:
    """What features of A, (1, d), add to the cosine with a training row, by the learner's map.

    own : those to show; features that are standardized, or kept of the training row, are more or fewer
    """
    part = next(part for part in learner.parts if row in part.rows)
    columns, added = _added(part, A, int(np.flatnonzero(part.rows == row)[0]))
    mine = np.isin(columns, own)
    if asked.kept is not None:
        mine &= np.isin(columns, csr_matrix(asked.kept(number)).indices)
    columns, added = columns[mine], added[mine]
    strongest = np.argsort(-np.abs(added), kind="stable")[: asked.n]
    return [Term(asked.name(columns[i]), float(added[i])) for i in strongest]


def _added(part: Part, A: Matrix, place: int) -> tuple[Array, Array]:
    """Columns of the features of A, (1, d), and their parts of cos(z, z_place), z = A V."""
    rows = part.found.segments[0].rows
    if not isinstance(rows, quantize.Packed):  # a graph keeps its rows to itself
        return np.zeros(0, int), np.zeros(0)
    mine = A[:, part.columns] if len(part.columns) < A.shape[1] else A
    used = mine.indices if issparse(mine) else np.flatnonzero(mine[0])
    values = mine.data if issparse(mine) else np.asarray(mine)[0, used]
    V = quantize.unpack(part.V, used).astype(np.float64)
    z = values @ V
    there = quantize.unpack(rows, slice(place, place + 1))[0].astype(np.float64)
    length = max(float(np.linalg.norm(z)), 1e-30)
    return part.columns[used], values * (V @ there) / length


def margin(classifiers: rerank.Classifiers, A: csr_matrix, label: int, asked: ExplainOptions) -> Margin:
    """The terms w_f x_f of a label's classifier on the row A, (1, d) csr."""
    added = classifiers.weights(label)[A.indices] * A.data
    order = np.argsort(-added, kind="stable")
    strongest, weakest = order[: asked.n], order[::-1][: asked.n]
    for_, against = (
        [Term(asked.name(A.indices[i]), float(added[i])) for i in some if sign * added[i] > 0]
        for some, sign in ((strongest, 1), (weakest, -1))
    )
    shown = sum(term.weight for term in for_ + against)
    bias, total = float(classifiers.bias[label]), float(added.sum())
    return Margin(total + bias, bias, for_, against, total - shown)


def log_odds(
    mix: stacking.Stacker, said: ShortlistScores, column: int, score: float, beside: str
) -> dict[str, float]:
    """What leads to the score of the label in a column of one row's short list, as log-odds.

    beside : what stands between its probability and its score, where they differ
    """
    known = said.evidence()
    added = (known[0, column].astype(np.float64) - mix.mean) / mix.scale * mix.weights
    told = {"start": mix.bias}
    for value, kinds in zip(added, said.kinds(), strict=True):
        for kind in kinds:
            told[kind] = told.get(kind, 0.0) + float(value) / len(kinds)
    if len(mix.label_bias) > 1:
        told["leaning of the label"] = float(mix.label_bias[said.ids[0, column]])
    probability = float(stacking.apply(mix, known, np.maximum(said.ids, 0))[1][0, column])
    more = _logit(score) - _logit(probability)
    if abs(more) < SHOWN:
        probability, more = score, 0.0
    told["made level"] = _logit(probability) - sum(told.values())
    return {**told, beside: more} if more else told


def _logit(p: float) -> float:
    return float(np.log(p / (1 - p)))
