"""Data sets: reading, writing, generating and finding them by name."""

from .convert import convert_to_mapped
from .cooccurrence import (
    cooccurrence_from_taxonomy,
    cooccurrence_from_texts,
    cooccurrence_from_vocabulary,
    read_cooccurrence,
)
from .dataset import Dataset
from .names import read_names
from .npz import read_npz, write_npz
from .predictions import read_predictions, write_predictions
from .registry import DATASETS, DatasetInfo, Splits, available, find, load, propensity_parameters
from .shards import find_shards, open_shards
from .synthetic import make_library, make_xmc
from .text import Document, Texts, is_text, open_texts, read_texts
from .vocabulary import Vocabulary, read_vocabulary
from .xc import declared_rows, iter_xc, read_label_filter, read_sparse, read_xc, write_xc

__all__ = [
    "DATASETS",
    "Dataset",
    "DatasetInfo",
    "Document",
    "Splits",
    "Texts",
    "Vocabulary",
    "available",
    "convert_to_mapped",
    "cooccurrence_from_taxonomy",
    "cooccurrence_from_texts",
    "cooccurrence_from_vocabulary",
    "declared_rows",
    "find",
    "find_shards",
    "is_text",
    "iter_xc",
    "load",
    "make_library",
    "make_xmc",
    "open_shards",
    "open_texts",
    "propensity_parameters",
    "read_cooccurrence",
    "read_label_filter",
    "read_names",
    "read_npz",
    "read_predictions",
    "read_sparse",
    "read_texts",
    "read_vocabulary",
    "read_xc",
    "write_npz",
    "write_predictions",
    "write_xc",
]
