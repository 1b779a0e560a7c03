"""One fit of one peer, in the peer's own environment; `peers.py` starts it.

    python benchmarks/peer_fit.py PEER FOLDER SEED THREADS

FOLDER holds X.npz and Y.npz, the training rows, rows.npz, the rows to predict, and train.txt where a peer
reads its rows from a file. ids.npy, (n, 5) labels, best first, −1 pads, and figures.json are written beside
them. Only the fit of ours imports exmlds.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, issparse, load_npz

from measure import peak_bytes, seconds

OURS = "ExMLDS"
PLACES = 5
ALONE = 200  # rows predicted one by one
ALONE_SECONDS = 10  # that this may take, about
ROWS = 1_000  # that one-vs-rest scores at a time
SEARCH_HELD_ROWS = 20  # labels that one-vs-rest is tried on
MOST_SECONDS = 45 * 60  # of one-vs-rest

Array = np.ndarray


class Data(NamedTuple):
    """X : (n, d) csr float32;  Y : (n, L) csr float32;  folder : where train.txt is and the model goes"""

    X: csr_matrix
    Y: csr_matrix
    folder: Path
    seed: int
    threads: int


class Fitted(NamedTuple):
    """A model, saved in folder/model: the seconds of its fit, its prediction, and that of a row alone."""

    seconds: float
    predict: Callable[[csr_matrix], Any]  # in the peer's own form: lists of ids, or sparse scores
    alone: Callable[[csr_matrix], Any]


def omikuji(data: Data, **settings: Any) -> Fitted:
    import omikuji

    hyper_param = omikuji.Model.default_hyper_param()
    for key, value in settings.items():
        setattr(hyper_param, key, value)
    # What Model.train_on_data does, with the reading of the file apart from the training.
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
    taken = seconds(lambda: model.fit(data.X, data.Y))  # and saved
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
    model = XLinearModel.load(folder, is_predict_only=True)  # its documented way to predict fast

    predict = partial(model.predict, only_topk=PLACES)
    return Fitted(taken, partial(predict, threads=threads), partial(predict, threads=1))


def one_vs_rest(data: Data) -> Fitted:
    import joblib
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    X, Y, n_labels = data.X, data.Y, data.Y.shape[1]

    def fit(Y: csr_matrix) -> OneVsRestClassifier:
        with joblib.parallel_config(backend="threading"):  # liblinear lets go of the interpreter's lock
            return OneVsRestClassifier(LinearSVC(random_state=0), n_jobs=data.threads).fit(X, Y)

    tried = np.random.default_rng(0).choice(n_labels, min(SEARCH_HELD_ROWS, n_labels), replace=False)
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

    def predict(X: csr_matrix) -> Array:
        best = []
        for start in range(0, X.shape[0], ROWS):  # scores of all labels are dense
            scores = model.decision_function(X[start : start + ROWS])
            best.append(np.argsort(-scores, axis=1, kind="stable")[:, :PLACES])
        return np.concatenate(best)

    return Fitted(taken, predict, predict)


def ours(data: Data) -> Fitted:
    import exmlds
    from exmlds.data import make_library

    method = getattr(exmlds, OURS)
    books = make_library(200)
    for X in (books.X, books.X.toarray()):  # compile first
        method().fit(X, books.Y).predict_topk(X)
    common = {"random_state": data.seed, "n_jobs": data.threads}
    model = method(**common)
    taken = seconds(lambda: model.fit(data.X, data.Y))
    model.save(data.folder / "model")

    def predict(X: csr_matrix) -> Array:
        return model.predict_topk(X, PLACES)[0]

    return Fitted(taken, predict, predict)


# The settings are those that each peer's documentation gives for the method of that name.
FITS: dict[str, tuple[str, Callable[[Data], Fitted]]] = {
    "ours": ("exmlds", ours),
    "parabel": ("omikuji", omikuji),
    "bonsai": ("omikuji", partial(omikuji, cluster_k=100, cluster_balanced=False, max_depth=3)),
    "plt": ("napkinxc", napkinxc),
    "plt-3": ("napkinxc", partial(napkinxc, ensemble=3)),
    "pecos": ("libpecos", pecos),
    "one-vs-rest": ("scikit-learn", one_vs_rest),
}


def ranked(found: Any) -> Array:
    """(n, 5) ids, best first, of lists of ids or of sparse scores."""
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
    X, Y, rows = (load_npz(folder / f"{name}.npz") for name in ("X", "Y", "rows"))
    before = peak_bytes()
    fitted = fit(Data(X, Y, folder, seed, threads))
    fitted.predict(rows[:ALONE])  # what is made at the first prediction
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
