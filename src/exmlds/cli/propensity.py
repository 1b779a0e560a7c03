"""The options of propensity-scored metrics, and the weights of labels that they need."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from ..errors import DataError
from .arguments import complete_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

TrainFile = Annotated[
    str | None,
    Option(
        "--train",
        help="The training file, for propensity-scored metrics; predictions need it, and a model has the "
        "counts of its labels itself.",
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


def training_counts(
    rankers: Sequence[Any], train: str | None, n_labels: int
) -> tuple[np.ndarray | None, int]:
    """Training rows of each label and of all, from the training file or from the first model, if any."""
    import numpy as np

    from ..data import read_xc
    from .sources import locate, refuse_texts

    if train is not None:
        path = locate(train, "train")
        refuse_texts(path, "--train")
        Y = read_xc(path, n_labels=n_labels).Y
        return np.bincount(Y.indices, minlength=n_labels), Y.shape[0]
    for ranker in rankers:
        if not isinstance(ranker, Path):
            unseen = n_labels - len(ranker.label_counts_)
            return np.pad(ranker.label_counts_, (0, unseen)), ranker.n_samples_fit_
    return None, 0
