"""Fixtures: small data made here, models fitted once, and the real data sets where they are."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import joblib
import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.base import clone

from exmlds import XMCEstimator
from exmlds.data import Dataset, make_library

# No test depends on time (the first call of a kernel compiles it), and CI runs the same examples every time.
hypothesis.settings.register_profile("here", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("here")

DATA = Path(os.environ["EXMLDS_DATA"]) if "EXMLDS_DATA" in os.environ else None


@pytest.fixture(scope="session")
def library() -> Dataset:
    return make_library(400, random_state=0)


def look_at_matrices(value: Any) -> None:
    """Sparse matrices note whether they are sorted when they are first asked, which is no change."""
    if issparse(value):
        _ = value.has_canonical_format, value.has_sorted_indices
    elif isinstance(value, XMCEstimator):
        look_at_matrices(list(vars(value).values()))
    elif isinstance(value, (list, tuple)):
        for part in value:
            look_at_matrices(part)


@pytest.fixture(scope="session")
def fitted() -> Iterator[Callable[..., Any]]:
    """`fitted(method, data, rows)`: a model fitted on these rows, once for all tests.

    The names of labels are given where the data have them. Tests leave the model as it is; one that changes
    it takes a deep copy. At the end it is seen whether they did.
    """
    models: dict[Any, tuple[Any, str, Dataset]] = {}  # with the data, whose id is then no other's

    def fit(method: Any, data: Dataset, rows: slice = slice(None)) -> Any:
        settings = joblib.hash(method.get_params())
        key = (type(method), settings, id(data), rows.start, rows.stop, rows.step)
        if key not in models:
            model = clone(method).fit(data.X[rows], data.Y[rows], label_names=data.label_names)
            look_at_matrices(model)
            models[key] = (model, joblib.hash(vars(model)), data)
        return models[key][0]

    yield fit
    for model, before, _ in models.values():
        assert joblib.hash(vars(model)) == before, f"a test has changed {model}"


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
