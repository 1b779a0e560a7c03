"""AdaGrad steps of joint learning, feature by feature."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def adagrad_features(
    indptr: Array,
    rows: Array,
    values: Array,
    gradients: Array,
    start: int,
    stop: int,
    rate: float,
    V: Array,
    squares: Array,
) -> None:
    """Take an AdaGrad step on the features from `start` to `stop`: g = Xᵀ dZ, G += g², V −= rate g / √G.

    indptr, rows, values : Xᵀ as csr float32: for each feature its rows of the batch and their values
    gradients : (b, r) float32, dZ
    V, squares : (d, r) float32, the map and G, updated in place; features without a row are not changed
    """
    for feature in range(start, stop):
        stored = slice(indptr[feature], indptr[feature + 1])
        if stored.start == stored.stop:
            continue
        g = (values[stored, None] * gradients[rows[stored]]).sum(axis=0)
        squares[feature] += g**2
        V[feature] -= rate * np.divide(
            g, np.sqrt(squares[feature]), out=np.zeros_like(g), where=squares[feature] > 0
        )
