"""Label co-occurrence matrices from texts, taxonomies and files."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix, save_npz

from exmlds.data import (
    Vocabulary,
    cooccurrence_from_taxonomy,
    cooccurrence_from_texts,
    cooccurrence_from_vocabulary,
    read_cooccurrence,
)
from exmlds.errors import DataError
from exmlds.vocabulary import VocabularyBuilder


def test_texts() -> None:
    names = ["machine-learning", "learning machines", "machine_translation", "tax law", "x", ""]
    C = cooccurrence_from_texts(names).toarray()
    np.testing.assert_allclose(C, C.T)
    np.testing.assert_array_equal(np.diag(C), 1)
    assert C[0, 1] > C[0, 2] > C[0, 3] == 0
    assert ((C >= 0) & (C <= 1)).all()


def test_texts_keep_the_nearest() -> None:
    C = cooccurrence_from_texts([f"birds of the sea number {i}" for i in range(30)], n_neighbors=3)
    assert (C.getnnz(axis=1) >= 4).all()
    assert C.nnz < 30 * 12
    assert cooccurrence_from_texts(["", ""]).toarray().tolist() == [[1, 0], [0, 1]]
    with pytest.raises(ValueError, match="one text for each label"):
        cooccurrence_from_texts("birds")


def test_taxonomy() -> None:
    # animals > birds > gulls, owls; animals > fish
    expected = np.array(
        [
            [1, 0.5, 0.25, 0.25, 0.5],
            [0.5, 1, 0.5, 0.5, 0.25],
            [0.25, 0.5, 1, 0.25, 0],
            [0.25, 0.5, 0.25, 1, 0],
            [0.5, 0.25, 0, 0, 1],
        ]
    )
    np.testing.assert_allclose(cooccurrence_from_taxonomy([None, 0, 1, [1], [0]]).toarray(), expected)
    broader = np.zeros((5, 5))
    broader[[1, 2, 3, 4], [0, 1, 1, 0]] = 1
    np.testing.assert_allclose(cooccurrence_from_taxonomy(broader).toarray(), expected)
    np.testing.assert_allclose(cooccurrence_from_taxonomy(csr_matrix(broader)).toarray(), expected)
    with pytest.raises(ValueError, match="column 7 for label 1, but there are 2 labels"):
        cooccurrence_from_taxonomy([None, 7])
    with pytest.raises(ValueError, match="a row and a column for each label"):
        cooccurrence_from_taxonomy(np.zeros((2, 3)))


def test_files(tmp_path: Path) -> None:
    C = np.array([[2.0, 1.0], [1.0, 3.0]])
    np.save(tmp_path / "c.npy", C)
    save_npz(tmp_path / "c.npz", csr_matrix(C))
    (tmp_path / "c.txt").write_text("2 2\n0:2 1:1\n0:1 1:3\n")
    (tmp_path / "c.npy.gz").write_bytes(gzip.compress((tmp_path / "c.npy").read_bytes()))
    for name in ("c.npy", "c.npy.gz", "c.npz", "c.txt"):
        np.testing.assert_array_equal(read_cooccurrence(tmp_path / name).toarray(), C)
    np.save(tmp_path / "names.npy", np.array(["a", "b"]))
    with pytest.raises(DataError, match=r"names\.npy: must hold a matrix of numbers"):
        read_cooccurrence(tmp_path / "names.npy")
    (tmp_path / "bad.npy").write_bytes((tmp_path / "c.npy").read_bytes().replace(b"(2, 2)", b"(2, 2 "))
    with pytest.raises(DataError, match=r"bad\.npy: cannot be read as a matrix"):
        read_cooccurrence(tmp_path / "bad.npy")
    np.save(tmp_path / "huge.npy", 1e300 * C)
    with pytest.raises(DataError, match=r"huge\.npy holds values that are not finite float32 numbers"):
        read_cooccurrence(tmp_path / "huge.npy")
    (tmp_path / "bad.txt").write_text("0:2 x:1\n")
    with pytest.raises(DataError, match=r"bad\.txt:1"):
        read_cooccurrence(tmp_path / "bad.txt")
    with pytest.raises(DataError, match="gone"):
        read_cooccurrence(tmp_path / "gone.npz")


def test_a_vocabulary() -> None:
    builder = VocabularyBuilder()
    animals, birds, gulls, owls, sea = map(builder.concept, ["animals", "birds", "gulls", "owls", "sea"])
    builder.broader += [(birds, animals), (gulls, birds), (owls, birds), (owls, birds)]
    builder.related += [(gulls, sea)]
    # Birds are no label, but gulls and owls are siblings by them; "tax" is not in the vocabulary.
    C = cooccurrence_from_vocabulary(builder.build(), ["sea", "tax", "owls", "gulls", "animals"], decay=0.6)
    expected = np.eye(5)
    for one, other, value in ((0, 3, 0.6), (2, 3, 0.36), (2, 4, 0.36), (3, 4, 0.36)):
        expected[one, other] = expected[other, one] = value
    np.testing.assert_allclose(C.toarray(), expected)
    plain = Vocabulary.of_names({"1": "birds"})
    assert cooccurrence_from_vocabulary(plain, ["1", "2"]).toarray().tolist() == [[1, 0], [0, 1]]
