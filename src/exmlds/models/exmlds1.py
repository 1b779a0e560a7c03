"""ExMLDS1, Algorithms 1 and 2 of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_matrix

from ..runtime.memory import DataSize
from ..stages import sppmi
from ..validation import params
from ..validation.arrays import Matrix
from ..voting.base import RegressionVoting
from ..voting.memory import MemoryModel
from ..voting.votes import Embedding

Array = np.ndarray


@dataclass(kw_only=True, eq=False, repr=False)
class ExMLDS1(RegressionVoting):
    """Factorize the SPPMI of label overlaps, regress the embeddings on features, let nearest rows vote.

    Parameters
    ----------
    n_components : r, the dimension of the embedding
    n_neighbors : number of training rows that vote, in each part that is probed
    n_neighbors_fit : number of nearest label sets that are a row's context; None: all that share a label
    n_parts : number of parts of similar rows, each with a map of its own; "auto" is the fewest that keep a
        part under 40,000 rows; "paper" is one for every full 6,000 rows
    n_parts_probed : number of parts that a query searches
    n_learners : number of ensemble members, each with a partition from another seed
    shift, smoothing : k and α of the SPPMI; 1 and 1 leave both out
    association : "pmi", the paper's, or "conditional", log P(i|j) in place of the PMI, as in
        noise-contrastive estimation; it needs a shift below 1, about one over the number of rows that share a
        label with a row
    features : feature transform: "none", "l2", "log1p-l2", "standardize", "nystroem", "sqrt-l2" or "idf-l2";
        "auto" chooses one of the first five on held-out rows
    l2, l1 : regularization of the regression; l2 is in units of the mean squared length of the rows, and
        "auto" chooses it on held-out rows
    metric : "cosine" or "euclidean" similarity of the nearest-neighbour search
    search : searches among the "mapped" training rows, Vx, or the "embedded" ones, Z
    vote : "similarity" weighs a neighbour by exp((s − s₁) / temperature); "uniform" gives each one vote
    temperature : a smaller one gives the nearest neighbours more weight; "auto" chooses it on held-out rows
    index : "auto" groups the rows of a part of 5,000 rows or more into cells, of which a search reads the
        nearest; "exact" searches all rows
    device : "cpu", or "cuda", an NVIDIA graphics card, which needs CuPy; it is not saved with the model

    The other parameters are those of every method, `XMCEstimator`.

    Examples
    --------
    >>> from exmlds import ExMLDS1
    >>> from exmlds.data import make_library
    >>> X, Y, names, _ = make_library(500, random_state=0)
    >>> model = ExMLDS1(n_components=30, random_state=0).fit(X, Y, label_names=names)
    >>> model.predict_labels(X[:1], k=2)
    [['baking', 'war']]
    """

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        **RegressionVoting._constraints,
        "n_neighbors_fit": params.either(params.one_of(None), params.whole(1)),
        "shift": params.number(0, above=True),
        "smoothing": params.number(0, 1),
        "association": params.one_of("pmi", "conditional"),
    }

    _space: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "n_components": (300, 100, 500),
        "n_neighbors": (50, 20, 100),
        "shift": (1.0, 2.0, 5.0),
        "n_learners": (1, 3),
    }

    n_neighbors_fit: int | None = None
    shift: float = 1.0
    smoothing: float = 1.0
    association: str = "pmi"

    def _memory_model(self) -> MemoryModel:
        def embedding_bytes(data: DataSize, n_parts: int) -> float:
            n_matrices = 2 if self.association == "conditional" else 1
            return memory.factorization_bytes(
                data, n_parts, n_neighbors=self.n_neighbors_fit, n_matrices=n_matrices
            )

        memory = super()._memory_model()
        return memory._replace(embedding_bytes=embedding_bytes)

    def _embed(
        self, X: Matrix, Y: csr_matrix, rank: int, rng: np.random.Generator, **given: Any
    ) -> Embedding:
        conditional = self.association == "conditional"
        if conditional and self.shift >= 1:
            raise ValueError(
                "With association='conditional' the 'shift' parameter must be below 1: the logarithm of a "
                f"probability is never positive, so that no entry remains. Got {self.shift} instead."
            )
        label_sets = sppmi.distinct(Y)
        overlaps = sppmi.prepare(
            label_sets,
            shift=self.shift,
            smoothing=self.smoothing,
            n_neighbors=self.n_neighbors_fit,
            conditional=conditional,
            n_jobs=self.n_jobs,
            engine=self.engine,
        )
        return Embedding(self._factorize(overlaps, rank, rng)[label_sets.group])
