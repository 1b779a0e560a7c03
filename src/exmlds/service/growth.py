"""Documents that are added and removed; each call returns when the change is on the disk."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ModelError
from ..models.text import TextClassifier
from .explaining import as_text
from .problems import Problem
from .serving import Serving


def add(serving: Serving, documents: Sequence[Any], *, replace: bool) -> list[str]:
    """Add documents, and return their ids."""
    ids = [uuid.uuid4().hex if document.id is None else document.id for document in documents]
    if len(set(ids)) < len(ids):
        raise Problem("refused", "Two documents of the request have the same id; send each id once.")

    def work(model: TextClassifier) -> None:
        position = model._growing_model()._positions_by_id()
        known = [] if replace else [id for id in ids if id in position]
        if known:
            raise Problem(
                "document-exists",
                f"The model has a document {min(known)!r} already; send replace: true, or another id.",
            )
        texts = [as_text(document.text) for document in documents]
        known_labels = serving.current.labels  # ids are strings, also where labels are numbers
        labels = [list(map(known_labels.known, document.labels)) for document in documents]
        model.partial_fit(texts, labels, ids=ids, replace=replace)

    _change(serving, work)
    return ids


def remove(serving: Serving, id: str, *, purge: bool) -> None:
    """Remove a document; purge : whether its text leaves the folder too, which takes as long as a save."""

    def work(model: TextClassifier) -> None:
        growth = model._growth()
        own = growth.ids == id
        is_used, is_stored = bool((own & ~growth.is_removed).any()), bool(own.any())
        # A document that was removed without its text, or whose purge failed, can be purged later.
        if not (is_used or (purge and is_stored)):
            raise Problem("unknown-document", "Send the id of a document of the model.")
        if is_used:
            model.remove_rows([id])
        if purge:
            model.compact(purge=True)

    _change(serving, work)


def _change(serving: Serving, work: Callable[[TextClassifier], None]) -> None:
    try:
        serving.change(work)
    except ModelError:  # of the disk; its message has a path
        raise
    except ValueError as error:  # such as a change that would leave no label
        raise Problem("refused", str(error)) from None
