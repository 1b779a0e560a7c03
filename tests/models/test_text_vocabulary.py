"""TextClassifier with a vocabulary: labels have names, in several languages, beside their ids."""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer

from exmlds import ExMLDS, MostFrequent, TextClassifier, load
from exmlds.data import Vocabulary
from exmlds.errors import DataError, DataWarning, ModelError, NoKnownWordWarning
from exmlds.models.concepts import LabelNames, as_concepts
from exmlds.models.text import name_rows
from exmlds.report import make
from exmlds.vocabulary import ALTERNATIVE, VocabularyBuilder

TEXTS = ["goals and a red card", "bread with seeds", "the keeper held the ball", "flour, yeast, salt"] * 3
LABELS = [["u:1"], ["u:2"], ["u:1"], ["u:2"]] * 3


@pytest.fixture
def vocabulary() -> Vocabulary:
    builder = VocabularyBuilder()
    for id, english, german in (("u:1", "sport", "Sport"), ("u:2", "baking", "Backen"), ("u:3", "fish", "")):
        builder.add_name(builder.concept(id), english, "en")
        if german:
            builder.add_name(builder.concept(id), german, "de")
    builder.add_name(builder.concept("u:2"), "bread making", "en", ALTERNATIVE)
    builder.add_name(builder.concept("u:old"), "athletics", "en")
    builder.replaced_by[builder.concept("u:old")] = builder.concept("u:1")
    return builder.build()


@pytest.fixture
def model(vocabulary: Vocabulary) -> TextClassifier:
    return TextClassifier(vocabulary=vocabulary).fit(TEXTS, LABELS)


def names_of(model: TextClassifier) -> list[tuple[Any, str]]:
    return [(found.label, found.name) for found in model.suggest(["salt in the bread"], k=1)[0]]


def test_suggestions_have_the_id_and_the_name(model: TextClassifier) -> None:
    assert names_of(model) == [("u:2", "baking")]
    assert names_of(model.set_params(language="de")) == [("u:2", "Backen")]
    assert model.predict_labels(["salt"], k=1) == [["u:2"]]
    with pytest.raises(DataError, match="no names in language 'fr'. It has: de, en."):
        model.set_params(language="fr")


def test_explanations_name_the_label(model: TextClassifier) -> None:
    (why,) = model.explain(["salt in the bread"])
    assert (why.label, why.name) == ("u:2", "baking")
    assert str(why).startswith("baking (u:2): score")
    assert "baking (u:2)" in why._repr_html_()


def test_the_card_and_the_report_name_labels(model: TextClassifier) -> None:
    assert "| baking | 6 |" in model.card()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # of rows that the model was trained on
        page = make(model, TEXTS, LABELS)
    assert sorted(page.label_counts.names) == ["baking (u:2)", "sport (u:1)"]


def test_the_model_folder_keeps_the_vocabulary(model: TextClassifier, tmp_path: Path) -> None:
    model.set_params(language="de").save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert names_of(again) == [("u:2", "Backen")]
    assert again.vocabulary_.all_names("u:2") == ["baking", "Backen", "bread making"]
    again.save(tmp_path / "again")
    assert names_of(load(tmp_path / "again")) == [("u:2", "Backen")]


def test_a_damaged_vocabulary_is_refused(model: TextClassifier, tmp_path: Path) -> None:
    tables = model.vocabulary_.tables  # type: ignore[union-attr]
    for wrong in (
        tables._replace(starts=tables.starts[::-1].copy()),
        tables._replace(name_languages=tables.name_languages + 2),
        tables._replace(ids=np.array(["u:1"] * len(tables.ids), object)),
        tables._replace(replaced_by=tables.replaced_by + np.int32(9)),
        tables._replace(broader=np.array([[0, 99]], np.int32)),
    ):
        model.vocabulary_ = Vocabulary(wrong)
        model.save(tmp_path / "model")
        with pytest.raises(ModelError):
            load(tmp_path / "model")


def test_names_and_deprecated_concepts_stand_for_concepts(vocabulary: Vocabulary) -> None:
    labels = [["Sport", "u:old"], ["baking"], ["u:2"], []]
    with pytest.warns(DataWarning, match=r"1 labels .*, 1 entries, are deprecated .* instead: u:old \(1\)"):
        assert as_concepts(labels, vocabulary) == [["u:1"], ["u:2"], ["u:2"], []]


