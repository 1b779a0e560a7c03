"""ExMLDS4: the map learnt end to end, the paper's joint learning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_matrix

from .. import compact, limits
from ..contract import DataSize, Matrix
from ..stages import joint, sppmi
from .neighbors import Embedding, NeighborVoting

Array = np.ndarray

EPOCHS = (4, 8, 12)


class ExMLDS4(NeighborVoting):
    """Learn a linear map under which rows with related labels lie close, and let neighbours vote.

    Parameters
    ----------
    n_components : r, the dimension of the embedding
    n_neighbors : training rows that vote, in each part asked
    n_neighbors_fit : rows nearest by labels that are the context of a row
    loss : "softmax", AnnexML's, or "sgns", the paper's
    similarity : of two rows, by the "cosine" or the "inner" product of where they lie
    gamma : γ, by which the similarity is multiplied
    margin, n_negative : of "sgns": m, taken off the similarity, and n₋, the weight of all negatives
    learning_rate, batch_size : of AdaGrad, and rows a step
    n_epochs : passes over the rows; "auto" stops at the best of 4, 8 and 12 on held-out rows
    storage : of V and of where training rows lie: "float32", "float16" or "int8"
    n_learners : maps, each from another start, that vote together
    n_parts, n_parts_asked, features, metric, vote, temperature : as in `ExMLDS1`

    The others are those of every method, `XMCEstimator`.

    Example
    -------
    >>> from exmlds import ExMLDS4
    >>> from exmlds.data import make_library
    >>> X, Y, names, _ = make_library(500, random_state=0)
    >>> model = ExMLDS4(n_components=30, random_state=0).fit(X, Y, label_names=names)
    >>> model.predict_labels(X[1:2], k=2)
    [['ancient greece', 'evolution']]
    """

    _limits: ClassVar[Mapping[str, limits.Limit]] = {
        **NeighborVoting._limits,
        "n_neighbors_fit": limits.whole(1),
        "loss": limits.one_of("softmax", "sgns"),
        "similarity": limits.one_of("cosine", "inner"),
        "gamma": limits.number(0, above=True),
        "margin": limits.number(-1, 1),
        "n_negative": limits.number(0, above=True),
        "learning_rate": limits.number(0, above=True),
        "batch_size": limits.whole(2),
        "n_epochs": limits.either(limits.one_of("auto"), limits.whole(1)),
        "storage": limits.one_of(*compact.STORAGES),
    }

    _learners_at_once: ClassVar[bool] = True

    def __init__(
        self,
        *,
        n_components: int = 100,
        n_neighbors: int = 50,
        n_neighbors_fit: int = 10,
        loss: str = "softmax",
        similarity: str = "cosine",
        gamma: float = 10.0,
        margin: float = 0.5,
        n_negative: float = 20.0,
        learning_rate: float = 0.1,
        batch_size: int = 512,
        n_epochs: str | int = "auto",
        storage: str = "float16",
        n_parts: str | int = "auto",
        n_parts_asked: int = 1,
        n_learners: int = 3,
        features: str = "auto",
        metric: str = "cosine",
        vote: str = "similarity",
        temperature: str | float = "auto",
        threshold: str | float = "auto",
        max_labels: int = 100,
        max_memory: float | str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.n_neighbors_fit = n_neighbors_fit
        self.loss = loss
        self.similarity = similarity
        self.gamma = gamma
        self.margin = margin
        self.n_negative = n_negative
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_epochs = n_epochs
        self.storage = storage
        self.n_parts = n_parts
        self.n_parts_asked = n_parts_asked
        self.n_learners = n_learners
        self.features = features
        self.metric = metric
        self.vote = vote
        self.temperature = temperature
        self.threshold = threshold
        self.max_labels = max_labels
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _embed(
        self, X: Matrix, Y: csr_matrix, rank: int, rng: np.random.Generator, **given: Any
    ) -> Embedding:
        return Embedding(np.empty((Y.shape[0], 0), np.float32))  # there is nothing between features and map

    def _path_settings(self) -> list[dict[str, Any]]:
        return [{"n_epochs": n} for n in (EPOCHS if self.n_epochs == "auto" else (int(self.n_epochs),))]

    def _maps(
        self,
        X: Matrix,
        Y: csr_matrix,
        Z: Array,
        paths: list[dict[str, Any]],
        rank: int,
        rng: np.random.Generator,
    ) -> Iterator[Array]:
        ties_rng, map_rng = rng.spawn(2)
        label_sets = sppmi.distinct(Y)
        near = self._contexts(label_sets.sets, label_sets.group, self.n_neighbors_fit, ties_rng)
        loss = joint.Loss(self.loss, self.similarity, self.gamma, self.margin, self.n_negative)
        state = joint.init(X.shape[1], rank, map_rng)
        for path in paths:
            while state.epoch < path["n_epochs"]:
                state = joint.epoch(
                    state,
                    X,
                    near,
                    label_sets.group,
                    loss,
                    learning_rate=self.learning_rate,
                    batch_size=self.batch_size,
                    n_jobs=self.n_jobs,
                )
            yield state.V.copy()

    def _searched(self, X: Matrix, V: Array, Z: Array) -> Array:
        return np.asarray(X @ V)

    def _embedding_bytes(self, data: DataSize, n_parts: int) -> float:
        """V with the sums of squares and a copy, the graph, and the pairs of a batch."""
        m = self._part_rows(data.n, n_parts)
        maps = 12.0 * self._part_features(data, m) * self.n_components
        return maps + 16.0 * m * self.n_neighbors_fit + self.batch_size**2 * (24.0 + self.n_neighbors_fit)

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The paper's settings: AnnexML's, with its own loss."""
        settings: dict[str, Any] = {
            "n_components": 50,
            "n_neighbors": 10,
            "n_learners": 15,
            "loss": "sgns",
            "gamma": 1.0,
            "margin": 0.0,
            "n_epochs": 100,
            "features": "l2",
            "vote": "uniform",
            "temperature": 1.0,
        }
        return cls(**{**settings, **changes})
