"""Vocabularies: all formats, what they hold, and the errors of damaged ones."""

from __future__ import annotations

import gzip
import warnings
from itertools import pairwise
from pathlib import Path

import pytest

from exmlds.data import Vocabulary, read_vocabulary
from exmlds.errors import DataError, DataWarning

A, B, C = (f"http://a.org/{name}" for name in "abc")
TURTLE = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix dct: <http://purl.org/dc/terms/> .
@prefix xl: <http://www.w3.org/2008/05/skos-xl#> .
@base <http://a.org/> .
<a> a skos:Concept ; skos:prefLabel "Vögel"@de, "birds"@en ; skos:altLabel "avians"@en ; skos:notation "59" .
<b> a skos:Concept ; skos:prefLabel "sea birds"@en, "marine birds"@en ; skos:hiddenLabel "seabirds"@en ;
    skos:broader <a> ; skos:related <c> .
<c> a skos:Concept ; xl:prefLabel <x> .
<x> xl:literalForm "gulls"@en .
<old> a skos:Concept ; skos:prefLabel "sea fowl"@en ; owl:deprecated true ; dct:isReplacedBy <older> .
<older> a skos:Concept ; skos:prefLabel "seafowl"@en ; dct:isReplacedBy <b> .
<gone> a skos:Concept ; skos:prefLabel "dodos"@en ; owl:deprecated true .
<scheme> a skos:ConceptScheme ; skos:prefLabel "Animals"@en .
"""
RDF_XML = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
  xmlns:skos="http://www.w3.org/2004/02/skos/core#">
  <skos:Concept rdf:about="http://a.org/a">
    <skos:prefLabel xml:lang="en">birds</skos:prefLabel>
    <skos:narrower rdf:resource="http://a.org/b"/>
  </skos:Concept>
  <skos:Concept rdf:about="http://a.org/b"><skos:prefLabel xml:lang="en">gulls</skos:prefLabel></skos:Concept>
</rdf:RDF>
"""


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def birds(tmp_path: Path) -> Vocabulary:
    return read_vocabulary(written(tmp_path / "birds.ttl", TURTLE))


def test_turtle(birds: Vocabulary) -> None:
    assert birds.ids == [A, B, C, *(f"http://a.org/{name}" for name in ("old", "older", "gone"))]
    assert birds.languages == ["en", "de"]
    assert birds.name(A) == "birds"
    assert birds.name(A, "de") == "Vögel"
    assert birds.name(B, "de") == "sea birds"
    assert birds.name("http://a.org/unknown") == "http://a.org/unknown"
    assert birds.all_names(A) == ["birds", "Vögel", "avians"]
    assert birds.all_names(B, "en") == ["sea birds", "marine birds", "seabirds"]
    assert birds.name(C) == "gulls"
    assert birds.notation(A) == "59"
    assert birds.notation(B) is None
    assert "http://a.org/scheme" not in birds


def test_relations(birds: Vocabulary) -> None:
    assert birds.broader_of(B) == [A]
    assert birds.narrower_of(A) == [B]
    assert birds.related_to(B) == [C]
    assert birds.related_to(C) == [B]
    assert birds.broader_of(A) == []


def test_deprecated_concepts_are_followed_to_their_replacement(birds: Vocabulary) -> None:
    assert birds.current("http://a.org/old") == B
    assert birds.current(A) == A
    assert birds.current("http://a.org/gone") is None
    assert [birds.is_deprecated(id) for id in birds.ids] == [False, False, False, True, True, True]


def test_replacements_in_a_circle_end(birds: Vocabulary) -> None:
    birds.tables.replaced_by[:2] = 1, 0
    assert birds.current(A) is None


def test_search_looks_at_all_names(birds: Vocabulary) -> None:
    assert birds.search("BIRDS") == [A, B]
    assert birds.search("vögel") == [A]
    assert birds.search("seabird") == [B]
    assert birds.search("birds", n=1) == [A]
    assert birds.search("cats") == []


def test_a_concept_that_is_not_there_has_a_near_one(birds: Vocabulary) -> None:
    assert birds.require(B) == 1
    with pytest.raises(DataError, match="no concept 'http://a.org/d'. Did you mean 'http://a.org/"):
        birds.require("http://a.org/d")


@pytest.mark.parametrize("format", [None, "rdfxml"])
def test_rdf_xml(tmp_path: Path, format: str | None) -> None:
    found = read_vocabulary(written(tmp_path / "birds.rdf", RDF_XML), format=format)
    assert found.broader_of(B) == [A]
    assert found.name(A, "en") == "birds"


def test_n_triples(tmp_path: Path) -> None:
    skos = "http://www.w3.org/2004/02/skos/core#"
    lines = (
        f"<{A}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{skos}Concept> .\n"
        f'<{A}> <{skos}prefLabel> "birds"@en .\n'
    )
    assert read_vocabulary(written(tmp_path / "birds.nt", lines)).name(A) == "birds"


