"""Why a label has its score: the training rows that voted for it, and the features that made them near."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import shorten
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, issparse

from ..display import harmless, html_table
from ..stages import features, index, quantize
from ..validation.arrays import Matrix
from .votes import Learner, Part, VotingModel

Array = np.ndarray


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
    text, id : the training text, and its id if it has one, where the model keeps them
    """

    row: int
    similarity: float
    share: float
    terms: list[Term]
    text: str | None = None
    id: str | None = None

    @property
    def name(self) -> str:
        """The id and the beginning of the text, or the number of the row."""
        if self.text is None:
            return str(self.row)
        text = shorten(harmless(self.text), 80)
        return text if self.id is None else f"{harmless(self.id)} ({text})"


class Margin(NamedTuple):
    """The label's classifier: value = the sum of all terms, those for, those against, `rest` and `bias`."""

    value: float
    bias: float
    for_: list[Term]
    against: list[Term]
    rest: float


class Explanation(NamedTuple):
    """Why a label has its score.

    label, score : as predicted;  prior : share of training rows that have the label
    name : of the label, by the vocabulary of the model; "" where it has none
    votes : its share of the votes: the sum of the voters' shares, `other_voters` and `prior_or_label_score`
    voters : training rows with the largest shares;  other_voters : the sum of the other voters' shares
    prior_or_label_score : the score of the label's embedding where a method embeds labels, or its prior where
        nobody voted, else 0
    margin : of the label's classifier, or None where there is none
    log_odds : what each kind of evidence adds to the log-odds of the score: bias, votes, classifier and so
        on, the label bias, the calibration, and the top-rank adjustment or the gain of a rare label; their
        sum is the logit of the score; empty where the votes are the score
    matched : words of the text that are a name of the label, by the vocabulary of the model
    """

    label: Any
    score: float
    prior: float
    votes: float
    voters: list[Voter]
    other_voters: float
    prior_or_label_score: float
    margin: Margin | None
    log_odds: dict[str, float]
    name: str = ""
    matched: tuple[str, ...] = ()

    @classmethod
    def of_name(cls, label: Any, score: float) -> Explanation:
        """The explanation of a label that no training row has: only its name speaks for it."""
        return cls(label, score, 0.0, 0.0, [], 0.0, 0.0, None, {})

    @property
    def shown_label(self) -> str:
        """The name and the label, or the label alone where it is its own name."""
        return str(self.label) if self.name in ("", str(self.label)) else f"{self.name} ({self.label})"

    def __str__(self) -> str:
        share = f"{100 * self.prior:.2f}% of the training rows have it"
        lines = [
            f"{self.shown_label}: score {self.score:.3f}; {share}",
            *([f"  its name stands in the text: {', '.join(self.matched)}"] if self.matched else []),
        ]
        if self.prior or self.votes:
            lines.append(f"  {self.votes:.3f} of the votes, by the training rows")
        for voter in self.voters:
            near = f"{voter.share:.3f}, similarity {voter.similarity:.3f} {_listed(voter.terms)}"
            lines.append(f"    {voter.name}: {near}".rstrip())
        if self.other_voters:
            lines.append(f"    others: {self.other_voters:.3f}")
        if self.prior_or_label_score:
            lines.append(f"    prior or label score: {self.prior_or_label_score:.3f}")
        if self.margin is not None:
            lines.append(f"  {self.margin.value:+.3f} by its classifier")
            lines.append(f"    for: {_listed(self.margin.for_)}")
            lines.append(f"    against: {_listed(self.margin.against)}")
        if self.log_odds:
            total = sum(self.log_odds.values())
            lines.append(f"  {total:+.2f} log-odds in total, which is the score of {self.score:.3f}")
            lines += [f"    {kind}: {value:+.2f}" for kind, value in self.log_odds.items()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            (voter.name, f"{voter.share:.3f}", f"{voter.similarity:.3f}", _listed(voter.terms))
            for voter in self.voters
        ]
        caption = f"{self.shown_label}: score {self.score:.3f}, {self.votes:.3f} of the votes"
        note = f"its name stands in the text: {', '.join(self.matched)}" if self.matched else ""
        voters = html_table(
            caption, ("training row", "share of the votes", "similarity", "terms"), rows, note
        )
        if self.margin is None:
            return voters
        sides = (("for", _listed(self.margin.for_)), ("against", _listed(self.margin.against)))
        return voters + html_table("", ("classifier", f"{self.margin.value:+.3f}"), sides)


