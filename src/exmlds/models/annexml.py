"""AnnexML (Tagami, 2017): joint learning with its own settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from .exmlds4 import ExMLDS4


@dataclass(kw_only=True, eq=False, repr=False)
class AnnexML(ExMLDS4):
    """Train a linear map end to end by the softmax loss, in parts of 6,000 rows or more, with 15 learners.

    The settings are those of the published system: the context of a row is the 10 rows whose labels overlap
    most with its own, an epoch takes each row with each row of its context, and the 10 nearest rows of the
    likeliest part vote.

    Parameters
    ----------
    n_epochs : passes over all pairs of a row and a row of its context
    n_components, n_neighbors, n_neighbors_fit, positives, negatives, loss, similarity, gamma, margin,
        n_negative, learning_rate, batch_size, storage, n_learners, partition, n_rounds, n_parts,
        n_parts_probed, features, metric, vote, temperature, index : as in `ExMLDS4`

    The other parameters are those of every method, `XMCEstimator`.

    It differs from the released code as `ExMLDS4` does: V is updated once a batch, the other rows of a batch
    are the negatives, and the gate starts from k-means. A pair has up to 511 negatives in place of 10, and
    3 passes over all pairs predict better than the published 10.

    Examples
    --------
    >>> from exmlds import AnnexML
    >>> from exmlds.data import make_library
    >>> X, Y, names, _ = make_library(500, random_state=0)
    >>> model = AnnexML(n_learners=3, random_state=0).fit(X, Y, label_names=names)
    >>> model.predict_labels(X[1:2], k=2)
    [['ancient greece', 'evolution']]
    """

    _space: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "n_epochs": (3, 1, 5),
        "n_components": (50, 100),
        "n_learners": (15, 5),
    }

    n_components: int = 50
    n_neighbors: int = 10
    n_learners: int = 15
    n_parts: str | int = "paper"
    positives: str = "overlap"
    n_epochs: str | int = 3
    features: str = "l2"
    vote: str = "uniform"
    temperature: str | float = 1.0

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The settings of the published system, which are the defaults, but for the passes."""
        return cls(**changes)

    def _paths(self) -> list[dict[str, Any]]:
        # An epoch of joint learning takes one row of the context of each row.
        return [{"n_epochs": self.n_neighbors_fit * path["n_epochs"]} for path in super()._paths()]
