"""Projection of embeddings to two dimensions, for the label map."""

from __future__ import annotations

import numpy as np
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

Array = np.ndarray

KEPT = 50  # principal components that t-SNE starts from
FEW = 10  # up to this many points, the first two principal components are the map


def flat(points: Array) -> Array:
    """(m, 2) in [0, 1], the positions of (m, r) points by t-SNE, initialized by their principal components.

    The result is deterministic. It uses one thread: with two, other work on the same cores made it seven
    times slower.
    """
    with threadpool_limits(1):
        centred = np.asarray(points, np.float64) - points.mean(axis=0)
        left, lengths, _ = np.linalg.svd(centred, full_matrices=False)
        components = (left * lengths)[:, :KEPT]  # (m, ≤ 50)
        plane = np.zeros((len(points), 2))
        plane[:, : components.shape[1]] = components[:, :2]
        if len(points) > FEW and lengths[0] > 0:
            plane = TSNE(
                perplexity=min(30.0, (len(points) - 1) / 3),
                init=(1e-4 * plane / plane[:, 0].std()).astype(np.float32),
                max_iter=500,
                random_state=0,
            ).fit_transform(components.astype(np.float32))
    low, high = plane.min(axis=0), plane.max(axis=0)
    return 0.5 + (plane - (low + high) / 2) / max(np.max(high - low), np.finfo(np.float32).tiny)
