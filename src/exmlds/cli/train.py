"""The command `exmlds train`."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Argument, Option

from .settings import DEFAULT_METHOD
from .texts import EncodingErrors, Format, LabelColumn, LabelSeparator, TextColumn, TextOptions

if TYPE_CHECKING:
    from ..data import Texts


def train(
    data: Annotated[str, Argument(help="A file, or the name of a data set under EXMLDS_DATA.")],
    output: Annotated[Path, Option("-o", "--output", help="The folder to write the model to.")],
    labels: Annotated[Path | None, Option(help="The file of labels, if DATA holds features only.")] = None,
    method: Annotated[
        str | None, Option(help=f"The method, or module:Class of your own.  [default: {DEFAULT_METHOD}]")
    ] = None,
    set_: Annotated[
        list[str] | None, Option("--set", help="A parameter as key=value; may be repeated.")
    ] = None,
    config: Annotated[
        Path | None, Option(help="A TOML config file, as `exmlds info METHOD` prints it.")
    ] = None,
    label_cooccurrence: Annotated[
        Path | None,
        Option(help="A label co-occurrence matrix: .npz, .npy, or text with rows of `label:value`."),
    ] = None,
    complete_labels: Annotated[
        str | None,
        Option(
            help="The weight of inferred missing labels in the votes, 0 to 1 or auto.", metavar="STRENGTH"
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        Option(help="A checkpoint folder (exmlds4); after a stop, the same command resumes from it."),
    ] = None,
    vectorizer: Annotated[
        str | None,
        Option(
            help="The vectorizer of texts: tfidf, or hashing, which stores no vocabulary.  [default: tfidf]"
        ),
    ] = None,
    keep_rows: Annotated[
        bool, Option("--keep-rows", help="Store the training rows, so that `explain` can show them.")
    ] = False,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    label_separator: LabelSeparator = None,
    format: Format = None,
    encoding_errors: EncodingErrors = "strict",
    seed: Annotated[int | None, Option(help="The random seed; the same seed gives the same model.")] = None,
    as_json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Train a model on a file of texts or of numbers, and write it to a folder."""
    from ..runtime import progress

    inputs = _TrainInputs(
        _configured(method, config, set_, complete_labels, seed),
        data,
        output,
        labels,
        label_cooccurrence,
        checkpoint,
        vectorizer,
        keep_rows,
        TextOptions(text_column, format, encoding_errors, label_column, label_separator),
    )
    path, is_texts = _check(inputs)
    with progress.shown():
        summary, documents = _run(inputs, path if is_texts else None)
    _print(summary, documents, as_json)


class _TrainInputs(NamedTuple):
    """The model to fit, and the options of the command."""

    model: Any
    data: str
    output: Path
    labels: Path | None
    label_cooccurrence: Path | None
    checkpoint: Path | None
    vectorizer: str | None
    keep_rows: bool
    options: TextOptions


def _configured(
    method: str | None,
    config: Path | None,
    assignments: list[str] | None,
    complete_labels: str | None,
    seed: int | None,
) -> Any:
    """The model that --method, --config, --set, --complete-labels and --seed describe."""
    from ..errors import DataError
    from .settings import chosen_method, make_model

    assignments = [*(assignments or [])]
    if complete_labels is not None:
        if "complete_labels" not in chosen_method(method, config)._constraints:
            raise DataError("Only exmlds and exmlds3 take --complete-labels; choose one with --method.")
        assignments.append(f"complete_labels={complete_labels}")
    model = make_model(method, config, assignments)
    return model if seed is None else model.set_params(random_state=seed)


def _check(inputs: _TrainInputs) -> tuple[Path, bool]:
    """Check the options against the method and the data; return its path and whether it holds texts."""
    from ..data import is_text
    from ..errors import DataError
    from ..storage import model_folder
    from .settings import method_name
    from .sources import locate

    name = method_name(type(inputs.model).__name__)
    if inputs.label_cooccurrence is not None and "label_cooccurrence" not in inputs.model._side:
        raise DataError(f"{name} takes no --label-cooccurrence; exmlds and exmlds3 do.")
    if inputs.checkpoint is not None and "checkpoint" not in signature(inputs.model.fit).parameters:
        raise DataError(f"{name} takes no --checkpoint; exmlds4 does.")
    model_folder.check_target(inputs.output)
    if inputs.checkpoint is not None and _overlap(inputs.output, inputs.checkpoint):
        raise DataError("--output and --checkpoint must be separate folders, neither within the other.")
    path = locate(inputs.data, "train")
    has_text_options = inputs.options != TextOptions() or inputs.vectorizer is not None
    if inputs.labels is not None and has_text_options:
        raise DataError("--labels is for numbers; the options for texts do not apply.")
    is_texts = (
        inputs.labels is None and path.exists() and (inputs.options.format is not None or is_text(path))
    )
    if not is_texts and path.exists():
        inputs.options.check_numbers(inputs.data)
        if inputs.vectorizer is not None:
            raise DataError(f"{inputs.data} holds numbers; --vectorizer is for texts.")
        if inputs.keep_rows and "keep_rows" not in inputs.model.get_params():
            raise DataError(f"{name} takes no --keep-rows.")
    return path, is_texts


