"""The REST API of Annif, so that its clients, and its `http` backend, can use the model as a project.

Paths, requests and answers are those of Annif 1.x. Errors are problem details, as Annif's are.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import Response

from .. import __version__
from . import growth
from .core import Service, ServiceOfRequest, SuggestOptions
from .problems import Problem, of_validation
from .routing import FormRoute, ReadingRoute, WritingRoute, as_json, problems
from .schemas import (
    MOST_DOCUMENTS,
    MOST_FIELDS,
    MOST_LABELS,
    MOST_SUGGESTIONS,
    Given,
    Name,
    NewDocument,
    PlainText,
)

suggesting = APIRouter(prefix="/v1", route_class=FormRoute, tags=["Annif"])
reading = APIRouter(prefix="/v1", route_class=ReadingRoute, tags=["Annif"])
writing = APIRouter(prefix="/v1", route_class=WritingRoute, tags=["Annif"])

OF_BODIES = ("malformed", "timeout", "too-large", "wrong-media-type", "invalid", "busy", "unknown-language")
MOST_IN_BATCH = 32  # documents, as in Annif

ProjectId = Annotated[str, Path(max_length=200, description="The project: the name of the model.")]
Limit = Annotated[int, Field(ge=0, le=2**31 - 1)]
Threshold = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
LanguageOfLabels = Annotated[str | None, Field(max_length=35)]
Metadata = Annotated[dict[str, Any], Field(description="It is not used.")]


class Form(BaseModel):
    """The fields of a form; metadata_… and others are not used."""

    text: PlainText
    limit: Limit = 10
    threshold: Threshold = 0.0
    language: LanguageOfLabels = None


class BatchDocument(BaseModel):
    model_config = ConfigDict(strict=True)

    text: PlainText
    document_id: Annotated[str | None, Field(max_length=500)] = None
    metadata: Metadata = {}


class Batch(BaseModel):
    model_config = ConfigDict(strict=True)

    documents: Annotated[list[BatchDocument], Field(max_length=MOST_IN_BATCH)]


class Subject(BaseModel):
    model_config = ConfigDict(strict=True)

    uri: Name
    label: str | None = None


class IndexedDocument(BaseModel):
    """A document with its subjects."""

    model_config = ConfigDict(strict=True)

    text: PlainText
    subjects: Annotated[list[Subject], Field(max_length=MOST_LABELS)] = []
    document_id: Name | None = None
    metadata: Metadata = {}


class AnnifSuggestion(Given):
    uri: str
    label: str
    notation: str | None
    score: float


class AnnifSuggestions(Given):
    results: list[AnnifSuggestion]


class AnnifBatchSuggestions(AnnifSuggestions):
    document_id: str | None


class Backend(Given):
    backend_id: str


class VocabularyInfo(Given):
    vocab_id: str
    languages: list[str]
    size: int | None
    loaded: bool


class Project(Given):
    project_id: str
    name: str
    language: str
    backend: Backend
    vocab: VocabularyInfo
    vocab_language: str
    is_trained: bool
    modification_time: str


class Projects(Given):
    projects: list[Project]


class ApiInfo(Given):
    title: str
    version: str


class Vocabularies(Given):
    vocabs: list[VocabularyInfo]


def project_id(name: str) -> str:
    """The id of the project of a model.

    >>> project_id("yso (English)")
    'yso-English'
    """
    return re.sub(r"[^A-Za-z0-9_.]+", "-", name).strip("-") or "model"


def _project(service: Service) -> dict[str, Any]:
    served, name = service.serving.current, service.settings.name
    languages = served.labels.languages
    language = served.labels.language or (languages[0] if languages else "")
    return {
        "project_id": project_id(name),
        "name": name,
        "language": language,
        "backend": {"backend_id": "exmlds"},
        "vocab": _vocabulary(service),
        "vocab_language": language,
        "is_trained": True,
        "modification_time": datetime.fromtimestamp(served.changed_at, UTC).isoformat(),
    }


def _vocabulary(service: Service) -> dict[str, Any]:
    labels = service.serving.current.labels
    return {
        "vocab_id": project_id(service.settings.name),
        "languages": labels.languages,
        "size": len(labels.classes),
        "loaded": True,
    }


def _check_project(id: str, service: Service) -> None:
    own = project_id(service.settings.name)
    if id != own:
        raise Problem("unknown-project", f"This service has one project, {own!r}.")


def _result(suggestions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"uri": found["id"], **{name: found[name] for name in ("label", "notation", "score")}}
        for found in suggestions
    ]


async def _suggest(
    service: Service, texts: list[str], limit: int, threshold: float, language: str | None
) -> list[list[dict[str, Any]]]:
    service.serving.current.labels.check_language(language or None)
    if not limit:
        return [[] for _ in texts]
    options = SuggestOptions(min(limit, MOST_SUGGESTIONS), threshold, language or None)
    return [_result(found) for found in await service.suggest(texts, options)]


@reading.get("/", response_model=ApiInfo)
async def show_info() -> Response:
    """The API and its version."""
    return as_json({"title": "Annif REST API of exmlds", "version": __version__})


@reading.get("/vocabs", response_model=Vocabularies)
async def list_vocabularies(service: ServiceOfRequest) -> Response:
    """The vocabulary of the model."""
    return as_json({"vocabs": [_vocabulary(service)]})


@reading.get("/projects", response_model=Projects)
async def list_projects(service: ServiceOfRequest) -> Response:
    """The model, as the only project."""
    return as_json({"projects": [_project(service)]})


@reading.get("/projects/{id}", response_model=Project, responses=problems("invalid", "unknown-project"))
async def show_project(id: ProjectId, service: ServiceOfRequest) -> Response:
    """The model as a project."""
    _check_project(id, service)
    return as_json(_project(service))


@suggesting.post(
    "/projects/{id}/suggest",
    response_model=AnnifSuggestions,
    responses=problems(*OF_BODIES, "unknown-project"),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {FormRoute.body_type: {"schema": Form.model_json_schema()}},
        }
    },
)
async def suggest_subjects(id: ProjectId, request: Request, service: ServiceOfRequest) -> Response:
    """Suggest labels for a text; fields of metadata are not used."""
    _check_project(id, service)
    try:
        fields = dict(
            parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
        )
        form = Form.model_validate(fields)
    except ValidationError as error:
        raise of_validation([{**one, "loc": ("body", *one["loc"])} for one in error.errors()]) from None
    except ValueError:
        raise Problem("malformed", f"Send a form in UTF-8 with at most {MOST_FIELDS} fields.") from None
    (found,) = await _suggest(service, [form.text], form.limit, form.threshold, form.language)
    return as_json({"results": found})


@reading.post(
    "/projects/{id}/suggest-batch",
    response_model=list[AnnifBatchSuggestions],
    responses=problems(*OF_BODIES, "unknown-project"),
)
async def suggest_subjects_of_batch(
    id: ProjectId,
    batch: Batch,
    service: ServiceOfRequest,
    limit: Annotated[Limit, Query()] = 10,
    threshold: Annotated[Threshold, Query()] = 0.0,
    language: Annotated[LanguageOfLabels, Query()] = None,
) -> Response:
    """Suggest labels for up to 32 texts."""
    _check_project(id, service)
    texts = [document.text for document in batch.documents]
    found = await _suggest(service, texts, limit, threshold, language)
    return as_json(
        [
            {"results": results, "document_id": document.document_id}
            for results, document in zip(found, batch.documents)
        ]
    )


@writing.post(
    "/projects/{id}/learn",
    status_code=204,
    response_class=Response,
    responses=problems(
        *OF_BODIES, "unknown-project", "not-growable", "document-exists", "refused", "storage-full"
    ),
)
async def learn(
    id: ProjectId,
    documents: Annotated[list[IndexedDocument], Field(max_length=MOST_DOCUMENTS)],
    service: ServiceOfRequest,
) -> Response:
    """Add documents with their subjects, from which the model learns at once."""
    _check_project(id, service)
    added = [
        NewDocument(
            id=document.document_id, text=document.text, labels=[subject.uri for subject in document.subjects]
        )
        for document in documents
    ]
    if added:
        await service.writes.run(growth.add, service.serving, added, replace=True)
    return Response(status_code=204)
