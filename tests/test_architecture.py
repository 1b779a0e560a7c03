"""The layout keeps its promises: who imports whom, what is public, what is lazy, what has a twin."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import exmlds
from exmlds import kernels

SOURCE = Path(exmlds.__file__).parent
# What each part may import beside itself, from the ground up.
BELOW: dict[str, set[str]] = {
    "display": set(),
    "errors": set(),
    "kernels": set(),
    "storage": {"display", "errors"},
    "validation": {"errors", "kernels"},
    "runtime": {"errors", "validation"},
    "stages": {"kernels", "runtime", "validation"},
    "topk": {"display", "validation"},
    "metrics": {"display", "errors", "kernels", "validation"},
    "selection": {"kernels", "validation"},
    "vocabulary": {"errors", "validation"},
    "data": {"errors", "kernels", "runtime", "storage", "validation", "vocabulary"},
    "base": {
        "display",
        "errors",
        "kernels",
        "metrics",
        "runtime",
        "selection",
        "storage",
        "topk",
        "validation",
    },
    "growing": {"base", "validation"},
    "voting": {"base", "display", "growing", "metrics", "runtime", "selection", "stages", "validation"},
    "reranking": {"base", "runtime", "selection", "stages", "validation", "voting"},
    "models": {
        *("base", "errors", "growing", "metrics", "reranking", "runtime", "selection", "stages", "storage"),
        *("validation", "vocabulary", "voting"),
    },
    "report": {"base", "display", "errors", "metrics", "models", "storage"},
    "service": {"base", "errors", "models", "storage", "voting"},
    "cli": {
        *("base", "data", "display", "errors", "metrics", "models", "report", "runtime", "selection"),
        *("service", "storage", "validation", "voting"),
    },
}
# How `stages/index.py` keeps its rows.
INDEX_STORAGE = {"index.py": {"cells", "quantize"}, "cells.py": {"quantize"}}
MODULES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))


def imports_of(path: Path) -> set[str]:
    """Dotted names of all that a module imports, absolute."""
    package = ["exmlds", *path.with_suffix("").parts]
    if path.name == "__init__.py":
        package[-1] = "__init__"
    found = set()
    for node in ast.walk(ast.parse((SOURCE / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level] if node.level else []
            base += node.module.split(".") if node.module else []
            found |= {".".join([*base, alias.name]) for alias in node.names}
    return found


def test_imports_go_downwards() -> None:
    """Each room imports what BELOW says, and BELOW says no more than that."""
    used: dict[str, set[str]] = {part: set() for part in BELOW}
    for path in MODULES:
        part = path.parts[0].removesuffix(".py")
        if part in ("__init__", "__main__"):
            continue
        assert part in BELOW, f"{path}: say in BELOW where this part stands"
        for name in imports_of(path):
            below = name.split(".")[1] if name.startswith("exmlds.") else part
            if below in exmlds.__all__ and below not in BELOW:
                below = "models"  # the public names stand for their homes
            if below not in (part, "__version__"):
                assert below in BELOW[part], f"{path} imports {name}"
                used[part].add(below)
    assert used == BELOW


def test_no_cycles() -> None:
    """Also by imports within functions, and by those for type checkers alone."""
    names = {".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in MODULES}
    graph = {}
    for path in MODULES:
        own = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
        found = {name.removeprefix("exmlds.") for name in imports_of(path) if name.startswith("exmlds.")}
        # A name that is no module stands for an attribute of one; a package does not import its own parts.
        modules = {name if name in names else name.rpartition(".")[0] for name in found} & names
        graph[own] = {name for name in modules if not own.startswith(f"{name}.") and name != own}
    graph.pop("__init__", None)  # the public names, imported lazily
    assert list(TopologicalSorter(graph).static_order())


def test_the_documentation_shows_the_same_layers() -> None:
    """The table "package or module | may import" of docs/architecture.md equals BELOW."""
    page = SOURCE.parent.parent / "docs" / "architecture.md"
    if not page.exists():
        pytest.skip("the tests run against an installed wheel, without the documentation")
    table = (
        page.read_text(encoding="utf-8")
        .split("| package or module | may import |\n|---|---|\n")[1]
        .split("\n\n")[0]
    )
    shown = {}
    for line in table.splitlines():
        room, below = (cell.strip() for cell in line.strip("|").split("|"))
        shown[room] = set() if below == "–" else set(below.split(", "))
    assert shown == BELOW


@pytest.mark.parametrize("path", [p for p in MODULES if p.parts[0] == "stages"], ids=str)
def test_stages_do_not_know_each_other(path: Path) -> None:
    others = {name.split(".")[2] for name in imports_of(path) if name.startswith("exmlds.stages.")}
    assert others <= INDEX_STORAGE.get(path.name, set())


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_third_parties_stay_in_their_place(path: Path) -> None:
    tops = {name.split(".")[0] for name in imports_of(path)}
    in_jit = path.parts[:2] == ("kernels", "jit")
    assert "numba" not in tops or in_jit, "only kernels/jit imports numba"
    assert "cupy" not in tops or path == Path("kernels/cuda/device.py")
    assert "sklearn" not in tops or path.parts[0] != "kernels", "kernels know arrays only"
    assert "typer" not in tops or path.parts[0] == "cli"
    assert not tops & {"dask", "distributed"} or path == Path("runtime/cluster.py")


@pytest.mark.parametrize("path", [p for p in MODULES if p.parts[:2] == ("kernels", "jit")], ids=str)
def test_kernels_are_compiled_by_the_one_decorator(path: Path) -> None:
    tree = ast.parse((SOURCE / path).read_text(encoding="utf-8"))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert not names & {"jit", "vectorize", "guvectorize", "prange", "jitclass"}
    assert "njit" not in names or path.name == "compiler.py"
    assert not [k for k in ast.walk(tree) if isinstance(k, ast.keyword) and k.arg == "parallel"]


def test_no_room_without_a_name_on_the_door() -> None:
    names = {path.stem for path in MODULES} | {part for path in MODULES for part in path.parts[:-1]}
    assert not names & {"utils", "util", "helpers", "helper", "common", "misc", "manager"}


def test_public_names() -> None:
    assert exmlds.__all__ == [
        "DXML",
        "LEML",
        "LEMLIMC",
        "SLEEC",
        "WSABIE",
        "AnnexML",
        "DataError",
        "DataWarning",
        "DiSMEC",
        "ExMLDS",
        "ExMLDS1",
        "ExMLDS2",
        "ExMLDS3",
        "ExMLDS4",
        "ExmldsError",
        "FastXML",
        "FeatureNeighbors",
        "LabelMatrix",
        "ModelError",
        "MostFrequent",
        "OneVsAll",
        "PDSparse",
        "PPDSparse",
        "Partitioned",
        "PfastreXML",
        "RidgeRegression",
        "TextClassifier",
        "XMCEstimator",
        "XMCPredictor",
        "data",
        "load",
        "metrics",
        "selection",
    ]
    assert all(getattr(exmlds, name) is not None for name in exmlds.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = exmlds.Nothing


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_import_is_lazy() -> None:
    assert run_python("import sys, exmlds; print('numpy' in sys.modules)") == "False\n"


def test_help_imports_neither_numpy_nor_scipy() -> None:
    code = (
        "import sys\n"
        "from exmlds.cli import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        "print('heavy:', sorted({'numpy', 'scipy', 'sklearn', 'numba'} & set(sys.modules)))"
    )
    assert run_python(code).endswith("heavy: []\n")


@pytest.mark.parametrize("operation", kernels.OPERATIONS)
def test_every_kernel_has_a_twin_with_its_signature(operation: str) -> None:
    topic = kernels.OPERATIONS[operation]
    jit = getattr(importlib.import_module(f"exmlds.kernels.jit.{topic}"), operation)
    twin = getattr(importlib.import_module(f"exmlds.kernels.reference.{topic}"), operation)
    assert list(inspect.signature(getattr(jit, "py_func", jit)).parameters) == list(
        inspect.signature(twin).parameters
    )


def test_no_kernel_is_left_out_of_the_list() -> None:
    for engine in ("jit", "reference"):
        topics = {p.stem for p in (SOURCE / "kernels" / engine).glob("*.py")} - {"__init__", "compiler"}
        assert topics == set(kernels.OPERATIONS.values())
    topics = {p.stem for p in (SOURCE / "kernels" / "cuda").glob("*.py")} - {"__init__", "device"}
    assert topics == {kernels.OPERATIONS[name] for name in kernels.ON_CARD}


@pytest.mark.parametrize("operation", sorted(kernels.ON_CARD))
def test_operations_on_the_card_have_the_signature_of_their_twin(operation: str) -> None:
    topic = kernels.OPERATIONS[operation]
    card = getattr(importlib.import_module(f"exmlds.kernels.cuda.{topic}"), operation)
    twin = getattr(importlib.import_module(f"exmlds.kernels.reference.{topic}"), operation)
    assert list(inspect.signature(card).parameters) == list(inspect.signature(twin).parameters)


def test_the_card_is_not_touched_without_being_asked_for() -> None:
    code = "import sys, exmlds\nfrom exmlds.data import make_library\nbooks = make_library(60)\n"
    code += "exmlds.ExMLDS().fit(books.X, books.Y)\n"
    code += "print([name for name in sys.modules if name == 'cupy' or 'kernels.cuda' in name])"
    assert run_python(code) == "[]\n"


def test_an_unknown_engine_is_refused() -> None:
    code = "import os; os.environ['EXMLDS_KERNELS'] = 'gpu'\ntry:\n    import exmlds.kernels\n"
    code += "except ValueError as error:\n    print(error)"
    assert "must be 'jit' or 'reference'" in run_python(code)


# Names of the first drafts, which had words of their own for what the field has names for.
RETIRED = {
    *("Attempt", "Ballot", "Blend", "Course", "Jury", "Landscape", "Lesson", "MemoryBound", "Opinions"),
    *("Permitted", "Planner", "Whole", "ballot", "damped", "falling", "go_on", "jury", "lean", "leanings"),
    *("long_enough", "only_similar", "opinions", "opinions_in_blocks", "propose", "pulls", "scalings"),
    *("seats", "taught", "teach", "temper", "weigh_labels", "weigh_places", "with_all", "worded"),
    *("_answer_silence", "_as_found", "_askers", "_contest", "_fairly_weighed", "_is_silent", "_judged"),
    *("_lengthened", "_levelled", "_placed", "_teachers", "_weighed", "n_parts_asked", "label_places"),
    *("ASKED", "BLENDED", "DOUBT", "FALL", "LIKELIEST", "RIVALS", "SECONDED", "STEEP", "TAUGHT", "VOTERS"),
}
RETIRED_PHRASES = (
    *(
        "made level",
        "leaning of the label",
        "place it takes",
        "what is said of",
        "who votes",
        "is asked about",
    ),
    *("rows that teach", "where labels lie", "where rows lie", "go on from there"),
)
ROOT = SOURCE.parents[1]
WRITTEN = [*SOURCE.rglob("*.py"), *ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.py")]


def names_in(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        for field in ("id", "attr", "name", "arg", "asname"):
            value = getattr(node, field, None)
            found |= {value} if isinstance(value, str) else set()
    return found


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_retired_names_stay_away(path: Path) -> None:
    assert not names_in(ast.parse((SOURCE / path).read_text(encoding="utf-8"))) & RETIRED


def test_retired_phrases_stay_away() -> None:
    for path in WRITTEN:
        text = " ".join(path.read_text(encoding="utf-8").split())
        assert not [phrase for phrase in RETIRED_PHRASES if phrase in text], path


def test_no_class_name_stands_for_two_things() -> None:
    names: list[str] = []
    for path in MODULES:
        tree = ast.parse((SOURCE / path).read_text(encoding="utf-8"))
        names += [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    assert sorted(names) == sorted(set(names))
