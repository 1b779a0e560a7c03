"""A TextClassifier that grows: texts, ids, names of a vocabulary, and what is left of removed texts."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone

from exmlds import ExMLDS, FeatureNeighbors, MostFrequent, TextClassifier, load
from exmlds.data import Document, Vocabulary, read_texts, read_vocabulary
from exmlds.errors import DataWarning
from exmlds.vocabulary import VocabularyBuilder

ROOT = Path(__file__).parents[2]

TEXTS = ["goals and a red card", "bread with seeds", "the keeper held the ball", "flour, yeast, salt"] * 3
LABELS = [["sport"], ["baking"], ["sport"], ["baking"]] * 3
QUERY = "seeds of the red ball"


@pytest.fixture(scope="module")
def fitted_model() -> TextClassifier:
    return TextClassifier(growable=True).fit(TEXTS, LABELS)


@pytest.fixture
def model(fitted_model: TextClassifier) -> TextClassifier:
    return copy.deepcopy(fitted_model)


def best(model: Any, *texts: str) -> list[str]:
    return [row[0] for row in model.predict_labels(list(texts), k=1)]


def documents(*rows: tuple[str, str, str]) -> list[Document]:
    return [Document(text, [label], "here", id) for id, text, label in rows]


def test_texts_vote_at_once_and_new_labels_are_predicted(model: TextClassifier) -> None:
    model.partial_fit([QUERY] * 3, [["odd"]] * 3, ids=["a", "b", "c"])
    assert best(model, QUERY, "salt", "goals") == ["odd", "baking", "sport"]
    assert model.classes_.tolist() == ["baking", "sport", "odd"]
    assert model.row_ids_ == [*map(str, range(12)), "a", "b", "c"]
    assert (len(model.texts_), model.n_samples_fit_) == (15, 15)
    (why,) = model.explain([QUERY], label="odd")
    assert why.voters[0].text == QUERY
    assert why.voters[0].id in ("a", "b", "c")


def test_removed_and_relabelled_texts(model: TextClassifier) -> None:
    before = copy.deepcopy(model)
    model.partial_fit([QUERY] * 3, [["sport"]] * 3, ids=["a", "b", "c"])
    model.relabel(["a", "b"], [["odd"], ["odd"]]).remove_rows(["c"])
    assert best(model, QUERY) == ["odd"]
    assert model.texts_[-2:].tolist() == [QUERY, QUERY]
    model.remove_rows(["a", "b"])
    assert best(model, QUERY) == best(before, QUERY)
    model.drop_removed()
    assert (model.texts_.tolist(), model.row_ids_) == (TEXTS, before.row_ids_)
    assert model.ids_.tolist() == model.row_ids_


def test_documents_bring_ids_and_labels_and_replace_those_with_their_ids() -> None:
    rows = [(f"d{i}", text, labels[0]) for i, (text, labels) in enumerate(zip(TEXTS, LABELS))]
    model = TextClassifier(growable=True).fit(documents(*rows))
    assert model.row_ids_[:2] == ["d0", "d1"]
    with pytest.raises(ValueError, match="a row with the id 'd1' already"):
        model.partial_fit(documents(("d1", QUERY, "odd")))
    model.partial_fit(documents(("d1", QUERY, "odd"), ("e1", QUERY, "odd")), replace=True)
    assert best(model, QUERY) == ["odd"]
    assert model.row_ids_ == ["d0", *(f"d{i}" for i in range(2, 12)), "d1", "e1"]
    with pytest.raises(ValueError, match="Text 1, counted from 0, has no id"):
        model.partial_fit([*documents(("f", QUERY, "odd")), Document("ball", ["odd"], "here")])
    with pytest.raises(ValueError, match="There is no text"):
        model.partial_fit([], [])


def test_words_that_are_new_count_after_a_refresh(model: TextClassifier) -> None:
    with pytest.warns(DataWarning, match="hold no word"):
        model.partial_fit(["violin cello"] * 4, [["music"]] * 4)
    model.partial_fit([QUERY], [["odd"]], ids=["odd one"])
    model.remove_rows([0, 1])
    ids = model.row_ids_
    model.refresh()
    assert best(model, "cello") == ["music"]
    assert (model.row_ids_, model.texts_.tolist()[-1]) == (ids, QUERY)
    assert (model.growth_.n_added, model.growth_.n_removed, model.n_samples_fit_) == (0, 0, 15)


def test_fields_keep_their_weights_in_a_refresh() -> None:
    def of_fields(titles: list[str]) -> list[Document]:
        return [
            Document(f"{title}\n{text}", [label], "here", None, (title, text))
            for title, text, (label,) in zip(titles, TEXTS, LABELS)
        ]

    method = TextClassifier(FeatureNeighbors(), growable=True, field_weights=(3, 1))
    titles, more = [f"a {i}\nb" for i in range(12)], [f"c {i}" for i in range(12)]
    model = clone(method).fit(of_fields(titles)).partial_fit(of_fields(more)).partial_fit([QUERY], [["odd"]])
    model.refresh()
    again = clone(method).fit([*of_fields(titles), *of_fields(more), Document(QUERY, ["odd"], "here")])
    np.testing.assert_allclose(model.predict_topk(TEXTS, 2)[1], again.predict_topk(TEXTS, 2)[1], rtol=1e-5)
    assert model.predict_labels([*TEXTS, QUERY]) == again.predict_labels([*TEXTS, QUERY])
    assert model.feature_names_.tolist() == again.feature_names_.tolist()


def test_copies_and_folders_grow_in_the_same_way(model: TextClassifier, tmp_path: Path) -> None:
    model.partial_fit([QUERY] * 2, [["odd"]] * 2).remove_rows([3])
    model.save(tmp_path / "model")
    others = [load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    for each in (model, *others):
        each.partial_fit(["the salt of the ball"], [["new"]]).relabel([5], [["odd"]]).drop_removed()
    for other in others:
        assert (other.row_ids_, other.texts_.tolist()) == (model.row_ids_, model.texts_.tolist())
        for own, theirs in zip(
            model.predict_topk([QUERY, *TEXTS], 4), other.predict_topk([QUERY, *TEXTS], 4)
        ):
            np.testing.assert_array_equal(own, theirs)
    assert clone(model).growable


def test_no_byte_of_a_removed_text_stays_in_the_folder(model: TextClassifier, tmp_path: Path) -> None:
    secret = "goals by Zacharias Quillfeather"
    model.partial_fit([secret], [["sport"]], ids=["secret-id"])
    model.save(tmp_path / "before")
    assert any(secret.encode() in path.read_bytes() for path in (tmp_path / "before").iterdir())
    model.remove_rows(["secret-id"]).drop_removed().save(tmp_path / "after")
    for path in (tmp_path / "after").iterdir():
        for word in (b"Quillfeather", b"quillfeather", b"secret-id"):
            assert word not in path.read_bytes()


def test_a_change_holds_all_results(model: TextClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal is replayed without reading texts again."""
    changes: list[Any] = []
    other = copy.deepcopy(model)
    apply = TextClassifier._apply_change
    monkeypatch.setattr(
        TextClassifier, "_apply_change", lambda own, change: (changes.append(change), apply(own, change))
    )
    model.partial_fit([QUERY] * 2, [["odd"]] * 2).remove_rows([3]).relabel([4], [["odd"]])
    monkeypatch.undo()
    vectorizer, other.vectorizer_ = other.vectorizer_, None
    for change in changes:
        other._apply_change(change)
    other.vectorizer_ = vectorizer
    assert (best(other, QUERY, *TEXTS), other.row_ids_) == (best(model, QUERY, *TEXTS), model.row_ids_)
    assert other.texts_.tolist() == model.texts_.tolist()


