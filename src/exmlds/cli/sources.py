"""Where commands get data, truth and rankings from."""

from __future__ import annotations

from functools import cache
from io import BufferedReader
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ..errors import DataError

if TYPE_CHECKING:
    import numpy as np

    from ..base import XMCEstimator
    from ..data import Dataset
    from .texts import TextOptions


def locate(source: str, split: str) -> Path:
    """A file as it is named, standard input for `-`, or the train or test file of a registered data set."""
    from .. import data

    if source == "-":
        return _kept_input()
    path = Path(source)
    if path.exists():
        return path
    if source.lower() in data.DATASETS or source in data.available():
        return data.find(source, split)
    if path.suffix or path.parent != Path("."):
        return path  # reading it says what is wrong with it
    known = ", ".join(data.available()) or "none: set EXMLDS_DATA to the folder that holds them"
    raise DataError(f"{source} is neither a file nor a data set; data sets here: {known}.")


def standard_input() -> IO[bytes]:
    import sys

    if sys.stdin is None:
        raise DataError("Standard input is closed; name a file, or send the data by a pipe.")
    return sys.stdin.buffer


def is_packed_input() -> bool:
    """Whether what comes in by a pipe is gzipped, or Parquet, and has no lines to be answered one by one."""
    start = standard_input()
    return isinstance(start, BufferedReader) and start.peek(4).startswith((b"\x1f\x8b", b"PAR1"))


def as_named(message: str) -> str:
    """A message, with standard input by its name and not by that of the file that it is kept in."""
    kept = str(_kept_input()) if _kept_input.cache_info().currsize else ""
    return message.replace(kept, "standard input") if kept else message


