"""Where commands get data, truth and rankings from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import DataError

if TYPE_CHECKING:
    import numpy as np

    from ..contract import XMCEstimator
    from ..data import Dataset


def locate(source: str, split: str) -> Path:
    """A file as it is named, or the train or test file of a registered data set."""
    from .. import data

    path = Path(source)
    if path.exists():
        return path
    if source.lower() in data.DATASETS or source in data.available():
        return data.find(source, split)
    if path.suffix or path.parent != Path("."):
        return path  # reading it says what is wrong with it
    known = ", ".join(data.available()) or "none: set EXMLDS_DATA to the folder that holds them"
    raise DataError(f"{source} is neither a file nor a data set; data sets here: {known}.")


def read(source: str, split: str, labels: Path | None = None) -> Dataset:
    from .. import data

    return data.read_xc(locate(source, split), labels)


def truth_for(model: XMCEstimator, test: Dataset) -> Dataset:
    """The test set, if its columns are the model's."""
    if test.X.shape[1] < model.n_features_in_:
        test.X.resize(test.X.shape[0], model.n_features_in_)  # a file without a header may end early
    if test.Y.shape[1] < len(model.classes_):
        test.Y.resize(test.Y.shape[0], len(model.classes_))
    if test.Y.shape[1] > len(model.classes_):
        raise DataError(f"The data has {test.Y.shape[1]} labels, but the model knows {len(model.classes_)}.")
    return test


def ranked(
    source: Path, test: Dataset, k: int, label_filter: Path | None = None
) -> tuple[np.ndarray, XMCEstimator | None]:
    """(n, k) ids from a model folder or from a file of predictions, and the model if it is one."""
    from .. import data, load

    pairs = None if label_filter is None else data.read_label_filter(label_filter, test.Y.shape)
    if source.is_dir():
        model = load(source)
        test = truth_for(model, test)
        return model.predict_topk(test.X, k, deny=pairs)[0], model
    spare = 0 if pairs is None else int(pairs.getnnz(axis=1).max(initial=0))
    ids, _scores = data.read_predictions(source, k=k + spare, n_labels=test.Y.shape[1])
    if len(ids) != test.Y.shape[0]:
        raise DataError(f"{source} has {len(ids)} rows, but the data has {test.Y.shape[0]}.")
    return (ids if pairs is None else _without(ids, pairs, k)), None


def _without(ids: np.ndarray, pairs: object, k: int) -> np.ndarray:
    import numpy as np

    from ..metrics import Ranking

    denied = Ranking(pairs, ids, ids.shape[1]).hits.astype(bool)
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
