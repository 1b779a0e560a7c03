"""Input validation: parameters, targets, arrays and observed cells."""
