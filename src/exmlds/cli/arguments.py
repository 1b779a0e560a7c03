"""Arguments and options that several commands share, and what the shell completes for them."""

from __future__ import annotations

import math
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated

from typer import Argument, BadParameter, Option

WITHOUT_PAPER = (
    *("exmlds", "feature-neighbors", "most-frequent", "ridge-regression"),
    *("leml", "lemlimc", "one-vs-all", "partitioned"),
)
WITH_PAPER = (
    *("exmlds1", "exmlds2", "exmlds3", "exmlds4", "sleec", "annexml", "dismec", "dxml"),
    *("fastxml", "pfastrexml", "pdsparse", "ppdsparse", "wsabie"),
)
METHODS = (*WITHOUT_PAPER, *WITH_PAPER, *(f"{name}.paper" for name in WITH_PAPER))


def complete_method(incomplete: str) -> list[str]:
    """Methods by name, without importing them: that takes seconds."""
    names = {*METHODS, *(entry.name for entry in entry_points(group="exmlds.methods"))}
    return sorted(name for name in names if name.startswith(incomplete))


def complete_data(incomplete: str) -> list[str]:
    """Data sets under EXMLDS_DATA, and files."""
    from ..data import available

    names = [name for name in available() if name.startswith(incomplete)]
    return [*names, *complete_path(incomplete)]


def complete_path(incomplete: str) -> list[str]:
    return [_with_slash(path) for path in _paths(incomplete)]


def complete_model(incomplete: str) -> list[str]:
    """Model folders, and the folders on the way to one."""
    return [_with_slash(path) for path in _paths(incomplete) if path.is_dir()]


def _paths(incomplete: str) -> list[Path]:
    """The files and folders whose path begins with this; hidden ones where the name begins with a dot."""
    folder, slash, start = incomplete.rpartition("/")
    try:
        found = sorted(Path(folder or slash or ".").iterdir())
    except OSError:
        return []
    return [path for path in found if path.name.startswith(start) and (start or path.name[0] != ".")]


def _with_slash(path: Path) -> str:
    is_model = (path / "manifest.json").is_file()
    return f"{path}/" if path.is_dir() and not is_model else str(path)


def finite(value: float) -> float:
    """Refuse nan and inf, which are within any limits."""
    if not math.isfinite(value):
        raise BadParameter(f"{value} is not a finite number.")
    return value


ModelFolder = Annotated[
    Path, Argument(metavar="MODEL", help="A model folder.", autocompletion=complete_model)
]
TrainingData = Annotated[
    str,
    Argument(
        metavar="DATA",
        help="A file, a folder of documents, or the name of a data set under EXMLDS_DATA.",
        autocompletion=complete_data,
    ),
]
TestData = Annotated[
    str,
    Argument(
        metavar="DATA",
        help="A file, a folder of documents, or the name of a data set (its test split is used).",
        autocompletion=complete_data,
    ),
]
LabelsFile = Annotated[
    Path | None, Option("--labels", help="The file of labels, if DATA holds features only.")
]
MetricKs = Annotated[str, Option("-k", metavar="K ...", help="The values of k for metrics at k.")]
ByteOrderMark = Annotated[
    bool, Option("--bom", help="Begin CSV and TSV with a byte order mark, by which Excel recognizes UTF-8.")
]
AsJson = Annotated[bool, Option("--json", help="Print JSON.")]

Device = Annotated[
    str, Option(metavar="cpu|cuda", help="Where the work is done: cuda is an NVIDIA graphics card.")
]
Workers = Annotated[
    int | None,
    Option(min=1, help="Work on so many processes here, of one thread each, by a cluster of Dask."),
]
Cluster = Annotated[
    str | None,
    Option(metavar="ADDRESS", help="Work on the Dask cluster of this scheduler, such as tcp://host:8786."),
]
