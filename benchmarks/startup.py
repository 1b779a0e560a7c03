"""Measure the start of the program: seconds from the shell to the answer, wall and CPU, of several commands.

    python benchmarks/startup.py
    python benchmarks/startup.py --repeats 21 --output mine.json

Each command runs in a process of its own, in turns with the imports that it is compared with. The first turn
is not counted: it compiles modules to bytecode, and kernels into numba's cache.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from exmlds import ExMLDS, TextClassifier
from exmlds.data import make_library
from measure import destination, parser_of, seconds, write_results

TEXTS = 2_000
TEXT = "An old cookery book about bread, with a chapter on the sea"
PROGRAM = str(Path(sys.executable).with_name("exmlds"))
# As any Python does by default: it keeps the bytecode of modules.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def commands(model: str) -> dict[str, list[str]]:
    """The commands by the names that the table has; the last two are there for comparison."""
    imports = ("import exmlds", "import numba", "import sklearn.linear_model")
    return {
        "exmlds --version": [PROGRAM, "--version"],
        "exmlds predict --help": [PROGRAM, "predict", "--help"],
        "exmlds predict MODEL --text TEXT": [PROGRAM, "predict", model, "--text", TEXT],
        **{f'python -c "{line}"': [sys.executable, "-c", line] for line in imports},
    }


def spent(command: list[str]) -> tuple[float, float]:
    """Seconds of wall and CPU that a process takes, from its start to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = seconds(lambda: subprocess.run(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, check=True))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--repeats", type=int, default=7, help="counted runs of each command; default: 7")
    options = parser.parse_args()
    path = destination(parser, options, "startup")
    with tempfile.TemporaryDirectory() as folder:
        model = TextClassifier(model=ExMLDS(random_state=0)).fit(*texts_and_labels())
        model.save(Path(folder) / "model")
        works = commands(str(Path(folder) / "model"))
        runs: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
        for _ in range(options.repeats + 1):
            for name, command in works.items():
                runs[name].append(spent(command))
    figures = {}
    for name, (_, *counted) in runs.items():
        wall, cpu = (median(times) for times in zip(*counted))
        figures[name] = {"wall_seconds": round(wall, 3), "cpu_seconds": round(cpu, 3)}
        print(f"{name}: {wall:.2f} s, of CPU {cpu:.2f} s", flush=True)
    sizes = {"texts": TEXTS, "terms": model.n_features_in_, "labels": model.n_labels_}
    write_results(path, {"model": sizes, "repeats": options.repeats, "commands": figures})


def texts_and_labels() -> tuple[list[str], list[list[str]]]:
    books = make_library(TEXTS, random_state=0)
    assert books.feature_names is not None
    assert books.label_names is not None
    texts = [" ".join(books.feature_names[word] for word in row.indices) for row in books.X]
    return texts, [[books.label_names[label] for label in row.indices] for row in books.Y]


if __name__ == "__main__":
    main()
