"""`exmlds convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def convert(
    source: Annotated[str, typer.Argument(help="A file in any format, or the name of a data set.")],
    target: Annotated[
        Path, typer.Argument(help="X.name.npz for a pair of .npz files, else XC text; .gz is gzipped.")
    ],
    labels: Annotated[
        Path | None, typer.Option(help="The labels' file, when SOURCE has features alone.")
    ] = None,
    split: Annotated[str, typer.Option(help="Of a named data set: train or test.")] = "train",
    one_based: Annotated[bool, typer.Option("--one-based", help="Ids in SOURCE start from 1.")] = False,
) -> None:
    """Convert a data set to XC text or .npz pairs.

    From XC text, its split form, svmlight multi-label or .npz pairs, told by content.
    """
    from .. import data, progress
    from ..errors import DataError
    from .sources import locate

    if split not in ("train", "test"):
        raise DataError(f"--split is train or test. Got {split!r} instead.")
    with progress.shown():
        dataset = data.read_xc(locate(source, split), labels, one_based=one_based)
        if target.suffix == ".npz":
            written = data.write_npz(target, dataset)
        else:
            data.write_xc(target, dataset)
            written = (target,)  # type: ignore[assignment]
    print(f"{dataset!r}\n{', '.join(map(str, written))}")
