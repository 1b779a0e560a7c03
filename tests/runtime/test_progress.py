"""One bar for the whole of a fit: its share that is done, its phases, the time left."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from exmlds.runtime import progress

FIT = """
import logging
from exmlds.runtime import progress
progress.SECONDS_BETWEEN_UPDATES = progress.SECONDS_BETWEEN_LINES = progress.SECONDS_BEFORE_A_BAR = 0.0
with progress.shown(), progress.phase("training", 40):
    with progress.phase("search", 10, until=0.5):
        with progress.stage("joint learning", 10) as advance:
            advance(5)
    with progress.phase("refit", 40, until=1.0), progress.stage("classifiers", 4, unit="labels") as advance:
        advance(2)
"""


def test_parts_fill_their_shares_of_the_whole_in_lines_of_a_log():
    run = subprocess.run([sys.executable, "-c", FIT], capture_output=True, text=True)
    *lines, closing = run.stderr.splitlines()
    assert lines == [
        "0 % training",
        "0 % training: search",
        "0 % training: search: joint learning · 0/10 rows",
        "12 % training: search: joint learning · 5/10 rows",
        "50 % training: refit",
        "50 % training: refit: classifiers · 0/4 labels",
        "62 % training: refit: classifiers · 2/4 labels",
    ]
    assert closing.startswith("training: 40 rows in ")
    assert run.stdout == ""


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_a_terminal_has_one_bar_and_a_closing_line():
    import pty

    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", FIT], stderr=terminal, env={**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    )
    os.close(terminal)
    shown = b""
    try:
        while piece := os.read(controller, 65536):
            shown += piece
    except OSError:  # the other end is closed
        pass
    os.close(controller)
    assert process.wait() == 0
    text = shown.decode()
    assert "training: 40 rows in " in text.splitlines()[-1]
    assert "training: refit: classifiers · 2/4 labels" in text


def test_a_notebook_has_a_bar_and_a_closing_line():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(FIT)])
    shown = []

    class Recorder(nbclient.NotebookClient):
        def process_message(self, message, cell, cell_index):
            shown.append(message["content"].get("data", {}).get("text/html", ""))
            return super().process_message(message, cell, cell_index)

    Recorder(notebook, kernel_name="python3", timeout=60).execute()
    assert any('<progress value="0.625"></progress> training: refit: classifiers' in html for html in shown)
    (output,) = notebook.cells[0].outputs
    assert output["data"]["text/html"].startswith("training: 40 rows in ")


def test_work_that_fails_has_no_closing_line():
    program = """
        from exmlds.runtime import progress
        progress.SECONDS_BETWEEN_UPDATES = progress.SECONDS_BETWEEN_LINES = 0.0
        try:
            with progress.shown(), progress.phase("training", 40):
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            pass
        with progress.shown(), progress.phase("training again", 1):
            pass
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    lines = run.stderr.splitlines()
    assert lines[:2] == ["0 % training", "0 % training again"]
    assert lines[2].startswith("training again: 1 rows in ")


def test_nothing_is_shown_by_default(capsys):
    with progress.phase("training", 1), progress.stage("rows", 1) as advance:
        advance(1)
    assert capsys.readouterr() == ("", "")


def test_a_process_that_has_imported_ipykernel_is_no_notebook(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ipykernel")
    with progress.shown(), progress.stage("counting", 2) as advance:
        advance(2)
    assert capfd.readouterr().out == ""
