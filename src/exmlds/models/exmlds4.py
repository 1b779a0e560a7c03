"""ExMLDS4, the paper's joint learning: the map is trained end to end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix, issparse, vstack

from .. import __version__
from ..runtime.memory import DataSize
from ..stages import features, joint, neighbors, partition, quantize, sppmi
from ..stages.partition import Router
from ..storage.checkpoint import Checkpoint, digest
from ..storage.files import PathLike
from ..validation import params, stored
from ..validation.arrays import Matrix, take_rows, unit_rows
from ..voting.base import NeighborVoting
from ..voting.memory import MemoryModel, part_rows
from ..voting.votes import Embedding, FitContext, LabelRows, MapData, Part

Array = np.ndarray

EPOCHS = (4, 8, 12)
LARGEST_PART = {"exact": 100_000, "auto": 5_000_000}  # rows; beyond, a search takes too long
# A map is trained further on rows that were added later, when they are so many of the others, and at least as
# many as give negatives to each other; in so many passes.
FURTHER_SHARE, FEWEST_FURTHER, FURTHER_EPOCHS = 0.1, 512, 3
LABEL_ROWS_SHARE = 0.25  # of the training rows: so many rows of labels are visited in an epoch, at most
NOT_OF_THE_RESULT = {"growable", "keep_rows", "n_jobs", "verbose"}


class Contexts(Embedding):
    """In place of an embedding, the contexts of rows: (n, k) int64 row numbers, −1 pads."""

    __slots__ = ()

    def part(self, rows: Array) -> Array:
        """The contexts within some rows, renumbered by their positions among these."""
        position = np.full(len(self.rows), -1)
        position[rows] = np.arange(len(rows))
        near = self.rows[rows]
        near = np.where(near >= 0, position[near], -1)
        return np.take_along_axis(near, np.argsort(near < 0, axis=1, kind="stable"), axis=1)


@dataclass(kw_only=True, eq=False, repr=False)
class ExMLDS4(NeighborVoting):
    """Train a linear map under which rows with related labels are close, and let nearest rows vote.

    Parameters
    ----------
    n_components : r, the dimension of the embedding
    n_neighbors : number of training rows that vote, in each part that is probed
    n_neighbors_fit : number of rows with the most similar labels that are the context of a row
    positives : similarity of labels: "cosine", cos(y_i, y_j), or "overlap", |y_i ∩ y_j| / |y_j|
    negatives : weights of the other rows of a batch: "uniform", or "dissimilar", 1 − cos(y_i, y_j)
    loss : "softmax", AnnexML's, or "sgns", the paper's
    similarity : "cosine" or "inner" product of the embeddings of two rows
    gamma : γ, the factor of the similarity
    margin, n_negative : m, which is subtracted from the similarity, and n₋, the weight of all negatives, both
        of the loss "sgns"
    learning_rate, batch_size : of AdaGrad, and the number of rows in each step
    n_epochs : number of passes over the rows; "auto" is the best of 4, 8 and 12 on held-out rows
    storage : number format of V and of the row embeddings: "float32", "float16" or "int8"; V of the Nyström
        kernel is always float32
    n_learners : number of maps, each from another random start, whose votes are added
    partition : how rows are cut into parts: the "gate" learns, in `n_rounds` rounds, to route the rows of a
        context to the same part; "kmeans" clusters features
    n_parts, n_parts_probed, features, metric, vote, temperature, index, device : as in `ExMLDS1`

    The other parameters are those of every method, `XMCEstimator`.

    Examples
    --------
    >>> from exmlds import ExMLDS4
    >>> from exmlds.data import make_library
    >>> X, Y, names, _ = make_library(500, random_state=0)
    >>> model = ExMLDS4(n_components=30, random_state=0).fit(X, Y, label_names=names)
    >>> model.predict_labels(X[1:2], k=2)
    [['ancient greece', 'evolution']]
    """

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        **NeighborVoting._constraints,
        "n_neighbors_fit": params.whole(1),
        "positives": params.one_of("cosine", "overlap"),
        "negatives": params.one_of("uniform", "dissimilar"),
        "loss": params.one_of("softmax", "sgns"),
        "similarity": params.one_of("cosine", "inner"),
        "gamma": params.number(0, above=True),
        "margin": params.number(-1, 1),
        "n_negative": params.number(0, above=True),
        "learning_rate": params.number(0, above=True),
        "batch_size": params.whole(2),
        "n_epochs": params.either(params.one_of("auto"), params.whole(1)),
        "partition": params.one_of("gate", "kmeans"),
        "n_rounds": params.whole(1),
        "storage": params.one_of(*quantize.STORAGES),
    }

    _embeds_whole: ClassVar[bool] = True
    has_random_start: ClassVar[bool] = True

    _space: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "n_epochs": (8, 12, 20),
        "n_components": (100, 200),
        "n_neighbors": (50, 30, 80),
        "gamma": (10.0, 5.0, 15.0),
        "n_learners": (3, 5),
    }

    n_components: int = 100
    n_neighbors_fit: int = 10
    positives: str = "cosine"
    negatives: str = "uniform"
    loss: str = "softmax"
    similarity: str = "cosine"
    gamma: float = 10.0
    margin: float = 0.7
    n_negative: float = 100.0
    learning_rate: float = 0.1
    batch_size: int = 512
    n_epochs: str | int = "auto"
    storage: str = "float16"
    partition: str = "gate"
    n_rounds: int = 8
    n_learners: int = 3

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        label_names: Sequence[str] | None = None,
        checkpoint: PathLike | None = None,
        ids: Any = None,
    ) -> Self:
        """Fit the model to rows and their labels.

        Parameters
        ----------
        X, y, label_names : as in `XMCEstimator.fit`
        checkpoint : a folder that the fit is saved to after every epoch; with the same folder, data and
            parameters a fit that was stopped resumes, and gives the same model
        ids : n names of the rows, as in `partial_fit`
        """
        if checkpoint is None:
            return self._learn(X, y, label_names, ids=ids)
        with self._all_or_nothing():
            return self._fit_with_checkpoint(X, y, label_names, ids, checkpoint)

    def _fit_with_checkpoint(
        self, X: Any, Y: Any, label_names: Sequence[str] | None, ids: Any, folder: PathLike
    ) -> Self:
        X, Y, rng, side = self._start(X, Y, label_names)
        parameters = {k: v for k, v in self.get_params(deep=False).items() if k not in NOT_OF_THE_RESULT}
        run = {
            "version": __version__,
            "data": digest(X, Y),
            "parameters": json.dumps(parameters, default=str),
        }
        checkpoint = Checkpoint(folder, run, rng)
        return self._train(X, Y, checkpoint.rng(), side, ids, checkpoint=checkpoint)

    def _embed(self, X: Matrix, Y: csr_matrix, rank: int, rng: Generator, **given: Any) -> Embedding:
        """The graph of contexts, the same for all learners; there is no embedding beside the map."""
        sets, group, _ = sppmi.distinct(Y)
        k = self.n_neighbors_fit
        near = neighbors.nearest_sets(
            sets, k + 1, self.positives, rng, n_jobs=self.n_jobs, engine=self.engine
        )
        return Contexts(neighbors.expand(near, group, k, rng, engine=self.engine))

    def _partition(
        self, X: Matrix, n_parts: int, cap: int, whole: Embedding | None, rng: Generator
    ) -> tuple[Router, list[Array]]:
        if self.partition == "kmeans" or whole is None:
            return super()._partition(X, n_parts, cap, whole, rng)
        return partition.gate(X, whole.rows, n_parts, cap, rng, n_rounds=self.n_rounds, engine=self.engine)

    def _paths(self) -> list[dict[str, Any]]:
        return [{"n_epochs": n} for n in (EPOCHS if self.n_epochs == "auto" else (int(self.n_epochs),))]

    def _fit_maps(
        self, data: MapData, paths: list[dict[str, Any]], rng: Generator, context: FitContext | None = None
    ) -> Iterator[Array]:
        """Joint learning: AdaGrad with Z, the contexts of rows; the number of epochs is the setting."""
        X, Y, Z, rank, label_rows = data
        if label_rows is not None:
            X, Y, Z = _with_label_rows(X, Y, Z, label_rows, rng.spawn(1)[0])
        group, loss, how = self._training(Y)
        state = joint.init(X.shape[1], rank, rng)
        ends = [path["n_epochs"] for path in paths]
        checkpoint = None if context is None else context.run.checkpoint
        name = f"map-{state.seed:016x}"
        kept = checkpoint.get(name, joint.JointState) if checkpoint else None
        if kept is not None:
            for values in (kept.V, kept.squares):
                stored.array(values, f"the map {name} of the checkpoint", "float32", *state.V.shape)
            stored.whole(kept.epoch, f"the epoch of {name} of the checkpoint", 0)
            state = kept._replace(seed=state.seed)
        for end in ends:
            while state.epoch < end:
                state = joint.epoch(
                    state,
                    X,
                    _contexts_of_epoch(Z, len(data.Z), state),
                    group,
                    loss,
                    learning_rate=self.learning_rate,
                    **how,
                )
                if context is not None:
                    context.advance(len(data.Z))
                if checkpoint:
                    checkpoint.put(name, state)
            yield state.V

    def _training(self, Y: csr_matrix) -> tuple[Array, joint.Loss, dict[str, Any]]:
        """The groups of rows with the same labels, the loss, and how joint learning goes on."""
        sets, group, _ = sppmi.distinct(Y)
        loss = joint.Loss(self.loss, self.similarity, self.gamma, self.margin, self.n_negative)
        how = {
            "batch_size": self.batch_size,
            "sets": unit_rows(sets) if self.negatives == "dissimilar" else None,
            "n_jobs": self.n_jobs,
            "engine": self.engine,
        }
        return group, loss, how

    def needs_further_maps(self, n_mapped: int) -> bool:
        if self.feature_map_.kind == "nystroem":  # whose projection is a part of the map
            return False
        is_live = np.diff(self.labels_.indptr) > 0  # removed rows have no labels
        n_old, n_new = int(is_live[:n_mapped].sum()), int(is_live[n_mapped:].sum())
        return n_new >= max(FURTHER_SHARE * n_old, FEWEST_FURTHER)

    def further_maps(self, X: Matrix, n_mapped: int) -> list[list[quantize.Packed]]:
        is_live = np.diff(self.labels_.indptr) > 0
        live, n_old = np.flatnonzero(is_live), int(is_live[:n_mapped].sum())
        Y, rng = self.labels_[live], np.random.default_rng([self.random_state or 0, len(live)])
        A = features.apply(self.feature_map_, take_rows(X, live))
        contexts = self._embed(A, Y, self.n_components, rng)
        position = np.cumsum(is_live) - 1
        return [
            [
                self._trained_further(
                    part, A, Y, contexts, position[part.rows[is_live[part.rows]]], n_old, own
                )
                for part, own in zip(learner.parts, rng.spawn(len(learner.parts)))
            ]
            for learner in self.learners_
        ]

    def _trained_further(
        self,
        part: Part,
        X: Matrix,
        Y: csr_matrix,
        contexts: Embedding,
        rows: Array,
        n_old: int,
        rng: Generator,
    ) -> quantize.Packed:
        """The map of a part, trained on its rows from the n_old-th row on.

        X, Y, contexts : of all rows;  rows : those of the part
        """
        is_new = rows >= n_old
        X = part.own_features(take_rows(X, rows))
        near, (group, loss, how) = contexts.part(rows), self._training(take_rows(Y, rows))
        V = np.array(quantize.unpack(part.V), np.float32)
        n_new, of_new = int(is_new.sum()), np.where(is_new[:, None], near, -1)
        # AdaGrad's sums come from old rows, or from all where most are new, as after many were relabelled.
        sampled = np.where(is_new[:, None], -1, near) if 2 * n_new <= len(rows) else near
        given = self.n_epochs_, n_new, int(rng.integers(2**63))
        state = joint.warm_start(V, X, sampled, group, loss, *given, **how)
        for _ in range(FURTHER_EPOCHS):
            state = joint.epoch(state, X, of_new, group, loss, learning_rate=self.learning_rate, **how)
        return quantize.pack(state.V, part.V.values.dtype.name)

    def _memory_model(self) -> MemoryModel:
        def embedding_bytes(data: DataSize, n_parts: int) -> float:
            """V with the sums of squares and a copy, the graph, and the rows and pairs of a batch."""
            m, batch = part_rows(data.n, n_parts), min(self.batch_size, data.n)
            maps = 12.0 * memory.part_features(data, m) * self.n_components
            rows = 2 * batch * (32.0 * data.nnz / data.n + 24.0 * self.n_components)
            rows += 32.0 * data.nnz_labels + 32.0 * m * self.n_neighbors_fit
            return maps + rows + batch**2 * (32.0 + self.n_neighbors_fit)

        memory = super()._memory_model()
        return memory._replace(
            largest_part=LARGEST_PART[self.index],
            learners_in_parallel=True,
            embedding_bytes=embedding_bytes,
        )

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The paper's settings: AnnexML's, with its own loss."""
        settings: dict[str, Any] = {
            "n_components": 50,
            "n_neighbors": 10,
            "n_learners": 15,
            "n_parts": "paper",
            "loss": "sgns",
            "gamma": 1.0,
            "margin": 0.0,
            "n_negative": 20.0,
            "positives": "overlap",
            "n_epochs": 100,
            "n_rounds": 100,
            "features": "l2",
            "vote": "uniform",
            "temperature": 1.0,
        }
        return cls(**{**settings, **changes})


