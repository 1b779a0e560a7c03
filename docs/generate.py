"""Write docs/reference: the public names from their docstrings, the commands from their --help.

`python docs/generate.py` writes the pages. With --check it writes nothing, says which are not up to date, and
ends with 1 if any is not.
"""

from __future__ import annotations

import inspect
import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout, suppress
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import exmlds
from exmlds import cli

REFERENCE = Path(__file__).parent / "reference"
WIDTH = 88  # of a signature on one line, and of the terminal that --help is for
MADE = "<!-- Written by docs/generate.py; change the docstrings instead, and run it. -->"

# The order of the page; public names that are not here come after these.
ESTIMATORS = ["XMCEstimator", "ExMLDS", "TextClassifier", "ExMLDS1", "ExMLDS2", "ExMLDS3", "ExMLDS4"]
ESTIMATORS += ["Partitioned", "FeatureNeighbors", "MostFrequent", "RidgeRegression"]
ESTIMATORS += ["SLEEC", "AnnexML", "LEML", "LEMLIMC", "OneVsAll", "DiSMEC", "FastXML", "PfastreXML"]
ESTIMATORS += ["PPDSparse", "PDSparse", "WSABIE", "DXML"]
RETURNED = {"explain": ("voting.explain", ["Explanation", "Voter", "Margin", "Term"])}
RETURNED["estimate"] = ("runtime.memory", ["Estimate"])
ERRORS = ["ExmldsError", "DataError", "ModelError", "DataWarning"]
DATA = {
    "dataset": "Data sets",
    "text": "Files of texts",
    "xc": "Files of numbers",
    "npz": "Sparse matrices in files",
    "names": "Names in files",
    "vocabulary": "Vocabularies",
    "predictions": "Predictions in files",
    "cooccurrence": "Labels by labels",
    "registry": "Standard data sets",
    "synthetic": "Made-up data",
}
# Public methods that only other modules of the package call.
INNER = {"plain_parameters", "from_plain", "side_rows", "vote_breakdown", "ranked_at"}
INNER |= {"grown", "merged", "with_labels", "without_rows", "without_voters", "with_rows"}

CLI_INTRO = """\
Data goes to stdout, progress and messages to stderr. `--json` prints JSON. Files may be gzipped; formats are
recognized by content. Control characters in texts and names are shown as escapes such as `\\x1b`; JSON is
exact.

The exit code is 0 after success, 2 after a user's error, which is one line, 1 after an internal error, and
128 + n after the signal n: 130 for Ctrl-C, 143 for SIGTERM. Temporary files are removed before the program
ends, and an output file is replaced only when it is complete.

`exmlds --install-completion` sets up bash, zsh, fish or PowerShell to complete commands, options, names of
methods and data sets, and model folders; `exmlds --show-completion` prints the script."""

_ITEM = re.compile(r"(?!>>>)[^\s:`\"(][^:`\"(]* : ")  # `name : words`, or several names with commas
_CODE = re.compile(r"(`[^`]*`)")


def pages() -> dict[str, str]:
    """The text of every page by its file name."""
    return {"python.md": python_page(), "cli.md": cli_page()}


def python_page() -> str:
    """Public names, grouped, with their signatures and docstrings."""
    out: list[str] = ["# Python", MADE, markdown(exmlds.__doc__)]

    def group(title: str, found: Iterable[tuple[str, Any]], intro: str = "", level: int = 2) -> None:
        out.append(f"{'#' * level} {title}")
        if intro:
            out.append(intro)
        for heading, value in found:
            out.extend(entry(heading, value, level + 1))

    group("Estimators", public(exmlds, ESTIMATORS))
    for method, (home, names) in RETURNED.items():
        group(f"What `{method}` returns", public(import_module(f"exmlds.{home}"), names))
    group("Errors", public(exmlds, ERRORS), markdown(import_module("exmlds.errors").__doc__))
    others = {name: getattr(exmlds, name) for name in exmlds.__all__ if name not in ESTIMATORS + ERRORS}
    modules = [value for value in others.values() if inspect.ismodule(value)]
    group("Other names", [(name, value) for name, value in others.items() if value not in modules])
    for module in modules:
        short = module.__name__.rpartition(".")[2]
        if hasattr(module, "__path__"):
            out.extend([f"## {module.__name__}", markdown(module.__doc__)])
            for part, names in by_module(module).items():
                title = DATA.get(part, part.capitalize())
                intro = intro_of(import_module(f"{module.__name__}.{part}"))
                group(title, public(module, names, f"{short}."), intro, 3)
        else:
            group(module.__name__, public(module, defined_in(module), f"{short}."), markdown(module.__doc__))
    return linked("\n\n".join(out) + "\n")


def public(module: ModuleType, names: Iterable[str], prefix: str = "") -> list[tuple[str, Any]]:
    return [(prefix + name, getattr(module, name)) for name in names]


