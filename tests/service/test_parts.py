"""Parts of the service, each alone: batches, the file of feedback, marks in texts, measurements."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import Mock

import joblib
import pytest
import uvicorn
from fastapi import FastAPI
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from uvicorn.server import ServerState

import exmlds
from exmlds import DataError, load
from exmlds.errors import ModelError
from exmlds.models.analyzers import TermVectorizer
from exmlds.service import app, batching, core, feedback, gate, growth, page, security, server
from exmlds.service.batching import Batcher
from exmlds.service.feedback import FeedbackStore
from exmlds.service.marks import marks, word_weights
from exmlds.service.observing import Observer
from exmlds.service.problems import Problem
from exmlds.service.prometheus import Measurements
from exmlds.service.serving import Serving, snapshot
from exmlds.service.settings import ServiceSettings
from exmlds.service.work import Work

from .conftest import LIMIT, Library, fit, uri


class Doubler:
    """Takes the place of a model: gives each number twice; waits for `may_go` in the first call."""

    def __init__(self) -> None:
        self.batches: list[tuple[Any, list[int]]] = []
        self.began, self.may_go = Event(), Event()

    def __call__(self, options: Any, numbers: list[Any]) -> Sequence[Any]:
        self.batches.append((options, list(numbers)))
        self.began.set()
        assert self.may_go.wait(LIMIT)
        if options == "fails":
            raise ValueError("it fails")
        return [2 * number for number in numbers]


def with_batcher(run: Any) -> Doubler:
    """Run a coroutine with a batcher of a `Doubler`."""

    async def main() -> None:
        batcher = Batcher(doubler)
        batcher.start()
        try:
            async with asyncio.timeout(LIMIT):
                await run(batcher, doubler)
        finally:
            doubler.may_go.set()
            await batcher.close()

    doubler = Doubler()
    asyncio.run(main())
    return doubler


async def begun(doubler: Doubler) -> None:
    await asyncio.get_running_loop().run_in_executor(None, doubler.began.wait)


def test_requests_of_the_same_options_are_predicted_together() -> None:
    async def run(batcher: Batcher, doubler: Doubler) -> None:
        first = asyncio.create_task(batcher.submit([1], "a"))
        await begun(doubler)
        wanted = [([2, 3], "a"), ([4], "b"), ([5], "a"), (range(100, 200), "a"), ([6], "fails")]
        others = [asyncio.create_task(batcher.submit(*one)) for one in wanted]
        await asyncio.sleep(0)
        doubler.may_go.set()
        assert await first == [2]
        found = await asyncio.gather(*others, return_exceptions=True)
        assert found[:4] == [[4, 6], [8], [10], list(range(200, 400, 2))]
        assert isinstance(found[4], ValueError)
        assert await batcher.submit([7], "a") == [14]  # it goes on after an error
        assert batcher.n_waiting == 0

    batches = with_batcher(run).batches
    assert batches[0] == ("a", [1])
    assert batches[1][1][:3] == [2, 3, 5]
    assert all(len(numbers) <= batching.MOST_IN_BATCH for _, numbers in batches)


def test_too_many_texts_are_refused_and_cancelled_ones_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "MOST_WAITING", 4)

    async def run(batcher: Batcher, doubler: Doubler) -> None:
        first = asyncio.create_task(batcher.submit([1], "a"))
        await begun(doubler)
        second = asyncio.create_task(batcher.submit([2, 3], "a"))
        third = asyncio.create_task(batcher.submit([4, 5], "a"))
        await asyncio.sleep(0)
        with pytest.raises(Problem, match="4 texts are waiting") as caught:
            await batcher.submit([6], "a")
        assert (caught.value.status_code, caught.value.headers) == (503, {"Retry-After": "1"})
        second.cancel()
        doubler.may_go.set()
        assert await first == [2]
        assert await third == [8, 10]

    assert [numbers for _, numbers in with_batcher(run).batches] == [[1], [4, 5]]


def test_texts_that_are_not_predicted_in_time_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "MOST_SECONDS", 0.0)

    async def run(batcher: Batcher, doubler: Doubler) -> None:
        with pytest.raises(Problem, match="not predicted within 0 seconds"):
            await batcher.submit([1], "a")

    with_batcher(run)


def test_work_has_a_bounded_queue() -> None:
    async def main() -> None:
        work, may_go = Work("test", "tests", n_threads=1, most_waiting=1), Event()
        first = asyncio.create_task(work.run(may_go.wait, LIMIT))
        await asyncio.sleep(0)
        with pytest.raises(Problem, match="Too many tests"):
            await work.run(int)
        may_go.set()
        assert await first is True
        assert await work.run(int, "7") == 7
        work.close()

    asyncio.run(main())


def test_work_that_does_not_begin_in_time_is_refused_and_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exmlds.service.work.MOST_SECONDS", 0.01)
    done: list[int] = []

    async def main() -> None:
        work, may_go = Work("test", "tests", n_threads=1, most_waiting=2), Event()
        first = asyncio.create_task(work.run(may_go.wait, LIMIT))
        await asyncio.sleep(0)
        with pytest.raises(Problem, match=r"Other tests took 0.01 seconds\. Try again"):
            await work.run(done.append, 1)
        may_go.set()
        assert await first is True  # what has begun ends
        work.close()

    asyncio.run(main())
    assert done == []


@pytest.mark.filterwarnings("ignore::exmlds.errors.NoKnownWordWarning")
def test_answers_have_a_bounded_number_of_suggestions(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "MOST_IN_ANSWER", 5)
    service = core.Service(ServiceSettings(saved, "library", feedback=None, is_read_only=True))

    async def main() -> None:
        with pytest.raises(Problem, match="At most 5 suggestions") as caught:
            await service.suggest(["a", "b"], core.SuggestOptions(3))
        assert caught.value.status_code == 413
        async with service.running(FastAPI()):
            few = await service.suggest(["bread", "rye bread"], core.SuggestOptions(2))
            allowed = core.SuggestOptions(1000, allow=(few[0][0]["id"],))
            assert len(await service.suggest(["bread", "rye bread"], allowed)) == 2

    asyncio.run(main())


def test_bodies_at_once_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "MOST_BYTES", 10)

    async def main() -> None:
        may_go = asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            while (await receive())["more_body"]:
                pass
            await may_go.wait()

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"12345", "more_body": next(parts)}

        async def ask() -> None:
            await guarded({"type": "http", "method": "POST", "headers": []}, receive, send)

        async def send(_: Any) -> None:
            pass

        settings = ServiceSettings(Path(), "", None, host="0.0.0.0", max_body=20)
        guarded, parts = gate.Gate(app, settings), iter([True, True, False, False, False])
        first = asyncio.create_task(ask())  # alone, it may have more
        await asyncio.sleep(0)
        with pytest.raises(Problem, match="20 bytes are being answered") as caught:
            await ask()
        assert caught.value.status_code == 503
        may_go.set()
        await first
        await ask()
        assert guarded.n_bytes == guarded.n_now == 0

    asyncio.run(main())


class Wire:
    """A connection of the server whose other end is this test."""

    def __init__(self) -> None:
        async def answer(scope: Any, receive: Any, send: Any) -> None:
            await self.may_answer.wait()
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body"})

        self.may_answer, self.transport = asyncio.Event(), Mock(asyncio.Transport)
        self.transport.get_extra_info.return_value = None
        self.transport.is_closing.return_value = False
        config = uvicorn.Config(answer, http=server.Connection, lifespan="off", log_config=None)
        self.state = ServerState()
        self.connection = server.Connection(config, self.state, {})

    def open(self, begin: bytes) -> None:
        self.connection.connection_made(self.transport)
        self.connection.data_received(begin)


def test_connections_end_where_the_next_request_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEAD_SECONDS", 0)
    monkeypatch.setattr(server, "ANSWER_SECONDS", 0)
    request = b"GET / HTTP/1.1\r\nHost: localhost\r\n"

    async def deadlines() -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    async def main() -> None:
        slow, asking = Wire(), Wire()
        slow.open(request)  # the head never ends
        asking.open(request + b"\r\n")
        await deadlines()
        slow.transport.close.assert_called_once()
        slow.transport.abort.assert_called_once()  # what was written is not taken either
        asking.transport.close.assert_not_called()  # however long the answer takes
        asking.may_answer.set()
        await deadlines()
        asking.transport.write.assert_called()
        asking.transport.close.assert_called()  # no other request has come
        for wire in (slow, asking):
            wire.connection.connection_lost(None)

    asyncio.run(main())


def test_too_many_connections_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 1)

    async def main() -> None:
        one, other = Wire(), Wire()
        other.connection.connections = one.connection.connections
        for wire in (one, other):
            wire.connection.connection_made(wire.transport)
        one.transport.abort.assert_not_called()
        other.transport.abort.assert_called_once()
        for wire in (one, other):
            wire.connection.connection_lost(None)

    asyncio.run(main())


@pytest.mark.filterwarnings("ignore::exmlds.errors.NoKnownWordWarning")
def test_a_folder_that_cannot_be_written_to_is_served_where_nothing_is_written(
    saved: Path, books: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(DataError, match="cannot be written to, and its model can grow"):
        Serving(saved)
    serving = Serving(saved, is_read_only=True)
    serving.close()
    fit(books).save(tmp_path / "plain")
    (tmp_path / "plain" / ".lock").unlink()
    serving = Serving(tmp_path / "plain")
    assert not serving.is_growable
    serving.close()
    assert not (tmp_path / "plain" / ".lock").exists()


@pytest.mark.filterwarnings("ignore::exmlds.errors.DataWarning")  # of words that the model does not know
def test_no_change_reaches_a_snapshot(saved: Path, books: Library, tmp_path: Path) -> None:
    def answers(model: Any) -> str:
        texts, label = books.texts[:20], uri("baking")
        suggested, reasons = model.predict_topk(texts, 10), model.explain(texts[:2], label, 3)
        return joblib.hash(
            (suggested, [why.score for why in reasons], model.similar_labels(label, 3), model.label_counts_)
        )

    with load(shutil.copytree(saved, tmp_path / "library"), writable=True) as model:
        before = snapshot(model)
        expected = answers(before)
        model.partial_fit(["rye bread"] * 2, [[uri("lighthouses")], [uri("law")]], ids=["a", "b"])
        model.partial_fit(["rye"], [[uri("baking")]], ids=["b"], replace=True)
        model.remove_rows(["a", "0", "1"])
        model.compact(purge=True)
        assert answers(model) != expected
        assert answers(before) == expected


@pytest.mark.parametrize(
    ("host", "hosts", "expected"),
    [
        ("127.0.0.1", (), {"localhost", "127.0.0.1", "[::1]"}),
        ("::1", (), {"localhost", "127.0.0.1", "[::1]"}),
        ("127.0.0.2", (), {"localhost", "127.0.0.1", "127.0.0.2", "[::1]"}),
        ("::1", ("a.example",), {"a.example", "[::1]"}),
        ("0.0.0.0", (), None),
    ],
)
def test_host_names_are_those_of_the_machine_or_the_allowed_ones(
    host: str, hosts: tuple[str, ...], expected: set[str] | None
) -> None:
    settings = ServiceSettings(Path(), "", None, host=host, hosts=hosts)
    assert security.allowed_hosts(settings) == expected


def test_a_body_has_to_arrive_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "BODY_SECONDS", 0)

    async def main() -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await receive()

        guarded = gate.Gate(app, ServiceSettings(Path(), "", None, host="0.0.0.0"))
        with pytest.raises(Problem, match="Send the whole request within 0 seconds") as caught:
            await guarded({"type": "http", "method": "POST", "headers": []}, asyncio.Event().wait, app)
        assert caught.value.status_code == 408
        assert guarded.n_now == 0

    asyncio.run(main())


def test_requests_at_once_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "MOST_AT_ONCE", 1)
    sent: list[Any] = []

    async def main() -> None:
        may_go = asyncio.Event()

        async def app(*_: Any) -> None:
            await may_go.wait()

        async def send(message: Any) -> None:
            sent.append(message)

        guarded = gate.Gate(app, ServiceSettings(Path(), "", None, host="0.0.0.0"))
        request = {"type": "http", "method": "GET", "headers": []}
        first = asyncio.create_task(guarded(request, app, send))
        await asyncio.sleep(0)
        await guarded(request, app, send)
        assert (sent[0]["status"], (b"retry-after", b"1") in sent[0]["headers"]) == (503, True)
        may_go.set()
        await first

    asyncio.run(main())


def test_a_service_that_is_ending_is_not_ready() -> None:
    with pytest.raises(Problem, match="is ending") as caught:
        asyncio.run(page.readyz(Mock(is_ending=True)))
    assert caught.value.status_code == 503


@pytest.mark.parametrize(("number", "status"), [(errno.ENOSPC, 507), (errno.EDQUOT, 507), (errno.EIO, 500)])
def test_errors_of_the_disk_are_told_without_a_path(number: int, status: int) -> None:
    cause = OSError(number, "why", "/secret/path")
    wrapped = ModelError("/secret/path cannot be written to")
    wrapped.__cause__ = cause
    for error in (cause, wrapped):
        answer = asyncio.run(app._failed(Mock(), error))
        assert answer.status_code == status
        assert b"secret" not in answer.body


def test_a_change_that_the_model_does_not_take_is_refused() -> None:
    serving = Mock()
    serving.change.side_effect = ValueError("no label would be left")
    with pytest.raises(Problem, match="no label would be left") as caught:
        growth.remove(serving, "a", purge=False)
    assert caught.value.status_code == 409
    serving.change.side_effect = ModelError("/secret/path cannot be written to")
    with pytest.raises(ModelError):
        growth.remove(serving, "a", purge=False)


def test_feedback_is_there_after_it_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    store = FeedbackStore(path)
    first, second = store.add("a\nb", ["x", "x"], ["y"], None), store.add("c", ["z"], [], "d")
    store.close()
    with path.open("ab") as file:
        file.write(b'{"id": "torn", "te')  # what a crash leaves of a line
    again = FeedbackStore(path)
    assert len(again) == 2
    assert path.read_bytes().endswith(b"}\n")
    rows = list(map(json.loads, again.training_data()))
    assert [(row["id"], row["text"], row["labels"]) for row in rows] == [
        (first, "a\nb", ["x"]),
        ("d", "c", ["z"]),
    ]
    export = again.training_data()
    next(export)
    again.remove(first)
    assert json.loads(next(export))["id"] == "d"  # an export that has begun is of one moment
    assert [json.loads(line)["feedback_id"] for line in again.training_data()] == [second]
    third = again.add("e", ["x"], [], None)
    again.add("f", [], ["x"], None)  # without an accepted label it is no training data
    again.remove(second)
    assert [json.loads(line)["id"] for line in again.training_data()] == [third]
    again.close()


def test_feedback_is_in_one_service_and_in_whole_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kept.jsonl"
    store = FeedbackStore(path)
    with pytest.raises(DataError, match="another service uses it"):
        FeedbackStore(path)
    monkeypatch.setattr(feedback, "MOST_BYTES", 10)
    with pytest.raises(Problem, match="Export"):
        store.add("a", [], [], None)
    store.close()
    for other in (tmp_path / "none" / "kept.jsonl", Path(os.devnull)):
        with pytest.raises(DataError, match=r"cannot be kept there \(.+\)\. Choose another --feedback-file"):
            FeedbackStore(other)


@pytest.mark.parametrize("line", ['["a"]', '{"id": "a"}', '{"id": "a", "document_id": null, "text": "b"}'])
def test_only_whole_lines_of_feedback_are_read(tmp_path: Path, line: str) -> None:
    path = tmp_path / "kept.jsonl"
    path.write_text(f"{line}\n")
    with pytest.raises(DataError, match="jsonl:1: this is not a line of feedback"):
        FeedbackStore(path)


def test_feedback_for_which_there_is_no_space_leaves_nothing_behind(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    store = FeedbackStore(tmp_path / "kept.jsonl")
    first = store.add("a", ["x"], [], None)
    content = store.path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(content) + 10, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            store.add("b", ["x"], [], None)
        assert store.path.read_bytes() == content
        store.remove(first)  # gives the space back
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(store.training_data()) == []
    second = store.add("c", ["x"], [], None)
    assert [json.loads(line)["id"] for line in store.training_data()] == [second]
    store.close()


@pytest.mark.parametrize(
    ("analyzer", "weights", "expected"),
    [
        ("words", {"bread": 1.0, "salt": -0.5}, {"bread": 1.0, "salt": -0.5}),
        ("stems", {"loav": 2.0, "loaf": 2.0}, {"loaf": 2.0}),
        ("words+pairs", {"salt bread": 1.0, "bread": 0.5}, {"salt": 0.5, "bread": 1.0}),
        ("words+ngrams", {"*rea*": 0.25, "*read": 0.25, "*read*": 0.5}, {"bread": 0.5}),
    ],
)
def test_the_weights_of_features_are_those_of_words(
    analyzer: str, weights: dict[str, float], expected: dict[str, float]
) -> None:
    text = "Salt bread, a loaf of bread"
    vectorizer = TermVectorizer(analyzer)
    vectorizer.fit_transform([text, text])
    assert word_weights(vectorizer, text, weights) == expected


def test_the_words_of_other_vectorizers_are_found_too() -> None:
    count = CountVectorizer().fit(["salt bread"])
    assert word_weights(count, "Bread!", {"bread": 1.0}) == {"bread": 1.0}
    hashing = HashingVectorizer()
    column = int(hashing.transform(["bread"]).indices[0])
    assert word_weights(hashing, "Bread and salt", {column: 1.0}) == {"bread": 1.0}
    assert word_weights(object(), "Bread", {"bread": 1.0}) == {}


def test_marks_are_ranges_of_the_text() -> None:
    text = "Sea birds: Σ BIRDS of the sea  Birds"
    found = marks(text, {"birds": 0.5, "σ": 1.0}, ["sea birds"])
    shown = [(text[mark.start : mark.end], mark.kind, mark.weight) for mark in found]
    assert shown == [
        ("Sea birds", "name", 1.0),
        ("birds", "word", 0.5),
        ("BIRDS", "word", 0.5),
        ("sea  Birds", "name", 1.0),
        ("Birds", "word", 0.5),
    ]


@pytest.mark.parametrize(
    ("error", "logged"),
    [
        (
            ModelError("m: cannot be written (No space left)"),
            "ModelError: m: cannot be written (No space left)",
        ),
        (OSError(28, "No space left"), "OSError: [Errno 28] No space left"),
        (ValueError("a text of a user"), "ValueError"),
    ],
)
def test_the_log_tells_of_disks_and_not_of_texts(
    error: Exception, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(*_: Any) -> None:
        raise error

    asyncio.run(Observer(fails, Measurements())({"type": "http", "method": "GET"}, fails, fails))
    assert re.fullmatch(
        rf"{re.escape(logged)} \(.*observing\.py:\d+ .* > test_parts\.py:\d+ fails\)", caplog.messages[0]
    )


def test_labels_of_measurements_are_escaped() -> None:
    measurements = Measurements()
    measurements.add_request("GET", 'a"\\\n', 200, 0.002)
    text = measurements.text({}, {})
    assert 'route="a\\"\\\\\\n",status="200"} 1' in text
    buckets = re.findall(r'seconds_bucket\{.*le="([^"]+)"\} (\d+)', text)
    assert buckets[:3] == [("0.001", "0"), ("0.0025", "1"), ("0.005", "1")]


def test_the_extra_is_named_where_it_is_missing(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve = import_module("exmlds.cli.serve")
    monkeypatch.setattr(exmlds, "service", exmlds.service)  # the package itself is put back too
    for name in [name for name in sys.modules if name.startswith(("exmlds.service", "uvicorn"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(DataError, match=r'needs uvicorn: pip install "exmlds\[service\]"'):
        serve.run(host="127.0.0.1")
