"""Texts in shards as rows of numbers: one vocabulary, which is counted shard by shard.

    FOLDER/analysis          the analyzer, chosen on the first texts of all shards
    FOLDER/terms-0, …        of each shard: how many texts have each term and each label
    FOLDER/vectorizer        the merged vocabulary with its idf, and the labels

As of `partition_tasks.py`, each task writes one file, and one whose file is there is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_matrix

from ..storage import row_file
from ..validation.targets import from_rows
from . import analyzer_search
from .analyzer_search import NO_WORDS, Requested
from .analyzers import TermVectorizer

Array = np.ndarray

ANALYZED = 20_000  # texts that the analyzer is chosen on
BATCH = 4_096  # texts that are read at a time


class Documents(Protocol):
    """A shard of documents, which have `text`, `fields` and `labels`."""

    def batches(self, size: int) -> Iterator[list[Any]]:
        """Yield the documents in lists of this length."""
        ...

    def digest(self) -> str:
        """What tells the shard from other data."""
        ...


class VectorShard(NamedTuple):
    """A shard of documents as rows of numbers; folder : has the vectorizer and the labels."""

    documents: Documents
    folder: Path

    def blocks(self) -> Iterator[tuple[csr_matrix, csr_matrix]]:
        """Yield the vectors and the labels of documents, in their order."""
        vectorizer, columns = _vectorizer(self.folder)
        for batch in self.documents.batches(BATCH):
            Y = from_rows([document.labels for document in batch], dict(columns))
            yield vectorizer.transform(_texts_of(batch)), Y[:, : len(columns)]

    def digest(self) -> str:
        return self.documents.digest()


def _vectorizer(folder: Path) -> tuple[TermVectorizer, dict[str, int]]:
    """The merged vectorizer, and the columns of the labels."""
    path = folder / "vectorizer"
    return _read_vectorizer(path, path.stat().st_mtime_ns)


@lru_cache(1)
def _read_vectorizer(path: Path, written: int) -> tuple[TermVectorizer, dict[str, int]]:
    """The same; written : when, so that another file of this name is read again."""
    vectorizer = TermVectorizer.restored(row_file.read_one(path, "vectorizer"))
    labels = row_file.read_one(path, "labels").tolist()
    return vectorizer, {label: column for column, label in enumerate(labels)}


def _texts_of(documents: Sequence[Any]) -> list[Any]:
    return [document.fields or document.text for document in documents]


def choose_analyzer(folder: Path, shards: Sequence[Documents], requested: Requested, seed: int) -> None:
    """Choose how texts are analyzed, on the first texts of each shard.

    Pairs of words and n-grams are left out: most of them are rare, and all would have to be counted.
    """
    path = folder / "analysis"
    if path.exists():
        return
    most, documents = -(-ANALYZED // len(shards)), []
    for shard in shards:
        documents += next(shard.batches(most), [])
    labels = [document.labels for document in documents]
    fitted, _, _ = analyzer_search.fit_terms(_texts_of(documents), labels, requested, seed)
    chosen = TermVectorizer(fitted.analyzer.partition("+")[0], fitted.max_words, fitted.field_weights)
    chosen.languages_ = fitted.languages_
    row_file.write(path, [("analysis", chosen.with_counts({}, 0).plain())])


def count_texts(folder: Path, number: int, shard: Documents) -> None:
    """Count the texts of a shard, and those that have each term and each label."""
    path = folder / f"terms-{number}"
    if path.exists():
        return
    vectorizer = TermVectorizer.restored(row_file.read_one(folder / "analysis", "analysis"))
    terms: dict[str, int] = {}
    labels: dict[str, int] = {}
    n = 0
    for batch in shard.batches(BATCH):
        n += len(batch)
        for term, count in vectorizer.count_terms(_texts_of(batch)).items():
            terms[term] = terms.get(term, 0) + count
        for document in batch:
            for label in document.labels:
                labels[label] = labels.get(label, 0) + 1
    row_file.write(path, [("n", n), ("terms", _as_record(terms)), ("labels", _as_record(labels))])


def _as_record(counts: dict[str, int]) -> dict[str, Array]:
    return {"names": np.array(list(counts), object), "counts": np.array(list(counts.values()), np.int64)}


def merge_counts(folder: Path, n_shards: int) -> None:
    """Make one vectorizer of the counts of all shards, and number the labels in alphabetical order."""
    path = folder / "vectorizer"
    if path.exists():
        return
    n, totals = 0, {"terms": dict[str, int](), "labels": dict[str, int]()}
    for number in range(n_shards):
        counted = folder / f"terms-{number}"
        n += row_file.read_one(counted, "n")
        for kind, total in totals.items():
            record = row_file.read_one(counted, kind)
            for name, count in zip(record["names"].tolist(), record["counts"].tolist()):
                total[name] = total.get(name, 0) + count
    if not totals["terms"]:
        raise ValueError(NO_WORDS)
    analysis = TermVectorizer.restored(row_file.read_one(folder / "analysis", "analysis"))
    vectorizer = analysis.with_counts(totals["terms"], n)
    labels = np.array(sorted(totals["labels"]), object)
    row_file.write(path, [("vectorizer", vectorizer.plain()), ("labels", labels)])


def read_vectorizer(folder: Path) -> tuple[TermVectorizer, list[str]]:
    """The merged vectorizer, and the labels in the order of their columns."""
    vectorizer, columns = _vectorizer(folder)
    return vectorizer, list(columns)
