"""The command `exmlds train`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from inspect import signature
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from .arguments import AsJson, Cluster, Device, LabelsFile, TrainingData, Workers, complete_method
from .settings import DEFAULT_METHOD
from .texts import (
    OPTIONS,
    Analyzer,
    Encoding,
    EncodingErrors,
    FieldWeights,
    Format,
    IdColumn,
    LabelColumn,
    LabelSeparator,
    Language,
    MaxWords,
    TextColumn,
    TextOptions,
    Vectorizer,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from ..data import Texts

Fit = Callable[[dict[str, Any]], tuple[Any, dict[str, Any]]]  # fit(side) gives the model and the timing


def train(
    data: TrainingData,
    output: Annotated[Path, Option("-o", "--output", help="The folder to write the model to.")],
    labels: LabelsFile = None,
    method: Annotated[
        str | None,
        Option(
            help="The method, as `exmlds info` lists them, such as exmlds1.paper, or module:Class of your "
            f"own.  [default: {DEFAULT_METHOD}]",
            autocompletion=complete_method,
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        Option("--set", metavar="KEY=VALUE", help="A parameter of the method; may be repeated."),
    ] = None,
    effort: Annotated[
        str | None,
        Option(metavar="fast|balanced|best", help="How long a fit may take for what accuracy (exmlds)."),
    ] = None,
    device: Device = "cpu",
    config: Annotated[
        Path | None, Option(help="A TOML config file, as `exmlds info METHOD` prints it.")
    ] = None,
    label_cooccurrence: Annotated[
        Path | None,
        Option(help="A label co-occurrence matrix: .npz, .npy, or text with rows of `label:value`."),
    ] = None,
    observed: Annotated[
        Path | None,
        Option(
            help="The known cells of the labels, a matrix of their shape with 1 for each: .npz, or text with "
            "rows of `label:1`. DATA must hold numbers."
        ),
    ] = None,
    complete_labels: Annotated[
        str | None,
        Option(
            help="The weight of inferred missing labels in the votes, 0 to 1 or auto.", metavar="STRENGTH"
        ),
    ] = None,
    parts: Annotated[
        int | None,
        Option(
            min=1,
            help="Fit the method to so many parts of the rows, each by itself. DATA may be a pattern of "
            "several files then, such as 'shards/*.jsonl.gz', quoted.  [default: auto with such a pattern]",
        ),
    ] = None,
    workers: Workers = None,
    cluster: Cluster = None,
    checkpoint: Annotated[
        Path | None,
        Option(help="A checkpoint folder (exmlds4); after a stop, the same command resumes from it."),
    ] = None,
    vectorizer: Vectorizer = None,
    analyzer: Analyzer = None,
    max_words: MaxWords = None,
    field_weights: FieldWeights = None,
    vocabulary: Annotated[
        list[Path] | None,
        Option(
            metavar="FILE",
            help="The names of labels: SKOS, TSV, CSV, or a list of names; may be repeated, such as for a "
            "file of each language. DATA must hold texts.",
        ),
    ] = None,
    language: Language = None,
    trained_only: Annotated[
        bool,
        Option(
            "--trained-only",
            help="Suggest no label of the vocabulary that no training text has, even if its name stands in "
            "a text.",
        ),
    ] = False,
    keep_rows: Annotated[
        bool,
        Option(
            "--keep-rows", help="Store the training rows, or texts and ids, so that `explain` can show them."
        ),
    ] = False,
    growable: Annotated[
        bool,
        Option(
            "--growable",
            help="Store the training rows, and texts and ids, so that `update` and `remove` can change the "
            "model.",
        ),
    ] = False,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    label_separator: LabelSeparator = None,
    id_column: IdColumn = None,
    format: Format = None,
    encoding: Encoding = "utf-8",
    encoding_errors: EncodingErrors = "strict",
    seed: Annotated[
        int | None, Option(min=0, help="The random seed; the same seed gives the same model.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train a model on a file of texts or of numbers, and write it to a folder."""
    from ..data import read_vocabulary
    from ..errors import DataError
    from ..runtime import progress
    from .in_parts import is_pattern, train_in_parts
    from .texts import analysis, opened

    model = _configured(method, config, set_, effort, complete_labels, seed)
    if device != "cpu":
        model._use_device(device)
    terms = analysis(analyzer, max_words, field_weights)
    options = TextOptions(
        text_column, format, encoding_errors, label_column, label_separator, id_column, encoding
    )
    if is_pattern(data) or (parts, workers, cluster) != (None, None, None):
        others = {
            "--labels": labels,
            "--label-cooccurrence": label_cooccurrence,
            "--observed": observed,
            "--checkpoint": checkpoint,
            "--vectorizer": None if vectorizer == "tfidf" else vectorizer,
            "--vocabulary": vocabulary,
            "--language": language,
            "--keep-rows": keep_rows or None,
            "--growable": growable or None,
        }
        for option, value in others.items():
            if value is not None:
                raise DataError(f"{option} is not for training in parts; leave it out.")
        summary = train_in_parts(model, data, output, options, terms, parts, workers, cluster)
        _print(summary, None, as_json)
        return
    side = {"label_cooccurrence": label_cooccurrence, "checkpoint": checkpoint}
    _check_method(model, output, observed=observed, **side)
    if growable:
        _set_growable(model)
    path, is_texts = check_data(model, data, labels, options, vectorizer, keep_rows, terms)
    if is_texts and observed is not None:
        raise DataError(f"{data} holds texts; --observed is for numbers, whose labels have fixed columns.")
    if not is_texts and vocabulary:
        raise DataError(f"{data} holds numbers; --vocabulary is for texts.")
    if trained_only and not vocabulary:
        raise DataError("--trained-only is about the labels of a vocabulary; pass --vocabulary.")
    with progress.shown():
        concepts = read_vocabulary(vocabulary) if vocabulary else None
        documents = opened(path, options) if is_texts else None
        fit: Fit = partial(_fit_numbers, model, data, labels, keep_rows, observed)
        if documents is not None:
            texts = {
                "vectorizer": vectorizer or "tfidf",
                "vocabulary": concepts,
                "language": language,
                "allow_untrained": not trained_only,
                **terms,
            }
            fit = partial(_fit_texts, model, documents, texts, keep_rows)
        summary = _run(model, fit, path, output, **side)
    _print(summary, documents, as_json)