def test_tables(tmp_path: Path) -> None:
    english = written(tmp_path / "birds-en.tsv", f"<{A}>\tbirds\t59\n{B}\tsea birds\n\n")
    with gzip.open(tmp_path / "birds-fi.tsv.gz", "wt", encoding="utf-8") as file:
        file.write(f"<{A}>\tlinnut\n")
    found = read_vocabulary([english, tmp_path / "birds-fi.tsv.gz"])
    assert found.languages == ["en", "fi"]
    assert [found.name(A), found.name(A, "fi"), found.name(B, "fi")] == ["birds", "linnut", "sea birds"]
    assert found.notation(A) == "59"
    assert read_vocabulary(english, language="de").languages == ["de"]


def test_csv_of_annif(tmp_path: Path) -> None:
    text = f'uri,label_en,label_fi,notation\n{A},"birds, all",linnut,59\n\n{B},gulls,,\n'
    found = read_vocabulary(written(tmp_path / "birds.csv", text))
    assert found.all_names(A) == ["birds, all", "linnut"]
    assert found.all_names(B) == ["gulls"]
    assert found.notation(A) == "59"


def test_a_list_of_names(tmp_path: Path) -> None:
    found = read_vocabulary(written(tmp_path / "birds.txt", "gulls\n sea birds \ngulls\n"))
    assert found.ids == ["gulls", "sea birds"]
    assert found.name("gulls") == "gulls"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("v.tsv", f"<{A}>\tbirds\n<{A}>\tgulls\n", r"v.tsv:2: the concept http://a.org/a is here again"),
        ("v.tsv", f"<{A}>\tbirds\n<{A}>\n", r"v.tsv:2: a line must hold an id, a tab and a name"),
        ("v.tsv", f"<{A}>\t\n", r"v.tsv:1: the concept http://a.org/a has an empty name"),
        ("v.tsv", "<>\tbirds\n", r"v.tsv:1: a concept has no id"),
        ("v.csv", f"uri,label_en\n{A},birds\n{A},gulls\n", r"v.csv:3: .* first in .*v.csv:2"),
        ("v.csv", f"uri,label_en\n{A}\n", r"v.csv:2: 1 cells, but the header has 2 columns"),
        ("v.csv", f'uri,label_en\n{A},"birds"x\n', r"v.csv:2: not a row of cells"),
        ("v.ttl", "@prefix a: <http://a.org/> .\na:b a:c ;;; [", r"v.ttl:2: not valid Turtle"),
        ("v.ttl", "@prefix a: <http://a.org/> .\na:b a:c a:d .\n", "holds no concept of SKOS"),
        ("v.rdf", "<?xml version='1.0'?><rdf:RDF", "not valid Rdf/Xml"),
        ("v.txt", " \n", "is empty"),
    ],
)
def test_bad_vocabularies_are_refused_with_file_and_line(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read_vocabulary(written(tmp_path / name, text))


def test_a_header_without_its_columns(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the header must name the columns uri and label_en"):
        read_vocabulary(written(tmp_path / "v.csv", "id,name\n1,birds\n"), format="csv")


def test_gzip_cut_short_and_other_encodings(tmp_path: Path) -> None:
    packed = gzip.compress(TURTLE.encode() * 50)
    (tmp_path / "v.ttl.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match="damaged or truncated gzip file"):
        read_vocabulary(tmp_path / "v.ttl.gz")
    (tmp_path / "v.tsv").write_bytes(f"<{A}>\tbirds\n<{B}>\tV\xf6gel\n".encode("latin-1"))
    with pytest.raises(DataError, match="v.tsv:[12]: not UTF-8"):
        read_vocabulary(tmp_path / "v.tsv")
    with pytest.raises(DataError, match="there is no such file"):
        read_vocabulary(tmp_path / "v.csv")


def test_a_language_that_is_not_there_lists_those_that_are(birds: Vocabulary) -> None:
    with pytest.raises(DataError, match="no names in language 'fr'. It has: de, en."):
        birds.name(A, "fr")


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="must be one of turtle, .* Got 'owl' instead"):
        read_vocabulary(tmp_path / "v.ttl", format="owl")


def test_a_cycle_of_broader_concepts_is_named(tmp_path: Path) -> None:
    cycle = "<a> skos:broader <c> . <c> skos:broader <b> .\n"  # and b has the broader concept a
    with pytest.warns(DataWarning, match=r"form a cycle, .*: .*birds \(http://a.org/a\)"):
        found = read_vocabulary(written(tmp_path / "v.ttl", TURTLE + cycle))
    assert found.broader_of(A) == [C]
    named = found.find_cycle()
    assert named[0] == named[-1]
    assert all(broad in found.broader_of(narrow) for narrow, broad in pairwise(named))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_vocabulary(written(tmp_path / "w.ttl", TURTLE))
