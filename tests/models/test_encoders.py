"""Dense encoders of texts, unions of vectorizers, and the trust that `load` asks for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

from exmlds import ExMLDS, FeatureNeighbors, ModelError, TextClassifier, load

MODULE = '''
import sys
import numpy as np

sys.encoders_were_imported = True

class Letters:
    """Counts of letters, from a to z."""

    def encode(self, texts):
        return np.array([[text.lower().count(chr(97 + j)) for j in range(26)] for text in texts], float)

class Lengths:
    """Lengths of texts, to several powers."""

    def __init__(self, powers=2):
        self.powers = powers

    def get_params(self, deep=True):
        return {"powers": self.powers}

    def set_params(self, **parameters):
        vars(self).update(parameters)
        return self

    def encode(self, texts):
        return np.array([[(1 + len(text)) ** power for power in range(self.powers)] for text in texts])

class Plain:
    pass
'''
TEXTS = ["aaa aab", "aab aac", "bbb bba", "bbc bbb", "a a baa", "b b abb"]
LABELS = [["a"], ["a"], ["b"], ["b"], ["a"], ["b"]]
TRUSTED = ["own_encoders:Letters", "own_encoders:Lengths"]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module with encoders, of the user's own."""
    (tmp_path / "own_encoders.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "encoders_were_imported", False, raising=False)
    monkeypatch.delitem(sys.modules, "own_encoders", raising=False)
    import own_encoders  # type: ignore[import-not-found]

    yield own_encoders
    sys.modules.pop("own_encoders", None)


def forget() -> None:
    """Let a later import of the encoders be seen."""
    sys.modules.pop("own_encoders", None)
    vars(sys)["encoders_were_imported"] = False


def test_columns_stand_side_by_side(own: Any) -> None:
    model = TextClassifier(FeatureNeighbors(n_neighbors=2), vectorizer=["tfidf", own.Letters()])
    model.fit(TEXTS, LABELS)
    words = TextClassifier(FeatureNeighbors()).fit(TEXTS, LABELS)
    rows, n_words = model.vectorizer_.transform(TEXTS), words.n_features_in_
    np.testing.assert_array_equal(rows[:, :n_words].toarray(), words.vectorizer_.transform(TEXTS).toarray())
    counts = own.Letters().encode(TEXTS)
    expected = counts / np.linalg.norm(counts, axis=1, keepdims=True)
    np.testing.assert_allclose(rows[:, n_words:].toarray(), expected, rtol=1e-6)
    names = [f"Letters[{column}]" for column in range(26)]
    assert model.feature_names_.tolist() == [*words.feature_names_.tolist(), *names]
    assert model.predict_labels(["zaaz", "zbbz"], k=1) == [["a"], ["b"]]  # no known word, but known letters
    assert (model.analyzer_, model.field_weights_) == ("words", [1.0])


@pytest.mark.parametrize("method", [FeatureNeighbors(n_neighbors=2), ExMLDS(random_state=0)], ids=str)
def test_a_model_is_saved_by_import_names_and_loaded_on_trust(own: Any, method: Any, tmp_path: Path) -> None:
    parts = ["tfidf", own.Letters(), own.Lengths(3), HashingVectorizer(n_features=16), TfidfVectorizer()]
    model = TextClassifier(method, vectorizer=[*parts, CountVectorizer()], analyzer="stems").fit(
        TEXTS, LABELS
    )
    model.save(tmp_path / "model")
    expected = model.predict_topk(TEXTS)
    forget()
    with pytest.raises(ModelError, match="If you trust that code, pass trusted=.'own_encoders:Letters'."):
        load(tmp_path / "model")
    with pytest.raises(ModelError, match="own_encoders:Lengths"):
        load(tmp_path / "model", trusted=TRUSTED[:1])
    forget()
    with pytest.raises(ModelError, match="own_encoders:Letters"):
        load(tmp_path / "model", trusted=["own_encoders"])
    assert not vars(sys)["encoders_were_imported"]
    loaded: Any = load(tmp_path / "model", trusted=TRUSTED)
    assert vars(sys)["encoders_were_imported"]
    assert [loaded.vectorizer_.parts[i].encoder for i in (1, 2)] == loaded.vectorizer[1:3]  # built once
    for one, other in zip(expected, loaded.predict_topk(TEXTS)):
        np.testing.assert_array_equal(one, other)
    assert loaded.vectorizer[2].powers == 3
    assert loaded.feature_names_.tolist() == model.feature_names_.tolist()
    assert clone(loaded).fit(TEXTS, LABELS).predict_labels(TEXTS, k=1) == model.predict_labels(TEXTS, k=1)
    loaded.save(tmp_path / "copy")
    forget()
    with pytest.raises(ModelError, match="trust"):  # trust ends with the load that it was given to
        load(tmp_path / "copy")


def test_an_encoder_alone(own: Any, tmp_path: Path) -> None:
    model = TextClassifier(FeatureNeighbors(n_neighbors=2), vectorizer=own.Letters()).fit(TEXTS, LABELS)
    assert (model.n_features_in_, model.analyzer_) == (26, None)
    model.save(tmp_path / "model")
    loaded: Any = load(tmp_path / "model", trusted=["own_encoders:Letters"])
    assert loaded.predict_labels(TEXTS, k=1) == LABELS


class Article(NamedTuple):
    text: str
    labels: list[str]
    fields: tuple[str, ...] = ()


def test_fields_are_joined_for_an_encoder(own: Any) -> None:
    articles = [Article(f"{text}\nx", labels, (text, "x")) for text, labels in zip(TEXTS, LABELS)]
    model = TextClassifier(FeatureNeighbors(), vectorizer=["tfidf", own.Letters(), "hashing"]).fit(articles)
    assert model.field_weights_ == [1.0, 1.0]
    n_words = model.vectorizer_.parts[0].transform(["a"]).shape[1]
    letters = model.vectorizer_.transform([("ab", "cd")])[:, n_words : n_words + 26]
    assert letters.indices.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda texts: np.ones(len(texts)), "one row for each of 6 texts. Got float64 of shape"),
        (lambda texts: np.ones((2, 2)), "one row for each"),
        (lambda texts: np.array([["a"]] * len(texts)), "array of numbers"),
        (lambda texts: np.full((len(texts), 2), np.nan), "finite numbers"),
    ],
)
def test_what_an_encoder_returns_is_checked(returned: Any, message: str) -> None:
    class Encoder:
        def encode(self, texts: list[str]) -> Any:
            return returned(texts)

    with pytest.raises(ValueError, match=message):
        TextClassifier(FeatureNeighbors(), vectorizer=["tfidf", Encoder()]).fit(TEXTS, LABELS)


