"""The inputs of commands: data files, models and rankings."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ..errors import DataError, DataWarning, did_you_mean
from ..storage.files import near_path
from .standard_input import copied_input

if TYPE_CHECKING:
    import numpy as np

    from ..base import XMCEstimator
    from ..data import Dataset, Document, Texts
    from ..models.text import TextClassifier
    from .texts import TextOptions

MOST_COMPARED = 50_000  # ids or labels that a mistyped one is compared with
MAX_K = 1000  # of metrics at k; a ranking has that many cells for each row


def locate(source: str, split: str) -> Path:
    """The path of a file, of standard input for `-`, or of the train or test file of a named data set."""
    from .. import data

    if source == "-":
        return copied_input()
    path = Path(source)
    if path.exists():
        return path
    if source.lower() in data.DATASETS or source in data.available():
        return data.find(source, split)
    if path.suffix or path.parent != Path("."):
        return path  # the reader explains what is wrong with it
    here = ", ".join(data.available()) or "none: set EXMLDS_DATA to the folder that holds them"
    hint = did_you_mean(source, data.available(), str) or near_path(path)
    raise DataError(f"{source} is neither a file, a folder nor a data set; data sets here: {here}.{hint}")


def refuse_swapped(usage: str, *arguments: object) -> None:
    """Raise an error if the last argument, the data, is a model, and one before it is none."""
    from ..storage.model_folder import is_model

    *others, last = [Path(str(argument)) for argument in arguments if argument is not None]
    if is_model(last) and not all(map(is_model, others)):
        raise DataError(f"The arguments are swapped: {last} is a model. Write `exmlds {usage}`.")


def known_label(fitted: XMCEstimator, model: Path, given: str) -> Any:
    """The label of a model that a user names, by its id or by its preferred name in the vocabulary."""
    labels = {str(label): label for label in fitted.classes_.tolist()}
    named = given
    if given not in labels and getattr(fitted, "vocabulary_", None) is not None:
        named = cast("TextClassifier", fitted)._known_labels([given])[given]
    if named not in labels:
        hint = did_you_mean(given, list(labels)[:MOST_COMPARED])
        raise DataError(
            f"{model} has no label {given!r}; find labels with `exmlds labels {model} --search`.{hint}"
        )
    return labels[named]


def display_name(source: str) -> str:
    """The name of the data in a title or a message."""
    return "standard input" if source == "-" else Path(source).name


def check_output(output: Path | None, *inputs: Path | None) -> None:
    """Raise an error if a file cannot be written, would overwrite an input, or is in a model folder.

    A file in a folder of documents is one of the inputs if its name is that of a document or of subjects.
    """
    from ..data.text import corpus_file
    from ..storage.model_folder import is_model

    if output is None:
        return
    if output.is_dir():
        raise DataError(f"{output} is a folder; name a file.")
    if output.is_file() or not output.exists():  # devices and pipes are written to directly
        _try_writing(output, Path(os.path.realpath(output)).parent)
    for path in filter(None, inputs):
        if output.exists() and path.exists() and output.samefile(path):
            raise DataError(f"{output} is being read; write to another file.")
        target = Path(os.path.realpath(output))
        if str(target.parent) == os.path.realpath(path) and corpus_file(target):
            problem = f"{output} would be one of the documents of {path}, which is being read"
            raise DataError(f"{problem}; write to another folder.")
    if is_model(output.parent):
        raise DataError(f"{output.parent} is a model folder; write to another folder.")


def check_output_folder(output: Path) -> None:
    """Raise an error if a folder cannot be made, or written to; missing folders around it will be made."""
    _try_writing(output, next(path for path in (output, *output.absolute().parents) if path.exists()))


def _try_writing(output: Path, folder: Path) -> None:
    """Write a file without a name, because permissions alone do not tell what a file system allows."""
    from tempfile import TemporaryFile

    if not folder.is_dir():
        problem = f"{folder} is a file, not a folder" if folder.exists() else f"there is no folder {folder}"
        raise DataError(f"{output}: cannot be written ({problem}).")
    try:
        TemporaryFile(dir=folder).close()
    except OSError as error:
        raise DataError(f"{output}: cannot be written ({error.strerror}).") from None


def digest_of(path: Path) -> str | None:
    """A digest of a file, or of the documents in a folder, the same whether they are gzipped or not.

    It is None for a pipe, which can be read only once.
    """
    from hashlib import blake2b

    from ..data.text import require_documents
    from ..storage.files import reading

    if not path.is_file() and not path.is_dir():
        return None
    paths = [document.path for document in require_documents(path).documents] if path.is_dir() else [path]
    digest = blake2b(digest_size=16)
    for each in paths:
        with reading(each) as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
        digest.update(b"\0")
    return digest.hexdigest()


def _warn_of_training_data(models: list[XMCEstimator], path: Path, texts: Sequence[str]) -> None:
    """Warn if the test set is the data that a model was trained on, or if most of its texts are in it."""
    digest = digest_of(path) if any(model.training_digest_ for model in models) else None
    for model in models:
        kept = set(() if (own := getattr(model, "texts_", None)) is None else own)
        n_seen = sum(text in kept for text in texts)
        if digest is not None and model.training_digest_ == digest:
            seen = "is the data that the model was trained on"
        elif 2 * n_seen > len(texts):
            seen = f"has {n_seen:,} texts, of {len(texts):,}, that the model was trained on"
        else:
            continue
        warnings.warn(
            f"{display_name(str(path))} {seen}: metrics on rows that it has seen are far too good. "
            "Evaluate on other rows.",
            DataWarning,
            stacklevel=2,
        )


def refuse_texts(path: Path) -> None:
    from ..data import is_text

    if path.exists() and is_text(path):
        raise DataError(f"{path} holds texts, which this command does not accept; `exmlds train` does.")


def read(
    source: str, split: str, labels: Path | None = None, *, model: XMCEstimator | None = None
) -> Dataset:
    """Read a data set; with a model, check that it has the model's features and labels."""
    from .. import data

    path = locate(source, split)
    if model is None:
        refuse_texts(path)
        return data.read_xc(path, labels)
    dataset = data.read_xc(path, labels, n_features=model.n_features_in_, n_labels=len(model.classes_))
    has_names = model.classes_.dtype == object
    if has_names and dataset.label_names and dataset.label_names != model.classes_.tolist():
        raise DataError(f"The label names beside {path} differ from those that the model was trained with.")
    return dataset


