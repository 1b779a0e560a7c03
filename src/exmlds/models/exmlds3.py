"""ExMLDS3, Algorithms 3 and 4 of the paper: rows and labels in one space, and missing labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix, vstack
from sklearn.utils.validation import check_is_fitted

from ..growing import RowsChange
from ..runtime.memory import DataSize
from ..selection import HeldOutScores, TrainingSet
from ..stages import complete, neighbors, sgns, sppmi, vote
from ..stages.vote import LabelScorer
from ..validation import params, stored, targets
from ..validation.arrays import Matrix
from ..voting.base import RegressionVoting
from ..voting.memory import MemoryModel
from ..voting.settings_search import Grid
from ..voting.votes import Embedding, FitRun, Votes

Array = np.ndarray

STRENGTHS = (0.6, 1.0, 0.3, 0.0)  # of completion; the first is tried with every other setting
MU = params.Constraint(
    "three numbers of at least 0, the last two not both 0, such as (1, 1, 10)",
    lambda value: params.three(params.number(0)).allows(value) and max(value[1:]) > 0,
)


@dataclass(kw_only=True, eq=False, repr=False)
class ExMLDS3(RegressionVoting):
    """Embed rows and labels jointly, regress on features, score labels by votes and by their embeddings.

    It copes with missing labels: `fit` takes label co-occurrences from any source, and a mask of the cells of
    Y that are observed.

    Parameters
    ----------
    n_components : r, the dimension of the embedding
    n_neighbors : number of training rows that vote, in each part that is probed
    mu : (μ₁, μ₂, μ₃), the weights of label–label, row–row and row–label pairs; "auto" chooses, on held-out
        rows, between (1, 1, 10) and (1/p, 0, 1), where p is the share of labels that are visible
    solver : "sppmi" factorizes the joint matrix; "sgns" trains the combined objective by skip-grams
    complete_labels : strength from 0 (off) to 1 of label completion: labels that co-occur with those of a
        training row get a part of its vote; "auto" chooses it on held-out rows
    shift, smoothing : k and α of the SPPMI; 1 and 1 leave both out (solver "sppmi")
    n_negative : negatives of each label–label, row–row and row–label pair; one number or three (solver
        "sgns")
    n_epochs, learning_rate, n_neighbors_fit : of the skip-grams, and the number of neighbours that are the
        context (solver "sgns")
    n_parts, n_parts_probed, n_learners, features, l2, l1, metric, search, vote, temperature, index : as in
        `ExMLDS1`; all parts share one embedding

    The other parameters are those of every method, `XMCEstimator`.

    Attributes
    ----------
    label_embeddings_ : (L, r) embeddings of the labels
    visible_share_ : p, the share of labels that Y shows by the given co-occurrences; 1 if none are given
    mu_, complete_labels_ : the settings chosen, or given

    Examples
    --------
    >>> from exmlds import ExMLDS3
    >>> from exmlds.data import make_library
    >>> X, Y, names, _ = make_library(500, random_state=0)
    >>> model = ExMLDS3(n_components=30, random_state=0).fit(X, Y, label_names=names)
    >>> model.predict_labels(X[:1], k=2)
    [['baking', 'war']]
    """

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        **RegressionVoting._constraints,
        "mu": params.either(params.one_of("auto"), MU),
        "solver": params.one_of("sppmi", "sgns"),
        "complete_labels": params.either(params.one_of("auto"), params.number(0, 1)),
        "shift": params.number(0, above=True),
        "smoothing": params.number(0, 1),
        "n_negative": params.either(params.whole(1), params.three(params.whole(1))),
        "n_neighbors_fit": params.whole(1),
        "n_epochs": params.whole(1),
        "learning_rate": params.number(0, above=True),
    }
    _side: ClassVar[Mapping[str, bool]] = {"label_cooccurrence": False, "observed": True}
    _embeds_whole: ClassVar[bool] = True
    # Few visible labels want more regularization and more neighbours.
    _l2s: ClassVar[tuple[float, ...]] = (3.0, 1.0, 10.0, 0.3)
    _temperatures: ClassVar[tuple[float, ...]] = (0.1, 0.05, 0.2, 0.02)

    _space: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "n_components": (300, 100, 500),
        "n_neighbors": (50, 20, 100),
        "smoothing": (0.75, 1.0),
    }

    mu: str | tuple[float, float, float] = "auto"
    solver: str = "sppmi"
    complete_labels: str | float = "auto"
    shift: float = 1.0
    smoothing: float = 0.75
    n_negative: int | tuple[int, int, int] = 15
    n_epochs: int = 35
    learning_rate: float = 0.05
    n_neighbors_fit: int = 20

    @classmethod
    def paper(cls, data_set: str | None = None, **changes: Any) -> Self:
        """The paper's settings as far as it states them; of μ₁ it says that it is larger than the others.

        Algorithm 4 searches among the embeddings Z₁ of the training rows. The paper takes SLEEC's rank for
        `ExMLDS1` and `ExMLDS2` alone; rows and labels together need a larger one, and few visible labels
        more regularization.
        """
        settings: dict[str, Any] = {
            "mu": (5.0, 1.0, 1.0),
            "n_components": 300,
            "l2": 3.0,
            "complete_labels": 0.0,
            "smoothing": 1.0,
            "search": "embedded",
        }
        return super().paper(data_set, **{**settings, **changes})

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        label_names: Sequence[str] | None = None,
        label_cooccurrence: Any = None,
        observed: Any = None,
        ids: Any = None,
    ) -> Self:
        """Fit the model to rows and to those of their labels that are known.

        Parameters
        ----------
        X, y, label_names : as for every method
        label_cooccurrence : C, (L, L) symmetric and not negative, in the order of the columns of y, sparse or
            dense: how often two labels co-occur, or how similar their meanings are; YᵀY if not given.
            `exmlds.LabelMatrix(C)` keeps scikit-learn's cross-validation from cutting it where L = n
        observed : (n, L) 1 where a cell of y is known; a label that is known to be absent is never completed
        ids : n names of the rows, as in `partial_fit`
        """
        return self._learn(
            X, y, label_names, ids=ids, label_cooccurrence=label_cooccurrence, observed=observed
        )

    def _check_learnt(self) -> None:
        super()._check_learnt()
        stored.record(self.scorer_, "the label scorer", LabelScorer)
        stored.require(MU.allows(self.mu_), "the weights mu are not three numbers")

    @property
    def label_embeddings_(self) -> Array:
        check_is_fitted(self)
        assert self.scorer_ is not None
        return self.columns_.spread(self.scorer_.embeddings, self.n_labels_)

    def _checked_side(self, Y: csr_matrix, **side: Any) -> dict[str, Any]:
        return targets.of_missing(Y, **side)

    def _memory_model(self) -> MemoryModel:
        memory = super()._memory_model()
        completes = bool(self.complete_labels)

        def embedding_bytes(data: DataSize, n_parts: int) -> float:
            """Rows and labels together, whatever the parts; and completed labels."""
            pairs = min(float(data.n_labels) ** 2, 2 * (data.nnz_labels / data.n) * data.nnz_labels)
            factorizing = memory.factorization_bytes(
                data, 1, n_labels=data.n_labels, pairs=pairs + 2 * data.nnz_labels
            )
            skip_grams = 60.0 * pairs if self.solver == "sgns" else 0.0
            return factorizing + skip_grams + (3 * voting_bytes(data) if completes else 0.0)

        def voting_bytes(data: DataSize) -> float:
            """Labels that rows vote for after completion, at most."""
            return 8.0 * min(complete.KEPT * float(data.nnz_labels), float(data.n) * data.n_labels)

        def labels_bytes(data: DataSize) -> float:
            embeddings = 4.0 * data.n_labels * self.n_components
            return embeddings + (voting_bytes(data) if completes else data.labels_bytes())

        return memory._replace(
            n_embeddings=2 if self.mu == "auto" else 1,
            n_votings=len(STRENGTHS) if self.complete_labels == "auto" else 1,
            max_splits=5,  # few rows with few visible labels would decide otherwise
            embedding_bytes=embedding_bytes,
            labels_bytes=labels_bytes,
            voting_bytes=voting_bytes if completes else None,
        )

    def _fit_voting(
        self, X: Matrix, Y: csr_matrix, rng: Generator, run: FitRun, **side: Any
    ) -> HeldOutScores | None:
        C = side["label_cooccurrence"]
        self.visible_share_ = 1.0 if C is None else complete.visible_share(Y, C)
        return super()._fit_voting(X, Y, rng, run, **side)

    def _grid(self, rows: TrainingSet) -> Grid:
        if self.mu != "auto":
            mus = [tuple(float(weight) for weight in self.mu)]
        else:
            mus = [(1.0, 1.0, 10.0), (1 / self.visible_share_, 0.0, 1.0)]
        strengths = STRENGTHS if self.complete_labels == "auto" else (float(self.complete_labels),)
        return (
            super()
            ._grid(rows)
            ._replace(
                embeddings=[{"mu": mu} for mu in mus],
                votings=[{"complete_labels": strength} for strength in strengths],
            )
        )

    def _voting_labels(self, Y: csr_matrix, **given: Any) -> csr_matrix:
        C, strength = given["label_cooccurrence"], given["complete_labels"]
        if not strength:
            return Y
        P = complete.own_conditional_share(Y) if C is None else complete.conditional_share(C)
        return complete.complete(Y, P, strength, given["observed"])

    def _labels_of_added(self, Y: csr_matrix) -> csr_matrix:
        if not self.complete_labels_:
            return Y
        P = complete.own_conditional_share(vstack([_observed(self.labels_), Y], format="csr"))
        return complete.complete(Y, P, self.complete_labels_, None)

    def _can_join(self, change: RowsChange) -> bool:
        # Completion takes the rows before, and the embedding of a new label is that of its first rows.
        assert self.scorer_ is not None
        embeddings, added = self.scorer_.embeddings, np.unique(change.labels.indices)
        is_known = bool((added < len(embeddings)).all()) and embeddings[added].any(axis=1).all()
        return not self.complete_labels_ and bool(is_known)

    def grown(self, removed: Array, X: Matrix, Y: csr_matrix) -> Self:
        """As for every method; a label that has lost all its rows has no embedding any more."""
        other = super().grown(removed, X, Y)
        before, after = (_observed(method.labels_) for method in (self, other))
        gone = np.setdiff1d(before[removed].indices, after.indices)
        if len(gone):
            assert other.scorer_ is not None
            embeddings = other.scorer_.embeddings.copy()
            embeddings[gone] = 0
            other.scorer_ = vote.label_scorer(embeddings)
        return other

    def with_rows(self, rows: TrainingSet, *, is_merged: bool = True) -> Self:
        """As for every method; the embedding of a new label is the mean of its rows' embeddings."""
        other, scorer = super().with_rows(rows, is_merged=is_merged), self.scorer_
        assert scorer is not None
        new = np.flatnonzero(~scorer.embeddings.any(axis=1) & (rows.Y.getnnz(axis=0) > 0))
        if len(new):
            Z = self._voting_model().embed(rows.X)[:, : scorer.embeddings.shape[1]]
            members = csr_matrix(rows.Y[:, new].T)
            embeddings = scorer.embeddings.copy()
            embeddings[new] = (members @ Z) / np.diff(members.indptr)[:, None]
            other.scorer_ = vote.label_scorer(embeddings)
        return other

    def _rank(
        self, votes: Votes, labels: csr_matrix, scorer: LabelScorer | None, k: int
    ) -> tuple[Array, Array]:
        assert scorer is not None
        return vote.top_labels_with_embeddings(
            votes.neighbors, votes.weights, labels, votes.embeddings, scorer, k, engine=self.engine
        )

    def _vote_shares(self, votes: Votes, label: int) -> tuple[Array, float] | None:
        scorer, neighbors = self.scorer_, votes.neighbors[0]
        assert scorer is not None
        summed = np.sum([scorer.scaled(z, self.engine) for z in votes.embeddings], axis=0)
        if not votes.weights.any() and (summed @ scorer.embeddings.T <= 0).all():
            return None
        present = neighbors >= 0
        weights = votes.weights[0] * present
        has_label = self.labels_[np.maximum(neighbors, 0)][:, [label]].toarray().ravel()
        s1 = weights[present] @ self.labels_[neighbors[present]]
        length = max(float(np.linalg.norm(s1)), 1e-30)
        shares = weights * has_label / (2 * length)
        label_score = float(scorer.scaled(summed, self.engine)[0] @ scorer.embeddings[label]) / 2
        return shares, max(label_score, -float(shares.sum()))

    def _embed(self, X: Matrix, Y: csr_matrix, rank: int, rng: Generator, **given: Any) -> Embedding:
        C = given["label_cooccurrence"]
        if C is not None:
            C = complete.rescale_counts(Y, C, self.visible_share_)
        if self.solver == "sgns":
            return self._by_skip_grams(Y, csr_matrix(Y.T @ Y) if C is None else C, given["mu"], rank, rng)
        label_sets = sppmi.distinct(Y)
        A = sppmi.prepare(
            label_sets,
            shift=self.shift,
            smoothing=self.smoothing,
            with_labels=True,
            cooccurrence=C,
            mu=given["mu"],
        )
        Z, n_sets = self._factorize(A, rank, rng), len(label_sets.counts)
        return Embedding(Z[:n_sets][label_sets.group], Z[n_sets:])

    def _by_skip_grams(
        self, Y: csr_matrix, C: csr_matrix, mu: tuple[float, float, float], rank: int, rng: Generator
    ) -> Embedding:
        """The combined objective, equation (5): rows are words 0…n−1, labels follow."""
        n, n_labels = Y.shape
        ties_rng, vectors_rng = rng.spawn(2)
        label_sets = sppmi.distinct(Y)
        k = self.n_neighbors_fit
        near = self._contexts(label_sets.sets, label_sets.group, k, ties_rng)
        near_labels = self._contexts(C, np.arange(n_labels), k, ties_rng)
        given = self.n_negative
        of_labels, of_rows, of_both = given if isinstance(given, (tuple, list)) else (given,) * 3
        relations = [
            sgns.relate(
                neighbors.graph(near_labels, n_labels), of_labels, weight=mu[0], row_offset=n, column_offset=n
            ),
            sgns.relate(neighbors.graph(near, n), of_rows, weight=mu[1]),
            sgns.relate(Y, of_both, weight=mu[2], column_offset=n),
        ]
        largest = np.float32(max(mu))
        relations = [relation._replace(weights=relation.weights / largest) for relation in relations]
        state = sgns.init(n + n_labels, rank, n_epochs=self.n_epochs, tied=True, rng=vectors_rng)
        while state.epoch < self.n_epochs:
            state = sgns.epoch(state, relations, self.learning_rate, engine=self.engine)
        return Embedding(state.vectors[:n], state.vectors[n:])


def _observed(labels: csr_matrix) -> csr_matrix:
    """The labels of rows without those that were completed, which weigh less."""
    observed = labels.copy()
    observed.data = (observed.data >= 1).astype(np.float32)
    observed.eliminate_zeros()
    return observed
