"""The names of labels in texts: forms of names, stems, scores, and what a file may hold."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from exmlds.models import name_matcher
from exmlds.models.name_matcher import LabelName, NameMatcher, forms_of

NAMES = [
    "bread making",
    "Sea birds",
    "Art, Roman -- Italy",
    "Lincoln, Abraham, 1809-1865",
    "mercury (planet)",
]
TEXTS = [
    "making breads at home",
    "the bread-making book",
    "a sea bird of the north",
    "Roman art",
    "Lincoln's youth",
    "Mercury and Venus",
    "nothing of the kind",
]


def matcher_of(names: list[str], texts: list[str], language: str = "english") -> NameMatcher:
    Y = csr_matrix((len(texts), len(names)), dtype=np.float32)
    own = [LabelName(label, name, language) for label, name in enumerate(names)]
    return NameMatcher.fit(own, texts, Y, np.random.default_rng(0))[0]


def found(matcher: NameMatcher, text: str) -> list[int]:
    return matcher.match([text]).indices.tolist()


def test_names_stand_in_texts_by_their_stems() -> None:
    matcher = matcher_of(NAMES, TEXTS)
    assert [found(matcher, text) for text in TEXTS] == [[], [0], [1], [2], [3], [4], []]
    assert matcher.matched_words("The bread-making BOOK", 0) == ("bread making",)
    assert matcher.matched_words("The book", 0) == ()
    assert matcher.match([]).shape == (0, len(NAMES))
    assert found(matcher_of(["-", "?!"], TEXTS), "a text") == []


def test_words_of_texts_are_those_of_each_text_alone() -> None:
    texts = ["A_b 2nd", "Äpfel, Cafe\u0301", "", "x\0y", "straße\0z", "Ⅳ", "last"]
    words = name_matcher.Words.of(texts)
    alone = [["a", "b", "2nd"], ["äpfel", "café"], [], ["x", "y"], ["strasse", "z"], ["iv"], ["last"]]
    bounds = zip(words.starts, words.starts[1:])
    assert [[words.distinct[word] for word in words.ids[slice(*own)]] for own in bounds] == alone
    assert [name_matcher.words_of(text) for text in texts] == alone


def test_words_agree_loosely_by_their_beginnings() -> None:
    matcher = matcher_of(["modernism", "cats"], TEXTS)
    assert found(matcher, "modernity and its cat") == [0, 1]


def test_each_language_has_its_stems() -> None:
    names = [
        LabelName(0, "Häuser", "german"),
        LabelName(0, "houses", "english"),
        LabelName(1, "talot", "finnish"),
    ]
    Y = csr_matrix((1, 2), dtype=np.float32)
    matcher = NameMatcher.fit(names, ["text"], Y, np.random.default_rng(0))[0]
    assert found(matcher, "Das Haus der Häuser") == [0]
    assert found(matcher, "the house") == [0]
    assert found(matcher, "kaksi taloa") == [1]


@pytest.mark.parametrize(
    ("name", "forms"),
    [
        ("cats", ["cats"]),
        ("Golf -- Poetry", ["Golf -- Poetry", "Golf"]),
        ("moon (Earth)", ["moon (Earth)", "moon"]),
        ("Art, Roman", ["Art, Roman", "Roman Art", "Art"]),
        ("Wars, 1800-1815", ["Wars, 1800-1815", "Wars"]),
    ],
)
def test_forms_of_names(name: str, forms: list[str]) -> None:
    assert [form for form, _ in forms_of(name)] == forms


def test_scores_are_about_how_often_such_matches_are_right() -> None:
    rng = np.random.default_rng(0)
    names = [f"word{number}" for number in range(50)]
    texts, rows, columns = [], [], []
    for row in range(3_000):
        own = rng.permutation(50)[:3].tolist()
        texts.append(" ".join(names[label] for label in own))
        for label in own:
            # The name at the beginning of a text is mostly right, and others are not.
            if rng.random() < (0.8 if label == own[0] else 0.1):
                rows.append(row)
                columns.append(label)
    Y = csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), (3_000, 50))
    own_names = [LabelName(label, name, "") for label, name in enumerate(names)]
    matcher = NameMatcher.fit(own_names, texts, Y, rng)[0]
    matches = matcher.match(texts)
    assert matches.sum() == pytest.approx(Y.nnz, rel=0.05)
    first, second = matcher.match(["word3 word4 word5"])[0, [3, 4]].toarray()[0]
    assert first > 0.6
    assert second < 0.3


def test_of_many_labels_with_one_heading_the_frequent_ones_match() -> None:
    most = name_matcher.MOST_WITH_A_HEADING
    names = [f"France -- part {number}" for number in range(most + 20)]
    Y = csr_matrix((np.ones(1, np.float32), ([0], [most + 19])), (1, len(names)))
    own = [LabelName(label, name, "english") for label, name in enumerate(names)]
    matcher = NameMatcher.fit(own, ["text"], Y, np.random.default_rng(0))[0]
    assert len(found(matcher, "in France")) == most
    assert most + 19 in found(matcher, "in France")


@pytest.mark.parametrize(
    "field", ["stems", "labels", "weights", "label_starts", "agreements", "trie", "kinds"]
)
def test_a_damaged_index_is_refused(field: str) -> None:
    index = matcher_of(NAMES, TEXTS).index
    name_matcher.check(index, len(NAMES))
    wrong = {
        "trie": index.trie._replace(child_nodes=index.trie.child_nodes + 10_000),
        "labels": index.labels + len(NAMES),
        "kinds": index.kinds + 100,
        "label_starts": index.label_starts[::-1].copy(),
    }
    with pytest.raises(ValueError, match="name|stem|label|match"):
        name_matcher.check(
            index._replace(**{field: wrong.get(field, getattr(index, field)[:-1])}), len(NAMES)
        )


def test_names_stand_in_compounds_that_are_no_words_of_names() -> None:
    names = ["Steuer", "Politik", "Arbeit", "Markt", "Finanzpolitik", "europäische Union", "Zug"]
    matcher = matcher_of(names, ["text"], "german")
    assert found(matcher, "die Steuerpolitik") == [0, 1]
    assert found(matcher, "Arbeitsmärkte") == [2, 3]  # the s links, and the rest is a plural
    assert found(matcher, "Arbeitsmarktpolitik") == [1, 2, 3]
    assert found(matcher, "Finanzpolitik") == [4]  # a name of its own
    assert found(matcher, "Unionspolitik") == [1]  # "union" is a word of a name, but no name
    assert found(matcher, "Steuerzug") == []  # three letters are too few for a part
    assert matcher.matched_words("die Steuerpolitik der Union", 1) == ("steuerpolitik",)


def test_other_languages_have_no_compounds() -> None:
    assert found(matcher_of(["book", "maker"], ["text"]), "bookmaker") == []
    assert found(matcher_of(["kirja", "kauppa"], ["text"], "finnish"), "kirjakauppa") == [0, 1]


def test_a_part_of_a_compound_counts_as_often_as_it_is_right() -> None:
    words = ["steuer", "markt", "geld", "bank", "handel", "recht", "kosten", "preis"]
    long = [word for word in words if len(word) >= name_matcher.MIN_PART]
    pairs = [(first, last) for first in long for last in long if first != last]
    texts = [first + last for first, last in pairs]
    Y = np.array([[word == last for word in long] for _, last in pairs], np.float32)
    own = [LabelName(label, word, "german") for label, word in enumerate(long)]
    matcher = NameMatcher.fit(own, texts, csr_matrix(Y), np.random.default_rng(0))[0]
    scores = matcher.match(["geldmarkt"]).toarray()[0]
    assert scores[long.index("markt")] > 0.8
    assert 0 < scores[long.index("geld")] < 0.2


def test_a_name_stands_in_one_field() -> None:
    matcher = matcher_of(NAMES, TEXTS)
    titled = [("Bread", "making it at home"), ("", "on bread making"), ("Sea birds", "bread making")]
    assert matcher.match(titled).indices.tolist() == [0, 0, 1]
    assert matcher.matched_words(titled[2], 0) == ("bread making",)
    # Without anything learnt about fields, they make no difference.
    np.testing.assert_array_equal(
        matcher.match(["sea birds\nbread making"]).toarray(), matcher.match(titled[2:]).toarray()
    )


def test_a_title_counts_more_where_it_is_right_more_often() -> None:
    rng = np.random.default_rng(0)
    names = [f"word{number}" for number in range(50)]
    drawn = [rng.permutation(50)[:2].tolist() for _ in range(500)]
    titled = [(f"on {names[title]}", f"by {names[body]}") for title, body in drawn]
    Y = csr_matrix((np.ones(500, np.float32), ([*range(500)], [title for title, _ in drawn])), (500, 50))
    own = [LabelName(label, name, "") for label, name in enumerate(names)]
    matcher = NameMatcher.fit(own, titled, Y, rng)[0]
    # The name is as near to the beginning in both texts.
    in_title, in_body = matcher.match([("on word3", "by word4"), ("", "on word3 by word4")])[:, 3].toarray()
    assert in_title[0] > 0.8
    assert in_body[0] < in_title[0] / 2
    plain = NameMatcher.fit(own, ["\n".join(fields) for fields in titled], Y, np.random.default_rng(0))[0]
    assert not plain.index.weights[-4:].any()  # of fields and of compounds
