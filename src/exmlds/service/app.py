"""The application: all routes, the OpenAPI document, and what surrounds every request."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from itertools import chain
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp

from .. import __version__
from ..errors import ModelError
from . import annif, api, page
from .core import Service
from .gate import Gate
from .observing import Observer
from .problems import Problem, of_validation
from .routing import GuardedRoute, problems
from .schemas import ProblemResponse
from .security import needed_token

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # errors of a disk without space
ROUTERS = (
    *(api.reading, api.writing, annif.suggesting, annif.reading, annif.writing),
    *(page.page, page.measured),
)


def create_app(service: Service) -> ASGIApp:
    """The application of a service, which it runs and closes."""
    app = FastAPI(
        title="exmlds",
        version=__version__,
        description="Suggest labels for texts, explain them, and let the model grow.",
        lifespan=service.running,
        docs_url=None,  # these pages fetch scripts from elsewhere
        redoc_url=None,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # spans would hold queries
        redirect_slashes=False,
        exception_handlers={
            Problem: _problem,
            HTTPException: _http_error,
            RequestValidationError: _invalid,
            Exception: _failed,
        },
    )
    app.state.service = service
    for router in ROUTERS:
        app.include_router(router)
    document = _openapi(app, service)
    app.openapi = lambda: document  # type: ignore[method-assign]
    inner: ASGIApp = Gate(app, service.settings)
    if service.settings.origins:  # outside, so that pages of these sites can read what the gate refuses
        inner = CORSMiddleware(
            inner,
            allow_origins=service.settings.origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type"],
            max_age=600,
        )
    return Observer(inner, service.measurements)


async def _problem(_: Request, problem: Any) -> Response:
    return problem.response()


async def _invalid(_: Request, error: Any) -> Response:
    return of_validation(error.errors()).response()


async def _http_error(request: Request, error: Any) -> Response:
    """Errors of the framework: unknown addresses and methods, and bodies that are not JSON."""
    if error.status_code == 404:
        return Problem("not-found", "The page is at /, and the API is described in /openapi.json.").response()
    if error.status_code == 405:
        methods = ", ".join(sorted(_methods(request)))
        return Problem("method-not-allowed", f"Use {methods}.", headers={"Allow": methods}).response()
    return Problem("malformed", "Send a body as /openapi.json describes it.").response()


async def _failed(_: Request, error: Any) -> Response:
    """An error of the service itself, which the log describes; its message may have a path."""
    cause = error.__cause__ if isinstance(error, ModelError) else error
    if isinstance(cause, OSError) and cause.errno in FULL:
        return Problem(
            "storage-full", "Nothing was changed. Whoever runs the service can free space."
        ).response()
    advice = "Nothing was changed. The log of the service says where it failed; report it with that."
    return Problem("failed", advice).response()


def _methods(request: Request) -> set[str]:
    """The methods that this address takes."""
    found: set[str] = set()
    for route in all_routes():
        if route.matches(request.scope)[0] != Match.NONE:
            found |= route.methods or set()
    return found


def _openapi(app: FastAPI, service: Service) -> dict[str, Any]:
    """The OpenAPI document, with the tokens that routes need."""
    document = FastAPI.openapi(app)
    schemas, tokens = document["components"]["schemas"], service.settings.tokens
    schemas[ProblemResponse.__name__] = ProblemResponse.model_json_schema(
        ref_template="#/components/schemas/{model}"
    )
    schemas |= schemas[ProblemResponse.__name__].pop("$defs")
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for route in all_routes():
        if not route.include_in_schema or needed_token(route.access, tokens) is None:
            continue
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        refused = ("unauthorized", "forbidden") if route.access == "write" else ("unauthorized",)
        for method in route.methods or ():
            operation = document["paths"][route.path_format][method.lower()]
            operation["security"] = [{"token": []}]
            for status, described in problems(*refused).items():
                operation["responses"].setdefault(str(status), described)
    return document


def all_routes() -> Iterator[GuardedRoute]:
    for route in chain.from_iterable(router.routes for router in ROUTERS):
        assert isinstance(route, GuardedRoute)
        yield route
