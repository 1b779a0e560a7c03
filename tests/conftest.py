"""Fixtures: small data made here, and the real data sets where they are."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import hypothesis
import numpy as np
import pytest

from exmlds import kernels
from exmlds.data import Dataset, make_library

# No test depends on time (the first call of a kernel compiles it), and CI runs the same examples every time.
hypothesis.settings.register_profile("here", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("here")

DATA = Path(os.environ["EXMLDS_DATA"]) if "EXMLDS_DATA" in os.environ else None


@pytest.fixture(scope="session")
def library() -> Dataset:
    return make_library(400, random_state=0)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of the benchmark data; tests that use it are marked `data`."""
    if DATA is None or not DATA.is_dir():
        pytest.skip("EXMLDS_DATA does not name a folder with the benchmark data")
    return DATA


@pytest.fixture(scope="session")
def eurlex_text(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """EURLex-4K's training file, unpacked."""
    path = tmp_path_factory.mktemp("eurlex") / "train.txt"
    with gzip.open(real_data / "eurlex-4k" / "train.txt.gz") as packed, path.open("wb") as file:
        shutil.copyfileobj(packed, file)
    return path


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


# What takes minutes in plain Python: skip-grams and classifiers of whole models, and what only calls others.
SLOW_ON_TWINS = (
    "ExMLDS2",
    "exmlds2",
    "[ExMLDS]",
    "ExMLDS()",
    "models.exmlds]",
    "models.text]",
    "models/test_exmlds.py",
    "models/test_explain.py",
    "models/test_text.py",
    "tests/cli/",
    "tests/test_examples.py",
    "tests/test_newcomer.py",
    "tests/test_report.py",
    "_in_the_",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if kernels.DEFAULT.name != "reference":
        return
    skip = pytest.mark.skip(reason="takes minutes on the plain twins of the kernels")
    for item in items:
        if any(name in item.nodeid for name in SLOW_ON_TWINS):
            item.add_marker(skip)