def _run(inputs: _TrainInputs, text_path: Path | None) -> tuple[dict[str, Any], Texts | None]:
    """Read the data, fit the model and save it; return the summary, and the texts that were read."""
    from ..data import read_cooccurrence
    from ..storage import model_folder
    from ..storage.checkpoint import discard
    from .settings import method_name
    from .texts import opened

    side: dict[str, Any] = {}
    if inputs.checkpoint is not None:
        side["checkpoint"] = inputs.checkpoint
    if inputs.label_cooccurrence is not None:
        side["label_cooccurrence"] = read_cooccurrence(inputs.label_cooccurrence)
    documents = None
    if text_path is not None:
        documents = opened(text_path, inputs.options)
        fitted, timing = _fit_texts(
            inputs.model, documents, inputs.vectorizer or "tfidf", inputs.keep_rows, side
        )
    else:
        fitted, timing = _fit_numbers(inputs.model, inputs.data, inputs.labels, inputs.keep_rows, side)
    fitted.save(inputs.output)
    if inputs.checkpoint is not None:
        discard(inputs.checkpoint)  # only now: the model on disk replaces it
    summary = {
        "model": str(inputs.output),
        "method": method_name(type(inputs.model).__name__),
        "rows": int(fitted.n_samples_fit_),
        "features": int(fitted.n_features_in_),
        "labels": len(fitted.classes_),
        **timing,
        "bytes": model_folder.size(inputs.output),
    }
    return summary, documents


def _fit_texts(
    model: Any, documents: Texts, vectorizer: str, keep_rows: bool, side: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Fit a TextClassifier around the model, and time it; the texts are read while it is fitted."""
    from .. import TextClassifier

    started = perf_counter()
    if getattr(model, "keep_rows", False):  # set by --set; the classifier keeps the texts instead
        model.set_params(keep_rows=False)
        keep_rows = True
    fitted = TextClassifier(vectorizer=vectorizer, model=model, keep_rows=keep_rows).fit(documents, **side)
    read_as = {"format": documents.format, "text": list(documents.text), "labels": documents.labels}
    seconds = round(perf_counter() - started, 3)
    return fitted, {"read_seconds": 0.0, "fit_seconds": seconds, "read_as": read_as}


def _fit_numbers(
    model: Any, data: str, labels: Path | None, keep_rows: bool, side: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Read a data set of numbers and fit the model on it, and time both."""
    from .sources import read

    started = perf_counter()
    dataset = read(data, "train", labels)
    read_seconds, started = perf_counter() - started, perf_counter()
    if keep_rows:
        model.set_params(keep_rows=True)
    model.fit(dataset.X, dataset.Y, label_names=dataset.label_names, **side)
    seconds = perf_counter() - started
    return model, {"read_seconds": round(read_seconds, 3), "fit_seconds": round(seconds, 3)}


def _print(summary: dict[str, Any], documents: Texts | None, as_json: bool) -> None:
    from .output import harmless, print_json, size

    if as_json:
        print_json(summary)
        return
    rows, features, times = "rows", "features", f"read in {summary['read_seconds']:.1f} s, fitted"
    if documents is not None:
        rows, features, times = f"texts ({harmless(documents.description)})", "terms", "read and fitted"
    print(
        f"{summary['method']} on {summary['rows']:,} {rows} × {summary['features']:,} {features} × "
        f"{summary['labels']:,} labels: {times} in {summary['fit_seconds']:.1f} s; {summary['model']}, "
        f"{size(summary['bytes'])}"
    )


def _overlap(one: Path, other: Path) -> bool:
    one, other = one.resolve(), other.resolve()
    return one == other or one in other.parents or other in one.parents