def read_for(
    source: str,
    labels: Path | None,
    *rankers: Path,
    options: TextOptions,
    method: list[str] | None = None,
    trusted: list[str] | None = None,
    device: str = "cpu",
) -> tuple[Dataset, list[XMCEstimator | Path]]:
    """Read the test set, and load each ranker: a model, or the path of a file of predictions.

    For texts, X is a list of documents, and labels that are unknown to the models get columns after the known
    ones: those of predictions first, then those of the documents.

    method, trusted : classes that models are of, and encoders that they may import;  device : of models
    """
    from ..data import Dataset, is_text
    from ..data.named_predictions import read_named_predictions
    from ..validation.targets import from_rows
    from .settings import load_model
    from .texts import check_kind, takes_texts
    from .texts import opened as open_texts

    for path in rankers:
        if not path.exists():
            raise DataError(f"{path}: there is no such model or file of predictions.{near_path(path)}")
    opened: list[XMCEstimator | Path] = [
        load_model(path, method, trusted, device=device) if path.is_dir() else path for path in rankers
    ]
    models = [model for model in opened if not isinstance(model, Path)]
    for model in models[1:]:
        if len(model.classes_) != len(models[0].classes_):
            counts = " and ".join(str(len(m.classes_)) for m in models)
            raise DataError(f"The models know {counts} labels; they were trained on different data.")
    path = locate(source, "test")
    if not models and (labels is not None or not path.exists() or not options.holds_texts(path)):
        test = read(source, "test", labels)
        options.check_numbers(source)
        return _with_labels(test, source), opened
    for model, name in zip(models, (name for name in rankers if name.is_dir())):
        check_kind(model, name, path, options)
    if models and not takes_texts(models[0]):
        _warn_of_training_data(models, path, ())
        return _with_labels(read(source, "test", labels, model=models[0]), source), opened
    if labels is not None:
        raise DataError(f"--labels is for numbers; {path} holds its labels itself.")
    if any(model.classes_.tolist() != models[0].classes_.tolist() for model in models[1:]):
        raise DataError("The models know different labels; they were trained on different data.")
    texts = open_texts(path, options)
    documents = list(texts)
    known = models[0].classes_.tolist() if models else []
    columns = {label: column for column, label in enumerate(known)}
    for ranker in opened:
        if isinstance(ranker, Path) and is_text(ranker):
            for row in read_named_predictions(ranker):
                for label in row.labels:
                    columns.setdefault(label, len(columns))
        elif not models:
            problem = f"{ranker} holds numbers of labels, but {path} holds names"
            raise DataError(f"{problem}; write predictions as `exmlds predict` does for texts.")
    n_predicted = len(columns)
    Y = from_rows([document.labels for document in documents], columns)
    test = _with_labels(Dataset(documents, Y, list(map(str, columns))), source)
    if models:
        _check_known(models[0], texts, documents, Y, display_name(source))
    elif n_predicted and not Y[:, :n_predicted].nnz:
        _warn_of_other_labels(texts, documents, next(iter(columns)), display_name(source))
    _warn_of_training_data(models, path, [document.text for document in documents])
    return test, opened


