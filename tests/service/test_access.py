"""Who may use a service: tokens, host names, pages of other sites, and requests that are too large."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import LIMIT, Running

READ, WRITE = "a-token-for-reading", "a-token-for-writing"
DOCUMENT = {"documents": [{"text": "bread", "labels": ["baking"]}]}
FEEDBACK = {"text": "bread", "accepted": []}


@pytest.fixture(scope="module")
def guarded(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with tokens, one from a file and one from the environment, that changes nothing."""
    file = tmp_path_factory.mktemp("tokens") / "write"
    file.write_text(f"{WRITE}\n")
    options = ("--write-token-file", file, "--read-only", "--no-feedback", "--max-body", "2000")
    pages = ("--cors", "https://a.example", "--allow-host", "books.example")
    with Running(folder, *options, *pages, environment={"EXMLDS_READ_TOKEN": READ}) as running:
        yield running


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    ("method", "path", "content", "without", "reader", "writer"),
    [
        ("GET", "/", None, 200, 200, 200),
        ("GET", "/healthz", None, 200, 200, 200),
        ("GET", "/readyz", None, 200, 200, 200),
        ("GET", "/openapi.json", None, 200, 200, 200),
        ("GET", "/metrics", None, 401, 200, 200),
        ("GET", "/v1/model", None, 401, 200, 200),
        ("GET", "/v1/labels", None, 401, 200, 200),
        ("GET", "/v1/projects", None, 401, 200, 200),
        ("POST", "/v1/suggest", {"text": "bread"}, 401, 200, 200),
        ("POST", "/v1/documents", DOCUMENT, 401, 403, 409),
        ("DELETE", "/v1/documents/1", None, 401, 403, 409),
        ("POST", "/v1/projects/library/learn", [{"text": "bread"}], 401, 403, 409),
        ("POST", "/v1/feedback", FEEDBACK, 401, 403, 403),
        ("GET", "/v1/feedback", None, 401, 403, 403),
        ("DELETE", "/v1/feedback", None, 401, 403, 403),
    ],
)
def test_each_token_opens_its_routes(
    guarded: Running, method: str, path: str, content: object, without: int, reader: int, writer: int
) -> None:
    answers = [
        guarded.ask(method, path, content, headers=headers) for headers in ({}, bearer(READ), bearer(WRITE))
    ]
    assert [answer.status for answer in answers] == [without, reader, writer]
    if without == 401:
        assert answers[0].headers["www-authenticate"] == "Bearer"
        assert guarded.ask(method, path, content, headers=bearer(READ + "x")).status == 401
        assert guarded.ask(method, path, content, headers={"Authorization": f"Basic {READ}"}).status == 401
    for answer in answers:
        if answer.status >= 400:
            assert answer.headers["content-type"] == "application/problem+json"


def test_a_service_that_changes_nothing_says_so(guarded: Running) -> None:
    model = guarded.get("/v1/model", headers=bearer(READ))
    assert (model["growable"], model["feedback"], model["needs_write_token"]) == (False, False, True)
    assert "keeps no feedback" in model["feedback_note"]
    kept = guarded.ask("POST", "/v1/feedback", FEEDBACK, headers=bearer(WRITE))
    assert "--no-feedback" in kept.json["detail"]
    grown = guarded.ask("POST", "/v1/documents", DOCUMENT, headers=bearer(WRITE))
    assert "--read-only" in grown.json["detail"]


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1", 200), ("localhost", 421), ("books.example:443", 200), ("evil.example", 421), ("", 421)],
)
def test_only_allowed_host_names_are_answered(guarded: Running, host: str, status: int) -> None:
    assert guarded.ask("GET", "/healthz", headers={"Host": host}).status == status


def test_pages_of_other_sites_are_refused_unless_allowed(guarded: Running) -> None:
    def origin(site: str) -> dict[str, str]:
        return bearer(READ) | {"Origin": site}

    wanted = {"text": "bread"}
    refused = guarded.ask("POST", "/v1/suggest", wanted, headers=origin("https://b.example"))
    # Not the problem of a token: the page would ask for another one.
    assert (refused.status, refused.json["type"]) == (403, "urn:exmlds:problem:wrong-origin")
    allowed = guarded.ask("POST", "/v1/suggest", wanted, headers=origin("https://a.example"))
    assert (allowed.status, allowed.headers["access-control-allow-origin"]) == (200, "https://a.example")
    large = guarded.ask("POST", "/v1/suggest", {"text": "a" * 2000}, headers=origin("https://a.example"))
    assert (large.status, large.headers["access-control-allow-origin"]) == (413, "https://a.example")
    other = guarded.ask("GET", "/v1/model", headers=origin("https://b.example"))
    assert "access-control-allow-origin" not in other.headers
    own = f"http://127.0.0.1:{guarded.port}"
    assert guarded.ask("POST", "/v1/suggest", wanted, headers=origin(own)).status == 200


def test_other_origins_are_not_allowed_by_default(service: Running) -> None:
    answer = service.ask("GET", "/v1/model", headers={"Origin": "https://a.example"})
    assert "access-control-allow-origin" not in answer.headers


def test_a_body_over_the_limit_is_refused_before_it_is_read(guarded: Running) -> None:
    with socket.create_connection(("127.0.0.1", guarded.port), timeout=LIMIT) as connection:
        head = "POST /v1/suggest HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Authorization: Bearer {READ}\r\nContent-Length: 2001\r\n\r\n".encode())
        answer = b""
        while b"2,000 bytes" not in answer and (part := connection.recv(4096)):  # nothing of the body is sent
            answer += part
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_body_without_a_length_is_counted(guarded: Running) -> None:
    connection = guarded.connect()
    parts = iter([b'{"text": "', *[b"x" * 500] * 4, b'"}'])
    headers = bearer(READ) | {"Content-Type": "application/json"}
    connection.request("POST", "/v1/suggest", parts, headers, encode_chunked=True)
    response = connection.getresponse()
    assert response.status == 413
    assert b"2,000 bytes" in response.read()
    connection.close()
