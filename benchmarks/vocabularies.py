"""Read a made-up vocabulary of 200,000 concepts with names in three languages, as TSV and as Turtle.

    python benchmarks/vocabularies.py

Each file is read in a process of its own, which tells the seconds and the peak memory. The Turtle file has
preferred and alternative names, and a broader concept for each concept but one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from exmlds.data import read_vocabulary
from measure import destination, parser_of, peak_bytes, seconds, write_results

CONCEPTS = 200_000
LANGUAGES = ("en", "de", "fi")
PREFIXES = "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"
WORDS = 40_000


def name_of(rng: np.random.Generator, language: str) -> str:
    return " ".join(f"{language}word{number}" for number in rng.integers(0, WORDS, rng.integers(1, 4)))


def write_tables(folder: Path, n: int) -> list[Path]:
    """A TSV file for each language."""
    rng, paths = np.random.default_rng(0), []
    for language in LANGUAGES:
        paths.append(folder / f"names-{language}.tsv")
        lines = (f"<http://example.org/c{number}>\t{name_of(rng, language)}\n" for number in range(n))
        paths[-1].write_text("".join(lines), encoding="utf-8")
    return paths


def write_turtle(folder: Path, n: int) -> list[Path]:
    rng, path = np.random.default_rng(0), folder / "names.ttl"
    with path.open("w", encoding="utf-8") as file:
        file.write(PREFIXES)
        for number in range(n):
            statements = [
                f'skos:{kind}Label "{name_of(rng, language)}"@{language}'
                for language in LANGUAGES
                for kind in ("pref", "alt")
            ]
            if number:
                statements.append(f"skos:broader <http://example.org/c{int(rng.integers(number))}>")
            file.write(f"<http://example.org/c{number}> a skos:Concept ; {' ; '.join(statements)} .\n")
    return [path]


def read(paths: list[Path]) -> dict[str, Any]:
    """Run in its own process."""
    found: list[Any] = []
    taken = seconds(lambda: found.append(read_vocabulary(paths)))
    names = len(found[0].tables.texts)
    return {"seconds": taken, "peak_bytes": peak_bytes(), "concepts": len(found[0]), "names": names}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--concepts", type=int, default=CONCEPTS, metavar="N")
    parser.add_argument("--read", type=Path, nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        print(json.dumps(read(options.read)))
        return
    path = destination(parser, options, "vocabularies")
    formats: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        for format, write in (("tsv", write_tables), ("turtle", write_turtle)):
            files = write(Path(name), options.concepts)
            command = [sys.executable, __file__, "--read", *map(str, files)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            formats[format] = json.loads(output) | {"bytes": sum(file.stat().st_size for file in files)}
            print(format, formats[format], flush=True)
    write_results(path, {"languages": len(LANGUAGES), "formats": formats})


if __name__ == "__main__":
    main()
