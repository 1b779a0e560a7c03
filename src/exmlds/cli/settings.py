"""Methods by name, and their parameters from --config and --set."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from ..errors import DataError

DEFAULT_METHOD = "exmlds"


def method_name(class_name: str) -> str:
    """
    >>> method_name("FeatureNeighbors"), method_name("ExMLDS")
    ('feature-neighbors', 'exmlds')
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "-", class_name).lower()


def methods() -> dict[str, Any]:
    """What makes an estimator, by the names that --method takes: a class, or `paper` of one that has it."""
    from ..base import XMCEstimator, imported_methods, own_methods

    ours = {
        method_name(name): method
        for name, method in imported_methods().items()
        if ":" not in name and issubclass(method, XMCEstimator)
    }
    presets = {f"{name}.paper": method.paper for name, method in ours.items() if hasattr(method, "paper")}
    return {**own_methods(), **ours, **presets}


def find_method(name: str) -> Any:
    """What --method names: one of `methods`, or the class module:Class."""
    if ":" in name:
        return import_method(name)
    known = methods()
    found = known.get(name) or known.get(method_name(name))
    if found is None:
        listed = ", ".join(sorted(known))
        raise DataError(f"There is no method {name!r}; the methods are {listed}, or module:Class.")
    return found


def import_methods(names: list[str] | None) -> None:
    """Import each module:Class that --method names, so that models of these classes can be loaded."""
    for name in names or []:
        import_method(name)


def look_in_folder() -> None:
    """Import from the current folder too: a console script looks beside itself only."""
    if "" not in sys.path:
        sys.path.append("")


def load_model(
    path: Path,
    method: list[str] | None,
    trusted: list[str] | None,
    *,
    writable: bool = False,
    device: str = "cpu",
) -> Any:
    """Load a model, after the classes of --method, with the encoders of --trusted."""
    from .. import load

    import_methods(method)
    if trusted:
        look_in_folder()
    return load(path, trusted=trusted or (), writable=writable, device=device)


def import_method(name: str) -> Any:
    """Import the class module:Class, from the current folder or the environment."""
    from ..base import XMCEstimator

    module, _, own = name.partition(":")
    look_in_folder()
    try:
        found = attrgetter(own)(import_module(module))
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise DataError(f"--method {name} can't be imported: {error}.") from None
    is_method = isinstance(found, type) and issubclass(found, XMCEstimator)
    if not is_method or getattr(found, "__abstractmethods__", None):
        raise DataError(f"--method {name} is not a concrete class on exmlds.XMCEstimator.")
    return found


# For commands that load a model: its own class must be imported first.
OwnMethod = Annotated[
    list[str] | None,
    Option(
        "--method",
        metavar="MODULE:CLASS",
        help="The class of a model of your own, which is imported before the model; may be repeated.",
    ),
]
Trusted = Annotated[
    list[str] | None,
    Option(
        "--trusted",
        metavar="MODULE:CLASS",
        help="An encoder of texts that the model may import and run; may be repeated.",
    ),
]


def make_model(method: str | None, config: Path | None, assignments: list[str]) -> Any:
    """Make an estimator; --method and --set override the config file, which overrides the defaults."""
    settings = read_config(config) if config else {}
    make = find_method(method or settings.get("method", DEFAULT_METHOD))
    parameters = dict(settings.get("parameters", {}))
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise DataError(f"--set takes key=value. Got {assignment!r} instead.")
        parameters[name.strip()] = parse_value(text.strip())
    plain = make()
    known = plain.get_params()
    for name in parameters:
        if name not in known:
            problem = f"{method_name(type(plain).__name__)} has no parameter {name!r}"
            raise DataError(f"{problem}; its parameters are {', '.join(sorted(known))}.")
    model = make(**parameters)
    model._check_parameters()  # before the data is read
    return model


def read_config(path: Path) -> dict[str, Any]:
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not a TOML file: {error}.") from None
    strange = set(settings) - {"method", "parameters"}
    if strange:
        raise DataError(f"{path}: unknown entry {min(strange)!r}; the entries are `method` and [parameters].")
    method, parameters = settings.get("method", ""), settings.get("parameters", {})
    if not isinstance(method, str) or not isinstance(parameters, dict):
        raise DataError(f"{path}: `method` must be a name, and [parameters] a table.")
    return settings


def parse_value(text: str) -> Any:
    """
    >>> parse_value("300"), parse_value("none"), parse_value("cosine"), parse_value("[1, 2]")
    (300, None, 'cosine', [1, 2])
    """
    if text.lower() == "none":
        return None
    lowered = text.lower() if text.lower() in ("true", "false") else text
    try:
        return tomllib.loads(f"value = {lowered}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def as_toml(model: Any) -> str:
    """The text of a config file with a method and its parameters."""
    from ..base import class_reference

    names = [name for name, method in methods().items() if method is type(model)]
    name = names[0] if names else class_reference(type(model))
    lines = [f'method = "{name}"', "", "[parameters]"]
    for name, value in model.get_params(deep=False).items():
        if value is None:
            lines.append(f"# {name} is not set")
        else:
            value = list(value) if isinstance(value, tuple) else value
            shown = str(value).lower() if isinstance(value, bool) else repr(value).replace("'", '"')
            lines.append(f"{name} = {shown}")
    return "\n".join(lines)
