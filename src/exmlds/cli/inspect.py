"""The command `exmlds inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from .settings import OwnMethod, import_method


def inspect(
    model: Annotated[Path, Argument(help="A model folder.")],
    verify: Annotated[bool, Option("--verify", help="Compare every file with its checksum.")] = False,
    method: OwnMethod = None,
    as_json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the properties, parameters and files of a saved model; --verify checks the files."""
    from .. import load
    from ..errors import ModelError
    from ..storage import model_folder
    from .output import print_json, print_table, size
    from .settings import method_name

    manifest = model_folder.read_manifest(model)
    wrong = model_folder.verify(model) if verify else []
    if wrong:
        raise ModelError(f"{model} is damaged: {'; '.join(wrong)}.")
    import_method(method)
    fitted = load(model)
    files = manifest["files"]
    facts: dict[str, object] = {
        "method": method_name(manifest["class"]),
        "features": int(fitted.n_features_in_),
        "labels": len(fitted.classes_),
        "training rows": int(fitted.n_samples_fit_),
        "threshold": round(float(fitted.threshold_), 6),
        "bytes": model_folder.size(model),
        "written by": f"exmlds {manifest['version']}, format {manifest['format']}",
        **({"checksums": "all match"} if verify else {}),
    }
    if as_json:
        sizes = {name: file["bytes"] for name, file in files.items()}
        print_json({**facts, "parameters": manifest["parameters"], "files": sizes})
        return
    facts["bytes"] = size(model_folder.size(model))
    print_table(("property", "value"), list(facts.items()))
    print_table(("parameter", "value"), _flat(manifest["parameters"]))
    print_table(("file", "size"), [(name, size(file["bytes"])) for name, file in files.items()])


def _flat(parameters: dict[str, Any], before: str = "") -> list[tuple[str, str]]:
    """Flatten the parameters: those of a nested estimator get its name as a prefix."""
    found: list[tuple[str, str]] = []
    for name, value in parameters.items():
        if isinstance(value, dict) and set(value) == {"class", "parameters"}:
            found += [(before + name, value["class"]), *_flat(value["parameters"], f"{before}{name}.")]
        else:
            found.append((before + name, str(value)))
    return found
