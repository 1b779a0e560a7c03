"""Errors and warnings of the package:

ExmldsError
├── DataError      (a ValueError) a file or a matrix is not valid input
└── ModelError     (a ValueError) a saved model is damaged, not ours, or from a newer version
DataWarning        (a UserWarning) the input was usable after a repair, which the message names
"""


class ExmldsError(Exception):
    """Base class of the errors that this package raises on purpose."""


class DataError(ExmldsError, ValueError):
    """Input cannot be used; the message says what is wrong, where, and what to do."""


class ModelError(ExmldsError, ValueError):
    """A model folder cannot be read or written."""


class DataWarning(UserWarning):
    """Input was usable after a repair; the message names the repair."""
