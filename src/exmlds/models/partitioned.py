"""Partitioned: a router and whole estimators, one for each part of the rows, as one model."""

from __future__ import annotations

import copy
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix
from sklearn.base import clone

from ..base import (
    ThresholdChoice,
    XMCEstimator,
    XMCPredictor,
    class_reference,
    generator,
    load,
    load_inner,
    one_at_a_time,
    restored,
)
from ..growing import GrowsLabels, OfGrowing
from ..runtime import cluster, progress
from ..runtime.memory import DataSize, Estimate, physical_bytes
from ..runtime.parallel import blocks
from ..selection import HeldOutScores
from ..stages import merge, stacking
from ..stages.merge import Merged
from ..stages.partition import Router
from ..stages.stacking import HeldOutPairs, Stacker
from ..storage import model_folder, row_file
from ..storage.checkpoint import Checkpoint, digest
from ..storage.files import PathLike
from ..storage.inner import InnerModel
from ..validation import params, stored, targets
from ..validation.arguments import explained
from ..validation.arrays import Matrix, take_rows
from ..validation.columns import UsedColumns
from ..validation.observed import contains
from . import partition_tasks as tasks
from .exmlds import ExMLDS
from .partition_tasks import Columns, Plan, Shard

Array = np.ndarray

PART_ROWS = 65_536  # rows of a part, where `n_parts` is "auto" and memory is not limited
# Rows that are held out to calibrate what several parts predict, and that no part is fitted to: a fiftieth of
# all, but at least 300 and at most 3,000, and never more than a twentieth.
HELD_SHARE, FEW_HELD, MAX_HELD, MAX_HELD_SHARE = 0.02, 300, 3_000, 0.05
MIN_HELD = 50  # held-out rows below which nothing is calibrated
ROWS_AT_ONCE = 16_384  # rows that are predicted by one part after another


_LEFT_ON_DISK = ContextVar("exmlds_parts_left_on_disk", default=False)

NOT_OF_RESULT = ("n_jobs", "verbose", "max_labels")  # parameters that a fit does not depend on

AnyPart = XMCPredictor | InnerModel  # a fitted part, or where it is on disk


class ArrayShard(NamedTuple):
    """Rows in memory, as a shard."""

    X: Matrix
    Y: csr_matrix

    def blocks(self) -> Iterator[tuple[Matrix, csr_matrix]]:
        for rows in blocks(self.X.shape[0], ROWS_AT_ONCE):
            yield self.X[rows], self.Y[rows]

    def digest(self) -> str:
        return digest(self.X, self.Y)


