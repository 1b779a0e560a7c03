"""The command `exmlds compact`."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from .arguments import AsJson, ModelFolder
from .settings import OwnMethod, Trusted, load_model


def compact(
    model: ModelFolder,
    purge: Annotated[
        bool, Option("--purge", help="Leave nothing of removed rows in the folder, not even their numbers.")
    ] = False,
    method: OwnMethod = None,
    trusted: Trusted = None,
    as_json: AsJson = False,
) -> None:
    """Write a model that has grown as a new generation, without a journal.

    It waits while another process writes to the folder. Other processes may read it meanwhile.
    """
    from ..storage import model_folder
    from .changes import number_of
    from .output import print_json, say, size

    with load_model(model, method, trusted, writable=True) as fitted:
        n_changes = len(model_folder.journal_of(model).payloads)
        fitted.compact(purge=purge)
        generation = model_folder.generation_of(model_folder.read_manifest(model))
    if as_json:
        print_json({"generation": generation, "changes": n_changes, "bytes": model_folder.size(model)})
        return
    changes = number_of(n_changes, "change")
    say(
        f"Wrote {model}, {size(model_folder.size(model))}, as generation {generation}: it includes the "
        f"{changes} of the journal."
    )
