"""The model that is served, and what becomes of it on disk.

Requests use a `ServedModel`, which nothing changes. A change of the model makes the next one, and so does a
new generation, a longer journal or another folder in its place: requests under way go on with the one before.
"""

from __future__ import annotations

import copy
import gc
import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, NamedTuple, TypeVar

from ..base import XMCPredictor, load_with_journal
from ..errors import DataError
from ..models.text import TextClassifier
from ..storage import journal, model_folder
from .labels import Labels
from .problems import Problem

log = logging.getLogger("exmlds.service")

Result = TypeVar("Result")

WARM_UP = "some words"
POLL_SECONDS = 0.5  # between two looks at the folder
RETRY_SECONDS = 5.0  # after a model that could not be loaded


class ServedModel(NamedTuple):
    """A model as it is at one moment.

    generation : of the model folder;  changed_at : seconds since 1970
    revision : how often the model has changed since the start
    """

    model: TextClassifier
    labels: Labels
    generation: str
    changed_at: float
    revision: int


class Fingerprint(NamedTuple):
    """By what a model folder is seen to have changed: identities and sizes of its manifest and journal."""

    manifest: tuple[int, ...] | None
    journal: tuple[int, ...] | None


UNSEEN = Fingerprint(None, None)  # differs from every model folder


class JournalMark(NamedTuple):
    """How far a journal was read: the number of its records, and the last of them."""

    n: int
    last: tuple[bytes, int] | None

    @classmethod
    def of(cls, contents: journal.Contents, n: int | None = None) -> JournalMark:
        """After n records, or after all."""
        records = contents.payloads[:n]
        return cls(len(records), records[-1] if records else None)


