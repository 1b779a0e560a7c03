"""Reports of small models, and a browser to open their pages in."""

from __future__ import annotations

import copy
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from exmlds import ExMLDS1
from exmlds.data import Dataset, make_library
from exmlds.report import EvaluationReport, make

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Case(NamedTuple):
    model: Any
    test: Dataset
    report: EvaluationReport


@pytest.fixture(scope="session")
def case_of(fitted: Callable[..., Any]) -> Callable[[Any], Case]:
    books = make_library(600, random_state=0)
    test = books.rows(slice(450, None))

    def made(method: Any) -> Case:
        model = fitted(method, books, slice(450))
        return Case(model, test, make(model, test.X, test.Y, title="Books", date="2025-01-02"))

    return made


@pytest.fixture(scope="session")
def embedded(case_of: Callable[[Any], Case]) -> Case:
    """A model with label embeddings that is fitted quickly."""
    return case_of(ExMLDS1(n_components=16, random_state=0))


@pytest.fixture(scope="session")
def wicked_names() -> list[str]:
    return [
        "<script>alert(1)</script>",
        "</script><img src=x onerror=alert(2)>",
        "<!-- <script>",
        "\"quoted\" & 'single' > $title ${script}",
        "half \ud800 a pair, \u2028 and a line, \x07 a bell, \u202eand back\u202c",
    ]


@pytest.fixture(scope="session")
def wicked(wicked_names: list[str]) -> EvaluationReport:
    """The report of a model whose labels try to break out of the page."""
    rng = np.random.default_rng(0)
    X = np.repeat(np.eye(5), 6, axis=0) + 0.1 * rng.random((30, 5))
    Y = [[wicked_names[i // 6]] for i in range(30)]
    model = ExMLDS1(n_components=4, n_neighbors=3, random_state=0).fit(X, Y)
    wrong = [[wicked_names[(i // 6 + 1) % 5]] for i in range(30)]  # so that there are confused pairs
    return make(model, X, wrong, k=[1], title=wicked_names[1])


@pytest.fixture(scope="session")
def uris(embedded: Case) -> EvaluationReport:
    """The report of a model whose labels are URIs."""
    model = copy.copy(embedded.model)
    model.names_ = np.array([f"http://www.yso.fi/onto/yso/p{12345 + 37 * i}" for i in range(37)], object)
    return make(model, embedded.test.X, embedded.test.Y)


class Browser:
    """One tab of Chromium, driven through the pipe of its DevTools protocol: JSON that ends with NUL."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        reads, self._commands = os.pipe()
        self._answers, writes = os.pipe()
        flags = (
            "--headless --no-sandbox --disable-gpu --no-first-run --disable-sync --disable-component-update "
            f"--disable-background-networking --remote-debugging-pipe --user-data-dir={folder / 'profile'}"
        )
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$0" "$@" 3<&{reads} 4>&{writes}', str(CHROMIUM), *flags.split()],
            pass_fds=(reads, writes),
            stderr=subprocess.DEVNULL,
        )
        os.close(reads)
        os.close(writes)
        self._number, self._received, self._session = 0, b"", ""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def send(self, method: str, **parameters: Any) -> Any:
        """Send a command and wait for its answer; other messages are ignored."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _next(self) -> Any:
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._answers], [], [], 60)
            assert ready, "the browser does not answer"
            part = os.read(self._answers, 1 << 20)
            assert part, "the browser has ended"
            self._received += part
        message, _, self._received = self._received.partition(b"\0")
        return json.loads(message)

    def open(self, html: bytes, *, fragment: str = "", width: int = 1000, dark: bool = False) -> None:
        """Open a page in a window of this width, and wait until its script has run."""
        path = self.folder / f"page-{self._number}.html"  # a new name, so that a fragment reloads the page
        path.write_bytes(html)
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False
        )
        self.media(dark=dark)
        address = path.as_uri() + fragment
        self.send("Page.navigate", url=address)
        self.wait(f"location.href === {json.dumps(address)} && document.readyState === 'complete'")

    def media(self, kind: str = "", *, dark: bool = False) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", media=kind, features=[scheme])

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        self.until(lambda: self.run(condition))

    def until(self, happened: Callable[[], Any]) -> None:
        for _ in range(600):
            if happened():
                return
            time.sleep(0.05)
        raise AssertionError("it did not happen within 30 seconds")

    def close(self) -> None:
        self._session = ""
        self.send("Browser.close")
        self.process.wait(30)
        os.close(self._commands)
        os.close(self._answers)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here")
    started = Browser(tmp_path_factory.mktemp("browser"))
    yield started
    started.close()
