"""How the program ends: by a signal, with a closed or full output, or on a full disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals, devices and descriptors of POSIX")


def start(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """A process of its own; its output is a pipe unless `options` say otherwise."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # A shell's background job ignores Ctrl-C, and so would its children.
    pipes["preexec_fn"] = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen([sys.executable, "-m", "exmlds", *map(str, arguments)], **{**pipes, **options})


def wait_for(folder: Path, pattern: str, process: subprocess.Popen[str]) -> None:
    while not any(folder.glob(pattern)) and process.poll() is None:
        time.sleep(0.01)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_removes_temporary_files(files: Path, tmp_path: Path, name: str) -> None:
    number = getattr(signal, name)
    process = start("predict", files / "model", "-", env={**os.environ, "TMPDIR": str(tmp_path)})
    wait_for(tmp_path, "exmlds-*/*", process)  # standard input is copied until it ends
    process.send_signal(number)
    _, err = process.communicate()
    assert (process.returncode, err) == (128 + number, "Stopped.\n")
    assert list(tmp_path.iterdir()) == []


def test_a_signal_during_imports_is_handled(tmp_path: Path) -> None:
    slow = f"import time\nopen({str(tmp_path / 'here')!r}, 'w').close()\ntime.sleep(60)\n"
    (tmp_path / "typer.py").write_text(slow)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = start("info", env={**os.environ, "PYTHONPATH": path})
    wait_for(tmp_path, "here", process)
    process.terminate()
    _, err = process.communicate()
    assert (process.returncode, err) == (143, "Stopped.\n")


def test_a_signal_at_any_moment_leaves_no_traceback() -> None:
    for delay in (0, 0.3):
        process = start("info")
        time.sleep(delay)
        process.terminate()
        _, err = process.communicate()
        # Before Python runs our code, the signal ends the process itself; at its end it has succeeded.
        assert (process.returncode, err) in [(-signal.SIGTERM, ""), (143, "Stopped.\n"), (0, "")]


def test_a_signal_in_a_destructor_is_not_lost() -> None:
    code = """
import os, signal, sys, time, exmlds.cli
from exmlds.__main__ import main

class Sends:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)  # Python handles the signal here, and drops its exception

def run():
    Sends()
    time.sleep(60)

exmlds.cli.main = run
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (143, "Stopped.\n")


def test_a_closed_output_is_an_error() -> None:
    def info(redirection: str) -> subprocess.CompletedProcess[str]:
        command = ["sh", "-c", f"exec {sys.executable} -m exmlds info {redirection}"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = info(">&-")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("exmlds: Standard output is closed")
    done = info("nothing 2>&-")
    assert (done.returncode, done.stdout) == (2, "")


def test_a_full_output_is_an_error() -> None:
    with open("/dev/full", "w") as full:
        process = start("--version", stdout=full)
    _, err = process.communicate()
    expected = "exmlds: standard output cannot be written (No space left on device).\n"
    assert (process.returncode, err) == (2, expected)


def test_a_reader_that_has_gone_is_no_error() -> None:
    end, beginning = os.pipe()
    os.close(end)
    process = start("--version", stdout=beginning)
    os.close(beginning)
    assert process.communicate()[1] == ""


def test_a_full_disk_is_named_with_the_file(run: Run, files: Path, tmp_path: Path) -> None:
    done = run("convert", files / "train.txt", "/dev/full")
    assert (done.code, done.err) == (2, "exmlds: /dev/full: cannot be written (No space left on device).\n")
    limited = f"ulimit -f 1; exec {sys.executable} -m exmlds convert"
    command = f"{limited} {files}/train.txt {tmp_path}/x.txt"
    full = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (full.returncode, full.stderr) == (
        2,
        f"exmlds: {tmp_path}/x.txt: cannot be written (File too large).\n",
    )
    assert list(tmp_path.iterdir()) == []
