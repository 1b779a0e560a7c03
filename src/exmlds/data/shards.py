"""Training data in several files, its shards, each of which one task reads from beginning to end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from itertools import islice
from pathlib import Path
from typing import Any

from scipy.sparse import csr_matrix

from ..errors import DataError
from ..storage.files import PathLike, near_path
from ..validation.arrays import Matrix, row_blocks
from .names import names_beside
from .npz import is_npz, npz_shape, read_npz
from .parse import TextFile
from .text import Document, is_text, open_texts
from .xc import indicator_of, iter_xc, pair_of


@dataclass(frozen=True)
class MatrixShard:
    """Rows of numbers and labels: XC text with a header, or a pair of .npz files.

    n_features, n_labels : of all shards
    """

    path: str
    n_features: int
    n_labels: int

    def blocks(self) -> Iterator[tuple[Matrix, csr_matrix]]:
        """Yield X, (m, d), and Y, (m, L) csr of ones, in the order of the rows."""
        path = Path(self.path)
        if not is_npz(path):
            for block in iter_xc(path, n_features=self.n_features, n_labels=self.n_labels):
                yield block.X, block.Y
            return
        X, Y = (read_npz(half) for half in pair_of(path))
        if X.shape[0] != Y.shape[0]:
            raise DataError(f"{path} has {X.shape[0]} rows, but there are labels of {Y.shape[0]}.")
        for rows in row_blocks(X):
            yield csr_matrix(X[rows]), indicator_of(Y[rows])

    def digest(self) -> str:
        return _digest(self.path)


@dataclass(frozen=True)
class TextShard:
    """Documents of a file; options : as `open_texts` takes them."""

    path: str
    options: Mapping[str, Any]

    def __iter__(self) -> Iterator[Document]:
        return iter(open_texts(self.path, **self.options))

    def batches(self, size: int) -> Iterator[list[Document]]:
        """Yield the documents in lists of this length."""
        documents = iter(self)
        while batch := list(islice(documents, size)):
            yield batch

    def digest(self) -> str:
        return _digest(self.path)


def _digest(path: str) -> str:
    """What tells a shard from another one: its path and size."""
    return f"{path}: {Path(path).stat().st_size}"


def find_shards(pattern: PathLike) -> list[Path]:
    """The files that a pattern such as shards/*.jsonl.gz matches, in the order of their names.

    Of a pair of .npz files, the one with the features stands for both.
    """
    paths = sorted(Path(name) for name in glob(str(pattern))) if has_magic(str(pattern)) else [Path(pattern)]
    paths = [path for path in paths if not path.is_dir()]
    if not paths:
        raise DataError(f"{pattern}: no file matches.{near_path(Path(pattern))}")
    halves = {pair_of(path)[1] for path in paths if path.exists() and is_npz(path)}
    return [path for path in paths if path not in halves]


def open_shards(
    paths: Sequence[PathLike], **options: Any
) -> tuple[list[MatrixShard] | list[TextShard], list[str] | None]:
    """The shards of these files, all of texts or all of numbers, and the names of labels beside the first.

    options : of texts, as `open_texts` takes them
    """
    files = [Path(path) for path in paths]
    of_texts = [is_text(path) or options.get("format") is not None for path in files]
    if all(of_texts):
        return [TextShard(str(path), options) for path in files], None
    if any(of_texts):
        number, texts = files[of_texts.index(False)], files[of_texts.index(True)]
        raise DataError(f"{number} holds numbers, but {texts} holds texts; shards must be of one kind.")
    sizes = [_widths(path) for path in files]
    for path, size in zip(files, sizes):
        if size != sizes[0]:
            raise DataError(
                f"{path} has {size[0]} features and {size[1]} labels, but {files[0]} has {sizes[0][0]} and "
                f"{sizes[0][1]}; all shards must declare the same numbers."
            )
    names = names_beside(files[0], files[0], *sizes[0], are_fixed=(True, True))
    return [MatrixShard(str(path), *sizes[0]) for path in files], names.labels


def _widths(path: Path) -> tuple[int, int]:
    """The numbers of features and labels of a shard."""
    if is_npz(path):
        X, Y = (npz_shape(half) for half in pair_of(path))
        return X[1], Y[1]
    header = TextFile(path, labelled=True).header
    if header is None or header.n_labels is None:
        raise DataError(f"{path} has no header, `rows features labels`, which a shard needs.")
    return header.n_features, header.n_labels
