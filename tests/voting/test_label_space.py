"""Embeddings of rows and labels as features: `transform` and its names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from exmlds import ExMLDS, ExMLDS1, ExMLDS3, ExMLDS4, TextClassifier
from exmlds.data import Dataset
from exmlds.stages import quantize
from exmlds.validation.arrays import unit_rows


@pytest.mark.parametrize(
    ("method", "width"),
    [
        (ExMLDS1(n_components=20, random_state=0), 20),
        (ExMLDS3(n_components=20, n_parts=3, random_state=0), 20),
        (ExMLDS4(n_components=10, n_learners=2, random_state=0), 20),
        (ExMLDS(candidates="joint", loss="none", random_state=0), 100),
    ],
    ids=["exmlds1", "parts", "learners", "exmlds"],
)
def test_transform_gives_embeddings_with_names(library: Dataset, method: Any, width: int) -> None:
    model = method.fit(library.X[:300], library.Y[:300])
    Z = model.transform(library.X[300:])
    assert Z.shape == (100, width)
    assert Z.dtype == np.float32
    names = model.get_feature_names_out()
    assert len(names) == len(set(names)) == width
    assert names[0] == f"{type(method).__name__.lower()}0"


def test_training_rows_are_where_the_index_has_them(library: Dataset) -> None:
    model = ExMLDS1(n_components=20, features="l2", random_state=0).fit(library.X, library.Y)
    (part,) = model.learners_[0].parts
    indexed = quantize.unpack(part.row_index.segments[0].rows)
    np.testing.assert_allclose(unit_rows(model.transform(library.X[part.rows])), indexed, atol=1e-5)


def test_embeddings_of_texts_and_in_a_pipeline() -> None:
    texts = ["goals and a red card", "bread with seeds", "the keeper held the ball", "flour, yeast, salt"]
    model = TextClassifier().fit(texts, [["sport"], ["baking"], ["sport"], ["baking"]])
    Z = unit_rows(model.transform(texts))
    assert Z[1] @ Z[3] > Z[1] @ Z[0]
    rng = np.random.default_rng(0)
    X, Y = rng.random((80, 6)), rng.random((80, 3)) < 0.5
    Y[:, 0] = True
    pipe = make_pipeline(ExMLDS1(n_components=4, random_state=0).fit(X, Y), Ridge())
    assert pipe[:-1].transform(X).shape == (80, 4)