@dataclass(kw_only=True, eq=False, repr=False)
class Partitioned(GrowsLabels):
    """Cut the rows into parts, fit an estimator to each, and ask the likeliest parts of a new row.

    A router learns from a sample which rows have similar labels and can be told apart by their features. A
    part is a whole fitted estimator, which knows the rows and labels of the part alone, so that the parts can
    be fitted one after another in little memory, or on the workers of a cluster.

    Parameters
    ----------
    estimator : an estimator of this package; None is `ExMLDS()`
    n_parts : number of parts; "auto" is one for every 65,536 rows, and more where `max_memory` requires it
    n_parts_probed : number of parts that predict the labels of a row
    overlap : the share of rows, those that are nearest to the border of their part, that belong to a second
        part too
    max_memory : of the fit of one part. A loaded model whose parts take more, or more than half of the memory
        of the machine without it, reads them when they are asked

    The other parameters are those of every method, `XMCEstimator`. Inside `with distributed.Client(…):` the
    parts are fitted by the workers of a Dask cluster.

    Attributes
    ----------
    router_ : the fitted router, or None where there is one part
    parts_ : the fitted estimators, or where they are on disk
    part_labels_, part_rows_ : the columns of `classes_` and the numbers of the training rows of each part
    part_label_counts_ : (parts, L) csr, the number of rows of each part that have each label

    Examples
    --------
    >>> from exmlds import ExMLDS4, Partitioned
    >>> from exmlds.data import make_library
    >>> X, Y, names, _ = make_library(500, random_state=0)
    >>> model = Partitioned(estimator=ExMLDS4(), n_parts=2, random_state=0)
    >>> model.fit(X, Y, label_names=names).predict_labels(X[2:3], k=2)
    [['geology', 'mountains']]
    """

    _constraints: ClassVar[Mapping[str, params.Constraint]] = {
        **XMCEstimator._constraints,
        "estimator": params.Constraint(
            "None or an estimator of exmlds that takes rows of features",
            lambda value: value is None or isinstance(value, XMCEstimator),
        ),
        "n_parts": params.either(params.one_of("auto"), params.whole(1)),
        "n_parts_probed": params.whole(1),
        "overlap": params.number(0, 1),
    }
    _space: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "n_parts": ("auto", 2, 4, 8),
        "n_parts_probed": (2, 1, 3),
        "overlap": (0.75, 0.0, 0.5, 1.0),
    }

    estimator: Any = None
    n_parts: str | int = "auto"
    n_parts_probed: int = 2
    overlap: float = 0.75
    _last_part = None  # the number and the model of the part on disk that was asked last

    @property
    def _part_estimator(self) -> XMCEstimator:
        return ExMLDS() if self.estimator is None else self.estimator

    def _fit(self, X: Matrix, Y: csr_matrix, rng: Generator, **side: Any) -> HeldOutScores | None:
        seed = int(rng.integers(2**63))
        n_parts = self._resolve_parts(DataSize.of(X, Y))
        if n_parts == 1:
            # With the same seed, one part is the model that the estimator alone would be.
            own = self.random_state if isinstance(self.random_state, Integral) else seed % 2**31
            model = tasks.fit_estimator(self._plan(Path(), seed), X, Y, int(own))
            counts = np.bincount(Y.indices, minlength=Y.shape[1])
            self._store(None, [model], [Columns(np.arange(Y.shape[1]), counts, np.arange(X.shape[0]))])
            return None
        with TemporaryDirectory(prefix="exmlds-parts-") as folder:
            plan, shards = self._plan(Path(folder), seed), [ArrayShard(X, Y)]
            tasks.count_shard(plan, 0, shards[0], 1)
            plan = plan._replace(n_parts=n_parts, held_below=_held_share(X.shape[0]))
            tasks.make_parts(plan, shards, [X.shape[0]], in_memory=True)
            self._collect(plan)
            self._load_parts()
            return self._score_held(plan, len(shards))[0]

    def fit_shards(
        self, shards: Sequence[Shard], path: PathLike, *, label_names: Sequence[str] | None = None
    ) -> Self:
        """Fit the model to shards and write it to a folder; no process holds all rows at any time.

        What tasks make is kept in the folder PATH.work, which other machines must be able to read and write
        too. It is removed at the end. A call that was stopped goes on from there when it is made again.
        Several parts stay on disk, and are read when they are asked; `load` reads them at once.

        Parameters
        ----------
        shards : `exmlds.data.open_shards` gives those of files
        path : the folder of the model
        label_names : L names of the columns of Y
        """
        model_folder.check_target(path)
        work = work_folder(path)
        with self._all_or_nothing():
            self._learn_shards(shards, work, label_names)
            self.save(path)
        shutil.rmtree(work)
        with parts_left_on_disk():
            estimator = self.estimator  # with its device, which is not saved
            self._become(load(path))
            self.estimator = estimator
        return self

    def _learn_shards(self, shards: Sequence[Shard], work: Path, label_names: Sequence[str] | None) -> None:
        """Fit to shards; the parts stay in the work folder."""
        self._check_parameters()
        self._leave_folder()
        parameters = {
            name: value for name, value in self.plain_parameters().items() if name not in NOT_OF_RESULT
        }
        run = {"shards": [shard.digest() for shard in shards], "parameters": parameters}
        rng = Checkpoint(work, run, generator(self.random_state)).rng()
        plan = self._plan(work, int(rng.integers(2**63)))
        with progress.shown(self.verbose > 0):
            sizes, size = self._count_shards(plan, shards)
            self.names_ = None if label_names is None else targets.encode([label_names], label_names)[1]
            n_parts = self._resolve_parts(size, in_memory=False)
            plan = plan._replace(n_parts=n_parts, held_below=_held_share(size.n) if n_parts > 1 else 0.0)
            with progress.phase(f"training {type(self).__name__}", size.n):
                tasks.make_parts(plan, shards, sizes, in_memory=False)
            self._collect(plan)
            held_out, Y = self._score_held(plan, len(shards))
            if self.router_ is None:
                self._load_parts()
            rows = csr_matrix((0, 0)) if Y is None else Y
            if held_out is not None:
                held_out = held_out._replace(rows=np.arange(len(held_out.rows)))
            # With too few rows to hold some out, `rows` is empty, and nothing is tuned.
            self.threshold_, self.held_out_metrics_ = self._choose_threshold(rows, rows, held_out, rng)
            self.chosen_threshold_ = ThresholdChoice(self.threshold, self.threshold_, self.held_out_metrics_)

    def _count_shards(self, plan: Plan, shards: Sequence[Shard]) -> tuple[list[int], DataSize]:
        """The rows of each shard, and the size of all; sets what every model knows of its rows."""
        calls = [(plan, number, shard, len(shards)) for number, shard in enumerate(shards)]
        cluster.run(tasks.count_shard, calls, "reading shards")
        sizes, nnz, first = list[int](), 0, tasks.read_counts(plan, 0)
        totals = np.zeros_like(first.label_counts)
        for number in range(len(shards)):
            count = tasks.read_counts(plan, number)
            sizes.append(count.n)
            nnz, totals = nnz + count.nnz, totals + count.label_counts
        if not totals.any():
            raise ValueError("The shards hold no label at all; there is nothing to learn.")
        self.n_samples_fit_, self.n_features_in_, self.n_labels_ = sum(sizes), first.d, len(totals)
        self.columns_, self.column_counts_ = UsedColumns(None, None), totals
        self.sparse_rows_, self.training_digest_ = True, None
        return sizes, DataSize(sum(sizes), first.d, len(totals), nnz, int(totals.sum()))

    @property
    def device(self) -> str:
        """Where the parts run: the device of the estimator, or the one that `load` was given."""
        return self._device or self._part_estimator.device

    @device.setter
    def device(self, device: str) -> None:
        self._use_device(device)

    def _use_device(self, device: str) -> None:
        clone(self._part_estimator)._use_device(device)
        self._device = device

    def _plan(self, folder: Path, seed: int) -> Plan:
        n_jobs = self.n_jobs if cluster.current_client() is None else 1
        estimator = clone(self._part_estimator)
        if self._device:
            estimator._use_device(self._device)
        if self._engine is not None:
            estimator = estimator.with_engine(self._engine)
        estimator.threshold = self.threshold
        if estimator.max_memory is None:
            estimator.max_memory = self.max_memory
        return Plan(folder, seed, estimator, n_jobs, self.n_parts_probed, self.overlap)

    def _resolve_parts(self, data: DataSize, *, in_memory: bool = True) -> int:
        """The number of parts: as given, or so many that each has few rows and can be fitted in the memory.

        in_memory : whether all rows are in memory while the parts are fitted
        """
        most = max(data.n // 2, 1)
        if self.n_parts != "auto":
            return min(int(self.n_parts), most)
        n_parts = -(-data.n // PART_ROWS)
        if self.max_memory is not None:
            allowed = params.as_bytes(self.max_memory)
            while n_parts < most and self._memory_of_fit(data, n_parts, in_memory) > allowed:
                n_parts += -(-n_parts // 4)
        return min(n_parts, most)

    def _memory_of_fit(self, data: DataSize, n_parts: int, in_memory: bool) -> float:
        rows = data.rows_bytes() + data.labels_bytes() if in_memory else 0.0
        return rows + self._part_estimator._estimate(self._size_of_part(data, n_parts)).memory

    def _size_of_part(self, data: DataSize, n_parts: int) -> DataSize:
        """The size of the largest part, approximately."""
        share = 1.0 if n_parts == 1 else min(tasks.CAP * (1 + self.overlap) / n_parts, 1.0)
        n, nnz, nnz_labels = (max(int(share * each), 1) for each in (data.n, data.nnz, data.nnz_labels))
        return DataSize(n, data.d, min(data.n_labels, nnz_labels), nnz, nnz_labels).occurring()

    def _estimate(self, data: DataSize) -> Estimate:
        n_parts = self._resolve_parts(data)
        part = self._part_estimator._estimate(self._size_of_part(data, n_parts))
        return Estimate(self._memory_of_fit(data, n_parts, in_memory=True), n_parts * part.size)

    def _store(
        self,
        router: Router | None,
        parts: Sequence[AnyPart],
        columns: Sequence[Columns],
    ) -> None:
        self.router_, self.parts_ = router, [*parts]
        self.part_labels_, self.part_rows_ = [own.labels for own in columns], [own.rows for own in columns]
        starts, counts = np.cumsum([0, *map(len, self.part_labels_)]), [own.label_counts for own in columns]
        self.part_label_counts_ = csr_matrix(
            (np.concatenate(counts).astype(np.float32), np.concatenate(self.part_labels_), starts),
            shape=(len(columns), len(self.column_counts_)),
        )
        self.stacker_: Stacker | None = None

    def _collect(self, plan: Plan) -> None:
        """Take over the parts of a plan, without those that have no labelled row."""
        columns = [tasks.read_columns(plan, part) for part in range(plan.n_parts)]
        used = [part for part, own in enumerate(columns) if len(own.labels)]
        router = row_file.read_one(plan.path("router"), "router")
        self._store(
            Router(router.centers[used]) if len(used) > 1 else None,
            [InnerModel(plan.path("part", part) / "model") for part in used],
            [columns[part] for part in used],
        )

    def _score_held(self, plan: Plan, n_shards: int) -> tuple[HeldOutScores | None, csr_matrix | None]:
        """Calibrate on the rows that no part has seen; returns their scores and labels."""
        if not plan.held_below:
            return None, None
        X, Y, rows = tasks.rows_of(plan, n_shards, "held")
        if len(rows) < MIN_HELD or not Y.nnz or self.router_ is None:
            return None, None
        scored = [row_file.read_one(plan.path("scored", part), "scores") for part in range(plan.n_parts)]
        used = [part for part in range(plan.n_parts) if tasks.read_columns(plan, part).labels.size]
        asked, shares = tasks.ask(self.router_, X, self.n_parts_probed)
        ids, scores = (
            np.stack([[scored[used[part]][name][row] for part in own] for row, own in enumerate(asked)])
            for name in ("ids", "scores")
        )
        merged = self._merge(ids, scores, asked, shares)
        present = merged.ids >= 0
        pairs = HeldOutPairs(
            merge.evidence(merged)[present], merged.ids[present], contains(Y, merged.ids)[present]
        )
        self.stacker_ = stacking.calibrate_alone(pairs)
        k = min(self.max_labels, merged.ids.shape[1])
        return HeldOutScores(rows, merged.ids[:, :k], self._calibrated(merged)[:, :k]), Y

    def _calibrated(self, merged: Merged) -> Array:
        """The probabilities of labels, in the order of their means."""
        if self.stacker_ is None:
            return merged.scores
        logits = stacking.logits(self.stacker_, merge.evidence(merged), merged.ids, engine=self.engine)
        return np.where(merged.ids >= 0, stacking.probabilities(self.stacker_, logits), 0)

    def _choose_threshold(
        self, X: Matrix, Y: csr_matrix, held_out: HeldOutScores | None, rng: Generator, **side: Any
    ) -> tuple[float, dict[str, float] | None]:
        if self.router_ is None and held_out is None:  # the only part has chosen one
            (part,) = self.parts_
            assert isinstance(part, XMCPredictor)
            return part.threshold_, part.held_out_metrics_
        return super()._choose_threshold(X, Y, held_out, rng, **side)

    # Predicting.

    def _in_blocks(
        self, work: Callable[[slice], tuple[Array, Array]], n: int, k: int, stage: str
    ) -> tuple[Array, Array]:
        """Large blocks, one after another: each part predicts its rows of a block on all threads."""
        found = []
        with progress.stage(stage, n) as advance:
            for block in blocks(n, ROWS_AT_ONCE):
                found.append(work(block))
                advance(block.stop - block.start)
        if not found:
            return np.empty((0, k), np.int64), np.empty((0, k), np.float32)
        ids, scores = zip(*found)
        return np.concatenate(ids), np.concatenate(scores)

    def _candidates(self, X: Matrix, k: int) -> tuple[Array, Array]:
        if self.router_ is None:
            return tasks.predict_part(self._part(0), self.part_labels_[0], X, k)
        merged = self._ask_parts(X, k)
        return merged.ids[:, :k], self._calibrated(merged)[:, :k]

    def _ask_parts(self, X: Matrix, k: int) -> Merged:
        """What the likeliest parts predict for each row."""
        assert self.router_ is not None
        asked, shares = tasks.ask(self.router_, X, self.n_parts_probed)
        k = max(k, tasks.CANDIDATES)
        ids = np.full((*asked.shape, k), -1, np.int64)
        scores = np.zeros(ids.shape, np.float32)
        for part in np.unique(asked).tolist():
            rows, slots = np.nonzero(asked == part)
            found = tasks.predict_part(self._part(part), self.part_labels_[part], take_rows(X, rows), k)
            ids[rows, slots], scores[rows, slots] = found
        return self._merge(ids, scores, asked, shares)

    def _merge(self, ids: Array, scores: Array, asked: Array, shares: Array) -> Merged:
        """One list of labels from those of the parts that each row asked."""
        counts = (self.part_label_counts_, self.column_counts_)
        return merge.mix(ids, scores, merge.label_weights(ids, asked, shares, *counts))

    def _part(self, number: int) -> XMCPredictor:
        """A fitted part; one that is on disk is kept in memory until another one is asked."""
        part = self.parts_[number]
        if isinstance(part, InnerModel):
            last = self._last_part
            if last is None or last[0] != number:
                last = self._last_part = (number, load_inner(part))
            part = last[1]
        if part.n_jobs != self.n_jobs:
            part.n_jobs = self.n_jobs
        if part.device != self.device:
            part._use_device(self.device)
        return part

    @property
    def _score_meaning(self) -> str:
        return "probabilities" if self.stacker_ is not None else self._part(0)._score_meaning

    def _explain_row(
        self, X: Matrix, label: int | None, n: int, feature_names: Any, kept_row: Any = None, **side: Any
    ) -> Any:
        ids, scores = self._candidates(X, len(self.column_counts_))
        label = int(ids[0, 0]) if label is None else label
        asked = np.zeros((1, 1), np.int64)
        if self.router_ is not None:
            asked, _ = tasks.ask(self.router_, X, len(self.parts_))
        # The likeliest part that knows the label explains it.
        number = next(part for part in asked[0].tolist() if label in self.part_labels_[part])
        part, labels, rows = self._part(number), self.part_labels_[number], self.part_rows_[number]
        own_kept = None if kept_row is None else lambda row: kept_row(int(rows[row]))
        own_rows, _ = part._rows_with_side(X)
        own_label = part._used_column(int(np.flatnonzero(labels == label)[0]))
        why = part._explain_row(own_rows, own_label, n, feature_names, own_kept)
        voters = [voter._replace(row=int(rows[voter.row])) for voter in why.voters]
        score = float(scores[0][ids[0] == label].sum())
        return why._replace(
            label=self._used_label(label), score=score, prior=self._prior(label), voters=voters
        )

    # Growing.

    @property
    def _can_grow(self) -> bool:
        return bool(getattr(self._part_estimator, "growable", False))

    @property
    def _advice(self) -> str:
        name = type(self._part_estimator).__name__
        return (
            "The parts do not keep their training rows, which they need to grow: fit the model with "
            f"Partitioned(estimator={name}(growable=True)), if {name} can grow."
        )

    @OfGrowing
    @explained
    @one_at_a_time
    def partial_fit(self, X: Any, y: Any, *, label_names: Sequence[str] | None = None) -> Self:
        """Add rows to a fitted model, each to its likeliest part; an unfitted model is fitted to them.

        A model that is open for writing gets a new generation, in which only the parts that grew are new.

        Parameters
        ----------
        X, y : as `fit` takes them. Labels that the model does not know become new classes
        label_names : the names of further columns, where y is a matrix and classes have names
        """
        if not hasattr(self, "n_labels_"):
            return self.fit(X, y, label_names=label_names)
        with self._all_or_nothing():
            X = self._checked_rows(X, reset=False)
            Y, names = self._grown_labels(y, label_names)
            if Y.shape[0] != X.shape[0]:
                raise ValueError(f"X has {X.shape[0]} rows, but Y has {Y.shape[0]}.")
            parts = np.zeros(X.shape[0], np.int64)
            if self.router_ is not None:
                parts = tasks.ask(self.router_, X, 1)[0][:, 0]
            self.parts_ = [*self.parts_]
            self.part_labels_, self.part_rows_ = [*self.part_labels_], [*self.part_rows_]
            for part in np.unique(parts).tolist():
                rows = np.flatnonzero(parts == part)
                self._grow_part(part, take_rows(X, rows), Y[rows])
                numbers = self.n_samples_fit_ + rows
                self.part_rows_[part] = np.concatenate([self.part_rows_[part], numbers])
            if self.names_ is not None:
                self.names_ = np.concatenate([self.names_, self._new_names(names).astype(self.names_.dtype)])
            counts = np.bincount(Y.indices, minlength=self.n_labels_ + len(names))
            counts[: self.n_labels_] += self.column_counts_
            self.column_counts_, self.n_labels_ = counts, len(counts)
            self.part_label_counts_ = _with_rows(self.part_label_counts_, parts, Y)
            self.n_samples_fit_ += X.shape[0]
            if self._journal is not None:
                self._journal.check_open()
                self._save(self._journal.folder)
        return self

    def _grow_part(self, number: int, X: Matrix, Y: csr_matrix) -> None:
        """Add rows to a copy of a part, which takes its place."""
        labels = self.part_labels_[number]
        labels = np.concatenate([labels, np.setdiff1d(Y.indices, labels).astype(labels.dtype)])
        part: Any = copy.copy(self._part(number))
        self.parts_[number] = part.partial_fit(X, csr_matrix(Y[:, labels]))
        self.part_labels_[number], self._last_part = labels, None

    # Saving.

    def plain_parameters(self) -> dict[str, Any]:
        """As they stand in a manifest: the estimator by class and parameters."""
        kept = self.get_params(deep=False)
        estimator = kept.pop("estimator")
        plain = model_folder.plain_parameters(kept)
        if estimator is not None:
            plain["estimator"] = {
                "class": class_reference(type(estimator)),
                "parameters": estimator.plain_parameters(),
            }
        return plain

    @classmethod
    def from_plain(cls, parameters: Mapping[str, Any]) -> Self:
        kept = dict(parameters)
        estimator = kept.pop("estimator", None)
        if estimator is not None:
            where = "The estimator's parameters"
            estimator = restored(estimator["class"], estimator["parameters"], {}, where)
        return cls(estimator=estimator, **kept)

    def _state(self) -> dict[str, Any]:
        state = super()._state()
        parts = [
            part if isinstance(part, InnerModel) else InnerModel(None, part.save) for part in self.parts_
        ]
        return {**state, "parts": parts}

    def _restore(self) -> None:
        super()._restore()
        self._check_parts()
        size = sum(model_folder.size(part.folder or "") for part in self.parts_)
        allowed = physical_bytes() / 2 if self.max_memory is None else params.as_bytes(self.max_memory)
        if size <= allowed and not (_LEFT_ON_DISK.get() and len(self.parts_) > 1):
            self._load_parts()

    def _load_parts(self) -> None:
        self.parts_ = [load_inner(part) if isinstance(part, InnerModel) else part for part in self.parts_]

    def _check_parts(self) -> None:
        """Check what routes to the parts, before they are loaded."""
        n_labels = len(self.column_counts_)
        stored.require(isinstance(self.parts_, list) and self.parts_, "there are no parts")
        n_parts = len(self.parts_)
        for columns in (self.part_labels_, self.part_rows_):
            stored.require(isinstance(columns, list) and len(columns) == n_parts, "parts have no columns")
        for part, labels, rows in zip(self.parts_, self.part_labels_, self.part_rows_):
            stored.record(part, "a part", InnerModel)
            stored.ids(labels, "the labels of a part", None, n_labels)
            is_its = np.zeros(n_labels, bool)
            is_its[labels] = True
            stored.require(np.count_nonzero(is_its) == len(labels), "a part has a label twice")
            stored.ids(rows, "the rows of a part", None, self.n_samples_fit_)
        stored.matrix(self.part_label_counts_, "the matrix of the labels' rows in parts", n_parts, n_labels)
        if self.router_ is None:
            stored.require(n_parts == 1, "there are parts without a router")
        else:
            stored.record(self.router_, "the router", Router)
            width = self.n_features_in_
            stored.array(self.router_.centers, "the centres of parts", "float32", n_parts, width)
        if self.stacker_ is not None:
            stacking.check(self.stacker_, merge.N_EVIDENCE, n_labels)

    def _check_learnt(self) -> None:
        super()._check_learnt()
        for number, labels in enumerate(self.part_labels_):
            part = self.parts_[number]
            if isinstance(part, XMCPredictor):
                fits = part.n_labels_ == len(labels) and part.n_features_in_ == self.n_features_in_
                stored.require(fits, "a part has other features or labels than the model")


@contextmanager
def parts_left_on_disk() -> Iterator[None]:
    """Inside, `load` leaves several parts on disk: the driver of a fit to shards is not to hold them all."""
    token = _LEFT_ON_DISK.set(True)
    try:
        yield
    finally:
        _LEFT_ON_DISK.reset(token)


def work_folder(path: PathLike) -> Path:
    """Where the tasks of a fit work, beside the folder of the model."""
    return Path(f"{os.fspath(path).rstrip('/')}.work")


def _with_rows(counts: csr_matrix, parts: Array, Y: csr_matrix) -> csr_matrix:
    """Counts of labels by part, (p, L) csr, with those of more rows, which may have more labels.

    parts : (m,) the part of each row;  Y : (m, L′) csr of ones
    """
    shape = (counts.shape[0], len(parts))
    belongs = csr_matrix((np.ones(len(parts), np.float32), (parts, np.arange(len(parts)))), shape=shape)
    widened = csr_matrix((counts.data, counts.indices, counts.indptr), shape=(shape[0], Y.shape[1]))
    total = csr_matrix(widened + belongs @ csr_matrix(Y, dtype=np.float32))
    total.sort_indices()
    return total


def _held_share(n: int) -> float:
    """The share of rows that are held out; 0 where they are too few."""
    n_held = min(max(HELD_SHARE * n, FEW_HELD), MAX_HELD, MAX_HELD_SHARE * n)
    return n_held / n if n_held >= MIN_HELD else 0.0
