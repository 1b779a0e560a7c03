"""Label co-occurrence matrices: how often two labels occur together, or how similar their meanings are.

`ExMLDS3.fit(…, label_cooccurrence=C)` takes any symmetric, non-negative matrix, so they can be summed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import BytesIO
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, diags_array, eye_array

from ..errors import DataError
from ..storage.files import PathLike, reading
from ..vocabulary import Vocabulary
from .xc import read_matrix

NUMPY = b"\x93NUMPY"
BLOCK = 5_000_000  # cosines computed at a time
SIBLINGS = 1_000  # the children of a label with more than these are not related to each other


def read_cooccurrence(path: PathLike) -> csr_matrix:
    """Read a label-by-label matrix: sparse .npz, dense .npy, or text with rows of `label:value`."""
    path = Path(path)
    with reading(path) as file:
        is_npy = file.read(len(NUMPY)) == NUMPY
        if is_npy:
            file.seek(0)
            try:
                # NumPy would read past a gzip file's decompressor, so it gets the bytes.
                matrix = np.load(BytesIO(file.read()), allow_pickle=False)
            except Exception as error:  # damaged headers raise errors of many types, the tokenizer's too
                raise DataError(f"{path}: cannot be read as a matrix ({error}).") from None
            if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
                got = f"{matrix.ndim} dimensions of {matrix.dtype}"
                raise DataError(f"{path}: must hold a matrix of numbers. Got {got} instead.")
            with np.errstate(over="ignore"):
                matrix = csr_matrix(matrix, dtype=np.float32)
            if not np.isfinite(matrix.data).all():
                raise DataError(f"{path} holds values that are not finite float32 numbers; remove them.")
            return matrix
    return read_matrix(path, noun="label")


def cooccurrence_from_texts(texts: Sequence[str], *, n_neighbors: int = 10, least: float = 0.1) -> csr_matrix:
    """Similarity of labels by their names or descriptions, (L, L) csr with ones on the diagonal.

    The similarity is the cosine of tf-idf weights of character n-grams (3 to 5 letters), so that
    "machine-learning" is similar to "learning machines".

    Parameters
    ----------
    texts : a name or a description of each label, in the order of the columns of Y
    n_neighbors : the most similar labels that are kept for each label
    least : smaller cosines are dropped

    Examples
    --------
    >>> C = cooccurrence_from_texts(["sea birds", "birds", "tax law"])
    >>> bool(C[0, 1] > 0.1), float(C[0, 2])
    (True, 0.0)
    """
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise ValueError("texts must be a list with one text for each label, a name or a description.")
    from sklearn.feature_extraction.text import TfidfVectorizer  # takes a while to import

    # A space is added on both sides, so that names shorter than three letters have an n-gram too.
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True)
    try:
        weights = csr_matrix(vectorizer.fit_transform([f" {text.replace('_', ' ')} " for text in texts]))
    except ValueError:  # the texts have no n-gram at all
        weights = csr_matrix((len(texts), 1))
    rows, columns, values = [], [], []
    block = max(1, BLOCK // max(len(texts), 1))
    for start in range(0, len(texts), block):
        cosine_block = csr_matrix(weights[start : start + block] @ weights.T)
        for row in range(cosine_block.shape[0]):
            own = slice(cosine_block.indptr[row], cosine_block.indptr[row + 1])
            label, others, cosines = start + row, cosine_block.indices[own], cosine_block.data[own]
            kept = np.flatnonzero((cosines >= least) & (others != label))
            kept = kept[np.argsort(-cosines[kept], kind="stable")[:n_neighbors]]
            rows += [label] * len(kept)
            columns += others[kept].tolist()
            values += np.minimum(cosines[kept], 1).tolist()
    C = csr_matrix((values, (rows, columns)), shape=(len(texts),) * 2, dtype=np.float64)
    return csr_matrix(C.maximum(C.T) + eye_array(len(texts)))


def cooccurrence_from_taxonomy(broader: Any, *, decay: float = 0.5) -> csr_matrix:
    """Similarity of labels in a taxonomy, (L, L) csr with ones on the diagonal.

    It is `decay` for a label and its parent, and decay² for a label and its grandparent, and for two children
    of one parent if that has at most 1,000 children.

    Parameters
    ----------
    broader : for each label, in the order of the columns of Y, the columns of its parents (broader labels):
        one, a list of them, or None; or an (L, L) matrix with a 1 where the column is a parent of the row
    decay : the similarity of a label and its parent, above 0 and at most 1

    Examples
    --------
    >>> C = cooccurrence_from_taxonomy([None, 0, 0])  # birds; gulls and owls are birds
    >>> C.toarray().tolist()
    [[1.0, 0.5, 0.5], [0.5, 1.0, 0.25], [0.5, 0.25, 1.0]]
    """
    if not 0 < decay <= 1:
        raise ValueError(f"decay must be above 0 and at most 1. Got {decay} instead.")
    B = _adjacency(broader)
    # The children of a label with very many have little in common, and their pairs would be too many.
    few = csr_matrix(B @ diags_array((np.asarray(B.sum(axis=0)).ravel() <= SIBLINGS).astype(float)))
    steps = csr_matrix(B.maximum(B.T))
    steps.setdiag(0)
    twice = csr_matrix((few @ few.T) + (B @ B) + (B @ B).T)
    twice.setdiag(0)
    for links in (steps, twice):
        links.eliminate_zeros()
        links.data[:] = 1
    C = (decay * steps).maximum(decay**2 * twice)
    return csr_matrix(C + diags_array(np.ones(B.shape[0])), dtype=np.float64)


def cooccurrence_from_vocabulary(
    vocabulary: Vocabulary, labels: Sequence[str], *, decay: float = 0.5
) -> csr_matrix:
    """Similarity of labels by their broader and related concepts, (L, L) csr with ones on the diagonal.

    It is that of `cooccurrence_from_taxonomy` in the whole vocabulary, so that two labels may have a parent
    that is no label, and `decay` for related concepts.

    Parameters
    ----------
    labels : ids of concepts, in the order of the columns of Y; one that is not in the vocabulary is similar
        to no other label
    decay : the similarity of a label and its parent, or of two related ones, above 0 and at most 1

    Examples
    --------
    >>> from exmlds.vocabulary import VocabularyBuilder
    >>> builder = VocabularyBuilder()
    >>> birds, gulls, owls = map(builder.concept, ["birds", "gulls", "owls"])
    >>> builder.broader += [(gulls, birds), (owls, birds)]
    >>> C = cooccurrence_from_vocabulary(builder.build(), ["gulls", "owls", "tax law"])
    >>> C.toarray().tolist()
    [[1.0, 0.25, 0.0], [0.25, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    n = len(vocabulary)
    broader, related = (
        csr_matrix((np.ones(len(pairs)), pairs.T), shape=(n, n))
        for pairs in (vocabulary.tables.broader, vocabulary.tables.related)
    )
    links = csr_matrix(related.maximum(related.T))
    links.data[:] = decay
    C = csr_matrix(cooccurrence_from_taxonomy(broader, decay=decay).maximum(links))
    known = [(row, vocabulary.position[id]) for row, id in enumerate(labels) if id in vocabulary]
    rows, columns = np.array(known, np.int64).reshape(-1, 2).T
    chosen = csr_matrix((np.ones(len(known)), (rows, columns)), shape=(len(labels), n))
    is_unknown = np.ones(len(labels))
    is_unknown[rows] = 0
    return csr_matrix(chosen @ C @ chosen.T + diags_array(is_unknown))


def _adjacency(broader: Any) -> csr_matrix:
    if hasattr(broader, "ndim") and broader.ndim == 2:
        matrix = csr_matrix(broader, dtype=np.float64)
        if matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"broader needs a row and a column for each label. Got {matrix.shape} instead.")
        return matrix
    lists = [_listed(one) for one in broader]
    rows = np.repeat(np.arange(len(lists)), [len(one) for one in lists])
    columns = np.array([column for one in lists for column in one], np.int64)
    wrong = np.flatnonzero((columns < 0) | (columns >= len(lists)))
    if wrong.size:
        named = f"column {columns[wrong[0]]} for label {rows[wrong[0]]}"
        raise ValueError(f"broader names {named}, but there are {len(lists)} labels.")
    return csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(lists),) * 2)


def _listed(one: Any) -> list[int]:
    many = isinstance(one, Iterable) and not isinstance(one, str)
    several = [] if one is None else list(one) if many else [one]
    for column in several:
        if not isinstance(column, Integral):
            raise ValueError(f"broader must hold column numbers or None. Got {column!r} instead.")
    return [int(column) for column in several]