def _configured(
    method: str | None,
    config: Path | None,
    set_: list[str] | None,
    effort: str | None,
    complete_labels: str | None,
    seed: int | None,
) -> Any:
    """The model that --method, --config, --set and the options for single parameters describe."""
    from ..errors import DataError
    from .settings import make_model

    constraints = make_model(method, config, [])._constraints
    if complete_labels is not None and "complete_labels" not in constraints:
        raise DataError("Only exmlds and exmlds3 take --complete-labels; choose one with --method.")
    if effort is not None and "effort" not in constraints:
        raise DataError("Only exmlds takes --effort; leave out --method.")
    assignments = [*(set_ or [])]
    assigned = {assignment.partition("=")[0].strip() for assignment in assignments}
    options = {
        "effort": ("--effort", effort),
        "complete_labels": ("--complete-labels", complete_labels),
        "random_state": ("--seed", seed),
    }
    for name, (option, value) in options.items():
        if value is None:
            continue
        if name in assigned:
            raise DataError(f"{option} and --set {name} set the same parameter; leave one of them out.")
        assignments.append(f"{name}={value}")
    return make_model(method, config, assignments)


def _check_method(
    model: Any,
    output: Path,
    *,
    label_cooccurrence: Path | None,
    observed: Path | None,
    checkpoint: Path | None,
) -> None:
    """Check that the method takes the options, and that the folders can be written."""
    from ..errors import DataError
    from ..storage import model_folder
    from .settings import method_name
    from .sources import check_output_folder

    name = method_name(type(model).__name__)
    for argument, path in {"label_cooccurrence": label_cooccurrence, "observed": observed}.items():
        if path is not None and argument not in model._side:
            raise DataError(f"{name} takes no --{argument.replace('_', '-')}; exmlds and exmlds3 do.")
    if checkpoint is not None and "checkpoint" not in signature(model.fit).parameters:
        raise DataError(f"{name} takes no --checkpoint; exmlds4 does.")
    model_folder.check_target(output)
    for folder in filter(None, (output, checkpoint)):
        check_output_folder(folder)
    if checkpoint is not None and _overlap(output, checkpoint):
        raise DataError("--output and --checkpoint must be separate folders, neither within the other.")


def _set_growable(model: Any) -> None:
    from ..errors import DataError
    from .settings import method_name

    if "growable" not in model.get_params():
        raise DataError(f"{method_name(type(model).__name__)} takes no --growable.")
    model.set_params(growable=True)


def check_data(
    model: Any,
    data: str,
    labels: Path | None,
    options: TextOptions,
    vectorizer: str | None,
    keep_rows: bool = False,
    terms: Collection[str] = (),
) -> tuple[Path, bool]:
    """Check the options against the data; return its path and whether it holds texts.

    terms : the names of parameters for the terms of texts that are set
    """
    from ..data.text import require_documents
    from ..errors import DataError
    from .settings import method_name
    from .sources import locate

    path = locate(data, "train")
    if labels is not None and (options != TextOptions() or vectorizer is not None or terms):
        raise DataError("--labels is for numbers; the options for texts do not apply.")
    is_texts = labels is None and path.exists() and options.holds_texts(path)
    if not is_texts and path.is_dir():
        require_documents(path)
    if not is_texts and path.exists():
        options.check_numbers(data)
        if vectorizer is not None:
            raise DataError(f"{data} holds numbers; --vectorizer is for texts.")
        for name in terms:
            raise DataError(f"{data} holds numbers; {OPTIONS[name]} is for texts.")
        if keep_rows and "keep_rows" not in model.get_params():
            raise DataError(f"{method_name(type(model).__name__)} takes no --keep-rows.")
    return path, is_texts


