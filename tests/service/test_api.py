"""The API of a service: what it takes, what it answers, and what its errors say."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from exmlds import load
from exmlds.errors import NoKnownWordWarning

from .conftest import Library, Running, uri

TEXT = "bread and flour in the oven"


def test_suggestions_are_those_of_the_model(service: Running, folder: Path, books: Library) -> None:
    model = load(folder)
    texts = [*books.texts[:40], "", "qqq"]
    found = service.post("/v1/suggest", {"texts": texts, "limit": 4, "threshold": 0.1})["results"]
    with pytest.warns(NoKnownWordWarning):
        expected = model.suggest(texts, 4, threshold=0.1)
    assert len(found) == len(texts)
    for own, row in zip(found, expected):
        shown = [(one["id"], one["label"], one["score"]) for one in own["suggestions"]]
        assert [one[:2] for one in shown] == [(one.label, one.name) for one in row]
        assert [one[2] for one in shown] == pytest.approx([one.score for one in row], abs=1e-5)
    assert found[-1] == {"suggestions": []}


def test_one_text_is_a_list_of_one(service: Running) -> None:
    one = service.post("/v1/suggest", {"text": TEXT})
    several = service.post("/v1/suggest", {"texts": [TEXT], "limit": 10})
    assert one == several
    best = one["results"][0]["suggestions"][0]
    assert best.keys() == {"id", "label", "notation", "score"}
    assert best["id"] == uri(best["label"])
    assert best["notation"].endswith(".1")


def test_fields_are_joined(service: Running) -> None:
    fields = service.post("/v1/suggest", {"text": {"title": "bread", "body": "flour in the oven"}})
    assert fields == service.post("/v1/suggest", {"text": "bread\nflour in the oven"})


def test_labels_are_allowed_denied_and_named(service: Running) -> None:
    baking, cooking = uri("baking"), uri("cooking")
    found = service.post("/v1/suggest", {"text": TEXT, "allow": [baking, cooking], "deny": [cooking]})
    assert [one["id"] for one in found["results"][0]["suggestions"]] == [baking]
    named = service.post("/v1/suggest", {"text": TEXT, "allow": [baking], "language": "fi"})
    assert named["results"][0]["suggestions"][0]["label"] == "bakingksi"


def test_an_explanation_names_documents_words_and_places(service: Running, books: Library) -> None:
    text = "Flour! Baking with bread, the oven and Saturn"
    why = service.post("/v1/explain", {"text": text, "label": uri("baking"), "limit": 3})
    (best,) = service.post("/v1/suggest", {"text": text, "allow": [uri("baking")]})["results"][0][
        "suggestions"
    ]
    assert (why["id"], why["label"]) == (uri("baking"), "baking")
    assert why["score"] == pytest.approx(best["score"], abs=1e-5)
    assert len(why["documents"]) == 3
    for document in why["documents"]:
        row = int(document["id"])
        assert document["text"] == books.texts[row]
        assert {label["id"] for label in document["labels"]} == set(books.labels[row])
    assert len(why["words"]) == 3
    assert {"flour", "bread", "oven"} & {word["word"] for word in why["words"]}
    marked = {(text[mark["start"] : mark["end"]], mark["kind"]) for mark in why["marks"]}
    assert {("Flour", "word"), ("bread", "word"), ("Baking", "name")} <= marked
    assert why["log_odds"]


def test_labels_are_searched_in_all_languages(service: Running) -> None:
    found = service.get("/v1/labels?search=BAKINGK&limit=5")["labels"]
    assert found == [
        {
            "id": uri("baking"),
            "label": "baking",
            "notation": found[0]["notation"],
            "count": found[0]["count"],
            "alternatives": ["bakingksi", "baking in general"],
        }
    ]
    assert service.get("/v1/labels?search=lighthouses&language=fi")["labels"][0]["count"] == 0
    by_count = [label["count"] for label in service.get("/v1/labels?limit=1000")["labels"]]
    assert by_count == sorted(by_count, reverse=True)


def test_a_label_has_similar_ones_and_documents(service: Running, books: Library) -> None:
    label = service.get(f"/v1/labels/{quote(uri('baking'), safe='')}?language=fi")
    assert label["label"] == "bakingksi"
    assert uri("baking") not in {other["id"] for other in label["similar"]}
    assert label["similar"]
    for document in label["documents"]:
        assert uri("baking") in books.labels[int(document["id"])]
        assert document["text"] == books.texts[int(document["id"])]
    untrained = service.get(f"/v1/labels/{quote(uri('lighthouses'), safe='')}")
    assert (untrained["similar"], untrained["documents"]) == ([], [])


def test_the_model_is_described_without_a_path(service: Running, folder: Path) -> None:
    model = service.get("/v1/model")
    assert model["name"] == "library"
    assert model["method"] == "ExMLDS"
    assert model["languages"] == ["en", "fi"]
    assert (model["growable"], model["feedback"], model["needs_write_token"]) == (True, True, False)
    assert model["n_labels"] == load(folder).n_labels_
    assert "delete" in model["feedback_note"]
    assert "beside the model" not in model["feedback_note"]  # --feedback-file may be elsewhere
    for path in ("/v1/model", "/v1/projects", "/openapi.json", "/metrics", "/nothing"):
        assert str(folder.parent).encode() not in service.ask("GET", path).body


def test_a_document_changes_the_next_suggestion(service: Running, books: Library) -> None:
    text = books.texts[0]
    wanted = {"text": text, "allow": [uri("lighthouses")]}
    assert service.post("/v1/suggest", wanted) == {"results": [{"suggestions": []}]}
    document = {"id": "shelf/1", "text": text, "labels": [uri("lighthouses")]}
    assert service.post("/v1/documents", {"documents": [document]}) == {"ids": ["shelf/1"]}
    (found,) = service.post("/v1/suggest", wanted)["results"][0]["suggestions"]
    assert found["score"] > 0
    assert service.get("/v1/documents/shelf%2F1")["text"] == text
    assert service.ask("POST", "/v1/documents", {"documents": [document]}).status == 409
    changed = {**document, "labels": ["baking"]}  # by name
    service.post("/v1/documents", {"documents": [changed], "replace": True})
    assert service.get("/v1/documents/shelf%2F1")["labels"] == [{"id": uri("baking"), "label": "baking"}]
    assert service.ask("DELETE", "/v1/documents/shelf%2F1").status == 204
    assert service.ask("DELETE", "/v1/documents/shelf%2F1").status == 404
    assert service.ask("GET", "/v1/documents/shelf%2F1").status == 404


def test_the_text_of_a_removed_document_leaves_the_folder_with_purge(service: Running, folder: Path) -> None:
    for purge in ("false", "true"):
        document = {"id": f"purged-{purge}", "text": "rye bread", "labels": ["baking"]}
        service.post("/v1/documents", {"documents": [document]})
        assert service.ask("DELETE", f"/v1/documents/{document['id']}?purge={purge}").status == 204
        assert ("rye bread" in load(folder).texts_) == (purge == "false")
    # One that was removed before can still be purged, once.
    document = {"id": "purged-late", "text": "rye bread", "labels": ["baking"]}
    service.post("/v1/documents", {"documents": [document]})
    for purge, status in (("false", 204), ("true", 204), ("true", 404)):
        assert service.ask("DELETE", f"/v1/documents/purged-late?purge={purge}").status == status
    assert "rye bread" not in load(folder).texts_


def test_feedback_is_exported_and_deleted(service: Running, folder: Path) -> None:
    file = folder.with_name("library.feedback.jsonl")
    kept = {"text": "bread", "accepted": [uri("baking")], "rejected": [uri("law")]}
    first = service.post("/v1/feedback", kept | {"document_id": "a"})["id"]
    second = service.post("/v1/feedback", kept | {"document_id": "a", "text": "rye bread"})["id"]
    third = service.post("/v1/feedback", kept | {"text": "sourdough"})["id"]
    service.post("/v1/feedback", kept | {"text": "a rejection alone", "accepted": []})
    lines = list(map(json.loads, service.ask("GET", "/v1/feedback?format=jsonl").body.splitlines()))
    assert [(line["id"], line["text"], line["feedback_id"]) for line in lines] == [
        ("a", "rye bread", second),  # the last feedback on a document stands for it
        (third, "sourdough", third),
    ]
    assert lines[0]["labels"] == [uri("baking")]
    assert file.stat().st_mode & 0o777 == 0o600
    assert service.ask("DELETE", f"/v1/feedback/{second}").status == 204
    assert service.ask("DELETE", f"/v1/feedback/{second}").status == 404
    assert b"rye" not in file.read_bytes()
    assert file.stat().st_mode & 0o777 == 0o600
    assert first.encode() in file.read_bytes()
    assert service.ask("DELETE", "/v1/feedback").status == 204
    assert file.read_bytes() == b""


@pytest.mark.parametrize(
    ("method", "path", "content", "status", "detail"),
    [
        ("GET", "/nothing", None, 404, "/openapi.json"),
        ("GET", "/static/nothing", None, 404, "/openapi.json"),
        ("GET", "/static/..%2Fapp.py", None, 404, "/openapi.json"),
        ("PUT", "/v1/documents", None, 405, "Use POST."),
        ("POST", "/v1/labels/x", None, 405, "Use GET."),
        ("POST", "/v1/suggest", b'{"text": "a', 400, "string starting at at character 9."),
        ("POST", "/v1/suggest", b'{"text": "\xff"}', 400, ""),
        ("POST", "/v1/suggest", {}, 422, "Correct body"),
        ("POST", "/v1/suggest", {"text": "a", "texts": ["a"]}, 422, "Correct body"),
        ("POST", "/v1/suggest", {"texts": ["a", 3]}, 422, "body.texts[1]"),
        ("POST", "/v1/suggest", {"text": "a", "limit": "5"}, 422, "body.limit"),
        ("POST", "/v1/suggest", {"text": "a", "limits": 5}, 422, "body.limits"),
        ("POST", "/v1/suggest", {"text": {"title": "a", "body": 3}}, 422, "Correct body.text.body;"),
        ("POST", "/v1/suggest", {"texts": [{"fields": 3}]}, 422, "Correct body.texts[0].fields;"),
        ("POST", "/v1/suggest", {"text": "a", "allow": ["no such"]}, 404, "'no such'"),
        ("POST", "/v1/suggest", {"text": "a", "language": "sv"}, 404, "en, fi"),
        ("POST", "/v1/explain", {"text": "a", "label": "no such"}, 404, "search"),
        ("GET", "/v1/labels?limit=0", None, 422, "query.limit"),
        ("GET", "/v1/labels/no%20such", None, 404, "search"),
        ("POST", "/v1/documents", {"documents": [{"text": "a", "labels": [" "]}]}, 422, "labels[0]"),
        (
            "POST",
            "/v1/documents",
            {"documents": [{"id": "a", "text": "a", "labels": []}] * 2},
            409,
            "each id once",
        ),
        ("DELETE", "/v1/feedback/none", None, 404, "POST /v1/feedback"),
        ("GET", "/v1/feedback?format=csv", None, 422, "query.format"),
        ("GET", "/v1/projects/other", None, 404, "'library'"),
    ],
)
def test_problems_say_what_to_do(
    service: Running, method: str, path: str, content: object, status: int, detail: str
) -> None:
    answer = service.ask(method, path, content)
    assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
    assert answer.json["status"] == status
    assert detail in answer.json["detail"]
    if status == 405:
        assert answer.headers["allow"] == answer.json["detail"].removeprefix("Use ").removesuffix(".")


def test_answers_to_wrong_requests_are_small(service: Running) -> None:
    labels = {"documents": [{"text": "a", "labels": [3] * 1000}] * 100}
    found = service.ask("POST", "/v1/documents", labels)
    assert (found.status, len(found.json["errors"])) == (422, 10)
    fields = {"text": "a", **{f"field {number}": 1 for number in range(1000)}}
    found = service.ask("POST", "/v1/suggest", fields)
    assert (found.status, found.json["errors"][0]["where"]) == (422, "body")
    assert "at most 100 fields" in found.json["errors"][0]["detail"]
    assert len(service.ask("POST", "/v1/suggest", {"text": "a", "b" * 100_000: 1}).body) < 1000


def test_other_media_types_are_refused(service: Running) -> None:
    answer = service.ask("POST", "/v1/suggest", b"{}", headers={"Content-Type": "text/plain"})
    assert (answer.status, answer.json["detail"]) == (415, "Send the body as application/json.")


def test_annif_has_the_model_as_a_project(service: Running) -> None:
    (project,) = service.get("/v1/projects")["projects"]
    assert project == service.get("/v1/projects/library")
    assert (project["project_id"], project["is_trained"], project["language"]) == ("library", True, "en")
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    fields = b"text=bread+and+flour&limit=2&threshold=0.0&language=fi&metadata_title=x"
    found = service.ask("POST", "/v1/projects/library/suggest", fields, headers=form).json["results"]
    assert found[0].keys() == {"uri", "label", "notation", "score"}
    assert found[0]["label"] == f"{found[0]['uri'].removeprefix(uri(''))}ksi"
    documents = [{"text": "bread and flour", "document_id": "7"}, {"text": "", "metadata": {"title": "x"}}]
    batch = service.post("/v1/projects/library/suggest-batch?limit=2&language=fi", {"documents": documents})
    assert [one["document_id"] for one in batch] == ["7", None]
    assert [one["uri"] for one in batch[0]["results"]] == [one["uri"] for one in found]
    assert batch[1]["results"] == []
    subjects = [{"uri": uri("lighthouses"), "label": "lighthouses"}]
    learnt = [{"text": "foghorn", "document_id": "annif-1", "subjects": subjects}]
    assert service.ask("POST", "/v1/projects/library/learn", learnt).status == 204
    assert service.get("/v1/documents/annif-1")["labels"][0]["id"] == uri("lighthouses")
    assert service.ask("DELETE", "/v1/documents/annif-1").status == 204


def test_the_page_is_served_with_strict_headers(service: Running) -> None:
    page = service.ask("GET", "/")
    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert service.ask("GET", "/", headers={"If-None-Match": page.headers["etag"]}).status == 304


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/healthz", "/readyz"])
def test_monitors_may_ask_for_headers_alone(service: Running, path: str) -> None:
    answer, whole = service.ask("HEAD", path), service.ask("GET", path)
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["content-length"] == str(len(whole.body))


def test_measurements_are_prometheus_text(service: Running) -> None:
    service.post("/v1/suggest", {"texts": ["bread"] * 3})
    answer = service.ask("GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found: dict[str, float] = {}
    for line in answer.body.decode().splitlines():
        if line.startswith("# "):
            assert line.split()[1] in ("HELP", "TYPE")
            continue
        name, _, value = line.rpartition(" ")
        found[name] = float(value)
    assert found["exmlds_batch_texts_sum"] >= 3
    assert found['exmlds_requests_total{method="POST",route="/v1/suggest",status="200"}'] >= 1
    assert found['exmlds_batch_texts_bucket{le="+Inf"}'] == found["exmlds_batch_texts_count"]
    assert found["process_resident_memory_bytes"] > 1e7


def test_the_log_has_no_texts(service: Running) -> None:
    service.post("/v1/suggest", {"text": "a confidential matter"})
    service.get("/v1/labels?search=confidential")
    service.ask("POST", "/v1/suggest", {"text": ["confidential"]})
    service.get("/healthz")
    lines = "".join(service.log)
    assert "POST /v1/suggest 200" in lines
    assert "confidential" not in lines
