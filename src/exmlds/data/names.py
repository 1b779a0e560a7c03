"""Files of names: line i names label or feature i."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import DataError, DataWarning
from ..storage.files import PathLike, reading
from ..validation.targets import plain_name


def read_names(path: PathLike) -> list[str]:
    """Read the lines of a file, stripped of surrounding whitespace and in Unicode NFC, as labels are."""
    with reading(Path(path)) as file:
        raw = file.read()
    if b"\r" in raw.rstrip() and b"\n" not in raw:
        raise DataError(f"{path} ends its lines in \\r alone; save it with \\n or \\r\\n.")
    try:
        lines = raw.decode("utf-8-sig").rstrip("\r\n").split("\n")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}:{line}: not UTF-8 ({error.reason}); save it as UTF-8.") from None
    return [plain_name(line) for line in lines]


class Names(NamedTuple):
    """The names of labels and of features, or None."""

    labels: list[str] | None
    features: list[str] | None


def names_beside(
    x_path: Path, y_path: Path, n_features: int, n_labels: int, *, are_fixed: tuple[bool, bool] = (True, True)
) -> Names:
    """The names in files beside those of X and Y.

    are_fixed : whether the numbers of features and of labels are declared, so that names cannot raise them
    """
    return Names(
        find_names(y_path, ("label_names.txt",), n_labels, fixed=are_fixed[1], unique=True),
        find_names(x_path, ("feature_names.txt", "vocab.txt"), n_features, fixed=are_fixed[0]),
    )


def find_names(
    data: Path, usual: Sequence[str], width: int, *, fixed: bool, unique: bool = False
) -> list[str] | None:
    """The names in a file beside the data file, or None if there is none with the right number of names.

    fixed : the width comes from a header, so that names cannot widen the matrix
    unique : make the names distinct, as label names must be
    """
    for candidate in usual:
        path = data.with_name(candidate)
        if path.is_file():
            names = read_names(path)
            if not fixed and len(names) > width:
                warnings.warn(
                    f"{path} has {len(names)} lines, but the largest id of {data.name} is {width - 1}; "
                    f"without a header, the matrix gets {len(names)} columns, one for each name.",
                    DataWarning,
                    stacklevel=5,
                )
                width = len(names)
            if len(names) == width:
                return _made_unique(path, names) if unique else names
            warnings.warn(
                f"{path} has {len(names)} lines, but {data.name} has {width} columns; it is not used.",
                DataWarning,
                stacklevel=5,
            )
    return None


def _made_unique(path: Path, names: list[str]) -> list[str]:
    """Append its line number to each repeated name."""
    seen: set[str] = set()
    unique = []
    for i, name in enumerate(names):
        unique.append(f"{name} #{i}" if name in seen else name)
        seen.add(unique[-1])
    if unique != names:
        again = sum(a != b for a, b in zip(unique, names))
        warnings.warn(
            f"{path}: {again} names are repeated; their line numbers are appended.", DataWarning, stacklevel=6
        )
    return unique
