"""A fit under way, kept in a folder, so that the next one goes on from there and comes to the same model.

    FOLDER/run          which data, method, parameters and seed it is of
    FOLDER/NAME         what was learnt by then under this name

Each is a folder of `storage`, replaced in one step: a fit that is killed at any moment leaves what it last
kept.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..errors import ModelError
from . import model_folder
from .files import PathLike

Array = np.ndarray


class Checkpoint:
    """What a fit keeps, by names."""

    def __init__(self, folder: PathLike, run: Mapping[str, Any], rng: np.random.Generator) -> None:
        """Begin in an empty folder, or go on in one of the same run.

        run : plain values that say whose it is
        rng : where the fit draws from; one that goes on draws from what the first was given
        """
        self.folder = Path(folder)
        if (self.folder / "run" / model_folder.MANIFEST).is_file():
            self._check(run)
        else:
            self._check_target()
            source: Any = rng.bit_generator.seed_seq
            words = (
                source.entropy if isinstance(source.entropy, (list, tuple, np.ndarray)) else [source.entropy]
            )
            seed = {
                "entropy": [str(word) for word in words],  # beyond what JSON's readers take for numbers
                "spawn_key": list(source.spawn_key),
                "spawned": source.n_children_spawned,
            }
            model_folder.save(self.folder / "run", {"run": dict(run)}, seed)

    def _check_target(self) -> None:
        if not self.folder.exists():
            return
        if not self.folder.is_dir() or any(entry.name != "run" for entry in self.folder.iterdir()):
            raise ModelError(f"{self.folder} holds something else than a checkpoint; choose another folder.")

    def _check(self, run: Mapping[str, Any]) -> None:
        kept = model_folder.read_manifest(self.folder / "run").get("run", {})
        other = [name for name, value in run.items() if kept.get(name) != value]
        if other:
            raise ModelError(
                f"{self.folder} is of another fit: its {' and '.join(other)} differ. "
                "Choose another folder, or remove this one to begin anew."
            )

    def rng(self) -> np.random.Generator:
        """Where the fit draws from."""
        seed = model_folder.load(self.folder / "run")[1]
        words = [int(word) for word in seed["entropy"]]
        sequence = np.random.SeedSequence(
            words[0] if len(words) == 1 else words,
            spawn_key=tuple(seed["spawn_key"]),
            n_children_spawned=seed["spawned"],
        )
        return np.random.default_rng(sequence)

    def put(self, name: str, state: dict[str, Any]) -> None:
        """Keep a tree as `storage` takes it, in the place of what was there."""
        model_folder.save(self.folder / name, {}, state)

    def get(self, name: str) -> dict[str, Any] | None:
        """What was last kept under a name, if anything was."""
        if not (self.folder / name / model_folder.MANIFEST).is_file():
            return None
        return model_folder.load(self.folder / name)[1]


def discard(folder: PathLike) -> None:
    """Remove what a checkpoint kept, and its folder if nothing else is in it; `run` goes last."""
    path = Path(folder)
    kept = [entry for entry in path.iterdir() if (entry / model_folder.MANIFEST).is_file()]
    for entry in sorted(kept, key=lambda entry: entry.name == "run"):
        shutil.rmtree(entry)
    with suppress(OSError):
        path.rmdir()


def digest(*matrices: Any) -> str:
    """Tells data apart: csr or dense matrices."""
    total = hashlib.sha256()
    for matrix in matrices:
        total.update(str(matrix.shape).encode())
        if issparse(matrix):
            places = (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64))
        for array in (*places, matrix.data) if issparse(matrix) else (matrix,):
            total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()
