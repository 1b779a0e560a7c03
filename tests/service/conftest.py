"""A small model of texts in a folder, and services of it: real processes that are asked over real HTTP."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple, Self

import pytest

from exmlds import ExMLDS, TextClassifier
from exmlds.data import make_library
from exmlds.vocabulary import ALTERNATIVE, Vocabulary, VocabularyBuilder

LIMIT = 600  # seconds, far more than anything takes on a busy machine, so that a test ends where it fails
ADDRESS = re.compile(r"is at (http://\S+:(\d+)/)")


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @classmethod
    def of(cls, response: HTTPResponse) -> Answer:
        headers = {name.lower(): value for name, value in response.getheaders()}
        return cls(response.status, headers, response.read())


class Running:
    """A service in a process of its own.

    model : the folder of the model, or None for the demo
    log : the lines that it has written so far
    """

    def __init__(
        self, model: Path | None, *options: object, environment: dict[str, str] | None = None
    ) -> None:
        command = ["demo", "--serve"] if model is None else ["serve", str(model)]
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "exmlds",
                "--log-level",
                "info",
                *command,
                "--port",
                "0",
                *map(str, options),
            ],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | (environment or {}),
        )
        self.log: list[str] = []
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line)
            if found := ADDRESS.search(line):
                self.address, self.port = found[1], int(found[2])
                break
        else:
            raise AssertionError("".join(self.log))
        self._reader = Thread(target=self.log.extend, args=(self.process.stderr,))
        self._reader.start()

    def connect(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)

    def ask(
        self, method: str, path: str, content: Any = None, *, headers: dict[str, str] | None = None
    ) -> Answer:
        """The answer to a request; content : bytes, or what is sent as JSON."""
        body = content if isinstance(content, bytes) or content is None else json.dumps(content).encode()
        given = {"Content-Type": "application/json"} if body is not None else {}
        connection = self.connect()
        try:
            connection.request(method, path, body, given | (headers or {}))
            return Answer.of(connection.getresponse())
        finally:
            connection.close()

    def post(self, path: str, content: Any, **options: Any) -> Any:
        answer = self.ask("POST", path, content, **options)
        assert answer.status in (200, 201), answer
        return answer.json

    def get(self, path: str, **options: Any) -> Any:
        answer = self.ask("GET", path, **options)
        assert answer.status == 200, answer
        return answer.json

    def end(self, number: int | None = signal.SIGTERM) -> int:
        """Send a signal, if any, and return how the process ended."""
        if number is not None:
            self.process.send_signal(number)
        code = self.process.wait(LIMIT)
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.end(signal.SIGKILL)


def uri(name: str) -> str:
    return f"http://example.org/{name.replace(' ', '-')}"


class Library(NamedTuple):
    """Books as texts, with URIs of subjects as labels, and the names of these in two languages."""

    texts: list[str]
    labels: list[list[str]]
    vocabulary: Vocabulary


def library(n: int = 250) -> Library:
    books = make_library(n, random_state=0)
    words, names = books.feature_names or [], books.label_names or []
    builder = VocabularyBuilder()
    for number, name in enumerate(names):
        concept = builder.concept(uri(name))
        builder.add_name(concept, name, "en")
        builder.add_name(concept, f"{name}ksi", "fi")
        builder.add_name(concept, f"{name} in general", "en", ALTERNATIVE)
        builder.notations[uri(name)] = f"{number}.1"
    builder.add_name(builder.concept(uri("lighthouses")), "lighthouses", "en")
    texts = [" ".join(words[j] for j in row.indices) for row in books.X]
    labels = [[uri(names[j]) for j in row.indices] for row in books.Y]
    return Library(texts, labels, builder.build())


def fit(books: Library, **options: Any) -> TextClassifier:
    model = ExMLDS(effort="fast", random_state=0)
    return TextClassifier(
        model, analyzer="words", max_words=None, vocabulary=books.vocabulary, **options
    ).fit(books.texts, books.labels)


@pytest.fixture(scope="session")
def books() -> Library:
    return library()


@pytest.fixture(scope="session")
def saved(books: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model that can grow; tests use copies of it."""
    folder = tmp_path_factory.mktemp("saved") / "library"
    fit(books, growable=True).save(folder)
    return folder


@pytest.fixture(scope="session")
def folder(saved: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the model, to which tests add no document or feedback that they leave there."""
    return Path(shutil.copytree(saved, tmp_path_factory.mktemp("served") / "library"))


@pytest.fixture(scope="session")
def service(folder: Path) -> Iterator[Running]:
    """A service of the copy, as `exmlds serve` starts it without options."""
    with Running(folder) as running:
        yield running


Start = Callable[..., Running]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts services that end with the test."""
    started: list[Running] = []

    def run(*arguments: Any, **options: Any) -> Running:
        started.append(Running(*arguments, **options))
        return started[-1]

    yield run
    for running in started:
        running.__exit__()
