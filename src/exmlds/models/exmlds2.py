"""ExMLDS2: Algorithm 2 with the embedding learnt by skip-grams, equation (3) of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix

from ..runtime.memory import DataSize
from ..stages import neighbors, sgns, sppmi
from ..validation import params
from ..validation.arrays import Matrix
from ..voting.base import RegressionVoting
from ..voting.memory import MemoryModel, part_rows
from ..voting.votes import Embedding

Array = np.ndarray

SMALL = 20_000  # rows up to which the paper's settings for small data are used
NEGATIVES = (15, 2)  # the paper's for small data and for large data
EPOCHS = (35, 5)
LARGE = ("mediamill", "delicious-200k")  # the paper's sets 4 and 5, in the order of its Table 2


@dataclass(kw_only=True, eq=False, repr=False)
class ExMLDS2(RegressionVoting):
    """Embed rows by skip-grams with negative sampling, regress on features, let nearest rows vote.

    Parameters
    ----------
    n_components : r, the dimension of the embedding
    n_neighbors : number of training rows that vote, in each part that is probed
    n_neighbors_fit : number of rows that are the context of a row
    context : the space of the contexts' cosine similarity: "labels", as in the paper, "features", or an
        "embedding" of the labels, that of ExMLDS1
    tied : True learns one vector for each row, as in the paper; False learns a second one for the row as a
        context, as word2vec does
    n_negative, n_epochs : number of negatives for each pair, and of passes over all pairs; "auto" is 15 and
        35 up to 20,000 rows, and falls to the paper's 2 and 5 for large data
    smoothing : negatives are drawn by how often a row is a context, to this power: 0 is uniform, as in the
        paper's text; 0.75 is that of its appendix and of word2vec
    learning_rate : of the first epoch; it falls linearly to 0
    n_parts, n_parts_probed, n_learners, features, l2, l1, metric, search, vote, temperature, index,
        device : as in `ExMLDS1`

    The other parameters are those of every method, `XMCEstimator`.

    Examples
    --------
    >>> from exmlds import ExMLDS2
    >>> from exmlds.data import make_library
    >>> X, Y, names, _ = make_library(500, random_state=0)
    >>> model = ExMLDS2(n_components=30, random_state=0).fit(X, Y, label_names=names)
    >>> model.predict_labels(X[:1], k=2)
    [['baking', 'war']]
    """

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        **RegressionVoting._constraints,
        "n_neighbors_fit": params.whole(1),
        "context": params.one_of("labels", "features", "embedding"),
        "tied": params.one_of(True, False),
        "n_negative": params.either(params.one_of("auto"), params.whole(1)),
        "n_epochs": params.either(params.one_of("auto"), params.whole(1)),
        "smoothing": params.number(0, 1),
        "learning_rate": params.number(0, above=True),
    }

    _space: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "n_components": (100, 200),
        "n_neighbors": (50, 20, 100),
        "n_neighbors_fit": (20, 50),
    }

    n_components: int = 100
    n_neighbors_fit: int = 30
    context: str = "labels"
    tied: bool = True
    n_negative: str | int = "auto"
    n_epochs: str | int = "auto"
    smoothing: float = 0.0
    learning_rate: float = 0.025

    @classmethod
    def paper(cls, data_set: str | None = None, **changes: Any) -> Self:
        """The paper's settings, as far as it states them; those that it takes from SLEEC are SLEEC's.

        Parameters
        ----------
        data_set : as in `ExMLDS1.paper`; of these sets, Mediamill and Delicious-200K are the large ones, with
            2 negatives and 5 epochs, and the others have 15 and 35
        """
        if data_set is None:
            return super().paper(**{"n_neighbors_fit": 20, **changes})
        size = int(data_set in LARGE)
        return super().paper(data_set, **{"n_negative": NEGATIVES[size], "n_epochs": EPOCHS[size], **changes})

    def _memory_model(self) -> MemoryModel:
        memory = super()._memory_model()

        def embedding_bytes(data: DataSize, n_parts: int) -> float:
            """The pairs with their order, the table of negatives and the vectors; overlaps where needed."""
            m = part_rows(data.n, n_parts)
            overlaps = memory.factorization_bytes(data, n_parts) if self.context == "embedding" else 0.0
            points = 32.0 * (data.nnz if self.context == "features" else data.nnz_labels)
            vectors = 8.0 * m * self.n_components
            return overlaps + points + 48.0 * m * self.n_neighbors_fit + 128.0 * m + vectors

        return memory._replace(embedding_bytes=embedding_bytes, learners_in_parallel=True)

    def _embed(self, X: Matrix, Y: csr_matrix, rank: int, rng: Generator, **given: Any) -> Embedding:
        ties_rng, vectors_rng = rng.spawn(2)
        points, group = self._context_points(X, Y, rank, ties_rng)
        near = self._contexts(points, group, self.n_neighbors_fit, ties_rng)
        n = Y.shape[0]
        n_negative, n_epochs = self._effort(self.n_samples_fit_)  # not of this part alone
        pairs = [sgns.relate(neighbors.graph(near, n), n_negative, power=self.smoothing)]
        state = sgns.init(n, rank, n_epochs=n_epochs, tied=self.tied, rng=vectors_rng)
        while state.epoch < n_epochs:
            state = sgns.epoch(state, pairs, self.learning_rate, engine=self.engine)
        return Embedding(state.vectors)

    def _context_points(self, X: Matrix, Y: csr_matrix, rank: int, rng: Generator) -> tuple[Matrix, Array]:
        """The points that contexts are searched among, and the point of each row; equal sets share one."""
        if self.context == "features":
            return X, np.arange(X.shape[0])
        label_sets = sppmi.distinct(Y)
        if self.context == "labels":
            return label_sets.sets, label_sets.group
        return self._factorize(sppmi.prepare(label_sets), rank, rng), label_sets.group

    def _effort(self, n: int) -> tuple[int, int]:
        """n_negative and n_epochs."""
        auto = [max(few, round(many * min(1, SMALL / n))) for many, few in (NEGATIVES, EPOCHS)]
        given = (self.n_negative, self.n_epochs)
        n_negative, n_epochs = (a if g == "auto" else int(g) for a, g in zip(auto, given))
        return n_negative, n_epochs
