"""The examples run as they are, without a warning, and print what they are about."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
PRINTS = {
    "01_texts": [
        r"'bread, a vintage bottle and a villa of the emperor' is about .*(baking|wine)",
        r"is about .*programming",
        r"\d of the votes by: .*bread",
        r"of its classifier for the word '(function|python|table)'",
    ],
    "02_sparse_matrices": [
        r"Dataset\(1,200 rows",
        r"PSnDCG +\d+",
        r"P@3 beside neighbours by features: \+\d+\.\d \(\+",  # better, and surely so
        r"Loaded again, ExMLDS says the same",
    ],
    "03_missing_labels": [r"ExMLDS with C +\d+\.\d/\d", r"reckons that [12]\d% of the labels are visible"],
    "04_rare_labels": [r"objective='psp': P@1 \d+", r"labels with 1 to \d training rows"],
    "05_embeddings": [r"Features were mapped by '", r"Labels near 'baking' .*\n.*\(0\.\d+\)"],
}


def test_all_are_here() -> None:
    assert [path.stem for path in EXAMPLES] == sorted(PRINTS)
    assert [int(path.stem[:2]) for path in EXAMPLES] == list(range(1, len(EXAMPLES) + 1))
    for path in EXAMPLES:
        told = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        assert f"Run it: python examples/{path.name}" in told


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    for pattern in PRINTS[path.stem]:
        assert re.search(pattern, done.stdout), f"{pattern}\n{done.stdout}"
    check = CHECKS.get(path.stem)
    if check:
        check(done.stdout)


def _better_with_c(shown: str) -> None:
    """P@3 of ExMLDS, when labels are hidden, is better with their co-occurrences than without."""
    without, with_c = re.findall(r"ExMLDS(?: with C)? +[\d.]+/([\d.]+)/", shown)
    assert float(with_c) > float(without)


def _more_of_the_tail(shown: str) -> None:
    """The rarest labels are found more often when asked for."""
    plain, rare = (int(share) for share in re.findall(r"1 to \d training rows +(\d+)%", shown))
    assert rare > plain


CHECKS = {"03_missing_labels": _better_with_c, "04_rare_labels": _more_of_the_tail}