def test_preferred_names_stand_for_concepts_everywhere(vocabulary: Vocabulary) -> None:
    Y = csr_matrix(np.eye(2)[[0, 1] * 6])
    by_names, by_ids = (
        TextClassifier(vocabulary=vocabulary).fit(TEXTS, Y, label_names=names)
        for names in (["Sport", "baking"], ["u:1", "u:2"])
    )
    assert by_names.classes_.tolist() == by_ids.classes_.tolist() == ["u:1", "u:2"]
    for labels in (["sport"] * 12, ["u:old"] * 12):  # without regard to case; and what is replaced
        assert by_ids.score(TEXTS, [[label] for label in labels]) == by_ids.score(TEXTS, [["u:1"]] * 12)
    assert by_ids.label_matrix(["Sport", "u:2"]).toarray().tolist() == [[1, 0], [0, 1]]
    ids, _ = by_ids.predict_topk(TEXTS[1:2], 2, allow=["Baking"])
    assert ids.tolist() == [[1, -1]]
    with pytest.raises(ValueError, match="'u:9' is not known"):
        by_ids.predict_topk(TEXTS, allow=["u:9"])
    with pytest.warns(DataWarning, match="1 different ones, are unknown"):
        assert not by_ids.label_matrix([["chess"]]).nnz


def test_empty_labels_are_dropped(vocabulary: Vocabulary) -> None:
    labels = [["u:1", ""], [" u:2"], ["u:1"], ["", "u:2"]] * 3
    model = TextClassifier(MostFrequent(), vocabulary=vocabulary).fit(TEXTS, labels)
    assert model.classes_.tolist() == ["u:1", "u:2"]
    named = TextClassifier(vocabulary=vocabulary).fit(TEXTS, labels)
    assert "" not in named.classes_


def test_unknown_labels_are_counted_and_named(vocabulary: Vocabulary) -> None:
    with pytest.warns(
        DataWarning, match=r"2 labels .*, 3 entries, are not in the vocabulary.*: u:9 \(2\), x"
    ):
        assert as_concepts([["u:9", "u:1"], ["u:9"], "x"], vocabulary) == [["u:9", "u:1"], ["u:9"], ["x"]]
    vocabulary.tables.replaced_by[1] = -2
    with pytest.warns(DataWarning, match="that nothing replaces"):
        assert as_concepts([["u:2"]], vocabulary) == [["u:2"]]


def test_an_ambiguous_name_stays_as_it_is() -> None:
    words = Vocabulary.of_names({"u:1": "bank", "u:2": "Bank"})
    with pytest.warns(DataWarning, match="not in the vocabulary"):
        assert as_concepts([["bank"]], words) == [["bank"]]


def test_all_is_quiet_where_labels_are_concepts(vocabulary: Vocabulary) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = TextClassifier(MostFrequent(), vocabulary=vocabulary).fit(TEXTS, LABELS)
    assert fitted.label_name("u:3") == "fish"


def test_matrices_of_labels_are_taken_as_they_are(vocabulary: Vocabulary) -> None:
    Y = csr_matrix(np.eye(2)[[0, 1] * 6])
    fitted = TextClassifier(vocabulary=vocabulary).fit(TEXTS, Y, label_names=["u:1", "u:2"])
    assert names_of(fitted) == [("u:2", "baking")]


def test_parameters(vocabulary: Vocabulary) -> None:
    copied = clone(TextClassifier(vocabulary=vocabulary, language="de"))
    assert copied.language == "de"
    assert copied.vocabulary.ids == vocabulary.ids
    with pytest.raises(DataError, match="no names in language 'fr'"):
        TextClassifier(vocabulary=vocabulary, language="fr").fit(TEXTS, LABELS)
    with pytest.raises(DataError, match="Only a model with a vocabulary names labels in a language"):
        TextClassifier(language="en").fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match="vocabulary"):
        TextClassifier(vocabulary="yso.tsv").fit(TEXTS, LABELS)  # type: ignore[arg-type]


def test_without_a_vocabulary_a_label_is_its_own_name() -> None:
    fitted = TextClassifier().fit(TEXTS, LABELS)
    assert names_of(fitted) == [("u:2", "u:2")]
    assert json.loads(json.dumps(fitted.explain(["salt"])[0]._asdict(), default=str))["name"] == "u:2"


def many(n: int = 120) -> tuple[list[str], list[list[str]]]:
    """Texts of which some name their label; u:3, fish, is the label of none."""
    rng = np.random.default_rng(0)
    texts, labels = [], []
    for _ in range(n):
        label = "u:1" if rng.random() < 0.5 else "u:2"
        words = rng.choice(["goal", "ball", "keeper"] if label == "u:1" else ["salt", "flour", "oven"], 2)
        named = ["sport"] if label == "u:1" else ["baking"]
        texts.append(" ".join([*words, *(named if rng.random() < 0.5 else []), f"x{rng.integers(9)}"]))
        labels.append([label])
    return texts, labels


