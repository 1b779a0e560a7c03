"""Train one system, or let it suggest subjects, in its own environment; `annif.py` starts this script.

    python -P benchmarks/annif_fit.py train|suggest SYSTEM FOLDER THREADS BYTES

FOLDER contains the vocabulary and the corpora that `annif.py` writes, and receives the models. BYTES limits
the memory of the process. The script writes the seconds and the version to SYSTEM-train.json or
SYSTEM-suggest.json and, of suggestions, SYSTEM.npy: (n, 10) positions in the vocabulary, best first and
padded with −1.

The option -P keeps this folder from the path of modules, because `annif.py` would hide the package annif
there. So this script can't import other modules of the folder.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from importlib.metadata import distribution, version
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

SEED = 0
TOP = 10
WARM_UP = 1_000  # documents that are fitted or predicted before times are measured
VOCABULARY = "subjects-en.tsv"
ROWS = "rows.txt"
# The corpus of each training. "omikuji-part" is the Omikuji project within the neural ensemble, which is
# trained on documents that this project has not seen.
CORPORA = {
    "ours": "train.tsv",
    "omikuji": "train.tsv",
    "mllm": "lexical.tsv",
    "omikuji-part": "part.tsv",
    "nn-ensemble": "held-out.tsv",
}

# The examples of Annif's documentation. Its parameters of Omikuji that are not named here, cluster_balanced,
# cluster_k and max_depth among them, have those defaults that it documents as Parabel.
PROJECTS = """
[DEFAULT]
language=en
vocab=subjects

[omikuji]
backend=omikuji
analyzer=snowball(english)

[mllm]
backend=mllm
analyzer=snowball(english)

[ensemble]
backend=ensemble
sources=omikuji,mllm
limit=100

[omikuji-part]
backend=omikuji
analyzer=snowball(english)

[nn-ensemble]
backend=nn_ensemble
sources=omikuji-part,mllm
limit=100
nodes=100
dropout_rate=0.2
epochs=10
"""

Array = np.ndarray


def train_ours(folder: Path, threads: int) -> float:
    from exmlds import ExMLDS, TextClassifier
    from exmlds.data import read_texts, read_vocabulary
    from exmlds.voting import memory

    vocabulary = read_vocabulary(folder / VOCABULARY)

    def classifier() -> TextClassifier:
        return TextClassifier(ExMLDS(random_state=SEED, n_jobs=threads), vocabulary=vocabulary)

    texts, labels = read_texts(folder / CORPORA["ours"], format="annif-tsv")
    cells_from = memory.CELLS_FROM
    for memory.CELLS_FROM in (100, cells_from):  # compile first, with the cells of a large set and without
        classifier().fit(texts[:WARM_UP], labels[:WARM_UP]).predict_topk(texts[:WARM_UP])
    started = time.perf_counter()
    texts, labels = read_texts(folder / CORPORA["ours"], format="annif-tsv")
    classifier().fit(texts, labels).save(folder / "ours")
    return time.perf_counter() - started


def suggest_ours(folder: Path, threads: int) -> tuple[float, Array]:
    from exmlds import load
    from exmlds.data import open_texts, read_vocabulary

    model = load(folder / "ours")
    model.set_params(n_jobs=threads)
    documents = open_texts(folder / ROWS, format="lines", labelled=False)
    model.predict_topk(list(islice(documents, WARM_UP)), TOP)
    started = time.perf_counter()
    ids, _ = model.predict_topk(documents, TOP)
    taken = time.perf_counter() - started
    position = read_vocabulary(folder / VOCABULARY).position
    positions = np.array([position[label] for label in model.classes_])
    return taken, np.where(ids < 0, -1, positions[ids])


def registry_of(folder: Path) -> Any:
    """Annif's projects in the folder, with the vocabulary loaded."""
    import nltk.data

    # Annif would download the data of NLTK's tokenizer at the first use; this package has them in its wheel.
    nltk.data.path.insert(
        0, str(distribution("llama-index-core").locate_file("llama_index/core/_static/nltk_cache"))
    )
    from annif.registry import AnnifRegistry
    from annif.vocab import VocabFileTSV

    config, data = folder / "projects.cfg", folder / "annif"
    config.write_text(PROJECTS, encoding="utf-8")
    registry = AnnifRegistry(str(config), str(data), init_projects=False)
    if not data.exists():
        registry.get_vocab("subjects").load_vocabulary(VocabFileTSV(str(folder / VOCABULARY), "en"))
    return registry


def train_annif(project_id: str, folder: Path, threads: int) -> float:
    """Do as `annif train --jobs THREADS` does; the seconds do not include loading the vocabulary."""
    project = registry_of(folder).get_project(project_id)
    from annif.corpus import DocumentFileTSV

    random.seed(SEED)  # of the weights in Keras
    np.random.seed(SEED)  # of the trees of MLLM
    started = time.perf_counter()
    project.train(DocumentFileTSV(str(folder / CORPORA[project_id]), project.subjects), jobs=threads)
    return time.perf_counter() - started


def suggest_annif(project_id: str, folder: Path, threads: int) -> tuple[float, Array]:
    """Do as `annif eval --jobs THREADS` does: in several processes, unlike `annif index`."""
    registry = registry_of(folder)
    from annif.corpus import DocumentFileTSV
    from annif.parallel import ProjectSuggestMap, get_pool

    project = registry.get_project(project_id)
    project.initialize(parallel=True)
    corpus = DocumentFileTSV(str(folder / ROWS), project.subjects, require_subjects=False)
    suggest = ProjectSuggestMap(registry, [project_id], None, TOP, 0.0).suggest_batch
    jobs, pool_class = get_pool(threads)
    with pool_class(jobs) as pool:
        pool.map(suggest, islice(corpus.doc_batches, WARM_UP // corpus.DOC_BATCH_SIZE), chunksize=1)
        started = time.perf_counter()
        batches = [found[project_id] for found, _ in pool.imap(suggest, corpus.doc_batches)]
        taken = time.perf_counter() - started
    found = [[suggestion.subject_id for suggestion in row] for batch in batches for row in batch]
    ids = np.full((len(found), TOP), -1)
    for row, subjects in zip(ids, found):
        row[: len(subjects)] = subjects  # numbered as in the file of the vocabulary
    return taken, ids


def main() -> None:
    step, system, folder, threads, most_bytes = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_DATA, (int(most_bytes), int(most_bytes)))
    path, is_ours = Path(folder), system == "ours"
    if step == "train":
        taken = train_ours(path, int(threads)) if is_ours else train_annif(system, path, int(threads))
    else:
        taken, ids = (
            suggest_ours(path, int(threads)) if is_ours else suggest_annif(system, path, int(threads))
        )
        np.save(path / f"{system}.npy", ids)
    figures = {"seconds": taken, "version": version("exmlds" if is_ours else "annif")}
    (path / f"{system}-{step}.json").write_text(json.dumps(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
