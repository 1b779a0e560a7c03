"""The command `exmlds update`."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

from .arguments import AsJson, LabelsFile, ModelFolder, TrainingData
from .settings import OwnMethod, Trusted
from .texts import (
    Encoding,
    EncodingErrors,
    Format,
    IdColumn,
    LabelColumn,
    LabelSeparator,
    TextColumn,
    TextOptions,
)


def update(
    model: ModelFolder,
    data: TrainingData,
    labels: LabelsFile = None,
    method: OwnMethod = None,
    trusted: Trusted = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    label_separator: LabelSeparator = None,
    id_column: IdColumn = None,
    format: Format = None,
    encoding: Encoding = "utf-8",
    encoding_errors: EncodingErrors = "strict",
    as_json: AsJson = False,
) -> None:
    """Add documents, or rows of numbers, to a model that was trained with --growable.

    They vote at once. A document whose id the model has already replaces that one. Labels that are new
    become further labels of the model.
    """
    from ..runtime import progress
    from .changes import changed, growth_of, number_of, tell
    from .output import print_json
    from .sources import locate, refuse_swapped
    from .texts import check_kind, takes_texts

    options = TextOptions(
        text_column, format, encoding_errors, label_column, label_separator, id_column, encoding
    )
    refuse_swapped("update MODEL DATA", model, data)
    started = perf_counter()
    with progress.shown():
        with changed(model, method, trusted) as fitted:
            path = locate(data, "train")
            check_kind(fitted, model, path, options)
            n_labels, before = fitted.n_labels_, fitted.growth_
            if takes_texts(fitted):
                _add_texts(fitted, path, labels, options)
            else:
                _add_numbers(fitted, path, labels)
            n_replaced = fitted.growth_.n_removed - before.n_removed
            n_added = fitted.growth_.n_added - before.n_added - n_replaced
        summary = {
            "model": str(model),
            "added": n_added,
            "replaced": n_replaced,
            "new_labels": fitted.n_labels_ - n_labels,
            **growth_of(fitted),
            "seconds": round(perf_counter() - started, 3),
        }
    tell(
        f"Added {number_of(n_added, 'row')}, replaced {n_replaced:,}; new labels: {summary['new_labels']:,}.",
        summary,
    )
    if as_json:
        print_json(summary)


def _add_texts(fitted: Any, path: Path, labels: Path | None, options: TextOptions) -> None:
    from ..errors import DataError
    from .texts import opened

    if labels is not None:
        raise DataError(f"--labels is for numbers; {path} holds its labels itself.")
    fitted.partial_fit(opened(path, options), replace=True)


def _add_numbers(fitted: Any, path: Path, labels: Path | None) -> None:
    """Add the rows of a file of numbers, whose columns are those of the model and new labels behind them."""
    from ..data import read_xc
    from ..errors import DataError

    rows = read_xc(path, labels, n_features=fitted.n_features_in_)
    if rows.X.shape[1] != fitted.n_features_in_:
        wide = f"{rows.X.shape[1]:,} features, but the model has {fitted.n_features_in_:,}"
        raise DataError(f"{path} has {wide}.")
    Y, names = rows.Y, rows.label_names
    if names is not None and fitted.names_ is not None:
        n = min(len(names), fitted.n_labels_)
        if names[:n] != fitted.names_.tolist()[:n]:
            raise DataError(f"The label names beside {path} differ from those of the model.")
    if Y.shape[1] < fitted.n_labels_:
        Y, names = Y.copy(), None
        Y.resize(Y.shape[0], fitted.n_labels_)
    fitted.partial_fit(rows.X, Y, label_names=names)
