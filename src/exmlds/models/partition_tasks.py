"""The tasks of a `Partitioned` fit: functions of files and a seed, each of which writes one file or folder.

    FOLDER/counted-0, …      of each shard: how many rows and labels it has, and a sample of its rows
    FOLDER/router            the router, and the margin by which rows belong to two parts
    FOLDER/routed-0, …       the rows of each shard by part, and those that are held out
    FOLDER/part-0/, …        of each part: `model`, a model folder, and `columns`, its labels and rows
    FOLDER/scored-0, …       what each part predicts for the held-out rows that ask it

A task whose file is there is done: a fit that was stopped goes on from the files, and a task that runs twice
gives the same. A shard is any object that can be pickled and whose `blocks()` yields pairs (X, Y) of rows.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_matrix, issparse, vstack
from sklearn.base import clone

from ..base import XMCEstimator, load
from ..runtime import cluster
from ..runtime.parallel import one_blas_thread
from ..stages import partition
from ..stages.partition import Router
from ..storage import row_file
from ..validation.arrays import Matrix, take_rows, unit_rows

Array = np.ndarray

SAMPLE = 200_000  # rows that the router is learnt from
SPARE = 3  # a shard's share of the sample is taken from so many times as many rows, since shards differ
BUFFER = 1 << 23  # stored values of routed rows that a task holds before it writes them
CAP = 1.3  # rows of the largest part of the sample, in units of equal parts
CANDIDATES = 50  # labels that a part predicts for a row at least


class Shard(Protocol):
    """A part of the training rows, which tasks read one after another."""

    def blocks(self) -> Iterator[tuple[Matrix, csr_matrix]]:
        """Yield pairs of X, (m, d), and Y, (m, L) csr of ones, in the order of the rows."""
        ...

    def digest(self) -> str:
        """What tells the shard from other data."""
        ...


class Plan(NamedTuple):
    """What the tasks of a fit share.

    folder : where their files are;  seed : of the fit
    estimator : the unfitted estimator of the parts;  n_jobs : threads of a task
    n_parts, n_parts_probed, overlap : as of `Partitioned`
    held_below : the key of a row, from 0 to 1, below which it is held out
    """

    folder: Path
    seed: int
    estimator: XMCEstimator
    n_jobs: int | None
    n_parts_probed: int
    overlap: float
    n_parts: int = 1
    held_below: float = 0.0

    def path(self, kind: str, number: int | None = None) -> Path:
        return self.folder / (kind if number is None else f"{kind}-{number}")

    def rng(self, *task: int) -> np.random.Generator:
        """The random generator of a task."""
        return np.random.default_rng([self.seed, *task])


class Counts(NamedTuple):
    """Rows, features, and the stored values of X and Y of one shard or of all; (L,) rows of each label."""

    n: int
    d: int
    nnz: int
    label_counts: Array


class Columns(NamedTuple):
    """The labels of a part, ascending, the number of its rows that have each of them, and its rows."""

    labels: Array
    label_counts: Array
    rows: Array


def count_shard(plan: Plan, number: int, shard: Shard, n_shards: int) -> None:
    """Count a shard, and take a sample of its rows, each of which has a random key."""
    path = plan.path("counted", number)
    if path.exists():
        return
    rng, total = plan.rng(0, number), Counts(0, 0, 0, np.zeros(0, np.int64))
    most = min(SPARE * SAMPLE // n_shards + 1, SAMPLE)
    sampled: list[tuple[Array, Matrix, csr_matrix]] = []
    n_sampled = 0
    for X, Y in shard.blocks():
        counts = np.bincount(Y.indices, minlength=Y.shape[1])
        nnz = X.nnz if issparse(X) else X.size
        before = np.zeros_like(counts) if not total.n else total.label_counts
        total = Counts(total.n + X.shape[0], X.shape[1], total.nnz + nnz, before + counts)
        sampled.append((rng.random(X.shape[0]), csr_matrix(X), Y))
        n_sampled += X.shape[0]
        if n_sampled > 2 * most:
            sampled, n_sampled = [_largest(_joined(sampled), most)], most
    keys, X, Y = _largest(_joined(sampled), most)
    row_file.write(path, [("counts", total._asdict()), ("keys", keys), ("rows", {"X": X, "Y": Y})])


def _joined(pieces: list[tuple[Array, Matrix, csr_matrix]]) -> tuple[Array, Matrix, csr_matrix]:
    keys, X, Y = zip(*pieces)
    return np.concatenate(keys), vstack(X, format="csr"), vstack(Y, format="csr")


def _largest(rows: tuple[Array, Matrix, csr_matrix], most: int) -> tuple[Array, Matrix, csr_matrix]:
    """The rows with the largest keys, in their order."""
    keys, X, Y = rows
    if len(keys) <= most:
        return rows
    kept = np.sort(np.argsort(-keys, kind="stable")[:most])
    return keys[kept], X[kept], Y[kept]


def read_counts(plan: Plan, number: int) -> Counts:
    """The counts of a shard."""
    return Counts(**row_file.read_one(plan.path("counted", number), "counts"))


def learn_router(plan: Plan, n_shards: int) -> None:
    """Learn the router from the sampled rows that are not held out."""
    path = plan.path("router")
    if path.exists():
        return
    if plan.n_parts == 1:
        router = Router(np.zeros((1, read_counts(plan, 0).d), np.float32))
        row_file.write(path, [("router", router), ("margin", -1.0)])
        return
    keys = [row_file.read_one(plan.path("counted", number), "keys") for number in range(n_shards)]
    together = np.concatenate(keys)
    least = max(np.sort(together)[::-1][: SAMPLE + 1][-1] if len(together) > SAMPLE else 0.0, plan.held_below)
    pieces = []
    for number, own in enumerate(keys):
        rows = row_file.read_one(plan.path("counted", number), "rows")
        pieces.append((own[own >= least], rows["X"][own >= least], rows["Y"][own >= least]))
    _, X, Y = _joined(pieces)
    rng, routed = plan.rng(1), routing_rows(X)
    cap = int(CAP * X.shape[0] / plan.n_parts)
    with one_blas_thread():
        router = partition.gate_by_labels(routed, Y, plan.n_parts, cap, rng)
        margin = partition.overlap_margin(partition.shares(router, routed), plan.overlap)
    row_file.write(path, [("router", router), ("margin", margin)])


def routing_rows(X: Matrix) -> csr_matrix:
    """Rows as the router takes them: values as their logarithms, log(1 + |x|), and of length 1."""
    rows = csr_matrix(X, dtype=np.float32, copy=True)
    rows.data = np.sign(rows.data) * np.log1p(np.abs(rows.data))
    return unit_rows(rows)


def route_shard(plan: Plan, number: int, shard: Shard, first_row: int) -> None:
    """Write the rows of a shard by part; first_row : the number of its first row among all."""
    path = plan.path("routed", number)
    if path.exists():
        return
    router = row_file.read_one(plan.path("router"), "router")
    margin = row_file.read_one(plan.path("router"), "margin")
    row_file.write(path, _routed(plan, number, shard, first_row, router, margin))


def _routed(
    plan: Plan, number: int, shard: Shard, first_row: int, router: Router, margin: float
) -> Iterator[tuple[str, Any]]:
    rng = plan.rng(0, number)  # the keys of `count_shard`
    waiting: list[tuple[Matrix, csr_matrix, Array, Array]] = []
    n_waiting = 0
    for X, Y in shard.blocks():
        is_held = rng.random(X.shape[0]) < plan.held_below
        belongs = partition.memberships(partition.shares(router, routing_rows(X)), margin)
        belongs[is_held] = False
        rows = np.arange(first_row, first_row + X.shape[0])
        first_row += X.shape[0]
        waiting.append((X, Y, rows, np.column_stack([belongs, is_held])))
        n_waiting += X.nnz if issparse(X) else X.size
        if n_waiting > BUFFER:
            yield from _by_part(waiting)
            waiting, n_waiting = [], 0
    yield from _by_part(waiting)


def _by_part(pieces: list[tuple[Matrix, csr_matrix, Array, Array]]) -> Iterator[tuple[str, Any]]:
    if not pieces:
        return
    X, Y, rows, belongs = (list(column) for column in zip(*pieces))
    n_parts = belongs[0].shape[1] - 1
    for part in range(n_parts + 1):
        own = [np.flatnonzero(some[:, part]) for some in belongs]
        key = "held" if part == n_parts else f"part-{part}"
        yield (
            key,
            {
                "X": _stacked([take_rows(some, which) for some, which in zip(X, own)]),
                "Y": vstack([some[which] for some, which in zip(Y, own)], format="csr"),
                "rows": np.concatenate([some[which] for some, which in zip(rows, own)]),
            },
        )


def _stacked(pieces: list[Matrix]) -> Matrix:
    return vstack(pieces, format="csr") if issparse(pieces[0]) else np.concatenate(pieces)


def rows_of(plan: Plan, n_shards: int, key: str) -> tuple[Matrix, csr_matrix, Array]:
    """X, Y and the numbers of the routed rows of a key, in the order of the shards."""
    found = [each for number in range(n_shards) for each in row_file.read(plan.path("routed", number), key)]
    X, Y = _stacked([each["X"] for each in found]), vstack([each["Y"] for each in found], format="csr")
    return X, Y, np.concatenate([each["rows"] for each in found])


def fit_part(plan: Plan, part: int, n_shards: int) -> None:
    """Fit the estimator to the rows of a part, and to the labels that they have; none if they have none."""
    folder = plan.path("part", part)
    if folder.exists():
        return
    X, Y, rows = rows_of(plan, n_shards, f"part-{part}")
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    labels = np.flatnonzero(counts)
    temporary = plan.folder / f".part-{part}.{secrets.token_hex(4)}"
    temporary.mkdir()
    try:
        row_file.write(temporary / "columns", [("columns", Columns(labels, counts[labels], rows)._asdict())])
        if len(labels):
            seed = int(plan.rng(2, part).integers(2**31))
            fit_estimator(plan, X, Y[:, labels], seed).save(temporary / "model")
        try:
            os.rename(temporary, folder)
        except OSError:
            if not folder.exists():  # another run of this task was faster
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def fit_estimator(plan: Plan, X: Matrix, Y: csr_matrix, seed: int) -> XMCEstimator:
    """A clone of the estimator, fitted to rows; of several parts, only the whole has a threshold."""
    model = clone(plan.estimator).with_engine(plan.estimator.engine)
    model.random_state, model.n_jobs, model.verbose = seed, plan.n_jobs, 0
    if plan.n_parts > 1:
        model.threshold = 0.0
    fitted = model.fit(X, csr_matrix(Y))
    trials = getattr(fitted, "search_results_", None)
    if trials is not None and "seconds" in trials:  # by which equal models would differ
        fitted.search_results_ = {**trials, "seconds": [0.0] * len(trials["seconds"])}
    return fitted


def score_part(plan: Plan, part: int, n_shards: int) -> None:
    """Predict the held-out rows that ask a part: ids are those of all labels, −1 where a row asks others."""
    path = plan.path("scored", part)
    if path.exists():
        return
    X, _, _ = rows_of(plan, n_shards, "held")
    router = row_file.read_one(plan.path("router"), "router")
    asked, _ = ask(router, X, plan.n_parts_probed)
    rows = np.flatnonzero((asked == part).any(axis=1))
    folder = plan.path("part", part)
    ids = np.full((X.shape[0], CANDIDATES), -1, np.int64)
    scores = np.zeros(ids.shape, np.float32)
    if len(rows) and (folder / "model").exists():
        labels = read_columns(plan, part).labels
        model = load(folder / "model")
        model.n_jobs = plan.n_jobs
        ids[rows], scores[rows] = predict_part(model, labels, take_rows(X, rows), CANDIDATES)
    row_file.write(path, [("scores", {"ids": ids, "scores": scores})])


def predict_part(model: Any, labels: Array, X: Matrix, k: int) -> tuple[Array, Array]:
    """The k best labels of a part, as columns of all labels; labels : (L′,) those of the part."""
    ids, scores = model.predict_topk(X, k)
    return np.where(ids >= 0, labels[np.maximum(ids, 0)], -1), scores


def ask(router: Router, X: Matrix, m: int) -> tuple[Array, Array]:
    """(n, m) int64, the likeliest parts of each row, likeliest first; and their shares, which sum to 1."""
    shares = partition.shares(router, routing_rows(X))
    asked = np.argsort(-shares, axis=1, kind="stable")[:, :m]
    shares = np.take_along_axis(shares, asked, axis=1)
    return asked, shares / shares.sum(axis=1, keepdims=True)


def make_parts(plan: Plan, shards: Sequence[Shard], sizes: Sequence[int], *, in_memory: bool) -> None:
    """Run all tasks after `count_shard`.

    sizes : the number of rows of each shard;  in_memory : whether the shards are in this process alone
    """
    run = _run_here if in_memory else cluster.run
    first_rows = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    routes = [(plan, number, shard, first_rows[number]) for number, shard in enumerate(shards)]
    run(learn_router, [(plan, len(shards))], "learning the router", 0.05)
    run(route_shard, routes, "routing rows", 0.15)
    parts = [(plan, part, len(shards)) for part in _largest_first(plan, len(shards))]
    cluster.run(fit_part, parts, "fitting parts", 0.95)
    if plan.held_below:
        cluster.run(score_part, parts, "scoring held-out rows", 1.0)


def _largest_first(plan: Plan, n_shards: int) -> list[int]:
    """The parts in the order of their tasks: a large one that began last would keep all workers waiting."""
    sizes = np.zeros(plan.n_parts, np.int64)
    for number in range(n_shards):
        found = row_file.sizes(plan.path("routed", number))
        sizes += [found.get(f"part-{part}", 0) for part in range(plan.n_parts)]
    return np.argsort(-sizes, kind="stable").tolist()


def _run_here(
    work: Callable[..., None], calls: Sequence[tuple[Any, ...]], stage: str, until: float | None = None
) -> None:
    for arguments in calls:
        work(*arguments)


def read_columns(plan: Plan, part: int) -> Columns:
    """The labels and the rows of a part."""
    return Columns(**row_file.read_one(plan.path("part", part) / "columns", "columns"))
