"""A file is replaced as a whole, and what was half-written is removed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from exmlds.storage import files
from exmlds.storage.files import replacing


def test_a_signal_right_after_the_file_was_created_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = files._create

    def interrupted(temporary: Path, path: Path) -> None:
        create(temporary, path).close()
        assert [temporary] == list(tmp_path.iterdir())
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "_create", interrupted)
    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "out.txt"):
        raise AssertionError("there is no file to write to")
    assert list(tmp_path.iterdir()) == []


def test_a_second_signal_while_a_file_is_removed_leaves_none(tmp_path: Path) -> None:
    program = """
import pathlib, sys
from exmlds.storage.files import replacing

def interrupted(*_, **__):
    pathlib.Path.unlink = unlink
    raise SystemExit(7)

unlink, pathlib.Path.unlink = pathlib.Path.unlink, interrupted
with replacing(sys.argv[1]) as out:
    out.write(b"half")
    raise SystemExit(6)
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "out.txt")], check=False)
    assert done.returncode == 7
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_private_until_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with replacing(path) as out:
        out.write(b"one")
        (temporary,) = tmp_path.iterdir()
        assert temporary.stat().st_mode & 0o077 == 0 or sys.platform == "win32"
    assert path.read_bytes() == b"one"
    assert [path] == list(tmp_path.iterdir())
