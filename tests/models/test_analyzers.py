"""Analyzers: the terms of texts, their languages, and the choice on held-out texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer

from exmlds import DataError, ExMLDS, FeatureNeighbors, ModelError, TextClassifier, load
from exmlds.models import analyzer_search, analyzers, languages
from exmlds.models.analyzer_search import Requested, fit_terms
from exmlds.models.analyzers import ANALYZERS, TermVectorizer, tokenize

ENGLISH = [
    "The runners were running in the park",
    "A runner runs with the dogs of the house",
    "dogs and cats",
    "",
    "the of and",
]
GERMAN = ["Die Läufer laufen in den Häusern", "Der Hund und die Katzen sind in dem Haus", "Katze"]


def terms(analyzer: str, texts: list[str], **settings: Any) -> list[str]:
    """The terms that a vectorizer learns from texts."""
    vectorizer = TermVectorizer(analyzer, **settings)
    vectorizer.fit_transform(texts)
    return vectorizer.get_feature_names_out().tolist()


def test_words_are_those_of_scikit_learn() -> None:
    texts = [*ENGLISH, *GERMAN, "Élan élan ELAN; x 1 22 3_3"]
    own, theirs = TermVectorizer("words"), TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
    np.testing.assert_allclose(
        own.fit_transform(texts).toarray(), theirs.fit_transform(texts).toarray(), rtol=1e-6
    )
    assert own.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    asked = ["the dogs, the house and words never seen", ""]
    np.testing.assert_allclose(own.transform(asked).toarray(), theirs.transform(asked).toarray(), rtol=1e-6)


def test_each_part_of_a_name_adds_its_terms() -> None:
    assert terms("stems", ["running runs the dogs"]) == ["dog", "run", "the"]
    assert terms("words-stops", ["running and the dogs"]) == ["dogs", "running"]
    assert terms("stems-stops", ["running runs the dogs"]) == ["dog", "run"]
    pairs = terms("words+pairs", ["red card here", "a red card there", "card red"])
    assert pairs == ["card", "here", "red", "there", "red card"]  # the other pairs are in one text each
    assert terms("stems-stops+pairs", ["dogs of houses", "the dog and house"])[-1] == "dog hous"
    ngrams = terms("words+ngrams", ["baker bakes", "a bakery"])
    assert set(ngrams[3:]) == {"bak*", "*bake*", "*aker*"}
    assert len(ANALYZERS) == 16
    assert all(how.name == name for name, how in ANALYZERS.items())


@pytest.mark.parametrize("analyzer", sorted(ANALYZERS))
def test_training_texts_have_the_same_vectors_again(analyzer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*ENGLISH, *GERMAN] * 2
    vectorizer = TermVectorizer(analyzer)
    fitted = vectorizer.fit_transform(texts)
    assert fitted.shape[1] == len(vectorizer.get_feature_names_out()) == len(vectorizer.idf_)
    lengths = np.sqrt(fitted.multiply(fitted).sum(axis=1)).A1
    np.testing.assert_allclose(lengths[np.diff(fitted.indptr) > 0], 1, rtol=1e-6)
    np.testing.assert_array_equal(vectorizer.transform(texts).toarray(), fitted.toarray())
    kept = TermVectorizer.restored(vectorizer.plain())
    np.testing.assert_array_equal(kept.transform(texts).toarray(), fitted.toarray())
    monkeypatch.setattr(analyzers, "BLOCK", 7)  # tokens, about one text a block
    in_blocks = TermVectorizer(analyzer)
    np.testing.assert_array_equal(in_blocks.fit_transform(texts).toarray(), fitted.toarray())


def test_stems_follow_the_language_of_each_text() -> None:
    vectorizer = TermVectorizer("stems")
    vectorizer.fit_transform(ENGLISH + GERMAN)
    assert sorted(vectorizer.languages_) == ["english", "german"]
    names = vectorizer.get_feature_names_out()

    def of(text: str) -> set[str]:
        return set(names[vectorizer.transform([text]).indices])

    assert {"haus", "katz"} <= of("Die Häuser und die Katzen sind in dem Haus")
    assert "run" in of("she is running with the dogs")
    assert of("dogs") == {"dog"}  # no function word: the more frequent language of the texts


def test_languages_are_detected_by_function_words() -> None:
    texts = {
        "finnish": "Suomen kielen historia ja sen tutkimus, joka on vielä kesken",
        "swedish": "En bok om skogen och om hur den växer utan människor",
        "french": "Les fleurs du mal, avec une préface de son auteur",
        "spanish": "La vida es sueño, y los sueños son para el que los tiene",
        "russian": "Это книга о том, что было и чего не было",
        "english": "The origin of species by means of natural selection",
        "german": "Die Geschichte der Stadt und ihrer Bürger",
        "dutch": "Het leven van de boer en zijn vrouw",
        "italian": "La storia della città di Roma e dei suoi abitanti",
    }
    for language, text in texts.items():
        tokens = tokenize([text, "xyzzy"])
        scores = analyzers.language_scores(tokens)
        assert languages.languages_of(scores) == [language]
        assert languages.detect(scores, ["turkish", language]).tolist() == [1, 0]
    assert languages.languages_of(analyzers.language_scores(tokenize(["xyzzy 123"]))) == []


def test_texts_of_no_known_language_keep_their_words() -> None:
    assert terms("stems-stops", ["kitabu cha hadithi", "hadithi nyingi"]) == [
        *("cha", "hadithi", "kitabu", "nyingi")
    ]


def test_long_texts_are_cut() -> None:
    assert terms("words", ["one two three four", "five"], max_words=2) == ["five", "one", "two"]
    vectorizer = TermVectorizer("words", max_words=1)
    vectorizer.fit_transform(["one two", "two one"])
    assert vectorizer.transform(["one two two two"]).nnz == 1


def test_words_of_a_weighted_field_count_more() -> None:
    texts = [("red apples", "green grapes"), ("green card", "red card"), "green red"]
    vectorizer = TermVectorizer("words", field_weights=(3, 1))
    rows = vectorizer.fit_transform(texts).toarray()
    column = vectorizer.get_feature_names_out().tolist().index
    red, green = column("red"), column("green")
    assert rows[0, red] / rows[0, green] == pytest.approx(1 + np.log(3), rel=1e-6)
    assert rows[1, green] / rows[1, red] == pytest.approx(1 + np.log(3), rel=1e-6)
    assert rows[2, green] == rows[2, red]  # a plain text is of the last field
    card = rows[1, column("card")] / vectorizer.idf_[column("card")]
    assert card / (rows[1, red] / vectorizer.idf_[red]) == pytest.approx(1 + np.log(4), rel=1e-6)


def test_counting_leaves_the_tokens_as_they_are() -> None:
    tokens = tokenize(["second first second", "third first"])
    before = tokens.ids.copy()
    assert tokens.counts().toarray().tolist() == [[2, 1, 0], [0, 1, 1]]
    np.testing.assert_array_equal(tokens.ids, before)
    taken = tokens.take(np.array([1]))
    assert [taken.words[word] for word in taken.ids] == ["third", "first"]


def inflected(n: int, seed: int = 0) -> tuple[list[str], list[list[str]]]:
    """Texts whose label is a stem, while their words are forms of it that seldom repeat."""
    rng = np.random.default_rng(seed)
    stems = ["walk", "jump", "paint", "cook", "plant", "load", "mark", "print"]
    endings = ["", "s", "ed", "ing", "er", "ers"]
    texts, labels = [], []
    for _ in range(n):
        stem = stems[rng.integers(len(stems))]
        noise = " ".join(f"w{word}" for word in rng.integers(3_000, size=6))
        texts.append(f"the {stem}{endings[rng.integers(len(endings))]} of {noise}")
        labels.append([stem])
    return texts, labels


def test_stems_are_chosen_where_they_help() -> None:
    texts, labels = inflected(80)
    vectorizer, vectors, trials = fit_terms(texts, labels, Requested(), 0)
    scores = {trial.analyzer: trial.score for trial in trials}
    assert scores["stems-stops"] > scores["words-stops"]
    assert vectorizer.analyzer.startswith("stems")
    np.testing.assert_array_equal(vectors.toarray(), vectorizer.transform(texts).toarray())


def test_words_are_chosen_where_stems_mislead() -> None:
    rng = np.random.default_rng(0)
    forms = ["paint", "painting", "walk", "walking", "plant", "planting"]
    labels = [[forms[rng.integers(len(forms))]] for _ in range(200)]
    texts = [
        f"the {label} of " + " ".join(f"w{i}" for i in rng.integers(3_000, size=3)) for [label] in labels
    ]
    vectorizer, _, _ = fit_terms(texts, labels, Requested(), 0)
    assert vectorizer.analyzer.startswith("words")


def test_pairs_are_chosen_where_order_counts() -> None:
    rng = np.random.default_rng(0)
    colors, things = ["red", "blue", "green", "black"], ["house", "car", "tree", "boat"]
    texts, labels = [], []
    for _ in range(300):
        color, other, thing, last = *rng.permutation(colors)[:2], *rng.permutation(things)[:2]
        texts.append(f"{color} {thing} {other} {last}")
        labels.append([f"{color} {thing}"])
    vectorizer, _, _ = fit_terms(texts, labels, Requested(), 0)
    assert vectorizer.analyzer.endswith("+pairs")


def test_a_title_that_tells_the_label_gets_weight() -> None:
    rng = np.random.default_rng(0)
    subjects = [f"subject{i}" for i in range(12)]
    texts, labels = [], []
    for _ in range(400):
        right, *wrong = rng.permutation(subjects)[:4]
        texts.append((right, " ".join([*wrong, *wrong])))
        labels.append([right])
    vectorizer, _, trials = fit_terms(texts, labels, Requested("words"), 0)
    assert vectorizer.field_weights[0] > 1
    assert vectorizer.field_weights[1] == 1
    assert {tuple(trial.field_weights) for trial in trials} == {(1, 1), (2, 1), (4, 1)}


def test_long_texts_whose_end_misleads_are_cut() -> None:
    rng = np.random.default_rng(0)
    labels = [[f"label{rng.integers(6)}"] for _ in range(120)]
    texts = [" ".join([label] * 3 + [f"label{i}" for i in rng.integers(6, size=400)]) for [label] in labels]
    kept = fit_terms(texts, labels, Requested("words", None), 0)[0]
    assert kept.max_words is None
    assert fit_terms(texts, labels, Requested("words"), 0)[0].max_words is None  # 300 words are no better
    begins = [f"{label} {label} " + " ".join(f"n{i}" for i in range(298)) for [label] in labels]
    ends = [" ".join(f"label{i}" for i in np.repeat(rng.integers(6, size=40), 30)) for _ in labels]
    cut = fit_terms([f"{begin} {end}" for begin, end in zip(begins, ends)], labels, Requested("words"), 0)[0]
    assert cut.max_words == 300


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        ([["a"]] * 20, "of fewer than 50 texts"),
        (7, "no labels"),
        ([["a"]] * 3, "of another number"),
        ([[["a"]]] * 80, "nested"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_nothing_is_chosen_on_labels_that_cannot_be_used(labels: Any, why: str) -> None:
    texts = inflected(20 if why.startswith("of fewer") else 80)[0]
    vectorizer, _, trials = fit_terms(texts, labels, Requested(), 0)
    assert (vectorizer.analyzer, vectorizer.max_words, trials) == ("words", None, [])


def test_labels_may_be_a_matrix_and_weightless_texts_take_no_part() -> None:
    texts, labels = inflected(160)
    names = sorted({label for [label] in labels})
    matrix = np.array([[name == label for name in names] for [label] in labels])
    by_lists = fit_terms(texts, labels, Requested(), 3)[2]
    assert fit_terms(texts, matrix, Requested(), 3)[2] == by_lists
    assert fit_terms(texts, csr_matrix(matrix), Requested(), 3)[2] == by_lists
    weights = np.repeat([1, 0], 80)
    spoilt = [*texts[:80], *["noise"] * 80]
    assert [t.score for t in fit_terms(spoilt, labels, Requested(), 3, weights)[2]] == [
        t.score for t in fit_terms([*texts[:80], *["other"] * 80], labels, Requested(), 3, weights)[2]
    ]


def test_the_choice_is_recorded_and_repeated(tmp_path: Path) -> None:
    texts, labels = inflected(120)
    model = TextClassifier(FeatureNeighbors(random_state=5)).fit(texts, labels)
    again = clone(model).fit(texts, labels)
    results = model.analyzer_results_
    assert results is not None
    assert set(results) == {"analyzer", "max_words", "field_weights", "score"}
    assert again.analyzer_results_ == results
    assert model.analyzer_ in results["analyzer"]
    assert model.analyzer_.startswith("stems")
    assert model.score(["the walking of nothing", "a painter"], [["walk"], ["paint"]]) == 1
    model.save(tmp_path / "model")
    loaded: Any = load(tmp_path / "model")
    assert (loaded.analyzer, loaded.analyzer_) == ("auto", model.analyzer_)
    assert (loaded.max_words_, loaded.field_weights_) == (None, [1.0])
    assert loaded.analyzer_results_ == results
    assert loaded.feature_names_.tolist() == model.feature_names_.tolist()
    for one, other in zip(model.predict_topk(texts), loaded.predict_topk(texts)):
        np.testing.assert_array_equal(one, other)


def test_ngrams_are_tried_where_a_fit_may_take_long() -> None:
    texts, labels = inflected(60)
    assert TextClassifier(ExMLDS(effort="fast", random_state=0)).fit(texts, labels).analyzer_results_ == (
        TextClassifier(ExMLDS(random_state=0)).fit(texts, labels).analyzer_results_
    )
    best: Any = TextClassifier(ExMLDS(effort="best", random_state=0)).fit(texts, labels).analyzer_results_
    assert any(name.endswith("+ngrams") for name in best["analyzer"])


@pytest.mark.parametrize("analyzer", ["words", "stems-stops+pairs", "stems+ngrams"])
def test_a_given_analyzer_is_used_and_saved(analyzer: str, tmp_path: Path) -> None:
    texts, labels = inflected(60)
    weights = (np.float32(2), 1)
    model = TextClassifier(
        FeatureNeighbors(), analyzer=analyzer, max_words=np.int64(5), field_weights=weights
    )
    model.fit(texts, labels).save(tmp_path / "model")
    loaded: Any = load(tmp_path / "model")
    assert (loaded.analyzer, loaded.analyzer_) == (analyzer, analyzer)
    assert (loaded.max_words_, loaded.field_weights_) == (5, [2, 1])
    assert loaded.analyzer_results_["score"] == []
    np.testing.assert_array_equal(loaded.predict_topk(texts)[1], model.predict_topk(texts)[1])


class Article(NamedTuple):
    text: str
    labels: list[str]
    fields: tuple[str, ...] = ()


def test_documents_bring_their_fields() -> None:
    rng = np.random.default_rng(0)
    subjects = [f"subject{i}" for i in range(12)]
    articles = []
    for _ in range(300):
        right, *wrong = rng.permutation(subjects)[:4]
        fields = right, " ".join([*wrong, *wrong])
        articles.append(Article("\n".join(fields), [right], fields))
    model = TextClassifier(FeatureNeighbors(), analyzer="words").fit(articles)
    assert model.field_weights_ is not None
    assert model.field_weights_[0] > 1
    plain = TextClassifier(FeatureNeighbors(), analyzer="words")
    plain.fit([article.text for article in articles], [article.labels for article in articles])
    assert plain.field_weights_ == [1.0]
    truth = [article.labels for article in articles]
    assert model.score(articles, truth) > plain.score([article.text for article in articles], truth)


def test_texts_of_stop_words_alone_are_refused_with_them_left_out() -> None:
    texts = ["the of and", "of the one", "what was that"]
    with pytest.raises(ValueError, match="no words that the vectorizer takes"):
        TextClassifier(FeatureNeighbors(), analyzer="words-stops").fit(texts, [["a"], ["b"], ["a"]])
    chosen = fit_terms(texts * 20, [["a"], ["b"], ["a"]] * 20, Requested(), 0)[0]
    assert chosen.analyzer in ("words", "stems", "words+pairs", "stems+pairs")


def test_settings_that_do_not_fit_are_refused() -> None:
    texts, labels = inflected(10)
    for given in ({"analyzer": "bert"}, {"max_words": 0}, {"field_weights": [0.5]}, {"field_weights": 2}):
        with pytest.raises(ValueError, match=f"'{next(iter(given))}' parameter of TextClassifier must be"):
            TextClassifier(**given).fit(texts, labels)  # type: ignore[arg-type]
    for vectorizer in ("hashing", TfidfVectorizer()):
        with pytest.raises(DataError, match="analyzer.* is for the vectorizer 'tfidf'"):
            TextClassifier(vectorizer=vectorizer, analyzer="stems").fit(texts, labels)
        assert TextClassifier(FeatureNeighbors(), vectorizer=vectorizer).fit(texts, labels).analyzer_ is None


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("analyzer", "bert", "the analyzer is not one"),
        ("max_words", -1, "the number of words"),
        ("field_weights", [0.0], "the weights of fields"),
        ("languages", ["klingon"], "the languages are not"),
        ("terms", np.array([1, 2]), "the terms"),
        ("ngrams", 3, "the n-grams"),
        ("pairs", np.array([10**12]), "the pairs"),
        ("pairs", np.array([3, 1]), "the pairs does not ascend"),
        ("idf", np.ones(3, np.float32), "the idf"),
        ("idf", None, "the idf"),
    ],
)
def test_a_crafted_vectorizer_is_refused(tmp_path: Path, part: str, value: Any, message: str) -> None:
    model = TextClassifier(FeatureNeighbors(), analyzer="words+pairs")
    model.fit(["red card here", "a red card", "a red card there"], [["a"], ["b"], ["a"]])
    plain = model.vectorizer_.plain()
    (plain["parameters"] if part in plain["parameters"] else plain)[part] = value
    model.vectorizer_.plain = lambda: plain
    model.save(tmp_path / "model")
    with pytest.raises(ModelError, match=message):
        load(tmp_path / "model")


def test_the_sample_is_smaller_where_texts_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analyzer_search, "MIN_SAMPLE", 5)
    monkeypatch.setattr(analyzer_search, "MANY_TEXTS", 20)
    monkeypatch.setattr(analyzer_search, "SAMPLE_TOKENS", 100)
    for n_words, expected in ((1, 20), (10, 10), (90, 5)):
        tokens = tokenize(["word " * n_words] * 60)
        rows = analyzer_search._sample(tokens, 0, None)
        assert len(rows) == expected
        assert (np.diff(rows) > 0).all()
    assert len(analyzer_search._sample(tokenize(["word"] * 100), 0, None)) == 25
