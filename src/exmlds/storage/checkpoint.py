"""Checkpoints: an interrupted fit is resumed from a folder, and gives the same model.

    FOLDER/run          the data, method, parameters and seed that the checkpoint belongs to
    FOLDER/NAME         the last saved state of this name

Each is a model folder, which is replaced atomically: a fit that is killed at any moment leaves its last saved
states.
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
from . import model_folder, tree
from .files import PathLike

Array = np.ndarray


class Checkpoint:
    """Saved states of a fit, by name."""

    def __init__(self, folder: PathLike, run: Mapping[str, Any], rng: np.random.Generator) -> None:
        """Start in an empty folder, or resume in a folder of the same run.

        run : plain values that identify the run
        rng : the random generator of the fit; a resumed fit uses the seed of the first one instead
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
                "entropy": [str(word) for word in words],  # too large for the numbers of some JSON readers
                "spawn_key": list(source.spawn_key),
                "spawned": source.n_children_spawned,
            }
            model_folder.save(self.folder / "run", {"run": dict(run)}, seed)

    def _check_target(self) -> None:
        if not self.folder.exists():
            return
        if not self.folder.is_dir() or any(entry.name != "run" for entry in self.folder.iterdir()):
            raise ModelError(f"{self.folder} is not empty and not a checkpoint; choose another folder.")

    def _check(self, run: Mapping[str, Any]) -> None:
        kept = model_folder.read_manifest(self.folder / "run").get("run")
        kept = kept if isinstance(kept, dict) else {}
        other = [name for name, value in run.items() if kept.get(name) != value]
        if other:
            raise ModelError(
                f"{self.folder} is the checkpoint of another fit: its {' and '.join(other)} differ. "
                "Choose another folder, or remove this one to start again."
            )

    def rng(self) -> np.random.Generator:
        """The random generator of the fit, in its initial state."""
        seed = model_folder.load(self.folder / "run")[1]
        with tree.explained(self.folder / "run"):
            words = [int(word) for word in seed["entropy"]]
            sequence = np.random.SeedSequence(
                words[0] if len(words) == 1 else words,
                spawn_key=tuple(seed["spawn_key"]),
                n_children_spawned=seed["spawned"],
            )
            return np.random.default_rng(sequence)

    def put(self, name: str, state: Any) -> None:
        """Save a state, a record as `model_folder.save` takes it, and replace the last one of this name."""
        model_folder.save(self.folder / name, {}, {"state": state})

    def get(self, name: str, kind: type[Any]) -> Any:
        """The last saved state of a name, a record of this class, or None."""
        if not (self.folder / name / model_folder.MANIFEST).exists():
            return None
        state = model_folder.load(self.folder / name)[1].get("state")
        if not isinstance(state, kind):
            raise ModelError(f"{self.folder / name} does not hold a {kind.__name__}.")
        return state


def discard(folder: PathLike) -> None:
    """Remove the saved states of a checkpoint, `run` last, and the folder if it is empty then."""
    path = Path(folder)
    kept = [entry for entry in path.iterdir() if (entry / model_folder.MANIFEST).is_file()]
    for entry in sorted(kept, key=lambda entry: entry.name == "run"):
        shutil.rmtree(entry)
    with suppress(OSError):
        path.rmdir()


def digest(*matrices: Any) -> str:
    """A SHA-256 digest of csr or dense matrices, to detect other data."""
    total = hashlib.sha256()
    for matrix in matrices:
        total.update(str(matrix.shape).encode())
        if issparse(matrix):
            pattern = (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64))
        for array in (*pattern, matrix.data) if issparse(matrix) else (matrix,):
            total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()
