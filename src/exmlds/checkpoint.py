"""A fit under way, kept in a folder, so that the next one goes on from there and comes to the same model.

    FOLDER/run          which data, method, parameters and seed it is of
    FOLDER/NAME         what was learnt by then under this name

Each is a folder of `storage`, replaced in one step: a fit that is killed at any moment leaves what it last
kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from . import storage
from .errors import ModelError
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
        if (self.folder / "run" / storage.MANIFEST).is_file():
            self._check(run)
        else:
            self._check_target()
            source: Any = rng.bit_generator.seed_seq
            seed = {"entropy": str(source.entropy), "spawn_key": list(source.spawn_key)}
            storage.save(self.folder / "run", {"run": dict(run)}, seed)

    def _check_target(self) -> None:
        if not self.folder.exists():
            return
        if not self.folder.is_dir() or any(entry.name != "run" for entry in self.folder.iterdir()):
            raise ModelError(f"{self.folder} holds something else than a checkpoint; choose another folder.")

    def _check(self, run: Mapping[str, Any]) -> None:
        kept = storage.read_manifest(self.folder / "run").get("run", {})
        other = [name for name, value in run.items() if kept.get(name) != value]
        if other:
            raise ModelError(
                f"{self.folder} is of another fit: its {' and '.join(other)} differ. "
                "Choose another folder, or remove this one to begin anew."
            )

    def rng(self) -> np.random.Generator:
        """Where the fit draws from."""
        seed = storage.load(self.folder / "run")[1]
        sequence = np.random.SeedSequence(int(seed["entropy"]), spawn_key=tuple(seed["spawn_key"]))
        return np.random.default_rng(sequence)

    def put(self, name: str, state: dict[str, Any]) -> None:
        """Keep a tree as `storage` takes it, in the place of what was there."""
        storage.save(self.folder / name, {}, state)

    def get(self, name: str) -> dict[str, Any] | None:
        """What was last kept under a name, if anything was."""
        if not (self.folder / name / storage.MANIFEST).is_file():
            return None
        return storage.load(self.folder / name)[1]


def digest(*matrices: Any) -> str:
    """Tells data apart: csr or dense matrices."""
    total = hashlib.sha256()
    for matrix in matrices:
        total.update(str(matrix.shape).encode())
        for array in (matrix.indptr, matrix.indices, matrix.data) if issparse(matrix) else (matrix,):
            total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()
