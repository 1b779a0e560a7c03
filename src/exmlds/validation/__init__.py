"""Checks of input: parameters, targets, arrays and observed cells."""
