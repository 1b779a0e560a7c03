"""SLEEC (Bhatia et al., 2015): embeddings that preserve the similarity of near label vectors alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix

from ..runtime.memory import DataSize
from ..stages import matrix_completion, neighbors, sppmi
from ..validation import params
from ..validation.arrays import Matrix, unit_rows
from ..voting.base import RegressionVoting
from ..voting.memory import MemoryModel, part_rows
from ..voting.votes import Embedding

Array = np.ndarray

PAIRS = 500_000  # pairs of label sets in a block of similarities


@dataclass(kw_only=True, eq=False, repr=False)
class SLEEC(RegressionVoting):
    """Complete the similarities of near label sets at low rank, regress on features, let nearest rows vote.

    Parameters
    ----------
    n_neighbors_fit : number of nearest label sets whose similarities are preserved
    n_iterations : steps of the singular value projection, at most
    n_components, n_neighbors, n_parts, n_parts_probed, n_learners, features, l2, l1, metric, search, vote,
        temperature, index, device : as in `ExMLDS1`

    The other parameters are those of every method, `XMCEstimator`.

    Rows with equal labels have one embedding, and the neighbours of a row are the nearest label sets by
    cosine, without those that share no label. The released code takes rows, of which many are equal.

    Examples
    --------
    >>> from exmlds import SLEEC
    >>> from exmlds.data import make_library
    >>> X, Y, names, _ = make_library(500, random_state=0)
    >>> model = SLEEC(n_components=30, random_state=0).fit(X, Y, label_names=names)
    >>> model.predict_labels(X[:1], k=2)
    [['baking', 'war']]
    """

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        **RegressionVoting._constraints,
        "n_neighbors_fit": params.whole(1),
        "n_iterations": params.whole(1),
    }

    _space: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "n_components": (100, 200),
        "n_neighbors": (20, 10, 50),
        "n_neighbors_fit": (100, 250),
    }

    n_components: int = 100
    n_neighbors: int = 20
    n_neighbors_fit: int = 100
    n_iterations: int = 30
    metric: str = "euclidean"

    def _memory_model(self) -> MemoryModel:
        def embedding_bytes(data: DataSize, n_parts: int) -> float:
            """The graph in both directions with its residuals, and the subspace with its copies."""
            m = part_rows(data.n, n_parts)
            pairs = min(2.0 * m * self.n_neighbors_fit, float(m) ** 2)
            return 40.0 * pairs + 40.0 * m * self.n_components + 24.0 * data.nnz_labels

        memory = super()._memory_model()
        return memory._replace(embedding_bytes=embedding_bytes)

    def _embed(self, X: Matrix, Y: csr_matrix, rank: int, rng: Generator, **given: Any) -> Embedding:
        graph_rng, start_rng = rng.spawn(2)
        label_sets = sppmi.distinct(Y)
        similar = self._similarities(label_sets.sets, graph_rng)
        Z = matrix_completion.embed(
            similar,
            rank,
            start_rng,
            n_iterations=self.n_iterations,
            n_jobs=self.n_jobs,
            engine=self.engine,
        )
        return Embedding(Z[label_sets.group])

    def _similarities(self, sets: csr_matrix, rng: Generator) -> csr_matrix:
        """(m, m) csr of the cosines of each label set and those nearest to it, in both directions."""
        m, unit = sets.shape[0], unit_rows(sets)
        near = neighbors.nearest_sets(
            sets, min(self.n_neighbors_fit + 1, m), "cosine", rng, n_jobs=self.n_jobs, engine=self.engine
        )
        graph = neighbors.graph(near, m)
        i, j = graph.nonzero()
        cosines = [
            np.asarray(unit[i[at : at + PAIRS]].multiply(unit[j[at : at + PAIRS]]).sum(axis=1)).ravel()
            for at in range(0, len(i), PAIRS)
        ]
        graph.data = np.concatenate([*cosines, np.zeros(0)]).astype(np.float32)
        similar = csr_matrix(graph.maximum(graph.T))
        similar.sort_indices()
        return similar
