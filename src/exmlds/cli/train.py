"""`exmlds train`."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from .settings import DEFAULT_METHOD


def train(
    data: Annotated[str, typer.Argument(help="A file, or the name of a data set under EXMLDS_DATA.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write the model to.")],
    labels: Annotated[
        Path | None, typer.Option(help="The labels' file, when DATA has features alone.")
    ] = None,
    method: Annotated[str | None, typer.Option(help=f"The method.  [default: {DEFAULT_METHOD}]")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter, key=value; may be repeated.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file, as `exmlds info METHOD` prints.")] = None,
    label_cooccurrence: Annotated[
        Path | None,
        typer.Option(help="A matrix of labels by labels, .npz, .npy or text of `label:value`."),
    ] = None,
    complete_labels: Annotated[
        str | None,
        typer.Option(
            help="How strongly labels that are likely missing vote, 0 to 1 or auto.",
            metavar="STRENGTH",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="A folder to keep the fit in as it goes (exmlds4): the same command goes on from there."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="The random_state; the same seed gives the same model.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Train a model on a file and write it to a folder."""
    from .. import progress, storage
    from ..checkpoint import discard
    from ..data import read_cooccurrence
    from ..errors import DataError
    from .output import print_json, size
    from .settings import chosen_method, make_model, method_name
    from .sources import read

    assignments = [*(set_ or [])]
    if complete_labels is not None:
        if "complete_labels" not in chosen_method(method, config)._limits:
            raise DataError("Only exmlds and exmlds3 take --complete-labels; choose one by --method.")
        assignments.append(f"complete_labels={complete_labels}")
    model = make_model(method, config, assignments)
    if label_cooccurrence is not None and "label_cooccurrence" not in model._side:
        raise DataError(
            f"{method_name(type(model).__name__)} takes no --label-cooccurrence; exmlds and exmlds3 do."
        )
    if checkpoint is not None and "checkpoint" not in signature(model.fit).parameters:
        raise DataError(f"{method_name(type(model).__name__)} takes no --checkpoint; exmlds4 does.")
    if seed is not None:
        model.set_params(random_state=seed)
    storage.check_target(output)
    if checkpoint is not None and _overlap(output, checkpoint):
        raise DataError("--output and --checkpoint must be folders apart, neither within the other.")
    side: dict[str, Any] = {}
    if checkpoint is not None:
        side["checkpoint"] = checkpoint
    if label_cooccurrence is not None:
        side["label_cooccurrence"] = read_cooccurrence(label_cooccurrence)
    with progress.shown():
        started = perf_counter()
        dataset = read(data, "train", labels)
        read_seconds = perf_counter() - started
        started = perf_counter()
        model.fit(dataset.X, dataset.Y, label_names=dataset.label_names, **side)
        fit_seconds = perf_counter() - started
        model.save(output)
    if checkpoint is not None:  # the model is written, so that nothing is lost
        discard(checkpoint)
    summary = {
        "model": str(output),
        "method": method_name(type(model).__name__),
        "rows": dataset.X.shape[0],
        "features": dataset.X.shape[1],
        "labels": dataset.Y.shape[1],
        "read_seconds": round(read_seconds, 3),
        "fit_seconds": round(fit_seconds, 3),
        "bytes": storage.size(output),
    }
    if as_json:
        print_json(summary)
        return
    print(
        f"{summary['method']} on {summary['rows']:,} rows × {summary['features']:,} features × "
        f"{summary['labels']:,} labels: read in {read_seconds:.1f} s, fitted in {fit_seconds:.1f} s; "
        f"{output}, {size(int(summary['bytes']))}"
    )


def _overlap(one: Path, other: Path) -> bool:
    one, other = one.resolve(), other.resolve()
    return one == other or one in other.parents or other in one.parents
