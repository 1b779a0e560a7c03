"""The cache of compiled kernels."""

from __future__ import annotations

import importlib.util
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