class Serving:
    """The model of a folder, which is followed.

    current : what requests use;  n_takeovers, n_failures : of models that others have put into the folder
    """

    def __init__(self, folder: Path, *, is_read_only: bool = False, trusted: Sequence[str] = ()) -> None:
        self.folder, self.is_read_only, self.trusted = folder, is_read_only, trusted
        self.n_takeovers = self.n_failures = 0
        self._lock = Lock()  # of changes and of taking over what is on disk
        self._is_stopped = Event()
        self._own: TextClassifier | None = None  # the model where it is open for writing
        self._applied: JournalMark  # what was read of the journal
        self._seen: Fingerprint
        self.current = self._load(revision=0)
        self._follower = Thread(target=self._follow, name="exmlds-follower", daemon=True)
        self._follower.start()

    def close(self) -> None:
        """Stop following, and let others write to the folder."""
        self._is_stopped.set()
        self._follower.join()
        with self._lock:
            self._release()

    @property
    def is_growable(self) -> bool:
        return self._own is not None

    def change(self, work: Callable[[TextClassifier], Result]) -> Result:
        """Change the model, on disk and for the requests that come after; calls wait for each other.

        work : is called with the model that is open for writing
        """
        with self._lock:
            if self._has_changed():
                self._take_over()
            own = self._own
            if own is None:
                advice = "Train it with --growable, and serve it without --read-only."
                raise Problem("not-growable", advice)
            before = own.model_
            try:
                return work(own)
            finally:
                if own.model_ is not before:  # also where a later part of the work has failed
                    assert own._journal is not None
                    seen = self._look(own._journal.generation)
                    # A folder that was put in its place meanwhile is seen at the next look.
                    self._publish(own, own._journal.generation, seen if self._is_open() else self._seen)

    def _publish(self, model: TextClassifier, generation: str, seen: Fingerprint) -> None:
        """Let the next requests use this model; seen : the folder before the model was read of it."""
        shown = snapshot(model)
        labels = Labels(shown, self.current.labels)
        self.current = ServedModel(shown, labels, generation, time.time(), self.current.revision + 1)
        self._seen = seen

    def _load(self, revision: int) -> ServedModel:
        """The model of the folder; one that can grow is open for writing."""
        before = model_folder.generation_of(model_folder.read_manifest(self.folder))
        seen = self._look(before)  # first: what others write while the model is read is taken over next
        # A model that cannot grow is served from a folder that nobody may write to as well.
        is_writable = not self.is_read_only and os.access(self.folder, os.W_OK)
        loaded, contents = load_with_journal(self.folder, trusted=self.trusted, writable=is_writable)
        if not isinstance(loaded, TextClassifier):
            loaded.close()
            raise DataError(
                f"{self.folder} takes rows of numbers, and a service takes texts: train it on texts."
            )
        generation, self._applied = journal.generation_of(contents.path), JournalMark.of(contents)
        if getattr(loaded, "growth_", None) is None:
            loaded.close()
        elif is_writable:
            self._own = loaded
        elif not self.is_read_only:
            raise DataError(
                f"{self.folder} cannot be written to, and its model can grow. Change the permissions of the "
                "folder, or pass --read-only."
            )
        self._seen = seen if generation == before else UNSEEN
        shown = snapshot(loaded)
        shown.predict_topk([WARM_UP], 1)  # the first prediction loads kernels, and may compile them
        _settle_garbage()
        changed_at = (self.folder / model_folder.MANIFEST).stat().st_mtime
        return ServedModel(shown, Labels(shown), generation, changed_at, revision)

    def _look(self, generation: str) -> Fingerprint:
        paths = self.folder / model_folder.MANIFEST, journal.path_of(self.folder, generation)
        return Fingerprint(*map(_identity, paths))

    def _follow(self) -> None:
        """Take over what others do to the folder."""
        while not self._is_stopped.wait(POLL_SECONDS):
            if not self._has_changed():
                continue
            try:
                with self._lock:
                    if self._has_changed():  # it was not a change by this process
                        self._take_over()
            except Exception as error:  # the model that is served stays
                self.n_failures += 1
                log.error("The model in the folder cannot be taken over: %s", error)
                self._is_stopped.wait(RETRY_SECONDS)

    def _has_changed(self) -> bool:
        """Whether there is another model; none at all may be one that is just being replaced."""
        seen = self._look(self.current.generation)
        return seen != self._seen and seen.manifest is not None

    def _take_over(self) -> None:
        before = self.current
        seen = self._look(before.generation)  # first, as in `_load`
        manifest = model_folder.read_manifest(self.folder)
        is_same = model_folder.generation_of(manifest) == before.generation
        if is_same and self._own is not None and self._is_open():
            self._seen = seen
            return
        if is_same and self.is_read_only and (model := self._with_longer_journal()) is not None:
            self._publish(model, before.generation, seen)
        else:
            self._release()
            self.current = self._load(before.revision + 1)
        self.n_takeovers += 1
        log.info("Took over generation %s", self.current.generation)

    def _with_longer_journal(self) -> TextClassifier | None:
        """The model with the changes that were added to its journal; None where it did not just grow."""
        contents = journal.read(self.folder, self.current.generation)
        n_known = self._applied.n
        if JournalMark.of(contents, n_known) != self._applied:
            return None
        model = snapshot(self.current.model)
        model._replay(contents._replace(payloads=contents.payloads[n_known:]))
        self._applied = JournalMark.of(contents)
        return model

    def _is_open(self) -> bool:
        """Whether the folder is the one that is open for writing, and not another one under its name."""
        return self._own is not None and self._own._writer_of(self.folder) is not None

    def _release(self) -> None:
        if self._own is not None:
            self._own.close()
            self._own = None


def snapshot(model: Any) -> Any:
    """A copy that no change reaches; it shares the arrays, which changes replace."""
    other = copy.copy(model)
    for name, value in list(vars(model).items()):
        if isinstance(value, XMCPredictor):
            setattr(other, name, snapshot(value))
    return other


def _settle_garbage() -> None:
    """Leave the objects of the model out of the search for cycles, which would stop requests for a while."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def _identity(path: Path) -> tuple[int, ...] | None:
    with suppress(OSError):
        found = path.stat()
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
    return None