def test_a_concept_that_no_text_has_is_suggested_by_its_name(vocabulary: Vocabulary, tmp_path: Path) -> None:
    model = TextClassifier(ExMLDS(random_state=0), vocabulary=vocabulary).fit(*many())
    assert model.classes_.tolist() == ["u:1", "u:2", "u:3"]  # not the deprecated one
    text = ["fishes and the ball"]
    labels = model.predict_labels(text, k=3)[0]
    assert set(labels) == {"u:1", "u:2", "u:3"} or set(labels) == {"u:1", "u:3"}
    assert model.predict_proba(text)[0, 2] > 0
    assert model.predict_proba(["a ball"])[0, 2] == 0
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").predict_labels(text, k=3)[0] == labels
    strict = TextClassifier(ExMLDS(random_state=0), vocabulary=vocabulary, allow_untrained=False)
    assert strict.fit(*many()).classes_.tolist() == ["u:1", "u:2"]


def test_explanations_show_the_matched_words(vocabulary: Vocabulary) -> None:
    model = TextClassifier(ExMLDS(random_state=0), vocabulary=vocabulary).fit(*many())
    (why,) = model.explain(["the fish at the goal"], "u:3")
    assert (why.label, why.name, why.matched, why.votes) == ("u:3", "fish", ("fish",), 0)
    assert 0 < why.score < 1
    assert "its name stands in the text: fish" in str(why)
    (why,) = model.explain(["a sport with a ball"])
    assert why.label == "u:1"
    assert why.matched == ("sport",)
    assert "name in the text" in why.log_odds
    assert sum(why.log_odds.values()) == pytest.approx(np.log(why.score / (1 - why.score)), abs=0.02)


def test_names_of_deprecated_concepts_stand_for_those_that_replace_them(vocabulary: Vocabulary) -> None:
    model = TextClassifier(ExMLDS(random_state=0), vocabulary=vocabulary).fit(*many())
    (why,) = model.explain(["athletics with a ball"], "u:1")
    assert why.matched == ("athletics",)


def test_names_are_rows_of_the_words_that_they_have(vocabulary: Vocabulary) -> None:
    words = CountVectorizer(vocabulary=["athletics", "baking", "bread", "fish", "making", "sport"])
    Y = csr_matrix([[1, 0, 0], [0, 1, 0]])
    rows = name_rows(list(LabelNames(["u:1", "u:2", "u:3"], vocabulary).names()), Y, words).toarray()
    np.testing.assert_allclose(rows[0], np.array([1, 0, 0, 0, 0, 2]) / 5**0.5, rtol=1e-6)  # "Sport" too
    np.testing.assert_allclose(rows[1], np.array([0, 1, 1, 0, 1, 0]) / 3**0.5, rtol=1e-6)
    assert not rows[2].any()  # no text has it
    assert not name_rows([], Y, words).nnz


