"""The logits of the stacker on a graphics card."""

from __future__ import annotations

import numpy as np

from .device import current

Array = np.ndarray


def weigh_pairs(
    votes: Array,
    margins: Array,
    counts: Array,
    second_votes: Array,
    lifts: Array,
    similarities: Array,
    matches: Array,
    match_lifts: Array,
    limits: Array,
    weights: Array,
    bias: float,
    logits: Array,
) -> None:
    """See the twin in reference/stacking.py."""
    if not logits.size:
        return
    with current().working() as device:
        own = [device.copy(part) for part in (votes, margins, counts)]
        for part in (second_votes, lifts, similarities):
            own += [device.copy(part), np.int32(len(part) > 0)]
        own += [device.copy(matches), device.copy(match_lifts), np.int32(len(matches) > 0)]
        found = device.empty(logits.shape, np.float64)
        settings = device.copy(limits), device.copy(weights), np.float64(bias), np.int32(logits.shape[1])
        device.launch("stacking", "weigh_pairs", len(logits), *own, *settings, found)
        device.to_host(found, logits)
