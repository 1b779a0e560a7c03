"""The page of the service, whose files are part of the package, and what a monitor asks for."""

from __future__ import annotations

import hashlib
import mimetypes
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import Response

from .core import ServiceOfRequest
from .problems import Problem
from .prometheus import MEDIA_TYPE, resident_bytes
from .routing import GuardedRoute, ReadingRoute, as_json, problems
from .schemas import Status

page = APIRouter(route_class=GuardedRoute)
measured = APIRouter(route_class=ReadingRoute)

INDEX = "index.html"


class StaticFile(NamedTuple):
    content: bytes
    media_type: str
    tag: str


@cache
def static_files() -> dict[str, StaticFile]:
    """The files of the page by their names; no other file is ever served."""
    found = {}
    for file in files(__package__).joinpath("static").iterdir():
        content = file.read_bytes()
        media_type = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        if media_type.startswith("text/"):
            media_type += "; charset=utf-8"
        found[file.name] = StaticFile(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:16]}"')
    return found


def _static(name: str, request: Request) -> Response:
    file = static_files().get(name)
    if file is None:
        raise Problem("not-found", "The page is at /, and the API is described in /openapi.json.")
    headers = {"ETag": file.tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers, media_type=file.media_type)


@page.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
async def index(request: Request) -> Response:
    return _static(INDEX, request)


@page.api_route("/static/{name}", methods=["GET", "HEAD"], include_in_schema=False)
async def static(name: str, request: Request) -> Response:
    return _static(name, request)


@page.head("/healthz", include_in_schema=False)  # which some monitors send
@page.get("/healthz", response_model=Status)
async def healthz() -> Response:
    """Whether the process answers."""
    return as_json({"status": "ok"})


@page.head("/readyz", include_in_schema=False)
@page.get("/readyz", response_model=Status, responses=problems("busy"))
async def readyz(service: ServiceOfRequest) -> Response:
    """Whether new requests should be sent here: not while the service is ending."""
    if service.is_ending:
        raise Problem("busy", "The service is ending. Send requests to another one.")
    return as_json({"status": "ok"})


@measured.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"description": "Text of Prometheus", "content": {"text/plain": {"schema": {"type": "string"}}}}
    },
)
async def metrics(service: ServiceOfRequest) -> Response:
    """Measurements in the text format of Prometheus."""
    served = service.serving.current
    gauges = {
        "exmlds_waiting_texts": ("Texts that wait for suggestions.", service.batcher.n_waiting),
        "exmlds_labels": ("Labels of the model.", served.model.n_labels_),
        "exmlds_documents": ("Documents of the model.", served.model.n_samples_fit_),
        "exmlds_model_revision": ("Changes of the model since the start.", served.revision),
        "exmlds_feedback": ("Feedback that is kept.", len(service.feedback or ())),
        "process_resident_memory_bytes": ("Memory of the process.", resident_bytes()),
    }
    totals = {
        "exmlds_takeovers_total": ("Models taken over from disk.", service.serving.n_takeovers),
        "exmlds_failed_takeovers_total": ("Models that could not be taken over.", service.serving.n_failures),
    }
    return Response(service.measurements.text(gauges, totals), media_type=MEDIA_TYPE)