def test_an_encoder_that_changes_its_columns_is_refused() -> None:
    class Encoder:
        n = 2

        def encode(self, texts: list[str]) -> Any:
            return np.ones((len(texts), self.n))

    encoder = Encoder()
    model = TextClassifier(FeatureNeighbors(), vectorizer=encoder).fit(TEXTS, LABELS)
    encoder.n = 3
    with pytest.raises(ValueError, match="returned 3 columns, but the model was fitted with 2"):
        model.predict_topk(TEXTS)


def test_a_class_that_cannot_be_imported_is_refused_at_save(tmp_path: Path) -> None:
    class Local:
        def encode(self, texts: list[str]) -> Any:
            return np.ones((len(texts), 2))

    model = TextClassifier(FeatureNeighbors(), vectorizer=Local()).fit(TEXTS, LABELS)
    with pytest.raises(ModelError, match="define its class in a module that can be imported"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_parameters_that_are_not_plain_are_refused_at_save(own: Any, tmp_path: Path) -> None:
    encoder = own.Lengths(2)
    model = TextClassifier(FeatureNeighbors(), vectorizer=encoder).fit(TEXTS, LABELS)
    encoder.powers = object()
    with pytest.raises(ModelError, match="its parameters must be plain values"):
        model.save(tmp_path / "model")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_encoders:Nothing", "cannot be imported"),
        ("no_such_module:Letters", "cannot be imported"),
        ("own_encoders:Plain", "it has no method encode"),
    ],
)
def test_a_trusted_name_that_is_no_encoder(own: Any, tmp_path: Path, name: str, message: str) -> None:
    model = TextClassifier(FeatureNeighbors(), vectorizer=own.Letters()).fit(TEXTS, LABELS)
    model.save(tmp_path / "model")
    manifest = (tmp_path / "model" / "manifest.json").read_text()
    assert '"own_encoders:Letters"' in manifest
    from exmlds.base import _TRUSTED
    from exmlds.models import encoders

    token = _TRUSTED.set(frozenset([name]))
    try:
        with pytest.raises(ModelError, match=message):
            encoders.restore({"encoder": name, "parameters": {}})
    finally:
        _TRUSTED.reset(token)


def test_wrong_lists_are_refused() -> None:
    for vectorizer in ([], ["tfidf", "bert"], ["tfidf", ["hashing"]], [str]):
        with pytest.raises(ValueError, match="'vectorizer' parameter of TextClassifier must be"):
            TextClassifier(vectorizer=vectorizer).fit(TEXTS, LABELS)
    for trusted in ("own_encoders:Letters", [3]):
        with pytest.raises(ValueError, match="trusted must be a list of names"):
            load("model", trusted=trusted)  # type: ignore[arg-type]
