"""`exmlds labels`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def labels(
    model: Annotated[Path, typer.Argument(help="A model folder.")],
    similar: Annotated[
        str | None, typer.Option(help="Show the labels that lie nearest to this one (exmlds3).")
    ] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="How many to show.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the labels of a model: the most frequent, or those similar to one."""
    import numpy as np

    from .. import load
    from ..errors import DataError
    from .output import print_json, print_table
    from .settings import method_name

    fitted = load(model)
    names, counts = fitted.classes_.tolist(), fitted.label_counts_
    columns = {str(name): column for column, name in enumerate(names)}
    if similar is None:
        shown = [(names[column], None) for column in np.argsort(-counts, kind="stable")[:n]]
    else:
        if not hasattr(fitted, "similar_labels"):
            method = method_name(type(fitted).__name__)
            raise DataError(f"{model} was trained by {method}, which does not embed labels; exmlds3 does.")
        if similar not in columns:
            raise DataError(f"{model} has no label {similar!r}.")
        shown = fitted.similar_labels(names[columns[similar]], n)
    if as_json:
        print_json(
            [
                {"label": name, "rows": int(counts[columns[str(name)]])}
                | ({} if cosine is None else {"cosine": round(cosine, 6)})
                for name, cosine in shown
            ]
        )
        return
    rows = [
        (name, f"{counts[columns[str(name)]]:,}", *([] if cosine is None else [f"{cosine:.3f}"]))
        for name, cosine in shown
    ]
    print_table(("label", "rows", *([] if similar is None else ["cosine"])), rows)
