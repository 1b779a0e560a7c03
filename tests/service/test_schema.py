"""The OpenAPI document describes what the service takes and answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from pydantic import TypeAdapter

from exmlds.service import core
from exmlds.service.app import all_routes, create_app
from exmlds.service.routing import FormRoute
from exmlds.service.schemas import ProblemResponse
from exmlds.service.settings import AccessTokens, ServiceSettings

from .conftest import Running, Start, uri
from .test_access import READ, WRITE, bearer


def test_the_document_has_every_route_with_its_bounds_and_errors(service: Running) -> None:
    document = service.get("/openapi.json")
    assert "securitySchemes" not in document["components"]
    texts = document["components"]["schemas"]["SuggestRequest"]
    assert texts["oneOf"] == [{"required": ["text"]}, {"required": ["texts"]}]
    assert texts["properties"]["limit"]["maximum"] == 1000
    shown = {
        (method.upper(), path): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    routes = [route for route in all_routes() if route.include_in_schema]
    assert shown.keys() == {(method, route.path_format) for route in routes for method in route.methods}
    for operation in shown.values():
        assert operation["summary"]
        for status, answer in operation["responses"].items():
            assert status.startswith("2") or list(answer["content"]) == ["application/problem+json"]


@pytest.mark.filterwarnings("ignore::exmlds.errors.NoKnownWordWarning")
def test_the_document_says_which_token_a_route_needs(saved: Path) -> None:
    tokens = AccessTokens(READ, WRITE)
    settings = ServiceSettings(saved, "library", feedback=None, is_read_only=True, tokens=tokens)
    service = core.Service(settings)
    try:
        paths = create_app(service).app.app.openapi()["paths"]
    finally:
        service.close()
    for route in all_routes():
        for method in route.methods if route.include_in_schema else ():
            operation = paths[route.path_format][method.lower()]
            assert ("security" in operation) == ("401" in operation["responses"]) == (route.access != "open")
            assert route.access != "write" or "403" in operation["responses"]


BAKING = quote(uri("baking"), safe="")
TEXT = {"text": "baking bread and flour in the oven"}
DOCUMENTS = {"documents": [{"id": "of-schemas", **TEXT, "labels": ["baking"]}]}
FORM = {"Content-Type": FormRoute.body_type}


def test_answers_are_as_their_schemas_say(service: Running) -> None:
    requests = {
        ("POST", "/v1/documents"): ("/v1/documents", DOCUMENTS),
        ("GET", "/v1/documents/{id}"): ("/v1/documents/of-schemas", None),
        ("POST", "/v1/suggest"): ("/v1/suggest", TEXT),
        ("POST", "/v1/explain"): ("/v1/explain", {**TEXT, "label": uri("baking")}),
        ("GET", "/v1/labels"): ("/v1/labels", None),
        ("GET", "/v1/labels/{id}"): (f"/v1/labels/{BAKING}", None),
        ("GET", "/v1/model"): ("/v1/model", None),
        ("POST", "/v1/feedback"): ("/v1/feedback", {**TEXT, "accepted": []}),
        ("GET", "/v1/"): ("/v1/", None),
        ("GET", "/v1/vocabs"): ("/v1/vocabs", None),
        ("GET", "/v1/projects"): ("/v1/projects", None),
        ("GET", "/v1/projects/{id}"): ("/v1/projects/library", None),
        ("POST", "/v1/projects/{id}/suggest"): ("/v1/projects/library/suggest", b"text=bread"),
        ("POST", "/v1/projects/{id}/suggest-batch"): (
            "/v1/projects/library/suggest-batch",
            {"documents": [TEXT]},
        ),
        ("GET", "/healthz"): ("/healthz", None),
        ("GET", "/readyz"): ("/readyz", None),
    }
    described = {
        (method, route.path_format): route.response_model
        for route in all_routes()
        if route.response_model is not None
        for method in route.methods
    }
    assert requests.keys() == described.keys()
    for (method, route), (path, content) in requests.items():
        answer = service.ask(method, path, content, headers=FORM if isinstance(content, bytes) else None)
        assert answer.status in (200, 201), answer
        found = TypeAdapter(described[method, route]).validate_json(answer.body, strict=True)
        parts = found if isinstance(found, list) else [found]
        assert all(value != [] for part in parts for _, value in part), (method, route)
    for method, path in (("GET", "/v1/labels?limit=0"), ("GET", "/nothing")):
        ProblemResponse.model_validate_json(service.ask(method, path).body, strict=True)
    assert service.ask("DELETE", "/v1/documents/of-schemas?purge=true").status == 204
    assert service.ask("DELETE", "/v1/feedback").status == 204


@pytest.mark.slow
def test_schemathesis_finds_no_failure(saved: Path, tmp_path: Path, start: Start) -> None:
    pytest.importorskip("schemathesis")
    import shutil

    folder = shutil.copytree(saved, tmp_path / "library")
    tokens = {"EXMLDS_READ_TOKEN": READ, "EXMLDS_WRITE_TOKEN": WRITE}
    running = start(folder, "--max-body", "50 MB", environment=tokens)
    program = Path(sys.executable).with_name("schemathesis")
    # It also sends wrong bodies over any limit, and does not count 413 among the refusals by itself.
    refusals = [400, 401, 403, 404, 405, 406, 409, 413, 415, 422]
    config = f"[checks]\nnegative_data_rejection.expected-statuses = {refusals}\n"
    (tmp_path / "schemathesis.toml").write_text(config)
    command = [program, "run", f"{running.address}openapi.json", "--checks", "all", "--max-examples", "5"]
    token = bearer(WRITE)["Authorization"]
    done = subprocess.run(
        [*map(str, command), "-H", f"Authorization: {token}", "--seed", "0", "--no-color"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout[-3000:]