def test_names_teach_the_map(vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    fit = ExMLDS.fit

    def spy(self: ExMLDS, *args: Any, **side: Any) -> ExMLDS:
        given.append(side.get("label_rows"))
        return fit(self, *args, **side)

    monkeypatch.setattr(ExMLDS, "fit", spy)
    TextClassifier(ExMLDS(random_state=0), vocabulary=vocabulary).fit(*many())
    assert np.diff(given[0].indptr).tolist() == [1, 1, 0]  # "sport" and "baking", which texts have


def test_broader_concepts_and_subdivisions_are_attributes(vocabulary: Vocabulary) -> None:
    names = Vocabulary.of_names({"1": "Golf -- Poetry", "2": "Cats -- Poetry", "3": "dogs"}, "en")
    subdivisions, headings = LabelNames(["1", "2", "3"], names).attributes()
    assert subdivisions.toarray().tolist() == [[1], [1], [0]]
    assert headings.toarray().tolist() == np.eye(3).tolist()
    nameless = VocabularyBuilder()
    nameless.broader.append((nameless.concept("1"), nameless.concept("0")))
    nameless.add_name(nameless.concept("2"), "Golf -- Poetry", "en")
    _, headings = LabelNames(["0", "1", "2"], nameless.build()).attributes()
    assert headings.toarray().tolist() == [[0], [0], [1]]
    builder = VocabularyBuilder()
    builder.broader.append((builder.concept("cat"), builder.concept("animal")))
    builder.broader.append((builder.concept("dog"), builder.concept("animal")))
    (broader,) = LabelNames(["animal", "cat", "dog", "other"], builder.build()).attributes()
    assert broader.toarray().tolist() == [[1], [1], [1], [0]]
    assert LabelNames(["u:1", "u:2"], vocabulary).attributes() == []


def test_a_text_that_is_only_a_name_gets_its_label(vocabulary: Vocabulary) -> None:
    model = TextClassifier(ExMLDS(random_state=0), vocabulary=vocabulary).fit(*many())
    assert model.predict_labels(["fishes"], k=3) == [["u:3"]]
    with pytest.warns(NoKnownWordWarning, match="1 of 2 texts"):
        assert model.predict_labels(["fishes", "xyzzy"], k=3) == [["u:3"], []]


def test_models_with_names_can_be_pickled(vocabulary: Vocabulary) -> None:
    model = TextClassifier(ExMLDS(random_state=0), vocabulary=vocabulary).fit(*many())
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert again.predict_labels(["fishes and the ball"], k=3) == model.predict_labels(
            ["fishes and the ball"], k=3
        )


def test_texts_that_nothing_is_learnt_from_change_no_score(vocabulary: Vocabulary) -> None:
    texts, labels = many()
    model = TextClassifier(ExMLDS(random_state=0), vocabulary=vocabulary).fit(texts, labels)
    more = TextClassifier(ExMLDS(random_state=0), vocabulary=vocabulary)
    more.fit(texts + ["sport and baking"] * 200, labels + [[]] * 200)
    weighted = TextClassifier(ExMLDS(random_state=0), vocabulary=vocabulary)
    weighted.fit(
        texts + ["sport and baking"] * 200, labels + [["u:1"]] * 200, sample_weight=[1] * 120 + [0] * 200
    )
    for other in (more, weighted):
        assert other._matcher is not None
        assert other._matcher.match(["a sport"]).nnz == 1
    assert model._matcher is not None
    assert more._matcher is not None
    np.testing.assert_allclose(
        more._matcher.match(["a sport"]).data, model._matcher.match(["a sport"]).data, rtol=1e-5
    )


def test_labels_without_names(vocabulary: Vocabulary) -> None:
    with pytest.warns(DataWarning, match="not in the vocabulary"):
        numbered = TextClassifier(vocabulary=vocabulary).fit(TEXTS, [[1], [2]] * 6)
    assert numbered.name_index_ is None
    assert numbered.predict_labels(["salt in the bread"], k=1) == [[2]]
    strict = TextClassifier(vocabulary=Vocabulary.of_names({"x": "y"}), allow_untrained=False)
    with pytest.warns(DataWarning, match="not in the vocabulary"):
        assert strict.fit(TEXTS, LABELS).name_index_ is None


def test_matrices_of_labels_have_the_columns_of_the_data(vocabulary: Vocabulary) -> None:
    texts, labels = many()
    model = TextClassifier(ExMLDS(random_state=0), vocabulary=vocabulary)
    model.fit(texts, labels, label_cooccurrence=csr_matrix(np.eye(2)))
    assert model.classes_.tolist() == ["u:1", "u:2"]
    assert model.name_index_ is not None


def test_only_lists_of_texts_are_explained(vocabulary: Vocabulary) -> None:
    model = TextClassifier(ExMLDS(random_state=0), vocabulary=vocabulary).fit(*many())
    with pytest.raises(ValueError, match="Give a list of texts"):
        model.explain("a text")
    (why,) = model.explain(iter(["a sport with a ball"]))
    assert why.label == "u:1"
    with pytest.warns(NoKnownWordWarning):
        (why,) = model.explain(["xyzzy"])
    assert why.label in ("u:1", "u:2")


def test_the_card_tells_of_untrained_labels(vocabulary: Vocabulary) -> None:
    model = TextClassifier(ExMLDS(random_state=0), vocabulary=vocabulary).fit(*many())
    assert "It can suggest 1 labels of its vocabulary that no training row had" in model.card()
    strict = TextClassifier(ExMLDS(random_state=0), vocabulary=vocabulary, allow_untrained=False)
    assert "never suggests a label that was not there" in strict.fit(*many()).card()


class Titled(NamedTuple):
    """A document with a title and a text."""

    text: str
    labels: list[str]
    fields: tuple[str, ...]

    @classmethod
    def of(cls, title: str, text: str, label: str) -> Titled:
        return cls(f"{title}\n{text}", [label], (title, text))


def test_names_are_looked_for_in_each_field(vocabulary: Vocabulary) -> None:
    # The name in the title is right, and the one in the text is not.
    documents = [
        Titled.of(title, f"about {text}", label)
        for title, text, label in (("sport", "baking", "u:1"), ("bread making", "sport", "u:2"))
    ] * 20
    model = TextClassifier(vocabulary=vocabulary, keep_rows=True).fit(documents)
    assert model.texts_[0] == "sport\nabout baking"
    _, side = model._rows_with_side(documents[:2])
    (sport, baking), (no_sport, right) = side["name_matches"][:, :2].toarray()
    assert sport > 0.8 > 0.2 > baking
    assert right > 0.8 > 0.2 > no_sport
    split = Titled.of("bread", "making sport", "u:1")
    assert [why.matched for why in model.explain([split, documents[1]], label="u:2")] == [
        (),
        ("bread making",),
    ]
    assert [why.matched for why in model.explain([split.text], label="u:2")] == [("bread making",)]
