"""Compare approximate search by usearch, faiss, hnswlib and voyager, if installed, with exact search.

    python -m pip install usearch faiss-cpu hnswlib voyager
    EXMLDS_DATA=… python benchmarks/search.py                   # about a quarter of an hour on 2 cores
    EXMLDS_DATA=… python benchmarks/search.py --models FOLDER   # fit there once, then read from there

The searched vectors are embeddings by ExMLDS4 of rows of `make_xmc` and of citeulike-t. The queries are rows
that were held out of training, so that no test row is read. All graphs of a setting are searched in turns.
P@k is that of the votes of the 50 rows found.
"""

from __future__ import annotations

import io
import pickle
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import exmlds
from exmlds import metrics
from exmlds.data import load, make_xmc
from exmlds.runtime.parallel import blocks, map_blocks, n_threads, one_blas_thread
from exmlds.selection import random_split
from exmlds.stages import features, index, quantize, vote
from exmlds.validation.arrays import unit_rows
from measure import destination, parser_of, race, seconds, write_results

Array = np.ndarray

SETS = ("citeulike-t", "make_xmc")
SETTINGS = ((16, 128), (32, 200))  # M, the links of a row, and ef_construction, the candidates for them
EF = (50, 100, 200)  # candidates kept while searching
TWINS = ("usearch float32", "faiss float16")  # the same graph in another format: first setting only
K, N_ROWS, N_QUERIES, N_ALONE, N_REPEATED, THREADS = 50, 200_000, 5_000, 500, 10_000, n_threads(None)


class Library(NamedTuple):
    """build(rows, M, ef, threads) → graph; search(graph, queries, ef, threads) → ids; to bytes and back."""

    build: Callable[..., Any]
    search: Callable[..., Array]
    dump: Callable[[Any], Any]
    load: Callable[[Any], Any]


def usearch(dtype: str) -> Library:
    from usearch.index import Index

    def build(rows: Array, links: int, ef: int, threads: int) -> Any:
        graph = Index(ndim=rows.shape[1], metric="ip", dtype=dtype, connectivity=links, expansion_add=ef)
        graph.add(np.arange(len(rows)), rows, threads=threads)
        return graph

    def search(graph: Any, Q: Array, ef: int, threads: int) -> Array:
        graph.expansion_search = ef
        return graph.search(Q, K, threads=threads).keys.astype(np.int64).reshape(len(Q), K)

    return Library(build, search, lambda graph: graph.save(), lambda b: Index.restore(b, view=True))


