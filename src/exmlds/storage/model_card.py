"""The model card, README.md in a model folder: data, quality on held-out rows, settings, versions, use."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from math import isnan
from typing import Any, NamedTuple

from ..display import harmless

CARD = "README.md"
LIBRARIES = ("exmlds", "numpy", "scipy", "scikit-learn", "numba")
FEW_ROWS = 5  # a label with fewer is called rare


class ModelFacts(NamedTuple):
    """What a card tells of a model.

    method : the name of its class;  takes : what it is given, "texts" or "rows of features"
    sizes : numbers of training rows, features and labels by name
    frequent : the most frequent labels and their training rows;  n_rare : labels with fewer than `FEW_ROWS`
    n_untrained : labels without any, which can be suggested by their names
    threshold : the score from which a label is assigned; NaN where it is chosen at the next fit
    is_set_by_hand : whether that is another one than the fit had
    quality : metrics on held-out rows by name, with "rows", their number; None where no rows were held out
    parameters : those that are not the defaults
    keeps_data : whether training rows or texts are in the folder
    n_added, n_removed : training rows that came and went after the fit
    """

    method: str
    takes: str
    sizes: Mapping[str, int]
    frequent: list[tuple[str, int]]
    n_rare: int
    n_untrained: int
    threshold: float
    is_set_by_hand: bool
    quality: Mapping[str, float] | None
    parameters: Mapping[str, Any]
    keeps_data: bool
    n_added: int = 0
    n_removed: int = 0


def render(facts: ModelFacts) -> str:
    """The card as Markdown."""
    held_out = "No rows were held out when this model was trained: evaluate it on rows that it has not seen."
    if facts.quality is not None:
        chosen = "The threshold and the combination of scores were"
        if facts.is_set_by_hand:
            chosen = "The combination of scores was"
        measures = [(name, f"{value:.3f}") for name, value in facts.quality.items() if name != "rows"]
        held_out = (
            f"Measured on {facts.quality['rows']:,} rows that were held out during training. "
            f"{chosen} chosen on the same rows, so the figures are a little too good.\n\n"
            + _table(("metric", "value"), measures)
        )
    if facts.n_added or facts.n_removed:
        held_out += (
            f"\n\n{facts.n_added:,} rows were added and {facts.n_removed:,} removed since then, which these "
            "figures do not show."
        )
    kept = "the training data themselves" if facts.keeps_data else "none of the training rows"
    unknown = "It never suggests a label that was not there, and"
    if facts.n_untrained:
        unknown = (
            f"It can suggest {facts.n_untrained:,} labels of its vocabulary that no training row had, where "
            "their names stand in a text. Of the others,"
        )
    settings = [(name, repr(value)) for name, value in facts.parameters.items()]
    sections = {
        "Data": _table(("", "number"), [(name, f"{n:,}") for name, n in facts.sizes.items()])
        + "\n\nThe most frequent labels:\n\n"
        + _table(("label", "training rows"), [(name, f"{count:,}") for name, count in facts.frequent]),
        "Quality": f"{held_out}\n\n{_assignment(facts)}",
        "Settings": _table(("parameter", "value"), settings)
        if settings
        else "All parameters are the defaults.",
        "Versions": _table(("", "version"), _versions()),
        "Intended use": (
            f"The model suggests labels for {facts.takes} like those that it was trained on. {unknown} "
            f"{facts.n_rare:,} labels had fewer than {FEW_ROWS} "
            "training rows: expect fewer and worse suggestions of them. Let a person review suggestions "
            f"where mistakes matter. The folder holds the names of the labels, and {kept}."
        ),
        "Use": (
            "```bash\nexmlds predict MODEL FILE\nexmlds evaluate MODEL FILE\n```\n\n"
            '```python\nimport exmlds\n\nmodel = exmlds.load("MODEL")\n```'
        ),
    }
    body = "\n\n".join(f"## {title}\n\n{text}" for title, text in sections.items())
    return f"# A model of the method {facts.method}\n\n{body}\n"


def _assignment(facts: ModelFacts) -> str:
    if isnan(facts.threshold):
        return "The threshold is chosen at the next fit; until then, the model assigns no labels."
    origin = ". This threshold was set by hand after the fit." if facts.is_set_by_hand else "."
    return f"A label is assigned where its score reaches {facts.threshold:.3f}{origin}"


def _versions() -> list[tuple[str, str]]:
    return [("Python", platform.python_version()), *((name, version(name)) for name in LIBRARIES)]


def _table(header: tuple[str, str], rows: Iterable[tuple[str, str]]) -> str:
    lines = [header, ("---", "---"), *rows]
    return "\n".join(f"| {_cell(name)} | {_cell(value)} |" for name, value in lines)


def _cell(text: str) -> str:
    return harmless(text).replace("|", "\\|").replace("<", "&lt;")
