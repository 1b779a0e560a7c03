"""The cache of compiled kernels."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MODULE = """
from exmlds.kernels.jit.compiler import kernel

@kernel
def add_one(number):
    return number + 1
"""


def imported(path: Path) -> Any:
    """A kernel as a new process sees it: what is compiled already is in the cache only."""
    spec = importlib.util.spec_from_file_location("tiny", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.add_one


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize(
    "content", [b"", b"garbage\n", b"\0" * 500, None], ids=["empty", "text", "zeros", "cut"]
)
def test_a_damaged_cache_is_rebuilt(tmp_path: Path, suffix: str, content: bytes | None) -> None:
    path = tmp_path / "tiny.py"
    path.write_text(MODULE)
    kernel = imported(path)
    assert kernel(1) == 2
    (file,) = Path(kernel.stats.cache_path).glob(f"*add_one-*.{suffix}")
    file.write_bytes(file.read_bytes()[:60] if content is None else content)
    rebuilt = imported(path)
    assert rebuilt(1) == 2
    assert not rebuilt.stats.cache_hits
    again = imported(path)
    assert again(1) == 2
    assert again.stats.cache_hits


def test_a_process_that_loads_a_kernel_can_compile_another(tmp_path: Path) -> None:
    """Loading does not import what numba needs to compile, and compiling does."""
    (tmp_path / "tiny.py").write_text(MODULE)
    code = (
        "import sys, tiny\n"
        "for number in map(eval, sys.argv[1:]):\n"
        "    print(tiny.add_one(number), 'numba.typed.typeddict' in sys.modules)"
    )

    def run(*numbers: str) -> list[str]:
        command = [sys.executable, "-c", code, *numbers]
        return subprocess.check_output(command, cwd=tmp_path, text=True).splitlines()

    assert run("1") == ["2 True"]
    assert run("1", "1.5") == ["2 False", "2.5 True"]