def _with_label_rows(
    X: Matrix, Y: csr_matrix, contexts: Array, given: LabelRows, rng: Generator
) -> tuple[Matrix, csr_matrix, Array]:
    """Rows, labels and contexts, with those of labels at the end.

    The context of such a row is random rows that have the label; it is in the context of no other row, so
    that it counts little.
    """
    near = neighbors.rows_of_labels(Y, contexts.shape[1], rng)[given.labels]
    m = len(given.labels)
    own = csr_matrix((np.ones(m, np.float32), (np.arange(m), given.labels)), (m, Y.shape[1]))
    X = vstack([X, given.rows], format="csr") if issparse(X) else np.vstack([X, given.rows])
    return X, vstack([Y, own], format="csr"), np.vstack([contexts, near])


def _contexts_of_epoch(contexts: Array, n: int, state: joint.JointState) -> Array:
    """The contexts without those of some rows of labels, which are after the first n rows.

    A row without a context is not visited: of many labels, others are drawn in each epoch.
    """
    most = ceil(LABEL_ROWS_SHARE * n)
    if len(contexts) <= n + most:
        return contexts
    rng = np.random.default_rng([state.seed, state.epoch, 1])
    kept = contexts.copy()
    kept[n + rng.permutation(len(contexts) - n)[most:]] = -1
    return kept
