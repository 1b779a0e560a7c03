"""Conversion of a data set to files that are memory-mapped, block by block."""

from __future__ import annotations

from pathlib import Path

from ..errors import DataError
from ..storage.files import PathLike
from .names import Names, names_beside
from .npz import MatrixSpool, is_npz, npz_pair, read_npz, writing_mapped
from .parse import TextFile
from .xc import STREAMED, indicator_of, pair_of


def convert_to_mapped(
    source: PathLike, target: PathLike, labels: PathLike | None = None, *, one_based: bool = False
) -> Names:
    """Write a data set as a pair of .npz files that `read_xc` memory-maps, and return its names.

    Text is converted block by block, so that it may be larger than memory; .npz files are read whole.

    Parameters
    ----------
    source, labels, one_based : as in `read_xc`
    target : the path of `X.name.npz`, beside which `Y.name.npz` is written
    """
    path = Path(source)
    text = None
    if labels is None and not is_npz(path):
        text = TextFile(path, labelled=True, base=int(one_based), block=STREAMED)
    is_pair = text is None or text.is_half
    if labels is not None and one_based:
        raise DataError("one_based applies to labels and features in one file, not to a pair.")
    with writing_mapped(npz_pair(Path(target))) as (X, Y):
        if text is not None and not is_pair:
            for features, row_labels in text.ordered_blocks():
                X.append(features)
                Y.append(row_labels)
            text.warn_of_gaps(X.ids(), Y.ids())
            names = names_beside(path, path, X.n_columns, Y.n_columns, are_fixed=text.has_widths)
            X.n_columns, Y.n_columns = (
                len(found) if found else width
                for found, width in ((names.features, X.n_columns), (names.labels, Y.n_columns))
            )
        else:
            x_path, y_path = pair_of(path) if labels is None else (path, Path(labels))
            _append_half(X, x_path)
            _append_half(Y, y_path, are_labels=True)
            names = names_beside(x_path, y_path, X.n_columns, Y.n_columns)
    return names


def _append_half(spool: MatrixSpool, path: Path, *, are_labels: bool = False) -> None:
    """Append the rows of one file of a pair."""
    if is_npz(path):
        matrix = read_npz(path)
        spool.append(indicator_of(matrix) if are_labels else matrix)
        return
    text = TextFile(path, labelled=False, nouns=("column", "column"), block=STREAMED)
    for block, _ in text.ordered_blocks():
        spool.append(indicator_of(block) if are_labels else block)
    text.warn_of_gaps(spool.ids())
