"""Run one fit of one system in its own environment; `peers.py` starts this script.

    python benchmarks/peer_fit.py PEER FOLDER SEED THREADS SETTINGS

FOLDER contains the training rows X.npz and Y.npz, the rows to predict, rows.npz, and train.txt where a system
reads its rows from a file. SETTINGS is a JSON object of further arguments of the fit. The script writes
ids.npy, (n, 5) labels, best first and padded with −1, and figures.json to the same folder. Only our own fit
imports exmlds.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, hstack, issparse, load_npz

from measure import peak_bytes, seconds

PLACES = 5
ALONE = 200  # rows that are predicted one by one
ALONE_SECONDS = 10  # approximate limit for these predictions
BLOCK = 1_000  # rows or labels whose dense scores or weights are computed at a time
N_TRIAL_LABELS = 20  # labels on which the time of one-vs-rest is estimated
MOST_SECONDS = 45 * 60  # limit for one-vs-rest
MOST_DENSE_BYTES = 8e9  # limit for the dense matrices of ridge regression
MOST_BYTES = 20 * 10**9  # limit for the memory of the process, so that it ends before the machine swaps

Array = np.ndarray


class Data(NamedTuple):
    """X : (n, d) csr float32;  Y : (n, L) csr float32;  folder : contains train.txt and receives the model"""

    X: csr_matrix
    Y: csr_matrix
    folder: Path
    seed: int
    threads: int


class Fitted(NamedTuple):
    """A model, saved in folder/model: the seconds of its fit, and functions that predict many rows or one."""

    seconds: float
    predict: Callable[[csr_matrix], Any]  # in the system's own form: lists of ids, or sparse scores
    alone: Callable[[csr_matrix], Any]


def omikuji(data: Data, **settings: Any) -> Fitted:
    import omikuji

    hyper_param = omikuji.Model.default_hyper_param()
    for key, value in settings.items():
        setattr(hyper_param, key, value)
    # This repeats Model.train_on_data, but times the reading of the file separately.
    pool = omikuji._ThreadPoolHandle(data.threads)
    read = omikuji.lib.load_omikuji_data_set(str(data.folder / "train.txt").encode(), pool.ptr)
    if read == omikuji.ffi.NULL:
        raise RuntimeError("omikuji can't read its training file.")
    read = omikuji.ffi.gc(read, omikuji.lib.free_omikuji_data_set)
    started = time.perf_counter()
    model = omikuji.Model(omikuji.lib.train_omikuji_model(read, hyper_param, pool.ptr))
    taken = time.perf_counter() - started
    model.save(str(data.folder / "model"))
    model.init_prediction_thread_pool(data.threads)
    model.densify_weights()  # as its command line does before it predicts

    def predict(X: csr_matrix) -> list[list[int]]:
        found = []
        for start, stop in zip(X.indptr, X.indptr[1:]):
            pairs = list(zip(X.indices[start:stop].tolist(), X.data[start:stop].tolist()))
            found.append([label for label, _ in model.predict(pairs, top_k=PLACES)])
        return found

    return Fitted(taken, predict, predict)


def napkinxc(data: Data, **settings: Any) -> Fitted:
    from napkinxc.models import PLT

    model = PLT(str(data.folder / "model"), seed=data.seed, threads=data.threads, **settings)
    taken = seconds(lambda: model.fit(data.X, data.Y))  # includes saving
    model.load()
    predict = partial(model.predict, top_k=PLACES)
    return Fitted(taken, predict, predict)


def pecos(data: Data) -> Fitted:
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    X, Y, threads = data.X, data.Y.tocsc(), data.threads
    started = time.perf_counter()
    labels = LabelEmbeddingFactory.create(data.Y, X, method="pifa", threads=threads)
    chain = Indexer.gen(labels, seed=data.seed, threads=threads)
    trained = XLinearModel.train(X, Y, C=chain, threads=threads)
    taken = time.perf_counter() - started
    folder = str(data.folder / "model")
    trained.save(folder)
    model = XLinearModel.load(folder, is_predict_only=True)  # the documented way of fast prediction

    predict = partial(model.predict, only_topk=PLACES)
    return Fitted(taken, partial(predict, threads=threads), partial(predict, threads=1))


def one_vs_rest(data: Data) -> Fitted:
    import joblib
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    X, Y, n_labels = data.X, data.Y, data.Y.shape[1]

    def fit(Y: csr_matrix) -> OneVsRestClassifier:
        with joblib.parallel_config(backend="threading"):  # liblinear releases the GIL
            return OneVsRestClassifier(LinearSVC(random_state=0), n_jobs=data.threads).fit(X, Y)

    tried = np.random.default_rng(0).choice(n_labels, min(N_TRIAL_LABELS, n_labels), replace=False)
    expected = seconds(lambda: fit(Y[:, tried])) * n_labels / len(tried)
    if expected > MOST_SECONDS:
        raise TimeoutError(
            f"needs about {expected / 60:.0f} minutes, as {len(tried)} of {n_labels:,} labels show; "
            f"more than {MOST_SECONDS // 60} are not given to it"
        )
    started = time.perf_counter()
    model = fit(Y)
    taken = time.perf_counter() - started
    joblib.dump(model, data.folder / "model")

    predict = partial(best_of_dense, model.decision_function)
    return Fitted(taken, predict, predict)


def ridge(data: Data, l2: float = 1.0) -> Fitted:
    """Fit one ridge regression for all labels by its closed form.

    The weights are (XᵀX + l2 I)⁻¹ XᵀY or, where rows are fewer than features, Xᵀ(XXᵀ + l2 I)⁻¹ Y. Each row
    has a further feature of 1, whose weights are the intercepts.
    """
    from scipy.linalg import cho_factor, cho_solve

    X, Y = with_ones(data.X), data.Y.tocsc()
    (n, d), n_labels = X.shape, Y.shape[1]
    check_ridge(n, d, n_labels)
    started = time.perf_counter()
    A = X if n < d else X.T.tocsr()
    gram = np.empty((A.shape[0], A.shape[0]), np.float32)
    for start in range(0, len(gram), BLOCK):
        gram[start : start + BLOCK] = (A[start : start + BLOCK] @ A.T).toarray()
    gram[np.diag_indices_from(gram)] += np.float32(l2)
    factor = cho_factor(gram.T, overwrite_a=True, check_finite=False)  # .T has LAPACK's order of columns
    weights = np.empty((d, n_labels), np.float32)
    for start in range(0, n_labels, BLOCK):
        labels = Y[:, start : start + BLOCK]
        targets = (labels if n < d else A @ labels).toarray()
        solved = cho_solve(factor, targets, overwrite_b=True, check_finite=False)
        weights[:, start : start + BLOCK] = X.T @ solved if n < d else solved
    taken = time.perf_counter() - started
    with (data.folder / "model").open("wb") as file:
        np.save(file, weights)
    predict = partial(best_of_dense, lambda rows: with_ones(rows) @ weights)
    return Fitted(taken, predict, predict)


def check_ridge(n: int, d: int, n_labels: int) -> None:
    """Refuse ridge regression whose dense matrices would be too large."""
    k = min(n, d)
    size = 4 * (k * k + d * n_labels)
    if size > MOST_DENSE_BYTES:
        raise MemoryError(
            f"needs {size / 1e9:.1f} GB for dense matrices of {k:,} × {k:,} and {d:,} × {n_labels:,}; more "
            f"than {MOST_DENSE_BYTES / 1e9:.0f} GB are not given to it"
        )


def with_ones(X: csr_matrix) -> csr_matrix:
    return hstack([X, np.ones((X.shape[0], 1), X.dtype)], format="csr")


def best_of_dense(score: Callable[[csr_matrix], Array], X: csr_matrix) -> Array:
    """(n, 5) labels with the highest scores, best first; `score` gives the scores of all labels of rows."""
    found = []
    for start in range(0, X.shape[0], BLOCK):
        scores = score(X[start : start + BLOCK])
        best = np.argpartition(-scores, min(PLACES, scores.shape[1]) - 1, axis=1)[:, :PLACES]
        order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
        found.append(np.take_along_axis(best, order, axis=1))
    return np.concatenate(found)


def ours(data: Data, effort: str = "balanced") -> Fitted:
    from exmlds import ExMLDS
    from exmlds.data import make_library
    from exmlds.voting import memory

    books, cells_from = make_library(400), memory.CELLS_FROM
    for memory.CELLS_FROM in (100, cells_from):  # compile first, with the cells of a large set and without
        for X in (books.X, books.X.toarray()):
            ExMLDS(effort=effort).fit(X, books.Y).predict_topk(X)
    model = ExMLDS(effort=effort, random_state=data.seed, n_jobs=data.threads)
    taken = seconds(lambda: model.fit(data.X, data.Y))
    model.save(data.folder / "model")

    def predict(X: csr_matrix) -> Array:
        return model.predict_topk(X, PLACES)[0]

    return Fitted(taken, predict, predict)


# The settings are those of the documentation of each system. PECOS, whose times ours are compared with, runs
# between ours.
FITS: dict[str, tuple[str, Callable[..., Fitted]]] = {
    "ours-fast": ("exmlds", partial(ours, effort="fast")),
    "ours": ("exmlds", ours),
    "pecos": ("libpecos", pecos),
    "ours-best": ("exmlds", partial(ours, effort="best")),
    "parabel": ("omikuji", omikuji),
    "bonsai": ("omikuji", partial(omikuji, cluster_k=100, cluster_balanced=False, max_depth=3)),
    "plt": ("napkinxc", napkinxc),
    "plt-3": ("napkinxc", partial(napkinxc, ensemble=3)),
    "one-vs-rest": ("scikit-learn", one_vs_rest),
    "ridge": ("scikit-learn", ridge),
}


def ranked(found: Any) -> Array:
    """Convert lists of ids or sparse scores to (n, 5) ids, best first."""
    if issparse(found):
        bounds = list(zip(found.indptr, found.indptr[1:]))
        orders = [np.argsort(-found.data[start:stop], kind="stable") for start, stop in bounds]
        found = [found.indices[start:stop][order] for (start, stop), order in zip(bounds, orders)]
    ids = np.full((len(found), PLACES), -1)
    for row, labels in zip(ids, found):
        row[: len(labels)] = labels[:PLACES]
    return ids


def stored_bytes(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def main() -> None:
    peer, folder, seed, threads = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    package, fit = FITS[peer]
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    X, Y, rows = (load_npz(folder / f"{name}.npz") for name in ("X", "Y", "rows"))
    before = peak_bytes()
    fitted = fit(Data(X, Y, folder, seed, threads), **json.loads(sys.argv[5]))
    fitted.predict(rows[:ALONE])  # a warm-up: some systems initialize at the first prediction
    started = time.perf_counter()
    found = fitted.predict(rows)
    taken = time.perf_counter() - started
    alone: list[float] = []
    for row in (rows[i] for i in range(min(ALONE, rows.shape[0]))):
        if sum(alone) < ALONE_SECONDS:
            alone.append(seconds(partial(fitted.alone, row)))
    figures = {
        "version": version(package),
        "fit_seconds": fitted.seconds,
        "ms_per_row": 1000 * taken / rows.shape[0],
        "ms_one_row": 1000 * median(alone),
        "bytes_before_fit": before,
        "peak_bytes": peak_bytes(),
        "model_bytes": stored_bytes(folder / "model"),
    }
    np.save(folder / "ids.npy", ranked(found))
    (folder / "figures.json").write_text(json.dumps(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