@cache
def _kept_input() -> Path:
    """What comes in by a pipe, once, kept in a file while the command runs: formats are told by content."""
    import atexit
    import shutil
    import tempfile

    pipe = standard_input()
    folder = Path(tempfile.mkdtemp(prefix="exmlds-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "standard-input"
    with path.open("wb") as file:
        shutil.copyfileobj(pipe, file)
    return path


def named(source: str) -> str:
    """Data as a title names it."""
    return "standard input" if source == "-" else Path(source).name


def check_output(output: Path | None, *inputs: Path) -> None:
    """Refuse to write over what is being read, or into a model."""
    if output is None:
        return
    if any(output.exists() and path.exists() and output.samefile(path) for path in inputs):
        raise DataError(f"{output} is being read; write to another file.")
    if (output.parent / "manifest.json").exists():
        raise DataError(f"{output.parent} is a model folder; write to another folder.")


def refuse_texts(path: Path, who: str = "this command") -> None:
    from ..data import is_text

    if path.exists() and is_text(path):
        raise DataError(f"{path} holds texts, which {who} does not take; `exmlds train` does.")


def read(
    source: str, split: str, labels: Path | None = None, *, model: XMCEstimator | None = None
) -> Dataset:
    """A data set; with a model, one that has the model's features and labels."""
    from .. import data

    path = locate(source, split)
    if model is None:
        refuse_texts(path)
        return data.read_xc(path, labels)
    dataset = data.read_xc(path, labels, n_features=model.n_features_in_, n_labels=len(model.classes_))
    named = model.classes_.dtype == object
    if named and dataset.label_names and dataset.label_names != model.classes_.tolist():
        raise DataError(f"The label names beside {path} are not those that the model was trained with.")
    return dataset


def read_for(
    source: str, labels: Path | None, *rankers: Path, asked: TextOptions | None = None
) -> tuple[Dataset, list[XMCEstimator | Path]]:
    """The test set, and each ranker as a model or as the file of predictions that it is.

    For models of texts, the rows X are texts, and labels that the models do not know come after theirs.
    """
    from .. import load
    from ..data import Dataset
    from .texts import TextOptions, check_kind, takes_texts
    from .texts import opened as open_texts

    asked = asked or TextOptions()
    opened: list[XMCEstimator | Path] = [load(path) if path.is_dir() else path for path in rankers]
    models = [model for model in opened if not isinstance(model, Path)]
    for model in models[1:]:
        if len(model.classes_) != len(models[0].classes_):
            counts = " and ".join(str(len(m.classes_)) for m in models)
            raise DataError(f"The models know {counts} labels; they were trained on different data.")
    if not models:
        test = read(source, "test", labels)
        asked.check_numbers(source)
        return _with_labels(test, source), opened
    path = locate(source, "test")
    for model, name in zip(models, (name for name in rankers if name.is_dir())):
        check_kind(model, name, path, asked)
    if not takes_texts(models[0]):
        return _with_labels(read(source, "test", labels, model=models[0]), source), opened
    if labels is not None:
        raise DataError(f"--labels is for numbers; the labels of {path} stand in it.")
    if any(model.classes_.tolist() != models[0].classes_.tolist() for model in models[1:]):
        raise DataError("The models know different labels; they were trained on different data.")
    documents = list(open_texts(path, asked))
    Y = models[0].label_matrix([document.labels for document in documents])
    test = Dataset([document.text for document in documents], Y, None, None)
    return _with_labels(test, source), opened


def _with_labels(test: Dataset, source: str) -> Dataset:
    if not test.Y.nnz:
        raise DataError(f"{named(source)}: no row has a label, so that there is nothing to compare with.")
    return test


def one_row(
    model: XMCEstimator, name: Path, data: str | None, text: str | None, row: int, asked: TextOptions
) -> tuple[Any, list[str] | None]:
    """A text of the command line or a row of a file, as the model takes it, and the names of the features."""
    from .. import data as io
    from .texts import check_kind, opened, takes_texts

    if (data is None) == (text is None):
        raise DataError("Name a file or give a --text, one of the two.")
    if text is not None:
        if not takes_texts(model):
            raise DataError(f"{name} was trained on features, not on texts.")
        return [text], None
    path = locate(str(data), "test")
    check_kind(model, name, path, asked)
    if takes_texts(model):
        for number, document in enumerate(opened(path, asked, labelled=False)):
            if number == row:
                return [document.text], None
        raise DataError(f"{path} has no row {row}; the first is 0.")
    dataset = io.read_xc(path, n_features=model.n_features_in_)
    if row >= dataset.X.shape[0]:
        raise DataError(f"{path} has {dataset.X.shape[0]} rows; the first is 0. Got {row}.")
    return dataset.X[row], dataset.feature_names


def ranked(
    ranker: XMCEstimator | Path, test: Dataset, k: int, label_filter: Path | None = None
) -> np.ndarray:
    """(n, k) ids by a model or from a file of predictions."""
    from .. import data

    pairs = None if label_filter is None else data.read_label_filter(label_filter, test.Y.shape)
    if not isinstance(ranker, Path):
        known = None if pairs is None else pairs[:, : len(ranker.classes_)]
        return ranker.predict_topk(test.X, k, deny=known)[0]
    spare = 0 if pairs is None else int(pairs.getnnz(axis=1).max(initial=0))
    ids, _ = data.read_predictions(
        ranker, k=k + spare, n_labels=test.Y.shape[1], label_names=test.label_names
    )
    if len(ids) != test.Y.shape[0]:
        raise DataError(
            f"{ranker} has {len(ids)} rows, but the data has {test.Y.shape[0]}; "
            "an empty last row needs a blank on its line."
        )
    return ids if pairs is None else _drop_self(ids, pairs, k)


def _drop_self(ids: np.ndarray, pairs: Any, k: int) -> np.ndarray:
    import numpy as np

    from ..validation.observed import contains

    denied = contains(pairs, ids)
    order = np.argsort(denied | (ids < 0), axis=1, kind="stable")[:, :k]
    kept = np.where(denied, -1, ids)
    return np.take_along_axis(kept, order, 1)


def places(text: str) -> list[int]:
    """
    >>> places("1,3,5")
    [1, 3, 5]
    """
    try:
        chosen = sorted({int(part) for part in text.replace(",", " ").split()})
    except ValueError:
        chosen = []
    if not chosen or chosen[0] < 1:
        raise DataError(f"-k takes whole numbers from 1 on, such as `-k 1 3 5`. Got {text!r} instead.")
    return chosen