def _with_labels(test: Dataset, source: str) -> Dataset:
    if not test.Y.nnz:
        raise DataError(f"{display_name(source)}: no row has a label, so there is nothing to evaluate.")
    return test


def _check_known(model: XMCEstimator, texts: Texts, documents: list[Document], Y: Any, name: str) -> None:
    """Raise an error if the model knows none of the labels, and warn if it knows few of them.

    Names may have been read in place of URIs.
    """
    n_known = Y[:, : len(model.classes_)].nnz
    if 2 * n_known >= Y.nnz:
        return
    known = set(map(str, model.classes_))
    unknown = [label for document in documents for label in document.labels if label not in known]
    problem = f"none of the {len(set(unknown)):,} labels in {name} is known to the model"
    if n_known:
        problem = (
            f"{100 * (1 - n_known / Y.nnz):.0f}% of the label occurrences in {name} are unknown to the model"
        )
    message = (
        f"{problem}, such as {unknown[0]!r}; the model knows {str(model.classes_[0])!r}. "
        f"{_advice_on_labels(texts, unknown[0], str(model.classes_[0]))}"
    )
    if not n_known:
        raise DataError(message)
    warnings.warn(message, DataWarning, stacklevel=2)


def _warn_of_other_labels(texts: Texts, documents: list[Document], predicted: str, name: str) -> None:
    """Warn that no label of the documents is predicted for any of them; predicted : one that is."""
    true = next(label for document in documents for label in document.labels)
    warnings.warn(
        f"No label in {name} is ever predicted: it has labels such as {true!r}, and "
        f"{predicted!r} is predicted. {_advice_on_labels(texts, true, predicted)}",
        DataWarning,
        stacklevel=2,
    )


def _advice_on_labels(texts: Texts, unknown: str, known: str) -> str:
    """What to do about labels that a model or predictions lack, such as `unknown`; they have `known`."""
    from ..data.text import Corpus, begins_with_uri

    if texts.format == "annif-folder" and begins_with_uri(unknown) != begins_with_uri(known):
        if begins_with_uri(unknown):
            return "Pass --label-column label, which reads names."
        if Corpus.of(texts.path).has_names_only():
            return (
                "Its .key files hold names, not URIs: write the subjects to .tsv files, or train a model on "
                "names, with `exmlds train --label-column label`."
            )
        return "Leave out --label-column label, so that URIs are read."
    if texts.labels is not None and texts.format != "annif-folder":
        return f"Labels are read from {texts.labels!r}; --label-column names another field or column."
    return "Are these the labels of the same vocabulary?"


class QueryRow(NamedTuple):
    """One row as input of a model.

    number, id : its number in the data, counted from 0, and its id; None if there are none
    """

    X: Any
    feature_names: list[str] | None = None
    number: int | None = None
    id: str | None = None

    def names(self) -> dict[str, Any]:
        """The number and the id, as far as there are any."""
        named = {"row": self.number, "id": self.id}
        return {name: value for name, value in named.items() if value is not None}


def one_row(
    model: XMCEstimator, name: Path, data: str | None, text: str | None, row: str | None, options: TextOptions
) -> QueryRow:
    """The given text, or the row of a file that --row names; by default, the first one."""
    from .. import data as io
    from .texts import check_kind, opened, takes_texts

    if (data is None) == (text is None):
        raise DataError("Pass either a file, a folder, or --text.")
    if text is not None:
        if not takes_texts(model):
            raise DataError(f"{name} was trained on features, not on texts.")
        if row is not None:
            raise DataError("--row names a row of a file; leave it or --text out.")
        return QueryRow([text])
    path = locate(str(data), "test")
    check_kind(model, name, path, options)
    if takes_texts(model):
        number, document = _find_document(path, opened(path, options, labelled=False), row)
        return QueryRow([document.text], None, number, document.id)
    dataset = io.read_xc(path, n_features=model.n_features_in_)
    n = dataset.X.shape[0]
    if row is not None and not (row.isdecimal() and int(row) < n):
        raise DataError(f"{path} has {n} rows, counted from 0. Got --row {row}.")
    number = int(row or 0)
    return QueryRow(dataset.X[number], dataset.feature_names, number)


