"""Routes that check the token and the media type before they read a body."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from . import security
from .problems import KINDS, MEDIA_TYPE, Problem
from .schemas import ProblemResponse

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class GuardedRoute(APIRoute):
    """A route with an access that it needs, and a media type that its body has."""

    access: ClassVar[security.Access] = "open"
    body_type: ClassVar[str] = "application/json"

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            security.check_token(request, self.access, request.app.state.service.settings.tokens)
            if self.takes_body:
                self._check_type(request)
            return await handle(request)

        return guarded

    @property
    def takes_body(self) -> bool:
        return self.body_field is not None or bool((self.openapi_extra or {}).get("requestBody"))

    def _check_type(self, request: Request) -> None:
        given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if given != self.body_type:
            raise Problem("wrong-media-type", f"Send the body as {self.body_type}.")


class ReadingRoute(GuardedRoute):
    access = "read"


class WritingRoute(GuardedRoute):
    access = "write"


class FormRoute(ReadingRoute):
    body_type = "application/x-www-form-urlencoded"


def as_json(content: Any, status: int = 200) -> Response:
    """A response that is written as it is: its schema is tested, not checked in each answer."""
    data = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(data.encode("utf-8", "replace"), status, media_type="application/json")


def problems(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI says of the errors of a route."""
    found: dict[int | str, dict[str, Any]] = {}
    for status, title in sorted({KINDS[kind] for kind in kinds}):
        titles = found[status]["description"] + "; " if status in found else ""
        found[status] = {"description": titles + title, "content": {MEDIA_TYPE: {"schema": PROBLEM}}}
    return found


PROBLEM = {"$ref": f"#/components/schemas/{ProblemResponse.__name__}"}
