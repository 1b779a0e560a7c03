"""TextClassifier: texts in, names out, saved as one folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.utils.validation import has_fit_parameter

from exmlds import ExMLDS, ExMLDS1, FeatureNeighbors, ModelError, MostFrequent, TextClassifier, load
from exmlds.errors import NoKnownWordWarning

SPORT = ["goals and a red card", "the keeper held the ball", "a late goal wins", "over the bar"]
BAKING = ["bread with seeds", "flour, yeast and salt", "knead the dough, bake the bread", "a cake of flour"]
TEXTS = SPORT + BAKING
LABELS = [["sport"]] * 4 + [["baking"]] * 4


@pytest.fixture(scope="module")
def model() -> TextClassifier:
    return TextClassifier(model=FeatureNeighbors(n_neighbors=3)).fit(TEXTS, LABELS)


def test_names_come_back(model: TextClassifier) -> None:
    assert model.predict_labels(["salt in the bread", "a goal!"], k=1) == [["baking"], ["sport"]]
    assert model.score(TEXTS, LABELS) == 1.0
    assert model.predict(TEXTS).shape == (8, 2)
    assert sorted(model.classes_) == ["baking", "sport"]


def test_same_as_the_parts_by_hand(model: TextClassifier) -> None:
    vectors = TfidfVectorizer(sublinear_tf=True, dtype=np.float32).fit_transform(TEXTS)
    by_hand = FeatureNeighbors(n_neighbors=3).fit(vectors, LABELS)
    for one, other in zip(model.predict_topk(TEXTS), by_hand.predict_topk(vectors)):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(
        model.predict_proba(TEXTS).toarray(), by_hand.predict_proba(vectors).toarray()
    )


@pytest.mark.parametrize(
    "vectorizer",
    [
        "tfidf",
        "hashing",
        TfidfVectorizer(ngram_range=(1, 2), stop_words="english"),
        TfidfVectorizer(use_idf=False, stop_words=["the", "a"]),
        TfidfVectorizer(vocabulary={"bread": 0, "ball": 1, "flour": 2, "goal": 3}),
        CountVectorizer(analyzer="char", ngram_range=(2, 3)),
        HashingVectorizer(n_features=1_000),
    ],
    ids=str,
)
@pytest.mark.parametrize("method", [FeatureNeighbors(n_neighbors=3), ExMLDS1(n_components=2, random_state=0)])
@pytest.mark.filterwarnings("ignore::exmlds.errors.DataWarning")  # of texts without a known word
def test_saved_and_loaded_as_one_folder(vectorizer: Any, method: Any, tmp_path: Path) -> None:
    model = TextClassifier(vectorizer=vectorizer, model=method).fit(TEXTS, LABELS)
    model.save(tmp_path / "model")
    assert not list((tmp_path / "model").rglob("*.pkl"))
    again = load(tmp_path / "model")
    assert isinstance(again, TextClassifier)
    asked = [*TEXTS, "", "words never seen"]
    for one, other in zip(model.predict_topk(asked), again.predict_topk(asked)):
        np.testing.assert_array_equal(one, other)
    assert again.predict_labels(TEXTS) == model.predict_labels(TEXTS)
    again.save(tmp_path / "copy")  # a loaded model can be saved, and fitted anew
    assert clone(again).fit(TEXTS, LABELS).predict_labels(TEXTS, k=1) == model.predict_labels(TEXTS, k=1)


@pytest.mark.parametrize("name", ["tokenizer", "preprocessor", "analyzer"])
def test_functions_are_refused_at_save(name: str, tmp_path: Path) -> None:
    options = {name: str.split if name != "preprocessor" else str.lower}
    if name == "tokenizer":
        options["token_pattern"] = None
    model = TextClassifier(vectorizer=TfidfVectorizer(**options), model=FeatureNeighbors()).fit(TEXTS, LABELS)
    with pytest.raises(ModelError, match=f"{name}.*is a function.*token_pattern"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("pattern", [r"(?u)\b\w+\b", r"[^\s,;]+", r"\b[a-zA-Z]{3,}\b", r"#?\w\w{0,9}"])
def test_plain_token_patterns_are_saved(pattern: str, tmp_path: Path) -> None:
    vectorizer = TfidfVectorizer(token_pattern=pattern)
    model = TextClassifier(vectorizer=vectorizer, model=FeatureNeighbors()).fit(TEXTS, LABELS)
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").vectorizer_.token_pattern == pattern  # type: ignore[attr-defined]


@pytest.mark.parametrize("pattern", [r"(\w+)+x", r"a|b", r"\w*\w*x", r"\w?\w?\w?x", r"(?i)a", "[", "a{2}{3}"])
def test_token_patterns_that_could_take_forever_are_refused_at_save(pattern: str, tmp_path: Path) -> None:
    model = TextClassifier(vectorizer=TfidfVectorizer(), model=FeatureNeighbors()).fit(TEXTS, LABELS)
    model.vectorizer_.token_pattern = pattern
    with pytest.raises(ModelError, match="'token_pattern' parameter of TfidfVectorizer must be"):
        model.save(tmp_path / "model")


def test_a_vectorizer_of_another_kind_is_refused_at_save(tmp_path: Path) -> None:
    class Mine(TfidfVectorizer):
        pass

    model = TextClassifier(vectorizer=Mine(), model=FeatureNeighbors()).fit(TEXTS, LABELS)
    with pytest.raises(ModelError, match="A model with a Mine cannot be saved"):
        model.save(tmp_path / "model")


class Document(NamedTuple):
    text: str
    labels: list[str]


def test_documents_bring_their_labels_in_one_pass(model: TextClassifier) -> None:
    given = (Document(text, labels) for text, labels in zip(TEXTS, LABELS))
    streamed = TextClassifier(model=FeatureNeighbors(n_neighbors=3)).fit(given)
    for one, other in zip(model.predict_topk(TEXTS), streamed.predict_topk(TEXTS)):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_data_frames(model: TextClassifier, library: str) -> None:
    frames = pytest.importorskip(library)
    column = frames.Series(TEXTS)
    assert model.predict_labels(column, k=1) == model.predict_labels(TEXTS, k=1)
    assert clone(model).fit(column, LABELS).predict_labels(column, k=1) == model.predict_labels(TEXTS, k=1)
    with pytest.raises(ValueError, match="one column of texts"):
        model.predict_labels(frames.DataFrame({"text": TEXTS, "title": TEXTS}), k=1)


@pytest.mark.parametrize(
    ("X", "said"),
    [
        ("one text", "list of texts"),
        (np.ones((2, 2)), "takes texts. Give a matrix of features to the model itself"),
        (csr_matrix(np.ones((2, 2))), "takes texts"),
        (["a", None], "Row 1, counted from 0, is not a text but None"),
        (["a", float("nan")], "Row 1, counted from 0, is not a text but nan, a float. Replace missing texts"),
        (pd.Series(["a", None], dtype="string"), "Row 1, .* but <NA>, a NAType. Replace missing texts"),
        (["a", 3], "Row 1, counted from 0, is not a text but 3, a int. Texts must be strings."),
        ([["a"], ["b"]], "Row 0, .* a list. Are X and y swapped?"),
        (3, "Got int instead"),
        ({"text": TEXTS}, "one column of texts"),
    ],
)
def test_what_is_no_text(model: TextClassifier, X: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        model.predict_topk(X)
    with pytest.raises(ValueError, match=said):
        clone(model).fit(X, [["a"], ["b"]])


def test_other_bad_input() -> None:
    with pytest.raises(ValueError, match="no words that the vectorizer takes"):
        TextClassifier().fit(["", "..."], [["a"], ["b"]])
    with pytest.raises(ValueError, match="Give the labels of the texts as y"):
        TextClassifier().fit(TEXTS)
    with pytest.raises(ValueError, match="X has 8 rows, but Y has 1"):
        TextClassifier(model=FeatureNeighbors()).fit(TEXTS, [["a"]])
    with pytest.raises(ValueError, match="'vectorizer' parameter of TextClassifier must be"):
        TextClassifier(vectorizer="bert").fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match="'model' parameter"):
        TextClassifier(model=TfidfVectorizer()).fit(TEXTS, LABELS)

    for vectorizer in (TfidfVectorizer, TfidfVectorizer(input="filename")):
        with pytest.raises(ValueError, match="a vectorizer of scikit-learn that takes texts"):
            TextClassifier(vectorizer=vectorizer).fit(TEXTS, LABELS)


def test_what_is_not_fitted_says_so(model: TextClassifier) -> None:
    for ask in (TextClassifier().predict_proba, TextClassifier().similar_labels):
        with pytest.raises(NotFittedError):
            ask(["text"])
    with pytest.raises(NotImplementedError, match="FeatureNeighbors has no label space"):
        TextClassifier(model=FeatureNeighbors()).fit(TEXTS, LABELS).label_embeddings()


@pytest.mark.parametrize("texts", [[], (), pd.Series([], dtype=object), np.array([], object), iter([])])
@pytest.mark.parametrize("method", [FeatureNeighbors(), ExMLDS(random_state=0)], ids=["neighbors", "exmlds"])
def test_no_texts_get_no_labels(method: Any, texts: Any) -> None:
    model = TextClassifier(model=method).fit(TEXTS, LABELS)
    assert model.suggest(texts).to_pandas().empty
    assert model.predict_labels(texts) == []
    assert [found.shape for found in model.predict_topk(texts, 3)] == [(0, 3), (0, 3)]
    assert model.predict(texts).shape == model.predict_proba(texts).shape == (0, 2)
    with pytest.raises(ValueError, match="There is no text; give at least one"):
        clone(model).fit(texts, [])
    with pytest.raises(ValueError, match="There is no row to score"):
        model.score(texts, [])


def test_no_texts_have_no_embeddings() -> None:
    model = TextClassifier(model=ExMLDS1(n_components=2, random_state=0)).fit(TEXTS, LABELS)
    assert model.transform([]).shape == (0, model.transform(TEXTS).shape[1])


def test_an_array_of_one_column(model: TextClassifier) -> None:
    column = pd.DataFrame({"text": TEXTS})[["text"]].to_numpy()
    assert model.predict_labels(column, k=1) == model.predict_labels(TEXTS, k=1)
    assert clone(model).fit(column, LABELS).score(column, LABELS) == 1.0


def test_what_the_model_has_learnt_is_learnt_by_the_classifier() -> None:
    model = TextClassifier(model=ExMLDS(random_state=0)).fit(TEXTS, LABELS)
    assert model.search_results_ is model.model_.search_results_
    assert model.shortlist_ == model.model_.shortlist_
    with pytest.raises(AttributeError, match="nothing_"):
        model.nothing_  # noqa: B018
    with pytest.raises(AttributeError, match="search_results_"):
        TextClassifier().search_results_  # noqa: B018


def test_weights_reach_the_model() -> None:
    assert has_fit_parameter(TextClassifier(), "sample_weight")
    model = TextClassifier(model=ExMLDS(random_state=0))
    assert (
        model.fit(TEXTS, LABELS, sample_weight=[1] * 4 + [0] * 4).predict_labels(TEXTS, k=2)
        == [["sport"]] * 8
    )
    with pytest.raises(
        TypeError, match="ExMLDS1.fit takes no argument 'sample_weight'. ExMLDS.fit and ExMLDS1"
    ):
        TextClassifier(model=ExMLDS1()).fit(TEXTS, LABELS, sample_weight=[1] * 8)


def test_parameters_of_defaults_can_be_set() -> None:
    model = TextClassifier().set_params(model__threshold=0.3, vectorizer__min_df=2)
    assert (model.threshold, model.vectorizer.min_df) == (0.3, 2)
    assert model.vectorizer.sublinear_tf
    model.set_params(vectorizer="hashing", vectorizer__n_features=1_024)
    assert (type(model.vectorizer), model.vectorizer.n_features) == (HashingVectorizer, 1_024)


def test_numbers_of_numpy_are_saved_and_others_refused(tmp_path: Path) -> None:
    pairs = TfidfVectorizer(ngram_range=(np.int64(1), np.int64(2)))
    model = TextClassifier(vectorizer=pairs, model=FeatureNeighbors()).fit(TEXTS, LABELS)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.vectorizer.ngram_range == (1, 2)
    np.testing.assert_array_equal(loaded.predict_topk(TEXTS)[1], model.predict_topk(TEXTS)[1])
    model.vectorizer_.encoding = object()
    with pytest.raises(ModelError, match="'encoding' parameter of TfidfVectorizer must be a string"):
        model.save(tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_the_estimator_may_be_given_by_position() -> None:
    inner = FeatureNeighbors()
    assert TextClassifier(inner).model is inner
    with pytest.raises(TypeError, match="positional"):
        TextClassifier(inner, "hashing")  # type: ignore[misc]
    with pytest.raises(
        ValueError, match="'model' parameter .* must be None or an estimator of exmlds. Got 'tfidf'"
    ):
        TextClassifier("tfidf").fit(TEXTS, LABELS)  # type: ignore[arg-type]


def test_parameters_of_the_model_are_its_own() -> None:
    model = TextClassifier(model=ExMLDS(threshold=0.3, n_jobs=1))
    assert (model.threshold, model.n_jobs) == (0.3, 1)
    assert TextClassifier().max_labels == ExMLDS().max_labels
    assert model.get_params()["model__threshold"] == 0.3
    with pytest.raises(AttributeError, match="nothing"):
        model.nothing  # noqa: B018


def test_training_texts_are_named_by_their_ids(tmp_path: Path) -> None:
    class Text(NamedTuple):
        text: str
        labels: list[str]
        id: str | int | None

    def trained(ids: Sequence[str | int | None], keep_rows: bool = True) -> Any:
        documents = map(Text, TEXTS, LABELS, ids)
        inner = ExMLDS1(n_components=2, random_state=0)
        TextClassifier(inner, keep_rows=keep_rows).fit(documents).save(tmp_path / "model")
        return load(tmp_path / "model")

    ids: list[str | None] = [f"shelf {row}" for row in range(len(TEXTS))]
    model = trained(ids)
    assert model.ids_.tolist() == ids
    (why,) = model.explain(["bread with seeds"])
    assert [voter.id for voter in why.voters] == [f"shelf {voter.row}" for voter in why.voters]
    asked = (Text(text, [], f"new {row}") for row, text in enumerate(TEXTS))  # read once
    assert model.suggest(asked, k=1).columns()["row"] == [f"new {row}" for row in range(8)]
    assert model.suggest(TEXTS, k=1).columns()["row"] == list(range(8))
    first = why.voters[0]
    assert f"    {first.id} ({first.text}): " in str(why)
    assert f"{first.id} (" in why._repr_html_()
    partly = trained([None, *ids[1:]])
    assert [partly.ids_[0], *partly.ids_[1:]] == ["", *ids[1:]]
    names = {voter.name for voter in partly.explain([TEXTS[0]], n=8)[0].voters if voter.row == 0}
    assert names == {TEXTS[0]}
    assert trained(range(8)).ids_.tolist() == list("01234567")
    assert trained([None] * len(TEXTS)).ids_ is trained(ids, keep_rows=False).ids_ is None


def test_kept_texts_come_back(tmp_path: Path) -> None:
    method = ExMLDS1(n_components=2, random_state=0)
    model = TextClassifier(model=method, keep_rows=True).fit(TEXTS, LABELS)
    model.save(tmp_path / "model")
    again: Any = load(tmp_path / "model")
    assert again.texts_.tolist() == TEXTS
    (why,) = again.explain(["bake a bread"], n=3)
    assert why.label == "baking"
    for voter in why.voters:
        words = set(TEXTS[voter.row].replace(",", " ").split())
        assert {term.feature for term in voter.terms} <= words & {"bake", "bread"}


@pytest.mark.parametrize("vectorizer", ["tfidf", "hashing"])
@pytest.mark.parametrize("method", [FeatureNeighbors(n_neighbors=3), MostFrequent()], ids=repr)
def test_a_text_without_a_known_word_gets_no_labels(vectorizer: str, method: Any) -> None:
    model = TextClassifier(vectorizer=vectorizer, model=method).fit(TEXTS, LABELS)
    texts = ["a goal!", "", "the bread", " \n" if vectorizer == "hashing" else "zzz qqq"]
    named = r"2 of 4 texts hold no word that the model knows; .* Rows, counted from 0: 1, 3\."
    with pytest.warns(NoKnownWordWarning, match=named):
        assert [len(labels) for labels in model.predict_labels(texts, k=1)] == [1, 0, 1, 0]
    for predict in (model.predict_proba, model.decision_function, model.predict):
        with pytest.warns(NoKnownWordWarning, match=named):
            assert np.diff(predict(texts).indptr)[[1, 3]].tolist() == [0, 0]
    with pytest.warns(NoKnownWordWarning, match=named):
        ids, scores = model.predict_topk(texts, 2, allow=model.classes_)
    assert (ids[:, 0] < 0).tolist() == [False, True, False, True]
    assert scores[[1, 3]].tolist() == [[0, 0], [0, 0]]
    vectors = model.vectorizer_.transform(texts)
    assert (model.model_.predict_topk(vectors, 1)[0] >= 0).all()  # rows of zeros get the frequent labels


def test_labels_with_blanks_are_found_again(tmp_path: Path) -> None:
    model = TextClassifier(model=FeatureNeighbors(n_neighbors=3))
    model.fit(TEXTS, [[f"{label}\t" for label in labels] for labels in LABELS])
    assert model.score(TEXTS, LABELS) == 1.0
    assert model.score(TEXTS, [[f" {label}"] for [label] in LABELS]) == 1.0
