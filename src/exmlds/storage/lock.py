"""The lock of a model folder: one process writes to it at a time; readers need no lock."""

from __future__ import annotations

import os
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import ClassVar
from weakref import WeakSet

from ..errors import DataWarning, ModelError
from .array_file import open_regular

NAME = ".lock"
LOCK_SECONDS = 120.0  # that a writer waits for another one of the same folder


class WriterLock:
    """An exclusive lock of a folder; it ends with `release`, or with the process.

    is_kept : whether it is held for longer than one save, by a model that is open for writing
    """

    # The kept locks of this process, for which it would wait in vain.
    _kept: ClassVar[WeakSet[WriterLock]] = WeakSet()

    def __init__(self, folder: Path, *, is_kept: bool = False) -> None:
        self.process = os.getpid()
        self.file = open_regular(folder / NAME, os.O_RDWR | os.O_CREAT, "r+b")
        found = os.fstat(self.file.fileno())
        self.inode = (found.st_dev, found.st_ino)
        try:
            self._wait(folder)
        except BaseException:
            self.file.close()
            raise
        if is_kept:
            self._kept.add(self)

    def _wait(self, folder: Path) -> None:
        deadline, is_waiting = time.monotonic() + LOCK_SECONDS, False
        while not try_to_lock(self.file.fileno()):
            if any(other.inode == self.inode and other.is_held for other in self._kept):
                raise ModelError(
                    f"{folder} is open for writing in this process: use the model that has it open, or close "
                    "that first."
                )
            if time.monotonic() > deadline:
                raise ModelError(
                    f"{folder} has been locked by another process that saves to it, or has it open for "
                    f"writing, for more than {LOCK_SECONDS:g} seconds. Wait for it or stop it, or choose "
                    "another folder."
                )
            if not is_waiting:
                warnings.warn(
                    f"{folder} is locked by another process that saves to it, or has it open for writing; "
                    f"waiting at most {LOCK_SECONDS:g} seconds.",
                    DataWarning,
                    stacklevel=4,
                )
                is_waiting = True
            time.sleep(0.05)

    @property
    def is_held(self) -> bool:
        """Whether this process may write; a process forked from it may not."""
        return not self.file.closed and self.process == os.getpid()

    def is_of(self, folder: Path) -> bool:
        """Whether this is the lock of the folder, by whatever path, and not of one that it has replaced."""
        with suppress(OSError):
            found = os.stat(folder / NAME)
            return (found.st_dev, found.st_ino) == self.inode
        return False

    def release(self) -> None:
        if self.is_held:
            _unlock(self.file.fileno())  # also where a forked process has the file open
        self.file.close()


def try_to_lock(handle: int) -> bool:
    """Lock an open file against other processes until it is closed; False where another one has it locked."""
    try:
        import fcntl
    except ImportError:  # The system has no such locks.
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # type: ignore[attr-defined, unused-ignore]
    except BlockingIOError:
        return False
    return True


def _unlock(handle: int) -> None:
    try:
        import fcntl
    except ImportError:
        return
    fcntl.flock(handle, fcntl.LOCK_UN)  # type: ignore[attr-defined, unused-ignore]
