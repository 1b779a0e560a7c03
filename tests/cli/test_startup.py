"""What a command that predicts one text imports, and what it leaves for later."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from exmlds import ExMLDS, TextClassifier
from exmlds.cli.startup import deferred
from exmlds.data import make_library

# What a fit or a report needs, what scikit-learn imports without a use in prediction, and what numba imports
# to compile a kernel, though not to load one that is compiled.
UNUSED = {
    *("pandas", "polars", "pyarrow", "matplotlib", "scipy.stats"),
    *("sklearn.decomposition", "sklearn.isotonic", "sklearn.linear_model", "sklearn.manifold"),
    *("sklearn.metrics", "sklearn.model_selection", "sklearn.svm"),
    *("numba.misc.cffiimpl", "numba.np.polynomial.polynomial_core", "numba.typed.typeddict"),
    *("exmlds.report", "exmlds.kernels.jit.gate", "exmlds.kernels.jit.sgns", "exmlds.kernels.jit.xc_parser"),
}


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of texts with both shortlisters, classifiers and a stacker."""
    folder = tmp_path_factory.mktemp("startup") / "model"
    books = make_library(300, random_state=0)
    words, names = books.feature_names or [], books.label_names or []
    texts = [" ".join(words[f] for f in row.indices) for row in books.X]
    labels = [[names[j] for j in row.indices] for row in books.Y]
    TextClassifier(model=ExMLDS(random_state=0), keep_rows=True).fit(texts, labels).save(folder)
    return folder


@pytest.mark.parametrize("command", ["predict", "explain"])
def test_one_text_imports_only_what_it_needs(command: str, model: Path) -> None:
    code = (
        "import sys\n"
        "from exmlds.cli import app\n"
        f"app([{command!r}, {str(model)!r}, '--text', 'bread and the sea'], standalone_mode=False)\n"
        f"print('unused:', sorted({UNUSED!r} & set(sys.modules)))"
    )
    run_python(code)  # compiles the kernels where they are not in numba's cache
    assert run_python(code).endswith("unused: []\n")


def test_scikit_learn_works_with_the_modules_that_were_deferred() -> None:
    """The normal distribution is that of scipy.stats."""
    code = (
        "from exmlds.cli.startup import import_scikit_learn\n"
        "import_scikit_learn()\n"
        "from sklearn.preprocessing import QuantileTransformer\n"
        "scaler = QuantileTransformer(n_quantiles=3, output_distribution='normal')\n"
        "print(scaler.fit_transform([[1.0], [2.0], [3.0]])[1].round(3) + 0.0)\n"
        "import scipy.stats\n"
        "print(type(scipy.stats).__name__, scipy.stats.norm.cdf(0))"
    )
    assert run_python(code) == "[0.]\nmodule 0.5\n"


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to import from: `large` notes that it is imported, and `user` imports it."""
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "__init__.py").write_text(
        "import sys\nsys.large_was_imported = True\nanswer = 42\n"
    )
    (tmp_path / "large" / "part.py").write_text("answer = 43\n")
    (tmp_path / "user.py").write_text("import large\nimport large\ndef ask():\n    return large.answer\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("large", "large.part", "user"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "large_was_imported", False, raising=False)
    return tmp_path


def was_imported() -> bool:
    return bool(vars(sys)["large_was_imported"])


def test_a_deferred_module_is_imported_when_it_is_used(modules: Path) -> None:
    with deferred("large"):
        user = import_module("user")
    assert not was_imported()
    assert "large" not in sys.modules  # what looks there for the classes of a package does not find it
    assert user.ask() == 42
    assert was_imported()
    assert import_module("large").answer == 42


@pytest.mark.parametrize("statement", ["from large import answer", "from large.part import answer"])
def test_a_name_that_is_needed_at_once_is_imported_at_once(modules: Path, statement: str) -> None:
    found: dict[str, int] = {}
    with deferred("large"):
        exec(statement, found)
    assert found["answer"] in (42, 43)
    assert type(sys.modules["large"]).__name__ == "module"


def test_what_is_imported_or_missing_is_left_as_it_is(modules: Path) -> None:
    large = import_module("large")
    with deferred("large", "no_such_module"):
        assert import_module("large") is large
        with pytest.raises(ModuleNotFoundError):
            import_module("no_such_module")
    assert sys.modules["large"] is large
