"""Reading texts with their labels: what works, how formats are detected, and the messages of errors."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
import tracemalloc
import unicodedata
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, save_npz

from exmlds import DataError, DataWarning
from exmlds.data import (
    Dataset,
    Document,
    is_text,
    make_xmc,
    open_texts,
    read_names,
    read_texts,
    write_npz,
    write_xc,
)
from exmlds.data.text import stream_texts

TWO = (["On ants, and bees", "Tides 🌊"], [["biology", "insects"], ["seas"]])
JSONL = (
    '{"id": 1, "text": "On ants, and bees", "labels": ["biology", "insects"]}\n'
    '{"id": 2, "text": "Tides 🌊", "labels": ["seas"]}\n'
)
CSV = 'id,text,labels\n1,"On ants, and bees",biology|insects\n2,Tides 🌊,seas\n'
TSV = "id\tText\tTags\n1\tOn ants, and bees\tbiology;insects\n2\tTides 🌊\tseas\n"
SEMICOLONS = "id;text;labels\n1;On ants, and bees;biology|insects\n2;Tides 🌊;seas\n"
FASTTEXT = "__label__biology __label__insects On ants, and bees\n__label__seas Tides 🌊\n"
WITH_IDS = "1\tbiology insects\tOn ants, and bees\n2\tseas\tTides 🌊\n"
WITHOUT_IDS = "biology insects\tOn ants, and bees\nseas\tTides 🌊\n"
ANNIF = "On ants, and bees\t<http://ex.org/biology> <http://ex.org/insects>\nTides 🌊\t<http://ex.org/seas>\n"
FILES = {  # the same two documents
    "jsonl": (JSONL, "jsonl"),
    "csv": (CSV, "csv"),
    "semicolons": (SEMICOLONS, "csv"),
    "tsv": (TSV, "tsv"),
    "fasttext": (FASTTEXT, "fasttext"),
    "with ids": (WITH_IDS, "libmultilabel"),
    "without ids": (WITHOUT_IDS, "libmultilabel"),
    "annif": (ANNIF, "annif-tsv"),
}
NUMBERS = {  # all that read_xc reads
    "header": "3 4 3\n0,2 1:0.5 3:2\n1 0:1\n2 2:1.5\n",
    "no header": "0,2 1:0.5 3:2\n1 0:1\n2 2:1.5\n",
    "bom": "\ufeff3 4 3\n0,2 1:0.5 3:2\n1 0:1\n2 2:1.5\n",
    "crlf": "3 4 3\r\n0,2 1:0.5 3:2\r\n1 0:1\r\n2 2:1.5\r\n",
    "tabs": "3\t4\t3\n0,2\t1:0.5\t3:2\n1\t0:1\n2\t2:1.5\n",
    "no labels": " 1:0.5 3:2\n 0:1\n",
    "no features": "0,2\n1\n",
    "no values": "1 2 4 \n3 4: 5\n",
    "empty rows": "\n\n0,2 1:0.5\n\n",
    "svmlight": "# made by hand, with text and labels\n1,3 1:0.5 2:2 # a row\n1:7\n2 3:1e-5\n",
    "split features": "3 4\n1:0.5 3:2\n0:1\n2:1.5\n",
    "split labels": "3 3\n0:1 2:1\n1:1\n2:1\n",
    "label filter": "0 2\n0 1\n2 0\n",
    "faulty": "1 2 2\nzero 1:1\n",
    "not finite": "1 2 2\n0 1:nan 0:-inf\n",
    "one long row": "0 " + " ".join(f"{i}:1" for i in range(50_000)),
}


def written(folder: Path, text: str | bytes, name: str = "data") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def without_uris(labels: list[list[str]]) -> list[list[str]]:
    return [[label.removeprefix("http://ex.org/") for label in row] for row in labels]


def jsonl(*rows: Any) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def corpus(folder: Path, **files: str | bytes | None) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        path = folder / name.replace("_", ".")
        path.unlink(missing_ok=True) if text is None else written(folder, text, path.name)
    return folder


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("form", ["plain", "gzip", "bom", "crlf", "no end", "blank lines"])
def test_every_format_is_detected_from_the_content(tmp_path: Path, name: str, form: str) -> None:
    text, format = FILES[name]
    if form == "crlf":
        text = text.replace("\n", "\r\n")
    elif form == "no end":
        text = text.rstrip("\n")
    elif form == "blank lines" and format != "fasttext":
        text = text.replace("\n", "\n\n") + "\n"
    raw = ("\ufeff" * (form == "bom") + text).encode()
    path = written(tmp_path, gzip.compress(raw) if form == "gzip" else raw, "data.anything")
    opened = open_texts(path)
    assert opened.format == format
    assert opened.path == path
    assert is_text(path)
    texts, labels = read_texts(path)
    assert (texts, without_uris(labels)) == TWO
    assert read_texts(path, format=format)[0] == TWO[0]
    given = format if name == "without ids" else None  # it could be plain text
    assert read_texts(path, labelled=False, format=given) == (TWO[0], [[], []])


def test_a_document_knows_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, JSONL, "train.jsonl")
    assert list(open_texts(path))[1][:3] == ("Tides 🌊", ["seas"], f"{path}:2")
    rows = 'text,labels\n"one\ntwo\n",a\n\nthree,b\n'
    assert [d.where for d in open_texts(written(tmp_path, rows, "t"))] == [
        f"{tmp_path}/t:2",
        f"{tmp_path}/t:6",
    ]


def test_a_document_knows_its_id(tmp_path: Path) -> None:
    def ids(data: str, **options: Any) -> list[str | None]:
        return [document.id for document in open_texts(written(tmp_path, data), **options)]

    assert ids("ID,text,labels\nx 1,one,a\n,two,b\n") == ["x 1", None]
    assert ids("key,text,labels\nk1,one,a\n", id="key") == ["k1"]
    assert ids("text,labels\none,a\n") == [None]
    assert ids("id,labels\none,a\n", text="id") == [None]  # the texts are no ids
    rows = [{"text": "a", "document_id": i, "labels": []} for i in ("x", 17, None, True, ["y"])]
    assert ids(jsonl(*rows)) == ["x", "17", None, None, None]
    assert ids("7\ta b\tone text\n8\tb\tanother text\n", format="libmultilabel") == ["7", "8"]
    assert ids("one\ntwo\n", labelled=False) == [None, None]
    with pytest.raises(DataError, match="data:1: there is no column 'key'. There are: text, labels"):
        ids("text,labels\none,a\n", id="key")
    with pytest.raises(DataError, match="is fasttext, which does not use id"):
        ids("__label__a one\n", id="key")
    half = '{"text": "a", "labels": [], "id": "\\ud83c"}'
    assert ids(half, errors="replace") == ["\ufffd"]


CROPS = ["grain, rice, wheat", "corn, grain", "grain", "corn, grain, wheat", "rice", "wheat", "grain, wheat"]


def test_cells_that_look_like_lists(tmp_path: Path) -> None:
    files = {
        "csv": "text,labels\n" + "".join(f'a,"{cell}"\n' for cell in CROPS),
        "jsonl": jsonl(*({"text": "a", "labels": cell} for cell in CROPS)),
        "libmultilabel": "".join(f"{cell.replace(' ', '')}\ta longer text\n" for cell in CROPS),
    }
    for format, text in files.items():
        path = written(tmp_path, text)
        example = "grain,rice,wheat" if format == "libmultilabel" else "grain, rice, wheat"
        message = f"data: 4 of the first 7 documents have .*'{example}'.*label_separator=\",\" .*--label-sep"
        with pytest.warns(DataWarning, match=message):
            _, labels = read_texts(path, format=format)
        assert labels[0] == [example]
        assert read_texts(path, format=format, label_separator=",")[1][0] == ["grain", "rice", "wheat"]
    path = written(tmp_path, "text;labels\n" + "".join(f"a;{cell.replace(', ', '|')}\n" for cell in CROPS))
    assert read_texts(path)[1][0] == ["grain", "rice", "wheat"]  # the default splits them
    with pytest.warns(DataWarning, match="'grain|rice|wheat'; .* label_separator=\"|\""):
        read_texts(path, label_separator=",")


def test_names_with_commas_are_no_lists(tmp_path: Path) -> None:
    cells = ["Paris, France", "Lyon, France", "Berlin, Germany", "Bonn, Germany", "France", "Germany"]
    path = written(tmp_path, "text,labels\n" + "".join(f'a,"{cell}"\n' for cell in cells))
    assert read_texts(path)[1] == [[cell] for cell in cells]


def test_texts_can_be_read_again(tmp_path: Path) -> None:
    path = written(tmp_path, JSONL)
    texts = open_texts(path)
    half_read = iter(texts)
    next(half_read)
    assert list(texts) == list(texts)
    assert next(half_read).text == TWO[0][1]
    assert repr(texts) == f"Texts({path}, jsonl, text: text, labels: labels)"


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("packed", [False, True])
def test_numbers_are_not_texts(tmp_path: Path, name: str, packed: bool) -> None:
    raw = NUMBERS[name].encode()
    path = written(tmp_path, gzip.compress(raw) if packed else raw, "train.jsonl")
    assert not is_text(path)
    for labelled in (True, False):
        with pytest.raises(DataError, match="holds numbers, not texts. Read it with read_xc"):
            open_texts(path, labelled=labelled)


def test_matrices_are_not_texts(tmp_path: Path) -> None:
    data = make_xmc(200, 50, 30, random_state=0)
    paths = write_npz(tmp_path / "X.trn.npz", data)
    write_xc(tmp_path / "a.txt.gz", data)
    save_npz(tmp_path / "small.npz", csr_matrix((1, 1)))
    for path in (*paths, tmp_path / "a.txt.gz", tmp_path / "small.npz"):
        assert not is_text(path)
        with pytest.raises(DataError, match="holds numbers"):
            open_texts(path)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32 - 1))
def test_whatever_write_xc_writes_is_numbers(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = csr_matrix(rng.standard_normal((6, 5)) * (rng.random((6, 5)) < 0.4), dtype=np.float32)
    Y = csr_matrix(rng.random((6, 4)) < 0.3, dtype=np.float32)
    path = tmp_path / "any.txt"
    write_xc(path, Dataset(X, Y))
    assert not is_text(path)


@pytest.mark.data
def test_real_files_are_distinguished(real_data: Path) -> None:
    for path in sorted(real_data.glob("*/*.gz")):
        assert is_text(path) == path.name.endswith(".jsonl.gz"), path
    assert not is_text(real_data / "bibtex")


@pytest.mark.data
def test_reuters(real_data: Path) -> None:
    texts, labels = read_texts(real_data / "reuters21578-90" / "train.jsonl.gz")
    assert (len(texts), len({name for row in labels for name in row})) == (7770, 90)
    assert texts[0].startswith("BAHIA COCOA REVIEW")
    assert sum(map(len, labels)) / len(labels) == pytest.approx(1.23, abs=0.01)


def came(data: str | bytes, **options: Any) -> list[str]:
    file = io.BytesIO(data if isinstance(data, bytes) else data.encode())
    return [document.text for document in stream_texts(file, "pipe", **options)]


def test_labels_that_hold_the_separator(tmp_path: Path) -> None:
    cities = ["Paris, France", "Rome, Italy", "Oslo, Norway", "Bern, Switzerland"]
    path = written(tmp_path, "text,labels\n" + "".join(f'a visit,"{name}, travel"\n' for name in 2 * cities))
    with pytest.warns(DataWarning, match=r"4 labels only follow .* 'France' after 'Paris'. If ',' is within"):
        read_texts(path, label_separator=",")
    rows = ["a,b", "b,c", "c,a", "b,a"] * 2
    read_texts(
        written(tmp_path, "text,labels\n" + "".join(f'x,"{row}"\n' for row in rows)), label_separator=","
    )


def test_stream_texts() -> None:
    row = '{"text": "a", "title": "b", "words": "c"}'
    assert came(f"\ufeffplain\r\n\n{row}\n [x\n") == ["plain", "", row, " [x"]
    assert came('{"quoted"} first\n{}\n') == ['{"quoted"} first', "{}"]
    assert came("{curly} brackets\n{}\n") == ["{curly} brackets", "{}"]
    assert came(f"\n{row}\n\n{row}\n") == ["", "a", "a"]  # the first line that is not blank decides
    assert came(f"{row}\n\n{row}", format="jsonl") == ["a", "a"]
    assert came(f"{row}\n", format="lines") == [row]
    assert came(row, text=["words", "title"]) == ["c\nb"]
    with pytest.warns(
        DataWarning, match=r"pipe: bytes that are not UTF-8 were read as �. Damaged .1.: pipe:1"
    ):
        assert came(b"caf\xe9", errors="replace") == ["caf\ufffd"]


@pytest.mark.parametrize(
    ("line", "options", "message"),
    [
        (
            '{"words": "a"}',
            {"format": "jsonl"},
            "pipe:2: no field has a standard name for texts. There are: words",
        ),
        ('{"text": 5}', {"format": "jsonl"}, "pipe:2: 'text' is 5, not a text"),
        ('{"text": "a"', {"format": "jsonl"}, "pipe:2:13: not JSON"),
        ('{"text": ' + "[" * 100_000, {"format": "jsonl"}, "pipe:2: cannot be read as JSON"),
        ('{"text": "\\ud83c"}', {"format": "jsonl"}, r"pipe:2: \\ud83c is half of a surrogate pair"),
        ('{"text": "a"}', {"text": ["words"]}, "pipe:1:1: not JSON"),
        ("plain", {"format": "jsonl"}, "pipe:2:1: not JSON"),
        ("plain", {"format": "lines", "text": ["words"]}, "pipe is lines, which does not use text"),
        ("plain", {"errors": "ignore"}, "errors must be 'strict' or 'replace'"),
        (b"caf\xe9", {}, "pipe:2: not UTF-8"),
    ],
)
def test_what_comes_follows_the_rules_of_files(line: str | bytes, options: Any, message: str) -> None:
    first = b'{"text": "one"}\n' if options.get("format") == "jsonl" else b"one\n"
    with pytest.raises(DataError, match=message):
        came(first + (line if isinstance(line, bytes) else line.encode()) + b"\n", **options)


def test_a_bad_line_does_not_end_a_stream() -> None:
    file = io.BytesIO(
        b'{"text": "a", "id": "x"}\n{"text": \n{"text": "b", "id": 7}\ncaf\xe9\n{"text": "c"}\n'
    )
    problems: list[str] = []
    documents = list(
        stream_texts(file, "pipe", report=lambda line, error: problems.append(f"{line} {error}"))
    )
    assert [(d.text, d.id) for d in documents] == [
        ("a", "x"),
        ("", None),
        ("b", "7"),
        ("", None),
        ("c", None),
    ]
    assert [problem[:12] for problem in problems] == ["2 pipe:2:10:", "4 pipe:4: no"]


def test_plain_lines_only_without_labels(tmp_path: Path) -> None:
    path = written(tmp_path, "A day in Rome\n\nbread, wine, and olives\n12 monkeys\n\n")
    assert is_text(path)
    opened = open_texts(path, labelled=False)
    assert opened.format == "lines"
    assert [d.text for d in opened] == ["A day in Rome", "", "bread, wine, and olives", "12 monkeys", ""]
    for options in ({}, {"format": "lines"}):
        with pytest.raises(DataError, match="labelled=False"):
            open_texts(path, **options)
    assert read_texts(written(tmp_path, "7\n"), labelled=False, format="lines") == (["7"], [[]])


@pytest.mark.parametrize(
    "line",
    [
        "a\u2028b",
        "a\u2029b",
        "a\x85b",
        "a\x0bb",
        "a\x0cb",
        "a\x1cb",
        "a\x1eb",
        "a\rb",
        "👩‍👩‍👧 e\u0301 \ufffe",
        "\u00a0x\u3000",
    ],
)
def test_lines_end_at_newlines_only(tmp_path: Path, line: str) -> None:
    files = {
        "lines": f"{line}\nsecond\n",
        "jsonl": jsonl({"text": line, "labels": ["x"]}, {"text": "second", "labels": []}),
        "csv": f'labels,text\nx,"{line}"\n,second\n',
        "fasttext": f"__label__x {line}\nsecond\n",
        "libmultilabel": f"x\t{line}\n\tsecond\n",
        "annif-tsv": f"{line}\t<x>\nsecond\t\n",
    }
    for format, text in files.items():
        texts, labels = read_texts(written(tmp_path, text), format=format, labelled=format != "lines")
        assert texts == [line, "second"], format
        assert labels == ([[], []] if format == "lines" else [["x"], []]), format


def test_a_carriage_return_before_the_end_of_a_file_is_text(tmp_path: Path) -> None:
    assert read_texts(written(tmp_path, "one\r\ntwo\r"), labelled=False)[0] == ["one", "two\r"]


def test_texts_and_labels_may_be_empty(tmp_path: Path) -> None:
    expected = (["", "no labels", ""], [["a"], [], []])
    files = {
        "jsonl": jsonl({"text": "", "labels": ["a"]}, {"text": "no labels", "labels": []})
        + jsonl({"text": None, "labels": None}),
        "csv": "text,labels\n,a\nno labels,\n,\n",
        "tsv": "text\tlabels\n\ta\nno labels\t\n\t\n",
        "fasttext": "__label__a\nno labels\n\n",
        "libmultilabel": "a\t\n\tno labels\n\t\n",
        "annif-tsv": "\t<http://a>\nno labels\t\n\t\n",
    }
    for format, text in files.items():
        opened = open_texts(written(tmp_path, text))
        assert opened.format == format
        texts = [d.text for d in opened]
        labels = [[label.removeprefix("http://") for label in d.labels] for d in opened]
        assert (texts, labels) == expected, format


def test_labels_are_trimmed_and_taken_once(tmp_path: Path) -> None:
    files = {
        "jsonl": jsonl({"text": "t", "labels": ["b", " a ", "b", "", " "]}),
        "csv": "text,labels\nt,b| a |b||\n",
        "fasttext": "__label__b __label__a __label__b __label__ t\n",
        "libmultilabel": "b  a b\tt\n",
        "annif-tsv": "t\t<b> <a>  <b>\n",
    }
    for format, text in files.items():
        assert read_texts(written(tmp_path, text), format=format) == (["t"], [["b", "a"]]), format


def test_labels_are_normalized(tmp_path: Path) -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    for text in (jsonl({"text": "t", "labels": [decomposed, composed]}), f"text,labels\nt,{decomposed}\n"):
        assert read_texts(written(tmp_path, text))[1] == [[composed]]
    assert read_names(written(tmp_path, decomposed)) == [composed]


def test_json_labels(tmp_path: Path) -> None:
    rows = [
        {"text": "a", "label": "one, and | the same"},
        {"text": "b", "label": ["x", "y"]},
        {"text": "c", "label": 17},
        {"text": "d", "label": [1, 2.5, -3, 10**400]},
        {"text": "e", "label": ""},
    ]
    path = written(tmp_path, jsonl(*rows))
    assert read_texts(path)[1] == [
        ["one, and | the same"],
        ["x", "y"],
        ["17"],
        ["1", "2.5", "-3", str(10**400)],
        [],
    ]
    assert read_texts(path, label_separator="|")[1][0] == ["one, and", "the same"]


@pytest.mark.parametrize(
    "wrong", ["[null]", "[[1]]", '[{"a": 1}]', "true", "[false]", '{"a": "b"}', "NaN", "[1e999]"]
)
def test_a_label_is_a_string_or_a_number(tmp_path: Path, wrong: str) -> None:
    path = written(tmp_path, JSONL + f'{{"text": "x", "labels": {wrong}}}\n')
    with pytest.raises(DataError, match=r"data:3: .* is not a label. Labels are strings or numbers") as error:
        read_texts(path)
    assert str(path) in str(error.value)


def test_a_text_is_a_string(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data:1: 'text' is 17, not a text. Write it as a string"):
        read_texts(written(tmp_path, jsonl({"text": 17, "labels": []})))


def test_fields_are_chosen_and_joined(tmp_path: Path) -> None:
    row = {"title": "Ants", "text": "They dig.", "Body": "All day.", "topics": ["t"], "tags": ["u"]}
    columns = ",".join(row) + "\n" + ",".join(v if isinstance(v, str) else v[0] for v in row.values()) + "\n"
    for text in (jsonl(row), columns):
        path = written(tmp_path, text)
        assert read_texts(path) == (["They dig."], [["u"]])
        assert read_texts(path, text="title", labels="topics") == (["Ants"], [["t"]])
        assert read_texts(path, text=["title", "Body"]) == (["Ants\nAll day."], [["u"]])
        assert read_texts(path, text=["title"], labels="Body") == (["Ants"], [["All day."]])
        opened = open_texts(path, text=["title", "Body"])
        assert (opened.text, opened.labels) == (("title", "Body"), "tags")
        assert [document.fields for document in opened] == [("Ants", "All day.")]
        assert [document.fields for document in open_texts(path)] == [()]


def test_names_of_columns_are_guessed_in_order_whatever_their_case(tmp_path: Path) -> None:
    opened = open_texts(written(tmp_path, "TITLE,Abstract,Keywords,Category\na,b,c,d\n"))
    assert (opened.text, opened.labels) == (("Abstract",), "Category")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_columns_that_cannot_be_guessed_are_listed(tmp_path: Path, delimiter: str) -> None:
    rows = [["nr", "inhalt", "thema", "jahr"], ["1", "Ameisen", "a|b", "1999"], ["2", "Bienen", "b", "2001"]]
    path = written(tmp_path, "".join(delimiter.join(row) + "\n" for row in rows))
    with pytest.raises(
        DataError, match=r"data:1: no column has a standard name for texts. There are: nr, inhalt, thema"
    ):
        open_texts(path)
    with pytest.raises(
        DataError, match=r"no column has a standard name for labels.*Pass labels=.*labels with labelled=False"
    ):
        open_texts(path, text="inhalt")
    with pytest.raises(DataError, match=r"there is no column 'Inhalt'. There are: nr, inhalt"):
        open_texts(path, text="Inhalt", labels="thema")
    with pytest.raises(DataError, match="no column has a standard name for texts"):
        open_texts(path, labelled=False)
    assert read_texts(path, text="inhalt", labels="thema") == (["Ameisen", "Bienen"], [["a", "b"], ["b"]])
    assert read_texts(path, text="inhalt", labelled=False)[0] == ["Ameisen", "Bienen"]


def test_a_header_is_not_taken_for_a_document(tmp_path: Path) -> None:
    path = written(tmp_path, "keywords\tinhalt\na b\tEs war einmal\n")
    with pytest.raises(
        DataError, match="There are: keywords, inhalt. Pass text=.*, or format=.* if this is not a header"
    ):
        open_texts(path)
    assert len(read_texts(path, format="libmultilabel")[0]) == 2


def test_a_repeated_column_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is more than one column 'a'"):
        open_texts(written(tmp_path, "a,a,labels\n1,2,3\n"), text="a")


def test_missing_fields_name_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"data:1: no field has a standard name for texts. There are: id, inhalt"
    ):
        open_texts(written(tmp_path, jsonl({"id": 1, "inhalt": "x"})))
    path = written(tmp_path, JSONL + "\n" + jsonl({"text": "x", "tag": "y"}))
    with pytest.raises(DataError, match=r"data:4: there is no field 'labels'. There are: text, tag. Add it"):
        read_texts(path)
    assert len(read_texts(path, labelled=False)[0]) == 3


def test_fields_are_detected_in_more_than_the_first_row(tmp_path: Path) -> None:
    """A first row without the standard field must not change the field of all others."""
    rows = jsonl({"title": "a", "labels": []}, {"text": "b", "title": "c", "labels": []})
    path = written(tmp_path, rows)
    with pytest.raises(DataError, match=r"data:1: there is no field 'text'. There are: title, labels"):
        read_texts(path)
    assert read_texts(path, text="title")[0] == ["a", "c"]


def test_cells_of_labels(tmp_path: Path) -> None:
    cells = {
        "a": ["a"],
        "a, b": ["a, b"],
        "a|b;c": ["a", "b;c"],
        "a; b": ["a", "b"],
        '["a|b", 17, "c"]': ["a|b", "17", "c"],
        " []": [],
        "": [],
    }
    out = io.StringIO()
    csv.writer(out).writerows([["text", "labels"], *(["x", cell] for cell in cells)])
    path = written(tmp_path, out.getvalue())
    assert read_texts(path)[1] == list(cells.values())
    assert read_texts(path, label_separator=",")[1][:3] == [["a"], ["a", "b"], ["a|b;c"]]
    assert read_texts(path, label_separator="; ")[1][3] == ["a", "b"]
    assert read_texts(written(tmp_path, "text,labels\nx,[draft] y\n"), label_separator=" ")[1] == [
        ["[draft]", "y"]
    ]
    path = written(tmp_path, "text,labels\nx,\"['a', 'b']\"\n")
    with pytest.raises(
        DataError, match=r"data:2: .* is not a JSON list .* Write \[\"a\", \"b\"\], or pass label_sep"
    ):
        read_texts(path)
    with pytest.raises(DataError, match=r"data:2: null is not a label"):
        read_texts(written(tmp_path, "text,labels\nx,[null]\n"))


def test_quoted_cells_over_several_lines(tmp_path: Path) -> None:
    path = written(tmp_path, '"text","labels"\r\n"one\r\n""two"", three\n",a\r\nfour,b\r\n')
    assert read_texts(path) == (['one\r\n"two", three\n', "four"], [["a"], ["b"]])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("alone", "got 1 cell, but the header has 2 cells. Quote a cell that holds ','"),
        ("one, two, three", "got 3 cells, but the header has 2 cells"),
        ('"open, a\nb', "not a row of cells .unexpected end of data.. Quote a cell"),
        ('"shut" open,a', "not a row of cells .*expected after.*double each quote inside it"),
        ("bare\rreturn,a", "not a row of cells .new-line character"),
    ],
)
def test_faulty_rows_of_a_table(tmp_path: Path, row: str, message: str) -> None:
    path = written(tmp_path, f'text,labels\n"fine\n",a\n{row}\n')
    with pytest.raises(DataError, match=f"data:4: {message}"):
        read_texts(path)


@pytest.mark.parametrize("labelled", [True, False])
def test_a_table_with_nothing_but_faulty_rows_is_a_table(tmp_path: Path, labelled: bool) -> None:
    with pytest.raises(DataError, match="data:2: got 1 cell"):
        read_texts(written(tmp_path, "text,labels\nalone\n"), labelled=labelled)


@pytest.mark.parametrize("first", ["text", "Title", "Content, happy", "Text, and so on"])
def test_plain_lines_may_begin_with_a_usual_name(tmp_path: Path, first: str) -> None:
    path = written(tmp_path, f"{first}\nants\nbees\n")
    assert read_texts(path, labelled=False)[0] == [first, "ants", "bees"]


def test_one_column_without_labels(tmp_path: Path) -> None:
    path = written(tmp_path, "text\nants\nbees\n")
    assert read_texts(path, labelled=False, text="text")[0] == ["ants", "bees"]
    assert read_texts(path, labelled=False, format="csv")[0] == ["ants", "bees"]


@pytest.mark.parametrize("header", ["text, labels", '"text", "labels"'])
def test_a_blank_behind_each_comma_of_the_header(tmp_path: Path, header: str) -> None:
    path = written(tmp_path, f'{header}\n"a, b", "x;y"\nc, x\n"d",y\n')
    assert read_texts(path) == (["a, b", "c", "d"], [["x", "y"], ["x"], ["y"]])
    assert read_texts(path, labelled=False)[0] == ["a, b", "c", "d"]
    with pytest.raises(DataError, match="data:2: a space comes before a quote; remove it"):
        read_texts(written(tmp_path, 'text,labels\n"a, b", "x;y"\n'))


def test_a_stray_quote_does_not_merge_rows(tmp_path: Path) -> None:
    for rows in ('1\t"ab\ta\n2\tcd"\tb\n', '1\tab\t"a\n2\tcd\tb"\n'):
        with pytest.raises(DataError, match="data:2: a quoted cell holds a tab and a newline; it may be two"):
            read_texts(written(tmp_path, f"id\ttext\tlabels\n{rows}"))
    with pytest.raises(DataError, match="data:2: got 5 cells"):
        read_texts(written(tmp_path, 'text\tlabels\tid\na\tb\t"c\nd"\te\tf\n'))
    path = written(tmp_path, 'text\tlabels\n"one\ntwo"\ta\n"with\ttab"\tb\n')
    assert read_texts(path)[0] == ["one\ntwo", "with\ttab"]


def test_fasttext_prefix_anywhere_in_the_line(tmp_path: Path) -> None:
    path = written(tmp_path, "#a #b how are you\nfine, C# __label__x and F##y #c\n")
    assert read_texts(path, label_prefix="#") == (
        ["how are you", "fine, C# __label__x and F##y"],
        [["a", "b"], ["c"]],
    )
    path = written(
        tmp_path, "__label__a  two  blanks\nin __label__b between\nat the end\t__label__c\nx__label__d\n"
    )
    assert read_texts(path) == (
        ["two  blanks", "in between", "at the end", "x__label__d"],
        [["a"], ["b"], ["c"], []],
    )


def test_libmultilabel_lines_have_the_same_cells(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"data:3: got 4 cells instead of 3 cells, as the first line. A line is"
    ):
        read_texts(written(tmp_path, WITH_IDS + "3\ta\ttext\twith a tab\n"))
    with pytest.raises(DataError, match=r"data:2: got 1 cell instead of 2 cells"):
        read_texts(written(tmp_path, "a\tb c\nno tab\n"))
    with pytest.raises(DataError, match=r"data:1: got 1 cell instead of 2 or 3 cells"):
        read_texts(written(tmp_path, "no tab\n"), format="libmultilabel")
    path = written(tmp_path, "deep sea|sky\twater and air\n")
    assert read_texts(path, label_separator="|") == (["water and air"], [["deep sea", "sky"]])


@pytest.mark.parametrize(
    "text",
    [
        "the cat sat\tanimals\nthe car ran\tvehicles\n",
        "sentence\tclass\nthe cat sat\tanimals\nthe car ran\tvehicles\n",
        "class\tsentence\nanimals\tthe cat sat\nvehicles\tthe car ran\n",
        "1\tthe cat sat\tanimals\n2\tthe car ran\tvehicles\n",
        "news\tanimals\tthe cat sat there\nnews\tvehicles\tthe car ran away\n",
        "hello\tworld\t<http://x/1>\n",
        "hello\tworld\t<http://x/1> <http://x/2> <http://x/3>\n",
        "ants\tbiology\n",
    ],
)
def test_cells_that_could_be_texts_or_labels_are_not_guessed(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(
        DataError, match="not clear which one holds the text.*header, pass.*libmultilabel.*add a"
    ):
        open_texts(path)
    assert open_texts(path, format="libmultilabel").format == "libmultilabel"


def test_a_link_in_a_text_is_not_a_subject(tmp_path: Path) -> None:
    path = written(tmp_path, "ants\tmore at https://ex.org/ants\nbees\tthey fly about, see <bees>\n")
    assert open_texts(path).format == "libmultilabel"


def test_a_header_of_other_words_needs_arguments(tmp_path: Path) -> None:
    path = written(tmp_path, "sentence\tclass\nthe cat sat\tanimals\nthe car ran\tvehicles\n")
    texts = read_texts(path, text="sentence", labels="class")
    assert texts == (["the cat sat", "the car ran"], [["animals"], ["vehicles"]])


def test_plain_lines_keep_what_is_before_a_tab(tmp_path: Path) -> None:
    path = written(tmp_path, "the cat sat\tanimals\nhello world\tto all\n")
    assert read_texts(path, labelled=False)[0] == ["the cat sat\tanimals", "hello world\tto all"]
    path = written(tmp_path, "Ants\tThey dig all day\nBees\tThey fly about\n")
    with pytest.raises(DataError, match='libmultilabel" if the labels are before it, or format="lines"'):
        open_texts(path, labelled=False)
    whole = ["Ants\tThey dig all day", "Bees\tThey fly about"]
    assert read_texts(path, labelled=False, format="lines")[0] == whole
    path = written(tmp_path, "hello\tworld\t<http://x/1>\n")
    assert read_texts(path, labelled=False)[0] == ["hello\tworld\t<http://x/1>"]


def test_the_format_of_one_long_document_is_detected(tmp_path: Path) -> None:
    text = "word " * 20_000  # longer than START
    annif = written(tmp_path, f"{text}\t<http://ex.org/a> <http://ex.org/b>\nshort\t<http://ex.org/a>\n")
    assert [len(d.labels) for d in open_texts(annif)] == [2, 1]
    assert open_texts(annif).format == open_texts(annif, labelled=False).format == "annif-tsv"
    fasttext = written(tmp_path, f"{text}__label__a\n{text}__label__b\n")
    assert read_texts(fasttext) == ([text.strip()] * 2, [["a"], ["b"]])
    path = written(tmp_path, f"{text}\n{text}\t<http://ex.org/a>\nb\t<http://ex.org/a>\n")
    assert open_texts(path).format == "annif-tsv"  # detected by the lines after the first


def test_annif_tsv(tmp_path: Path) -> None:
    path = written(tmp_path, "Ants\thttps://ex.org/a <urn:b>\nno subjects\t\n")
    assert open_texts(path).format == "annif-tsv"
    assert read_texts(path)[1] == [["https://ex.org/a", "urn:b"], []]
    with pytest.raises(DataError, match=r"data:3: there is no tab. A line is `text<TAB><uri> <uri>`"):
        read_texts(written(tmp_path, ANNIF + "no tab\n"))
    for labelled in (True, False):
        with pytest.raises(DataError, match=r"data:3: 'world' follows a tab and is not a URI"):
            read_texts(written(tmp_path, ANNIF + "hello\tworld\t<http://x/1>\n"), labelled=labelled)


URIS = ["http://ex.org/a;b", "http://ex.org/c"]


@pytest.mark.parametrize("between", [" ", ",", ", ", "; ", "\t"])
def test_lists_of_uris_are_split_in_every_format(tmp_path: Path, between: str) -> None:
    cell = between.join(f"<{uri}>" for uri in URIS)
    for text in (f"text\tsubjects\nAnts\t{cell}\nBees\t<urn:d>\n", f"Ants\t{cell}\nBees\t<urn:d>\n"):
        assert read_texts(written(tmp_path, text)) == (["Ants", "Bees"], [URIS, ["urn:d"]])
    for names in ("text,labels", "text,subject_uris"):
        quoted = written(tmp_path, f'{names}\nAnts,"{cell}"\n')
        assert read_texts(quoted)[1] == [URIS]
    assert read_texts(quoted, label_separator="|")[1] == [URIS]
    for labels in (cell, [cell], [f"<{uri}>" for uri in URIS]):
        assert read_texts(written(tmp_path, jsonl({"text": "Ants", "labels": labels})))[1] == [URIS]
    assert read_texts(written(tmp_path, f"text,labels\nAnts,{cell}\n"))[1] == [URIS]


def test_brackets_around_other_labels_are_kept(tmp_path: Path) -> None:
    path = written(tmp_path, "text\tlabels\nAnts\t<ants>;a <http://ex.org/a>\n")
    assert read_texts(path)[1] == [["<ants>", "a <http://ex.org/a>"]]
    almost = "<urn:a>   " * 1_000 + "x"  # this must not take exponential time
    assert read_texts(written(tmp_path, f"text\tlabels\nAnts\t{almost}\n"))[1] == [[almost]]


def test_annif_folder(tmp_path: Path) -> None:
    folder = corpus(
        tmp_path / "corpus",
        b_txt="Tides 🌊\n",
        b_tsv="<http://ex.org/seas>\tseas\tmore\n\n<http://ex.org/seas>\tseas\n",
        a_txt="\ufeffOn\u2028ants\r\n",
        a_tsv="<http://ex.org/x>\tthings \r\nhttp://ex.org/y\tother things",
        c_txt="",
        notes_md="not a document",
    )
    assert is_text(folder)
    opened = open_texts(folder)
    assert opened.format == "annif-folder"
    with pytest.warns(DataWarning, match=r"corpus: 1 of 3 documents have no subjects: c.txt. No label is"):
        documents = list(opened)
    assert documents == [
        Document("On\u2028ants\r\n", ["http://ex.org/x", "http://ex.org/y"], str(folder / "a.txt"), "a.txt"),
        Document("Tides 🌊\n", ["http://ex.org/seas"], str(folder / "b.txt"), "b.txt"),
        Document("", [], str(folder / "c.txt"), "c.txt"),
    ]
    with pytest.warns(DataWarning, match="no subjects"):
        assert read_texts(folder, labels="label")[1] == [["things", "other things"], ["seas"], []]
    assert read_texts(folder, labelled=False)[1] == [[], [], []]
    corpus(folder, c_key="seas\n<things> \n")
    for labels in (None, "uri"):
        with pytest.raises(
            DataError, match=r'has .key files, which name labels without URIs. Pass labels="label"'
        ):
            open_texts(folder, labels=labels)
    assert read_texts(folder, labels="label")[1][2] == ["seas", "<things>"]
    with pytest.raises(DataError, match='labels must be "uri" or "label" for an Annif folder'):
        open_texts(folder, labels="topics")
    corpus(folder, d_txt="x", d_tsv="<>\tnothing\n", c_key=None)
    with pytest.raises(
        DataError, match=r'd.tsv:1: there is no URI before the name. Add it, or pass labels="label"'
    ):
        read_texts(folder)
    corpus(folder, d_tsv="<http://ex.org/z>\n")
    with pytest.raises(DataError, match=r"d.tsv:1: there is no name after the URI"):
        read_texts(folder, labels="label")


def test_annif_folder_of_keys_and_packed(tmp_path: Path) -> None:
    folder = corpus(tmp_path / "packed")
    written(folder, gzip.compress(b"Ants"), "a.txt.gz")
    written(folder, gzip.compress(b"insects\ninsects\nsoil"), "a.key.gz")
    assert read_texts(folder) == read_texts(folder, labels="label") == (["Ants"], [["insects", "soil"]])
    with pytest.raises(DataError, match="hold names and no URIs. Leave out labels"):
        open_texts(folder, labels="uri")
    corpus(folder, a_txt="Ants again")
    with pytest.raises(DataError, match=r"has both a.txt and a.txt.gz; remove one of them"):
        open_texts(folder)


def test_annif_folder_endings_in_any_case(tmp_path: Path) -> None:
    folder = corpus(tmp_path / "upper")
    for name, text in {
        "UPPER.TXT": "Ants",
        "UPPER.KEY": "insects",
        "b.Txt": "Bees",
        "b.Tsv": "u:b\tb",
    }.items():
        written(folder, text, name)
    assert read_texts(folder, labels="label") == (["Ants", "Bees"], [["insects"], ["b"]])
    written(folder, "Ants again", "UPPER.txt")
    with pytest.raises(DataError, match=r"has both UPPER.TXT and UPPER.txt; remove one of them"):
        open_texts(folder)


def test_annif_folder_matches_names_in_either_normal_form(tmp_path: Path) -> None:
    folder = corpus(tmp_path / "forms")
    written(folder, "A district", unicodedata.normalize("NFD", "Töölö.txt"))
    written(folder, "Helsinki", unicodedata.normalize("NFC", "Töölö.key"))
    assert read_texts(folder) == (["A district"], [["Helsinki"]])


@pytest.mark.parametrize("header", ["uri\tlabel", "Subject\tLabel", "Concept\tPreferred name"])
def test_annif_folder_skips_header_lines(tmp_path: Path, header: str) -> None:
    folder = corpus(tmp_path / "headers", a_txt="Ants", a_tsv=f"{header}\n<urn:a>\tants\n", b_txt="Bees")
    corpus(folder, b_tsv="<urn:b>\tbees\n")
    for labels, found in {"uri": [["urn:a"], ["urn:b"]], "label": [["ants"], ["bees"]]}.items():
        with pytest.warns(DataWarning, match=r"first line of 1 .tsv files is a header and is skipped: a.tsv"):
            assert read_texts(folder, labels=labels)[1] == found


def test_annif_folder_names_the_files_that_are_not_read(tmp_path: Path) -> None:
    folder = corpus(tmp_path / "left", a_txt="Ants", a_tsv="<urn:a>\tants", a_key="bees", c_key="x", d_tsv="")
    with pytest.warns(DataWarning) as caught:
        assert read_texts(folder)[1] == [["urn:a"]]
    messages = [str(warning.message) for warning in caught]
    assert messages[0].endswith("1 documents have several files of subjects; those read are a.tsv.")
    assert messages[1].endswith("2 files of subjects have no document (.txt): c.key, d.tsv.")
    assert read_texts(folder, labelled=False)[0] == ["Ants"]


def test_annif_csv_and_jsonl(tmp_path: Path) -> None:
    path = written(
        tmp_path, "id,text,subject_uris\n1,Ants,<urn:a> <urn:b>\n2,Bees,http://ex.org/b;c\n3,Cats,\n"
    )
    opened = open_texts(path)
    assert (opened.format, opened.text, opened.labels) == ("csv", ("text",), "subject_uris")
    assert read_texts(path)[1] == [["urn:a", "urn:b"], ["http://ex.org/b;c"], []]
    subjects = [{"uri": "<urn:a>", "label": "ants"}, {"uri": "urn:b"}, {"uri": "urn:b"}]
    path = written(tmp_path, jsonl({"text": "Ants", "subjects": subjects}, {"text": "Bees", "subjects": []}))
    assert open_texts(path).format == "jsonl"
    assert read_texts(path) == (["Ants", "Bees"], [["urn:a", "urn:b"], []])
    with pytest.raises(DataError, match=r'data:1: {"uri": "<>"} is not a label. Labels are .* with a uri'):
        read_texts(written(tmp_path, jsonl({"text": "Ants", "subjects": [{"uri": "<>"}]})))


def test_annif_folder_of_json(tmp_path: Path) -> None:
    subjects = [{"uri": "<urn:a>", "label": "ants"}, {"uri": "urn:b", "label": "bees"}]
    folder = corpus(
        tmp_path / "corpus",
        a_json=json.dumps({"text": "On ants", "subjects": subjects}, indent=2),
        b_json=json.dumps({"text": "Tides 🌊"}),
    )
    assert is_text(folder)
    assert open_texts(folder).format == "annif-folder"
    with pytest.warns(DataWarning, match=r"1 of 2 documents have no subjects: b.json\."):
        assert read_texts(folder) == (["On ants", "Tides 🌊"], [["urn:a", "urn:b"], []])
    with pytest.warns(DataWarning, match="no subjects"):
        assert read_texts(folder, labels="label")[1] == [["ants", "bees"], []]
    assert read_texts(folder, labelled=False)[1] == [[], []]
    corpus(folder, c_json='{"text": "x",\n "subjects": [}')
    with pytest.raises(DataError, match=r"c.json:2:15: not JSON"):
        read_texts(folder)
    corpus(folder, c_json='{"title": "x"}')
    with pytest.raises(DataError, match=r"c.json: there is no field 'text'"):
        read_texts(folder)
    corpus(folder, z_txt="a text", z_key="a")  # with .txt documents, .json files are ignored
    assert read_texts(folder) == (["a text"], [["a"]])
    other = corpus(tmp_path / "other", manifest_json='{"version": 1}')
    assert not is_text(other)
    with pytest.raises(DataError, match="It holds: manifest.json"):
        open_texts(other)


FORMATTED = {
    "a.pdf": (b"%PDF-1.7\n%\xe2\xe3\0", "is a PDF file; save its text as plain text"),
    "a.rtf": (rb"{\rtf1 bread}", "is an RTF file"),
    "a.doc": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0", "is a file of Word or Excel"),
    "a.docx": (b"PK\3\4" + b"\0" * 22 + b"\x13\0\0\0[Content_Types].xml", "is a zip archive, as .docx"),
}


@pytest.mark.parametrize("name", FORMATTED)
def test_documents_that_are_no_plain_text(tmp_path: Path, name: str) -> None:
    content, message = FORMATTED[name]
    path = written(tmp_path, content, name)
    assert is_text(path)  # so that it is not said to hold numbers
    for options in ({}, {"format": "document"}, {"format": "lines"}):
        with pytest.raises(DataError, match=message):
            open_texts(path, labelled=False, **options).__iter__().__next__()
    with pytest.raises(DataError, match="save the texts of its documents as .txt files. It holds: a"):
        open_texts(tmp_path)
    corpus(tmp_path, b_txt="Ants")
    with pytest.warns(
        DataWarning, match=rf"1 documents that are no plain text \(.txt\) are left out: {name}"
    ):
        assert read_texts(tmp_path, labelled=False)[0] == ["Ants"]
    corpus(tmp_path, a_txt="Bees")  # the text of the document
    assert read_texts(tmp_path, labelled=False)[0] == ["Bees", "Ants"]


def test_a_zip_archive_of_arrays_holds_numbers(tmp_path: Path) -> None:
    with (tmp_path / "arrays").open("wb") as file:
        np.savez(file, a=np.ones(3))
    assert not is_text(tmp_path / "arrays")
    assert not is_text(written(tmp_path, b"PK\3\4 damaged", "damaged.npz"))


def test_a_byte_order_mark_of_utf8_counts_more_than_the_encoding(tmp_path: Path) -> None:
    folder = corpus(tmp_path / "corpus")
    written(folder, "Ameisen in Köln".encode("cp1252"), "a.txt")
    written(folder, "Köln\r\n".encode("utf-8-sig"), "a.key")
    assert read_texts(folder, encoding="cp1252") == (["Ameisen in Köln"], [["Köln"]])


def test_lists_in_files_of_subjects_are_reported(tmp_path: Path) -> None:
    folder = corpus(tmp_path / "corpus")
    for number, names in enumerate(["grain, rice", "grain, wheat", "rice, wheat", "corn", "rice"]):
        written(folder, "a word", f"{number}.txt")
        written(folder, names, f"{number}.key")
    with pytest.warns(DataWarning, match="such as 'grain, rice'; .* Write one label per line unless labels"):
        read_texts(folder)


def test_folders_that_are_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no documents \(.txt files\); name a file in it"):
        open_texts(tmp_path)
    assert not is_text(tmp_path)
    (tmp_path / "2020").mkdir()
    with pytest.raises(
        DataError, match="name one of its folders, or put all documents into one. It holds: 2020/"
    ):
        open_texts(tmp_path)
    corpus(tmp_path, a_txt="Ants", b_txt="")
    with pytest.raises(DataError, match="a.txt needs a.tsv or a.key"):
        open_texts(tmp_path)
    assert is_text(tmp_path)
    assert read_texts(tmp_path, labelled=False)[0] == ["Ants", ""]
    written(tmp_path, NUMBERS["header"], "train.txt")
    assert not is_text(tmp_path)
    with pytest.raises(DataError, match="is not a folder; annif-folder needs a folder of"):
        open_texts(tmp_path / "a.txt", format="annif-folder")
    with pytest.raises(DataError, match="is a folder; name a file in it"):
        open_texts(tmp_path, format="jsonl")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            JSONL + '{"text": "x", "labels": [}\n',
            r":3:26: not JSON \(Expecting value\). Write one object per line",
        ),
        ('{\n "text": "x"\n}\n', r":1:2: not JSON"),
        (JSONL + "[1]\n", r":3: not a JSON object. Write one object per line"),
        ('[{"text": "x", "labels": []}]\n', r":1: not a JSON object"),
        ('{"text": "x", "labels": ' + "[" * 100_000 + "\n", r":1: cannot be read as JSON"),
        ('{"text": "x", "labels": ' + "1" * 5000 + "}\n", r":1: cannot be read as JSON .Exceeds"),
        ("", " is empty"),
        ("\ufeff", " is empty"),
        ("\n\r\n\n", " holds no documents"),
        ("text,labels\n", " holds no documents"),
        (
            "just a text\nand one more\n",
            "in none of the supported formats: jsonl, csv, tsv, fasttext, libmultil",
        ),
        ("\x00\x01\x02\x03", "is not text: it holds NUL bytes"),
    ],
)
def test_malformed_files(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(DataError, match=message) as error:
        read_texts(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
def test_utf16_is_refused(tmp_path: Path, encoding: str) -> None:
    path = written(tmp_path, ("\ufeff" * (encoding == "utf-16-be") + CSV).encode(encoding))
    assert is_text(path)
    for format in (None, "csv"):
        with pytest.raises(DataError, match="is UTF-16 or UTF-32; save it as UTF-8"):
            open_texts(path, format=format)
    corpus(tmp_path / "corpus", a_txt=path.read_bytes(), a_key="x")
    with pytest.raises(DataError, match="a.txt is UTF-16"):
        read_texts(tmp_path / "corpus")


@pytest.mark.parametrize("name", FILES)
def test_broken_encodings(tmp_path: Path, name: str) -> None:
    text, _ = FILES[name]
    path = written(tmp_path, text.encode().replace("🌊".encode(), b"\xe9\xff"))
    line = 3 if name in ("csv", "semicolons", "tsv") else 2
    with pytest.raises(
        DataError, match=rf"data:{line}: not UTF-8 .*with encoding=\"latin-1\", or pass errors=\"replace\""
    ):
        read_texts(path)
    with pytest.warns(DataWarning, match=rf"not UTF-8 were read as �. Damaged .1.: .*data:{line}\."):
        texts, labels = read_texts(path, errors="replace")
    assert texts == ["On ants, and bees", "Tides ��"]
    assert without_uris(labels) == TWO[1]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-32-be", "shift_jis"])
@pytest.mark.parametrize("name", FILES)
def test_other_encodings(tmp_path: Path, name: str, encoding: str) -> None:
    sign = "海" if encoding == "shift_jis" else "×"
    text, format = FILES[name]
    path = written(tmp_path, text.replace("🌊", sign).encode(encoding))
    assert open_texts(path, encoding=encoding).format == format
    texts, labels = read_texts(path, encoding=encoding)
    assert texts == ["On ants, and bees", f"Tides {sign}"]
    assert without_uris(labels) == TWO[1]


def test_other_encodings_of_folders_and_their_errors(tmp_path: Path) -> None:
    folder = corpus(tmp_path / "corpus", a_txt=b"caf\xe9 \x85 \x81", a_key=b"K\xf6ln")
    assert read_texts(folder, encoding="latin-1") == (["café \x85 \x81"], [["Köln"]])
    with pytest.raises(DataError, match=r"a.txt: not cp1252 .*at byte 8.*encoding=\"…\""):
        read_texts(folder, encoding="cp1252")
    with pytest.warns(DataWarning, match=r"not cp1252 were read as �. Damaged .1.: .*a.txt\."):
        assert read_texts(folder, encoding="cp1252", errors="replace")[0] == ["café … �"]
    with pytest.warns(DataWarning, match=r"not UTF-8 were read as �. Damaged .2.: .*a.txt, .*a.key:1\."):
        read_texts(folder, errors="replace")
    for encoding in ("latin-11", "hex", "", "\0"):
        with pytest.raises(DataError, match="encoding must be an encoding that Python knows"):
            open_texts(folder, encoding=encoding)


def test_half_a_character_in_json(tmp_path: Path) -> None:
    path = written(tmp_path, r'{"text": "\ud83c\udf0a \ud83c", "labels": ["\udf0a", "\ud83c\udf0a"]}')
    with pytest.raises(DataError, match=r"data:1: \\ud83c is half of a surrogate pair. Write both"):
        read_texts(path)
    assert read_texts(path, errors="replace") == (["🌊 �"], [["�", "🌊"]])
    table = written(tmp_path, 'text,labels\nx,"[""\\ud83c""]"\n', "table")
    with pytest.raises(DataError, match=r"table:2: \\ud83c is half of a surrogate pair"):
        read_texts(table)
    path.write_text(json.dumps({"text": "🌊", "labels": ["🌊"]}))
    assert read_texts(path) == (["🌊"], [["🌊"]])


def test_missing_files_and_damaged_gzip(tmp_path: Path) -> None:
    written(tmp_path, JSONL, "train.jsonl")
    for function in (is_text, open_texts):
        with pytest.raises(DataError, match=r"no such file. Did you mean .*train.jsonl\?"):
            function(tmp_path / "trian.jsonl")
    rng = np.random.default_rng(0)
    rows = jsonl(*({"text": rng.bytes(200).hex(), "labels": []} for _ in range(2000)))
    packed = gzip.compress(rows.encode())
    for cut in (20, len(packed) // 2, len(packed) - 4):
        path = written(tmp_path, packed[:cut], "cut.gz")
        with pytest.raises(DataError, match="damaged or truncated gzip file"):
            read_texts(path)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            FASTTEXT,
            {"format": "fasttext", "text": "a"},
            "is fasttext, which does not use text; leave it out",
        ),
        (ANNIF, {"format": "annif-tsv", "labels": "a"}, "is annif-tsv, which does not use labels"),
        (ANNIF, {"label_separator": ","}, "does not use label_separator"),
        (JSONL, {"label_prefix": "#"}, "is jsonl, which does not use label_prefix"),
        (JSONL, {"label_separator": ""}, "must not be empty"),
        (JSONL, {"text": []}, "must not be empty"),
        (JSONL, {"errors": "ignore"}, "errors must be 'strict' or 'replace'. Got 'ignore' instead"),
        (JSONL, {"format": "json"}, "format must be one of jsonl, csv, .* Got 'json' instead"),
    ],
)
def test_options_that_do_not_fit(tmp_path: Path, text: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        open_texts(written(tmp_path, text), **options)


def test_a_whole_file_is_one_document(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    for text in ("Dear Ann,\n\n1:2 is odd.\n", "Old\rMac\rlines", '{"text": "a"}'):
        path.write_bytes(b"\xef\xbb\xbf" + text.encode())
        (document,) = open_texts(path, format="document", labelled=False)
        assert document == (text, [], str(path), "letter.txt", ())
    for options, message in (
        ({"labelled": True}, "the format document has no labels"),
        ({"labelled": False, "text": "body"}, "is document, which does not use text"),
    ):
        with pytest.raises(DataError, match=message):
            open_texts(path, format="document", **options)


@pytest.mark.parametrize("size", [300_000, pytest.param(20_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("format", ["jsonl", "csv", "tsv", "fasttext", "libmultilabel", "lines"])
def test_huge_documents(tmp_path: Path, format: str, size: int) -> None:
    text = "word, und 🌊 " * (size // 15)
    cell = f'"{text}"'
    files = {
        "jsonl": f'{{"text": {cell}, "labels": ["a"]}}',
        "csv": f"text,labels\n{cell},a",
        "tsv": f"text\tlabels\n{cell}\ta",
        "fasttext": f"__label__a {text}|",
        "libmultilabel": f"a\t{text}",
        "lines": text,
    }
    path = written(tmp_path, files[format])
    assert is_text(path)
    opened = open_texts(path, labelled=format != "lines")
    assert opened.format == format
    (document,) = opened
    assert document.text.rstrip("|") == text
    path.unlink()


@pytest.mark.slow
def test_reading_holds_one_document_at_a_time(tmp_path: Path) -> None:
    line = jsonl({"text": "a few words more " * 60, "labels": ["a", "b"]})
    path = written(tmp_path, line * (30_000_000 // len(line)))
    for texts in (
        open_texts(path),
        open_texts(written(tmp_path, gzip.compress(path.read_bytes()), "packed")),
    ):
        tracemalloc.start()
        n = sum(1 for _ in texts)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert n == 30_000_000 // len(line)
        assert peak < 2_000_000


def parquet_file(path: Path, columns: dict[str, list[Any]]) -> Path:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table(columns), path)
    return path


def test_parquet(tmp_path: Path) -> None:
    columns = {
        "title": ["Ants", None, "Tides 🌊"] * 300,
        "Body": ["dig", "", "ebb"] * 300,
        "tags": [["a", "b", "a"], None, []] * 300,
        "topics": ["one|two", None, "three"] * 300,
        "category": [1, 2, 3] * 300,
    }
    path = parquet_file(tmp_path / "data", columns)
    assert is_text(path)
    opened = open_texts(path)
    assert (opened.format, opened.text, opened.labels) == ("parquet", ("Body",), "tags")
    assert list(opened)[899] == Document("ebb", [], f"{path}:900")
    texts, labels = read_texts(path, text=["title", "Body"])
    assert (texts[:3], labels[:3]) == (["Ants\ndig", "\n", "Tides 🌊\nebb"], [["a", "b"], [], []])
    assert read_texts(path, labels="topics")[1][:3] == [["one|two"], [], ["three"]]
    assert read_texts(path, labels="topics", label_separator="|")[1][0] == ["one", "two"]
    assert read_texts(path, labels="category")[1][:3] == [["1"], ["2"], ["3"]]
    with pytest.raises(DataError, match="there is no column 'text'. There are: title, Body, tags"):
        open_texts(path, text="text")
    with pytest.raises(DataError, match="data:1: 'category' is 1, not a text"):
        read_texts(path, text="category")
    packed = written(tmp_path, gzip.compress(path.read_bytes()), "packed")
    assert is_text(packed)
    assert read_texts(packed) == read_texts(path)
    for cut in (10, path.stat().st_size // 2):
        with pytest.raises(DataError, match="cut: cannot be read"):
            read_texts(written(tmp_path, path.read_bytes()[:-cut], "cut"))


def test_parquet_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as if it were not installed
    path = written(tmp_path, b"PAR1\x00\x00PAR1")
    assert is_text(path)
    with pytest.raises(
        DataError, match=r'Parquet needs pyarrow. Install it: pip install "exmlds\[parquet\]"'
    ):
        open_texts(path)


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
ANY_LABEL = st.text("abc 🌊|;,[\"'", max_size=6)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(ANY_TEXT, st.lists(ANY_LABEL, max_size=3)), min_size=1, max_size=5), st.booleans())
def test_what_json_and_csv_write_is_read_as_it_was(
    tmp_path: Path, rows: list[tuple[str, list[str]]], ascii_only: bool
) -> None:
    texts = [text for text, _ in rows]
    labels = [list(dict.fromkeys(filter(None, (label.strip() for label in names)))) for _, names in rows]
    lines = [json.dumps({"text": t, "labels": n}, ensure_ascii=ascii_only) + "\n" for t, n in rows]
    assert read_texts(written(tmp_path, "".join(lines))) == (texts, labels)
    for delimiter in ",\t":
        out = io.StringIO(newline="")
        table = csv.writer(out, delimiter=delimiter)
        table.writerows([["text", "labels"], *([t, json.dumps(n)] for t, n in rows)])
        if delimiter == "\t" and any("\t" in text and "\n" in text for text in texts):
            with pytest.raises(DataError):  # because it could be two rows
                read_texts(written(tmp_path, out.getvalue()))
        elif "\0" not in out.getvalue():
            assert read_texts(written(tmp_path, out.getvalue())) == (texts, labels)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=60)
    | st.text('{}[]",:\\ud8 textlabels\n\r\t;|', max_size=60).map(str.encode)
    | st.sampled_from([text for text, _ in FILES.values()]).flatmap(
        lambda text: st.tuples(st.just(text.encode()), st.integers(0, 200), st.binary(max_size=5)).map(
            lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] + len(parts[2]) :]
        )
    ),
    st.booleans(),
    st.sampled_from(["strict", "replace"]),
)
def test_fuzz_anything(tmp_path: Path, raw: bytes, labelled: bool, errors: str) -> None:
    """Reading returns, or raises DataError and nothing else."""
    path = written(tmp_path, raw)
    try:
        assert is_text(path) in (True, False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            documents = list(open_texts(path, labelled=labelled, errors=errors))  # type: ignore[arg-type]
    except DataError as error:
        assert str(tmp_path) in str(error)
        return
    for document in documents:
        document.text.encode()
        assert document.labels == list(dict.fromkeys(label.strip() for label in document.labels if label))


def test_repeated_columns_are_rejected_also_if_they_are_detected(tmp_path: Path) -> None:
    path = tmp_path / "twice.csv"
    path.write_text("text,text,labels\none,two,a\n")
    with pytest.raises(DataError, match="more than one column 'text'"):
        open_texts(path)


def test_lines_that_end_in_carriage_returns_alone_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "old.txt"
    path.write_bytes(b"one text\ranother text\r")
    with pytest.raises(DataError, match=r"old.txt ends its lines in .r alone; save it with .n"):
        open_texts(path, labelled=False)
