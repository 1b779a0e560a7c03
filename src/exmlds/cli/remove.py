"""The command `exmlds remove`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from .arguments import AsJson, ModelFolder
from .settings import OwnMethod, Trusted


def remove(
    model: ModelFolder,
    ids: Annotated[
        list[str] | None, Argument(metavar="ID ...", help="The ids of documents or rows to remove.")
    ] = None,
    file: Annotated[
        Path | None, Option("--file", help="A file of further ids, one a line; - is standard input.")
    ] = None,
    method: OwnMethod = None,
    trusted: Trusted = None,
    as_json: AsJson = False,
) -> None:
    """Remove documents, or rows of numbers, by their ids from a model that was trained with --growable.

    They do not vote any more; `exmlds compact --purge` takes their texts out of the folder. What the
    classifiers and the list of words have learnt from them stays until the model is trained again.
    """
    from ..errors import DataError
    from ..runtime import progress
    from .changes import changed, growth_of, number_of, tell
    from .output import print_json

    listed = [*(ids or []), *(_ids_of(file) if file is not None else [])]
    if not listed:
        if file is not None:
            raise DataError(f"{file} holds no ids; write one a line.")
        raise DataError("Pass the ids of what is to be removed, or a file of them with --file.")
    with progress.shown():
        with changed(model, method, trusted) as fitted:
            fitted.remove_rows(listed)
        summary = {"model": str(model), "removed": len(listed), **growth_of(fitted)}
    tell(f"Removed {number_of(len(listed), 'row')}.", summary)
    if as_json:
        print_json(summary)


def _ids_of(file: Path) -> list[str]:
    """The lines of a file that are not empty, without surrounding whitespace."""
    from ..errors import DataError
    from .sources import copied_input

    path = copied_input() if str(file) == "-" else file
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise DataError(f"{file} is not UTF-8; save it as UTF-8.") from None
    return [id for line in lines if (id := line.strip())]
