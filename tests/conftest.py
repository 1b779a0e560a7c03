"""Fixtures: small data made here, models fitted once, a browser, and the real data sets where they are."""

from __future__ import annotations

import gzip
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import joblib
import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.base import clone

from exmlds import XMCEstimator
from exmlds.data import Dataset, make_library

# No test depends on time (the first call of a kernel compiles it), and CI runs the same examples every time.
hypothesis.settings.register_profile("here", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("here")

DATA = Path(os.environ["EXMLDS_DATA"]) if "EXMLDS_DATA" in os.environ else None


@pytest.fixture(scope="session")
def library() -> Dataset:
    return make_library(400, random_state=0)


def look_at_matrices(value: Any) -> None:
    """Sparse matrices note whether they are sorted when they are first asked, which is no change."""
    if issparse(value):
        _ = value.has_canonical_format, value.has_sorted_indices
    elif isinstance(value, XMCEstimator):
        look_at_matrices(list(vars(value).values()))
    elif isinstance(value, (list, tuple)):
        for part in value:
            look_at_matrices(part)


@pytest.fixture(scope="session")
def fitted() -> Iterator[Callable[..., Any]]:
    """`fitted(method, data, rows)`: a model fitted on these rows, once for all tests.

    The names of labels are given where the data have them. Tests leave the model as it is; one that changes
    it takes a deep copy. At the end it is seen whether they did.
    """
    models: dict[Any, tuple[Any, str, Dataset]] = {}  # with the data, whose id is then no other's

    def fit(method: Any, data: Dataset, rows: slice = slice(None)) -> Any:
        settings = joblib.hash(method.get_params())
        key = (type(method), settings, id(data), rows.start, rows.stop, rows.step)
        if key not in models:
            model = clone(method).fit(data.X[rows], data.Y[rows], label_names=data.label_names)
            look_at_matrices(model)
            models[key] = (model, joblib.hash(model), data)
        return models[key][0]

    yield fit
    for model, before, _ in models.values():
        assert joblib.hash(model) == before, f"a test has changed {model}"


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of the benchmark data; tests that use it are marked `data`."""
    if DATA is None or not DATA.is_dir():
        pytest.skip("EXMLDS_DATA does not name a folder with the benchmark data")
    return DATA


@pytest.fixture(scope="session")
def eurlex_text(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """EURLex-4K's training file, unpacked."""
    path = tmp_path_factory.mktemp("eurlex") / "train.txt"
    with gzip.open(real_data / "eurlex-4k" / "train.txt.gz") as packed, path.open("wb") as file:
        shutil.copyfileobj(packed, file)
    return path


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# Keys that are no characters: their virtual key codes, and the text that they enter.
KEYS = {
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    "Tab": (9, ""),
    "ArrowLeft": (37, ""),
    "ArrowUp": (38, ""),
    "ArrowRight": (39, ""),
    "ArrowDown": (40, ""),
}
CONTROL = 2  # a modifier of keys
LIMIT = 600  # seconds, far more than anything takes on a busy machine, so that a test ends where it fails
# The middle of the visible element that a selector finds; null if another element lies over it.
MIDDLE = """
((element) => {
  element.scrollIntoView({ block: "center" });
  const box = element.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
  return element.contains(document.elementFromPoint(x, y)) ? [x, y] : null;
})
"""


class Browser:
    """One tab of Chromium, driven through the pipe of its DevTools protocol: JSON that ends with NUL.

    complaints : what the page wrote to its console since it was opened, uncaught errors included
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.complaints: list[str] = []
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
        self.send("Log.enable")
        self.send("Runtime.enable")

    def send(self, method: str, **parameters: Any) -> Any:
        """Send a command and wait for its answer."""
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
            if answer.get("method") in (
                "Log.entryAdded",
                "Runtime.exceptionThrown",
                "Runtime.consoleAPICalled",
            ):
                self.complaints.append(json.dumps(answer["params"]))

    def _next(self) -> Any:
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._answers], [], [], LIMIT)
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
        self.go(path.as_uri() + fragment, width=width, dark=dark)

    def go(self, address: str, *, width: int = 1000, dark: bool = False) -> None:
        """Open an address."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False
        )
        self.media(dark=dark)
        self.complaints.clear()
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

    def click(self, selector: str) -> None:
        """Click into the middle of an element, with the mouse."""
        place = self.run(f"{MIDDLE}(document.querySelector({json.dumps(selector)}))")
        assert place is not None, f"{selector} cannot be clicked: something else lies over it"
        mouse = {"x": place[0], "y": place[1], "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, **mouse)

    def press(self, key: str, modifiers: int = 0) -> None:
        code, entered = KEYS.get(key, (ord(key[0].upper()), key))
        event = {"key": key, "code": key, "modifiers": modifiers, "windowsVirtualKeyCode": code}
        self.send("Input.dispatchKeyEvent", type="keyDown", **event, **({"text": entered} if entered else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text: str) -> None:
        """Enter a text into the field that has the focus."""
        self.send("Input.insertText", text=text)

    def wait(self, condition: str) -> None:
        self.until(lambda: self.run(condition))

    def until(self, happened: Callable[[], Any]) -> None:
        for _ in range(20 * LIMIT):
            if happened():
                return
            time.sleep(0.05)
        raise AssertionError(f"it did not happen within {LIMIT} seconds")

    def close(self) -> None:
        self._session = ""
        self.send("Browser.close")
        self.process.wait(LIMIT)
        os.close(self._commands)
        os.close(self._answers)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here")
    started = Browser(tmp_path_factory.mktemp("browser"))
    yield started
    started.close()
