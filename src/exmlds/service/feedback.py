"""Feedback on suggestions, in a file of JSON lines.

    {"id":"8f2c…","document_id":null,"text":"…","accepted":["payment"],"rejected":["refund"]}

A line is synced before it is acknowledged. A crash leaves at most one line without its end, which was never
acknowledged and is cut off. What is deleted leaves the file: it is written anew without it.
"""

from __future__ import annotations

import json
import os
import stat
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, NamedTuple

from pydantic import BaseModel

from ..errors import DataError
from ..storage.files import replacing, sync, sync_folder
from ..storage.lock import try_to_lock
from .problems import Problem

MOST_BYTES = 1 << 30  # of the file


class Feedback(BaseModel):
    """A line of the file."""

    id: str
    document_id: str | None
    text: str
    accepted: list[str]
    rejected: list[str]


class Entry(NamedTuple):
    """Where the line of some feedback is, and the document that it is about."""

    start: int
    size: int
    document_id: str | None


class FeedbackStore:
    """The file of feedback, which one process has open."""

    def __init__(self, path: Path) -> None:
        self.path, self._lock = path, Lock()
        self._entries: dict[str, Entry] = {}
        self._file = self._open()
        try:
            self._read()
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._entries)

    def close(self) -> None:
        self._file.close()

    def add(
        self, text: str, accepted: Sequence[str], rejected: Sequence[str], document_id: str | None
    ) -> str:
        """Keep feedback, and return its id; it is on the disk then."""
        id = uuid.uuid4().hex
        row = Feedback(
            id=id,
            document_id=document_id,
            text=text,
            accepted=list(dict.fromkeys(accepted)),
            rejected=list(dict.fromkeys(rejected)),
        )
        line = row.model_dump_json().encode() + b"\n"
        with self._lock:
            start = os.fstat(self._file.fileno()).st_size
            if start + len(line) > MOST_BYTES:
                raise Problem("storage-full", "Export the feedback with GET /v1/feedback, then delete it.")
            try:
                rest = line
                while rest:  # not through the file's buffer, which would keep what cannot be written
                    rest = rest[os.pwrite(self._file.fileno(), rest, start + len(line) - len(rest)) :]
                sync(self._file)
            except OSError:
                self._file.truncate(start)
                raise
            self._entries[id] = Entry(start, len(line), document_id)
        return id

    def remove(self, id: str) -> None:
        """Delete feedback, also from the disk."""
        with self._lock:
            if id not in self._entries:
                raise Problem("unknown-feedback", "Send the id that POST /v1/feedback returned.")
            self._keep([entry for other, entry in self._entries.items() if other != id])

    def clear(self) -> None:
        """Delete all feedback."""
        with self._lock:
            self._keep([])

    def training_data(self) -> Iterator[bytes]:
        """Documents with their accepted labels, as JSON lines that `exmlds train` and `update` read.

        The last feedback on a document stands for it; one without an accepted label is left out.
        """
        with self._lock:
            last = {entry.document_id or id: entry for id, entry in self._entries.items()}
            handle = os.dup(self._file.fileno())  # stays readable where the file is written anew
        try:
            for id, entry in last.items():
                row = Feedback.model_validate_json(os.pread(handle, entry.size, entry.start))
                if not row.accepted:  # it tells of no label of the document
                    continue
                document = {
                    "id": id,
                    "text": row.text,
                    "labels": row.accepted,
                    "rejected": row.rejected,
                    "feedback_id": row.id,
                }
                yield json.dumps(document, ensure_ascii=False).encode() + b"\n"
        finally:
            os.close(handle)

    def _open(self) -> BinaryIO:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        try:
            file = os.fdopen(os.open(self.path, flags, 0o600), "r+b")
        except OSError as error:
            raise self._refused(error.strerror) from None
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise self._refused("it is not a regular file")
        if not try_to_lock(file.fileno()):
            file.close()
            raise self._refused("another service uses it")
        sync_folder(self.path.absolute().parent)
        return file

    def _refused(self, reason: str | None) -> DataError:
        advice = "Choose another --feedback-file, or pass --no-feedback."
        return DataError(f"{self.path}: feedback cannot be kept there ({reason}). {advice}")

    def _read(self) -> None:
        """Find the entries of the file, and cut off a line that was not written to its end."""
        start = 0
        self._file.seek(0)
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                self._file.truncate(start)
                sync(self._file)
                break
            try:
                row = Feedback.model_validate_json(line)
            except ValueError:
                raise DataError(
                    f"{self.path}:{number}: this is not a line of feedback. Repair or remove it, or choose "
                    "another file of feedback."
                ) from None
            self._entries[row.id] = Entry(start, len(line), row.document_id)
            start += len(line)

    def _keep(self, entries: Sequence[Entry]) -> None:
        """Write the file anew with these entries only."""
        mode = stat.S_IMODE(os.fstat(self._file.fileno()).st_mode)  # texts stay private
        with replacing(self.path, mode=mode) as file:
            for entry in entries:
                file.write(os.pread(self._file.fileno(), entry.size, entry.start))
        sync_folder(self.path.absolute().parent)
        before = self._file
        try:
            self._file = self._open()
        finally:  # also where it cannot be opened: what is added to the old file would be lost
            before.close()
        self._entries = {}
        self._read()


def joined_text(text: Any) -> str:
    """A text, or its fields joined by newlines."""
    return text if isinstance(text, str) else "\n".join(text.values())
