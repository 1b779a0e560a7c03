"""What can go wrong, as a tree:

ExmldsError
├── DataError      (a ValueError) a file or a matrix is not what it should be
└── ModelError     (a ValueError) a saved model is damaged, foreign or newer
DataWarning        (a UserWarning) the input was usable, after a repair that is named
"""


class ExmldsError(Exception):
    """The root of every error that this package raises on purpose."""


class DataError(ExmldsError, ValueError):
    """Input that cannot be used; the message says what, where and what to do."""


class ModelError(ExmldsError, ValueError):
    """A model folder that cannot be read or written."""


class DataWarning(UserWarning):
    """Input that was usable after a repair; the message names the repair."""