@pytest.mark.parametrize(
    "crafted",
    [
        lambda change: change._replace(texts=change.texts[:1]),
        lambda change: change._replace(texts=np.array([1, 2], object)),
        lambda change: change._replace(field_lengths=np.zeros((3, 1), np.int32)),
        lambda change: change._replace(rows=change.rows._replace(removed=np.array([99]))),
        lambda change: change.rows,
        lambda change: change._replace(rows=None),
    ],
)
def test_crafted_changes_are_refused(model: TextClassifier, crafted: Callable[[Any], Any]) -> None:
    changes: list[Any] = []
    model._commit_change = changes.append  # type: ignore[method-assign]
    model.partial_fit([QUERY] * 2, [["odd"]] * 2)
    with pytest.raises(ValueError, match=r"\w"):
        model._apply_change(crafted(changes[0]))
    assert (len(model.texts_), model.n_labels_, model.n_samples_fit_) == (12, 2, 12)


def test_models_that_cannot_grow_say_what_to_set() -> None:
    for plain in (TextClassifier(), TextClassifier(keep_rows=True).fit(TEXTS, LABELS)):
        with pytest.raises(ValueError, match=r"fit it with TextClassifier\(growable=True\)"):
            plain.partial_fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match="MostFrequent can't grow"):
        TextClassifier(MostFrequent(), growable=True).fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match="12 texts, but 2 ids"):
        TextClassifier(keep_rows=True).fit(TEXTS, LABELS, ids=["a", "b"])
    model = TextClassifier(FeatureNeighbors(growable=True)).partial_fit(TEXTS, LABELS, ids=range(1, 13))
    assert model.remove_rows([1]).row_ids_[0] == "2"