def faiss(dtype: str) -> Library:
    import faiss

    def build(rows: Array, links: int, ef: int, threads: int) -> Any:
        faiss.omp_set_num_threads(threads)
        kind = f"HNSW{links},{'SQfp16' if dtype == 'f16' else 'Flat'}"
        graph: Any = faiss.index_factory(rows.shape[1], kind, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = ef
        graph.train(rows[:1])
        graph.add(rows)
        return graph

    def search(graph: Any, Q: Array, ef: int, threads: int) -> Array:
        faiss.omp_set_num_threads(threads)
        graph.hnsw.efSearch = ef
        return graph.search(Q, K)[1]

    return Library(build, search, faiss.serialize_index, faiss.deserialize_index)


def hnswlib() -> Library:
    from hnswlib import Index

    def build(rows: Array, links: int, ef: int, threads: int) -> Any:
        graph = Index(space="ip", dim=rows.shape[1])
        graph.init_index(max_elements=len(rows), M=links, ef_construction=ef, random_seed=0)
        graph.add_items(rows, num_threads=threads)
        return graph

    def search(graph: Any, Q: Array, ef: int, threads: int) -> Array:
        graph.set_ef(ef)
        return graph.knn_query(Q, K, num_threads=threads)[0].astype(np.int64)

    return Library(build, search, pickle.dumps, pickle.loads)


def voyager() -> Library:
    from voyager import Index, Space

    def build(rows: Array, links: int, ef: int, threads: int) -> Any:
        size = {"num_dimensions": rows.shape[1], "max_elements": len(rows)}
        graph = Index(Space.Cosine, M=links, ef_construction=ef, random_seed=0, **size)
        graph.add_items(rows, num_threads=threads)
        return graph

    def search(graph: Any, Q: Array, ef: int, threads: int) -> Array:
        return graph.query(Q, K, num_threads=threads, query_ef=ef)[0].astype(np.int64)

    return Library(build, search, lambda graph: graph.as_bytes(), lambda b: Index.load(io.BytesIO(b)))


LIBRARIES: dict[str, Callable[[], Library]] = {
    "usearch float16": partial(usearch, "f16"),
    "usearch float32": partial(usearch, "f32"),
    "faiss float16": partial(faiss, "f16"),
    "faiss float32": partial(faiss, "f32"),
    "hnswlib float32": hnswlib,
    "voyager float32": voyager,
}


def compare(name: str, libraries: dict[str, Library], folder: Path) -> tuple[dict[str, Any], Array]:
    """The measurements on a data set, and the embeddings of its rows."""
    if name == "make_xmc":
        data = make_xmc(N_ROWS + N_QUERIES, 50_000, 100_000, random_state=0)
        train, asking = data.rows(np.arange(N_ROWS)), data.rows(np.arange(N_ROWS, N_ROWS + N_QUERIES))
    else:
        data = load(name).train
        train, asking = map(data.rows, random_split(data.X.shape[0], 0.2, random_state=1))
    if not (folder / name).exists():
        fixed: dict[str, Any] = {"features": "l2", "n_epochs": 4, "threshold": 0.1, "temperature": 0.05}
        fitted = exmlds.ExMLDS4(n_learners=1, n_parts=1, **fixed, random_state=0).fit(train.X, train.Y)
        fitted.save(folder / name)
    model: Any = exmlds.load(folder / name)
    part = model.learners_[0].parts[0]
    rows = quantize.unpack(part.row_index.segments[0].rows)
    Q = unit_rows(quantize.times(features.apply(model.feature_map_, asking.X), part.V, part.columns))

    def exact() -> Array:
        told: dict[str, Any] = {"n_jobs": None, "stage": "searching", "total": len(Q)}
        return np.concatenate(
            list(map_blocks(lambda b: index.search(part.row_index, Q[b], K)[0], blocks(len(Q), 256), **told))
        )

    def quality(ids: Array) -> dict[str, float]:
        weights = vote.weigh(ids, np.einsum("qr,qkr->qk", Q, rows[ids]), model.vote, model.temperature_)
        ranking = metrics.Ranking(asking.Y, vote.top_labels(ids, weights, train.Y, 5)[0], 5)
        shared = {k: [len(np.intersect1d(a[:k], b[:k])) / k for a, b in zip(ids, right)] for k in (10, K)}
        recall = {f"recall@{k}": float(np.mean(shares)) for k, shares in shared.items()}
        return {**recall, **{f"P@{k}": ranking.value(f"P@{k}") for k in (1, 3, 5)}}

    def alone(search: Callable[[Array], Any], n: int) -> float:
        return 1e6 * seconds(lambda: [search(Q[i : i + 1]) for i in range(n)]) / n

    right = exact()
    whole = 1e6 * seconds(exact) / len(Q)
    with one_blas_thread():
        one = alone(lambda q: index.search(part.row_index, q, K), 50)
    runs = [{"library": "exact", "us_in_batch": whole, "us_alone": one, **quality(right)}]
    for links, ef_construction in SETTINGS:
        graphs, built, kept = {}, {}, []
        for label, library in libraries.items():
            if (links, ef_construction) == SETTINGS[0] or label not in TWINS:
                cpu, wall = time.process_time(), time.perf_counter()
                graph = library.build(rows, links, ef_construction, THREADS)
                cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
                kept.append(library.dump(graph))  # the graph views these bytes, so they must stay alive
                started = time.perf_counter()
                graphs[label] = library.load(kept[-1])
                size = {"bytes": len(kept[-1]), "load_seconds": time.perf_counter() - started}
                built[label] = {"build_seconds": wall, "build_cpu_seconds": cpu, **size}
        for ef in EF:
            asked = {label: partial(libraries[label].search, graph, ef=ef) for label, graph in graphs.items()}
            batch = race(2, **{label: partial(search, Q, threads=THREADS) for label, search in asked.items()})
            for label, search in asked.items():
                started = time.process_time()
                ids = search(Q, threads=1)
                speed = {
                    "us_in_batch": 1e6 * batch[label] / len(Q),
                    "us_cpu": 1e6 * (time.process_time() - started) / len(Q),
                    "us_alone": alone(partial(search, threads=1), N_ALONE),
                    "times_as_fast": whole / (1e6 * batch[label] / len(Q)),
                }
                setting = {"M": links, "ef_construction": ef_construction, "ef": ef}
                runs.append({"library": label, **setting, **quality(ids), **speed, **built[label]})
                print(name, runs[-1], flush=True)
    return {"rows": len(rows), "dimensions": rows.shape[1], "queries": len(Q), "runs": runs}, rows


def repeats(library: Library, rows: Array) -> dict[str, bool]:
    """Test whether builds give the same bytes: on one thread, on all, and for any number of threads."""
    threads = (1, 1, THREADS, THREADS)
    one, again, many, others = (bytes(library.dump(library.build(rows, *SETTINGS[0], t))) for t in threads)
    return {"one_thread": one == again, "threads": many == others, "any_threads": one == many == others}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--models", type=Path, help="a folder to keep fitted models in")
    options = parser.parse_args()
    libraries, versions, sets, missing = {}, {}, {}, []
    for label, make in LIBRARIES.items():
        package = label.split()[0].replace("faiss", "faiss-cpu")
        try:
            libraries[label], versions[package] = make(), version(package)
        except ImportError:
            missing.append(package)
    path = destination(parser, options, "search", free=("models",), missing=missing)
    with tempfile.TemporaryDirectory() as temporary:
        for name in SETS:
            sets[name], rows = compare(name, libraries, options.models or Path(temporary))
    same = {label: repeats(library, rows[:N_REPEATED]) for label, library in libraries.items()}
    write_results(path, {"versions": versions, "k": K, "sets": sets, "same_bytes": same})


if __name__ == "__main__":
    main()