def _run(
    model: Any,
    fit: Fit,
    path: Path,
    output: Path,
    *,
    label_cooccurrence: Path | None,
    checkpoint: Path | None,
) -> dict[str, Any]:
    """Read the data, fit the model and save it; return the summary."""
    from ..data import read_cooccurrence
    from ..storage import model_folder
    from ..storage.checkpoint import discard
    from .settings import method_name
    from .sources import digest_of

    side: dict[str, Any] = {}
    if checkpoint is not None:
        side["checkpoint"] = checkpoint
    if label_cooccurrence is not None:
        side["label_cooccurrence"] = read_cooccurrence(label_cooccurrence)
    digest = digest_of(path)
    fitted, timing = fit(side)
    fitted.training_digest_ = digest
    fitted.save(output)
    if checkpoint is not None:
        discard(checkpoint)  # only now: the model on disk replaces it
    return {
        "model": str(output),
        "method": method_name(type(model).__name__),
        "rows": int(fitted.n_samples_fit_),
        "features": int(fitted.n_features_in_),
        "labels": fitted.n_labels_,
        **timing,
        "scores": fitted._score_meaning,
        "held_out": fitted.held_out_metrics_,
        "bytes": model_folder.size(output),
    }


def _fit_texts(
    model: Any, documents: Texts, settings: dict[str, Any], keep_rows: bool, side: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Fit a TextClassifier with these settings around the model, and time it; it reads the texts itself."""
    from .. import TextClassifier

    started = perf_counter()
    if getattr(model, "keep_rows", False):  # set by --set; the classifier keeps the texts instead
        model.set_params(keep_rows=False)
        keep_rows = True
    fitted = TextClassifier(model, **settings, keep_rows=keep_rows).fit(documents, **side)
    read_as = {"format": documents.format, "text": list(documents.text), "labels": documents.labels}
    seconds = round(perf_counter() - started, 3)
    timing = {"read_seconds": 0.0, "fit_seconds": seconds, "read_as": read_as}
    return fitted, {**timing, "analyzer": fitted.analyzer_}


def _fit_numbers(
    model: Any, data: str, labels: Path | None, keep_rows: bool, observed: Path | None, side: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Read a data set of numbers and fit the model on it, and time both."""
    from .sources import read

    started = perf_counter()
    dataset = read(data, "train", labels)
    if observed is not None:
        side = {**side, "observed": _read_observed(observed, dataset.Y.shape)}
    read_seconds, started = perf_counter() - started, perf_counter()
    if keep_rows:
        model.set_params(keep_rows=True)
    model.fit(dataset.X, dataset.Y, label_names=dataset.label_names, **side)
    seconds = perf_counter() - started
    return model, {"read_seconds": round(read_seconds, 3), "fit_seconds": round(seconds, 3)}


def _read_observed(path: Path, shape: tuple[int, int]) -> csr_matrix:
    """Read the matrix of --observed, which must be of the shape of the label matrix."""
    from ..data.xc import read_matrix
    from ..errors import DataError

    observed = read_matrix(path, n_columns=shape[1], noun="label")
    if observed.shape != shape:
        wanted, got = (f"{n} rows and {n_labels} labels" for n, n_labels in (shape, observed.shape))
        raise DataError(f"{path} must be of the shape of the label matrix, {wanted}. Got {got} instead.")
    return observed


def _print(summary: dict[str, Any], documents: Texts | None, as_json: bool) -> None:
    from shlex import quote

    from ..voting.base import MIN_ROWS_TO_TUNE
    from .output import percent, print_json, say, size

    if as_json:
        print_json(summary)
        return
    rows, features, times = "rows", "features", f"read in {summary['read_seconds']:.1f} s, fitted"
    if documents is not None:
        rows, features, times = f"texts ({documents.description})", "terms", "read and fitted"
        features += f" ({summary['analyzer']})" if summary["analyzer"] else ""
    held_out = summary["held_out"]
    in_parts = f" in {summary['parts']:,} parts" if "parts" in summary else ""
    say(
        f"{summary['method']}{in_parts} on {summary['rows']:,} {rows} × {summary['features']:,} {features} × "
        f"{summary['labels']:,} labels: {times} in {summary['fit_seconds']:.1f} s"
        + (f"; P@1 {percent(held_out['P@1'])}% on held-out rows" if held_out else "")
    )
    if summary["method"] == DEFAULT_METHOD and summary["scores"] == "shares of votes":
        say(
            "There are too few rows to calibrate scores: they are shares of votes, not probabilities, and a "
            f"threshold of 0.5 has no meaning. Train on {MIN_ROWS_TO_TUNE} labelled rows or more."
        )
    model, saved = quote(summary["model"]), f"{summary['model']}, {size(summary['bytes'])}"
    say(f"Wrote {saved}. Next: exmlds predict {model} NEW_FILE, or exmlds evaluate {model} TEST_FILE")


def _overlap(one: Path, other: Path) -> bool:
    one, other = one.resolve(), other.resolve()
    return one == other or one in other.parents or other in one.parents