class ExplainOptions(NamedTuple):
    """What an explanation should show.

    n : number of voters and of terms;  names : (d,) of features, or None
    kept_row : a function that gives a training row, (1, d), by its number, or None where they are not kept
    """

    n: int
    names: Any
    kept_row: Callable[[int], Matrix] | None

    @classmethod
    def of(
        cls, n: int, names: Any, kept_row: Callable[[int], Matrix] | None, rows: Matrix | None
    ) -> ExplainOptions:
        """rows : (n, d) the training rows, if the model has them."""
        return cls(n, names, kept_row if rows is None else lambda number: rows[number : number + 1])

    def name(self, column: int) -> Any:
        if self.names is None:
            return int(column)
        name = self.names[column]
        return int(name) if isinstance(name, np.integer) else str(name)


class VoteBreakdown(NamedTuple):
    """The votes of one row for one label: each voter once, and what is added to them.

    rows, shares : (m,) training rows and their shares of the score
    similarities, learners : (m,) of the first learner that found each
    """

    rows: Array
    similarities: Array
    learners: Array
    shares: Array
    prior_or_label_score: float

    @classmethod
    def of(
        cls, rows: Array, similarities: Array, learners: Array, shares: Array, prior_or_label_score: float
    ) -> VoteBreakdown:
        """Add up the shares of rows that several learners found."""
        own = shares > 0
        each, first, which = np.unique(rows[own], return_index=True, return_inverse=True)
        summed = np.bincount(which, shares[own], minlength=len(each))
        return cls(each, similarities[own][first], learners[own][first], summed, prior_or_label_score)


def _listed(terms: list[Term]) -> str:
    return ", ".join(f"{term.feature} {term.weight:+.2f}" for term in terms)


def by_votes(
    voting: VotingModel,
    breakdown: VoteBreakdown,
    X: Matrix,
    label: Any,
    prior: float,
    options: ExplainOptions,
) -> Explanation:
    """Why a label has its votes, for the row X, (1, d); prior : share of training rows with the label."""
    voters, others = _voters(voting, breakdown, X, options)
    beside = breakdown.prior_or_label_score
    votes = float(breakdown.shares.sum() + beside)
    return Explanation(label, votes, prior, votes, voters, others, beside, None, {})


def _voters(
    voting: VotingModel, breakdown: VoteBreakdown, X: Matrix, options: ExplainOptions
) -> tuple[list[Voter], float]:
    """The voters with the largest shares, and the sum of the others' shares."""
    order = np.argsort(-breakdown.shares, kind="stable")
    A, own = features.apply(voting.feature_map, X), csr_matrix(X).indices
    # A kernel's features have no terms, nor have Euclidean distances.
    is_linear = voting.metric == "cosine" and voting.feature_map.kind != "nystroem"
    shown = []
    for i in order[: options.n]:
        row, learner = int(breakdown.rows[i]), voting.learners[breakdown.learners[i]]
        number = int(voting.row_numbers[row])
        terms = _terms(learner, A, own, row, number, options) if is_linear else []
        shown.append(Voter(number, float(breakdown.similarities[i]), float(breakdown.shares[i]), terms))
    return shown, float(breakdown.shares[order[options.n :]].sum())


def _terms(
    learner: Learner, A: Matrix, own: Array, row: int, number: int, options: ExplainOptions
) -> list[Term]:
    """What features of A, (1, d), add to the cosine with a training row, by the learner's map.

    own : features to show; a standardized row has more, and the training row may share fewer
    """
    part = next(part for part in learner.parts if row in part.rows)
    columns, added = _cosine_terms(part, A, int(np.flatnonzero(part.rows == row)[0]))
    shown = np.isin(columns, own)
    if options.kept_row is not None:
        shown &= np.isin(columns, csr_matrix(options.kept_row(number)).indices)
    columns, added = columns[shown], added[shown]
    strongest = np.argsort(-np.abs(added), kind="stable")[: options.n]
    return [Term(options.name(columns[i]), float(added[i])) for i in strongest]


def _cosine_terms(part: Part, A: Matrix, position: int) -> tuple[Array, Array]:
    """Columns of the features of A, (1, d), and what each adds to the cosine of z = A V with a row."""
    segments = part.row_index.segments
    if not all(isinstance(segment.rows, quantize.Packed) for segment in segments):  # rows are in cells
        return np.zeros(0, int), np.zeros(0)
    A = A[:, part.columns] if len(part.columns) < A.shape[1] else A
    used = A.indices if issparse(A) else np.flatnonzero(A[0])
    values = A.data if issparse(A) else np.asarray(A)[0, used]
    V = quantize.unpack(part.V, used).astype(np.float64)
    z = values @ V
    neighbor = index.stored_rows(part.row_index, np.array([position]))[0].astype(np.float64)
    length = max(float(np.linalg.norm(z)), 1e-30)
    return part.columns[used], values * (V @ neighbor) / length
