"""The logits of the stacker."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def weigh_evidence(evidence: Array, weights: Array, bias: float, logits: Array) -> None:
    """Write the weighted sum of the evidence on each label, plus the bias.

    evidence : (m, f) float32;  weights : (f,) float64;  logits : (m,) float64, written
    """
    logits[:] = np.asarray(evidence, np.float64) @ weights + bias