def test_rows_that_are_added_without_their_texts_are_found(model: TextClassifier) -> None:
    """Otherwise a journal would hold changes that cannot be replayed."""
    model.model_.partial_fit(model.vectorizer_.transform([QUERY]), [["odd"]])
    for change in (
        lambda: model.partial_fit([QUERY], [["odd"]]),
        lambda: model.remove_rows([1]),
        model.refresh,
    ):
        with pytest.raises(ValueError, match="without their texts"):
            change()


def test_the_card_counts_the_rows_that_are_left(model: TextClassifier) -> None:
    model.partial_fit([QUERY] * 2, [["odd"]] * 2).remove_rows([3])
    card = model.card()
    assert "| training rows | 13 |" in card
    assert "2 rows were added and 1 removed since" in card
    assert "the training data themselves" in card


# With a vocabulary.


@pytest.fixture
def vocabulary() -> Vocabulary:
    builder = VocabularyBuilder()
    for id, name in (("u:1", "sport"), ("u:2", "baking"), ("u:3", "fish"), ("u:old", "athletics")):
        builder.add_name(builder.concept(id), name, "en")
    builder.replaced_by[builder.concept("u:old")] = builder.concept("u:1")
    return builder.build()


def test_a_label_of_the_vocabulary_becomes_a_trained_one(vocabulary: Vocabulary, tmp_path: Path) -> None:
    texts = [
        f"{text} {labels[0] if i % 3 else ''} number{i}"
        for i, (text, labels) in enumerate(zip(TEXTS * 5, LABELS * 5))
    ]
    labels = [["u:1" if "sport" in row else "u:2"] for row in LABELS * 5]
    model = TextClassifier(ExMLDS(random_state=0), vocabulary=vocabulary, growable=True).fit(texts, labels)
    assert best(model, "a fish") == ["u:3"], "by its name"
    model.partial_fit([QUERY] * 5, [["fish"]] * 5)
    assert best(model, QUERY) == ["u:3"]
    assert model.label_counts_[model.classes_.tolist().index("u:3")] == 5
    with pytest.warns(DataWarning, match="deprecated"):
        model.partial_fit(["a ball"], [["u:old"]], ids=["old"])
    with pytest.warns(DataWarning, match="not in the vocabulary"):
        model.partial_fit(["red bread"] * 3, [["u:9"]] * 3)
    assert model.label_counts_[model.classes_.tolist().index("u:1")] == 31
    assert best(model, "red bread") == ["u:9"]
    assert model.predict_labels(["a fish"], k=4) == [["u:3"]], "by its name, still"
    model.save(tmp_path / "model")
    assert best(load(tmp_path / "model").refresh(), "red bread") == ["u:9"]


def test_a_label_keeps_what_its_name_gives_when_its_first_text_comes(tmp_path: Path) -> None:
    texts, labels = read_texts(ROOT / "examples" / "tickets.jsonl")
    (tmp_path / "topics.txt").write_text("\n".join([*{name for row in labels for name in row}, "fish"]))
    topics = read_vocabulary(tmp_path / "topics.txt")
    model = TextClassifier(ExMLDS(random_state=0), vocabulary=topics, growable=True).fit(texts, labels)
    query = ["The fish has not arrived. Regards, Ann"]
    by_name = {found.label: found.score for found in model.suggest(query, k=2)[0]}
    model.partial_fit(["I ordered a red fish."], [["fish"]])
    after = {found.label: found.score for found in model.suggest(query, k=2)[0]}
    assert after["fish"] == pytest.approx(by_name["fish"], rel=1e-3)


def test_labels_as_matrices(model: TextClassifier) -> None:
    Y = csr_matrix((np.ones(2, np.float32), [2, 2], [0, 1, 2]), (2, 3))
    model.partial_fit([QUERY] * 2, Y, label_names=["odd"])
    assert best(model, QUERY) == ["odd"]
