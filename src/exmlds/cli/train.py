"""`exmlds train`."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .settings import DEFAULT_METHOD
from .texts import EncodingErrors, Format, LabelColumn, LabelSeparator, TextColumn, TextOptions

if TYPE_CHECKING:
    from ..data import Texts


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
    vectorizer: Annotated[
        str | None,
        typer.Option(help="Of texts: tfidf, or hashing, which keeps no vocabulary.  [default: tfidf]"),
    ] = None,
    keep_rows: Annotated[
        bool, typer.Option("--keep-rows", help="Keep the training rows, so that `explain` can show them.")
    ] = False,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    label_separator: LabelSeparator = None,
    format: Format = None,
    encoding_errors: EncodingErrors = "strict",
    seed: Annotated[
        int | None, typer.Option(help="The random_state; the same seed gives the same model.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Train a model on a file, of texts or of numbers, and write it to a folder."""
    from ..data import is_text, read_cooccurrence
    from ..errors import DataError
    from ..runtime import progress
    from ..storage import model_folder
    from ..storage.checkpoint import discard
    from .output import print_json
    from .settings import chosen_method, make_model, method_name
    from .sources import locate
    from .texts import opened

    assignments = [*(set_ or [])]
    if complete_labels is not None:
        if "complete_labels" not in chosen_method(method, config)._constraints:
            raise DataError("Only exmlds and exmlds3 take --complete-labels; choose one by --method.")
        assignments.append(f"complete_labels={complete_labels}")
    model = make_model(method, config, assignments)
    name = method_name(type(model).__name__)
    if label_cooccurrence is not None and "label_cooccurrence" not in model._side:
        raise DataError(f"{name} takes no --label-cooccurrence; exmlds and exmlds3 do.")
    if checkpoint is not None and "checkpoint" not in signature(model.fit).parameters:
        raise DataError(f"{name} takes no --checkpoint; exmlds4 does.")
    if seed is not None:
        model.set_params(random_state=seed)
    model_folder.check_target(output)
    if checkpoint is not None and _overlap(output, checkpoint):
        raise DataError("--output and --checkpoint must be folders apart, neither within the other.")
    side: dict[str, Any] = {}
    if checkpoint is not None:
        side["checkpoint"] = checkpoint
    if label_cooccurrence is not None:
        side["label_cooccurrence"] = read_cooccurrence(label_cooccurrence)
    path = locate(data, "train")
    options = TextOptions(text_column, format, encoding_errors, label_column, label_separator)
    of_texts = labels is None and path.exists() and (format is not None or is_text(path))
    if labels is not None and (options != TextOptions() or vectorizer is not None):
        raise DataError("--labels is for numbers; options about texts do not apply.")
    if not of_texts and path.exists():
        options.check_numbers(data)
        if vectorizer is not None:
            raise DataError(f"{data} holds numbers; --vectorizer is for texts.")
        if keep_rows and "keep_rows" not in model.get_params():
            raise DataError(f"{name} takes no --keep-rows.")
    with progress.shown():
        if of_texts:
            documents: Any = opened(path, options)
            fitted, how = _on_texts(model, documents, vectorizer or "tfidf", keep_rows, side)
        else:
            documents = None
            fitted, how = _on_numbers(model, data, labels, keep_rows, side)
        fitted.save(output)
    if checkpoint is not None:  # the model is written, so that nothing is lost
        discard(checkpoint)
    summary: dict[str, Any] = {
        "model": str(output),
        "method": name,
        "rows": int(fitted.n_samples_fit_),
        "features": int(fitted.n_features_in_),
        "labels": len(fitted.classes_),
        **how,
        "bytes": model_folder.size(output),
    }
    if as_json:
        print_json(summary)
    else:
        print(_in_words(summary, documents))


def _on_texts(
    model: Any, documents: Texts, vectorizer: str, keep_rows: bool, side: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """The fitted model, and how it came about; texts are read while it fits."""
    from .. import TextClassifier

    started = perf_counter()
    if getattr(model, "keep_rows", False):  # by --set: of texts, the texts are kept
        model.set_params(keep_rows=False)
        keep_rows = True
    fitted = TextClassifier(vectorizer=vectorizer, model=model, keep_rows=keep_rows).fit(documents, **side)
    read_as = {"format": documents.format, "text": list(documents.text), "labels": documents.labels}
    seconds = round(perf_counter() - started, 3)
    return fitted, {"read_seconds": 0.0, "fit_seconds": seconds, "read_as": read_as}


def _on_numbers(
    model: Any, data: str, labels: Path | None, keep_rows: bool, side: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """The fitted model, and how it came about."""
    from .sources import read

    started = perf_counter()
    dataset = read(data, "train", labels)
    read_seconds, started = perf_counter() - started, perf_counter()
    if keep_rows:
        model.set_params(keep_rows=True)
    model.fit(dataset.X, dataset.Y, label_names=dataset.label_names, **side)
    seconds = perf_counter() - started
    return model, {"read_seconds": round(read_seconds, 3), "fit_seconds": round(seconds, 3)}


def _in_words(summary: dict[str, Any], documents: Texts | None) -> str:
    from .output import harmless, size

    rows, features, took = "rows", "features", f"read in {summary['read_seconds']:.1f} s, fitted"
    if documents is not None:
        rows, features, took = f"texts ({harmless(documents.description)})", "terms", "read and fitted"
    return (
        f"{summary['method']} on {summary['rows']:,} {rows} × {summary['features']:,} {features} × "
        f"{summary['labels']:,} labels: {took} in {summary['fit_seconds']:.1f} s; {summary['model']}, "
        f"{size(summary['bytes'])}"
    )


def _overlap(one: Path, other: Path) -> bool:
    one, other = one.resolve(), other.resolve()
    return one == other or one in other.parents or other in one.parents
