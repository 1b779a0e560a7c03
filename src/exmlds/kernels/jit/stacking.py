"""The logits of the stacker."""

from .compiler import kernel


@kernel
def weigh_evidence(evidence, weights, bias, logits):
    """See the twin in reference/stacking.py."""
    for i in range(len(evidence)):
        total = bias
        for j in range(len(weights)):
            total += evidence[i, j] * weights[j]
        logits[i] = total
