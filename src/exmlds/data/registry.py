"""The standard data sets by name, with their sizes, propensity parameters and the paper's results.

The environment variable EXMLDS_DATA names the folder that holds them, each in a folder of its own name. Any
other folder there with a train and a test file can be loaded by its name too.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from ..errors import DataError
from .dataset import Dataset
from .npz import is_mapped_npz
from .xc import read_xc

Precision = tuple[float, float, float]


class DatasetInfo(NamedTuple):
    """The published facts about a standard data set."""

    n_train: int
    n_test: int
    n_features: int
    n_labels: int
    A: float = 0.55  # A and B of the inverse propensity 1/p = 1 + C(n_l + B)^−A
    B: float = 1.5
    paper: dict[str, Precision] = {}  # the paper's P@1, P@3, P@5 by method  # noqa: RUF012
    paper_seconds: dict[str, float] = {}  # the paper's training times, on 40 cores  # noqa: RUF012
    source: str = "Extreme Classification Repository"
    licence: str = "not stated"  # The files came without a licence: ask the source before redistribution.
    paper_hidden: dict[str, Precision] = {}  # the same with 80% of the labels hidden  # noqa: RUF012
    folder: str | None = None  # the folder, if it differs from the name


class Splits(NamedTuple):
    """The published train and test split: `train, test = load("bibtex")`."""

    train: Dataset
    test: Dataset


# The sizes are those of the paper's Table 1, and of the Extreme Classification Repository for the large sets.
# The propensity parameters are the repository's. The results are those of the paper's Tables 2, 3 and 4, and
# of its joint-learning table.
DATASETS: dict[str, DatasetInfo] = {
    "bibtex": DatasetInfo(
        *(4_880, 2_515, 1_836, 159),
        paper={
            "ExMLDS1": (63.38, 38.00, 27.64),
            "SLEEC": (65.29, 39.60, 28.63),
            "DXML": (63.69, 37.63, 27.71),
            "LEML": (62.54, 38.41, 28.21),
            "PD-Sparse": (61.29, 35.82, 25.74),
            "PfastreXML": (63.46, 39.22, 29.14),
            "FastXML": (63.42, 39.23, 28.86),
            "One-vs-All": (62.62, 39.09, 28.79),
        },
        paper_seconds={"ExMLDS1": 23, "ExMLDS2": 143.19, "SLEEC": 313},
        paper_hidden={
            "ExMLDS3": (48.51, 28.43, 20.70),
            "SLEEC": (30.5, 14.9, 9.81),
            "LEML": (35.98, 21.02, 15.50),
            "LEML-IMC": (41.23, 25.25, 18.56),
        },
        source="Mulan, its fixed split; binary bag of words",
    ),
    "delicious": DatasetInfo(
        *(12_920, 3_185, 500, 983),
        paper={
            "ExMLDS1": (67.94, 61.35, 56.30),
            "SLEEC": (68.10, 61.78, 57.34),
            "DXML": (67.57, 61.15, 56.7),
            "LEML": (65.67, 60.55, 56.08),
            "PD-Sparse": (51.82, 44.18, 38.95),
            "PfastreXML": (67.13, 62.33, 58.62),
            "FastXML": (69.61, 64.12, 59.27),
            "One-vs-All": (65.01, 58.88, 53.28),
        },
        paper_seconds={"ExMLDS1": 259, "ExMLDS2": 781.94, "SLEEC": 1_351},
        source="Mulan, its fixed split; binary bag of words",
    ),
    "mediamill": DatasetInfo(
        *(30_993, 12_914, 120, 101),
        paper={
            "ExMLDS1": (87.49, 72.62, 58.46),
            "SLEEC": (87.37, 72.60, 58.39),
            "DXML": (88.71, 71.65, 56.81),
            "LEML": (84.01, 67.20, 52.80),
            "PD-Sparse": (81.86, 62.52, 45.11),
            "PfastreXML": (83.98, 67.37, 53.02),
            "FastXML": (84.22, 67.33, 53.04),
            "One-vs-All": (83.57, 65.60, 48.57),
        },
        paper_seconds={"ExMLDS1": 1_200, "ExMLDS2": 12_000, "SLEEC": 8_912},
        source="fixed split of unstated origin; dense features",
    ),
    "rcv1": DatasetInfo(
        *(3_000, 3_000, 47_236, 101),
        paper_hidden={
            "ExMLDS3": (81.67, 52.82, 37.74),
            "SLEEC": (41.8, 17.48, 10.63),
            "LEML": (64.83, 42.56, 31.68),
            "LEML-IMC": (73.68, 48.56, 34.82),
        },
        folder="rcv1subset1",
        source="rcv1subset1 of unstated origin; cosine-normalized tf-idf",
    ),
    "eurlex-4k": DatasetInfo(
        *(15_539, 3_809, 5_000, 3_993),
        paper={
            "ExMLDS1": (77.55, 64.18, 52.51),
            "SLEEC": (79.52, 64.27, 52.32),
            "DXML": (77.13, 64.21, 52.31),
            "LEML": (63.40, 50.35, 41.28),
            "PD-Sparse": (76.43, 60.37, 49.72),
            "PfastreXML": (75.45, 62.70, 52.51),
            "FastXML": (71.36, 59.90, 50.39),
            "One-vs-All": (79.89, 66.01, 53.80),
            "DiSMEC": (82.40, 68.50, 57.70),
        },
        paper_seconds={"ExMLDS1": 580.9, "ExMLDS2": 880.64, "SLEEC": 4_660},
        paper_hidden={
            "ExMLDS3": (60.28, 44.87, 35.31),
            "SLEEC": (51.4, 37.64, 29.62),
            "LEML": (26.22, 22.94, 19.02),
            "LEML-IMC": (39.24, 32.66, 26.54),
        },
        source="EURLex-4K, official split; unnormalized tf-idf",
    ),
    "wiki10-31k": DatasetInfo(14_146, 6_616, 101_938, 30_938, paper={"ExMLDS4": (86.82, 74.30, 63.68)}),
    "amazoncat-13k": DatasetInfo(
        1_186_239, 306_782, 203_882, 13_330, paper={"ExMLDS4": (93.05, 79.18, 64.54)}
    ),
    "delicious-200k": DatasetInfo(
        *(196_606, 100_095, 782_585, 205_443),
        paper={
            "ExMLDS1": (46.07, 41.15, 38.57),
            "ExMLDS4": (47.70, 41.22, 37.98),
            "SLEEC": (47.50, 42.00, 39.20),
            "DXML": (44.13, 39.88, 37.20),
            "LEML": (40.73, 37.71, 35.84),
            "PD-Sparse": (34.37, 29.48, 27.04),
            "PfastreXML": (41.72, 37.83, 35.58),
            "FastXML": (43.07, 38.66, 36.19),
            "DiSMEC": (45.50, 38.70, 35.50),
        },
        paper_seconds={"ExMLDS1": 1_937, "ExMLDS2": 13_000, "SLEEC": 10_000},
    ),
    "wikilshtc-325k": DatasetInfo(
        1_778_351, 587_084, 1_617_899, 325_056, 0.5, 0.4, paper={"ExMLDS4": (62.15, 39.58, 29.10)}
    ),
    "wikipedia-500k": DatasetInfo(
        1_813_391, 783_743, 2_381_304, 501_070, 0.5, 0.4, paper={"ExMLDS4": (62.27, 41.43, 31.42)}
    ),
    "amazon-670k": DatasetInfo(
        490_449, 153_025, 135_909, 670_091, 0.6, 2.6, paper={"ExMLDS4": (41.47, 36.35, 32.43)}
    ),
}

_FILES = {
    "train": ("train.txt", "train.txt.gz", "trn_X_Xf.txt", "trn_X_Xf.txt.gz", "X.trn.npz"),
    "test": ("test.txt", "test.txt.gz", "tst_X_Xf.txt", "tst_X_Xf.txt.gz", "X.tst.npz"),
}


def load(name: str) -> Splits:
    """Load a data set by its name: `train, test = load("eurlex-4k")`."""
    return Splits(read_xc(find(name, "train")), read_xc(find(name, "test")))


def find(name: str, split: str) -> Path:
    """The path of a data set's "train" or "test" file."""
    root = os.environ.get("EXMLDS_DATA")
    info = DATASETS.get(name.lower())
    folder = (info.folder or name.lower()) if info else name
    put = (
        f"put train.txt.gz and test.txt.gz into $EXMLDS_DATA/{folder}/ "
        "(XC text, plain or gzipped; split files and npz pairs work too)"
    )
    if root is None:
        raise DataError(f"Data set {name!r}: EXMLDS_DATA is not set. Set it to a folder and {put}.")
    present = [path for name in _FILES[split] if (path := Path(root) / folder / name).is_file()]
    if present:  # the last one is an .npz file; it was converted from another one where it is mapped
        return present[-1] if is_mapped_npz(present[-1]) else present[0]
    if info is None:
        known = ", ".join(sorted({*DATASETS, *available()}))
        raise DataError(f"Data set {name!r} is unknown and not under {root}. Known data sets: {known}.")
    raise DataError(f"Data set {name!r} is not under {root}; {put}.")


def available() -> list[str]:
    """The names of the data sets that exist under EXMLDS_DATA."""
    root = os.environ.get("EXMLDS_DATA")
    if root is None or not Path(root).is_dir():
        return []
    return sorted(
        folder.name
        for folder in Path(root).iterdir()
        if any((folder / file).is_file() for file in _FILES["train"])
    )


def propensity_parameters(name: str) -> tuple[float, float]:
    """A and B of a data set's propensities; 0.55 and 1.5 if the repository has no others."""
    info = DATASETS.get(name, DatasetInfo(0, 0, 0, 0))
    return info.A, info.B