def defined_in(module: ModuleType) -> list[str]:
    """Functions and classes that a module makes itself, in its order."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__ == module.__name__
    ]


def by_module(package: ModuleType) -> dict[str, list[str]]:
    """The public names of a package by the modules in it that they come from."""
    found: dict[str, list[str]] = {name: [] for name in DATA} if package is exmlds.data else {}
    for name in package.__all__:
        value = getattr(package, name)
        if callable(value):
            home = value.__module__.removeprefix(f"{package.__name__}.").removeprefix("exmlds.")
            part = home.partition(".")[0]
            found.setdefault(part, []).append(name)
    return found


def intro_of(module: ModuleType) -> str:
    """The docstring of a module; the registry's with what is in it."""
    intro = markdown(module.__doc__)
    if module.__name__ != "exmlds.data.registry":
        return intro
    head = "| name | training rows | test rows | features | labels | source | licence |\n" + "|---" * 7 + "|"
    rows = [
        f"| {name} | {info.n_train:,} | {info.n_test:,} | {info.n_features:,} | {info.n_labels:,} "
        f"| {info.source} | {info.licence} |"
        for name, info in exmlds.data.DATASETS.items()
    ]
    return "\n".join([f"{intro}\n\nIn the dict `data.DATASETS`, each as a `DatasetInfo`:\n\n{head}", *rows])


def entry(heading: str, value: Any, level: int) -> Iterator[str]:
    """A heading, a signature, the docstring, and of a class its own methods."""
    yield f"{'#' * level} {heading}"
    if is_called(value):
        yield signature(heading.rpartition(".")[2], value)
    yield markdown(inspect.getdoc(value))
    if not inspect.isclass(value):
        return
    for name, method in own_methods(value):
        yield f"{'#' * (level + 1)} {heading.rpartition('.')[2]}.{name}"
        yield signature(name, method)
        yield markdown(inspect.getdoc(method))


def is_called(value: Any) -> bool:
    """Whether users call it: not what is abstract, raised, or made by a function of its module."""
    if not inspect.isclass(value):
        return True
    inner = any(annotation(told).startswith("_") for told in inspect.get_annotations(value.__init__).values())
    return not (inner or issubclass(value, (Exception, dict)) or inspect.isabstract(value))


def own_methods(cls: type) -> list[tuple[str, Callable[..., Any]]]:
    """Public methods with docstrings that are not told of another class on the page."""
    told = [getattr(exmlds, name) for name in ESTIMATORS if name != cls.__name__]
    found: dict[str, Any] = {}
    for base in cls.__mro__:
        if base in told or not base.__module__.startswith("exmlds"):
            continue
        for name, value in vars(base).items():
            method = getattr(value, "__func__", value)
            if name[0] != "_" and name not in INNER and inspect.isfunction(method) and method.__doc__:
                found.setdefault(name, method)
    return list(found.items())


def signature(name: str, value: Any) -> str:
    """As one would write it, on one line or a line a parameter."""
    if inspect.isclass(value) and hasattr(value, "_fields"):
        given, returned = fields(value), ""
    else:
        told = inspect.signature(value)
        if inspect.isclass(value):  # the parameters of every method come last
            common = inspect.signature(exmlds.XMCEstimator).parameters
            last = sorted(told.parameters.values(), key=lambda each: each.name in common)
            told = told.replace(parameters=last)
        given = [parameter(each) for each in told.parameters.values() if each.name not in ("self", "cls")]
        kinds = [each.kind for each in told.parameters.values() if each.name not in ("self", "cls")]
        if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
            given.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
        returned = annotation(told.return_annotation)
        returned = "" if inspect.isclass(value) or not returned else f" -> {returned}"
    line = f"{name}({', '.join(given)}){returned}"
    if len(line) > WIDTH:
        line = "\n    ".join([f"{name}(", *(f"{each}," for each in given)]) + f"\n){returned}"
    return f"```python\n{line}\n```"


def fields(cls: Any) -> list[str]:
    """Of a named tuple."""
    types = inspect.get_annotations(cls)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    defaults = {**dict.fromkeys(cls._fields, inspect.Parameter.empty), **cls._field_defaults}
    return [
        parameter(inspect.Parameter(name, kind, default=defaults[name], annotation=types[name]))
        for name in cls._fields
    ]


def parameter(told: inspect.Parameter) -> str:
    kind, words = told.kind, annotation(told.annotation)
    stars = "*" * (kind is kind.VAR_POSITIONAL) + "**" * (kind is kind.VAR_KEYWORD)
    text = stars + told.name + (f": {words}" if words else "")
    if told.default is inspect.Parameter.empty:
        return text
    return f"{text} = {default(told.default)}" if words else f"{text}={default(told.default)}"


def annotation(value: Any) -> str:
    """As it stands in the source; nothing for Any, which tells nothing."""
    words = getattr(value, "__forward_arg__", value)
    if words is inspect.Signature.empty or words in ("Any", Any):
        return ""
    return words if isinstance(words, str) else getattr(words, "__name__", str(words))


