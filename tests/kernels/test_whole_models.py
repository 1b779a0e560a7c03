"""Whole models, on whichever engine runs, use every kernel: so the pass on the twins leaves none out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exmlds import (
    DXML,
    SLEEC,
    WSABIE,
    ExMLDS,
    ExMLDS1,
    ExMLDS2,
    ExMLDS3,
    ExMLDS4,
    FeatureNeighbors,
    PDSparse,
    PfastreXML,
    PPDSparse,
    TextClassifier,
    kernels,
    metrics,
    selection,
)
from exmlds.data import Vocabulary, make_xmc, read_xc, write_xc

PLAIN: dict[str, Any] = {"features": "l2", "temperature": 0.05, "n_components": 5, "random_state": 0}


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the kernels that were called."""
    names: set[str] = set()

    def watched(name: str, operation: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            names.add(name)
            return operation(*given)

        return call

    for name in kernels.OPERATIONS:
        monkeypatch.setattr(kernels.DEFAULT, name, watched(name, getattr(kernels.DEFAULT, name)))
    return names


@pytest.mark.twins
def test_every_kernel_is_used_by_a_model(
    used: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exmlds.voting.memory.CELLS_FROM", 60)
    monkeypatch.setattr("exmlds.stages.sppmi.DENSE_FROM", 0.5)  # products of both kinds
    made = make_xmc(90, 60, 12, random_state=0)
    write_xc(tmp_path / "train.txt", made)
    data = read_xc(tmp_path / "train.txt")
    train, held = selection.label_split(data.Y, 0.2, random_state=0)
    for method in (
        FeatureNeighbors(random_state=0),
        ExMLDS1(**PLAIN),
        ExMLDS1(**PLAIN, n_neighbors_fit=3),
        ExMLDS2(**PLAIN, n_epochs=2),
        ExMLDS3(**PLAIN),
        ExMLDS4(**PLAIN, n_epochs=2, n_parts=2),
        ExMLDS4(**PLAIN, n_epochs=2, negatives="dissimilar"),
        SLEEC(**PLAIN),
        WSABIE(n_components=5, random_state=0),
        DXML(n_components=5, n_hidden=20, n_walks=2, n_epochs=5, random_state=0),
        PPDSparse(random_state=0),
        PDSparse(random_state=0),
        PfastreXML(n_trees=3, random_state=0),
        ExMLDS(candidates="joint", cost=1.0, shortlist=8, random_state=0),
    ):
        model = method.fit(data.X[train], data.Y[train])
        scores = model.decision_function(data.X[held])
        assert metrics.precision_at_k(data.Y[held], scores, 1) > 0.3, method
    growing = ExMLDS(cost=1.0, shortlist=8, random_state=0, growable=True).fit(data.X[train], data.Y[train])
    assert growing.partial_fit(data.X[held], data.Y[held]).n_samples_fit_ == 90
    matched = ExMLDS(cost=1.0, shortlist=8, random_state=0)
    matched.fit(data.X[train], data.Y[train], name_matches=0.5 * data.Y[train])
    assert matched.match_lifts_ is not None
    texts, names = ["a cat", "dogs"], Vocabulary.of_names({"1": "cats", "2": "dogs"}, "en")
    named = TextClassifier(vocabulary=names).fit(texts, [["1"], ["2"]])
    assert named.predict_labels(["a cat"], k=1) == [["1"]]
    assert used == set(kernels.OPERATIONS)


class OnTheTwins(ExMLDS4):
    """The same method with the other engine: an estimator brings its own."""

    _engine = kernels.Engine("reference")


@pytest.mark.skipif(kernels.DEFAULT.name != "jit", reason="compares the two engines")
def test_two_engines_run_side_by_side(used: set[str]) -> None:
    data = make_xmc(90, 60, 12, random_state=0)
    options: dict[str, Any] = {**PLAIN, "n_epochs": 2, "n_learners": 1, "threshold": 0.0}
    ids, scores = ExMLDS4(**options).fit(data.X, data.Y).predict_topk(data.X, 3)
    assert used >= {"train_batches", "search_rows", "vote"}
    used.clear()
    twin_ids, twin_scores = OnTheTwins(**options).fit(data.X, data.Y).predict_topk(data.X, 3)
    assert not used & {"train_batches", "search_rows", "vote"}  # of the compiled engine
    np.testing.assert_allclose(twin_scores, scores, atol=1e-4)
    assert np.mean(twin_ids == ids) > 0.95
