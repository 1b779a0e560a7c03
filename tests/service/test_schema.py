"""The OpenAPI document describes what the service takes and answers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Running, Start
from .test_access import READ, WRITE, bearer


def test_the_document_has_every_route_with_its_token_and_bounds(start: Start, service: Running) -> None:
    document = service.get("/openapi.json")
    assert "securitySchemes" not in document["components"]
    texts = document["components"]["schemas"]["SuggestRequest"]
    assert texts["oneOf"] == [{"required": ["text"]}, {"required": ["texts"]}]
    assert texts["properties"]["limit"]["maximum"] == 1000
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"], (path, method)
            assert "422" not in operation["responses"] or "problem" in json.dumps(
                operation["responses"]["422"]
            )


@pytest.mark.slow
def test_schemathesis_finds_no_failure(saved: Path, tmp_path: Path, start: Start) -> None:
    pytest.importorskip("schemathesis")
    import shutil

    folder = shutil.copytree(saved, tmp_path / "library")
    tokens = {"EXMLDS_READ_TOKEN": READ, "EXMLDS_WRITE_TOKEN": WRITE}
    running = start(folder, "--max-body", "50 MB", environment=tokens)
    program = Path(sys.executable).with_name("schemathesis")
    command = [program, "run", f"{running.address}openapi.json", "--checks", "all", "--max-examples", "5"]
    token = bearer(WRITE)["Authorization"]
    done = subprocess.run(
        [*map(str, command), "-H", f"Authorization: {token}", "--seed", "0", "--no-color"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout[-3000:]
