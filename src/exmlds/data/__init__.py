"""Data sets: reading, writing, making and finding them by name."""

from .cooccurrence import cooccurrence_from_taxonomy, cooccurrence_from_texts, read_cooccurrence
from .dataset import Dataset
from .names import read_names
from .npz import read_npz, write_npz
from .predictions import read_predictions, write_predictions
from .registry import DATASETS, DatasetInfo, Splits, available, find, load, propensity_parameters
from .synthetic import make_library, make_xmc
from .xc import declared_rows, iter_xc, read_label_filter, read_sparse, read_xc, write_xc

__all__ = [
    "DATASETS",
    "Dataset",
    "DatasetInfo",
    "Splits",
    "available",
    "cooccurrence_from_taxonomy",
    "cooccurrence_from_texts",
    "declared_rows",
    "find",
    "iter_xc",
    "load",
    "make_library",
    "make_xmc",
    "propensity_parameters",
    "read_cooccurrence",
    "read_label_filter",
    "read_names",
    "read_npz",
    "read_predictions",
    "read_sparse",
    "read_xc",
    "write_npz",
    "write_predictions",
    "write_xc",
]
