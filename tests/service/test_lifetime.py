"""What a service keeps when it is killed, how it ends, and how it takes over what is new on disk."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from exmlds import load
from exmlds.data import open_texts, read_texts

from .conftest import LIMIT, Answer, Library, Running, Start, fit, library, uri


def until(is_there: Callable[[], bool]) -> None:
    """Wait until something has happened."""
    for _ in range(100 * LIMIT):
        if is_there():
            return
        time.sleep(0.01)
    raise AssertionError("it has not happened")


@pytest.fixture
def own(saved: Path, tmp_path: Path) -> Path:
    """A copy of the model for one test."""
    return Path(shutil.copytree(saved, tmp_path / "library"))


def test_what_was_acknowledged_survives_a_kill_and_a_signal_ends_it(
    own: Path, start: Start, books: Library
) -> None:
    running = start(own)
    kept: list[tuple[str, str]] = []

    def work(number: int) -> None:
        """Documents and feedback one after the other, until the service is killed."""
        while True:
            document = {"text": books.texts[number], "labels": [uri("lighthouses")]}
            try:
                (id,) = running.post("/v1/documents", {"documents": [document]})["ids"]
                feedback = running.post("/v1/feedback", {"text": "bread", "accepted": [uri("baking")]})["id"]
            except (OSError, HTTPException):
                return
            kept.append((id, feedback))

    with ThreadPoolExecutor(4) as pool:
        under_way = [pool.submit(work, number) for number in range(4)]
        until(lambda: len(kept) >= 6 or any(one.done() for one in under_way))
        assert running.end(signal.SIGKILL) == -signal.SIGKILL
        for one in under_way:
            one.result()
    second = start(own)
    exported = [json.loads(line)["id"] for line in second.ask("GET", "/v1/feedback").body.splitlines()]
    for document, feedback in kept:
        assert second.get(f"/v1/documents/{document}")["labels"][0]["id"] == uri("lighthouses")
        assert feedback in exported

    # A request that was begun before the signal is answered; then the process ends by itself.
    body = json.dumps({"texts": books.texts}).encode()
    connection = second.connect()
    connection.putrequest("POST", "/v1/suggest")
    for name, value in (("Content-Type", "application/json"), ("Content-Length", str(len(body)))):
        connection.putheader(name, value)
    connection.putheader("Expect", "100-continue")
    connection.endheaders()
    assert connection.sock.recv(100).startswith(b"HTTP/1.1 100 ")  # it waits for the body
    second.process.send_signal(signal.SIGTERM)
    until(lambda: not accepts_connections(second))
    connection.send(body)
    assert len(Answer.of(connection.getresponse()).json["results"]) == len(books.texts)
    connection.close()
    assert second.end(None) == 0
    with load(own, writable=True) as model:  # the lock is free
        assert set(model.row_ids_) >= {document for document, _ in kept}


def accepts_connections(running: Running) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", running.port)):
        return True
    return False


def measured(running: Running, name: str) -> float:
    lines = running.ask("GET", "/metrics").body.decode().splitlines()
    return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} "))


def test_new_models_are_taken_over_under_load_without_a_lost_request(
    own: Path, start: Start, tmp_path: Path, books: Library
) -> None:
    running, is_over = start(own, "--read-only"), Event()

    answers: list[Answer] = []

    def load_it() -> None:
        while not is_over.is_set():
            answers.append(running.ask("POST", "/v1/suggest", {"texts": books.texts[:3]}))

    def answer_more() -> None:
        n = len(answers)
        until(lambda: len(answers) >= n + 6 or any(one.done() for one in under_way))

    def revision() -> dict[str, Any]:
        return running.get("/v1/model")

    first = revision()
    with ThreadPoolExecutor(3) as pool:
        under_way = [pool.submit(load_it) for _ in range(3)]
        try:
            with load(own, writable=True) as model:  # another process would do the same
                model.partial_fit(["rye bread"], [["baking"]], ids=["grown"])
                until(lambda: revision()["revision"] == 1)
                grown = revision()
                assert (grown["generation"], grown["n_documents"]) == (
                    first["generation"],
                    first["n_documents"] + 1,
                )
                answer_more()
                model.compact()
            until(lambda: revision()["generation"] != first["generation"])
            answer_more()
            # Another folder in its place: a model of fewer texts.
            fit(library(120)).save(tmp_path / "next")
            os.rename(own, tmp_path / "before")
            os.rename(tmp_path / "next", own)
            until(lambda: revision()["n_documents"] == 120)
            answer_more()
            (own / "manifest.json").write_text("damaged")
            until(lambda: measured(running, "exmlds_failed_takeovers_total") >= 1)
            answer_more()
        finally:
            is_over.set()
        for one in under_way:
            one.result()
    assert {answer.status for answer in answers} == {200}
    assert revision()["n_documents"] == 120  # the last good one is still there


def test_a_writable_service_takes_over_a_folder_in_its_place(own: Path, start: Start, tmp_path: Path) -> None:
    running = start(own)
    next_folder = Path(shutil.copytree(own, tmp_path / "next"))
    (next_folder / ".lock").unlink(missing_ok=True)
    with load(next_folder, writable=True) as model:
        model.partial_fit(["rye bread"], [["baking"]], ids=["of the next"])
    os.rename(own, tmp_path / "before")
    os.rename(next_folder, own)
    until(lambda: running.get("/v1/model")["revision"] >= 1)
    assert running.get("/v1/documents/of%20the%20next")["text"] == "rye bread"
    running.post("/v1/documents", {"documents": [{"id": "later", "text": "rye", "labels": ["baking"]}]})
    assert "later" in load(own).row_ids_
    assert "later" not in load(tmp_path / "before").row_ids_


def test_the_demo_is_served_and_leaves_nothing_behind(start: Start, tmp_path: Path) -> None:
    running = start(None, "--rows", "200", environment={"TMPDIR": str(tmp_path)})
    (said,) = [line for line in running.log if "A text to begin with" in line]
    text = said.partition(": ")[2].strip()
    (found,) = running.post("/v1/suggest", {"text": text, "limit": 1})["results"]
    assert len(found["suggestions"]) == 1
    running.post("/v1/documents", {"documents": [{"text": text, "labels": ["baking"]}]})
    running.post("/v1/feedback", {"text": text, "accepted": ["baking"]})
    assert list(tmp_path.rglob("library.feedback.jsonl"))
    assert running.end(signal.SIGTERM) == 0
    assert list(tmp_path.glob("exmlds-demo-*")) == []


def test_feedback_trains_a_model(service: Running, folder: Path, tmp_path: Path, books: Library) -> None:
    for text, labels in list(zip(books.texts, books.labels))[:30]:
        service.post("/v1/feedback", {"text": text, "accepted": labels, "rejected": [uri("x")]})
    file = tmp_path / "feedback.jsonl"
    file.write_bytes(service.ask("GET", "/v1/feedback?format=jsonl").body)
    texts, labels = read_texts(file)
    assert texts == books.texts[:30]
    assert labels == books.labels[:30]
    assert service.ask("DELETE", "/v1/feedback").status == 204
    copy = shutil.copytree(folder, tmp_path / "copy")
    with load(copy, writable=True) as model:
        n = model.n_samples_fit_
        model.partial_fit(open_texts(file), replace=True)
        assert model.n_samples_fit_ == n + 30