def default(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return value.__name__ if callable(value) else repr(value)


def markdown(docstring: str | None) -> str:
    """A docstring of this project as Markdown.

    Sections have their title in bold. Lines of `name : words` become lists; `;  ` stands between two on one
    line. What is indented, what begins with >>> and what is drawn stays as it is.
    """
    out: list[str] = []
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(docstring or "").strip("\n"))
    for lines in (paragraph.split("\n") for paragraph in paragraphs):
        if len(lines) > 1 and set(lines[1]) == {"-"}:
            out.append(f"**{lines[0]}**")
            lines = lines[2:]
        if not lines:
            continue
        if lines[0].startswith(">>>"):
            out.append("\n".join(["```python", *lines, "```"]))
        elif lines[0].startswith("    "):
            out.append("\n".join(["```text", *(line[4:] for line in lines), "```"]))
        elif any(line.startswith(("├", "└")) for line in lines):
            out.append("\n".join(["```text", *lines, "```"]))
        elif _ITEM.match(lines[0]):
            out.append("\n".join(items(lines)))
        else:
            out.append("\n".join(map(plain, lines)))
    return "\n\n".join(out)


def items(lines: list[str]) -> Iterator[str]:
    """`a, b : words;  c : words` as items of a list; what is indented goes on with the item before it."""
    whole: list[str] = []
    for line in lines:
        if line.startswith("    "):
            whole[-1] += f" {line.strip()}"
        else:
            whole.extend(re.split(rf";  (?={_ITEM.pattern})", line))
    for item in whole:
        names, colon, words = item.partition(" : ")
        if not colon:
            yield f"- {plain(item)}"
            continue
        named = ", ".join(f"`{name}`" for name in names.split(", "))
        yield f"- {named}: {plain(words)}"


def plain(text: str) -> str:
    """Without what Markdown or HTML would take for theirs, outside of `code`."""
    parts = _CODE.split(text)
    parts[::2] = [re.sub(r"([*_\\])", r"\\\1", part).replace("<", "&lt;") for part in parts[::2]]
    return "".join(parts)


def linked(text: str) -> str:
    """Names in `code` lead to where they are told of, if there is one such place."""
    anchors: dict[str, list[str]] = {}
    for heading, slug in slugs(text):
        module, dot, name = heading.partition(".")
        for called in {heading, name if dot and module in exmlds.__all__ and module.islower() else heading}:
            anchors.setdefault(called, []).append(slug)

    def link(found: re.Match[str]) -> str:
        there = anchors.get(found[1], [])
        return f"[`{found[1]}`](#{there[0]})" if len(there) == 1 else found[0]

    parts = re.split(r"(^```.*?^```$|^#[^\n]*$|^- (?:`\w+`(?:, )?)+:)", text, flags=re.S | re.M)
    parts[::2] = [re.sub(r"`([\w.]+)`", link, part) for part in parts[::2]]
    return "".join(parts)


def slugs(text: str) -> Iterator[tuple[str, str]]:
    """The headings of a page with the anchors that they get, in their order."""
    seen: set[str] = set()
    for heading in re.findall(r"^#+ ([^\n]+)$", re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M), re.M):
        slug = start = re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())
        number = 0
        while slug in seen:
            number += 1
            slug = f"{start}_{number}"
        seen.add(slug)
        yield heading, slug


def cli_page() -> str:
    """What every --help prints."""
    out = ["# Command line", MADE, f"<!-- Typer {typer_version()} -->", CLI_INTRO, help_of()]
    for command in commands():
        out += [f"## {command}", help_of(command)]
    return "\n\n".join(out) + "\n"


def commands() -> list[str]:
    found = cli.app.registered_commands
    return [str(command.name or getattr(command.callback, "__name__", "")) for command in found]


def typer_version() -> str:
    """Versions of Typer lay out --help in different ways."""
    return ".".join(version("typer").split(".")[:2])


def help_of(*command: str) -> str:
    settings = {"COLUMNS": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb"}
    shown = io.StringIO()
    with mock.patch.dict(os.environ, settings), redirect_stdout(shown), suppress(SystemExit):
        cli.app([*command, "--help"], prog_name="exmlds")
    lines = [line.rstrip() for line in shown.getvalue().strip().split("\n")]
    asked = " ".join(["exmlds", *command, "--help"])
    return "\n".join(["```text", f"$ {asked}", *lines, "```"])


def same(name: str, kept: str, made: str) -> bool:
    """Whether a page is up to date; where another Typer wrote its help, commands and options count alone."""
    if name == "cli.md" and f"<!-- Typer {typer_version()} -->" not in kept:
        return options(kept) == options(made)
    return kept == made


def options(page: str) -> list[list[str]]:
    return [sorted(set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", part))) for part in page.split("\n## ")]


def outdated() -> list[str]:
    """Pages that are not what would be written now."""
    found = []
    for name, made in pages().items():
        path = REFERENCE / name
        kept = path.read_text(encoding="utf-8") if path.exists() else ""
        if not same(name, kept, made):
            found.append(f"docs/reference/{name}")
    return found


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        stale = outdated()
        if stale:
            print(f"Not up to date: {', '.join(stale)}. Run: python docs/generate.py", file=sys.stderr)
        return int(bool(stale))
    if arguments:
        print("Usage: python docs/generate.py [--check]", file=sys.stderr)
        return 2
    for name, text in pages().items():
        (REFERENCE / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
