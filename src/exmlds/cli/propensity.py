"""The options of propensity-scored metrics, and the weights of labels that they need."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Option

from ..errors import DataError, DataWarning
from .arguments import complete_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from scipy.sparse import csr_matrix

    from ..data import Dataset
    from .texts import TextOptions

TrainFile = Annotated[
    str | None,
    Option(
        "--train",
        help="The training data, for propensity-scored metrics: numbers or texts, as DATA is, read with the "
        "same options; predictions need it, and without it, the labels count that a model was trained on.",
        autocompletion=complete_data,
    ),
]
Propensity = Annotated[
    str | None,
    Option(
        "--propensity",
        metavar="A,B",
        help="The parameters of the propensity model.  [default: the data set's, or 0.55,1.5]",
    ),
]


def parse_propensity(text: str | None, data: str) -> tuple[float, float]:
    """A and B of the propensity model, as given or as usual for the data set."""
    from ..data import propensity_parameters

    if text is None:
        return propensity_parameters(data.lower())
    try:
        A, B = (float(part) for part in text.split(","))
    except ValueError:
        raise DataError(f"--propensity takes A,B such as 0.55,1.5. Got {text!r} instead.") from None
    if not (0 < A < math.inf and 0 <= B < math.inf):
        raise DataError(f"--propensity takes a positive A and a B of 0 or more. Got {text!r} instead.")
    return A, B


class TrainingCounts(NamedTuple):
    """The numbers of training rows that propensities are estimated from.

    of_labels : (L,) rows of each label; of texts, the labels that occur in training only come last
    n_rows : rows in all
    source : a phrase that says where the numbers come from
    """

    of_labels: np.ndarray
    n_rows: int
    source: str

    def widened(self, Y: csr_matrix) -> csr_matrix:
        """The true labels with columns for the labels that occur in training only."""
        wide = Y.copy()
        wide.resize(Y.shape[0], len(self.of_labels))
        return wide


def training_counts(
    rankers: Sequence[Any], train: str | None, test: Dataset, options: TextOptions
) -> TrainingCounts | None:
    """The counts of the training data or, without it, of the first model, if any."""
    import numpy as np

    n_labels = test.Y.shape[1]
    if train is not None:
        return _counts_of_data(train, test, options)
    models = [ranker for ranker in rankers if not isinstance(ranker, Path)]
    if not models:
        return None
    first, *others = models
    if not all(
        np.array_equal(first.label_counts_, other.label_counts_)
        and first.n_samples_fit_ == other.n_samples_fit_
        for other in others
    ):
        warnings.warn(
            "The models were trained on different rows or labels, and the propensities of PSP come from the "
            "first one, so that PSP depends on their order; --train FILE names the training labels to use.",
            DataWarning,
            stacklevel=2,
        )
    counts = np.pad(first.label_counts_, (0, n_labels - len(first.label_counts_)))
    source = f"the training labels of the {'first ' if others else ''}model"
    return TrainingCounts(counts, first.n_samples_fit_, source)


def _counts_of_data(train: str, test: Dataset, options: TextOptions) -> TrainingCounts:
    """The counts of the labels in a file or folder; those of texts are matched by name."""
    import numpy as np

    from ..data import read_xc
    from .sources import display_name, locate
    from .texts import opened

    path, n_labels = locate(train, "train"), test.Y.shape[1]
    are_texts = isinstance(test.X, list)
    if path.exists() and options.holds_texts(path) != are_texts:
        kinds = ("texts", "numbers") if are_texts else ("numbers", "texts")
        raise DataError(f"DATA holds {kinds[0]}, but --train {train} holds {kinds[1]}.")
    source = f"the labels of {display_name(train)}"
    if not are_texts:
        Y = read_xc(path, n_labels=n_labels).Y
        return TrainingCounts(np.bincount(Y.indices, minlength=n_labels), Y.shape[0], source)
    counts: dict[str, int] = dict.fromkeys(test.label_names or [], 0)
    n_rows = 0
    for document in opened(path, options):
        n_rows += 1
        for label in document.labels:
            counts[label] = counts.get(label, 0) + 1
    of_labels = np.array([*counts.values()])
    if not of_labels[np.unique(test.Y.indices)].any():
        raise DataError(f"--train {train} has none of the labels of DATA; is it the data of the same task?")
    return TrainingCounts(of_labels, n_rows, source)
