"""What a service is started with."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class AccessTokens:
    """The tokens that reading and writing need; None where none is needed.

    Without a token of its own, writing needs that of reading.
    """

    read: str | None = field(default=None, repr=False)
    write: str | None = field(default=None, repr=False)

    @property
    def for_writing(self) -> str | None:
        return self.write or self.read


@dataclass(frozen=True)
class ServiceSettings:
    """What a service is started with.

    model : the folder;  name : what the service calls the model
    feedback : the file of feedback, or None where none is kept
    is_read_only : whether documents are neither added nor removed, also where the model can grow
    trusted : encoders of texts that the model may import
    origins : of pages of others that may use the service;  hosts : names that it answers to; () for all
    """

    model: Path
    name: str
    feedback: Path | None
    host: str = "127.0.0.1"
    port: int = 8000
    tokens: AccessTokens = AccessTokens()
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    max_body: int = 10_000_000
    is_read_only: bool = False
    trusted: tuple[str, ...] = ()
