"""Reports of small models."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from exmlds import ExMLDS1
from exmlds.data import Dataset, make_library
from exmlds.report import EvaluationReport, make


class Case(NamedTuple):
    model: Any
    test: Dataset
    report: EvaluationReport


@pytest.fixture(scope="session")
def case_of(fitted: Callable[..., Any]) -> Callable[[Any], Case]:
    books = make_library(600, random_state=0)
    test = books.rows(slice(450, None))

    def made(method: Any) -> Case:
        model = fitted(method, books, slice(450))
        return Case(model, test, make(model, test.X, test.Y, title="Books", date="2025-01-02"))

    return made


@pytest.fixture(scope="session")
def embedded(case_of: Callable[[Any], Case]) -> Case:
    """A model with label embeddings that is fitted quickly."""
    return case_of(ExMLDS1(n_components=16, random_state=0))


@pytest.fixture(scope="session")
def wicked_names() -> list[str]:
    return [
        "<script>alert(1)</script>",
        "</script><img src=x onerror=alert(2)>",
        "<!-- <script>",
        "\"quoted\" & 'single' > $title ${script}",
        "half \ud800 a pair, \u2028 and a line, \x07 a bell, \u202eand back\u202c",
    ]


@pytest.fixture(scope="session")
def wicked(wicked_names: list[str]) -> EvaluationReport:
    """The report of a model whose labels try to break out of the page."""
    rng = np.random.default_rng(0)
    X = np.repeat(np.eye(5), 6, axis=0) + 0.1 * rng.random((30, 5))
    Y = [[wicked_names[i // 6]] for i in range(30)]
    model = ExMLDS1(n_components=4, n_neighbors=3, random_state=0).fit(X, Y)
    wrong = [[wicked_names[(i // 6 + 1) % 5]] for i in range(30)]  # so that there are confused pairs
    return make(model, X, wrong, k=[1], title=wicked_names[1])


@pytest.fixture(scope="session")
def uris(embedded: Case) -> EvaluationReport:
    """The report of a model whose labels are URIs."""
    model = copy.copy(embedded.model)
    model.names_ = np.array([f"http://www.yso.fi/onto/yso/p{12345 + 37 * i}" for i in range(37)], object)
    return make(model, embedded.test.X, embedded.test.Y)
