"""Gradients of rows, added up feature by feature."""

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
    sums: Array,
) -> None:
    """A step of AdaGrad on the features from `start` to `stop`: g = Xᵀ dZ, G += g², V −= rate g / √G.

    indptr, rows, values : Xᵀ as csr: for each feature its rows of the batch and their values, float32
    gradients : (b, r) float32, dZ
    V, sums : (d, r) float32, the map and G, in place; features without a row stay as they are
    """
    for feature in range(start, stop):
        mine = slice(indptr[feature], indptr[feature + 1])
        if mine.start == mine.stop:
            continue
        g = (values[mine, None] * gradients[rows[mine]]).sum(axis=0)
        sums[feature] += g**2
        V[feature] -= rate * np.divide(
            g, np.sqrt(sums[feature]), out=np.zeros_like(g), where=sums[feature] > 0
        )
