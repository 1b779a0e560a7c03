"""The command `exmlds inspect`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from typer import Option

from .arguments import AsJson, ModelFolder
from .settings import OwnMethod, Trusted, load_model


def inspect(
    model: ModelFolder,
    method: OwnMethod = None,
    trusted: Trusted = None,
    card: Annotated[bool, Option("--card", help="Print the model card, in Markdown.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check a saved model, and show its properties, parameters and arrays.

    The arrays are those of its generation; the journal has the changes since then. "chosen" is what the fit
    has used for a parameter, for example where that is "auto".
    """
    from ..storage import model_folder
    from .output import print_json, print_table, say, size
    from .settings import method_name

    manifest = model_folder.read_manifest(model)
    fitted = load_model(model, method, trusted)  # compares every byte with its checksum
    changes = model_folder.journal_of(model)
    if card:
        for line in fitted.card().removesuffix("\n").split("\n"):
            say(line)
        return
    sizes = {name: array["bytes"] for name, array in manifest["arrays"].items()}
    facts: dict[str, object] = {
        "method": method_name(manifest["class"]),
        "features": int(fitted.n_features_in_),
        "labels": fitted.n_labels_,
        "training rows": int(fitted.n_samples_fit_),
        "scores": fitted._score_meaning,
        "threshold": round(float(fitted.threshold_), 6),
        "bytes": model_folder.size(model),
        "written by": f"exmlds {manifest.get('version')}, format {manifest['format']}",
        "generation": model_folder.generation_of(manifest),
        "journal records": len(changes.payloads),
        "journal bytes": changes.end,
        "checksums": "all match",
    }
    growth = getattr(fitted, "growth_", None)
    if growth is not None:
        facts["rows added since the fit"] = growth.n_added
        facts["rows removed since the fit"] = growth.n_removed
    for name, value in (fitted.held_out_metrics_ or {}).items():
        facts[f"held-out {name}"] = round(value, 4)
    facts |= {f"chosen {name}": value for name, value in _chosen(fitted)}
    if as_json:
        print_json({**facts, "parameters": manifest["parameters"], "arrays": sizes})
        return
    facts |= {"bytes": size(model_folder.size(model)), "journal bytes": size(changes.end)}
    print_table(("property", "value"), list(facts.items()))
    print_table(("parameter", "value"), _flat(manifest["parameters"]))
    print_table(("array", "size"), [(name, size(n_bytes)) for name, n_bytes in sizes.items()])


def _chosen(fitted: Any, before: str = "") -> Iterator[tuple[str, object]]:
    """The parameters that have a learnt counterpart, as cost has cost_; those of inner estimators follow."""
    from ..base import XMCPredictor

    learnt = {name.removesuffix("_"): value for name, value in vars(fitted).items() if name.endswith("_")}
    for name in sorted(learnt.keys() & fitted.get_params(deep=False)):
        values = learnt[name] if isinstance(learnt[name], list) else [learnt[name]]
        if name != "threshold" and all(isinstance(value, bool | int | float | str) for value in values):
            yield before + name, learnt[name]
    for name, value in learnt.items():
        if isinstance(value, XMCPredictor):
            yield from _chosen(value, f"{before}{name}.")


def _flat(parameters: dict[str, Any], before: str = "") -> list[tuple[str, str]]:
    """Flatten the parameters: those of a nested estimator get its name as a prefix."""
    found: list[tuple[str, str]] = []
    for name, value in parameters.items():
        if isinstance(value, dict) and set(value) == {"class", "parameters"}:
            found += [(before + name, value["class"]), *_flat(value["parameters"], f"{before}{name}.")]
        else:
            found.append((before + name, str(value)))
    return found
