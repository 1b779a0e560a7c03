"""Shortlist, re-rank, stack and calibrate: what `ExMLDS` does with the labels that neighbours propose."""