def _find_document(path: Path, documents: Iterable[Document], row: str | None) -> tuple[int, Document]:
    """The document that has this id or, if none has it, this number; the first one by default."""
    if row is None:
        return 0, next(iter(documents))
    number = int(row) if row.isdecimal() else None
    by_id: list[tuple[int, Document]] = []
    by_number = None
    ids: list[str] = []
    for i, document in enumerate(documents):
        ids += [document.id] if document.id is not None else []
        if document.id == row:
            by_id.append((i, document))
        if i == number:
            by_number = i, document
            if not ids:  # otherwise, a later document may have the number as its id
                break
    if len(by_id) > 1:
        rows = ", ".join(str(i) for i, _ in by_id[:10])
        raise DataError(f"{path}: {len(by_id)} documents have the id {row!r}, in the rows {rows}.")
    found = by_id[0] if by_id else by_number
    if found is not None:
        return found
    if ids:
        problem = f"{path} has no document with the id {row!r}, and no row of that number."
        raise DataError(problem + did_you_mean(row, ids[:MOST_COMPARED]))
    raise DataError(f"{path} has no row {row}; rows are counted from 0, and its documents have no ids.")


def ranked(
    ranker: XMCEstimator | Path, test: Dataset, k: int, label_filter: Path | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(n, k) int64 and float32, the ranked label ids of a model or of a file of predictions, and scores."""
    from .. import data

    pairs = None if label_filter is None else data.read_label_filter(label_filter, test.Y.shape)
    if not isinstance(ranker, Path):
        denied = None if pairs is None else pairs[:, : len(ranker.classes_)]
        return ranker.predict_topk(test.X, k, deny=denied)
    spare = 0 if pairs is None else int(pairs.getnnz(axis=1).max(initial=0))
    n, n_labels = test.Y.shape
    if isinstance(test.X, list) and data.is_text(ranker):
        found = _named_ranking(ranker, test, k + spare)
    else:
        found = data.read_predictions(ranker, k=k + spare, n_labels=n_labels, label_names=test.label_names)
    if len(found[0]) != n:
        hint = "; an empty last row needs a space on its line" if len(found[0]) == n - 1 else ""
        raise DataError(f"{ranker} has {len(found[0])} rows, but the data has {n}{hint}.")
    return found if pairs is None else _drop_denied(*found, pairs, k)


def _named_ranking(path: Path, test: Dataset, k: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, k) ranked label ids and scores of predictions for texts, which are matched by their ids."""
    import numpy as np

    from ..data.named_predictions import aligned, read_named_predictions
    from ..data.predictions import padded

    column = {label: i for i, label in enumerate(test.label_names or [])}
    documents: Any = test.X
    rows = aligned(read_named_predictions(path), [document.id for document in documents], path)
    labels = np.array([column[label] for row in rows for label in row.labels], np.int64)
    scores = np.array([score for row in rows for score in row.scores], np.float32)
    return padded(labels, scores, np.array([len(row.labels) for row in rows], np.int64), k)


def _drop_denied(ids: np.ndarray, scores: np.ndarray, pairs: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    import numpy as np

    from ..validation.observed import contains

    denied = contains(pairs, ids)
    order = np.argsort(denied | (ids < 0), axis=1, kind="stable")[:, :k]
    kept = np.where(denied, -1, ids)
    return np.take_along_axis(kept, order, 1), np.take_along_axis(scores, order, 1)


def parse_ks(text: str) -> list[int]:
    """Parse the values of -k.

    >>> parse_ks("1,3,5")
    [1, 3, 5]
    """
    try:
        chosen = sorted({int(part) for part in text.replace(",", " ").split()})
    except ValueError:
        chosen = []
    if not chosen or chosen[0] < 1 or chosen[-1] > MAX_K:
        raise DataError(f"-k must be integers from 1 to {MAX_K:,}, such as `-k 1 3 5`. Got {text!r} instead.")
    return chosen
