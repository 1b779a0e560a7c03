"""Errors of the service as problem details (RFC 9457): what is wrong, where, and what to do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"
MOST_ERRORS = 10  # that are told of one request
LONGEST_NAME = 100  # characters of a field's name in them

# The kinds of problems: the HTTP status, and the title.
KINDS: dict[str, tuple[int, str]] = {
    "malformed": (400, "The request cannot be read"),
    "unauthorized": (401, "A token is needed"),
    "forbidden": (403, "This is not allowed"),
    "feedback-off": (403, "This service keeps no feedback"),
    "wrong-origin": (403, "A page of another site sent this"),
    "not-found": (404, "There is nothing under this address"),
    "unknown-label": (404, "The model does not know this label"),
    "unknown-language": (404, "The model has no names in this language"),
    "unknown-document": (404, "The model has no such document"),
    "unknown-feedback": (404, "There is no such feedback"),
    "unknown-project": (404, "There is no such project"),
    "method-not-allowed": (405, "This address does not take this method"),
    "timeout": (408, "The request was not sent in time"),
    "not-growable": (409, "This model cannot grow"),
    "document-exists": (409, "There is a document with this id already"),
    "refused": (409, "The model does not take this change"),
    "too-large": (413, "The request is too large"),
    "wrong-media-type": (415, "The request is of another media type"),
    "wrong-host": (421, "This service does not answer to this host name"),
    "invalid": (422, "The request is not as the service takes it"),
    "busy": (503, "The service is busy"),
    "failed": (500, "The service has failed"),
    "storage-full": (507, "There is no space left"),
}


class Problem(HTTPException):
    """An error that the client is told about.

    detail : what is wrong and what to do, without any text that users sent
    errors : the places in the request that are wrong, each with "where" and "detail"
    """

    def __init__(
        self,
        kind: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        errors: Sequence[Mapping[str, str]] = (),
    ) -> None:
        status, self.title = KINDS[kind]
        super().__init__(status, detail, dict(headers or {}))
        self.kind, self.errors = kind, list(errors)

    def response(self) -> Response:
        content: dict[str, Any] = {
            "type": f"urn:exmlds:problem:{self.kind}",
            "title": self.title,
            "status": self.status_code,
            "detail": self.detail,
        }
        if self.errors:
            content["errors"] = self.errors
        return Response(
            json.dumps(content, ensure_ascii=False).encode("utf-8", "replace"),
            self.status_code,
            self.headers,
            MEDIA_TYPE,
        )


def busy(detail: str) -> Problem:
    return Problem("busy", f"{detail} Try again in a second.", headers={"Retry-After": "1"})


def of_validation(found: Iterable[Mapping[str, Any]]) -> Problem:
    """The problem of a request that is not as its schema says, by the errors of pydantic.

    What was sent is not repeated: it may be a text that somebody entered.
    """
    shown = list(islice(found, MOST_ERRORS))
    for error in shown:
        if error["type"] == "json_invalid":
            what, place = error["ctx"]["error"], error["loc"][-1]
            return Problem("malformed", f"The body is not JSON: {what} at character {place}. Correct it.")
    errors = [{"where": _where(error["loc"]), "detail": error["msg"]} for error in shown]
    places = ", ".join(dict.fromkeys(error["where"] for error in errors))
    return Problem("invalid", f"Correct {places}; /openapi.json describes the request.", errors=errors)


# The parts of pydantic's places that name an alternative of a text, not a place in the request.
ALTERNATIVES = ("string", "fields")


def _where(place: Sequence[str | int]) -> str:
    """A place in a request, such as "body.texts[3]".

    >>> _where(("body", "texts", 3, "string"))
    'body.texts[3]'
    >>> _where(("body", "text", "fields", "title"))
    'body.text.title'
    """
    path = str(place[0])
    for before, part in pairwise(place):
        if isinstance(part, int):
            path += f"[{part}]"
        elif not (part in ALTERNATIVES and (before == "text" or isinstance(before, int))):
            path += f".{part[:LONGEST_NAME]}"
    return path
