"""Model folders within a model folder: a model may consist of others, each of them whole.

    MODEL/parts-1f0c…/0, 1, …    the inner models of the generation 1f0c…, written before its manifest

An inner model is written by a function, or is in a folder already. The files of such a folder never change,
so that the new folder gets further names of the same files where the file system allows it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import ModelError
from .files import sync_folder

NAME = re.compile(r"parts-([0-9a-f]{12})")
_NOT_COPIED = shutil.ignore_patterns(".*")  # locks, and what a writer that was killed has left


class InnerModel:
    """A model within another one.

    folder : where it is, or None where `save` writes it
    save : writes it to a new folder
    """

    def __init__(self, folder: Path | None, save: Callable[[Path], Any] | None = None) -> None:
        self.folder, self.save = folder, save

    def check(self) -> None:
        """Raise a ModelError for links, which could lead out of the model folder."""
        if self.folder is None:
            return
        for path in (self.folder.parent, self.folder, *self.folder.rglob("*")):
            if path.is_symlink():
                raise ModelError(f"{path} is a link; a model consists of real files and folders.")

    def write(self, target: Path) -> None:
        """Write the model to a folder that does not exist yet, and sync the folder."""
        if self.folder is None:
            assert self.save is not None
            self.save(target)
            return
        self.check()
        shutil.copytree(self.folder, target, copy_function=_link_or_copy, ignore=_NOT_COPIED)
        sync_folder(target)


def folder_of(folder: Path, generation: str) -> Path:
    """Where the inner models of a generation are."""
    return folder / f"parts-{generation}"


def write(folder: Path, models: list[InnerModel]) -> None:
    """Write the inner models of a generation; without any, there is no folder."""
    if not models:
        return
    folder.mkdir()
    for number, model in enumerate(models):
        model.write(folder / str(number))
    sync_folder(folder)


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)
        with open(target, "rb+") as file:
            os.fsync(file.fileno())
